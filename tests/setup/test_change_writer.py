"""Planned changes, written: all or nothing, with a way back, beside editors and after killed runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.files import snapshot, write
from uno_devserver.setup.change_records import record_of
from uno_devserver.setup.change_writer import CLASH, READ_ONLY, WriteOptions, apply_plan
from uno_devserver.setup.plan.changes import Action, ChangePlan, FileChange, Operation
from uno_devserver.setup.profiles import Scope

DONE = (Action.CREATED, Action.CREATED)


def change(path: Path, before: bytes | None, after: bytes | None, **other: object) -> FileChange:
    operations = tuple(Operation(name, "cursor", Action.CREATED, str(path), "Added") for name in ("UnoApp", "UnoDocs"))
    return FileChange(str(path), Scope.WORKSPACE, before, after, operations).replace(**other)


def apply(plan: ChangePlan, ways: WriteOptions) -> tuple[Operation, ...]:
    return apply_plan(lambda: plan, ways)


@pytest.fixture
def ways(tmp_path: Path) -> WriteOptions:
    return WriteOptions(str(tmp_path / "state"))


def actions(operations: tuple[Operation, ...]) -> tuple[Action, ...]:
    return tuple(one.action for one in operations)


# --- what is written ---


def test_a_file_that_goes_is_the_one_that_a_link_leads_to(tmp_path: Path, ways: WriteOptions) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    apply((change(real, None, b"{}"),), ways)
    link.symlink_to(real)

    done = apply((change(link, b"{}", None),), ways)

    assert actions(done) == DONE
    assert (real.exists(), link.is_symlink()) == (False, True), "the link is the user's"


def test_a_changed_file_has_a_backup_and_stays_what_it_was_otherwise(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    path.chmod(0o640)

    done = apply((change(path, b"{}", b"{1}"),), ways)

    assert actions(done) == DONE
    assert path.read_bytes() == b"{1}"
    assert path.stat().st_mode & 0o777 == 0o640
    assert {one.backup for one in done} == {done[0].backup}
    assert Path(done[0].backup or "").read_bytes() == b"{}"


def test_a_second_change_of_ours_keeps_the_first_backup(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    (first, _) = apply((change(path, b"{}", b"{1}"),), ways)

    (second, _) = apply((change(path, b"{1}", b"{1, 2}"),), ways)

    assert second.backup == first.backup
    record = record_of(ways.folder, str(path))
    assert record is not None
    original = record.original(b"{1, 2}")
    assert original is not None
    assert original.content == b"{}"


def test_after_a_change_by_others_their_content_is_the_next_backup(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    (first, _) = apply((change(path, b"{}", b"{1}"),), ways)
    path.write_bytes(b"{theirs}")

    (second, _) = apply((change(path, b"{theirs}", b"{theirs, 1}"),), ways)

    assert Path(second.backup or "").read_bytes() == b"{theirs}"
    assert Path(first.backup or "").read_bytes() == b"{}", "nothing is lost"


def test_a_file_that_becomes_the_original_again_leaves_neither_backup_nor_record(
    tmp_path: Path, ways: WriteOptions
) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    apply((change(path, b"{}", b"{1}"),), ways)

    done = apply((change(path, b"{1}", b"{}"),), ways)

    assert done[0].backup is None
    assert [one for one in (tmp_path / "state").rglob("*") if one.is_file()] == []


@pytest.mark.parametrize(("scope", "mode"), [(Scope.WORKSPACE, 0o644), (Scope.USER, 0o600)])
def test_a_new_file_goes_with_the_folders_that_were_made_for_it(
    tmp_path: Path, ways: WriteOptions, scope: Scope, mode: int
) -> None:
    before = snapshot(tmp_path)
    path = tmp_path / "new" / "folder" / "mcp.json"

    apply((change(path, None, b"{}", scope=scope),), ways)
    assert path.stat().st_mode & 0o777 == mode
    assert path.parent.stat().st_mode & 0o777 == 0o755
    apply((change(path, b"{}", b"{1}", scope=scope),), ways)
    apply((change(path, b"{1}", None, scope=scope),), ways)

    after = snapshot(tmp_path)
    assert {name for name in after if not name.startswith(ways.folder)} == set(before)


def test_a_folder_that_somebody_else_uses_by_now_stays(tmp_path: Path, ways: WriteOptions) -> None:
    path = tmp_path / "new" / "mcp.json"
    apply((change(path, None, b"{}"),), ways)
    theirs = write(tmp_path / "new" / "theirs", "")

    apply((change(path, b"{}", None),), ways)

    assert not path.exists()
    assert theirs.exists()


def test_without_a_backup_only_the_changed_region_is_kept(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "secret {} secret")

    done = apply((change(path, b"secret {} secret", b"secret {1} secret"),), ways.replace(backup=False))

    assert done[0].backup is None
    kept = [one.read_bytes() for one in (tmp_path / "state").rglob("*") if one.is_file()]
    assert len(kept) == 1
    assert b"secret" not in kept[0]


def test_a_file_that_does_not_change_is_not_written_and_has_no_backup(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    before = snapshot(tmp_path)

    done = apply((change(path, b"{}", b"{}"),), ways)

    assert [one.backup for one in done] == [None, None]
    assert snapshot(tmp_path) == before


def test_a_dry_run_writes_nothing_and_has_the_difference_once(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}\n")
    before = snapshot(tmp_path)

    done = apply((change(path, b"{}\n", b"{1}\n"),), ways.replace(dry_run=True))

    assert snapshot(tmp_path) == before
    assert "+{1}" in done[0].diff
    assert done[1].diff == ""


# --- what goes wrong ---


def test_a_write_protected_file_is_refused_also_in_a_dry_run(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    path.chmod(0o444)

    for how in (ways, ways.replace(dry_run=True)):
        done = apply((change(path, b"{}", b"{1}"),), how)
        assert [one.reason for one in done] == [READ_ONLY, READ_ONLY]
        assert actions(done) == (Action.ERROR, Action.ERROR)
    assert path.read_bytes() == b"{}"


def test_one_file_that_fails_stops_no_other_and_leaves_no_folder(tmp_path: Path, ways: WriteOptions) -> None:
    blocked = write(tmp_path / "file", "") / "below" / "mcp.json"
    fine = tmp_path / "fine" / "mcp.json"

    done = apply((change(blocked, None, b"{}"), change(fine, None, b"{}")), ways)

    assert actions(done) == (Action.ERROR, Action.ERROR, *DONE)
    assert fine.read_bytes() == b"{}"
    assert record_of(ways.folder, str(blocked)) is None


def test_a_failed_change_leaves_the_record_of_those_before(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    apply((change(path, b"{}", b"{1}"),), ways)
    record = record_of(ways.folder, str(path))
    path.chmod(0o600)
    os.rename(path, tmp_path / "moved")
    path.mkdir()

    done = apply((change(path, b"{1}", b"{2}"),), ways)

    assert actions(done) == (Action.ERROR, Action.ERROR)
    assert record_of(ways.folder, str(path)) == record


def test_state_that_cannot_be_kept_is_an_error_unless_no_backup_is_wanted(tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    ways = WriteOptions(str(write(tmp_path / "file", "") / "state"))

    refused = apply((change(path, b"{}", b"{1}"),), ways)
    assert actions(refused) == (Action.ERROR, Action.ERROR)
    assert ways.folder in refused[0].reason
    assert "--no-backup" in refused[0].reason
    assert path.read_bytes() == b"{}"

    assert actions(apply((change(path, b"{}", b"{1}"),), ways.replace(backup=False))) == DONE
    assert path.read_bytes() == b"{1}"


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from setup.test_change_writer import apply, change
from pathlib import Path
from uno_devserver.setup.change_writer import WriteOptions
path = Path(sys.argv[2])
before = path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
done = apply((change(path, before, before + b"more"),), WriteOptions(sys.argv[3], backup=False))
print(done[0].action.value, done[0].reason)
"""


