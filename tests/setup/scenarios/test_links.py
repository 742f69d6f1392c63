"""Files that a client finds in two places through links: each is planned once, and the user's own servers stay.

Every pair of places of every client is tried, in all layouts, by the command line in this process.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from support.machine import DATA_HOME
from support.registration import DOCS_URL, UVX
from uno_devserver.cli.main import main
from uno_devserver.setup.definitions import load
from uno_devserver.setup.paths import here
from uno_devserver.setup.profiles import Format, Place

OURS = ("UnoApp", "UnoDocs")
MINE = {f"mine-{number}": {"command": "mine", "args": [str(number)]} for number in range(4)}


class Arrangement(NamedTuple):
    """Where the workspace is, and how the home folder is spelled."""

    workspace: str
    home: str


ARRANGEMENTS = {
    "workspace beside home": Arrangement("ws", "home"),
    "home in the workspace": Arrangement(".", "home"),
    "workspace is home": Arrangement("home", "home"),
    "home through a link": Arrangement("home", "home-link"),
    "workspace through a link": Arrangement("home-link", "home"),
}


class Scratch:
    def __init__(self, root: Path) -> None:
        self._root = root

    def arranged(self, arrangement: Arrangement) -> Scratch:
        for name in os.listdir(self._root):
            path = self._root / name
            path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)
        for name in ("ws", "home", "data"):
            (self._root / name).mkdir()
        (self._root / "home-link").symlink_to("home")
        os.environ["HOME"] = str(self._root / arrangement.home)
        self.workspace = os.path.join(self._root, arrangement.workspace)
        return self

    def mcp(self, *argv: str) -> list[dict[str, Any]]:
        """The operations of a command."""
        return list(self.said(*argv)["operations"])

    def said(self, *argv: str) -> dict[str, Any]:
        out, printed = sys.stdout, io.BytesIO()
        sys.stdout = io.TextIOWrapper(printed, encoding="utf-8")
        try:
            main(["mcp", *argv, "--json", "--workspace", self.workspace])
            sys.stdout.flush()
            said: dict[str, Any] = json.loads(printed.getvalue())
            return said
        finally:
            sys.stdout = out


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    with tempfile.TemporaryDirectory(prefix="u") as folder:
        for name, value in {"HOME": "home", DATA_HOME: "data", "PATH": "none"}.items():
            monkeypatch.setenv(name, os.path.join(folder, value))
        for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(os, "fsync", lambda handle: None)  # no machine is switched off while this runs
        yield Scratch(Path(os.path.realpath(folder)))


def _file_is_linked(file: str, link: str) -> None:
    os.makedirs(os.path.dirname(link), exist_ok=True)
    os.symlink(os.path.relpath(file, os.path.realpath(os.path.dirname(link))), link)


def _folder_is_linked(file: str, link: str) -> None:
    """Only possible if the files have the same name, and neither folder contains the other."""
    if os.path.basename(file) != os.path.basename(link):
        _file_is_linked(file, link)
        return
    os.makedirs(os.path.dirname(os.path.dirname(link)), exist_ok=True)
    os.symlink(os.path.dirname(file), os.path.dirname(link))


def _both_are_linked(file: str, link: str) -> None:
    kept = os.path.join(os.path.dirname(file), "dotfiles.kept")
    os.rename(file, kept)
    os.symlink(kept, file)
    _file_is_linked(kept, link)


LAYOUTS: list[Callable[[str, str], None]] = [_file_is_linked, _folder_is_linked, _both_are_linked]
CLIENTS = [profile.id for profile in load(here("/ws")).profiles if len(profile.places) > 1]


def _layouts(client: str, scratch: Scratch, rounds: int) -> Iterator[tuple[str, Place, Place]]:
    """Arrange each pair of places in turn, in this many of the layouts: a name, the file's place, and the link's."""
    layouts = itertools.cycle(itertools.product(ARRANGEMENTS.items(), LAYOUTS))
    number = len(_places(client, scratch.arranged(ARRANGEMENTS["workspace beside home"])))
    for one, other in itertools.permutations(range(number), 2):
        for (name, arrangement), lay in itertools.islice(layouts, rounds):
            places = _places(client, scratch.arranged(arrangement))
            if max(one, other) >= len(places):
                continue  # two of them are one in this arrangement, also without links
            file, link = places[one], places[other]
            os.makedirs(os.path.dirname(file.path), exist_ok=True)
            Path(file.path).write_text("")
            try:
                lay(file.path, link.path)
            except FileExistsError:
                continue  # this layout is not possible for these two
            if os.path.realpath(file.path) == os.path.realpath(link.path):
                yield f"{name}, {lay.__name__}: {file.path} and {link.path}", file, link


def _places(client: str, scratch: Scratch) -> tuple[Place, ...]:
    profile = load(here(scratch.workspace)).profile(client)
    assert profile is not None
    return profile.places


def _text(places: tuple[Place, ...], servers: dict[str, Any]) -> str:
    """A file with these servers at each of the places."""
    data: dict[str, Any] = {"other": {"kept": True}}
    for place in places:
        inner = data
        for key in place.root[:-1]:
            inner = inner.setdefault(key, {})
        inner[place.root[-1]] = servers
    form = places[0].format
    if form is Format.TOML:
        lines = [f"[{places[0].root[0]}.{name}]\n{_toml(entry)}" for name, entry in servers.items()]
        return "[other]\nkept = true\n\n" + "\n".join(lines)
    return yaml.safe_dump(data, sort_keys=False) if form is Format.YAML else json.dumps(data, indent=2) + "\n"


def _toml(entry: dict[str, Any]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())


def _mine(path: str, place: Place) -> list[object]:
    """The user's own servers in a file, in its order, with their values."""
    text = Path(path).read_text("utf-8")
    data = tomllib.loads(text) if place.format is Format.TOML else yaml.safe_load(text)
    assert data["other"] == {"kept": True}
    for key in place.root:
        data = data[key]
    return [(name, entry) for name, entry in data.items() if name not in OURS]


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_takes_only_our_entries_out_of_a_file_that_is_two_places(client: str, scratch: Scratch) -> None:
    ours = {"UnoApp": {**UVX}, "UnoDocs": {"url": DOCS_URL}}
    for name, file, link in _layouts(client, scratch, rounds=4):
        Path(file.path).write_text(_text((file, link), {**ours, **MINE}))

        operations = scratch.mcp("uninstall", client, "--all-scopes")

        removed = [one["server"] for one in operations if one["action"] == "removed"]
        assert len(removed) <= len({file.root, link.root}) * len(ours), (name, operations)
        assert [_mine(file.path, place) for place in (file, link)] == [list(MINE.items())] * 2, name


