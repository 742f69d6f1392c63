"""`cleanup`: remove registrations of servers that no longer run. Ends no process."""

from __future__ import annotations

from ..instances.registry import prune
from ..system.folders import folders
from ..system.log import log
from ..system.text import visible
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parse import Invocation


def run(_: Invocation) -> Result:
    pruned = prune(folders().registry)
    for problem in pruned.problems:
        log.warn(problem)
    lines = ["Cleaning up stale DevServer registrations..."]
    lines += [f"Removed {path}" for path in pruned.removed]
    lines += [f"Left {path}: it is no registration, and not certainly stale." for path in pruned.unreadable]
    lines += ["Cleanup completed." if not pruned.problems else "Cleanup not completed."]
    data = {
        "removed": list(pruned.removed),
        "unreadable": list(pruned.unreadable),
        "running": [server.process_id for server in pruned.running],
        "problems": list(pruned.problems),
    }
    return Result(data, visible("\n".join(lines), keep_odd_bytes=True), 1 if pruned.problems else 0)
