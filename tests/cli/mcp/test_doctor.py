"""`mcp doctor` on the command line, with the real proxy behind an entry."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.dotnet import write_program
from support.files import write
from support.hosts import is_running
from support.machine import COMMAND, DATA_HOME, WINDOWS, Machine
from support.odd_servers import Notes, odd_server
from support.proxies import Proxies
from support.registration import UNPINNED_PRERELEASE, as_version, by_uvx
from support.signals import SIGHUP
from support.waiting import wait_for

OURS = {"UnoApp": {"command": COMMAND, "args": ["--mcp-app"]}}
# A shell gives this to what it starts in the background.
WITHOUT_CTRL_C = (
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
)
EXAMPLE = Path(__file__).parents[3] / "examples" / "workspace"


@pytest.fixture
def workspace(machine: Machine) -> Iterator[Path]:
    """The example's, agreed to and registered with Claude Code; at the end nothing of what was started runs."""
    shutil.copytree(EXAMPLE, machine.workspace, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    register(machine.workspace, OURS)
    machine.run("trust")
    with Proxies(machine):
        yield machine.workspace


def register(workspace: Path, servers: dict[str, Any]) -> None:
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_the_proxy_works_as_a_client_starts_it(machine: Machine, workspace: Path) -> None:
    result = machine.run("mcp", "doctor", "claude-code", "--json")

    (entry,) = result.json["entries"]
    assert (result.exit_code, result.json["version"], result.json["ide"]) == (0, "1.0", "claude-code")
    assert (entry["ok"], entry["problem"], entry["nextStep"]) == (True, None, None)
    assert (entry["server"], entry["cwd"]) == ("UnoApp", str(workspace))
    assert entry["command"] == f"{COMMAND} --mcp-app"
    assert (entry["health"], entry["tools"]) == ("Healthy", 2)  # those of the example, and none of the proxy's own
    assert set(entry["milliseconds"]) == {"spawn", "initialize", "tools", "ready"}
    assert entry["limitSeconds"] > 0


def test_people_read_what_was_started_and_how_long_it_took(machine: Machine, workspace: Path) -> None:
    result = machine.run("mcp", "doctor", "claude-code")

    assert result.exit_code == 0
    assert "Claude Code (claude-code)\n  UnoApp: works, 2 tools (" in result.stdout
    assert f"    starts {COMMAND} --mcp-app\n    in {workspace}\n" in result.stdout


def test_without_a_client_all_that_have_an_entry_are_tried(machine: Machine, workspace: Path) -> None:
    (machine.home / ".claude").mkdir()
    cursor = workspace / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    cursor.write_text(json.dumps({"mcpServers": {"mine": {"command": "/gone/uno-devserver", "args": ["--mcp-app"]}}}))

    result = machine.run("mcp", "doctor", "--json")

    worked = {entry["ide"]: entry["ok"] for entry in result.json["entries"]}
    assert (result.exit_code, result.json["ide"]) == (1, None)
    assert worked["claude-code"] is True
    assert worked["cursor"] is False


@pytest.fixture
def planted(machine: Machine) -> Path:
    """A file that a hostile command makes; the command stands in a client's file of the workspace."""
    made = machine.home / "made"
    register(machine.workspace, {"UnoApp": {"command": sys.executable, "args": ["-c", f"open({str(made)!r}, 'w')"]}})
    (machine.home / ".claude").mkdir()
    return made


@pytest.mark.parametrize("client", [(), ("claude-code",)])
def test_a_command_from_the_workspace_is_not_started(machine: Machine, planted: Path, client: tuple[str, ...]) -> None:
    result = machine.run("mcp", "doctor", *client)

    assert result.exit_code == 1
    assert "  UnoApp: not tried\n" in result.stdout
    assert f"    would start {sys.executable} -c " in result.stdout
    assert "If it is yours, run 'uno-devserver mcp doctor claude-code --force'." in " ".join(result.stdout.split())
    assert not planted.exists()


def test_it_is_started_where_the_user_insists(machine: Machine, planted: Path) -> None:
    machine.run("mcp", "doctor", "claude-code", "--force")

    assert planted.exists()


def test_to_have_agreed_to_the_workspace_is_not_enough_to_start_it(machine: Machine, planted: Path) -> None:
    write(machine.workspace / ".devtools" / "host.config.jsonc", "{}")
    assert machine.run("trust").exit_code == 0

    result = machine.run("mcp", "doctor", "claude-code")

    assert (result.exit_code, "  UnoApp: not tried\n" in result.stdout) == (1, True)
    assert not planted.exists()


def test_one_that_fails_says_why_and_what_to_do(machine: Machine, workspace: Path) -> None:
    register(workspace, {"UnoApp": by_uvx(as_version(machine, "1.2.3"))})

    result = machine.run("mcp", "doctor", "claude-code")

    assert result.exit_code == 1
    assert "  UnoApp: does not work\n" in result.stdout
    assert "    'uvx' is not on PATH.\n" in result.stdout
    assert "'uno-devserver mcp install claude-code --runner path'." in " ".join(result.stdout.split())
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if os.sep not in line)


