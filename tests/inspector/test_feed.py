"""What pages hear: a snapshot first, then all that changes; and that nobody works for pages that are not there."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.waiting import until
from uno_devserver.inspector import feed as module
from uno_devserver.inspector.feed import Feed

from .serving import PATIENCE, ask, feed, inspecting, viewing


async def test_a_page_hears_a_snapshot_and_then_what_changes_in_order() -> None:
    told = feed(answer=42)
    async with inspecting(told) as inspector, viewing(inspector) as viewer:
        first = await viewer.event()
        told.tell("call", {"id": 1})
        told.tell("log", ["ä\udcff"])  # a file name that is no text

        assert (first.name, json.loads(first.data)) == ("snapshot", {"answer": 42})
        assert [(event.name, json.loads(event.data)) for event in (await viewer.event(), await viewer.event())] == [
            ("call", {"id": 1}),
            ("log", ["ä\udcff"]),
        ]


async def test_what_changes_while_the_snapshot_is_made_comes_behind_it() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def snapshot() -> dict[str, object]:
        asked.set()
        await go_on.wait()
        return {}

    told = Feed(snapshot, lambda _: None)
    async with inspecting(told) as inspector, viewing(inspector) as viewer:
        await asked.wait()
        told.tell("health", 1)
        go_on.set()

        assert [(await viewer.event()).name, (await viewer.event()).name] == ["snapshot", "health"]


async def test_somebody_looks_from_the_first_page_until_a_while_after_the_last() -> None:
    heard: list[bool] = []
    told = feed(heard.append)
    async with inspecting(told) as inspector:
        assert not told.watched
        async with viewing(inspector) as first, viewing(inspector) as second:
            await first.event()
            await second.event()
            assert (told.watched, heard) == (True, [True])
            first.leave()
        await until(lambda: not told.watched)
        assert heard == [True, False]

        async with viewing(inspector) as again:
            await again.event()
            assert heard == [True, False, True]


async def test_a_page_that_is_loaded_again_in_between_changes_nothing() -> None:
    heard: list[bool] = []

    async def snapshot() -> dict[str, object]:
        return {}

    told = Feed(snapshot, heard.append, linger_seconds=PATIENCE)
    async with inspecting(told) as inspector:
        for _ in range(3):
            async with viewing(inspector) as viewer:
                await viewer.event()
                assert told._leaving is None, "somebody looks again"
            await until(lambda: told._leaving is not None)
        assert heard == [True]
    assert heard == [True, False]  # it is over, and nobody waits for those who may come back


@pytest.mark.parametrize("limits", [(64, 10**9), (10**9, 64 * 1024)], ids=["events", "bytes"])
async def test_a_page_that_does_not_read_holds_up_nobody_and_gets_another_snapshot(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", limits[0])
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", limits[1])

    told, line = feed(), "x" * 1024
    async with inspecting(told) as inspector, viewing(inspector, limit=1024) as slow, viewing(inspector) as quick:
        assert ((await slow.event()).name, (await quick.event()).name) == ("snapshot", "snapshot")
        for number in range(12_000):  # more than the sockets hold
            told.tell("log", [number, line])
            if number % 16 == 0:
                assert (await quick.event()).name in ("log", "snapshot")

        names = []
        while "snapshot" not in names:
            names.append((await slow.event()).name)

    assert names[0] == "log"


async def test_a_page_that_reads_gets_one_snapshot_however_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 2048)

    told = feed()
    async with inspecting(told) as inspector, viewing(inspector) as viewer:
        assert (await viewer.event()).name == "snapshot"
        for _ in range(10):
            told.tell("log", ["x" * 1024])
            assert (await viewer.event()).name == "log"


async def test_when_it_ends_pages_are_told() -> None:
    told = feed()
    async with inspecting(told) as inspector, viewing(inspector) as viewer:
        await viewer.event()
        told.close()

        assert (await viewer.event()).name == "closing"
        with pytest.raises(EOFError):
            await viewer.event()
        assert not told.watched
        assert (await ask(inspector, f"/events?token={inspector.token}")).status == 503


async def test_more_pages_than_anybody_can_look_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VIEWERS", 1)

    async with inspecting() as inspector, viewing(inspector) as viewer:
        await viewer.event()

        answer = await ask(inspector, f"/events?token={inspector.token}")

        assert answer.status == 503
        assert b"close some" in answer.body


async def test_a_page_hears_that_the_connection_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_ALIVE_SECONDS", 0.01)

    async with inspecting() as inspector:
        reader, writer = await asyncio.open_connection("127.0.0.1", inspector.port)
        writer.write(f"GET /events?token={inspector.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b": keep-alive\n\n")
        writer.transport.abort()
