from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.privileges import ROOT
from uno_devserver.proxy.lists.catalogue import (
    MAX_TOOLS,
    Catalogue,
    CatalogueIdentity,
    identity_of,
    load,
    own_tool_facts,
    path_of,
    save,
)
from uno_devserver.proxy.lists.merge import Offered, entries, merged
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.own_tools import INITIALIZE, SELECT_SOLUTION, STATUS, OwnToolFacts
from uno_devserver.workspace.trust import TRUST_VARIABLE

HERE = CatalogueIdentity("/work/app")
BUILD = b'{"name":"build","x-unknown":{"n":1.50},"description":"gr\xc3\xbcn"}'
OFFERED = Offered(
    tools=entries([("build", BUILD), ("run.it/now-1", b'{"name":"run.it/now-1"}')]),
    resources=entries([("a://\u00fc", b'{"uri":"a://\\u00fc"}')]),
    templates=entries([("a://{x}", b'{"uriTemplate":"a://{x}"}')]),
    prompts=entries([("greet me", b'{"name":"greet me"}')]),
)
SEEN = Catalogue(OFFERED, {"name": "Acme"}, {"tools": {}}, "Say please.", 1_700_000_000.5, "6.5.31")


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def replaced(state: str, without: tuple[str, ...] = (), **changes: object) -> None:
    """The kept file with other words about itself, and a checksum that is right."""
    path = Path(path_of(state, HERE))
    _, about, *lines = path.read_bytes().split(b"\n")
    words = {key: value for key, value in json.loads(about).items() if key not in without} | changes
    sealed = b"\n".join([json.dumps(words).encode(), *lines])
    seal = json.dumps({"version": 1, "sha256": hashlib.sha256(sealed).hexdigest()}).encode()
    path.write_bytes(seal + b"\n" + sealed)


@pytest.mark.skipif(not ROOT, reason="only root can give a file to another user")
def test_what_another_user_has_written_is_offered_to_nobody(state: str) -> None:
    save(state, HERE, SEEN)
    os.chown(path_of(state, HERE), 65534, -1)

    loaded, problem = load(state, HERE)

    assert loaded is None
    assert "it belongs to another user" in problem


@pytest.mark.parametrize("seen", [SEEN, SEEN.replace(selects_solution=False, hot_reload=True)])
def test_what_was_kept_comes_back_byte_for_byte(state: str, seen: Catalogue) -> None:
    assert load(state, HERE) == (None, "")

    save(state, HERE, seen)

    assert load(state, HERE) == (seen, "")


@pytest.mark.parametrize(("said", "selects"), [({}, True), ({"usesHost": True}, True), ({"usesHost": False}, False)])
def test_a_file_of_an_older_version_stays_valid(state: str, said: dict[str, bool], selects: bool) -> None:
    """Older versions knew only whether there was a Host, and the first ones had no hot reload."""
    save(state, HERE, SEEN.replace(selects_solution=False, hot_reload=True))
    replaced(state, without=("selectsSolution", "hotReload"), **said)

    assert load(state, HERE) == (SEEN.replace(selects_solution=selects), "")


def test_the_file_is_its_users_alone(state: str) -> None:
    save(state, HERE, SEEN)

    path = path_of(state, HERE)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_every_upstream_has_its_own(tmp_path: Path, state: str) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    identities = [
        identity_of(options)
        for options in (
            ProxyOptions(one),
            ProxyOptions(two),
            ProxyOptions(one, command=("python", "server.py")),
            ProxyOptions(one, command=("python", "server.py", "-v")),
            ProxyOptions(two, command=("python", "server.py")),
            ProxyOptions(one, url="http://127.0.0.1:1/mcp"),
            ProxyOptions(one, url="http://127.0.0.1:2/mcp"),
            ProxyOptions(one, url="http://127.0.0.1:2/mcp?key=one"),
            ProxyOptions(one, url="http://127.0.0.1:2/mcp?key=two"),
            ProxyOptions(one, url="http://127.0.0.1:2/one/mcp"),
        )
    ]

    for number, identity in enumerate(identities):
        save(state, identity, SEEN.replace(saved_at=float(number)))

    kept = [load(state, identity)[0] for identity in identities]
    assert [catalogue.saved_at if catalogue else None for catalogue in kept] == list(range(len(identities)))


