"""Servers of any project, registered under names of their own: several in one repository, told apart by every command.

What was registered is started, too: an entry serves the folder that it was made for, wherever its client starts it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.dotnet import write_program
from support.machine import RUN_SECONDS, WINDOWS, Result
from support.registration import BY_PATH, WRITTEN, Clients, actions, of_client, operations, server_in
from uno_devserver.system.command_lines import quoted_word

DESKTOP = f"~/{'AppData/Roaming' if WINDOWS else '.config'}/Claude/claude_desktop_config.json"
PATH = ("--runner", "path")


@pytest.fixture
def repository(clients: Clients) -> tuple[Path, Path]:
    """A repository with two servers."""
    (clients.workspace / ".git").mkdir()
    return tuple(server_in(clients.workspace / "servers" / name, name) for name in ("weather", "news"))  # type: ignore[return-value]


def served_tools(clients: Clients, entry: dict[str, Any], cwd: Path) -> list[str]:
    """The tools behind an entry, started as a client starts it, in a folder of the client's choice."""
    ran = subprocess.run(
        [entry["command"], *entry["args"], "--force-generate-tool-cache", "--json"],
        cwd=cwd,
        env=clients.machine.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=True,
    )
    catalogue = Path(json.loads(ran.stdout)["file"]).read_text("utf-8")
    return [name for name in ("weather", "news") if re.search(rf'"name": ?"{name}"', catalogue)]


def status_in(clients: Clients, folder: Path, *argv: str) -> dict[str, str]:
    """By server, what `mcp status claude-code` says in a folder."""
    told = clients.mcp("status", "claude-code", *PATH, *argv, cwd=folder)
    return {one["name"]: of_client(told, one["name"], "claude-code")["status"] for one in told.json["servers"]}


def test_a_folders_server_is_registered_under_the_name_of_its_package_and_without_the_documentation_of_uno(
    clients: Clients,
) -> None:
    server_in(clients.workspace, "weather")

    installed = clients.install("cursor", *PATH)

    assert actions(installed) == {"weather": "created"}
    assert clients.read(".cursor/mcp.json") == {"mcpServers": {"weather": BY_PATH}}
    assert [one["name"] for one in clients.status("cursor").json["servers"]] == ["weather"]


@pytest.mark.parametrize(
    ("manifest", "name", "expected"),
    [
        ("package.json", "@acme/weather.server", "weather-server"),
        ("go.mod", "weather", "weather"),
        ("Weather.csproj", "Weather", "Weather"),
        ("pyproject.toml", "w" * 50, "w" * 40),
    ],
)
def test_the_default_name_is_the_packages_in_a_form_that_clients_accept(
    clients: Clients, manifest: str, name: str, expected: str
) -> None:
    server_in(clients.workspace, name, manifest)

    assert list(actions(clients.install("cursor", *PATH))) == [expected]


def test_a_folder_without_a_server_of_its_own_gets_both_servers_of_uno(clients: Clients) -> None:
    assert list(actions(clients.install("cursor"))) == ["UnoApp", "UnoDocs"]


def test_the_name_that_is_asked_for_is_the_entrys_and_the_commands_find_it_by_that(clients: Clients) -> None:
    server_in(clients.workspace, "weather")

    installed = clients.install("cursor", "--name", "sunny", *PATH)
    named = of_client(clients.status("cursor", "--name", "sunny", *PATH), "sunny", "cursor")
    other = of_client(clients.status("cursor", "--name", "rainy", *PATH), "rainy", "cursor")
    kept = clients.uninstall("cursor", "--name", "rainy")
    removed = clients.uninstall("cursor", "--name", "sunny")

    assert actions(installed) == {"sunny": "created"}
    assert (named["status"], other["status"]) == ("registered", "missing")
    assert actions(kept) == {"rainy": "not_found"}
    assert actions(removed) == {"sunny": "removed"}
    assert not clients.at(".cursor/mcp.json").exists()


@pytest.mark.parametrize("name", ["my server", "", "-x", "a/b", "é", "x" * 41, "UnoDocs"])
def test_a_name_that_clients_do_not_accept_is_a_usage_error(clients: Clients, name: str) -> None:
    refused = clients.install("cursor", "--name", name)

    assert refused.exit_code == 2
    assert refused.json["error"]["nextStep"]
    assert not clients.at(".cursor/mcp.json").exists()


def test_an_entry_of_another_program_with_that_name_is_never_taken_for_ours(clients: Clients) -> None:
    server_in(clients.workspace, "weather")
    theirs = {"mcpServers": {"weather": {"command": "node", "args": ["weather.js"]}}}
    clients.write(".cursor/mcp.json", theirs)

    installed, removed = clients.install("cursor", *PATH), clients.uninstall("cursor")

    (failed,) = operations(installed)
    assert (failed["action"], installed.exit_code) == ("error", 1)
    assert failed["reason"] == "'weather' is the name of another server there"
    assert "Choose another name with --name" in installed.json["nextSteps"][0]
    assert actions(removed) == {"weather": "not_found"}
    assert clients.read(".cursor/mcp.json") == theirs


