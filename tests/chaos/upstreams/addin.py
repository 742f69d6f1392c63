"""The add-in of the Hosts' world, copied into its workspace. It does wrong what code inside a Host can do wrong."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from uno_devserver.host.addins import AddIn, Context

sys.path.insert(0, os.environ["CHAOS_TESTS"])

from chaos.upstreams.tools import FLOOD_MESSAGES, HUGE_CHARACTERS, take_order, write_down

REVISION = "0"  # what edits change
DELAY_SECONDS = 3.0
BLOCK_SECONDS = 1.5


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    async def look(key: str, ctx: Context, pause: float = 0.0) -> str:
        """Has no effect."""
        return await _run(key, "look", pause, ctx)

    @addin.tool(idempotent=True)
    async def put(key: str, ctx: Context, pause: float = 0.0) -> str:
        """Twice is as good as once."""
        return await _run(key, "put", pause, ctx)

    @addin.tool
    async def add(key: str, ctx: Context, pause: float = 0.0) -> str:
        """May not be run twice."""
        return await _run(key, "add", pause, ctx)


async def _run(key: str, tool: str, pause: float, ctx: Context) -> str:
    write_down(key, tool)
    await asyncio.sleep(pause)
    order = take_order()
    if order == "flood of notifications":
        for number in range(FLOOD_MESSAGES):
            ctx.log("error", f"message {number}")
    elif order == "flood of output":
        os.write(2, b"z" * 99 + b"\n")
        for _ in range(2000):
            os.write(1, b"y" * 99 + b"\n")
    elif order == "delay":
        await asyncio.sleep(DELAY_SECONDS)
    elif order == "hang":
        time.sleep(BLOCK_SECONDS)  # nothing in the Host goes on meanwhile: that is the point
    elif order == "death":
        os._exit(3)
    return f"done {key} {REVISION}" + (" " + "x" * HUGE_CHARACTERS if order == "huge answer" else "")
