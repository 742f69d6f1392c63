"""What an authority has done so far, for people: counts, the last of each kind, and the last reloads."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .authority import Restarted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .authority import CheckResult
    from .package import Role
    from .watched import Made

HISTORY = 20  # reloads that are remembered
SHOWN_PATHS = 20  # of what has changed


class Figures:
    def __init__(self) -> None:
        self.last_restarted = Restarted(True)  # before the first one, what runs is current
        self._counts = {"checks": 0, "builds": 0, "restarts": 0}
        self._last: dict[str, dict[str, Any] | None] = {"lastCheck": None, "lastBuild": None, "lastRestart": None}
        self._history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self._due: dict[str, Any] = {}  # the reload that waits for its restart

    def status(self) -> dict[str, Any]:
        return {**self._counts, **self._last, "history": list(self._history)}

    def checked(self, seconds: float, result: CheckResult | None) -> None:
        """None: there was no answer."""
        self._counts["checks"] += 1
        # Of a build's output it is enough to know that there is one; the log file has it.
        found = {name: bool(value) for name, value in result.to_json().items()} if result else None
        self._last["lastCheck"] = {"at": _now(), "seconds": round(seconds, 3), "result": found}

    def made(self, role: Role, changed: Sequence[str], made: Made) -> None:
        if made.named:
            self._counts["builds"] += 1
            ok = made.error is None
            self._last["lastBuild"] = {"at": _now(), "seconds": made.seconds, "ok": ok, "named": made.named}
        self._due = {
            "at": _now(),
            "role": role.value,
            "changed": list(changed[:SHOWN_PATHS]),
            "build": made.named or None,
            "buildSeconds": made.seconds,
        }

    def extension_reloaded(self, *, client: bool) -> None:
        self._history.append({**self._due, "client": client})

    def restarted(self, seconds: float, result: Restarted) -> None:
        self.last_restarted = result
        self._counts["restarts"] += 1
        became = {"ok": result.ok, "lists": result.lists, "problem": result.problem or None}
        self._last["lastRestart"] = {"at": _now(), "seconds": round(seconds, 3), **became}
        self._history.append({**self._due, "restartSeconds": round(seconds, 3), **became})


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
