"""The HTTP requests of a client of either era, and the messages in the answers.

A request returns its answer, or raises `ConnectionLost` if the server is gone, `AccessDenied` if it does not accept the
credentials, `NotMcp` for an answer without a message, `StreamCut` for a stream that ended too early.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from ...system.log import log
from ...system.text import shown_url
from ..http.client import HttpClient, Origin, encode_headers, split_url
from ..http.client_connection import BodyTooLong, ClientConnection, HttpFailure, Reply, Taker
from ..http.headers import JSON
from ..http.sse import EVENT_STREAM, EventReader
from ..jsonrpc import INTERNAL_ERROR, STOPPED, RpcError, shown
from .connection import AccessDenied, AnswerTooLong, ConnectionLost, Denial
from .credentials import FixedHeaders
from .raw_messages import Garbage, RawMessage, read_messages, unreadable_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .credentials import Credentials

MAX_REDIRECTS = 3  # one may add a slash at the end; more than a few are a loop
PERMANENT = 308
KEEPS_METHOD = (307, PERMANENT)  # the server has not run the request, which must be sent to another target
MAY_CHANGE_METHOD = (301, 302)
NOT_RUN = (*KEEPS_METHOD, 401)  # the server has not run the request, which `Endpoint.send` would repeat
CREDENTIAL_SECONDS = 2.0  # between two looks at credentials that were refused; it is a look at a file at most

COMMON_HEADERS = {
    "Accept": f"{JSON}, {EVENT_STREAM}",
    "Content-Type": JSON,
    "User-Agent": "uno-devserver",
}


class NotMcp(Exception):
    """The answer contains no MCP message. The text is a predicate whose subject is the server ("answered with …")."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(what)
        self.status = status

    def as_error(self) -> RpcError:
        return RpcError(INTERNAL_ERROR, f"The server {self}.")


class StreamCut(Exception):
    """The stream ended before the answer came."""

    def __init__(self, reader: EventReader, why: str, *, broken: bool) -> None:
        super().__init__(why)
        self.reader = reader  # knows the event id after which the stream can be resumed
        self.broken = broken  # whether the connection broke; otherwise the server ended the stream


