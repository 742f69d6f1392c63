"""A configuration file that was understood, and can be changed without touching anything but an entry.

Three formats, one seam. Whoever changes a text here checks the result: it is read again, and must mean what the old
one meant but for that entry. Where that cannot be had, the change is refused and the file stays.
"""

from __future__ import annotations

from ...system.values import Value
from ..profiles import Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Protocol

    class Document(Protocol):
        """The servers in a text. Texts are decoded, without a byte order mark, and keep their line endings."""

        @property
        def entries(self) -> tuple[ServerEntry, ...]:
            """In the order of the file; also those that have the same name."""

        @property
        def remarks(self) -> tuple[Remark, ...]:
            """What a strict reader of JSON would not take: the first comment, the first trailing comma."""

        def put(self, at: int | None, name: str, settings: Mapping[str, object], drop: Collection[str] = ()) -> str:
            """The text with `settings` in the entry at that index, or in a new one of that name behind the others.

            Only these settings change: others of the entry stay, except those named by `drop`. Values are plain, as a
            parser of JSON gives them.
            """

        def remove(self, indexes: Collection[int]) -> str:
            """The text without these entries; the object that held them stays, also when it is empty."""

    from collections.abc import Iterable


NO_ROOT_OBJECT = "does not contain a JSON object at root level"  # an EditProblem's reason, without a place

UNSAFE = "is written in a way that cannot be changed safely"  # likewise


class ServerEntry(Value):
    name: str
    settings: Mapping[str, object] | None  # None: something else stands where an object should


class Remark(Value):
    what: str  # "a comment"
    line: int


class EditProblem(Exception):
    """The text cannot be read, or not be changed; says why, for a user. `line` and `column` count from 1, if known."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        where = f" (line {line}, column {column})" if line is not None else ""
        super().__init__(f"{reason}{where}")
        self.reason = reason
        self.line = line
        self.column = column


class WrongKind(EditProblem):
    """The text is right, but something else stands where the servers should be."""


def open_document(text: str, form: Format, root: tuple[str, ...], name_key: str | None = None) -> Document:
    """Read a text; raises EditProblem. A blank text, or one of comments only, holds no entries and can get some."""
    if form is Format.TOML:
        from .toml_document import TomlDocument

        return TomlDocument(text, root)
    if form is Format.YAML:
        from .yaml_document import YamlDocument

        return YamlDocument(text, root, name_key)
    from .json_document import JsonDocument

    return JsonDocument(text, root)


Splice = tuple[int, int, str]  # what stands from here to there becomes this


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text with these changes, whose places are those in the text as it is, in any order, and do not overlap."""
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(splices):
        pieces += text[done:start], new
        done = end
    return "".join(pieces) + text[done:]


def newline_of(text: str) -> str:
    """How lines end there: as the first one does."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
