"""The interface of an editable configuration file: `Document`, with one implementation per format.

An edit changes one entry and leaves all other bytes as they are. Every implementation parses its result again and
compares it with the old text; an edit that would change the meaning of anything else is refused.
"""

from __future__ import annotations

from ...system.values import Value
from ..profiles import Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Protocol

    class Document(Protocol):
        """The servers in a decoded text, which has no byte order mark and keeps its line endings."""

        @property
        def entries(self) -> tuple[ServerEntry, ...]:
            """The entries in the order of the file, including those that have the same name."""

        @property
        def remarks(self) -> tuple[Remark, ...]:
            """What a strict parser rejects: the first comment, trailing comma or duplicate key of YAML, if any."""

        def spans(self, at: int) -> tuple[tuple[int, int], ...]:
            """The parts of the text, as start and end, that are the entry at that index; may raise EditProblem."""

        def put(self, at: int | None, name: str, settings: Mapping[str, object], drop: Collection[str] = ()) -> str:
            """Return the text with `settings` in the entry at that index, or in a new last entry of that name.

            Other settings of the entry stay, except those named by `drop`. Values are those of a JSON parser.
            """

        def remove(self, indexes: Collection[int]) -> str:
            """Return the text without these entries; the object around them stays, even if it is empty."""


NO_ROOT_OBJECT = "does not contain a JSON object at root level"  # reasons of an EditProblem
UNSAFE = "is written in a way that cannot be changed safely"


class ServerEntry(Value):
    name: str
    settings: Mapping[str, object] | None  # None if the value is not an object


class Remark(Value):
    what: str  # a noun with its article, such as "a comment"
    line: int


class EditProblem(Exception):
    """The text cannot be read or changed; the message is for users. `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        where = f" (line {line}, column {column})" if line is not None else ""
        super().__init__(f"{reason}{where}")
        self.reason = reason


class WrongKind(EditProblem):
    """The text is valid, but the value that should contain the servers has another type."""


def open_document(text: str, form: Format, root: tuple[str, ...], name_key: str | None = None) -> Document:
    """Parse a text; raises EditProblem. Entries can be added to a blank text, or to one with comments only."""
    if form is Format.TOML:
        from .toml_document import TomlDocument

        return TomlDocument(text, root)
    if form is Format.YAML:
        from .yaml_document import YamlDocument

        return YamlDocument(text, root, name_key)
    from .json_document import JsonDocument

    return JsonDocument(text, root)


Splice = tuple[int, int, str]  # start and end of the text to replace, and the replacement


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with these replacements; they refer to the old text, in any order, and do not overlap."""
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(splices):
        pieces += text[done:start], new
        done = end
    return "".join(pieces) + text[done:]


def newline_of(text: str) -> str:
    """The line ending of the first line; a line feed if there is only one line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def same_value(one: object, other: object) -> bool:
    """Whether two parsed values are equal, where true is not 1, 1 is not 1.0, and nan equals nan."""
    pairs = [(one, other)]
    while pairs:  # not by recursion: a file may be nested as deeply as its parser allows
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs += ((value, other[key]) for key, value in one.items())
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other and (one == one or other == other):
            return False
    return True