def test_behind_a_link_is_the_same_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert identity_of(ProxyOptions(str(tmp_path / "link"))) == identity_of(ProxyOptions(str(tmp_path / "real")))


def test_a_server_at_an_address_is_the_same_from_everywhere() -> None:
    assert identity_of(ProxyOptions("/a", url="http://h/mcp")) == identity_of(ProxyOptions("/b", url="http://h/mcp"))


def test_neither_a_file_nor_its_name_tells_secrets_of_an_address(state: str) -> None:
    identity = identity_of(ProxyOptions("/a", url="https://host/path-secret-7f3a/mcp?key=query-secret"))

    save(state, identity, SEEN)

    path = Path(path_of(state, identity))
    assert path.name.startswith("host-")
    assert "secret" not in path.name
    assert "secret" not in path.read_text("utf-8")
    assert load(state, identity)[0] == SEEN


def test_nor_does_a_file_tell_the_arguments_of_a_command(state: str) -> None:
    identity = identity_of(ProxyOptions("/a", command=("/opt/serve", "--token", "secret")))

    save(state, identity, SEEN)

    path = Path(path_of(state, identity))
    assert "secret" not in path.name + path.read_text("utf-8")
    assert '"command":"serve ' in path.read_text("utf-8")
    assert load(state, identity)[0] == SEEN
    assert load(state, identity_of(ProxyOptions("/a", command=("/opt/serve", "--token", "other"))))[0] is None


def test_a_file_of_another_workspace_is_not_used_though_it_has_our_name(state: str) -> None:
    """Names do not tell upper from lower case, and short keys may meet."""
    other = CatalogueIdentity("/work/APP")
    save(state, other, SEEN)
    os.rename(path_of(state, other), path_of(state, HERE))

    catalogue, why = load(state, HERE)

    assert catalogue is None
    assert "another workspace" in why


@pytest.mark.parametrize(
    "changes",
    [
        {"workspaceHash": "0" * 16},
        {"workspace": "/elsewhere"},
        {"command": ["other"]},
        {"url": "http://other/"},
        {"names": {"tools": ["build", "no name"], "resources": ["a"], "templates": ["b"], "prompts": ["c"]}},
        {"names": {"tools": ["build", "x" * 129], "resources": ["a"], "templates": ["b"], "prompts": ["c"]}},
        {"names": {"tools": ["build", 7], "resources": ["a"], "templates": ["b"], "prompts": ["c"]}},
        {"names": {"tools": ["build"], "resources": ["a"], "templates": ["b"], "prompts": ["c"]}},
        {"names": {"tools": ["x"] * (MAX_TOOLS + 1), "resources": [], "templates": [], "prompts": []}},
        {"names": {}},
        {"names": None},
        {"timestamp": "yesterday"},
        {"timestamp": 10**400},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_what_a_file_says_of_itself_is_checked(state: str, changes: dict[str, Any]) -> None:
    save(state, HERE, SEEN)
    replaced(state)
    assert load(state, HERE)[0] == SEEN, "the way of changing it changes nothing else"

    replaced(state, **changes)

    catalogue, why = load(state, HERE)
    assert catalogue is None
    assert path_of(state, HERE) in why


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"{", b"{" * 100_000, b"[" * 100_000, b"\x00\xff", b"\n\n\n", b'{"version":1}', b'"x"\n{}'],
    ids=lambda content: repr(content[:12]),
)
def test_a_damaged_file_is_no_catalogue_and_no_error(state: str, content: bytes) -> None:
    save(state, HERE, SEEN)
    Path(path_of(state, HERE)).write_bytes(content)

    catalogue, why = load(state, HERE)

    assert catalogue is None
    assert path_of(state, HERE) in why


def test_every_changed_byte_is_noticed(state: str) -> None:
    save(state, HERE, SEEN)
    path = Path(path_of(state, HERE))
    data = path.read_bytes()

    for at in range(data.index(b"\n") + 1, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert load(state, HERE)[0] is None


def test_another_version_of_the_file_is_left_alone(state: str) -> None:
    save(state, HERE, SEEN)
    path = Path(path_of(state, HERE))
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))

    assert "another version" in load(state, HERE)[1]


