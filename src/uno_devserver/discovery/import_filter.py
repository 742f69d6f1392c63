"""Selects those imported files of a project that can affect an item, so that the others need not be evaluated.

A project imports hundreds of files from its packages, and evaluating them would take longer than everything else.
A file is relevant if it contains an element with the item's name, if it defines a property or item that a relevant file
refers to, or if it imports a relevant file or one whose path only an evaluation can tell. This is decided on the bytes;
in doubt a file is kept, so the result of the evaluation stays the same.
"""

from __future__ import annotations

import os
import re

from ..msbuild.validation import RESERVED_PROPERTIES
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
        self._reached: dict[str, tuple[str, ...]] = {}  # files that import others, with these
        self._closures: dict[str, tuple[bytes, bool]] = {}

    def matters(self, path: str) -> bool:
        """Whether the file, or one that it imports, can contain the item."""
        text, complete = self._closure(path)
        return not complete or self._item.search(text) is not None

    def mentions(self, path: str) -> bool:
        """Whether the file, or one that it imports by a known path, contains an element with the item's name."""
        return self._item.search(self._closure(path)[0]) is not None

    def mentioning(self, path: str) -> list[str]:
        """Those that contain such an element, of the file and all that it imports by a known path."""
        self._closure(path)
        return [file for file in self._reached.get(path, (path,)) if self._item.search(self._text(file))]

    def can_read(self, path: str) -> bool:
        """Whether the file can be read and is not empty."""
        return bool(self._text(path))

    def choose(self, files: Sequence[str], also: Iterable[str] = ()) -> list[str]:
        """The relevant files, in their order; `also` names files that are evaluated in any case."""
        chosen = set(filter(self.matters, files))
        pending = [*chosen, *also] if chosen or any(map(self.matters, also)) else []
        names = {name.encode() for name in RESERVED_PROPERTIES}  # which no file can define
        while pending:
            referred = {name.lower() for path in pending for name in re.findall(_REFERENCE, self._closure(path)[0])}
            pending = []
            if new := referred - names:
                names |= new
                defines = re.compile(rb"<(?:" + b"|".join(map(re.escape, sorted(new))) + rb")[\s/>]", re.IGNORECASE)
                pending = [path for path in files if path not in chosen and defines.search(self._closure(path)[0])]
                chosen.update(pending)
        return [path for path in files if path in chosen]

    def _closure(self, path: str) -> tuple[bytes, bool]:
        """The content of the file and of all that it imports, and whether these are all (False: in doubt)."""
        known = self._closures.get(path)
        if known is None:
            text = self._text(path)
            known = self._closures[path] = self._follow(path) if b"<Import" in text else (text, True)
        return known

    def _follow(self, path: str) -> tuple[bytes, bool]:
        texts: dict[str, bytes] = {}
        pending, complete = [path], True
        while pending:
            current = pending.pop()
            if current in texts:
                continue
            texts[current] = self._text(current)
            for target in _imports(texts[current]):
                target = re.sub(_THIS_FILE, _this_file(current), target)
                if re.search(_UNTOLD, target):
                    complete = False
                else:
                    native = target.replace("\\", os.sep)
                    pending.append(os.path.normpath(os.path.join(os.path.dirname(current), native)))
        self._reached[path] = tuple(texts)
        return b"\n".join(texts.values()), complete

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
