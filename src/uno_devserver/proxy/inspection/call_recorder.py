"""What a call was given and what it was answered, as short texts for people who look on. Pure, and bounded in time.

Whatever a client or a server sends, there is a text; one that was cut ends with `…`. What is no text (pictures, sounds,
files) is named with its size, and not shown.

Who looks on while calls are made: the seam, and the recorder of calls behind it.

Calls are followed only while there is an observer; what it does never changes what becomes of them. The last calls are
remembered, and all that are under way; what is kept of each is short.
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

    import msgspec

    from ...protocol.parties import ClientInfo
    from ...protocol.service import Call, Params, Result

    Answering = Coroutine[Any, Any, Result | msgspec.Raw]


MOST_CHARACTERS = 2000
MOST_BYTES = 8 * 1024 * 1024  # of a result that is opened; that takes 20 ms, in the loop that also relays calls
CUT = "…"
UNSHOWN = "[JSON that cannot be shown]"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_WITH_ARGUMENTS = frozenset({"tools/call", "prompts/get"})
LONGEST_NAME = 200

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value_at = json.JSONDecoder().raw_decode
_between = re.compile(r"[\s,]*").match


def name_of(method: str, params: Params) -> str | None:
    """The tool, the prompt or the resource."""
    name = params.get(_NAMED_BY.get(method, ""))
    return cut(name, LONGEST_NAME) if isinstance(name, str) else None


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
    except (RecursionError, ValueError):  # nested deeper, or with longer numbers, than this can follow
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
        return f"[{cut(str(kind), LONGEST_NAME)}, {_size(len(binary) * 3 // 4)}]"  # base64
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


REMEMBERED = 200  # calls
TELL_SECONDS = 0.05  # what happens to a call within that time is told at once: people see no difference
LONGEST_CLIENT = 100  # characters
BARELY_SECONDS = 0.001  # a call that has to wait is known to within that time, and was not run before

QUEUED, RUNNING, RESTARTING = "queued", "running", "restarting"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"


class Observer(Protocol):
    """In the engine's loop. Calls that it does not follow are of no interest to it."""

    def begin(self, method: str, name: str, client: ClientInfo, params: msgspec.Raw) -> Record:
        """Follow a call that is relayed; what becomes of it is told to its record."""

    def follow(self, call: Call, answering: Awaitable[Result | msgspec.Raw]) -> Answering:
        """What comes of `answering`, unchanged."""

    def waits(self, call: Call, why: str, *, restarting: bool = False) -> None:
        """It is not run for the moment. `restarting`: it is held for, or told of, a server that is being replaced."""

    def goes_on(self, call: Call) -> None:
        """It is run."""


