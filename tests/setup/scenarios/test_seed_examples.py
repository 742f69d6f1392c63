"""The examples of the specification of `mcp status | install | uninstall`, one by one, as the real program answers.

Where an example depends on which files a client reads, it is tried with the specification's own profiles and server
definitions, given as external files; with the built-in ones only what clients really read differs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from support.golden import GOLDEN
from support.registration import (
    BY_PATH,
    DNX,
    DOCS,
    SEED_SERVERS,
    UVX,
    VSCODE_USER,
    Clients,
    actions,
    as_version,
    by_uvx,
    includes,
    of_client,
    operations,
)
from uno_devserver import __version__

SEED_PROFILES = GOLDEN / "registration-seed" / "client-profiles.json"
TOOL = "1.2.0.dev0"
DNX_PRERELEASE = {"command": "dnx", "args": ["-y", "--prerelease", "uno.devserver", "--mcp-app"]}

AS_SPECIFIED = ("--ide-definitions", str(SEED_PROFILES), "--server-definitions", str(SEED_SERVERS))
MULTIPLE = "Registered in multiple config files"


def dnx_pinned(version: str) -> dict[str, Any]:
    return {"command": "dnx", "args": ["-y", "--version", version, "uno.devserver", "--mcp-app"]}


@pytest.fixture
def example(clients: Clients) -> Clients:
    """The machine of the status example."""
    clients.write(".vscode/mcp.json", {"servers": {"UnoApp": {"type": "stdio", **DNX}}})
    user = {"UnoApp": {"type": "stdio", **DNX_PRERELEASE}, "UnoDocs": {"type": "http", **DOCS}}
    clients.write("~/.vscode/mcp.json", {"servers": user})
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoDocs": DOCS}})
    clients.write(".mcp.json", {"mcpServers": {"UnoApp": DNX_PRERELEASE}})
    return clients


# --- status ---


def test_the_status_example_as_json(example: Clients) -> None:
    status = example.status("cursor", "--prerelease", *AS_SPECIFIED).json

    assert includes(
        {key: value for key, value in status.items() if key not in ("ides", "servers")},
        {"version": "1.0", "callerIde": "cursor", "toolVersion": __version__, "expectedVariant": "prerelease"},
    )
    ides = {ide["id"]: ide for ide in status["ides"]}
    assert list(ides) == list(json.loads(SEED_PROFILES.read_text("utf-8"))), "all known clients, in the file's order"
    workspace_file, home_file = str(example.at(".vscode/mcp.json")), str(example.at("~/.vscode/mcp.json"))
    vscode = {"detected": True, "writeTarget": workspace_file}
    assert includes(ides["vscode"], vscode)
    assert ides["vscode"]["configPaths"] == [workspace_file, home_file, str(example.at(VSCODE_USER))]
    cursor = {
        "detected": True,
        "configPaths": [str(example.at(".cursor/mcp.json")), str(example.at("~/.cursor/mcp.json"))],
        "writeTarget": str(example.at(".cursor/mcp.json")),
    }
    assert includes(ides["cursor"], cursor)
    rider = str(example.at(".idea/mcpServers.json"))
    assert includes(ides["rider"], {"detected": False, "configPaths": [rider], "writeTarget": rider})

    app, docs = status["servers"]
    assert includes(app, {"name": "UnoApp", "transport": "stdio", "definition": DNX_PRERELEASE})
    assert _of_example(app) == {
        "vscode": {
            "status": "outdated",
            "locations": [(workspace_file, "stable"), (home_file, "prerelease")],
            "warnings": [MULTIPLE],
        },
        "cursor": {"status": "missing"},
        "claude-code": {"status": "registered", "locations": [(str(example.at(".mcp.json")), "prerelease")]},
    }
    assert includes(docs, {"name": "UnoDocs", "transport": "http", "definition": DOCS})
    assert _of_example(docs) == {
        "vscode": {"status": "registered", "locations": [(home_file, "stable")]},
        "cursor": {"status": "registered", "locations": [(str(example.at("~/.cursor/mcp.json")), "stable")]},
        "claude-code": {"status": "missing"},
    }


def test_the_status_example_with_the_files_that_clients_read_today(example: Clients) -> None:
    example.write(VSCODE_USER, example.bytes("~/.vscode/mcp.json"))

    result = example.status("cursor", "--prerelease", "--runner", "dnx")

    vscode = of_client(result, "UnoApp", "vscode")
    assert vscode["status"] == "outdated"
    assert MULTIPLE in vscode["warnings"]
    found = {location["path"]: location for location in vscode["locations"]}
    assert includes(found[str(example.at(".vscode/mcp.json"))], {"variant": "stable", "scope": "workspace"})
    assert includes(found[str(example.at(VSCODE_USER))], {"variant": "prerelease", "scope": "user"})
    assert found[str(example.at("~/.vscode/mcp.json"))]["legacy"] is True, "VS Code does not read it"
    assert of_client(result, "UnoApp", "cursor")["status"] == "missing"
    assert of_client(result, "UnoApp", "claude-code")["status"] == "registered"
    assert of_client(result, "UnoDocs", "cursor")["status"] == "registered"
    assert of_client(result, "UnoDocs", "claude-code")["status"] == "missing"


def test_the_status_example_as_text(example: Clients) -> None:
    text = example.text("status", "cursor", "--prerelease", *AS_SPECIFIED).stdout

    lines = text.splitlines()
    assert lines[:3] == ["MCP Server Status", "=================", ""]
    detected = next(line for line in lines if line.startswith("IDEs detected:"))
    assert {"vscode", "cursor", "claude-code"} <= set(re.findall(r"[\w-]+", detected.partition(":")[2]))
    assert re.search(r"^Caller IDE: +cursor$", text, re.MULTILINE)
    assert re.search(r"^Expected: +prerelease \(.*--prerelease.*\)$", text, re.MULTILINE)
    app, docs = (
        text[text.index("UnoApp (stdio)\n") : text.index("UnoDocs (http)\n")],
        text.partition("UnoDocs (http)")[2],
    )
    words = [line.split() for line in app.splitlines()]
    assert ["vscode", "outdated", "stable", str(Path(".vscode/mcp.json"))] in words
    assert ["prerelease", str(Path("~/.vscode/mcp.json"))] in words
    assert any(line.strip().endswith(MULTIPLE) for line in app.splitlines())
    assert ["cursor", "missing"] in words
    assert ["claude-code", "registered", "prerelease", ".mcp.json"] in words
    words = [line.split() for line in docs.splitlines()]
    assert ["vscode", "registered", "stable", str(Path("~/.vscode/mcp.json"))] in words
    assert ["cursor", "registered", "stable", str(Path("~/.cursor/mcp.json"))] in words
    assert ["claude-code", "missing"] in words


def test_without_a_client_status_names_no_caller(clients: Clients) -> None:
    status = clients.status().json

    assert status["version"] == "1.0"
    assert status["callerIde"] is None
    assert not any(ide["detected"] for ide in status["ides"]), "nothing is on this machine"
    assert [server["ides"] for server in status["servers"]] == [[], []]


def test_the_callers_client_is_listed_even_if_nothing_of_it_is_there(clients: Clients) -> None:
    result = clients.status("kiro")

    assert [server["ides"] for server in result.json["servers"]] == [[{"ide": "kiro", "status": "missing"}]] * 2


def test_all_paths_are_absolute_also_where_the_workspace_is_not(example: Clients) -> None:
    result = example.mcp("status", "--workspace", example.workspace.name, cwd=example.workspace.parent)

    paths = [path for ide in result.json["ides"] for path in ide["configPaths"]]
    paths += [ide["writeTarget"] for ide in result.json["ides"] if ide["writeTarget"]]
    paths += [
        location["path"]
        for server in result.json["servers"]
        for ide in server["ides"]
        for location in ide.get("locations", [])
    ]
    assert str(example.at(".mcp.json")) in paths
    assert [path for path in paths if not Path(path).is_absolute() or "{" in path or "~" in path] == []


def _of_example(server: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By client, what the example shows; `unknown` stands for no client, and is not compared."""
    shown = {}
    for ide in server["ides"]:
        told: dict[str, Any] = {"status": ide["status"]}
        if "locations" in ide:
            told["locations"] = [(location["path"], location["variant"]) for location in ide["locations"]]
        if "warnings" in ide:
            # That no such program is on this machine's PATH is said, too.
            told["warnings"] = [text for text in ide["warnings"] if "dnx" not in text]
        shown[ide["ide"]] = {key: value for key, value in told.items() if value}
    shown.pop("unknown", None)
    return shown


