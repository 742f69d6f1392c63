"""Setting the clock of a machine, as a process sees it that asks when others were created."""

from __future__ import annotations

import psutil
import pytest

from uno_devserver.system import proc


def move_clock(monkeypatch: pytest.MonkeyPatch, *, hours: int) -> None:
    """The system counts from the boot when a process was created, and the time of the boot moves with the clock.

    psutil does the same on Linux and macOS, with versions from 7.1 on.
    """
    by_proc, by_psutil = proc._boot_time, psutil.Process.create_time
    monkeypatch.setattr(proc, "_boot_time", lambda: by_proc() + hours * 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: by_psutil(process) + hours * 3600)
