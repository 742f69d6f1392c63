"""The add-in of the workspace that the inspector page shows: a tool for everything that can come on the screen.

Copied into a workspace, and loaded by its Host. Every call leaves a line in the file `calls` beside the workspace, so
that a test can tell that none was run.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from uno_devserver.host.addins import AddIn, Content, Context, ToolError, image, text

WATCH_SECONDS = 0.005  # between two looks for a file
CALLS = Path(__file__).parents[3] / "calls"
RED_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
MARKUP = "<script>window.owned = 1</script><img src='nowhere' onerror='window.owned = 1'><b>bold</b>"


class Size(Struct):
    width: int
    height: int


def register(addin: AddIn) -> None:
    _register_results(addin)
    _register_work(addin)
    _register_rest(addin)


def _register_results(addin: AddIn) -> None:
    @addin.tool(title="Greet somebody", read_only=True)
    def greet(
        name: Annotated[str, Meta(description="whom to greet")],
        times: Annotated[int, Meta(description="how often", ge=1, le=5)] = 1,
        tone: Literal["warm", "cool"] = "warm",
        loud: bool = False,
        nickname: str | None = None,
    ) -> str:
        """Say hello, as often and as loudly as you like."""
        _note("greet", name=name, times=times, tone=tone, loud=loud, nickname=nickname)
        greeting = " ".join([f"Hello, {nickname or name}!"] * times)
        return greeting.upper() if loud else greeting

    @addin.tool
    def hang(titles: list[str], labels: dict[str, Any]) -> str:
        """Hang pictures on a wall."""
        _note("hang")
        return ", ".join(f"{title} ({labels.get(title)})" for title in titles)

    @addin.tool(read_only=True)
    def size_of(lines: str) -> Size:
        """How wide and high a text is."""
        _note("size_of")
        return Size(max(map(len, lines.splitlines()), default=0), len(lines.splitlines()))

    @addin.tool(read_only=True)
    def picture() -> list[Content]:
        """A very small picture."""
        _note("picture")
        return [text("A red pixel:"), image(RED_PIXEL, "image/png")]

    @addin.tool
    def fail(why: str = "out of paint") -> str:
        """Fail, and say why."""
        _note("fail")
        raise ToolError(f"It cannot be painted: {why}.")

    @addin.tool(read_only=True)
    def markup() -> str:
        """A text that must stay one."""
        _note("markup")
        return MARKUP


def _register_work(addin: AddIn) -> None:
    @addin.tool
    async def hold(until: str, ctx: Context) -> str:
        """Answer when the file `until` exists."""
        _note("hold")
        ctx.progress(1, 4, "waiting for the file")
        while not Path(until).exists():
            await asyncio.sleep(WATCH_SECONDS)
        return "held"

    @addin.tool
    def complain(words: str) -> str:
        """Write a warning into the log."""
        _note("complain")
        addin.log.warn(words)
        return "complained"


def _register_rest(addin: AddIn) -> None:
    @addin.resource("gallery://catalogue", name="catalogue", mime_type="text/plain")
    def catalogue() -> str:
        """All pictures."""
        return f"one red pixel {MARKUP}"

    @addin.resource("gallery://room/{number}", name="room")
    def room(number: int) -> str:
        """What hangs in a room."""
        return f"room {number} is empty"

    @addin.prompt
    def describe(subject: str) -> str:
        """Have a picture described."""
        return f"Describe {subject} in one sentence."


def _note(tool: str, **arguments: Any) -> None:
    with CALLS.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
