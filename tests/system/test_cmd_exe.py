"""Batch files get their arguments as they are, although `cmd.exe` reads them anew."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from uno_devserver.system.cmd_exe import OPTIONS, batch_command, is_batch_file
from uno_devserver.system.run import run

CMD = "C:\\Windows\\System32\\cmd.exe"
SCRIPT = "C:\\Program Files\\nodejs\\npx.cmd"

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="only Windows has batch files")


def words(*arguments: str) -> str:
    """The text in which `cmd.exe` finds the script and its arguments."""
    interpreter, line = batch_command((SCRIPT, *arguments), {"ComSpec": CMD})
    head, tail = f'"{CMD}" {OPTIONS} "', '"'
    assert interpreter == CMD
    assert line.startswith(head)
    assert line.endswith(tail)
    return line[len(head) : -len(tail)]


@pytest.mark.parametrize("name", ["npx.cmd", "NPX.CMD", "a.bat", "a.bat.", "a.bat ", "a.cmd . ."])
def test_what_the_system_runs_by_cmd_is_a_batch_file(name: str) -> None:
    assert is_batch_file(f"C:\\folder\\{name}")


@pytest.mark.parametrize("name", ["node.exe", "cmd", "a.bat.exe", "bat", "a.ps1"])
def test_other_programs_are_none(name: str) -> None:
    assert not is_batch_file(f"C:\\folder.cmd\\{name}")


@pytest.mark.parametrize("word", ["-y", "--port=80", "@scope/server@1.2", "C:\\a\\b", "x+y", "https://host/?q"])
def test_plain_arguments_are_not_quoted(word: str) -> None:
    if "=" in word:  # cmd.exe takes it for a blank
        assert words(word) == f'"{SCRIPT}" "{word}"'
    else:
        assert words(word) == f'"{SCRIPT}" {word}'


@pytest.mark.parametrize(
    ("argument", "quoted"),
    [
        ("x&y", '"x&y"'),
        ("a b", '"a b"'),
        ("", '""'),
        ("^", '"^"'),
        ("a|b>c<d", '"a|b>c<d"'),
        ("(x)", '"(x)"'),
        ("!PATH!", '"!PATH!"'),
        ("a;b,c", '"a;b,c"'),
        ("C:\\a\\", '"C:\\a\\\\"'),
        ('say "x&y"', '"say ""x&y"""'),
        ('\\"', '"\\\\"""'),
        ("%PATH%", '"%%cd:~,%PATH%%cd:~,%"'),
        ("für", '"für"'),
    ],
)
def test_what_cmd_would_read_otherwise_is_quoted(argument: str, quoted: str) -> None:
    assert words(argument) == f'"{SCRIPT}" {quoted}'


@pytest.mark.parametrize("argument", ["a\nb", "a\r", "\0"])
def test_an_argument_that_cannot_be_quoted_is_refused(argument: str) -> None:
    with pytest.raises(OSError, match="line end"):
        batch_command((SCRIPT, argument), {"ComSpec": CMD})


def test_cmd_is_found_by_the_rule_of_python() -> None:
    assert batch_command((SCRIPT,), {"SystemRoot": "D:\\Win"})[0] == "D:\\Win\\System32\\cmd.exe"
    with pytest.raises(OSError, match=r"cmd\.exe is not found"):
        batch_command((SCRIPT,), {"ComSpec": "cmd.exe"})


@on_windows
def test_a_batch_file_gets_its_arguments_as_they_are(tmp_path: Path) -> None:
    arguments = ["x&y", "a b", "", "^", "|", "a>b", "(x)", "!x!", "a;b,c=d", "C:\\a b\\", 'say "x&y"', "-y", "für"]
    script = tmp_path / "a folder" / "tell.cmd"
    script.parent.mkdir()
    tell = tmp_path / "tell.py"
    tell.write_text("import json, sys; print(json.dumps(sys.argv[1:]))")
    script.write_text(f'@"{sys.executable}" "{tell}" %*\n')

    outcome = run([str(script), *arguments], cwd=str(tmp_path), environ=os.environ, seconds=60, keep_bytes=10_000)

    assert outcome.exit_code == 0, outcome
    assert json.loads(outcome.output) == arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a folder", "tell.py"]