def test_a_folder_in_its_place_is_a_reason_and_no_error(state: str) -> None:
    os.makedirs(path_of(state, HERE))

    catalogue, why = load(state, HERE)

    assert catalogue is None
    assert "not a regular file" in why


def test_a_list_of_tools_is_not_replaced_by_an_empty_one(state: str) -> None:
    save(state, HERE, SEEN)

    save(state, HERE, SEEN.replace(offered=Offered(), saved_at=2e9))

    assert load(state, HERE)[0] == SEEN


def test_an_upstream_without_tools_is_kept_where_there_was_none(state: str) -> None:
    without = SEEN.replace(offered=OFFERED.replace(tools=()))

    save(state, HERE, without)
    save(state, HERE, without.replace(saved_at=2e9))

    assert load(state, HERE)[0] == without.replace(saved_at=2e9)


def test_tools_whose_names_no_client_could_use_are_left_out(state: str) -> None:
    odd = entries([("build", BUILD), ("two words", b'{"name":"two words"}'), ("", b'{"name":""}')])

    save(state, HERE, SEEN.replace(offered=Offered(tools=odd)))

    catalogue, _ = load(state, HERE)
    assert catalogue
    assert catalogue.offered.tools == (("build", BUILD),)


def test_a_thousand_tools_are_kept_and_more_than_all_bounds_are_not(state: str) -> None:
    many = entries((f"tool_{number}", b"{}") for number in range(1000))
    too_many = entries((f"tool_{number}", b"{}") for number in range(MAX_TOOLS + 1))

    save(state, HERE, SEEN.replace(offered=Offered(tools=many)))
    save(state, HERE, SEEN.replace(offered=Offered(tools=too_many)))

    catalogue, _ = load(state, HERE)
    assert catalogue
    assert catalogue.offered.tools == many


def test_a_disk_that_takes_nothing_is_told_in_the_log_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")

    save(str(tmp_path / "file"), HERE, SEEN)

    assert "cannot be written" in capsys.readouterr().err


# --- which of our tools the first list has


NO_WORKSPACE = OwnToolFacts(by_workspace=True, selects_solution=True, fallback=True)
SOLUTIONS = OwnToolFacts(by_workspace=True, selects_solution=True)
OWN_CODE = OwnToolFacts(by_workspace=True, selects_solution=True, hot_reload=True, uno=False)
NAMED_SERVER = OwnToolFacts(by_workspace=False, selects_solution=False, uno=False)
UNO = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'


