"""Nothing is written outside of the workspace, nor through a link of the repository that leads out of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.files import snapshot, write
from support.hosts import StandInHosts
from support.machine import Machine
from support.packages import app_mcp, host, settings
from support.proxies import Proxies
from support.workspace import WorkspaceBuilder, csproj

from .marks import settled

PROJECT = csproj([])
MINE = "<Project>\n  <PropertyGroup />\n</Project>\n"
PORT = "UnoRemoteControlPort"


# --- the port beside the projects -----------------------------------------------------------------------------------


@pytest.fixture
def uno(machine: Machine, hosts: StandInHosts) -> WorkspaceBuilder:
    """A workspace whose Host may run, because its packages are the user's; beside it a project of the user."""
    write(machine.root / "victim" / "App.csproj", PROJECT)
    write(machine.home / "app.props", MINE)
    return WorkspaceBuilder(machine).uno_6_5().project("src/App/App.csproj", [app_mcp(), settings()])


NAMED = (
    "a path upwards",
    "a path down and up again",
    "an absolute path",
    "a folder that is a link",
    "a .user file that is a link",
    "a .user file that is a link to a link",
    "a project that is a link",
)


def hostile_project(uno: WorkspaceBuilder, how: str) -> str:
    """What a hostile solution names as a project."""
    victim, props, user = uno.machine.root / "victim", uno.machine.home / "app.props", uno.root / "in/App.csproj.user"
    match how:
        case "a path upwards":
            return "../victim/App.csproj"
        case "a path down and up again":
            return "src/../../victim/App.csproj"
        case "an absolute path":
            return str(victim / "App.csproj")
        case "a folder that is a link":
            user.parent.symlink_to(victim)
        case "a .user file that is a link":
            uno.file("in/App.csproj", PROJECT)
            user.symlink_to(props)
        case "a .user file that is a link to a link":
            uno.file("in/App.csproj", PROJECT)
            (uno.root / "in/next").symlink_to(os.path.relpath(props, user.parent))
            user.symlink_to("next")
        case "a project that is a link":
            user.parent.mkdir()
            (uno.root / "in/App.csproj").symlink_to(victim / "App.csproj")
            user.symlink_to(props)
    return "in/App.csproj"


