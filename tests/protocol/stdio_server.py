"""A small MCP server on its own stdin and stdout, for clients that want to launch one."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

from uno_devserver.protocol.jsonrpc import decode
from uno_devserver.protocol.service import Call, Result
from uno_devserver.proxy.front.session import Stdio

from .conversations import ScriptedService, text

QUESTION = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}


class Tools:
    def __init__(self) -> None:
        self.endpoint: Stdio | None = None
        self.cancelled = asyncio.Event()
        self.closing: asyncio.Task[None] | None = None

    async def echo(self, call: Call) -> Result:
        return text(call.params["arguments"]["text"])

    async def work(self, call: Call) -> Result:
        token = call.params["_meta"]["progressToken"]
        for step in range(3):
            call.notify("notifications/progress", {"progressToken": token, "progress": step, "total": 3})
        return text("worked")

    async def chat(self, call: Call) -> Result:
        for level in ("debug", "warning", "error"):
            call.notify("notifications/message", {"level": level, "data": level})
        return text("chatted")

    async def curious(self, call: Call) -> Result:
        elicited = await call.ask("elicitation/create", QUESTION)
        sampled = await call.ask("sampling/createMessage", SAMPLING)
        roots = await call.ask("roots/list", {})
        return text([elicited["content"]["name"], sampled["content"]["text"], roots["roots"][0]["uri"]])

    async def wait(self, call: Call) -> Result:
        call.notify("notifications/message", {"level": "error", "data": "waiting"})
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return {}

    async def until_cancelled(self, call: Call) -> Result:
        await self.cancelled.wait()
        return text("it was")

    async def change(self, call: Call) -> Result:
        assert self.endpoint is not None
        self.endpoint.broadcast("notifications/prompts/list_changed")
        self.endpoint.broadcast("notifications/tools/list_changed")
        self.endpoint.resource_updated("file:///a")
        self.endpoint.resource_updated("file:///b")
        return text("changed")

    async def leave(self, call: Call) -> Result:
        """End everything, as a server does that is told to."""
        assert self.endpoint is not None
        self.closing = asyncio.create_task(self.endpoint.close())
        return await self.wait(call)


async def main() -> None:
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    tools = Tools()
    names = ("echo", "work", "chat", "curious", "wait", "until_cancelled", "change", "leave")
    service = ScriptedService(**{name: getattr(tools, name) for name in names})
    endpoint = tools.endpoint = Stdio(service, _write)

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(endpoint.take, decode(line))
        loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=read, daemon=True).start()
    await closed.wait()
    await endpoint.close()


def _write(data: bytes) -> None:
    rest = memoryview(data + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    asyncio.run(main())