@pytest.mark.parametrize(("scope", "path"), [("", "ws/.mcp.json"), (" --scope user", "home/.claude.json")])
def test_until_a_release_what_has_our_name_on_an_index_is_not_started(machine: Machine, scope: str, path: str) -> None:
    as_version(machine, "1.2.0.dev0")
    started = machine.root / "started"
    write_program(machine.tools / "uvx", f"#!{sys.executable}\nopen({str(started)!r}, 'w')\n")
    write(machine.root / path, json.dumps({"mcpServers": {"UnoApp": UNPINNED_PRERELEASE}}))

    result = machine.run("mcp", "doctor", "claude-code", "--servers", "UnoApp", "--json")

    (one,) = result.json["entries"]
    assert (result.exit_code, one["ok"], started.exists()) == (1, False, False)
    assert one["problem"] == (
        "It was not started: it runs whatever has the name uno-devserver on the package index: "
        "version 1.2.0.dev0 of it is not released."
    )
    assert f"'uno-devserver mcp install claude-code{scope} --runner path' names this program by" in one["nextStep"]
    assert "'uno-devserver mcp doctor claude-code --force'." in one["nextStep"]
    machine.run("mcp", "doctor", "claude-code", "--servers", "UnoApp", "--force")
    assert started.exists()


def test_nothing_is_left_of_a_proxy_and_its_host(machine: Machine, workspace: Path) -> None:
    for _ in range(3):
        assert machine.run("mcp", "doctor", "claude-code").exit_code == 0

        assert list((machine.state / "proxies").iterdir()) == []
        assert list((machine.state.parent / "DevServers").iterdir()) == []
        assert os.listdir(machine.environment["TMPDIR"]) == []


@pytest.mark.parametrize(
    ("numbers", "prefix"),
    [
        ((signal.SIGINT,), ()),
        ((signal.SIGTERM,), ()),
        ((SIGHUP, signal.SIGTERM), ()),
        ((signal.SIGTERM, SIGHUP), WITHOUT_CTRL_C),
    ],
)
def test_nothing_is_left_when_it_is_told_to_end(
    machine: Machine, tmp_path: Path, numbers: tuple[signal.Signals, ...], prefix: tuple[str, ...]
) -> None:
    # given a server that says nothing, and does not end by itself
    notes = Notes(tmp_path / "notes")
    program, *args = odd_server(never_reads=True, grandchild=True, notes=notes)
    write(
        machine.home / ".codex" / "config.toml",
        f"[mcp_servers.UnoApp]\ncommand = {json.dumps(program)}\nargs = {json.dumps(args)}\n",
    )
    doctor = machine.spawn("mcp", "doctor", "codex", "--json", prefix=prefix)
    wait_for(lambda: notes.starts and notes.children, "the start of the server")
    assert os.listdir(machine.temp) != []

    for number in numbers:
        doctor.send_signal(number)

    output, errors = doctor.communicate(timeout=20)
    assert (doctor.returncode, "Traceback" in errors) == (130, False), errors
    assert json.loads(output)["error"]["code"] == "Interrupted"
    wait_for(lambda: not any(map(is_running, notes.starts + notes.children)), "the end of all that was started")
    assert os.listdir(machine.temp) == []


