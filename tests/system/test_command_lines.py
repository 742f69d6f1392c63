"""Command lines can be copied into a shell of the system."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from uno_devserver.system.command_lines import quoted_line, quoted_word


@pytest.mark.parametrize(
    ("word", "posix", "windows"),
    [
        ("uno-devserver", "uno-devserver", "uno-devserver"),
        ("C:\\Users\\me\\app", "'C:\\Users\\me\\app'", "C:\\Users\\me\\app"),
        ("a b", "'a b'", '"a b"'),
        ("C:\\a b\\", "'C:\\a b\\'", '"C:\\a b\\\\"'),
        ("x&y", "'x&y'", '"x&y"'),
        ("@scope/server", "@scope/server", '"@scope/server"'),  # PowerShell has another meaning for it
        ("it's", "'it'\"'\"'s'", '"it\'s"'),
        ('say "x"', "'say \"x\"'", '"say \\"x\\""'),
        ("", "''", '""'),
        ("größe", "'größe'", "größe"),
    ],
)
def test_a_word_is_quoted_for_the_shells_of_the_system(word: str, posix: str, windows: str) -> None:
    assert quoted_word(word, "linux") == quoted_word(word, "darwin") == posix
    assert quoted_word(word, "win32") == windows


def test_words_are_joined_by_blanks() -> None:
    assert quoted_line(("npx", "-y", "a b"), "win32") == 'npx -y "a b"'


def test_what_is_copied_into_the_shell_arrives_as_it_is() -> None:
    arguments = ["a b", "x&y", "C:\\a b\\", "it's", "(x)", "a;b,c", "@scope/server", "|", ""]
    tell = "import json, sys; print(json.dumps(sys.argv[1:]))"

    line = quoted_line((sys.executable, "-c", tell, *arguments))

    assert json.loads(subprocess.check_output(line, shell=True)) == arguments
