"""Which functions of add-ins run now, and where they are: so that a call that hangs can be seen.

Every call through `workers.invoke` is recorded while its function runs, in a thread or on the event loop, also after
the client has given it up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...system.log import log
from ...system.values import Value
from .frames import in_coroutine, in_thread

SLOW_SECONDS = 30.0  # clients give a call 30 to 60 s; whatever takes longer is worth a line in the log
SHOWN = 20  # of a report: enough to see what hangs


class Work(Value):
    """What a function of an add-in is called for."""

    addin: str
    kind: str  # tool, resource, prompt, …
    name: str


class Running:
    """One call."""

    def __init__(self, work: Work, coroutine: Any) -> None:
        self.work = work
        self._coroutine = coroutine  # of an async function; None for a plain one, which has a thread
        self._thread = threading.get_ident()
        self._since = time.monotonic()
        self._told = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def tell_if_slow(self) -> None:
        if self._told or self.seconds < SLOW_SECONDS:
            return
        self._told = True
        frame = in_thread(self._thread) if self._coroutine is None else in_coroutine(self._coroutine)
        where = "" if frame is None else f" ({frame.f_code.co_filename}:{frame.f_lineno})"
        work = self.work
        log.warn(f"[{work.addin}] {work.kind} '{work.name}' has been running for {self.seconds:.0f} s{where}")


_running: set[Running] = set()  # of the process, as the log; adding and removing are atomic


@contextmanager
def recorded(work: Work, coroutine: Any = None) -> Iterator[None]:
    """Record a call while the block runs, in the thread in which it runs."""
    call = Running(work, coroutine)
    _running.add(call)
    try:
        yield
    finally:
        _running.discard(call)


def running() -> list[Running]:
    """The calls that run now, the longest first."""
    return sorted(_running.copy(), key=lambda call: -call.seconds)


def shown() -> list[dict[str, Any]]:
    """The same for the health report."""
    return [
        {
            "addIn": call.work.addin,
            "kind": call.work.kind,
            "name": call.work.name,
            "seconds": round(call.seconds, 1),
        }
        for call in running()[:SHOWN]
    ]
