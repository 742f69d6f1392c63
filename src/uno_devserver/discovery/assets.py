"""What `project.assets.json` says, without parsing most of it.

The file of a project with 2,000 packages has 20 MB, nearly all of it lists of files that nobody asks for. NuGet writes
it indented by two spaces, and a JSON string cannot hold a line break, so a line break, n spaces and a quote are the
start of a member at depth n/2: what is wanted is found by searching, and only small pieces are parsed. A file that is
written in any other way is parsed whole, with the same result.
"""

from __future__ import annotations

import json
import re

from ..system.files import FileProblem, read_bytes
from ..system.jsonc import parse
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MANIFEST = "devserver-addin.json"
TOOLS = "tools/devserver/"
_SECTIONS = ("projectFileDependencyGroups", "packageFolders", "project", "logs")  # what follows `libraries`
_FRAMEWORK = rb'\n    "([^"\\\n]*)": \{'
_TARGET = rb'\n      "([^"\\/\n]+)/([^"\\\n]+)": \{\r?\n        "type": "package"'
_LIBRARY = rb'\n    "([^"\\/\n]+)/([^"\\\n]+)": \{\r?\n(?:      "sha512": [^\n]*\n)?      "type": "package"'

Package = tuple[str, str]  # name and version, spelt as the package spells them


class Assets(Value):
    project: str | None  # the project file that restore worked for
    package_folders: tuple[str, ...]
    packages: tuple[Package, ...]
    with_manifest: frozenset[Package]  # packages with a manifest at their root
    with_tools: frozenset[Package]  # packages with files for the dev server
    # target framework as in the file -> packages and their imported files, in MSBuild's order; None: not recorded
    build_files: Mapping[str, tuple[tuple[Package, tuple[str, ...]], ...]] | None


def read_assets(path: str) -> Assets:
    """Raises FileNotFoundError, FileProblem or JsonProblem."""
    data = read_bytes(path)
    if data.startswith((b'{\n  "version"', b'{\r\n  "version"')) and data[-16:].rstrip().endswith(b"\n}"):
        try:
            return _Searched(data).assets()
        except (ValueError, IndexError, RecursionError):
            pass  # laid out like NuGet's file but not like it inside: the careful way says what is wrong
    return _from_document(path, parse(data))


class _Searched:
    """A file in NuGet's layout."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        starts = {name: data.rfind(b'\n  "' + name.encode() + b'": ') for name in _SECTIONS}
        # `libraries` is big and comes after `targets`: search forwards for it, backwards for what follows it.
        starts["targets"] = data.find(b'\n  "targets": ', 0, 4096)
        starts["libraries"] = data.find(b'\n  "libraries": ', max(starts["targets"], 0))
        ordered = sorted(start for start in starts.values() if start >= 0)
        self._ranges = {
            name: (start, next((other for other in ordered if other > start), len(data)))
            for name, start in starts.items()
            if start >= 0
        }

    def assets(self) -> Assets:
        frameworks = list(self._frameworks())
        packages = [package for _, start, end in frameworks for package in self._packages(_TARGET, start, end)]
        if not packages:
            packages = self._packages(_LIBRARY, *self._ranges.get("libraries", (0, 0)))
        return Assets(
            self._project(),
            tuple(self._member("packageFolders")),
            tuple(dict.fromkeys(packages)),
            self._mentioning(f'\n        "{MANIFEST}"'),
            self._mentioning(f'\n        "{TOOLS}'),
            {name: self._build_files(start, end) for name, start, end in frameworks} or None,
        )

    def _frameworks(self) -> Iterator[tuple[str, int, int]]:
        """The members of `targets`: name, and where each starts and ends."""
        begin, end = self._ranges.get("targets", (0, 0))
        matches = list(re.compile(_FRAMEWORK).finditer(self.data, begin, end))
        for match, following in zip(matches, [*matches[1:], None], strict=True):
            yield match[1].decode(), match.end(), following.start() if following else end

    def _packages(self, pattern: bytes, start: int, end: int) -> list[Package]:
        found = re.compile(pattern).findall(self.data, start, end)
        return [(name.decode(), version.decode()) for name, version in found]

    def _build_files(self, start: int, end: int) -> tuple[tuple[Package, tuple[str, ...]], ...]:
        """The entries of a framework that have build files; all others are not even looked at."""
        entries = {}
        for header, at in self._occurrences(b'\n        "build": ', b'\n      "', start, end):
            stop = self.data.find(b'\n      "', at, end)
            entry = self.data[header : stop if stop >= 0 else end].decode()
            entries[_package(entry[: entry.index('": {')])] = (
                _object_after(entry, '\n        "build": '),
                _object_after(entry, '\n        "dependencies": '),
            )
        return _in_import_order(entries)

    def _mentioning(self, text: str) -> frozenset[Package]:
        """The packages in `libraries` whose list of files holds a line that begins so."""
        start, end = self._ranges.get("libraries", (0, 0))
        headers = [header for header, _ in self._occurrences(text.encode(), b'\n    "', start, end)]
        return frozenset(_package(self.data[h : self.data.index(b'": {', h)].decode()) for h in headers)

    def _occurrences(self, needle: bytes, mark: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where `needle` stands, at most once per member, with the start of that member's key."""
        at = self.data.find(needle, start, end)
        while at >= 0:
            yield self.data.rfind(mark, start, at) + len(mark), at
            following = self.data.find(mark, at, end)
            at = self.data.find(needle, following, end) if following >= 0 else -1

    def _project(self) -> str | None:
        start, end = self._ranges.get("project", (0, 0))
        at = self.data.find(b'\n      "projectPath": ', start, end)
        if at < 0:
            return None
        value = json.loads(self.data[at + 22 : self.data.index(b"\n", at + 1)].rstrip().rstrip(b","))
        return value if isinstance(value, str) else None

    def _member(self, name: str) -> dict[str, object]:
        start, end = self._ranges.get(name, (0, 0))
        return _object_after(self.data[start:end].decode(), f'\n  "{name}": ')


