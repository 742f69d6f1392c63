"""Records calls for the inspector page: their states, their times, and short texts of arguments and results.

Calls are recorded only while a page is open, and recording never changes their outcome. The last calls and all open
ones are kept. Texts are bounded in length and in the time to make them; one that was cut ends with `…`.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import RpcError
from ...protocol.versions import NAMED_BY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator

    from ...protocol.peer_info import ClientInfo
    from ...protocol.server.call_runner import CallAnswer
    from ...protocol.service import Call, Params, Result

    Answering = Coroutine[Any, Any, CallAnswer]


REMEMBERED = 200  # the number of calls that are kept
TELL_SECONDS = 0.05  # changes within that time are sent together
BARELY_SECONDS = 0.001  # a call that begins to wait within that time has not run before
LONGEST_CLIENT = 100  # characters
LONGEST_NAME = 200
MOST_CHARACTERS = 2000  # the longest text
MOST_BYTES = 8 * 1024 * 1024  # a longer result is not decoded: this takes 20 ms, in the loop that also relays calls
CUT = "…"
UNSHOWN = "[JSON that cannot be shown]"

QUEUED, RUNNING, RESTARTING = "queued", "running", "restarting"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value_at = json.JSONDecoder().raw_decode
_between = re.compile(r"[\s,]*").match
_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


class CallRecorder:
    """Calls `tell` with the document of each call that has changed, while `live`."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self.live = False
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self.called_at = 0.0  # when a tool was called last, by the loop's clock
        self._last_id = 0
        self._under_way: dict[object, CallRecord] = {}  # the open calls, by their keys
        self._ended: deque[CallRecord] = deque(maxlen=REMEMBERED)
        self._changed: dict[int, CallRecord] = {}  # the calls to send
        self._timer: asyncio.TimerHandle | None = None

    def documents(self) -> list[dict[str, Any]]:
        """The last calls and all that are under way, newest last."""
        surplus = max(0, len(self._ended) + len(self._under_way) - REMEMBERED)
        records = [*islice(self._ended, surplus, None), *self._under_way.values()]
        return [record.document() for record in sorted(records, key=lambda record: record.id)]

    def begin(
        self, method: str, name: str | None, client: ClientInfo, params: Params | msgspec.Raw, call: Call | None = None
    ) -> CallRecord:
        """Record a call; the caller reports the outcome to the record. `call`: the key for `waits` and `goes_on`."""
        self._last_id += 1
        key = self._last_id if call is None else call
        name = name and cut(name, LONGEST_NAME)
        now = self.now()
        self.called_at = now if method == "tools/call" else self.called_at
        record = CallRecord(self, key, self._last_id, method, name, client, params, time.time(), now)
        self._under_way[key] = record
        self._tell_soon(record)
        return record

    async def follow(self, call: Call, answering: Awaitable[CallAnswer]) -> CallAnswer:
        """Record a call, and return the outcome of `answering` unchanged."""
        name = name_of(call.method, call.params)
        record = self.begin(call.method, name, call.session.client, call.params, call)
        try:
            result = await answering
        except RpcError as error:
            record.fail(error)
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()  # if the task is not cancelled, something that it awaits was
            record.end(CANCELLED if task is not None and task.cancelling() else FAILED)
            raise
        except BaseException as error:
            record.end(FAILED, f"The proxy failed: {type(error).__name__}. Its log has the details.")
            raise
        record.end_with(result)
        return result

    def waits(self, call: Call, why: str, *, restarting: bool = False) -> None:
        """Record that the call waits; `restarting`: whether the reason is that the server is being replaced."""
        self._move(call, RESTARTING if restarting else QUEUED, why)

    def goes_on(self, call: Call) -> None:
        """Record that the call runs."""
        self._move(call, RUNNING, "")

    def forget(self, record: CallRecord) -> None:
        self._under_way.pop(record.key, None)
        self._changed.pop(record.id, None)

    def keep(self, record: CallRecord) -> None:
        """Keep the record of a call that has ended."""
        del self._under_way[record.key]
        record.key = None  # a call refers to its params, which may be large
        self._ended.append(record)
        self._tell_soon(record)

    def _move(self, call: Call, state: str, why: str) -> None:
        record = self._under_way.get(call)
        if record is not None and (record.state, record.why) != (state, why):
            record.move(state, why)
            self._tell_soon(record)

    def _tell_soon(self, record: CallRecord) -> None:
        if not self.live:
            record.shorten()
            return
        self._changed[record.id] = record
        if self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_changed)

    def _tell_changed(self) -> None:
        self._timer = None
        changed, self._changed = list(self._changed.values()), {}
        for record in changed[-REMEMBERED:]:  # pages keep no more
            self._tell(record.document())