# --- install ---


def test_the_install_example(clients: Clients) -> None:
    user = clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoDocs": DOCS}})
    path = str(clients.at(".cursor/mcp.json"))

    text = clients.text("install", "cursor").stdout
    clients.uninstall("cursor", "--servers", "UnoApp")
    result = clients.install("cursor", "--runner", "dnx")

    created = {"server": "UnoApp", "action": "created", "path": path, "reason": "Added UnoApp stdio server"}
    skipped = {"server": "UnoDocs", "action": "skipped", "path": str(user), "reason": "Already registered"}
    assert result.exit_code == 0
    assert includes(result.json, {"version": "1.0", "operations": [created, skipped]})
    assert text.splitlines()[:3] == ["MCP Install", "===========", ""]
    assert re.search(r"^  UnoApp +created +\S*\.cursor[/\\]mcp\.json +Added UnoApp stdio server$", text, re.MULTILINE)
    assert re.search(r"^  UnoDocs +skipped +\S*\.cursor[/\\]mcp\.json +Already registered$", text, re.MULTILINE)


def test_the_error_example(clients: Clients) -> None:
    path = clients.write(".cursor/mcp.json", {})
    path.chmod(0o444)

    result = clients.install("cursor", "--servers", "UnoApp")

    error = {"server": "UnoApp", "action": "error", "path": str(path), "reason": "File is read-only"}
    assert includes(result.json, {"version": "1.0", "operations": [error]})
    assert result.exit_code == 1, "nothing useful was done"