def test_an_entry_from_before_there_were_names_is_the_folders_server(clients: Clients) -> None:
    server_in(clients.workspace, "weather")
    clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": BY_PATH}})

    found = of_client(clients.status("cursor", *PATH), "weather", "cursor")
    installed = clients.install("cursor", *PATH)

    assert (found["status"], found["locations"][0]["key"]) == ("registered", "UnoApp")
    assert actions(installed) == {"weather": "skipped"}


def test_two_servers_of_a_repository_are_two_entries_in_the_file_that_the_client_reads(
    clients: Clients, repository: tuple[Path, Path]
) -> None:
    weather, news = repository
    before = clients.tree()

    for folder in repository:
        assert clients.mcp("install", "claude-code", "--trust", *PATH, cwd=folder).exit_code == 0

    entries = clients.read(".mcp.json")["mcpServers"]
    assert {name: one["args"] for name, one in entries.items()} == {
        "weather": ["--mcp-app", "--solution-dir", str(weather)],
        "news": ["--mcp-app", "--solution-dir", str(news)],
    }
    for name, entry in entries.items():
        assert served_tools(clients, entry, clients.home) == [name]
    assert status_in(clients, weather) == {"weather": "registered", "news": "registered"}
    assert status_in(clients, news, "--name", "news") == {"news": "registered"}
    at_root = {"UnoApp": "missing", "UnoDocs": "missing", "weather": "registered", "news": "registered"}
    assert status_in(clients, clients.workspace) == at_root
    again = clients.mcp("install", "claude-code", *PATH, cwd=weather)
    assert actions(again) == {"weather": "skipped"}

    examined = clients.mcp("doctor", "claude-code", cwd=weather).json["entries"]
    assert {one["server"]: (one["ok"], one["tools"]) for one in examined} == {"weather": (True, 1), "news": (True, 1)}

    assert actions(clients.mcp("uninstall", "claude-code", cwd=weather)) == {"weather": "removed"}
    assert list(clients.read(".mcp.json")["mcpServers"]) == ["news"]
    assert actions(clients.mcp("uninstall", "claude-code", "--name", "news")) == {"news": "removed"}
    assert clients.tree() == before


def test_an_outdated_entry_of_another_folder_is_told_with_the_command_that_renews_it(
    clients: Clients, repository: tuple[Path, Path]
) -> None:
    weather, _ = repository
    entry = {"command": "uvx", "args": ["uno-devserver@0.0.1", "--mcp-app", "--solution-dir", str(weather)]}
    clients.write(".mcp.json", {"mcpServers": {"weather": entry}})

    told = clients.status("claude-code", "--servers", "weather", *PATH)
    renew = f"uno-devserver mcp install claude-code --solution-dir {weather} --name weather"
    renewed = clients.install(*renew.split()[3:], *PATH)

    assert of_client(told, "weather", "claude-code")["status"] == "outdated"
    assert f"Run '{renew}' to renew its entry." in told.json["nextSteps"]
    assert all(renew in step for step in told.json["nextSteps"])
    assert actions(renewed) == {"weather": "updated"}
    assert status_in(clients, clients.workspace)["weather"] == "registered"


def test_restore_takes_all_names_of_a_file_back_and_names_the_file(
    clients: Clients, repository: tuple[Path, Path]
) -> None:
    clients.write(".mcp.json", '{ "mcpServers": { "other": {"command": "x"} } } ')
    before = clients.bytes(".mcp.json")
    for folder in repository:
        clients.mcp("install", "claude-code", *PATH, cwd=folder)

    restored = clients.mcp("restore", "claude-code", cwd=repository[1])

    assert [one["action"] for one in operations(restored)] == ["restored"]
    assert clients.bytes(".mcp.json") == before


def test_a_name_that_another_folder_has_is_refused_with_the_way_out(clients: Clients) -> None:
    first, second = (server_in(clients.workspace / where, "weather") for where in ("one", "two"))
    clients.mcp("install", "claude-desktop", *PATH, cwd=first)

    told = of_client(clients.mcp("status", "claude-desktop", cwd=second), "weather", "claude-desktop")
    refused = clients.mcp("install", "claude-desktop", *PATH, cwd=second)
    named = clients.mcp("install", "claude-desktop", "--name", "weather-two", *PATH, cwd=second)

    (failed,) = operations(refused)
    assert told["status"] == "missing"
    assert told["warnings"] == [
        f"The entry 'weather' in '{clients.at(DESKTOP)}' is for '{first}': use --name for another one"
    ]
    assert (failed["action"], failed["reason"]) == ("error", f"'weather' is the name of the server of '{first}' there")
    assert "--name" in refused.json["nextSteps"][0]
    assert actions(named) == {"weather-two": "created"}
    folders = {name: one["args"][-1] for name, one in clients.read(DESKTOP)["mcpServers"].items()}
    assert folders == {"weather": str(first), "weather-two": str(second)}


