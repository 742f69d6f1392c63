"""What this program prints into pipes is UTF-8 on every system."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from uno_devserver.system.standard_streams import is_console, print_utf8

TEXT = "größer, 日本"


def windows_pipe(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Let standard output be what Windows makes of a pipe; returns the other end."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252", write_through=True))
    return written


def test_a_stream_in_the_code_page_of_the_system_becomes_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = windows_pipe(monkeypatch)

    print_utf8({})

    print(TEXT, end="")
    assert pipe.getvalue().decode() == TEXT


def test_an_encoding_that_the_user_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    windows_pipe(monkeypatch)

    print_utf8({"PYTHONIOENCODING": "cp1252"})

    assert sys.stdout.encoding == "cp1252"


def test_a_program_without_streams_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)

    print_utf8({})


@pytest.mark.parametrize("line", [("uno_devserver", TEXT), ("uno_devserver.host", "--httpPort", TEXT)])
def test_a_command_prints_any_text_into_a_pipe(line: tuple[str, ...]) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}

    ran = subprocess.run([sys.executable, "-m", *line], capture_output=True, env=environ, check=False)

    assert f"'{TEXT}'" in ran.stderr.decode()


def test_neither_a_pipe_nor_the_empty_device_is_a_console() -> None:
    with open(os.devnull) as nothing:
        assert not is_console(nothing)
    assert not is_console(io.TextIOWrapper(io.BytesIO()))
    assert not is_console(None)


@pytest.mark.skipif(sys.platform != "win32", reason="elsewhere the empty device is no terminal")
def test_a_proxy_whose_input_is_the_empty_device_is_not_typed_by_a_person() -> None:
    line = [sys.executable, "-m", "uno_devserver", "mcp", "start"]

    ran = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    assert b"Ctrl" not in ran.stderr
