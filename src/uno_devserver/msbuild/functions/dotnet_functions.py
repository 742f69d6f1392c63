"""Static functions of .NET types: paths, files, the environment, versions, the operating system."""

from __future__ import annotations

import os
import sys

from ...system.folders import relative_path
from ..paths import WINDOWS, full_path, is_rooted
from ..versions import parse_system
from .calls import (
    FunctionFailed,
    NoSuchFunction,
    NotImplementedHere,
    SystemVersion,
    bounded,
    maybe_real,
    only_text,
    texts,
)
from .calls import to_text as as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .calls import Function, FunctionCall, FunctionValue

_SEPARATOR = os.sep
_SEPARATORS = "\\/" if WINDOWS else "/"
# More arguments than any caller passes; the length of the result is limited elsewhere.
_MANY = 1000


def _combine(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    combined = ""
    for part in texts(arguments, 1, _MANY):
        if is_rooted(part) or not combined:
            combined = part
        elif part:
            combined += part if combined[-1] in _SEPARATORS else _SEPARATOR + part
    bounded(len(combined))
    return combined


def _full_path(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    path, *base = texts(arguments, 1, 2)
    if not path:
        raise FunctionFailed("the path is empty")
    return full_path(path, base[0] if base else call.scope.folder)


def directory_name(path: str) -> str | None:
    """The folder of a path; None for a root and for empty text."""
    folder = os.path.dirname(path)
    return None if not path or folder == path else folder


def _relative_path(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    start, path = texts(arguments, 2, 2)
    if not start or not path:
        raise FunctionFailed("a path is empty")
    folder = call.scope.folder
    return relative_path(full_path(path, folder), full_path(start, folder))


def _change_extension(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    if len(arguments) != 2:
        raise NoSuchFunction("ChangeExtension takes a path and an extension")
    path, extension = as_text(arguments[0]), as_text(arguments[1])
    stem = path[: len(path) - len(_extension(path))].removesuffix(".") if path else ""
    if not path or arguments[1] is None:
        return stem
    return stem + (extension if extension.startswith(".") else "." + extension)


def _extension(path: str) -> str:
    name = _file_name(path)
    dot = name.rfind(".")
    return name[dot:] if 0 <= dot < len(name) - 1 else ""


def _file_name(path: str) -> str:
    return os.path.basename(path)


def _stem(path: str) -> str:
    name = _file_name(path)
    dot = name.rfind(".")
    return name[:dot] if dot >= 0 else name


def _path_root(path: str) -> str | None:
    if not path:
        return None
    if WINDOWS:
        drive, tail = os.path.splitdrive(path)
        return drive + tail[: len(tail) - len(tail.lstrip("\\/"))][:1]
    return "/" if path.startswith("/") else ""


def _temporary_folder(call: FunctionCall, _: Sequence[FunctionValue]) -> str:
    if WINDOWS:
        raise NotImplementedHere
    folder = call.scope.environment.get("TMPDIR") or "/tmp/"  # noqa: S108  # .NET's own default
    return folder if folder.endswith("/") else folder + "/"


def _of_path(function: Callable[[str], FunctionValue]) -> Function:
    return lambda _, arguments: function(only_text(arguments))


def _on_disk(test: Callable[[str], bool]) -> Function:
    def exists(call: FunctionCall, arguments: Sequence[FunctionValue]) -> bool:
        path = only_text(arguments)
        return bool(path) and test(full_path(path, call.scope.folder))

    return exists


def _constant(value: FunctionValue) -> Function:
    return lambda _, __: value


def _environment_variable(call: FunctionCall, arguments: Sequence[FunctionValue]) -> str | None:
    return call.scope.environment.get(only_text(arguments))


def _version(_: FunctionCall, arguments: Sequence[FunctionValue]) -> SystemVersion:
    parts = parse_system(only_text(arguments))
    if parts is None:
        raise FunctionFailed("it is not a version of two to four numbers")
    return SystemVersion(parts)


def _joined(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    if len(arguments) == 2 and isinstance(arguments[1], list):
        parts = arguments[1]
    else:
        parts = [as_text(argument) for argument in arguments[1:]]
    separator = as_text(arguments[0]) if arguments else ""
    bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _concatenated(_: FunctionCall, arguments: Sequence[FunctionValue]) -> str:
    parts = [as_text(argument) for argument in arguments]
    bounded(sum(map(len, parts)))
    return "".join(parts)


def _empty(blank_too: bool) -> Function:
    def test(_: FunctionCall, arguments: Sequence[FunctionValue]) -> bool:
        if len(arguments) != 1:
            raise NoSuchFunction("it takes one text")
        text = as_text(arguments[0])
        return not (text.strip() if blank_too else text)

    return test


def _extreme(choose: Callable[[list[float]], float]) -> Function:
    def function(_: FunctionCall, arguments: Sequence[FunctionValue]) -> float:
        numbers = [number for number in map(maybe_real, arguments) if number is not None]
        if len(numbers) != 2 or len(arguments) != 2:
            raise NoSuchFunction("it takes two numbers")
        return choose(numbers)

    return function


def is_platform(name: str) -> bool:
    """Whether this system has the given .NET name; case is ignored."""
    own = {"win32": "WINDOWS", "darwin": "OSX"}.get(sys.platform, sys.platform.upper())
    return name.upper() == own or (name.upper() == "MACOS" and own == "OSX")


_PATH: dict[str, Function] = {
    "altdirectoryseparatorchar": _constant("/"),
    "changeextension": _change_extension,
    "combine": _combine,
    "directoryseparatorchar": _constant(_SEPARATOR),
    "getdirectoryname": _of_path(directory_name),
    "getextension": _of_path(_extension),
    "getfilename": _of_path(_file_name),
    "getfilenamewithoutextension": _of_path(_stem),
    "getfullpath": _full_path,
    "getpathroot": _of_path(_path_root),
    "getrelativepath": _relative_path,
    "gettemppath": _temporary_folder,
    "hasextension": _of_path(lambda path: bool(_extension(path))),
    "ispathrooted": _of_path(is_rooted),
    "pathseparator": _constant(os.pathsep),
    "volumeseparatorchar": _constant(":" if WINDOWS else "/"),
}
_STRING: dict[str, Function] = {
    "concat": _concatenated,
    "copy": _of_path(str),
    "empty": _constant(""),
    "isnullorempty": _empty(blank_too=False),
    "isnullorwhitespace": _empty(blank_too=True),
    "join": _joined,
    "new": _of_path(str),
}
_OPERATING_SYSTEM: dict[str, Function] = {
    "islinux": _constant(is_platform("linux")),
    "ismacos": _constant(is_platform("osx")),
    "isosplatform": _of_path(is_platform),
    "iswindows": _constant(is_platform("windows")),
}
_RUNTIME = "system.runtime.interopservices"

# By type and name, both in lower case.
FUNCTIONS: dict[tuple[str, str], Function] = {
    **{("system.io.path", name): function for name, function in _PATH.items()},
    **{("system.string", name): function for name, function in _STRING.items()},
    **{("system.operatingsystem", name): function for name, function in _OPERATING_SYSTEM.items()},
    ("system.io.file", "exists"): _on_disk(os.path.isfile),
    ("system.io.directory", "exists"): _on_disk(os.path.isdir),
    ("system.environment", "getenvironmentvariable"): _environment_variable,
    ("system.environment", "newline"): _constant("\r\n" if WINDOWS else "\n"),
    ("system.version", "parse"): _version,
    ("system.version", "new"): _version,
    ("system.math", "max"): _extreme(max),
    ("system.math", "min"): _extreme(min),
    (f"{_RUNTIME}.osplatform", "linux"): _constant("LINUX"),
    (f"{_RUNTIME}.osplatform", "osx"): _constant("OSX"),
    (f"{_RUNTIME}.osplatform", "windows"): _constant("WINDOWS"),
    (f"{_RUNTIME}.runtimeinformation", "isosplatform"): _of_path(is_platform),
}