def test_an_entry_of_a_folder_that_is_gone_is_renewed(clients: Clients) -> None:
    folder = server_in(clients.workspace / "old", "weather")
    clients.mcp("install", "claude-desktop", *PATH, cwd=folder)
    moved = folder.rename(clients.workspace / "new")

    found = clients.mcp("status", "claude-desktop", *PATH, cwd=moved)
    installed = clients.mcp("install", "claude-desktop", *PATH, cwd=moved)

    assert of_client(found, "weather", "claude-desktop")["status"] == "outdated"
    assert actions(installed) == {"weather": "updated"}
    assert clients.read(DESKTOP)["mcpServers"]["weather"]["args"][-1] == str(moved)


def test_a_client_that_opens_no_folder_gets_it_in_the_entry_and_install_says_so(clients: Clients) -> None:
    server_in(clients.workspace, "weather")

    installed = clients.install("claude-desktop", "--trust", *PATH)

    (done,) = operations(installed)
    assert f"Claude Desktop opens no folder: --solution-dir {clients.workspace}" in done["note"]
    entry = clients.read(DESKTOP)["mcpServers"]["weather"]
    assert entry["args"] == ["--mcp-app", "--solution-dir", str(clients.workspace)]
    assert served_tools(clients, entry, Path("/")) == ["weather"]


def test_arguments_that_a_user_added_behind_the_folder_stay(clients: Clients) -> None:
    entry = {**BY_PATH, "args": ["--mcp-app", "--solution-dir", str(clients.workspace), "--wait-calls"]}
    clients.write(DESKTOP, {"mcpServers": {"UnoApp": entry}})

    assert actions(clients.install("claude-desktop", "--servers", "UnoApp")) == {"UnoApp": "skipped"}
    assert actions(clients.install("claude-desktop", "--servers", "UnoApp", "--release")) == {"UnoApp": "updated"}
    expected = ["--mcp-app", "--solution-dir", str(clients.workspace), "--wait-calls"]
    assert clients.read(DESKTOP)["mcpServers"]["UnoApp"]["args"][-4:] == expected


def test_an_entry_without_the_folder_is_outdated_where_the_client_opens_none(clients: Clients) -> None:
    clients.write(DESKTOP, {"mcpServers": {"UnoApp": BY_PATH}})

    assert of_client(clients.status("claude-desktop"), "UnoApp", "claude-desktop")["status"] == "outdated"


def test_the_users_file_of_a_client_with_folders_has_one_entry_for_all_uno_apps(clients: Clients) -> None:
    clients.install("cursor", "--scope", "user", "--servers", "UnoApp", *PATH)

    assert clients.read("~/.cursor/mcp.json")["mcpServers"]["UnoApp"] == BY_PATH


def test_a_folder_outside_of_the_workspace_in_its_file_is_removed_as_brought_along(
    clients: Clients, tmp_path: Path
) -> None:
    entry = {**BY_PATH, "args": ["--mcp-app", "--solution-dir", str(tmp_path)]}
    clients.write(".cursor/mcp.json", {"mcpServers": {"UnoApp": entry}})

    found = of_client(clients.status("cursor", *PATH), "UnoApp", "cursor")
    clients.install("cursor", "--servers", "UnoApp", *PATH)

    assert found["status"] == "outdated"
    assert clients.read(".cursor/mcp.json")["mcpServers"]["UnoApp"] == BY_PATH


class TestSubfolders:
    """In a subfolder of a project the project's file is meant, as the client sees it."""

    def test_the_nearest_file_of_the_client_counts(self, clients: Clients) -> None:
        (clients.workspace / ".git").mkdir()
        clients.write("app/.cursor/mcp.json", {"mcpServers": {}})
        (clients.workspace / "app" / "src").mkdir()

        installed = clients.mcp("install", "cursor", cwd=clients.workspace / "app" / "src")

        assert {one["path"] for one in operations(installed)} == {str(clients.at("app/.cursor/mcp.json"))}

    @pytest.mark.parametrize(
        ("client", "path"),
        [("claude-code", ".mcp.json"), ("codex", ".codex/config.toml"), ("gemini", "src/.gemini/settings.json")],
    )
    def test_without_a_file_it_is_the_repositorys_for_clients_that_look_there(
        self, clients: Clients, client: str, path: str
    ) -> None:
        (clients.workspace / ".git").mkdir()
        (clients.workspace / "src").mkdir()

        installed = clients.mcp("install", client, cwd=clients.workspace / "src")

        assert {one["path"] for one in operations(installed)} == {str(clients.at(path))}

    def test_a_workspace_that_is_named_is_taken_as_it_is(self, clients: Clients) -> None:
        (clients.workspace / ".git").mkdir()
        folder = clients.workspace / "src"
        folder.mkdir()

        installed = clients.install("claude-code", "--workspace", str(folder))

        assert {one["path"] for one in operations(installed)} == {str(folder / ".mcp.json")}

    def test_the_folder_that_is_served_can_be_named_beside_the_workspace(
        self, clients: Clients, repository: tuple[Path, Path]
    ) -> None:
        options = ("--workspace", str(clients.workspace), "--solution-dir", str(repository[0]))

        clients.install("cursor", *options, *PATH)

        args = clients.read(".cursor/mcp.json")["mcpServers"]["weather"]["args"]
        assert args == ["--mcp-app", "--solution-dir", str(repository[0])]

    def test_a_repository_of_the_home_folder_is_no_project(self, clients: Clients) -> None:
        (clients.home / ".git").mkdir()
        folder = clients.home / "app"
        folder.mkdir()

        installed = clients.mcp("install", "claude-code", cwd=folder)

        assert {one["path"] for one in operations(installed)} == {str(folder / ".mcp.json")}


