"""What a call was given and what it was answered, as short texts for people who look on. Pure, and bounded in time.

Whatever a client or a server sends, there is a text; one that was cut ends with `…`. What is no text (pictures, sounds,
files) is named with its size, and not shown.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...protocol.service import Params, Result

MOST_CHARACTERS = 2000
MOST_BYTES = 8 * 1024 * 1024  # of a result that is opened; that takes 20 ms, in the loop that also relays calls
CUT = "…"
UNSHOWN = "[JSON that cannot be shown]"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_WITH_ARGUMENTS = frozenset({"tools/call", "prompts/get"})
_LONGEST_NAME = 200

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value_at = json.JSONDecoder().raw_decode
_between = re.compile(r"[\s,]*").match


def name_of(method: str, params: Params) -> str | None:
    """The tool, the prompt or the resource."""
    name = params.get(_NAMED_BY.get(method, ""))
    return cut(name, _LONGEST_NAME) if isinstance(name, str) else None


def arguments_of(method: str, params: Params) -> str:
    """As JSON; empty where there are none beside the name."""
    given: object
    if method in _WITH_ARGUMENTS:
        given = params.get("arguments")
    else:
        given = {name: value for name, value in params.items() if name not in ("_meta", _NAMED_BY.get(method))}
    return short_json(given) if given else ""


def outcome_of(result: Result | msgspec.Raw) -> tuple[bool, str]:
    """Whether it is an error by its own account, and its text."""
    try:
        opened = _opened(result)
        if opened is None:
            size = len(memoryview(result)) if isinstance(result, msgspec.Raw) else 0
            return False, f"[{_size(size)}, which is too much to show]"
        return _plain(opened.get("isError")) is True, cut(_text(opened))
    except (ValueError, RecursionError):  # valid for others, but not for this reader
        return False, UNSHOWN


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


def short_json(value: object) -> str:
    """Nothing beyond what is shown is looked at, however large it is."""
    try:
        return cut(json.dumps(_Trimming().trimmed(value), ensure_ascii=False, default=str))
    except RecursionError:  # clients can send what is nested deeper than this can follow
        return UNSHOWN


class _Trimming:
    """Takes of a value what comes first; what has been left out would have stood behind the last character shown."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS

    def trimmed(self, value: object) -> object:
        self._left -= 1
        value = _plain(value)
        if isinstance(value, str):
            self._left -= len(value)
            return value[:MOST_CHARACTERS]
        if isinstance(value, dict):
            return dict(self._entries(value))
        return list(self._elements(value)) if isinstance(value, list | tuple) else value

    def _entries(self, value: dict[Any, object]) -> Iterator[tuple[str, object]]:
        for name, each in value.items():
            if self._left <= 0:
                return
            self._left -= len(str(name))
            yield str(name)[:MOST_CHARACTERS], self.trimmed(each)

    def _elements(self, value: list[object] | tuple[object, ...]) -> Iterator[object]:
        for each in value:
            if self._left <= 0:
                return
            yield self.trimmed(each)


def _opened(result: Result | msgspec.Raw) -> dict[str, Any] | None:
    """Its members; None: it has too many bytes for that."""
    if isinstance(result, msgspec.Raw):
        return _members(result) if len(memoryview(result)) <= MOST_BYTES else None
    return result


def _text(result: dict[str, Any]) -> str:
    for members in ("content", "contents"):
        if shown := _joined(_listed(result.get(members)), _content):
            return shown
    if shown := _joined(_listed(result.get("messages")), _message):
        return shown
    told = {name: value for name, value in result.items() if name not in ("content", "_meta", "isError")}
    return _object(told) if told else ""


def _object(members: dict[str, Any]) -> str:
    """As JSON. What is still bytes is not read to its end, for people see only the beginning."""
    shown = islice(members.items(), MOST_CHARACTERS)  # each has more than one character
    return f"{{{', '.join(f'{short_json(name)}: {_written(value)}' for name, value in shown)}}}"


def _written(value: object) -> str:
    if isinstance(value, msgspec.Raw):
        return bytes(memoryview(value)[: 4 * MOST_CHARACTERS]).decode("utf-8", "replace")  # 4 bytes at most for each
    return short_json(value)


def _joined(items: Iterable[object], show: Callable[[object], str]) -> str:
    texts: list[str] = []
    characters = 0
    for item in items:
        if characters > MOST_CHARACTERS:
            break
        texts.append(show(_plain(item)))
        characters += len(texts[-1]) + 1
    return "\n".join(texts)


def _message(message: object) -> str:
    """Of a prompt."""
    if not isinstance(message, dict):
        return short_json(message)
    return f"{message.get('role')}: {_content(message.get('content'))}"


def _content(item: object) -> str:
    if not isinstance(item, dict):
        return short_json(item)
    if isinstance(item.get("text"), str):
        return str(item["text"])
    if item.get("type") == "resource" and isinstance(item.get("resource"), dict):
        return _content(item["resource"])
    binary = item.get("data", item.get("blob"))
    if isinstance(binary, str):
        kind = item.get("mimeType") or item.get("type") or "binary"
        return f"[{cut(str(kind), _LONGEST_NAME)}, {_size(len(binary) * 3 // 4)}]"  # base64
    return short_json(item)


def _listed(value: object) -> Iterable[object]:
    if isinstance(value, msgspec.Raw):
        return _items(bytes(memoryview(value)).decode()) if bytes(memoryview(value)[:1]) == b"[" else ()
    return value if isinstance(value, list) else ()


def _items(text: str) -> Iterator[object]:
    """Of a list, each when it is asked for: of thousands only the first are shown."""
    position = 1
    while (gap := _between(text, position)) and not text.startswith("]", gap.end()):
        item, position = _value_at(text, gap.end())
        yield item


def _plain(value: object) -> object:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MB"
