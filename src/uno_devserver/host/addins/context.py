"""`Context`: tells a function of an add-in about the request it answers, and sends messages to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from ...protocol.service import Call, Session
from ...protocol.versions import LOG_LEVELS, wants_log
from ...system.values import Value
from .content import as_path, plain, sendable

SAMPLE_TOKENS = 1000  # a page of text


class Elicited(Value):
    """The user's answer to a form: `accept` with the content, `decline`, or `cancel`."""

    action: str
    content: Any = None

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


class Context:
    """Passed to functions with a parameter of this type: `def tool(..., ctx: Context)`.

    `log`, `progress`, `close_stream` and the properties may be used from any thread. `sample`, `elicit`, `roots` and
    `ask` are for async functions; they raise RpcError if the client refuses or cannot answer.
    """

    def __init__(self, call: Call, logger: str) -> None:
        self._call = call
        self._logger = logger
        self._cancelled = False

    @property
    def session(self) -> Session:
        """The client's session; `ctx.session.client` has its name and capabilities."""
        return self._call.session

    @property
    def request_id(self) -> int | str:
        return self._call.id

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled; a plain function that runs for long should check this."""
        return self._cancelled

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants that level (debug, info, notice, warning, error, …)."""
        if level not in LOG_LEVELS:
            raise ValueError(f"log level '{level}' is unknown; use one of {', '.join(LOG_LEVELS)}")
        params = {"level": level, "logger": logger or self._logger, "data": _sendable(data)}
        if wants_log(self._call.log_level, "notifications/message", params):
            self._call.notify("notifications/message", params)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the client, if it asked for that; `progress` must grow with each call."""
        token = progress_token(self._call)
        if token is None:
            return
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = sendable(message)
        self._call.notify("notifications/progress", params)

    def close_stream(self) -> None:
        """Close the connection that waits for this answer, for work that takes minutes; the client reconnects."""
        self._call.close_stream()

    async def ask(self, method: str, params: Mapping[str, Any], *, name: str | None = None) -> dict[str, Any]:
        """Send any MCP request to the client; in 2026-07-28, `name` is the key under which the client gets it."""
        return await self._call.ask(method, params, name)

    async def sample(
        self,
        prompt: str | Mapping[str, Any],
        *,
        max_tokens: int = SAMPLE_TOKENS,
        system: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Let the client's model answer a prompt: a text, or the complete parameters of `sampling/createMessage`."""
        if not isinstance(prompt, str):
            return await self.ask("sampling/createMessage", prompt, name=name)
        message = {"role": "user", "content": {"type": "text", "text": sendable(prompt)}}
        params: dict[str, Any] = {"messages": [message], "maxTokens": max_tokens}
        if system is not None:
            params["systemPrompt"] = system
        return await self.ask("sampling/createMessage", params, name=name)

    async def elicit(self, message: str, schema: type | Mapping[str, Any], *, name: str | None = None) -> Elicited:
        """Ask the user for values. If `schema` is a type, the content of an accepted answer is an instance of it."""
        from .signatures import form_schema

        requested = dict(schema) if isinstance(schema, Mapping) else form_schema(schema)
        params = {"message": sendable(message), "requestedSchema": requested}
        result = await self.ask("elicitation/create", params, name=name)
        action, content = str(result.get("action")), result.get("content")
        if action == "accept" and isinstance(schema, type):
            content = msgspec.convert(content, schema, dec_hook=as_path)
        return Elicited(action, content)

    async def roots(self, *, name: str | None = None) -> list[dict[str, Any]]:
        """The client's folders, each with a `uri` and possibly a `name`."""
        result = await self.ask("roots/list", {}, name=name)
        return list(result.get("roots", []))

    def abandon(self) -> None:
        """Called by `context_of` when the call is cancelled."""
        self._cancelled = True


@contextmanager
def context_of(call: Call, addin: str) -> Iterator[Context]:
    """The context for a function of an add-in; it is marked as cancelled when the call is cancelled."""
    context = Context(call, addin)
    try:
        yield context
    except asyncio.CancelledError:
        context.abandon()
        raise


def progress_token(call: Call) -> int | str | None:
    """The token for progress notifications; None if the client wants none."""
    meta = call.params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, Mapping) else None
    return token if isinstance(token, (int, str)) else None


def _sendable(data: Any) -> Any:
    return sendable(data) if isinstance(data, str) else plain(data)
