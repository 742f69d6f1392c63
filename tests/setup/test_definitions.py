"""The clients and servers that come with this package: where each client's files are, and what is ours in them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.systems import LINUX, MACOS, WINDOWS, machine
from uno_devserver.setup.definitions import CLIENTS, SERVERS, Definitions, load, packaged
from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.entry_match import matches
from uno_devserver.setup.profiles import HTTP, STDIO, TRANSPORTS, Dialect, Format, Place, Profile, Scope, Use
from uno_devserver.setup.server_definition import PINNED, PRERELEASE, STABLE

ROOT = Path(__file__).parent.parent.parent
ENDINGS = (".json", ".schema.json")
SEED_CLIENTS = [
    *("vscode", "cursor", "windsurf", "kiro", "trae", "antigravity", "rider", "claude-code", "opencode", "aider"),
    "unknown",
]
NEW_CLIENTS = [
    *("claude-desktop", "codex", "gemini-cli", "copilot-cli", "visual-studio", "junie", "jetbrains-air", "zed"),
    *("continue", "cline", "roo", "kilo", "amp", "goose", "warp", "qwen", "lm-studio", "crush", "droid", "amazon-q"),
    "kimi-code",
]
ROO = "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"
XDG, SUPPORT = "~/.config", "~/Library/Application Support"
APPDATA = (XDG, SUPPORT, "%APPDATA%")

# By client: where a new entry goes in the workspace, and for the user on Linux, macOS and Windows. "": nowhere.
TARGETS = {
    "vscode": (".vscode/mcp.json", *[f"{root}/Code/User/mcp.json" for root in APPDATA]),
    "cursor": (".cursor/mcp.json", *["~/.cursor/mcp.json"] * 3),
    "windsurf": (".devin/mcp_config.json", *[f"{XDG}/devin/mcp_config.json"] * 2, "%APPDATA%/devin/mcp_config.json"),
    "kiro": (".kiro/settings/mcp.json", *["~/.kiro/settings/mcp.json"] * 3),
    "trae": (".trae/mcp.json", *[f"{root}/Trae/User/mcp.json" for root in APPDATA]),
    "antigravity": (".agents/mcp_config.json", *["~/.gemini/config/mcp_config.json"] * 3),
    "rider": (".junie/mcp/mcp.json", *["~/.junie/mcp/mcp.json"] * 3),
    "claude-code": (".mcp.json", *["~/.claude.json"] * 3),
    "opencode": ("opencode.json", *[f"{XDG}/opencode/opencode.jsonc"] * 3),
    "aider": ("", "", "", ""),
    "claude-desktop": ("", *[f"{root}/Claude/claude_desktop_config.json" for root in APPDATA]),
    "codex": (".codex/config.toml", *["~/.codex/config.toml"] * 3),
    "gemini-cli": (".gemini/settings.json", *["~/.gemini/settings.json"] * 3),
    "copilot-cli": (".mcp.json", *["~/.copilot/mcp-config.json"] * 3),
    "visual-studio": (".vs/mcp.json", *["~/.mcp.json"] * 3),
    "junie": (".junie/mcp/mcp.json", *["~/.junie/mcp/mcp.json"] * 3),
    "jetbrains-air": (".air/mcp.json", "", "", ""),
    "zed": (".zed/settings.json", *[f"{XDG}/zed/settings.json"] * 2, "%APPDATA%/Zed/settings.json"),
    "continue": ("", *["~/.continue/config.yaml"] * 3),
    "cline": ("", *["~/.cline/data/settings/cline_mcp_settings.json"] * 3),
    "roo": (".roo/mcp.json", *[f"{root}/{ROO}" for root in APPDATA]),
    "kilo": ("kilo.json", *[f"{XDG}/kilo/kilo.json"] * 3),
    "amp": (".amp/settings.json", *[f"{XDG}/amp/settings.json"] * 3),
    "goose": ("", *[f"{XDG}/goose/config.yaml"] * 2, "%APPDATA%/Block/goose/config/config.yaml"),
    "warp": (".warp/.mcp.json", *["~/.warp/.mcp.json"] * 3),
    "qwen": (".qwen/settings.json", *["~/.qwen/settings.json"] * 3),
    "lm-studio": ("", *["~/.lmstudio/mcp.json"] * 3),
    "crush": (".crush.json", *[f"{XDG}/crush/crush.json"] * 2, "%LOCALAPPDATA%/crush/crush.json"),
    "droid": (".factory/mcp.json", *["~/.factory/mcp.json"] * 3),
    "amazon-q": (".amazonq/mcp.json", *["~/.aws/amazonq/mcp.json"] * 3),
    "kimi-code": (".kimi-code/mcp.json", *["~/.kimi-code/mcp.json"] * 3),
    "unknown": (".vscode/mcp.json", "", "", ""),
}


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return load(machine(LINUX))


def _profile(name: str, platform: str = LINUX, **variables: str) -> Profile:
    profile = load(machine(platform, **variables)).profile(name)
    assert profile is not None
    return profile


def _place(name: str, ending: str, platform: str = LINUX) -> Place:
    return next(place for place in _profile(name, platform).places if place.path.endswith(ending))


def test_all_clients_are_there_in_the_order_of_the_seed_then_new_ones_then_the_unknown(
    definitions: Definitions,
) -> None:
    assert [profile.id for profile in definitions.profiles] == [*SEED_CLIENTS[:-1], *NEW_CLIENTS, "unknown"]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("platform", [LINUX, MACOS, WINDOWS])
def test_a_new_entry_goes_where_the_client_looks_on_each_system(name: str, platform: str) -> None:
    workspace, *user = TARGETS[name]

    profile = _profile(name, platform)

    found = [next((place.path for place in profile.targets(scope)), "") for scope in Scope]
    wanted = [_real(platform, f"./{workspace}" if workspace else ""), _real(platform, user[_index(platform)])]
    assert found == wanted


def _index(platform: str) -> int:
    return (LINUX, MACOS, WINDOWS).index(platform)


def _real(platform: str, short: str) -> str:
    around = machine(platform)
    folders = {".": around.workspace, "~": around.home, "%APPDATA%": around.appdata}
    folders["%LOCALAPPDATA%"] = around.localappdata
    begin, _, rest = short.partition("/")
    path = f"{folders[begin]}/{rest}" if short else ""
    return path.replace("/", "\\") if platform == WINDOWS else path


@pytest.mark.parametrize("platform", [LINUX, MACOS, WINDOWS])
def test_every_path_is_absolute_and_that_of_its_system(platform: str) -> None:
    for profile in load(machine(platform)).profiles:
        for path in (*(place.path for place in profile.places), *profile.signs):
            assert "{" not in path
            if platform == WINDOWS:
                assert path[1:3] == ":\\"
                assert "/" not in path
            else:
                assert path.startswith("/")
                assert "\\" not in path


def test_the_default_scope_is_the_most_local_one_that_the_client_has_a_file_of_its_own_for(
    definitions: Definitions,
) -> None:
    by_user = {profile.id for profile in definitions.profiles if profile.default_scope is Scope.USER}

    assert by_user == {"claude-desktop", "copilot-cli", "continue", "cline", "goose", "lm-studio"}


def test_a_file_that_is_there_can_be_a_target_as_well(definitions: Definitions) -> None:
    windsurf = [place.path for place in _profile("windsurf").targets(Scope.USER)]
    opencode = [os.path.basename(place.path) for place in _profile("opencode").targets(Scope.WORKSPACE)]

    assert windsurf == ["/home/me/.config/devin/mcp_config.json", "/home/me/.codeium/windsurf/mcp_config.json"]
    assert opencode == ["opencode.json", "opencode.jsonc", "opencode.json", "opencode.jsonc"]


def test_a_shared_file_is_a_target_only_where_the_client_has_none_of_its_own() -> None:
    (copilot,) = _profile("copilot-cli").targets(Scope.WORKSPACE)
    (qwen,) = _profile("qwen").targets(Scope.WORKSPACE)

    assert (copilot.path, copilot.use) == ("/home/me/app/.mcp.json", Use.SHARED)
    assert qwen.use is Use.WRITE


def test_all_sixteen_paths_of_the_seed_are_looked_at(definitions: Definitions) -> None:
    seed = {
        "vscode": ["./.vscode/mcp.json", "~/.vscode/mcp.json", f"{XDG}/Code/User/mcp.json"],
        "cursor": ["./.cursor/mcp.json", "~/.cursor/mcp.json"],
        "windsurf": ["./.windsurf/mcp.json", "~/.codeium/windsurf/mcp_config.json"],
        "kiro": ["./.kiro/settings/mcp.json", "~/.kiro/settings/mcp.json"],
        "trae": ["./.trae/mcp.json"],
        "antigravity": ["~/.gemini/antigravity/mcp_config.json"],
        "rider": ["./.idea/mcpServers.json"],
        "claude-code": ["./.mcp.json", "~/.claude/mcp.json"],
        "opencode": ["./.opencode/mcp.json"],
        "aider": ["./.aider/mcp.json"],
        "unknown": ["./.vscode/mcp.json"],
    }
    for name, paths in seed.items():
        looked_at = {place.path for place in _profile(name).places}
        assert {_real(LINUX, path) for path in paths} <= looked_at


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("gemini-antigravity", "antigravity"),
        ("codex-cli", "codex"),
        ("junie-rider", "junie"),
        ("copilot-vscode", "vscode"),
        ("copilot-vs", "visual-studio"),
        ("Claude-Code", "claude-code"),
        ("CODEX-CLI", "codex"),
    ],
)
def test_a_client_is_found_by_the_net_tools_name_and_in_any_case(other: str, name: str) -> None:
    assert _profile(other).id == name


def test_no_name_means_two_clients(definitions: Definitions) -> None:
    names = [name.lower() for profile in definitions.profiles for name in (profile.id, *profile.aliases)]

    assert len(names) == len(set(names))
    assert definitions.profile("emacs") is None


@pytest.mark.parametrize(
    ("name", "variable", "ending"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("continue", "CONTINUE_GLOBAL_DIR", "config.yaml"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("kimi-code", "KIMI_CODE_HOME", "mcp.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.jsonc"),
    ],
)
def test_a_variable_moves_the_users_file(name: str, variable: str, ending: str) -> None:
    profile = _profile(name, **{variable: "/moved"})

    assert profile.targets(Scope.USER)[0].path == f"/moved/{ending}"


def test_claude_codes_entries_for_one_folder_come_first_and_are_of_the_workspace() -> None:
    local, project, user, _ = _profile("claude-code").places

    assert local.root == ("projects", "/home/me/app", "mcpServers")
    assert (local.scope, local.use, local.path) == (Scope.WORKSPACE, Use.READ, user.path)
    assert (project.use, user.use) == (Use.WRITE, Use.WRITE)


def test_claude_codes_folders_have_slashes_on_windows_too() -> None:
    assert _profile("claude-code", WINDOWS).places[0].root == ("projects", "D:/app", "mcpServers")


def test_a_file_that_is_twice_a_place_is_one_and_the_users() -> None:
    at_home = load(machine(LINUX, "/home/me")).profile("cursor")

    assert at_home is not None
    assert [(place.path, place.scope) for place in at_home.places] == [("/home/me/.cursor/mcp.json", Scope.USER)]
    assert at_home.places[0].within is None, "it may be a link, as all files of the user"
    assert at_home.places[0] is at_home.preferred


@pytest.mark.parametrize("platform", [LINUX, MACOS, WINDOWS])
def test_paths_that_depend_on_the_workspace_must_stay_in_it_and_others_need_not(platform: str) -> None:
    here = machine(platform)
    for profile in load(here).profiles:
        for place in profile.places:
            inside = place.path.startswith(here.workspace)
            assert place.within == (here.workspace if inside else None), place.path
    assert all(place.within for place in _profile("codex", CODEX_HOME="relative").places)


def test_the_entrys_form_is_that_of_each_client() -> None:
    def types(name: str, ending: str) -> dict[str, str]:
        return dict(_place(name, ending).dialect.types)

    assert types("vscode", ".vscode/mcp.json") == {STDIO: "stdio", HTTP: "http"}
    assert types("claude-code", ".mcp.json") == {HTTP: "http"}
    assert types("droid", ".factory/mcp.json") == {HTTP: "http"}
    assert types("cline", "cline_mcp_settings.json") == {HTTP: "streamableHttp"}
    assert types("roo", ".roo/mcp.json") == {HTTP: "streamable-http"}
    assert types("goose", "config.yaml") == {STDIO: "stdio", HTTP: "streamable_http"}
    assert types("crush", ".crush.json") == {STDIO: "stdio", HTTP: "http"}
    for name in ("cursor", "windsurf", "antigravity", "junie", "kiro", "gemini-cli", "amp", "zed", "codex"):
        assert [place.dialect.types for place in _profile(name).places] == [{}] * len(_profile(name).places)


def test_addresses_have_each_clients_key() -> None:
    keys = {profile.id: profile.places[0].dialect.url_key for profile in load(machine(LINUX)).profiles}

    assert {name: key for name, key in keys.items() if key != "url"} == {
        "antigravity": "serverUrl",
        "gemini-cli": "httpUrl",
        "goose": "uri",
        "qwen": "httpUrl",
    }
    assert _place("windsurf", ".codeium/windsurf/mcp_config.json").dialect.url_key == "serverUrl"
    assert _place("qwen", "/app/.mcp.json").dialect.url_key == "url", "it is Claude Code's format there"


@pytest.mark.parametrize("name", ["opencode", "kilo"])
def test_opencode_and_its_kin_take_one_array_and_their_own_names(name: str) -> None:
    dialect = _profile(name).places[0].dialect

    assert (dialect.one_array, dialect.env_key) == (True, "environment")
    assert dialect.types == {STDIO: "local", HTTP: "remote"}
    assert dialect.extra == {STDIO: {"enabled": True}, HTTP: {"enabled": True}}


def test_gemini_gets_no_key_that_it_would_warn_about() -> None:
    assert {(place.dialect.extra == {}, place.dialect.types == {}) for place in _profile("gemini-cli").places} == {
        (True, True)
    }


def test_continue_takes_a_list_in_a_file_that_says_what_it_is() -> None:
    (place,) = _profile("continue").places

    assert (place.format, place.dialect.name_key) == (Format.YAML, "name")
    assert {"name", "version"} <= {line.split(":")[0] for line in place.new_text.splitlines()}


def test_readers_that_are_known_to_be_strict_are_marked() -> None:
    strict = {profile.id for profile in load(machine(LINUX)).profiles if profile.places[0].format is Format.JSON}

    assert strict == {"claude-code", "antigravity", "copilot-cli"}
    assert _place("copilot-cli", "mcp-config.json").format is Format.JSONC, "only its project file is"


def test_clients_that_can_be_asked_are_asked_with_their_own_words(definitions: Definitions) -> None:
    asked = {
        profile.id: f"{profile.cli.executable} {' '.join(profile.cli.list)}"
        for profile in definitions.profiles
        if profile.cli is not None and profile.cli.list
    }

    assert asked == {
        "claude-code": "claude mcp list",
        "codex": "codex mcp list --json",
        "gemini-cli": "gemini mcp list",
        "opencode": "opencode mcp list",
        "copilot-cli": "copilot mcp list --json",
        "qwen": "qwen mcp list",
        "droid": "droid mcp list",
        "kilo": "kilo mcp list",
    }


def test_only_aider_has_no_client_and_only_the_unknown_one_is_not_looked_for(definitions: Definitions) -> None:
    assert [profile.id for profile in definitions.profiles if profile.no_client] == ["aider"]
    assert [profile.id for profile in definitions.profiles if profile.hidden] == ["unknown"]
    assert [profile.id for profile in definitions.profiles if profile.transports != TRANSPORTS] == ["claude-desktop"]


def test_every_client_says_how_and_when_that_was_found_out(definitions: Definitions) -> None:
    data = packaged(f"{CLIENTS}.json")
    for profile in definitions.profiles:
        assert profile.name
        assert re.match(r"(RUN|SRC|DOC|2nd)\b", data[profile.id]["evidence"]), profile.id
        assert data[profile.id]["checked"] == "2026-11"
        assert all(gate.text.endswith(".") and gate.scopes for gate in profile.gates)


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        *((name, Scope.WORKSPACE) for name in ("claude-code", "codex", "copilot-cli", "qwen", "amp", "trae")),
        *((name, scope) for name in ("gemini-cli", "vscode", "visual-studio", "cursor") for scope in Scope),
    ],
)
def test_a_client_that_waits_for_the_user_says_what_to_do(name: str, scope: Scope) -> None:
    assert [gate for gate in _profile(name).gates if scope in gate.scopes]


COMMANDS = [
    "uvx uno-devserver --mcp-app",
    "uvx --prerelease allow uno-devserver --mcp-app",
    "uvx uno-devserver@1.2.3 --mcp-app",
    "uvx --prerelease allow --from uno-devserver==1.2.* uno-devserver --mcp-app",
    "uvx --from uno-devserver uno-devserver --mcp-app --port 5000",
    "/home/me/.local/bin/uno-devserver --mcp-app",
    "'C:\\Users\\me\\.local\\bin\\uno-devserver.exe' --mcp-app",
    "'C:\\Program Files\\uno\\UNO.DEVSERVER.EXE' --mcp-app",
    "python -m uno_devserver --mcp-app",
    "/usr/bin/python3 -P -m uno_devserver --mcp-app",
    "uno.devserver --mcp-app",
    "uno.devserver mcp start",
    "uno-devserver mcp serve --solution-dir x",
    "dnx -y uno.devserver --mcp-app",
    "dnx -y --prerelease uno.devserver --mcp-app",
    "dnx -y --version 5.6.0-dev.42 uno.devserver --mcp-app",
    "dnx -y uno.devserver@6.0.0 --mcp-app",
    "dotnet dnx -y uno.devserver --mcp-app",
    "cmd /c uvx uno-devserver --mcp-app",
    "cmd /d /s /c 'uvx uno-devserver --mcp-app'",
    "uv --directory /src run uno-devserver --mcp-app",
    "uv tool run --python 3.12 uno-devserver[sdk]>=1 --mcp-app",
    "uv run -m uno_devserver --mcp-app",
    "pipx run --spec uno-devserver==1 uno-devserver --mcp-app",
    "dotnet tool run uno.devserver --mcp-app",
    "dotnet exec /opt/uno.devserver.dll --mcp-app",
    "env -u HOME A=b uvx uno-devserver --mcp-app",
    "bash -lc 'cd /src && A=b exec uvx uno-devserver --mcp-app'",
    "python3.12 /opt/bin/uno-devserver --mcp-app",
    "uvx --from uno-devserver==1.2 -- uno-devserver --mcp-app --wait-calls -l Debug",
]
OTHERS = [
    "uvx uno-devserver list",
    "uno-devserver mcp status",
    "node server.js --mcp-app",
    "npx not-uno-devserver-at-all --mcp-app",
    "uvx juno-devserver --mcp-app",
    "npx @x/uno-devserver-tools --mcp-app",
    "uno-devserver --mcp-apps",
    # A proxy in front of somebody else's server is theirs.
    "uno-devserver mcp start -- npx one",
    "uvx uno-devserver --mcp-app -- npx x",
    "uvx uno-devserver --mcp-app --wait-calls --upstream-url http://x/mcp",
    "uno-devserver --upstream-url=http://x/mcp --mcp-app",
]


def _is_ours(definitions: Definitions, *words: str) -> bool:
    entry = ServerEntry("renamed", {"command": words[0], "args": list(words[1:])})
    return bool(matches((entry,), definitions.servers, Dialect()))


def test_every_way_to_start_the_server_is_recognised_and_no_other_program(definitions: Definitions) -> None:
    assert [line for line in COMMANDS if not _is_ours(definitions, *shlex.split(line))] == []
    assert [line for line in OTHERS if _is_ours(definitions, *shlex.split(line))] == []


@pytest.mark.parametrize(
    "words",
    [
        ("npx", "-y", "git-server", "--repo", "/home/me/src/uno-devserver", "mcp", "serve"),
        ("node", "prompts.js", "--text", "How is uno-devserver registered with --mcp-app ?"),
        ("uvx", "--verbose", "notes", "--folder", "/src/uno-devserver", "--mcp-app"),
        ("uvx", "--with", "uno-devserver", "notes", "--mcp-app"),
        ("uv", "--directory", "/src/uno-devserver", "run", "notes", "--mcp-app"),
        ("python", "-m", "notes", "uno_devserver", "--mcp-app"),
        ("sh", "-c", "echo 'exec uno-devserver --mcp-app'"),
        ("sh", "-c", "cat uno-devserver '"),
        ("docker", "run", "-v", "/src/uno-devserver:/src", "notes", "--mcp-app"),
    ],
)
def test_our_name_in_the_arguments_of_another_program_does_not_make_it_ours(
    definitions: Definitions, words: tuple[str, ...]
) -> None:
    assert not _is_ours(definitions, *words)


@pytest.mark.parametrize("folder", ["/home/me/my -- app", "/home/me/x --upstream-url y", "/src/uno devserver"])
def test_no_name_of_a_folder_hides_our_entry(definitions: Definitions, folder: str) -> None:
    assert _is_ours(definitions, f"{folder}/bin/uno-devserver", "--mcp-app", "--solution-dir", folder)


def test_what_we_write_is_recognised(definitions: Definitions) -> None:
    app, docs = definitions.servers
    for variants in (app.variants, *app.runners.values()):
        for definition in variants.values():
            words = (
                word.replace("{version}", "6.0.0").replace("{minor}", "6.0").replace("{program}", "/opt/uno-devserver")
                for word in (definition.command, *definition.args)
            )
            assert _is_ours(definitions, *words), definition
    assert re.search(docs.detection.urls[0], docs.variants[STABLE].url)


@pytest.mark.parametrize(
    ("url", "strong", "weak"),
    [
        ("http://localhost:5000/uno.devserver/mcp", True, False),
        ("http://127.0.0.1:5000/uno-devserver/mcp", True, False),
        ("http://localhost:5000/mcp", False, True),
        ("http://[::1]:5000/mcp", False, True),
        ("https://example.com:5000/mcp", False, False),
        ("http://localhost:5000/other", False, False),
        ("http://localhost.evil.example/uno-devserver/mcp", False, False),
        ("http://evil.example/localhost:5000/mcp", False, False),
    ],
)
def test_a_local_address_is_ours_for_certain_only_where_it_says_so(url: str, strong: bool, weak: bool) -> None:
    detection = load(machine(LINUX)).servers[0].detection

    assert any(re.search(one, url, re.IGNORECASE) for one in detection.urls) is strong
    assert any(re.search(one, url, re.IGNORECASE) for one in detection.weak_urls) is weak


@pytest.mark.parametrize(
    ("name", "says_uno"),
    [
        *((name, True) for name in ("uno", "Uno", "uno-devserver", "UnoApp2", "uno_app", "my uno app", "Uno Platform")),
        *(
            (name, False)
            for name in ("juno", "unoconv", "numero-uno-db", "puno", "juno-app", "uno-cards", "figma", "my-unoapps")
        ),
    ],
)
def test_a_name_says_uno_by_that_word_and_not_by_its_letters(name: str, says_uno: bool) -> None:
    patterns = load(machine(LINUX)).servers[0].detection.weak_keys

    assert any(re.search(one, name, re.IGNORECASE) for one in patterns) is says_uno


def test_the_app_server_has_three_runners_with_all_variants(definitions: Definitions) -> None:
    app, docs = definitions.servers

    assert (app.name, app.transport, app.runner, list(app.runners)) == ("UnoApp", STDIO, "uvx", ["dnx", "path"])
    assert {tuple(one) for one in (app.variants, *app.runners.values())} == {(STABLE, PRERELEASE, PINNED)}
    assert (docs.name, docs.transport, docs.runner, dict(docs.runners)) == ("UnoDocs", HTTP, "", {})


def test_the_definitions_are_in_the_package_that_users_install() -> None:
    files = [f"src/uno_devserver/setup/{kind}{ending}" for kind in (CLIENTS, SERVERS) for ending in ENDINGS]

    # The wheel has all of the package but what git ignores.
    ignored = subprocess.run(["git", "check-ignore", "--no-index", *files], cwd=ROOT, capture_output=True, text=True)

    assert all((ROOT / file).is_file() for file in files)
    assert ignored.stdout == ""


def test_loading_needs_no_module_that_costs_time() -> None:
    code = (
        "import sys; from uno_devserver.setup.paths import here; from uno_devserver.setup.definitions import load;"
        "load(here('/w')); print(*sys.modules)"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    costly = {"typing", "dataclasses", "inspect", "subprocess", "threading", "tomllib", "yaml", "asyncio", "difflib"}
    assert costly & set(loaded) == set()
    assert not [name for name in loaded if name.startswith("uno_devserver.setup.") and "definitions_file" in name]
