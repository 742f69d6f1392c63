"""The way to the client: bytes go out, slowly when it reads slowly, and not at all when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ServerTransport:
    """A connection as plain answers, streams and WebSockets use it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ended = False
        self.gone = False

    @property
    def stalled(self) -> bool:
        """Whether the client has yet to take what was sent."""
        return not self._flowing.is_set()

    @property
    def closing(self) -> bool:
        return self._transport.is_closing()

    @property
    def backlog(self) -> int:
        """Bytes that were written and not yet taken."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send, if anybody is there and nothing ended the sending."""
        # A transport that is closing sends nothing either, but soon complains of each attempt on standard error.
        if data and not self.closing and not self._ended:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written; ConnectionError when it is gone."""
        if not self._flowing.is_set():
            await self._flowing.wait()
        elif self.closing:
            # Let the event loop tell us what happened: a writer that never has to wait would never hear of it.
            await asyncio.sleep(0)
        if self.gone:
            raise ConnectionResetError("the client is gone")

    def stop_reading(self) -> None:
        self._transport.pause_reading()

    def go_on_reading(self) -> None:
        self._transport.resume_reading()

    def end(self) -> None:
        """Say that nothing more comes; what was written is still delivered."""
        if not self.gone and not self.closing:
            self._ended = True
            try:
                self._transport.write_eof()
            except OSError:  # it has reset the connection, and the event loop is yet to tell us
                self._transport.abort()

    def close(self) -> None:
        """Take nothing more, and close when what was written is delivered."""
        self._transport.close()

    def abort(self) -> None:
        """Close now, whatever is still to be delivered."""
        self._transport.abort()

    # --- what the event loop tells

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def lost(self) -> None:
        self.gone = True
        self._flowing.set()


class DeadlineTimer:
    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Ring in that many seconds, and not at the time that was set before."""
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._fired)

    def clear(self) -> None:
        """Do not ring."""
        self._deadline = None

    def stop(self) -> None:
        """Do not ring, and leave nothing behind in the event loop."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._timer = self._loop.call_at(self._deadline, self._fired)
            return
        self._deadline = None
        self._ring()
