"""What `mcp install` says is left to do; what the clients ask for has its own table."""

from __future__ import annotations

import json
import sys

import pytest

from support.files import write
from support.machine import Machine
from support.registration import UVX, Clients

NOT_YET = "Code of this workspace runs only after 'uno-devserver trust'."


def test_only_a_command_that_was_written_just_now_is_looked_for(machine: Machine) -> None:
    clients = Clients(machine)
    clients.write(".cursor/mcp.json", {"mcpServers": {"other": {"url": "http://localhost:5000/mcp"}}})

    both = clients.install("cursor", "--release").json["nextSteps"]
    clients.uninstall("cursor")
    address = clients.install("cursor", "--servers", "UnoDocs").json["nextSteps"]

    (told,) = [step for step in both if "PATH" in step]
    assert told.startswith("'uvx' is not on PATH (entry 'UnoApp' of Cursor): install it, or register this program")
    assert told.endswith(" --runner path.")
    assert not [step for step in address if "PATH" in step]


def test_what_is_missing_is_told_once_with_all_entries_that_need_it(machine: Machine) -> None:
    clients = Clients(machine)
    for name in ("~/.cursor/mcp.json", "~/.kiro/settings/mcp.json"):
        clients.write(name, {})

    steps = clients.install("--all-ides").json["nextSteps"]

    (told,) = [step for step in steps if "PATH" in step]
    assert told.startswith("'uvx' is not on PATH (entry 'UnoApp' of Cursor, 'UnoApp' of Kiro): ")


def test_an_entry_beside_the_one_that_was_written_is_not_looked_at(machine: Machine) -> None:
    clients = Clients(machine)
    clients.write(".cursor/mcp.json", {"mcpServers": {"first": UVX, "second": UVX}})

    done = clients.install("cursor", "--runner", "path", "--servers", "UnoApp")

    assert clients.read(".cursor/mcp.json")["mcpServers"]["second"] == UVX
    assert not [step for step in done.json["nextSteps"] if "PATH" in step]


def test_a_program_that_will_be_cleared_away_is_to_be_installed_elsewhere_and_needs_no_release(
    machine: Machine,
) -> None:
    steps = Clients(machine).install("cursor", "--runner", "path", env={"UV_CACHE_DIR": sys.prefix}).json["nextSteps"]

    (told,) = [step for step in steps if "will be gone" in step]
    assert told.endswith(": install the program in a folder that stays, and register it from there: --runner path.")


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_client_that_finds_what_was_written_for_another_has_its_own_steps(
    machine: Machine, dry_run: tuple[str, ...]
) -> None:
    clients = Clients(machine)
    definitions = write(machine.root / "two.json", json.dumps({name: profile(name) for name in ("one", "two")}))
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


def test_code_of_the_workspace_that_nobody_agreed_to_is_told_of(machine: Machine) -> None:
    clients = Clients(machine)
    empty = clients.install("cursor", "--scope", "user").json["nextSteps"]
    write(clients.workspace / ".devtools" / "addins" / "mine.py", "")

    skipped = clients.install("cursor", "--scope", "user").json["nextSteps"]
    docs = clients.install("cursor", "--servers", "UnoDocs", "--scope", "user").json["nextSteps"]
    dotnet = clients.install("kiro", "--runner", "dnx").json["nextSteps"]
    clients.machine.run("trust")
    agreed = clients.install("cursor", "--scope", "user").json["nextSteps"]

    assert NOT_YET in skipped
    assert not [steps for steps in (empty, docs, dotnet, agreed) if NOT_YET in steps]


def test_what_an_install_agrees_to_does_not_wait(machine: Machine) -> None:
    clients = Clients(machine)
    write(clients.workspace / ".devtools" / "addins" / "mine.py", "")

    foreseen, done = clients.install("cursor", "--dry-run").json, clients.install("cursor").json

    assert foreseen["agreedTo"] == done["agreedTo"] != []
    assert NOT_YET not in [*foreseen["nextSteps"], *done["nextSteps"]]
