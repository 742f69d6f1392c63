"""What the options of the registration commands mean, before any file is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver import __version__
from uno_devserver.cli.mcp import arguments
from uno_devserver.cli.mcp.arguments import McpArguments, mcp_arguments
from uno_devserver.cli.parse import parse
from uno_devserver.issues import UserError
from uno_devserver.setup.profiles import Scope


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _asked(*arguments: str) -> McpArguments:
    return mcp_arguments(parse(["mcp", "install", *arguments]))


def _refused(*arguments: str) -> UserError:
    with pytest.raises(UserError) as caught:
        _asked(*arguments)
    return caught.value


@pytest.mark.parametrize(
    ("version", "options", "variant"),
    [
        ("5.6.0", (), "stable"),
        ("5.6.0", ("--release",), "stable"),
        ("5.6.0", ("--prerelease",), "prerelease"),
        ("5.6.0", ("--version", "1.2.3"), "pinned:1.2.3"),
        ("5.6.0-dev.42", (), "prerelease"),
        ("5.6.0-dev.42", ("--release",), "stable"),
        ("5.6.0-dev.42", ("--prerelease",), "prerelease"),
        ("5.6.0-dev.42", ("--version", "1.2.3"), "pinned:1.2.3"),
        ("5.6.0.dev42", (), "prerelease"),
        ("5.6.0rc1", (), "prerelease"),
        ("5.6.0b2", (), "prerelease"),
        ("5.6.0.post1", (), "stable"),
        ("5.6.0", ("--tool-version", " 1.2.3 "), "pinned:1.2.3"),
        ("5.6.0", ("--channel", "Prerelease"), "prerelease"),
        ("5.6.0-dev.42", ("--channel", "stable"), "stable"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_the_variant_follows_from_the_tools_version_or_from_an_option(
    version: str, options: tuple[str, ...], variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "__version__", version)

    assert _asked("cursor", *options).variant.variant == variant


@pytest.mark.usefixtures("workspace")
def test_it_is_said_where_the_expected_variant_comes_from() -> None:
    assert _asked("cursor").variant_from == f"auto-detected from tool v{__version__}"
    assert _asked("cursor", "--release").variant_from == "--release"


@pytest.mark.parametrize(
    "options",
    [
        ("--release", "--prerelease"),
        ("--release", "--version", "1"),
        ("--prerelease", "--version", "1"),
        ("--channel", "stable", "--tool-version", "1"),
        ("--channel", "nightly"),
        ("--version", " "),
        ("--version", "1 2"),
        ("--version", "abc"),
        ("--version", "v"),
        ("--version", "-1"),
        ("--version=--help",),
        ("--version", "1\x1b[2J"),
        ("--version", "1\n2"),
        ("--version", "1\udcff"),
        ("--version", "1@latest"),
        ("--runner", "npx"),
        ("--runner", "path", "--version", "1"),
        ("--runner", "path", "--prerelease"),
        ("--scope", "machine"),
        ("--servers", "Nope"),
        ("--servers", " , "),
        ("--ide", "vscode"),
        ("extra",),
        ("--what",),
        ("--workspace", "/"),
        ("--workspace", "not-there"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_options_that_make_no_sense_are_a_usage_error(options: tuple[str, ...]) -> None:
    error = _refused("cursor", *options)

    assert error.exit_code == 2
    assert error.next_step


@pytest.mark.usefixtures("workspace")
def test_an_unknown_client_is_a_failure_that_names_all_and_the_closest() -> None:
    error = _refused("cursr")

    assert error.exit_code == 1
    assert error.message.startswith("Unknown client 'cursr'. Known clients: ")
    assert "claude-code" in error.message
    assert error.next_step == "Did you mean 'cursor'?"


@pytest.mark.usefixtures("workspace")
def test_what_is_no_client_is_not_offered_as_one() -> None:
    error = _refused("unknwn")

    assert "unknown" not in error.message
    assert "unknown" not in error.next_step


@pytest.mark.parametrize(("name", "meant"), [("zd", "zed"), ("kira", "kiro"), ("foo", None)])
@pytest.mark.usefixtures("workspace")
def test_a_short_name_is_close_to_less(name: str, meant: str | None) -> None:
    assert ("Did you mean" in _refused(name).next_step) is (meant is not None)
    assert meant is None or f"'{meant}'" in _refused(name).next_step


@pytest.mark.usefixtures("workspace")
def test_a_version_may_begin_with_a_v() -> None:
    assert _asked("cursor", "--version", "v1.2").variant.variant == "pinned:v1.2"


@pytest.mark.usefixtures("workspace")
def test_of_a_name_that_several_clients_begin_with_all_are_meant() -> None:
    assert _refused("Claude").next_step == "Did you mean 'claude-code' or 'claude-desktop'?"


@pytest.mark.parametrize("arguments", [("CURSOR",), ("--ide", "Cursor"), ("cursor", "--ide", "Cursor")])
@pytest.mark.usefixtures("workspace")
def test_a_client_is_named_in_any_case_as_argument_or_option(arguments: tuple[str, ...]) -> None:
    client = _asked(*arguments).client

    assert client is not None
    assert client.id == "cursor"


@pytest.mark.usefixtures("workspace")
def test_servers_are_taken_once_in_their_own_order() -> None:
    assert [one.name for one in _asked("cursor", "--servers", "UnoDocs, unoapp,UnoDocs").servers] == [
        "UnoApp",
        "UnoDocs",
    ]
    assert [one.name for one in _asked("cursor").servers] == ["UnoApp", "UnoDocs"]


def test_the_workspace_is_the_current_folder_or_the_named_one(workspace: Path) -> None:
    (workspace / "app").mkdir()

    assert _asked("cursor").here.workspace == str(workspace)
    assert _asked("cursor", "--workspace", "app").here.workspace == str(workspace / "app")
    assert _asked("cursor", "--solution-dir", "app").here.workspace == str(workspace / "app")
    assert _asked("cursor", "--solution-dir", "app", "--workspace", "./app/").here.workspace == str(workspace / "app")


def test_the_workspace_whose_files_count_and_the_folder_that_is_served_can_differ(workspace: Path) -> None:
    (workspace / "app").mkdir()

    asked = _asked("cursor", "--workspace", ".", "--solution-dir", "app")

    assert (asked.here.workspace, asked.directory) == (str(workspace), str(workspace / "app"))


@pytest.mark.usefixtures("workspace")
def test_a_scope_is_taken_in_any_case() -> None:
    assert _asked("cursor", "--scope", "User").scope is Scope.USER
    assert _asked("cursor").scope is None
