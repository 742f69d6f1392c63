"""What an authority has done so far, for people: counts, the last of each kind, and the last reloads.

A reload whose build failed is in the history, too; one that is tried again and again without an edit is there once.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .authority import RestartResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .authority import CheckResult
    from .package_state import BuildResult, PackageState
    from .watched_package import Role

HISTORY = 20  # reloads that are remembered
SHOWN_PATHS = 20  # of what has changed
SHOWN_PROBLEM = 500  # characters of what a failed build printed; its log file has the rest


class ReloadHistory:
    def __init__(self) -> None:
        self.last_restarted = RestartResult(True)  # before the first one, what runs is current
        self._counts = {"checks": 0, "builds": 0, "restarts": 0}
        self._last: dict[str, dict[str, Any] | None] = {"lastCheck": None, "lastBuild": None, "lastRestart": None}
        self._history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self._due: dict[str, Any] = {}  # the reload that waits for its restart
        self._failed_builds: dict[Role, tuple[str, dict[str, Any]]] = {}  # each with the content that it was of
        self._last_failure: tuple[Role, str] | None = None  # whose build is the last in the history, of which content

    def status(self) -> dict[str, Any]:
        return {**self._counts, **self._last, "history": list(self._history)}

    def failing(self, packages: Iterable[PackageState]) -> list[dict[str, Any]]:
        """Why the content that was last seen on disk does not run, of each package where it was tried and failed."""
        found = []
        for watched in packages:
            role, now = watched.package.role, watched.on_disk.last
            unbuilt, failure = self._failed_builds.get(role, (None, {}))
            if now is not None and now == unbuilt:
                found.append({"role": role.value, **failure})
            elif now is not None and now == watched.failed and (last := self._last["lastRestart"]) and not last["ok"]:
                found.append({"role": role.value, "step": "start", **last})
        return found

    def checked(self, seconds: float, result: CheckResult | None) -> None:
        """None: there was no answer."""
        self._counts["checks"] += 1
        # Of a build's output it is enough to know that there is one; the log file has it.
        found = {name: bool(value) for name, value in result.to_json().items()} if result else None
        self._last["lastCheck"] = {"at": _now(), "seconds": round(seconds, 3), "result": found}

    def made(self, role: Role, changed: Sequence[str], made: BuildResult) -> None:
        if made.named:
            self._counts["builds"] += 1
            ok = made.error is None
            log_file = made.log_file or None
            became = {"at": _now(), "seconds": made.seconds, "ok": ok, "named": made.named, "logFile": log_file}
            self._last["lastBuild"] = became
        self._due = {
            "at": _now(),
            "role": role.value,
            "changed": list(changed[:SHOWN_PATHS]),
            "build": made.named or None,
            "buildSeconds": made.seconds,
        }
        if made.error is None:
            self._failed_builds.pop(role, None)
        else:
            what = {"step": "build", "at": _now(), "named": made.named or None, "logFile": made.log_file or None}
            # Without a log it did not even run, and the error is a sentence.
            self._failed_builds[role] = made.digest, {**what, "problem": None if made.log_file else made.error}
            self._build_failed(role, made.digest, made.error, made.log_file)

    def _build_failed(self, role: Role, content: str, error: str, log_file: str) -> None:
        if self._last_failure == (role, content):
            # What had changed is known from the first try: since then nothing has.
            self._due["changed"] = self._history.pop()["changed"]
        self._keep(ok=False, problem=_shortened(error), logFile=log_file or None)
        self._last_failure = role, content

    def extension_reloaded(self, *, client: bool) -> None:
        self._keep(ok=True, client=client)

    def restarted(self, seconds: float, result: RestartResult) -> None:
        self.last_restarted = result
        self._counts["restarts"] += 1
        became = {"ok": result.ok, "lists": result.lists, "problem": result.problem or None}
        self._last["lastRestart"] = {"at": _now(), "seconds": round(seconds, 3), **became}
        tools = result.tools.to_json() if result.tools is not None else None
        self._keep(restartSeconds=round(seconds, 3), **became, tools=tools)

    def _keep(self, **became: Any) -> None:
        self._history.append({**self._due, **became})
        self._last_failure = None


def _shortened(printed: str) -> str:
    """From its end, where compilers count what they found, and where our own sentence stands."""
    return printed if len(printed) <= SHOWN_PROBLEM else "…" + printed[-SHOWN_PROBLEM:]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
