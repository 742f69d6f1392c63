"""What is said beside an installation, where the plan's own tests do not hold it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from setup.made import SERVERS, STABLE, UNO_APP, WISH, client, place, stdio
from support.files import write
from uno_devserver.setup.definitions import Definitions
from uno_devserver.setup.plan.changes import FileChange
from uno_devserver.setup.plan.install import plan_install
from uno_devserver.setup.plan.request import ChangeRequest, PlannedFiles
from uno_devserver.setup.profiles import Profile, Scope
from uno_devserver.setup.servers import EntrySpec


def _notes(profile: Profile) -> tuple[str, ...]:
    (one,) = plan_install(
        ChangeRequest(profile, (UNO_APP,), Definitions((profile,), SERVERS), None), WISH, PlannedFiles()
    )
    return (one.operations[0] if isinstance(one, FileChange) else one).notes


def _saved(path: Path, **servers: Any) -> Path:
    return write(path, json.dumps({"mcpServers": servers}))


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("command", [STABLE, EntrySpec("uvx", ("--prerelease", "allow", *STABLE.args))])
def test_what_a_workspaces_entry_keeps_of_its_own_is_shown_since_others_may_have_written_it(
    tmp_path: Path, command: EntrySpec, scope: Scope
) -> None:
    entry = {**stdio(command.replace(args=(*command.args, "--", "sh", "-c", "touch x"))), "env": {"A": "1", "B": "2"}}
    profile = client(place(_saved(tmp_path / "mcp.json", UnoApp=entry), scope)).replace(default_scope=scope)

    shown = [note for note in _notes(profile) if "of its own" in note]

    kept = (
        "The entry 'UnoApp' has something of its own, and keeps it: -- sh -c 'touch x' and environment variables (A, B)"
    )
    assert shown == ([kept] if scope is Scope.WORKSPACE else [])


def test_an_entry_of_the_user_that_is_shadowed_stays_and_it_is_said_how_to_change_that_one(tmp_path: Path) -> None:
    old = EntrySpec("uvx", ("uno-devserver@1.0.0", "--mcp-app"))
    user = _saved(tmp_path / "user.json", UnoApp=stdio(old))

    notes = _notes(client(place(tmp_path / "ws.json"), place(user, Scope.USER)))

    assert notes == (f"The entry 'UnoApp' in '{user}' stays as it is; --scope user changes that one.",)
