"""Conversations with the endpoint without sockets: a client that posts, listens, loses connections and comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from uno_devserver.protocol.http.messages import Request, Response, Streaming
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError
from uno_devserver.protocol.peer_info import ServerInfo
from uno_devserver.protocol.server.limits import DEFAULT_ENDPOINT_LIMITS
from uno_devserver.protocol.server.streamable_http import StreamableHttp
from uno_devserver.protocol.service import Call, Params, Result, Session

WAIT_SECONDS = 10  # longer than any step takes on a busy machine
BOTH = "application/json, text/event-stream"
MODERN = "2026-07-28"
QUESTION: dict[str, Any] = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}

Tool = Callable[[Call], Awaitable[Result | msgspec.Raw]]


async def echo(call: Call) -> Result:
    """A tool that returns its argument `text`."""
    return text(call.params["arguments"]["text"])


async def ask_who(call: Call) -> Result:
    """A tool that asks its client `QUESTION`, and returns the answer."""
    return text((await call.ask("elicitation/create", QUESTION))["content"]["name"])


class ScriptedService:
    """Answers methods by the functions it was given, and remembers what it was told."""

    info = ServerInfo("scripted", "1.2.3", "A scripted service", "Be nice.")

    def __init__(self, **tools: Tool) -> None:
        self.tools = tools
        self.relays = False
        self.refused: set[str] = set()  # resources that nobody may watch
        self.follows: list[tuple[str, bool]] = []
        self.levels: list[str] = []
        self.methods: dict[str, Tool] = {}
        self.told: list[tuple[str, Params]] = []
        self.sessions: list[Session] = []
        self.declared: dict[str, Any] = {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "logging": {},
        }

    def capabilities(self) -> dict[str, Any]:
        return self.declared

    async def answer(self, call: Call) -> Result | msgspec.Raw:
        if call.method == "tools/call" and call.params.get("name") in self.tools:
            return await self.tools[call.params["name"]](call)
        if call.method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]}
        if call.method in self.methods:
            return await self.methods[call.method](call)
        raise RpcError(METHOD_NOT_FOUND, f"no {call.method}")

    async def notified(self, session: Session, method: str, params: Params) -> None:
        self.told.append((method, params))

    async def watched(self, uri: str, wanted: bool) -> None:
        self.follows.append((uri, wanted))
        if uri in self.refused:
            raise RpcError(RESOURCE_NOT_FOUND, f"no {uri}")

    async def log_level_set(self, session: Session, level: str) -> None:
        self.levels.append(level)

    def opened(self, session: Session) -> None:
        self.sessions.append(session)

    def closed(self, session: Session) -> None:
        self.sessions.remove(session)


class Waiting:
    """A tool that waits until it may go on. `speaks`: it says something first, and so has a stream."""

    def __init__(self, *, speaks: bool = False) -> None:
        self.started, self.go, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._speaks = speaks

    async def __call__(self, call: Call) -> Result:
        if self._speaks:
            call.notify("notifications/progress", {"progress": 1})
        self.started.set()
        try:
            await self.go.wait()
        finally:
            self.stopped.set()
        return text("done")


def text(said: object) -> Result:
    return {"content": [{"type": "text", "text": str(said)}]}


class Event:
    def __init__(self, block: str) -> None:
        fields = [line.partition(": ")[::2] for line in block.split("\n") if not line.startswith(":")]
        self.fields = {name.rstrip(":"): value for name, value in fields}
        self.id = self.fields.get("id")
        self.data = self.fields.get("data")
        self.message = json.loads(self.data) if self.data else None


class Connection:
    """The client's end of a streamed answer."""

    def __init__(self, answer: Streaming) -> None:
        self.status = answer.status
        self.headers = dict(answer.headers)
        self.raw = b""
        self._buffer = b""
        self._events: list[Event] = []
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._run(answer))

    async def _run(self, answer: Streaming) -> None:
        try:
            await answer.run(self)
        finally:
            self._arrived.set()

    async def write(self, data: bytes) -> None:
        self.raw += data
        *blocks, self._buffer = (self._buffer + data).split(b"\n\n")
        self._events += [Event(block.decode()) for block in blocks if not block.startswith(b":")]
        self._arrived.set()

    async def event(self) -> Event:
        """The next event, whatever it is."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not self._events:
                assert not self._task.done(), f"the stream ended: {self.raw!r}"
                self._arrived.clear()
                await self._arrived.wait()
        return self._events.pop(0)

    async def message(self) -> dict[str, Any]:
        """The next JSON-RPC message; openings are passed over."""
        while True:
            message = (await self.event()).message
            if message is not None:
                return dict(message)

    async def rest(self) -> list[dict[str, Any]]:
        """Every message until the stream ends."""
        await self.end()
        return [event.message for event in self._events if event.message is not None]

    async def end(self) -> None:
        await asyncio.wait_for(asyncio.shield(self._task), WAIT_SECONDS)

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def lose(self) -> None:
        """The client's network goes away."""
        self._task.cancel()
        await asyncio.wait([self._task], timeout=WAIT_SECONDS)


