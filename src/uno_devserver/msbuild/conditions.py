"""Parses conditions, and evaluates them to true, false or unknown (None).

A comparison with an unknown operand is unknown. `and` and `or` follow Kleene's logic: one operand can decide even if
the other is unknown. Without unknown operands the result and the error codes are those of MSBuild.
"""

from __future__ import annotations

import os
import re

from .expressions import is_known, split_list, unescape
from .paths import full_path, ignoring_case, to_slashes
from .problems import LIMIT, EvaluationProblem, quoted, shortened
from .validation import BUILT_IN_METADATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Operands(Protocol):
        """The values that a condition refers to; None means unknown."""

        def text(self, raw: str) -> str | None: ...
        def paths(self, raw: str) -> list[str] | None: ...
        def exists(self, path: str) -> bool: ...

    from .expressions import EvaluationScope


# Python's stack has about a thousand frames, and a level needs seven. Real conditions have fewer than ten levels.
MAX_NESTING = 40

_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
_BOOLEANS = dict.fromkeys(("true", "on", "yes", "!false", "!off", "!no"), True) | dict.fromkeys(
    ("false", "off", "no", "!true", "!on", "!yes"), False
)
# Digits before the point are matched only once: otherwise a long number would take quadratic time.
_DECIMAL = r"(?a)[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_HEXADECIMAL = r"0[xX]0*([0-9A-Fa-f]{1,8})"


class ConditionNode:
    """A part of a condition: an operand ('text', 'number'), a 'call', an operator with its operands."""

    __slots__ = ("kind", "parts", "text")

    def __init__(self, kind: str, text: str = "", parts: tuple[ConditionNode, ...] = ()) -> None:
        self.kind = kind
        self.text = text
        self.parts = parts


class Condition:
    """A parsed condition."""

    __slots__ = ("_root", "text")

    def __init__(self, text: str, allowed: int) -> None:
        """`allowed` combines ITEMS, CUSTOM_METADATA and BUILT_IN. Raises EvaluationProblem."""
        self.text = text
        self._root = _Parser(text, tokens_of(text, allowed)).parse()

    def evaluate(self, operands: Operands) -> bool | None:
        side = _Evaluation(self.text, operands).side(self._root)
        if side.unknown:
            return None
        if side.truth is None:
            raise _problem("MSB4113", self.text, f"the value is {quoted(side.text)} instead of true or false")
        return side.truth


