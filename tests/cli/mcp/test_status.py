"""`mcp status`: the document that extensions read, the lines that people read, and what it costs to get there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.dotnet import write_program
from support.machine import WINDOWS, Machine
from support.registration import (
    BY_PATH,
    DNX,
    DOCS,
    UNPINNED,
    UNPINNED_PRERELEASE,
    VSCODE_USER,
    Clients,
    as_version,
    by_uvx,
    of_client,
)

# Real clients' files hold other servers, whose addresses look like old ones of ours.
FIGMA = {"url": "http://localhost:3845/mcp"}
# None of these is worth its milliseconds on the way to a look at some JSON files.
RELEASE = "1.2.3"
UVX = by_uvx(RELEASE)
COSTLY = {"dataclasses", "typing", "pathlib", "subprocess", "threading", "tomllib", "yaml", "logging", "shutil"}
COSTLY |= {"tempfile", "difflib", "hashlib", "asyncio", "inspect", "uno_devserver.setup.client_cli"}


@pytest.fixture
def clients(machine: Machine) -> Clients:
    """Of a released program, with what starts it on PATH."""
    as_version(machine, RELEASE)
    for name in ("uvx", "dnx"):
        write_program(machine.tools / name, f"#!{name}\n")
    return Clients(machine)


def _shown(text: str) -> str:
    """A text with the paths as this system writes them."""
    return text.replace("/", os.sep)


def _servers(*entries: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"mcpServers": dict(entries)}


def test_programs_get_one_document_with_whole_paths(clients: Clients) -> None:
    local = clients.write(".kiro/settings/mcp.json", _servers(("mine", UVX), ("figma", FIGMA)))
    users = clients.write("~/.kiro/settings/mcp.json", _servers(("UnoApp", DNX), ("UnoDocs", DOCS)))

    told = clients.status("kiro", "--release").json

    fields = ["version", "callerIde", "toolVersion", "expectedVariant"]
    assert list(told) == [*fields, "detectedIdes", "supportedIdes", "ides", "servers", "nextSteps"]
    assert [told[field] for field in fields] == ["1.0", "kiro", RELEASE, "stable"]
    assert told["detectedIdes"] == ["kiro"]
    assert {"ide": "kiro", "strategy": "file", "detected": True} in told["supportedIdes"]
    assert {"id": "kiro", "detected": True, "configPaths": [str(local), str(users)], "writeTarget": str(local)} in told[
        "ides"
    ]
    assert [one["ide"] for one in told["supportedIdes"]] == [one["id"] for one in told["ides"]]
    mine = {"path": str(local), "variant": "stable", "transport": "stdio", "scope": "workspace", "key": "mine"}
    app = {"path": str(users), "variant": "stable", "transport": "stdio", "scope": "user", "key": "UnoApp"}
    docs = {"path": str(users), "variant": "stable", "transport": "http", "scope": "user", "key": "UnoDocs"}
    registered = {"ide": "kiro", "status": "registered"}
    locations = [{**mine, "runner": "uvx"}, {**app, "runner": "dnx"}]
    twice = {**registered, "locations": locations, "warnings": ["Registered in multiple config files"]}
    assert told["servers"] == [
        {"name": "UnoApp", "transport": "stdio", "definition": UVX, "ides": [twice]},
        {"name": "UnoDocs", "transport": "http", "definition": DOCS, "ides": [{**registered, "locations": [docs]}]},
    ]


def test_without_a_caller_and_without_clients_all_are_known_and_none_is_listed(clients: Clients) -> None:
    told = clients.status().json

    assert told["callerIde"] is None
    assert told["detectedIdes"] == []
    assert {"vscode", "cursor", "claude-code", "codex", "zed", "aider"} <= {one["id"] for one in told["ides"]}
    assert all(server["ides"] == [] for server in told["servers"])
    assert all(Path(path).is_absolute() for one in told["ides"] for path in one["configPaths"])


def test_a_caller_that_is_not_there_is_listed_under_the_identifier_that_it_asked_for(clients: Clients) -> None:
    told = clients.status("copilot-vscode").json

    assert told["callerIde"] == "copilot-vscode"
    assert [one["ides"] for one in told["servers"]] == [[{"ide": "copilot-vscode", "status": "missing"}]] * 2
    assert "copilot-vscode" in [one["id"] for one in told["ides"]]


def test_a_file_that_the_client_reads_no_more_is_a_legacy_location(clients: Clients) -> None:
    path = clients.write("~/.vscode/mcp.json", {"servers": {"UnoApp": UVX}})

    found = of_client(clients.status("vscode", "--release"), "UnoApp", "vscode")

    assert found["status"] == "outdated"
    assert [(one["path"], one["legacy"]) for one in found["locations"]] == [(str(path), True)]
    (warning,) = found["warnings"]
    assert warning.startswith(f"VS Code does not read '{path}'; it looks in '")


def test_a_file_that_clients_share_lists_only_those_that_are_here_and_the_caller(clients: Clients) -> None:
    clients.write(".mcp.json", _servers(("UnoApp", UVX)))
    clients.write(".vscode/mcp.json", {"servers": {"UnoApp": UVX}})

    told = clients.status("copilot-cli", "--release").json

    for server in told["servers"]:
        assert {one["ide"] for one in server["ides"]} == {*told["detectedIdes"], "copilot-cli"}
    assert {"unknown", "visual-studio", "copilot-cli"}.isdisjoint(told["detectedIdes"])


def test_the_chosen_definition_is_shown(clients: Clients) -> None:
    def definition(*options: str) -> Any:
        return clients.status(*options).json["servers"][0]["definition"]

    assert definition("--version", "1.2.3") == {"command": "uvx", "args": ["uno-devserver@1.2.3", "--mcp-app"]}
    assert definition("--release", "--runner", "dnx") == DNX
    assert definition("--runner", "path")["args"][-1] == "--mcp-app"


UNRELEASED = "1.2.0.dev0"


@pytest.mark.parametrize("entry", [UVX, UNPINNED, UNPINNED_PRERELEASE])
def test_until_a_release_an_entry_by_name_is_outdated_with_the_reason_and_the_next_step(
    clients: Clients, entry: dict[str, Any]
) -> None:
    as_version(clients.machine, UNRELEASED)
    clients.write(".cursor/mcp.json", _servers(("UnoApp", entry), ("UnoDocs", DOCS)))

    told = clients.status("cursor")
    text = " ".join(clients.text("status", "cursor").stdout.split())

    found, reason = of_client(told, "UnoApp", "cursor"), "runs whatever has the name uno-devserver on the package index"
    assert found["status"] == "outdated"
    assert found["warnings"][-1] == f"The entry 'UnoApp' {reason}: version {UNRELEASED} of it is not released"
    assert told.json["servers"][0]["definition"] == BY_PATH
    assert told.json["nextSteps"] == ["Run 'uno-devserver mcp install cursor' to register what is missing or outdated."]
    assert f"(auto-detected from tool v{UNRELEASED}); entries name its path until it is released" in text
    assert reason in text


def test_until_a_release_a_way_of_the_users_own_that_goes_by_the_name_stays_and_is_warned_of(clients: Clients) -> None:
    as_version(clients.machine, UNRELEASED)
    own = {"command": "uvx", "args": ["--python", "3.12", "uno-devserver", "--mcp-app"]}
    clients.write("~/.cursor/mcp.json", _servers(("UnoApp", own), ("UnoDocs", DOCS)))

    told = clients.status("cursor")

    found = of_client(told, "UnoApp", "cursor")
    assert found["status"] == "registered"
    assert ["not released" in warning for warning in found["warnings"]] == [True]
    (step,) = told.json["nextSteps"]
    assert step == "Run 'uno-devserver mcp install cursor --runner path' to name this program by its path."


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (UNPINNED, "runs each later version unseen, because it names none"),
        (by_uvx("1.1.0"), "runs version 1.1.*, and this program is 1.2.3"),
    ],
)
def test_an_entry_of_another_version_is_outdated_with_the_reason(
    clients: Clients, entry: dict[str, Any], reason: str
) -> None:
    clients.write(".cursor/mcp.json", _servers(("UnoApp", entry)))

    found = of_client(clients.status("cursor"), "UnoApp", "cursor")

    assert (found["status"], found["warnings"][-1]) == ("outdated", f"The entry 'UnoApp' {reason}")


def test_people_get_a_line_per_client_and_entry(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", _servers(("mine", DNX), ("figma", FIGMA)))
    clients.write("~/.cursor/mcp.json", _servers(("UnoApp", {**UVX, "disabled": True})))
    clients.write("~/.kiro/settings/mcp.json", _servers(("UnoDocs", DOCS)))

    lines = clients.text("status", "kiro", "--release").stdout.splitlines()

    assert lines == [
        "MCP Server Status",
        "=================",
        "",
        "IDEs detected: cursor, kiro",
        "Caller IDE:    kiro",
        "Expected:      stable (--release)",
        "",
        "UnoApp (stdio)",
        _shown("  cursor  registered dnx stable     .cursor/mcp.json (as mine)"),
        _shown("                     stable         ~/.cursor/mcp.json"),
        "          ⚠ Registered in multiple config files",
        "  kiro    missing",
        "",
        "UnoDocs (http)",
        "  cursor  missing",
        _shown("  kiro    registered stable         ~/.kiro/settings/mcp.json"),
        "",
        "Next steps:",
        "- Run 'uno-devserver mcp install kiro --release' to register what is missing or",
        "  outdated.",
    ]


def test_an_entry_started_in_a_way_of_its_own_is_registered_and_has_no_runner(clients: Clients) -> None:
    own = {"command": "uvx", "args": ["--python", "3.12", "uno-devserver@1.2", "--mcp-app"]}
    clients.write("~/.cursor/mcp.json", _servers(("UnoApp", own)))

    found = of_client(clients.status("cursor"), "UnoApp", "cursor")

    assert found["status"] == "registered"
    assert "runner" not in found["locations"][0]
    assert _shown("  cursor  registered own            ~/.cursor/mcp.json\n") in clients.text("status").stdout
    assert of_client(clients.status("cursor", "--runner", "uvx"), "UnoApp", "cursor")["status"] == "outdated"


def test_columns_stay_in_line_beside_a_long_variant(clients: Clients) -> None:
    pinned = {"command": "dnx", "args": ["-y", "--version", "5.6.0", "uno.devserver", "--mcp-app"]}
    clients.write(".cursor/mcp.json", _servers(("UnoApp", pinned)))
    clients.write("~/.cursor/mcp.json", _servers(("UnoApp", UVX)))

    text = clients.text("status").stdout

    lines = (
        "  cursor  registered dnx pinned:5.6.0 .cursor/mcp.json\n"
        "                     stable           ~/.cursor/mcp.json\n"
    )
    assert _shown(lines) in text


def test_without_a_caller_one_line_is_for_all_that_lack_something_and_the_last_names_the_rest(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", _servers(("mine", UVX), ("UnoApp", UVX)))
    clients.write("~/.kiro/settings/mcp.json", "{")
    clients.write(".gemini/settings.json", _servers(("UnoDocs", DOCS)))

    text = clients.text("status", "--release").stdout

    run = "Run 'uno-devserver mcp install <client> --release' for each of cursor, gemini-cli, or with --all-ides"
    steps, known = text.split("\nNext steps:\n")[1].split("\n\n")
    assert [" ".join(step.split()) for step in steps.removeprefix("- ").split("\n- ")] == [
        _shown("Fix or remove the file '~/.kiro/settings/mcp.json', and run this again."),
        f"{run} for all at once, to register what is missing or outdated.",
        _shown("Remove one of the entries 'mine', 'UnoApp' from '.cursor/mcp.json': one is enough for UnoApp."),
    ]
    assert known.startswith("'uno-devserver mcp install <client> --release' also knows: vscode, ")
    assert {"cursor", "kiro", "aider", "unknown"}.isdisjoint(known.replace(",", " ").split())


def test_what_is_said_to_run_means_the_same_workspace(clients: Clients) -> None:
    other = clients.workspace / "a b"
    other.mkdir()

    text = clients.text("status", "kiro", "--workspace", str(other), "--runner", "dnx").stdout

    named = f'"{other}"' if WINDOWS else f"'{other}'"
    assert f"mcp install kiro --workspace {named} --runner dnx' to" in " ".join(text.split())


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"command": "uno-devserver", "args": ["--mcp-app"]}, "registered path           .cursor"),
        ({"command": "npx", "args": ["something"]}, "outdated   other          .cursor"),
        ({"command": "uvx", "args": ["something"]}, "outdated   other          .cursor"),
        ({}, "outdated   other          .cursor"),
        ({"url": "http://localhost:1/mcp"}, "outdated   legacy-http    .cursor"),
        ({"command": "uvx", "args": ["uno-devserver@1", "--mcp-app"]}, "outdated   pinned:1       .cursor"),
    ],
)
def test_an_unusual_runner_is_shown(clients: Clients, entry: dict[str, Any], shown: str) -> None:
    clients.write(".cursor/mcp.json", _servers(("UnoApp", entry)))

    assert _shown(f"  cursor  {shown}/mcp.json\n") in clients.text("status", "cursor").stdout


def test_two_parts_of_one_file_are_told_apart(clients: Clients) -> None:
    off = {**UVX, "disabled": True}
    projects = {clients.workspace.as_posix(): _servers(("UnoApp", off))}
    path = clients.write("~/.claude.json", {"projects": projects, **_servers(("UnoApp", UVX))})

    found = of_client(clients.status("claude-code", "--release"), "UnoApp", "claude-code")
    text = clients.text("status", "claude-code", "--release").stdout

    assert found["warnings"] == [
        f"Registered several times in '{path}'",
        f"The entry 'UnoApp' is disabled in '{path}', this project",
    ]
    assert _shown(" ~/.claude.json, this project\n") in text
    assert _shown(" ~/.claude.json\n") in text

    clients.write("~/.claude.json", "{")
    assert len(of_client(clients.status("claude-code"), "UnoApp", "claude-code")["warnings"]) == 1


def test_lines_fit_80_columns_also_with_many_clients_long_versions_and_broken_files(clients: Clients) -> None:
    for client in clients.status().json["ides"]:
        for path in client["configPaths"]:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text("{")
    pinned = {"command": "uvx", "args": ["uno-devserver@12.34.567-dev.8901+abcdef", "--mcp-app"]}
    clients.write(VSCODE_USER, {"servers": {"UnoApp": pinned}})

    text = clients.text("status").stdout

    assert f"    {_shown(VSCODE_USER)}" in text, text
    assert "pinned:12.34.567-dev.8901+abcdef" in text
    assert text.count("Invalid JSON in config file '") > 10
    for line in text.splitlines():
        assert len(line) <= 80 or len(line.split()) < 3, line  # a long path stays whole
    assert str(clients.home) not in text


def test_what_has_no_mcp_client_is_told_so_when_it_is_named(clients: Clients) -> None:
    named = clients.text("status", "aider")

    assert named.exit_code == 0
    assert "  aider  missing\n         ⚠ Aider has no MCP client" in named.stdout
    assert "aider" not in clients.text("status").stdout


def test_a_server_that_a_client_cannot_take_says_why_it_is_missing(clients: Clients) -> None:
    text = clients.text("status", "claude-desktop").stdout

    assert "  claude-desktop  missing    (takes no http servers)" in text
    assert "  claude-desktop  missing\n" in text


def test_control_characters_in_names_do_not_reach_the_terminal(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", json.dumps(_servers(("\x1b[31mred\nline", UVX))))

    text = clients.text("status").stdout

    assert "\x1b" not in text
    assert "(as \\x1b[31mred\\nline)" in text


def test_a_chosen_runner_is_shown(clients: Clients) -> None:
    assert "\nExpected:      stable (--release), started by dnx\n" in (
        clients.text("status", "--release", "--runner", "dnx").stdout
    )


def test_the_client_itself_is_asked(machine: Machine, clients: Clients) -> None:
    program = f"#!{sys.executable}\nprint('UnoApp: uvx uno-devserver --mcp-app - connected')\n"
    write_program(machine.tools / "claude", program)

    told = clients.status("--verify").json
    text = clients.text("status", "claude-code", "--verify").stdout

    assert told["detectedIdes"] == ["claude-code"]
    assert told["verified"] == [
        {
            "client": "claude-code",
            "command": "claude mcp list",
            "sees": {"UnoApp": True, "UnoDocs": False},
            "said": ["UnoApp: uvx uno-devserver --mcp-app - connected"],
        }
    ]
    assert (
        "What the clients themselves see\n"
        "  claude-code: sees UnoApp, does not see UnoDocs (claude mcp list)\n"
        "    | UnoApp: uvx uno-devserver --mcp-app - connected\n"
    ) in text


def test_a_named_client_that_cannot_be_asked_says_why(clients: Clients) -> None:
    (answer,) = clients.status("cursor", "--verify").json["verified"]

    assert (answer["client"], answer["problem"]) == ("cursor", "Cursor has no command that lists its servers")
    assert "  cursor: ⚠ Cursor has no command" in clients.text("status", "cursor", "--verify").stdout
    assert "no detected client has a command for this" in clients.text("status", "--verify").stdout


def test_nothing_costly_is_imported_for_json_files(machine: Machine, clients: Clients) -> None:
    clients.write(".cursor/mcp.json", _servers(("UnoApp", UVX)))
    program = (
        "import sys; before = set(sys.modules); from uno_devserver.cli.main import main; code = main(sys.argv[1:]);"
        "sys.stderr.write(' '.join(set(sys.modules) - before)); sys.exit(code)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, "mcp", "status"],
        cwd=machine.workspace,
        env=machine.variables(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert COSTLY.isdisjoint(done.stderr.split()), COSTLY.intersection(done.stderr.split())
    assert "UnoApp (stdio)" in done.stdout


# --- the next steps -----------------------------------------------------------------------------------------------


def _entries(**app: Any) -> dict[str, Any]:
    return _servers(("UnoApp", {**UVX, **app}), ("UnoDocs", DOCS))


def _steps(clients: Clients, *options: str) -> list[str]:
    steps: list[str] = clients.status("cursor", "--release", *options).json["nextSteps"]
    return steps


def test_where_all_is_well_there_is_nothing_to_do(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", _entries())

    assert _steps(clients) == []
    assert "Next steps" not in clients.text("status", "cursor", "--release").stdout


def test_a_program_that_is_not_there_is_installed_or_named_by_its_path(clients: Clients) -> None:
    shutil.rmtree(clients.machine.tools)
    clients.write(".cursor/mcp.json", _entries())
    call = f"uno-devserver mcp install cursor --runner path --workspace {clients.workspace}"
    step = f"'uvx' is not on PATH: install it, or '{call}' names this program by its path."

    assert _steps(clients, "--workspace", str(clients.workspace)) == [step]


def test_an_entry_that_is_switched_off_is_switched_on_in_the_client_or_its_file(clients: Clients) -> None:
    path = clients.write(".cursor/mcp.json", _entries(disabled=True))

    text = " ".join(clients.text("status", "cursor", "--release").stdout.split())

    assert _steps(clients) == [f"Switch the entry 'UnoApp' on in Cursor, or in '{path}'."]
    assert text.endswith(f"Next steps: - Switch the entry 'UnoApp' on in Cursor, or in '{_shown('.cursor/mcp.json')}'.")


def test_of_several_files_the_one_that_counts_is_named_and_the_way_out_of_all(clients: Clients) -> None:
    path = clients.write(".cursor/mcp.json", _entries())
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoApp": UVX}})

    (step,) = _steps(clients)
    command = step.split("'")[3].split()

    assert step == (
        f"Cursor uses the entry in '{path}' for UnoApp; "
        "'uno-devserver mcp uninstall cursor --servers UnoApp' removes all."
    )
    assert clients.machine.run(*command[1:]).exit_code == 0
    assert clients.status("cursor").json["servers"][0]["ides"] == [{"ide": "cursor", "status": "missing"}]


@pytest.mark.parametrize("content", ['{"mcpServers": {}}', '{"mcpServers": {"UnoApp": {"url": "http://x"}}}'])
def test_a_read_only_file_is_named_before_the_command_that_writes_it(clients: Clients, content: str) -> None:
    path = clients.write(".cursor/mcp.json", content)
    path.chmod(0o444)

    assert _steps(clients) == [
        f"Make '{path}' writable: it is read-only.",
        "Run 'uno-devserver mcp install cursor --release' to register what is missing or outdated.",
    ]
