"""Wildcards on disk and in text."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from support.files import write_all
from support.privileges import ROOT
from uno_devserver.msbuild import expressions
from uno_devserver.msbuild.expressions import EvaluationScope
from uno_devserver.msbuild.globs import parse_glob
from uno_devserver.msbuild.problems import EvaluationProblem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = [
        "a.dll",
        "B.Dll",
        "c.txt",
        "noext",
        ".hidden",
        "s/b.dll",
        "s/t/c.dll",
        "s/T2/c.dll",
        "z/_u.dll",
        "_y/z.dll",
    ]
    write_all(tmp_path, dict.fromkeys(names, ""))
    return tmp_path


def found(pattern: str, folder: Path) -> list[str]:
    glob = parse_glob(pattern, str(folder))
    assert glob is not None
    return [path for path, _ in glob.files(EvaluationScope(str(folder), {}, None))]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.DLL", ["a.dll", "B.Dll"]),
        ("*", [".hidden", "a.dll", "B.Dll", "c.txt", "noext"]),
        ("*.*", [".hidden", "a.dll", "B.Dll", "c.txt", "noext"]),
        ("?.dll", ["a.dll", "B.Dll"]),
        ("s/*.dll", ["s/b.dll"]),
        ("s/**/*.dll", ["s/b.dll", "s/t/c.dll", "s/T2/c.dll"]),
        ("s/**", ["s/b.dll", "s/t/c.dll", "s/T2/c.dll"]),
        ("**/t/C.dll", ["s/t/c.dll"]),
        ("*/t*/*.dll", ["s/t/c.dll", "s/T2/c.dll"]),
        ("**/**/c.dll", ["s/t/c.dll", "s/T2/c.dll"]),
        ("?/*.dll", ["s/b.dll", "z/_u.dll"]),
        ("*/*u*", ["z/_u.dll"]),
        ("S/*.dll", []),
        ("none/*.dll", []),
        ("./s\\*.dll", ["./s/b.dll"]),
        ("s/t/../*.dll", ["s/t/../b.dll"]),
    ],
)
def test_a_pattern_finds_files_in_msbuilds_order(pattern: str, expected: list[str], folder: Path) -> None:
    assert found(pattern, folder) == expected


def test_the_order_is_by_the_whole_path_in_upper_case(folder: Path) -> None:
    assert found("*/*.dll", folder) == ["s/b.dll", "z/_u.dll", "_y/z.dll"]


def test_each_file_knows_its_folder_below_the_literal_part(folder: Path) -> None:
    glob = parse_glob("s/**/c.dll", str(folder))

    assert glob is not None
    assert glob.files(EvaluationScope(str(folder), {}, None)) == [("s/t/c.dll", "t/"), ("s/T2/c.dll", "T2/")]


@pytest.mark.parametrize("pattern", ["**x", "x**/y", "*/../x", "a...*", "ab:c*", "x*" * 3000, "literal"])
def test_what_msbuild_takes_literally_is_no_pattern(pattern: str) -> None:
    assert parse_glob(pattern, "/p") is None


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("x/*.dll", "x/a.dll", True),
        ("x/*.dll", "./X/y/../A.DLL", True),
        ("x/*.dll", "x/a.txt", False),
        ("x/*.dll", "x/y/a.dll", False),
        ("x/**/*.dll", "x/a.dll", True),
        ("x/**/*.dll", "x/y/z/a.dll", True),
        ("x/**/z/*.dll", "x/y/z/a.dll", True),
        ("x/**/z/*.dll", "x/z/y/a.dll", False),
        ("x/**/*.dll", "y/a.dll", False),
        ("**", "a/b", True),
        ("/p/*", "a", True),
        ("*", "/p", False),
    ],
)
def test_a_pattern_describes_paths_whether_they_exist_or_not(pattern: str, path: str, expected: bool) -> None:
    glob = parse_glob(pattern, "/p")

    assert glob is not None
    assert glob.describes(path, EvaluationScope("/p", {}, None)) is expected


def test_many_stars_do_not_multiply_the_time() -> None:
    glob = parse_glob("a*" * 100 + "b", "/p")
    start = time.process_time()

    assert glob is not None
    assert not glob.describes("a" * 250, EvaluationScope("/p", {}, None))
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*" + "a" * 2000 + "b", "a" * 4000),
        ("**/" + "a/" * 1000 + "b/c", "a/" * 2000 + "c"),
        ("a" * 2000 + "*", "a" * 2000),
    ],
    ids=["a star before a long text", "many folders", "a long text"],
)
def test_long_comparisons_use_up_what_an_evaluation_may_do(
    pattern: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expressions, "MAX_STEPS", expressions.MAX_STEPS // 20)
    glob = parse_glob(pattern, "/p")
    scope = EvaluationScope("/p", {}, None)
    assert glob is not None

    with pytest.raises(EvaluationProblem) as raised:
        sum(glob.describes(path, scope) for _ in range(300))

    assert raised.value.code == "Limit"


def test_a_thousand_short_patterns_may_look_at_hundreds_of_paths() -> None:
    globs = [parse_glob(f"lib/**/Name{number}.*.dll", "/p") for number in range(1000)]
    scope = EvaluationScope("/p", {}, None)

    described = [
        glob for _ in range(300) for glob in globs if glob and glob.describes("lib/net10.0/Name7.X.dll", scope)
    ]

    assert len(described) == 300


def test_a_link_back_to_its_own_folder_is_not_followed(folder: Path) -> None:
    (folder / "s" / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "s" / "self").symlink_to(folder / "s", target_is_directory=True)
    (folder / "linked").symlink_to(folder / "z", target_is_directory=True)

    assert found("**/t/c.dll", folder) == ["s/t/c.dll"]
    assert found("**/_u.dll", folder) == ["linked/_u.dll", "z/_u.dll"]


def test_a_pattern_that_looks_at_too_much_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MAX_ENTRIES", 5)

    with pytest.raises(EvaluationProblem) as raised:
        found("**", folder)

    assert raised.value.code == "Limit"


@pytest.mark.skipif(os.name == "nt" or ROOT, reason="needs a folder that cannot be listed")
def test_a_folder_that_cannot_be_listed_has_no_files(folder: Path) -> None:
    (folder / "s").chmod(0)
    try:
        assert found("s/*.dll", folder) == []
    finally:
        (folder / "s").chmod(0o755)
