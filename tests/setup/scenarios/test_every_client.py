"""Each client, in each scope: the entry is what that client reads, where it reads it, and goes without a trace.

The table is written down from what the clients were seen or are documented to read, and not taken from the profiles.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from support.registration import DNX, DOCS, DOCS_URL, UVX, Clients, actions, includes, of_client, operations

PROFILES = json.loads((Path(__file__).parents[3] / "src/uno_devserver/setup/client-profiles.json").read_text("utf-8"))
IDS = [name for name in PROFILES if not name.startswith("$")]
# The identifiers that were promised: the specification's, and those that the product adds to them.
PROMISED = {
    *("vscode", "cursor", "windsurf", "kiro", "trae", "antigravity", "rider", "claude-code", "opencode", "aider"),
    *("unknown", "claude-desktop", "codex", "gemini-cli", "copilot-cli", "visual-studio", "junie", "jetbrains-air"),
    *("zed", "continue", "cline", "roo", "kilo", "amp", "goose", "warp", "qwen", "lm-studio", "crush", "droid"),
    *("amazon-q", "kimi-code"),
}
JSON_FILE: Callable[[bytes], Any] = json.loads
COMMAND = [UVX["command"], *UVX["args"]]
STDIO = {"type": "stdio", **UVX}
TYPED = {"type": "http", "url": DOCS_URL}
LOCAL = {"type": "local", "command": COMMAND}
REMOTE = {"type": "remote", "url": DOCS_URL}


def _toml(data: bytes) -> Any:
    return tomllib.loads(data.decode("utf-8"))


FOLDER = {**UVX}  # and the folder, because the client opens none


class Expected(NamedTuple):
    """What stands in which file after `mcp install --release`."""

    client: str
    scope: str
    path: str
    root: str
    app: Mapping[str, Any]
    docs: Mapping[str, Any] | None  # None: the client cannot have it in its file
    read: Callable[[bytes], Any] = JSON_FILE


def _goose(transport: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"name": name, "enabled": True, **transport}


EXPECTED = [
    Expected("vscode", "workspace", ".vscode/mcp.json", "servers", STDIO, TYPED),
    Expected("vscode", "user", "~/.config/Code/User/mcp.json", "servers", STDIO, TYPED),
    Expected("cursor", "workspace", ".cursor/mcp.json", "mcpServers", UVX, DOCS),
    Expected("cursor", "user", "~/.cursor/mcp.json", "mcpServers", UVX, DOCS),
    Expected("kiro", "workspace", ".kiro/settings/mcp.json", "mcpServers", UVX, DOCS),
    Expected("kiro", "user", "~/.kiro/settings/mcp.json", "mcpServers", UVX, DOCS),
    Expected("trae", "workspace", ".trae/mcp.json", "mcpServers", UVX, DOCS),
    Expected("trae", "user", "~/.config/Trae/User/mcp.json", "mcpServers", UVX, DOCS),
    Expected("windsurf", "workspace", ".devin/mcp_config.json", "mcpServers", UVX, DOCS),
    Expected("windsurf", "user", "~/.config/devin/mcp_config.json", "mcpServers", UVX, DOCS),
    Expected("rider", "workspace", ".junie/mcp/mcp.json", "mcpServers", UVX, DOCS),
    Expected("rider", "user", "~/.junie/mcp/mcp.json", "mcpServers", UVX, DOCS),
    Expected("antigravity", "workspace", ".agents/mcp_config.json", "mcpServers", UVX, {"serverUrl": DOCS_URL}),
    Expected("antigravity", "user", "~/.gemini/config/mcp_config.json", "mcpServers", UVX, {"serverUrl": DOCS_URL}),
    Expected("junie", "workspace", ".junie/mcp/mcp.json", "mcpServers", UVX, DOCS),
    Expected("junie", "user", "~/.junie/mcp/mcp.json", "mcpServers", UVX, DOCS),
    Expected("claude-code", "workspace", ".mcp.json", "mcpServers", UVX, TYPED),
    Expected("claude-code", "user", "~/.claude.json", "mcpServers", UVX, TYPED),
    Expected("claude-desktop", "user", "~/.config/Claude/claude_desktop_config.json", "mcpServers", FOLDER, None),
    Expected("opencode", "workspace", "opencode.json", "mcp", LOCAL, REMOTE),
    Expected("opencode", "user", "~/.config/opencode/opencode.jsonc", "mcp", LOCAL, REMOTE),
    Expected("codex", "workspace", ".codex/config.toml", "mcp_servers", UVX, DOCS, _toml),
    Expected("codex", "user", "~/.codex/config.toml", "mcp_servers", UVX, DOCS, _toml),
    Expected("gemini-cli", "workspace", ".gemini/settings.json", "mcpServers", UVX, {"httpUrl": DOCS_URL}),
    Expected("gemini-cli", "user", "~/.gemini/settings.json", "mcpServers", UVX, {"httpUrl": DOCS_URL}),
    Expected("copilot-cli", "user", "~/.copilot/mcp-config.json", "mcpServers", UVX, TYPED),
    Expected("visual-studio", "workspace", ".vs/mcp.json", "servers", STDIO, TYPED),
    Expected("visual-studio", "user", "~/.mcp.json", "servers", STDIO, TYPED),
    Expected("jetbrains-air", "workspace", ".air/mcp.json", "mcpServers", UVX, DOCS),
    Expected("zed", "workspace", ".zed/settings.json", "context_servers", UVX, DOCS),
    Expected("zed", "user", "~/.config/zed/settings.json", "context_servers", UVX, DOCS),
    Expected(
        "cline",
        "user",
        "~/.cline/data/settings/cline_mcp_settings.json",
        "mcpServers",
        UVX,
        {"type": "streamableHttp", "url": DOCS_URL},
    ),
    Expected("roo", "workspace", ".roo/mcp.json", "mcpServers", UVX, {"type": "streamable-http", "url": DOCS_URL}),
    Expected(
        "roo",
        "user",
        "~/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "mcpServers",
        UVX,
        {"type": "streamable-http", "url": DOCS_URL},
    ),
    Expected("kilo", "workspace", "kilo.json", "mcp", LOCAL, REMOTE),
    Expected("kilo", "user", "~/.config/kilo/kilo.json", "mcp", LOCAL, REMOTE),
    Expected("amp", "workspace", ".amp/settings.json", "amp.mcpServers", UVX, DOCS),
    Expected("amp", "user", "~/.config/amp/settings.json", "amp.mcpServers", UVX, DOCS),
    Expected(
        "goose",
        "user",
        "~/.config/goose/config.yaml",
        "extensions",
        _goose({"type": "stdio", "cmd": UVX["command"], "args": UVX["args"]}, "UnoApp"),
        _goose({"type": "streamable_http", "uri": DOCS_URL}, "UnoDocs"),
        yaml.safe_load,
    ),
    Expected(
        "continue",
        "user",
        "~/.continue/config.yaml",
        "mcpServers",
        {"name": "UnoApp", **UVX},
        {"name": "UnoDocs", "type": "streamable-http", "url": DOCS_URL},
        yaml.safe_load,
    ),
    Expected("warp", "workspace", ".warp/.mcp.json", "mcpServers", UVX, DOCS),
    Expected("warp", "user", "~/.warp/.mcp.json", "mcpServers", UVX, DOCS),
    Expected("qwen", "workspace", ".qwen/settings.json", "mcpServers", UVX, {"httpUrl": DOCS_URL}),
    Expected("qwen", "user", "~/.qwen/settings.json", "mcpServers", UVX, {"httpUrl": DOCS_URL}),
    Expected("lm-studio", "user", "~/.lmstudio/mcp.json", "mcpServers", FOLDER, DOCS),
    Expected("crush", "workspace", ".crush.json", "mcp", STDIO, TYPED),
    Expected("crush", "user", "~/.config/crush/crush.json", "mcp", STDIO, TYPED),
    Expected("droid", "workspace", ".factory/mcp.json", "mcpServers", UVX, TYPED),
    Expected("droid", "user", "~/.factory/mcp.json", "mcpServers", UVX, TYPED),
    Expected("amazon-q", "workspace", ".amazonq/mcp.json", "mcpServers", UVX, TYPED),
    Expected("amazon-q", "user", "~/.aws/amazonq/mcp.json", "mcpServers", UVX, TYPED),
    Expected("kimi-code", "workspace", ".kimi-code/mcp.json", "mcpServers", UVX, DOCS),
    Expected("kimi-code", "user", "~/.kimi-code/mcp.json", "mcpServers", UVX, DOCS),
    Expected("unknown", "workspace", ".vscode/mcp.json", "servers", STDIO, TYPED),
]


def test_every_promised_client_has_a_profile() -> None:
    assert set(IDS) >= PROMISED


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda one: f"{one.client}-{one.scope}")
def test_the_entry_is_what_the_client_reads_and_goes_without_a_trace(clients: Clients, expected: Expected) -> None:
    before = clients.tree()

    installed = clients.install(expected.client, "--scope", expected.scope, "--release")
    written = expected.read(clients.bytes(expected.path))[expected.root]
    status = clients.status(expected.client, "--release")
    uninstalled = clients.uninstall(expected.client)

    entries = {one["name"]: one for one in written} if isinstance(written, list) else written
    servers = ["UnoApp"] if expected.docs is None else ["UnoApp", "UnoDocs"]
    assert list(entries) == servers
    app = {**expected.app, "args": [*UVX["args"], "--solution-dir", str(clients.workspace)]}
    assert includes(entries["UnoApp"], app if expected.app is FOLDER else dict(expected.app))
    assert not {"url", "httpUrl", "serverUrl", "uri"} & set(entries["UnoApp"])
    if expected.docs is not None:
        assert includes(entries["UnoDocs"], dict(expected.docs))
        assert len({"url", "httpUrl", "serverUrl", "uri"} & set(entries["UnoDocs"])) == 1
        assert not {"command", "args", "cmd"} & set(entries["UnoDocs"])
    for server in servers:
        said = of_client(status, server, expected.client)
        assert said["status"] == "registered"
        assert said["locations"][0]["path"] == str(clients.at(expected.path))
        assert said["locations"][0]["scope"] == expected.scope
    by_server = {one["server"]: one for one in operations(installed) if one["action"] == "created"}
    assert [one["path"] for one in by_server.values()] == [str(clients.at(expected.path))] * len(servers)
    assert {one["action"] for one in operations(uninstalled) if one["server"] in servers} == {"removed"}
    assert clients.tree() == before


@pytest.mark.parametrize("client", [name for name in IDS if name != "aider"])
def test_without_a_scope_a_client_gets_its_usual_one_and_says_what_is_left_to_do(clients: Clients, client: str) -> None:
    before = clients.tree()

    installed = clients.install(client)
    again = clients.install(client)
    status = of_client(clients.status(client), "UnoApp", client)
    clients.uninstall(client)

    assert installed.exit_code == 0
    assert operations(installed)[0]["action"] == "created"
    assert isinstance(installed.json["nextSteps"], list)
    assert operations(again)[0]["action"] == "skipped"
    assert status["status"] == "registered"
    assert clients.tree() == before


def test_aider_says_that_it_has_no_mcp_client_and_its_old_file_is_cleaned(clients: Clients) -> None:
    installed = clients.install("aider")
    nothing = not clients.at(".aider").exists()
    clients.write(".aider/mcp.json", {"mcpServers": {"UnoApp": DNX, "mine": {}}})
    uninstalled = clients.uninstall("aider", "--servers", "UnoApp")

    assert installed.exit_code == 1
    assert actions(installed) == {"UnoApp": "error", "UnoDocs": "error"}
    assert "no MCP client" in operations(installed)[0]["reason"]
    assert nothing, "no dead file is written"
    assert actions(uninstalled) == {"UnoApp": "removed"}
    assert clients.read(".aider/mcp.json") == {"mcpServers": {"mine": {}}}


# --- files that clients read no more ---


@pytest.mark.parametrize(
    ("client", "path", "root"),
    [
        ("vscode", "~/.vscode/mcp.json", "servers"),
        ("windsurf", ".windsurf/mcp.json", "mcpServers"),
        ("antigravity", "~/.gemini/antigravity/mcp_config.json", "mcpServers"),
        ("rider", ".idea/mcpServers.json", "mcpServers"),
        ("claude-code", "~/.claude/mcp.json", "mcpServers"),
        ("opencode", ".opencode/mcp.json", "mcpServers"),
        ("aider", ".aider/mcp.json", "mcpServers"),
    ],
)
def test_an_entry_where_no_client_looks_is_reported_and_cleaned(
    clients: Clients, client: str, path: str, root: str
) -> None:
    file = clients.write(path, {root: {"UnoApp": DNX, "mine": {"command": "x"}}})

    said = of_client(clients.status(client, "--release"), "UnoApp", client)
    uninstalled = clients.uninstall(client, "--servers", "UnoApp")

    assert said["status"] == "outdated"
    assert [(one["path"], one["legacy"]) for one in said["locations"]] == [(str(file), True)]
    assert said["warnings"], "it says where the client looks now"
    assert [(one["action"], one["path"]) for one in operations(uninstalled)] == [("removed", str(file))]
    assert clients.read(path) == {root: {"mine": {"command": "x"}}}


def test_install_writes_where_the_client_looks_although_an_old_file_has_the_servers(clients: Clients) -> None:
    clients.write("~/.claude/mcp.json", {"mcpServers": {"UnoApp": UVX, "UnoDocs": TYPED}})
    before = clients.bytes("~/.claude/mcp.json")

    result = clients.install("claude-code", "--release")

    assert {one["path"] for one in operations(result)} == {f"{clients.workspace}/.mcp.json"}
    assert clients.read(".mcp.json") == {"mcpServers": {"UnoApp": UVX, "UnoDocs": TYPED}}
    assert clients.bytes("~/.claude/mcp.json") == before


# --- files of which one is there ---


@pytest.mark.parametrize(
    ("client", "scope", "path", "root", "docs"),
    [
        # An older build reads only this file, and calls the address otherwise.
        ("windsurf", "user", "~/.codeium/windsurf/mcp_config.json", "mcpServers", {"serverUrl": DOCS_URL}),
        ("opencode", "workspace", "opencode.jsonc", "mcp", REMOTE),
        ("opencode", "workspace", ".opencode/opencode.json", "mcp", REMOTE),
        ("opencode", "user", "~/.config/opencode/opencode.json", "mcp", REMOTE),
        ("kilo", "workspace", ".kilo/kilo.jsonc", "mcp", REMOTE),
        ("crush", "workspace", "crush.json", "mcp", TYPED),
        ("amp", "user", "~/.config/amp/settings.jsonc", "amp.mcpServers", DOCS),
        (
            "cline",
            "user",
            "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "mcpServers",
            {"type": "streamableHttp", "url": DOCS_URL},
        ),
    ],
)
def test_a_file_that_is_there_is_taken_before_one_that_is_not(
    clients: Clients, client: str, scope: str, path: str, root: str, docs: dict[str, Any]
) -> None:
    clients.write(path, {root: {}})

    result = clients.install(client, "--scope", scope, "--servers", "UnoDocs")

    assert [one["path"] for one in operations(result)] == [str(clients.at(path))]
    assert includes(clients.read(path)[root]["UnoDocs"], docs)


def test_the_users_own_entry_for_this_workspace_in_claude_code_is_seen_and_removed(clients: Clients) -> None:
    """`claude mcp add` without a scope writes there."""
    project = {str(clients.workspace): {"mcpServers": {"UnoApp": UVX}, "history": [1]}, "/other": {"mcpServers": {}}}
    clients.write("~/.claude.json", {"numStartups": 5, "projects": project})

    installed = clients.install("claude-code", "--release", "--servers", "UnoApp")
    removed = clients.uninstall("claude-code", "--servers", "UnoApp")

    assert [(one["action"], one["path"]) for one in operations(installed)] == [
        ("skipped", str(clients.at("~/.claude.json")))
    ]
    assert [one["action"] for one in operations(removed)] == ["removed"]
    assert clients.read("~/.claude.json")["projects"][str(clients.workspace)] == {"mcpServers": {}, "history": [1]}


# --- files that several clients read ---


def test_a_shared_file_is_found_by_all_and_cleaned_only_by_its_own_client(clients: Clients) -> None:
    clients.install("claude-code", "--release")
    before = clients.bytes(".mcp.json")

    others = ["vscode", "copilot-cli", "qwen", "jetbrains-air"]
    found = {one: of_client(clients.status(one, "--release"), "UnoApp", one) for one in others}
    kept = clients.uninstall("qwen", "--servers", "UnoApp")
    still = clients.bytes(".mcp.json")
    gone = clients.uninstall("qwen", "--servers", "UnoApp", "--all-scopes")

    for one in others:
        assert found[one]["status"] == "registered", one
        assert found[one]["locations"][0]["path"] == f"{clients.workspace}/.mcp.json", one
    assert still == before
    assert ".mcp.json" in json.dumps(kept.json), "it is said where the server is still reachable"
    assert [one["action"] for one in operations(gone)] == ["removed"]
    assert "claude-code" in operations(gone)[0]["note"].lower().replace(" ", "-")
    assert list(clients.read(".mcp.json")["mcpServers"]) == ["UnoDocs"]


def test_taking_servers_out_of_a_shared_file_says_who_loses_them(clients: Clients) -> None:
    clients.install("claude-code")

    result = clients.uninstall("claude-code")

    assert {one["action"] for one in operations(result)} == {"removed"}
    assert "copilot" in operations(result)[0]["note"].lower()


def test_a_user_file_says_that_other_workspaces_lose_the_server(clients: Clients) -> None:
    clients.install("cursor", "--scope", "user")

    result = clients.uninstall("cursor", "--scope", "user")

    assert "other workspaces" in operations(result)[0]["note"]


# --- all at once ---


def test_all_detected_clients_are_registered_and_cleaned_at_once(clients: Clients) -> None:
    for folder in (".cursor", ".kiro/settings", "~/.codex", "~/.continue"):
        clients.at(folder).mkdir(parents=True)
    before = clients.tree()

    installed = clients.install("--all-ides", "--release")
    status = clients.status("--release")
    uninstalled = clients.uninstall("--all-ides")

    assert {one["ide"] for one in operations(installed)} == {"cursor", "kiro", "codex", "continue"}
    assert {one["action"] for one in operations(installed)} == {"created"}
    for client in ("cursor", "kiro", "codex", "continue"):
        assert of_client(status, "UnoApp", client)["status"] == "registered"
    assert {one["action"] for one in operations(uninstalled)} == {"removed"}
    assert clients.tree() == before


# --- folders that the environment moves ---


@pytest.mark.parametrize(
    ("client", "variable", "file", "usual"),
    [
        ("codex", "CODEX_HOME", "config.toml", "~/.codex"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json", "~/.claude.json"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json", "~/.copilot"),
    ],
)
def test_the_clients_own_variable_moves_its_file(
    clients: Clients, client: str, variable: str, file: str, usual: str
) -> None:
    folder = clients.machine.root / "moved"
    before = clients.tree()

    installed = clients.install(client, "--scope", "user", env={variable: str(folder)})
    status = of_client(clients.status(client, env={variable: str(folder)}), "UnoApp", client)
    elsewhere = clients.at(usual).exists()
    uninstalled = clients.uninstall(client, env={variable: str(folder)})

    assert {one["path"] for one in operations(installed)} == {str(folder / file)}
    assert status["status"] == "registered"
    assert not elsewhere
    assert {one["action"] for one in operations(uninstalled)} == {"removed"}
    assert clients.tree() == before
    assert not folder.exists()


# --- restore ---


def test_restore_puts_back_what_was_there_before_the_first_change(clients: Clients) -> None:
    text = (
        '{\n  // mine\n  "mcpServers": {"UnoApp": {"command": "dnx", "args": ["-y", "uno.devserver", "--mcp-app"]}}\n}'
    )
    clients.write(".cursor/mcp.json", text)
    before = clients.tree()
    clients.install("cursor", "--prerelease")
    clients.install("cursor", "--version", "1.2.3")
    clients.uninstall("cursor", "--servers", "UnoDocs")

    result = clients.mcp("restore", "cursor")

    assert result.exit_code == 0
    assert [one["action"] for one in operations(result)] == ["restored"]
    assert clients.tree() == before


def test_restore_without_anything_to_restore_says_so(clients: Clients) -> None:
    result = clients.mcp("restore", "cursor")

    assert result.exit_code == 1
    assert {one["action"] for one in operations(result)} == {"not_found"}
