"""Streamable HTTP, the server's end: one endpoint for clients of both eras at the same time.

Every request gets an answer, whatever is in it: an HTTP status that says how far it came, and a JSON-RPC message.
"""

from __future__ import annotations

import asyncio
import traceback

from ..system.log import ERROR, log
from .eras import HANDSHAKE_VERSIONS, MODERN_VERSIONS, VERSION_HEADER, has_envelope, unsupported_version
from .followed import Followed
from .handshake_http import HandshakeHttp
from .http.messages import Answer, Request, Response
from .jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, STOPPED, RpcError, decode, notification_message
from .media import accepted, is_json
from .modern_http import ModernHttp
from .policy import DEFAULT_POLICY, Policy
from .replies import refusal
from .running import FAILURES, in_loop
from .service import Params, Service


class StreamableHttp:
    def __init__(self, service: Service, policy: Policy = DEFAULT_POLICY) -> None:
        self._policy = policy
        self._followed = Followed(service)
        self._handshake = HandshakeHttp(service, policy, self._followed)
        self._modern = ModernHttp(service, policy, self._followed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def session_count(self) -> int:
        return len(self._handshake.sessions)

    async def handle(self, request: Request) -> Answer:
        """Answer any request to the endpoint."""
        self._loop = asyncio.get_running_loop()
        if self._closed:
            return refusal(503, RpcError(STOPPED, "The server is stopping."))
        try:
            if request.method == "POST":
                return await self._post(request)
            if request.method in ("GET", "DELETE"):
                return self._get_or_delete(request)
            return Response(405, headers=(("Allow", "DELETE, GET, POST"),))
        except FAILURES:
            log.write(ERROR, f"a request to the MCP endpoint failed:\n{traceback.format_exc()}")
            return refusal(500, RpcError(INTERNAL_ERROR, "The server failed on this request; its log says why."))

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Tell every session, and every subscription that asked for it. Safe from any thread."""
        if self._loop is not None:
            in_loop(self._loop, self._broadcast, method, params)

    def resource_updated(self, uri: str) -> None:
        """Tell everyone who watches that resource. Safe from any thread."""
        if self._loop is not None:
            in_loop(self._loop, self._resource_updated, uri)

    async def close(self) -> None:
        """End all sessions, calls and streams, each with a last word; bounded in time, and for good."""
        self._closed = True
        await asyncio.gather(self._handshake.close(), self._modern.close())
        await self._followed.close(self._policy.close_seconds)

    async def _post(self, request: Request) -> Answer:
        accepts = accepted(request.headers)
        if not (accepts.json or accepts.events):
            message = "The answer is application/json or text/event-stream; the client must accept both."
            return refusal(406, RpcError(INVALID_REQUEST, message))
        if not is_json(request.headers):
            return refusal(415, RpcError(INVALID_REQUEST, "The Content-Type must be application/json."))
        try:
            value = decode(request.body)
        except RpcError as error:
            return refusal(400, error)
        version = request.headers.get(VERSION_HEADER)
        if _is_modern(version, value):
            return await self._modern.post(value, request.headers, accepts)
        return await self._handshake.post(value, request.headers, accepts)

    def _get_or_delete(self, request: Request) -> Answer:
        version = request.headers.get(VERSION_HEADER)
        if version in MODERN_VERSIONS:
            return Response(405, headers=(("Allow", "POST"),))
        if request.method == "GET" and not ("accept" in request.headers and accepted(request.headers).events):
            # Before anything else: launchers ask without Accept whether the server is up, and take 400 for no.
            return refusal(406, RpcError(INVALID_REQUEST, "The client must accept text/event-stream."))
        if version is not None and version not in HANDSHAKE_VERSIONS:
            return refusal(400, unsupported_version(version))
        if request.method == "GET":
            return self._handshake.get(request.headers)
        return self._handshake.delete(request.headers)

    def _broadcast(self, method: str, params: Params | None) -> None:
        self._handshake.broadcast(notification_message(method, params))
        self._modern.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        self._handshake.resource_updated(uri)
        self._modern.resource_updated(uri)


def _is_modern(version: str | None, value: object) -> bool:
    """The body decides where it can: an envelope is modern, `initialize` without one is not. Else the header does."""
    if isinstance(value, dict):
        params = value.get("params")
        if isinstance(params, dict) and has_envelope(params):
            return True
        if value.get("method") == "initialize":
            return False
    return version is not None and version not in HANDSHAKE_VERSIONS
