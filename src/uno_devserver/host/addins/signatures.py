"""The JSON schema of a function's arguments, and their check before the function is called.

Schema and check come from the same msgspec type, made from the annotations, so they cannot disagree. A type without a
schema is refused when the function is registered, not when it is called.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import msgspec

from ...protocol.service import Call
from ...system.values import Value
from .content import as_path, path_schema, plain
from .context import Context, context_of
from .invocation import CallTarget, invoke

ALLOWED = "str, int, float, bool, bytes, Path, dates, Literal, Enum, lists, dicts, dataclasses, TypedDict or Struct"

# msgspec's message for a text that cannot be converted, where all arguments are given as text.
EXPECTED = re.compile(r"Expected `(int|float|int \| float|bool)(?: \| null)?`, got `str`")
UNREAD = {
    "int": "is not a whole number",
    "float": "is not a number",
    "int | float": "is not a number",
    "bool": "is neither true nor false",
}
SHOWN_CHARACTERS = 40  # how much of such a text an error shows
SHOWN_CHOICES = 20  # an error lists the values that an argument may have, unless there are more
FORM_FIELD_TYPES = ("string", "number", "integer", "boolean", "array")


class BadArguments(Exception):
    """The text is a sentence for the caller that says what is wrong with the arguments."""


class Parameter(Value):
    name: str
    type: Any
    required: bool


class Signature(Value):
    parameters: tuple[Parameter, ...]
    returns: Any  # the annotation, or `inspect.Signature.empty`
    context: str | None  # the name of the parameter that takes the Context, if there is one
    open: bool  # whether it has `**others` and so takes any further arguments
    arguments: type[msgspec.Struct]
    schema: dict[str, Any]

    def bind(self, arguments: object, context: Context, *, strict: bool = True) -> dict[str, Any]:
        """The keyword arguments of a call, converted to the declared types; BadArguments if they do not fit.

        If not strict, numbers and booleans may be given as text, as in prompts and URIs.
        """
        if arguments is None:
            arguments = {}
        try:
            values = msgspec.convert(arguments, self.arguments, strict=strict, str_keys=True, dec_hook=as_path)
        except msgspec.ValidationError as error:
            raise BadArguments(self._sentence(str(error), {} if strict else arguments)) from None
        except UnicodeEncodeError:  # raised when a number is read from a text
            raise BadArguments("The arguments are wrong: one of them contains half a surrogate pair.") from None
        assert isinstance(arguments, Mapping)
        # Only the given arguments are passed, because the function has its own defaults.
        declared = values.__struct_fields__
        bound = {name: getattr(values, name) if name in declared else value for name, value in arguments.items()}
        return bound if self.context is None else bound | {self.context: context}

    def _sentence(self, problem: str, texts: object) -> str:
        """msgspec's message as a sentence for the caller; `texts` are the arguments if all were given as text."""
        what, _, where = problem.partition(" - at ")
        path = where.removeprefix("`$").removeprefix(".").rstrip("`")
        if field := re.fullmatch(r"Object missing required field `(.*)`", what):
            return f"Argument '{_joined(path, field[1])}' is missing. {self._takes()}"
        if field := re.fullmatch(r"Object contains unknown field `(.*)`", what):
            return f"Argument '{_joined(path, field[1])}' is unknown. {self._takes()}"
        if not path:
            return f"The arguments are wrong: {what.replace('`', '')}. {self._takes()}"
        unread = EXPECTED.fullmatch(what)
        if unread and isinstance(texts, Mapping) and isinstance(texts.get(path), str):
            return f"Argument '{path}' is wrong: '{texts[path][:SHOWN_CHARACTERS]}' {UNREAD[unread[1]]}."
        expected = what[:1].lower() + what[1:].replace("`", "")
        return f"Argument '{path}' is wrong: {expected}{self._choices(path)}."

    def _takes(self) -> str:
        names = [p.name if p.required else f"{p.name} (optional)" for p in self.parameters]
        return f"It takes: {', '.join(names)}." if names else "It takes no arguments."

    def _choices(self, path: str) -> str:
        schema = self.schema["properties"].get(path, {})
        schema = self.schema.get("$defs", {}).get(schema.get("$ref", "").removeprefix("#/$defs/"), schema)
        choices = schema.get("enum", [])
        return f"; use one of {', '.join(map(repr, choices))}" if 0 < len(choices) <= SHOWN_CHOICES else ""


