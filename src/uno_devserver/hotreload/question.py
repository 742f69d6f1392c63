"""One question on the control channel of another process, for a command that has no loop of its own. Bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..protocol.jsonrpc import RpcError
from ..system.pipe_clients import connect, is_this_user
from .line_rpc import Ended, LineRpc


class NoReply(Exception):
    """Says why, as a sentence."""


def ask(path: str, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """The result; NoReply where there is none."""
    try:
        return asyncio.run(_within(path, method, params, seconds))
    except RpcError as error:
        raise NoReply(error.message) from error
    except Ended:
        raise NoReply(f"The proxy has closed {path}.") from None
    except TimeoutError:
        raise NoReply(f"The proxy does not answer on {path}.") from None
    except (OSError, ValueError) as error:  # ValueError: a path that none can be
        raise NoReply(f"The proxy is not reached on {path}: {error}.") from error


async def _within(path: str, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    async with asyncio.timeout(seconds):
        reader, writer = await connect(path)
        if not is_this_user(writer):
            writer.transport.abort()
            raise NoReply(f"{path} belongs to another user.")
        connection = LineRpc(reader, writer)
        serving = asyncio.ensure_future(connection.serve())
        try:
            return await connection.request(method, params)
        finally:
            serving.cancel()
            await connection.close()
