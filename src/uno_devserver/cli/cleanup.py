"""`cleanup`: removes the registrations, status files and sockets of servers and proxies that no longer run.

Also keys of inspector pages that have expired.
"""

from __future__ import annotations

import os

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
    state = folders().state
    removed = (*pruned.removed, *remove_stale(state), *remove_left_channels(), *_remove_old_keys(state))
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


def _remove_old_keys(state: str) -> list[str]:
    folder = os.path.join(state, "inspector")
    if not os.path.isdir(folder):
        return []
    from ..inspector.access import remove_old_keys  # takes 10 ms, and few use the inspector

    return remove_old_keys(folder)
