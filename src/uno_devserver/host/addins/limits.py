"""How long the Host waits for its add-ins."""

from __future__ import annotations

from ...system.values import Value


class Limits(Value):
    """In seconds."""

    load: float = 15.0  # one add-in: the official SDK alone takes seconds to import on a busy machine
    start: float = 10.0  # on_start and an SDK server's lifespan
    ready: float = 10.0  # a client's request for add-ins that are not there yet; what comes later is announced
    stop: float = 3.0  # all of them together: whoever stops the Host waits
    health: float = 1.0  # a health report must not wait for a sick add-in
