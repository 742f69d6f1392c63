"""What stands on both sides of the relay, scripted: the engine and its connections, and a client's session and call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from uno_devserver.protocol.client.connection import Connection, Lost, Peer, Server
from uno_devserver.protocol.eras import MODERN_VERSIONS, NEWEST_HANDSHAKE
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.parties import ClientInfo, ServerInfo
from uno_devserver.protocol.service import Params, Result, Session
from uno_devserver.proxy.calls.forwarding import DEFAULT_LIMITS, ProxyService, CallLimits, Unavailable
from uno_devserver.proxy.state import ConnectionState, Lists, ProxyState

CONNECTED = ConnectionState.CONNECTED
RECONNECTING = ConnectionState.RECONNECTING
DEGRADED = ConnectionState.DEGRADED
MODERN = MODERN_VERSIONS[0]

# Waits that a test provokes are short; those that it must not see are long.
QUICK = DEFAULT_LIMITS.replace(
    first_pause_seconds=0.001, longest_pause_seconds=0.005, progress_seconds=0.005, grace_seconds=0.02
)


class Asked:
    """A request that has reached the upstream, and waits for what the test makes of it."""

    def __init__(self, connection: ScriptedConnection, method: str, params: Params, peer: Peer) -> None:
        self.connection = connection
        self.method = method
        self.params = params
        self.peer = peer
        self.cancelled = False
        self.outdated = False  # it came over a connection to an upstream that had been replaced
        self.outcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    @property
    def open(self) -> bool:
        return not self.outcome.done()

    def answer(self, result: bytes | Mapping[str, Any] = b'{"content":[]}') -> None:
        self.outcome.set_result(result if isinstance(result, bytes) else json.dumps(result).encode())

    def fail(self, code: int, message: str = "no", data: Any = None) -> None:
        self.outcome.set_exception(RpcError(code, message, data))

    def lose(self, *, sent: bool = True) -> None:
        self.outcome.set_exception(Lost("It is gone.", sent=sent))


class ScriptedConnection:
    """One conversation with a scripted server."""

    def __init__(self, link: ScriptedLink, peer: Peer, generation: int, modern: bool) -> None:
        self.server = Server({"name": "scripted"}, {}, None, MODERN if modern else NEWEST_HANDSHAKE)
        self.peer = peer
        self.generation = generation
        self.asked: list[Asked] = []
        self.told: list[tuple[str, Params]] = []
        self.levels: list[str] = []
        self.follows: list[frozenset[str]] = []
        self.gone = False
        self.closed = False
        self._link = link

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        if self.closed:
            raise Lost("It was closed.", sent=False)
        asked = Asked(self, method, params, peer)
        asked.outdated = self.generation != self._link.generation
        self.asked.append(asked)
        self._link.asked.append(asked)
        if self._link.answers is not None:
            self._link.answers(asked)
        try:
            return msgspec.Raw(await asked.outcome)
        except asyncio.CancelledError:
            asked.cancelled = True
            raise

    async def notify(self, method: str, params: Params) -> None:
        self.told.append((method, params))

    async def follow(self, uris: frozenset[str]) -> dict[str, RpcError]:
        if self.gone:
            raise Lost("It is gone.", sent=True)
        self.follows.append(uris)
        refusal = RpcError(METHOD_NOT_FOUND, "There is no such resource.")
        return dict.fromkeys(uris & self._link.refuses_to_follow, refusal)

    async def set_level(self, level: str) -> None:
        self.levels.append(level)

    async def close(self) -> None:
        self.closed = True
        for asked in self.asked:
            if asked.open:
                asked.lose()


class ScriptedLink:
    """The engine, as the relay sees it."""

    def __init__(self, state: ConnectionState = CONNECTED, *, modern: bool = False) -> None:
        self.state = state
        self.generation = 1 if state is CONNECTED else 0
        self.fallback = False
        self.proven = 0  # the last generation that has answered
        self.modern = modern  # the era of its servers
        self.tools: dict[str, Mapping[str, Any]] = {}
        self.asked: list[Asked] = []  # in all conversations
        self.answers: Callable[[Asked], None] | None = None  # what becomes of a request at once
        self.connections: list[ScriptedConnection] = []
        self.eras_wanted: list[bool] = []
        self.unreachable: Exception | None = None  # why nobody can connect
        self.gate: asyncio.Event | None = None  # for whom connecting waits
        self.refuses_to_follow: set[str] = set()
        self.turns = 0  # of the loop that connecting takes
        self.attempts_wanted = 0
        self.settled: ConnectionState | None = None  # what follows when somebody looks again whether anything changed
        self.changes = 0
        self.losses: list[int] = []
        self.workspaces: list[tuple[str, str | None]] = []
        self.selections: list[tuple[str, bool]] = []
        self.answer_of_selection: dict[str, Any] = {"status": "started"}
        self.waited: list[float] = []
        self._changed = asyncio.Event()

    # What the test does.

    def connect_anew(self) -> None:
        """Another upstream is there."""
        self.generation += 1
        self.be(CONNECTED)

    def crash(self, state: ConnectionState = RECONNECTING, *, sent: bool = True) -> None:
        """The upstream is gone; all who wait for it hear so."""
        self.be(state)
        for asked in self.asked:
            if asked.open:
                asked.lose(sent=sent)

    def be(self, state: ConnectionState) -> None:
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()

    # What the relay sees.

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return self.tools.get(name)

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        self.eras_wanted.append(modern_first)
        generation = self.generation
        for _ in range(self.turns):
            await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.unreachable is not None:
            raise self.unreachable
        if self.state is not CONNECTED:
            raise Unavailable("There is no upstream.", "Wait.")
        connection = ScriptedConnection(self, peer, generation, self.modern)
        self.connections.append(connection)
        return connection

    async def reconsider(self) -> None:
        if self.settled is not None:
            self.be(self.settled)

    async def until_connected(self, seconds: float) -> bool:
        self.waited.append(seconds)
        try:
            async with asyncio.timeout(seconds):
                while self.state not in (CONNECTED, DEGRADED) and not self.fallback:
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self.state is CONNECTED

    def wanted(self) -> None:
        self.attempts_wanted += 1

    def worked(self, generation: int) -> None:
        self.proven = generation

    def lost(self, generation: int) -> None:
        self.losses.append(generation)

    def lists_changed(self) -> None:
        self.changes += 1

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        self.workspaces.append((directory, solution))
        return {"status": "ready", "workspaceDirectory": directory, "toolCount": 2, "message": "It works."}

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        self.selections.append((solution, force_restart))
        return self.answer_of_selection


class ScriptedSession:
    """A client's connection, as an endpoint would hand it over."""

    def __init__(self, version: str = NEWEST_HANDSHAKE, name: str = "c", **capabilities: Any) -> None:
        self.client = ClientInfo(name, "1", capabilities, version)
        self.heard: list[tuple[str, Params | None]] = []
        self.asked: list[tuple[str, Params]] = []

    def notify(self, method: str, params: Params | None = None) -> None:
        self.heard.append((method, params))

    async def ask(self, method: str, params: Params) -> Result:
        self.asked.append((method, params))
        return {"from": "the session"}


