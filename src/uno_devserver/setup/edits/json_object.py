"""One object of a JSON text, which can be changed where it stands; comments and trailing commas may be in it.

A change gives a new object. What belongs to a member, and goes with it: its comma, its line, and a comment behind it
on that line. A comment on lines of its own belongs to the user, and stays. A member that is added at the end and taken
out again leaves the text as it was, to the byte; only blanks that stood alone between the braces are gone.
"""

from __future__ import annotations

import json
import re

from ...system.jsonc import members, without_comments, without_trailing_commas
from .json_style import Style, gap_after, has_newline, in_lines, quoted, written
from .splices import spliced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .splices import Splice

_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)  # for between tokens, where no string can be
_SPACE = re.compile(r"[ \t\r\n]*")
_BLANKS = re.compile(r"[ \t]*")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_LINE_END = re.compile(r"[ \t]*[\r\n]")
_USUAL_COLONS = (": ", ":", " : ", " :")  # others are there to align something


class JsonObject:
    def __init__(self, text: str, style: Style, indent: str, *, strict: bool) -> None:
        """`text` is from brace to brace, `indent` that of the line it begins in; `strict`: it has nothing to blank."""
        self.text = text
        self._style = style
        self._indent = indent
        self._strict = strict
        self._bare = text if strict else without_comments(text)
        self._plain = text if strict else without_trailing_commas(self._bare)
        self.members = members(self._plain, 0)

    def edited(self, settings: Mapping[str, object], drop: Collection[str]) -> JsonObject:
        """With these values; a member that means the same already stays as it is written. Of twins the last counts."""
        result = self
        for name, value in settings.items():
            at = result._last(name)
            result = result.with_new(name, value) if at is None else result.with_value(at, value)
        for name in drop:
            while name not in settings and (at := result._last(name)) is not None:
                result = result.without(at)
        return result

    def value(self, at: int) -> object:
        return json.loads(self._plain[self.members[at].value : self.members[at].end])

    def inner(self, at: int) -> JsonObject:
        """The object that is the value there."""
        member = self.members[at]
        return JsonObject(
            self.text[member.value : member.end], self._style, self._indent_at(member.value), strict=self._strict
        )

    def with_value(self, at: int, value: object) -> JsonObject:
        old = self.value(at)
        if same(old, value):
            return self
        if isinstance(old, dict) and isinstance(value, dict):
            return self.with_text(at, self.inner(at).edited(value, [name for name in old if name not in value]).text)
        member = self.members[at]
        style, indent = self._local_style(), self._indent_at(member.key)
        in_its_lines = has_newline(self.text[member.value : member.end])
        if isinstance(old, list) and isinstance(value, list) and value and in_its_lines:
            items = [written(item, style, None) for item in value]
            return self.with_text(at, "[" + in_lines(items, style, indent) + "]")
        return self.with_text(at, written(value, style, indent if self._begins_line(at) else None))

    def with_text(self, at: int, text: str) -> JsonObject:
        """With this text for the value there."""
        return self._changed([(self.members[at].value, self.members[at].end, text)])

    def with_new(self, name: str, value: object, *, like_last: bool = False) -> JsonObject:
        """With one more member at the end; `like_last`: on one line where the last one is."""
        if not self.members:
            return self._with_first(name, value)
        number = len(self.members) - 1
        last, comma = self.members[number], self._comma(number)
        at, in_line_comment = self._behind_comments(last.end if comma is None else comma + 1, len(self.text) - 1)
        style, begins_line = self._local_style(), self._begins_line(number)
        lead, indent = style.gap, None
        if begins_line or in_line_comment:
            lines = self._indent_at(last.key) + ("" if begins_line else style.unit)
            lead = style.newline + lines
            indent = None if like_last and self._on_one_line(number) else lines
        new = lead + quoted(name) + style.colon + written(value, style, indent)
        if comma is not None:
            return self._changed([(at, at, new + ",")])
        if at == last.end:
            return self._changed([(at, at, "," + new)])
        return self._changed([(last.end, last.end, ","), (at, at, new)])

    def without(self, at: int) -> JsonObject:
        member, comma, is_last = self.members[at], self._comma(at), at == len(self.members) - 1
        lead = self._lead(at)
        comments = list(_COMMENT.finditer(self.text, lead, member.key))
        start = comments[-1].end() if comments else lead
        end = member.end if comma is None else comma + 1
        close = len(self.text) - 1
        if len(self.members) == 1 and start == 1 and not self.text[end:close].strip():
            return self._changed([(start, close, "")])

        begins_line = has_newline(self.text[start : member.key])
        tail, _ = self._behind_comments(end, close if is_last else self.members[at + 1].key)
        ends_line = _LINE_END.match(self.text, tail) is not None
        if begins_line and ends_line:
            end = tail
        elif not is_last and not ends_line:
            start, end = member.key, _behind(_BLANKS, self.text, end)
        elif comments and comments[-1][0].startswith("//"):  # what follows must not become part of the comment
            start = _behind(_NEWLINE, self.text, start)
        if not is_last or comma is not None or at == 0:
            return self._changed([(start, end, "")])

        before = self.members[at - 1].end
        if start == lead and not self.text[before : lead - 1].strip():
            return self._changed([(before, end, "")])
        return self._changed([(lead - 1, lead, ""), (start, end, "")])

    def _with_first(self, name: str, value: object) -> JsonObject:
        style, close = self._style, len(self.text) - 1
        inside = self.text[1:close]
        comments = list(_COMMENT.finditer(self.text, 1, close))
        lines = None if style.one_line or (comments and not has_newline(inside)) else self._indent + style.unit
        new = quoted(name) + style.colon + written(value, style, lines)
        if lines is not None:
            new = style.newline + lines + new
        if comments:
            at = comments[-1].end()
            return self._changed([(at, at, new if lines is not None else " " + new)])
        if lines is None:
            return self._changed([(1, close, style.pad + new + style.pad)])
        if has_newline(inside):
            return self._changed([(1, 1, new)])
        return self._changed([(1, close, new + style.newline + self._indent)])

    def _changed(self, splices: list[Splice]) -> JsonObject:
        return JsonObject(spliced(self.text, splices), self._style, self._indent, strict=self._strict)

    def _last(self, name: str) -> int | None:
        return next((at for at in reversed(range(len(self.members))) if self.members[at].name == name), None)

    def _lead(self, at: int) -> int:
        """Where that begins which stands before the member: behind a comma, or the brace."""
        comma = self._comma(at - 1) if at else None
        return 1 if comma is None else comma + 1

    def _comma(self, at: int) -> int | None:
        place = _behind(_SPACE, self._bare, self.members[at].end)
        return place if self._bare[place] == "," else None

    def _begins_line(self, at: int) -> bool:
        return has_newline(self.text[self._lead(at) : self.members[at].key])

    def _behind_comments(self, at: int, limit: int) -> tuple[int, bool]:
        """Behind the comments that begin on the same line; and whether the line ends with the last of them."""
        to_the_end = False
        for comment in _COMMENT.finditer(self.text, at, limit):
            if has_newline(self.text[at : comment.start()]):
                break
            at, to_the_end = comment.end(), comment[0].startswith("//")
        return at, to_the_end

    def _indent_at(self, at: int) -> str:
        """Of the line that has this place."""
        begin = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        return self.text[begin : _behind(_BLANKS, self.text, begin)] if begin else self._indent

    def _on_one_line(self, at: int) -> bool:
        """Whether the value there is an object with all of its members on one line."""
        value, member = self.value(at), self.members[at]
        return isinstance(value, dict) and value != {} and not has_newline(self.text[member.value : member.end])

    def _local_style(self) -> Style:
        """As the last member is written, which stands beside what will be."""
        number = len(self.members) - 1
        last = self.members[number]
        colon = self.text[last.key_end : last.value]
        if colon not in _USUAL_COLONS:
            colon = self._style.colon
        gap = self.text[self._lead(number) : last.key]
        if number == 0 or gap not in ("", " "):
            gap = gap_after(colon)
        padded = self.text.startswith('{ "', last.value) or self.text.startswith('{ "')
        return self._style.replace(colon=colon, gap=gap, pad=" " if padded else "")


def same(one: object, other: object) -> bool:
    """Whether two values mean the same as JSON, where true is not 1, and the order of names says nothing."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