def test_a_proxy_with_nothing_behind_it_does_not_work(machine: Machine, workspace: Path) -> None:
    machine.run("trust", "--revoke")

    result = machine.run("mcp", "doctor", "claude-code", "--force", "--json")
    text = machine.run("mcp", "doctor", "claude-code", "--force").stdout

    (entry,) = result.json["entries"]
    assert (result.exit_code, entry["ok"], entry["health"], entry["tools"]) == (1, False, "Unhealthy", None)
    assert "the user has not agreed to it" in entry["problem"]
    assert "'uno-devserver trust'" in entry["nextStep"]
    assert " ms, but has no server\n" in text


def test_a_variable_that_a_client_does_not_pass_on_is_named(machine: Machine, workspace: Path) -> None:
    # given a user who agrees in a shell that has its data elsewhere
    write(workspace / ".cursor" / "mcp.json", json.dumps({"mcpServers": OURS}))
    machine.run("trust", "--revoke")
    elsewhere = {DATA_HOME: str(machine.root / "elsewhere")}
    machine.run("trust", env=elsewhere)

    # when an entry is tried for a client with windows, and for one in the terminal
    (windows,) = machine.run("mcp", "doctor", "cursor", "--json", env=elsewhere).json["entries"]
    (terminal,) = machine.run("mcp", "doctor", "claude-code", "--json", env=elsewhere).json["entries"]

    # then the step is one that helps
    assert "the user has not agreed to it" in windows["problem"]
    assert "Cursor does not pass XDG_DATA_HOME on: run that without it ('env -u XDG_DATA_HOME " in windows["nextStep"]
    assert terminal["ok"]
    machine.run("trust", env={DATA_HOME: ""})
    assert machine.run("mcp", "doctor", "cursor", "--json", env=elsewhere).json["entries"][0]["ok"]


def test_a_folder_that_is_no_workspace_is_reported(machine: Machine) -> None:
    register(machine.workspace, OURS)
    with Proxies(machine):
        result = machine.run("mcp", "doctor", "claude-code", "--force", "--json")

    (entry,) = result.json["entries"]
    assert (result.exit_code, entry["ok"]) == (1, False)
    assert "There is no .sln or .slnx file" in entry["problem"]
    assert entry["nextStep"].startswith("Run this in the workspace's folder ('dotnet new unoapp' makes one), or ")
    assert "run 'uno-devserver init'" in entry["nextStep"]


def test_a_client_that_starts_servers_elsewhere_names_the_workspace(machine: Machine) -> None:
    settings = machine.home / ("AppData/Roaming" if WINDOWS else ".config")
    write(settings / "Claude" / "claude_desktop_config.json", json.dumps({"mcpServers": OURS}))
    with Proxies(machine):
        result = machine.run("mcp", "doctor", "claude-desktop", "--servers", "UnoApp")

    assert result.exit_code == 0, result.stdout
    assert " ms, and waits for a workspace to be named\n" in result.stdout
    assert "Call uno_app_initialize" in result.stdout


