"""Definitions that a user brings: taken whole, or refused with the file, the place and the reason."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # a dependency of mcp
import pytest

from support.files import write
from support.systems import LINUX, machine
from uno_devserver.issues import UserError
from uno_devserver.setup.definitions import CLIENTS, SERVERS, load, packaged, packaged_path
from uno_devserver.setup.definitions_file import read_external
from uno_devserver.setup.json_schema import problems
from uno_devserver.setup.profiles import Format, Scope, Use

SEED_CLIENTS = {
    "cursor": {
        "configPaths": ["{workspace}/.cursor/mcp.json", "{home}/.cursor/mcp.json"],
        "writeTarget": "{home}/.cursor/mcp.json",
        "jsonRootKey": "mcpServers",
    }
}
SEED_SERVERS = {
    "UnoApp": {
        "transport": "stdio",
        "variants": {
            "stable": {"command": "dnx", "args": ["-y", "uno.devserver", "--mcp-app"]},
            "pinned": {"command": "dnx", "args": ["-y", "--version", "{version}", "uno.devserver", "--mcp-app"]},
        },
        "detection": {
            "keyPatterns": ["^UnoApp$"],
            "commandPatterns": ["uno\\.devserver.*--mcp-app"],
            "urlPatterns": ["localhost:\\d+/mcp"],
        },
    },
    "UnoDocs": {
        "transport": "http",
        "variants": {"pinned": {"url": "https://mcp.platform.uno/v1"}},
        "detection": {"keyPatterns": ["^UnoDocs$"], "commandPatterns": None},
    },
}


def test_the_seeds_three_keys_describe_a_client(tmp_path: Path) -> None:
    file = write(tmp_path / "clients.json", json.dumps(SEED_CLIENTS))

    definitions = load(machine(LINUX), clients=str(file))

    (cursor,) = definitions.profiles
    assert [place.path for place in cursor.places] == ["/home/me/app/.cursor/mcp.json", "/home/me/.cursor/mcp.json"]
    assert {(place.use, place.format, place.root) for place in cursor.places} == {
        (Use.WRITE, Format.JSONC, ("mcpServers",))
    }
    assert (cursor.name, cursor.default_scope) == ("cursor", Scope.USER)
    assert [place.path for place in cursor.targets(Scope.USER)] == ["/home/me/.cursor/mcp.json"]
    assert [server.name for server in definitions.servers] == ["UnoApp", "UnoDocs"], "the other file stays ours"


def test_an_identifier_counts_before_another_clients_alias(tmp_path: Path) -> None:
    named = {**SEED_CLIENTS["cursor"], "aliases": ["cursor"]}
    file = write(tmp_path / "clients.json", json.dumps({"first": named, **SEED_CLIENTS}))

    found = load(machine(LINUX), clients=str(file)).profile("Cursor")

    assert found is not None
    assert found.id == "cursor"


def test_entries_have_types_where_servers_are_under_the_key_that_vs_code_has(tmp_path: Path) -> None:
    client = {**SEED_CLIENTS["cursor"], "jsonRootKey": "servers"}
    file = write(tmp_path / "clients.json", json.dumps({"code": client, "plain": {**client, "includeType": False}}))

    code, plain = load(machine(LINUX), clients=str(file)).profiles

    assert code.places[0].dialect.types == {"stdio": "stdio", "http": "http"}
    assert plain.places[0].dialect.types == {}


def test_the_seeds_form_of_a_server_is_taken_with_all_its_patterns_strong(tmp_path: Path) -> None:
    file = write(tmp_path / "servers.json", json.dumps(SEED_SERVERS))

    app, docs = load(machine(LINUX), servers=str(file)).servers

    assert app.detection.urls == ("localhost:\\d+/mcp",)
    assert (app.detection.weak_urls, app.runner, dict(app.runners)) == ((), "", {})
    assert docs.variants["pinned"].url == "https://mcp.platform.uno/v1"


def test_weak_patterns_are_taken_as_such(tmp_path: Path) -> None:
    detection = {"keyPatterns": ["^a$"], "weakUrlPatterns": [":1/"], "weakKeyPatterns": ["uno"]}
    file = write(tmp_path / "servers.json", json.dumps({"a": {**SEED_SERVERS["UnoDocs"], "detection": detection}}))

    (server,) = load(machine(LINUX), servers=str(file)).servers

    assert (server.detection.weak_urls, server.detection.weak_keys) == ((":1/",), ("uno",))


def test_a_client_that_nothing_can_be_written_for_has_the_scope_of_its_first_file(tmp_path: Path) -> None:
    places = [{"path": f"{{{token}}}/a.json", "use": "legacy"} for token in ("home", "workspace")]
    file = write(tmp_path / "clients.json", json.dumps({"old": {"configPaths": places, "jsonRootKey": "x"}}))

    (old,) = load(machine(LINUX), clients=str(file)).profiles

    assert (old.preferred, old.default_scope) == (None, Scope.USER)


def test_comments_trailing_commas_a_mark_and_a_schema_are_taken(tmp_path: Path) -> None:
    text = "\ufeff// mine\n" + json.dumps({"$schema": "x.json", **SEED_CLIENTS})[:-1] + ",}"
    file = write(tmp_path / "clients.jsonc", text)

    assert list(read_external(CLIENTS, str(file))) == ["cursor"]


@pytest.mark.parametrize("kind", [CLIENTS, SERVERS])
def test_our_own_files_pass_the_same_checks(kind: str) -> None:
    ours = read_external(kind, packaged_path(f"{kind}.json"))

    assert {"$schema", *ours} == set(packaged(f"{kind}.json"))


def _changed(base: dict[str, Any], trail: str, value: object) -> dict[str, Any]:
    """With another value at a place, which the trail leads to."""
    changed = copy.deepcopy(base)
    at: Any = changed
    *way, last = trail.split("/")
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[int(last) if isinstance(at, list) else last] = value
    return changed


ODD: tuple[object, ...] = (SEED_CLIENTS, SEED_SERVERS, {}, [], {"$schema": 5})
WRONG_CLIENTS = [
    ("cursor", 5, "cursor", "must be an object, not a number"),
    ("cursor", {"configPaths": ["{home}/x"]}, "cursor.jsonRootKey", "is missing"),
    ("cursor", {"jsonRootKey": "x"}, "cursor", "'configPaths' is missing"),
    ("a b", SEED_CLIENTS["cursor"], "a b", "is no name that can stand here"),
    ("cursor/configPaths", "x", "cursor.configPaths", "must be an array, not a string"),
    ("cursor/configPaths/1", None, "cursor.configPaths[1]", "must be a string or an object, not null"),
    ("cursor/configPaths/1", "", "cursor.configPaths[1]", "must not be empty"),
    ("cursor/configPaths/0", {"use": "read"}, "cursor.configPaths[0]", "'path' is missing"),
    ("cursor/configPaths/0", {"path": "{home}/x", "use": "maybe"}, "cursor.configPaths[0].use", "must be one of"),
    ("cursor/configPaths/0", {"path": "{home}/x", "systems": []}, "cursor.configPaths[0].systems", "empty"),
    ("cursor/configPaths/0", {"path": "{home}/x", "systems": ["bsd"]}, "cursor.configPaths[0].systems[0]", "linux"),
    ("cursor/configPaths/0", "{homes}/x", "cursor.configPaths[0]", "unknown token {homes}; known are {workspace}"),
    ("cursor/configPaths/0", "{CODEX_HOME}/x", "cursor.configPaths[0]", "unknown token {CODEX_HOME}"),
    ("cursor/configPaths/0", "mcp.json", "cursor.configPaths[0]", "must begin with a token"),
    ("cursor/configPaths/0", "~/mcp.json", "cursor.configPaths[0]", "must begin with a token"),
    ("cursor/configPaths/0", "{home}.json", "cursor.configPaths[0]", "must begin with a token"),
    ("cursor/configPaths/0", "/a\0b", "cursor.configPaths[0]", "NUL"),
    ("cursor/writeTarget", "{home}/other.json", "cursor.writeTarget", "must be one of configPaths"),
    ("cursor/writeTarget", 1, "cursor.writeTarget", "must be a string or null"),
    ("cursor/jsonRootKey", [], "cursor.jsonRootKey", "must not be empty"),
    ("cursor/jsonRootKey", ["a", 1], "cursor.jsonRootKey[1]", "must be a string"),
    ("cursor/jsonRootKey", ["a", "{wrong}"], "cursor.jsonRootKey[1]", "unknown token {wrong}"),
    ("cursor/format", "xml", "cursor.format", "must be one of json, jsonc, toml, yaml, not 'xml'"),
    ("cursor/nameKey", "name", "cursor.configPaths[0]", "in YAML only"),
    ("cursor/includeType", "yes", "cursor.includeType", "must be a boolean or an array"),
    ("cursor/includeType", ["sse"], "cursor.includeType[0]", "must be one of stdio, http, not 'sse'"),
    ("cursor/supportedTransports", ["pipe"], "cursor.supportedTransports[0]", "must be one of stdio, http"),
    ("cursor/variables", {"home": "{home}"}, "cursor.variables.home", "is no name that can stand here"),
    ("cursor/variables", {"A": "{B}/x", "B": "{A}/x"}, "cursor.variables.A", "unknown token {B}"),
    ("cursor/signs", ["x"], "cursor.signs[0]", "must begin with a token"),
    ("cursor/cli", {}, "cursor.cli", "'executable' is missing"),
    ("cursor/cli", {"executable": "x", "list": "mcp list"}, "cursor.cli.list", "must be an array"),
    ("cursor/startsIn", {"user": "tmp"}, "cursor.startsIn.user", "must be one of workspace, home"),
    ("cursor/connectSeconds", 0, "cursor.connectSeconds", "must be greater than 0"),
    ("cursor/gates", ["do it"], "cursor.gates[0]", "must be an object, not a string"),
    ("cursor/gates", [{"text": "x", "scopes": ["all"]}], "cursor.gates[0].scopes[0]", "workspace, user"),
    ("cursor/checked", "Nov 2026", "cursor.checked", "must have the form"),
]


def test_a_write_target_must_be_a_place_that_can_be_written_to(tmp_path: Path) -> None:
    data = _changed(SEED_CLIENTS, "cursor/configPaths/1", {"path": "{home}/.cursor/mcp.json", "use": "legacy"})
    file = write(tmp_path / "clients.json", json.dumps(data))

    with pytest.raises(UserError, match=r"cursor\.writeTarget: must be one of configPaths that can be written to"):
        load(machine(LINUX), clients=str(file))


WRONG_SERVERS = [
    ("UnoApp", [], "UnoApp", "must be an object, not an array"),
    ("UnoApp", {"transport": "stdio", "variants": {}}, "UnoApp", "'detection' is missing"),
    ("UnoApp/transport", "sse", "UnoApp.transport", "must be one of stdio, http, not 'sse'"),
    ("UnoApp/variants", {}, "UnoApp.variants", "must not be empty"),
    ("UnoApp/variants/stable", {"command": ""}, "UnoApp.variants.stable.command", "must not be empty"),
    ("UnoApp/variants/stable", {"args": []}, "UnoApp.variants.stable", "must have 'command'"),
    ("UnoApp/variants/stable", {"url": "http://x"}, "UnoApp.variants.stable", "must have 'command'"),
    ("UnoApp/variants/stable", {"command": "x", "url": "u"}, "UnoApp.variants.stable", "and no 'url'"),
    ("UnoApp/variants/stable/args/1", 5, "UnoApp.variants.stable.args[1]", "must be a string, not a number"),
    ("UnoApp/variants/stable/env", {"A": 1}, "UnoApp.variants.stable.env.A", "must be a string"),
    ("UnoDocs/variants/pinned", {"command": "x"}, "UnoDocs.variants.pinned", "the transport is http"),
    ("UnoApp/runners", {"dnx": {"stable": {}}}, "UnoApp.runners.dnx.stable", "must have 'command'"),
    ("UnoApp/runners", {"a b": {}}, "UnoApp.runners.a b", "is no name that can stand here"),
    ("UnoApp/detection", {}, "UnoApp.detection", "'keyPatterns' is missing"),
    ("UnoApp/detection/keyPatterns", None, "UnoApp.detection.keyPatterns", "must be an array, not null"),
    ("UnoApp/detection/keyPatterns/0", "(", "UnoApp.detection.keyPatterns[0]", "is no regular expression"),
    ("UnoApp/detection/commandPatterns/0", "a{9999999999}", "UnoApp.detection.commandPatterns[0]", "no regular"),
]


# Names that are not known: the rest of the file counts.
UNKNOWN = [
    (CLIENTS, "cursor/configPath", [], "cursor.configPath", "did you mean 'configPaths'?"),
    (CLIENTS, "cursor/jsonrootkey", "x", "cursor.jsonrootkey", "did you mean 'jsonRootKey'?"),
    (CLIENTS, "cursor/configPaths/0", {"path": "{home}/x", "urlkey": "u"}, "cursor.configPaths[0].urlkey", "'urlKey'"),
    (CLIENTS, "cursor/typeMap", {"sse": "x"}, "cursor.typeMap.sse", "is not known"),
    (SERVERS, "UnoApp/transports", "x", "UnoApp.transports", "did you mean 'transport'?"),
    (SERVERS, "UnoApp/variants/nightly", {"command": "x"}, "UnoApp.variants.nightly", "is not known; known are stable"),
    (SERVERS, "UnoApp/detection/urlPattern", ["x"], "UnoApp.detection.urlPattern", "did you mean 'urlPatterns'?"),
]


@pytest.mark.parametrize(("kind", "trail", "value", "where", "reason"), UNKNOWN)
def test_a_name_that_is_not_known_is_told_and_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, trail: str, value: object, where: str, reason: str
) -> None:
    base = SEED_CLIENTS if kind == CLIENTS else SEED_SERVERS
    file = write(tmp_path / "definitions.json", json.dumps(_changed(base, trail, value)))

    found = load(machine(LINUX), **{"clients" if kind == CLIENTS else "servers": str(file)})

    told = capsys.readouterr().err
    assert f"{file}: {where} is not known" in told
    assert reason in told
    assert {one.id for one in found.profiles} >= {"cursor"}
    assert [one.name for one in found.servers] == ["UnoApp", "UnoDocs"]


def test_the_definitions_of_the_dotnet_tool_are_read_with_their_words_for_registration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = {
        "agent": {
            "configPaths": [],
            "writeTarget": "",
            "jsonRootKey": "",
            "strategy": "native",
            "manualRegistrationMessage": "Run 'agent mcp add'.",
            "cli": {
                "executable": "agent",
                "detect": ["--version"],
                "addStdio": ["mcp", "add", "{name}", "--", "{command}", "{args...}"],
                "addHttp": None,
                "list": ["mcp", "list"],
                "remove": ["mcp", "remove", "{name}"],
            },
        },
        "quiet": {"configPaths": [], "strategy": "native"},
    }
    file = write(tmp_path / "profiles.json", json.dumps(theirs))

    agent, quiet = load(machine(LINUX), clients=str(file)).profiles

    assert (agent.strategy, agent.no_client, agent.places) == ("native", "Run 'agent mcp add'.", ())
    assert agent.cli is not None
    assert agent.cli.list == ("mcp", "list")
    assert quiet.no_client == "quiet is registered in its own way."
    assert capsys.readouterr().err == ""


def test_the_workspace_can_be_named_in_a_servers_definition(tmp_path: Path) -> None:
    definition = {"command": "{workspace}/run", "args": ["--in", "{workspace}"], "env": {"AT": "{workspace}/data"}}
    server = {"transport": "stdio", "variants": {"stable": definition}, "detection": {"keyPatterns": ["^mine$"]}}
    file = write(tmp_path / "servers.json", json.dumps({"mine": server}))

    (mine,) = load(machine(LINUX), servers=str(file)).servers

    workspace = machine(LINUX).workspace
    assert mine.variants["stable"].command == f"{workspace}/run"
    assert mine.variants["stable"].args == ("--in", workspace)
    assert mine.variants["stable"].env == {"AT": f"{workspace}/data"}


@pytest.mark.parametrize(
    ("kind", "trail", "value", "where", "reason"),
    [*((CLIENTS, *wrong) for wrong in WRONG_CLIENTS), *((SERVERS, *wrong) for wrong in WRONG_SERVERS)],
)
def test_a_wrong_definition_is_refused_with_its_place(
    tmp_path: Path, kind: str, trail: str, value: object, where: str, reason: str
) -> None:
    base = SEED_CLIENTS if kind == CLIENTS else SEED_SERVERS
    file = write(tmp_path / "definitions.json", json.dumps(_changed(base, trail, value)))

    with pytest.raises(UserError) as error:
        load(machine(LINUX), **{"clients" if kind == CLIENTS else "servers": str(file)})

    assert error.value.message.startswith(f"{file}: {where}: ")
    assert reason in error.value.message
    assert (error.value.code, error.value.exit_code) == ("DefinitionsInvalid", 2)
    assert os.path.isfile(error.value.next_step.split("; ")[1].removesuffix(" describes it."))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        *((CLIENTS, _changed(SEED_CLIENTS, trail, value)) for trail, value, *_ in WRONG_CLIENTS),
        *((SERVERS, _changed(SEED_SERVERS, trail, value)) for trail, value, *_ in WRONG_SERVERS),
        *((kind, data) for kind in (CLIENTS, SERVERS) for data in ODD),
        *((kind, packaged(f"{kind}.json")) for kind in (CLIENTS, SERVERS)),
    ],
)
def test_our_validator_and_the_usual_one_agree(kind: str, data: object) -> None:
    schema = packaged(f"{kind}.schema.json")
    usual = jsonschema.Draft202012Validator(schema)

    usual.check_schema(schema)
    assert (next(problems(data, schema), None) is None) == usual.is_valid(data)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not valid JSON"),
        (b"{ broken", "is not valid JSON"),
        (b'{\n  "a": }', "(line 2, column 8)"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"\xff\xfe\xff", "is not valid JSON"),
        (b"[]", "must be an object, not an array"),
        (b"null", "must be an object, not null"),
        (b"{}", "must have at least one definition"),
        (b'{"$schema": "x"}', "must have at least one definition"),
        (b'{"$schema": 5}', "$schema: must be a string, not a number"),
    ],
)
@pytest.mark.parametrize("kind", [CLIENTS, SERVERS])
def test_a_file_without_definitions_is_refused(tmp_path: Path, kind: str, content: bytes, reason: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)

    with pytest.raises(UserError) as error:
        read_external(kind, str(file))

    assert str(file) in error.value.message
    assert reason in error.value.message
    assert error.value.exit_code == 2


def test_a_path_that_is_no_readable_file_is_refused_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    for name, reason in [
        ("missing", "does not exist"),
        ("dangling", "does not exist"),
        ("folder", "cannot be read"),
        ("fifo", "cannot be read"),
        ("nul\0", "cannot be read"),
        ("", "cannot be read"),
    ]:
        with pytest.raises(UserError, match=reason) as error:
            read_external(CLIENTS, f"{tmp_path}/{name}")
        assert error.value.exit_code == 2


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_bytes(b" " * (4 * 1024 * 1024 + 1))

    with pytest.raises(UserError, match="the limit is"):
        read_external(CLIENTS, str(file))
