"""Reading what an upstream offers: all pages of all its lists, at the same time, each entry as the bytes that came.

A list that cannot be read is not an empty list: nothing is said of it. Only a server that says that it has no such
method has none. Pages, entries and times are bounded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ...system.log import log
from ...system.values import Value
from ..lists import entries

if TYPE_CHECKING:
    from ...protocol.client.connection import Connection, Peer
    from ..lists import Entries

LIST_SECONDS = 30.0  # of one list; a Host answers when its add-ins are loaded, and gives them as long
MAX_PAGES = 1000  # a server that always names a next page would not end otherwise
MAX_ENTRIES = 10_000  # of one list; no model and no client wants as many

_page = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)


class Kind(Value):
    """One of the lists: its field in `Offered`, how it is asked for, and what an entry is called by."""

    field: str
    capability: str
    method: str
    member: str
    key: str
    always: bool = False  # asked for also of a server that does not declare it: some forget to


KINDS = (
    Kind("tools", "tools", "tools/list", "tools", "name", always=True),
    Kind("resources", "resources", "resources/list", "resources", "uri"),
    Kind("templates", "resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    Kind("prompts", "prompts", "prompts/list", "prompts", "name"),
)


async def read_lists(connection: Connection, peer: Peer) -> dict[str, Entries]:
    """What the server offers now, by the fields of `Offered`, as far as it can be read; Lost when it has gone."""
    reading = [asyncio.ensure_future(_read(kind, connection, peer)) for kind in KINDS]
    try:
        found = await asyncio.gather(*reading)
    finally:
        for task in reading:
            task.cancel()
    return {kind.field: read for kind, read in zip(KINDS, found, strict=True) if read is not None}


async def _read(kind: Kind, connection: Connection, peer: Peer) -> Entries | None:
    if not kind.always and kind.capability not in connection.server.capabilities:
        return ()
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return entries(await _pages(kind, connection, peer))
    except RpcError as error:
        if error.code == METHOD_NOT_FOUND:
            return ()
        log.warn(f"'{kind.method}' of the server was answered with an error: {error.message}")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        log.warn(f"The server's answer to '{kind.method}' cannot be read: {error}.")
    except TimeoutError:
        log.warn(f"'{kind.method}' of the server was not answered within {LIST_SECONDS:g} s.")
    return None


async def _pages(kind: Kind, connection: Connection, peer: Peer) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        page = _page.decode(await connection.request(kind.method, params, peer))
        found += [entry for raw in _items.decode(page.get(kind.member, b"[]")) if (entry := _entry(kind, raw))]
        cursor = _cursor(page)
        if cursor is None:
            return found
        if params.get("cursor") == cursor or len(found) >= MAX_ENTRIES:
            break
        params = {"cursor": cursor}
    log.warn(f"The server's list '{kind.method}' does not end; the first {min(len(found), MAX_ENTRIES)} entries count.")
    return found[:MAX_ENTRIES]


def _cursor(page: dict[str, msgspec.Raw]) -> str | None:
    raw = page.get("nextCursor")
    return None if raw is None or bytes(raw) == b"null" else _text.decode(raw)


def _entry(kind: Kind, raw: msgspec.Raw) -> tuple[str, bytes] | None:
    """Its name and itself; None, and a line in the log, for what has no name."""
    try:
        return _text.decode(_page.decode(raw)[kind.key]), bytes(raw)
    except (msgspec.MsgspecError, KeyError):
        log.warn(f"An entry of the server's '{kind.method}' has no {kind.key} and is left out.")
        return None
