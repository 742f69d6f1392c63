"""Add-ins on disk, and clients of their tools."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from uno_devserver.host.addins.testing import CAPABILITIES, VERSION, Client
from uno_devserver.protocol.service import Result
from uno_devserver.protocol.versions import CAPABILITIES_KEY, VERSION_KEY

WAIT_SECONDS = 30  # longer than any step takes on a busy machine
HANDSHAKE = VERSION
MODERN = "2026-07-28"


class ModernClient(Client):
    """A client of 2026-07-28, which describes itself in every request."""

    def __init__(self, **options: Any) -> None:
        super().__init__(MODERN, **options)

    async def request(self, method: str, params: Any = None) -> Result:
        params = params or {}
        meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: CAPABILITIES, **params.get("_meta", {})}
        return await super().request(method, {**params, "_meta": meta})


CLIENTS: dict[str, Callable[..., Client]] = {HANDSHAKE: Client, MODERN: ModernClient}


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
        """Start these add-ins, and wait until each works or has failed."""
        client = CLIENTS[version](workspace=str(self.folder), **options)
        client.addins.load(paths)
        await asyncio.wait_for(client.addins.start(), WAIT_SECONDS)
        try:
            yield client
        finally:
            await client.addins.stop()

    @asynccontextmanager
    async def serve_register(self, body: str, top: str = "", **options: Any) -> AsyncIterator[Client]:
        """The same with one add-in, `sample.py`, whose `register` is this body."""
        async with self.serve(self.register("sample.py", body, top), **options) as client:
            yield client


def text_of(result: Result) -> str:
    """The text of a tool's result, which must be one block."""
    (block,) = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


async def health_of(client: Client) -> dict[str, Any]:
    report: dict[str, Any] = (await client.call("uno_health"))["structuredContent"]
    return report