# --- uninstall ---


def test_the_uninstall_example(clients: Clients) -> None:
    def registered() -> list[Path]:
        files = (".cursor/mcp.json", "~/.cursor/mcp.json")
        return [clients.write(file, {"mcpServers": {"UnoApp": DNX}}) for file in files]

    workspace_file, home_file = registered()
    text = clients.text("uninstall", "cursor").stdout
    registered()
    result = clients.uninstall("cursor")

    removed = {"server": "UnoApp", "action": "removed"}
    expected = [
        {**removed, "path": str(workspace_file), "reason": "Removed from workspace config"},
        {**removed, "path": str(home_file), "reason": "Removed from user config"},
        {"server": "UnoDocs", "action": "not_found", "path": None, "reason": "Not found in any config file"},
    ]
    assert result.exit_code == 0
    assert includes(result.json, {"version": "1.0", "operations": expected})
    assert clients.read(".cursor/mcp.json") == clients.read("~/.cursor/mcp.json") == {"mcpServers": {}}
    assert text.splitlines()[:3] == ["MCP Uninstall", "=============", ""]
    assert re.search(
        r"^  UnoApp +removed +\S*\.cursor[/\\]mcp\.json +Removed from workspace config$", text, re.MULTILINE
    )
    assert re.search(r"^  UnoApp +removed +\S*\.cursor[/\\]mcp\.json +Removed from user config$", text, re.MULTILINE)
    assert re.search(r"^  UnoDocs +not_found +Not found in any config file$", text, re.MULTILINE)


def test_a_server_that_is_nowhere_is_not_found_and_that_is_a_failure_only_with_strict(clients: Clients) -> None:
    for options, code in (((), 0), (("--strict",), 1)):
        result = clients.uninstall("cursor", *options)

        assert actions(result) == {"UnoApp": "not_found", "UnoDocs": "not_found"}
        assert result.exit_code == code


def test_notes_name_only_clients_that_can_be_installed_here(clients: Clients) -> None:
    shared, note = (
        " ".join(one.get("note", "") for one in operations(clients.install(client, "--runner", "path")))
        for client in ("vscode", "claude-code")
    )

    assert ("Visual Studio" in shared) == (sys.platform == "win32")
    assert "is read by other clients, too" in note
    assert "Visual Studio" not in note, "it reads this file, but other entries of it"


# --- which files are written how ---


