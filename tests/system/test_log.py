"""The log: which lines, in which form, where to; and that it never breaks the program."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from uno_devserver.system.log import (
    DEBUG,
    ERROR,
    INFORMATION,
    LEVELS,
    NONE,
    RECENT_CHARACTERS,
    RECENT_LINES,
    TRACE,
    WARNING,
    Log,
    level_named,
)

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}) \[(\w+)\] (.*)")


@pytest.fixture
def log() -> Log:
    return Log()


def say_everything(log: Log) -> None:
    log.write(TRACE, "one")
    log.debug("two")
    log.info("three")
    log.warn("four")
    log.write(ERROR, "five")


# --- lines --------------------------------------------------------------------------------------------------------


def test_lines_have_the_prefixes_of_the_net_tool_and_go_to_stderr(log: Log, capfd: pytest.CaptureFixture[str]) -> None:
    log.level = TRACE

    say_everything(log)

    output = capfd.readouterr()
    assert output.err == "trce: one\ndbug: two\nthree\nwarn: four\nfail: five\n"
    assert output.out == ""


@pytest.mark.parametrize(
    ("level", "shown"),
    [(TRACE, 5), (DEBUG, 4), (INFORMATION, 3), (WARNING, 2), (4, 1), (5, 0), (NONE, 0)],
    ids=LEVELS,
)
def test_a_level_hides_what_is_below_it(log: Log, capfd: pytest.CaptureFixture[str], level: int, shown: int) -> None:
    log.level = level

    say_everything(log)

    assert len(capfd.readouterr().err.splitlines()) == shown


def test_only_the_first_line_of_an_entry_begins_at_the_margin(
    log: Log, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log.stamped = True
    log.open_file(str(tmp_path / "log"))

    log.warn("it failed:\n2026-01-01T00:00:00Z forged\n  File\r\u2028x")

    for written in (capfd.readouterr().err, (tmp_path / "log").read_text()):
        first, *others = written.splitlines()
        assert first.endswith("it failed:")
        assert others == ["      2026-01-01T00:00:00Z forged", "        File\\x0d\\u2028x"]


def test_a_stamped_log_says_when_in_utc(log: Log, capfd: pytest.CaptureFixture[str]) -> None:
    log.stamped = True
    # The beginning of a second is when a clock that lags behind is seen.
    time.sleep(1 - time.time() % 1)
    before = datetime.now(UTC).replace(microsecond=0)

    log.warn("late")

    stamp, _, rest = capfd.readouterr().err.partition(" ")
    assert before <= datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) <= datetime.now(UTC)
    assert rest == "warn: late\n"


@pytest.mark.parametrize(
    ("name", "level"),
    [
        *(("Trace", TRACE), ("warning", WARNING), ("NONE", NONE), ("debug", DEBUG)),
        *((unknown, None) for unknown in ("", "warn", "loud", "Warning ", "3")),
    ],
)
def test_levels_are_named_in_any_case(name: str, level: int | None) -> None:
    assert level_named(name) == level


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_file_gets_the_same_lines_with_time_and_level(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "log.txt"

    log.open_file(str(path))
    say_everything(log)

    lines = [LINE.fullmatch(line) for line in path.read_text("utf-8").splitlines()]
    assert [(line[2], line[3]) for line in lines if line] == [
        ("Information", "three"),
        ("Warning", "four"),
        ("Error", "five"),
    ]
    assert all(line and abs((datetime.now().astimezone() - _time(line[1])).total_seconds()) < 60 for line in lines)


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")


def test_the_date_in_the_files_name_is_todays(log: Log, tmp_path: Path) -> None:
    before = datetime.now().strftime("%Y%m%d")

    log.open_file(str(tmp_path / "uno-{Date}.log"))

    after = datetime.now().strftime("%Y%m%d")
    assert [path.name for path in tmp_path.iterdir()] in ([f"uno-{before}.log"], [f"uno-{after}.log"])


def test_a_name_without_a_folder_is_a_file_in_the_current_one_which_only_the_user_can_read(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The .NET tool writes no file then, and does not say so."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o022)
    try:
        log.open_file("log.txt")
    finally:
        os.umask(before)
    log.warn("here")

    assert "here" in (tmp_path / "log.txt").read_text("utf-8")
    assert stat.S_IMODE((tmp_path / "log.txt").stat().st_mode) == 0o600


def test_an_existing_file_is_continued(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("before\n", "utf-8")

    log.open_file(str(path))
    log.warn("after")

    first, second = path.read_text("utf-8").splitlines()
    assert first == "before"
    assert second.endswith("after")


# Logs lines with its name, from the end of its input on.
WRITER = """
import sys
from uno_devserver.system.log import Log
log = Log()
log.open_file(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
for number in range(int(sys.argv[3])):
    log.info(f"{sys.argv[2]}-{number}")
"""


def test_several_processes_that_log_to_one_file_lose_no_line(tmp_path: Path) -> None:
    path, names, count = tmp_path / "shared.log", ("a", "b", "c"), 500
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(count)], **pipes)  # type: ignore[call-overload]
        for name in names
    ]
    for writer in writers:
        assert writer.stdout.readline().strip() == b"ready"

    for writer in writers:
        writer.stdin.close()
    for writer in writers:
        with writer:
            assert writer.wait(120) == 0

    words = [line.split()[-1] for line in path.read_text("utf-8").splitlines()]
    assert sorted(words) == sorted(f"{name}-{number}" for name in names for number in range(count))


@pytest.mark.parametrize("place", ["folder", "below a file"])
def test_a_file_that_cannot_be_opened_is_a_warning(
    log: Log, tmp_path: Path, capfd: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path if place == "folder" else tmp_path / "file" / "log.txt"

    log.open_file(str(path))
    log.info("going on")

    warning, line = capfd.readouterr().err.splitlines()
    assert warning.startswith(f"warn: cannot log into {path}: ")
    assert "--file-log" in warning
    assert line == "going on"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is simulated by Linux's own device")
def test_a_full_disk_is_told_once_and_the_file_given_up(log: Log, capfd: pytest.CaptureFixture[str]) -> None:
    log.open_file("/dev/full")

    log.info("one")
    log.info("two")
    del log

    lines = capfd.readouterr().err.splitlines()
    assert lines == ["one", "warn: the log file cannot be written any more: No space left on device", "two"]


def test_a_path_of_undecodable_bytes_can_be_logged(log: Log, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Linux file names are bytes; Python holds those that are no UTF-8 as lone surrogates."""
    log.open_file(str(tmp_path / "log.txt"))

    log.warn("broken: /tmp/caf\udce9")

    assert "/tmp/caf" in capfd.readouterr().err
    assert "/tmp/caf\\udce9" in (tmp_path / "log.txt").read_text("utf-8")


# --- a parent that closed stderr ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "closing",
    ["os.close(2); os.execv(sys.executable, [sys.executable, '-c', code])", "sys.stderr.close(); exec(code)"],
    ids=["before the start", "at run time"],
)
def test_a_closed_stderr_is_no_reason_to_fail_and_the_file_still_gets_the_line(tmp_path: Path, closing: str) -> None:
    path = tmp_path / "log.txt"
    code = f"from uno_devserver.system.log import log; log.open_file({str(path)!r}); log.warn('x'); print('end')"

    result = subprocess.run(
        [sys.executable, "-c", f"import os, sys\ncode = {code!r}\n{closing}"],
        capture_output=True,
        text=True,
        timeout=20,
    )

    assert (result.returncode, result.stdout) == (0, "end\n")
    assert path.read_text("utf-8").endswith("[Warning] x\n")


