"""Reads `project.assets.json` without parsing most of it.

The file of a project with 2,000 packages has 20 MB, mostly lists of files that are not needed. NuGet indents it by two
spaces, and a JSON string cannot contain a line break. So a line break, n spaces and a quote always start a member at
depth n/2: the needed members are found by searching, and only small pieces are parsed. `libraries`, the largest member,
is read in blocks, because new memory for all of it would take longer than the search. A file with another layout is
parsed whole, with the same result.
"""

from __future__ import annotations

import json
import os
import re

from ..system.files import MAX_BYTES, FileProblem, decode, open_regular, read_bytes
from ..system.jsonc import parse_strict
from ..system.values import Value
from .manifest import MANIFEST_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

PART_BYTES = 128 * 1024  # read at once before and after `libraries`
BLOCK_BYTES = 512 * 1024  # of `libraries`; fits into the processor's cache
ENTRY = b'\n      "'  # begins a package in one of the `targets`
TOOLS = "tools/devserver/"
_SECTIONS = ("projectFileDependencyGroups", "packageFolders", "project", "logs")  # the sections after `libraries`
_FRAMEWORK = rb'\n    "([^"\\\n]*)": \{'
_TARGET = rb'\n      "([^"\\/\n]+)/([^"\\\n]+)": \{\r?\n        "type": "package"'


Package = tuple[str, str]  # name and version, in the package's own spelling
BuildFiles = tuple[tuple[Package, tuple[str, ...]], ...]  # packages and their imported files, in MSBuild's order


class Assets(Value):
    project: str | None  # the project file that was restored
    package_folders: tuple[str, ...]
    packages: tuple[Package, ...]
    with_manifest: tuple[Package, ...]  # packages with a manifest at their root
    with_tools: tuple[Package, ...]  # packages with files for the dev server
    build_files: Mapping[str, BuildFiles] | None  # by target framework as written in the file; None if not recorded


def read_assets(path: str) -> Assets:
    """Read an assets file; raises FileNotFoundError, FileProblem or JsonProblem."""
    with open_regular(path) as stream:
        try:
            return _Searched(stream).assets()
        except (ValueError, IndexError, RecursionError, OSError):
            pass  # another layout, or unexpected content; parsing the whole file shows what is wrong
    # NuGet writes no comments, and searching for them takes 7 s in a file of 100 MB.
    return _from_document(path, parse_strict(decode(read_bytes(path))))


