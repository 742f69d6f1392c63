"""Add-ins on disk, a Host's add-ins in memory, and a client that calls them."""

from __future__ import annotations

import asyncio
import functools
import textwrap
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from uno_devserver.host.addins.collection import AddIns
from uno_devserver.host.health import report
from uno_devserver.host.service import HostService
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.service import ClientInfo, Params, Result, ServerInfo

WAIT_SECONDS = 30  # longer than any step takes on a busy machine
HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "elicitation": {}, "roots": {}},
}


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in a loop of its own, within a bound."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 3 * WAIT_SECONDS))

    return run


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, within a bound."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


class ClientSession:
    def __init__(self, version: str = HANDSHAKE, capabilities: Mapping[str, Any] | None = None) -> None:
        everything: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}
        self.client = ClientInfo("tests", "1.0", everything if capabilities is None else capabilities, version)
        self.told: list[tuple[str, Params | None]] = []

    def notify(self, method: str, params: Params | None = None) -> None:
        self.told.append((method, params))


class ClientCall:
    """One request, and what its client hears and answers meanwhile."""

    def __init__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        session: ClientSession | None = None,
        log_level: str | None = "debug",
        answers: Callable[[str, Params], Result] | None = None,
    ) -> None:
        self.id: int | str = 7
        self.method = method
        self.session = session or ClientSession()
        modern = self.session.client.protocol_version == MODERN
        meta = {**(ENVELOPE if modern else {}), **(params or {}).get("_meta", {})}
        self.params: Params = {**(params or {}), **({"_meta": meta} if meta else {})}
        self.log_level = log_level
        self.told: list[tuple[str, Params | None]] = []
        self.asked: list[tuple[str, Params]] = []
        self.closed_streams = 0
        self._answers = answers

    def notify(self, method: str, params: Params | None = None) -> None:
        self.told.append((method, params))

    async def ask(self, method: str, params: Params) -> Result:
        self.asked.append((method, params))
        if self._answers is None:
            raise RpcError(-32601, "the client answers nothing")
        return self._answers(method, params)

    def close_stream(self) -> None:
        self.closed_streams += 1


class Client:
    """Calls a service as an endpoint does."""

    def __init__(self, service: HostService, addins: AddIns, version: str = HANDSHAKE) -> None:
        self.service = service
        self.addins = addins
        self.session = ClientSession(version)
        self.announced: list[tuple[str, Mapping[str, Any] | None]] = []
        addins.announce = lambda method, params: self.announced.append((method, params))

    def call(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> ClientCall:
        return ClientCall(method, params, session=self.session, **options)

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> Result:
        return await self.service.answer(self.call(method, params))

    async def tool(self, tool: str, **arguments: Any) -> Result:
        return await self.send("tools/call", {"name": tool, "arguments": arguments})

    async def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in (await self.send("tools/list"))["tools"]}

    async def health(self) -> dict[str, Any]:
        result: dict[str, Any] = (await self.tool("uno_health"))["structuredContent"]
        return result


class AddInFolder:
    """Writes add-ins and serves them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, source: str) -> str:
        """An add-in (or a module of one) at a path below the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return str(path)

    def register(self, name: str, body: str, top: str = "") -> str:
        """An add-in whose `register` is this body, with `top` before it."""
        header = "from __future__ import annotations\nfrom typing import *\nfrom msgspec import Meta, Struct\n"
        header += "from uno_devserver.host.addins import *\n" + textwrap.dedent(top)
        register = "\ndef register(addin: AddIn) -> None:\n" + textwrap.indent(textwrap.dedent(body), "    ")
        return self.write(name, header + register)

    @asynccontextmanager
    async def serve(self, *paths: str, version: str = HANDSHAKE, **options: Any) -> AsyncIterator[Client]:
        """A Host's service with these add-ins, started."""
        addins = AddIns(workspace=str(self.folder), **options)
        client = Client(make_service(addins), addins, version)
        addins.load(paths)
        await asyncio.wait_for(addins.start(), WAIT_SECONDS)
        try:
            yield client
        finally:
            await addins.stop()

    @asynccontextmanager
    async def serve_register(self, body: str, top: str = "", **options: Any) -> AsyncIterator[Client]:
        """The same with one add-in, `sample.py`, whose `register` is this body."""
        async with self.serve(self.register("sample.py", body, top), **options) as client:
            yield client


def make_service(addins: AddIns) -> HostService:
    return HostService(
        addins,
        ServerInfo("Uno Server", "1.2.3"),
        lambda: report(addins.status, version="1.2.3", ide_connected=False),
    )


def text_of(result: Result) -> str:
    """The text of a tool's result, which must be one block."""
    (block,) = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text