@pytest.mark.parametrize(
    ("typed", "path"),
    [("gemini", ".gemini/settings.json"), ("qwen-code", ".qwen/settings.json"), ("kilo-code", "kilo.json")],
)
def test_a_client_is_found_by_the_name_that_people_type_and_answers_to_it(
    clients: Clients, typed: str, path: str
) -> None:
    installed, told = clients.install(typed), clients.status(typed)

    assert {(one["ide"], one["path"]) for one in operations(installed)} == {(typed, str(clients.at(path)))}
    assert told.json["callerIde"] == typed
    assert typed in told.json["detectedIdes"]
    assert of_client(told, "UnoApp", typed)["status"] == "registered"


def test_all_means_the_clients_that_are_found_here(clients: Clients) -> None:
    os.makedirs(clients.at(".cursor"))

    everywhere: Result = clients.install("--all")

    assert {one["ide"] for one in operations(everywhere)} == {"cursor"}


def test_definitions_with_a_prerelease_only_cannot_be_registered_as_stable(clients: Clients) -> None:
    variants = {"prerelease": {"command": "x", "args": ["y"]}}
    server = {"transport": "stdio", "variants": variants, "detection": {"keyPatterns": ["^mine$"]}}
    path = str(clients.write("servers.json", {"mine": server}))

    refused = clients.install("cursor", "--server-definitions", path, "--channel", "stable")
    taken = clients.install("cursor", "--server-definitions", path, "--channel", "prerelease")

    assert (refused.exit_code, refused.json["error"]["code"]) == (2, "DefinitionsInvalid")
    assert actions(taken) == {"mine": "created"}


def test_a_client_that_no_program_can_register_with_says_what_to_do_instead(clients: Clients) -> None:
    profile = {"configPaths": [], "strategy": "native", "manualRegistrationMessage": "Run 'agent mcp add'."}
    path = str(clients.write("profiles.json", {"agent": profile}))

    installed = clients.install("agent", "--ide-definitions", path)
    told = clients.status("agent", "--ide-definitions", path)

    assert {(one["action"], one["reason"]) for one in operations(installed)} == {("error", "Run 'agent mcp add'.")}
    assert told.json["supportedIdes"] == [{"ide": "agent", "strategy": "native", "detected": False}]


AGENT = """#!{python}
import json, pathlib, sys
servers = pathlib.Path({file!r})
known = json.loads(servers.read_text()) if servers.exists() else {{}}
verb, name, *words = sys.argv[2:] + [""]
if verb == "add" and name == "broken":
    sys.exit("no such thing")
if verb == "add":
    known[name] = words[1:-1]
elif verb == "remove":
    del known[name]
else:
    print("\\n".join(known))
servers.write_text(json.dumps(known))
"""


def test_a_client_without_a_file_is_registered_by_its_own_command(clients: Clients) -> None:
    file = clients.home / "servers.json"
    write_program(clients.machine.tools / "agent", AGENT.format(python=sys.executable, file=str(file)))
    command = {
        "executable": "agent",
        "addStdio": ["mcp", "add", "{name}", "--", "{command}", "{args...}"],
        "list": ["mcp", "list"],
        "remove": ["mcp", "remove", "{name}"],
    }
    profile = {"configPaths": [], "strategy": "native", "cli": command}
    options = ("agent", "--ide-definitions", str(clients.write("profiles.json", {"agent": profile})))

    foretold = clients.install(*options, *PATH, "--dry-run")
    installed = clients.install(*options, *PATH)
    known = json.loads(file.read_text())
    again = clients.install(*options, *PATH)
    broken = clients.install(*options, *PATH, "--name", "broken")
    removed = clients.uninstall(*options)

    assert actions(foretold) == actions(installed) == {"UnoApp": "created", "UnoDocs": "skipped"}
    assert known == {"UnoApp": [BY_PATH["command"], *BY_PATH["args"]]}
    assert actions(again) == {"UnoApp": "skipped", "UnoDocs": "skipped"}
    (failed,) = operations(broken)
    assert (failed["action"], broken.exit_code) == ("error", 1)
    assert failed["reason"].endswith("ended with exit code 1: no such thing")
    assert actions(removed) == {"UnoApp": "removed", "UnoDocs": "not_found"}
    assert json.loads(file.read_text()) == {}


