"""What the code of a package is now, as it lies on disk: asked from the event loop, answered within a bound.

An answer is never older than the question. Where the disk does not answer, that costs the bound once; until it does,
there is no answer at once.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from ..protocol.running import Tasks
from ..system.log import log
from ..system.threads import apart
from .fingerprint import Fingerprint
from .sources.find import find_sources

if TYPE_CHECKING:
    from .package import Package


class NoAnswer(Exception):
    """What lies on disk cannot be told within the bound; says why."""


class OnDisk:
    def __init__(self, package: Package, seconds: float) -> None:
        cache: dict[str, Any] = {}
        self.fingerprint = Fingerprint(lambda: find_sources(package, cache))
        self.last: str | None = None  # the last answer
        self.problems: tuple[str, ...] = ()  # sentences: what could not be read then
        self._root = package.root
        self._seconds = seconds
        self._looks = Tasks()
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str | NoAnswer] | None = None  # a look that was asked for and has not begun
        self._late: asyncio.Task[str | NoAnswer] | None = None  # one that takes longer than anybody waits

    async def digest(self) -> str:
        """NoAnswer if it takes too long, or is not possible."""
        if self._late is not None and not self._late.done():
            raise NoAnswer(f"Reading the sources in {self._root} has not come to an end yet.")
        if self._next is None:
            self._next = self._looks.start(self._look())
        look = self._next
        done, _ = await asyncio.wait([look], timeout=self._seconds)
        if not done:
            self._late = look
            raise NoAnswer(f"Reading the sources in {self._root} takes longer than {self._seconds:g} s.")
        if look.cancelled():
            raise NoAnswer(f"The sources in {self._root} are not looked at any more.")
        seen = look.result()
        if isinstance(seen, NoAnswer):
            raise seen
        return seen

    def news(self) -> bool | None:
        """At once: whether a source may be another than at the last answer. None: only another one can tell."""
        return self.fingerprint.news()

    @property
    def changed_paths(self) -> tuple[str, ...]:
        """From the root: what made the last answer another than the one before."""
        return self.fingerprint.changed_paths

    def close(self) -> None:
        self._looks.cancel()
        self.fingerprint.close()

    async def _look(self) -> str | NoAnswer:
        async with self._turn:
            self._next = None  # what is asked for from here on needs another one
            try:
                self.last = await apart(self._read)
            except NoAnswer as reason:
                return reason
            except Exception as error:
                return NoAnswer(f"The sources in {self._root} cannot be read: {error or type(error).__name__}.")
            if self.fingerprint.problems != self.problems:
                self.problems = self.fingerprint.problems
                for problem in self.problems:
                    log.warn(problem)
            return self.last

    def _read(self) -> str:
        if not os.path.isdir(self._root):  # moved, or on another branch: no reason to give up what runs
            raise NoAnswer(f"There is no folder {self._root}.")
        return self.fingerprint.digest()
