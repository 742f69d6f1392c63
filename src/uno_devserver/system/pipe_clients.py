"""Clients of named pipes: connecting, and checking the user at the other end.

Separate from `pipes`, which is imported before a launch and must not import asyncio.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys

from .pipes import WINDOWS_FOLDER

_CREDENTIALS = struct.Struct("3i")  # struct ucred of Linux: process, user, group


async def connect(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a pipe; raises OSError if no process listens there, ValueError if it is not on this machine."""
    if not is_pipe_path(path):
        raise ValueError("it is not the path of a pipe of this machine")
    if sys.platform == "win32":
        loop = asyncio.get_running_loop()
        assert isinstance(loop, asyncio.ProactorEventLoop)  # the default on Windows
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.create_pipe_connection(lambda: protocol, path)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
    return await asyncio.open_unix_connection(path)


def is_pipe_path(path: str, platform: str = sys.platform) -> bool:
    """Whether this is a pipe of this machine: Windows would send credentials to any other machine that a path names."""
    if platform != "win32":
        return path.startswith("/")
    name = path[len(WINDOWS_FOLDER) :]
    return path.lower().startswith(WINDOWS_FOLDER) and not {"\\", "/"}.intersection(name)


def is_this_user(writer: asyncio.StreamWriter) -> bool:
    """Whether the program at the other end belongs to this user; True on systems that do not report it.

    This check is in addition to the mode of the socket, which a file system without modes does not keep.
    """
    if sys.platform != "linux":
        return True
    try:
        told = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return False  # the connection is closed
    user: int = _CREDENTIALS.unpack(told)[1]
    return user == os.geteuid()