class TestOtherFolders:
    """What is registered for another folder stays as it is, whichever name it has."""

    USERS = "~/.cursor/mcp.json"

    def _in_users_file(self, clients: Clients, *names: str) -> dict[str, Path]:
        """Servers that are registered for the user, each under the name of its folder."""
        folders = {name: server_in(clients.workspace.parent / name, name) for name in names}
        for folder in folders.values():
            assert clients.mcp("install", "cursor", "--scope", "user", *PATH, cwd=folder).exit_code == 0
        return folders

    def test_an_entry_of_another_folder_in_the_users_file_is_not_the_one_for_all(self, clients: Clients) -> None:
        self._in_users_file(clients, "weather")
        before = clients.read(self.USERS)

        found = of_client(clients.status("cursor", *PATH), "UnoApp", "cursor")
        removed = clients.uninstall("cursor")

        assert found["status"] == "missing"
        assert actions(removed) == {"UnoApp": "not_found", "UnoDocs": "not_found"}
        assert clients.read(self.USERS) == before

    @pytest.mark.parametrize("gone", [False, True])
    def test_the_users_entry_for_all_folders_is_not_the_one_of_a_folder(self, clients: Clients, gone: bool) -> None:
        clients.install("cursor", "--scope", "user", *PATH)
        others = self._in_users_file(clients, "news")
        if gone:
            others["news"].rename(clients.workspace / "moved")
        before = clients.read(self.USERS)["mcpServers"]
        assert set(before) == {"UnoApp", "UnoDocs", "news"}

        folder = self._in_users_file(clients, "weather")["weather"]

        entries = clients.read(self.USERS)["mcpServers"]
        assert entries == {**before, "weather": entries["weather"]}
        assert actions(clients.mcp("uninstall", "cursor", cwd=folder)) == {"weather": "removed"}
        assert clients.read(self.USERS)["mcpServers"] == before

    def test_a_folders_server_does_not_take_the_users_entry_by_its_name(self, clients: Clients) -> None:
        clients.install("cursor", "--scope", "user", *PATH)
        before = clients.read(self.USERS)
        folder = server_in(clients.workspace / "weather", "weather")

        for option in ("--name", "--servers"):
            refused = clients.mcp("install", "cursor", "--scope", "user", option, "UnoApp", *PATH, cwd=folder)
            assert actions(refused) == {"UnoApp": "error"}

        assert clients.read(self.USERS) == before

    def test_a_name_means_the_server_of_this_folder_before_those_of_others(self, clients: Clients) -> None:
        first, second = (server_in(clients.workspace / name, name) for name in ("one", "two"))
        clients.mcp("install", "cursor", "--name", "w", "--scope", "user", *PATH, cwd=first)
        clients.mcp("install", "cursor", "--name", "w", "--workspace", str(second), *PATH, cwd=second)
        before = clients.bytes(self.USERS)

        removed = clients.mcp("uninstall", "cursor", "--name", "w", "--workspace", str(second), cwd=second)

        assert [(one["action"], one["path"]) for one in operations(removed)] == [
            ("removed", str(second / ".cursor/mcp.json"))
        ]
        assert clients.bytes(self.USERS) == before

    def test_names_that_differ_in_the_case_of_letters_are_two(self, clients: Clients) -> None:
        first, second = (server_in(clients.workspace / name, name) for name in ("one", "two"))
        for name, folder in (("w", first), ("W", second)):
            clients.mcp("install", "cursor", "--name", name, "--scope", "user", *PATH, cwd=folder)

        removed = clients.mcp("uninstall", "cursor", "--name", "W", cwd=second)

        assert [one["keys"] for one in operations(removed)] == [["W"]]
        assert list(clients.read(self.USERS)["mcpServers"]) == ["w"]

    def test_all_entries_of_a_name_go_that_other_folders_have_in_several_clients(self, clients: Clients) -> None:
        first, second = (server_in(clients.workspace / name, name) for name in ("one", "two"))
        clients.mcp("install", "cursor", "--name", "w", "--scope", "user", *PATH, cwd=first)
        clients.mcp("install", "codex", "--name", "w", "--scope", "user", *PATH, cwd=second)

        removed = clients.uninstall("--all", "--name", "w")

        assert [(one["ide"], one["action"]) for one in operations(removed)] == [
            ("cursor", "removed"),
            ("codex", "removed"),
        ]

    @pytest.mark.parametrize("name", ["UnoDocs", "unoapp"])
    def test_a_config_cannot_give_its_server_the_name_of_another(self, clients: Clients, name: str) -> None:
        clients.write(
            self.USERS, {"mcpServers": {"UnoDocs": {"url": "https://mcp.platform.uno/v1"}, "UnoApp": BY_PATH}}
        )
        before = clients.bytes(self.USERS)
        server_in(clients.workspace, name)

        installed = clients.install("cursor", "--scope", "user", *PATH)
        removed = clients.uninstall("cursor")

        assert actions(installed) == {f"{name}-server": "created"}
        assert actions(removed) == {f"{name}-server": "removed"}
        assert clients.bytes(self.USERS) == before

    def test_a_folder_that_is_gone_keeps_its_entry_in_the_file_of_its_repository(
        self, clients: Clients, repository: tuple[Path, Path]
    ) -> None:
        weather, _ = repository
        clients.mcp("install", "claude-code", *PATH, cwd=weather)
        entry = clients.read(".mcp.json")["mcpServers"]["weather"]
        weather.rename(weather.with_name("wx"))

        installed = clients.install("claude-code", *PATH)

        assert actions(installed) == {"UnoApp": "created", "UnoDocs": "created"}
        assert clients.read(".mcp.json")["mcpServers"]["weather"] == entry


