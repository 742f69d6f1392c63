"""The Python files of a package: those in the folders that its `pyproject.toml` means to build backends.

Where it says nothing, the usual layouts count: `src/`, or the package that is named like the project. Where nothing is
built, all that lies there counts but for tests; without a manifest, every Python file below the root.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

from ...system.files import FileProblem, read_bytes
from ...system.values import Value
from .source_tree import hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, TypeGuard

    from .source_tree import SourceTree

MANIFEST = "pyproject.toml"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024  # a few KB in real life
ENVIRONMENT_MARK = "pyvenv.cfg"  # lies in every virtual environment
ENDINGS = frozenset({".py", ".cfg"})  # .cfg: for the mark
_NOT_THE_CODE_MODULES = frozenset({"conftest.py", "noxfile.py", "setup.py"})


def find_python(tree: SourceTree) -> None:
    """Adds the files of a package with a `pyproject.toml`."""
    import tomllib

    manifest = tree.path(MANIFEST)
    tree.deciding.add(manifest)
    document = {}
    try:
        document = tomllib.loads(read_bytes(manifest, MAX_MANIFEST_BYTES).decode("utf-8"))
    except FileNotFoundError:  # just removed: the next look finds another kind of package
        pass
    except FileProblem as problem:
        tree.problems.append(f"{manifest} cannot be read: {problem.reason}. All Python files beside it count.")
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, lists in lists without end
        tree.problems.append(f"{manifest} is not valid: {error}. All Python files beside it count.")
    places = package_places(tree.root, document)
    tree.problems += places.problems
    for place in places.found:
        if place.endswith(".py"):
            tree.add(place)
        else:
            add_python_below(tree, place)
    tree.deciding.update(tree.path(place) for place in places.awaited)
    tree.folders.update(tree.path(place) for place in places.listed)
    if not tree.files:
        tree.walk("", _is_code, _passes_what_is_no_code, deciding=(ENVIRONMENT_MARK,))


def add_python_below(tree: SourceTree, start: str) -> None:
    """Every Python file below a folder, but for environments and hidden folders."""
    tree.walk(start, lambda path: path.endswith(".py"), python_passes, deciding=(ENVIRONMENT_MARK,))


def python_passes(folder: str, names: Collection[str]) -> Collection[str] | None:
    return None if folder and ENVIRONMENT_MARK in names else hidden_and_foreign(names)


def _is_code(path: str) -> bool:
    return path.endswith(".py") and path not in _NOT_THE_CODE_MODULES


def _passes_what_is_no_code(folder: str, names: Collection[str]) -> Collection[str] | None:
    passed = python_passes(folder, names)
    return passed if passed is None or folder else {*passed, *NOT_THE_CODE}


# Folders beside the code, whatever the layout.
NOT_THE_CODE = frozenset({"test", "tests", "doc", "docs", "build", "dist"})


class PackagePlaces(Value):
    """Paths from the root with forward slashes; a module's ends in `.py`. They need not exist."""

    found: tuple[str, ...]  # folders and modules; empty: neither the manifest nor the layout tells
    awaited: tuple[str, ...] = ()  # that were looked for: if one appears, others may count
    listed: tuple[str, ...] = ()  # folders: what appears in one of them may be a package
    problems: tuple[str, ...] = ()


def package_places(root: str, document: dict[str, Any]) -> PackagePlaces:
    tables = document.get("tool")
    for backend in (_hatch, _setuptools, _poetry, _flit, _uv):
        named = [os.path.normpath(place).replace(os.sep, "/") for place in backend(tables, root)]
        found = [place for place in named if not _leads_out(place)]
        if found:
            manifest = os.path.join(root, "pyproject.toml")
            problems = [
                f'{manifest}: the package "{place}" lies outside of the project, and does not count.'
                for place in named
                if _leads_out(place)
            ]
            return PackagePlaces(_tidy(found), listed=_searched_by_setuptools(tables), problems=tuple(problems))
    if "build-system" not in document:  # nothing is built: the code runs as it lies there
        return PackagePlaces(())
    return _by_layout(root, re.sub(r"[-.]+", "_", _text(_at(document, "project", "name"))))


