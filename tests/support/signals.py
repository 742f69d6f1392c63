"""Signals by the names that only POSIX has, for tables of tests, which Windows reads and then leaves out."""

from __future__ import annotations

import signal
import sys

if sys.platform == "win32":
    SIGHUP = SIGQUIT = signal.SIGTERM
else:
    SIGHUP, SIGQUIT = signal.SIGHUP, signal.SIGQUIT
