"""What happened in a run, counted, and what was wrong; from many threads."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Callable

KEPT_PROBLEMS = 50  # what is wrong again and again is wrong


class Tally:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._lock = threading.Lock()

    def add(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def wrong(self, what: str) -> None:
        with self._lock:
            self.counts["wrong"] += 1
            if len(self.problems) < KEPT_PROBLEMS:
                self.problems.append(what)


class Loops:
    """Things that are done again and again, each by a thread of its own, until all are stopped."""

    def __init__(self, tally: Tally) -> None:
        self.over = threading.Event()
        self._tally = tally
        self._threads: list[threading.Thread] = []

    def start(self, name: str, work: Callable[[], float]) -> None:
        """`work` gives back the seconds until the next time. What it raises is a problem of the run, not its end."""
        thread = threading.Thread(target=self._run, args=(name, work), daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, seconds: float) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                self._tally.wrong(f"{thread.name} hangs")

    def _run(self, name: str, work: Callable[[], float]) -> None:
        pause = 0.0
        while not self.over.wait(pause):
            try:
                pause = work()
            except Exception:
                self._tally.wrong(f"{name}: {traceback.format_exc(limit=-4)}")
                pause = 1.0
