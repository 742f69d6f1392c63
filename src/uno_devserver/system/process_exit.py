"""Waiting in an event loop for the end of any process; on Linux the system tells, elsewhere we look.

A child of ours counts as ended although nobody has asked for its exit code yet.
"""

from __future__ import annotations

import asyncio
import os
import sys


async def process_exit(pid: int, poll_seconds: float) -> None:
    """Returns at once when the process ends on Linux, within the poll interval elsewhere."""
    handle = _pidfd(pid)
    if handle is not None:
        try:
            loop = asyncio.get_running_loop()
            gone = asyncio.Event()
            loop.add_reader(handle, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(handle)
        finally:
            os.close(handle)
        return
    from .processes import is_alive

    while is_alive(pid):
        await asyncio.sleep(poll_seconds)


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, or the process is gone already: polling finds out
        return None
