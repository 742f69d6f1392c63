"""The far end of a pipe: reached by its path, and known for this user's or another's."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from uno_devserver.system.pipe_clients import connect, is_pipe_path, is_this_user
from uno_devserver.system.pipes import listen

NOBODY = 65534
CONNECTS = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
print("in")
"""


async def judged(user: int) -> bool:
    """Whether a client that runs as that user is taken for ours, on a socket that lets everybody in."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[bool] = loop.create_future()
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        listener = await listen(f"{folder}/c", lambda _, writer: arrived.set_result(is_this_user(writer)))
        os.chmod(listener.path, 0o666)
        argv = [sys.executable, "-ISc", CONNECTS, listener.path, str(user)]
        client = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
        assert client.stdout
        assert await client.stdout.read() == b"in\n"
        ours = await arrived
        await client.wait()
        await listener.close()
    return ours


def test_a_program_of_this_user_is_known_as_such() -> None:
    assert asyncio.run(judged(os.geteuid())) is True


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both")
def test_a_program_of_another_user_is_known_as_such() -> None:
    assert asyncio.run(judged(NOBODY)) is False


def test_one_that_has_gone_already_is_nobodys() -> None:
    async def judged_late() -> bool:
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=ours)
        with theirs:
            writer.transport.abort()
            while writer.get_extra_info("socket").fileno() >= 0:
                await asyncio.sleep(0)
            return is_this_user(writer)

    assert asyncio.run(judged_late()) is False


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_where_the_system_does_not_tell_the_mode_of_the_pipe_has_to_do(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)

    assert is_this_user(None)  # type: ignore[arg-type]  # it is not even asked


def test_where_nobody_listens_there_is_no_connection(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        asyncio.run(connect(str(tmp_path / "c")))


@pytest.mark.parametrize(
    ("path", "platform", "expected"),
    [
        ("/tmp/CoreFxPipe_uno-1", "linux", True),
        ("CoreFxPipe_uno-1", "linux", False),
        ("\\\\.\\pipe\\uno-1", "win32", True),
        ("\\\\.\\PIPE\\uno-1", "win32", True),
        ("\\\\elsewhere\\pipe\\uno-1", "win32", False),
        ("\\\\.\\pipe\\..\\UNC\\elsewhere\\share", "win32", False),
        ("\\\\.\\pipe\\../UNC/elsewhere/share", "win32", False),
        ("C:\\uno-1", "win32", False),
    ],
)
def test_only_pipes_of_this_machine_are_connected_to(path: str, platform: str, expected: bool) -> None:
    assert is_pipe_path(path, platform) is expected


def test_a_relative_path_is_no_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be one of whatever folder is current."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ValueError, match="not the path of a pipe"):
        asyncio.run(connect("c"))
