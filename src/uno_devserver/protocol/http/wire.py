"""The way to the client: bytes go out, slowly when it reads slowly, and not at all when it is gone."""

from __future__ import annotations

import asyncio


class Wire:
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