def by_proxy(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        client = proxies.start(command=("--mcp-app",))
        client.initialize()
        settled(client)


def by_start(machine: Machine) -> None:
    assert machine.run("start").exit_code == 0


@pytest.mark.parametrize(("run", "solution"), [(by_proxy, "App.slnx"), (by_start, "App.sln")], ids=["proxy", "start"])
@pytest.mark.parametrize("how", NAMED)
def test_a_solution_cannot_have_a_file_outside_of_its_workspace_written(
    uno: WorkspaceBuilder, hosts: StandInHosts, how: str, run: Callable[[Machine], None], solution: str
) -> None:
    uno.solution(solution, ["src/App/App.csproj", hostile_project(uno, how)])
    outside = uno.machine.root / "victim", uno.machine.home
    before = snapshot(*outside)

    run(uno.machine)

    assert snapshot(*outside) == before
    assert hosts.launches(), "a Host was started"
    assert PORT in (uno.root / "src/App/App.csproj.user").read_text("utf-8-sig"), "its own project learns the port"


def test_a_proxy_writes_nothing_where_it_may_not_start_the_host(machine: Machine, hosts: StandInHosts) -> None:
    packages = machine.workspace / "packages"
    uno = WorkspaceBuilder(machine).uno_sdk(cache=packages).nuget_config("packages")
    uno.package(host(), settings(), app_mcp(), cache=packages)
    uno.project("src/App/App.csproj", restored=False).solution("App.slnx")
    before = snapshot(machine.workspace)

    by_proxy(machine)

    assert hosts.launches() == []
    assert snapshot(machine.workspace) == before


def test_links_and_paths_that_stay_inside_are_written_as_before(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    uno.file("shared/all.user", MINE).file("two/Two.csproj", PROJECT)
    (uno.root / "two/Two.csproj.user").symlink_to("../shared/all.user")
    uno.file(
        "sln/App.slnx",
        '<Solution><Project Path="../src/App/App.csproj" /><Project Path="../two/Two.csproj" /></Solution>',
    )

    by_proxy(uno.machine)

    assert PORT in (uno.root / "src/App/App.csproj.user").read_text("utf-8-sig")
    assert PORT in (uno.root / "shared/all.user").read_text("utf-8-sig")
    assert (uno.root / "two/Two.csproj.user").is_symlink()


def test_a_workspace_that_is_opened_by_a_link_is_still_its_own_folder(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    uno.solution("App.slnx")
    opened = uno.machine.home / "project"
    opened.symlink_to(uno.root)

    assert uno.machine.run("start", cwd=opened).exit_code == 0

    assert PORT in (uno.root / "src/App/App.csproj.user").read_text("utf-8-sig")


# --- files of AI clients --------------------------------------------------------------------------------------------

# The file of the workspace, and what the user has elsewhere under the same name.
CLIENTS = {
    "cursor": (".cursor/mcp.json", '{\n  "mine": 1\n}\n'),
    "vscode": (".vscode/mcp.json", '{\n  "mine": 1\n}\n'),
    "gemini-cli": (".gemini/settings.json", '{"mine": 1}'),
    "codex": (".codex/config.toml", "mine = 1\n"),
}
OUR_KEYS = b"Uno"


LINKS = ("file", "relative", "folder", "folder without the file")


def link(how: str, file: Path, private: Path) -> None:
    """Have a file, or its folder, lead to a folder of the user."""
    if how in ("file", "relative"):
        file.parent.mkdir(exist_ok=True)
        file.symlink_to(private / file.name if how == "file" else os.path.relpath(private / file.name, file.parent))
    else:
        file.parent.symlink_to(private)
        if how == "folder without the file":
            (private / file.name).unlink()


@pytest.fixture
def private(machine: Machine) -> Path:
    """A folder of the user outside of the workspace."""
    return machine.home / "private"


@pytest.mark.parametrize("how", LINKS)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_install_does_not_follow_a_link_of_the_repository(
    machine: Machine, private: Path, client: str, how: str
) -> None:
    name, content = CLIENTS[client]
    write(private / Path(name).name, content)
    link(how, machine.workspace / name, private)
    before = snapshot(machine.home)

    installed = machine.run("mcp", "install", client, "--scope", "workspace")

    assert snapshot(machine.home) == before
    assert Path(name).name in installed.stdout + installed.stderr, "it says which file was not written"


@pytest.mark.parametrize("argv", [("uninstall",), ("restore", "--force")], ids=["uninstall", "restore"])
@pytest.mark.parametrize("how", ["file", "folder"])
def test_nor_are_the_users_own_entries_removed_through_one(machine: Machine, how: str, argv: tuple[str, ...]) -> None:
    (machine.home / ".cursor").mkdir()
    machine.run("mcp", "install", "cursor", "--scope", "user")
    link(how, machine.workspace / ".cursor/mcp.json", machine.home / ".cursor")
    before = snapshot(machine.home)

    machine.run("mcp", *argv, "cursor", "--scope", "workspace")

    assert snapshot(machine.home) == before
    assert OUR_KEYS in before[str(machine.home / ".cursor/mcp.json")]


@pytest.mark.parametrize("how", ["file", "folder"])
def test_links_of_the_user_are_followed_in_the_users_files(machine: Machine, private: Path, how: str) -> None:
    """As in homes that are kept in a repository of dotfiles."""
    write(private / "mcp.json", '{\n  "mine": 1\n}\n')
    link(how, machine.home / ".cursor/mcp.json", private)

    installed = machine.run("mcp", "install", "cursor", "--scope", "user")

    assert installed.exit_code == 0, installed.stderr
    assert OUR_KEYS in (private / "mcp.json").read_bytes()
    assert (machine.home / ".cursor/mcp.json").resolve() == private / "mcp.json"


def test_one_file_at_the_root_that_is_a_link_is_not_followed_either(machine: Machine, private: Path) -> None:
    write(private / ".mcp.json", "{}")
    link("file", machine.workspace / ".mcp.json", private)

    machine.run("mcp", "install", "claude-code", "--scope", "workspace")

    assert (private / ".mcp.json").read_text() == "{}"


def test_a_link_that_stays_in_the_workspace_is_followed(machine: Machine) -> None:
    write(machine.workspace / "config/mcp.json", "{}")
    link("relative", machine.workspace / ".cursor/mcp.json", machine.workspace / "config")

    installed = machine.run("mcp", "install", "cursor")

    assert installed.exit_code == 0, installed.stderr
    assert OUR_KEYS in (machine.workspace / "config/mcp.json").read_bytes()