@pytest.mark.parametrize("client", CLIENTS)
def test_what_install_puts_into_such_a_file_goes_to_the_byte(client: str, scratch: Scratch) -> None:
    commands = itertools.cycle(itertools.product(("workspace", "user"), ("uninstall", "restore")))
    for (name, file, link), (scope, undo) in zip(_layouts(client, scratch, rounds=1), commands, strict=False):
        content = _text((file, link), MINE)
        Path(file.path).write_text(content)

        installed = scratch.mcp("install", client, "--scope", scope)
        between = Path(file.path).read_text()
        again = scratch.mcp("install", client, "--scope", scope)
        status = scratch.said("status", client) if name.startswith("workspace is home") else {"servers": ()}
        undone = scratch.mcp(undo, client, "--all-scopes")

        if between != content:
            assert {one["action"] for one in installed} <= {"created", "skipped"}, (name, installed)
            assert {one["action"] for one in again} == {"skipped"}, (name, again)
            assert {"removed", "restored"} & {one["action"] for one in undone}, (name, undone)
        if file.root == link.root:
            assert "multiple config files" not in json.dumps(status["servers"]), name
        assert Path(file.path).read_text() == content, (name, undo, scope)
        assert os.path.realpath(file.path) == os.path.realpath(link.path), "the links stay"


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_file_that_two_clients_share_through_a_link_is_changed_once_for_both(
    scratch: Scratch, dry_run: tuple[str, ...]
) -> None:
    scratch.arranged(ARRANGEMENTS["workspace beside home"])
    file, link = (os.path.expanduser(f"~/{path}") for path in (".cursor/mcp.json", ".kiro/settings/mcp.json"))
    os.makedirs(os.path.dirname(file))
    content = json.dumps({"mcpServers": MINE})
    Path(file).write_text(content)
    _file_is_linked(file, link)
    scratch.mcp("install", "cursor", "--scope", "user")

    installed = scratch.mcp("install", "--all-ides", "--scope", "user", *dry_run)
    one = scratch.mcp("uninstall", "kiro", "--scope", "user", "--dry-run")
    removed = scratch.mcp("uninstall", "--all-ides", *dry_run)

    assert {each["action"] for each in installed} == {"skipped"}
    assert all("is read by Cursor, too: it loses the server as well." in each["note"] for each in one)
    assert [each["action"] for each in removed] == ["removed", "removed", "not_found", "not_found"]
    assert dry_run or Path(file).read_text() == content
