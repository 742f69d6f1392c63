"""What an authority records for `status`: counts, the last check, build and restart, and the last reloads.

A reload whose build failed is recorded too; another attempt without an edit replaces its entry.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ..system.log import utc_now
from ..system.text import shortened_output
from .control.messages import check_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .authority import CheckResult, RestartResult
    from .package_state import BuildResult, PackageState
    from .watched_package import Role

MAX_RELOADS = 20
SHOWN_PATHS = 20  # the most changed files that an entry lists
SHOWN_PROBLEM = 500  # characters of the output of a failed build; its log file has the rest


class ReloadHistory:
    def __init__(self) -> None:
        self._counts = {"checks": 0, "builds": 0, "restarts": 0}
        self._last: dict[str, dict[str, Any] | None] = {"lastCheck": None, "lastBuild": None, "lastRestart": None}
        self._reloads: deque[dict[str, Any]] = deque(maxlen=MAX_RELOADS)
        self._due: dict[str, Any] = {}  # the entry of the reload whose restart has not ended
        self._failed_builds: dict[Role, tuple[str, dict[str, Any]]] = {}  # the digest of the content, and the failure
        self._last_failure: tuple[Role, str] | None = (
            None  # the digest of the content, if the last entry is a failed build
        )

    def status(self) -> dict[str, Any]:
        return {**self._counts, **self._last, "history": list(self._reloads)}

    def failing(self, packages: Iterable[PackageState]) -> list[dict[str, Any]]:
        """The failures of the packages whose content, as last read from disk, was not built or started."""
        found = []
        for package in packages:
            role, now = package.package.role, package.disk.last
            unbuilt, failure = self._failed_builds.get(role, (None, {}))
            if now is not None and now == unbuilt:
                found.append({"role": role.value, **failure})
            elif now is not None and now == package.failed and (last := self._last["lastRestart"]) and not last["ok"]:
                found.append({"role": role.value, "step": "start", **last})
            elif package.output.stale_reason:
                found.append({"role": role.value, "step": "output", "problem": package.output.stale_reason})
        return found

    def checked(self, seconds: float, result: CheckResult | None) -> None:
        """Record a check; `result` is None if there was no answer."""
        self._counts["checks"] += 1
        # Members become booleans, because the log file has the output of the build.
        found = {name: bool(value) for name, value in check_json(result).items()} if result else None
        self._last["lastCheck"] = {"at": utc_now(), "seconds": round(seconds, 3), "result": found}

    def made(self, role: Role, changed: Sequence[str], made: BuildResult) -> None:
        now, named, log_file = utc_now(), made.named or None, made.log_file or None
        if named:
            self._counts["builds"] += 1
            outcome = {"at": now, "seconds": made.seconds, "ok": made.error is None}
            self._last["lastBuild"] = {**outcome, "named": named, "logFile": log_file}
        self._due = {
            "at": now,
            "role": role.value,
            "changed": list(changed[:SHOWN_PATHS]),
            "build": named,
            "buildSeconds": made.seconds,
        }
        if made.error is None:
            self._failed_builds.pop(role, None)
            return
        problem = shortened_output(made.error, SHOWN_PROBLEM)
        failure = {"step": "build", "at": now, "named": named, "logFile": log_file, "problem": problem}
        self._failed_builds[role] = made.digest, failure
        if self._last_failure == (role, made.digest):
            # Nothing has changed since the first attempt, whose entry lists the changed files.
            self._due["changed"] = self._reloads.pop()["changed"]
        self._record(ok=False, problem=problem, logFile=log_file)
        self._last_failure = role, made.digest

    def restart_demanded(self, role: Role) -> None:
        """Begin the entry of a restart without a change of code."""
        self._due = {"at": utc_now(), "role": role.value, "changed": [], "build": None, "buildSeconds": 0.0}

    def extension_reloaded(self, *, client: bool) -> None:
        self._record(ok=True, client=client)

    def restarted(self, seconds: float, result: RestartResult) -> None:
        self._counts["restarts"] += 1
        outcome = {"ok": result.ok, "lists": result.lists, "problem": result.problem or None}
        self._last["lastRestart"] = {"at": utc_now(), "seconds": round(seconds, 3), **outcome}
        tools = result.tools.to_json() if result.tools is not None else None
        self._record(restartSeconds=round(seconds, 3), **outcome, tools=tools)

    def _record(self, **outcome: Any) -> None:
        self._reloads.append({**self._due, **outcome})
        self._last_failure = None
