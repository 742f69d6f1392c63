"""How long an upstream is waited for: every bound of keeping it, with its reason. Tests replace single values."""

from __future__ import annotations

from ...system.values import Value


class Policy(Value):
    hello_seconds: float = 1.0  # the client's first message came long ago, as a rule; its era is worth this wait
    end_seconds: float = 0.3  # a connection breaks a moment before the end of its process is told, which tells more
    # What takes longer to end, hangs, and the next one is started beside it; a Host that works has 6 s to end well.
    stop_seconds: float = 8.0
    retry_seconds: float = 5.0  # a server that comes back without our doing is looked for that often
    # Until newer code is connected or given up: three attempts to start it, each of which has a bound of its own.
    renew_seconds: float = 180.0
    # The same beside the one that serves: 30 s to answer for the first time, and as many for its lists.
    spare_seconds: float = 75.0


DEFAULT_POLICY = Policy()
