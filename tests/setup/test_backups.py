"""Copies of users' files: private, whole, and not without end."""

from __future__ import annotations

from pathlib import Path

from uno_devserver.setup.backups import MAX_BACKUPS, keep_backup


def test_a_backup_is_the_whole_content_for_its_owner_alone(tmp_path: Path) -> None:
    backup = Path(keep_backup(str(tmp_path), "/x/mcp.json", b"\xff\x00{}"))

    assert backup.read_bytes() == b"\xff\x00{}"
    assert backup.stat().st_mode & 0o777 == 0o600


def test_the_oldest_backups_of_a_file_go_and_those_of_others_stay(tmp_path: Path) -> None:
    other = Path(keep_backup(str(tmp_path), "/y/other.json", b"other"))

    kept = [Path(keep_backup(str(tmp_path), "/x/mcp.json", b"%d" % number)) for number in range(MAX_BACKUPS + 3)]

    assert [path.exists() for path in kept] == [False] * 3 + [True] * MAX_BACKUPS
    assert other.read_bytes() == b"other"
