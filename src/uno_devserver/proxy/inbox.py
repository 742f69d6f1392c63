"""The way from the front to the engine: in order, kept until there is an engine, whichever thread the front is in.

Cheap to import.
"""

from __future__ import annotations

import _thread
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any


class Inbox:
    def __init__(self) -> None:
        self._waiting: deque[Any] = deque()
        self._loop: AbstractEventLoop | None = None
        self._take: Callable[[Any], None] | None = None
        self._called = False  # the loop will look; calling it for each message would cost more than the message
        self._thread: int | None = None  # of the loop
        self.opened: Callable[[AbstractEventLoop | None], None] = lambda _: None  # told in the thread that opens it

    def put(self, message: Any) -> None:
        """From any thread."""
        self._waiting.append(message)
        loop = self._loop
        if loop is not None and not self._called:
            self._called = True
            try:
                # Also in the loop not at once: the front first answers what else has come.
                here = self._thread == _thread.get_ident()
                (loop.call_soon if here else loop.call_soon_threadsafe)(self.hand_over)
            except RuntimeError:
                pass  # the engine has ended, and so will the front
        elif loop is None and self._take is not None:
            self.hand_over()

    def open(self, loop: AbstractEventLoop | None, take: Callable[[Any], None]) -> None:
        """From the loop's thread: `take` gets what waits, and from now on everything as it comes.

        Without a loop it is called in the thread that puts something in.
        """
        self._take = take
        self._loop, self._thread = loop, _thread.get_ident()
        self.hand_over()
        self.opened(loop)

    def expect(self) -> None:
        """In the loop: what is put from now on waits for `hand_over`, which follows in the same turn."""
        self._called = True

    def hand_over(self) -> None:
        """Where it is taken: all that waits."""
        self._called = False  # before looking: what comes from now on calls again
        assert self._take is not None
        while True:
            try:
                message = self._waiting.popleft()
            except IndexError:  # asked for rather than looked at: without a loop two threads may be here
                return
            self._take(message)
