"""Records calls for the inspector page: their states, their times, and short texts of arguments and results.

Calls are recorded only while a page is open, and recording never changes their outcome. The last calls and all that are
under way are kept. Any message has a text, which is bounded in length and in the time that it takes; a text that was
cut ends with `…`. Binary content is named with its size.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ...protocol.jsonrpc import RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator

    from ...protocol.parties import ClientInfo
    from ...protocol.service import Call, Params, Result

    Answering = Coroutine[Any, Any, Result | msgspec.Raw]


REMEMBERED = 200  # calls
TELL_SECONDS = 0.05  # changes within that time are told at once: people see no difference
BARELY_SECONDS = 0.001  # a call that waits is known to wait within that time, and has not run before
LONGEST_CLIENT = 100  # characters
LONGEST_NAME = 200
MOST_CHARACTERS = 2000  # of a text
MOST_BYTES = 8 * 1024 * 1024  # of a result that is decoded; that takes 20 ms, in the loop that also relays calls
CUT = "…"
UNSHOWN = "[JSON that cannot be shown]"

QUEUED, RUNNING, RESTARTING = "queued", "running", "restarting"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"

_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_WITH_ARGUMENTS = frozenset({"tools/call", "prompts/get"})

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value_at = json.JSONDecoder().raw_decode
_between = re.compile(r"[\s,]*").match


class Observer(Protocol):
    """Follows calls, in the engine's loop. It ignores calls that it does not follow."""

    def begin(self, method: str, name: str, client: ClientInfo, params: msgspec.Raw) -> Record:
        """Follow a relayed call; its outcome is reported to the record."""

    def follow(self, call: Call, answering: Awaitable[Result | msgspec.Raw]) -> Answering:
        """The outcome of `answering`, unchanged."""

    def waits(self, call: Call, why: str, *, restarting: bool = False) -> None:
        """The call does not run for now. `restarting`: because the server is being replaced."""

    def goes_on(self, call: Call) -> None:
        """The call runs."""


