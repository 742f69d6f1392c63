"""What all connections of a server have in common."""

from __future__ import annotations

from ...system.values import Value
from .guard import Guard
from .messages import Handler


class Settings(Value):
    handler: Handler
    guard: Guard
    max_body: int
    max_headers: int
    header_timeout: float
    idle_timeout: float
    max_connections: int
    # What is received is read before anything else happens in the event loop, so all connections can share it. Without,
    # asyncio would have 256 KiB mapped and unmapped for each request.
    buffer: memoryview
    extra: bytes  # header lines for every answer
    everybody: bool  # other users of this machine may connect
