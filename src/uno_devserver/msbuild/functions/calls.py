"""Values, arguments and errors of property functions."""

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


# The type of arguments and results; text is unescaped, and None is .NET's null.
FunctionValue = str | bool | int | float | SystemVersion | list[str] | None

if TYPE_CHECKING:
    Function = Callable[["FunctionCall", Sequence[FunctionValue]], FunctionValue]


class FunctionCall:
    """A function call: its receiver (None for a static function) and its scope."""

    __slots__ = ("receiver", "scope")

    def __init__(self, receiver: FunctionValue, scope: EvaluationScope) -> None:
        self.receiver = receiver
        self.scope = scope


class FunctionFailed(Exception):
    """.NET's function throws an exception for these arguments."""


class NoSuchFunction(Exception):
    """.NET has no function with this name and these arguments."""


class NotImplementedHere(Exception):
    """MSBuild has this function, but this evaluator does not."""


_integer = re.compile(r"\s*([-+]?)0*(\d{1,19})\s*", re.ASCII).fullmatch
# Digits before the point are matched only once: otherwise a long number would take quadratic time.
_real = re.compile(r"\s*[-+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*", re.ASCII).fullmatch


_NO_NUMBERS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def texts(arguments: Sequence[FunctionValue], least: int, most: int) -> list[str]:
    """The arguments as text; raises NoSuchFunction if their number does not fit."""
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
    """The length of a text that a function is about to create; raises if it is unreasonable."""
    if length > MAX_TEXT:
        raise EvaluationProblem(LIMIT, f"a function would create {length:,} characters; the limit is {MAX_TEXT:,}")
    return length


def to_text(value: FunctionValue) -> str:
    """Formats a value as MSBuild does."""
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
    """The shortest form of a number, as in Python, but with an exponent from 1E+15 on."""
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
