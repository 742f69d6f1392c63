"""The log as pages show it: complete, in order, told once, and of no trouble to those who write it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.waiting import until
from uno_devserver.instances.bounded_output import BoundedOutput
from uno_devserver.instances.child_process import last_lines
from uno_devserver.proxy.inspection import log_feed as module
from uno_devserver.proxy.inspection.log_feed import (
    LONGEST_LINE,
    MOST_BYTES,
    MOST_LINES,
    REMEMBERED,
    Line,
    LogFeed,
    OutputLine,
    OutputTail,
)
from uno_devserver.system.log import CRITICAL, DEBUG, ERROR, INFORMATION, NONE, TRACE, WARNING, Log


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


async def test_lines_from_before_anybody_looked_are_there(log: Log) -> None:
    log.info("the start")
    with journal() as (made, told):
        log.warn("then")
        log.debug("too detailed")

        made.set_live(True)

        assert [(line["n"], line["level"], line["text"]) for line in made.lines()] == [
            (1, "Information", "the start"),
            (2, "Warning", "then"),
        ]
        assert all(line["source"] == "proxy" for line in made.lines())
        assert told == [], "they are in the snapshot"


async def test_lines_are_told_as_they_come_with_the_detailed_ones(log: Log) -> None:
    with journal() as (made, told):
        made.set_live(True)

        log.info("one")
        log.debug("two")
        await until(lambda: len(told) == 2)
        log.info("three")
        await until(lambda: len(told) == 3)

        assert [line["text"] for line in told] == ["one", "two", "three"]
        assert made.lines() == told


async def test_what_is_in_the_snapshot_is_not_told_behind_it_and_nothing_is_missing(log: Log) -> None:
    with journal() as (made, told):
        made.set_live(True)
        log.info("one")

        before = made.lines()
        await until(lambda: bool(told))

        assert before == []
        assert [line["text"] for line in told] == ["one"]


async def test_lines_of_all_threads_arrive_each_once(log: Log) -> None:
    log.level = NONE  # nothing on stderr; who looks sees it all the same
    with journal() as (made, told):
        made.set_live(True)

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


async def test_the_servers_lines_stand_among_ours(log: Log) -> None:
    with journal() as (made, told):
        made.set_live(True)

        made.printed([OutputLine(5.0, WARNING, "careful")])
        made.printed([])

        assert told == [{"n": 1, "at": 5.0, "level": "Warning", "source": "server", "text": "careful"}]
        assert made.lines() == told
        assert log.tap is not None


async def test_only_the_last_lines_are_kept(log: Log) -> None:
    with journal() as (made, _):
        made.printed(OutputLine(0.0, INFORMATION, str(number)) for number in range(REMEMBERED + 5))

        assert len(made.lines()) == REMEMBERED
        assert made.lines()[-1]["n"] == REMEMBERED + 5


async def test_while_nobody_looks_lines_are_kept_and_nothing_else_happens(log: Log) -> None:
    with journal() as (made, told):
        made.set_live(True)
        log.info("one")
        made.set_live(False)
        await asyncio.sleep(0)
        handles = len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]
        log.info("two")
        await asyncio.sleep(0)

        assert len(asyncio.get_running_loop()._scheduled) == handles  # type: ignore[attr-defined]
        assert (told, log.tap_level) == ([], NONE)
        made.set_live(True)
        assert [line["text"] for line in made.lines()] == ["one", "two"]


async def test_a_line_that_is_written_after_the_end_hurts_nobody(log: Log) -> None:
    with journal() as (made, told):
        made.set_live(True)
    log.info("late")

    assert (log.tap, told) == (None, [])


def test_a_line_that_is_written_when_the_loop_has_gone_hurts_nobody(log: Log) -> None:
    async def made() -> LogFeed:
        found = LogFeed(lambda _: None)
        found.set_live(True)
        return found

    asyncio.run(made())

    log.info("late")

    assert log.recent[-1][2] == "late"


# --- what the server prints


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.touch()
    return path


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(text)


def texts(tail: OutputTail, file: Path) -> list[str]:
    return [line.text for line in tail.read(str(file))]


def test_lines_come_once_and_only_when_they_are_whole(file: Path) -> None:
    tail = OutputTail()
    append(file, "one\ntwo\nth")

    assert texts(tail, file) == ["one", "two"]
    assert texts(tail, file) == []
    append(file, "ree\n\n  \nfour\r\n")
    assert texts(tail, file) == ["three", "four"]


def test_of_what_was_printed_before_the_end_counts(file: Path) -> None:
    append(file, "".join(f"line {number:0100}\n" for number in range(20_000)))
    long = texts(OutputTail(), file)
    append(file, "".join(f"{number}\n" for number in range(3 * MOST_LINES)))
    short = texts(OutputTail(), file)

    assert long[-1] == f"line {19_999:0100}"
    assert long[0].startswith("line ")
    assert len(long) == MOST_BYTES // len(f"line {0:0100}\n")
    assert short == [str(number) for number in range(2 * MOST_LINES, 3 * MOST_LINES)]


@pytest.mark.parametrize("how", ["emptied", "replaced", "of the next server"])
def test_another_file_is_read_from_its_beginning(file: Path, tmp_path: Path, how: str) -> None:
    tail, other = OutputTail(), tmp_path / "other.log"
    append(file, "a long line of before\nunfinished")
    tail.read(str(file))

    if how == "emptied":
        os.truncate(file, 0)
        append(file, "after\n")
    else:
        append(other, "after, in a file that is longer than the one before was\n")
    if how == "replaced":
        other.replace(file)

    [text] = texts(tail, other if how == "of the next server" else file)
    assert text.startswith("after")


BANNER = "+====+\n| Uno Platform DevServer |\n+====+\n"


@pytest.mark.parametrize(
    ("before", "after", "last_words", "told"),
    [
        ("one\nfail: two\nthr", "new\n", ("one", "fail: two", "three", "crit: four"), ["three", "four", "new"]),
        ("zero\none\ntwo\n", "new\n", ("one", "two"), ["new"]),
        ("zero\none\ntwo\n", "new\n", ("two",), ["new"]),
        ("zero\none\ntwo\n", "new\n", ("zero", "one", "two"), ["new"]),
        ("zero\none\ntwo\n", "new\n", (), ["new"]),
        (
            *(f"first\n{BANNER}listening\n", "new\n"),
            *(last_lines(f"first\n{BANNER}listening\nlast\n".encode()), ["last", "new"]),
        ),
        ("one\n", "one\ntwo\nnew\n", ("one", "two"), ["two", "new"]),
        (None, "new\n", ("old",), ["new"]),
    ],
    ids=[
        *("overwritten", "all were read", "the last was read", "more was read", "none", "without the banner"),
        *("still in the file", "of a server that nobody followed"),
    ],
)
def test_last_words_are_neither_lost_nor_told_twice(
    file: Path, before: str | None, after: str, last_words: tuple[str, ...], told: list[str]
) -> None:
    tail = OutputTail()
    if before is not None:
        file.write_text(before, "utf-8")
        tail.read(str(file))

    file.write_text(after, "utf-8")
    lines = tail.read(str(file), last_words)

    assert [line.text for line in lines] == told
    assert {line.level for line in lines} == ({INFORMATION, CRITICAL} if "crit: four" in last_words else {INFORMATION})


def test_more_than_anybody_would_read_is_passed_over(file: Path) -> None:
    tail = OutputTail()
    append(file, "first\nhalf of a li")
    assert texts(tail, file) == ["first"]

    append(file, "ne\n" + "x" * 2 * MOST_BYTES + "\nlast\n")

    assert texts(tail, file) == ["last"]
    append(file, "next\n")
    assert texts(tail, file) == ["next"]


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tail = OutputTail()

    assert [texts(tail, tmp_path / name) for name in ("missing", "pipe", ".")] == [[], [], []]


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("trce: a", TRACE, "a"),
        ("dbug: a", DEBUG, "a"),
        ("info: Microsoft.Hosting.Lifetime[14]", INFORMATION, "Microsoft.Hosting.Lifetime[14]"),
        ("warn: a", WARNING, "a"),
        ("fail: a", ERROR, "a"),
        ("crit: a", CRITICAL, "a"),
        ("\x1b[33mwarn\x1b[39m: a", WARNING, "a"),
        ("2026-02-03T04:05:06Z fail: a", ERROR, "a"),
        ("2026-02-03T04:05:06Z plain", INFORMATION, "plain"),
        ("warning: not one of theirs", INFORMATION, "warning: not one of theirs"),
        ("bell \x07", INFORMATION, "bell \\x07"),
        ("x" * 2 * LONGEST_LINE, INFORMATION, "x" * LONGEST_LINE),
    ],
)
def test_the_level_is_what_dotnet_and_our_host_print_before_a_line(
    file: Path, line: str, level: int, text: str
) -> None:
    append(file, line + "\n")

    [found] = OutputTail().read(str(file))

    assert (found.level, found.text) == (level, text)


def test_an_indented_line_has_the_level_of_the_one_before(file: Path) -> None:
    tail = OutputTail()
    append(file, "fail: Category[1]\n      what failed\n")
    assert [line.level for line in tail.read(str(file))] == [ERROR, ERROR]

    append(file, "      at Somewhere()\nplain\n      more\n")

    assert [line.level for line in tail.read(str(file))] == [ERROR, INFORMATION, INFORMATION]


def test_a_traceback_has_the_level_of_the_line_that_it_explains(file: Path) -> None:
    cause = "Traceback (most recent call last):\n  File 'a.py'\nValueError: no paint\n"
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    append(file, f"warn: an add-in failed\n{cause}{link}{cause}dbug: plain\n{cause}fail: next\nplain\n")

    levels = [line.level for line in OutputTail().read(str(file))]

    assert levels == [WARNING] * 8 + [DEBUG] + [INFORMATION] * 3 + [ERROR, INFORMATION]


def test_old_lines_have_their_own_time_or_that_of_the_line_before(file: Path) -> None:
    append(file, "banner\n2026-02-03T04:05:06Z stamped\n2026-02-31T04:05:06Z no such day\nplain\n")

    assert {line.at for line in OutputTail().read(str(file))} == {1770091506.0}


def test_new_lines_have_the_time_at_which_they_were_read(file: Path) -> None:
    before = time.time()
    append(file, time.strftime("%Y-%m-%dT%H:%M:%SZ stamped\nplain\n", time.gmtime()))

    times = [line.at for line in OutputTail().read(str(file))]

    assert before <= times[0] == times[1] <= time.time()


def test_lines_of_a_server_that_was_started_here_have_the_time_of_their_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, tail, clock = BoundedOutput(str(tmp_path / "server.log")), OutputTail(), [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])

    def printed(text: str, at: float) -> None:
        clock[0] = at
        output.add(text.encode())

    def times() -> list[tuple[str, float]]:
        return [(line.text, line.at) for line in tail.read(output.path, (), output.arrivals)]

    printed("one\n\ntwo\n", 1000.0)
    printed("2026-02-03T04:05:06Z three\nfo", 2000.0)
    first = times()
    printed("ur\nfive\n", 3000.0)
    second = times()
    printed(f"{'x' * 2 * MOST_BYTES}\nsix\n", 4000.0)

    assert first == [("one", 1000.0), ("two", 1000.0), ("three", 2000.0)]
    assert second == [("four", 2000.0), ("five", 3000.0)]
    assert times() == [("six", 4000.0)]
    output.close()


def test_a_line_without_an_end_is_not_kept_for_ever(file: Path) -> None:
    tail = OutputTail()
    append(file, "x" * (LONGEST_LINE + 1))

    assert [len(text) for text in texts(tail, file)] == [LONGEST_LINE]
