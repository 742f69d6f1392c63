"""Conditions: parsed once, evaluated to true, false or unknown (None).

An operand that cannot be known makes its comparison unknown; 'and' and 'or' are decided by the other side where that
settles it (Kleene's logic). Without unknown operands the result, or the error code, is MSBuild's.
"""

from __future__ import annotations

import re

from .paths import ignoring_case
from .problems import LIMIT, EvaluationProblem, quoted, shortened
from .tokens import END, Token, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Operands(Protocol):
        """What a condition asks of its surroundings; None answers 'not known'."""

        def text(self, raw: str) -> str | None: ...
        def paths(self, raw: str) -> list[str] | None: ...
        def exists(self, path: str) -> bool: ...


# Python's stack ends near a thousand frames, and a level takes seven. People do not nest ten.
MAX_NESTING = 40

_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
_BOOLEANS = dict.fromkeys(("true", "on", "yes", "!false", "!off", "!no"), True) | dict.fromkeys(
    ("false", "off", "no", "!true", "!on", "!yes"), False
)
# The point stands between the two runs of digits: else a long run could be cut anywhere, in quadratic time.
_DECIMAL = r"(?a)[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_HEXADECIMAL = r"0[xX]0*([0-9A-Fa-f]{1,8})"


class Node:
    """A part of a condition: an operand ('text', 'number'), a 'call', an operator with its operands."""

    __slots__ = ("kind", "parts", "text")

    def __init__(self, kind: str, text: str = "", parts: tuple[Node, ...] = ()) -> None:
        self.kind = kind
        self.text = text
        self.parts = parts


class Condition:
    """A parsed condition."""

    __slots__ = ("_root", "text")

    def __init__(self, text: str, allowed: int) -> None:
        """`allowed` says what may be referred to: see tokens. Raises EvaluationProblem."""
        self.text = text
        self._root = _Parser(text, tokens_of(text, allowed)).parse()

    def evaluate(self, operands: Operands) -> bool | None:
        side = _Evaluation(self.text, operands).side(self._root)
        if side.unknown:
            return None
        if side.truth is None:
            raise EvaluationProblem(
                "MSB4113", f'the condition "{shortened(self.text)}" is {quoted(side.text)} instead of true or false'
            )
        return side.truth