class Recorder:
    """Calls `tell` with the document of each call that has changed, while `live`. Implements `Observer`."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._last_id = 0
        self._under_way: dict[object, Record] = {}  # by the call; that of a relayed one by itself
        self._ended: deque[Record] = deque(maxlen=REMEMBERED)
        self._changed: dict[int, Record] = {}  # to be told
        self._timer: asyncio.TimerHandle | None = None

    @property
    def live(self) -> bool:
        return self._live

    @live.setter
    def live(self, wanted: bool) -> None:
        self._live = wanted
        if not wanted and self._timer is not None:
            self._timer.cancel()
            self._tell_changed()

    def documents(self) -> list[dict[str, Any]]:
        """The last calls, newest last; all that are under way are among them."""
        room = max(0, REMEMBERED - len(self._under_way))
        ended = list(self._ended)[-room:] if room else []
        records = sorted([*ended, *self._under_way.values()], key=lambda record: record.id)
        return [record.document(self._loop.time()) for record in records]

    def begin(self, method: str, name: str, client: ClientInfo, params: msgspec.Raw) -> Record:
        record = self._new_record(method, cut(name, LONGEST_NAME), client, params)
        self._under_way[record] = record
        return record

    async def follow(self, call: Call, answering: Awaitable[Result | msgspec.Raw]) -> Result | msgspec.Raw:
        name = name_of(call.method, call.params)
        self._under_way[call] = record = self._new_record(call.method, name, call.session.client, call.params)
        try:
            result = await answering
        except RpcError as error:
            self.end(call, record, FAILED, _error_text(error))
            raise
        except asyncio.CancelledError:
            self.end(call, record, CANCELLED if _is_cancelled() else FAILED, "")
            raise
        except BaseException as error:
            self.end(call, record, FAILED, f"The proxy failed: {type(error).__name__}. Its log says more.")
            raise
        self.end(call, record, RESTARTING if record.state == RESTARTING else DONE, result)
        return result

    def waits(self, call: Call, why: str, *, restarting: bool = False) -> None:
        self._move(call, RESTARTING if restarting else QUEUED, why)

    def goes_on(self, call: Call) -> None:
        self._move(call, RUNNING, "")

    def forget(self, record: Record) -> None:
        self._under_way.pop(record, None)
        self._changed.pop(record.id, None)

    def end(self, call: object, record: Record, state: str, outcome: str | Result | msgspec.Raw) -> None:
        del self._under_way[call]
        record.end(state, outcome, self._loop.time())
        self._ended.append(record)
        self._tell_soon(record)

    def _new_record(self, method: str, name: str | None, client: ClientInfo, params: Params | msgspec.Raw) -> Record:
        self._last_id += 1
        record = Record(self, self._last_id, method, name, client, params, self._loop.time())
        self._tell_soon(record)
        return record

    def _move(self, call: Call, state: str, why: str) -> None:
        record = self._under_way.get(call)
        if record is not None and (record.state, record.why) != (state, why):
            record.move(state, why, self._loop.time())
            self._tell_soon(record)

    def _tell_soon(self, record: Record) -> None:
        if not self._live:
            record.shorten()
            return
        self._changed[record.id] = record
        if self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_changed)

    def _tell_changed(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, {}
        now = self._loop.time()
        for record in islice(changed.values(), max(0, len(changed) - REMEMBERED), None):  # the page keeps no more
            self._tell(record.document(now))


class Record:
    """One call. Its texts are made when they are first told, so that the call itself is not delayed."""

    def __init__(
        self,
        recorder: Recorder,
        number: int,
        method: str,
        name: str | None,
        client: ClientInfo,
        params: Params | msgspec.Raw,
        now: float,
    ) -> None:
        self._recorder = recorder
        self.id = number
        self.method = method
        self.name = name
        self._client = client
        self.at = time.time()
        self.state = RUNNING
        self.why = ""
        self._since = now  # when it came into this state
        self._waited = 0.0
        self._ran: float | None = None  # None: it was never run
        self._total: float | None = None  # None: it is under way
        self._arguments: str | Params | msgspec.Raw = params
        self._outcome: str | Result | msgspec.Raw = ""

    # The outcome of a relayed call.

    def end_with(self, result: msgspec.Raw) -> None:
        self._recorder.end(self, self, DONE, result)

    def cancel(self) -> None:
        self._recorder.end(self, self, CANCELLED, "")

    def fail(self, error: RpcError) -> None:
        self._recorder.end(self, self, FAILED, _error_text(error))

    def forget(self) -> None:
        """Drop this record: the call is followed under another from now on."""
        self._recorder.forget(self)

    # What the recorder uses.

    def move(self, state: str, why: str, now: float) -> None:
        before = self._ran
        self._waited, self._ran = self._times(now)
        if before is None and state in (QUEUED, RESTARTING) and now - self._since < BARELY_SECONDS:
            self._ran = None
        self._since = now
        self.state, self.why = state, why

    def end(self, state: str, outcome: str | Result | msgspec.Raw, now: float) -> None:
        if state == DONE and self.state == RUNNING:  # as a rule, and then quickly
            self._ran = (self._ran or 0.0) + now - self._since
            self._total = self._waited + self._ran
            self.state, self._outcome = state, outcome
            return
        self.move(state, self.why if state == RESTARTING else "", now)
        if state == RESTARTING:  # it was answered without being run: all of its time was waiting
            self._waited, self._ran = self._waited + (self._ran or 0.0), None
        self._total = self._waited + (self._ran or 0.0)
        self._outcome = outcome

    def shorten(self) -> None:
        """Replace arguments and outcome by their texts."""
        if not isinstance(self._arguments, str):
            self._arguments = arguments_of(self.method, self._arguments)
        if not isinstance(self._outcome, str):
            is_error, self._outcome = outcome_of(self._outcome)
            if is_error and self.state == DONE:
                self.state = FAILED

    def document(self, now: float) -> dict[str, Any]:
        self.shorten()
        waited, ran = self._times(now)
        return {
            "id": self.id,
            "method": cut(self.method, LONGEST_CLIENT),
            "name": self.name,
            "client": cut(self._client.name or "unknown", LONGEST_CLIENT),
            "state": self.state,
            "why": self.why,
            "at": self.at,
            "queuedMs": _ms(waited),
            "runningMs": None if ran is None else _ms(ran),
            "totalMs": None if self._total is None else _ms(self._total),
            "arguments": self._arguments,
            "outcome": self._outcome,
        }

    def _times(self, now: float) -> tuple[float, float | None]:
        """How long it has waited, and run, until now."""
        if self._total is not None:
            return self._waited, self._ran
        spent = now - self._since
        if self.state != RUNNING:
            return self._waited + spent, self._ran
        return self._waited, (self._ran or 0.0) + spent


def _is_cancelled() -> bool:
    """Whether the task of the call was cancelled, and not something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _error_text(error: RpcError) -> str:
    return f"{error.message} ({error.code})"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


