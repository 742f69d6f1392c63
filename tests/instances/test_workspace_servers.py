"""Which of the running servers belong to a workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write
from support.servers import Processes, Registry
from uno_devserver.instances.registry import RegisteredServer, full_solution, is_in_workspace, serving
from uno_devserver.instances.workspace_servers import of_workspace
from uno_devserver.workspace.paths import same_place
from uno_devserver.workspace.resolver import resolve

UNO = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'


def server(solution: Path | None = None, workspace: Path | None = None) -> RegisteredServer:
    return RegisteredServer(
        os.getpid(), 0, str(solution) if solution else None, "", 1, "", "", None, str(workspace) if workspace else None
    )


def servers_of(directory: Path, *servers: RegisteredServer) -> list[RegisteredServer]:
    return list(of_workspace(servers, resolve(str(directory))))


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A workspace: global.json above, the solution in src/, and beside them another one."""
    root = tmp_path / "app"
    write(root / "global.json", UNO)
    write(root / "src" / "App.slnx", "<Solution />")
    write(tmp_path / "other" / "global.json", UNO)
    write(tmp_path / "other" / "Other.slnx", "<Solution />")
    return root


@pytest.fixture
def other(app: Path) -> RegisteredServer:
    return server(app.parent / "other" / "Other.slnx")


@pytest.mark.parametrize("folder", ["", "src", "src/Views/Pages"])
def test_the_server_of_the_workspaces_solution_belongs_to_it_and_is_found_upwards(
    app: Path, other: RegisteredServer, folder: str
) -> None:
    (app / folder).mkdir(parents=True, exist_ok=True)
    mine = server(app / "src" / "App.slnx")

    assert servers_of(app / folder, mine, other) == [mine]


def test_a_server_without_a_solution_belongs_to_the_workspace_of_its_sidecar(
    app: Path, other: RegisteredServer
) -> None:
    mine, nobodys = server(workspace=app), server()

    assert servers_of(app, mine, other, nobodys) == [mine]


def test_another_solution_of_the_workspace_belongs_to_it_too(app: Path) -> None:
    mine, second = server(app / "src" / "App.slnx"), server(app / "tools" / "Tools.slnx")

    assert servers_of(app, mine, second) == [mine, second]


def test_a_submodule_with_a_global_json_of_its_own_is_another_workspace(app: Path) -> None:
    write(app / "modules" / "lib" / "global.json", UNO)
    mine, submodules = server(app / "src" / "App.slnx"), server(app / "modules" / "lib" / "Lib.slnx")

    assert servers_of(app, mine, submodules) == [mine]


def test_a_global_json_above_the_workspace_does_not_make_its_solutions_another(app: Path) -> None:
    write(app.parent / "global.json", "{}")
    tools = write(app.parent / "tools" / ".devtools" / "host.config.jsonc", "{}").parent.parent
    mine = server(write(tools / "Tools.slnx", "<Solution />"))

    assert servers_of(tools, mine, server(app / "src" / "App.slnx")) == [mine]


def test_a_folder_in_a_workspace_has_the_servers_of_that_workspace(app: Path, other: RegisteredServer) -> None:
    (app / "src" / "Views").mkdir()
    by_folder, by_solution = server(workspace=app), server(app / "src" / "App.slnx")

    assert servers_of(app / "src" / "Views", by_folder, other, by_solution) == [by_folder, by_solution]


def test_of_several_servers_around_a_folder_without_a_workspace_the_nearest_is_meant(tmp_path: Path) -> None:
    (tmp_path / "src" / "Views").mkdir(parents=True)
    outer, inner = server(workspace=tmp_path), server(workspace=tmp_path / "src")

    assert servers_of(tmp_path / "src" / "Views", outer, inner) == [inner]


def test_above_several_workspaces_each_of_their_servers_could_be_meant(app: Path, other: RegisteredServer) -> None:
    write(app.parent / "third" / "global.json", UNO)
    write(app.parent / "third" / "Third.slnx", "<Solution />")
    mine, far = server(app / "src" / "App.slnx"), server(Path("/elsewhere/Far.slnx"))

    assert not resolve(str(app.parent)).resolved
    assert servers_of(app.parent, mine, other, far) == [mine, other]


def test_a_folder_that_is_gone_has_no_servers(tmp_path: Path, other: RegisteredServer) -> None:
    assert servers_of(tmp_path / "gone", other) == []


# --- paths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workspace", "directory", "inside"),
    [("/src/app", "/src/App", True), ("/src/App/deep", "/src/App", True), ("/src", "/src/App", False)],
)
def test_the_folder_of_a_sidecar_counts_like_a_solution(workspace: str, directory: str, inside: bool) -> None:
    assert is_in_workspace(server(workspace=Path(workspace)), directory) == inside


@pytest.mark.parametrize(("solution", "full"), [("/src/App.sln", "/src/App.sln"), ("App.sln", None)])
def test_a_full_path_needs_no_process_and_a_relative_one_without_it_is_not_guessed(
    solution: str, full: str | None
) -> None:
    assert full_solution(RegisteredServer(2**31 - 1, 0, solution, "", 1, "", "", None)) == full


@pytest.mark.parametrize("path", ["", None, "\0", "/" + "x" * 5000, "\ud83d"])
def test_paths_that_no_file_can_have_are_compared_without_an_error(path: str | None) -> None:
    assert not same_place(path, "/src")
    assert not same_place("/src", path)


def test_a_name_of_undecodable_bytes_is_recognised_in_the_registry(folder: Registry, processes: Processes) -> None:
    """Else each start in such a folder would launch another Host."""
    workspace, pid = "/src/caf\udce9", processes.start().pid
    folder.sign_in(pid, workspace=Path(workspace))

    found = serving(str(folder), workspace=workspace)

    assert found
    assert found.process_id == pid
    assert same_place(found.workspace, workspace)
    assert not same_place(found.workspace, "/src/cafe")


def test_folders_that_differ_in_case_alone_are_two_places_where_both_exist(tmp_path: Path) -> None:
    for name in ("app", "App"):
        write(tmp_path / name / "global.json", UNO)
        write(tmp_path / name / "App.slnx", "<Solution />")
    lower, upper = server(tmp_path / "app" / "App.slnx"), server(tmp_path / "App" / "App.slnx")

    assert servers_of(tmp_path / "app", lower, upper) == [lower]
    assert servers_of(tmp_path / "App", lower, upper) == [upper]
    assert same_place(str(tmp_path / "app"), str(tmp_path / "APP")), "which is not there"