def test_the_form_of_vs_code_has_the_type_of_each_server(clients: Clients) -> None:
    clients.install("vscode", "--runner", "dnx", "--release")

    servers = {"UnoApp": {"type": "stdio", **DNX}, "UnoDocs": {"type": "http", **DOCS}}
    assert clients.read(".vscode/mcp.json") == {"servers": servers}
    assert list(clients.read(".vscode/mcp.json")["servers"]["UnoApp"]) == ["type", "command", "args"]


def test_the_form_of_cursor_has_no_type(clients: Clients) -> None:
    clients.install("cursor", "--runner", "dnx", "--release")

    assert clients.read(".cursor/mcp.json") == {"mcpServers": {"UnoApp": DNX, "UnoDocs": DOCS}}


@pytest.mark.parametrize(
    ("options", "variant", "dnx", "uvx"),
    [
        (["--release"], "stable", DNX, by_uvx(TOOL)),
        (["--prerelease"], "prerelease", DNX_PRERELEASE, by_uvx(TOOL, "--prerelease", "allow")),
        (
            ["--version", "5.6.0-dev.42"],
            "pinned:5.6.0-dev.42",
            dnx_pinned("5.6.0-dev.42"),
            {"command": "uvx", "args": ["uno-devserver@5.6.0-dev.42", "--mcp-app"]},
        ),
        ([], "prerelease", DNX_PRERELEASE, BY_PATH),  # this tool's own version decides
    ],
)
def test_the_version_that_is_asked_for_is_written_and_recognised(
    clients: Clients, options: list[str], variant: str, dnx: Any, uvx: Any
) -> None:
    as_version(clients.machine, TOOL)

    clients.install("cursor", *options, "--runner", "dnx")
    clients.install("kiro", *options)
    status = clients.status(*options)

    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"] == dnx
    assert clients.read(".kiro/settings/mcp.json")["mcpServers"]["UnoApp"] == uvx
    assert status.json["expectedVariant"] == variant
    assert status.json["servers"][0]["definition"] == uvx
    for client in ("cursor", "kiro"):
        said = of_client(status, "UnoApp", client)
        by_path = said["locations"][0]["runner"] == "path"  # whose version is that of the program
        assert (said["status"], said["locations"][0]["variant"]) == ("registered", "stable" if by_path else variant)


@pytest.mark.parametrize("version", ["5.6.0", "5.6.0.dev42", "5.6.0-dev.42", "5.6.0rc1"])
def test_the_version_of_the_tool_itself_decides_what_is_expected(clients: Clients, version: str) -> None:
    as_version(clients.machine, version)

    status = clients.status().json

    assert status["toolVersion"] == version
    assert status["expectedVariant"] == ("stable" if version == "5.6.0" else "prerelease")


# --- what is done with what is there ---


def test_an_updated_entry_keeps_what_the_tool_does_not_know(clients: Clients) -> None:
    entry = {**DNX, "env": {"DOTNET_ROOT": "/usr/share/dotnet"}, "disabled": False}
    clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": entry}})

    result = clients.install("cursor", "--prerelease", "--servers", "UnoApp")

    assert actions(result) == {"UnoApp": "updated"}
    assert clients.read(".cursor/mcp.json") == {"mcpServers": {"UnoApp": {**entry, **DNX_PRERELEASE}}}
    assert list(clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"]) == list(entry), "in its order"


def test_a_server_under_another_name_is_updated_there(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"Uno": {"url": "https://mcp.platform.uno/v0"}, "App": DNX}})

    result = clients.install("cursor", "--prerelease")

    assert actions(result) == {"UnoApp": "updated", "UnoDocs": "updated"}
    assert clients.read(".cursor/mcp.json") == {"mcpServers": {"Uno": DOCS, "App": DNX_PRERELEASE}}


