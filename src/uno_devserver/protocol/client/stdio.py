"""A conversation with a server over lines, in its era, on behalf of any number of clients.

Requests are numbered here, so that the ids of two clients cannot collide, and every answer reaches its request once.
Lines of the server that are not messages do no harm. When the server closes its output, all requests that wait fail.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any, Protocol

from ...system.log import ERROR, log
from ..jsonrpc import RpcError, is_deep, notification_message, request_message, shown
from ..lines import LineTooLong
from ..versions import (
    CANCELLED,
    INITIALIZED,
    LISTEN,
    NOTIFICATIONS_REMOVED_IN_MODERN,
    SUBSCRIPTION_ACKNOWLEDGED,
    SUBSCRIPTION_KEY,
    meta_of,
    without_meta,
)
from .change_subscription import WatchedUris, listen_params
from .connection import STDIO, AccessDenied, AnswerTooLong, ConnectionLost, ServerDescription, UnusableServer
from .raw_messages import (
    ABSENT,
    MAX_UNEXAMINED,
    Garbage,
    RawMessage,
    decode,
    discovered_server,
    embedded_messages,
    encode_token,
    initialize_params,
    initialized_server,
    params_of,
    read_messages,
    result_in,
    unreadable_answer,
    with_envelope,
    without_envelope,
)
from .server_requests import ServerQuestions, call_until_complete, notify_peer

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from ..service import Params
    from .connection import Peer, PendingCall
    from .pipe_lines import OutgoingLine, Sendable

PROGRESS = "notifications/progress"
LOGGED = "notifications/message"
NOT_TAKEN = "a message of the server could not be handled"
UNNAMED = (b"", b"null")  # the id of an answer to a request whose id the server could not read
OUR_TOKEN = "uno-devserver-"  # noqa: S105  # the beginning of progress tokens that replace those of clients
ACKNOWLEDGE_SECONDS = 10.0  # servers acknowledge a subscription at once, unless they are busy with other lines
SUBSCRIPTION_KEYS = frozenset({SUBSCRIPTION_KEY})


class _Request:
    """A request whose answer a coroutine awaits."""

    def __init__(self, number: int, method: str, peer: Peer | None, token: object, line: OutgoingLine) -> None:
        self.number = number
        self.method = method
        self.peer = peer  # None if the request is our own
        self.token = token  # the client's own progress token
        self.line = line
        self.answer: asyncio.Future[RawMessage | ConnectionLost | UnusableServer | RpcError] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def sent(self) -> bool:
        return self.line.sent

    def settle(self, outcome: RawMessage | ConnectionLost | UnusableServer | RpcError) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)


class Lines(Protocol):
    """Carries messages to a server; see `PipeLines`."""

    def queue(self, line: Sendable) -> None: ...
    def flush(self) -> None: ...
    def write(self, data: bytes) -> OutgoingLine: ...
    def withdraw(self, line: Sendable) -> bool: ...


class StdioConnection:
    """Implements `Connection`, after `begin`, and `LineListener`."""

    def __init__(
        self,
        peer: Peer,
        lines: Lines,
        strayed: Callable[[bytes], None] = lambda _: None,
        *,
        transport: str = STDIO,
    ) -> None:
        """`strayed` is called with all text of the server that is not a message."""
        self._peer = peer
        self._transport = transport
        self._lines = lines
        self._strayed = strayed
        self._server: ServerDescription | None = None
        self._last_number = 0
        # The open requests by number: a _Request has a coroutine that waits, a PendingCall has none.
        self._waiting: dict[bytes, _Request | PendingCall] = {}
        self._tokens: dict[bytes, _Request | PendingCall] = {}  # by the progress token that the server uses
        # For each answer that was too long, and whose id is not known: the requests that it may be for.
        self._unidentified: list[set[bytes]] = []
        self._questions = ServerQuestions(self._reply)
        self._watching = asyncio.Lock()
        self._watched = WatchedUris(lambda method, params: self._call(method, params, None))  # handshake era
        self._subscription: asyncio.Task[msgspec.Raw] | None = None  # modern era
        self._to_acknowledge: tuple[int, asyncio.Event] | None = None
        self.probing = False  # whether `server/discover` was sent as the first message, and is not answered

    @property
    def server(self) -> ServerDescription:
        assert self._server is not None, "the conversation has not begun"
        return self._server

    # --- the opening

    async def begin(self, *, modern_first: bool) -> None:
        """Find an era that the server speaks; UnusableServer or ConnectionLost if there is none. Has no time limit.

        The eras are tried one after the other: a server of both sticks to the first one that it answers.
        """
        first, second = (self._discover, self._initialize) if modern_first else (self._initialize, self._discover)
        self.probing = modern_first
        try:
            self._server = await first()
        except AccessDenied:
            raise
        except (RpcError, UnusableServer) as refused:
            self.probing = False
            try:
                self._server = await second()
            except (RpcError, UnusableServer) as again:
                raise UnusableServer(_refusal(refused if not modern_first else again)) from None
        self.probing = False
        self._server = self._server.replace(transport=self._transport)
        if not self._server.modern:
            self._notify(INITIALIZED, {})

    async def _discover(self) -> ServerDescription:
        return discovered_server(await self._call("server/discover", with_envelope({}, self._peer), None))

    async def _initialize(self) -> ServerDescription:
        return initialized_server(await self._call("initialize", initialize_params(self._peer.client), None))

    # --- messages to the server

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        if not self.server.modern:
            return await self._call(method, without_envelope(params), peer)

        async def send(params: Params) -> msgspec.Raw:
            return await self._call(method, with_envelope(params, peer), peer)

        return await call_until_complete(params, peer, send)

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:  # noqa: ARG002
        """See `Connection.send`.

        False for a progress token that another call uses, or that the server may spell differently (with or without
        escapes): `request` replaces such a token by one of ours.
        """
        token = call.progress_token
        if token and (token in self._tokens or b"\\" in token):
            return False
        self._last_number += 1
        number = b"%d" % self._last_number
        call.data = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":%b}\n' % (number, params)
        try:
            self._lines.queue(call)
        except (ConnectionLost, RpcError):
            return False
        call.ticket = number
        self._waiting[number] = call
        if token:
            self._tokens[token] = call
        return True

    def flush(self) -> None:
        self._lines.flush()

    def cancel(self, call: PendingCall) -> None:
        number = call.ticket
        assert isinstance(number, bytes)
        if self._waiting.pop(number, None) is not None:
            self._tokens.pop(call.progress_token, None)
            self._lines.flush()
            if not self._lines.withdraw(call):
                self._notify(CANCELLED, {"requestId": int(number)})

    async def notify(self, method: str, params: Params) -> None:
        # A client's cancellation carries its own id; ours was sent when the request was cancelled.
        if method != CANCELLED and not (self.server.modern and method in NOTIFICATIONS_REMOVED_IN_MODERN):
            self._notify(method, params)

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        async with self._watching:
            if not self.server.modern:
                return await self._watched.change(uris)
            try:
                await self._subscribe(uris)
            except RpcError as refusal:
                return dict.fromkeys(uris, refusal)
            return {}

    async def set_level(self, level: str) -> None:
        """Set the level if the server is of the handshake era; a modern request carries the level itself."""
        if not self.server.modern and "logging" in self.server.capabilities:
            await self._call("logging/setLevel", {"level": level}, None)

    async def close(self) -> None:
        """Do nothing: several clients share the conversation, which ends with the server process."""

    async def _call(self, method: str, params: Params, peer: Peer | None) -> msgspec.Raw:
        return await self._result(self._send(method, params, peer))

    def _send(self, method: str, params: Params, peer: Peer | None) -> _Request:
        self._last_number += 1
        number, token = self._last_number, meta_of(params).get("progressToken")
        if token is not None:  # replaced, because two clients may use the same one
            ours = f"{OUR_TOKEN}{number}"
            params = {**params, "_meta": {**params["_meta"], "progressToken": ours}}
        line = self._lines.write(request_message(number, method, params))
        request = self._waiting[b"%d" % number] = _Request(number, method, peer, token, line)
        if token is not None:
            self._tokens[b'"%b%d"' % (OUR_TOKEN.encode(), number)] = request
        return request

    async def _result(self, request: _Request) -> msgspec.Raw:
        try:
            answer = await request.answer
        except asyncio.CancelledError:
            if request.answer.cancelled() and not self._lines.withdraw(request.line) and request.method != "initialize":
                self._notify(CANCELLED, {"requestId": request.number})
            raise
        finally:
            self._waiting.pop(b"%d" % request.number, None)
            if request.token is not None:
                self._tokens.pop(b'"%b%d"' % (OUR_TOKEN.encode(), request.number), None)
        if isinstance(answer, ConnectionLost | UnusableServer | RpcError):
            raise answer
        return result_in(answer)

    async def _subscribe(self, uris: frozenset[str]) -> None:
        """Replace the subscription. The old one ends after the new one has begun, so that no change is missed."""
        request = self._send(LISTEN, with_envelope(listen_params(uris), self._peer), None)
        acknowledged = asyncio.Event()
        self._to_acknowledge = request.number, acknowledged
        listening = asyncio.ensure_future(self._result(request))
        listening.add_done_callback(_unsubscribed)
        waiting = asyncio.ensure_future(acknowledged.wait())
        try:
            await asyncio.wait((listening, waiting), timeout=ACKNOWLEDGE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            listening.cancel()
            raise
        finally:
            waiting.cancel()
        if listening.done() and uris:
            listening.result()  # raises the refusal, which matters only for resources
        before, self._subscription = self._subscription, listening
        if before is not None:
            before.cancel()
            await asyncio.wait((before,))

    def _notify(self, method: str, params: Params) -> None:
        try:
            self._lines.write(notification_message(method, params))
        except (ConnectionLost, RpcError) as error:
            log.debug(f"'{shown(method)}' did not reach the server: {error}")

    async def _reply(self, message: bytes) -> None:
        self._lines.write(message)

    # --- messages from the server

    def received(self, lines: list[bytes | LineTooLong]) -> None:
        settled = None
        for line in lines:
            try:
                # The same as `decode_one`, inlined for speed. A LineTooLong has no such methods: AttributeError.
                if not line.isascii():  # type: ignore[union-attr]
                    line.decode()  # type: ignore[union-attr]
                if len(line) > MAX_UNEXAMINED and is_deep(line):  # type: ignore[arg-type]
                    raise RecursionError
                message = decode(line)  # type: ignore[arg-type]
            except (ValueError, RecursionError, AttributeError):
                self._received_odd(line)
                continue
            try:
                if message.method is None:
                    settled = self._answered(message, line) or settled
                else:
                    self._asked_or_notified(message)
            except Exception:  # a bug of ours must not affect the messages after it
                log.write(ERROR, f"{NOT_TAKEN}:\n{traceback.format_exc()}")
        if settled is not None:
            settled.turn_over()

    def _received_odd(self, line: bytes | LineTooLong) -> None:
        """Handle a line with several messages, a message after other text, an unreadable answer, or no message."""
        if isinstance(line, LineTooLong):
            self._dropped(line.members)
            return
        messages: list[RawMessage] = []
        stray = b""
        try:
            messages = read_messages(line)
        except Garbage as garbage:
            log.debug(f"the server wrote a line that is not a message: {garbage}")
            stray, messages = embedded_messages(line)
        if not messages and (answer := unreadable_answer(line)) is not None:
            messages = [answer]
        for message in messages:
            try:
                if message.method is not None:
                    self._asked_or_notified(message)
                elif (settled := self._answered(message, line)) is not None:
                    settled.turn_over()
            except Exception:
                log.write(ERROR, f"{NOT_TAKEN}:\n{traceback.format_exc()}")
        if stray:
            self._strayed(stray)

    def _dropped(self, members: dict[str, Any]) -> None:
        """Fail the request of an answer that was too long to be kept, of which only these members could be read."""
        if isinstance(members.get("method"), str) or members.keys().isdisjoint(("jsonrpc", "result", "error")):
            return
        number = members.get("id")
        if isinstance(number, int | str):
            self.fail(str(number).encode(), AnswerTooLong())
        else:
            self._unidentified.append(set(self._waiting))
            self._identify()

    def _identify(self) -> None:
        """Fail each request that is the only one left that an unidentified answer may be for."""
        for candidates in [known for known in self._unidentified if len(known) < 2]:
            self._unidentified.remove(candidates)
            for number in candidates:
                self.fail(number, AnswerTooLong())

    def fail(self, number: bytes, outcome: AccessDenied | RpcError) -> None:
        """Fail the request with this number, if it still waits."""
        call = self._waiting.pop(number, None)
        if call is None:
            return
        call.settle(outcome)
        if not isinstance(call, _Request):
            self._tokens.pop(call.progress_token, None)
            call.turn_over()

    def output_lost(self) -> None:
        self._lose([call for call in self._waiting.items() if not call[1].sent], "input before it was asked")

    def ended(self) -> None:
        self._questions.close()
        self._lose(list(self._waiting.items()), "output before it answered")

    def _lose(self, lost: list[tuple[bytes, _Request | PendingCall]], what: str) -> None:
        for number, call in lost:
            if not isinstance(call, _Request):
                del self._waiting[number]
                self._tokens.pop(call.progress_token, None)
            try:
                call.settle(ConnectionLost(f"The server closed its {what}.", sent=call.sent))
            except Exception:  # a bug of ours must not affect the other calls
                log.write(ERROR, f"a call failed on the loss of its server:\n{traceback.format_exc()}")

    def _asked_or_notified(self, message: RawMessage) -> None:
        if message.is_question:
            self._asked(message)
        else:
            self._notified(message.method or "", message)

    def _asked(self, question: RawMessage) -> None:
        request = self._waiting.get(bytes(question.id))
        if self._server is None and isinstance(request, _Request) and request.method == question.method:
            request.settle(UnusableServer("it sends back what it is sent"))  # `cat`, or the echo of a terminal
        else:
            # A question does not name the request that it belongs to; if only one is open, it is that one.
            self._questions.ask(question, self._only_peer(self._waiting_peers()))

    def _answered(self, message: RawMessage, line: bytes | LineTooLong) -> PendingCall | None:
        """Settle the request that waits for this answer; return it if it is a PendingCall, else None."""
        key = bytes(message.id)
        if message.result is ABSENT and message.error is ABSENT and (message.jsonrpc is ABSENT or key in UNNAMED):
            if isinstance(line, bytes):
                self._strayed(line)  # most likely a log line in JSON, whatever its `id` means
            return None
        call = self._waiting.pop(key, None)
        if call is None:
            call = self._unnamed(key, message)
        if call is None:
            log.debug(f"the server answered {shown(key.decode())}, which does not wait for an answer")
            if message.jsonrpc is ABSENT and isinstance(line, bytes):
                self._strayed(line)
            return None
        call.settle(message)
        if self._unidentified:
            for candidates in self._unidentified:
                candidates.discard(key.strip(b'"'))
            self._identify()
        if isinstance(call, _Request):
            return None
        if call.progress_token:
            self._tokens.pop(call.progress_token, None)
        return call

    def _unnamed(self, key: bytes, message: RawMessage) -> _Request | PendingCall | None:
        """The request of an answer whose id is a number as text, or of an error without an id; None if unknown."""
        if key.startswith(b'"'):  # some servers turn numbers into texts
            return self._waiting.pop(key.strip(b'"'), None)
        complains = key in UNNAMED and message.jsonrpc is not ABSENT and bytes(message.error).startswith(b"{")
        # An error without an id: the server could not read the request.
        return self._waiting.popitem()[1] if complains and len(self._waiting) == 1 else None

    def _notified(self, method: str, message: RawMessage) -> None:
        params = params_of(message)
        if method == PROGRESS:
            self._progressed(params)
        elif method == CANCELLED:
            self._questions.cancel(params)
        elif method == SUBSCRIPTION_ACKNOWLEDGED:
            if self._to_acknowledge and meta_of(params).get(SUBSCRIPTION_KEY) == self._to_acknowledge[0]:
                self._to_acknowledge[1].set()
        else:
            peer = self._peer
            if method == LOGGED and self._server is not None and self._server.modern:
                # A modern server logs only for requests that want it, and does not say for which.
                peer = self._only_peer([peer for peer in self._waiting_peers() if peer.log_level is not None])
            notify_peer(peer, method, without_meta(params, SUBSCRIPTION_KEYS))  # the id of the subscription is ours

    def _progressed(self, params: dict[str, Any]) -> None:
        call = self._tokens.get(encode_token(params.get("progressToken")))
        if call is None:
            log.debug("the server reported progress of a request that does not wait for an answer")
        elif not isinstance(call, _Request):  # it was sent with its client's own token
            notify_peer(call, PROGRESS, params)
        elif call.peer is not None:
            notify_peer(call.peer, PROGRESS, {**params, "progressToken": call.token})

    def _waiting_peers(self) -> list[Peer]:
        peers = [call.peer if isinstance(call, _Request) else call for call in self._waiting.values()]
        return [peer for peer in peers if peer is not None]

    def _only_peer(self, peers: list[Peer]) -> Peer:
        return peers[0] if len(peers) == 1 else self._peer


def _unsubscribed(task: asyncio.Task[msgspec.Raw]) -> None:
    if not task.cancelled():
        log.debug(f"the server has ended the notifications of changes: {task.exception() or 'it answered the request'}")


def _refusal(refused: RpcError | UnusableServer) -> str:
    if isinstance(refused, UnusableServer):
        return str(refused)
    return f"it refuses to begin a conversation: {shown(refused.message)} (code {refused.code})"
