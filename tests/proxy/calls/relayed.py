"""A client on standard input and output whose calls are relayed: the parts wired as the engine wires them."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

from hypothesis import strategies as st

from support.loop_pipes import pipe_from_loop, pipe_to_loop, read_at_once
from support.relays import CONNECTED, DEGRADED, MODERN, QUICK, Asked, Scene, ScriptedLink, ScriptedState
from support.waiting import until
from uno_devserver.protocol.client.connection import Connection, ConnectionLost, Peer
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.client.pipe_lines import PipeLines
from uno_devserver.protocol.client.stdio import StdioConnection
from uno_devserver.protocol.jsonrpc import RpcNotification, RpcRequest, RpcResponse
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.proxy.calls.call_queue import CallQueue
from uno_devserver.proxy.calls.relay import CallRelay
from uno_devserver.proxy.calls.upstream_link import CallLimits
from uno_devserver.proxy.front.dispatcher import Dispatcher
from uno_devserver.proxy.front.output import ClientOutput
from uno_devserver.proxy.front.session import StdioSession
from uno_devserver.proxy.state import ConnectionState

KEY = "io.modelcontextprotocol/"
FIRST_ID = "first"


class RelayedClient:
    """Front, session and relay between a client and a scripted upstream. Implements `front.dispatcher.Engine`."""

    def __init__(
        self,
        connection: ConnectionState = CONNECTED,
        *,
        modern: bool = False,
        modern_server: bool | None = None,
        limits: CallLimits = QUICK,
        state: ScriptedState | None = None,
        link: ScriptedLink | None = None,
    ) -> None:
        """`modern` is the era of the client, `modern_server` of the upstream: the same, unless it is given."""
        self.modern = modern
        era = modern if modern_server is None else modern_server
        self.scene = Scene(connection, modern=era, state=state, link=link, limits=limits)
        self.link, self.state, self.service = self.scene.link, self.scene.state, self.scene.service
        self._reading, self._writing = os.pipe()
        if sys.platform != "win32":
            os.set_blocking(self._reading, False)
        self.output = ClientOutput(self._writing)
        self.front = Dispatcher(self.state, self.output, lambda: None)
        self.session = StdioSession(self.service, self.front.write)
        self.relay = CallRelay(self.state, self.service, self.session, self.output)
        self.front.open(self)
        self.lines: list[bytes] = []  # what the client was told
        self._rest = b""

    def close(self) -> None:
        self.relay.close()
        os.close(self._reading)
        os.close(self._writing)

    # What the front passes on.

    def client_met(self, client: ClientInfo) -> None:
        self.session.introduce(client)
        self.service.conversations.met(client)

    def list_read(self, tools: bytes | None) -> None:
        self.service.forwarding.list_read()

    def take(self, message: RpcRequest | RpcNotification | RpcResponse) -> None:
        self.session.take(message)

    # What the client says.

    def send(self, *lines: bytes) -> None:
        """In one read."""
        self.front.take(lines)

    def call(self, name: str = "echo", request_id: int | str = 1, **params: Any) -> None:
        self.send(self.line(name, request_id, **params))

    def line(self, name: str = "echo", request_id: int | str = 1, **params: Any) -> bytes:
        if self.modern:
            params["_meta"] = {**envelope(), **params.get("_meta", {})}
        return message(request_id, "tools/call", {"name": name, **params})

    def cancel(self, request_id: int | str) -> None:
        self.send(message(None, "notifications/cancelled", {"requestId": request_id}))

    def reply(self, question: dict[str, Any], result: dict[str, Any]) -> None:
        """Answer a question of the upstream."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode())

    def introduce(self, **capabilities: Any) -> None:
        """Shake hands; a modern client says who it is with each request."""
        if not self.modern:
            who = {"name": "c", "version": "1"}
            said = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": who}
            self.send(message("init", "initialize", said))
            self.send(message(None, "notifications/initialized", {}))

    async def begin(self, **capabilities: Any) -> None:
        """Introduce itself, and make a first call: from then on there is a connection over which calls are relayed."""
        self.introduce(**capabilities)
        self.call("begin", FIRST_ID)
        (await self.next_asked()).answer()
        await self.answer(FIRST_ID)
        self.link.asked.clear()
        self.lines.clear()

    # What it hears.

    def heard(self) -> list[dict[str, Any]]:
        """All messages so far."""
        is_written = False
        while not is_written:  # a thread writes what a client does not read at once, and on Windows everything
            is_written = not self.output._waiting
            try:
                while data := read_at_once(self._reading):
                    *lines, self._rest = (self._rest + data).split(b"\n")
                    self.lines += lines
            except BlockingIOError:
                pass
        return [json.loads(line) for line in self.lines]

    def answers(self, request_id: int | str = 1) -> list[dict[str, Any]]:
        return [said for said in self.heard() if said.get("id") == request_id and "method" not in said]

    async def answer(self, request_id: int | str = 1) -> dict[str, Any]:
        """The only answer, when it has come."""
        await until(lambda: bool(self.answers(request_id)))
        (only,) = self.answers(request_id)
        return only

    async def text(self, request_id: int | str = 1) -> str:
        return str((await self.answer(request_id))["result"]["content"][0]["text"])

    # What the upstream sees.

    async def next_asked(self) -> Asked:
        return await self.scene.next_asked()

    @property
    def asked(self) -> Asked:
        """The only request that the upstream has."""
        (only,) = [asked for asked in self.link.asked if asked.open]
        return only

    def use_queue(self, queue: CallQueue | None) -> None:
        self.service.forwarding.queue = queue