class _Parser:
    """Recursive descent over the tokens, with MSBuild's precedence: or, and, comparison, not."""

    def __init__(self, text: str, tokens: Iterator[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.next = next(tokens)
        self.depth = 0

    def parse(self) -> ConditionNode:
        root = self._alternatives()
        if self.next is not END:
            raise self._unexpected()
        return root

    def _alternatives(self) -> ConditionNode:
        return self._chain("or", self._conjunction)

    def _conjunction(self) -> ConditionNode:
        return self._chain("and", self._comparison)

    def _chain(self, operator: str, operand: Callable[[], ConditionNode]) -> ConditionNode:
        first = operand()
        if self.next[0] != operator:
            return first
        parts = [first]
        while self._accept(operator):
            parts.append(operand())
        return ConditionNode(operator, "", tuple(parts))

    def _comparison(self) -> ConditionNode:
        left = self._factor()
        operator = self.next[0]
        if operator not in _COMPARISONS:
            return left
        self._advance()
        return ConditionNode(operator, "", (left, self._factor()))

    def _factor(self) -> ConditionNode:
        kind, text = self.next
        if kind in ("text", "number"):
            self._advance()
            return ConditionNode(kind, text)
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise EvaluationProblem(LIMIT, f"a condition is nested more than {MAX_NESTING} deep: {self.text[:60]!r}")
        node = self._compound(text)
        self.depth -= 1
        return node

    def _compound(self, text: str) -> ConditionNode:
        if self._accept("call"):
            self._advance()  # the opening parenthesis that made it a call
            return ConditionNode("call", text, self._arguments())
        if self._accept("("):
            inner = self._alternatives()
            if not self._accept(")"):
                raise self._unexpected()
            return inner
        if self._accept("!"):
            return ConditionNode("not", "", (self._factor(),))
        raise self._unexpected()

    def _arguments(self) -> tuple[ConditionNode, ...]:
        arguments: list[ConditionNode] = []
        if self._accept(")"):
            return ()
        while True:
            kind, text = self.next
            # A missing argument is kept, so that the number of arguments is reported as wrong.
            arguments.append(ConditionNode(kind, text))
            if kind in ("text", "number"):
                self._advance()
            if self._accept(")"):
                return tuple(arguments)
            if not self._accept(","):
                raise self._unexpected()

    def _accept(self, kind: str) -> bool:
        if self.next[0] != kind:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        self.next = next(self.tokens)

    def _unexpected(self) -> EvaluationProblem:
        return _problem("MSB4092", self.text, f"{quoted(self.next[1]) if self.next[1] else 'the end'} is not expected")


class _Side:
    """The value of a part of a condition: its text and its truth value, each None if it has none."""

    __slots__ = ("text", "truth", "unknown")

    def __init__(self, text: str | None, truth: bool | None, unknown: bool = False) -> None:
        self.text = text
        self.truth = truth
        self.unknown = unknown


_UNKNOWN = _Side(None, None, unknown=True)


class _Evaluation:
    def __init__(self, condition: str, operands: Operands) -> None:
        self.condition = condition
        self.operands = operands

    def side(self, node: ConditionNode) -> _Side:
        kind = node.kind
        if kind == "text":
            text = self.operands.text(node.text) if node.text else ""
            return _UNKNOWN if text is None else _Side(text, _BOOLEANS.get(text.lower()))
        if kind == "number":
            return _Side(node.text, None)
        if kind == "not":
            inner = self.side(node.parts[0])
            if inner.unknown:
                return inner
            return _Side(None if inner.text is None else "!" + inner.text, not self._truth(inner))
        if kind == "call":
            truth = self._call(node)
        elif kind in ("and", "or"):
            truth = self._chain(node.parts, decisive=kind == "or")
        elif kind in ("==", "!="):
            truth = self._equal(*node.parts)
            truth = None if truth is None else truth is (kind == "==")
        else:
            truth = self._ordered(kind, *node.parts)
        return _UNKNOWN if truth is None else _Side(None, truth)

    def _chain(self, parts: tuple[ConditionNode, ...], decisive: bool) -> bool | None:
        unknown = False
        for part in parts:
            try:
                side = self.side(part)
                if not side.unknown and self._truth(side) is decisive:
                    return decisive
            except EvaluationProblem:
                # After an unknown part MSBuild might not evaluate this one, so the error might not occur.
                if not unknown:
                    raise
                continue
            unknown = unknown or side.unknown
        return None if unknown else not decisive

    def _equal(self, left_node: ConditionNode, right_node: ConditionNode) -> bool | None:
        left, right = self.side(left_node), self.side(right_node)
        if left.unknown or right.unknown:
            return None
        if left.text is not None and right.text is not None:
            if not left.text or not right.text:
                return left.text == right.text
            left_number, right_number = _number(left.text), _number(right.text)
            if left_number is not None and right_number is not None:
                return left_number == right_number
        if left.truth is not None and right.truth is not None:
            return left.truth == right.truth
        if left.text is None or right.text is None:
            raise _problem("MSB4088", self.condition, "a truth value is compared with text")
        return left.text == right.text or ignoring_case(left.text) == ignoring_case(right.text)

    def _ordered(self, operator: str, left_node: ConditionNode, right_node: ConditionNode) -> bool | None:
        left, right = self.side(left_node), self.side(right_node)
        if left.unknown or right.unknown:
            return None
        left_number, left_version = self._measure(left)
        right_number, right_version = self._measure(right)
        if left_number is not None and right_number is not None:
            order = (left_number > right_number) - (left_number < right_number)
        elif left_version is not None and right_version is not None:
            order = (left_version > right_version) - (left_version < right_version)
        # A number and a version: the major version decides; if it is equal, the version is greater.
        elif left_number is not None and right_version is not None:
            order = 1 if left_number > right_version[0] else -1
        elif left_version is not None and right_number is not None:
            order = -1 if left_version[0] < right_number else 1
        return {"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[operator]

    def _measure(self, side: _Side) -> tuple[float | None, tuple[int, ...] | None]:
        from .versions import parse_system  # needed by few conditions

        text = side.text or ""
        number, version = _number(text), parse_system(text)
        if number is None and version is None:
            raise _problem("MSB4086", self.condition, f"{quoted(text)} is neither a number nor a version")
        return number, version

    def _call(self, node: ConditionNode) -> bool | None:
        name = node.text.lower()
        if name not in ("exists", "hastrailingslash"):
            raise _problem("MSB4091", self.condition, f"the function {shortened(node.text)} does not exist")
        if len(node.parts) != 1:
            reason = f"{shortened(node.text)} has {len(node.parts)} arguments instead of one"
            raise _problem("MSB4089", self.condition, reason)
        paths = self.operands.paths(node.parts[0].text)
        if paths is None:
            return None
        if name == "exists":
            return bool(paths) and all(map(self.operands.exists, paths))
        if len(paths) > 1:
            raise _problem("MSB4115", self.condition, f"{shortened(node.text)} gets more than one path")
        return bool(paths) and paths[0].endswith(("/", "\\"))

    def _truth(self, side: _Side) -> bool:
        if side.truth is None:
            raise _problem("MSB4100", self.condition, f"{quoted(side.text)} is neither true nor false")
        return side.truth


def _number(text: str) -> float | None:
    # Most texts are not numbers, which the first character shows.
    if text[:1] not in "+-.0123456789":
        return None
    if re.fullmatch(_DECIMAL, text):
        number = float(text)
        return number if abs(number) != float("inf") else None
    if match := re.fullmatch(_HEXADECIMAL, text):
        number = int(match.group(1), 16)
        return number - 2**32 if number >= 2**31 else number
    return None


# What a condition may refer to in addition to properties.
ITEMS = 1
CUSTOM_METADATA = 2
BUILT_IN = 4

# Real names are shorter; the limit keeps a hostile condition from being copied repeatedly.
MAX_NAME = 200

_BLANKS = re.compile(r"\s*").match
_PLAIN_QUOTED = re.compile(r"'([^'@%]*)'").match
_WORD = re.compile(r"[^\W\d]\w*").match
_NUMBER = r"(?s)0[xX](?=.)[0-9A-Fa-f]*|[-+]?[\d.]*"
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "!", "(", ")", ",")

# Kind and text. The kinds are 'text' (quoted, a word, or a $() @() %() reference), 'number', 'call', 'and', 'or',
# 'end', and each operator.
Token = tuple[str, str]
END: Token = ("end", "")


def tokens_of(condition: str, allowed: int) -> Iterator[Token]:
    """Yields the tokens of a condition, then END repeatedly; raises EvaluationProblem at a bad one."""
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
        """The position after $(...) or %(...); the codes are those of the three possible errors."""
        condition = self.condition
        if start + 1 < len(condition) and condition[start + 1] != "(":
            raise self._problem(unopened, start, "'(' is expected next")
        # Per open reference: its depth, whether it contains blanks, and whether it contains more than a name.
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
                        raise self._problem(blank, position, "the name that ends here contains a blank")
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
            raise _problem("MSB4190", self.condition, f"the built-in metadata {name} is not allowed")
        if not built_in and not self.allowed & CUSTOM_METADATA:
            raise _problem("MSB4191", self.condition, f"the metadata {name} is not allowed")

    def _problem(self, code: str, position: int, reason: str) -> EvaluationProblem:
        return _problem(code, self.condition, f"at position {position + 1}: {reason}")


def _problem(code: str, condition: str, reason: str) -> EvaluationProblem:
    return EvaluationProblem(code, f'in the condition "{shortened(condition)}", {reason}')


def _end(match: re.Match[str] | None) -> int:
    """The end of a match that cannot fail."""
    assert match is not None
    return match.end()


class PropertyOperands:
    """The operands of a condition, expanded by `expand`, or by the scope if that is not given."""

    def __init__(self, scope: EvaluationScope, folder: str, expand: Callable[[str], str] | None = None) -> None:
        """`folder` is the base of relative paths in Exists; `expand` may replace more than properties."""
        self._folder = folder
        self._expand = expand or scope.expand

    def text(self, raw: str) -> str | None:
        value = self._expand(raw)
        return unescape(value) if is_known(value) else None

    def paths(self, raw: str) -> list[str] | None:
        value = self._expand(to_slashes(raw))
        if not is_known(value):
            return None
        return [unescape(to_slashes(path)) for path in split_list(value)]

    def exists(self, path: str) -> bool:
        return os.path.exists(full_path(path, self._folder))
