"""The add-ins that were last found: kept per workspace, used only where they still belong and exist."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from support.files import snapshot, write
from uno_devserver.discovery.entry_points import DiscoveredAddIn
from uno_devserver.discovery.last_known_good import MAX_BYTES, LastKnownGood
from uno_devserver.system.files import TEMPORARY

PACKAGES = ["Uno.UI.App.Mcp/1.1.0", "Acme.Tool/1.0.0"]
SDK = "Uno.Sdk/6.5.31"


class State:
    """The folder of our state, and two add-ins that exist."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "state"
        self.addins = tuple(
            DiscoveredAddIn(f"Acme.{name}", "1.0.0", str(write(root / "nuget" / f"{name}.dll", b"MZ")), source)
            for name, source in (("One", "targets"), ("Two", "manifest"))
        )

    def store(self, workspace: str = "/src/app", sdk: str = SDK) -> LastKnownGood:
        return LastKnownGood(str(self.folder), workspace, sdk)

    @property
    def file(self) -> Path:
        (path,) = (self.folder / "addins").iterdir()
        return path

    def change(self, **fields: Any) -> None:
        self.file.write_text(json.dumps(json.loads(self.file.read_text("utf-8")) | fields), "utf-8")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


@pytest.fixture
def saved(state: State) -> State:
    state.store().save(PACKAGES, state.addins)
    return state


# --- keeping ------------------------------------------------------------------------------------------------------


def test_what_was_found_is_found_again(saved: State) -> None:
    assert saved.store().load(PACKAGES) == saved.addins


def test_before_anything_was_found_there_is_nothing(state: State) -> None:
    assert state.store().load(PACKAGES) == ()
    assert state.store().load(None) == ()


def test_the_file_is_for_this_user_only_and_nothing_lies_beside_it(saved: State) -> None:
    assert stat.S_IMODE(saved.file.stat().st_mode) == 0o600
    assert saved.file.name.startswith("app-")
    assert saved.file.suffix == ".json"


def test_nothing_is_written_where_nothing_changed(saved: State) -> None:
    before = saved.file.stat()

    saved.store().save(PACKAGES, saved.addins)

    after = saved.file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("change", ["add-ins", "packages", "sdk"])
def test_a_change_replaces_the_file_as_a_whole(saved: State, change: str) -> None:
    before = saved.file.stat().st_ino
    store = saved.store(sdk="Uno.Sdk/6.6.0") if change == "sdk" else saved.store()
    packages = PACKAGES[:1] if change == "packages" else PACKAGES
    addins = saved.addins[:1] if change == "add-ins" else saved.addins

    store.save(packages, addins)

    assert saved.file.stat().st_ino != before
    assert store.load(packages) == addins


def test_a_state_folder_that_cannot_be_written_is_no_error(state: State) -> None:
    write(state.folder, "a file")

    state.store().save(PACKAGES, state.addins)

    assert state.store().load(PACKAGES) == ()
    assert state.folder.read_text() == "a file"


def test_names_of_any_bytes_are_kept(state: State, tmp_path: Path) -> None:
    """Linux file names need not be UTF-8, and a package list may hold half of a surrogate pair."""
    path = os.fsdecode(bytes(tmp_path) + b"/caf\xe9.dll")
    write(Path(path), b"MZ")
    addin = DiscoveredAddIn("Caf\ud800", "1.0", path, "targets")
    store = state.store("/src/caf\udce9")

    store.save(["Caf\ud800/1.0"], [addin])

    assert store.load(["Caf\ud800/1.0"]) == (addin,)


# --- belonging ----------------------------------------------------------------------------------------------------


def test_each_workspace_has_a_file_of_its_own(state: State) -> None:
    workspaces = ["/src/app", "/src/other/app", "/", "/src/Můj projekt & co", "/src/" + "x" * 250]
    for number, workspace in enumerate(workspaces):
        state.store(workspace).save([str(number)], state.addins[: number % 2 + 1])

    for number, workspace in enumerate(workspaces):
        assert state.store(workspace).load([str(number)]) == state.addins[: number % 2 + 1]
    assert len(list((state.folder / "addins").iterdir())) == len(workspaces)


@pytest.mark.parametrize("packages", [[], PACKAGES[:1], [*PACKAGES, "New/1.0"], PACKAGES[::-1], ["Acme.Tool/1.0.1"]])
def test_another_package_list_has_no_known_add_ins(saved: State, packages: list[str]) -> None:
    assert saved.store().load(packages) == ()


def test_where_the_package_list_cannot_be_read_the_sdk_decides(saved: State) -> None:
    assert saved.store().load(None) == saved.addins
    assert saved.store(sdk="Uno.Sdk/6.6.0").load(None) == ()


def test_another_sdk_has_no_known_add_ins(saved: State) -> None:
    assert saved.store(sdk="Uno.Sdk/6.6.0").load(PACKAGES) == ()


def test_the_file_of_another_workspace_does_not_count(saved: State) -> None:
    """The file's name is only a short checksum; the path inside decides."""
    saved.change(workspace="/src/other")

    assert saved.store().load(PACKAGES) == ()


@pytest.mark.parametrize("instead", ["nothing", "folder"])
def test_one_missing_file_makes_all_unknown(saved: State, instead: str) -> None:
    """What is left belongs to another state of the packages than the one that worked."""
    path = Path(saved.addins[1].path)
    path.unlink()
    if instead == "folder":
        path.mkdir()

    assert saved.store().load(PACKAGES) == ()


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"not json", b"\0", b"\xff\xfe", b"[" * 100_000, b" " * (MAX_BYTES + 1)],
    ids=["empty", "cut", "null", "list", "text", "NUL", "BOM", "deep", "huge"],
)
def test_a_damaged_file_knows_nothing_and_is_replaced_by_the_next_find(saved: State, content: bytes) -> None:
    saved.file.write_bytes(content)

    assert saved.store().load(PACKAGES) == ()
    assert saved.store().load(None) == ()
    assert saved.file.read_bytes() == content, "reading changes nothing"

    saved.store().save(PACKAGES, saved.addins)

    assert saved.store().load(PACKAGES) == saved.addins


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 2},
        {"version": "1"},
        {"version": None},
        {"sdk": None},
        {"packages": 1},
        {"addIns": None},
        {"addIns": "x"},
        {"addIns": [None]},
        {"addIns": [["a", "b", "/etc/hostname"]]},
        {"addIns": [["a", "b", "/etc/hostname", 1]]},
        {"addIns": [["a", "b", "nul\0", "targets"]]},
        {"addIns": [["a", "b", "\ud800", "targets"]]},
        {"addIns": []},
    ],
    ids=str,
)
def test_a_file_of_another_shape_knows_nothing(saved: State, fields: dict[str, Any]) -> None:
    saved.change(**fields)

    assert saved.store().load(PACKAGES) == ()


@pytest.mark.timeout(5)
def test_what_is_no_file_knows_nothing(saved: State) -> None:
    path = saved.file
    path.unlink()
    os.mkfifo(path)

    assert saved.store().load(PACKAGES) == ()


def test_a_killed_writers_leftover_changes_nothing(saved: State) -> None:
    write(saved.file.with_name(saved.file.name + f".123-0{TEMPORARY}"), b"half a fi")
    before = snapshot(saved.folder)

    saved.store().save(PACKAGES, saved.addins)

    assert saved.store().load(PACKAGES) == saved.addins
    assert snapshot(saved.folder) == before
