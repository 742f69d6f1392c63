"""Which add-ins a Host loads, by its flags."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from uno_devserver.discovery import discover
from uno_devserver.host.addins.loader import chosen_addins
from uno_devserver.host.flags import read_flags


def chosen(*arguments: str) -> tuple[list[str], str | None]:
    return asyncio.run(chosen_addins(read_flags(arguments, {}), {"PATH": "/nowhere"}))


@pytest.fixture
def solution(tmp_path: Path) -> str:
    path = tmp_path / "App.sln"
    path.touch()
    return str(path)


def test_what_the_host_is_told_counts_and_nobody_is_asked(solution: str) -> None:
    assert chosen("--addins", "/a/x.py; ;/b/y.py", "--solution", solution) == (["/a/x.py", "/b/y.py"], None)
    assert chosen("--addins", "", "--solution", solution) == ([], None)


def test_a_relative_path_is_one_of_the_workspace(tmp_path: Path) -> None:
    assert chosen("--addins", "x;y/a.py", "--workingDir", str(tmp_path)) == (
        [str(tmp_path / "x"), str(tmp_path / "y" / "a.py")],
        None,
    )


def test_msbuild_can_be_asked_whatever_the_host_is_told(solution: str) -> None:
    paths, problem = chosen("--addins", "/a/x.py", "--solution", solution, "--force-msbuild-discovery")

    assert paths == []
    assert problem is not None
    assert "dotnet" in problem


def test_without_a_solution_there_is_nothing_to_ask_msbuild_about() -> None:
    assert chosen("--addins", "/a/x.py", "--force-msbuild-discovery") == (["/a/x.py"], None)
    assert chosen("--force-msbuild-discovery") == ([], None)


def test_a_discovery_that_fails_is_a_reason_and_not_an_end(monkeypatch: pytest.MonkeyPatch, solution: str) -> None:
    def fail(*_: object) -> NoReturn:
        raise LookupError("no such thing")

    monkeypatch.setattr(discover, "discover_addins", fail)

    assert chosen("--solution", solution) == ([], "The discovery of add-ins failed: LookupError('no such thing').")
