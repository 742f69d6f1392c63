"""Differences as `diff -u` shows them: `patch` must be able to apply them."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import write
from uno_devserver.setup.change_writer import unified_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "}\n", "@@ -1 +1 @@\n"]), max_size=30).map("".join)


def test_a_changed_line_stands_between_three_of_its_neighbours() -> None:
    lines = [f"{number}\n" for number in range(1, 21)]
    before, after = "".join(lines), "".join(lines).replace("10\n", "ten\n")

    diff = unified_diff("/ws/mcp.json", before.encode(), after.encode())

    assert diff.splitlines() == [
        "--- a/ws/mcp.json",
        "+++ b/ws/mcp.json",
        "@@ -7,7 +7,7 @@",
        " 7",
        " 8",
        " 9",
        "-10",
        "+ten",
        " 11",
        " 12",
        " 13",
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
