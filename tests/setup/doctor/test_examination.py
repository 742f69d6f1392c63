"""Whether what is registered works, as the client would start it: real files, and real processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from setup.made import chosen
from support.odd_servers import odd_server
from uno_devserver.setup.definitions import load
from uno_devserver.setup.doctor.examination import Examination, examine, has_entries
from uno_devserver.setup.paths import Here
from uno_devserver.setup.profiles import STDIO, Dialect, Format, Place, Profile, Scope, Use

UVX = ("uvx", "--from", "uno-devserver==1.2.*", "uno-devserver", "--mcp-app")
REPLACES = " 'uno-devserver mcp install editor' replaces the entry with the usual one."
BY_PATH = "or name this program by its path: 'uno-devserver mcp install editor --runner path'."
INSTALL = "Run 'uno-devserver mcp install editor'."
SWITCH = "Switch it on in Editor, or remove the setting that disables it from the file."


def stdio(*command: str, **more: Any) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:]), **more}


class Desk:
    """A machine with a client whose files are in the workspace, in the home, and where it looked once."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.home, self.tools = (root / name for name in ("ws", "home", "tools"))
        for folder in (self.workspace, self.home, self.tools):
            folder.mkdir()
        environ = {"HOME": str(self.home), "PATH": str(self.tools)}
        self.here = Here(str(self.workspace), str(self.home), str(self.home), str(self.home), environ, "linux")
        self.config = self.workspace / ".mcp.json"
        self.user_config = self.home / ".mcp.json"
        self.old_config = self.home / "old.json"
        places = (
            self._place(self.config, Scope.WORKSPACE, Use.WRITE),
            self._place(self.user_config, Scope.USER, Use.WRITE),
            self._place(self.old_config, Scope.USER, Use.LEGACY),
        )
        self.profile = Profile("editor", "Editor", places, Scope.WORKSPACE, in_terminal=True)
        self.servers = load(self.here).servers
        self.choice = chosen("stable", asked=False)
        self.force = True

    def _place(self, path: Path, scope: Scope, use: Use) -> Place:
        return Place(str(path), scope, use, Format.JSON, ("mcpServers",), Dialect())

    def register(self, path: Path | None = None, **entries: Any) -> None:
        (path or self.config).write_text(json.dumps({"mcpServers": entries}))

    def tool(self, name: str, script: str) -> Path:
        path = self.tools / name
        path.write_text(f"#!{sys.executable}\n{script}\n")
        path.chmod(0o755)
        return path

    def examined(self, **changes: Any) -> tuple[Examination, ...]:
        return examine(self.profile.replace(**changes), self.servers, self.choice, self.here, force=self.force)

    def the_one(self, **changes: Any) -> Examination:
        (one,) = self.examined(**changes)
        return one


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_an_entry_that_works_is_told_with_its_tools_and_times(desk: Desk) -> None:
    desk.register(UnoApp=stdio(*odd_server(tools=2)))

    one = desk.the_one(connect_seconds=30.0)

    assert one.ok
    assert (one.ide, one.server, one.key, one.path) == ("editor", "UnoApp", "UnoApp", str(desk.config))
    assert (one.transport, one.cwd, one.tools, one.limit_seconds) == (STDIO, str(desk.workspace), 2, 30.0)
    assert list(one.milliseconds) == ["spawn", "initialize", "tools"]


def test_the_entry_that_the_client_takes_first_is_the_one_that_counts(desk: Desk) -> None:
    desk.register(UnoApp=stdio(*odd_server(tools=2)))
    desk.register(desk.user_config, UnoApp=stdio("gone"), UnoDocs=stdio("gone"))

    app, docs = desk.examined()

    assert (app.path, app.ok) == (str(desk.config), True)
    assert (docs.path, docs.ok) == (str(desk.user_config), False)


def test_a_file_that_the_client_does_not_read_registers_nothing(desk: Desk) -> None:
    desk.register(desk.old_config, UnoApp=stdio("gone"))

    problems = [one.problem for one in desk.examined()]

    assert not has_entries(desk.profile, desk.servers)
    assert problems == ["UnoApp is not registered with Editor.", "UnoDocs is not registered with Editor."]
    assert desk.examined()[0].next_step == INSTALL


def test_an_address_that_may_be_somebody_elses_server_is_left_in_peace(desk: Desk) -> None:
    desk.register(web={"url": "http://localhost:1/mcp"})

    assert not has_entries(desk.profile, desk.servers)
    assert desk.examined()[0].problem == "UnoApp is not registered with Editor."


