"""The add-in of the scenarios' workspace: a tool for everything that a call can do. Copied there, and loaded by a Host.

What it waits for, and what it tells of itself, are files; so no test has to guess how long something takes.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from uno_devserver.host.addins import AddIn, Context

WATCH_SECONDS = 0.005  # between two looks for a file
GATE = Path(__file__).parent / "gate"  # while it exists, the add-in is not loaded


def register(addin: AddIn) -> None:
    _wait_while(GATE)
    _register_tools(addin)
    _register_talking(addin)
    _register_rest(addin)


def _register_tools(addin: AddIn) -> None:
    counted = 0

    @addin.tool(read_only=True)
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @addin.tool
    def count() -> int:
        """How often it was called in this process."""
        nonlocal counted
        counted += 1
        return counted

    @addin.tool
    async def hold(begun: str, until: str) -> str:
        """Answer when the file `until` exists; `begun` gets a line for each time that it began."""
        return await _held(begun, until)

    @addin.tool(idempotent=True)
    async def hold_again(begun: str, until: str) -> str:
        """The same, but it may be called again."""
        return await _held(begun, until)

    @addin.tool
    def die(code: int = 3) -> None:
        """End the Host."""
        os.write(2, b"the workbench was told to die\n")
        os._exit(code)

    @addin.tool
    def offer(name: str) -> str:
        """Offer one tool more."""
        addin.tool(name=name)(lambda: name)
        return "offered"

    @addin.tool
    def remove(name: str) -> str:
        """Offer one tool less."""
        addin.remove_tool(name)
        return "removed"


def _register_talking(addin: AddIn) -> None:
    @addin.tool
    def progress(steps: int, ctx: Context) -> str:
        """Report progress."""
        for step in range(1, 1 + steps):
            ctx.progress(step, steps, f"step {step}")
        return "progressed"

    @addin.tool
    def chat(ctx: Context) -> str:
        """Log messages of three levels."""
        for level in ("debug", "warning", "error"):
            ctx.log(level, {"said": level})
        return "chatted"

    @addin.tool
    async def ask(method: str, params: dict[str, Any], ctx: Context) -> str:
        """Ask the client anything, and say what it answered."""
        return json.dumps(await ctx.ask(method, params))


def _register_rest(addin: AddIn) -> None:
    noted = "nothing"

    @addin.resource("bench://note", name="note", mime_type="text/plain")
    def note() -> str:
        return noted

    @addin.resource("bench://page/{number}", name="page")
    def page(number: int) -> str:
        return f"page {number}"

    @addin.tool
    def write_note(text: str) -> str:
        """Change the note."""
        nonlocal noted
        noted = text
        addin.resource_updated("bench://note")
        return "written"

    @addin.prompt
    def greet(who: str) -> str:
        """Greet somebody."""
        return f"Hello, {who}!"

    @addin.completion("greet", "who")
    def names(value: str) -> list[str]:
        return [name for name in ("Ada", "Alan", "Grace") if name.startswith(value)]


async def _held(begun: str, until: str) -> str:
    with open(begun, "a", encoding="ascii") as stream:
        stream.write(f"{os.getpid()}\n")
    while not os.path.exists(until):
        await asyncio.sleep(WATCH_SECONDS)
    return "held"


def _wait_while(path: Path) -> None:
    import time

    while path.exists():
        time.sleep(WATCH_SECONDS)
