"""Planned changes, written: all or nothing, with a way back, beside editors and after killed runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import snapshot, write
from uno_devserver.issues import UserError
from uno_devserver.setup import change_writer
from uno_devserver.setup.change_records import record_of
from uno_devserver.setup.change_writer import CLASH, READ_ONLY, WriteOptions, apply_plan, exclusively, unified_diff
from uno_devserver.setup.plan.changes import Action, ChangePlan, FileChange, Operation
from uno_devserver.setup.profiles import Scope

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

    done = write_change(options.replace(dry_run=True), path, b"{}\n", b"{1}\n")

    assert snapshot(tmp_path) == before
    assert "+{1}" in done[0].diff
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
        if (tmp_path / f"mcp.json.{os.getpid()}-0.tmp").exists() and not path.exists():
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
    stay = [write(tmp_path / name, "") for name in (f"mcp.json.{os.getpid()}-0.tmp", "mcp.json.tmp", "x.json.1-0.tmp")]

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


# --- diffs, which `patch` can apply ---

LINES = st.lists(st.sampled_from(["a: {\n", "{\n", "}\n", "],\n"]), max_size=30).map("".join)


def test_a_changed_line_stands_between_three_of_its_neighbours_that_have_no_values() -> None:
    lines = [f'"{number}": {{\n' for number in range(1, 21)]
    lines[11] = '"secret": "x"\n'
    before, after = "".join(lines), "".join(lines).replace('"10": {\n', "ten\n")

    diff = unified_diff("/ws/mcp.json", before.encode(), after.encode())

    assert diff.splitlines() == [
        "--- a/ws/mcp.json",
        "+++ b/ws/mcp.json",
        "@@ -7,5 +7,5 @@",
        ' "7": {',
        ' "8": {',
        ' "9": {',
        '-"10": {',
        "+ten",
        ' "11": {',
    ]


OTHER = '"other":{"url":"https://x","headers":{"Authorization":"Bearer SECRET"},"env":{"A":"SECRET"}}'
OURS = '"uno":{"command":"uvx","args":["uno-devserver"]}'


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (f'{{"mcpServers":{{{OTHER}}}}}', f'{{"mcpServers":{{{OTHER},{OURS}}}}}', f"+…}}}},{OURS}}}}}"),
        (f'{{"mcpServers":{{{OURS},{OTHER}}}}}\n', f'{{"mcpServers":{{{OTHER}}}}}\n', "-…uno"),
        (
            f'{{"mcpServers":{{{OTHER},{OURS}}}}}',
            f'{{"mcpServers":{{{OTHER},{OURS}}}}}'.replace("uvx", "npx"),
            "+…npx…]}}}",
        ),
        (f"{{{OTHER},\n\n}}", f"{{{OTHER},\n{OURS}\n}}", f"+{OURS}"),
        (f"{{\n  {OTHER}\n}}", f"{{\n  {OTHER},\n  {OURS}\n}}", '+  "other":…}},'),
        ('a = {b = "SECRET"}\n', 'a = {b = "SECRET", uno = {command = "uvx"}}\n', "+a = …"),
        ('k: {h: "SECRET"}\n', 'k: {h: "SECRET", uno: {command: uvx}}\n', "+k: …"),
        ('"x": "SECRET",\n"args": ["a"]\n', '"x": "SECRET",\n"args": ["b"]\n', '+"args": ["b"]'),
        ("", '"uno": {\n"env": {"API_KEY": "SECRET"}\n}\n', '+"env": {"API_KEY": …}'),
    ],
)
def test_what_belongs_to_others_is_not_shown(before: str, after: str, shown: str) -> None:
    diff = unified_diff("/x", before.encode(), after.encode())

    assert "SECRET" not in diff
    assert any(line.startswith(shown) for line in diff.splitlines()), diff


def test_of_a_whole_file_the_names_of_settings_are_shown() -> None:
    before = f'{{"mcpServers":{{{OTHER}}}}}\n'
    after = '{\n  "a": {\n    "b": "SECRET",\n    "c": [\n      "SECRET"\n    ]\n  }\n}\n- k: SECRET words\n'

    diff = unified_diff("/x", before.encode(), after.encode(), hide_values=True)

    assert diff.splitlines()[3:] == [
        "-…}}}}",
        "+{",
        '+  "a": {',
        '+    "b": …,',
        '+    "c": [',
        "+…",
        "+    ]",
        "+  }",
        "+}",
        "+- k: …",
    ]


def test_a_new_file_comes_from_nowhere_and_a_removed_one_goes_there() -> None:
    assert unified_diff("/x", None, b"{}\n").splitlines()[:2] == ["--- /dev/null", "+++ b/x"]
    assert unified_diff("/x", b"{}\n", None).splitlines()[:2] == ["--- a/x", "+++ /dev/null"]


def test_a_missing_line_end_is_told() -> None:
    assert unified_diff("/x", b"{}", b"{}\n").splitlines()[-3:] == ["-{}", "\\ No newline at end of file", "+{}"]


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES)
def test_patch_gets_from_the_old_content_to_the_new(tmp_path: Path, before: str, after: str) -> None:
    path = write(tmp_path / "file", before)
    diff = unified_diff(str(path), before.encode(), after.encode())

    if diff:
        subprocess.run(["patch", "-s", str(path)], input=diff.encode(), check=True)

    assert (path.read_text() if path.exists() else "") == after


def test_five_megabytes_take_no_longer_than_a_person_waits() -> None:
    before = b'  "key": [1, 2, 3],\n}\n' * 250_000
    after = before[: len(before) // 2] + b"new\n" + before[len(before) // 2 :]
    begin = time.process_time()

    diff = unified_diff("/x", before, after)

    assert "+new" in diff
    assert time.process_time() - begin < 10, "half a second, on a machine that has nothing else to do"