def test_a_command_on_the_users_path_alone_is_not_found_by_a_client_with_windows(desk: Desk) -> None:
    uvx = desk.tool("uvx", "raise SystemExit(0)")
    desk.register(UnoApp=stdio(*UVX))

    one = desk.the_one(in_terminal=False)

    assert one.problem == f"'uvx' is at '{uvx}' on your own PATH, but Editor is started without it."
    assert one.next_step == f"Put '{uvx}' into the entry, {BY_PATH}"


@pytest.mark.parametrize(
    ("entry", "problem", "step"),
    [
        (stdio(*UVX), "'uvx' is not on PATH.", f"Install 'uvx', {BY_PATH}"),
        (stdio("uno-devserver", "--mcp-app"), "'uno-devserver' is not on PATH.", f"Install 'uno-devserver', {BY_PATH}"),
        (
            stdio("/gone/uno-devserver", "--mcp-app"),
            "'/gone/uno-devserver' does not exist.",
            f"Correct the entry.{REPLACES}",
        ),
        ({}, "The entry in '{config}' names neither a command nor an address.", INSTALL),
        (stdio("x", disabled=True), "It is disabled in '{config}'.", SWITCH),
        (stdio("x", enabled=False), "It is disabled in '{config}'.", SWITCH),
        ({"url": "http://127.0.0.1:1/v1"}, "Editor cannot use a server of the kind 'http'.", INSTALL),
    ],
)
def test_an_entry_that_cannot_be_started_says_why_and_what_to_do(
    desk: Desk, entry: dict[str, Any], problem: str, step: str
) -> None:
    desk.register(UnoApp=entry)

    one = desk.the_one(transports=(STDIO,))

    assert (one.problem, one.next_step) == (problem.format(config=desk.config), step)


def test_an_old_form_that_fails_is_replaced_by_install(desk: Desk) -> None:
    desk.tool("uno-devserver", "raise SystemExit(2)")
    desk.register(UnoApp=stdio("uno-devserver", "mcp", "start"))

    assert desk.the_one().next_step == f"Run it yourself in '{desk.workspace}' to see more, {BY_PATH}{REPLACES}"


@pytest.mark.parametrize(("default", "option"), [(Scope.WORKSPACE, " --scope user"), (Scope.USER, "")])
def test_the_step_that_replaces_an_entry_names_its_scope_where_install_would_take_another(
    desk: Desk, default: Scope, option: str
) -> None:
    desk.register(desk.user_config, UnoApp=stdio("/gone/uno-devserver", "--mcp-app"))

    step = desk.the_one(default_scope=default).next_step

    assert f" 'uno-devserver mcp install editor{option}' replaces the entry with the usual one." in step


def test_a_file_that_cannot_be_executed_says_so(desk: Desk) -> None:
    path = desk.tool("uno-devserver", "")
    path.chmod(0o644)
    desk.register(UnoApp=stdio(str(path), "--mcp-app"))

    assert desk.the_one().problem == f"'{path}' is a file that cannot be executed."


def test_one_that_dies_is_to_be_run_by_hand(desk: Desk) -> None:
    desk.tool("uvx", "raise SystemExit('no such package')")
    desk.register(UnoApp=stdio(*UVX, "${VERSION}"))

    one = desk.the_one()

    assert one.problem == (
        "It ended with exit code 1 before it answered. Its last output: no such package"
        " It refers to ${VERSION}, which is not set here."
    )
    assert one.next_step == f"Run it yourself in '{desk.workspace}' to see more, {BY_PATH}{REPLACES}"


def test_one_that_is_slower_than_the_client_waits_works_and_fails(desk: Desk) -> None:
    desk.register(UnoApp=stdio(*odd_server(tools=1), startup_timeout_sec=0.001))

    one = desk.the_one(connect_seconds=60.0)

    assert (one.ok, one.tools, one.limit_seconds) == (False, 1, 0.001)
    assert one.problem.startswith("It works, but took ")
    assert one.problem.endswith(" s, and Editor waits 0.001 s.")
    assert one.next_step.startswith("Try again: a first start may have to download, ")


def test_a_folder_that_is_not_there_is_to_be_made(desk: Desk) -> None:
    desk.register(UnoApp=stdio(sys.executable, cwd="gone"))

    assert desk.the_one().next_step.startswith(f"Make the folder '{desk.workspace / 'gone'}', or correct the entry.")


