"""MSBuild's own functions: $([MSBuild]::Name(...))."""

from __future__ import annotations

import os
from math import fmod

from .. import frameworks
from ..expressions import escape, unescape
from ..paths import WINDOWS, full_path, to_slashes
from ..validation import words
from ..versions import parse_simple
from .calls import (
    FunctionFailed,
    NoSuchFunction,
    NotImplementedHere,
    integer,
    maybe_integer,
    maybe_real,
    only_text,
    texts,
)
from .calls import to_text as as_text
from .dotnet_functions import directory_name, is_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .calls import Function, FunctionCall, FunctionValue

# Functions of MSBuild that are not implemented here; their result is unknown.
OTHER_FUNCTIONS = words(
    "arefeaturesenabled checkfeatureavailability doestaskhostexist filtertargetframeworks getcurrenttoolsdirectory "
    "getmsbuildextensionspath getmsbuildsdkspath getprogramfiles32 getregistryvalue getregistryvaluefromview "
    "gettoolsdirectory32 gettoolsdirectory64 getvsinstallroot isrunningfromvisualstudio registerbuildcheck "
    "stablestringhash"
)

_INT64 = 2**63
_MANY = 1000  # more parts than any path has


def _arithmetic(whole: Callable[[int, int], int], real: Callable[[float, float], float]) -> Function:
    def function(_: FunctionCall, arguments: Sequence[FunctionValue]) -> int | float:
        if len(arguments) != 2:
            raise NoSuchFunction("arithmetic takes two numbers")
        left, right = (maybe_integer(argument, _INT64) for argument in arguments)
        if left is not None and right is not None:
            # .NET wraps around at 64 bits.
            return (whole(left, right) + _INT64) % (2 * _INT64) - _INT64
        left_real, right_real = map(maybe_real, arguments)
        if left_real is None or right_real is None:
            raise NoSuchFunction("arithmetic takes two numbers")
        try:
            return real(left_real, right_real)
        except (ValueError, ZeroDivisionError):
            raise FunctionFailed("division by zero") from None

    return function


