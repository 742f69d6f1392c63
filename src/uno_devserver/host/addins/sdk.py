"""Serves servers made with the official SDK, in this process.

Every request goes through the SDK's own driver for single exchanges, so validation, middleware and lifespan work as
they do elsewhere; the server's notifications and requests are sent by our call, in the client's protocol version. Only
this module imports the SDK, and only for an add-in that brings a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import serve_one
from mcp.server.subscriptions import ServerEvent
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import LISTEN_STREAM_METHODS, event_to_notification
from mcp.shared.transport_context import TransportContext
from pydantic import ValidationError

from ...protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from ...protocol.service import Call, Params, Result
from ...protocol.versions import HANDSHAKE_VERSIONS, MODERN_VERSIONS, NEWEST_HANDSHAKE, SERVER_KEY
from ...system.log import log
from .context import progress_token
from .failures import as_addin_exit, log_failure, sentence
from .invocation import CallTarget, invoke

if TYPE_CHECKING:
    from ..mcp_requests import ListKind
    from .loaded_addin import LoadedAddIn

PAGES = 100  # the most pages of one list, for servers whose cursor never ends
ROUNDS = 20  # the most rounds of input requests in one call, for the same reason

# The kind of a call in the report of running calls, and the parameter that contains its name.
CALLS = {"tools/call": ("tool", "name"), "resources/read": ("resource", "uri"), "prompts/get": ("prompt", "name")}

Changed = Callable[[str, Mapping[str, Any] | None], None]


class SdkServer:
    def __init__(self, server: object, addin: LoadedAddIn) -> None:
        if not isinstance(server, (MCPServer, Server)):
            raise TypeError(f"serve() takes an MCPServer or a low-level Server of the SDK, not {type(server).__name__}")
        self._known: dict[str, frozenset[str]] = {}  # the names in each list when it was last read
        self._given = server
        # This is how the SDK's own in-process client does it.
        self._server: Server[Any] = server._lowlevel_server if isinstance(server, MCPServer) else server
        self._addin = addin.name
        self._changed: Changed = addin.changed
        self._claim = addin.claim
        self._state: Any = None
        self._ended = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def names(self) -> list[tuple[str, str]]:
        """Kinds and names of what the server offers now; empty for a low-level server, which lists only for clients."""
        server = self._given
        if not isinstance(server, MCPServer):
            return []
        return [
            *(("tool", tool.name) for tool in await server.list_tools()),
            *(("resource", str(resource.uri)) for resource in await server.list_resources()),
            *(("resource", template.uri_template) for template in await server.list_resource_templates()),
            *(("prompt", prompt.name) for prompt in await server.list_prompts()),
        ]

    async def start(self) -> None:
        """Enter the server's lifespan; an exception in it is raised here."""
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A lifespan is entered and left in one task, because cancel scopes inside it require that.
        self._life = asyncio.create_task(self._live(entered))
        try:
            await entered
        except asyncio.CancelledError:
            self._life.cancel()
            raise

    def end(self) -> None:
        """Leave the lifespan without waiting for its end."""
        self._ended.set()

    async def stop(self) -> None:
        self.end()
        if self._life is not None:
            await self._life

    async def offers(self, kind: ListKind, name: str, call: Call) -> bool:
        """Whether the server offers a name; if its last known list does not have the name, it is listed again."""
        if name not in self._known.get(kind.method, ()):
            items = await self.items(kind, call)
            self._known[kind.method] = frozenset(str(item[kind.identity]) for item in items)
        return name in self._known[kind.method]

    async def items(self, kind: ListKind, call: Call) -> list[dict[str, Any]]:
        """A list for the client of this call, without names of other add-ins; empty if the request fails."""
        try:
            items = await self._pages(kind.method, kind.key, call)
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                log.warn(f"[{self._addin}] {kind.method} failed: {error.message}")
            return []
        return [item for item in items if self._claim(kind.name, str(item.get(kind.identity)))]

    async def _pages(self, method: str, key: str, call: Call) -> list[dict[str, Any]]:
        meta = {"_meta": call.params["_meta"]} if "_meta" in call.params else {}
        items: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(PAGES):
            page = await self._exchange(call, method, {**meta, **cursor})
            items += page.get(key, [])
            if page.get("nextCursor") is None:
                return items
            cursor = {"cursor": page["nextCursor"]}
        log.warn(f"[{self._addin}] {method} has more than {PAGES} pages; the rest is not shown.")
        return items

    async def request(self, call: Call) -> Result:
        """The server's answer to a call; its requests for input are sent to the client meanwhile."""
        params: Params = call.params
        for _ in range(ROUNDS):
            result = await self._exchange(call, call.method, params)
            if result.get("resultType") != "input_required":
                return result
            asked = result.get("inputRequests") or {}
            answers = {key: await call.ask(one["method"], one.get("params", {}), key) for key, one in asked.items()}
            params = {**params, "inputResponses": answers, "requestState": result.get("requestState")}
        raise RpcError(INTERNAL_ERROR, f"The server asked {ROUNDS} times for more input; it is not asked again.")

    async def _exchange(self, call: Call, method: str, params: Params) -> Result:
        client = call.session.client
        version = client.protocol_version
        if version not in (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS):
            version = NEWEST_HANDSHAKE
        channel = _Channel(call, self._changed)
        connection = Connection.from_envelope(
            version, {"name": client.name, "version": client.version}, dict(client.capabilities), outbound=channel
        )
        try:
            result: Result = await invoke(
                _target(self._addin, method, params),
                serve_one,
                self._server,
                channel,
                method,
                params,
                connection=connection,
                lifespan_state=self._state,
            )
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from None
        except ValidationError:
            raise RpcError(INVALID_PARAMS, "Invalid request parameters") from None
        except Exception as error:
            log_failure(self._addin, method, error)
            raise RpcError(INTERNAL_ERROR, sentence(error)) from None
        return _without_identity(result)

    async def _live(self, entered: asyncio.Future[None]) -> None:
        try:
            async with self._server.lifespan(self._server) as state:
                self._state = state
                unsubscribe = self._listen()
                entered.set_result(None)
                try:
                    await self._ended.wait()
                finally:
                    unsubscribe()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if not entered.done():
                entered.set_exception(error if isinstance(error, Exception) else as_addin_exit(error))
            else:
                log.warn(f"[{self._addin}] the server's lifespan ended badly: {sentence(error)}")

    def _listen(self) -> Callable[[], None]:
        """Announce what the server publishes to its subscribers."""
        listening = self._server.get_request_handler("subscriptions/listen")
        bus = getattr(listening.handler, "_bus", None) if listening is not None else None
        if bus is None:
            return lambda: None

        def publish(event: ServerEvent) -> None:
            data = event_to_notification(event, {}).model_dump(by_alias=True, mode="json", exclude_none=True)
            params = {key: value for key, value in (data.get("params") or {}).items() if key != "_meta"}
            self._changed(data["method"], params or None)

        unsubscribe: Callable[[], None] = bus.subscribe(publish)
        return unsubscribe


