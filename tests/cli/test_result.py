"""Printing: results on stdout as text or JSON, errors on stderr, whatever stdout is connected to."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from support.terminals import open_terminal
from uno_devserver.cli.result import Bullets, Report, Result, Row, Section, render, render_error
from uno_devserver.issues import UserError

if sys.platform != "win32":
    import fcntl
    import termios

REPORT = Report(
    "Discovery",
    (
        Section("", (Row("workingDirectory", "/src"), Row("solution", None, "a .sln file"))),
        Section("Uno SDK", (Row("version", "6.5.31"), Row("path", None))),
        Bullets("warnings", ("first", "second")),
        Bullets("errors", ()),
    ),
)


def print_in_process(
    result: str, stdout: int = subprocess.PIPE, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Render a result in a process of its own; `result` is the Python text of its arguments."""
    code = _python(f"render(Result({result}), as_json=False)")
    return subprocess.run(code, stdout=stdout, stderr=subprocess.PIPE, env=env, timeout=30)


def _python(code: str) -> list[str]:
    imports = "import os, sys\nfrom uno_devserver.cli.result import *\nfrom uno_devserver.issues import UserError\n"
    return [sys.executable, "-c", imports + code]


# --- text and JSON ------------------------------------------------------------------------------------------------


def test_a_report_in_a_pipe_is_one_fact_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    render(Result({}, REPORT), as_json=False)

    assert capsys.readouterr().out == (
        "Discovery\n"
        "\n"
        "  workingDirectory: /src\n"
        "  solution: <null> (missing a .sln file)\n"
        "\n"
        "Uno SDK\n"
        "  version: 6.5.31\n"
        "  path: <null>\n"
        "\n"
        "warnings:\n"
        "- first\n"
        "- second\n"
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (Report("R", (Section("", (Row("path", "/very/long" * 100),)),)), f"R\n\n  path: {'/very/long' * 100}\n"),
        ("/a.dll;/b.dll", "/a.dll;/b.dll\n"),
        (None, ""),
    ],
    ids=["a long value", "text", "nothing"],
)
def test_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], text: Report | str | None, printed: str) -> None:
    render(Result([], text), as_json=False)

    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("text", [REPORT, "text", None], ids=["report", "text", "nothing"])
def test_json_is_the_data_whatever_the_text(capsys: pytest.CaptureFixture[str], text: Report | str | None) -> None:
    data: dict[str, object] = {"path": "/src/Žluťoučký", "missing": None, "list": []}

    render(Result(data, text), as_json=True)

    output = capsys.readouterr().out
    assert json.loads(output) == data
    assert list(json.loads(output)) == list(data), "the order is part of the contract"
    assert output.startswith('{\n  "path": ')
    assert output.isascii(), "no console and no pipe can spoil it"


# --- errors -------------------------------------------------------------------------------------------------------


def test_an_error_and_its_next_step_go_to_stderr_or_are_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    error = UserError("Broken", "It is broken.", "Repair it.")

    render_error(error, as_json=False)
    assert capsys.readouterr() == ("", "error: It is broken.\nnext: Repair it.\n")

    render_error(error, as_json=True)
    output = capsys.readouterr()
    expected = {"error": {"code": "Broken", "message": "It is broken.", "nextStep": "Repair it."}}
    assert (json.loads(output.out), output.err) == (expected, "")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_error_that_cannot_be_written_anywhere_leaves_the_exit_code_alone(as_json: bool) -> None:
    code = f"render_error(UserError('A', 'b', 'c'), as_json={as_json})\nos._exit(7)"

    with open("/dev/full", "wb") as full:
        assert subprocess.run(_python(code), stdout=full, stderr=full, timeout=30).returncode == 7


def test_an_error_that_has_no_room_on_stdout_goes_to_stderr() -> None:
    code = "render_error(UserError('A', 'b', 'c'), as_json=True)"

    with open("/dev/full", "wb") as full:
        result = subprocess.run(_python(code), stdout=full, stderr=subprocess.PIPE, timeout=30)

    assert result.stderr == b"error: b\nnext: c\n"


def test_an_error_about_a_name_of_undecodable_bytes_is_shown() -> None:
    code = r"for as_json in (False, True): render_error(UserError('A', '/tmp/caf\udce9', 'b'), as_json=as_json)"

    result = subprocess.run(_python(code), capture_output=True, timeout=30)

    assert result.stderr.splitlines() == [b"error: /tmp/caf\\udce9", b"next: b"]
    assert json.loads(result.stdout)["error"]["message"] == "/tmp/caf\udce9"