def _by_layout(root: str, name: str) -> PackagePlaces:
    choices = {"src": "src"}
    if name:
        choices = {f"src/{name}": "src", f"src/{name}.py": "src", name: name, f"{name}.py": f"{name}.py", **choices}
    found = [place for sign, place in choices.items() if os.path.exists(os.path.join(root, sign))]
    return PackagePlaces(tuple(found[:1]), awaited=tuple(choices))


def _hatch(tables: object, _root: str) -> Iterator[str]:
    for place in (("targets", "wheel"), ()):
        build = _at(tables, "hatch", "build", *place)
        for key in ("packages", "only-include"):
            yield from _texts(_at(build, key))


def _setuptools(tables: object, root: str) -> Iterator[str]:
    setuptools = _at(tables, "setuptools")
    folders = _at(setuptools, "package-dir")
    folders = folders if isinstance(folders, dict) else {}
    base = _text(folders.get(""))
    for module in _texts(_at(setuptools, "py-modules")):
        yield os.path.join(base, module.replace(".", "/") + ".py")
    packages = _at(setuptools, "packages")
    for package in _texts(packages):
        yield _text(folders.get(package)) or os.path.join(base, package.replace(".", "/"))
    find = _at(packages, "find")
    if isinstance(find, dict):
        for where in _searched_by_setuptools(tables):
            yield from _found_by_setuptools(root, where, find)
    elif base and not isinstance(packages, list):
        yield base


def _searched_by_setuptools(tables: object) -> tuple[str, ...]:
    find = _at(tables, "setuptools", "packages", "find")
    places = _texts(_at(find, "where")) or ["."]
    return tuple(place for place in places if not _leads_out(place)) if isinstance(find, dict) else ()


def _found_by_setuptools(root: str, where: str, find: dict[str, Any]) -> Iterator[str]:
    """The top packages in a folder, which need no `__init__.py`; the folder itself where it is one of packages only."""
    include, exclude = _texts(find.get("include")), _texts(find.get("exclude"))
    if os.path.normpath(where) != "." and not include and not exclude:
        yield where
        return
    for name in _names(os.path.join(root, where)):
        wanted = any(fnmatchcase(name, pattern.partition(".")[0]) for pattern in include or ["*"])
        unwanted = name in NOT_THE_CODE or any(fnmatchcase(name, pattern) for pattern in exclude)
        if wanted and not unwanted and name.isidentifier() and os.path.isdir(os.path.join(root, where, name)):
            yield os.path.join(where, name)


def _poetry(tables: object, _root: str) -> Iterator[str]:
    packages = _at(tables, "poetry", "packages")
    for package in packages if isinstance(packages, list) else ():
        include, base = _text(_at(package, "include")), _text(_at(package, "from"))
        folder, _, wild = include.partition("*")
        if wild or include.endswith("*"):
            folder = os.path.dirname(folder)  # "pkg/**/*.py": all of it
        if include:
            yield os.path.join(base, folder)


def _flit(tables: object, root: str) -> Iterator[str]:
    name = _text(_at(tables, "flit", "module", "name")).replace(".", "/")
    if name:
        yield from _module(root, name, ("", "src"))


def _uv(tables: object, _root: str) -> Iterator[str]:
    backend = _at(tables, "uv", "build-backend")
    base = _texts(_at(backend, "module-root"))
    for name in _texts(_at(backend, "module-name")) or ([""] if base else []):
        yield os.path.join(base[0] if base else "src", name.replace(".", "/"))


def _module(root: str, name: str, bases: tuple[str, ...]) -> Iterator[str]:
    """Where a package or a module of that name lies; the first place where none does."""
    places = [os.path.join(base, name + ending) for base in bases for ending in ("", ".py")]
    yield next((place for place in places if os.path.exists(os.path.join(root, place))), places[0])


def _at(table: object, *names: str) -> object:
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _text(value: object) -> str:
    return value if _can_name_a_file(value) else ""


def _texts(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if _can_name_a_file(one)]


def _can_name_a_file(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and "\0" not in value


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _leads_out(place: str) -> bool:
    return os.path.isabs(place) or place.split("/")[0] == ".."


def _tidy(places: list[str]) -> tuple[str, ...]:
    """Each once, and none that lies in another; "." is the root, which is the empty path."""
    places = sorted({"" if place == "." else place for place in places})
    return tuple(
        place
        for place in places
        if not any(place != other and (not other or place.startswith(other + "/")) for other in places)
    )
