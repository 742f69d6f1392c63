"""A conversation with a server over lines, in its era, on behalf of any number of clients.

Every request has a number of its own here, so that no two clients can meet in one; every answer reaches the one who
waits for it, once. Whatever else the server writes does no harm. When it says nothing any more, all who wait are told.
"""

from __future__ import annotations

import asyncio
import traceback
from asyncio import FIRST_COMPLETED
from typing import TYPE_CHECKING, Any

from ...system.log import ERROR, log
from ..jsonrpc import RpcError, notification_message, shown
from ..lines import LineTooLong
from ..versions import SUBSCRIPTION_KEY
from .change_subscription import ACKNOWLEDGED, listen_params, without_subscription
from .connection import ConnectionLost, ServerDescription, UnusableServer
from .questions import ServerQuestions, call_until_complete, notify_peer
from .raw_messages import (
    ABSENT,
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
    request_bytes,
    result_in,
    unreadable_answer,
    with_envelope,
    without_envelope,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from ..service import Params
    from .connection import Peer, PendingCall
    from .pipe_lines import OutgoingLine, PipeLines

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOGGED = "notifications/message"
NOT_TAKEN = "a message of the server could not be taken"
UNNAMED = (b"", b"null")  # the id of an answer to a request whose own could not be read
OUR_TOKEN = "uno-devserver-"  # noqa: S105  # the beginning of progress tokens that replace a client's own
NO_MODERN_NOTIFICATIONS = frozenset({"notifications/initialized", "notifications/roots/list_changed"})
ACKNOWLEDGE_SECONDS = 10.0  # a subscription counts from its acknowledgement on, which servers give at once


class _Request:
    """A request of a coroutine, which awaits its answer."""

    def __init__(self, number: int, method: str, peer: Peer | None, token: object, line: OutgoingLine) -> None:
        self.number = number
        self.method = method
        self.peer = peer  # None: it is our own
        self.token = token  # by which its client knows the progress of it
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


class StdioConnection:
    """Hears what `lines` bring, and is opened by `begin`."""

    def __init__(self, peer: Peer, strayed: Callable[[bytes], None] = lambda _: None) -> None:
        """`strayed` gets the lines that are no messages, and whatever else can be done with them is done."""
        self._peer = peer
        self._strayed = strayed
        self._lines: PipeLines | None = None
        self._server: ServerDescription | None = None
        self._modern = False
        self._last_number = 0
        # Those that wait for an answer, by their number: requests of coroutines, and calls that are their own line.
        self._waiting: dict[bytes, _Request | PendingCall] = {}
        self._tokens: dict[bytes, _Request | PendingCall] = {}  # whose progress the server reports under this token
        self._questions = ServerQuestions(self._reply)
        self._following = asyncio.Lock()
        self._watched: frozenset[str] = frozenset()  # in the handshake era, one by one
        self._subscription: asyncio.Task[msgspec.Raw] | None = None  # in the modern era
        self._to_acknowledge: tuple[int, asyncio.Event] | None = None
        self.probing = False  # whether `server/discover` was sent as the first message, and is not answered

    @property
    def server(self) -> ServerDescription:
        assert self._server is not None, "the conversation has not begun"
        return self._server

    # how it begins

    async def begin(self, lines: PipeLines, *, modern_first: bool) -> None:
        """Find an era that the server speaks; Refusal or Lost where there is none. How long that may take is not known.

        One after the other: a server of both eras takes the first of them that it answers for agreed.
        """
        self._lines = lines
        first, second = (self._discover, self._initialize) if modern_first else (self._initialize, self._discover)
        self.probing = modern_first
        try:
            self._server = await first()
        except (RpcError, UnusableServer) as refused:
            self.probing = False
            try:
                self._server = await second()
            except (RpcError, UnusableServer) as again:
                raise UnusableServer(_refusal(refused if not modern_first else again)) from None
        self.probing = False
        self._modern = self._server.modern
        if not self._modern:
            await self.notify("notifications/initialized", {})

    async def _discover(self) -> ServerDescription:
        return discovered_server(await self._call("server/discover", with_envelope({}, self._peer), None))

    async def _initialize(self) -> ServerDescription:
        return initialized_server(await self._call("initialize", initialize_params(self._peer.client), None))

    # what is said to the server

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        if not self.server.modern:
            return await self._call(method, without_envelope(params), peer)

        async def send(params: Params) -> msgspec.Raw:
            return await self._call(method, with_envelope(params, peer), peer)

        return await call_until_complete(params, peer, send)

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:  # noqa: ARG002
        """See `Connection.send`.

        Not for a progress token that another call uses already, or that the server may spell differently (with or
        without escapes): such a token is replaced by one of ours, which `request` does.
        """
        assert self._lines is not None
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
        assert self._lines is not None
        self._lines.flush()

    def cancel(self, call: PendingCall) -> None:
        number = call.ticket
        assert isinstance(number, bytes)
        assert self._lines is not None
        if self._waiting.pop(number, None) is not None:
            self._tokens.pop(call.progress_token, None)
            self._lines.flush()
            if not self._lines.withdraw(call):
                self._tell(CANCELLED, {"requestId": int(number)})

    async def notify(self, method: str, params: Params) -> None:
        # A cancellation names its client's number, and has been sent with ours when its request was cancelled.
        if method == CANCELLED or (self.server.modern and method in NO_MODERN_NOTIFICATIONS):
            return
        self._tell(method, params)

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        async with self._following:
            if self.server.modern:
                try:
                    await self._subscribe(uris)
                except RpcError as refusal:
                    return dict.fromkeys(uris, refusal)
                return {}
            tried = {uri: await self._watch(uri, wanted=True) for uri in uris - self._watched}
            for uri in self._watched - uris:
                await self._watch(uri, wanted=False)  # a refusal of that changes nothing
            return {uri: refusal for uri, refusal in tried.items() if refusal is not None}

    async def set_level(self, level: str) -> None:
        """Modern servers are told with each request."""
        if not self.server.modern and "logging" in self.server.capabilities:
            await self._call("logging/setLevel", {"level": level}, None)

    async def close(self) -> None:
        """Nothing: others may speak here, too. The conversation ends with the server, and the server with its owner."""

    async def _call(self, method: str, params: Params, peer: Peer | None) -> msgspec.Raw:
        return await self._result(self._send(method, params, peer))

    def _send(self, method: str, params: Params, peer: Peer | None) -> _Request:
        self._last_number += 1
        number, token = self._last_number, _meta(params).get("progressToken")
        if token is not None:  # two clients may use the same
            ours = f"{OUR_TOKEN}{number}"
            params = {**params, "_meta": {**params["_meta"], "progressToken": ours}}
        line = self._write(request_bytes(number, method, params))
        request = self._waiting[b"%d" % number] = _Request(number, method, peer, token, line)
        if token is not None:
            self._tokens[b'"%b%d"' % (OUR_TOKEN.encode(), number)] = request
        return request

    async def _result(self, request: _Request) -> msgspec.Raw:
        try:
            answer = await request.answer
        except asyncio.CancelledError:
            self._take_back(request)
            raise
        finally:
            self._waiting.pop(b"%d" % request.number, None)
            if request.token is not None:
                self._tokens.pop(b'"%b%d"' % (OUR_TOKEN.encode(), request.number), None)
        if isinstance(answer, ConnectionLost | UnusableServer | RpcError):
            raise answer
        return result_in(answer)

    def _take_back(self, request: _Request) -> None:
        assert self._lines is not None
        answered = not request.answer.cancelled()
        if not answered and not self._lines.withdraw(request.line) and request.method != "initialize":
            self._tell(CANCELLED, {"requestId": request.number})

    async def _watch(self, uri: str, *, wanted: bool) -> RpcError | None:
        """Subscribe, or no longer; the server's refusal, if it does."""
        self._watched -= {uri}
        try:
            await self._call(f"resources/{'' if wanted else 'un'}subscribe", {"uri": uri}, None)
        except RpcError as refusal:
            return refusal
        if wanted:
            self._watched |= {uri}
        return None

    async def _subscribe(self, uris: frozenset[str]) -> None:
        """One subscription for all; the one before ends when the new one counts, so that nothing is missed."""
        request = self._send("subscriptions/listen", with_envelope(listen_params(uris), self._peer), None)
        acknowledged = asyncio.Event()
        self._to_acknowledge = request.number, acknowledged
        listening = asyncio.ensure_future(self._result(request))
        listening.add_done_callback(_unsubscribed)
        heard = asyncio.ensure_future(acknowledged.wait())
        try:
            await asyncio.wait((listening, heard), timeout=ACKNOWLEDGE_SECONDS, return_when=FIRST_COMPLETED)
        except asyncio.CancelledError:
            listening.cancel()
            raise
        finally:
            heard.cancel()
        if listening.done() and uris:
            listening.result()  # a refusal, most likely, and somebody waits for these resources
        before, self._subscription = self._subscription, listening
        if before is not None:
            before.cancel()
            await asyncio.wait((before,))

    def _tell(self, method: str, params: Params) -> None:
        try:
            self._write(notification_message(method, params))
        except (ConnectionLost, RpcError) as error:
            log.debug(f"'{shown(method)}' did not reach the server: {error}")

    async def _reply(self, message: bytes) -> None:
        self._write(message)

    def _write(self, message: bytes) -> OutgoingLine:
        assert self._lines is not None
        return self._lines.write(message)

    # what the server says

    def heard(self, lines: list[bytes | LineTooLong]) -> None:
        settled = None
        for line in lines:
            try:
                if not line.isascii():  # type: ignore[union-attr]  # a line that is too long is odd, too
                    line.decode()  # type: ignore[union-attr]
                message = decode(line)  # type: ignore[arg-type]
            except (ValueError, RecursionError, AttributeError):
                self._heard_oddly(line)
                continue
            try:
                if message.method is None:
                    settled = self._answered(message, line) or settled
                else:
                    self._said(message)
            except Exception:  # a defect of ours costs this message, and none behind it
                log.write(ERROR, f"{NOT_TAKEN}:\n{traceback.format_exc()}")
        if settled is not None:
            settled.turn_over()

    def _heard_oddly(self, line: bytes | LineTooLong) -> None:
        """Several messages in one line, a message behind other text, an answer that cannot be read, or no message."""
        messages: list[RawMessage] = []
        stray = b""
        if isinstance(line, bytes):
            try:
                messages = read_messages(line)
            except Garbage as garbage:
                log.debug(f"the server writes something to its output that is no message: {garbage}")
                stray, messages = embedded_messages(line)
        if not messages and (answer := unreadable_answer(line)) is not None:
            messages = [answer]
        for message in messages:
            try:
                if message.method is not None:
                    self._said(message)
                elif (settled := self._answered(message, line)) is not None:
                    settled.turn_over()
            except Exception:
                log.write(ERROR, f"{NOT_TAKEN}:\n{traceback.format_exc()}")
        if stray:
            self._strayed(stray)

    def deaf(self) -> None:
        self._lose([call for call in self._waiting.items() if not call[1].sent], "before it was asked")

    def ended(self) -> None:
        self._questions.close()
        self._lose(list(self._waiting.items()), "before it answered")

    def _lose(self, lost: list[tuple[bytes, _Request | PendingCall]], when: str) -> None:
        for number, call in lost:
            if not isinstance(call, _Request):
                del self._waiting[number]
                self._tokens.pop(call.progress_token, None)
            try:
                call.settle(ConnectionLost(f"The server has gone {when}.", sent=call.sent))
            except Exception:  # a defect of ours; the others are told all the same
                log.write(ERROR, f"a call could not be told that its server has gone:\n{traceback.format_exc()}")

    def _said(self, message: RawMessage) -> None:
        if message.is_question:
            self._asked(message)
        else:
            self._notified(message.method or "", message)

    def _asked(self, question: RawMessage) -> None:
        request = self._waiting.get(bytes(question.id))
        if self._server is None and isinstance(request, _Request) and request.method == question.method:
            request.settle(UnusableServer("it sends back what it is sent"))  # `cat`, or a terminal's echo
        else:
            self._questions.ask(question, self._asked_peer())

    def _answered(self, message: RawMessage, line: bytes | LineTooLong) -> PendingCall | None:
        """Settle the request that waits for it; the call, if that is its own line."""
        key = bytes(message.id)
        if message.result is ABSENT and message.error is ABSENT and (message.jsonrpc is ABSENT or key in UNNAMED):
            if isinstance(line, bytes):
                self._strayed(line)  # a log in JSON, most likely, whatever its `id` means
            return None
        call = self._waiting.pop(key, None)
        if call is None:
            call = self._unnamed(key, message)
        if call is None:
            log.debug(f"the server answers {shown(key.decode())}, for which nobody waits (any more)")
            if message.jsonrpc is ABSENT and isinstance(line, bytes):
                self._strayed(line)
            return None
        call.settle(message)
        if isinstance(call, _Request):
            return None
        if call.progress_token:
            self._tokens.pop(call.progress_token, None)
        return call

    def _unnamed(self, key: bytes, message: RawMessage) -> _Request | PendingCall | None:
        """The request that an answer without its number belongs to: a text that holds it, or an error without one."""
        if key.startswith(b'"'):  # some servers turn numbers into texts
            return self._waiting.pop(key.strip(b'"'), None)
        complains = key in UNNAMED and message.jsonrpc is not ABSENT and bytes(message.error).startswith(b"{")
        # It could not read the number of what it complains about.
        return self._waiting.popitem()[1] if complains and len(self._waiting) == 1 else None

    def _asked_peer(self) -> Peer:
        """Nothing tells to which request a question belongs; where there is only one, it is that."""
        peers = [peer for call in self._waiting.values() if (peer := _peer_of(call)) is not None]
        return peers[0] if len(peers) == 1 else self._peer

    def _notified(self, method: str, message: RawMessage) -> None:
        params = params_of(message)
        if method == PROGRESS:
            self._progressed(params)
        elif method == CANCELLED:
            self._questions.take_back(params)
        elif method == ACKNOWLEDGED:
            if self._to_acknowledge and _meta(params).get(SUBSCRIPTION_KEY) == self._to_acknowledge[0]:
                self._to_acknowledge[1].set()
        else:
            notify_peer(self._logged_peer() if method == LOGGED else self._peer, method, without_subscription(params))

    def _progressed(self, params: dict[str, Any]) -> None:
        call = self._tokens.get(encode_token(params.get("progressToken")))
        if call is None:
            log.debug("the server reports progress of something for which nobody waits (any more)")
        elif not isinstance(call, _Request):  # it was sent with its client's own token
            notify_peer(call, PROGRESS, params)
        elif call.peer is not None:
            notify_peer(call.peer, PROGRESS, {**params, "progressToken": call.token})

    def _logged_peer(self) -> Peer:
        """A modern server logs only for requests that want it, and does not say for which."""
        if not self._modern:
            return self._peer
        peers = [peer for call in self._waiting.values() if (peer := _peer_of(call)) is not None]
        listening = [peer for peer in peers if peer.log_level is not None]
        return listening[0] if len(listening) == 1 else self._peer


def _peer_of(call: _Request | PendingCall) -> Peer | None:
    return call.peer if isinstance(call, _Request) else call


def _unsubscribed(task: asyncio.Task[msgspec.Raw]) -> None:
    if not task.cancelled():
        log.debug(f"the server does not tell what changes (any more): {task.exception() or 'it has said so'}")


def _refusal(refused: RpcError | UnusableServer) -> str:
    if isinstance(refused, UnusableServer):
        return str(refused)
    return f"it refuses to begin a conversation: {shown(refused.message)} (code {refused.code})"


def _meta(params: Params) -> dict[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}
