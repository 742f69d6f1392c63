"""How long after its process began the proxy was how far. Cheap to import."""

from __future__ import annotations

import time


class Timeline:
    def __init__(self) -> None:
        # What the interpreter did before this line took the processor's time and nothing else: its own start.
        self._began = time.monotonic() - time.process_time()
        self._stages: dict[str, float] = {}

    def mark(self, stage: str) -> float:
        """The milliseconds until now; kept for the first time that a stage is reached. From any thread."""
        return self._stages.setdefault(stage, round((time.monotonic() - self._began) * 1000, 1))

    def stages(self) -> dict[str, float]:
        """What was reached when, in milliseconds, in this order."""
        return dict(self._stages)
