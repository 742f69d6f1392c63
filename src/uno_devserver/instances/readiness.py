"""When is a Host that we launched ready? When it is our child, and nobody else, who answers HTTP on its port.

That a port answers proves nothing, nor that the Host signed in, which it does before it listens: any program may have
taken the port meanwhile. The end of the child is noticed within some milliseconds, and every wait has a limit.
"""

from __future__ import annotations

import time
from enum import Enum

from ..system import proc
from ..system.listeners import listener_in_family
from ..system.values import Value
from .loopback import Loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Child

MCP_PATH = "/mcp"
NOT_FOUND = 404
ASK_SECONDS = 2.0  # one question; a Host that loads its add-ins may accept a connection long before it answers
# A bundled Host needs 0.1 s, a .NET Host 0.4 s and more: at first every few milliseconds count.
FAST_SECONDS, FAST_STEP, SLOW_STEP = 1.0, 0.003, 0.02


class Readiness(Enum):
    READY = "ready"
    DIED = "died"
    TOO_LATE = "too late"
    GIVEN_UP = "given up"


class Wait(Value):
    outcome: Readiness
    process_id: int = 0  # of the Host: the child, or what a script that is the child has started
    has_mcp: bool = False


def wait_until_ready(child: Child, port: int, *, seconds: float, go_on: Callable[[float], bool]) -> Wait:
    """`go_on` is told the seconds that passed, again and again, and can end the waiting for good."""
    begun = time.monotonic()
    loopback = Loopback()
    if not proc.AVAILABLE:
        import psutil  # noqa: F401  # takes 20 ms, and has them now, while the Host starts

    def pointless() -> bool:
        return child.exit_code() is not None or not go_on(time.monotonic() - begun)

    while True:
        left = seconds - (time.monotonic() - begun)
        status = loopback.ask("GET", port, MCP_PATH, min(ASK_SECONDS, max(left, 0)), abandon=pointless)
        process_id = None if status is None else listener_in_family(child.pid, port)
        if child.exit_code() is not None:
            return Wait(Readiness.DIED)
        if process_id is not None:
            return Wait(Readiness.READY, process_id, status != NOT_FOUND)
        if left <= 0:
            return Wait(Readiness.TOO_LATE)
        if pointless():
            return Wait(Readiness.GIVEN_UP)
        time.sleep(FAST_STEP if seconds - left < FAST_SECONDS else SLOW_STEP)