def listed(folder: Path) -> set[str]:
    lists, _ = merged(Offered(), own_tool_facts(ProxyOptions(str(folder)), None))
    return {tool["name"] for tool in json.loads(lists.tools)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user agrees to run the code of every workspace."""
    monkeypatch.setenv(TRUST_VARIABLE, "1")


@pytest.mark.parametrize(
    ("lies_there", "expected"),
    [
        ([], NO_WORKSPACE),
        (["README.md", "package.json"], NO_WORKSPACE),
        (["App.sln"], SOLUTIONS),
        (["APP.SLNX"], SOLUTIONS),
        (["global.json"], SOLUTIONS),
        (["../global.json"], SOLUTIONS),
        (["../App.sln"], NO_WORKSPACE),  # a solution above belongs to another workspace
        (["src/App.sln"], NO_WORKSPACE),  # one below is found later; a glance does not search
        ([".devtools/host.config.jsonc"], OWN_CODE),
        ([".devtools/addins/one.py"], OWN_CODE),
        (["../.devtools/addins/one.py"], OWN_CODE),
        (["App.sln", "../.devtools/host.config.jsonc"], OWN_CODE),
        ([".devtools/other.json"], NO_WORKSPACE),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("trusting")
def test_a_glance_at_the_folder_tells_what_the_workspace_seems_to_be(
    root: Path, lies_there: list[str], expected: OwnToolFacts
) -> None:
    for name in lies_there:
        write((root / name).resolve(), "{}")

    assert own_tool_facts(ProxyOptions(str(root)), None) == expected


def test_code_that_the_user_has_not_agreed_to_run_is_not_reloaded(root: Path) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")

    assert own_tool_facts(ProxyOptions(str(root)), None) == OWN_CODE.replace(hot_reload=False)


@pytest.mark.parametrize(("where", "content", "uno"), [("ws", UNO, True), (".", UNO, True), ("ws", "{}", False)])
def test_code_in_an_uno_workspace_does_not_hide_what_is_for_uno(
    root: Path, where: str, content: str, uno: bool
) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")
    write(root.parent / where / "global.json", content)

    assert own_tool_facts(ProxyOptions(str(root)), None).uno is uno


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"mcpServer": {"command": "serve"}}', OWN_CODE.replace(selects_solution=False)),
        ('{"hotReload": {"enabled": false}}', OWN_CODE.replace(hot_reload=False)),
        ("{ it is just being written", OWN_CODE),
        ('{"mcpServer": {"url": "http://x/mcp"}}', OWN_CODE.replace(selects_solution=False, hot_reload=False)),
        ('{"servers": {"far": {"url": "http://x/mcp"}}}', OWN_CODE.replace(hot_reload=False)),
        ('{"servers": {"far": {"url": "http://x/mcp"}, "near": {"command": "serve"}}}', OWN_CODE),
    ],
)
@pytest.mark.usefixtures("trusting")
def test_what_the_config_says_counts(root: Path, config: str, expected: OwnToolFacts) -> None:
    write(root / ".devtools" / "host.config.jsonc", config)

    assert own_tool_facts(ProxyOptions(str(root)), None) == expected


@pytest.mark.parametrize("reloads", [False, True])
@pytest.mark.usefixtures("trusting")
def test_the_first_list_has_the_tools_that_the_folder_seems_to_need(root: Path, reloads: bool) -> None:
    if reloads:
        write(root / ".devtools" / "addins" / "one.py", "")

    tools = listed(root)

    assert tools & {INITIALIZE, SELECT_SOLUTION, STATUS} == ({STATUS} if reloads else {INITIALIZE, SELECT_SOLUTION})


def test_a_folder_that_cannot_be_read_is_taken_for_no_workspace(tmp_path: Path) -> None:
    assert own_tool_facts(ProxyOptions(str(tmp_path / "nowhere")), None) == NO_WORKSPACE


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"force_fallback": True}, NO_WORKSPACE),
        ({"command": ("serve",)}, NAMED_SERVER),
        ({"url": "http://localhost:1/mcp"}, NAMED_SERVER),
    ],
)
def test_the_folder_does_not_count_where_the_workspace_or_the_server_is_named(
    root: Path, options: dict[str, Any], expected: OwnToolFacts
) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")

    assert own_tool_facts(ProxyOptions(str(root), **options), None) == expected


@pytest.mark.parametrize("kept", [None, Catalogue(Offered(), {}, {}, None, 1.0)])
def test_the_first_list_has_what_will_be_there_for_a_watched_command(root: Path, kept: Catalogue | None) -> None:
    options = ProxyOptions(str(root), command=("serve",), watch=True)

    assert own_tool_facts(options, kept).hot_reload


@pytest.mark.parametrize(("config", "expected"), [("{}", True), ('{"hotReload": {"enabled": false}}', False)])
@pytest.mark.usefixtures("trusting")
def test_a_config_near_a_typed_command_counts_for_the_first_list(root: Path, config: str, expected: bool) -> None:
    write(root / ".devtools" / "host.config.jsonc", config)

    assert own_tool_facts(ProxyOptions(str(root), command=("serve",)), None).hot_reload is expected


@pytest.mark.parametrize("selects", [True, False])
@pytest.mark.parametrize("reloads", [True, False])
@pytest.mark.parametrize("sdk", ["6.5.31", None])
def test_what_was_known_the_last_time_counts_more_than_a_glance(
    root: Path, selects: bool, reloads: bool, sdk: str | None
) -> None:
    kept = Catalogue(Offered(), {}, {}, None, 1.0, sdk, selects_solution=selects, hot_reload=reloads)

    now = own_tool_facts(ProxyOptions(str(root)), kept)

    uno = sdk is not None
    assert now == OwnToolFacts(by_workspace=True, selects_solution=selects, hot_reload=reloads, uno=uno)
