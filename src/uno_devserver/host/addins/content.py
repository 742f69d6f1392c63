"""Content of tool results, resources and prompts: text, images, audio, links, files.

Text that is not valid Unicode, as in some file names, is sent with the invalid parts escaped. A value without JSON form
raises a TypeError that names its type.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...system.values import Value


class Content(Value):
    """One block of a result; the functions below create it."""

    block: dict[str, Any]


class ToolResult(Value):
    """A tool's complete result, for anything that a plain return value cannot express."""

    content: Sequence[Content | str] = ()
    structured: Mapping[str, Any] | None = None
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


class Message(Value):
    """One message of a prompt."""

    role: str
    content: Content


def text(value: str, *, annotations: Mapping[str, Any] | None = None) -> Content:
    return _block({"type": "text", "text": sendable(value)}, annotations)


def image(data: bytes, mime_type: str = "image/png", *, annotations: Mapping[str, Any] | None = None) -> Content:
    return _block({"type": "image", "data": _base64(data), "mimeType": mime_type}, annotations)


def audio(data: bytes, mime_type: str = "audio/wav", *, annotations: Mapping[str, Any] | None = None) -> Content:
    return _block({"type": "audio", "data": _base64(data), "mimeType": mime_type}, annotations)


def resource_link(
    uri: str,
    name: str,
    *,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Content:
    """A link to a resource that the client may read."""
    more = {"title": title, "description": description, "mimeType": mime_type}
    link = {"type": "resource_link", "uri": uri, "name": name}
    return _block(link | {key: value for key, value in more.items() if value is not None}, annotations)


def embedded(
    uri: str, data: str | bytes, mime_type: str | None = None, *, annotations: Mapping[str, Any] | None = None
) -> Content:
    """A resource with its contents."""
    return _block({"type": "resource", "resource": resource_contents(uri, data, mime_type)}, annotations)


def user(content: str | Content) -> Message:
    return Message("user", as_content(content))


def assistant(content: str | Content) -> Message:
    return Message("assistant", as_content(content))


def as_content(value: str | Content) -> Content:
    if isinstance(value, str):
        return text(value)
    if not isinstance(value, Content):
        raise TypeError(f"content is text, image(...) and the like, not {type(value).__name__}")
    return value


def resource_contents(uri: str, data: str | bytes, mime_type: str | None) -> dict[str, Any]:
    if isinstance(data, bytes):
        return {"uri": uri, "mimeType": mime_type or "application/octet-stream", "blob": _base64(data)}
    return {"uri": uri, "mimeType": mime_type or "text/plain", "text": sendable(data)}


def sendable(value: str) -> str:
    """The text with its lone surrogates escaped, because UTF-8 cannot encode them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def plain(value: Any) -> Any:
    """The value converted to JSON's types; TypeError if that is impossible."""
    made = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_path)
    try:
        msgspec.json.encode(made)
    except UnicodeEncodeError:
        return _all_sendable(made)
    return made


def as_json(value: Any) -> str:
    """The JSON text of a plain value."""
    return msgspec.json.encode(value).decode()


def path_schema(type_: type) -> dict[str, Any]:
    """The schema of paths, which msgspec does not support itself; NotImplementedError for other types."""
    if issubclass(type_, os.PathLike):
        return {"type": "string"}
    raise NotImplementedError


def as_path(type_: type, value: object) -> Any:
    """The text as a path of this type; TypeError if it is not a text."""
    if not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
    return type_(value)


def _all_sendable(value: Any) -> Any:
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, list):
        return [_all_sendable(item) for item in value]
    if isinstance(value, dict):
        return {sendable(key): _all_sendable(item) for key, item in value.items()}
    return value


def _plain_path(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _block(block: dict[str, Any], annotations: Mapping[str, Any] | None) -> Content:
    return Content(block if annotations is None else block | {"annotations": dict(annotations)})


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")