# Texts.


def name_of(method: str, params: Params) -> str | None:
    """The tool, the prompt or the resource."""
    name = params.get(_NAMED_BY.get(method, ""))
    return cut(name, LONGEST_NAME) if isinstance(name, str) else None


def arguments_of(method: str, given: Params | msgspec.Raw) -> str:
    """The arguments as JSON; empty if there are none besides the name."""
    try:
        params = msgspec.json.decode(given) if isinstance(given, msgspec.Raw) else given
        if method in _WITH_ARGUMENTS:
            arguments = _decoded(params.get("arguments"))
        else:
            arguments = {name: value for name, value in params.items() if name not in ("_meta", _NAMED_BY.get(method))}
    except (ValueError, RecursionError):  # JSON that the server may accept, but msgspec does not: 1e400
        return UNSHOWN
    return short_json(arguments) if arguments else ""


def outcome_of(result: Result | msgspec.Raw) -> tuple[bool, str]:
    """Whether the result says that it is an error, and its text."""
    opened: dict[str, Any]
    try:
        if not isinstance(result, msgspec.Raw):
            opened = result
        elif (size := len(memoryview(result))) <= MOST_BYTES:
            opened = _members(result)
        else:
            return False, f"[{_size(size)}, which is too much to show]"
        return _decoded(opened.get("isError")) is True, cut(_result_text(opened))
    except (ValueError, RecursionError):  # JSON that clients may accept, but this reader does not
        return False, UNSHOWN


def _result_text(result: dict[str, Any]) -> str:
    for member, show in (("content", _content), ("contents", _content), ("messages", _message)):
        if text := _joined(_listed(result.get(member)), show):
            return text
    others = {name: value for name, value in result.items() if name not in ("content", "_meta", "isError")}
    if not others:
        return ""
    shown = islice(others.items(), MOST_CHARACTERS)  # each has more than one character
    return f"{{{', '.join(f'{short_json(name)}: {_member_text(value)}' for name, value in shown)}}}"


def _member_text(value: object) -> str:
    """Undecoded JSON is not read to its end: only its beginning is shown."""
    if isinstance(value, msgspec.Raw):
        return bytes(memoryview(value)[: 4 * MOST_CHARACTERS]).decode("utf-8", "replace")  # 4 bytes at most for each
    return short_json(value)


def _listed(value: object) -> Iterable[object]:
    if isinstance(value, msgspec.Raw):
        return _items(bytes(memoryview(value)).decode()) if bytes(memoryview(value)[:1]) == b"[" else ()
    return value if isinstance(value, list) else ()


def _items(text: str) -> Iterator[object]:
    """The items of a JSON array, each decoded when it is needed: of thousands only the first are shown."""
    position = 1
    while (gap := _between(text, position)) and not text.startswith("]", gap.end()):
        item, position = _value_at(text, gap.end())
        yield item


def _joined(items: Iterable[object], show: Callable[[object], str]) -> str:
    texts: list[str] = []
    characters = 0
    for item in items:
        if characters > MOST_CHARACTERS:
            break
        texts.append(show(_decoded(item)))
        characters += len(texts[-1]) + 1
    return "\n".join(texts)


def _message(message: object) -> str:
    """A message of a prompt."""
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
        return f"[{cut(str(kind), LONGEST_NAME)}, {_size(len(binary) * 3 // 4)}]"  # base64
    return short_json(item)


def short_json(value: object) -> str:
    """The value as JSON, cut; what is not shown is not looked at, however large it is."""
    try:
        return cut(json.dumps(_Trimmer().trimmed(value), ensure_ascii=False, default=str))
    except (RecursionError, ValueError):  # nested deeper, or with longer numbers, than this can follow
        return UNSHOWN


class _Trimmer:
    """Takes the first parts of a value; what it leaves out would stand behind the last character shown."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS

    def trimmed(self, value: object) -> object:
        self._left -= 1
        value = _decoded(value)
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


def _decoded(value: object) -> object:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MB"
