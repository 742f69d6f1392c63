"""Which function a name means: the members of .NET's types that property functions may use.

A name that .NET does not know is an error; one that it knows and this evaluator has not is `NotImplementedHere`.
"""

from __future__ import annotations

from ..problems import EvaluationProblem, quoted
from ..structure import words
from . import intrinsics, statics, strings
from .calls import Call, FunctionFailed, FunctionValue, NoSuchFunction, NotImplementedHere, Version, integer, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .calls import Function

# All static members of these types may be called.
_OPEN_TYPES = words(
    "system.byte system.char system.convert system.datetime system.datetimeoffset system.decimal system.double "
    "system.enum system.guid system.int16 system.int32 system.int64 system.io.path system.math system.operatingsystem "
    "system.sbyte system.single system.string system.stringcomparer system.timespan system.uint16 system.uint32 "
    "system.uint64 system.version system.text.regularexpressions.regex system.uri system.uribuilder "
    "system.runtime.interopservices.architecture system.runtime.interopservices.osplatform "
    "system.runtime.interopservices.runtimeinformation microsoft.build.utilities.toollocationhelper"
)
# Of these types only some may be called.
_PARTLY_OPEN_TYPES = {
    "system.environment": words(
        "commandline expandenvironmentvariables getenvironmentvariable getenvironmentvariables getfolderpath "
        "getlogicaldrives is64bitoperatingsystem is64bitprocess machinename newline osversion processorcount "
        "specialfolder stacktrace systemdirectory systempagesize tickcount userdomainname userinteractive username "
        "version workingset"
    ),
    "system.io.directory": words(
        "enumeratedirectories enumeratefiles exists getdirectories getfiles getlastaccesstime getlastwritetime "
        "getparent"
    ),
    "system.io.file": words("exists getattributes getcreationtime getlastaccesstime getlastwritetime readalltext"),
    "system.globalization.cultureinfo": words("currentuiculture getcultureinfo new"),
}


def find_member(type_name: str, receiver: FunctionValue, method: str) -> Function:
    """The function that `[type]::method` or `receiver.method` calls."""
    if type_name:
        return _static_member(type_name.strip().lower(), method.lower(), type_name)
    if method.lower() == "gettype":
        raise EvaluationProblem("MSB4185", "GetType is not available as a property function")
    found: Function | None
    if isinstance(receiver, str):
        found = strings.METHODS.get(method.lower())
        if found is None and method.lower() in strings.OTHER_METHODS:
            raise NotImplementedHere
    elif isinstance(receiver, list):
        found = _LIST_METHODS.get(method.lower())
    elif isinstance(receiver, Version):
        found = _VERSION_METHODS.get(method.lower())
    else:
        found = _SCALAR_METHODS.get(method.lower())
    if found is None:
        if isinstance(receiver, str):
            raise NoSuchFunction(f"text has no {method}")
        raise NotImplementedHere
    return found


def _static_member(type_name: str, method: str, written: str) -> Function:
    found = intrinsics.FUNCTIONS.get(method) if type_name == "msbuild" else statics.FUNCTIONS.get((type_name, method))
    if found is not None:
        return found
    if type_name == "msbuild":
        if method in intrinsics.OTHER_FUNCTIONS:
            raise NotImplementedHere
        raise NoSuchFunction(f"[MSBuild] has no {method}")
    if type_name in _OPEN_TYPES:
        raise NotImplementedHere
    if type_name in _PARTLY_OPEN_TYPES:
        if method in _PARTLY_OPEN_TYPES[type_name]:
            raise NotImplementedHere
        raise EvaluationProblem("MSB4185", f"[{written}]::{method} is not available as a property function")
    raise EvaluationProblem("MSB4212", f"the type {quoted(written)} is not available to property functions")


def _list_item(call: Call, arguments: Sequence[FunctionValue]) -> FunctionValue:
    values = call.receiver
    if not isinstance(values, list) or len(arguments) != 1:
        raise NoSuchFunction("an index takes one number")
    place = integer(arguments[0])
    if not 0 <= place < len(values):
        raise FunctionFailed(f"there is no part {place} of {len(values)}")
    return values[place]


def _list_length(call: Call, _: Sequence[FunctionValue]) -> FunctionValue:
    return len(call.receiver) if isinstance(call.receiver, list) else 0


def _version_part(place: int) -> Function:
    def part(call: Call, _: Sequence[FunctionValue]) -> FunctionValue:
        version = call.receiver
        # .NET gives -1 for a part that was not written.
        return version[place] if isinstance(version, Version) and place < len(version) else -1

    return part


def _version_text(call: Call, arguments: Sequence[FunctionValue]) -> FunctionValue:
    version = call.receiver
    if not isinstance(version, Version) or len(arguments) > 1:
        raise NoSuchFunction("ToString takes at most one number here")
    count = integer(arguments[0]) if arguments else len(version)
    if not 0 <= count <= len(version):
        raise FunctionFailed(f"the version has no {count} parts")
    return ".".join(map(str, version[:count]))


def _scalar_text(call: Call, arguments: Sequence[FunctionValue]) -> FunctionValue:
    if arguments:
        raise NotImplementedHere  # a format
    return to_text(call.receiver)


_LIST_METHODS: dict[str, Function] = {"[]": _list_item, "getvalue": _list_item, "length": _list_length}
_VERSION_METHODS: dict[str, Function] = {
    "major": _version_part(0),
    "minor": _version_part(1),
    "build": _version_part(2),
    "revision": _version_part(3),
    "tostring": _version_text,
}
_SCALAR_METHODS: dict[str, Function] = {"tostring": _scalar_text, "equals": strings.METHODS["equals"]}