PACKAGE = '[project]\nname = "notes-server"\n[project.scripts]\nnotes = "notes:main"\n'
SEVERAL = '{"servers": {"weather": {"command": "python3"}, "files": {"command": "python3"}}}'


@pytest.mark.parametrize("manifest", ["pyproject.toml", "package.json", "go.mod"])
@pytest.mark.parametrize("inside", ["", "src"])
def test_in_a_package_without_a_config_init_is_named_and_no_server_of_uno_is_written(
    clients: Clients, manifest: str, inside: str
) -> None:
    (clients.at(".git")).mkdir(exist_ok=True)
    clients.write(manifest, "")
    clients.at(inside).mkdir(exist_ok=True)
    before, folder = clients.tree(), ("--solution-dir", str(clients.at(inside)))

    refused, status = clients.install("cursor", "--name", "mine", *folder), clients.status("cursor", *folder)

    assert (refused.exit_code, clients.tree()) == (1, before)
    step = refused.json["error"]["nextStep"]
    there = f" in '{clients.at('')}'" if inside else ""
    assert step.startswith(f"Run 'uno-devserver init'{there}, then 'mcp install' again.")
    assert status.json["nextSteps"] == [step]
    assert clients.install("cursor", "--servers", "UnoApp", *folder).exit_code == 0


def test_the_config_that_is_proposed_to_a_package_registers_it_under_its_name(clients: Clients) -> None:
    clients.write("pyproject.toml", PACKAGE)
    clients.write(".devtools/host.config.jsonc", '{"mcpServer": {}}')

    clients.install("cursor", "--trust")

    assert list(clients.read(".cursor/mcp.json")["mcpServers"]) == ["notes-server"]


def test_a_config_with_only_servers_gets_one_entry_that_serves_them_all(clients: Clients) -> None:
    clients.write(".devtools/host.config.jsonc", SEVERAL)
    clients.write("pyproject.toml", PACKAGE)

    clients.install("cursor", "--trust")

    assert clients.read(".cursor/mcp.json")["mcpServers"] == {"notes-server": WRITTEN}


def test_a_host_and_further_servers_are_one_entry_under_the_hosts_name(clients: Clients) -> None:
    clients.write(".devtools/host.config.jsonc", SEVERAL)
    clients.write(".devtools/addins/mine.py", "")

    clients.install("cursor", "--trust")

    assert "UnoApp" in clients.read(".cursor/mcp.json")["mcpServers"]


@pytest.mark.parametrize("option", ["--name", "--servers"])
def test_one_of_the_configs_servers_is_registered_beside_the_entry_for_all_and_told_apart(
    clients: Clients, option: str
) -> None:
    clients.write(".devtools/host.config.jsonc", SEVERAL)
    whole = clients.workspace.name

    for words in ([], [option, "weather"], [], [option, "weather"]):
        done = clients.install("cursor", "--trust", *words)

    one = {**WRITTEN, "args": [*WRITTEN["args"], "--server", "weather"]}
    assert operations(done)[0]["action"] == "skipped"
    assert clients.read(".cursor/mcp.json")["mcpServers"] == {whole: WRITTEN, "weather": one}
    status = clients.status("cursor")
    assert [server["name"] for server in status.json["servers"]] == [whole, "weather"]
    for name in (whole, "weather"):
        found = of_client(status, name, "cursor")
        assert (found["status"], found.get("warnings", [])) == ("registered", [])

    clients.uninstall("cursor", option, "weather")
    assert list(clients.read(".cursor/mcp.json")["mcpServers"]) == [whole]


