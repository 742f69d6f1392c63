"""Built-in metadata of items, and %(Name) references to metadata."""

from __future__ import annotations

import os
import re

from .expressions import MAX_TEXT, UNKNOWN, escape, too_long, unescape
from .paths import full_path, split_extension, to_slashes, without_root
from .problems import UNSUPPORTED, EvaluationProblem
from .validation import BUILT_IN_METADATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .expressions import EvaluationScope

_NAME = r"[A-Za-z_][-0-9A-Za-z_]*"
_REFERENCE = rf"%\(\s*(?:({_NAME})\s*\.\s*)?({_NAME})\s*\)"

# By name in lower case: the name as written, and the escaped value.
Metadata = dict[str, tuple[str, str]]


class ItemEntry:
    """An item during the item pass: escaped, mutable, without the defaults of its type."""

    __slots__ = ("certain", "defined_in", "identity", "metadata", "recursive", "type_name")

    def __init__(self, identity: str, type_name: str, defined_in: str, certain: bool, recursive: str = "") -> None:
        self.identity = identity
        self.type_name = type_name
        self.defined_in = defined_in
        self.certain = certain
        self.recursive = recursive
        self.metadata: Metadata = {}


def is_built_in(name: str) -> bool:
    return name.lower() in BUILT_IN_METADATA


def built_in(entry: ItemEntry, name: str, scope: EvaluationScope) -> str:
    """The escaped value of a built-in metadata."""
    key = name.lower()
    if key == "identity":
        return entry.identity
    if key == "recursivedir":
        return escape(entry.recursive)
    if key.startswith("definingproject"):
        folder, file_name = os.path.split(entry.defined_in)
        stem, extension = split_extension(file_name)
        values = {"fullpath": entry.defined_in, "directory": folder + os.sep, "name": stem, "extension": extension}
        return escape(values[key.removeprefix("definingproject")])
    path = to_slashes(unescape(entry.identity))
    full = full_path(path, scope.folder)
    if key == "fullpath":
        return escape(full)
    if key in ("filename", "extension"):
        return escape(split_extension(os.path.basename(path))[key == "extension"])
    if key == "relativedir":
        return escape(path[: len(path) - len(os.path.basename(path))])
    if key in ("rootdir", "directory"):
        folder = os.path.dirname(full)
        below_root = without_root(folder)
        if key == "rootdir":
            return escape(full[: len(folder) - len(below_root)])
        return escape(below_root + os.sep if below_root else "")
    # The times of a file are not implemented.
    if not scope.three_valued:
        raise EvaluationProblem(UNSUPPORTED, f"the metadata {name} is not supported")
    return UNKNOWN


def replace_references(text: str, value: Callable[[str | None, str], str]) -> str:
    """Replaces each %(Name) or %(Type.Name) by value(type, name)."""
    room = MAX_TEXT

    def replacement(match: re.Match[str]) -> str:
        nonlocal room
        found = value(match.group(1), match.group(2))
        room -= len(found)
        if room < 0:
            raise too_long(found)
        return found

    return re.sub(_REFERENCE, replacement, text)
