"""The states of a proxy's upstream: a state machine without I/O and without a clock. Events come in, actions go out.

Only the transitions of the table are possible. Starts are numbered, so a late report of an older start changes nothing.
The machine never gives up for good: after repeated failures it is Degraded, and makes one new attempt when a call needs
the upstream, at most one every few seconds. Cheap to import: the launch waits for it.
"""

from __future__ import annotations

from ...system.values import Value
from ..state import ConnectionState

INITIALIZING, DISCOVERING = ConnectionState.INITIALIZING, ConnectionState.DISCOVERING
LAUNCHING, CONNECTING = ConnectionState.LAUNCHING, ConnectionState.CONNECTING
CONNECTED, RECONNECTING = ConnectionState.CONNECTED, ConnectionState.RECONNECTING
DEGRADED, SHUTDOWN = ConnectionState.DEGRADED, ConnectionState.SHUTDOWN

# From Degraded a new attempt begins like the first one. While there is an upstream to keep, a changed workspace leads
# to Discovering, a lost one to Degraded, newer code to Reconnecting (also during a start), and the end to Shutdown.
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
# The next state on the way to Connected.
NEXT_STATE = {
    INITIALIZING: DISCOVERING,
    DISCOVERING: LAUNCHING,
    RECONNECTING: LAUNCHING,
    DEGRADED: DISCOVERING,
    LAUNCHING: CONNECTING,
    CONNECTING: CONNECTED,
}
STARTED_AGAIN = "It is being started again."
USUAL_STARTUP_SECONDS = 30.0  # of one start; npx and uvx may have to download the server before its first answer


class UpstreamLimits(Value):
    """Every limit of starting, keeping and replacing an upstream. Tests replace single values."""

    startup_attempts: int = 3  # a taken port or a busy disk passes; a start that fails three times has a lasting cause
    crash_cycles: int = 3  # how often a server that ends soon after it was connected is started again
    # Before the first, second and third attempt: a single crash costs no time, a series does not keep the CPU busy.
    backoff_seconds: tuple[float, ...] = (0.0, 0.5, 2.0)
    stable_seconds: float = 10.0  # after this time, or an answered call, the count of crashes begins again
    retry_seconds: float = 5.0  # between two attempts while Degraded, however often a model repeats its call
    find_again_seconds: float = 5.0  # between two attempts to find an upstream that others may start, on this machine
    longest_find_seconds: float = 60.0  # these pauses grow for a server elsewhere, whose owner sees every attempt
    credential_seconds: float = 0.25  # between two looks whether refused credentials have changed: a small file
    hello_seconds: float = 1.0  # for the client's first message, which shows its era; it has usually come before
    end_seconds: float = 0.3  # a connection breaks a moment before the exit of its process is known, which says more
    stop_seconds: float = 8.0  # an upstream that takes longer to stop hangs; a working Host needs up to 6 s
    renew_seconds: float = 180.0  # for a restart with new code: three attempts, each of which has its own limit
    swap_seconds: float = 75.0  # for a swap: a command has 30 s for its first answer, and 30 s for its lists
    last_words_seconds: float = 1.0  # for the last output of a swap's new server that was stopped

    def additional_seconds(self, startup_seconds: float) -> float:
        """How much longer than usual the attempts of a start may take, with this limit for one attempt."""
        return self.startup_attempts * max(0.0, startup_seconds - USUAL_STARTUP_SECONDS)


DEFAULT_LIMITS = UpstreamLimits()


class Start(Value):
    """Start or find the upstream after this many seconds, and report the outcome under this number."""

    attempt: int
    after: float


class Connect(Value):
    """Open a conversation with the started upstream, and report under this number."""

    attempt: int


class Stop(Value):
    """Stop the upstream if it is owned, and the start that is under way. Precedes a new Start."""

    patient: bool = False  # the upstream works, so it gets time to shut down cleanly


class Announce(Value):
    """Send this to the clients, as a log message of this level."""

    level: str
    text: str


