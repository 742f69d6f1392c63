"""The states of a proxy's upstream, as a machine without I/O and without a clock: events come in, actions go out.

Only the transitions of the table are possible. Everything that is started is counted, so what an older start reports
late changes nothing. It never gives up for good: when starting is no use, it is Degraded, and one new attempt is made
when somebody needs the upstream, at most one within a while.

How long an upstream is waited for: every bound of keeping it, with its reason. Tests replace single values.
"""

from __future__ import annotations

from ...system.values import Value
from ..state import ConnectionState

INITIALIZING = ConnectionState.INITIALIZING
DISCOVERING = ConnectionState.DISCOVERING
LAUNCHING = ConnectionState.LAUNCHING
CONNECTING = ConnectionState.CONNECTING
CONNECTED = ConnectionState.CONNECTED
RECONNECTING = ConnectionState.RECONNECTING
DEGRADED = ConnectionState.DEGRADED
SHUTDOWN = ConnectionState.SHUTDOWN

# From Degraded a new attempt begins like the first one. A workspace that changes leads back to Discovering, one that
# ceases to be one to Degraded, from wherever the upstream is; newer code of the upstream leads to Reconnecting, also
# from a start that is under way. Every state but the last leads to Shutdown.
TRANSITIONS: dict[ConnectionState, frozenset[ConnectionState]] = {
    INITIALIZING: frozenset({DISCOVERING, SHUTDOWN}),
    DISCOVERING: frozenset({LAUNCHING, RECONNECTING, DEGRADED, SHUTDOWN}),
    LAUNCHING: frozenset({CONNECTING, RECONNECTING, DISCOVERING, DEGRADED, SHUTDOWN}),
    CONNECTING: frozenset({CONNECTED, RECONNECTING, DISCOVERING, DEGRADED, SHUTDOWN}),
    CONNECTED: frozenset({RECONNECTING, DISCOVERING, DEGRADED, SHUTDOWN}),
    RECONNECTING: frozenset({LAUNCHING, DISCOVERING, DEGRADED, SHUTDOWN}),
    DEGRADED: frozenset({DISCOVERING, RECONNECTING, SHUTDOWN}),
    SHUTDOWN: frozenset(),
}
STARTING = frozenset({DISCOVERING, LAUNCHING, RECONNECTING})  # a start is under way, or is due
# Each state's next one on the way to Connected.
ONWARDS = {
    INITIALIZING: DISCOVERING,
    DISCOVERING: LAUNCHING,
    RECONNECTING: LAUNCHING,
    DEGRADED: DISCOVERING,
    LAUNCHING: CONNECTING,
    CONNECTING: CONNECTED,
}
STARTED_AGAIN = "It is being started again."


class Policy(Value):
    startup_attempts: int = 3  # a lost port or a busy disk goes by; what fails three times has a cause that stays
    crash_cycles: int = 3  # as often a server is started again that ends soon after it was connected
    # Before the first, second, third attempt: one crash should hardly be felt, a series should not heat the machine.
    backoff_seconds: tuple[float, ...] = (0.0, 0.5, 2.0)
    stable_seconds: float = 10.0  # who lived that long, or did any work, is none of a series: crashes count anew
    retry_seconds: float = 5.0  # between two attempts when Degraded: a model that retries in a loop starts no storm


DEFAULT_POLICY = Policy()


class Start(Value):
    """Start the upstream, or find it, after that many seconds; report what becomes of it under this number."""

    attempt: int
    after: float


class Connect(Value):
    """Speak to what was started, and report under this number."""

    attempt: int


class Stop(Value):
    """End what was started, if it is ours, and what is just being started. Comes before a new Start.

    `patient`: it works, so it gets the time that it needs to end well.
    """

    patient: bool = False


class Announce(Value):
    """Tell the clients, as a log message of this level."""

    level: str
    text: str


Action = Start | Connect | Stop | Announce


class InvalidTransition(Exception):
    pass