def _quotient(left: int, right: int) -> int:
    """Divides with rounding towards zero, as .NET does."""
    if right == 0:
        raise FunctionFailed("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _bitwise(combine: Callable[[int, int], int]) -> Function:
    def function(_: FunctionCall, arguments: Sequence[FunctionValue]) -> int:
        if len(arguments) != 2:
            raise NoSuchFunction("it takes two integers")
        return combine(integer(arguments[0]), integer(arguments[1]))

    return function


def _bitwise_not(_: FunctionCall, arguments: Sequence[FunctionValue]) -> int:
    if len(arguments) != 1:
        raise NoSuchFunction("it takes one integer")
    return ~integer(arguments[0])


def _normalize_path(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    parts = [to_slashes(part) for part in texts(arguments, 1, _MANY) if part]
    if not parts:
        raise FunctionFailed("the path is empty")
    return full_path(os.path.join(*parts), call.scope.folder)


def _with_slash(path: str) -> str:
    path = to_slashes(path)
    return path if not path or path.endswith(("/", "\\") if WINDOWS else "/") else path + os.sep


def _make_relative(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    base, path = texts(arguments, 2, 2)
    if not base:
        return path
    full = full_path(path, call.scope.folder)
    base_parts = [part for part in full_path(base, call.scope.folder).split(os.sep) if part]
    path_parts = [part for part in full.split(os.sep) if part]
    shared = 0
    while shared < min(len(base_parts), len(path_parts)) and base_parts[shared] == path_parts[shared]:
        shared += 1
    if shared == len(base_parts) == len(path_parts):
        return "."
    if shared == 0:
        return full
    relative = os.sep.join([".."] * (len(base_parts) - shared) + path_parts[shared:])
    return relative + os.sep if full.endswith(os.sep) else relative


def _folder_of_file_above(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    start, name = texts(arguments, 2, 2)
    folder: str | None = full_path(start, call.scope.folder)
    while folder is not None:
        if os.path.isfile(os.path.join(folder, to_slashes(name))):
            return folder
        folder = directory_name(folder)
    return ""


def _path_of_file_above(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    name, *start = texts(arguments, 1, 2)
    if name != os.path.basename(name):
        raise FunctionFailed("a file name without folders is expected")
    folder = _folder_of_file_above(call, [start[0] if start else call.scope.lookup("MSBuildThisFileDirectory"), name])
    return full_path(name, folder.rstrip(os.sep) or os.sep) if folder else ""


def _value_or_default(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    if len(arguments) != 2:
        raise NoSuchFunction("it takes a value and a default")
    return as_text(arguments[0]) or as_text(arguments[1])


def _compare_versions(test: Callable[[tuple[int, ...], tuple[int, ...]], bool]) -> Function:
    def function(_: FunctionCall, arguments: Sequence[FunctionValue]) -> bool:
        left, right = map(parse_simple, texts(arguments, 2, 2))
        if left is None or right is None:
            raise FunctionFailed("it is not a version")
        return test(left, right)

    return function


def _framework(name: str) -> frameworks.Framework:
    framework = frameworks.parse_framework(name)
    if framework is None:
        raise NotImplementedHere
    return framework


def _of_framework(describe: Callable[[frameworks.Framework, int], str]) -> Function:
    def function(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
        name, *parts = texts(arguments, 1, 2)
        return describe(_framework(name), integer(parts[0]) if parts else 2)

    return function


def _frameworks_compatible(_: FunctionCall, arguments: Sequence[FunctionValue]) -> bool:
    target, candidate = map(_framework, texts(arguments, 2, 2))
    compatible = frameworks.is_compatible(target, candidate)
    if compatible is None:
        raise NotImplementedHere
    return compatible


def _substring_by_ascii_chars(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    text, start, length = texts(arguments, 3, 3)
    kept = "".join(character if character.isascii() else "_" for character in text)
    first, count = integer(start), integer(length)
    return kept[first : first + count] if 0 <= first < len(kept) and count >= 0 else ""


def _base64(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    from binascii import b2a_base64

    return b2a_base64(only_text(arguments).encode("utf-8", "replace"), newline=False).decode("ascii")


def _from_base64(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(only_text(arguments), strict_mode=True).decode("utf-8", "replace")
    except (Error, ValueError):
        raise FunctionFailed("it is not base64") from None


def _of_text(function: Callable[[str], FunctionValue]) -> Function:
    return lambda _, arguments: function(only_text(arguments))


def _on_disk(test: Callable[[str], bool]) -> Function:
    return lambda call, arguments: test(full_path(to_slashes(only_text(arguments)), call.scope.folder))


# By name in lower case.
FUNCTIONS: dict[str, Function] = {
    "add": _arithmetic(lambda left, right: left + right, lambda left, right: left + right),
    "bitwiseand": _bitwise(lambda left, right: left & right),
    "bitwisenot": _bitwise_not,
    "bitwiseor": _bitwise(lambda left, right: left | right),
    "bitwisexor": _bitwise(lambda left, right: left ^ right),
    "convertfrombase64": _from_base64,
    "converttobase64": _base64,
    "directoryexists": _on_disk(os.path.isdir),
    "divide": _arithmetic(_quotient, lambda left, right: left / right),
    "ensuretrailingslash": _of_text(_with_slash),
    "escape": _of_text(escape),
    "fileexists": _on_disk(os.path.isfile),
    "getdirectorynameoffileabove": _folder_of_file_above,
    "getpathoffileabove": _path_of_file_above,
    "gettargetframeworkidentifier": _of_framework(lambda framework, _: framework.identifier),
    "gettargetframeworkversion": _of_framework(
        lambda framework, parts: frameworks.version_text(framework.version, parts)
    ),
    "gettargetplatformidentifier": _of_framework(lambda framework, _: framework.platform),
    "gettargetplatformversion": _of_framework(
        lambda framework, parts: frameworks.version_text(framework.platform_version, parts)
    ),
    "isosbsdlike": lambda _, __: is_platform("freebsd"),
    "isosplatform": _of_text(is_platform),
    "isosunixlike": lambda _, __: not WINDOWS,
    "istargetframeworkcompatible": _frameworks_compatible,
    "makerelative": _make_relative,
    "modulo": _arithmetic(lambda left, right: left - right * _quotient(left, right), fmod),
    "multiply": _arithmetic(lambda left, right: left * right, lambda left, right: left * right),
    "normalizedirectory": lambda call, arguments: _with_slash(_normalize_path(call, arguments)),
    "normalizepath": _normalize_path,
    "substringbyasciichars": _substring_by_ascii_chars,
    "subtract": _arithmetic(lambda left, right: left - right, lambda left, right: left - right),
    "unescape": _of_text(unescape),
    "valueordefault": _value_or_default,
    "versionequals": _compare_versions(lambda left, right: left == right),
    "versiongreaterthan": _compare_versions(lambda left, right: left > right),
    "versiongreaterthanorequals": _compare_versions(lambda left, right: left >= right),
    "versionlessthan": _compare_versions(lambda left, right: left < right),
    "versionlessthanorequals": _compare_versions(lambda left, right: left <= right),
    "versionnotequals": _compare_versions(lambda left, right: left != right),
}
