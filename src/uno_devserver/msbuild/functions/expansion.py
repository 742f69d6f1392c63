"""Expands property functions such as $(Name.Replace('a', 'b')) and $([System.IO.Path]::Combine(...)).

The text is parsed exactly as MSBuild does. The result of a function is unknown if an argument is unknown, or if the
function is not implemented here; in the second case the expression is noted.
"""

from __future__ import annotations

from ..expressions import GUESS, MAX_TEXT, UNKNOWN, EvaluationScope, escape, guessed, too_long, unescape
from ..paths import WINDOWS, to_slashes
from ..problems import LIMIT, UNSUPPORTED, EvaluationProblem, quoted
from ..validation import is_valid_name, words
from . import dotnet_functions, msbuild_functions, string_methods
from .calls import (
    FunctionCall,
    FunctionFailed,
    FunctionValue,
    NoSuchFunction,
    NotImplementedHere,
    SystemVersion,
    integer,
    to_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .calls import Function


# Calls inside arguments of calls. Python's stack has about a thousand frames; real files nest three or four calls.
MAX_NESTING = 30

_QUOTES = "'`\""
_PATH_TYPES = ("system.io.path", "system.io.file", "system.io.directory")
# These return escaped text; the results of all other functions are escaped afterwards.
_ESCAPING_FUNCTIONS = ("escape", "unescape", "convertfrombase64")


def expand(text: str, scope: EvaluationScope) -> str:
    """The text with all $(...) replaced."""
    return scope.checked(to_text(_expand(text, scope, 0)))


def _expand(text: str, scope: EvaluationScope, depth: int) -> FunctionValue:
    """Like `expand`, but the value of a text that is a single reference keeps its type."""
    if depth > MAX_NESTING:
        raise EvaluationProblem(LIMIT, f"functions are nested more than {MAX_NESTING} deep: {text[:60]!r}")
    found: list[FunctionValue] = []
    position = 0
    while (start := text.find("$(", position)) >= 0:
        if start > position:
            found.append(text[position:start])
        end, has_functions = _closing_parenthesis(text, start + 2)
        if end < 0:
            # An unclosed reference is text.
            found.append(text[start:])
            position = len(text)
            break
        body = text[start + 2 : end]
        found.append(_value_of(body, scope, depth) if has_functions else scope.lookup(body))
        position = end + 1
    if position < len(text):
        found.append(text[position:])
    if len(found) == 1:
        return found[0]
    texts = [to_text(part) for part in found]
    if sum(map(len, texts)) > MAX_TEXT:
        raise too_long(text)
    return "".join(texts)


def _closing_parenthesis(text: str, position: int) -> tuple[int, bool]:
    """Finds the end of the parenthesis before `position` (-1: none), and whether it may contain a function."""
    depth = 1
    has_functions = False
    while position < len(text):
        character = text[position]
        if character in _QUOTES:
            position = text.find(character, position + 1)
            if position < 0:
                return -1, False
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return position, has_functions
        elif character in ".[$:":
            has_functions = True
        position += 1
    return -1, False


def _value_of(body: str, scope: EvaluationScope, depth: int) -> FunctionValue:
    """The value of the text between $( and ): a chain of function calls, or a property name."""
    if body[:9].lower() == "registry:":
        return _unimplemented(body, scope) if WINDOWS else ""
    if not set(body) & set(".[$"):
        return scope.lookup(body)
    value: FunctionValue = None
    is_guess = False
    rest = body.strip()
    while rest:
        step = _parse_step(rest, value)
        if step.receiver:
            value = scope.lookup(step.receiver)
        if step.method:
            arguments = [None if raw is None else _expand(raw, scope, depth + 1) for raw in step.arguments]
            marked = [each for each in (value, *arguments) if isinstance(each, str)]
            if any(UNKNOWN in scope.checked(each) for each in marked):
                return UNKNOWN
            is_guess = is_guess or any(GUESS in each for each in marked)
            value = _invoke(step, value, arguments, scope)
            if value == UNKNOWN:
                return UNKNOWN
        rest = step.rest
    return guessed(to_text(value)) if is_guess else value


class _Step:
    """One call in a chain: its property or type, the method, and the text after the call."""

    __slots__ = ("arguments", "expression", "method", "receiver", "rest", "type_name")

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.receiver = ""
        self.type_name = ""
        self.method = ""
        self.arguments: list[str | None] = []
        self.rest = ""

    def problem(self, code: str, reason: str) -> EvaluationProblem:
        return EvaluationProblem(code, f'the expression "{self.expression[:200]}" cannot be evaluated: {reason}')


def _parse_step(text: str, value: FunctionValue) -> _Step:
    step = _Step(text)
    opening = text.find("(")
    root = text if opening < 0 else text[:opening]
    if "." not in text and text[0] != "[":
        _parse_indexed_property(step, value)
    elif value is None and root[:1] == "[":
        end = root.find("]")
        if end < 1 or root[end + 1 : end + 3] != "::" or len(root) <= end + 3:
            raise step.problem("MSB4186", "a static function is written [Type]::Name(...)")
        step.type_name = root[1:end]
        _parse_method(step, end + 3, opening)
    elif text[0] == "[":
        end = text.find("]")
        if end < 1:
            raise step.problem("MSB4184", "a square bracket is not closed")
        step.method = "[]"
        step.arguments = _arguments(step, text[1:end])
        step.rest = text[end + 1 :]
    else:
        dot = root.find(".")
        step.receiver = root[:dot].strip()
        if dot < 0 or (value is None and not is_valid_name(step.receiver)):
            raise step.problem("MSB4184", "a property name is expected before the dot")
        _parse_method(step, dot + 1, opening)
    return step


def _parse_indexed_property(step: _Step, value: FunctionValue) -> None:
    name, bracket, _ = step.expression.partition("[")
    if value is not None or not bracket or "]" not in step.expression:
        raise step.problem("MSB4184", "it is neither a property nor a function")
    step.receiver = name
    step.rest = step.expression[len(name) :]


def _parse_method(step: _Step, start: int, opening: int) -> None:
    text = step.expression
    if opening >= 0 and "." not in text[start:opening]:
        step.method = text[start:opening].strip()
        end, _ = _closing_parenthesis(text, opening + 1)
        if end < 0:
            raise step.problem("MSB4184", "a parenthesis is not closed")
        content = text[opening + 1 : end]
        step.arguments = _arguments(step, content) if content else []
        step.rest = text[end + 1 :].strip()
    else:
        ends = [place for place in (text.find(".", start), text.find("[", start)) if place >= 0]
        end = min(ends, default=len(text))
        step.method = text[start:end].strip()
        step.rest = text[end:].strip()
    if not step.method or (step.rest and step.rest[0] not in ".["):
        raise step.problem("MSB4184", "a function is expected")


def _arguments(step: _Step, content: str) -> list[str | None]:
    """The arguments of a call, unquoted and not yet expanded; None stands for null."""
    found: list[str | None] = []
    start = position = 0
    while position < len(content):
        character = content[position]
        if character in _QUOTES:
            position = content.find(character, position + 1)
        elif content.startswith("$(", position):
            position, _ = _closing_parenthesis(content, position + 2)
        elif character == ",":
            found.append(_unquoted(content[start:position]))
            start = position + 1
        if position < 0:
            raise step.problem("MSB4184", "a quote or parenthesis in its arguments is not closed")
        position += 1
    found.append(_unquoted(content[start:]))
    return found


def _unquoted(argument: str) -> str | None:
    argument = argument.strip()
    if argument.lower() == "null":
        return None
    if argument and argument[0] in _QUOTES and argument[-1] == argument[0]:
        return argument.strip(argument[0])
    return argument


def _invoke(
    step: _Step, receiver: FunctionValue, arguments: list[FunctionValue], scope: EvaluationScope
) -> FunctionValue:

    is_path = step.type_name.lower() in _PATH_TYPES
    plain = [_plain(argument, is_path) for argument in arguments]
    call = FunctionCall(_plain(receiver, False), scope)
    try:
        result = find_member(step.type_name, call.receiver, step.method)(call, plain)
    except FunctionFailed as failure:
        raise step.problem("MSB4184", str(failure)) from None
    except NoSuchFunction as failure:
        raise step.problem("MSB4186" if "::" in step.expression else "MSB4184", str(failure)) from None
    except NotImplementedHere:
        return _unimplemented(step.expression, scope)
    if isinstance(result, str) and not (step.type_name and step.method.lower() in _ESCAPING_FUNCTIONS):
        return escape(result)
    return result


def _plain(value: FunctionValue, is_path: bool) -> FunctionValue:
    """Removes marks and escapes from an argument."""
    if not isinstance(value, str):
        return value
    value = value.replace(GUESS, "")
    return unescape(to_slashes(value) if is_path else value)


def _unimplemented(expression: str, scope: EvaluationScope) -> str:
    if not scope.three_valued:
        message = f'the expression "{expression[:200]}" uses a function that this evaluator does not have'
        raise EvaluationProblem(UNSUPPORTED, message)
    scope.unsupported.append((f"$({expression})", scope.file_values.get("msbuildthisfilefullpath", "")))
    return UNKNOWN


# All static members of these types may be called.
_OPEN_TYPES = words(
    "system.byte system.char system.convert system.datetime system.datetimeoffset system.decimal system.double "
    "system.enum system.guid system.int16 system.int32 system.int64 system.io.path system.math system.operatingsystem "
    "system.sbyte system.single system.string system.stringcomparer system.timespan system.uint16 system.uint32 "
    "system.uint64 system.version system.text.regularexpressions.regex system.uri system.uribuilder "
    "system.runtime.interopservices.architecture system.runtime.interopservices.osplatform "
    "system.runtime.interopservices.runtimeinformation microsoft.build.utilities.toollocationhelper"
)
# Only some members of these types may be called.
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
        found = string_methods.METHODS.get(method.lower())
        if found is None and method.lower() in string_methods.OTHER_METHODS:
            raise NotImplementedHere
    elif isinstance(receiver, list):
        found = _LIST_METHODS.get(method.lower())
    elif isinstance(receiver, SystemVersion):
        found = _VERSION_METHODS.get(method.lower())
    else:
        found = _SCALAR_METHODS.get(method.lower())
    if found is None:
        if isinstance(receiver, str):
            raise NoSuchFunction(f"text has no {method}")
        raise NotImplementedHere
    return found


def _static_member(type_name: str, method: str, written: str) -> Function:
    found = (
        msbuild_functions.FUNCTIONS.get(method)
        if type_name == "msbuild"
        else dotnet_functions.FUNCTIONS.get((type_name, method))
    )
    if found is not None:
        return found
    if type_name == "msbuild":
        if method in msbuild_functions.OTHER_FUNCTIONS:
            raise NotImplementedHere
        raise NoSuchFunction(f"[MSBuild] has no {method}")
    if type_name in _OPEN_TYPES:
        raise NotImplementedHere
    if type_name in _PARTLY_OPEN_TYPES:
        if method in _PARTLY_OPEN_TYPES[type_name]:
            raise NotImplementedHere
        raise EvaluationProblem("MSB4185", f"[{written}]::{method} is not available as a property function")
    raise EvaluationProblem("MSB4212", f"the type {quoted(written)} is not available to property functions")


def _list_item(call: FunctionCall, arguments: Sequence[FunctionValue]) -> FunctionValue:
    values = call.receiver
    if not isinstance(values, list) or len(arguments) != 1:
        raise NoSuchFunction("an index takes one number")
    place = integer(arguments[0])
    if not 0 <= place < len(values):
        raise FunctionFailed(f"there is no part {place} of {len(values)}")
    return values[place]


def _list_length(call: FunctionCall, _: Sequence[FunctionValue]) -> FunctionValue:
    return len(call.receiver) if isinstance(call.receiver, list) else 0


def _version_part(place: int) -> Function:
    def part(call: FunctionCall, _: Sequence[FunctionValue]) -> FunctionValue:
        version = call.receiver
        # .NET returns -1 for a missing part.
        return version[place] if isinstance(version, SystemVersion) and place < len(version) else -1

    return part


def _version_text(call: FunctionCall, arguments: Sequence[FunctionValue]) -> FunctionValue:
    version = call.receiver
    if not isinstance(version, SystemVersion) or len(arguments) > 1:
        raise NoSuchFunction("ToString takes at most one number here")
    count = integer(arguments[0]) if arguments else len(version)
    if not 0 <= count <= len(version):
        raise FunctionFailed(f"the version has no {count} parts")
    return ".".join(map(str, version[:count]))


def _scalar_text(call: FunctionCall, arguments: Sequence[FunctionValue]) -> FunctionValue:
    if arguments:
        raise NotImplementedHere  # a format is given
    return to_text(call.receiver)


_LIST_METHODS: dict[str, Function] = {"[]": _list_item, "getvalue": _list_item, "length": _list_length}
_VERSION_METHODS: dict[str, Function] = {
    "major": _version_part(0),
    "minor": _version_part(1),
    "build": _version_part(2),
    "revision": _version_part(3),
    "tostring": _version_text,
}
_SCALAR_METHODS: dict[str, Function] = {"tostring": _scalar_text, "equals": string_methods.METHODS["equals"]}