def signature_of(function: Callable[..., Any], names: Mapping[str, Any]) -> Signature:
    """Read a function's signature; raises TypeError, with a sentence for its author, if it cannot be offered.

    `names` are those visible where the function is registered; annotations may name types defined there.
    """
    label = label_of(function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{label} yields; return a list, or tell what happens meanwhile by ctx.progress")
    declared = inspect.signature(function)
    hints = _hints(function, label, names)
    context: str | None = None
    takes_others = False
    parameters = []
    for parameter in declared.parameters.values():
        annotation = hints.get(parameter.name, Any)
        if annotation is Context or Context in get_args(annotation):
            context = parameter.name
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_others = True
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            shown = parameter.replace(annotation=parameter.empty, default=parameter.empty)
            raise TypeError(f"{label}: '{shown}' is not supported; every argument is passed by its name")
        parameters.append(Parameter(parameter.name, annotation, parameter.default is parameter.empty))
    arguments = msgspec.defstruct(
        "Arguments",
        [(p.name, p.type) if p.required else (p.name, p.type, _optional()) for p in parameters],
        kw_only=True,
        forbid_unknown_fields=not takes_others,
    )
    schema = _described(label, parameters, arguments)
    for name, property_ in schema["properties"].items():
        _show_default(property_, declared.parameters[name].default)
    return Signature(tuple(parameters), hints.get("return", declared.empty), context, takes_others, arguments, schema)


async def call_function(
    function: Callable[..., Any],
    signature: Signature,
    arguments: object,
    call: Call,
    target: CallTarget,
    *,
    strict: bool = True,
) -> Any:
    """Check the arguments and call a function of an add-in for a client's request."""
    with context_of(call, target.addin) as context:
        return await invoke(target, function, **signature.bind(arguments, context, strict=strict))


def description_of(
    function: Callable[..., Any], name: str | None, title: str | None, description: str | None
) -> dict[str, Any]:
    """The name, title and description of a function in MCP's lists; its own name and docstring are the defaults."""
    listed: dict[str, Any] = {"name": name_of(function) if name is None else name}
    if title is not None:
        listed["title"] = title
    if text := inspect.getdoc(_unwrapped(function)) if description is None else description:
        listed["description"] = text
    return listed


def label_of(function: object) -> str:
    """The name of a function in a message for its author."""
    name = getattr(function, "__name__", None)
    return f"{name}()" if name else repr(function)


def name_of(function: Callable[..., Any]) -> str:
    """The name under which a function is offered by default."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"{label_of(function)} has no name of its own; give it one: name=...")
    return name


def object_schema(type_: Any) -> dict[str, Any] | None:
    """The schema of a type whose values are JSON objects; None for every other type."""
    try:
        schema = schema_of(type_)
    except (TypeError, NameError):  # a content block or another type without a schema
        return None
    return schema if schema.get("type") == "object" else None


def _hints(function: Callable[..., Any], label: str, names: Mapping[str, Any]) -> dict[str, Any]:
    target = _unwrapped(function)
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = type(target).__call__  # a callable object
    try:
        return get_type_hints(target, localns=dict(names), include_extras=True)
    except (NameError, TypeError) as error:
        what = _unreadable(target, names)
        raise TypeError(f"{what} of {label}: the annotation cannot be read: {error}") from None


def _unreadable(target: Any, names: Mapping[str, Any]) -> str:
    """The name, for a message, of the parameter or result whose annotation cannot be read."""
    for name, annotation in target.__annotations__.items():
        alone = SimpleNamespace(__annotations__={name: annotation}, __globals__=getattr(target, "__globals__", {}))
        try:
            get_type_hints(alone, localns=dict(names))
        except (NameError, TypeError):
            return "the result" if name == "return" else f"argument '{name}'"
    return "an argument"


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside decorators and partials."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    return function


def schema_of(type_: Any) -> dict[str, Any]:
    """msgspec's schema, with the top level inline and a type next to each enum, as clients expect."""
    (top,), definitions = msgspec.json.schema_components(
        [type_], schema_hook=path_schema, ref_template="#/$defs/{name}"
    )
    name = str(top.get("$ref", "")).removeprefix("#/$defs/")
    if name and f"#/$defs/{name}" not in str(definitions):
        top = definitions.pop(name)
    elif name:
        top = {**definitions[name]}  # the type may refer to itself, so the definition stays too
    for schema in (top, *definitions.values()):
        _tell_types(schema)
    return top | {"$defs": definitions} if definitions else top


def _described(label: str, parameters: Sequence[Parameter], arguments: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        schema = schema_of(arguments)
    except (TypeError, NameError) as error:
        what = next((f"argument '{p.name}'" for p in parameters if not _has_schema(p.type)), "an argument")
        raise TypeError(f"{what} of {label}: {_why_no_schema(error)}") from None
    del schema["title"]
    return schema


def _has_schema(type_: Any) -> bool:
    try:
        schema_of(type_)
    except (TypeError, NameError):
        return False
    return True


def _why_no_schema(error: Exception) -> str:
    if isinstance(error, NameError):
        return f"{error}; define types that use each other at the top of the file"
    reason = str(error).strip().splitlines()[-1]
    reason = re.sub(r"<class '(?:[^']*[.])?([^']*)'>", r"\1", reason)  # the class name alone
    return f"{reason}; use {ALLOWED}"


def _tell_types(schema: Any) -> None:
    if isinstance(schema, list):
        for item in schema:
            _tell_types(item)
    elif isinstance(schema, dict):
        choices = schema.get("enum")
        if isinstance(choices, list) and all(isinstance(choice, str) for choice in choices):
            schema.setdefault("type", "string")
        if schema.get("required") == []:
            del schema["required"]  # an absent list means the same; some validators reject an empty one
        for item in schema.values():
            _tell_types(item)


def _show_default(property_: dict[str, Any], default: Any) -> None:
    if default is inspect.Parameter.empty:
        return
    try:
        property_["default"] = plain(default)
    except TypeError:  # the default has no JSON form; the schema only shows that the argument is optional
        pass


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _optional() -> Any:
    """A field that may be absent; its default is never read, because the function has its own."""
    return msgspec.field(default_factory=lambda: None)


def form_schema(type_: type) -> dict[str, Any]:
    """The schema of a form for elicitation; TypeError if the type is not flat."""
    schema = schema_of(type_)
    if schema.get("type") != "object":
        raise TypeError(f"{type_.__name__} cannot be asked for: a form is a Struct, dataclass or TypedDict")
    definitions = schema.get("$defs", {})
    properties = {name: _field(name, field, definitions) for name, field in schema["properties"].items()}
    form: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in schema:
        form["required"] = schema["required"]
    return form


def _field(name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:  # optional
        variants = [variant for variant in schema["anyOf"] if variant.get("type") != "null"]
        schema = variants[0] | {"anyOf": None} if len(variants) == 1 else schema
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")] | schema
    field = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf") and value is not None}
    if field.get("type") not in FORM_FIELD_TYPES:
        raise TypeError(f"field '{name}' cannot be asked for: a form has text, numbers, yes/no and choices only")
    return field