def test_uninstall_without_a_name_removes_the_entries_of_single_servers_too(clients: Clients) -> None:
    clients.write(".devtools/host.config.jsonc", SEVERAL)
    for words in ([], ["--name", "weather"]):
        clients.install("cursor", "--trust", *words)

    clients.uninstall("cursor")

    assert not clients.at(".cursor/mcp.json").exists()


def test_the_entry_of_a_single_server_names_the_folder_where_the_client_opens_none(clients: Clients) -> None:
    clients.write(".devtools/host.config.jsonc", SEVERAL)

    for _ in range(2):
        done = clients.install("claude-desktop", "--name", "files", "--trust")

    path = operations(done)[0]["path"]
    entry = json.loads(Path(path).read_bytes())["mcpServers"]["files"]
    assert entry["args"][-4:] == ["--server", "files", "--solution-dir", str(clients.workspace)]
    assert operations(done)[0]["action"] == "skipped"


def test_in_a_subfolder_of_a_repository_only_clients_that_are_installed_are_detected(clients: Clients) -> None:
    (clients.workspace / ".git").mkdir()
    clients.at("~/.cursor").mkdir()
    inside = clients.workspace / "inside"
    inside.mkdir()

    folders = (clients.workspace, inside)
    at_root, below = (clients.mcp("install", "--all", "--dry-run", cwd=folder) for folder in folders)

    assert {one["ide"] for one in operations(at_root)} == {"cursor"} == {one["ide"] for one in operations(below)}


def test_an_entry_whose_folder_was_moved_says_that_its_folder_is_gone(
    clients: Clients, repository: tuple[Path, Path]
) -> None:
    client = "claude-code"
    old, new = repository[0], repository[0].with_name("forecast")
    clients.mcp("install", client, "--trust", cwd=old)
    old.rename(new)

    status = clients.mcp("status", client, cwd=new)

    found = of_client(status, "weather", client)
    assert found["status"] == "outdated"
    assert any(f"is for the folder '{old}', which does not exist" in one for one in found["warnings"])
    assert not any("may have come with" in one for one in found["warnings"])
    clients.mcp("install", client, "--trust", cwd=new)
    assert of_client(clients.mcp("status", client, cwd=new), "weather", client)["status"] == "registered"


def notes_of(result: Result) -> str:
    return " ".join(one.get("note", "") for one in operations(result))


def test_a_second_name_for_the_same_folder_is_told(clients: Clients, repository: tuple[Path, Path]) -> None:
    clients.mcp("install", "claude-code", "--trust", cwd=repository[0])

    second = clients.mcp("install", "claude-code", "--name", "n2", "--trust", cwd=repository[0])
    other = clients.mcp("install", "claude-code", "--name", "n3", "--trust", cwd=repository[1])

    assert "The same server is registered there as 'weather', too" in notes_of(second)
    assert "The same server" not in notes_of(other)


def test_an_entry_that_names_its_folder_is_removed_without_a_word_about_other_workspaces(
    clients: Clients, repository: tuple[Path, Path]
) -> None:
    clients.mcp("install", "claude-desktop", "--trust", cwd=repository[0])

    removed = clients.mcp("uninstall", "claude-desktop", cwd=repository[0])

    assert operations(removed)[0]["action"] == "removed"
    assert "other workspaces" not in notes_of(removed)


def test_below_a_repository_the_folder_that_a_client_must_open_is_told(
    clients: Clients, repository: tuple[Path, Path]
) -> None:
    below = clients.mcp("install", "cursor", "--trust", cwd=repository[0])
    whole = clients.mcp("install", "claude-code", "--trust", cwd=repository[0])

    assert f"only where '{repository[0]}' is the opened folder" in notes_of(below)
    assert "is the opened folder" not in notes_of(whole)


def test_an_entry_in_another_clients_file_is_named_as_such(clients: Clients, repository: tuple[Path, Path]) -> None:
    clients.install("claude-code", "--servers", "UnoApp")

    found = operations(clients.install("qwen", "--servers", "UnoApp"))[0]

    assert (found["action"], found["path"]) == ("skipped", str(clients.at(".mcp.json")))
    assert "in a file of other clients that Qwen Code reads, too" in found["reason"]


# --- servers at a URL ---

FAR = "http://127.0.0.1:9/mcp"  # nothing listens there
AT_FAR = ("--upstream-url", FAR)


def url_entry(*words: str) -> dict[str, Any]:
    return {"command": BY_PATH["command"], "args": list(words)}


