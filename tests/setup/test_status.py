"""What a client knows: by the entry that it takes, with everything told that is odd about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.machine import WINDOWS
from uno_devserver.setup.paths import Here
from uno_devserver.setup.profiles import Format, Place, Profile, Scope, Use
from uno_devserver.setup.server_definition import VariantChoice
from uno_devserver.setup.status import Registration, RegistrationStatus, in_words, status_of

from .made import CHOICE, DNX, SERVERS, STABLE, URL, chosen, client, here_at, place, stdio

PRERELEASE = {"command": "dnx", "args": ["-y", "--prerelease", "uno.devserver", "--mcp-app"]}
WEAK = {"url": "http://localhost:5000/mcp"}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """With uvx and dnx on PATH."""
    for name in ("uvx", "dnx"):
        tool = tmp_path / "bin" / (f"{name}.exe" if WINDOWS else name)
        tool.parent.mkdir(exist_ok=True)
        tool.touch(mode=0o755)
    return here_at(tmp_path, {"PATH": str(tmp_path / "bin")})


@pytest.fixture
def local(here: Here) -> Place:
    return place(Path(here.workspace, ".cursor", "mcp.json"))


@pytest.fixture
def users(here: Here) -> Place:
    return place(Path(here.home, ".cursor", "mcp.json"), Scope.USER)


def _write(at: Place, content: str | dict[str, Any]) -> Place:
    path = Path(at.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps({"mcpServers": content}))
    return at


def _app(profile: Profile, here: Here, choice: VariantChoice = CHOICE) -> Registration:
    return status_of(profile, SERVERS, choice, here).registrations[0]


def test_the_first_file_in_the_clients_order_counts(local: Place, users: Place, here: Here) -> None:
    _write(local, {"UnoApp": stdio(DNX)})
    _write(users, {"UnoApp": PRERELEASE})

    app = _app(client(local, users), here, chosen("prerelease"))

    assert app.status is RegistrationStatus.OUTDATED
    assert [(one.path, one.match.variant) for one in app.locations] == [
        (local.path, "stable"),
        (users.path, "prerelease"),
    ]
    assert app.warnings == ("Registered in multiple config files",)


def test_a_current_entry_in_the_users_file_is_enough(local: Place, users: Place, here: Here) -> None:
    _write(users, {"mine": stdio(STABLE), "docs": {"url": URL}})

    found = status_of(client(local, users), SERVERS, CHOICE, here)

    assert [one.status for one in found.registrations] == [RegistrationStatus.REGISTERED, RegistrationStatus.REGISTERED]
    assert all(one.warnings == () for one in found.registrations)
    assert found.detected


def test_a_client_without_files_misses_everything(local: Place, users: Place, here: Here) -> None:
    found = status_of(client(local, users), SERVERS, CHOICE, here)

    assert [(one.status, one.locations, one.warnings) for one in found.registrations] == [
        (RegistrationStatus.MISSING, (), ())
    ] * 2
    assert not found.detected


def test_of_several_entries_in_a_file_the_first_counts_and_of_twins_the_last(local: Place, here: Here) -> None:
    several = _app(client(_write(local, {"a": stdio(STABLE), "UnoApp": PRERELEASE})), here)
    twins = json.dumps({"mcpServers": {"first": {"command": "old"}, "UnoApp": stdio(STABLE)}})
    twin = _app(client(_write(local, twins.replace("first", "UnoApp"))), here)

    assert [one.match.entry.name for one in several.locations] == ["a", "UnoApp"]
    assert [one.match.index for one in twin.locations] == [1]
    for app in (several, twin):
        assert app.status is RegistrationStatus.REGISTERED
        assert app.warnings == ("Multiple entries match server UnoApp",)


def test_an_uncertain_entry_counts_only_where_there_is_no_other(local: Place, users: Place, here: Here) -> None:
    _write(local, {"figma": WEAK})
    alone = _app(client(local, users), here)
    _write(users, {"UnoApp": stdio(STABLE)})
    beside = _app(client(local, users), here)

    assert (alone.status, [one.match.variant for one in alone.locations]) == (
        RegistrationStatus.OUTDATED,
        ["legacy-http"],
    )
    assert alone.warnings == (
        f"The entry 'figma' in '{local.path}' may be another program's: 'mcp install' leaves it alone",
    )
    assert (beside.status, [one.path for one in beside.locations]) == (RegistrationStatus.REGISTERED, [users.path])
    assert beside.warnings == ()


def test_an_entry_that_the_client_does_not_read_is_outdated_and_told(local: Place, users: Place, here: Here) -> None:
    old = _write(users.replace(use=Use.LEGACY), {"UnoApp": stdio(STABLE)})

    app = _app(client(old, local), here)

    assert app.status is RegistrationStatus.OUTDATED
    assert app.effective is None
    assert app.warnings == (f"Cursor does not read '{old.path}'; it looks in '{local.path}' now",)


def test_an_old_file_beside_a_read_one_is_listed_last_and_no_second_registration(
    local: Place, users: Place, here: Here
) -> None:
    old = _write(users.replace(use=Use.LEGACY), {"UnoApp": stdio(DNX)})
    _write(local, {"UnoApp": stdio(STABLE)})

    app = _app(client(old, local), here)

    assert app.status is RegistrationStatus.REGISTERED
    assert [one.path for one in app.locations] == [local.path, old.path]
    assert app.warnings == ()


def test_a_broken_file_is_told_for_each_server_and_the_others_are_read(local: Place, users: Place, here: Here) -> None:
    _write(local, '{"mcpServers": ')
    _write(users, {"UnoApp": stdio(STABLE)})

    found = status_of(client(local, users), SERVERS, CHOICE, here)

    assert [one.status for one in found.registrations] == [RegistrationStatus.REGISTERED, RegistrationStatus.MISSING]
    for registration in found.registrations:
        (warning,) = registration.warnings
        assert warning.startswith(f"Invalid JSON in config file '{local.path}': ")


def test_what_a_strict_reader_would_not_take_is_told(local: Place, here: Here) -> None:
    text = json.dumps({"mcpServers": {"UnoApp": stdio(STABLE)}})
    _write(local, "{\n// mine\n" + text[1:-2] + ",}}")

    lenient = _app(client(local), here)
    strict = _app(client(local.replace(format=Format.JSON)), here)

    assert lenient.warnings == ()
    assert strict.status is RegistrationStatus.REGISTERED
    assert f"Config file '{local.path}' has a comment in line 2, which Cursor does not accept" in strict.warnings
    assert len(strict.warnings) == 2


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_an_entry_that_is_switched_off_is_told(off: dict[str, Any], local: Place, here: Here) -> None:
    _write(local, {"UnoApp": {**stdio(STABLE), **off}})

    app = _app(client(local), here)

    assert app.status is RegistrationStatus.REGISTERED
    assert app.warnings == (f"The entry 'UnoApp' is disabled in '{local.path}'",)


def test_a_command_that_cannot_be_found_is_told(local: Place, here: Here, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone" / "uno-devserver")
    bare = _app(client(_write(local, {"UnoApp": stdio(STABLE)})), here.replace(environ={"PATH": "/nowhere"}))
    path = _app(client(_write(local, {"UnoApp": {"command": gone, "args": ["--mcp-app"]}})), here)
    own = _app(client(_write(local, {"UnoApp": {**stdio(STABLE), "env": {"PATH": "${PATH}:/x"}}})), here)

    assert bare.status is RegistrationStatus.REGISTERED
    assert bare.warnings == ("The entry 'UnoApp' cannot start: 'uvx' is not on PATH",)
    assert path.status is RegistrationStatus.OUTDATED
    assert f"The entry 'UnoApp' cannot start: '{gone}' does not exist" in path.warnings
    assert not any("cannot start" in one for one in own.warnings)


def test_a_path_of_the_entry_that_hides_the_command_is_told_as_the_cause(local: Place, here: Here) -> None:
    entry = {**stdio(STABLE), "env": {"PATH": "/nowhere"}}
    program = write(Path(here.home) / "bin" / ("uvx.exe" if WINDOWS else "uvx"), "")
    program.chmod(0o755)

    app = _app(client(_write(local, {"UnoApp": entry})), here.replace(environ={"PATH": str(program.parent)}))

    assert "The entry 'UnoApp' cannot start: 'uvx' is not on the PATH that the entry sets" in app.warnings


def test_what_is_wrong_with_a_file_that_the_client_does_not_read_is_no_matter(
    local: Place, users: Place, here: Here
) -> None:
    old = _write(users.replace(use=Use.LEGACY), "{ broken")

    assert _app(client(local, old), here).warnings == ()


def test_what_has_no_mcp_client_says_so(users: Place, here: Here) -> None:
    old = _write(users.replace(use=Use.LEGACY), {"UnoApp": stdio(STABLE)})

    app, docs = status_of(client(old, no_client="It has none."), SERVERS, CHOICE, here).registrations

    assert (app.status, app.warnings) == (RegistrationStatus.OUTDATED, ("It has none.",))
    assert (docs.status, docs.warnings) == (RegistrationStatus.MISSING, ("It has none.",))


def test_what_a_workspaces_file_decides_of_what_runs_is_outdated_and_told(
    local: Place, users: Place, here: Here
) -> None:
    entry = {"UnoApp": {**stdio(STABLE), "env": {"UNO_DEVSERVER_TRUST": "1", "LD_PRELOAD": "./x.so", "API_KEY": "k"}}}

    theirs = _app(client(_write(local, entry)), here)
    mine = _app(client(_write(users, entry)), here)

    assert (theirs.status, mine.status) == (RegistrationStatus.OUTDATED, RegistrationStatus.REGISTERED)
    agrees, decides, kept = theirs.warnings
    assert agrees.startswith(
        f"The entry 'UnoApp' in '{local.path}' sets UNO_DEVSERVER_TRUST, which agrees in your name"
    )
    assert decides.startswith(f"The entry 'UnoApp' in '{local.path}' has settings that decide what runs")
    assert decides.endswith(": UNO_DEVSERVER_TRUST=1, LD_PRELOAD=./x.so")
    assert kept.endswith("has settings that may have come with the workspace: API_KEY=…")
    assert mine.warnings == ()


def test_a_part_for_the_workspace_is_told_as_that_though_windows_keys_have_slashes() -> None:
    machine = Here("C:\\Ws\\app", "C:\\me", "C:\\a", "C:\\l", {}, "win32")
    part = place(Path("x.json"), root=("projects", "C:/ws/app", "mcpServers"))

    assert in_words(part, machine) == "'x.json', this project"
    assert in_words(part.replace(root=("projects", "C:/ws", "mcpServers")), machine) == "'x.json'"
