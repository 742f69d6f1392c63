"""The JSON inside a frame, as System.Text.Json reads and writes it.

Reading ignores the case of member names and refuses a member of the wrong type with a `MessageProblem` that names it.
Writing gives .NET's very characters: no spaces, members in the order given, everything outside ASCII by number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from ...system.dotnet_formats import quoted


class MessageProblem(Exception):
    """The content of a frame is not what its name promises; says why."""


class Members:
    """A JSON object whose members are asked for by name and type; an absent one has the default."""

    def __init__(self, members: Mapping[str, object]) -> None:
        self._members = {name.lower(): value for name, value in members.items()}

    def text(self, name: str) -> str | None:
        value = self._members.get(name.lower())
        if value is None or isinstance(value, str):
            return value
        raise MessageProblem(f"{name} is not a text")

    def flag(self, name: str) -> bool:
        value = self._members.get(name.lower(), False)
        if isinstance(value, bool):
            return value
        raise MessageProblem(f"{name} is neither true nor false")

    def number(self, name: str) -> int | None:
        """A whole number; None only when the member is absent."""
        if name.lower() not in self._members:
            return None
        value = self._members[name.lower()]
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise MessageProblem(f"{name} is not a whole number")

    def objects(self, name: str) -> tuple[Members, ...]:
        value = self._members.get(name.lower(), [])
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return tuple(Members(item) for item in value)
        raise MessageProblem(f"{name} is not a list of objects")


def read(content: str) -> object:
    """The value of a frame's content."""
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise MessageProblem(f"it is not JSON: {error}") from error
    except (RecursionError, UnicodeEncodeError) as error:
        raise MessageProblem("it is nested too deeply, or not text") from error


def read_members(content: str) -> Members:
    value = read(content)
    if isinstance(value, dict):
        return Members(value)
    raise MessageProblem("it is not a JSON object")


def write(value: object) -> str:
    """The JSON of a value made of JSON's types; TypeError or ValueError when it has no such form."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return int.__repr__(value)  # also of an enum
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON form")
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quoted(str(name))}:{write(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return "[" + ",".join(map(write, value)) + "]"
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")
