"""When the SDK is asked about a project, and how long its answer counts. The answers are recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.dotnet_cli import PROJECTS, RecordedDotNet, RecordedProject
from support.files import write
from uno_devserver.workspace.dotnet_project import DotNetProject, is_source, read_project
from uno_devserver.workspace.dotnet_query import SdkQuestions, stored_answer

ANSWERED = [name for name, project in PROJECTS.items() if not project["exit_code"] and name != "multi-target"]


def _asked(path: Path, environ: Mapping[str, str]) -> DotNetProject:
    [answer] = SdkQuestions(environ).answers([read_project(str(path), environ)])
    return answer


@pytest.fixture
def dotnet(tmp_path: Path) -> RecordedDotNet:
    return RecordedDotNet(tmp_path / "net")


@pytest.mark.parametrize("identity", ANSWERED)
def test_a_project_is_what_the_sdk_says(identity: str, tmp_path: Path, dotnet: RecordedDotNet) -> None:
    recorded = RecordedProject(identity, tmp_path / "ws")
    dotnet.knows(recorded.path, recorded.answer())

    project = _asked(recorded.path, dotnet.environ)

    kinds = ("Compile", "EmbeddedResource", "Content", "None")
    wanted = {item["FullPath"] for kind in kinds for item in recorded.items(kind) if is_source(kind, item)}
    assert project.sources == wanted
    assert project.target == recorded.property("TargetPath")
    assert (project.command, project.arguments) == (recorded.property("RunCommand"), recorded.property("RunArguments"))
    [[verb, path, *_]] = dotnet.calls()
    assert (verb, path) == ("build" if identity.startswith("file-based") else "msbuild", str(recorded.path))


def test_an_answer_counts_until_a_project_file_changes(tmp_path: Path, dotnet: RecordedDotNet) -> None:
    recorded = RecordedProject("directory-build-props", tmp_path / "ws")
    dotnet.knows(recorded.path, recorded.answer())
    for _ in range(2):
        _asked(recorded.path, dotnet.environ)
    assert len(dotnet.calls()) == 1
    props = recorded.folder / "Directory.Build.props"

    write(props, props.read_text("utf-8") + "<!-- -->")
    _asked(recorded.path, dotnet.environ)

    assert len(dotnet.calls()) == 2


def test_where_both_evaluations_agree_a_new_file_needs_no_question(tmp_path: Path, dotnet: RecordedDotNet) -> None:
    recorded = RecordedProject("linked-file", tmp_path / "ws")
    dotnet.knows(recorded.path, recorded.answer())
    _asked(recorded.path, dotnet.environ)

    new = write(recorded.folder / "Shared" / "New.cs", "")

    assert str(new) in _asked(recorded.path, dotnet.environ).sources
    assert len(dotnet.calls()) == 1


def test_where_they_differ_the_sdk_decides_and_is_asked_about_a_new_file(
    tmp_path: Path, dotnet: RecordedDotNet
) -> None:
    recorded = RecordedProject("plain", tmp_path / "ws")
    answer = recorded.answer()
    hidden = recorded.folder / "S" / ".hidden" / "H.cs"
    answer["Items"]["Compile"].append({"FullPath": str(hidden)})
    dotnet.knows(recorded.path, answer)
    for _ in range(2):
        assert str(hidden) in _asked(recorded.path, dotnet.environ).sources
    assert len(dotnet.calls()) == 1

    write(hidden.with_name("New.cs"), "")
    _asked(recorded.path, dotnet.environ)

    assert len(dotnet.calls()) == 2


def test_of_several_frameworks_the_sdk_is_asked_about_the_one_that_is_started(
    tmp_path: Path, dotnet: RecordedDotNet
) -> None:
    recorded = RecordedProject("multi-target", tmp_path / "ws")
    told = RecordedProject("plain", tmp_path / "other").answer()
    dotnet.knows(recorded.path, told, "net10.0")

    project = _asked(recorded.path, dotnet.environ)

    assert project.command == told["Properties"]["RunCommand"]
    assert "-p:TargetFramework=net10.0" in dotnet.calls()[0]


def test_a_question_without_an_answer_is_asked_once_and_our_evaluation_counts(
    tmp_path: Path, dotnet: RecordedDotNet
) -> None:
    recorded = RecordedProject("unknown-sdk", tmp_path / "ws")
    dotnet.knows(tmp_path / "another.csproj", {})
    questions, own = SdkQuestions(dotnet.environ), read_project(str(recorded.path), dotnet.environ)

    assert [questions.answers([own]) for _ in range(2)] == [[own], [own]]
    assert len(dotnet.calls()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"Properties": "none"},
        {"Properties": {"TargetPath": None}},
        {"Items": [1]},
        {"Items": {"Compile": "a.cs"}},
        {"Properties": {"TargetPath": "a"}, "Items": {"Compile": [{"Identity": "a.cs"}]}},
        {"Properties": {"TargetPath": "a"}, "Items": {"Compile": [{"FullPath": "/a\0.cs"}]}},
    ],
)
def test_what_is_no_answer_of_msbuild_does_not_count(
    tmp_path: Path, dotnet: RecordedDotNet, answer: dict[str, object]
) -> None:
    recorded = RecordedProject("plain", tmp_path / "ws")
    dotnet.knows(recorded.path, answer)

    assert _asked(recorded.path, dotnet.environ) == read_project(str(recorded.path), dotnet.environ)


@pytest.mark.parametrize("version", ["3.1.102", "7.0.410"])
def test_an_older_sdk_is_not_asked(tmp_path: Path, version: str) -> None:
    dotnet = RecordedDotNet(tmp_path / "net", version)
    recorded = RecordedProject("plain", tmp_path / "ws")

    project = _asked(recorded.path, dotnet.environ)

    assert project.command == recorded.property("RunCommand")
    assert dotnet.calls() == []


def test_looking_for_a_stored_answer_runs_nothing(tmp_path: Path, dotnet: RecordedDotNet) -> None:
    recorded = RecordedProject("plain", tmp_path / "ws")
    dotnet.knows(recorded.path, recorded.answer())

    assert stored_answer(read_project(str(recorded.path), dotnet.environ), dotnet.environ) is None
    assert dotnet.calls() == []