def test_of_several_entries_the_first_is_updated_and_all_are_removed(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": DNX, "second": DNX, "other": {"command": "x"}}})

    said = of_client(clients.status("--prerelease"), "UnoApp", "cursor")
    clients.install("cursor", "--prerelease", "--servers", "UnoApp")
    updated = clients.read(".cursor/mcp.json")
    clients.uninstall("cursor", "--servers", "UnoApp")

    assert said["status"] == "outdated"
    assert "Multiple entries match server UnoApp" in said["warnings"]
    assert updated == {"mcpServers": {"UnoApp": DNX_PRERELEASE, "second": DNX, "other": {"command": "x"}}}
    assert clients.read(".cursor/mcp.json") == {"mcpServers": {"other": {"command": "x"}}}


def test_an_entry_of_the_user_that_is_outdated_is_shadowed_in_the_workspace(clients: Clients) -> None:
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoApp": DNX}})
    before = clients.bytes("~/.cursor/mcp.json")

    result = clients.install("cursor", "--prerelease", "--servers", "UnoApp")

    assert includes(operations(result)[0], {"action": "updated", "path": str(clients.at(".cursor/mcp.json"))})
    assert clients.bytes("~/.cursor/mcp.json") == before
    assert of_client(clients.status("--prerelease"), "UnoApp", "cursor")["status"] == "registered"


def test_folders_and_file_are_created_with_the_servers_only(clients: Clients) -> None:
    clients.install("kiro", "--servers", "UnoDocs")

    text = clients.bytes(".kiro/settings/mcp.json").decode("utf-8")
    assert json.loads(text) == {"mcpServers": {"UnoDocs": DOCS}}
    assert text.startswith('{\n  "mcpServers": {\n    "UnoDocs": {\n      "url"'), "indented by two"
    assert text.endswith("}\n")


def test_an_entry_over_http_becomes_one_over_stdio(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": {"url": "http://localhost:5000/mcp", "x": 1}}})

    said = of_client(clients.status(), "UnoApp", "cursor")
    clients.install("cursor", "--release", "--servers", "UnoApp")

    assert (said["status"], said["locations"][0]["variant"]) == ("outdated", "legacy-http")
    assert clients.read(".cursor/mcp.json") == {"mcpServers": {"UnoApp": {"x": 1, **UVX}}}


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("dnx", ["-y", "uno.devserver", "--mcp-app"]),
        ("uno.devserver", ["--mcp-app"]),
        ("dotnet", ["dnx", "-y", "uno.devserver", "--mcp-app"]),
        ("uvx", ["uno-devserver", "--mcp-app"]),
        ("/opt/tools/uno-devserver", ["--mcp-app"]),
    ],
)
def test_every_known_way_to_start_the_server_is_recognised(clients: Clients, command: str, args: list[str]) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"mine": {"command": command, "args": args}}})

    said = of_client(clients.status(), "UnoApp", "cursor")

    assert [(one["variant"], one["transport"], one["key"]) for one in said["locations"]] == [
        ("stable", "stdio", "mine")
    ]


# --- exit codes ---


