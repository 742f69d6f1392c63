"""What became of the add-ins of a bundled Host that has just been launched, as soon as it is known.

A Host answers before its add-ins are loaded. Whoever starts one wants to hear of a broken one at once, but not to wait
for a slow one.
"""

from __future__ import annotations

import time

from .probe import told_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .child import Child
    from .probe import Probe

SECONDS = 1.0  # loading takes some 50 ms; one that imports a large library is left to `health`
STEP_SECONDS = 0.004  # a question costs the Host a millisecond of the time in which it loads


def wait_until_loaded(child: Child, process_id: int, port: int) -> Probe | None:
    """What the Host says of its add-ins, at the latest after a second; None when it does not say anything."""
    deadline = time.monotonic() + SECONDS
    told = None
    while child.exit_code() is None and time.monotonic() < deadline:
        told = told_by(process_id, port, deadline) or told
        if told and not told.loading:
            break
        time.sleep(STEP_SECONDS)
    return told