def _object_after(text: str, mark: str) -> dict[str, object]:
    at = text.find(mark)
    return _dict(json.JSONDecoder().raw_decode(text, at + len(mark))[0]) if at >= 0 else {}


def _from_document(path: str, document: object) -> Assets:
    if not isinstance(document, dict):
        raise FileProblem(path, "it holds no JSON object")
    project = _dict(_dict(document.get("project")).get("restore")).get("projectPath")
    libraries = {
        _package(key): entry
        for key, value in _dict(document.get("libraries")).items()
        if "/" in key and (entry := _dict(value)).get("type", "package") == "package"
    }
    build_files = {
        framework: _in_import_order(
            {
                _package(key): (_dict(_dict(entry).get("build")), _dict(_dict(entry).get("dependencies")))
                for key, entry in _dict(block).items()
                if "/" in key
            }
        )
        for framework, block in _dict(document.get("targets")).items()
    }
    return Assets(
        project if isinstance(project, str) else None,
        tuple(_dict(document.get("packageFolders"))),
        tuple(package for package in libraries if package[0].strip() and package[1].strip()),
        frozenset(package for package, entry in libraries.items() if MANIFEST in _files(entry)),
        frozenset(package for package, entry in libraries.items() if any(f.startswith(TOOLS) for f in _files(entry))),
        build_files or None,
    )


def _files(entry: dict[str, object]) -> list[str]:
    files = entry.get("files")
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _package(key: str) -> Package:
    name, _, version = key.partition("/")
    return name, version


def _in_import_order(
    entries: dict[Package, tuple[dict[str, object], dict[str, object]]],
) -> tuple[tuple[Package, tuple[str, ...]], ...]:
    """MSBuild imports dependencies before their dependents, and otherwise ids in descending order."""
    by_name = {package[0].lower(): package for package in entries}
    ordered: dict[str, None] = {}
    for root in sorted(by_name, reverse=True):
        pending, seen = [(root, False)], set()
        while pending:
            name, complete = pending.pop()
            if complete:
                ordered.setdefault(name)
            elif name in by_name and name not in seen and name not in ordered:
                seen.add(name)
                pending.append((name, True))
                pending += [(other.lower(), False) for other in sorted(entries[by_name[name]][1])]
    files = ((by_name[name], tuple(f for f in entries[by_name[name]][0] if not f.endswith("_._"))) for name in ordered)
    return tuple((package, listed) for package, listed in files if listed)


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
