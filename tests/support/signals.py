"""Signals by the names that only POSIX has, and the exit codes of processes that one ended.

On Windows, which reads the tables of tests before it leaves some out, SIGTERM stands for the names that it lacks.
"""

from __future__ import annotations

import signal
import sys

if sys.platform == "win32":
    SIGHUP = SIGQUIT = signal.SIGTERM
else:
    SIGHUP, SIGQUIT = signal.SIGHUP, signal.SIGQUIT


def exit_code_of(number: int) -> int:
    """The exit code of a process that a signal ended: on Windows the number itself, which `os.kill` gives it there."""
    return number if sys.platform == "win32" else -number
