"""The digest of a package: what goes into it, and what makes it another."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import uno_devserver
from hotreload.trees import fingerprint, fresh_digest, watched
from support.files import write, write_all
from support.git import git
from uno_devserver.hotreload.fingerprint import UNREADABLE, Fingerprint
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.sources.source_tree import Sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.proxy.workspace import watcher
from uno_devserver.workspace.repository import ReadBudget

# each() { printf "$1\\000"; printf "$2" | sha256sum | xxd -r -p; }; { each a.py hi; each pkg/ä.py ""; } | sha256sum
VECTOR_FILES = {"pkg/ä.py": "", "a.py": "hi"}
VECTOR = "58864c0506d4309cf867d7a0b25c5ed9b36e71a3314a993187457977460913a1"

BOTH_WAYS = pytest.mark.parametrize("watches", [True, False], ids=["watching", "reading"])


def listed(root: Path, *names: str) -> Sources:
    """Files of a root, whether they exist or not."""
    return Sources(str(root), {name: str(root / name) for name in names}, frozenset({str(root)}))


def digest_of(*files: tuple[bytes, bytes | None]) -> str:
    """Of names with their contents, in this order; None: unreadable."""
    whole = hashlib.sha256()
    for name, content in files:
        whole.update(name + b"\0" + (UNREADABLE if content is None else hashlib.sha256(content).digest()))
    return whole.hexdigest()


def test_the_digest_is_that_of_paths_and_contents_in_the_order_of_paths(tmp_path: Path) -> None:
    write_all(tmp_path, VECTOR_FILES)

    assert fingerprint(tmp_path).digest() == VECTOR
    assert digest_of((b"a.py", b"hi"), ("pkg/ä.py".encode(), b"")) == VECTOR


def test_the_order_is_that_of_whole_paths_not_of_folders(tmp_path: Path) -> None:
    write_all(tmp_path, {"a/z.py": "1", "a.py": "2", "a-b/c.py": "3"})

    expected = digest_of((b"a-b/c.py", b"3"), (b"a.py", b"2"), (b"a/z.py", b"1"))
    assert fingerprint(tmp_path).digest() == expected


def test_a_name_that_is_no_text_counts_with_its_bytes(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")).write_bytes(b"x")
    write(tmp_path / "é.py", "y")

    assert fingerprint(tmp_path).digest() == digest_of(("é.py".encode(), b"y"), (b"\xff.py", b"x"))


def test_bytes_cannot_move_from_one_file_to_the_next_unnoticed(tmp_path: Path) -> None:
    write_all(tmp_path, {"one/a.py": "xb.py", "two/a.py": "x"})
    write(tmp_path / "two/b.py", "")

    assert fresh_digest(tmp_path / "one") != fresh_digest(tmp_path / "two")


def test_where_the_package_lies_does_not_count(tmp_path: Path) -> None:
    write_all(tmp_path / "here", VECTOR_FILES)
    write_all(tmp_path / "deep/there", VECTOR_FILES)

    assert fresh_digest(tmp_path / "here") == fresh_digest(tmp_path / "deep/there")


def test_no_files_have_a_digest_too(tmp_path: Path) -> None:
    assert fingerprint(tmp_path).digest() == digest_of()


def test_no_module_looks_at_the_date_of_a_file() -> None:
    sources = sorted(Path(uno_devserver.__file__).parent.rglob("*.py"))
    sources.remove(Path(watcher.__file__))  # on Windows, it tells whether a file was saved since the last look

    assert len(sources) > 100
    assert [path for path in sources if re.search(r"(?<!g)mtime", path.read_text("utf-8"))] == []


# What makes it another.


@BOTH_WAYS
def test_one_changed_byte_makes_another_digest_and_the_file_is_named(tmp_path: Path, watches: bool) -> None:
    write_all(tmp_path, {"a.py": "hello", "b/c.py": "x"})
    one = fingerprint(tmp_path, watches=watches)
    before = one.digest()

    write(tmp_path / "a.py", "hellp")

    assert one.news() is (True if watches else None)
    assert one.digest() != before
    assert one.changed_paths == ("a.py",)
    assert one.news() is (False if watches else None)
    one.close()


@BOTH_WAYS
def test_files_that_come_go_or_are_renamed_make_another_digest(tmp_path: Path, watches: bool) -> None:
    write_all(tmp_path, {"a.py": "1", "b.py": "2"})
    one = fingerprint(tmp_path, watches=watches)
    seen = [one.digest()]

    (tmp_path / "b.py").rename(tmp_path / "c.py")
    seen.append(one.digest())
    renamed = one.changed_paths
    (tmp_path / "c.py").unlink()
    seen.append(one.digest())
    write(tmp_path / "new/deep/er/d.py", "3")
    seen.append(one.digest())

    assert len(set(seen)) == 4
    assert renamed == ("b.py", "c.py")
    assert one.changed_paths == ("new/deep/er/d.py",)
    assert len(one.files) == 2
    one.close()


@BOTH_WAYS
def test_touch_chmod_and_saving_the_same_bytes_change_nothing(tmp_path: Path, watches: bool) -> None:
    path = write(tmp_path / "pkg/a.py", "hello")
    write(tmp_path / "b.py", "x")
    one = fingerprint(tmp_path, watches=watches)
    before = one.digest()

    edits: list[Callable[[], object]] = [
        lambda: os.utime(path, (1_000_000, 1_000_000)),
        lambda: path.chmod(0o755),
        lambda: path.write_text("hello"),
        lambda: write(tmp_path / "pkg/a.py.tmp", "hello").replace(path),
        lambda: path.rename(tmp_path / "away").rename(path),
        lambda: (tmp_path / "pkg").rename(tmp_path / "gone").rename(tmp_path / "pkg"),
    ]
    for edit in edits:
        edit()
        assert one.digest() == before
    assert one.changed_paths == ()
    one.close()


@BOTH_WAYS
def test_git_back_and_forth_changes_nothing(tmp_path: Path, watches: bool) -> None:
    write_all(tmp_path, {"a.py": "one", "b/c.py": "1"})
    git(tmp_path, "init", "-q", "-b", "first")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "1")
    git(tmp_path, "checkout", "-qb", "second")
    write_all(tmp_path, {"a.py": "two", "d/e.py": "2"})
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "2")
    one = fingerprint(tmp_path, watches=watches)
    second = one.digest()

    git(tmp_path, "checkout", "-q", "first")
    git(tmp_path, "checkout", "-q", "second")
    assert one.digest() == second
    assert one.changed_paths == ()

    git(tmp_path, "checkout", "-q", "first")
    first = one.digest()
    assert first != second
    git(tmp_path, "checkout", "-q", "second")
    assert one.digest() == second

    write(tmp_path / "a.py", "three")
    edited = one.digest()
    git(tmp_path, "add", "a.py")
    assert one.digest() == edited
    git(tmp_path, "stash", "-q")
    git(tmp_path, "stash", "pop", "-q")
    assert one.digest() == edited
    git(tmp_path, "stash", "-q")
    assert one.digest() == second
    one.close()


def test_of_many_files_only_those_that_were_written_to_or_are_new_are_read_again(tmp_path: Path) -> None:
    package, read = tmp_path / "package", list[str]()
    write_all(package, {f"module{number}.py": f"value = {number}\n" for number in range(100)})

    class Noting(ReadBudget):
        def read(self, path: str, limit: int) -> bytes:
            read.append(Path(path).name)
            return super().read(path, limit)

    with closing(Fingerprint(lambda: find_sources(WatchedPackage(Role.SERVER, str(package))), budget=Noting())) as one:
        one.digest()
        read.clear()
        write(package / "module7.py", "value = 'seven'\n")
        write(package / "new.py", "")
        assert one.digest() == fresh_digest(package)

    assert sorted(set(read)) == ["module7.py", "new.py"]


# Faults.


@BOTH_WAYS
def test_a_file_that_cannot_be_read_counts_with_its_path_and_is_told(tmp_path: Path, watches: bool) -> None:
    folder = tmp_path / "strange.py"
    folder.mkdir()
    write(tmp_path / "a.py", "x")
    one = Fingerprint(lambda: listed(tmp_path, "a.py", "strange.py"), watches=watches)

    assert one.digest() == digest_of((b"a.py", b"x"), (b"strange.py", None))
    assert str(folder) in one.problems[0]
    folder.rmdir()
    write(folder, "now")
    assert one.digest() == digest_of((b"a.py", b"x"), (b"strange.py", b"now"))
    assert one.problems == ()
    one.close()


@BOTH_WAYS
def test_a_file_that_is_listed_but_never_there_is_left_out_in_the_end(tmp_path: Path, watches: bool) -> None:
    write(tmp_path / "a.py", "x")
    one = Fingerprint(lambda: listed(tmp_path, "a.py", "ghost.py"), watches=watches)

    assert one.digest() == digest_of((b"a.py", b"x"))
    assert one.digest() == digest_of((b"a.py", b"x"))
    write(tmp_path / "ghost.py", "")
    assert one.digest() == digest_of((b"a.py", b"x"), (b"ghost.py", b""))
    one.close()


@BOTH_WAYS
def test_files_that_come_and_go_while_it_reads_do_no_harm(tmp_path: Path, watches: bool) -> None:
    write_all(tmp_path, {f"keep{number}/m.py": str(number) for number in range(50)})
    one = fingerprint(tmp_path, watches=watches)
    stopped = threading.Event()

    def churn(number: int) -> None:
        folder = tmp_path / f"churn{number}"
        while not stopped.is_set():
            write(folder / "x.py", "x" * 5000)
            write(folder / "deep/y.py", "y")
            (folder / "x.py").unlink()
            (folder / "deep/y.py").unlink()
            (folder / "deep").rmdir()
            folder.rmdir()

    threads = [threading.Thread(target=churn, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + 0.5
        rounds = 0
        while time.monotonic() < deadline or rounds < 2:
            start = time.monotonic()
            one.digest()
            assert time.monotonic() - start < 30
            rounds += 1
    finally:
        stopped.set()
        for thread in threads:
            thread.join()

    assert one.digest() == fresh_digest(tmp_path)
    one.close()


def test_a_change_while_a_file_is_read_is_seen_by_the_next_question(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"m{number}.py", "0" * 10_000) for number in range(200)]
    one = fingerprint(tmp_path)
    stopped = threading.Event()

    def edit() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            write(paths[number % len(paths)], str(number))

    thread = threading.Thread(target=edit)
    thread.start()
    try:
        for _ in range(30):
            one.digest()
    finally:
        stopped.set()
        thread.join()

    assert one.digest() == fresh_digest(tmp_path)
    one.close()


def test_news_does_not_wait_for_a_digest_that_is_under_way(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x")
    begun, go_on = threading.Event(), threading.Event()

    def find() -> Sources:
        begun.set()
        assert go_on.wait(20)
        return listed(tmp_path, "a.py")

    one = Fingerprint(find)
    thread = threading.Thread(target=one.digest)
    thread.start()
    assert begun.wait(20)

    assert one.news() is None
    one.close()  # returns at once, too
    go_on.set()
    thread.join()

    assert not one.watching
    assert one.digest() == fresh_digest(tmp_path)


def test_after_a_finder_has_failed_everything_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x")
    failing = False

    def find() -> Sources:
        if failing:
            raise RuntimeError("broken")
        return listed(tmp_path, "a.py")

    one = Fingerprint(find)
    one.digest()
    failing = True
    write(tmp_path / "a.py", "y")
    with pytest.raises(RuntimeError):
        one.digest()
    failing = False

    assert one.news() is None
    assert one.digest() == fresh_digest(tmp_path)
    one.close()


LIMITED = """
import ctypes, sys
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000):
    sys.exit(77)