def test_what_may_have_come_with_a_workspace_is_shown_and_not_started(desk: Desk) -> None:
    began = desk.home / "began"
    desk.tool("server", f"open({str(began)!r}, 'w')")
    desk.register(UnoApp=stdio("server", "${TOKEN}"))
    desk.force = False

    one = desk.the_one()

    assert (one.ok, one.refused, one.command) == (False, True, "server '${TOKEN}'")
    assert (
        one.problem
        == "It was not started: it is not what 'mcp install' writes for a server of this folder, so it may have come "
        "with the workspace."
    )
    assert (
        one.next_step
        == f"Look at the command. If it is yours, run 'uno-devserver mcp doctor editor --force'.{REPLACES}"
    )
    assert not began.exists()


def test_what_stands_in_the_users_own_file_is_started_in_any_workspace(desk: Desk) -> None:
    desk.register(desk.user_config, UnoApp=stdio(*odd_server(tools=2)))
    desk.force = False

    assert desk.the_one().tools == 2


def test_a_command_is_shown_without_what_its_variables_hold(desk: Desk) -> None:
    desk.register(UnoApp=stdio("/gone/${HOME}", "--log=${HOME}", "--key=secret", "--token", "secret"))

    one = desk.the_one()

    assert one.command == "'/gone/${HOME}' '--log=${HOME}' '--key=…' --token '…'"


def test_an_entry_that_is_switched_off_is_not_started(desk: Desk) -> None:
    began = desk.home / "began"
    desk.tool("server", f"open({str(began)!r}, 'w')")
    desk.register(UnoApp=stdio("server", disabled=True))

    assert not desk.the_one().ok
    assert not began.exists()


def test_a_file_that_the_client_refuses_for_a_comment_registers_nothing_that_works(desk: Desk) -> None:
    desk.register(UnoApp=stdio(*odd_server(tools=1)))
    desk.config.write_text(f"// mine\n{desk.config.read_text()}")

    one = desk.the_one()

    assert one.problem == f"Config file '{desk.config}' has a comment in line 1, which Editor does not accept."
    assert one.next_step == "Remove that from the file."


def test_an_address_is_shown_without_what_may_be_secret(desk: Desk) -> None:
    desk.register(UnoDocs={"url": "ftp://secret:secret@nowhere/v1@2?key=secret"})

    one = desk.the_one()

    assert one.command == "ftp://nowhere/v1@2?key=…"
    assert "secret" not in one.problem
    assert one.next_step == f"Check that the address is right and that this machine can reach it.{REPLACES}"


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_tried(desk: Desk) -> None:
    desk.config.write_text("{ broken")
    desk.register(desk.user_config, UnoApp=stdio(*odd_server(tools=1)))

    broken, app = desk.examined()

    assert (broken.server, broken.path, broken.ok) == (None, str(desk.config), False)
    assert "Invalid JSON in config file" in broken.problem
    assert app.ok


def test_a_client_that_knows_no_servers_says_so(desk: Desk) -> None:
    one = desk.examined(places=(), no_client="Editor has no MCP client.")[0]

    assert (one.problem, one.next_step) == ("Editor has no MCP client.", "")


def test_an_entry_of_the_workspace_that_agrees_for_the_user_is_not_started_even_by_force(desk: Desk) -> None:
    started = desk.workspace / "started"
    script = desk.tool("uno-devserver", f"open({str(started)!r}, 'w')")
    desk.register(UnoApp=stdio(str(script), "--mcp-app", env={"UNO_DEVSERVER_TRUST": "1"}))

    one = desk.the_one()

    assert (one.ok, one.refused, started.exists()) == (False, True, False)
    assert "it sets UNO_DEVSERVER_TRUST, which agrees in your name that code of the workspace runs." in one.problem
    assert "'uno-devserver mcp install editor --scope workspace' has removed that." in one.next_step


def test_what_else_decides_what_a_workspaces_entry_runs_is_shown_before_the_user_agrees(desk: Desk) -> None:
    desk.force = False
    desk.register(UnoApp=stdio(*UVX, env={"LD_PRELOAD": "./evil.so"}, envFile=".env"))

    one = desk.the_one()

    assert one.refused
    assert "what else decides what runs (LD_PRELOAD=./evil.so, envFile=.env)" in one.next_step
    assert one.next_step.endswith(REPLACES)
