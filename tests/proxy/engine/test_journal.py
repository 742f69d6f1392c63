"""The log as pages show it: complete, in order, told once, and of no trouble to those who write it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from protocol.conversations import asynchronous, until
from uno_devserver.proxy.inspection import log_feed as module
from uno_devserver.proxy.inspection.log_feed import REMEMBERED, LogFeed, Line, Printed
from uno_devserver.system.log import INFORMATION, NONE, WARNING, Log


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Of this test alone; nobody sees it."""
    fresh = Log()
    monkeypatch.setattr(module, "log", fresh)
    return fresh


@contextmanager
def journal() -> Iterator[tuple[LogFeed, list[Line]]]:
    told: list[Line] = []
    made = LogFeed(told.extend)
    try:
        yield made, told
    finally:
        made.close()


@asynchronous
async def test_lines_from_before_anybody_looked_are_there(log: Log) -> None:
    log.info("the start")
    with journal() as (made, told):
        log.warn("then")
        log.debug("too detailed")

        made.live = True

        assert [(line["n"], line["level"], line["text"]) for line in made.lines()] == [
            (1, "Information", "the start"),
            (2, "Warning", "then"),
        ]
        assert all(line["source"] == "proxy" for line in made.lines())
        assert told == [], "they are in the snapshot"


@asynchronous
async def test_lines_are_told_as_they_come_with_the_detailed_ones(log: Log) -> None:
    with journal() as (made, told):
        made.live = True

        log.info("one")
        log.debug("two")
        await until(lambda: len(told) == 2)
        log.info("three")
        await until(lambda: len(told) == 3)

        assert [line["text"] for line in told] == ["one", "two", "three"]
        assert made.lines() == told


@asynchronous
async def test_what_is_in_the_snapshot_is_not_told_behind_it_and_nothing_is_missing(log: Log) -> None:
    with journal() as (made, told):
        made.live = True
        log.info("one")

        before = made.lines()
        await until(lambda: bool(told))

        assert before == []
        assert [line["text"] for line in told] == ["one"]


@asynchronous
async def test_lines_of_all_threads_arrive_each_once(log: Log) -> None:
    log.level = NONE  # nothing on stderr; who looks sees it all the same
    with journal() as (made, told):
        made.live = True

        def write(name: int) -> None:
            for number in range(200):
                log.info(f"{name} {number}")

        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        await until(lambda: len(told) == 800)
        for thread in threads:
            thread.join()

        assert {line["text"] for line in told} == {f"{name} {number}" for name in range(4) for number in range(200)}
        assert [line["n"] for line in told] == list(range(1, 801))


@asynchronous
async def test_the_servers_lines_stand_among_ours(log: Log) -> None:
    with journal() as (made, told):
        made.live = True

        made.printed([Printed(5.0, WARNING, "careful")])
        made.printed([])

        assert told == [{"n": 1, "at": 5.0, "level": "Warning", "source": "server", "text": "careful"}]
        assert made.lines() == told
        assert log.tap is not None


@asynchronous
async def test_only_the_last_lines_are_kept(log: Log) -> None:
    with journal() as (made, _):
        made.printed(Printed(0.0, INFORMATION, str(number)) for number in range(REMEMBERED + 5))

        assert len(made.lines()) == REMEMBERED
        assert made.lines()[-1]["n"] == REMEMBERED + 5


@asynchronous
async def test_while_nobody_looks_lines_are_kept_and_nothing_else_happens(log: Log) -> None:
    with journal() as (made, told):
        made.live = True
        log.info("one")
        made.live = False
        handles = len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]
        log.info("two")
        await asyncio.sleep(0)

        assert len(asyncio.get_running_loop()._scheduled) == handles  # type: ignore[attr-defined]
        assert (told, log.tap_level) == ([], NONE)
        made.live = True
        assert [line["text"] for line in made.lines()] == ["one", "two"]


@asynchronous
async def test_a_line_that_is_written_after_the_end_hurts_nobody(log: Log) -> None:
    with journal() as (made, told):
        made.live = True
    log.info("late")

    assert (log.tap, told) == (None, [])


def test_a_line_that_is_written_when_the_loop_has_gone_hurts_nobody(log: Log) -> None:
    async def made() -> LogFeed:
        found = LogFeed(lambda _: None)
        found.live = True
        return found

    asyncio.run(made())

    log.info("late")

    assert log.recent[-1][2] == "late"
