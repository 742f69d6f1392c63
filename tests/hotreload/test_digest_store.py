"""What is known of packages from one proxy to the next, whatever happens to the file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.waiting import wait_for
from uno_devserver.hotreload.digest_store import UNKNOWN, DigestStore, StoredDigests
from uno_devserver.system import locks


@pytest.fixture
def kept(tmp_path: Path) -> DigestStore:
    return DigestStore(str(tmp_path / "state"))


def file_of(tmp_path: Path) -> Path:
    [path] = (tmp_path / "state" / "hotreload").iterdir()
    return path


def test_what_was_put_is_there_for_the_next_process(kept: DigestStore, tmp_path: Path) -> None:
    kept.put("/server", "abc")

    again = DigestStore(str(tmp_path / "state"))

    assert again.get("/server") == StoredDigests("abc", "abc")
    assert again.get("/other") is None
    path = file_of(tmp_path)
    assert json.loads(path.read_text()) == {"version": 1, "packages": {"/server": {"sha256": "abc"}}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_between_a_build_and_a_good_start_both_contents_are_known(kept: DigestStore) -> None:
    before = time.time()
    kept.started("/server", "old")
    seen = [kept.get("/server")]
    kept.building("/server")
    seen.append(kept.get("/server"))
    kept.built("/server", "new")
    seen.append(kept.get("/server"))
    kept.started("/server", "new")
    seen.append(kept.get("/server"))

    digests = [(each.started, each.built) for each in seen if each]
    assert digests == [("old", "old"), ("old", UNKNOWN), ("old", "new"), ("new", "new")]
    assert [bool(each and each.built_at >= before - 0.001) for each in seen] == [False, False, True, True]


def test_a_start_with_older_output_does_not_hide_what_was_built_meanwhile(kept: DigestStore) -> None:
    kept.built("/server", "new")
    kept.started("/server", "new")

    kept.started("/server", "old")  # of a second proxy, whose start took longer

    stored = kept.get("/server")
    assert stored
    assert (stored.started, stored.built) == ("old", "new")


def test_a_first_build_that_fails_is_remembered_as_such(kept: DigestStore) -> None:
    kept.building("/server")

    assert kept.get("/server") == StoredDigests(UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 2, "packages": {"/server": {"sha256": "x"}}}', '{"version": 1, "packages": 3}', "\0"],
)
def test_a_file_that_is_broken_or_foreign_is_as_good_as_none_and_replaced(
    kept: DigestStore, tmp_path: Path, text: str
) -> None:
    kept.put("/other", "xyz")
    file_of(tmp_path).write_text(text)

    assert kept.get("/server") is None
    kept.put("/server", "abc")

    assert kept.get("/server") == StoredDigests("abc", "abc")


@pytest.mark.parametrize("entry", [3, {}, {"sha256": 3}, None])
def test_an_entry_that_is_none_spoils_only_itself(kept: DigestStore, tmp_path: Path, entry: object) -> None:
    kept.put("/other", "xyz")
    file_of(tmp_path).write_text(
        json.dumps({"version": 1, "packages": {"/server": entry, "/other": {"sha256": "xyz"}}})
    )

    assert (kept.get("/server"), kept.get("/other")) == (None, StoredDigests("xyz", "xyz"))


def test_in_a_home_that_cannot_be_written_this_process_still_knows(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    kept = DigestStore(str(tmp_path / "state"))

    kept.built("/server", "abc")
    kept.started("/server", "abc")

    stored = kept.get("/server")
    assert stored
    assert (stored.started, stored.built) == ("abc", "abc")


def test_once_the_home_can_be_written_again_others_are_heard_again(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    kept, other = (DigestStore(str(tmp_path / "state")) for _ in range(2))
    kept.put("/server", "one")
    (tmp_path / "state").unlink()

    kept.put("/server", "two")
    other.put("/server", "three")

    assert kept.get("/server") == StoredDigests("three", "three")


def test_names_that_are_no_text_are_kept_too(kept: DigestStore) -> None:
    root = os.fsdecode(b"/srv/\xff")

    kept.put(root, "abc")

    assert kept.get(root) == StoredDigests("abc", "abc")


def test_processes_that_write_at_the_same_time_lose_nothing(kept: DigestStore, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom uno_devserver.hotreload.digest_store import DigestStore\n"
        f"kept = DigestStore({str(tmp_path / 'state')!r})\n"
        "for number in range(20): kept.put(f'/{sys.argv[1]}/{number}', 'abc')\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("a", "b", "c")]

    assert [writer.wait(60) for writer in writers] == [0, 0, 0]

    assert [kept.get(f"/{name}/{number}") for name in "abc" for number in range(20)] == [
        StoredDigests("abc", "abc")
    ] * 60


def test_threads_that_write_at_the_same_time_do_not_wait_for_the_lock_between_processes(
    kept: DigestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STEP_SECONDS", 600.0)  # what a thread that finds the lock taken would wait

    def put_often(key: str) -> None:
        for number in range(20):
            kept.put(key, str(number))

    keys = ("/one", "/two", "/three", "/four")
    threads = [threading.Thread(target=put_often, args=(key,), daemon=True) for key in keys]
    for thread in threads:
        thread.start()
    wait_for(lambda: not any(thread.is_alive() for thread in threads), "the end of the threads")

    assert {kept.get(key) for key in keys} == {StoredDigests("19", "19")}


def test_one_process_builds_a_package_at_a_time(kept: DigestStore, tmp_path: Path) -> None:
    first, second = kept.build_lock("/server"), DigestStore(str(tmp_path / "state")).build_lock("/server")

    assert first.acquire(0, lambda _holder: None)
    assert not second.acquire(0, lambda _holder: None)
    first.release()
    assert second.acquire(0, lambda _holder: None)
    second.release()


def test_what_is_no_json_any_more_when_it_is_written_again_takes_nothing_along(
    kept: DigestStore, tmp_path: Path
) -> None:
    kept.put("/server", "abc")
    path = file_of(tmp_path)
    path.write_text(path.read_text().replace('"abc"', '"abc", "size": 1e999'))

    kept.put("/other", "def")

    assert (kept.get("/server"), kept.get("/other")) == (StoredDigests("abc", "abc"), StoredDigests("def", "def"))