try:
    Path("/proc/sys/user/" + sys.argv[2]).write_text(sys.argv[3])
except OSError:
    sys.exit(77)
from hotreload.trees import fingerprint, fresh_digest
root = Path(sys.argv[1])
one = fingerprint(root)
before = one.digest()
print(one.watching, one.news())
(root / "a.py").write_text("other")
assert one.digest() == fresh_digest(root) != before
"""


@pytest.mark.parametrize(("limit", "value"), [("max_inotify_instances", "0"), ("max_inotify_watches", "3")])
def test_where_the_system_gives_no_more_watches_everything_is_read(tmp_path: Path, limit: str, value: str) -> None:
    write_all(tmp_path, {"a.py": "x", "b/c.py": "y", "d/e.py": "z"})
    tests = str(Path(__file__).parents[1])

    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), limit, value],
        env={**os.environ, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        timeout=60,
    )

    if run.returncode == 77:
        pytest.skip("user namespaces are not allowed here")
    assert run.stdout == "False None\n", run.stderr


def test_closing_ends_the_watching_and_digests_can_still_be_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x")
    with watched(tmp_path) as one:
        one.close()

        assert one.news() is None
        write(tmp_path / "a.py", "y")
        assert one.digest() == fresh_digest(tmp_path)
        assert not one.watching


def test_one_that_is_closed_while_a_digest_fails_ends_its_watching_too(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x")
    begun, go_on, failing = threading.Event(), threading.Event(), False

    def find() -> Sources:
        if failing:
            begun.set()
            assert go_on.wait(20)
            raise RuntimeError("broken")
        return listed(tmp_path, "a.py")

    def look() -> None:
        with pytest.raises(RuntimeError):
            one.digest()

    one = Fingerprint(find)
    one.digest()
    failing = True
    write(tmp_path / "a.py", "y")
    thread = threading.Thread(target=look)
    thread.start()
    assert begun.wait(20)

    assert len(one.files) == 1  # as of the last one
    one.close()
    go_on.set()
    thread.join()

    assert not one.watching
