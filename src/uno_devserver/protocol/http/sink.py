"""The body of a streamed answer: in chunks, or bare until the end of the connection for an HTTP/1.0 client."""

from __future__ import annotations

from .wire import Wire

LAST_CHUNK = b"0\r\n\r\n"


class StreamSink:
    """Implements `Sink`. Nothing gets through once the answer is over, whoever still holds it."""

    def __init__(self, wire: Wire, chunks: bool) -> None:
        self._wire = wire
        self._chunks = chunks
        self._over = False

    async def write(self, data: bytes) -> None:
        if self._over or self._wire.gone:
            raise ConnectionResetError("the client is gone, or its answer is over")
        if data:  # an empty chunk would mean the end
            self._wire.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunks else data)
        await self._wire.drain()

    def end(self, whole: bool) -> None:
        """Nothing more comes; `whole` tells the client that it has everything."""
        self._over = True
        if whole and self._chunks:
            self._wire.write(LAST_CHUNK)
