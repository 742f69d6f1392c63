"""Reading files that others wrote, and replacing files that others read."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.privileges import ROOT, SETPRIV
from uno_devserver.system.files import TEMPORARY, FileProblem, decode, read_bytes, read_text, rewrite, write_atomic

REFUSED_AT_ONCE = pytest.mark.timeout(5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with old content."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 300_000])
def test_a_file_is_read_whole(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    path = tmp_path / "file"
    path.write_bytes(content)

    assert read_bytes(str(path)) == content


def test_a_file_may_have_exactly_the_limit_and_no_byte_more(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)

    assert len(read_bytes(str(path), limit=1000)) == 1000
    with pytest.raises(FileProblem, match=r"1,000 bytes; the limit is 999") as problem:
        read_bytes(str(path), limit=999)

    assert problem.value.path == str(path)
    assert str(problem.value).startswith(f"{path}: ")


def test_a_file_that_is_not_there_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_bytes(str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        read_bytes(str(tmp_path / "missing" / "file"))


@REFUSED_AT_ONCE
def test_a_dangling_link_is_file_not_found_and_a_loop_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(FileNotFoundError):
        read_bytes(str(tmp_path / "dangling"))
    with pytest.raises(FileProblem, match="symbolic links"):
        read_bytes(str(tmp_path / "loop"))


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")

    assert read_bytes(str(tmp_path / "link")) == b"content"


@REFUSED_AT_ONCE
@pytest.mark.parametrize("through_link", [False, True])
@pytest.mark.parametrize("kind", ["folder", "fifo", "socket", "/dev/zero", "/dev/null"])
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, kind: str, through_link: bool) -> None:
    path = _special_file(tmp_path, kind)
    if through_link:
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"

    with pytest.raises(FileProblem) as problem:
        read_bytes(str(path))

    assert problem.value.path == str(path)
    assert problem.value.reason


def _special_file(folder: Path, kind: str) -> Path:
    path = folder / kind.strip("/").replace("/", "-")
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        return Path(kind)
    return path


def test_a_file_used_as_a_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(FileProblem, match="not a directory"):
        read_bytes(str(tmp_path / "file" / "inside"))


@pytest.mark.parametrize("name", ["nul\0byte", "lone\ud800surrogate", "x" * 5000], ids=["NUL", "surrogate", "long"])
def test_a_path_that_no_system_can_have_is_a_problem(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileProblem):
        read_bytes(f"{tmp_path}/{name}")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these files")
def test_proc_files_that_claim_to_be_empty_are_read() -> None:
    assert os.stat("/proc/self/status").st_size == 0

    assert b"Name:" in read_bytes("/proc/self/status")
    with pytest.raises(FileProblem, match="grew over the limit"):
        read_bytes("/proc/self/status", limit=10)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these files")
def test_a_file_that_fails_in_the_middle_of_reading_is_a_problem() -> None:
    with pytest.raises(FileProblem) as problem:
        read_bytes("/proc/self/mem")

    assert problem.value.reason == "input/output error"


def test_an_unreadable_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0)
    as_an_ordinary_user = "os.geteuid() or os.setuid(65534)\n"  # root may read everything

    result = subprocess.run(
        _python(f"{as_an_ordinary_user}read_bytes({str(path)!r})"), capture_output=True, text=True, timeout=20
    )

    assert result.stderr.endswith(f"FileProblem: {path}: permission denied\n")


def test_reading_leaves_no_handle_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    before = _next_handle()

    for limit in (1000, 10):
        try:
            read_bytes(str(path), limit)
        except FileProblem:
            pass
    try:
        read_bytes(str(tmp_path))
    except FileProblem:
        pass

    assert _next_handle() == before


def _next_handle() -> int:
    """The lowest number that no open file has."""
    handle = os.open(os.devnull, os.O_RDONLY)
    os.close(handle)
    return handle


# --- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bom", "encoding"),
    [
        (b"", "utf-8"),
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
    ],
)
def test_the_byte_order_mark_decides_the_encoding(tmp_path: Path, bom: bytes, encoding: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(bom + "Žluťoučký 🐎\r\n".encode(encoding))

    assert read_text(str(path)) == "Žluťoučký 🐎\r\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (b"\xff\xfea", "\ufffd"),
        (b"\xff\xfe\x3d\xd8", "\ufffd"),
        (b"\xef\xbb\xbf", ""),
        (b"", ""),
    ],
    ids=["latin-1", "half a character", "half a pair", "only the mark", "nothing"],
)
def test_what_cannot_be_decoded_becomes_the_replacement_character(data: bytes, text: str) -> None:
    assert decode(data) == text


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_decoding_takes_any_bytes_and_gives_text_that_can_be_written(data: bytes) -> None:
    decode(data).encode("utf-8")


# --- writing ------------------------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_folders_for_this_user_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "state.json"

    write_atomic(str(path), b"content")

    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["state.json"]


def test_folders_that_are_made_on_the_way_are_this_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_atomic(str(tmp_path / "new" / "folder" / "state.json"), b"content")
    finally:
        os.umask(before)

    made = (tmp_path / "new", tmp_path / "new" / "folder")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700, 0o700]


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(NotADirectoryError, match="Not a directory"):  # not that what is written exists already
        write_atomic(str(tmp_path / "file" / "below" / "state.json"), b"content", new=True)


def test_a_relative_path_is_written_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    write_atomic("state.json", b"content")

    assert (tmp_path / "state.json").read_bytes() == b"content"


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_takes_the_place_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    path, taken = tmp_path / "new", tmp_path / "taken"
    taken.write_bytes(b"theirs")
    if not links:

        def refuse(*_: object) -> None:
            raise PermissionError(1, "no links on this file system")

        monkeypatch.setattr(os, "link", refuse)

    write_atomic(str(path), b"ours", new=True)
    with pytest.raises(FileExistsError):
        write_atomic(str(taken), b"ours", new=True)

    assert (path.read_bytes(), taken.read_bytes()) == (b"ours", b"theirs")
    assert sorted(os.listdir(tmp_path)) == ["new", "taken"]


def test_another_mode_can_be_asked_for(tmp_path: Path) -> None:
    write_atomic(str(tmp_path / "file"), b"x", mode=0o400)

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o400


def test_a_reader_of_the_old_file_keeps_the_old_content(path: Path) -> None:
    with path.open("rb") as reader:
        write_atomic(str(path), b"new")

        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_when_the_disk_write_fails_the_old_content_stays(path: Path, tmp_path: Path) -> None:
    writing_too_much = _python(
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"write_atomic({str(path)!r}, b'x' * 2000)"
    )

    result = subprocess.run(writing_too_much, capture_output=True, text=True, timeout=20)

    assert "OSError: [Errno 27] File too large" in result.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"], "no temporary file is left"


def test_a_folder_in_the_place_of_the_file_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()

    with pytest.raises(OSError, match="directory"):
        write_atomic(str(tmp_path / "file"), b"x")

    assert os.listdir(tmp_path) == ["file"]


def test_two_writers_leave_the_whole_content_of_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(str(path), b"a" * 100_000)
    code = f"[write_atomic({str(path)!r}, %r * 100_000) for _ in range(8)]"

    writers = [subprocess.Popen(_python(code % letter)) for letter in (b"a", b"b")]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        content = read_bytes(str(path))
        seen.add((len(content), len(set(content))))

    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen == {(100_000, 1)}, "a reader never sees a part, or a mixture"
    assert os.listdir(tmp_path) == ["file"]


def test_threads_of_one_process_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    path = tmp_path / "file"
    problems: list[BaseException] = []

    def write_often(letter: bytes) -> None:
        try:
            for _ in range(8):
                write_atomic(str(path), letter * 10_000)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=write_often, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert problems == []
    assert len(set(path.read_bytes())) == 1
    assert os.listdir(tmp_path) == ["file"]


# Dies as by a power cut, when the new content is on disk and not yet in place.
KILLED = "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nwrite_atomic({path!r}, b'new')"


def test_a_writer_that_is_killed_before_the_rename_leaves_the_old_content(path: Path) -> None:
    result = subprocess.run(_python(KILLED.format(path=str(path))), timeout=20)

    assert result.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


def test_the_leftover_of_a_killed_writer_does_not_stop_a_later_one_with_its_process_id(tmp_path: Path) -> None:
    """In a container the same command gets the same process id on every start."""
    path = tmp_path / "file"
    leftovers = [f"file.{os.getpid()}-{number}{TEMPORARY}" for number in range(200)]
    for name in leftovers:
        (tmp_path / name).write_bytes(b"leftover")

    write_atomic(str(path), b"new")

    assert path.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == sorted(["file", *leftovers])


# --- changing a file that stays the same file ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o666, 0o755])
def test_a_rewritten_file_keeps_its_mode_whatever_the_umask(path: Path, tmp_path: Path, mode: int) -> None:
    path.chmod(mode)

    rewrite(str(path), b"new")

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
    assert os.listdir(tmp_path) == ["file"]


def test_the_target_of_a_link_is_rewritten_and_the_link_stays(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "target"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("elsewhere/target")

    rewrite(str(link), b"new")

    assert (os.readlink(link), target.read_bytes()) == ("elsewhere/target", b"new")


def test_a_write_protected_file_is_not_rewritten(path: Path) -> None:
    path.chmod(0o444)

    with pytest.raises(PermissionError, match="write-protected"):
        rewrite(str(path), b"new")

    assert path.read_bytes() == b"old"


@pytest.mark.skipif(not ROOT, reason="only root can own files of others")
def test_a_file_that_root_rewrites_keeps_its_owner_and_group(path: Path) -> None:
    os.chown(path, 12345, 23456)

    rewrite(str(path), b"new")

    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@pytest.mark.skipif(not ROOT or not SETPRIV, reason="only root can give files to others")
def test_a_file_that_would_change_its_owner_is_left_as_it_is(path: Path, tmp_path: Path) -> None:
    """In a folder that several people may write to, replacing a file would make it one's own."""
    os.chown(path, 12345, 23456)
    path.chmod(0o666)
    code = f"from uno_devserver.system.files import rewrite\nrewrite({str(path)!r}, b'new')"

    result = subprocess.run(
        [str(SETPRIV), "--bounding-set=-chown", *_python(code)], capture_output=True, text=True, timeout=20
    )

    assert "it is another user's or group's" in result.stderr
    assert (path.read_bytes(), path.stat().st_uid) == (b"old", 12345)
    assert os.listdir(tmp_path) == ["file"]