class Upstreams:
    """What may happen to the upstream of a scene, for scripts of steps."""

    scene: Scene

    @property
    def waiting(self) -> list[Asked]:
        return [asked for asked in self.scene.link.asked if asked.open]

    def lose(self, which: int, sent: bool) -> None:
        """One request loses its connection; the upstream stays."""
        if self.waiting:
            self.waiting[which % len(self.waiting)].lose(sent=sent)

    def crash(self, sent: bool, told: bool) -> None:
        if self.scene.link.state is CONNECTED:
            self.scene.link.crash(sent=sent)
            self._tell(told)

    def give_up(self) -> None:
        self.scene.link.crash(DEGRADED)
        self._tell(True)

    def come(self, told: bool) -> None:
        """Another upstream is there; the old one may not even have been missed."""
        self.scene.link.connect_anew()
        self._tell(told)

    def swap(self) -> None:
        """Another upstream takes the place of the one that works, which answers what it was asked."""
        if self.scene.link.state is CONNECTED:
            self.scene.link.connect_anew()
            self.scene.service.conversations.renew(old_answers=True)

    def _tell(self, told: bool) -> None:
        if told:
            self.scene.service.conversations.renew()


which = st.integers(0, 9)
upstream_steps = st.one_of(
    st.tuples(st.just("answer"), which),
    st.tuples(st.just("lose"), which, st.booleans()),
    st.tuples(st.just("cancel"), which),
    st.tuples(st.just("crash"), st.booleans(), st.booleans()),
    st.tuples(st.just("give_up")),
    st.tuples(st.just("come"), st.booleans()),
    st.tuples(st.just("swap")),
)


def was_lost_unsent(run: Asked) -> bool:
    error = run.outcome.exception() if run.outcome.done() and not run.outcome.cancelled() else None
    return isinstance(error, ConnectionLost) and not error.sent


@contextmanager
def relayed_client(*args: Any, **options: Any) -> Iterator[RelayedClient]:
    client = RelayedClient(*args, **options)
    try:
        yield client
    finally:
        client.close()


def message(request_id: int | str | None, method: str, params: dict[str, Any]) -> bytes:
    identity = {} if request_id is None else {"id": request_id}
    return json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params}).encode()


