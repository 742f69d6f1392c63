"""What all property functions share: their values, their arguments, and the three ways to fail."""

from __future__ import annotations

import re

from ..expressions import MAX_TEXT, escape
from ..problems import LIMIT, EvaluationProblem, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..expressions import EvaluationScope


class SystemVersion(tuple[int, ...]):
    """A System.Version: two to four numbers."""

    __slots__ = ()


# What a function takes and gives; the text is unescaped here. None is .NET's null.
FunctionValue = str | bool | int | float | SystemVersion | list[str] | None

if TYPE_CHECKING:
    Function = Callable[["FunctionCall", Sequence[FunctionValue]], FunctionValue]


class FunctionCall:
    """One call: the value it is made on (None for a static function), and where."""

    __slots__ = ("receiver", "scope")

    def __init__(self, receiver: FunctionValue, scope: EvaluationScope) -> None:
        self.receiver = receiver
        self.scope = scope


class FunctionFailed(Exception):
    """The function exists, and .NET would throw for these arguments."""


class NoSuchFunction(Exception):
    """.NET has no function of this name that takes these arguments."""


class NotImplementedHere(Exception):
    """MSBuild may well know the answer; this evaluator does not."""


_integer = re.compile(r"\s*([-+]?)0*(\d{1,19})\s*", re.ASCII).fullmatch
# The point stands between the two runs of digits: else a long run could be cut anywhere, in quadratic time.
_real = re.compile(r"\s*[-+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*", re.ASCII).fullmatch


_NO_NUMBERS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def texts(arguments: Sequence[FunctionValue], least: int, most: int) -> list[str]:
    """All arguments as text, if there are as many as the function takes."""
    if not least <= len(arguments) <= most:
        raise NoSuchFunction(f"{len(arguments)} arguments")
    if None in arguments:
        raise FunctionFailed("an argument is null")
    return [to_text(argument) for argument in arguments]


def only_text(arguments: Sequence[FunctionValue]) -> str:
    return texts(arguments, 1, 1)[0]


def integer(argument: FunctionValue) -> int:
    number = maybe_integer(argument, 2**31)
    if number is None:
        raise NoSuchFunction(f"{quoted(argument)} is not an integer")
    return number


def maybe_integer(argument: FunctionValue, bound: int) -> int | None:
    """A whole number from -bound to bound - 1, or None."""
    number: int | None = None
    if isinstance(argument, int) and not isinstance(argument, bool):
        number = argument
    elif isinstance(argument, float) and argument.is_integer():
        number = int(argument)
    elif isinstance(argument, str) and (match := _integer(argument)):
        number = int(match.group(1) + match.group(2))
    return number if number is not None and -bound <= number < bound else None


def maybe_real(argument: FunctionValue) -> float | None:
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return float(argument)
    if isinstance(argument, str) and _real(argument):
        return float(argument.replace(",", ""))
    return None


def bounded(length: int) -> int:
    """A length that a function is about to create, if it is a sensible one."""
    if length > MAX_TEXT:
        raise EvaluationProblem(LIMIT, f"a function would create {length:,} characters; the limit is {MAX_TEXT:,}")
    return length


def to_text(value: FunctionValue) -> str:
    """A value as MSBuild writes it into text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, SystemVersion):
        return ".".join(map(str, value))
    if isinstance(value, list):
        return ";".join(map(escape, value))
    if isinstance(value, float):
        return _real_text(value)
    return str(value)


def _real_text(number: float) -> str:
    """The shortest form, as Python's own, but with an exponent from 1E+15 on."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    text = repr(number)
    if text in _NO_NUMBERS:
        return _NO_NUMBERS[text]
    mantissa, _, exponent = text.removesuffix(".0").partition("e")
    if not exponent and number.is_integer():
        exponent = str(len(mantissa.lstrip("-")) - 1)
        mantissa = f"{number / 10 ** int(exponent)!r}".removesuffix(".0")
    if not exponent:
        return mantissa
    return f"{mantissa}E{'-' if exponent[0] == '-' else '+'}{exponent.lstrip('+-'):0>2}"