class Reply:
    """A plain answer."""

    def __init__(self, answer: Response) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.headers}
        self.body = answer.body

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def error(self) -> int | None:
        """The code of the error in it."""
        code = self.json.get("error", {}).get("code")
        return None if code is None else int(code)


class Client:
    """Posts to an endpoint; speaks for a session after `initialize`."""

    def __init__(self, endpoint: StreamableHttp) -> None:
        self.endpoint = endpoint
        self.connection: type[Connection] = Connection
        self.headers: dict[str, str] = {"accept": BOTH, "content-type": "application/json"}
        self._last_id = 0

    async def exchange(self, method: str, body: bytes = b"", **headers: str | None) -> Reply | Connection:
        """Any request. A header given as None is left out; underscores stand for dashes."""
        merged: dict[str, str | None] = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        kept = {name: value for name, value in merged.items() if value is not None}
        answer = await asyncio.wait_for(self.endpoint.handle(Request(method, "/mcp", "", kept, body)), WAIT_SECONDS)
        if isinstance(answer, Response):
            return Reply(answer)
        assert isinstance(answer, Streaming)
        return self.connection(answer)

    async def send(self, method: str, body: bytes = b"", **headers: str | None) -> Reply:
        """Any request that is answered at once."""
        reply = await self.exchange(method, body, **headers)
        assert isinstance(reply, Reply), reply.raw
        return reply

    async def post(self, message: object, **headers: str | None) -> Reply:
        """Any message that is answered at once."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.send("POST", body, **headers)

    async def open(self, message: object, **headers: str | None) -> Connection:
        """Any message that is answered by a stream."""
        connection = await self.exchange("POST", json.dumps(message).encode(), **headers)
        assert isinstance(connection, Connection), connection.body
        return connection

    async def ask(self, method: str, params: object = None, *, request_id: Any = None, **headers: str | None) -> Reply:
        """A request that is answered in JSON."""
        return await self.post(self.request(method, params, request_id=request_id), **headers)

    async def stream(
        self, method: str, params: object = None, *, request_id: Any = None, **headers: str | None
    ) -> Connection:
        """A request that is answered by a stream."""
        return await self.open(self.request(method, params, request_id=request_id), **headers)

    async def messages(self, method: str, params: object, **headers: str | None) -> list[dict[str, Any]]:
        """All that is said to a request, by a plain answer or by a stream."""
        answer = await self.exchange("POST", json.dumps(self.request(method, params)).encode(), **headers)
        return [answer.json] if isinstance(answer, Reply) else await answer.rest()

    async def tell(self, method: str, params: object = None) -> Reply:
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        return await self.post(message)

    async def respond(self, request_id: Any, **what: object) -> Reply:
        return await self.post({"jsonrpc": "2.0", "id": request_id, **what})

    async def listen(self, **headers: str | None) -> Connection:
        connection = await self.exchange("GET", b"", **headers)
        assert isinstance(connection, Connection), connection.body
        return connection

    def request(self, method: str, params: object = None, *, request_id: Any = None) -> dict[str, Any]:
        self._last_id += 1
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": self._last_id if request_id is None else request_id,
            "method": method,
        }
        if params is not None:
            message["params"] = params
        return message

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Reply:
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}}
        reply = await self.ask("initialize", params)
        self.headers["mcp-session-id"] = reply.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = reply.json["result"]["protocolVersion"]
        await self.tell("notifications/initialized")
        return reply


class ModernClient(Client):
    """Puts the envelope into every request, and the headers that repeat it."""

    def __init__(self, endpoint: StreamableHttp, **capabilities: Any) -> None:
        super().__init__(endpoint)
        self.capabilities = capabilities
        self.headers["mcp-protocol-version"] = MODERN

    def request(self, method: str, params: object = None, *, request_id: Any = None) -> dict[str, Any]:
        own = dict(params) if isinstance(params, dict) else {}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            **own.get("_meta", {}),
        }
        message = super().request(method, {**own, "_meta": meta}, request_id=request_id)
        self.headers["mcp-method"] = method
        self.headers["mcp-name"] = str(own.get("name") or own.get("uri") or "")
        return message


def endpoint_of(service: ScriptedService, **limits: Any) -> StreamableHttp:
    return StreamableHttp(service, DEFAULT_ENDPOINT_LIMITS.replace(**limits))


async def connected(
    service: ScriptedService,
    version: str = "2025-11-25",
    limits: Mapping[str, Any] | None = None,
    **capabilities: Any,
) -> Client:
    """An initialized client."""
    client = Client(endpoint_of(service, **(limits or {})))
    await client.initialize(version, **capabilities)
    return client


def timers() -> int:
    """How many timers the loop has."""
    waiting: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return sum(not timer.cancelled() for timer in waiting)
