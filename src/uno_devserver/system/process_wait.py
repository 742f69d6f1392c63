"""Wait in an event loop for the end of any process. Apart from `processes`, because it imports asyncio."""

from __future__ import annotations

import asyncio
import os

from . import proc


async def process_exit(pid: int, poll_seconds: float) -> None:
    """Return when the process has ended: at once on Linux, within the poll interval elsewhere.

    A child counts as ended before its exit code is read.
    """
    handle = proc.pidfd(pid)
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
