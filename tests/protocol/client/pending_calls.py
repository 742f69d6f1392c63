"""Calls without a task of their own: they remember what came of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from protocol.conversations import WAIT_SECONDS
from support.mcp_peers import TestPeer
from support.waiting import until
from uno_devserver.protocol.client.connection import AccessDenied, Connection, ConnectionLost
from uno_devserver.protocol.client.raw_messages import RawMessage, result_in
from uno_devserver.protocol.jsonrpc import RpcError


class RecordedCall(TestPeer):
    """Implements `connection.PendingCall`."""

    def __init__(self, token: bytes = b"", **peer: Any) -> None:
        super().__init__(**peer)
        self.data = b""
        self.sent = False
        self.progress_token = token
        self.ticket: object = None
        self.outcomes: list[RawMessage | ConnectionLost | AccessDenied | RpcError] = []
        self.turns: list[int] = []  # how many outcomes there were when a turn was over
        self._settled = asyncio.Event()

    def settle(self, outcome: RawMessage | ConnectionLost | AccessDenied | RpcError) -> None:
        self.outcomes.append(outcome)
        self._settled.set()

    def turn_over(self, *, more: bool = False) -> None:
        self.turns.append(len(self.outcomes))

    @property
    def result_bytes(self) -> bytes:
        """The result of the only outcome; an error is raised."""
        (outcome,) = self.outcomes
        if isinstance(outcome, Exception):
            raise outcome
        return bytes(result_in(outcome))

    @property
    def result(self) -> Any:
        return json.loads(self.result_bytes)

    async def settled(self) -> Any:
        """The result, when it has come."""
        await asyncio.wait_for(self._settled.wait(), WAIT_SECONDS)
        return self.result


async def send(connection: Connection, call: RecordedCall, params: bytes = b'{"name":"t"}') -> None:
    """Send it over HTTP, as soon as a connection is kept: those of the beginning are in use for a moment."""
    await until(lambda: connection.send(call, "t", params))
    connection.flush()


async def sent(connection: Connection, params: bytes = b'{"name":"t"}') -> RecordedCall:
    call = RecordedCall()
    await send(connection, call, params)
    return call