Action = Start | Connect | Stop | Announce


class Lifecycle:
    """Each method handles one event, and returns the actions to take now, in order. `now` is a monotonic time."""

    def __init__(self, limits: UpstreamLimits = DEFAULT_LIMITS) -> None:
        self.state = INITIALIZING
        self.attempt = 0  # the number of the last Start
        self.restarts = 0  # how often the upstream was started again because it had ended
        self.reloads = 0  # how often it was replaced on purpose, because there was newer code
        self._limits = limits
        self._startups = 0  # the number of attempts of this start, or of this restart
        self._on_demand = False  # whether this start is the single attempt of Degraded
        self._is_untried = False  # whether no server has answered yet with the code that is started
        self._crashes = 0  # the number of crashes since it was last stable
        self._started_at = 0.0
        self._connected_at = 0.0
        self._answered = False  # whether it has answered a client since it was connected

    def retry_due_in(self, now: float) -> float:
        """The seconds until Degraded allows another attempt."""
        return max(0.0, self._started_at + self._limits.retry_seconds - now)

    # Events from the proxy.

    def begin(self, now: float) -> tuple[Action, ...]:
        """Start an upstream: the first one, or another because the workspace changed."""
        if self.state is SHUTDOWN:
            return ()
        stop = () if self.state is INITIALIZING else (Stop(),)
        self._go(DISCOVERING)
        self._reset_counts()
        return (*stop, self._start(now))

    def renew(self, now: float, announcement: str, *, after: float, new_code: bool = False) -> tuple[Action, ...]:
        """Restart the upstream, with `new_code` or not, even while it starts; earlier crashes are forgotten."""
        if self.state is SHUTDOWN:
            return ()
        if self.state is INITIALIZING:
            self._go(DISCOVERING)
        self._go(RECONNECTING)
        self._reset_counts()
        self._is_untried = new_code
        self.reloads += 1
        return (Stop(patient=True), Announce("info", announcement), self._start(now, after=after))

    def swapped(self, now: float) -> int:
        """The new server replaces the old one, or its restart; returns the number of its attempt."""
        while self.state is not CONNECTED:
            self._go(NEXT_STATE.get(self.state, CONNECTED))  # raises when Shutdown
        self.attempt += 1
        self._reset_counts()
        self.reloads += 1
        self._connected_at, self._answered = now, False
        return self.attempt

    def halt(self, reason: str) -> tuple[Action, ...]:
        """Stop the upstream: the workspace is gone, or not known."""
        if self.state is SHUTDOWN:
            return ()
        if self.state is INITIALIZING:
            self._go(DISCOVERING)
        self.attempt += 1  # reports of a start that is under way are ignored from now on
        return (Stop(), *self._degrade(reason))

    def wanted(self, now: float, *, at_once: bool = False) -> tuple[Action, ...]:
        """A call needs the upstream: when Degraded, make a single attempt; `at_once` even right after another one."""
        if self.state is not DEGRADED or (self.retry_due_in(now) > 0 and not at_once):
            return ()
        self._go(DISCOVERING)
        self._startups = self._limits.startup_attempts - 1
        self._crashes = self._limits.crash_cycles
        self._on_demand = True
        return (self._start(now, after=0.0),)

    def shut_down(self) -> tuple[Action, ...]:
        if self.state is SHUTDOWN:
            return ()
        self._go(SHUTDOWN)
        self.attempt += 1  # an upstream that becomes ready from now on is stopped
        return (Stop(),)

    # Events from a start, and from the upstream that it has started.

    def launching(self, attempt: int) -> tuple[Action, ...]:
        """The process was started or found, and is not ready yet."""
        if self._is_current(attempt, STARTING):
            self._go(LAUNCHING)
        return ()

    def ready(self, attempt: int) -> tuple[Action, ...]:
        """The upstream runs, and a conversation can be opened."""
        if not self._is_current(attempt, STARTING):
            return ()
        self.launching(attempt)
        self._go(CONNECTING)
        return (Connect(attempt),)

    def failed(
        self, attempt: int, now: float, reason: str, *, final: bool, other_era_next: bool = False
    ) -> tuple[Action, ...]:
        """The start failed. `final`: another attempt would fail, too. `other_era_next`: the next attempt uses the other
        era of MCP and may succeed, so it is made even after an attempt on demand.
        """
        if not self._is_current(attempt, STARTING):
            return ()
        allowed = self._limits.startup_attempts + (other_era_next and self._on_demand)
        if final or self._startups >= allowed:
            return self._degrade(reason)
        return (Announce("warning", f"{reason} Trying again."), self._start(now))

    def connected(self, attempt: int, now: float) -> tuple[Action, ...]:
        if self._is_current(attempt, frozenset({CONNECTING})):
            self._go(CONNECTED)
            self._is_untried = False
            self._connected_at, self._answered = now, False
        return ()

    def worked(self) -> None:
        """The upstream has answered a client's request."""
        self._answered = True

    def refused(self, attempt: int, reason: str) -> tuple[Action, ...]:
        """The upstream runs, but does not speak MCP, or does not accept our credentials (any more).

        Another start would not change that.
        """
        return self._degrade(reason) if self._is_current(attempt, frozenset({CONNECTING, CONNECTED})) else ()

    def ended(
        self,
        attempt: int,
        now: float,
        reason: str,
        *,
        consequence: str = STARTED_AGAIN,
        on_purpose: bool = False,
        other_era_next: bool = False,
        by_its_code: bool = False,
    ) -> tuple[Action, ...]:
        """The upstream ended, or does not answer any more. If it was not connected yet, its start has failed.

        `on_purpose`: another program has ended it, which is no crash. `by_its_code`: it ended itself with an error. New
        code that does so would do it again, so it gets no other attempt, except one with the other era of MCP, at once.
        """
        if not self._is_current(attempt, frozenset({CONNECTING, CONNECTED})):
            return ()
        crashed = self.state is CONNECTED
        self._go(RECONNECTING)
        if not crashed:
            fails_always = by_its_code and self._is_untried
            if fails_always and other_era_next and self._startups < self._limits.startup_attempts:
                return (Stop(), self._start(now, after=0.0))
            final = fails_always and not other_era_next
            return (Stop(), *self.failed(attempt, now, reason, final=final, other_era_next=other_era_next))
        if on_purpose or self._answered or now - self._connected_at >= self._limits.stable_seconds:
            self._crashes = 0
        self._crashes += 1
        if self._crashes > self._limits.crash_cycles:
            return (Stop(), *self._degrade(reason))
        self._startups, self._on_demand = 0, False
        self.restarts += 1
        start = self._start(now, after=self._backoff(self._crashes))
        return (Stop(), Announce("info" if on_purpose else "warning", f"{reason} {consequence}"), start)

    # Steps that several events share.

    def _is_current(self, attempt: int, states: frozenset[ConnectionState]) -> bool:
        return attempt == self.attempt and self.state in states

    def _reset_counts(self) -> None:
        self._crashes = self._startups = 0
        self._on_demand = self._is_untried = False

    def _start(self, now: float, after: float | None = None) -> Start:
        self._startups += 1
        self.attempt += 1
        after = self._backoff(self._startups) if after is None else after
        self._started_at = now + after
        return Start(self.attempt, after)

    def _backoff(self, times: int) -> float:
        seconds = self._limits.backoff_seconds
        return seconds[min(times, len(seconds)) - 1]

    def _degrade(self, reason: str) -> tuple[Action, ...]:
        self._go(DEGRADED)
        return (Announce("error", reason),)

    def _go(self, state: ConnectionState) -> None:
        if state is not self.state and state not in TRANSITIONS[self.state]:
            raise ValueError(f"no transition {self.state.value} -> {state.value}")
        self.state = state
