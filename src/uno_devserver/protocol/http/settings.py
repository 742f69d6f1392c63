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
    extra: bytes  # header lines for every answer
    everybody: bool  # other users of this machine may connect
