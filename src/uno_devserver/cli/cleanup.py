"""`cleanup`: removes the registrations, status files and sockets of servers and proxies that no longer run."""

from __future__ import annotations

from ..hotreload.control.channel_name import remove_left_channels
from ..instances.registry import prune
from ..proxy.health.status_file import remove_stale
from ..system.folders import folders
from ..system.log import log
from ..system.text import visible
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parse import Invocation


def run(_: Invocation) -> Result:
    pruned = prune(folders().registry)
    for problem in pruned.problems:
        log.warn(problem)
    lines = ["Cleaning up stale DevServer registrations..."]
    removed = (*pruned.removed, *remove_stale(folders().state), *remove_left_channels())
    lines += [f"Removed {path}" for path in removed]
    lines += [f"Left {path}: it is not a registration and may not be stale." for path in pruned.unreadable]
    lines += ["Cleanup completed." if not pruned.problems else "Cleanup not completed."]
    data = {
        "removed": list(removed),
        "unreadable": list(pruned.unreadable),
        "running": [server.process_id for server in pruned.running],
        "problems": list(pruned.problems),
    }
    return Result(data, visible("\n".join(lines), keep_odd_bytes=True), 1 if pruned.problems else 0)