class Recorder:
    """Tells each call as a document, whenever something has become of it, while `live`."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._last_id = 0
        self._under_way: dict[object, Record] = {}  # by the call, or the record itself of one that is relayed
        self._ended: deque[Record] = deque(maxlen=REMEMBERED)
        self._news: dict[int, Record] = {}  # what is to be told
        self._timer: asyncio.TimerHandle | None = None

    @property
    def live(self) -> bool:
        return self._live

    @live.setter
    def live(self, wanted: bool) -> None:
        self._live = wanted
        if not wanted and self._timer is not None:
            self._timer.cancel()
            self._tell_news()

    def documents(self) -> list[dict[str, Any]]:
        """The last calls, newest last; all that are under way are among them."""
        room = max(0, REMEMBERED - len(self._under_way))
        ended = list(self._ended)[-room:] if room else []
        records = sorted([*ended, *self._under_way.values()], key=lambda record: record.id)
        return [record.document(self._loop.time()) for record in records]

    def begin(self, method: str, name: str, client: ClientInfo, params: msgspec.Raw) -> Record:
        self._last_id += 1
        record = Record(self, self._last_id, method, cut(name, LONGEST_NAME), client, params, self._loop.time())
        self._under_way[record] = record
        self._changed(record)
        return record

    async def follow(self, call: Call, answering: Awaitable[Result | msgspec.Raw]) -> Result | msgspec.Raw:
        self._last_id += 1
        name, client = name_of(call.method, call.params), call.session.client
        record = Record(self, self._last_id, call.method, name, client, call.params, self._loop.time())
        self._under_way[call] = record
        self._changed(record)
        try:
            result = await answering
        except RpcError as error:
            self.end(call, record, FAILED, f"{error.message} ({error.code})")
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

    def _move(self, call: Call, state: str, why: str) -> None:
        record = self._under_way.get(call)
        if record is not None and (record.state, record.why) != (state, why):
            record.move(state, why, self._loop.time())
            self._changed(record)

    def forget(self, record: Record) -> None:
        """It is followed as another from now on."""
        self._under_way.pop(record, None)
        self._news.pop(record.id, None)

    def end(self, call: object, record: Record, state: str, outcome: str | Result | msgspec.Raw) -> None:
        del self._under_way[call]
        record.end(state, outcome, self._loop.time())
        self._ended.append(record)
        self._changed(record)

    def _changed(self, record: Record) -> None:
        if not self._live:
            record.shorten()
            return
        self._news[record.id] = record
        if self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_news)

    def _tell_news(self) -> None:
        self._timer = None
        news, self._news = self._news, {}
        now = self._loop.time()
        for record in islice(news.values(), max(0, len(news) - REMEMBERED), None):  # the page keeps no more
            self._tell(record.document(now))


class Record:
    """One call. Its texts are made when they are first told: until then it runs as fast as without."""

    __slots__ = (
        "_arguments",
        "_outcome",
        "_ran",
        "_recorder",
        "_since",
        "_total",
        "_waited",
        "at",
        "client",
        "id",
        "method",
        "name",
        "state",
        "why",
    )

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
        self.client = cut(client.name or "unknown", LONGEST_CLIENT)
        self.at = time.time()
        self.state = RUNNING
        self.why = ""
        self._since = now  # when it came into this state
        self._waited = 0.0
        self._ran: float | None = None  # None: it was never run
        self._total: float | None = None  # None: it is under way
        self._arguments: str | Params | msgspec.Raw = params
        self._outcome: str | Result | msgspec.Raw = ""

    # Of a call that is relayed.

    def end_with(self, result: msgspec.Raw) -> None:
        self._recorder.end(self, self, DONE, result)

    def fail(self, error: RpcError) -> None:
        self._recorder.end(self, self, FAILED, f"{error.message} ({error.code})")

    def cancel(self) -> None:
        self._recorder.end(self, self, CANCELLED, "")

    def forget(self) -> None:
        self._recorder.forget(self)

    # Of any call.

    def move(self, state: str, why: str, now: float) -> None:
        before = self._ran
        self._waited, self._ran = self._times(now)
        if before is None and state in (QUEUED, RESTARTING) and now - self._since < BARELY_SECONDS:
            self._ran = None
        self._since = now
        self.state, self.why = state, why

    def end(self, state: str, outcome: str | Result | msgspec.Raw, now: float) -> None:
        self.move(state, self.why if state == RESTARTING else "", now)
        if state == RESTARTING:  # it was told to come again, and never run: all of that was its way there
            self._waited, self._ran = self._waited + (self._ran or 0.0), None
        self._total = self._waited + (self._ran or 0.0)
        self._outcome = outcome

    def shorten(self) -> None:
        """Keep only the texts of what it was given and answered."""
        if not isinstance(self._arguments, str):
            self._arguments = _shown_arguments(self.method, self._arguments)
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
            "client": self.client,
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


def _shown_arguments(method: str, given: Params | msgspec.Raw) -> str:
    """What a relayed call was given may be valid for the server, and not for this reader: 1e400, for instance."""
    try:
        return arguments_of(method, msgspec.json.decode(given) if isinstance(given, msgspec.Raw) else given)
    except (ValueError, RecursionError):
        return UNSHOWN


def _is_cancelled() -> bool:
    """By whoever made the call, and not by something inside it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