ACL, DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these attributes")


@ON_LINUX
@pytest.mark.parametrize("mode", [0o640, 0o664])
def test_a_rewritten_file_keeps_its_access_control_list_mode_and_owner(path: Path, mode: int) -> None:
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    acl = _acl(reader=54321, mask=mode >> 3 & 7, others=mode & 7)
    _set(path, ACL, acl)
    before = path.stat()
    assert stat.S_IMODE(before.st_mode) == mode

    rewrite(str(path), b"new")

    after = path.stat()
    assert (path.read_bytes(), os.getxattr(path, ACL)) == (b"new", acl)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@ON_LINUX
def test_a_rewritten_file_gets_no_access_control_list_from_its_folder(path: Path, tmp_path: Path) -> None:
    path.chmod(0o664)
    _set(tmp_path, DEFAULT_ACL, _acl(reader=54321, mask=7, others=7))

    rewrite(str(path), b"new")

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o664)
    assert ACL not in os.listxattr(path)


@ON_LINUX
def test_a_rewritten_file_keeps_its_attributes_also_through_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to("file")
    kept = {"user.origin": b"https://example.com", "user.empty": b"", "user.bytes": bytes(range(256))}
    for name, value in kept.items():
        _set(path, name, value)

    rewrite(str(link), b"new")

    assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")} == kept
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


