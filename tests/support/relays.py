"""Scripted neighbours of `proxy/calls/`: the keeper with its connections on one side, a client's calls on the other."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from uno_devserver.protocol.client.connection import (
    Connection,
    ConnectionLost,
    Peer,
    PendingCall,
    ServerDescription,
    UnusableServer,
)
from uno_devserver.protocol.client.raw_messages import RawMessage
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.service import Params, Result, Session
from uno_devserver.protocol.versions import MODERN_VERSIONS, NEWEST_HANDSHAKE
from uno_devserver.proxy.calls.forwarder import Forwarder
from uno_devserver.proxy.calls.service import ProxyService
from uno_devserver.proxy.calls.upstream_link import DEFAULT_LIMITS, CallLimits, Unavailable
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, Lists, ProxyState
from uno_devserver.proxy.upstream.base import Ending

CONNECTED = ConnectionState.CONNECTED
RECONNECTING = ConnectionState.RECONNECTING
DEGRADED = ConnectionState.DEGRADED
MODERN = MODERN_VERSIONS[0]

# Waits that a test provokes are short; those that it must not see are long.
QUICK = DEFAULT_LIMITS.replace(
    first_pause_seconds=0.001, longest_pause_seconds=0.005, progress_seconds=0.005, grace_seconds=0.02
)


EARLY_TURNS = 100  # of the loop, without any time passing; a virtual clock needs some to pass at last


class Asked:
    """A request that has reached the upstream, and waits for what the test makes of it.

    `call` is set where it was relayed: then there is no task that waits, and the call itself hears what becomes of it.
    """

    def __init__(
        self,
        connection: ScriptedConnection,
        method: str,
        params: Params,
        peer: Peer,
        call: PendingCall | None = None,
        raw: bytes = b"",
    ) -> None:
        self.connection = connection
        self.method = method
        self.params = params
        self.peer = peer
        self.call = call
        self.raw = raw  # the params as they were written, of a relayed call
        self.cancelled = False
        self.outdated = connection.is_outdated
        self.outcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    @property
    def open(self) -> bool:
        return not self.outcome.done()

    @property
    def relayed(self) -> bool:
        return self.call is not None

    def answer(self, result: bytes | Mapping[str, Any] = b'{"content":[]}') -> None:
        data = result if isinstance(result, bytes) else json.dumps(result).encode()
        self.outcome.set_result(data)
        self._settle(RawMessage(result=msgspec.Raw(data)))

    def fail(self, code: int, message: str = "no", data: Any = None) -> None:
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self._end_with(RpcError(code, message, data))
        self._settle(RawMessage(error=msgspec.Raw(json.dumps(error).encode())))

    def lose(self, *, sent: bool = True) -> None:
        loss = ConnectionLost("It is gone.", sent=sent)
        self._end_with(loss)
        self._settle(loss)

    def _end_with(self, error: Exception) -> None:
        self.outcome.set_exception(error)
        if self.call is not None:
            self.outcome.exception()  # nothing awaits it

    def _settle(self, outcome: RawMessage | ConnectionLost) -> None:
        if self.call is not None:
            self.call.ticket = None  # it holds the call: a cycle that is not collected
            self.call.settle(outcome)
            self.call.turn_over()


class ScriptedConnection:
    """One conversation with a scripted server."""

    def __init__(self, link: ScriptedLink, peer: Peer, generation: int, modern: bool) -> None:
        self.server = ServerDescription({"name": "scripted"}, {}, None, MODERN if modern else NEWEST_HANDSHAKE)
        self.peer = peer
        self.generation = generation
        self.asked: list[Asked] = []
        self.told: list[tuple[str, Params]] = []
        self.levels: list[str] = []
        self.follows: list[frozenset[str]] = []
        self.gone = False
        self.closed = False
        self._link = link

    @property
    def is_outdated(self) -> bool:
        """Whether it leads to an upstream that has been replaced."""
        return self.generation != self._link.generation

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        if self.closed:
            raise ConnectionLost("It was closed.", sent=False)
        asked = Asked(self, method, _read(params), peer)
        self._ask(asked)
        try:
            return msgspec.Raw(await asked.outcome)
        except asyncio.CancelledError:
            asked.cancelled = True
            raise

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        if self.closed or self._link.declines_calls:
            return False
        decoded = json.loads(bytes(params))
        assert decoded["name"] == name
        call.ticket = Asked(self, "tools/call", decoded, call, call, bytes(params))
        call.sent = True
        self._ask(call.ticket)
        return True

    def flush(self) -> None: ...

    def cancel(self, call: PendingCall) -> None:
        asked = call.ticket
        assert isinstance(asked, Asked)
        call.ticket = None
        asked.cancelled = True
        asked.outcome.cancel()

    def _ask(self, asked: Asked) -> None:
        self.asked.append(asked)
        self._link.asked.append(asked)
        answers = self._link.answers
        if answers is None:
            return
        if asked.relayed:  # a connection never settles a call while it is being sent
            asyncio.get_running_loop().call_soon(answers, asked)
        else:
            answers(asked)

    async def notify(self, method: str, params: Params) -> None:
        self.told.append((method, params))

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        if self.gone:
            raise ConnectionLost("It is gone.", sent=True)
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


def _read(params: Params) -> Params:
    """The params as a server would read them: members that were not decoded are still bytes."""
    return {key: json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else value for key, value in params.items()}


class ScriptedLink:
    """The keeper of the upstream, as calls see it."""

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
        self.unreachable: Exception | None = None  # why connecting fails
        self.gate: asyncio.Event | None = None  # connecting waits for it
        self.refuses_to_follow: set[str] = set()
        self.declines_calls = False  # its connections take no calls but those of `request`
        self.turns = 0  # of the loop that connecting takes
        self.attempts_wanted = 0
        self.settled: ConnectionState | None = None  # the state after the next look for changes
        self.changes = 0
        self.losses: list[int] = []
        self.endings: dict[int, Ending] = {}  # how its servers ended, by their generations
        self.refusals: list[tuple[int, int | None]] = []
        self.workspaces: list[tuple[str, str | None]] = []
        self.selections: list[tuple[str, bool]] = []
        self.answer_of_selection: dict[str, Any] = {"status": "started"}
        self.waited: list[float] = []
        self._changed = asyncio.Event()
        self._reports_to: list[ProxyState] = []

    # What the test does.

    def connect_anew(self) -> None:
        """Connect another upstream."""
        self.generation += 1
        self.be(CONNECTED)

    def crash(self, state: ConnectionState = RECONNECTING, *, sent: bool = True) -> None:
        """End the upstream, and fail all requests that wait for it."""
        self.be(state)
        for asked in self.asked:
            if asked.open:
                asked.lose(sent=sent)

    def be(self, state: ConnectionState) -> None:
        self.state = state
        self._report()
        self._changed.set()
        self._changed = asyncio.Event()

    def report_to(self, state: ProxyState) -> None:
        """Keep it up to date, as the keeper does."""
        self._reports_to.append(state)
        self._report()

    def _report(self) -> None:
        for state in self._reports_to:
            state.learn(state=self.state, generation=self.generation)

    # What calls see.

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
            raise Unavailable("There is no upstream.")
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

    def retry_due_in(self) -> float:
        return 0.0

    def worked(self, generation: int) -> None:
        self.proven = generation

    def lost(self, generation: int) -> None:
        self.losses.append(generation)

    async def how_it_ended(self, generation: int, seconds: float) -> Ending | None:
        return self.endings.get(generation)

    def refused(self, generation: int, refusal: UnusableServer) -> None:
        self.refusals.append((generation, refusal.status))

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


class ScriptedState(ProxyState):
    """A proxy's state whose health report is what the test wants."""

    def __init__(self, lists: Lists, health: Mapping[str, object], own_tools: frozenset[str], wait_tools: bool) -> None:
        super().__init__(
            ProxyOptions("/work", wait_tools=wait_tools),
            lists=lists,
            own_tools=own_tools,
            capabilities={"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}},
            instructions="Be nice.",
        )
        self.health = dict(health)

    def report(self) -> dict[str, object]:
        return self.health


def state_of(
    lists: Lists | None = None,
    health: Mapping[str, object] | None = None,
    *,
    own_tools: frozenset[str] = frozenset(),
    wait_tools: bool = False,
) -> ScriptedState:
    return ScriptedState(lists or Lists(), health or {"status": "Healthy", "issues": []}, own_tools, wait_tools)


class Scene:
    """The service of the proxy between a scripted upstream and the clients of a test."""

    def __init__(
        self,
        connection: ConnectionState = CONNECTED,
        *,
        modern: bool = False,
        state: ScriptedState | None = None,
        link: ScriptedLink | None = None,
        limits: CallLimits = QUICK,
    ) -> None:
        self.link = link or ScriptedLink(connection, modern=modern)
        self.state = state or state_of()
        self.link.report_to(self.state)
        self.updated: list[str] = []
        self.roots_changed: list[Session] = []
        forwarding = Forwarder(self.link, self.state, self.updated.append, limits)
        self.service = ProxyService(
            forwarding,
            resource_updated=lambda _: None,
            roots_changed=self.roots_changed.append,
            reconsider=self.link.reconsider,
        )

    def start(self, call: ScriptedCall) -> asyncio.Task[Result | msgspec.Raw]:
        return asyncio.ensure_future(self.service.answer(call))

    def replace_upstream(self, *, old_answers: bool = False) -> None:
        """Connect another upstream, and tell the conversations."""
        self.link.connect_anew()
        self.service.conversations.renew(old_answers=old_answers)

    async def next_asked(self) -> Asked:
        """The request that reaches the upstream next."""
        async with asyncio.timeout(10):
            for turn in itertools.count():
                if any(asked.open for asked in self.link.asked):
                    break
                await asyncio.sleep(0 if turn < EARLY_TURNS else 0.001)
        return next(asked for asked in self.link.asked if asked.open)


def said(result: Result | msgspec.Raw) -> Any:
    """A result as a client reads it."""
    return json.loads(msgspec.json.encode(result))


def text_of(result: Result | msgspec.Raw) -> str:
    return str(said(result)["content"][0]["text"])