class _Parser:
    """Recursive descent over the tokens, with MSBuild's precedence: or, and, comparison, not."""

    def __init__(self, text: str, tokens: Iterator[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.next = next(tokens)
        self.depth = 0

    def parse(self) -> Node:
        root = self._alternatives()
        if self.next is not END:
            raise self._unexpected()
        return root

    def _alternatives(self) -> Node:
        return self._chain("or", self._conjunction)

    def _conjunction(self) -> Node:
        return self._chain("and", self._comparison)

    def _chain(self, operator: str, operand: Callable[[], Node]) -> Node:
        first = operand()
        if self.next[0] != operator:
            return first
        parts = [first]
        while self._accept(operator):
            parts.append(operand())
        return Node(operator, "", tuple(parts))

    def _comparison(self) -> Node:
        left = self._factor()
        operator = self.next[0]
        if operator not in _COMPARISONS:
            return left
        self._advance()
        return Node(operator, "", (left, self._factor()))

    def _factor(self) -> Node:
        kind, text = self.next
        if kind in ("text", "number"):
            self._advance()
            return Node(kind, text)
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise EvaluationProblem(LIMIT, f"a condition is nested more than {MAX_NESTING} deep: {self.text[:60]!r}")
        node = self._compound(text)
        self.depth -= 1
        return node

    def _compound(self, text: str) -> Node:
        if self._accept("call"):
            self._advance()  # the opening parenthesis that made it a call
            return Node("call", text, self._arguments())
        if self._accept("("):
            inner = self._alternatives()
            if not self._accept(")"):
                raise self._unexpected()
            return inner
        if self._accept("!"):
            return Node("not", "", (self._factor(),))
        raise self._unexpected()

    def _arguments(self) -> tuple[Node, ...]:
        arguments: list[Node] = []
        if self._accept(")"):
            return ()
        while True:
            kind, text = self.next
            # A missing argument counts too: then it is their number that is wrong.
            arguments.append(Node(kind, text))
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
        found = self.next[1] or "the end"
        return EvaluationProblem(
            "MSB4092", f'in the condition "{shortened(self.text)}", {quoted(found)} is not expected there'
        )


class _Side:
    """What one side of a comparison is worth: its text, and its truth if it has one."""

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

    def side(self, node: Node) -> _Side:
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

    def _chain(self, parts: tuple[Node, ...], decisive: bool) -> bool | None:
        unknown = False
        for part in parts:
            try:
                side = self.side(part)
                if not side.unknown and self._truth(side) is decisive:
                    return decisive
            except EvaluationProblem:
                # Behind an unknown part MSBuild may never get here: then this error would not be raised.
                if not unknown:
                    raise
                continue
            unknown = unknown or side.unknown
        return None if unknown else not decisive

    def _equal(self, left_node: Node, right_node: Node) -> bool | None:
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
            raise EvaluationProblem(
                "MSB4088", f'the condition "{shortened(self.condition)}" compares a truth value with text'
            )
        return left.text == right.text or ignoring_case(left.text) == ignoring_case(right.text)

    def _ordered(self, operator: str, left_node: Node, right_node: Node) -> bool | None:
        left, right = self.side(left_node), self.side(right_node)
        if left.unknown or right.unknown:
            return None
        left_number, left_version = self._measure(left)
        right_number, right_version = self._measure(right)
        if left_number is not None and right_number is not None:
            order = (left_number > right_number) - (left_number < right_number)
        elif left_version is not None and right_version is not None:
            order = (left_version > right_version) - (left_version < right_version)
        # A number and a version: the major decides, and of two equal ones the version is greater.
        elif left_number is not None and right_version is not None:
            order = 1 if left_number > right_version[0] else -1
        elif left_version is not None and right_number is not None:
            order = -1 if left_version[0] < right_number else 1
        return {"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[operator]

    def _measure(self, side: _Side) -> tuple[float | None, tuple[int, ...] | None]:
        from .versions import parse_system  # few conditions compare sizes

        text = side.text or ""
        number, version = _number(text), parse_system(text)
        if number is None and version is None:
            raise EvaluationProblem(
                "MSB4086", f'in the condition "{shortened(self.condition)}", {quoted(text)} is not a number'
            )
        return number, version

    def _call(self, node: Node) -> bool | None:
        name = node.text.lower()
        if name not in ("exists", "hastrailingslash"):
            raise EvaluationProblem(
                "MSB4091",
                f'the condition "{shortened(self.condition)}" calls {shortened(node.text)}, which does not exist',
            )
        if len(node.parts) != 1:
            called = f"{shortened(node.text)} has {len(node.parts)} arguments instead of one"
            raise EvaluationProblem("MSB4089", f'in the condition "{shortened(self.condition)}", {called}')
        paths = self.operands.paths(node.parts[0].text)
        if paths is None:
            return None
        if name == "exists":
            return bool(paths) and all(map(self.operands.exists, paths))
        if len(paths) > 1:
            raise EvaluationProblem(
                "MSB4115",
                f'in the condition "{shortened(self.condition)}", {shortened(node.text)} gets more than one path',
            )
        return bool(paths) and paths[0].endswith(("/", "\\"))

    def _truth(self, side: _Side) -> bool:
        if side.truth is None:
            message = f'in the condition "{shortened(self.condition)}", {quoted(side.text)} is neither true nor false'
            raise EvaluationProblem("MSB4100", message)
        return side.truth


def _number(text: str) -> float | None:
    # Most words are no numbers, and one look at the first character tells.
    if text[:1] not in "+-.0123456789":
        return None
    if re.fullmatch(_DECIMAL, text):
        number = float(text)
        return number if abs(number) != float("inf") else None
    if match := re.fullmatch(_HEXADECIMAL, text):
        number = int(match.group(1), 16)
        return number - 2**32 if number >= 2**31 else number
    return None