@pytest.mark.parametrize(
    ("argv", "exit_code", "words"),
    [
        (["install"], 2, "client"),
        (["uninstall"], 2, "client"),
        (["install", "nope"], 1, "Unknown client 'nope'"),
        (["install", "cursor", "--ide", "kiro"], 2, "kiro"),
        (["install", "cursor", "--release", "--prerelease"], 2, "mutually exclusive"),
        (["status", "--version", "1", "--release"], 2, "mutually exclusive"),
        (["install", "cursor", "--servers", "UnoApp,Nope"], 2, "Unknown server 'Nope'"),
        (["install", "cursor", "--workspace", "/"], 2, "root"),
        (["install", "cursor", "--workspace", "missing"], 2, "does not exist"),
        (["status", "--ide-definitions", "missing.json"], 2, "missing.json"),
        (["status", "--server-definitions", "missing.json"], 2, "missing.json"),
        (["install", "cursor", "extra"], 2, "extra"),
        (["status", "--what"], 2, "--what"),
        (["install", "cursor", "--scope", "galaxy"], 2, "galaxy"),
        (["install", "cursor", "--runner", "horse"], 2, "horse"),
        (["install", "--all-ides"], 1, "install <client>"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_changes_nothing(
    clients: Clients, argv: list[str], exit_code: int, words: str
) -> None:
    before = clients.tree()

    result = clients.text(*argv)

    assert result.exit_code == exit_code
    assert words in result.stderr
    assert result.stdout == ""
    assert clients.tree() == before


def test_the_client_may_be_named_twice_if_it_is_the_same(clients: Clients) -> None:
    result = clients.status("cursor", "--ide", "Cursor")

    assert result.json["callerIde"].lower() == "cursor"


def test_servers_may_be_named_twice(clients: Clients) -> None:
    result = clients.install("cursor", "--servers", "UnoDocs, UnoDocs,unodocs")

    assert [operation["server"] for operation in operations(result)] == ["UnoDocs"]


def test_one_failure_of_two_is_no_failure_of_the_command(clients: Clients) -> None:
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoDocs": DOCS}})
    clients.write(".cursor/mcp.json", "{ broken")

    result = clients.install("cursor")

    assert actions(result) == {"UnoApp": "error", "UnoDocs": "skipped"}
    assert result.exit_code == 0


# --- definitions from outside ---


def test_an_external_profile_replaces_all_built_in_ones(clients: Clients, tmp_path: Path) -> None:
    file = "{workspace}/.mine.json"
    mine = {"configPaths": [file], "writeTarget": file, "jsonRootKey": "mcpServers"}
    path = tmp_path / "profiles.json"
    path.write_text(json.dumps({"mine": mine}))

    installed = clients.install("mine", "--release", "--ide-definitions", str(path))
    unknown = clients.install("cursor", "--ide-definitions", str(path))

    assert actions(installed) == {"UnoApp": "created", "UnoDocs": "created"}
    assert clients.read(".mine.json") == {"mcpServers": {"UnoApp": UVX, "UnoDocs": DOCS}}
    assert unknown.exit_code == 1, "the built-in ones do not count any more"


def test_external_servers_replace_the_built_in_ones_and_not_the_profiles(clients: Clients, tmp_path: Path) -> None:
    url = {"url": "https://example.org/{version}"}
    variants = {"stable": {"url": "https://example.org"}, "prerelease": url, "pinned": url}
    other = {"Other": {"transport": "http", "variants": variants, "detection": {"keyPatterns": ["^other$"]}}}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps(other))

    result = clients.install("vscode", "--release", "--server-definitions", str(path))

    assert actions(result) == {"Other": "created"}
    assert clients.read(".vscode/mcp.json") == {"servers": {"Other": {"type": "http", "url": "https://example.org"}}}


def test_servers_that_are_started_in_one_way_have_no_runners_to_name(clients: Clients) -> None:
    result = clients.text("install", "cursor", "--runner", "dnx", "--server-definitions", str(SEED_SERVERS))

    assert result.exit_code == 2
    assert "Unknown runner 'dnx'\n" in result.stderr
    assert "in one way only" in result.stderr


def test_the_specifications_own_files_work_as_they_are(clients: Clients) -> None:
    profiles = json.loads(SEED_PROFILES.read_text("utf-8"))

    for client, profile in profiles.items():
        if client == "unknown":
            continue  # the file is that of vscode, and has the servers by then
        result = clients.install(client, "--release", *AS_SPECIFIED)

        target = profile["writeTarget"].replace("{workspace}/", "").replace("{home}", "~")
        root = profile["jsonRootKey"]
        app, docs = ({"type": "stdio"}, {"type": "http"}) if root == "servers" else ({}, {})
        assert actions(result) == {"UnoApp": "created", "UnoDocs": "created"}, client
        assert clients.read(target) == {root: {"UnoApp": {**app, **DNX}, "UnoDocs": {**docs, **DOCS}}}, client


@pytest.mark.parametrize(
    ("option", "content", "words"),
    [
        ("--ide-definitions", "{", "line 1"),
        ("--ide-definitions", '{"x": {"configPaths": ["{workspace}/a", 5], "jsonRootKey": "b"}}', "x.configPaths[1]"),
        (
            "--server-definitions",
            '{"S": {"transport": "http", "variants": {"stable": {"url": "u"}}, "detection": {"keyPatterns": ["("]}}}',
            "S.detection.keyPatterns[0]",
        ),
    ],
)
def test_a_wrong_definitions_file_is_named_with_the_place_of_its_error(
    clients: Clients, tmp_path: Path, option: str, content: str, words: str
) -> None:
    path = tmp_path / "definitions.json"
    path.write_text(content)

    result = clients.text("status", option, str(path))

    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert words in result.stderr