class CallRecord(msgspec.Struct, eq=False):
    """One call. Its texts are made when they are first sent, so that the call itself is not delayed."""

    recorder: CallRecorder
    key: object  # the call, or the id of one that is relayed
    id: int
    method: str
    name: str | None
    client: ClientInfo
    arguments: str | Params | msgspec.Raw
    at: float  # when the call came, in seconds since 1970
    since: float  # when it entered this state
    state: str = RUNNING
    why: str = ""
    waited: float = 0.0
    ran: float | None = None  # None if it was never run
    ended: bool = False
    outcome: str | CallAnswer = ""

    # Outcomes.

    def end_with(self, result: CallAnswer) -> None:
        self.end(RESTARTING if self.state == RESTARTING else DONE, result)

    def fail(self, error: RpcError) -> None:
        self.end(FAILED, f"{error.message} ({error.code})")

    def cancel(self) -> None:
        self.end(CANCELLED)

    def end(self, state: str, outcome: str | CallAnswer = "") -> None:
        self.move(state, self.why if state == RESTARTING else "")
        if state == RESTARTING:  # it was answered without being run, so all of its time was waiting
            self.waited, self.ran = self.waited + (self.ran or 0.0), None
        self.ended, self.outcome = True, outcome
        self.recorder.keep(self)

    def forget(self) -> None:
        """Drop this record, because another one records the call from now on."""
        self.recorder.forget(self)

    # Used by the recorder.

    def move(self, state: str, why: str) -> None:
        now = self.recorder.now()
        barely = self.ran is None and state in (QUEUED, RESTARTING) and now - self.since < BARELY_SECONDS
        self.waited, ran = self._times(now)
        self.ran = None if barely else ran
        self.state, self.why, self.since = state, why, now

    def shorten(self) -> None:
        """Replace arguments and outcome by their texts."""
        if not isinstance(self.arguments, str):
            self.arguments = arguments_of(self.method, self.arguments)
        if not isinstance(self.outcome, str):
            is_error, self.outcome = outcome_of(self.outcome)
            if is_error and self.state == DONE:
                self.state = FAILED

    def document(self) -> dict[str, Any]:
        self.shorten()
        waited, ran = self._times(self.recorder.now())
        return {
            "id": self.id,
            "method": cut(self.method, LONGEST_CLIENT),
            "name": self.name,
            "client": cut(self.client.name or "unknown", LONGEST_CLIENT),
            "state": self.state,
            "why": self.why,
            "at": self.at,
            "queuedMs": round(waited * 1000, 3),
            "runningMs": None if ran is None else round(ran * 1000, 3),
            "totalMs": round((waited + (ran or 0.0)) * 1000, 3) if self.ended else None,
            "arguments": self.arguments,
            "outcome": self.outcome,
        }

    def _times(self, now: float) -> tuple[float, float | None]:
        """How long it has waited and run, until now or its end."""
        spent = 0.0 if self.ended else now - self.since
        if self.state == RUNNING:
            return self.waited, (self.ran or 0.0) + spent
        return self.waited + spent, self.ran


# Texts.


def name_of(method: str, params: Params) -> str | None:
    """The name of the tool or prompt, or the URI of the resource."""
    name = params.get(NAMED_BY.get(method, ""))
    return name if isinstance(name, str) else None


def arguments_of(method: str, given: Params | msgspec.Raw) -> str:
    """The arguments as JSON; "" if there are none."""
    named_by = NAMED_BY.get(method)
    try:
        params: Any = _decoded(given)
        if named_by == "name":
            arguments = _decoded(params.get("arguments"))
        else:
            arguments = {name: value for name, value in params.items() if name not in ("_meta", named_by)}
    except (ValueError, RecursionError):  # JSON that other readers may accept, but msgspec does not: 1e400
        return UNSHOWN
    return short_json(arguments) if arguments else ""


def outcome_of(result: CallAnswer) -> tuple[bool, str]:
    """Whether the result is an error, and its text."""
    try:
        if isinstance(result, msgspec.Raw):
            if (size := len(memoryview(result))) > MOST_BYTES:
                return False, f"[{_size(size)}, which is too much to show]"
            result = _members(result)
        return _decoded(result.get("isError")) is True, _result_text(result)
    except (ValueError, RecursionError):
        return False, UNSHOWN


def _result_text(result: Result) -> str:
    for member, show in (("content", _content), ("contents", _content), ("messages", _message)):
        if text := _beginning((show(_decoded(item)) for item in _items(result.get(member))), "\n"):
            return text
    others = {name: value for name, value in result.items() if name not in ("content", "_meta", "isError")}
    return short_json(others) if others else ""


def _items(value: object) -> Iterable[object]:
    """The items of a JSON array, decoded one by one: of thousands only the first are shown."""
    if not isinstance(value, msgspec.Raw):
        yield from value if isinstance(value, list) else ()
        return
    text, position = bytes(value).decode(), 1
    while text[0] == "[" and (gap := _between(text, position)) and not text.startswith("]", gap.end()):
        item, position = _value_at(text, gap.end())
        yield item


def _message(message: object) -> str:
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
    """The beginning of the value as JSON; the rest is not encoded, however large it is."""
    try:
        return _beginning(_json_parts(value))
    except (RecursionError, ValueError):  # nested too deep, or numbers too long
        return UNSHOWN


def _beginning(parts: Iterable[str], separator: str = "") -> str:
    """The parts joined, and cut; parts after the cut are not made."""
    shown: list[str] = []
    characters = 0
    for part in parts:
        shown.append(part)
        characters += len(part)
        if characters > MOST_CHARACTERS:
            break
        characters += len(separator)
    return cut(separator.join(shown))


def _json_parts(value: object) -> Iterator[str]:
    if isinstance(value, msgspec.Raw):  # JSON already
        yield bytes(memoryview(value)[: 4 * MOST_CHARACTERS]).decode("utf-8", "replace")  # 4 bytes at most for each
    elif isinstance(value, dict):
        separator = "{"
        for name, each in value.items():
            yield f"{separator}{_json(str(name)[:MOST_CHARACTERS])}: "
            yield from _json_parts(each)
            separator = ", "
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        separator = "["
        for each in value:
            yield separator
            yield from _json_parts(each)
            separator = ", "
        yield "]" if value else "[]"
    else:
        yield _json(value[:MOST_CHARACTERS] if isinstance(value, str) else value)


def _decoded(value: object) -> object:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MB"
