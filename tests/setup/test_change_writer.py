"""Planned changes, written: all or nothing, with a way back, beside editors and after killed runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.files import snapshot, write
from uno_devserver.issues import UserError
from uno_devserver.setup import change_writer
from uno_devserver.setup.change_records import record_of
from uno_devserver.setup.change_writer import CLASH, READ_ONLY, WriteOptions, apply_plan, exclusively
from uno_devserver.setup.plan.changes import Action, ChangePlan, FileChange, Operation
from uno_devserver.setup.profiles import Scope
from uno_devserver.system.files import TEMPORARY

DONE, FAILED = (Action.CREATED, Action.CREATED), (Action.ERROR, Action.ERROR)
Done = tuple[Operation, ...]


def change(path: Path, before: bytes | None, after: bytes | None, **other: object) -> FileChange:
    operations = tuple(Operation(name, "cursor", Action.CREATED, str(path), "Added") for name in ("UnoApp", "UnoDocs"))
    return FileChange(str(path), Scope.WORKSPACE, before, after, operations).replace(**other)


def write_change(options: WriteOptions, path: Path, before: bytes | None, after: bytes | None, **other: object) -> Done:
    return apply_plan(lambda: (change(path, before, after, **other),), options)


@pytest.fixture
def options(tmp_path: Path) -> WriteOptions:
    return WriteOptions(str(tmp_path / "state"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "mcp.json", "{}")


def test_a_link_that_was_put_there_after_the_plan_is_not_followed(options: WriteOptions, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.json", "{}")
    path = tmp_path / "ws" / "mcp.json"
    path.parent.mkdir()
    path.symlink_to(outside)

    done = write_change(options, path, b"{}", b"changed", within=str(path.parent))

    assert actions(done) == FAILED
    assert done[0].reason == (
        f"Not written: '{path}' is a link to '{outside}', outside of the workspace '{path.parent}'"
    )
    assert (outside.read_bytes(), os.path.exists(options.folder)) == (b"{}", False)


def original(options: WriteOptions, path: Path) -> bytes | None:
    """The content before our changes, by the record and the present content."""
    record = record_of(options.folder, str(path))
    assert record is not None
    found = record.original(path.read_bytes())
    assert found is not None
    return found.content


def actions(operations: tuple[Operation, ...]) -> tuple[Action, ...]:
    return tuple(one.action for one in operations)


# --- what is written ---


def test_a_file_that_goes_is_the_one_that_a_link_leads_to(tmp_path: Path, options: WriteOptions) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    write_change(options, real, None, b"{}")
    link.symlink_to(real)

    done = write_change(options, link, b"{}", None)

    assert actions(done) == DONE
    assert (real.exists(), link.is_symlink()) == (False, True), "the link is the user's"


def test_a_changed_file_has_a_backup_and_stays_what_it_was_otherwise(path: Path, options: WriteOptions) -> None:
    path.chmod(0o640)

    done = write_change(options, path, b"{}", b"{1}")

    assert actions(done) == DONE
    assert path.read_bytes() == b"{1}"
    assert path.stat().st_mode & 0o777 == 0o640
    assert {one.backup for one in done} == {done[0].backup}
    assert Path(done[0].backup or "").read_bytes() == b"{}"


def test_a_second_change_of_ours_keeps_the_first_backup(path: Path, options: WriteOptions) -> None:
    (first, _) = write_change(options, path, b"{}", b"{1}")

    (second, _) = write_change(options, path, b"{1}", b"{1, 2}")

    assert second.backup == first.backup
    assert original(options, path) == b"{}"


def test_after_a_change_by_others_their_content_is_the_next_backup(path: Path, options: WriteOptions) -> None:
    (first, _) = write_change(options, path, b"{}", b"{1}")
    path.write_bytes(b"{theirs}")

    (second, _) = write_change(options, path, b"{theirs}", b"{theirs, 1}")

    assert Path(second.backup or "").read_bytes() == b"{theirs}"
    assert Path(first.backup or "").read_bytes() == b"{}", "nothing is lost"


def test_a_file_that_becomes_the_original_again_leaves_neither_backup_nor_record(
    tmp_path: Path, path: Path, options: WriteOptions
) -> None:
    write_change(options, path, b"{}", b"{1}")

    done = write_change(options, path, b"{1}", b"{}")

    assert done[0].backup is None
    assert [one for one in (tmp_path / "state").rglob("*") if one.is_file()] == []


@pytest.mark.parametrize(("scope", "mode"), [(Scope.WORKSPACE, 0o644), (Scope.USER, 0o600)])
def test_a_new_file_goes_with_the_folders_that_were_made_for_it(
    tmp_path: Path, options: WriteOptions, scope: Scope, mode: int
) -> None:
    before = snapshot(tmp_path)
    path = tmp_path / "new" / "folder" / "mcp.json"

    write_change(options, path, None, b"{}", scope=scope)
    assert path.stat().st_mode & 0o777 == mode
    assert path.parent.stat().st_mode & 0o777 == 0o755
    write_change(options, path, b"{}", b"{1}", scope=scope)
    write_change(options, path, b"{1}", None, scope=scope)

    after = snapshot(tmp_path)
    assert {name for name in after if not name.startswith(options.folder)} == set(before)


def test_a_folder_that_somebody_else_uses_by_now_stays(tmp_path: Path, options: WriteOptions) -> None:
    path = tmp_path / "new" / "mcp.json"
    write_change(options, path, None, b"{}")
    theirs = write(tmp_path / "new" / "theirs", "")

    write_change(options, path, b"{}", None)

    assert not path.exists()
    assert theirs.exists()


def test_without_a_backup_only_the_changed_region_is_kept(tmp_path: Path, options: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "secret {} secret")

    done = write_change(options.replace(backup=False), path, b"secret {} secret", b"secret {1} secret")

    assert done[0].backup is None
    kept = [one.read_bytes() for one in (tmp_path / "state").rglob("*") if one.is_file()]
    assert len(kept) == 1
    assert b"secret" not in kept[0]


def test_a_file_that_does_not_change_is_not_written_and_has_no_backup(
    tmp_path: Path, path: Path, options: WriteOptions
) -> None:
    before = snapshot(tmp_path)

    done = write_change(options, path, b"{}", b"{}")

    assert [one.backup for one in done] == [None, None]
    assert snapshot(tmp_path) == before


def test_a_dry_run_writes_nothing_and_has_the_difference_once(tmp_path: Path, options: WriteOptions) -> None:
    path = write(tmp_path / "mcp.json", "{}\n")
    before = snapshot(tmp_path)

    done = write_change(options.replace(dry_run=True), path, b"{}\n", b"{[]}\n")

    assert snapshot(tmp_path) == before
    assert "+{[]}" in done[0].diff
    assert done[1].diff == ""


# --- what goes wrong ---


def test_a_write_protected_file_is_refused_also_in_a_dry_run(path: Path, options: WriteOptions) -> None:
    path.chmod(0o444)

    for how in (options, options.replace(dry_run=True)):
        done = write_change(how, path, b"{}", b"{1}")
        assert [one.reason for one in done] == [READ_ONLY, READ_ONLY]
        assert actions(done) == FAILED
    assert path.read_bytes() == b"{}"


def test_one_file_that_fails_stops_no_other_and_leaves_no_folder(tmp_path: Path, options: WriteOptions) -> None:
    blocked = write(tmp_path / "file", "") / "below" / "mcp.json"
    fine = tmp_path / "fine" / "mcp.json"

    done = apply_plan(lambda: (change(blocked, None, b"{}"), change(fine, None, b"{}")), options)

    assert actions(done) == (*FAILED, *DONE)
    assert fine.read_bytes() == b"{}"
    assert record_of(options.folder, str(blocked)) is None


def test_a_failed_change_leaves_the_record_of_those_before(tmp_path: Path, path: Path, options: WriteOptions) -> None:
    write_change(options, path, b"{}", b"{1}")
    record = record_of(options.folder, str(path))
    path.chmod(0o600)
    os.rename(path, tmp_path / "moved")
    path.mkdir()

    done = write_change(options, path, b"{1}", b"{2}")

    assert actions(done) == FAILED
    assert record_of(options.folder, str(path)) == record


def test_state_that_cannot_be_kept_is_an_error_unless_no_backup_is_wanted(tmp_path: Path, path: Path) -> None:
    options = WriteOptions(str(write(tmp_path / "file", "") / "state"))

    refused = write_change(options, path, b"{}", b"{1}")
    assert actions(refused) == FAILED
    assert options.folder in refused[0].reason
    assert "--no-backup" in refused[0].reason
    assert path.read_bytes() == b"{}"

    assert actions(write_change(options.replace(backup=False), path, b"{}", b"{1}")) == DONE
    assert path.read_bytes() == b"{1}"


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from setup.test_change_writer import write_change
from pathlib import Path
from uno_devserver.setup.change_writer import WriteOptions
path = Path(sys.argv[2])
before = path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
done = write_change(WriteOptions(sys.argv[3], backup=False), path, before, before + b"more")
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
    tmp_path: Path, options: WriteOptions, content: bytes | None
) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)

    done = apply_plan(replanned(path, lambda number: path.write_bytes(b"theirs") if number == 0 else None), options)

    assert actions(done) == DONE
    assert path.read_bytes() == b"theirs+ours"
    assert original(options, path) == b"theirs"


def test_an_editor_that_keeps_saving_wins(path: Path, options: WriteOptions) -> None:

    done = apply_plan(replanned(path, lambda number: write(path, f"theirs {number}")), options)

    assert [one.reason for one in done] == [CLASH, CLASH]
    assert path.read_bytes() == b"theirs 1"


def test_a_file_that_appears_while_the_new_one_is_written_is_not_replaced(
    tmp_path: Path, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sync = tmp_path / "mcp.json", os.fsync

    def save(handle: int) -> None:
        if (tmp_path / f"mcp.json.{os.getpid()}-0{TEMPORARY}").exists() and not path.exists():
            path.write_bytes(b"theirs")
        sync(handle)

    monkeypatch.setattr(os, "fsync", save)
    done = apply_plan(replanned(path, lambda _: None), options)

    assert actions(done) == DONE
    assert path.read_bytes() == b"theirs+ours"
    assert sorted(os.listdir(tmp_path)) == ["mcp.json", "state"]


def test_a_file_that_vanishes_meanwhile_is_planned_again(path: Path, options: WriteOptions) -> None:

    done = apply_plan(replanned(path, lambda number: path.unlink() if number == 0 else None), options)

    assert actions(done) == DONE
    assert path.read_bytes() == b"+ours"


def test_a_file_to_be_removed_that_others_changed_stays(tmp_path: Path, options: WriteOptions) -> None:
    path = tmp_path / "mcp.json"
    write_change(options, path, None, b"{}")
    path.write_bytes(b"theirs")

    done = write_change(options, path, b"{}", None)

    assert [one.reason for one in done] == [CLASH, CLASH]
    assert path.read_bytes() == b"theirs"


def test_what_the_new_plan_says_of_a_file_is_told_beside_what_was_done_already(
    tmp_path: Path, options: WriteOptions
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

    done = apply_plan(lambda: next(plans), options)

    assert [one.reason for one in done] == ["Put back", "Nothing to do", "It was changed by others since"]
    assert busy.read_bytes() == b"{}"


# --- killed runs ---

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from setup.test_change_writer import write_change
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
write_change(WriteOptions(sys.argv[3]), path, path.read_bytes() if path.exists() else None, b"{1}")
"""


