"""Methods of System.String that property functions can call."""

from __future__ import annotations

from ..paths import ignoring_case
from ..problems import quoted
from ..validation import words
from .calls import (
    FunctionFailed,
    NoSuchFunction,
    NotImplementedHere,
    bounded,
    integer,
    maybe_integer,
    maybe_real,
    only_text,
    texts,
    to_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .calls import Function, FunctionCall, FunctionValue

# Methods of System.String that are not implemented here; their result is unknown.
OTHER_METHODS = words(
    "clone compareto copyto enumeraterunes getenumerator gethashcode gettypecode isnormalized normalize "
    "replacelineendings tochararray trycopyto"
)


def _receiver(call: FunctionCall) -> str:
    return to_text(call.receiver)


def _replace(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    if len(arguments) == 3:
        raise NotImplementedHere  # with a StringComparison
    if len(arguments) != 2:
        raise NoSuchFunction("Replace takes two texts")
    text, old, new = _receiver(call), to_text(arguments[0]), to_text(arguments[1])
    if not old:
        raise FunctionFailed("the text to replace is empty")
    bounded(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _substring(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    text = _receiver(call)
    if not 1 <= len(arguments) <= 2:
        raise NoSuchFunction("Substring takes a start and a length")
    start = integer(arguments[0])
    length = integer(arguments[1]) if len(arguments) == 2 else len(text) - start
    if start < 0 or length < 0 or start + length > len(text):
        raise FunctionFailed(f"{quoted(text)} has no {length} characters at {start}")
    return text[start : start + length]


def _compared(compare: Callable[[str, str], bool | int]) -> Function:
    """Creates a method that takes a text and optionally a StringComparison."""

    def method(call: FunctionCall, arguments: Sequence[FunctionValue]) -> FunctionValue:
        text, *rest = texts(arguments, 1, 2)
        if rest and _ignores_case(rest[0]):
            return compare(ignoring_case(_receiver(call)), ignoring_case(text))
        return compare(_receiver(call), text)

    return method


def _ignores_case(comparison: str) -> bool:
    name = comparison.rpartition(".")[2]
    if name in ("Ordinal", "CurrentCulture", "InvariantCulture"):
        return False
    if name in ("OrdinalIgnoreCase", "CurrentCultureIgnoreCase", "InvariantCultureIgnoreCase"):
        return True
    raise NotImplementedHere  # with a start index, or another overload


def _equals(call: FunctionCall, arguments: Sequence[FunctionValue]) -> bool:
    if len(arguments) == 1 and (right := maybe_real(arguments[0])) is not None:
        # MSBuild compares numbers as numbers here.
        left = maybe_real(call.receiver)
        if left is not None:
            return left == right
    text, *rest = texts(arguments, 1, 2)
    if rest and _ignores_case(rest[0]):
        return ignoring_case(_receiver(call)) == ignoring_case(text)
    return _receiver(call) == text


def _any_of(find: Callable[[list[int]], int]) -> Function:
    def method(call: FunctionCall, arguments: Sequence[FunctionValue]) -> int:
        wanted = set(only_text(arguments))
        return find([place for place, character in enumerate(_receiver(call)) if character in wanted] or [-1])

    return method


def _split(call: FunctionCall, arguments: Sequence[FunctionValue]) -> list[str]:
    if len(arguments) != 1:
        raise NotImplementedHere  # with options
    separators = only_text(arguments)
    text = _receiver(call)
    if not separators:
        return text.split()
    # Each character is a separator.
    first = separators[0]
    return text.translate(dict.fromkeys(map(ord, separators), first)).split(first)


def _trimmed(trim: Callable[[str, str | None], str]) -> Function:
    def method(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
        characters = texts(arguments, 0, 1)
        return trim(_receiver(call), characters[0] if characters and characters[0] else None)

    return method


def _padded(pad: Callable[[str, int, str], str]) -> Function:
    def method(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
        width, *rest = texts(arguments, 1, 2)
        if rest and len(rest[0]) != 1:
            raise NoSuchFunction("the padding is one character")
        number = integer(width)
        if number < 0:
            raise FunctionFailed("the width is negative")
        return pad(_receiver(call), bounded(number), rest[0] if rest else " ")

    return method


def _insert(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    place, inserted = texts(arguments, 2, 2)
    text, start = _receiver(call), integer(place)
    if not 0 <= start <= len(text):
        raise FunctionFailed(f"{quoted(text)} has no place {start}")
    bounded(len(text) + len(inserted))
    return text[:start] + inserted + text[start:]


def _remove(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    text = _receiver(call)
    start, *rest = texts(arguments, 1, 2)
    first = integer(start)
    count = integer(rest[0]) if rest else len(text) - first
    if first < 0 or count < 0 or first + count > len(text):
        raise FunctionFailed(f"{quoted(text)} has no {count} characters at {first}")
    return text[:first] + text[first + count :]


def _character(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    place = maybe_integer(only_text(arguments), 2**31)
    text = _receiver(call)
    if place is None or not 0 <= place < len(text):
        raise FunctionFailed(f"{quoted(text)} has no character {quoted(arguments[0])}")
    return text[place]


def _simple(change: Callable[[str], FunctionValue]) -> Function:
    def method(call: FunctionCall, arguments: Sequence[FunctionValue]) -> FunctionValue:
        if arguments:
            raise NotImplementedHere  # a culture or a format is given
        return change(_receiver(call))

    return method


METHODS: dict[str, Function] = {
    "[]": _character,
    "get_chars": _character,
    "contains": _compared(lambda text, part: part in text),
    "endswith": _compared(str.endswith),
    "equals": _equals,
    "indexof": _compared(str.find),
    "indexofany": _any_of(min),
    "insert": _insert,
    "lastindexof": _compared(str.rfind),
    "lastindexofany": _any_of(max),
    "length": _simple(len),
    "padleft": _padded(str.rjust),
    "padright": _padded(str.ljust),
    "remove": _remove,
    "replace": _replace,
    "split": _split,
    "startswith": _compared(str.startswith),
    "substring": _substring,
    "tolower": _simple(str.lower),
    "tolowerinvariant": _simple(str.lower),
    "tostring": _simple(str),
    "toupper": _simple(str.upper),
    "toupperinvariant": _simple(str.upper),
    "trim": _trimmed(str.strip),
    "trimend": _trimmed(str.rstrip),
    "trimstart": _trimmed(str.lstrip),
}
