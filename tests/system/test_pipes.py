"""Named pipes, by .NET's rules: paths against what .NET 10 did when it was run, sockets with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.golden import GOLDEN
from uno_devserver.system.pipes import Listener, PipeProblem, PipeTaken, listen, pipe_path

if sys.platform != "win32":
    import fcntl

RESULTS = {case["test"]: case["result"] for case in json.loads((GOLDEN / "bytes/named-pipes.json").read_text("utf-8"))}
TEMP_PATHS = json.loads((GOLDEN / "special-folders/special-folders.json").read_text("utf-8"))["temp_path"]

SERVER = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("listening", flush=True)
print(server.accept()[0].recv(99), flush=True)
"""


def ignore(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


@contextlib.contextmanager
def other_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that listens there."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(path)], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        assert process.stdout.readline() == "listening\n"
        try:
            yield process
        finally:
            process.kill()


def left_over(path: Path) -> None:
    """A socket whose process was killed."""
    with other_process(path):
        pass
    assert path.is_socket()


# --- where a pipe is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TEMP_PATHS, ids=lambda case: str(case["case"]))
def test_the_temp_folder_is_the_one_that_net_gave(case: dict[str, str | None]) -> None:
    environ = {"TMP": "/wrong", "TEMP": "/wrong"} | ({"TMPDIR": case["TMPDIR"]} if case["TMPDIR"] is not None else {})

    assert pipe_path("x", "linux", environ) == f"{case['GetTempPath']}CoreFxPipe_x"


@pytest.mark.parametrize(
    ("test", "name", "environ"),
    [
        ("server abc123, default options", "abc123", {"TMPDIR": "{TMP}"}),
        ("server with rooted name {TMP}/y.sock", "/{TMP}/y.sock", {}),
        ("server name with blank and non-ASCII 'a bä'", "a bä", {"TMPDIR": "{TMP}"}),
        ("server abc123 with TMPDIR unset", "abc123", {}),
        ("server abc123 with TMPDIR empty", "abc123", {"TMPDIR": ""}),
        ("server abc123 with TMPDIR={TMP}/ (trailing slash)", "abc123", {"TMPDIR": "{TMP}/"}),
    ],
)
def test_the_path_is_the_one_that_net_made(test: str, name: str, environ: dict[str, str]) -> None:
    recorded = RESULTS[test]["path"]

    assert pipe_path(name, "linux", environ) in (recorded, f"/{recorded}")


@pytest.mark.parametrize(
    ("test", "name"),
    [("server name with a slash a/b", "a/b"), ("server name empty", ""), ("server name anonymous", "anonymous")],
)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_a_name_that_net_refuses_is_refused(test: str, name: str, platform: str) -> None:
    assert "Exception" in RESULTS[test]

    with pytest.raises(PipeProblem):
        pipe_path(name, platform, {})


@pytest.mark.parametrize("test", [test for test in RESULTS if "path of" in test])
def test_a_path_may_be_as_long_as_for_net(test: str) -> None:
    length = int(test.partition("path of ")[2].split()[0])
    name = "n" * (length - len("/tmp/CoreFxPipe_"))

    if RESULTS[test] == "created":
        assert len(pipe_path(name, "linux", {})) == length
    else:
        assert "invalid length" in RESULTS[test]
        with pytest.raises(PipeProblem, match=f"has {length} bytes; the limit is 107"):
            pipe_path(name, "linux", {})


def test_the_length_is_counted_in_bytes() -> None:
    with pytest.raises(PipeProblem, match="108 bytes"):
        pipe_path("ä" * 46, "linux", {})


@pytest.mark.parametrize("name", ["nul\0", "half a pair \ud800"])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(PipeProblem, match="character"):
        pipe_path(name, "linux", {})


def test_macos_has_less_room() -> None:
    assert pipe_path("n" * 87, "darwin", {})
    with pytest.raises(PipeProblem, match="the limit is 103"):
        pipe_path("n" * 88, "darwin", {})


def test_windows_has_a_folder_of_pipes() -> None:
    assert pipe_path("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "win32", {}) == (
        "\\\\.\\pipe\\1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    )
    with pytest.raises(PipeProblem, match="the limit is 256"):
        pipe_path("n" * 248, "win32", {})
    with pytest.raises(PipeProblem, match="character"):
        pipe_path("/rooted", "win32", {})


# --- listening ----------------------------------------------------------------------------------------------------


async def test_a_client_is_handed_over_and_can_talk(temp: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    tasks = []
    listener = await listen("one", lambda *streams: tasks.append(asyncio.ensure_future(echo(*streams))))
    reader, writer = await asyncio.open_unix_connection(temp / "CoreFxPipe_one")
    writer.write(b"hello\n")

    assert await reader.read() == b"hello\n"
    writer.close()
    await listener.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_only_this_user_can_connect_whatever_the_umask(temp: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        listener = await listen("one", ignore)
    finally:
        os.umask(old)

    assert oct((temp / "CoreFxPipe_one").stat().st_mode) == "0o140600"
    await listener.close()


async def test_closing_removes_the_socket(temp: Path) -> None:
    listener = await listen("one", ignore)
    before = listener.reachable
    await listener.close()

    assert (before, listener.reachable) == (True, False)
    assert os.listdir(temp) == []


async def test_a_client_that_knocks_while_the_pipe_closes_is_not_left_hanging(temp: Path) -> None:
    for turns in range(5):
        listener = await listen("one", ignore)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(temp / "CoreFxPipe_one"))
            client.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)  # and be half way in
            await listener.close()
            with contextlib.suppress(ConnectionError):
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""


async def test_a_rooted_name_is_the_path_itself(temp: Path) -> None:
    listener = await listen(f"{temp}/y.sock", ignore)

    assert (temp / "y.sock").is_socket()
    await listener.close()


async def test_a_pipe_on_which_another_process_listens_is_taken_and_its_process_is_not_disturbed(temp: Path) -> None:
    with other_process(temp / "CoreFxPipe_one") as process:
        with pytest.raises(PipeTaken, match="another process listens"):
            await listen("one", ignore)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(temp / "CoreFxPipe_one"))
            client.send(b"the IDE")

        assert process.stdout
        assert process.stdout.readline() == "b'the IDE'\n"  # the first connection that it saw


async def test_a_pipe_of_this_process_is_taken_too(temp: Path) -> None:
    listener = await listen("one", ignore)
    with pytest.raises(PipeTaken):
        await listen("one", ignore)

    assert listener.reachable
    await listener.close()


async def test_without_the_kernels_list_a_living_process_answers_for_itself(
    temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_list() -> set[str]:  # as on macOS
        return set()

    monkeypatch.setattr("uno_devserver.system.pipes._listening_sockets", no_list)

    with other_process(temp / "CoreFxPipe_one"), pytest.raises(PipeTaken):
        await listen("one", ignore)
    listener = await listen("one", ignore)

    assert listener.reachable
    await listener.close()


async def test_a_process_that_many_wait_for_is_alive(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uno_devserver.system.pipes._listening_sockets", set)  # as on macOS
    path = str(temp / "CoreFxPipe_one")
    with contextlib.ExitStack() as sockets:
        busy = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        busy.bind(path)
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                waiting.setblocking(False)
                waiting.connect(path)

        with pytest.raises(PipeTaken):
            await listen("one", ignore)


async def test_what_a_killed_process_left_gives_way(temp: Path) -> None:
    left_over(temp / "CoreFxPipe_one")

    listener = await listen("one", ignore)
    _, writer = await asyncio.open_unix_connection(temp / "CoreFxPipe_one")

    writer.close()
    await listener.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link to a socket"])
async def test_what_is_no_socket_is_never_removed(temp: Path, kind: str) -> None:
    """.NET deletes a plain file that has the name of a pipe."""
    path = temp / "CoreFxPipe_one"
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        left_over(temp / "elsewhere")
        path.symlink_to(temp / "elsewhere")

    with pytest.raises(PipeProblem, match="exists and is not a socket"):
        await listen("one", ignore)
    assert os.path.lexists(path)
    if kind == "file":
        assert path.read_text() == "precious"


async def test_a_missing_folder_is_named(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", f"{temp}/missing")

    with pytest.raises(PipeProblem, match=r"No such file or directory\. Check the folder .*/missing"):
        await listen("one", ignore)


async def test_a_socket_that_somebody_replaced_is_not_removed_with_ours(temp: Path) -> None:
    """A .NET server of that name does this: it removes what is there."""
    path = temp / "CoreFxPipe_one"

    listener = await listen("one", ignore)
    path.unlink()
    with other_process(path):
        assert not listener.reachable
        await listener.close()

        assert path.is_socket()


async def test_of_many_who_find_a_left_over_at_once_one_gets_the_pipe(temp: Path) -> None:
    left_over(temp / "CoreFxPipe_one")

    outcomes = await asyncio.gather(*(listen("one", ignore) for _ in range(8)), return_exceptions=True)
    listeners = [outcome for outcome in outcomes if isinstance(outcome, Listener)]

    assert len(listeners) == 1
    assert listeners[0].reachable
    assert sum(isinstance(outcome, PipeTaken) for outcome in outcomes) == 7
    await listeners[0].close()


async def test_claiming_waits_for_another_process_that_claims_in_the_same_folder(temp: Path) -> None:
    folder = os.open(temp, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    claiming = asyncio.create_task(listen("one", ignore))
    done, _ = await asyncio.wait({claiming}, timeout=0.05)
    assert not done
    assert os.listdir(temp) == []
    os.close(folder)

    listener = await claiming
    assert listener.reachable
    await listener.close()


async def test_a_lock_that_is_never_released_does_not_keep_us(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uno_devserver.system.pipes.LOCK_SECONDS", 0.02)

    folder = os.open(temp, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    listener = await listen("one", ignore)

    assert listener.reachable
    await listener.close()
    os.close(folder)


async def test_a_claim_that_is_cancelled_while_it_waits_leaves_no_file_open(temp: Path) -> None:
    folder = os.open(temp, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    before = os.listdir("/proc/self/fd")
    claiming = asyncio.create_task(listen("one", ignore))
    await asyncio.wait({claiming}, timeout=0.05)

    claiming.cancel()
    await asyncio.wait({claiming})

    assert os.listdir("/proc/self/fd") == before
    os.close(folder)


async def test_a_cancelled_claim_leaves_nothing(temp: Path) -> None:
    for turns in range(6):
        claiming = asyncio.create_task(listen("one", ignore))
        for _ in range(turns):
            await asyncio.sleep(0)
        if claiming.done():
            await claiming.result().close()
        claiming.cancel()
        await asyncio.wait({claiming})

        assert os.listdir(temp) == []
