"""What carries a message: its .NET type by name, and its body as JSON inside a string.

Written as .NET's serializers write it, so that .NET readers resolve the type and read the body. Read as they read it,
and more generously: names of members in any case, type names with or without assembly and version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...protocol.jsonrpc import INVALID_PARAMS, RpcError
from ...system.values import Value

NAMESPACE = "Uno.UI.RemoteControl.Messaging.IdeChannel"
# Without a version: .NET refuses a name that asks for a newer version than the one it has loaded.
ASSEMBLY = "Uno.UI.RemoteControl.Messaging"

BODY_UNREADABLE = -32000  # the code that .NET gives to whatever goes wrong inside the called method


class Message(Value):
    """A message that came in an envelope."""

    type_name: str  # the class alone, without namespace and assembly
    body: dict[str, Any]
    assembly: str  # as the sender calls it; empty when it did not say


def write(type_name: str, body: Mapping[str, Any], assembly: str = ASSEMBLY) -> dict[str, str]:
    """The envelope; a type name with a comma is taken as qualified already."""
    qualified = type_name if "," in type_name else f"{NAMESPACE}.{type_name}, {assembly}"
    return {"MessageType": qualified, "MessageBody": to_json(body)}


def read(envelope: object) -> Message:
    """The message; RpcError when it is no envelope or its body is no JSON object."""
    if not isinstance(envelope, dict):
        raise RpcError(INVALID_PARAMS, "The parameter has to be an object with MessageType and MessageBody.")
    members = {name.lower(): value for name, value in envelope.items()}
    type_name, body = members.get("messagetype"), members.get("messagebody")
    if not isinstance(type_name, str) or not isinstance(body, str):
        raise RpcError(INVALID_PARAMS, "MessageType and MessageBody of an envelope have to be texts.")
    short, assembly = parse_type(type_name)
    if not short:
        raise RpcError(INVALID_PARAMS, f"MessageType '{type_name[:100]}' names no type.")
    return Message(short, _read_body(short, body), assembly)


def parse_type(name: str) -> tuple[str, str]:
    """The class (the innermost one, without generic arguments) and the assembly of an assembly-qualified name."""
    full, _, assembly = name.partition(",")
    outer = full.partition("[")[0].strip()
    return outer.replace("+", ".").rpartition(".")[2], assembly.strip()


def _read_body(type_name: str, text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RpcError(BODY_UNREADABLE, f"The body of {type_name} is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise RpcError(BODY_UNREADABLE, f"The body of {type_name} has to be a JSON object.")
    return body


def to_json(value: object) -> str:
    """Compact JSON in Newtonsoft's characters; ValueError or TypeError for what JSON cannot hold."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for line_end in "\x85\u2028\u2029":
        text = text.replace(line_end, f"\\u{ord(line_end):04x}")
    return text