class Endpoint:
    """One URL: sends requests to it with the user's credentials, and finds their answers in what comes back."""

    def __init__(self, url: str, credentials: Credentials | None = None, *, this_users: bool = False) -> None:
        """`credentials` are sent with every request. ValueError for an invalid URL or header.

        `this_users`: see `HttpClient`; requests with credentials are always sent to this user's servers only.
        """
        origin, self._target = split_url(url)
        self._credentials = credentials or FixedHeaders({})
        self._given: Mapping[str, str] | None = None
        self._given_lines = b""
        self.url = shown_url(f"{origin}{self._target}")
        self._http = HttpClient(origin, this_users=this_users)
        self._credential_lines()

    def target_of(self, reference: str) -> str:
        """The target of a URL, which may be relative to ours. ValueError if it is on another server."""
        target = _redirected(self._http.origin, self._target, reference)
        if target is None:
            raise ValueError(f"{shown(shown_url(reference))} is not on the same server")
        return target

    async def send(self, method: str, headers: bytes, body: bytes | None = None, target: str | None = None) -> Reply:
        """Send a request, to our own URL by default, and return its answer, body unread.

        Redirects are followed on the same server only. After a 401 the credentials are renewed, once.
        """
        given = self._credential_lines()
        used = self._given or {}
        reply = await self._send(method, given + headers, body, target)
        if reply.status == 401 and await self._credentials.renew(used):
            reply.release()
            reply = await self._send(method, self._credential_lines() + headers, body, target)
        if reply.status == 401:
            reply.release()
            raise self._denied(reply)
        if reply.status == 407 and self._http.proxy is not None:
            from ..http.network_settings import refused_credentials

            reply.release()
            why = f"The server at {self.url} cannot be reached: {refused_credentials(self._http.proxy)}."
            raise ConnectionLost(why, sent=False)
        return reply

    @property
    def credentials(self) -> Mapping[str, str]:
        """The headers that a request would carry now."""
        return self._credentials.headers()

    async def until_other_credentials(self, refused: Mapping[str, str]) -> None:
        """Wait until the credentials differ from `refused`; nothing is sent meanwhile.

        The caller reads `credentials` before its request: other requests may use new ones before it waits.
        """
        while self.credentials == refused:
            await asyncio.sleep(CREDENTIAL_SECONDS)

    async def _send(self, method: str, headers: bytes, body: bytes | None, target: str | None) -> Reply:
        is_own, followed = target is None, 0
        target = target or self._target
        while True:
            try:
                reply = await self._http.request(method, target, headers, body)
            except HttpFailure as failure:
                raise self.lost(failure) from failure
            location = reply.headers.get("location")
            is_redirect = reply.status in KEEPS_METHOD or (reply.status in MAY_CHANGE_METHOD and method == "GET")
            elsewhere = _redirected(self._http.origin, target, location) if is_redirect and location else None
            if elsewhere is None or followed == MAX_REDIRECTS:
                return reply
            reply.release()
            # Not remembered for GET, which may lead to a page for people.
            if is_own and method == "POST" and _is_lasting(reply.status, target, elsewhere):
                self._target = elsewhere
            target = elsewhere
            followed += 1

    def _credential_lines(self) -> bytes:
        given = self._credentials.headers()
        if given is not self._given:
            self._given, self._given_lines = given, encode_headers(given)
            if given:  # they must not reach another user's program that has the port of a server of this machine
                self._http.this_users = True
        return self._given_lines

    def _denied(self, reply: Reply) -> AccessDenied:
        fixed = isinstance(self._credentials, FixedHeaders) and any(
            name.lower() == "authorization" for name in self._given or ()
        )
        what = "does not accept the credentials" if self._given else "asks for credentials"
        if fixed:
            what = "does not accept the Authorization header that it was given"
        if reply.status == 403:
            what = "refuses access" + (": the credentials are not allowed to do this" if self._given else "")
        scope = re.search(r'\bscope="([^"]+)"', reply.headers.get("www-authenticate", ""))
        wants = f"; it asks for the scope '{shown(scope[1])}'" if scope else ""
        message = f"The server at {self.url} {what} (HTTP {reply.status}){wants}."
        return AccessDenied(message, Denial(reply.status, self.url, fixed))

    def send_now(self, headers: bytes, body: bytes, taker: Taker) -> ClientConnection | None:
        """POST over an open connection without waiting; return None, and send nothing, if there is none."""
        return self._http.send("POST", self._target, self._credential_lines() + headers, body, taker)

    async def answer(self, reply: Reply, request_id: int, hear: Callable[[RawMessage], None]) -> RawMessage:
        """Read the message that answers the request; other messages go to `hear`. Errors: see the module."""
        if reply.status == 200 and media_type(reply) == EVENT_STREAM:
            return await self.answer_in_events(reply, request_id, hear)
        try:
            body = await reply.read()
        except BodyTooLong:
            raise AnswerTooLong from None
        except HttpFailure as failure:
            raise self.lost(failure) from failure
        try:
            messages = read_messages(body)
        except Garbage as garbage:
            if reply.status == 403:
                raise self._denied(reply) from None
            raise _no_message(reply, body, garbage) from None
        for message in messages:
            if message.answers(request_id):
                return message
            hear(message)
        if reply.status == 403:
            raise self._denied(reply)
        raise NotMcp("sent JSON that does not answer the request", reply.status)

    async def answer_in_events(self, reply: Reply, request_id: int, hear: Callable[[RawMessage], None]) -> RawMessage:
        """The same for a stream of events; raises StreamCut if it ends before the answer."""
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

    def check_same_server(self, status: int, error: RpcError, other_era: bool) -> None:
        """Raise ConnectionLost if the server is stopping, or was restarted with another era of MCP (`other_era`).

        In both cases the server has not run the request.
        """
        if status == 503 and error.code == STOPPED:
            raise ConnectionLost(f"The server at {self.url} stops: {error.message}", sent=False) from None
        if other_era:
            why = f"The server at {self.url} does not speak this version of MCP any more: {error.message}"
            raise ConnectionLost(why, sent=False) from None

    def lost(self, failure: HttpFailure) -> ConnectionLost:
        return ConnectionLost(f"The server at {self.url} {failure}.", sent=failure.sent)

    def break_off(self) -> None:
        self._http.break_off()

    def close(self) -> None:
        self._http.close()


async def hear_events(reply: Reply, reader: EventReader, take: Callable[[RawMessage], bool]) -> None:
    """Pass the messages of a stream to `take` until the stream ends or `take` returns True.

    HttpFailure if the stream breaks, AnswerTooLong if an event is too long to be kept.
    """
    while chunk := await reply.part():
        try:
            events = reader.feed(chunk)
        except ValueError:
            reply.close()
            raise AnswerTooLong from None
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
    """The new target; None if it is on another server, or is not a valid URL."""
    from urllib.parse import urljoin  # imported late: redirects are rare

    try:
        there, new_target = split_url(urljoin(f"{origin}{target}", location))
    except ValueError:
        return None
    return new_target if there == origin else None


def _is_lasting(status: int, target: str, elsewhere: str) -> bool:
    """Whether further requests go to the new target: after 308, or 307 where it only differs by a slash at the end.

    Web frameworks answer 307 to each request without that slash.
    """
    paths = {each.partition("?")[0].rstrip("/") for each in (target, elsewhere)}
    return status == PERMANENT or len(paths) == 1
