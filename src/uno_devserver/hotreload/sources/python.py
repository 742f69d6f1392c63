"""The Python files of a project: those in the packages that its `pyproject.toml` declares for the build backend.

If it declares none, the usual layouts count: `src/`, or the package with the name of the project. If nothing is built,
all Python files count but for tests; without a `pyproject.toml`, every Python file below the root.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

from ...system.files import FileProblem, names_in
from ...system.values import Value
from .source_tree import hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, TypeGuard

    from .source_tree import SourceTree

MANIFEST = "pyproject.toml"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024  # real ones have a few KB
SIGNS = frozenset(
    {MANIFEST, "setup.py", "requirements.txt", "setup.cfg", "Pipfile", ".venv"}
)  # what Python projects have
ENVIRONMENT_MARK = "pyvenv.cfg"  # in the root of every virtual environment
ENDINGS = frozenset({".py", ".cfg"})  # .cfg: for the mark
# Beside the code, whatever the layout.
OTHER_FOLDERS = frozenset({"test", "tests", "doc", "docs", "build", "dist"})
_OTHER_MODULES = frozenset({"conftest.py", "noxfile.py", "setup.py"})


def find_python(tree: SourceTree) -> None:
    """Add the files of a package with a `pyproject.toml`."""
    from ...system.toml import parse  # imported late, because tomllib takes 9 ms

    manifest = tree.path(MANIFEST)
    tree.deciding.add(manifest)
    document = {}
    try:
        document = parse(tree.budget.read(manifest, MAX_MANIFEST_BYTES).decode("utf-8"))
    except FileNotFoundError:  # just removed: the next call finds another kind of package
        pass
    except FileProblem as problem:
        tree.problems.append(f"{manifest} cannot be read: {problem.reason}. All Python files beside it count.")
    except (ValueError, RecursionError) as error:  # not TOML, an endless key, not UTF-8, nested too deeply
        tree.problems.append(f"{manifest} is not valid: {error}. All Python files beside it count.")
    places = _package_places(tree.root, document)
    tree.problems += places.problems
    for place in places.found:
        if place.endswith(".py"):
            tree.add(place)
        else:
            add_python_below(tree, place)
    tree.deciding.update(tree.path(place) for place in places.candidates)
    tree.folders.update(tree.path(place) for place in places.searched)
    if not tree.files:
        tree.walk("", _is_code, _skipped_with_tests, deciding=(ENVIRONMENT_MARK,))


def add_python_below(tree: SourceTree, start: str) -> None:
    """Add every Python file below a folder, but for environments and hidden folders."""
    tree.walk(start, lambda path: path.endswith(".py"), _skipped, deciding=(ENVIRONMENT_MARK,))


def _skipped(folder: str, names: Collection[str]) -> Collection[str] | None:
    return None if folder and ENVIRONMENT_MARK in names else hidden_and_foreign(names)


def _is_code(path: str) -> bool:
    return path.endswith(".py") and path not in _OTHER_MODULES


def _skipped_with_tests(folder: str, names: Collection[str]) -> Collection[str] | None:
    skipped = _skipped(folder, names)
    return skipped if skipped is None or folder else {*skipped, *OTHER_FOLDERS}


class _PackagePlaces(Value):
    """Paths from the root with forward slashes; that of a module ends in `.py`. They need not exist."""

    found: tuple[str, ...]  # folders and modules; empty: neither the manifest nor the layout tells
    candidates: tuple[str, ...] = ()  # if one of them appears, other files may count
    searched: tuple[str, ...] = ()  # folders in which a package may appear
    problems: tuple[str, ...] = ()


def _package_places(root: str, document: dict[str, Any]) -> _PackagePlaces:
    tables = document.get("tool")
    for backend in (_hatch, _setuptools, _poetry, _flit, _uv):
        named = [os.path.normpath(place).replace(os.sep, "/") for place in backend(tables, root)]
        found = [place for place in named if not _leads_out(place)]
        if found:
            manifest = os.path.join(root, MANIFEST)
            problems = [
                f'{manifest}: the package "{place}" lies outside of the project, and does not count.'
                for place in named
                if _leads_out(place)
            ]
            return _PackagePlaces(_tidy(found), searched=_searched_by_setuptools(tables), problems=tuple(problems))
    if "build-system" not in document:  # nothing is built: the code runs in place
        return _PackagePlaces(())
    return _by_layout(root, re.sub(r"[-.]+", "_", _text(_at(document, "project", "name"))))


def _by_layout(root: str, name: str) -> _PackagePlaces:
    choices = {"src": "src"}
    if name:
        choices = {f"src/{name}": "src", f"src/{name}.py": "src", name: name, f"{name}.py": f"{name}.py", **choices}
    found = [place for sign, place in choices.items() if os.path.exists(os.path.join(root, sign))]
    return _PackagePlaces(tuple(found[:1]), candidates=tuple(choices))


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
    """The top packages in a folder, which need no `__init__.py`; the folder itself if it holds nothing but packages."""
    include, exclude = _texts(find.get("include")), _texts(find.get("exclude"))
    if os.path.normpath(where) != "." and not include and not exclude:
        yield where
        return
    for name in names_in(os.path.join(root, where)):
        wanted = any(fnmatchcase(name, pattern.partition(".")[0]) for pattern in include or ["*"])
        unwanted = name in OTHER_FOLDERS or any(fnmatchcase(name, pattern) for pattern in exclude)
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
    """The place of the package or module of that name; the first possible one, if there is none."""
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


def _leads_out(place: str) -> bool:
    return os.path.isabs(place) or place.split("/")[0] == ".."


def _tidy(places: list[str]) -> tuple[str, ...]:
    """Each once, without those inside of another; the root is the empty path."""
    places = sorted({"" if place == "." else place for place in places})
    return tuple(
        place
        for place in places
        if not any(place != other and (not other or place.startswith(other + "/")) for other in places)
    )