@pytest.mark.parametrize("content", [b"{}", None])
def test_a_run_killed_before_the_rename_leaves_the_old_file_and_the_next_one_cleans_up(
    tmp_path: Path, options: WriteOptions, content: bytes | None
) -> None:
    path = tmp_path / "new" / "mcp.json"
    if content is not None:
        write(path, content)
    tests = str(Path(__file__).parent.parent)

    killed = subprocess.run([sys.executable, "-c", KILLED, tests, str(path), options.folder], check=False)

    assert killed.returncode == -9
    assert (path.read_bytes() if path.exists() else None) == content
    assert [one.name for one in path.parent.iterdir() if one.suffix == ".tmp"], "it was killed in the middle"

    assert actions(write_change(options, path, content, b"{1}")) == DONE
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]
    write_change(options, path, b"{1}", content)
    assert path.exists() == (content is not None)
    assert path.parent.exists() == (content is not None), "the killed run made the folder, and that is known"


def test_temporary_files_of_others_and_of_living_processes_stay(
    tmp_path: Path, path: Path, options: WriteOptions
) -> None:
    living, dead = f"{os.getpid()}-0", "999999999-1"
    names = (f"mcp.json.{living}{TEMPORARY}", "mcp.json.tmp", f"x.json.{dead}{TEMPORARY}", f"mcp.json.{dead}.tmp")
    stay = [write(tmp_path / name, "") for name in names]

    write_change(options, path, b"{}", b"{1}")

    assert all(one.exists() for one in stay)