def test_a_server_of_the_config_that_cannot_start_is_reported(machine: Machine) -> None:
    write(
        machine.workspace / ".devtools" / "host.config.jsonc",
        json.dumps({"mcpServerRoot": "..", "mcpServer": {"command": sys.executable, "args": ["-c", "exit('broken')"]}}),
    )
    register(machine.workspace, OURS)
    machine.run("trust")
    with Proxies(machine):
        result = machine.run("mcp", "doctor", "claude-code", "--json")

    (entry,) = result.json["entries"]
    assert (result.exit_code, entry["ok"], entry["tools"]) == (1, False, None)
    assert "broken" in entry["problem"]


SLOW = "import os, sys, time; time.sleep(2); os.execv(sys.argv[1], sys.argv[1:])"  # then the server


@pytest.mark.parametrize("broken", [False, True])
def test_all_servers_of_the_config_are_waited_for(machine: Machine, broken: bool) -> None:
    plain = odd_server(name="plain")
    other = ("-c", "exit('broken')") if broken else ("-c", SLOW, *odd_server(name="other"))
    servers = {
        "plain": {"command": plain[0], "args": plain[1:]},
        "other": {"command": sys.executable, "args": other},
    }
    write(machine.workspace / ".devtools" / "host.config.jsonc", json.dumps({"servers": servers}))
    register(machine.workspace, OURS)
    machine.run("trust")
    with Proxies(machine):
        result = machine.run("mcp", "doctor", "claude-code", "--json")

    (entry,) = result.json["entries"]
    assert (result.exit_code, entry["ok"]) == (1, False) if broken else (0, True)
    assert "connected yet" not in entry["problem"]  # both have the same resources, which is told
    assert "\n" not in entry["problem"]
    assert ("broken" in entry["problem"]) == broken


def test_an_add_in_that_raises_is_reported(machine: Machine, workspace: Path) -> None:
    # given one of two add-ins that does not load
    addins = workspace / ".devtools" / "addins"
    write(addins / "broken.py", "raise ValueError('no such luck')\n")
    machine.run("trust")

    result = machine.run("mcp", "doctor", "claude-code", "--json")
    text = machine.run("mcp", "doctor", "claude-code").stdout

    # then the rest works, and it is said that it is not all
    (entry,) = result.json["entries"]
    assert (result.exit_code, entry["ok"], entry["health"], entry["tools"]) == (0, True, "Degraded", 2)
    assert "no such luck" in entry["problem"]
    assert "  UnoApp: works in part, 2 tools (" in text


def test_a_server_whose_only_add_in_raises_has_no_tools(machine: Machine, workspace: Path) -> None:
    write(workspace / ".devtools" / "addins" / "todos.py", "raise ValueError('no such luck')\n")

    result = machine.run("mcp", "doctor", "claude-code")

    assert result.exit_code == 1
    assert " ms, but its server has no tools\n" in result.stdout
    assert "no such luck" in result.stdout


def test_a_client_without_an_entry_leads_to_install(machine: Machine) -> None:
    result = machine.run("mcp", "doctor", "cursor", "--servers", "UnoApp")

    assert result.exit_code == 1
    assert "  UnoApp: not registered\n" in result.stdout
    assert "Run 'uno-devserver mcp install cursor'." in result.stdout


def test_it_says_if_no_client_has_an_entry(machine: Machine) -> None:
    result = machine.run("mcp", "doctor", "--json")

    assert (result.exit_code, result.json["entries"]) == (1, [])
    assert "mcp install <client>" in result.json["nextSteps"][0]


def test_the_step_that_replaces_an_entry_of_the_user_does_so(machine: Machine) -> None:
    config = machine.home / ".codex" / "config.toml"
    write(config, '[mcp_servers.UnoApp]\ncommand = "/gone/uno-devserver"\nargs = ["--mcp-app"]\n')
    (entry,) = machine.run("mcp", "doctor", "codex", "--json").json["entries"]

    step = entry["nextStep"].partition(" 'uno-devserver ")[2].partition("'")[0]
    machine.run(*step.split())

    assert step == "mcp install codex --scope user"
    assert "/gone/" not in config.read_text()
    assert not (machine.workspace / ".codex").exists()