# --- those who look at it -----------------------------------------------------------------------------------------


def test_the_last_lines_are_remembered_with_their_time_and_level(log: Log) -> None:
    before = time.time()

    log.info("one")
    log.debug("left out")
    log.warn("two")

    assert [line[1:] for line in log.recent] == [(INFORMATION, "one"), (WARNING, "two")]
    assert all(before <= at <= time.time() for at, _, _ in log.recent)


def test_what_is_remembered_is_bounded_in_lines_and_in_characters(log: Log) -> None:
    for number in range(2 * RECENT_LINES):
        log.info(str(number))
    log.info("x" * 10 * RECENT_CHARACTERS)

    assert len(log.recent) == RECENT_LINES
    assert len(log.recent[-1][2]) == RECENT_CHARACTERS


def test_a_tap_hears_every_line_that_is_logged_as_people_see_it(log: Log) -> None:
    heard: list[tuple[int, str]] = []
    log.tap = lambda _, level, text: heard.append((level, text))

    log.info("a\x1b[31m line")
    log.debug("left out")
    log.tap = None
    log.info("too late")

    assert heard == [(INFORMATION, "a\\x1b[31m line")]


@pytest.mark.parametrize("level", [INFORMATION, NONE])
def test_a_tap_can_hear_more_than_is_logged(log: Log, capfd: pytest.CaptureFixture[str], level: int) -> None:
    heard: list[str] = []
    log.level, log.tap_level = level, DEBUG
    log.tap = lambda _, __, text: heard.append(text)

    log.write(TRACE, "too much")
    log.debug("in detail")

    assert heard == ["in detail"]
    assert capfd.readouterr().err == ""
    assert not log.recent