class ScriptedCall:
    """A request of a client."""

    def __init__(self, method: str, params: Params | None = None, session: Session | None = None) -> None:
        self.id = 1
        self.method = method
        self.params: Params = params or {}
        self.session: Session = session or ScriptedSession()
        self.log_level: str | None = "info"
        self.heard: list[tuple[str, Params | None]] = []
        self.asked: list[tuple[str, Params, str | None]] = []
        self.reply: asyncio.Future[Result] | None = None  # to a question; None: it is answered at once

    def notify(self, method: str, params: Params | None = None) -> None:
        self.heard.append((method, params))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        self.asked.append((method, params, name))
        return {"from": "the call"} if self.reply is None else await self.reply

    def close_stream(self) -> None:
        raise NotImplementedError


def tool_call(name: str = "echo", session: Session | None = None, **more: Any) -> ScriptedCall:
    return ScriptedCall("tools/call", {"name": name, "arguments": {}, **more}, session)


def board_of(lists: Lists | None = None, health: Mapping[str, object] | None = None, **more: Any) -> ProxyState:
    report = dict(health or {"status": "Healthy", "issues": []})
    server = ServerInfo("uno-devserver", "1.2.3", None, "Be nice.")
    declared = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
    return ProxyState(server, declared, lists or Lists(), lambda: report, **more)


class Scene:
    """A relay between a scripted engine and its state."""

    def __init__(
        self,
        state: ConnectionState = CONNECTED,
        *,
        modern: bool = False,
        state: ProxyState | None = None,
        link: ScriptedLink | None = None,
        policy: CallLimits = QUICK,
    ) -> None:
        self.link = link or ScriptedLink(state, modern=modern)
        self.state = state or board_of()
        self.updated: list[str] = []
        self.roots_changed: list[Session] = []
        self.relay = ProxyService(
            self.link,
            self.state,
            resource_updated=self.updated.append,
            roots_changed=self.roots_changed.append,
            policy=policy,
        )

    def start(self, call: ScriptedCall) -> asyncio.Task[Result | msgspec.Raw]:
        return asyncio.ensure_future(self.relay.answer(call))

    async def next_asked(self) -> Asked:
        """The request that reaches the upstream next."""
        async with asyncio.timeout(10):
            while not any(asked.open for asked in self.link.asked):
                await asyncio.sleep(0)
        return next(asked for asked in self.link.asked if asked.open)


def said(result: Result | msgspec.Raw) -> Any:
    """What a client would read."""
    return json.loads(msgspec.json.encode(result))


def text_of(result: Result | msgspec.Raw) -> str:
    return str(said(result)["content"][0]["text"])
