"""One run at a time; and what happens where that cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.issues import UserError
from uno_devserver.setup import change_writer
from uno_devserver.setup.change_writer import exclusively

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
