"""Which entries go, and when a file becomes what it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from setup.made import CHOICE, HERE, SERVERS, STABLE, UNO_APP, UNO_DOCS, URL, client, place, saved, stdio
from support.files import write
from uno_devserver.setup.change_writer import WriteOptions, apply_plan
from uno_devserver.setup.definitions import Definitions
from uno_devserver.setup.plan.changes import Action, ChangePlan, FileChange, Operation
from uno_devserver.setup.plan.install import plan_install
from uno_devserver.setup.plan.request import ChangeRequest, PlannedFiles
from uno_devserver.setup.plan.uninstall import NOT_FOUND, plan_uninstall
from uno_devserver.setup.profiles import Format, Profile, Scope, Use
from uno_devserver.setup.server_definition import ServerDefinition

APP, DOCS = stdio(STABLE), {"url": URL}


class Setup:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.options = WriteOptions(str(root / "state"))

    def request(
        self, profile: Profile, *servers: ServerDefinition, scope: Scope | None = None, others: tuple[Profile, ...] = ()
    ) -> ChangeRequest:
        return ChangeRequest(profile, servers or SERVERS, Definitions((profile, *others), SERVERS), scope)

    def plan(self, request: ChangeRequest, *, all_scopes: bool = False) -> ChangePlan:
        return plan_uninstall(request, PlannedFiles(), self.options.folder, all_scopes=all_scopes)

    def install(self, request: ChangeRequest) -> tuple[Operation, ...]:
        return apply_plan(lambda: plan_install(request, CHOICE, PlannedFiles(), HERE), self.options)

    def uninstall(self, request: ChangeRequest) -> tuple[Operation, ...]:
        return apply_plan(lambda: self.plan(request), self.options)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def told(planned: ChangePlan) -> list[tuple[str | None, Action, str | None, str]]:
    operations = [each for one in planned for each in (one.operations if isinstance(one, FileChange) else (one,))]
    return [(one.server, one.action, one.path, one.reason) for one in operations]


def test_all_entries_of_all_scopes_go_and_others_stay(setup: Setup) -> None:
    workspace = saved(setup.root / "ws.json", UnoApp=APP, other={}, mine=APP)
    user = saved(setup.root / "user.json", UnoApp=APP)
    request = setup.request(client(place(workspace), place(user, Scope.USER)))

    planned = setup.plan(request)

    assert told(planned) == [
        ("UnoApp", Action.REMOVED, str(workspace), "Removed from workspace config"),
        ("UnoApp", Action.REMOVED, str(user), "Removed from user config"),
        ("UnoDocs", Action.NOT_FOUND, None, NOT_FOUND),
    ]
    assert isinstance(planned[0], FileChange)
    assert planned[0].after is not None
    assert json.loads(planned[0].after) == {"mcpServers": {"other": {}}}
    assert isinstance(planned[1], FileChange)
    note = f"'{user}' is your own configuration: other workspaces lose the server, too."
    assert note in planned[1].operations[0].notes


def test_a_scope_reaches_its_own_files_only(setup: Setup) -> None:
    workspace, user = saved(setup.root / "ws.json", UnoApp=APP), saved(setup.root / "user.json", UnoApp=APP)
    profile = client(place(workspace), place(user, Scope.USER))

    planned = setup.plan(setup.request(profile, UNO_APP, scope=Scope.USER))

    assert [path for _, _, path, _ in told(planned)] == [str(user)]


def test_a_shared_file_is_only_cleaned_on_request_and_told_otherwise(setup: Setup) -> None:
    path = saved(setup.root / "shared.json", UnoApp=APP)
    owner = client(place(path)).replace(id="owner", name="Its Owner")
    request = setup.request(
        client(place(setup.root / "own.json"), place(path, use=Use.SHARED)), UNO_APP, others=(owner,)
    )

    (left,) = setup.plan(request)
    (taken,) = setup.plan(request, all_scopes=True)

    assert isinstance(left, Operation)
    assert left.action is Action.NOT_FOUND
    assert left.reason == "Only in a file that other clients share"
    assert f"Still reachable through '{path}', shared with Its Owner" in left.notes[0]
    assert isinstance(taken, FileChange)
    assert taken.operations[0].notes == (f"'{path}' is read by Its Owner, too: it loses the server as well.",)


def test_a_shared_file_is_cleaned_by_its_scope_where_the_client_has_no_other_of_it(setup: Setup) -> None:
    shared = saved(setup.root / "shared.json", UnoApp=APP)
    user, workspace = place(setup.root / "user.json", Scope.USER), place(shared, use=Use.SHARED)
    without_own = client(user, workspace)
    with_own = client(place(setup.root / "own.json"), workspace)

    taken = setup.plan(setup.request(without_own, UNO_APP, scope=Scope.WORKSPACE))
    left = setup.plan(setup.request(without_own, UNO_APP))
    left_too = setup.plan(setup.request(with_own, UNO_APP, scope=Scope.WORKSPACE))

    assert told(taken)[0][:3] == ("UnoApp", Action.REMOVED, str(shared))
    assert told(left)[0][:2] == told(left_too)[0][:2] == ("UnoApp", Action.NOT_FOUND)


def test_a_legacy_file_is_cleaned_too(setup: Setup) -> None:
    path = saved(setup.root / "old.json", UnoApp=APP)
    profile = client(place(path, use=Use.LEGACY), no_client="It has none.")
    reader = client(place(path)).replace(id="reader", name="A Reader")

    (change,) = setup.plan(setup.request(profile, UNO_APP, others=(reader,)))

    assert told((change,))[0][:3] == ("UnoApp", Action.REMOVED, str(path))
    assert isinstance(change, FileChange)
    assert "A Reader" in change.operations[0].notes[0], "which reads it, although this client does not"


def test_an_address_that_may_be_anybodys_is_left_and_told(setup: Setup) -> None:
    path = saved(setup.root / "ws.json", other={"url": "http://localhost:5000/mcp"})

    (left,) = setup.plan(setup.request(client(place(path)), UNO_APP))

    assert isinstance(left, Operation)
    assert left.action is Action.NOT_FOUND
    assert "'other'" in left.notes[0]


def test_an_address_that_may_be_anybodys_stays_beside_a_certain_entry_that_goes(setup: Setup) -> None:
    path = saved(setup.root / "ws.json", UnoApp=APP, other={"url": "http://localhost:5000/mcp"})

    (change,) = setup.plan(setup.request(client(place(path)), UNO_APP))

    assert isinstance(change, FileChange)
    assert list(json.loads(change.after or b"")["mcpServers"]) == ["other"]
    assert "'other'" in change.operations[0].notes[0]


def test_a_file_that_is_not_understood_is_an_error_since_nobody_knows_what_is_in_it(setup: Setup) -> None:
    path = write(setup.root / "ws.json", "{")

    assert [one[:3] for one in told(setup.plan(setup.request(client(place(path)))))] == [
        ("UnoApp", Action.ERROR, str(path)),
        ("UnoDocs", Action.ERROR, str(path)),
    ]


def test_a_plan_for_another_text_than_it_is_applied_to_is_an_error_and_takes_nothing(setup: Setup) -> None:
    path = saved(setup.root / "real.json", UnoApp=APP, mine={}, other={})
    link = setup.root / "link.json"
    link.symlink_to(path)

    (planned,) = setup.plan(setup.request(client(place(path), place(link)), UNO_APP))  # not joined, as loaded ones are

    assert isinstance(planned, FileChange)
    assert planned.after is not None
    assert json.loads(planned.after) == {"mcpServers": {"mine": {}, "other": {}}}
    assert [one.action for one in planned.operations] == [Action.REMOVED, Action.ERROR]
    assert "the entry 'UnoApp' is not where it was" in planned.operations[1].reason


def test_a_removal_that_would_take_entries_of_another_place_with_it_is_an_error(setup: Setup) -> None:
    path = saved(setup.root / "a.json", UnoApp={**APP, "more": {"mine": {}}})
    inner = place(path, root=("mcpServers", "UnoApp", "more"))

    (planned,) = setup.plan(setup.request(client(place(path), inner), UNO_APP))

    assert isinstance(planned, FileChange)
    assert planned.after == path.read_bytes()
    assert "other entries would not stay as they are" in planned.operations[0].reason


def test_a_scope_that_the_client_does_not_have_is_an_error(setup: Setup) -> None:
    request = setup.request(client(place(setup.root / "ws.json")), UNO_APP, scope=Scope.USER)

    assert told(setup.plan(request))[0][3] == "Cursor has no user configuration; it has: --scope workspace"


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"", Format.JSON),
        (b"\n\n", Format.JSON),
        (b"// mine\n", Format.JSONC),
        (b"{}", Format.JSON),
        (b'\xef\xbb\xbf{\r\n\t"mcpServers" : { }\r\n}', Format.JSON),
        ('{"é": 1 }\n'.encode("utf-16"), Format.JSON),
        (b'{ "mcpServers": { "x": {"command": "y"}, }, }', Format.JSONC),
        (b"# mine\na = 1", Format.TOML),
        (b"", Format.TOML),
    ],
)
def test_install_then_uninstall_gives_back_every_byte(setup: Setup, content: bytes, form: Format) -> None:
    path = write(setup.root / "ws" / "mcp", content)
    request = setup.request(client(place(path, format=form)))

    installed = setup.install(request)
    assert {one.action for one in installed} == {Action.CREATED}, installed
    assert path.read_bytes() != content
    removed = setup.uninstall(request)

    assert {one.action for one in removed} == {Action.REMOVED}
    assert path.read_bytes() == content


def test_servers_that_go_one_by_one_leave_the_same_bytes(setup: Setup) -> None:
    content = b'{ "mcpServers": {} }'
    path = write(setup.root / "mcp.json", content)
    profile = client(place(path))
    setup.install(setup.request(profile, UNO_APP))
    setup.install(setup.request(profile, UNO_DOCS))

    setup.uninstall(setup.request(profile, UNO_APP))
    assert list(json.loads(path.read_bytes())["mcpServers"]) == ["UnoDocs"]
    setup.uninstall(setup.request(profile, UNO_DOCS))

    assert path.read_bytes() == content


def test_a_file_for_two_clients_with_a_root_each_is_the_original_when_both_are_out(setup: Setup) -> None:
    path = write(setup.root / "mcp.json", b"{ }")
    one, other = client(place(path)), client(place(path, root=("servers",))).replace(id="other")
    setup.install(setup.request(one))
    setup.install(setup.request(other))

    setup.uninstall(setup.request(one))
    assert list(json.loads(path.read_bytes())["servers"]) == ["UnoApp", "UnoDocs"]
    setup.uninstall(setup.request(other))

    assert path.read_bytes() == b"{ }"


def test_a_file_that_install_made_is_gone_with_its_folder(setup: Setup) -> None:
    request = setup.request(client(place(setup.root / "new" / "mcp.json")))
    setup.install(request)

    setup.uninstall(request)

    assert not (setup.root / "new").exists()


def test_a_file_that_begins_with_a_text_of_its_own_is_gone_too(setup: Setup) -> None:
    path = setup.root / "new" / "mcp.yaml"
    request = setup.request(client(place(path, format=Format.YAML, new_text="name: Uno\nversion: 1\n")))
    setup.install(request)
    assert path.read_text().startswith("name: Uno\n")

    setup.uninstall(request)

    assert not path.parent.exists()


def test_an_entry_that_was_there_before_goes_although_its_file_had_it(setup: Setup) -> None:
    path = saved(setup.root / "mcp.json", UnoApp={"url": "http://localhost:1/uno-devserver/mcp"}, other={})
    request = setup.request(client(place(path)))
    assert setup.install(request)[0].action is Action.UPDATED

    setup.uninstall(request)

    assert json.loads(path.read_bytes()) == {"mcpServers": {"other": {}}}


def test_what_others_added_meanwhile_stays(setup: Setup) -> None:
    path = setup.root / "mcp.json"
    request = setup.request(client(place(path)))
    setup.install(request)
    path.write_text(path.read_text().replace("{", '{"theirs": 1,', 1))

    setup.uninstall(request)

    assert json.loads(path.read_bytes()) == {"theirs": 1, "mcpServers": {}}
