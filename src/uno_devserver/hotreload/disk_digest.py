"""The digest of files on disk, computed on a thread and for a limited time."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ..system.event_loop import Tasks, run_in_thread
from ..system.log import log
from .authority import AuthorityProblem

if TYPE_CHECKING:
    from .fingerprint import Fingerprint


class DiskDigest:
    """Concurrent callers share one computation."""

    def __init__(self, root: str, fingerprint: Fingerprint, seconds: float) -> None:
        self.last: str | None = None
        self.problems: tuple[str, ...] = ()  # sentences about the files that could not be read for the last digest
        self._root = root
        self._fingerprint = fingerprint
        self._seconds = seconds
        self._reads = Tasks()
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str | AuthorityProblem] | None = None  # a computation that has not begun yet
        self._overdue: asyncio.Task[str | AuthorityProblem] | None = None  # a computation that has exceeded the limit

    async def digest(self) -> str:
        """The digest of the files as they are now; raises AuthorityProblem if that takes too long or is impossible."""
        if self._overdue is not None and not self._overdue.done():
            raise AuthorityProblem(f"Reading the files of {self._root} has not finished yet.")
        if self._next is None:
            self._next = self._reads.start(self._read_once())
        reading = self._next
        done, _ = await asyncio.wait([reading], timeout=self._seconds)
        if not done:
            self._overdue = reading
            raise AuthorityProblem(f"Reading the files of {self._root} takes longer than {self._seconds:g} s.")
        if reading.cancelled():
            raise AuthorityProblem(f"Reading the files of {self._root} was cancelled.")
        result = reading.result()
        if isinstance(result, AuthorityProblem):
            raise result
        return result

    def close(self) -> None:
        self._reads.cancel()

    async def _read_once(self) -> str | AuthorityProblem:
        async with self._turn:
            self._next = None  # later callers need another computation
            try:
                self.last = await run_in_thread(self._read)
            except AuthorityProblem as error:
                return error
            except Exception as error:
                return AuthorityProblem(
                    f"The files of {self._root} cannot be read: {str(error) or type(error).__name__}."
                )
            if self._fingerprint.problems != self.problems:
                self.problems = self._fingerprint.problems
                for problem in self.problems:
                    log.warn(problem)
            return self.last

    def _read(self) -> str:
        if not os.path.isdir(self._root):  # moved, or not on this branch; the running process is kept
            raise AuthorityProblem(f"There is no folder {self._root}.")
        return self._fingerprint.digest()