def test_a_disk_without_room_costs_the_change_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", b"x" * 8192)
    tests = str(Path(__file__).parent.parent)

    printed = subprocess.run(
        [sys.executable, "-c", FULL, tests, str(path), str(tmp_path / "state")], capture_output=True, text=True
    )

    assert printed.stdout.startswith("error Could not be written: File too large"), printed
    assert path.read_bytes() == b"x" * 8192
    assert sorted(one.name for one in tmp_path.iterdir()) == ["mcp.json", "state"]


# --- others at the same moment ---


def replanned(path: Path, before_each: Callable[[int], object]) -> Callable[[], ChangePlan]:
    """A plan that adds to whatever is there, and something that happens after it was made."""
    rounds = iter(range(10))

    def plan() -> ChangePlan:
        content = path.read_bytes() if path.exists() else None
        before_each(next(rounds))
        return (change(path, content, (content or b"") + b"+ours"),)

    return plan


@pytest.mark.parametrize("content", [b"{}", None])
def test_an_editor_that_saves_meanwhile_loses_nothing(
    tmp_path: Path, ways: WriteOptions, content: bytes | None
) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)

    done = apply_plan(replanned(path, lambda number: path.write_bytes(b"theirs") if number == 0 else None), ways)

    assert actions(done) == DONE
    assert path.read_bytes() == b"theirs+ours"
    record = record_of(ways.folder, str(path))
    assert record is not None
    original = record.original(b"theirs+ours")
    assert original is not None
    assert original.content == b"theirs"