class _Channel:
    """A call as the SDK sees it: its `DispatchContext`, and the connection's `Outbound`."""

    can_send_request = True  # `Call.ask` works in either protocol version
    transport = TransportContext(kind="uno-devserver", can_send_request=True)

    def __init__(self, call: Call, changed: Changed) -> None:
        self.request_id = call.id
        self.message_metadata = ServerMessageMetadata(close_sse_stream=self._close_stream)
        self.cancel_requested = anyio.Event()  # never set, because cancelling a call cancels the task of its handler
        self._call = call
        self._changed = changed

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout((opts or {}).get("timeout")):
                return await self._call.ask(method, params or {})
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        del opts
        if method in LISTEN_STREAM_METHODS:  # meant for every client, not only the caller
            self._changed(method, params)
        else:
            self._call.notify(method, params)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        token = progress_token(self._call)
        if token is not None:
            more = {"total": total, "message": message}
            given = {key: value for key, value in more.items() if value is not None}
            self._call.notify("notifications/progress", {"progressToken": token, "progress": progress, **given})

    async def _close_stream(self) -> None:
        self._call.close_stream()


def _target(addin: str, method: str, params: Params) -> CallTarget:
    kind, key = CALLS.get(method, ("request", ""))
    return CallTarget(addin, kind, str(params.get(key, method)))


def _without_identity(result: Result) -> Result:
    """The result without the server's own name, because to the client the Host is the server."""
    meta = result.get("_meta")
    if not isinstance(meta, dict) or SERVER_KEY not in meta:
        return result
    rest = {key: value for key, value in meta.items() if key != SERVER_KEY}
    shorter = {key: value for key, value in result.items() if key != "_meta"}
    return {**shorter, "_meta": rest} if rest else shorter