class _Searched:
    """A file in NuGet's layout; raises ValueError if it has another one."""

    def __init__(self, stream: BinaryIO) -> None:
        before, after, libraries = _around_libraries(stream)
        if not after[-16:].rstrip().endswith(b"\n}"):
            raise ValueError("this is not the layout of NuGet")
        self.with_manifest, self.with_tools = _mentioning(
            stream, *libraries, f'\n        "{MANIFEST_NAME}"', f'\n        "{TOOLS}'
        )
        self.data = data = before + after
        starts = {name: data.rfind(b'\n  "' + name.encode() + b'": ', len(before)) for name in _SECTIONS}
        if min(starts["packageFolders"], starts["project"]) < 0:
            raise ValueError("NuGet writes both, after the libraries")
        starts["targets"] = data.find(b'\n  "targets": ', 0, 4096)
        starts["libraries"] = len(before)
        ordered = sorted(start for start in starts.values() if start >= 0)
        self._ranges = {
            name: (start, next((other for other in ordered if other > start), len(data)))
            for name, start in starts.items()
            if start >= 0
        }

    def assets(self) -> Assets:
        frameworks = list(self._frameworks())
        packages = [package for _, start, end in frameworks for package in self._packages(start, end)]
        if not packages:
            raise ValueError("nothing was restored, or not by NuGet: such a file is small")
        return Assets(
            self._project(),
            tuple(self._member("packageFolders")),
            tuple(dict.fromkeys(packages)),
            self.with_manifest,
            self.with_tools,
            {name: self._build_files(start, end) for name, start, end in frameworks},
        )

    def _frameworks(self) -> Iterator[tuple[str, int, int]]:
        """Yields the name, start and end of each member of `targets`."""
        begin, end = self._ranges.get("targets", (0, 0))
        matches = list(re.compile(_FRAMEWORK).finditer(self.data, begin, end))
        for match, following in zip(matches, [*matches[1:], None], strict=True):
            yield match[1].decode(), match.end(), following.start() if following else end

    def _packages(self, start: int, end: int) -> list[Package]:
        found = re.compile(_TARGET).findall(self.data, start, end)
        return [(name.decode(), version.decode()) for name, version in found]

    def _build_files(self, start: int, end: int) -> BuildFiles:
        """The entries of a framework that have build files, in import order."""
        files = {}
        for key, at in _members(self.data, b'\n        "build": ', ENTRY, start, end):
            text = self.data[at : self.data.index(b"\n        }", at, end) + 10].decode()
            files[_package(key)] = _listed(_object_after(text, '\n        "build": '))
        dependencies: dict[str, list[str]] = {}
        if len(files) < 2:  # nothing has to be sorted
            return _in_import_order(files, dependencies)
        names = re.compile(r'\n          "([^"\\\n]+)"')
        for key, at in _members(self.data, b'\n        "dependencies": {', ENTRY, start, end):
            text = self.data[at : self.data.index(b"\n        }", at, end)].decode()
            dependencies[_package(key)[0].lower()] = names.findall(text.lower())
        return _in_import_order(files, dependencies)

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


def _around_libraries(stream: BinaryIO) -> tuple[bytes, bytes, tuple[int, int]]:
    """What is before and after `libraries`, and where it begins and ends."""
    size = os.fstat(stream.fileno()).st_size
    if size > MAX_BYTES:
        raise ValueError("it is too large")  # as reading it whole reports
    before, start = b"", -1
    # Each part is as large as all before it, so that a large file is not copied again and again.
    while start < 0 and (part := stream.read(max(PART_BYTES, len(before)))):
        searched = max(0, len(before) - 16)
        before += part
        if not before.startswith((b'{\n  "version"', b'{\r\n  "version"')):
            raise ValueError("this is not the layout of NuGet")
        start = before.find(b'\n  "libraries": ', searched)
    if start < 0:
        raise ValueError("there are no libraries")
    length = PART_BYTES
    while True:
        begin = max(start, size - length)
        stream.seek(begin)
        after = stream.read(size - begin)
        # What follows `libraries`; searched backwards, because the last one counts.
        found = min(
            (at for name in _SECTIONS if (at := after.rfind(b'\n  "' + name.encode() + b'": ')) >= 0), default=-1
        )
        if begin == start or after.rfind(b'\n  "' + _SECTIONS[0].encode() + b'": ') >= 0:
            end = begin + found if found >= 0 else size
            return before[:start], after[found:] if found >= 0 else after[-16:], (start, end)
        length *= 4


def _mentioning(stream: BinaryIO, start: int, end: int, *texts: str) -> tuple[tuple[Package, ...], ...]:
    """For each text, the packages in `libraries` with a file whose line begins with it, in the file's order."""
    found: tuple[dict[str, None], ...] = tuple({} for _ in texts)
    buffer, kept = bytearray(min(BLOCK_BYTES, end - start)), 0
    stream.seek(start)
    while start < end:
        with memoryview(buffer) as view:
            count = stream.readinto(view[kept : kept + end - start])  # type: ignore[attr-defined]
        if not count:
            raise ValueError("the file became shorter")
        start += count
        filled = kept + count
        for text, keys in zip(texts, found, strict=True):
            keys.update((key, None) for key, _ in _members(buffer, text.encode(), b'\n    "', 0, filled))
        # The last package of the block goes on in the next one.
        last = max(0, buffer.rfind(b'\n    "', 0, filled))
        kept = filled - last
        buffer[:kept] = buffer[last:filled]
        if kept * 2 > len(buffer):
            buffer.extend(bytes(len(buffer)))
    return tuple(tuple(map(_package, keys)) for keys in found)


