"""Path templates, on each system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.systems import LINUX, MACOS, WINDOWS, machine
from uno_devserver.setup.paths import expand, filled_in, here, system_name, tokens_of

CODEX = {"CODEX_HOME": "{home}/.codex"}


@pytest.mark.parametrize(
    ("template", "linux", "macos", "windows"),
    [
        (
            "{workspace}/.cursor/mcp.json",
            "/home/me/app/.cursor/mcp.json",
            "/Users/me/app/.cursor/mcp.json",
            "D:\\app\\.cursor\\mcp.json",
        ),
        (
            "{home}/.cursor/mcp.json",
            "/home/me/.cursor/mcp.json",
            "/Users/me/.cursor/mcp.json",
            "C:\\Users\\me\\.cursor\\mcp.json",
        ),
        (
            "{appdata}/Code/User/mcp.json",
            "/home/me/.config/Code/User/mcp.json",
            "/Users/me/Library/Application Support/Code/User/mcp.json",
            "C:\\Users\\me\\AppData\\Roaming\\Code\\User\\mcp.json",
        ),
        (
            "{localappdata}/crush",
            "/home/me/.local/share/crush",
            "/Users/me/Library/Application Support/crush",
            "C:\\Users\\me\\AppData\\Local\\crush",
        ),
        (
            "{config}/goose/config.yaml",
            "/home/me/.config/goose/config.yaml",
            "/Users/me/.config/goose/config.yaml",
            "C:\\Users\\me\\.config\\goose\\config.yaml",
        ),
        (
            "{CODEX_HOME}/config.toml",
            "/home/me/.codex/config.toml",
            "/Users/me/.codex/config.toml",
            "C:\\Users\\me\\.codex\\config.toml",
        ),
    ],
)
def test_a_template_stands_for_the_path_of_each_system(template: str, linux: str, macos: str, windows: str) -> None:
    found = [expand(template, machine(platform), CODEX) for platform in (LINUX, MACOS, WINDOWS)]

    assert found == [linux, macos, windows]


def test_a_variable_that_is_set_moves_the_folder() -> None:
    assert expand("{CODEX_HOME}/config.toml", machine(LINUX, CODEX_HOME="/srv/codex/"), CODEX) == (
        "/srv/codex/config.toml"
    )
    assert expand("{CODEX_HOME}/config.toml", machine(WINDOWS, CODEX_HOME="E:/codex"), CODEX) == (
        "E:\\codex\\config.toml"
    )


def test_a_variable_that_is_set_to_nothing_does_not_count() -> None:
    assert expand("{CODEX_HOME}/config.toml", machine(LINUX, CODEX_HOME=""), CODEX) == "/home/me/.codex/config.toml"


def test_a_relative_variable_counts_from_the_workspace_where_the_client_is_started() -> None:
    assert expand("{CODEX_HOME}/config.toml", machine(LINUX, CODEX_HOME="../x"), CODEX) == "/home/me/x/config.toml"


def test_the_users_choice_of_a_config_folder_counts_and_a_relative_one_does_not() -> None:
    chosen, relative = machine(LINUX, XDG_CONFIG_HOME="/cfg"), machine(LINUX, XDG_CONFIG_HOME="cfg")

    assert expand("{config}/zed/settings.json", chosen, {}) == "/cfg/zed/settings.json"
    assert expand("{appdata}/Code/User/mcp.json", chosen, {}) == "/cfg/Code/User/mcp.json"
    assert expand("{config}/zed/settings.json", relative, {}) == "/home/me/.config/zed/settings.json"


def test_folders_that_end_with_a_separator_give_no_double_ones() -> None:
    assert expand("{workspace}/.mcp.json", machine(LINUX, "/w/"), {}) == "/w/.mcp.json"
    assert expand("{home}/.mcp.json", machine(LINUX, HOME="/"), {}) == "/.mcp.json"
    assert expand("{workspace}/.mcp.json", machine(WINDOWS, "D:/w\\"), {}) == "D:\\w\\.mcp.json"


def test_braces_and_dollars_in_a_folders_name_are_left_alone() -> None:
    around = machine(LINUX, "/w/{home}/$HOME\\1")

    assert expand("{workspace}/.mcp.json", around, {}) == "/w/{home}/$HOME\\1/.mcp.json"


def test_text_that_is_no_path_is_filled_in_as_it_is() -> None:
    assert filled_in("{workspace}", machine(WINDOWS), {}) == "D:\\app"
    assert filled_in("a//b", machine(LINUX), {}) == "a//b"


def test_tokens_are_found_wherever_they_stand() -> None:
    assert tokens_of("{workspace}/a{CODEX_HOME}b/{}") == ["workspace", "CODEX_HOME"]


def test_systems_have_the_names_that_profiles_use_and_others_are_like_linux() -> None:
    assert [system_name(machine(one)) for one in (LINUX, MACOS, WINDOWS)] == ["linux", "macos", "windows"]
    assert system_name(machine(LINUX).replace(platform="freebsd14")) == "linux"


def test_this_machine_is_the_one_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    found = here("/w")

    assert (found.workspace, found.home) == ("/w", str(tmp_path))
    assert found.environ is os.environ
