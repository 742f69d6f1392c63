"""Files of variables: what is understood, and what is said of a line that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import write
from uno_devserver.system.files import FileProblem
from uno_devserver.workspace.env_file import read_env_file

KEY = "secret0CAQAwBQYDK2VwBCIEIJ1hsZ3v2VpguoRK9JLsLMREScVpezJpGXA7rAOQ="  # as the one line of an Ed25519 key


@pytest.mark.parametrize(
    ("content", "variables"),
    [
        ("", {}),
        ("A=1", {"A": "1"}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("# a comment\n\n  \t\n export A = two words \t# a comment\n", {"A": "two words"}),
        ("A=\nB= # a comment\nC=#fff\nD=a#b", {"A": "", "B": "", "C": "#fff", "D": "a#b"}),
        ("A='x # \\n $B' # a comment\nB=''", {"A": "x # \\n $B", "B": ""}),
        ('A="x\\n\\t\\"y\\" \\\\ $B"', {"A": 'x\n\t"y" \\ $B'}),
        ("A='first\nsecond'\nB=\"third\nfourth\"", {"A": "first\nsecond", "B": "third\nfourth"}),
        ('A=it\'s "so"', {"A": 'it\'s "so"'}),
        ("A=1\nA=2", {"A": "2"}),
        ("my.name-2=ü", {"my.name-2": "ü"}),
        (f"A='-----BEGIN PRIVATE KEY-----\n{KEY}\n'", {"A": f"-----BEGIN PRIVATE KEY-----\n{KEY}\n"}),
        (
            f"A={KEY}\nmySettingWithoutValue=\nLONG_NAME_OF_A_VARIABLE_WITHOUT_A_VALUE=",
            {"A": KEY, "mySettingWithoutValue": "", "LONG_NAME_OF_A_VARIABLE_WITHOUT_A_VALUE": ""},
        ),
    ],
)
def test_variables_are_read_as_in_other_files_of_the_kind(
    tmp_path: Path, content: str, variables: dict[str, str]
) -> None:
    assert dict(read_env_file(str(write(tmp_path / ".env", content)))) == variables


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("A=1\n\nsecret\n", ":3: it must be NAME=value, a comment or blank"),
        ("=secret", ":1: it must be NAME=value, a comment or blank"),
        ("A B=secret", ":1: it must be NAME=value, a comment or blank"),
        ("A='one\ntwo'\nB='secret", ":3: the value of B has no closing quote"),
        ('A=1\nB="x" secret', ":2: something follows the closing quote of B"),
        ("A=secret\0", ":1: the value of A has a character that no variable can have"),
        (
            f"A=-----BEGIN PRIVATE KEY-----\n{KEY}\n",
            ":1: a value of several lines must stand in quotes, here that of A",
        ),
        (f"A=\n{KEY}\n", ":2: a value of several lines must stand in quotes"),
        (f"A=1\r\n  {KEY}= \r\n", ":2: a value of several lines must stand in quotes"),
        (b"A=\xff", ": it is not UTF-8"),
        (b"x" * 1_048_577, ": it has 1,048,577 bytes; the limit is 1,048,576"),
    ],
)
def test_a_mistake_is_named_by_its_line_and_not_quoted(tmp_path: Path, content: str | bytes, problem: str) -> None:
    path = write(tmp_path / ".env", content)

    with pytest.raises(FileProblem) as raised:
        read_env_file(str(path))

    assert str(raised.value) == f"{path}{problem}"


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=r"/gone: there is no such file$"):
        read_env_file(str(tmp_path / "gone"))