def _members(data: bytes | bytearray, needle: bytes, mark: bytes, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yields the keys of the members that contain `needle`, with its position; `mark` begins a member."""
    at = data.find(needle, start, end)
    while at >= 0:
        header = data.rfind(mark, start, at) + len(mark)
        yield data[header : data.index(b'": {', header)].decode(), at
        following = data.find(mark, at, end)
        at = data.find(needle, following, end) if following >= 0 else -1


def _object_after(text: str, mark: str) -> dict[str, object]:
    at = text.find(mark)
    return _dict(json.JSONDecoder().raw_decode(text, at + len(mark))[0]) if at >= 0 else {}


def _from_document(path: str, document: object) -> Assets:
    if not isinstance(document, dict):
        raise FileProblem(path, "it does not contain a JSON object")
    project = _dict(_dict(document.get("project")).get("restore")).get("projectPath")
    libraries = {
        _package(key): entry
        for key, value in _dict(document.get("libraries")).items()
        if "/" in key and (entry := _dict(value)).get("type", "package") == "package"
    }
    targets = {framework: _dict(block) for framework, block in _dict(document.get("targets")).items()}
    listed = [_package(key) for block in targets.values() for key, entry in block.items() if _is_package(key, entry)]
    return Assets(
        project if isinstance(project, str) else None,
        tuple(_dict(document.get("packageFolders"))),
        tuple(package for package in dict.fromkeys(listed or libraries) if package[0].strip() and package[1].strip()),
        tuple(package for package, entry in libraries.items() if MANIFEST_NAME in _files(entry)),
        tuple(package for package, entry in libraries.items() if any(f.startswith(TOOLS) for f in _files(entry))),
        {framework: _document_build_files(block) for framework, block in targets.items()} or None,
    )


def _is_package(key: str, entry: object) -> bool:
    return "/" in key and _dict(entry).get("type") == "package"


def _document_build_files(block: dict[str, object]) -> BuildFiles:
    entries = {_package(key): _dict(entry) for key, entry in block.items() if "/" in key}
    files = {package: _listed(_dict(entry.get("build"))) for package, entry in entries.items() if "build" in entry}
    dependencies = {
        package[0].lower(): [name.lower() for name in _dict(entry.get("dependencies"))]
        for package, entry in entries.items()
    }
    return _in_import_order(files, dependencies)


def _files(entry: dict[str, object]) -> list[str]:
    files = entry.get("files")
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _package(key: str) -> Package:
    name, _, version = key.partition("/")
    return name, version


def _listed(build: dict[str, object]) -> tuple[str, ...]:
    """The build files, without NuGet's placeholder `_._`, which means that there are none for this framework."""
    return tuple(file for file in build if not file.endswith("_._"))


def _in_import_order(files: dict[Package, tuple[str, ...]], dependencies: dict[str, list[str]]) -> BuildFiles:
    """Sorts packages as MSBuild imports them: dependencies before dependents, otherwise ids in descending order.

    Packages and projects without build files count, because a package may depend on another one through them.
    """
    by_name = {package[0].lower(): package for package in files}
    complete: dict[str, None] = {}
    seen: set[str] = set()
    pending = [(name, False) for name in sorted({*by_name, *dependencies})]
    while pending:
        name, done = pending.pop()
        if done:
            complete[name] = None
        elif name not in seen:
            seen.add(name)
            pending.append((name, True))
            pending += [(other, False) for other in sorted(dependencies.get(name, ())) if other not in seen]
    ordered = (by_name[name] for name in complete if name in by_name)
    return tuple((package, files[package]) for package in ordered if files[package])


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