def test_an_editor_that_keeps_saving_wins(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")

    done = apply_plan(replanned(path, lambda number: write(path, f"theirs {number}")), ways)

    assert [one.reason for one in done] == [CLASH, CLASH]
    assert path.read_bytes() == b"theirs 1"


def test_a_file_that_appears_while_the_new_one_is_written_is_not_replaced(
    tmp_path: Path, ways: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sync = tmp_path / "mcp.json", os.fsync

    def save(handle: int) -> None:
        if (tmp_path / f"mcp.json.{os.getpid()}-0.tmp").exists() and not path.exists():
            path.write_bytes(b"theirs")
        sync(handle)

    monkeypatch.setattr(os, "fsync", save)
    done = apply_plan(replanned(path, lambda _: None), ways)

    assert actions(done) == DONE
    assert path.read_bytes() == b"theirs+ours"
    assert sorted(os.listdir(tmp_path)) == ["mcp.json", "state"]


def test_a_file_that_vanishes_meanwhile_is_planned_again(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")

    done = apply_plan(replanned(path, lambda number: path.unlink() if number == 0 else None), ways)

    assert actions(done) == DONE
    assert path.read_bytes() == b"+ours"


def test_a_file_to_be_removed_that_others_changed_stays(tmp_path: Path, ways: WriteOptions) -> None:
    path = tmp_path / "mcp.json"
    apply((change(path, None, b"{}"),), ways)
    path.write_bytes(b"theirs")

    done = apply((change(path, b"{}", None),), ways)

    assert [one.reason for one in done] == [CLASH, CLASH]
    assert path.read_bytes() == b"theirs"


def test_what_the_new_plan_says_of_a_file_is_told_beside_what_was_done_already(
    tmp_path: Path, ways: WriteOptions
) -> None:
    fine, busy = write(tmp_path / "fine.json", "{}"), write(tmp_path / "busy.json", "{}")
    note = Operation(None, "cursor", Action.SKIPPED, str(busy), "Nothing to do")
    refusal = Operation(None, "cursor", Action.ERROR, str(busy), "It was changed by others since")
    whole = Operation(None, "cursor", Action.RESTORED, None, "Put back")
    plans = iter(
        [
            (
                change(fine, b"{}", b"{1}", operations=(whole,)),
                change(busy, b"{old}", b"{1}", operations=(whole,)),
                note,
            ),
            (refusal, note),
        ]
    )

    done = apply_plan(lambda: next(plans), ways)

    assert [one.reason for one in done] == ["Put back", "Nothing to do", "It was changed by others since"]
    assert busy.read_bytes() == b"{}"


# --- killed runs ---

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from setup.test_change_writer import apply, change
from pathlib import Path
from uno_devserver.setup.change_writer import WriteOptions
path = Path(sys.argv[2])
def killed_at(move):
    def at(source, target):
        if target == str(path):
            os.kill(os.getpid(), signal.SIGKILL)
        move(source, target)
    return at
os.replace, os.link = killed_at(os.replace), killed_at(os.link)
apply((change(path, path.read_bytes() if path.exists() else None, b"{1}"),), WriteOptions(sys.argv[3]))
"""


@pytest.mark.parametrize("content", [b"{}", None])
def test_a_run_killed_before_the_rename_leaves_the_old_file_and_the_next_one_cleans_up(
    tmp_path: Path, ways: WriteOptions, content: bytes | None
) -> None:
    path = tmp_path / "new" / "mcp.json"
    if content is not None:
        write(path, content)
    tests = str(Path(__file__).parent.parent)

    killed = subprocess.run([sys.executable, "-c", KILLED, tests, str(path), ways.folder], check=False)

    assert killed.returncode == -9
    assert (path.read_bytes() if path.exists() else None) == content
    assert [one.name for one in path.parent.iterdir() if one.suffix == ".tmp"], "it was killed in the middle"

    assert actions(apply((change(path, content, b"{1}"),), ways)) == DONE
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]
    apply((change(path, b"{1}", content),), ways)
    assert path.exists() == (content is not None)
    assert path.parent.exists() == (content is not None), "the killed run made the folder, and that is known"


def test_temporary_files_of_others_and_of_living_processes_stay(tmp_path: Path, ways: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}")
    stay = [write(tmp_path / name, "") for name in (f"mcp.json.{os.getpid()}-0.tmp", "mcp.json.tmp", "x.json.1-0.tmp")]

    apply((change(path, b"{}", b"{1}"),), ways)

    assert all(one.exists() for one in stay)
