"""Where entries go, and what they say: planned on real files, and nothing is written."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from setup.made import (
    CHOICE,
    DNX,
    HERE,
    PLAIN,
    SERVERS,
    STABLE,
    UNO_APP,
    UNO_DOCS,
    URL,
    chosen,
    client,
    place,
    saved,
    stdio,
)
from support.files import snapshot, write
from uno_devserver.setup.definitions import Definitions
from uno_devserver.setup.entry_command import own_command
from uno_devserver.setup.plan.changes import Action, ChangePlan, FileChange, Operation
from uno_devserver.setup.plan.install import plan_install
from uno_devserver.setup.plan.request import ChangeRequest, PlannedFiles
from uno_devserver.setup.profiles import Format, Profile, Scope, Use
from uno_devserver.setup.server_definition import EntrySpec, ServerDefinition, VariantChoice
from uno_devserver.system.command_lines import quoted_line, quoted_word

PINNED_DNX = EntrySpec("dnx", ("-y", "--version", "5.6.0", "uno.devserver", "--mcp-app"))
OLD = EntrySpec("uvx", ("uno-devserver@1.0.0", "--mcp-app"))


def plan(
    profile: Profile,
    *servers: ServerDefinition,
    choice: VariantChoice = CHOICE,
    scope: Scope | None = None,
    others: tuple[Profile, ...] = (),
    files: PlannedFiles | None = None,
) -> ChangePlan:
    request = ChangeRequest(profile, servers or SERVERS, Definitions((profile, *others), SERVERS), scope)
    return plan_install(request, choice, files or PlannedFiles(), HERE)


def only_change(planned: ChangePlan) -> FileChange:
    changes = [one for one in planned if isinstance(one, FileChange)]
    assert len(changes) == 1, planned
    return changes[0]


def only_operation(planned: ChangePlan) -> Operation:
    assert len(planned) == 1, planned
    (one,) = planned
    return one.operations[0] if isinstance(one, FileChange) else one


def entries(change: FileChange) -> dict[str, Any]:
    assert change.after is not None
    found: dict[str, Any] = json.loads(change.after)["mcpServers"]
    return found


def test_two_servers_in_a_new_file_are_one_change(tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    change = only_change(plan(client(place(tmp_path / "mcp.json"))))

    assert change.before is None
    assert entries(change) == {"UnoApp": stdio(STABLE), "UnoDocs": {"url": URL}}
    assert [(one.server, one.action, one.reason) for one in change.operations] == [
        ("UnoApp", Action.CREATED, "Added UnoApp stdio server"),
        ("UnoDocs", Action.CREATED, "Added UnoDocs http server"),
    ]
    assert snapshot(tmp_path) == before


def test_what_is_registered_is_skipped_and_its_place_is_told(tmp_path: Path) -> None:
    user = saved(tmp_path / "user.json", UnoApp=stdio(STABLE))
    profile = client(place(tmp_path / "ws.json"), place(user, Scope.USER))

    assert only_operation(plan(profile, UNO_APP)) == Operation(
        "UnoApp", "cursor", Action.SKIPPED, str(user), "Already registered", scope=Scope.USER, keys=("UnoApp",)
    )


def test_another_runners_form_is_registered_too_and_the_reason_says_how_to_have_ours(tmp_path: Path) -> None:
    path = saved(tmp_path / "ws.json", UnoApp=stdio(DNX))

    skipped = only_operation(plan(client(place(path)), UNO_APP))
    changed = only_change(plan(client(place(path)), UNO_APP, choice=chosen("stable", "uvx")))

    assert skipped.reason == "Already registered (dnx; --runner uvx writes this tool's command)"
    assert entries(changed)["UnoApp"] == stdio(STABLE)


@pytest.mark.parametrize("choice", [chosen("stable", "uvx", asked=False), chosen("stable")])
def test_an_entry_started_in_a_way_of_its_own_is_left_until_another_is_asked_for(
    tmp_path: Path, choice: VariantChoice
) -> None:
    own = EntrySpec("uvx", ("--from", "git+https://example.com/x y", "uno-devserver", "--mcp-app", "-l", "Debug"))
    profile = client(place(saved(tmp_path / "ws.json", mine=stdio(own)), Scope.USER)).replace(default_scope=Scope.USER)

    skipped = only_operation(plan(profile, UNO_APP, choice=chosen("prerelease", asked=False)))
    changed = only_change(plan(profile, UNO_APP, choice=choice))

    assert skipped.action is Action.SKIPPED
    assert skipped.reason == "Already registered (started in a way of its own; --runner uvx replaces it)"
    assert entries(changed)["mine"] == stdio(STABLE.replace(args=(*STABLE.args, "-l", "Debug")))
    (note,) = changed.operations[0].notes
    source = quoted_word("git+https://example.com/x y")
    assert note.startswith(f"The entry 'mine' was started in a way of its own: uvx --from {source}")


def test_an_outdated_entry_is_changed_where_it_is_in_its_own_runner(tmp_path: Path) -> None:
    old = {**stdio(EntrySpec("dnx", ("-y", "--version", "1.0.0", "uno.devserver", "--mcp-app"))), "env": {"A": "b"}}
    profile = client(place(saved(tmp_path / "user.json", mine=old), Scope.USER)).replace(default_scope=Scope.USER)

    change = only_change(plan(profile, UNO_APP))

    assert entries(change) == {"mine": {**stdio(DNX), "env": {"A": "b"}}}
    assert change.operations[0].action is Action.UPDATED
    assert change.operations[0].reason == "Updated UnoApp stdio server (was pinned:1.0.0)"


def test_an_entry_that_another_change_moved_is_changed_and_none_that_stands_in_its_place(tmp_path: Path) -> None:
    old = 'mcp_servers = { UnoApp.url = "http://localhost:1/mcp", UnoDocs = { url = "o" }, other = { command = "x" } }'
    path = write(tmp_path / "config.toml", old)

    change = only_change(plan(client(place(path, format=Format.TOML, root=("mcp_servers",)))))

    assert change.after is not None
    assert tomllib.loads(change.after.decode())["mcp_servers"] == {
        "UnoApp": stdio(STABLE),
        "UnoDocs": {"url": URL},
        "other": {"command": "x"},
    }


@pytest.mark.parametrize(
    ("installed", "choice", "told"),
    [
        (OLD, chosen("stable", asked=False), " (was pinned:1.0.0; --version 1.0.0 keeps that)"),
        (OLD, chosen("stable"), " (was pinned:1.0.0)"),
        (DNX, chosen("stable", "uvx"), " (was dnx)"),
        (PINNED_DNX, chosen("stable", "uvx", asked=False), " (was dnx pinned:5.6.0)"),
        (DNX, chosen("prerelease", "uvx"), " (was dnx stable)"),
        (EntrySpec("uno-devserver", ("--mcp-app",)), chosen("stable"), " (was path)"),
        (EntrySpec("npx", ("else",)), chosen("stable"), ""),
    ],
)
def test_the_reason_says_what_was_there_and_how_to_keep_it(
    tmp_path: Path, installed: EntrySpec, choice: VariantChoice, told: str
) -> None:
    path = saved(tmp_path / "ws.json", UnoApp=stdio(installed))

    operation = only_operation(plan(client(place(path)), UNO_APP, choice=choice))

    assert operation.reason == f"Updated UnoApp stdio server{told}"


def test_the_users_arguments_are_kept_also_where_another_file_shadows_the_entry(tmp_path: Path) -> None:
    mine = stdio(OLD.replace(args=(*OLD.args, "--wait-calls")))
    user = saved(tmp_path / "user.json", UnoApp=mine)
    wanted = stdio(STABLE.replace(args=(*STABLE.args, "--wait-calls")))

    shadowing = only_change(plan(client(place(tmp_path / "ws.json"), place(user, Scope.USER)), UNO_APP))
    in_place = only_change(plan(client(place(user, Scope.USER)).replace(default_scope=Scope.USER), UNO_APP))

    assert entries(shadowing) == entries(in_place) == {"UnoApp": wanted}


def test_a_variant_that_a_server_does_not_have_is_told(tmp_path: Path) -> None:
    profile = client(place(tmp_path / "x.json"))

    asked = only_change(plan(profile, choice=chosen("pinned:1.2.3")))
    detected = only_change(plan(profile, choice=chosen("prerelease", asked=False)))

    assert [one.notes for one in asked.operations] == [
        (),
        ("UnoDocs has no pinned variant: it is registered as it always is.",),
    ]
    assert all(one.notes == () for one in detected.operations)


def test_an_outdated_entry_of_the_user_is_shadowed_under_its_own_name(tmp_path: Path) -> None:
    user = saved(tmp_path / "user.json", mine=stdio(OLD))
    profile = client(place(tmp_path / "ws.json"), place(user, Scope.USER))

    change = only_change(plan(profile, UNO_APP))

    assert change.path == str(tmp_path / "ws.json")
    assert list(entries(change)) == ["mine"]
    assert change.operations[0].action is Action.UPDATED


def test_a_name_that_stands_for_something_else_there_is_not_taken(tmp_path: Path) -> None:
    user = saved(tmp_path / "user.json", mine=stdio(OLD))
    workspace = saved(tmp_path / "ws.json", mine={"command": "other"})

    change = only_change(plan(client(place(workspace), place(user, Scope.USER)), UNO_APP))

    assert entries(change) == {"mine": {"command": "other"}, "UnoApp": stdio(STABLE)}


def test_nobody_elses_entry_of_the_servers_name_is_replaced(tmp_path: Path) -> None:
    other = ServerDefinition("mine", "stdio", UNO_APP.variants, UNO_APP.detection)
    path = saved(tmp_path / "ws.json", mine={"command": "theirs"})

    (refused,) = plan(client(place(path)), other)

    assert isinstance(refused, Operation)
    assert (refused.action, refused.path) == (Action.ERROR, str(path))
    assert "'mine' is the name of another server" in refused.reason
    assert refused.next_step == f"Give that entry in '{path}' another name."


@pytest.mark.parametrize("installed", [STABLE, OLD])
def test_an_entry_that_is_switched_off_stays_that_and_it_is_told(tmp_path: Path, installed: EntrySpec) -> None:
    path = saved(tmp_path / "ws.json", UnoApp={**stdio(installed), "disabled": True})

    assert "switch it on in Cursor" in only_operation(plan(client(place(path)), UNO_APP)).notes[0]


def test_an_outdated_entry_that_counts_before_the_target_is_changed_where_it_is(tmp_path: Path) -> None:
    workspace = saved(tmp_path / "ws.json", UnoApp=stdio(OLD))
    profile = client(place(workspace), place(tmp_path / "user.json", Scope.USER)).replace(default_scope=Scope.USER)

    assert only_change(plan(profile, UNO_APP)).path == str(workspace)


def test_an_outdated_entry_in_a_shared_file_is_shadowed_in_the_clients_own(tmp_path: Path) -> None:
    shared = saved(tmp_path / "shared.json", UnoApp=stdio(OLD))
    profile = client(place(tmp_path / "own.json"), place(shared, use=Use.SHARED))

    assert only_change(plan(profile, UNO_APP)).path == str(tmp_path / "own.json")


def test_a_scope_that_is_asked_for_gets_an_entry_although_the_other_has_one(tmp_path: Path) -> None:
    workspace = saved(tmp_path / "ws.json", UnoApp=stdio(STABLE))
    profile = client(place(workspace), place(tmp_path / "user.json", Scope.USER))

    change = only_change(plan(profile, UNO_APP, scope=Scope.USER))

    assert change.path == str(tmp_path / "user.json")
    (note,) = change.operations[0].notes
    assert f"uses the entry in '{workspace}' first" in note
    assert "'uno-devserver mcp uninstall cursor --scope workspace'" in note


def test_two_places_in_one_file_are_told_apart(tmp_path: Path) -> None:
    content = {"projects": {"/ws": {"mcpServers": {"UnoApp": stdio(STABLE)}}}}
    path = write(tmp_path / "both.json", json.dumps(content))
    first = place(path, use=Use.READ, root=("projects", "/ws", "mcpServers"))

    change = only_change(plan(client(first, place(path, Scope.USER)), UNO_APP, scope=Scope.USER))

    assert f"under 'projects > /ws > mcpServers' in '{path}' first" in change.operations[0].notes[0]


def test_another_entry_for_the_server_in_the_same_file_is_left_and_told_of(tmp_path: Path) -> None:
    path = saved(tmp_path / "ws.json", UnoApp=stdio(STABLE), mine=stdio(STABLE))

    (note,) = only_operation(plan(client(place(path)), UNO_APP)).notes

    assert note.startswith(f"The entry 'mine' in '{path}' is for UnoApp, too, and stays")
    assert note.endswith("remove one of them.")


def test_a_file_of_the_workspace_with_a_path_of_this_machine_is_not_one_to_commit(tmp_path: Path) -> None:
    workspace, user = tmp_path / "ws.json", tmp_path / "user.json"
    profile, choice = client(place(workspace), place(user, Scope.USER)), chosen("stable", "path")

    ours, own = (only_change(plan(profile, UNO_APP, choice=choice, scope=scope)) for scope in (None, Scope.USER))

    assert f"'{workspace}' has a path of this machine" in ours.operations[0].notes[0]
    assert own.operations[0].notes == ()


def test_a_file_that_is_broken_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    path = write(tmp_path / "ws.json", "{ broken")

    operation = only_operation(plan(client(place(path)), UNO_APP))

    assert operation.action is Action.ERROR
    assert operation.next_step == f"Fix or remove the file '{path}', and run this again."


def test_an_entry_that_the_client_does_not_read_says_nothing_about_the_new_one(tmp_path: Path) -> None:
    legacy = saved(tmp_path / "old.json", mine=stdio(DNX))
    profile = client(place(tmp_path / "ws.json"), place(legacy, use=Use.LEGACY))

    change = only_change(plan(profile, UNO_APP))

    assert change.path == str(tmp_path / "ws.json")
    assert entries(change) == {"UnoApp": stdio(STABLE)}
    (operation,) = change.operations
    assert operation.action is Action.UPDATED
    assert operation.reason == f"Added UnoApp stdio server; Cursor does not read '{legacy}'"
    assert f"'uno-devserver mcp uninstall cursor' removes the entry from '{legacy}', too." in operation.notes


def test_of_two_targets_the_one_that_is_there_is_taken(tmp_path: Path) -> None:
    there = write(tmp_path / "b.json", "{}")
    profile = client(place(tmp_path / "a.json"), place(there))

    assert only_change(plan(profile, UNO_APP)).path == str(there)
    there.unlink()
    there.mkdir()
    assert only_operation(plan(profile, UNO_APP)).path == str(there), "the other one would be a second file beside it"
    there.rmdir()
    assert only_change(plan(profile, UNO_APP)).path == str(tmp_path / "a.json")


def test_an_address_that_may_be_anybodys_is_left_and_told(tmp_path: Path) -> None:
    path = saved(tmp_path / "ws.json", other={"url": "http://localhost:5000/mcp"})

    change = only_change(plan(client(place(path)), UNO_APP))

    assert list(entries(change)) == ["other", "UnoApp"]
    assert "'other'" in change.operations[0].notes[0]


def test_a_client_without_an_mcp_client_gets_nothing(tmp_path: Path) -> None:
    profile = client(place(tmp_path / "x.json", use=Use.LEGACY), no_client="It has none.")

    assert {(one.action, one.reason) for one in plan(profile) if isinstance(one, Operation)} == {
        (Action.ERROR, "It has none.")
    }


def test_a_scope_that_the_client_does_not_have_is_an_error_that_names_those_it_has(tmp_path: Path) -> None:
    operation = only_operation(plan(client(place(tmp_path / "x.json")), UNO_APP, scope=Scope.USER))

    assert operation.action is Action.ERROR
    assert operation.reason == "Cursor has no user configuration; it has: --scope workspace"


def test_a_transport_that_the_client_cannot_take_is_skipped(tmp_path: Path) -> None:
    planned = plan(client(place(tmp_path / "x.json"), transports=("stdio",)))

    assert entries(only_change(planned)) == {"UnoApp": stdio(STABLE)}
    (skipped,) = [one for one in planned if isinstance(one, Operation)]
    assert (skipped.server, skipped.action, skipped.path) == ("UnoDocs", Action.SKIPPED, None)
    assert "http" in skipped.reason


@pytest.mark.parametrize(("text", "what"), [("{ // x\n}", "a comment"), ('{"a": [1,]}', "a trailing comma")])
def test_what_a_strict_reader_does_not_take_is_told_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    path = write(tmp_path / "ws.json", text)

    strict = only_change(plan(client(place(path, format=Format.JSON)), UNO_APP))
    relaxed = only_change(plan(client(place(path)), UNO_APP))

    assert f"{what} (line 1)" in strict.operations[0].notes[0]
    assert relaxed.operations[0].notes == ()


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": 5}', b"\xff{}"])
def test_a_file_that_is_not_understood_is_an_error_for_each_server(tmp_path: Path, content: str | bytes) -> None:
    path = write(tmp_path / "ws.json", content)

    planned = plan(client(place(path)))

    assert [one.action for one in planned if isinstance(one, Operation)] == [Action.ERROR, Action.ERROR]
    assert all(isinstance(one, Operation) and str(path) in one.reason for one in planned)


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ws.json"
    path.symlink_to(tmp_path / "gone.json")

    operation = only_operation(plan(client(place(path)), UNO_APP))

    assert operation.action is Action.ERROR
    assert "a link to a file that does not exist" in operation.reason


def test_two_roots_in_one_file_are_one_change(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", json.dumps({"ws": {"UnoApp": stdio(OLD)}, "user": {"UnoDocs": {"url": "old"}}}))
    profile = client(place(path, root=("ws",)), place(path, root=("user",)))

    change = only_change(plan(profile))

    assert change.after is not None
    assert json.loads(change.after) == {"ws": {"UnoApp": stdio(STABLE)}, "user": {"UnoDocs": {"url": URL}}}
    assert len(change.operations) == 2


def test_what_a_dry_run_has_planned_for_one_client_is_registered_for_the_next(tmp_path: Path) -> None:
    files = PlannedFiles()
    path = place(tmp_path / "shared.json")
    files.planned(only_change(plan(client(path), files=files)), str(tmp_path / "state"))

    other = client(place(tmp_path / "own.json"), path.replace(use=Use.SHARED)).replace(id="other")
    planned = plan(other, files=files)

    assert [one.action for one in planned if isinstance(one, Operation)] == [Action.SKIPPED, Action.SKIPPED]


def test_a_server_that_is_not_asked_for_is_not_touched(tmp_path: Path) -> None:
    path = saved(tmp_path / "ws.json", UnoApp={"url": "https://mcp.platform.uno/other"})

    change = only_change(plan(client(place(path, dialect=PLAIN)), UNO_DOCS))

    assert entries(change) == {"UnoApp": {"url": "https://mcp.platform.uno/other"}, "UnoDocs": {"url": URL}}


def test_what_no_file_can_hold_is_an_error_for_that_server_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    odd = chosen("pinned:\udcff")  # bytes of a command line that are no text

    change = only_change(plan(client(place(path, format=Format.TOML)), choice=odd))

    assert [one.action for one in change.operations] == [Action.ERROR, Action.CREATED]
    assert change.after is not None
    assert b"UnoApp" not in change.after


CONSENT = {"env": {"UNO_DEVSERVER_TRUST": "1"}}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (CONSENT, "UNO_DEVSERVER_TRUST=1"),
        ({"env": {"uno_devserver_trust": 1}}, "uno_devserver_trust=1"),
        ({"env": {"LD_PRELOAD": "./evil.so", "UV_TOKEN": "abc"}}, "LD_PRELOAD=./evil.so, UV_TOKEN=…"),
        ({"env": {"XDG_STATE_HOME": "."}}, "XDG_STATE_HOME=."),
        ({"environment": {"PYTHONPATH": "."}}, "PYTHONPATH=."),
        ({"envFile": "./.env"}, "envFile=./.env"),
        ({"env_file": ["./.env"]}, 'env_file=["./.env"]'),
        ({"cwd": "evil"}, "cwd=evil"),
        ({"EnvFile": "./.env"}, "EnvFile=./.env"),
        ({"headersHelper": "./evil.sh"}, "headersHelper=./evil.sh"),
        ({"trust": True}, "trust=true"),
        ({"env": {"GIT_TRACE2": "/x", "OPENSSL_CONF": "."}}, "GIT_TRACE2=/x, OPENSSL_CONF=."),
        ({"url": "https://evil.example"}, "url=https://evil.example"),
        ({"args": [*STABLE.args, "--addins", "evil.py"]}, "the arguments --addins evil.py"),
    ],
)
@pytest.mark.parametrize("command", [STABLE, EntrySpec("uvx", ("--prerelease", "allow", *STABLE.args))])
def test_what_a_workspaces_file_decides_of_what_runs_is_removed_and_told_with_its_values(
    tmp_path: Path, command: EntrySpec, settings: dict[str, Any], told: str
) -> None:
    entry = {**stdio(command), "timeout": 60, **settings}
    profile = client(place(saved(tmp_path / "mcp.json", UnoApp=entry)))

    change = only_change(plan(profile, UNO_APP))

    assert entries(change) == {"UnoApp": {**stdio(STABLE), "timeout": 60}}
    assert change.operations[0].action is Action.UPDATED
    (note,) = change.operations[0].notes
    assert f"They were removed: {told}. If you need them" in note


def test_what_a_client_would_run_for_a_server_with_an_address_is_removed_too(tmp_path: Path) -> None:
    entry = {"url": URL, "headersHelper": "./evil.sh", "headers": {"X": "y"}}
    profile = client(place(saved(tmp_path / "mcp.json", UnoDocs=entry)))

    change = only_change(plan(profile, UNO_DOCS))

    assert entries(change) == {"UnoDocs": {"url": URL, "headers": {"X": "y"}}}
    assert "They were removed: headersHelper=./evil.sh." in change.operations[0].notes[0]


@pytest.mark.parametrize("command", [STABLE, OLD])
def test_other_variables_and_approvals_of_a_workspaces_file_stay_and_are_told_with_their_values(
    tmp_path: Path, command: EntrySpec
) -> None:
    env, allowed = {"DOTNET_ROOT": "/dotnet", "API_KEY": "abc"}, {"alwaysAllow": ["x"]}
    path = saved(tmp_path / "mcp.json", UnoApp={**stdio(command), **allowed, "env": {**env, "PATH": "."}})

    change = only_change(plan(client(place(path)), UNO_APP))
    saved(path, UnoApp={**stdio(STABLE), **allowed, "env": env})
    again = only_operation(plan(client(place(path)), UNO_APP))

    assert entries(change)["UnoApp"] == {**stdio(STABLE), **allowed, "env": env}
    told = "The entry 'UnoApp' has settings that may have come with the workspace, and keeps them: "
    assert again.action is Action.SKIPPED
    assert again.notes == (f'{told}DOTNET_ROOT=/dotnet, API_KEY=…, alwaysAllow=["x"].',)
    assert again.notes[0] in change.operations[0].notes


def test_an_old_address_in_a_workspaces_file_brings_no_variables_into_the_new_entry(tmp_path: Path) -> None:
    path = saved(tmp_path / "mcp.json", UnoApp={"url": "http://localhost:1/uno-devserver/mcp", **CONSENT})

    assert entries(only_change(plan(client(place(path)), UNO_APP))) == {"UnoApp": stdio(STABLE)}


@pytest.mark.parametrize("scope", Scope)
def test_a_program_that_is_none_of_ours_had_no_variant(tmp_path: Path, scope: Scope) -> None:
    path = saved(tmp_path / "mcp.json", UnoApp={"command": "node", "args": ["evil.js"]})
    profile = client(place(path, scope)).replace(default_scope=scope)

    change = only_change(plan(profile, UNO_APP, choice=chosen("prerelease", asked=False)))

    assert change.operations[0].reason == "Updated UnoApp stdio server"


def test_another_runner_stays_without_what_else_decides_what_runs(tmp_path: Path) -> None:
    path = saved(tmp_path / "mcp.json", UnoApp={**stdio(DNX), **CONSENT})

    change = only_change(plan(client(place(path)), UNO_APP, choice=chosen("stable", asked=False)))

    assert entries(change) == {"UnoApp": stdio(DNX)}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("uno-devserver", "--upstream-url", "https://evil.example/mcp", "--mcp-app"), "UnoApp"),
        *itertools.product(
            [
                ("./tools/uno-devserver", "--mcp-app"),
                ("/ws/tools/uno-devserver", "--mcp-app"),
                ("/ws/tools/uvx", *STABLE.args),
                ("${workspaceFolder}/tools/uno-devserver", "--mcp-app"),
                ("bash", "-c", "./evil; exec uno-devserver --mcp-app"),
                ("uvx", "--from", "git+https://evil.example/x", "uno-devserver", "--mcp-app"),
                ("uvx", "--from", "./tools", "uno-devserver", "--mcp-app"),
                ("dnx", "-y", "--add-source", "./tools", "uno.devserver", "--mcp-app"),
                ("python", "-P", "-m", "uno_devserver", "--mcp-app"),
            ],
            ["UnoApp", "helper"],
        ),
    ],
)
@pytest.mark.parametrize("tool", ["1.2.3", "1.2.0.dev0"])
def test_a_command_that_may_have_come_with_the_workspace_is_replaced_and_told(
    tmp_path: Path, words: tuple[str, ...], name: str, tool: str
) -> None:
    choice = chosen("stable", asked=False, tool=tool)
    path = saved(tmp_path / "mcp.json", **{name: {"command": words[0], "args": list(words[1:]), "disabled": False}})
    profile = client(place(path))

    change = only_change(plan(profile, UNO_APP, choice=choice))
    assert change.after is not None
    path.write_bytes(change.after)
    again = only_operation(plan(profile, UNO_APP, choice=choice))

    entry = entries(change)[name]
    assert (entry["command"], *entry["args"]) != words
    assert entry["command"] in ("uvx", "dnx", *own_command())
    told = "may have come with the workspace, and run another program. It was replaced: "
    assert any(f"{told}{quoted_line(words)}" in note for note in change.operations[0].notes)
    assert again.action is Action.SKIPPED


def test_a_users_file_keeps_what_decides_what_runs_also_for_a_workspace(tmp_path: Path) -> None:
    entry = {**stdio(STABLE.replace(args=(*STABLE.args, "--wait-calls"))), **CONSENT, "cwd": "/x"}
    path = write(tmp_path / "user.json", json.dumps({"mcpServers": {"UnoApp": entry}, "ws": {"UnoApp": entry}}))
    profile = client(place(path, root=("ws",)), place(path, Scope.USER))

    for scope in Scope:
        operation = only_operation(plan(profile, UNO_APP, scope=scope))
        assert (operation.action, operation.notes) == (Action.SKIPPED, ())


def test_arguments_of_a_workspaces_file_are_not_copied_into_the_users(tmp_path: Path) -> None:
    local = saved(tmp_path / "ws.json", UnoApp={**stdio(OLD.replace(args=(*OLD.args, "--addins", "x"))), **CONSENT})
    profile = client(place(tmp_path / "user.json", Scope.USER), place(local)).replace(default_scope=Scope.USER)

    change = only_change(plan(profile, UNO_APP))

    assert (change.path, entries(change)) == (str(tmp_path / "user.json"), {"UnoApp": stdio(STABLE)})
    notes = change.operations[0].notes
    assert any("They are not taken over: the arguments --addins x, UNO_DEVSERVER_TRUST=1." in note for note in notes)
    assert any(f"in '{local}' sets UNO_DEVSERVER_TRUST" in note for note in notes)


def test_an_entry_of_the_user_that_is_shadowed_stays_and_it_is_said_how_to_change_that_one(tmp_path: Path) -> None:
    user = saved(tmp_path / "user.json", UnoApp=stdio(OLD))

    notes = only_operation(plan(client(place(tmp_path / "ws.json"), place(user, Scope.USER)), UNO_APP)).notes

    assert notes == (f"The entry 'UnoApp' in '{user}' stays as it is; --scope user changes that one.",)
