"""Project files on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.msbuild.paths import split_extension
from uno_devserver.msbuild.problems import EvaluationProblem
from uno_devserver.msbuild.project_files import ProjectFileCache, value_of
from uno_devserver.msbuild.xml import parse_xml


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.targets", "<Project><PropertyGroup><A>1</A></PropertyGroup></Project>")
    files = ProjectFileCache()
    first = files.load(str(path))

    path.unlink()

    assert files.load(str(path)) is first
    assert first.properties == {"a"}
    assert first.values["msbuildthisfilename"] == "a"
    assert first.values["msbuildthisfiledirectory"] == f"{tmp_path}{os.sep}"


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"<Project", "MSB4024"), (b"", "MSB4024"), (b"<Package />", "MSB4068"), (b"<Project>x</Project>", "MSB4067")],
)
def test_a_bad_file_stays_bad_and_is_named(content: bytes, code: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.targets", content)
    files = ProjectFileCache()

    for _ in range(2):
        with pytest.raises(EvaluationProblem) as raised:
            files.load(str(path))
        assert (raised.value.code, raised.value.path) == (code, str(path))


def test_a_missing_file_and_a_folder_are_problems(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none", "MSB4019"), (tmp_path, "MSB4024")):
        with pytest.raises(EvaluationProblem) as raised:
            ProjectFileCache().load(str(path))
        assert raised.value.code == code


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ""),
        (" x ", " x "),
        ("  ", ""),
        ("one<!-- c -->two", "onetwo"),
        (" <!-- c --> x", " x"),
        ("<![CDATA[<x>]]>", "<x>"),
        ("<![CDATA[<x>]]>y", "<x>y"),
        ("x<![CDATA[y]]>z", "x<![CDATA[y]]>z"),
        ("pre <b>bold</b>", "pre <b>bold</b>"),
    ],
)
def test_a_value_is_text_or_if_there_is_markup_xml(content: str, expected: str) -> None:
    assert value_of(parse_xml(f"<A>{content}</A>".encode())) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.b.dll", ("a.b", ".dll")), ("a", ("a", "")), (".config", ("", ".config")), ("a.", ("a", ""))],
)
def test_an_extension_is_cut_as_dotnet_cuts_it(name: str, expected: tuple[str, str]) -> None:
    assert split_extension(name) == expected
