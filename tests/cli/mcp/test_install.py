"""`mcp install` and `mcp uninstall` as people and extensions call them; what is written, `tests/setup` holds."""

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
from support.files import write
from support.machine import COMMAND, Result
from support.registration import (
    BY_PATH,
    DOCS,
    SEED_SERVERS,
    UNPINNED,
    UNPINNED_PRERELEASE,
    UVX,
    UVX_PRERELEASE,
    Clients,
    as_version,
    by_uvx,
    operations,
)
from support.terminals import Terminal
from uno_devserver.cli.mcp.install import REMOVE_THEM
from uno_devserver.cli.trust import MAY_IT_RUN

ADDIN = ".devtools/addins/mine.py"
NOT_YET = "Not run until you agree: "


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["install"], "Missing client argument. Usage: mcp install <client>, or use --all-ides to target all detected"),
        (["uninstall"], "Missing client argument. Usage: mcp uninstall <client>, or use --all-ides"),
        (["restore"], "Missing client argument. Usage: mcp restore <client>, or use --all-ides"),
        (["install", "cursor", "--all-ides"], "'cursor' and --all-ides are mutually exclusive"),
        (["uninstall", "cursor", "--scope", "user", "--all-scopes"], "--scope and --all-scopes are mutually exclusive"),
        (["restore", "cursor", "--scope", "user", "--all-scopes"], "--scope and --all-scopes are mutually exclusive"),
        (["install", "cursor", "--verify", "--dry-run"], "--verify and --dry-run are mutually exclusive"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(clients: Clients, argv: list[str], message: str) -> None:
    before = clients.tree()

    result = clients.mcp(*argv)

    assert result.exit_code == 2
    assert result.json["error"]["message"].startswith(message)
    assert clients.tree() == before


def test_without_any_client_all_of_them_are_none(clients: Clients) -> None:
    result = clients.install("--all-ides")

    assert result.exit_code == 1
    assert result.json["error"]["message"].startswith("No clients detected. ")


def test_all_detected_clients_share_what_they_can_and_a_dry_run_foresees_it(clients: Clients) -> None:
    for folder in ("~/.claude", "~/.qwen"):
        clients.at(folder).mkdir()

    foreseen = clients.install("--all-ides", "--dry-run")
    done = clients.install("--all-ides")

    listed = [(one["ide"], one["server"], one["action"], one["path"]) for one in operations(done)]
    assert listed == [(one["ide"], one["server"], one["action"], one["path"]) for one in operations(foreseen)]
    shared = str(clients.at(".mcp.json"))
    assert ("claude-code", "UnoApp", "created", shared) in listed
    assert ("qwen", "UnoApp", "skipped", shared) in listed


def test_what_is_left_to_do_in_the_client_is_told_after_a_change_and_only_then(clients: Clients) -> None:
    first, second = (clients.install("claude-code", "--runner", "uvx") for _ in range(2))

    steps = first.json["nextSteps"]
    assert any("approve" in step for step in steps)
    assert any("'uvx' is not on PATH" in step and "--runner path" in step for step in steps)
    assert not any("VS Code" in step for step in steps), "it is nothing to do"
    assert all("VS Code" in one["note"] for one in operations(first))
    assert all("'uvx' is not on PATH" in step for step in second.json["nextSteps"]), "this is still so"
    assert second.json["nextSteps"]


def test_a_file_that_cannot_be_changed_has_a_next_step(clients: Clients) -> None:
    broken = clients.write(".cursor/mcp.json", "{ broken")
    protected = clients.write(".kiro/settings/mcp.json", "{}")
    protected.chmod(0o444)
    step = f"Fix or remove the file '{broken}', and run this again."

    assert clients.install("cursor").json["nextSteps"] == [step]
    assert clients.uninstall("cursor").json["nextSteps"] == [step]
    assert clients.install("kiro").json["nextSteps"] == [f"Make '{protected}' writable, and run this again."]


def test_only_what_the_written_scope_asks_for_is_left_to_do(clients: Clients) -> None:
    project = {"mcpServers": {"UnoApp": UVX_PRERELEASE}}
    clients.write("~/.claude.json", {"projects": {clients.workspace.as_posix(): project}})

    steps = clients.install("claude-code", "--scope", "user").json["nextSteps"]

    assert any("start a new one" in step for step in steps)
    assert not any("approve" in step for step in steps)


def test_a_program_that_is_there_needs_no_hint(clients: Clients) -> None:
    write_program(clients.machine.tools / "uvx", "#!uvx\n")

    assert not any("uvx" in step for step in clients.install("cursor").json["nextSteps"])


def test_the_path_runner_writes_a_program_that_exists(clients: Clients) -> None:
    result = clients.install("cursor", "--runner", "path", "--servers", "UnoApp")

    entry = clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"]
    assert Path(entry["command"]).samefile(COMMAND)
    assert entry["args"] == ["--mcp-app"]
    assert not any("PATH" in step for step in result.json["nextSteps"])


def test_the_workspace_is_named_where_it_is_that_of_a_folder_above(clients: Clients) -> None:
    clients.write(".devtools/host.config.jsonc", '{"mcpServer": {"command": "python3"}}')
    clients.at("sub").mkdir()

    above = clients.machine.run("mcp", "install", "cursor", cwd=clients.at("sub"))
    here = clients.machine.run("mcp", "install", "cursor")

    assert f"The workspace is {clients.workspace}, to which this folder belongs." in above.stderr
    assert "The workspace is" not in here.stderr


UNRELEASED, RELEASE = "1.2.0.dev0", "1.2.3"
RUNS_ANYTHING = (
    f"runs whatever has the name uno-devserver on the package index: version {UNRELEASED} of it is not released."
)


def test_until_a_release_the_path_of_this_program_is_written(clients: Clients) -> None:
    as_version(clients.machine, UNRELEASED)

    app, _ = operations(clients.install("cursor"))
    again, _ = operations(clients.install("cursor"))

    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"] == BY_PATH
    assert "package index" not in app.get("note", "")
    assert (again["action"], again["reason"]) == ("skipped", "Already registered")


@pytest.mark.parametrize(
    "old",
    [UNPINNED, UNPINNED_PRERELEASE, by_uvx(RELEASE), {"command": "uvx", "args": ["uno-devserver@1.2.3", "--mcp-app"]}],
)
def test_until_a_release_an_entry_by_name_is_replaced_and_keeps_its_name_and_variables(
    clients: Clients, old: dict[str, Any]
) -> None:
    as_version(clients.machine, UNRELEASED)
    entry = {**old, "args": [*old["args"], "-l", "Debug"], "env": {"A": "1"}}
    clients.write(".cursor/mcp.json", {"mcpServers": {"mine": entry}})

    (app, _) = operations(clients.install("cursor"))

    assert (app["action"], app["keys"]) == ("updated", ["mine"])
    assert "(was uvx" in app["reason"]
    assert clients.read(".cursor/mcp.json")["mcpServers"]["mine"] == {
        "command": BY_PATH["command"],
        "args": ["--mcp-app"],  # in a file of the workspace
        "env": {"A": "1"},
    }


@pytest.mark.parametrize(
    ("options", "args"),
    [
        (("--runner", "uvx"), by_uvx(UNRELEASED, "--prerelease", "allow")["args"]),
        (("--release",), by_uvx(UNRELEASED)["args"]),
        (("--channel", "prerelease"), by_uvx(UNRELEASED, "--prerelease", "allow")["args"]),
        (("--version", "1.1.0"), ["uno-devserver@1.1.0", "--mcp-app"]),
    ],
)
def test_who_asks_for_a_name_before_a_release_gets_it_with_a_warning(
    clients: Clients, options: tuple[str, ...], args: list[str]
) -> None:
    as_version(clients.machine, UNRELEASED)
    warning = f"The entry {RUNS_ANYTHING} '--runner path' names this program by its path instead."

    first, second = (operations(clients.install("cursor", *options))[0] for _ in range(2))

    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"] == {"command": "uvx", "args": args}
    assert (first["action"], second["action"]) == ("created", "skipped")
    assert warning in first["note"]
    assert warning in second["note"]


def test_the_net_tool_has_its_own_package_and_no_warning_before_a_release(clients: Clients) -> None:
    as_version(clients.machine, UNRELEASED)

    (app, _) = operations(clients.install("cursor", "--runner", "dnx"))

    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"]["command"] == "dnx"
    assert "package index" not in app.get("note", "")


def test_a_release_writes_its_minor_version_and_the_next_minor_version_renews_it(clients: Clients) -> None:
    as_version(clients.machine, RELEASE)
    created = clients.install("cursor")
    written = clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"]
    as_version(clients.machine, "1.2.9")
    patch = clients.install("cursor")
    as_version(clients.machine, "1.3.0")
    minor = clients.install("cursor")

    assert written == by_uvx(RELEASE)
    assert "package index" not in operations(created)[0].get("note", "")
    assert operations(patch)[0]["action"] == "skipped"
    assert operations(minor)[0]["action"] == "updated"
    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"] == by_uvx("1.3.0")


@pytest.mark.parametrize("old", [UNPINNED, UNPINNED_PRERELEASE])
def test_a_release_replaces_the_entry_without_a_version_that_earlier_ones_wrote(
    clients: Clients, old: dict[str, Any]
) -> None:
    as_version(clients.machine, RELEASE)
    clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": old}})

    (app, _) = operations(clients.install("cursor"))

    assert app["action"] == "updated"
    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"] == by_uvx(RELEASE)


def test_registering_with_trust_agrees_to_the_workspaces_code_and_says_what_may_run(clients: Clients) -> None:
    addin = write(clients.workspace / ADDIN, "")

    lines = clients.text("install", "cursor", "--trust").stdout.splitlines()
    again = clients.install("cursor", "--trust")

    at = lines.index("Code of this workspace that may run from now on:")
    assert lines[at + 1 : at + 3] == [f"- {addin}", "'uno-devserver trust --revoke' revokes this."]
    assert again.json["agreedTo"] == [], "it is known"
    (agreement,) = agreements(clients)
    assert agreement["agreedBy"] == "mcp install"


def test_registering_alone_agrees_to_nothing_and_names_the_next_step(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")

    data = clients.install("cursor").json

    assert data["agreedTo"] == []
    assert data["nextSteps"][-1].startswith(NOT_YET)
    assert agreements(clients) == []


def test_on_a_terminal_it_is_asked_when_the_files_are_written(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")
    terminal = Terminal(clients.machine, "mcp", "install", "cursor")

    terminal.until(MAY_IT_RUN)
    assert "UnoApp" in clients.read(".cursor/mcp.json")["mcpServers"]
    terminal.press(b"y\n")
    terminal.end()

    assert len(agreements(clients)) == 1


def test_who_interrupts_the_question_is_told_that_the_files_are_written(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")
    terminal = Terminal(clients.machine, "mcp", "install", "cursor")
    terminal.until(MAY_IT_RUN)
    terminal.press(b"\x03")

    sent = terminal.end()

    assert terminal.process.returncode == 130
    assert "but the entries were written: 'uno-devserver mcp uninstall' removes them." in " ".join(sent.split())
    assert agreements(clients) == []


@pytest.mark.parametrize(("answer", "stays"), [(b"\n", True), (b"n\n", True), (b"y\n", False)])
def test_on_a_terminal_uninstall_says_before_what_else_it_would_empty(
    clients: Clients, answer: bytes, stays: bool
) -> None:
    clients.install("cursor")
    clients.install("cursor", "--scope", "user")
    terminal = Terminal(clients.machine, "mcp", "uninstall", "cursor")

    asked = terminal.until(REMOVE_THEM)
    assert "UnoApp" in clients.read(".cursor/mcp.json")["mcpServers"], "nothing is written before the answer"
    terminal.press(answer)
    terminal.end()

    assert "~/.cursor/mcp.json" in asked
    assert not clients.at(".cursor/mcp.json").exists()
    assert clients.at("~/.cursor/mcp.json").exists() == stays


@pytest.mark.parametrize("options", [("--scope", "user"), ("--all-scopes",), ("--dry-run",)])
def test_uninstall_asks_nothing_where_it_is_said_what_is_meant(clients: Clients, options: tuple[str, ...]) -> None:
    clients.install("cursor")
    clients.install("cursor", "--scope", "user")

    terminal = Terminal(clients.machine, "mcp", "uninstall", "cursor", *options)

    assert REMOVE_THEM not in terminal.end()
    assert terminal.process.returncode == 0


def test_uninstall_names_an_entry_that_had_other_values_before_and_restore_puts_it_back(clients: Clients) -> None:
    path = clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": {"url": "http://localhost:5/mcp"}}})
    before = path.read_bytes()
    clients.install("cursor")

    removed = clients.uninstall("cursor")
    restored = clients.mcp("restore", "cursor")

    noted = {one["server"]: one.get("note", "") for one in operations(removed)}
    step = "'uno-devserver mcp restore cursor' puts that back"
    assert f"'UnoApp' had other values before our changes: {step}." in noted["UnoApp"]
    assert "other values" not in noted["UnoDocs"]
    assert [one["action"] for one in operations(restored)] == ["restored"]
    assert path.read_bytes() == before


def test_a_failed_registration_asks_and_keeps_nothing(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")
    clients.write(".cursor/mcp.json", "{ broken")

    sent = Terminal(clients.machine, "mcp", "install", "cursor").end()
    result = clients.install("cursor", "--trust")

    assert MAY_IT_RUN not in sent
    assert (result.exit_code, result.json["agreedTo"]) == (1, [])
    assert agreements(clients) == []


def test_a_dry_run_tells_what_would_be_agreed_to_and_agrees_to_nothing(clients: Clients) -> None:
    addin = write(clients.workspace / ADDIN, "")

    data = clients.install("cursor", "--dry-run", "--trust").json
    text = clients.text("install", "cursor", "--dry-run", "--trust").stdout

    assert (data["dryRun"], data["agreedTo"]) == (True, [str(addin)])
    assert f"\nCode of this workspace that would be agreed to:\n- {addin}\n\n" in text
    assert agreements(clients) == []


@pytest.mark.parametrize(
    "argv",
    [
        ("cursor", "--servers", "UnoDocs"),
        ("cursor", "--runner", "dnx"),
        ("cursor", "--server-definitions", str(SEED_SERVERS)),
        ("aider",),
    ],
)
def test_registrations_of_other_programs_agree_to_nothing(clients: Clients, argv: tuple[str, ...]) -> None:
    write(clients.workspace / ADDIN, "")

    assert clients.install(*argv, "--trust").json["agreedTo"] == []
    assert agreements(clients) == []


def test_an_entry_that_was_there_before_does_not_undo_a_revoke(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")
    clients.install("cursor", "--trust")
    clients.machine.run("trust", "--revoke")

    again = clients.install("cursor")

    assert {one["action"] for one in operations(again)} == {"skipped"}
    assert again.json["agreedTo"] == []
    assert agreements(clients) == []


def test_uninstall_reminds_of_what_was_agreed_to(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")
    clients.install("cursor", "--trust")

    docs, app = clients.uninstall("cursor", "--servers", "UnoDocs"), clients.uninstall("cursor")

    assert docs.json["nextSteps"] == []
    (step,) = app.json["nextSteps"]
    assert "'uno-devserver trust --revoke'" in step


def agreements(clients: Clients) -> list[dict[str, str]]:
    found: list[dict[str, str]] = clients.machine.run("trust", "--list", "--json").json["agreements"]
    return found


def test_notes_backups_and_next_steps_stand_below_and_fit_the_screen(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", '{"mcpServers": {"other": {"url": "http://localhost:5000/mcp"}}}')

    text = clients.text("install", "cursor").stdout

    lines = text.splitlines()
    below = [lines.index(title) for title in ("Notes:", "Next steps:")]
    assert below == sorted(below)
    assert any("mcp restore" in line for line in lines)
    long = [line for line in lines if len(line) > 80]
    assert all(len(line.split()) <= 2 or os.path.exists(line[2:]) for line in long), "only a path may be longer"


def test_the_text_of_a_dry_run_ends_with_the_difference(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", "{\r\n}\r\n")

    text = clients.text("install", "cursor", "--dry-run").stdout

    assert text.startswith("DRY RUN — no files will be modified\n\nMCP Install\n===========\n")
    assert f"\n--- a/{clients.at('.cursor/mcp.json').as_posix().lstrip('/')}\n" in text
    assert "\\x0d" not in text


def test_no_file_name_moves_the_cursor(clients: Clients) -> None:
    folder = clients.machine.root / "w\x1b[31ms"
    folder.mkdir()

    text = clients.machine.run("mcp", "install", "cursor", "--dry-run", "--workspace", str(folder)).stdout

    assert "\x1b" not in text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("command", [["git", "apply", "-p1"], ["patch", "-p1", "--binary", "-s", "-i"]])
def test_the_diff_of_a_dry_run_can_be_applied(clients: Clients, newline: str, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here")
    folder = clients.machine.root / "with blanks"
    text = newline.join(["{", '\t"mcpServers": {', '\t\t"other": {', '\t\t\t"command": "x"', "\t\t}", "\t}", "}"])
    path = write(folder / ".cursor" / "mcp.json", text.encode())
    argv = ("mcp", "install", "cursor", "--workspace", str(folder))

    patch = clients.machine.root / "it.patch"
    clients.machine.run(*argv, "--dry-run", prefix=("/bin/sh", "-c", f"exec \"$@\" > '{patch}'", "sh"))
    done = subprocess.run([*command, str(patch)], cwd="/", capture_output=True, text=True)

    assert done.returncode == 0, done
    applied = path.read_bytes()
    path.write_bytes(text.encode())
    clients.machine.run(*argv)
    assert path.read_bytes() == applied


def test_several_clients_have_a_table_each(clients: Clients) -> None:
    clients.write("~/.cursor/mcp.json", {})
    clients.write("~/.kiro/settings/mcp.json", {})

    lines = clients.text("install", "--all-ides").stdout.splitlines()

    assert {"cursor", "kiro"} <= set(lines)


def test_uninstall_of_all_clients_leaves_no_trace(clients: Clients) -> None:
    for name in ("~/.cursor/mcp.json", "~/.codex/config.toml"):
        clients.write(name, "")
    before = clients.tree()
    clients.install("--all-ides")

    done = clients.uninstall("--all-ides")

    assert done.exit_code == 0
    assert {one["action"] for one in operations(done)} <= {"removed", "not_found"}
    assert clients.tree() == before


def test_verify_asks_the_client_itself(clients: Clients) -> None:
    program = f"#!{sys.executable}\nprint('UnoApp: uvx uno-devserver - connected')\n"
    write_program(clients.machine.tools / "claude", program)

    result = clients.install("claude-code", "--verify")

    (answer,) = result.json["verified"]
    assert answer["client"] == "claude-code"
    assert answer["sees"] == {"UnoApp": True, "UnoDocs": False}


def test_a_definition_of_the_seeds_form_is_enough(clients: Clients) -> None:
    definitions = clients.write(
        "own.json",
        {"mine": {"configPaths": ["{workspace}/m.json"], "writeTarget": "{workspace}/m.json", "jsonRootKey": "s"}},
    )

    clients.install("mine", "--ide-definitions", str(definitions), "--release")

    assert list(json.loads(clients.bytes("m.json"))["s"]) == ["UnoApp", "UnoDocs"]


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_what_is_removed_for_another_client_is_no_longer_reachable(clients: Clients, dry_run: tuple[str, ...]) -> None:
    for folder in ("~/.claude", "~/.qwen", ".vscode"):
        clients.at(folder).mkdir()
    clients.install("claude-code")

    alone = clients.uninstall("qwen")
    everyone = clients.uninstall("--all-ides", *dry_run)

    assert "Still reachable" in operations(alone)[0]["note"]
    assert "Still reachable" not in everyone.stdout


def test_entries_of_another_name_are_told_by_it(clients: Clients) -> None:
    servers = {"y": UVX_PRERELEASE, "uno-http": {"url": "http://localhost:5000/uno-devserver/mcp"}, "UnoDocs": DOCS}
    clients.write(".cursor/mcp.json", {"mcpServers": servers})

    skipped = clients.install("cursor", "--dry-run", "--prerelease")
    text = clients.text("uninstall", "cursor", "--dry-run").stdout
    removed = clients.uninstall("cursor")

    assert {one["server"]: one["keys"] for one in operations(skipped)} == {"UnoApp": ["y"], "UnoDocs": ["UnoDocs"]}
    assert {one["server"]: one["keys"] for one in operations(removed)} == {
        "UnoApp": ["y", "uno-http"],
        "UnoDocs": ["UnoDocs"],
    }
    assert f"{Path('.cursor/mcp.json')} (as y, uno-http)" in text
    assert "as UnoDocs" not in text
    assert all("keys" not in one for one in operations(clients.uninstall("cursor"))), "there is no entry"


def test_a_file_of_the_user_is_not_the_workspaces_although_it_has_a_part_for_it(clients: Clients) -> None:
    write(clients.workspace / ADDIN, "")
    project = {"mcpServers": {"UnoApp": {"command": "uvx", "args": ["uno-devserver@0.0.1", "--mcp-app"]}}}
    clients.write("~/.claude.json", {"projects": {clients.workspace.as_posix(): project}})

    done = clients.install("claude-code", "--servers", "UnoApp", "--runner", "path")

    (operation,) = operations(done)
    assert (operation["action"], operation["path"]) == ("updated", str(clients.at("~/.claude.json")))
    assert "commit" not in operation.get("note", "")
    assert done.json["agreedTo"] == []
    assert agreements(clients) == []


def test_what_is_no_file_is_to_be_taken_away_and_not_repaired(clients: Clients) -> None:
    folder = clients.at(".cursor/mcp.json")
    folder.mkdir(parents=True)

    assert clients.install("cursor").json["nextSteps"] == [
        f"Take '{folder}' away, or make it a file, and run this again."
    ]


@pytest.mark.parametrize("argv", [("aider",), ("claude-desktop", "--scope", "workspace")])
def test_what_cannot_be_registered_has_a_next_step(clients: Clients, argv: tuple[str, ...]) -> None:
    result = clients.install(*argv)

    assert result.exit_code == 1
    assert len(result.json["nextSteps"]) == 1


# --- what is left to do -------------------------------------------------------------------------------------------


def test_only_a_command_that_was_written_just_now_is_looked_for(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"other": {"url": "http://localhost:5000/mcp"}}})

    both = clients.install("cursor", "--release").json["nextSteps"]
    clients.uninstall("cursor")
    address = clients.install("cursor", "--servers", "UnoDocs").json["nextSteps"]

    (told,) = [step for step in both if "PATH" in step]
    assert told.startswith("'uvx' is not on PATH (entry 'UnoApp' of Cursor): install it, or register this program")
    assert told.endswith(" --runner path.")
    assert not [step for step in address if "PATH" in step]


def test_what_is_missing_is_told_once_with_all_entries_that_need_it(clients: Clients) -> None:
    for name in ("~/.cursor/mcp.json", "~/.kiro/settings/mcp.json"):
        clients.write(name, {})

    steps = clients.install("--all-ides", "--runner", "uvx").json["nextSteps"]

    (told,) = [step for step in steps if "PATH" in step]
    assert told.startswith("'uvx' is not on PATH (entry 'UnoApp' of Cursor, 'UnoApp' of Kiro): ")


def test_an_entry_beside_the_one_that_was_written_is_not_looked_at(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"first": UVX, "second": UVX}})

    done = clients.install("cursor", "--runner", "path", "--servers", "UnoApp")

    assert clients.read(".cursor/mcp.json")["mcpServers"]["second"] == UVX
    assert not [step for step in done.json["nextSteps"] if "PATH" in step]


def test_a_program_in_a_temporary_folder_is_to_be_installed_elsewhere(clients: Clients) -> None:
    steps = clients.install("cursor", "--runner", "path", env={"UV_CACHE_DIR": sys.prefix}).json["nextSteps"]

    (told,) = [step for step in steps if "will be gone" in step]
    assert told.endswith(": install the program in a folder that stays, and register it from there.")


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_client_that_shares_a_file_has_its_own_steps(clients: Clients, dry_run: tuple[str, ...]) -> None:
    definitions = write(clients.machine.root / "two.json", json.dumps({name: profile(name) for name in ("one", "two")}))
    clients.write(".shared.json", {})

    first = clients.install("--all-ides", "--ide-definitions", str(definitions), *dry_run)
    second = clients.install("--all-ides", "--ide-definitions", str(definitions), *dry_run)

    actions = [(one["ide"], one["action"]) for one in first.json["operations"] if one["server"] == "UnoApp"]
    assert actions == [("one", "created"), ("two", "skipped")]
    assert {"Allow it in one.", "Allow it in two."} <= set(first.json["nextSteps"])
    assert bool(dry_run) == ("Allow it in two." in second.json["nextSteps"]), "after the first run it is not new"


def profile(name: str) -> dict[str, object]:
    path = "{workspace}/.shared.json"
    gates = [{"text": f"Allow it in {name}."}]
    return {"configPaths": [path], "writeTarget": path, "jsonRootKey": "mcpServers", "gates": gates}


def test_code_of_an_untrusted_workspace_is_a_next_step(clients: Clients) -> None:
    empty = clients.install("cursor", "--scope", "user").json["nextSteps"]
    write(clients.workspace / ".devtools" / "addins" / "mine.py", "")

    skipped = clients.install("cursor", "--scope", "user").json["nextSteps"]
    docs = clients.install("cursor", "--servers", "UnoDocs", "--scope", "user").json["nextSteps"]
    dotnet = clients.install("kiro", "--runner", "dnx").json["nextSteps"]
    clients.machine.run("trust")
    agreed = clients.install("cursor", "--scope", "user").json["nextSteps"]

    assert NOT_YET in str(skipped)
    assert not [steps for steps in (empty, docs, dotnet, agreed) if NOT_YET in str(steps)]


def test_what_an_install_agrees_to_does_not_wait(clients: Clients) -> None:
    write(clients.workspace / ".devtools" / "addins" / "mine.py", "")

    foreseen, done = clients.install("cursor", "--dry-run", "--trust").json, clients.install("cursor", "--trust").json

    assert foreseen["agreedTo"] == done["agreedTo"] != []
    assert NOT_YET not in str(foreseen["nextSteps"] + done["nextSteps"])


SECRET = {"mcpServers": {"mine": {"command": "x", "env": {"KEY": "the-secret"}}, "UnoApp": UVX}}


def linked_out(clients: Clients, link: str) -> str:
    """A client's file of the user, and a link in the workspace that leads to it, as a repository may bring one."""
    target = clients.write("~/private/mcp.json", SECRET)
    at = clients.at(link)
    at.parent.mkdir(exist_ok=True)
    at.symlink_to(target if link.endswith(".json") else target.parent)
    return f"'{at}' is a link to '{os.path.realpath(at)}', outside of the workspace '{clients.workspace}'"


COMMANDS = (
    ["install", "cursor"],
    ["install", "cursor", "--dry-run"],
    ["install", "cursor", "--no-backup"],
    ["uninstall", "cursor"],
    ["uninstall", "cursor", "--dry-run"],
    ["restore", "cursor"],
    ["restore", "cursor", "--force", "--dry-run"],
)


@pytest.mark.parametrize("link", [".cursor/mcp.json", ".cursor"])
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_a_link_that_leads_out_of_the_workspace_is_not_followed(clients: Clients, argv: list[str], link: str) -> None:
    said = linked_out(clients, link)
    before = clients.tree()

    result = clients.mcp(*argv)

    assert result.exit_code == 1
    assert {one["action"] for one in operations(result)} == {"error"}
    assert all(said in one["reason"] for one in operations(result))
    step = "Replace the link by a file or folder of the workspace, and run this again."
    assert (step + " Or use --scope user." * (argv[0] == "install")) in result.json["nextSteps"]
    assert "the-secret" not in result.stdout + result.stderr
    assert clients.tree() == before
    kept = [path for path in clients.machine.data.rglob("*") if path.is_file()]
    assert all(b"the-secret" not in path.read_bytes() for path in kept)


@pytest.mark.parametrize("link", [".cursor/mcp.json", ".cursor"])
def test_what_is_behind_such_a_link_is_shown_by_no_command(clients: Clients, link: str) -> None:
    said = linked_out(clients, link)

    status, doctor = clients.status("cursor"), clients.mcp("doctor", "cursor")

    for result in (status, doctor):
        assert said in str(result.json)
        assert "the-secret" not in result.stdout + result.stderr


def test_a_link_to_another_file_of_the_workspace_is_followed(clients: Clients) -> None:
    clients.write(".mcp.json", {"mcpServers": {}})
    clients.at(".cursor").mkdir()
    clients.at(".cursor/mcp.json").symlink_to("../.mcp.json")

    assert clients.install("cursor").exit_code == 0

    assert "UnoApp" in clients.read(".mcp.json")["mcpServers"]
    assert clients.at(".cursor/mcp.json").is_symlink()


def test_a_users_own_file_may_be_a_link(clients: Clients) -> None:
    target = clients.write("~/dotfiles/cursor.json", {"mcpServers": {}})
    clients.at("~/.cursor").mkdir()
    clients.at("~/.cursor/mcp.json").symlink_to(target)

    assert clients.install("cursor", "--scope", "user").exit_code == 0

    assert "UnoApp" in clients.read("~/dotfiles/cursor.json")["mcpServers"]


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.platform.unofficial.org/x",
        "https://evil.example/mcp.platform.uno/v1",
        "https://corp.example/?x=mcp.platform.uno",
        "https://mcp.platform.uno.evil.example/v1",
    ],
)
def test_an_entry_of_another_host_is_neither_changed_nor_removed(clients: Clients, url: str) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"theirs": {"url": url}}})
    before = clients.bytes(".cursor/mcp.json")

    clients.install("cursor", "--servers", "UnoDocs")
    installed = json.loads(clients.bytes(".cursor/mcp.json"))["mcpServers"]
    clients.uninstall("cursor")

    assert installed == {"theirs": {"url": url}, "UnoDocs": {"url": "https://mcp.platform.uno/v1"}}
    assert clients.bytes(".cursor/mcp.json") == before


@pytest.mark.parametrize("argv", [("install",), ("install", "nosuch"), ("status", "nosuch")])
def test_the_same_clients_are_listed_wherever_one_is_missing_or_unknown(
    clients: Clients, argv: tuple[str, ...]
) -> None:
    error = str(clients.mcp(*argv).json["error"])

    assert "cursor, " in error
    assert "aider" not in error
    assert " unknown" not in error


def test_a_dry_run_for_all_clients_tells_what_the_run_tells_where_they_share_a_file(clients: Clients) -> None:
    old = {"command": "uvx", "args": ["uno-devserver", "--mcp-app"]}
    shared = clients.write(".cursor/mcp.json", {"servers": {"UnoApp": old}, "mcpServers": {"UnoApp": old}})
    clients.at(".vscode").mkdir()
    clients.at(".vscode/mcp.json").symlink_to(shared)
    clients.install("--all", "--release")

    foretold, done = clients.uninstall("--all", "--dry-run"), clients.uninstall("--all")

    def told(result: Result) -> list[tuple[str, str, str | None]]:
        return [(one["ide"], one["action"], one.get("note")) for one in operations(result)]

    assert told(foretold) == told(done)
    assert sum("had other values before our changes" in (note or "") for _, _, note in told(done)) == 2