def envelope(version: str = MODERN, **capabilities: Any) -> dict[str, Any]:
    """What a modern client says with each request."""
    return {
        f"{KEY}protocolVersion": version,
        f"{KEY}clientCapabilities": capabilities,
        f"{KEY}clientInfo": {"name": "c", "version": "1"},
    }


class PipedServer:
    """The far end of two pipes: a server on pipes without a process."""

    def __init__(self) -> None:
        self.received: list[bytes] = []  # lines
        self._reading, theirs = pipe_from_loop()
        ours, self._writing = pipe_to_loop()
        self._ends: tuple[IO[bytes], IO[bytes]] = (ours, theirs)
        self._rest = b""
        self._reads = self._writes = True

    async def open(self, peer: Peer, *, modern: bool) -> StdioConnection:
        lines = PipeLines(lambda: None)
        connection = StdioConnection(peer, lines)
        await lines.open(*self._ends, connection)
        beginning = asyncio.ensure_future(connection.begin(modern_first=modern))
        opening = json.loads(await self.next())
        about: dict[str, Any] = {"capabilities": {}, "serverInfo": {"name": "piped"}}
        about |= {"supportedVersions": [MODERN]} if modern else {"protocolVersion": "2025-11-25"}
        self.say({"id": opening["id"], "result": about})
        await beginning
        if not modern:
            await self.next()  # notifications/initialized
        return connection

    def read(self) -> list[bytes]:
        """All lines that came and were not taken."""
        try:
            while self._reads and (data := read_at_once(self._reading)):
                *lines, self._rest = (self._rest + data).split(b"\n")
                self.received += lines
        except BlockingIOError:
            pass
        return self.received

    async def next(self) -> bytes:
        await until(lambda: bool(self.read()))
        return self.received.pop(0)

    def write(self, data: bytes) -> None:
        os.write(self._writing, data)

    def say(self, *messages: dict[str, Any]) -> None:
        """In one write, and as JavaScript would write them."""
        lines = (json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n" for message in messages)
        self.write(b"".join(lines))

    def stop_reading(self) -> None:
        """What is written to it from now on cannot arrive."""
        if self._reads:
            self._reads = False
            os.close(self._reading)

    def hang_up(self) -> None:
        self.stop_reading()
        if self._writes:
            self._writes = False
            os.close(self._writing)


class PipedLink(ScriptedLink):
    """Its upstream is on pipes."""

    def __init__(self, *, modern: bool = False) -> None:
        super().__init__(CONNECTED, modern=modern)
        self.servers: list[PipedServer] = []

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        self.eras_wanted.append(modern_first)
        server = PipedServer()
        connection = await server.open(peer, modern=self.modern)
        self.servers.append(server)
        return connection


class HttpLink(ScriptedLink):
    """Its upstream is at a URL."""

    def __init__(self, url: str, *, modern: bool = False) -> None:
        super().__init__(CONNECTED, modern=modern)
        self._url = url

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        self.eras_wanted.append(modern_first)
        return await connect_http(self._url, peer, modern_first=modern_first)


@contextmanager
def no_tasks() -> Iterator[None]:
    """Nothing inside may create a task, or run a coroutine of ours."""
    loop = asyncio.get_running_loop()
    before = asyncio.all_tasks()
    created: list[object] = []
    coroutines: set[str] = set()
    create = loop.create_task

    def record_task(coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        created.append(coroutine)
        return create(coroutine, **options)

    def record_coroutine(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_COROUTINE and "uno_devserver" in code.co_filename:
            coroutines.add(code.co_qualname)

    loop.create_task = record_task  # type: ignore[method-assign, assignment]
    sys.setprofile(record_coroutine)
    try:
        yield
    finally:
        sys.setprofile(None)
        loop.create_task = create  # type: ignore[method-assign]
    assert created == []
    assert coroutines == set()
    assert asyncio.all_tasks() <= before
