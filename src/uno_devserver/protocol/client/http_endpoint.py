"""An MCP endpoint as a client of either era sees it: requests over HTTP go in, messages come out.

A request returns its answer or raises what came instead: `ConnectionLost` where the server is gone,
 `NotMcp` for an answer without a message, `StreamCut` for a stream that ended too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...system.log import log
from ...system.text import shown_url
from ..http.client import HttpClient, Origin, encode_headers, split_url
from ..http.client_connection import BodyTooLong, ClientConnection, HttpFailure, Reply, Taker
from ..http.headers import JSON
from ..http.sse import EVENT_STREAM, EventReader
from ..jsonrpc import INTERNAL_ERROR, RpcError, shown
from .connection import ConnectionLost
from .raw_messages import Garbage, RawMessage, read_messages, unreadable_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_REDIRECTS = 3  # one adds or takes the slash at the end; a server that wants more goes in circles
KEEPS_METHOD = (307, 308)  # the request is to be sent again, elsewhere: nobody has run it
MAY_CHANGE_METHOD = (301, 302)

# Every request has them.
COMMON_HEADERS = {
    "Accept": f"{JSON}, {EVENT_STREAM}",
    "Content-Type": JSON,
    "User-Agent": "uno-devserver",
}


class NotMcp(Exception):
    """There was an answer, with no MCP in it. The message is the end of a sentence whose subject is the server."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(what)
        self.status = status


class StreamCut(Exception):
    """The stream ended before the answer came."""

    def __init__(self, reader: EventReader, why: str, *, broken: bool) -> None:
        super().__init__(why)
        self.reader = reader  # knows from where it can be resumed
        self.broken = broken  # the connection is, and the server did not end the stream


class Endpoint:
    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        """`headers` go with every request, e.g. a token. ValueError: no such URL, or no such header."""
        origin, self._target = split_url(url)
        self._headers = encode_headers(headers or {})
        self.url = shown_url(f"{origin}{self._target}")
        self._http = HttpClient(origin)

    async def send(self, method: str, headers: bytes, body: bytes | None = None) -> Reply:
        """The answer, whatever it is; its body is still to be read. Redirects are followed on the same server only."""
        target = self._target
        for _ in range(MAX_REDIRECTS):
            try:
                reply = await self._http.request(method, target, self._headers + headers, body)
            except HttpFailure as failure:
                raise self.lost(failure) from failure
            if reply.status not in KEEPS_METHOD and (reply.status not in MAY_CHANGE_METHOD or method != "GET"):
                return reply
            elsewhere = _redirected(self._http.origin, target, reply.headers.get("location", ""))
            if elsewhere is None:
                return reply
            reply.release()
            target = elsewhere
            if method == "POST":  # where a GET is sent may be a page for people
                self._target = target
        return reply

    def send_now(self, headers: bytes, body: bytes, taker: Taker) -> ClientConnection | None:
        """POST over a connection that is kept, without waiting; None, and nothing is sent, where there is none."""
        return self._http.send("POST", self._target, self._headers + headers, body, taker)

    async def answer(self, reply: Reply, request_id: int, hear: Callable[[RawMessage], None]) -> RawMessage:
        """The message that answers the request; what else is said goes to `hear`."""
        if reply.status == 200 and media_type(reply) == EVENT_STREAM:
            return await self.answer_in_events(reply, request_id, hear)
        try:
            body = await reply.read()
        except BodyTooLong as failure:
            raise RpcError(INTERNAL_ERROR, f"The server {failure}.") from None
        except HttpFailure as failure:
            raise self.lost(failure) from failure
        try:
            messages = read_messages(body)
        except Garbage as garbage:
            raise _no_message(reply, body, garbage) from None
        for message in messages:
            if message.answers(request_id):
                return message
            hear(message)
        raise NotMcp("answered something else than what it was asked", reply.status)

    async def answer_in_events(self, reply: Reply, request_id: int, hear: Callable[[RawMessage], None]) -> RawMessage:
        found: list[RawMessage] = []

        def take(message: RawMessage) -> bool:
            if message.answers(request_id):
                found.append(message)
            else:
                hear(message)
            return bool(found)

        reader = EventReader()
        try:
            await hear_events(reply, reader, take)
        except HttpFailure as failure:
            raise StreamCut(reader, f"The server at {self.url} {failure}.", broken=True) from failure
        if not found:
            raise StreamCut(reader, f"The server at {self.url} ended the stream before it had answered.", broken=False)
        return found[0]

    def lost(self, failure: HttpFailure) -> ConnectionLost:
        return ConnectionLost(f"The server at {self.url} {failure}.", sent=failure.sent)

    def break_off(self) -> None:
        self._http.break_off()

    def close(self) -> None:
        self._http.close()


async def hear_events(reply: Reply, reader: EventReader, take: Callable[[RawMessage], bool]) -> None:
    """Hand over the messages of a stream until its end, or until `take` has what it wants.

    HttpFailure where the stream breaks off, RpcError where a message is too long to be read.
    """
    while chunk := await reply.part():
        try:
            events = reader.feed(chunk)
        except ValueError as error:
            reply.close()
            raise RpcError(INTERNAL_ERROR, f"The server sent what cannot be read: {error}.") from None
        for event in events:
            if event.name == "message" and event.data:
                for message in _messages(event.data):
                    if take(message):
                        reply.release()
                        return


def _messages(data: bytes) -> list[RawMessage]:
    try:
        return read_messages(data)
    except Garbage as garbage:
        answer = unreadable_answer(data)
        if answer is None:
            log.debug(f"an event of the server was dropped: {garbage}")
        return [answer] if answer else []


def media_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


def _no_message(reply: Reply, body: bytes, garbage: Garbage) -> NotMcp:
    if location := reply.headers.get("location"):
        return NotMcp(f"redirects to {shown(shown_url(location))}, which is not followed", reply.status)
    if not body.strip():
        return NotMcp(f"answered with HTTP {reply.status} and nothing else", reply.status)
    kind = media_type(reply)
    if kind == JSON and reply.status == 200:
        return NotMcp(f"answered, but {garbage}", reply.status)
    return NotMcp(f"answered with HTTP {reply.status} and {shown(kind) or 'something that has no type'}", reply.status)


def _redirected(origin: Origin, target: str, location: str) -> str | None:
    """The new target on the same server; None for another one."""
    from urllib.parse import urljoin  # redirects are rare

    try:
        there, new_target = split_url(urljoin(f"{origin}{target}", location))
    except ValueError:
        return None
    return new_target if there == origin else None