@ON_LINUX
@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EINVAL])
def test_a_file_whose_access_control_list_cannot_be_kept_is_left_as_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    acl = _acl(reader=54321, mask=4, others=0)
    _set(path, ACL, acl)
    monkeypatch.setattr(os, "setxattr", _refusing(code))

    with pytest.raises(PermissionError, match=r"access control list \(ACL\) could not be kept"):
        rewrite(str(path), b"new")

    assert (path.read_bytes(), os.getxattr(path, ACL)) == (b"old", acl)
    assert os.listdir(tmp_path) == ["file"]


@ON_LINUX
@pytest.mark.parametrize(
    ("call", "code"), [("setxattr", errno.EPERM), ("setxattr", errno.ENOTSUP), ("listxattr", errno.ENOTSUP)]
)
def test_other_attributes_that_the_system_refuses_are_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    _set(path, "user.origin", b"x")
    monkeypatch.setattr(os, call, _refusing(code))

    rewrite(str(path), b"new")

    assert path.read_bytes() == b"new"


@ON_LINUX
def test_a_file_whose_attributes_find_no_room_is_left_as_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(path, "user.origin", b"x")
    monkeypatch.setattr(os, "setxattr", _refusing(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        rewrite(str(path), b"new")

    assert (path.read_bytes(), os.getxattr(path, "user.origin")) == (b"old", b"x")
    assert os.listdir(tmp_path) == ["file"]


@ON_LINUX
@pytest.mark.skipif(not ROOT, reason="only root can give capabilities to a file")
def test_capabilities_that_were_given_to_the_old_content_are_not_given_to_the_new(path: Path) -> None:
    _set(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))  # may bind low ports

    rewrite(str(path), b"new")

    assert "security.capability" not in os.listxattr(path)


def _acl(*, reader: int, mask: int, others: int) -> bytes:
    """Linux' binary form: the version 2, then tag, permissions and id of each entry; one more user may read."""
    nobody = 0xFFFFFFFF
    entries = ((0x01, 6, nobody), (0x02, 4, reader), (0x04, 4, nobody), (0x10, mask, nobody), (0x20, others, nobody))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def _set(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM):
            raise
        pytest.skip(f"the file system of the test's folder refuses {name}: {error}")


def _refusing(code: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return refuse


def test_what_another_program_writes_at_the_same_moment_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"theirs")

    with pytest.raises(FileProblem, match="another program changed it"):
        rewrite(str(path), b"ours", was=b"what we read")

    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["file"]


def test_only_what_exists_is_rewritten(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rewrite(str(tmp_path / "missing"), b"new")

    assert os.listdir(tmp_path) == []


def _python(code: str) -> list[str]:
    prelude = "import os, signal\nfrom uno_devserver.system.files import read_bytes, write_atomic\n"
    return [sys.executable, "-c", prelude + code]
