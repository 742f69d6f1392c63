"""`.devtools/host.config.jsonc`: what a workspace says about its server.

Reading never raises. What is wrong is an issue that names the place inside the file, and the default counts there.
"""

from __future__ import annotations

from ..issues import Issue, warning
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.values import Value

MAX_BYTES = 1024 * 1024  # a page in real life


class Config(Value):
    wait_calls: bool = False  # hold calls until the upstream is ready, instead of answering that it is not
    issues: tuple[Issue, ...] = ()


class _Field(Value):
    path: tuple[str, ...]
    name: str  # in Config
    kind: type
    expected: str  # "must be …"


# All that is read of the file; what is not here belongs to somebody else.
_FIELDS = (_Field(("proxy", "waitCalls"), "wait_calls", bool, "true or false"),)


def read_config(path: str | None) -> Config:
    """The config in this file; the defaults where there is none."""
    if path is None:
        return Config()
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return Config()
    except FileProblem as problem:
        return _invalid(f"{path} cannot be read: {problem.reason}.")
    except JsonProblem as problem:
        where = f"line {problem.line}, column {problem.column}"
        return _invalid(f"{path} is not valid JSON: {where}: {problem.reason}.")
    values: dict[str, object] = {}
    issues: dict[Issue, None] = {}  # fields share the objects around them
    for field in _FIELDS:
        try:
            value = _value(document, field)
        except ValueError as error:
            issues[warning("ConfigInvalid", f"{path}: {error}.")] = None
            continue
        if value is not None:
            values[field.name] = value
    return Config(**values, issues=tuple(issues))  # type: ignore[arg-type]  # the kinds were checked


def _invalid(message: str) -> Config:
    return Config(issues=(warning("ConfigInvalid", message),))


def _value(document: object, field: _Field) -> object | None:
    """The value of a field; None where it is not given. ValueError says which part of the way is wrong, and how."""
    value = document
    for depth, name in enumerate(field.path):
        if not isinstance(value, dict):
            raise ValueError(f"{'.'.join(field.path[:depth]) or 'it'} must be an object")
        if name not in value:
            return None
        value = value[name]
    if type(value) is not field.kind:
        raise ValueError(f"{'.'.join(field.path)} must be {field.expected}")
    return value
