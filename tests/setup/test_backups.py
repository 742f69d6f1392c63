"""Copies of users' files: private, whole, and not without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from uno_devserver.setup.backups import MAX_BACKUPS, backups_of, keep_backup
from uno_devserver.system.files import TEMPORARY


def test_a_backup_is_the_whole_content_for_its_owner_alone(tmp_path: Path) -> None:
    backup = Path(keep_backup(str(tmp_path), "/x/mcp.json", b"\xff\x00{}"))

    assert backup.read_bytes() == b"\xff\x00{}"
    assert backup.stat().st_mode & 0o777 == 0o600


def test_the_oldest_backups_of_a_file_go_and_those_of_others_stay(tmp_path: Path) -> None:
    other = Path(keep_backup(str(tmp_path), "/y/other.json", b"other"))

    kept = [Path(keep_backup(str(tmp_path), "/x/mcp.json", b"%d" % number)) for number in range(MAX_BACKUPS + 3)]

    assert [path.exists() for path in kept] == [False] * 3 + [True] * MAX_BACKUPS
    assert other.read_bytes() == b"other"


# Dies as by a power cut, when the backup is on disk and not yet in place.
KILLED = """
import os, signal, sys
from uno_devserver.setup.backups import keep_backup
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
keep_backup(sys.argv[1], "/x/mcp.json", b"secret")
"""


def test_what_a_killed_run_left_of_a_backup_goes_with_the_next_backup_of_any_file(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=20)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.rglob("*.tmp")
    assert left.read_bytes() == b"secret", "it was killed in the middle"

    backup = Path(keep_backup(str(tmp_path), "/y/other.json", b"other"))

    assert list(left.parent.iterdir()) == [backup]


def test_a_backup_that_a_living_process_is_writing_stays(tmp_path: Path) -> None:
    backup = Path(keep_backup(str(tmp_path), "/x/mcp.json", b"{}"))
    being_written = backup.with_name(f"{backup.name}.{os.getpid()}-0{TEMPORARY}")
    being_written.write_bytes(b"half of")

    keep_backup(str(tmp_path), "/y/other.json", b"other")

    assert (backup.read_bytes(), being_written.read_bytes()) == (b"{}", b"half of")


def test_paths_that_differ_in_the_case_of_letters_have_backups_of_their_own(tmp_path: Path) -> None:
    for number in range(MAX_BACKUPS + 1):
        keep_backup(str(tmp_path), "/x/App/mcp.json", b"%d" % number)
    keep_backup(str(tmp_path), "/x/app/mcp.json", b"other")

    assert [one.content for one in backups_of(str(tmp_path), "/x/app/mcp.json")] == [b"other"]
    assert len(backups_of(str(tmp_path), "/x/App/mcp.json")) == MAX_BACKUPS
    assert backups_of(str(tmp_path), "/x/APP/mcp.json") == []
