"""How long after its process began the proxy was how far. Cheap to import."""

from __future__ import annotations

import time


class Timeline:
    def __init__(self) -> None:
        # What the interpreter did before this line was its own start, and took the processor's time and no other.
        self._began = time.monotonic() - time.process_time()
        self._stages: dict[str, int] = {}

    def mark(self, stage: str) -> int:
        """The milliseconds until now, or until the stage was reached for the first time. From any thread."""
        return self._stages.setdefault(stage, round((time.monotonic() - self._began) * 1000))

    def stages(self) -> tuple[tuple[str, int], ...]:
        """What was reached when, in this order."""
        return tuple(self._stages.items())
