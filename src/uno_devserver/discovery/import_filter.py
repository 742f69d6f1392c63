"""Selects those imported files of a project that can affect an item, so that the others need not be evaluated.

A project imports hundreds of files from its packages, and evaluating them would take longer than everything else.
A file is relevant if it contains an element with the item's name, if it defines a property or item that a relevant file
refers to, or if it imports a relevant file or one whose path only an evaluation can tell. This is decided on the bytes;
in doubt a file is kept, so the result of the evaluation stays the same.
"""

from __future__ import annotations

import os
import re

from ..system.files import FileProblem, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MAX_BYTES = 16 * 1024 * 1024  # the largest .targets file in public packages is smaller than 1 MB
# Compiled on first use: few workspaces need all of these patterns.
_REFERENCE = rb"[$@]\(\s*([A-Za-z_]\w*(?:-(?!>|&gt;)\w*)*)"  # the dash in @(Item->...) belongs to the arrow
# Attribute values may contain '>' but not '<', so the search for a missing quote stops at the next '<'.
_IMPORT = rb"<Import\s((?:[^<>\"']+|\"[^\"<]*\"|'[^'<]*')*)"
# Matches only from the start of a name and without backtracking, so text without '=' takes linear time.
_ATTRIBUTE = rb"(?<![\w.:-])([\w.:-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)')"
_UNTOLD = r"[$@]\(|[*?;&%]"  # references, wildcards, lists, escapes: only an evaluation can tell the path
_THIS_FILE = r"(?i)\$\(MSBuildThisFile(Directory|Name|Extension|)\)"


class ImportFilter:
    """Reads each file once, for all projects of a workspace."""

    def __init__(self, item: str) -> None:
        self._item = re.compile(rb"<" + item.encode() + rb"[\s/>]", re.IGNORECASE)
        self._texts: dict[str, bytes] = {}
        # A file with its imports, and whether these are complete (False: only an evaluation can tell the rest).
        self._closures: dict[str, tuple[tuple[str, ...], bool]] = {}

    def matters(self, path: str) -> bool:
        """Whether the file, or one that it imports, can contain the item."""
        return not self._closure(path)[1] or self.mentions(path)

    def mentions(self, path: str) -> bool:
        """Whether the file, or one that it imports by a known path, contains an element with the item's name."""
        return self._has(path, self._item)

    def can_read(self, path: str) -> bool:
        """Whether the file can be read and is not empty."""
        return bool(self._text(path))

    def choose(self, files: Sequence[str], also: Iterable[str] = ()) -> list[str]:
        """The relevant files, in their order; `also` names files that are evaluated in any case."""
        chosen = {path for path in files if self.matters(path)}
        pending = [*chosen, *also] if chosen or any(map(self.matters, also)) else []
        names: set[bytes] = set()
        while pending:
            referred = {
                name.lower()
                for path in pending
                for file in self._closure(path)[0]
                for name in re.findall(_REFERENCE, self._text(file))
            }
            pending = []
            if new := referred - names:
                names |= new
                defines = re.compile(rb"<(?:" + b"|".join(map(re.escape, sorted(new))) + rb")[\s/>]", re.IGNORECASE)
                pending = [path for path in files if path not in chosen and self._has(path, defines)]
                chosen.update(pending)
        return [path for path in files if path in chosen]

    def _has(self, path: str, pattern: re.Pattern[bytes]) -> bool:
        return any(pattern.search(self._text(file)) for file in self._closure(path)[0])

    def _closure(self, path: str) -> tuple[tuple[str, ...], bool]:
        if path not in self._closures:
            alone = b"<Import" not in self._text(path)
            self._closures[path] = ((path,), True) if alone else self._follow(path)
        return self._closures[path]

    def _follow(self, path: str) -> tuple[tuple[str, ...], bool]:
        files: dict[str, None] = {}
        pending, complete = [path], True
        while pending:
            current = pending.pop()
            if current in files:
                continue
            files[current] = None
            for target in _imports(self._text(current)):
                target = re.sub(_THIS_FILE, _this_file(current), target)
                if re.search(_UNTOLD, target):
                    complete = False
                else:
                    native = target.replace("\\", os.sep)
                    pending.append(os.path.normpath(os.path.join(os.path.dirname(current), native)))
        return tuple(files), complete

    def _text(self, path: str) -> bytes:
        """The content as UTF-8, or nothing if the file cannot be read; the evaluator reports why."""
        if path not in self._texts:
            try:
                data = read_bytes(path, MAX_BYTES)
            except (FileNotFoundError, FileProblem):
                data = b""
            if data.startswith((b"\xff\xfe", b"\xfe\xff")):
                data = data.decode("utf-16", "replace").encode("utf-8", "replace")
            self._texts[path] = data
        return self._texts[path]


def _imports(text: bytes) -> Iterator[str]:
    """The paths in the Import elements of a file, as written."""
    for attributes in re.findall(_IMPORT, text):
        for name, in_double, in_single in re.findall(_ATTRIBUTE, attributes):
            if name == b"Project":
                yield (in_double or in_single).decode("utf-8", "replace")


def _this_file(path: str) -> Callable[[re.Match[str]], str]:
    stem, extension = os.path.splitext(os.path.basename(path))
    parts = {
        "directory": os.path.dirname(path) + os.sep,
        "name": stem,
        "extension": extension,
        "": stem + extension,
    }
    return lambda match: parts[match[1].lower()]