# --- what stdout is connected to ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "variable", "printed"),
    [
        # the printed path opens the file, also if it is no valid UTF-8
        (r"caf\udce9 → ž", {"PYTHONUTF8": "1"}, b"caf\xe9 \xe2\x86\x92 \xc5\xbe\n"),
        (r"ž → \udce9", {"PYTHONIOENCODING": "iso8859-2"}, b"\xbe \\u2192 \\udce9\n"),
    ],
    ids=["any bytes", "an encoding without the character"],
)
def test_a_pipe_gets_file_names_with_their_bytes(text: str, variable: dict[str, str], printed: bytes) -> None:
    result = print_in_process(f"[], '{text}'", env={**os.environ, **variable})

    assert (result.returncode, result.stdout) == (0, printed)


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "render(Result([], 'x' * 10_000_000), as_json=False)"
    with subprocess.Popen(_python(code), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (0, b"")


@pytest.mark.parametrize("closing", ["os.close(1)", "os.close(1); os.close(2)"])
def test_a_process_started_without_stdout_does_not_fail(closing: str) -> None:
    code = _python(
        "render(Result([], 'text'), as_json=False)\nrender(Result([], None), as_json=True)\n"
        "render_error(UserError('A', 'b', 'c'), as_json=False)\nos._exit(7)"
    )

    result = subprocess.run(
        [sys.executable, "-c", f"import os\n{closing}\nos.execv({sys.executable!r}, {code!r})"],
        capture_output=True,
        timeout=30,
    )

    assert (result.returncode, result.stdout) == (7, b"")
    assert b"Traceback" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is simulated by Linux's own device")
def test_a_full_disk_is_a_failure_in_words() -> None:
    """Half a result must not look like a whole one."""
    code = (
        "try: render(Result([], 'text'), as_json=False)\n"
        "except UserError as error: sys.stderr.write(f'{error.code}: {error.message}')"
    )

    with open("/dev/full", "wb") as full:
        result = subprocess.run(_python(code), stdout=full, stderr=subprocess.PIPE, timeout=30)

    assert result.stderr == b"OutputFailed: The result could not be written: No space left on device."
    assert result.returncode == 0, "nothing is left in a buffer that would fail again at the end"


# --- a terminal ---------------------------------------------------------------------------------------------------


def shown_on_terminal(report: str, columns: int = 80, **environment: str) -> list[str]:
    """The lines that a terminal of that width gets, without colours unless they are to be kept."""
    colours = "" if environment.pop("keep_colours", "") else r"\x1b\[[\d;]*m"
    ours, theirs = open_terminal()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    result = print_in_process(f"[], {report}", stdout=theirs, env={**kept, "TERM": "xterm-256color", **environment})
    assert (result.returncode, result.stderr) == (0, b"")
    return [line.rstrip() for line in re.sub(colours, "", _read_to_the_end(ours, theirs)).splitlines()]


def _read_to_the_end(ours: int, theirs: int) -> str:
    os.close(theirs)
    chunks = []
    try:
        while chunk := os.read(ours, 65536):
            chunks.append(chunk)
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    return b"".join(chunks).decode("utf-8", "replace")


def test_a_terminal_gets_a_table_with_the_same_facts() -> None:
    lines = shown_on_terminal(repr(REPORT))

    assert lines[0] == "Discovery"
    assert "Uno SDK" in [line.strip() for line in lines]
    facts = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.strip()}
    assert facts["workingDirectory"] == "/src"
    assert facts["solution"] == "<null> (missing a .sln file)"
    assert facts["version"] == "6.5.31"
    assert lines[-3:] == ["warnings:", "- first", "- second"]
    assert "errors:" not in lines


def test_an_error_is_folded_at_the_width_of_the_terminal_that_shows_it() -> None:
    ours, theirs = open_terminal()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    error = "UserError('A', 'Unknown is this one. Known: a, b, c, d, e, f, g, h', 'Take it.')"
    code = f"render_error({error}, as_json=False)"

    environ = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    subprocess.run(_python(code), stderr=theirs, env=environ, timeout=30, check=True)

    assert _read_to_the_end(ours, theirs).splitlines() == [
        "\x1b[31merror:\x1b[0m Unknown is this one.",
        "  Known: a, b, c, d, e, f, g,",
        "  h",
        "\x1b[36mnext:\x1b[0m Take it.",
    ]


def test_a_value_that_does_not_fit_stands_whole_below_its_key() -> None:
    """Broken up, a path could not be copied; the terminal wraps it by itself."""
    path, sentence = "/very/long/path" * 20, "one word after the other " * 9
    report = f"Report('R', (Section('', (Row('path', {path!r}), Row('short', 'x'))), Bullets('w', ({sentence!r},))))"

    lines = shown_on_terminal(report, 40)

    assert lines[2:5] == ["  path", f"    {path}", "  short  x"]
    assert max(map(len, lines[5:])) <= 40
    assert [line[:2] for line in lines[7:]] == ["- ", *["  "] * (len(lines) - 8)]


def test_control_characters_in_names_do_not_reach_the_terminal() -> None:
    report = r"Report('R', (Section('', (Row('path', '/a\x1b[31mred\x07'),)),))"

    assert r"/a\x1b[31mred\x07" in "\n".join(shown_on_terminal(report))


def test_no_colour_means_no_escape_sequences() -> None:
    assert "\x1b" not in "\n".join(shown_on_terminal(repr(REPORT), NO_COLOR="1", keep_colours="yes"))


def test_brackets_in_names_and_values_are_no_markup() -> None:
    report = "Report('R', (Section('[red]', (Row('[bold]key[/]', '[x] value'),)), Bullets('[b]', ('[i]item',))))"

    text = "\n".join(shown_on_terminal(report))

    for literal in ("[red]", "[bold]key[/]", "[x] value", "[b]:", "- [i]item"):
        assert literal in text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_the_terminal_cannot_show_is_shown_by_its_number(encoding: str) -> None:
    report = r"Report('R', (Section('', (Row('k\udce9', 'caf\udce9'),)), Bullets('w', ('i\udce9',))))"

    text = "\n".join(shown_on_terminal(report, PYTHONIOENCODING=encoding))

    for shown in (r"k\udce9", r"caf\udce9", r"- i\udce9"):
        assert shown in text
