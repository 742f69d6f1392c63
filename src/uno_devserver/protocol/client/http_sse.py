"""A conversation over HTTP+SSE, the transport of MCP 2024-11-05, which Streamable HTTP has replaced.

The server sends all its messages over one event stream, whose first event names the target for ours. What is said is
the same as over lines (`stdio.py`). When the stream ends, open requests fail with `ConnectionLost`, and another stream
is opened: for the next request, and in any case after a pause, because notifications come over it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...system.event_loop import Tasks
from ...system.log import log
from ..http.client import encode_headers
from ..http.client_connection import HttpFailure
from ..http.headers import JSON
from ..http.sse import EVENT_STREAM, EventReader
from ..jsonrpc import BUSY, INTERNAL_ERROR, RpcError, error_message
from .backoff import Backoff
from .change_subscription import announce_all_lists
from .connection import HTTP_SSE, AccessDenied, ConnectionLost, UnusableServer
from .http_endpoint import COMMON_HEADERS, NotMcp, StreamCut, media_type
from .pipe_lines import DOES_NOT_READ, MAX_WAITING_BYTES, OutgoingLine
from .raw_messages import decode_one
from .stdio import StdioConnection

if TYPE_CHECKING:
    import msgspec

    from ..http.client_connection import Reply
    from ..http.sse import SseEvent
    from ..service import Params
    from .connection import Peer, PendingCall, ServerDescription
    from .http_endpoint import Endpoint
    from .pipe_lines import Sendable

ENDPOINT_SECONDS = 5.0  # for the first event, which servers send at once
POST_SECONDS = 300.0  # for the answer to a message; servers accept it at once, but some only when they have run it
ORDER_SECONDS = 1.0  # how long the next message waits for that answer, so that messages arrive in their order
OPENING_MESSAGES = 2  # `initialize` and `notifications/initialized`
GONE = (404, 410)  # the server does not know the session
MAYBE_GONE = 400  # neither do those that answer with this, or they cannot read the message

_STREAM_HEADERS = encode_headers({"Accept": EVENT_STREAM, "User-Agent": COMMON_HEADERS["User-Agent"]})
_POST_HEADERS = encode_headers({**COMMON_HEADERS, "Accept": f"{JSON}, */*"})


class SseConnection:
    """Implements `Connection`."""

    @classmethod
    async def open(cls, endpoint: Endpoint, peer: Peer) -> SseConnection:
        """Open a stream. NotMcp or UnusableServer if the server does not speak this transport."""
        connection = cls(endpoint, peer)
        connection._stream = await _Stream.open(connection)
        log.info(f"The server at {endpoint.url} speaks the older transport HTTP+SSE.")
        return connection

    def __init__(self, endpoint: Endpoint, peer: Peer) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self._stream: _Stream
        self._renewing = asyncio.Lock()
        self._backoff = Backoff()
        self._tasks = Tasks()
        self._wanted: frozenset[str] = frozenset()  # the resources to watch on every stream
        self._level: str | None = None
        self._closed = False

    @property
    def server(self) -> ServerDescription:
        return self._stream.conversation.server

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        return await (await self._conversation()).request(method, params, peer)

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        return not self._stream.over and self._stream.conversation.send(call, name, params)

    def flush(self) -> None:
        self._stream.flush()

    def cancel(self, call: PendingCall) -> None:
        self._stream.conversation.cancel(call)

    async def notify(self, method: str, params: Params) -> None:
        await (await self._conversation()).notify(method, params)

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        self._wanted = uris
        return await (await self._conversation()).watch(uris)

    async def set_level(self, level: str) -> None:
        self._level = level
        await (await self._conversation()).set_level(level)

    async def close(self) -> None:
        self._closed = True
        self._tasks.cancel()
        self._stream.end("the conversation is over")
        self.endpoint.close()

    def lost(self, stream: _Stream) -> None:
        """Called when a stream has ended."""
        if not self._closed:
            self._tasks.start(self._heal(stream))

    async def _conversation(self) -> StdioConnection:
        if self._closed:
            raise ConnectionLost("The connection is closed.", sent=False)
        return (await self._renewed(self._stream) if self._stream.over else self._stream).conversation

    async def _renewed(self, old: _Stream) -> _Stream:
        """The stream in place of one that has ended; a new one, unless another task has opened it."""
        async with self._renewing:
            if self._stream is old:
                try:
                    self._stream = await _Stream.open(self)
                except AccessDenied:
                    raise
                except (ConnectionLost, UnusableServer, RpcError, NotMcp, StreamCut) as error:
                    why = f"The server at {self.endpoint.url} ended the stream, and opens no new one: {error}"
                    raise ConnectionLost(why, sent=False) from error
                self._tasks.start(self._restore())
            return self._stream

    async def _heal(self, ended: _Stream) -> None:
        while self._stream is ended:
            await asyncio.sleep(self._backoff.next())
            used = self.endpoint.credentials
            try:
                await self._renewed(ended)
            except ConnectionLost as lost:
                log.debug(str(lost))
            except AccessDenied as denied:
                log.debug(str(denied))
                await self.endpoint.until_other_credentials(used)

    async def _restore(self) -> None:
        """Send log level and watches again, and notify the client of a change of every list."""
        try:
            if self._level is not None:
                await self.set_level(self._level)
            await self.watch(self._wanted)
        except (RpcError, ConnectionLost, AccessDenied) as error:
            log.debug(f"the new stream lacks something of the former one: {error}")
        announce_all_lists(self.peer, self.server)


class _Stream:
    """One event stream, and the messages that belong to it. Implements `stdio.Lines`."""

    @classmethod
    async def open(cls, owner: SseConnection) -> _Stream:
        reply = await owner.endpoint.send("GET", _STREAM_HEADERS)
        stream = cls(owner, reply)
        try:
            if reply.status != 200 or media_type(reply) != EVENT_STREAM:
                raise NotMcp(f"answered with HTTP {reply.status} instead of an event stream", reply.status)
            stream.receive(await stream.find_target())
            await stream.conversation.begin(modern_first=False)
        except BaseException:
            stream.end("it could not be opened")
            raise
        stream.opened = True
        return stream

    def __init__(self, owner: SseConnection, reply: Reply) -> None:
        self.conversation = StdioConnection(owner.peer, self, transport=HTTP_SSE)
        self.over = False
        self.opened = False
        self._owner = owner
        self._reply = reply
        self._reader = EventReader()
        self._target = ""
        self._waiting: dict[Sendable, None] = {}  # in order
        self._more = asyncio.Event()  # set when some wait
        self._accepted = 0  # how many messages the server has accepted
        self._tasks = Tasks()

    async def find_target(self) -> list[SseEvent]:
        """Wait for the event that names the target of our messages; return the events after it."""
        try:
            async with asyncio.timeout(ENDPOINT_SECONDS):
                while chunk := await self._reply.part():
                    events = self._reader.feed(chunk)
                    for number, event in enumerate(events):
                        if event.name == "endpoint":
                            self._target = self._owner.endpoint.target_of(event.data.decode("utf-8", "replace").strip())
                            return events[number + 1 :]
        except TimeoutError:
            pass
        except HttpFailure as failure:
            raise self._owner.endpoint.lost(failure) from failure
        except ValueError as error:
            raise UnusableServer(f"it names an endpoint that is not used: {error}") from None
        raise NotMcp("opened an event stream that does not name an endpoint", self._reply.status)

    # --- messages to the server

    def queue(self, line: Sendable) -> None:
        if self.over:
            raise ConnectionLost("The server has ended the stream of its answers.", sent=False)
        waiting = sum(len(line.data) for line in self._waiting)
        if waiting and waiting + len(line.data) > MAX_WAITING_BYTES:
            raise RpcError(BUSY, DOES_NOT_READ)
        self._waiting[line] = None

    def flush(self) -> None:
        self._more.set()

    def write(self, data: bytes) -> OutgoingLine:
        line = OutgoingLine(data)
        self.queue(line)
        self.flush()
        return line

    def withdraw(self, line: Sendable) -> bool:
        return self._waiting.pop(line, self) is None

    async def _send_all(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                line = next(iter(self._waiting))
                del self._waiting[line]
                data, line.data, line.sent = line.data, b"", True
                await asyncio.wait((self._tasks.start(self._post(line, data)),), timeout=ORDER_SECONDS)

    async def _post(self, line: Sendable, data: bytes) -> None:
        try:
            async with asyncio.timeout(POST_SECONDS):
                reply = await self._owner.endpoint.send("POST", _POST_HEADERS, data, self._target)
        except AccessDenied as denied:
            if (message := decode_one(data)).is_question:
                self.conversation.fail(bytes(message.id), denied)
            return
        except (ConnectionLost, TimeoutError) as failure:
            line.sent = isinstance(failure, TimeoutError) or failure.sent
            self.end(f"a message did not reach the server: {failure or f'no answer within {POST_SECONDS:g} s'}")
            return
        reply.release()
        if reply.status < 400:
            self._accepted += 1
        elif reply.status in GONE or (reply.status == MAYBE_GONE and self._accepted > OPENING_MESSAGES):
            line.sent = False
            self.end(f"the server does not know the session any more: HTTP {reply.status}")
        elif (message := decode_one(data)).is_question:  # a request of ours
            refusal = RpcError(INTERNAL_ERROR, f"The server refused the message with HTTP {reply.status}.")
            self.conversation.received([error_message(message.id, refusal)])

    # --- messages from the server

    def receive(self, first: list[SseEvent]) -> None:
        """Begin to exchange messages; `first` are events that have come already."""
        self._tasks.start(self._receive(first))
        self._tasks.start(self._send_all())

    async def _receive(self, events: list[SseEvent]) -> None:
        why = "the server has ended the stream"
        try:
            while True:
                self.conversation.received([event.data for event in events if event.name == "message" and event.data])
                chunk = await self._reply.part()
                if not chunk:
                    break
                events = self._reader.feed(chunk)
        except (HttpFailure, ValueError) as failure:
            why = f"the stream broke: {failure}"
        self.end(why)

    def end(self, why: str) -> None:
        """Close the stream; all requests that wait fail."""
        if self.over:
            return
        self.over = True
        log.debug(f"The stream of {self._owner.endpoint.url} is closed: {why}.")
        self._waiting.clear()
        self._reply.close()
        self.conversation.ended()
        if self.opened:
            self._owner.lost(self)
        self._tasks.cancel()