# --- one run at a time ---

HOLD = """
import sys
from uno_devserver.system.locks import FileLock
lock = FileLock(sys.argv[1])
lock.acquire(5, lambda holder: None)
print("held", flush=True)
sys.stdin.read()
"""


def test_another_run_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_writer, "WAIT_SECONDS", 0.1)
    path = str(tmp_path / change_writer.LOCK)
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"

        with pytest.raises(UserError, match=rf"process {holder.pid}\) has been changing"):
            exclusively(str(tmp_path), lambda: pytest.fail("it must not be done"), required=False)

        holder.communicate()
    assert exclusively(str(tmp_path), lambda: "done", required=True) == "done"


def test_it_is_free_again_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        exclusively(str(tmp_path), lambda: 1 // 0, required=True)

    assert exclusively(str(tmp_path), lambda: "done", required=True) == "done"


def test_without_a_folder_for_the_lock_only_those_go_on_who_need_none(tmp_path: Path) -> None:
    folder = os.path.join(write(tmp_path / "file", ""), "state")

    with pytest.raises(UserError, match="cannot be used") as problem:
        exclusively(folder, lambda: pytest.fail("it must not be done"), required=True)

    assert folder in problem.value.message
    assert "--no-backup" in problem.value.next_step
    assert exclusively(folder, lambda: "done", required=False) == "done"