class Lifecycle:
    """Each method is an event, and returns what is to be done now, in this order. `now` is a monotonic time."""

    def __init__(self, policy: Policy = DEFAULT_POLICY) -> None:
        self._policy = policy
        self._state = INITIALIZING
        self._attempt = 0  # the number of the last Start
        self._startups = 0  # attempts of this start, or of this restart
        self._crashes = 0  # since it was stable
        self._restarts = 0
        self._reloads = 0
        self._started_at = 0.0
        self._connected_at = 0.0
        self._proven = False  # has answered a client since it was connected

    @property
    def state(self) -> ConnectionState:
        return self._state

    @property
    def attempt(self) -> int:
        return self._attempt

    @property
    def restarts(self) -> int:
        """How often it was started again because it had ended."""
        return self._restarts

    @property
    def reloads(self) -> int:
        """How often it was replaced on purpose, because there was newer code."""
        return self._reloads

    def rest(self, now: float) -> float:
        """How many seconds after the last attempt another one is due, if somebody wants it."""
        return max(0.0, self._started_at + self._policy.retry_seconds - now)

    # What the proxy wants.

    def begin(self, now: float) -> tuple[Action, ...]:
        """There is something to start: at the beginning, or another workspace than before."""
        if self._state is SHUTDOWN:
            return ()
        stop = () if self._state is INITIALIZING else (Stop(),)
        if self._state is not DISCOVERING:
            self._go(DISCOVERING)
        self._crashes = self._startups = 0
        return (*stop, self._start(now))

    def renew(self, now: float, announcement: str, *, after: float) -> tuple[Action, ...]:
        """There is newer code: what runs, or is just being started, has to go.

        That is no crash, and how often the older code crashed says nothing of the newer.
        """
        if self._state is SHUTDOWN:
            return ()
        if self._state is INITIALIZING:
            self._go(DISCOVERING)
        if self._state is not RECONNECTING:
            self._go(RECONNECTING)
        self._crashes = self._startups = 0
        self._reloads += 1
        return (Stop(patient=True), Announce("info", announcement), self._start(now, after=after))

    def taken(self, now: float) -> int:
        """One that was started beside is connected, and is what is kept from now on; its number.

        Whatever was to be started instead of one that ended meanwhile is not needed any more.
        """
        while self._state is not CONNECTED:
            self._go(ONWARDS.get(self._state, CONNECTED))  # from Shutdown nothing leads there
        self._attempt += 1
        self._crashes = self._startups = 0
        self._reloads += 1
        self._connected_at, self._proven = now, False
        return self._attempt

    def halt(self, reason: str) -> tuple[Action, ...]:
        """There is nothing to start any more: the workspace is gone, or cannot be told."""
        if self._state is SHUTDOWN:
            return ()
        if self._state is INITIALIZING:
            self._go(DISCOVERING)
        self._attempt += 1  # what is under way is of no interest any more
        return (Stop(), *self._degrade(reason))

    def wanted(self, now: float) -> tuple[Action, ...]:
        """Somebody needs the upstream. One attempt, without the others that a first start has."""
        if self._state is not DEGRADED or self.rest(now) > 0:
            return ()
        self._go(DISCOVERING)
        self._startups = self._policy.startup_attempts - 1
        self._crashes = self._policy.crash_cycles
        return (self._start(now, after=0.0),)

    def shut_down(self) -> tuple[Action, ...]:
        if self._state is SHUTDOWN:
            return ()
        self._go(SHUTDOWN)
        self._attempt += 1  # nobody is left to keep what is ready from now on
        return (Stop(),)

    # What becomes of an attempt.

    def launching(self, attempt: int) -> tuple[Action, ...]:
        """It is known what to start, and it is waited for."""
        if self._is_current(attempt, STARTING) and self._state is not LAUNCHING:
            self._go(LAUNCHING)
        return ()

    def ready(self, attempt: int) -> tuple[Action, ...]:
        """It runs, as far as one can see from outside."""
        if not self._is_current(attempt, STARTING):
            return ()
        self.launching(attempt)
        self._go(CONNECTING)
        return (Connect(attempt),)

    def failed(self, attempt: int, now: float, reason: str, *, final: bool) -> tuple[Action, ...]:
        """It could not be started; `final`: another attempt would be no use."""
        if not self._is_current(attempt, STARTING):
            return ()
        if final or self._startups >= self._policy.startup_attempts:
            return self._degrade(reason)
        return (Announce("warning", f"{reason} Trying again."), self._start(now))

    def connected(self, attempt: int, now: float) -> tuple[Action, ...]:
        if self._is_current(attempt, frozenset({CONNECTING})):
            self._go(CONNECTED)
            self._connected_at, self._proven = now, False
        return ()

    def worked(self) -> None:
        """It has answered a client's request."""
        self._proven = True

    def refused(self, attempt: int, reason: str) -> tuple[Action, ...]:
        """It runs, and is no MCP server: it stays as it is, and starting it again would change nothing."""
        return self._degrade(reason) if self._is_current(attempt, frozenset({CONNECTING})) else ()

    def ended(self, attempt: int, now: float, reason: str, *, follows: str = STARTED_AGAIN) -> tuple[Action, ...]:
        """It has gone, or does not answer any more. If it was never connected, that was a start that failed."""
        if not self._is_current(attempt, frozenset({CONNECTING, CONNECTED})):
            return ()
        crashed = self._state is CONNECTED
        self._go(RECONNECTING)
        if not crashed:
            return (Stop(), *self.failed(attempt, now, reason, final=False))
        if self._proven or now - self._connected_at >= self._policy.stable_seconds:
            self._crashes = 0
        self._crashes += 1
        if self._crashes > self._policy.crash_cycles:
            return (Stop(), *self._degrade(reason))
        self._startups = 0
        self._restarts += 1
        start = self._start(now, after=self._backoff(self._crashes))
        return (Stop(), Announce("warning", f"{reason} {follows}"), start)

    # Steps that several events share.

    def _is_current(self, attempt: int, states: frozenset[ConnectionState]) -> bool:
        return attempt == self._attempt and self._state in states

    def _start(self, now: float, after: float | None = None) -> Start:
        self._startups += 1
        self._attempt += 1
        after = self._backoff(self._startups) if after is None else after
        self._started_at = now + after
        return Start(self._attempt, after)

    def _backoff(self, times: int) -> float:
        seconds = self._policy.backoff_seconds
        return seconds[min(times, len(seconds)) - 1]

    def _degrade(self, reason: str) -> tuple[Action, ...]:
        if self._state is not DEGRADED:
            self._go(DEGRADED)
        return (Announce("error", reason),)

    def _go(self, state: ConnectionState) -> None:
        if state not in TRANSITIONS[self._state]:
            raise InvalidTransition(f"{self._state.value} -> {state.value}")
        self._state = state


class KeeperLimits(Value):
    hello_seconds: float = 1.0  # the client's first message came long ago, as a rule; its era is worth this wait
    end_seconds: float = 0.3  # a connection breaks a moment before the end of its process is told, which tells more
    # What takes longer to end, hangs, and the next one is started beside it; a Host that works has 6 s to end well.
    stop_seconds: float = 8.0
    retry_seconds: float = 5.0  # a server that comes back without our doing is looked for that often
    # Until newer code is connected or given up: three attempts to start it, each of which has a bound of its own.
    renew_seconds: float = 180.0
    # The same beside the one that serves: 30 s to answer for the first time, and as many for its lists.
    spare_seconds: float = 75.0


DEFAULT_KEEPER_LIMITS = KeeperLimits()
