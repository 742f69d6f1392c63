"""Which folders and modules does a `pyproject.toml` mean? Its build backend's table tells, else the layout."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeGuard


# Folders beside the code, whatever the layout.
NOT_THE_CODE = frozenset({"test", "tests", "doc", "docs", "build", "dist"})


class Places(Value):
    """Paths from the root with forward slashes; a module's ends in `.py`. They need not exist."""

    found: tuple[str, ...]  # folders and modules; empty: neither the manifest nor the layout tells
    awaited: tuple[str, ...] = ()  # that were looked for: if one appears, others may count
    listed: tuple[str, ...] = ()  # folders: what appears in one of them may be a package
    problems: tuple[str, ...] = ()


def package_places(root: str, document: dict[str, Any]) -> Places:
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
            return Places(_tidy(found), listed=_searched_by_setuptools(tables), problems=tuple(problems))
    if "build-system" not in document:  # nothing is built: the code runs as it lies there
        return Places(())
    return _by_layout(root, re.sub(r"[-.]+", "_", _text(_at(document, "project", "name"))))


def _by_layout(root: str, name: str) -> Places:
    choices = {"src": "src"}
    if name:
        choices = {f"src/{name}": "src", f"src/{name}.py": "src", name: name, f"{name}.py": f"{name}.py", **choices}
    found = [place for sign, place in choices.items() if os.path.exists(os.path.join(root, sign))]
    return Places(tuple(found[:1]), awaited=tuple(choices))


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
