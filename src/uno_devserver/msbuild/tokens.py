"""The words of a condition, cut exactly where MSBuild cuts them.

Its quirks are part of the language: quotes do not nest, a bare word cannot hold a dot, the end of $(...) is found by
counting parentheses whatever stands in quotes, and 'and' needs no blank before or behind it.
"""

from __future__ import annotations

import re

from .problems import EvaluationProblem
from .structure import BUILT_IN_METADATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# What a condition may refer to, beside properties.
ITEMS = 1
CUSTOM_METADATA = 2
BUILT_IN = 4

# No metadata has a longer name; the bound keeps a hostile condition from being copied again and again.
MAX_NAME = 200

_BLANKS = re.compile(r"\s*").match
_PLAIN_QUOTED = re.compile(r"'([^'@%]*)'").match
_WORD = re.compile(r"[^\W\d]\w*").match
_NUMBER = r"(?s)0[xX](?=.)[0-9A-Fa-f]*|[-+]?[\d.]*"
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "!", "(", ")", ",")

# kind, text: the kinds are 'text' (quoted, or a $() @() %() reference), 'number', 'call', 'and', 'or', 'end' and the
# operators themselves.
Token = tuple[str, str]
END: Token = ("end", "")


def tokens_of(condition: str, allowed: int) -> Iterator[Token]:
    """The words of a condition one by one, END last and for ever; raises EvaluationProblem at a bad one."""
    return _Scanner(condition, allowed).tokens()


class _Scanner:
    def __init__(self, condition: str, allowed: int) -> None:
        self.condition = condition
        self.allowed = allowed

    def tokens(self) -> Iterator[Token]:
        condition = self.condition
        position = _end(_BLANKS(condition, 0))
        while position < len(condition):
            token, position = self._token(position)
            yield token
            position = _end(_BLANKS(condition, position))
        while True:
            yield END

    def _token(self, start: int) -> tuple[Token, int]:
        condition = self.condition
        first = condition[start]
        if first == "'":
            return self._quoted(start)
        if first == "$":
            end = self._reference_end(start, "MSB4110", "MSB4109", "MSB4259")
            return ("text", condition[start:end]), end
        if first == "%":
            end = self._reference_end(start, "MSB4090", "MSB4090", "MSB4090")
            self._check_metadata(condition[start + 2 : end - 1])
            return ("text", condition[start:end]), end
        if first == "@":
            if not self.allowed & ITEMS and condition.startswith("@(", start):
                raise self._problem("MSB4099", start, "an item list is not allowed")
            end = self._item_list_end(start)
            return ("text", condition[start:end]), end
        for operator in _OPERATORS:
            if condition.startswith(operator, start):
                return (operator, operator), start + len(operator)
        if first == "=":
            raise self._problem("MSB4105", start, "'=' stands alone; '==' compares")
        return self._word_or_number(start)

    def _word_or_number(self, start: int) -> tuple[Token, int]:
        condition = self.condition
        if condition[start] in "+-." or condition[start].isdecimal():
            end = _end(re.compile(_NUMBER).match(condition, start))
            return ("number", condition[start:end]), end
        word = _WORD(condition, start)
        if not word:
            raise self._problem("MSB4090", start, f"the character {condition[start]!r} is not expected")
        text = word.group()
        if text.lower() in ("and", "or"):
            return (text.lower(), text), word.end()
        opened = condition.startswith("(", _end(_BLANKS(condition, word.end())))
        return ("call" if opened else "text", text), word.end()

    def _quoted(self, start: int) -> tuple[Token, int]:
        if plain := _PLAIN_QUOTED(self.condition, start):
            return ("text", plain.group(1)), plain.end()
        condition = self.condition
        position = start + 1
        while position < len(condition) and condition[position] != "'":
            if condition.startswith("%(", position):
                self._check_metadata(condition[position + 2 : position + MAX_NAME].partition(")")[0])
            elif condition.startswith("@(", position):
                if not self.allowed & ITEMS:
                    raise self._problem("MSB4099", position, "an item list is not allowed")
                position = self._item_list_end(position)
                continue
            position += 1
        if position >= len(condition):
            raise self._problem("MSB4101", start, "a quote is not closed")
        return ("text", condition[start + 1 : position]), position + 1

    def _reference_end(self, start: int, unopened: str, unclosed: str, blank: str) -> int:
        """The position behind $(...) or %(...); the three codes are for what can be wrong with it."""
        condition = self.condition
        if start + 1 < len(condition) and condition[start + 1] != "(":
            raise self._problem(unopened, start, "'(' is expected next")
        # Per open reference: its depth, whether it has blanks, and whether it has what no name has.
        references = [[0, False, False]]
        depth = 0
        for position in range(start + 1, len(condition)):
            character = condition[position]
            if character == "(":
                if condition[position - 1] == "$" and position - 1 > start:
                    references.append([depth, False, False])
                depth += 1
            elif character == ")":
                depth -= 1
                if depth == references[-1][0]:
                    _, has_blank, is_more_than_name = references.pop()
                    if has_blank and not is_more_than_name:
                        raise self._problem(blank, position, "a blank stands in a name")
                    if not references:
                        return position + 1
            elif character.isspace():
                references[-1][1] = True
            elif not (character.isalnum() or character in "_-"):
                references[-1][2] = True
        raise self._problem(unclosed, start, "a parenthesis is not closed")

    def _item_list_end(self, start: int) -> int:
        condition = self.condition
        if start + 1 < len(condition) and condition[start + 1] != "(":
            raise self._problem("MSB4107", start, "'(' is expected after '@'")
        depth = 0
        in_quotes = False
        for position in range(start + 2, len(condition)):
            character = condition[position]
            if character == "'":
                in_quotes = not in_quotes
            elif character == "(" and not in_quotes:
                depth += 1
            elif character == ")" and not in_quotes:
                if depth == 0:
                    return position + 1
                depth -= 1
        code = "MSB4108" if in_quotes else "MSB4106"
        raise self._problem(code, start, "an item list is not closed")

    def _check_metadata(self, name: str) -> None:
        name = name.partition(".")[2] or name
        built_in = name.lower() in BUILT_IN_METADATA
        if built_in and not self.allowed & BUILT_IN:
            raise self._problem("MSB4190", 0, f"the built-in metadata {name} is not allowed")
        if not built_in and not self.allowed & CUSTOM_METADATA:
            raise self._problem("MSB4191", 0, f"the metadata {name} is not allowed")

    def _problem(self, code: str, position: int, reason: str) -> EvaluationProblem:
        return EvaluationProblem(code, f'in the condition "{self.condition}", position {position + 1}: {reason}')


def _end(match: re.Match[str] | None) -> int:
    """Where a match that cannot fail ends."""
    assert match is not None
    return match.end()
