"""Conversations with the session of the client on standard input and output: a client that keeps what it is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uno_devserver.protocol.jsonrpc import InvalidMessage, read
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.server.limits import DEFAULT_ENDPOINT_LIMITS
from uno_devserver.protocol.service import Service
from uno_devserver.proxy.front.session import StdioSession

from .conversations import MODERN, WAIT_SECONDS

CLIENT = {"name": "c", "version": "1"}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class LineClient:
    """Speaks the handshake era."""

    def __init__(self, service: Service, **limits: Any) -> None:
        self.endpoint = StdioSession(service, self._read, DEFAULT_ENDPOINT_LIMITS.replace(**limits))
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._last_id = 0

    def _read(self, data: bytes) -> None:
        assert b"\n" not in data
        assert b"\r" not in data
        self._said.put_nowait(data)

    async def raw(self) -> bytes:
        """The next message as it came."""
        return await asyncio.wait_for(self._said.get(), WAIT_SECONDS)

    async def message(self) -> dict[str, Any]:
        return dict(json.loads(await self.raw()))

    @property
    def silent(self) -> bool:
        """Whether nothing was said that was not looked at."""
        return self._said.empty()

    def rest(self) -> list[dict[str, Any]]:
        """What was said until now."""
        return [json.loads(self._said.get_nowait()) for _ in range(self._said.qsize())]

    def send(self, method: str, params: Any = None, *, request_id: Any = None) -> Any:
        """A request; its id."""
        if request_id is None:
            self._last_id += 1
            request_id = self._last_id
        self.take({"jsonrpc": "2.0", "id": request_id, "method": method, **self._params(method, params)})
        return request_id

    def call(self, tool: str, *, request_id: Any = None, **more: Any) -> Any:
        return self.send("tools/call", {"name": tool, **more}, request_id=request_id)

    async def ask(self, method: str, params: Any = None, *, request_id: Any = None) -> dict[str, Any]:
        """A request, and what is said next."""
        self.send(method, params, request_id=request_id)
        return await self.message()

    def tell(self, method: str, params: Any = None) -> None:
        self.take({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def cancel(self, request_id: Any) -> None:
        self.tell("notifications/cancelled", {"requestId": request_id})

    def respond(self, request_id: Any, **what: Any) -> None:
        self.take({"jsonrpc": "2.0", "id": request_id, **what})

    def take(self, value: dict[str, Any]) -> None:
        """As the front does, which refuses what is no message."""
        message = read(value)
        assert not isinstance(message, InvalidMessage), message.error
        self.endpoint.take(message)

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> None:
        """As the front does, which answers the handshake."""
        self.endpoint.introduce(ClientInfo(CLIENT["name"], CLIENT["version"], capabilities, version))
        self.tell("notifications/initialized")

    def _params(self, method: str, params: Any) -> dict[str, Any]:
        return {} if params is None else {"params": params}


class ModernLineClient(LineClient):
    """Puts the envelope into every request."""

    def _params(self, method: str, params: Any) -> dict[str, Any]:
        own = dict(params or {})
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}},
            "io.modelcontextprotocol/clientInfo": CLIENT,
            **own.get("_meta", {}),
        }
        return {"params": {**own, "_meta": meta}}


async def connected(service: Service, version: str = "2025-11-25", **capabilities: Any) -> LineClient:
    client = LineClient(service)
    await client.initialize(version, **capabilities)
    return client