@pytest.mark.parametrize(
    "words", [("mcp", "start", *AT_FAR), ("--mcp-app", *AT_FAR), ("--mcp-app", *AT_FAR, "--header", "A: ${B}")]
)
def test_an_entry_by_hand_for_a_server_at_a_url_is_known_by_its_name(clients: Clients, words: tuple[str, ...]) -> None:
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"far": url_entry(*words)}})

    found = of_client(clients.status("cursor"), "far", "cursor")
    tried = clients.mcp("doctor", "cursor")
    kept = clients.uninstall("cursor")
    removed = clients.uninstall("cursor", "--name", "far")

    assert (found["status"], found["locations"][0]["key"]) == ("registered", "far")
    (entry,) = tried.json["entries"]
    assert (entry["server"], entry["ok"]) == ("far", False)
    assert entry["nextStep"]
    assert set(actions(kept).values()) == {"not_found"}
    assert actions(removed) == {"far": "removed"}


def test_a_server_at_a_url_is_registered_under_the_name_that_it_is_given(clients: Clients) -> None:
    server_in(clients.workspace, "weather")  # it has nothing to do with that one, and needs no agreement to it
    asked = ("cursor", "--name", "far", "--upstream-url")

    nameless = clients.install("cursor", *AT_FAR)
    no_url = clients.install(*asked, "far.example")
    first, again = (clients.install(*asked, FAR, *PATH) for _ in range(2))
    found = of_client(clients.status("cursor", *PATH), "far", "cursor")
    other = clients.install(*asked, f"{FAR}/2", *PATH)
    renamed = clients.install("cursor", "--name", "near", *AT_FAR, *PATH)

    assert (nameless.exit_code, no_url.exit_code) == (2, 2)
    assert "--name" in nameless.json["error"]["nextStep"]
    assert [actions(one) for one in (first, again)] == [{"far": "created"}, {"far": "skipped"}]
    assert first.json["agreedTo"] == []
    assert found["status"] == "registered"
    assert actions(other) == {"far": "error"}  # whose entry it is, is known by the URL
    assert actions(renamed) == {"near": "created"}
    assert clients.read(".cursor/mcp.json")["mcpServers"] == {
        name: {**BY_PATH, "args": ["--mcp-app", *AT_FAR]} for name in ("far", "near")
    }


def test_a_url_in_a_file_of_the_workspace_is_reached_only_where_the_user_insists(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": {"far": url_entry("--mcp-app", *AT_FAR)}})

    (entry,) = clients.mcp("doctor", "cursor").json["entries"]
    (forced,) = clients.mcp("doctor", "cursor", "--force").json["entries"]

    assert (entry["milliseconds"], "may have come with the workspace" in entry["problem"]) == ({}, True)
    assert forced["milliseconds"]


@pytest.mark.parametrize("path", [".cursor/mcp.json", "~/.cursor/mcp.json"])
def test_a_url_that_may_have_come_with_the_workspace_is_recommended_with_a_reserve(clients: Clients, path: str) -> None:
    far, outdated = (["--mcp-app", "--upstream-url", f"{FAR}/{name}"] for name in ("far", "outdated"))
    entries = {"far": url_entry(*far), "outdated": {"command": "uvx", "args": ["uno-devserver@0.0.1", *outdated]}}
    clients.write(path, {"mcpServers": entries})

    told = clients.status("cursor")
    tried = clients.mcp("doctor", "cursor").json["entries"]

    steps = [*told.json["nextSteps"], *(one["nextStep"] for one in tried)]
    is_foreign = not path.startswith("~")
    reserves = ["Do that only if you know this server." in step for step in steps if "--upstream-url" in step]
    assert len(reserves) > 1
    assert set(reserves) == {is_foreign}
    for name in entries:
        warnings = of_client(told, name, "cursor").get("warnings", [])
        assert any("may have come with the workspace: http" in warning for warning in warnings) == is_foreign


def test_no_suggested_command_has_a_url_without_its_key(clients: Clients) -> None:
    args = ["uno-devserver@0.0.1", "--mcp-app", "--upstream-url", f"{FAR}?key=secret"]
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"far": {"command": "uvx", "args": args}}})

    (entry,) = clients.mcp("doctor", "cursor").json["entries"]
    steps = [entry["nextStep"], *clients.status("cursor").json["nextSteps"]]

    install = f"mcp install cursor --upstream-url {quoted_word('<its URL>')} --name far"
    assert [install in step for step in steps if "--upstream-url" in step] == [True] * 3
    assert not any("key=" in step for step in steps)


@pytest.mark.parametrize("words", [AT_FAR, ("--solution-dir", "/elsewhere")])
def test_a_name_that_no_option_takes_becomes_part_of_no_command(clients: Clients, words: tuple[str, ...]) -> None:
    names = ("a; touch PWNED #", "two words", "$HOME", "n" * 41, "-first", "far")
    entries = {name: {**url_entry("--mcp-app", *words), "disabled": True} for name in names}
    clients.write(".cursor/mcp.json", {"mcpServers": entries})

    found = clients.status("cursor")
    tried = clients.mcp("doctor", "cursor")

    assert {one["name"] for one in found.json["servers"]} >= {"far"}
    assert not any(name in told.stdout for name in names[:-1] for told in (found, tried))
