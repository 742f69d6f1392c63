"""The machine behind the proxy's states: conversations with it, then any sequence of events."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from uno_devserver.proxy.state import ConnectionState
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.proxy.upstream.lifecycle import (
    DEFAULT_LIMITS,
    TRANSITIONS,
    Action,
    Announce,
    Connect,
    Lifecycle,
    Start,
    Stop,
    UpstreamLimits,
)

STATES = ConnectionState


def starts(actions: tuple[Action, ...]) -> list[Start]:
    return [action for action in actions if isinstance(action, Start)]


def state(lifecycle: Lifecycle) -> ConnectionState:
    """Of this moment: mypy believes that an attribute which was compared stays what it was."""
    return lifecycle.state


def announced(actions: tuple[Action, ...]) -> list[str]:
    return [action.level for action in actions if isinstance(action, Announce)]


def discovering() -> Lifecycle:
    lifecycle = Lifecycle()
    lifecycle.begin(0.0)
    return lifecycle


def launching() -> Lifecycle:
    lifecycle = discovering()
    lifecycle.launching(1)
    return lifecycle


def connecting() -> Lifecycle:
    lifecycle = discovering()
    lifecycle.ready(1)
    return lifecycle


def connected() -> Lifecycle:
    lifecycle = connecting()
    lifecycle.connected(1, 0.0)
    return lifecycle


def reconnecting() -> Lifecycle:
    lifecycle = connected()
    lifecycle.ended(1, 0.0, "It ended.")
    return lifecycle


def degraded() -> Lifecycle:
    lifecycle = discovering()
    lifecycle.failed(1, 0.0, "There is no program.", final=True)
    assert state(lifecycle) is STATES.DEGRADED
    return lifecycle


ANYWHERE = [Lifecycle, discovering, launching, connecting, connected, reconnecting, degraded]


def heal(lifecycle: Lifecycle, now: float) -> None:
    lifecycle.ready(lifecycle.attempt)
    lifecycle.connected(lifecycle.attempt, now)


def pauses(actions: tuple[Action, ...]) -> list[float]:
    return [start.after for start in starts(actions)]


# Starting.


def test_a_start_goes_through_all_states_in_order() -> None:
    lifecycle = Lifecycle()
    assert state(lifecycle) is STATES.INITIALIZING
    assert (lifecycle.begin(0.0), lifecycle.state) == ((Start(1, 0.0),), STATES.DISCOVERING)
    assert (lifecycle.launching(1), lifecycle.state) == ((), STATES.LAUNCHING)
    assert (lifecycle.ready(1), lifecycle.state) == ((Connect(1),), STATES.CONNECTING)
    assert (lifecycle.connected(1, 0.2), lifecycle.state) == ((), STATES.CONNECTED)


def test_what_is_ready_without_having_been_launched_was_launching_for_a_moment() -> None:
    lifecycle = discovering()

    assert lifecycle.ready(1) == (Connect(1),)

    assert state(lifecycle) is STATES.CONNECTING


def test_a_start_that_fails_is_tried_three_times_with_growing_pauses_and_then_degraded() -> None:
    lifecycle = Lifecycle()
    first = lifecycle.begin(0.0)
    second = lifecycle.failed(1, 1.0, "It died.", final=False)
    third = lifecycle.failed(2, 3.0, "It died.", final=False)
    last = lifecycle.failed(3, 6.0, "It died.", final=False)

    assert [one.after for one in (*starts(first), *starts(second), *starts(third))] == [0.0, 0.5, 2.0]
    assert last == (Announce("error", "It died."),)
    assert state(lifecycle) is STATES.DEGRADED


def test_the_state_stays_while_a_failed_start_is_tried_again() -> None:
    lifecycle = launching()

    actions = lifecycle.failed(1, 1.0, "It died.", final=False)

    assert state(lifecycle) is STATES.LAUNCHING
    assert announced(actions) == ["warning"]


@pytest.mark.parametrize("come_to", [discovering, launching])
def test_a_final_failure_degrades_at_once(come_to: Callable[[], Lifecycle]) -> None:
    lifecycle = come_to()

    assert lifecycle.failed(1, 0.1, "No workspace.", final=True) == (Announce("error", "No workspace."),)

    assert state(lifecycle) is STATES.DEGRADED


def test_one_that_runs_but_speaks_no_mcp_is_left_running_and_not_started_again() -> None:
    lifecycle = connecting()

    actions = lifecycle.refused(1, "It has no /mcp.")

    assert actions == (Announce("error", "It has no /mcp."),)
    assert state(lifecycle) is STATES.DEGRADED


# Crashes.


def test_the_first_restart_after_a_crash_is_immediate() -> None:
    lifecycle = connected()

    actions = lifecycle.ended(1, 3.0, "It ended with exit code 3.")

    assert state(lifecycle) is STATES.RECONNECTING
    assert actions[0] == Stop()
    assert announced(actions) == ["warning"]
    assert starts(actions) == [Start(2, 0.0)]
    assert lifecycle.restarts == 1


def test_the_fourth_crash_in_a_row_degrades() -> None:
    lifecycle = connected()
    waited: list[float] = []
    for crash in range(3):
        waited += pauses(lifecycle.ended(lifecycle.attempt, crash, "It ended."))
        heal(lifecycle, crash)

    actions = lifecycle.ended(lifecycle.attempt, 3.0, "It ended.")

    assert waited == [0.0, 0.5, 2.0]
    assert state(lifecycle) is STATES.DEGRADED
    assert actions == (Stop(), Announce("error", "It ended."))
    assert lifecycle.restarts == 3


def test_crashes_count_from_zero_after_a_stable_while() -> None:
    lifecycle = connected()
    now = 0.0
    for _ in range(20):
        now += DEFAULT_LIMITS.stable_seconds
        assert pauses(lifecycle.ended(lifecycle.attempt, now, "It ended.")) == [0.0]
        heal(lifecycle, now)

    assert state(lifecycle) is STATES.CONNECTED


def test_one_that_has_done_its_work_is_started_again_at_once_however_often_it_is_killed() -> None:
    lifecycle = connected()
    for kill in range(50):
        lifecycle.worked()
        assert pauses(lifecycle.ended(lifecycle.attempt, kill * 0.2, "It ended.")) == [0.0]
        heal(lifecycle, kill * 0.2)

    assert state(lifecycle) is STATES.CONNECTED
    assert lifecycle.restarts == 50


def test_one_that_others_end_on_purpose_is_started_again_at_once_and_that_is_no_warning() -> None:
    lifecycle = connected()
    for end in range(20):
        actions = lifecycle.ended(lifecycle.attempt, end * 0.2, "It was shut down.", on_purpose=True)
        assert (pauses(actions), announced(actions)) == ([0.0], ["info"])
        heal(lifecycle, end * 0.2)

    assert state(lifecycle) is STATES.CONNECTED


@pytest.mark.parametrize("late", [False, True])
def test_work_that_an_earlier_one_has_done_proves_nothing_of_the_next(late: bool) -> None:
    lifecycle = connected()
    lifecycle.worked()
    lifecycle.ended(1, 1.0, "It ended.")
    if late:
        lifecycle.worked()  # there is none at the moment
    heal(lifecycle, 1.0)

    actions = lifecycle.ended(2, 2.0, "It ended.")

    assert pauses(actions) == [0.5]


def test_one_that_is_not_stable_for_quite_long_enough_is_one_of_a_series() -> None:
    lifecycle = connected()
    lifecycle.ended(1, 1.0, "It ended.")
    heal(lifecycle, 1.0)

    actions = lifecycle.ended(2, 1.0 + DEFAULT_LIMITS.stable_seconds - 0.01, "It ended.")

    assert pauses(actions) == [0.5]


def test_one_that_ends_before_it_was_connected_is_a_start_that_failed() -> None:
    lifecycle = discovering()
    lifecycle.failed(1, 0.0, "It died.", final=False)
    lifecycle.ready(2)
    actions = lifecycle.ended(2, 1.0, "It hung up.")
    assert actions[0] == Stop()
    assert starts(actions) == [Start(3, 2.0)]
    assert state(lifecycle) is STATES.RECONNECTING
    lifecycle.ready(3)

    actions = lifecycle.ended(3, 4.0, "It hung up.")

    assert actions == (Stop(), Announce("error", "It hung up."))
    assert state(lifecycle) is STATES.DEGRADED
    assert lifecycle.restarts == 0


def test_every_restart_has_its_three_attempts() -> None:
    lifecycle = connected()
    lifecycle.ended(1, 0.0, "It ended.")
    lifecycle.failed(2, 0.0, "It died.", final=False)
    lifecycle.ready(3)
    lifecycle.ended(3, 0.0, "It hung up.")
    assert state(lifecycle) is STATES.RECONNECTING

    lifecycle.failed(4, 0.0, "It died.", final=False)

    assert state(lifecycle) is STATES.DEGRADED


# Degraded is a half-open circuit.


def test_need_starts_one_attempt_from_degraded_and_a_failure_ends_it() -> None:
    lifecycle = degraded()

    assert lifecycle.wanted(5.0) == (Start(2, 0.0),)
    assert state(lifecycle) is STATES.DISCOVERING
    assert lifecycle.wanted(5.1) == ()
    lifecycle.failed(2, 6.0, "It died.", final=False)

    assert state(lifecycle) is STATES.DEGRADED


def test_attempts_from_degraded_are_five_seconds_apart() -> None:
    lifecycle = degraded()
    assert lifecycle.wanted(4.9) == ()
    assert starts(lifecycle.wanted(5.0))
    lifecycle.failed(2, 5.1, "It died.", final=False)

    assert lifecycle.wanted(9.9) == ()
    assert starts(lifecycle.wanted(10.0))


def test_a_crash_soon_after_the_attempt_degrades_again_and_one_after_a_stable_while_does_not() -> None:
    lifecycle = degraded()
    lifecycle.wanted(5.0)
    heal(lifecycle, 5.0)
    lifecycle.ended(2, 6.0, "It ended.")
    assert state(lifecycle) is STATES.DEGRADED

    lifecycle.wanted(20.0)
    heal(lifecycle, 20.0)
    actions = lifecycle.ended(3, 30.0, "It ended.")

    assert pauses(actions) == [0.0]


@pytest.mark.parametrize("lifecycle", [Lifecycle(), connected()], ids=["initializing", "connected"])
def test_need_changes_nothing_where_an_upstream_comes_or_is_there(lifecycle: Lifecycle) -> None:
    before = lifecycle.state

    assert lifecycle.wanted(1000.0) == ()

    assert lifecycle.state is before


# The workspace changes.


def test_another_workspace_stops_the_old_upstream_and_starts_anew_without_counting_a_crash() -> None:
    lifecycle = connected()

    actions = lifecycle.begin(3.0)

    assert actions == (Stop(), Start(2, 0.0))
    assert state(lifecycle) is STATES.DISCOVERING
    assert lifecycle.restarts == 0
    assert lifecycle.ended(1, 3.1, "It ended.") == ()


def test_a_workspace_that_is_gone_degrades_from_wherever_it_is() -> None:
    lifecycle = connected()

    actions = lifecycle.halt("There is no solution any more.")

    assert actions == (Stop(), Announce("error", "There is no solution any more."))
    assert state(lifecycle) is STATES.DEGRADED
    assert starts(lifecycle.begin(1.0))


def test_what_is_under_way_when_the_workspace_goes_cannot_come_back() -> None:
    lifecycle = discovering()
    lifecycle.halt("There is no solution any more.")

    assert lifecycle.ready(1) == ()

    assert state(lifecycle) is STATES.DEGRADED


def test_late_reports_of_an_older_start_change_nothing() -> None:
    lifecycle = discovering()
    lifecycle.begin(0.1)

    assert lifecycle.launching(1) == ()
    assert lifecycle.ready(1) == ()
    assert lifecycle.failed(1, 0.2, "It died.", final=True) == ()

    assert state(lifecycle) is STATES.DISCOVERING


def test_the_rest_between_two_attempts_begins_when_an_attempt_does() -> None:
    lifecycle = discovering()
    lifecycle.failed(1, 0.0, "It died.", final=False)
    (third,) = starts(lifecycle.failed(2, 1.0, "It died.", final=False))
    lifecycle.failed(3, 4.0, "It died.", final=False)

    begun = 1.0 + third.after
    assert lifecycle.retry_due_in(4.0) == pytest.approx(begun + DEFAULT_LIMITS.retry_seconds - 4.0)
    assert lifecycle.wanted(begun + DEFAULT_LIMITS.retry_seconds - 0.1) == ()
    assert starts(lifecycle.wanted(begun + DEFAULT_LIMITS.retry_seconds))


def test_a_single_attempt_is_repeated_once_where_the_next_one_begins_in_another_way() -> None:
    lifecycle = discovering()
    lifecycle.failed(1, 0.0, "It died.", final=True)
    lifecycle.wanted(10.0)
    lifecycle.ready(2)

    (again,) = starts(lifecycle.ended(2, 10.1, "It died.", other_era_next=True))

    assert again.attempt == 3
    lifecycle.ready(3)
    assert announced(lifecycle.ended(3, 10.2, "It died.", other_era_next=True)) == ["error"], "but only once"
    assert state(lifecycle) is STATES.DEGRADED


def test_a_first_start_has_its_attempts_and_no_more_however_they_begin() -> None:
    lifecycle = discovering()
    for attempt in range(1, DEFAULT_LIMITS.startup_attempts + 1):
        lifecycle.ready(attempt)
        lifecycle.ended(attempt, 0.0, "It died.", other_era_next=True)

    assert state(lifecycle) is STATES.DEGRADED


# Newer code.

NEWS = "The server is restarted with the new code."


@pytest.mark.parametrize("come_to", ANYWHERE)
def test_newer_code_is_started_from_every_state_and_nobody_calls_that_a_crash(come_to: Callable[[], Lifecycle]) -> None:
    lifecycle = come_to()
    crashes, before = lifecycle.restarts, lifecycle.attempt

    actions = lifecycle.renew(1.0, NEWS, after=0.3)

    assert actions == (Stop(patient=True), Announce("info", NEWS), Start(before + 1, 0.3))
    assert state(lifecycle) is STATES.RECONNECTING
    assert (lifecycle.restarts, lifecycle.reloads) == (crashes, 1)


@pytest.mark.parametrize("come_to", [discovering, launching, connecting, connected, reconnecting])
def test_what_was_under_way_when_newer_code_came_is_of_no_interest_any_more(come_to: Callable[[], Lifecycle]) -> None:
    lifecycle = come_to()
    overtaken = lifecycle.attempt
    lifecycle.renew(1.0, NEWS, after=0.0)

    lifecycle.launching(overtaken)
    assert lifecycle.ready(overtaken) == ()
    assert lifecycle.failed(overtaken, 2.0, "It died.", final=True) == ()
    assert lifecycle.ended(overtaken, 2.0, "It ended.") == ()

    assert state(lifecycle) is STATES.RECONNECTING
    heal(lifecycle, 3.0)
    assert state(lifecycle) is STATES.CONNECTED


def test_newer_code_that_does_not_start_has_the_usual_attempts_and_then_is_degraded() -> None:
    lifecycle = connected()
    lifecycle.renew(0.0, NEWS, after=0.0)

    lifecycle.failed(2, 0.0, "It died.", final=False)
    lifecycle.failed(3, 0.0, "It died.", final=False)
    actions = lifecycle.failed(4, 0.0, "It died.", final=False)

    assert actions == (Announce("error", "It died."),)
    assert state(lifecycle) is STATES.DEGRADED


def test_newer_code_that_ends_itself_with_an_error_is_not_tried_again() -> None:
    lifecycle = connected()
    lifecycle.renew(0.0, NEWS, after=0.0, new_code=True)
    lifecycle.ready(2)

    actions = lifecycle.ended(2, 0.1, "It died.", by_its_code=True)

    assert actions == (Stop(), Announce("error", "It died."))
    assert state(lifecycle) is STATES.DEGRADED


def test_newer_code_that_may_have_died_of_the_first_message_is_tried_once_more_at_once() -> None:
    lifecycle = connected()
    lifecycle.renew(0.0, NEWS, after=0.0, new_code=True)
    lifecycle.ready(2)

    assert lifecycle.ended(2, 0.1, "It died.", by_its_code=True, other_era_next=True) == (Stop(), Start(3, 0.0))
    lifecycle.ready(3)

    assert starts(lifecycle.ended(3, 0.2, "It died.", by_its_code=True)) == []
    assert state(lifecycle) is STATES.DEGRADED


@pytest.mark.parametrize(("new_code", "by_its_code"), [(False, True), (True, False)])
def test_code_that_has_worked_and_a_crash_by_a_signal_have_the_usual_attempts(
    new_code: bool, by_its_code: bool
) -> None:
    lifecycle = connected()
    lifecycle.renew(0.0, NEWS, after=0.0, new_code=new_code)
    lifecycle.ready(2)

    assert pauses(lifecycle.ended(2, 0.1, "It died.", by_its_code=by_its_code)) == [0.5]


def test_newer_code_that_has_answered_once_is_code_that_has_worked() -> None:
    lifecycle = connected()
    lifecycle.renew(0.0, NEWS, after=0.0, new_code=True)
    heal(lifecycle, 0.0)
    lifecycle.ended(lifecycle.attempt, 0.1, "It died.", by_its_code=True)
    lifecycle.ready(lifecycle.attempt)

    assert pauses(lifecycle.ended(lifecycle.attempt, 0.2, "It died.", by_its_code=True)) == [0.5]


@pytest.mark.parametrize(
    ("exit_code", "printed", "by_code"),
    [
        (1, "ImportError: no module named x", True),
        (1, "Error: listen EADDRINUSE: address already in use :::3000", False),
        (-11, "", False),
        (0, "", False),
        (None, "", False),
    ],
)
def test_only_an_error_that_does_not_pass_is_one_of_the_code(
    exit_code: int | None, printed: str, by_code: bool
) -> None:
    assert Ending("it ended", exit_code, (printed,)).is_by_code is by_code


def test_crashes_of_the_old_code_are_not_counted_against_the_new() -> None:
    lifecycle = connected()
    for _ in range(3):
        lifecycle.ended(lifecycle.attempt, 0.0, "It ended.")
        heal(lifecycle, 0.0)
    lifecycle.renew(0.0, NEWS, after=0.0)
    heal(lifecycle, 0.0)

    actions = lifecycle.ended(lifecycle.attempt, 0.0, "It ended.")

    assert pauses(actions) == [0.0]


def test_newer_code_from_degraded_need_not_wait_for_the_rest_between_two_attempts() -> None:
    lifecycle = degraded()
    assert lifecycle.retry_due_in(0.1) > 0

    assert starts(lifecycle.renew(0.1, NEWS, after=0.0)) == [Start(2, 0.0)]


def test_one_that_was_started_beside_takes_the_place_of_the_one_that_serves() -> None:
    lifecycle = connected()

    attempt = lifecycle.swapped(5.0)

    assert attempt == lifecycle.attempt == 2
    assert state(lifecycle) is STATES.CONNECTED
    assert (lifecycle.restarts, lifecycle.reloads) == (0, 1)
    assert lifecycle.ended(1, 6.0, "It ended.") == (), "the old one's end is no crash"
    assert starts(lifecycle.ended(2, 6.0, "It ended.")) == [Start(3, 0.0)]


@pytest.mark.parametrize("come_to", ANYWHERE)
def test_one_that_was_started_beside_is_taken_wherever_the_old_one_has_got_to(
    come_to: Callable[[], Lifecycle],
) -> None:
    lifecycle = come_to()
    due = lifecycle.attempt

    lifecycle.swapped(1.0)

    assert state(lifecycle) is STATES.CONNECTED
    assert lifecycle.attempt != due, "what was to be started instead is not needed any more"


# The end.


def test_nothing_happens_after_shutdown() -> None:
    lifecycle = connected()
    assert lifecycle.shut_down() == (Stop(),)

    assert lifecycle.shut_down() == ()
    assert lifecycle.begin(1.0) == ()
    assert lifecycle.halt("Gone.") == ()
    assert lifecycle.ended(1, 1.0, "It ended.") == ()
    assert lifecycle.wanted(100.0) == ()
    assert lifecycle.renew(1.0, NEWS, after=0.0) == ()
    with pytest.raises(ValueError, match="Shutdown -> Connected"):
        lifecycle.swapped(1.0)
    assert state(lifecycle) is STATES.SHUTDOWN


def test_a_start_that_is_under_way_at_shutdown_is_nobodys() -> None:
    lifecycle = Lifecycle()
    (start,) = starts(lifecycle.begin(0.0))

    lifecycle.shut_down()

    assert lifecycle.attempt != start.attempt


def test_a_transition_that_the_table_does_not_have_is_refused() -> None:
    lifecycle = Lifecycle()

    with pytest.raises(ValueError, match="Initializing -> Connected"):
        lifecycle._go(STATES.CONNECTED)


# Any sequence of events.


class AnyEvents(RuleBasedStateMachine):
    """Whatever happens, in whatever order: only transitions of the table, and starts within their bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = UpstreamLimits(startup_attempts=2, crash_cycles=2, backoff_seconds=(0.0, 1.0))
        self.lifecycle = Lifecycle(self.policy)
        self.now = 0.0
        self.before = self.lifecycle.state
        self.since_need: list[Start] = []  # starts since anybody wanted something

    def take(self, actions: tuple[Action, ...], *, needed: bool = False) -> None:
        after = self.lifecycle.state
        path = _shortest(self.before, after)
        assert path is not None, f"{self.before} -> {after}"
        self.before = after
        if needed:
            self.since_need = []
        self.since_need += starts(actions)
        assert len(starts(actions)) <= 1
        for stop in (Stop(), Stop(patient=True)):
            assert stop not in actions[1:]
        for start in starts(actions):
            assert start.attempt == self.lifecycle.attempt

    @rule()
    def begin(self) -> None:
        self.take(self.lifecycle.begin(self.now), needed=True)

    @rule()
    def renew(self) -> None:
        self.take(self.lifecycle.renew(self.now, NEWS, after=0.0), needed=True)

    @rule()
    def taken(self) -> None:
        if self.lifecycle.state is not STATES.SHUTDOWN:
            self.lifecycle.swapped(self.now)
            self.before, self.since_need = self.lifecycle.state, []

    @rule()
    def halt(self) -> None:
        self.take(self.lifecycle.halt("Gone."), needed=True)

    @rule()
    def wanted(self) -> None:
        self.take(self.lifecycle.wanted(self.now), needed=True)

    @rule(age=st.integers(0, 2))
    def launching(self, age: int) -> None:
        self.take(self.lifecycle.launching(self.lifecycle.attempt - age))

    @rule(age=st.integers(0, 2))
    def ready(self, age: int) -> None:
        self.take(self.lifecycle.ready(self.lifecycle.attempt - age))

    @rule(age=st.integers(0, 2), final=st.booleans())
    def failed(self, age: int, final: bool) -> None:
        self.take(self.lifecycle.failed(self.lifecycle.attempt - age, self.now, "It died.", final=final))

    @rule(age=st.integers(0, 2))
    def connected(self, age: int) -> None:
        self.take(self.lifecycle.connected(self.lifecycle.attempt - age, self.now))

    @rule(age=st.integers(0, 2))
    def refused(self, age: int) -> None:
        self.take(self.lifecycle.refused(self.lifecycle.attempt - age, "No MCP."))

    @rule(age=st.integers(0, 2))
    def ended(self, age: int) -> None:
        self.take(self.lifecycle.ended(self.lifecycle.attempt - age, self.now, "It ended."))

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.9]))
    def time_passes(self, seconds: float) -> None:
        """Never long enough to be stable between two events of one connection, so that the bound below holds."""
        if self.lifecycle.state is not STATES.CONNECTED:
            self.now += seconds

    @rule()
    def shut_down(self) -> None:
        if self.now > 30.0:  # otherwise most sequences would end at once
            self.take(self.lifecycle.shut_down())

    @invariant()
    def starts_are_bounded_while_nobody_asks(self) -> None:
        cycles = self.policy.crash_cycles + 1
        assert len(self.since_need) <= cycles * self.policy.startup_attempts


def _shortest(start: ConnectionState, end: ConnectionState) -> int | None:
    """Steps between two states by the table; an event may take up to two of them at once."""
    if start is end:
        return 0
    if end in TRANSITIONS[start]:
        return 1
    return 2 if any(end in TRANSITIONS[middle] for middle in TRANSITIONS[start]) else None


TestAnyEvents = AnyEvents.TestCase
TestAnyEvents.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


@given(st.integers(0, 50), st.floats(0.0, 100.0))
def test_the_pause_never_exceeds_the_longest_of_the_policy(crashes: int, gap: float) -> None:
    lifecycle, now = connected(), 0.0
    for _ in range(crashes):
        now += gap
        for start in starts(lifecycle.ended(lifecycle.attempt, now, "It ended.")):
            assert start.after in DEFAULT_LIMITS.backoff_seconds
        heal(lifecycle, now)


@pytest.mark.parametrize(("startup_seconds", "additional"), [(2.0, 0.0), (30.0, 0.0), (50.0, 60.0)])
def test_a_longer_limit_of_a_start_is_added_for_each_attempt(startup_seconds: float, additional: float) -> None:
    assert UpstreamLimits().additional_seconds(startup_seconds) == additional
