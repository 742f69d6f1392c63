"""How clients start what is registered."""

from __future__ import annotations

from typing import Any

import pytest

from uno_devserver.setup.doctor.launch_spec import BARE_PATHS, LaunchSpec, bare_environment, launch_spec_of
from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.paths import Here
from uno_devserver.setup.profiles import Dialect, Format, Place, Profile, Scope, Use

ENVIRON = {"HOME": "/home/me", "PATH": "/home/me/bin:/usr/bin", "TOKEN": "secret", "USER": "me"}
HERE = Here("/ws", "/home/me", "/home/me/.config", "/home/me/.local/share", ENVIRON, "linux")
PLACE = Place("/ws/.mcp.json", Scope.WORKSPACE, Use.WRITE, Format.JSON, ("mcpServers",), Dialect())
USER_PLACE = PLACE.replace(path="/home/me/.mcp.json", scope=Scope.USER)
WINDOWED = Profile("editor", "Editor", (PLACE, USER_PLACE), Scope.WORKSPACE, connect_seconds=20.0)
TERMINAL = WINDOWED.replace(in_terminal=True)


def started(profile: Profile = TERMINAL, place: Place = PLACE, here: Here = HERE, **settings: Any) -> LaunchSpec:
    return launch_spec_of(ServerEntry("UnoApp", settings), place, profile, here)


def test_a_client_with_windows_passes_on_little_of_the_environment_and_nothing_of_the_shells_path() -> None:
    start = started(WINDOWED, command="uvx", args=["uno-devserver"], env={"MINE": "1"})

    assert start.command == ("uvx", "uno-devserver")
    assert start.environ == {"HOME": "/home/me", "USER": "me", "PATH": BARE_PATHS["linux"], "MINE": "1"}


def test_a_client_in_a_terminal_passes_on_all_of_it() -> None:
    assert started(command="uvx", env={"TOKEN": "mine"}).environ == {**ENVIRON, "TOKEN": "mine"}


def test_on_windows_there_is_one_path_for_all_programs() -> None:
    kept = bare_environment({"Path": "C:\\tools", "SystemRoot": "C:\\Windows", "TOKEN": "secret"}, "win32")

    assert kept == {"Path": "C:\\tools", "SystemRoot": "C:\\Windows"}


def test_an_entry_of_the_user_starts_where_the_client_starts_those() -> None:
    profile = WINDOWED.replace(starts_in={Scope.USER: Scope.USER})

    assert started(profile, USER_PLACE, command="uvx").folder == "/home/me"
    assert started(profile, PLACE, command="uvx").folder == "/ws"
    assert started(WINDOWED, USER_PLACE, command="uvx").folder == "/ws"


def test_the_entrys_own_folder_counts_from_there() -> None:
    assert started(command="uvx", cwd="src/../app").folder == "/ws/app"
    assert started(command="uvx", cwd="/elsewhere").folder == "/elsewhere"
    assert started(command="uvx", working_directory="app").folder == "/ws/app"
    assert started(command="uvx", cwd="${workspaceFolder}/app").folder == "/ws/app"
    windows = Here("C:\\ws", "C:\\me", "C:\\a", "C:\\l", {}, "win32")
    assert started(here=windows, command="uvx", cwd="app").folder == "C:\\ws\\app"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("${TOKEN}", "secret"),
        ("${env:TOKEN}", "secret"),
        ("${TOKEN:-other}", "secret"),
        ("${NOTHING:-other}/x", "other/x"),
        ("${NOTHING:-}", ""),
        ("${workspaceFolder}/a", "/ws/a"),
        ("${userHome}", "/home/me"),
        ("${env:userHome:-none}", "none"),
        ("$TOKEN", "$TOKEN"),
        ("a${TOKEN}b${TOKEN}", "asecretbsecret"),
    ],
)
def test_variables_are_expanded_as_clients_do(text: str, meaning: str) -> None:
    start = started(command="run", args=[text])

    assert start.command == ("run", meaning)
    assert start.unset == ()


def test_what_is_not_set_stays_and_is_told_once() -> None:
    start = started(command="run", args=["${NOTHING}", "${input:key}", "${NOTHING}"])

    assert start.command == ("run", "${NOTHING}", "${input:key}", "${NOTHING}")
    assert start.unset == ("${NOTHING}", "${input:key}")


def test_an_address_is_reached_with_the_entrys_headers() -> None:
    start = started(url="https://x/${workspaceFolderBasename}", headers={"Authorization": "Bearer ${TOKEN}", "n": 1})

    assert (start.command, start.url) == ((), "https://x/ws")
    assert start.headers == {"Authorization": "Bearer secret"}
    assert started(url="https://x", bearer_token_env_var="TOKEN").headers == {"Authorization": "Bearer secret"}
    assert started(url="https://x", bearerTokenEnvVar="TOKEN").headers == {"Authorization": "Bearer secret"}


def test_of_a_command_and_an_address_the_command_counts() -> None:
    start = started(command="run", url="https://x", headers={"X": "1"})

    assert (start.command, start.url, start.headers) == (("run",), "", {})


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 20.0),
        ({"startup_timeout_sec": 45}, 45.0),
        ({"startupTimeoutMs": 500}, 0.5),
        ({"timeout": 30000}, 30.0),
        ({"timeout": 900}, 900.0),
        ({"timeout": 901}, 0.901),
        ({"timeout": 60}, 60.0),
        ({"timeout": True}, 20.0),
        ({"timeout": "60"}, 20.0),
        ({"timeout": 0}, 20.0),
    ],
)
def test_the_limit_is_the_entrys_own_or_the_clients(settings: dict[str, Any], seconds: float) -> None:
    assert started(command="run", **settings).limit_seconds == seconds
