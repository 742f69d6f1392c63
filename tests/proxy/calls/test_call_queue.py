"""What becomes of tool calls where code is reloaded, rule by rule."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from support.authorities import CHANGED, ScriptedAuthority, failed_build, settled
from support.relays import QUICK, ScriptedCall, said, text_of, tool_call
from support.virtual_time import turns
from uno_devserver.hotreload.authority import UNCHANGED, CheckResult, Demand, RestartResult
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.service import Result
from uno_devserver.proxy.calls.call_queue import CallQueue, RunningCalls
from uno_devserver.proxy.calls.failure_answers import OUTCOME_UNKNOWN, TIMED_OUT, UNAVAILABLE, UnansweredRequest
from uno_devserver.proxy.calls.reload_messages import META_KEY, extension_updated
from uno_devserver.workspace.config import Strategy

pytestmark = pytest.mark.virtual_time

NOT_STARTED = CheckResult(server_digest="d1")  # what lies on disk was tried before
LIMITS = QUICK.replace(check_seconds=10.0, restart_seconds=120.0, progress_seconds=1.0)


class Run:
    """A call, and what became of it."""

    def __init__(self, stage: Stage, call: ScriptedCall, tool: str = "echo") -> None:
        self.call = call
        self.running: RunningCalls | None = None
        self.began = False
        self.cancelled = False
        self.ending: asyncio.Future[Result | msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._stage = stage
        self.task = asyncio.ensure_future(stage.queue.run(call, self._execute, tool))

    async def _execute(self, running: RunningCalls) -> Result | msgspec.Raw:
        self.began = True
        self.running = running
        self._stage.order.append(self)
        try:
            return await self.ending
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def finish(self, result: Result | msgspec.Raw | None = None) -> None:
        self.ending.set_result({"content": []} if result is None else result)

    @property
    def told(self) -> dict[str, Any]:
        """Instead of having been run."""
        assert not self.began
        result = said(self.task.result())
        assert result["isError"] is True
        assert result["_meta"][META_KEY]["run"] is False
        return dict(result["_meta"][META_KEY])

    @property
    def noted(self) -> dict[str, Any] | None:
        """Beside its result."""
        assert self.began
        meta: dict[str, Any] | None = said(self.task.result()).get("_meta", {}).get(META_KEY)
        assert meta is None or meta["run"] is True
        return meta


class Stage:
    def __init__(
        self,
        news: bool | None = None,
        *,
        concurrency: int | None = None,
        strategy: Strategy = Strategy.RESTART,
        waits: bool = False,
        serves: bool = True,
    ) -> None:
        self.authority = ScriptedAuthority(news)
        self.tools: tuple[tuple[str, bytes], ...] = ()
        self.generation = 1  # of the server
        self.order: list[Run] = []
        self.queue = CallQueue(
            self.authority,
            concurrency=concurrency,
            strategy=strategy,
            waits=lambda: waits,
            serves=lambda: serves,
            generation=lambda: self.generation,
            tools=lambda: self.tools,
            name="The Acme server",
            limits=LIMITS,
        )

    def call(self, **more: Any) -> Run:
        return Run(self, tool_call(**more))

    async def calls(self, count: int) -> list[Run]:
        runs = [self.call() for _ in range(count)]
        await turns()
        return runs

    async def checked(self, outcome: CheckResult | Exception) -> None:
        """The last check has this outcome."""
        check = self.authority.checks[-1]
        if isinstance(outcome, Exception):
            check.set_exception(outcome)
        else:
            check.set_result(outcome)
        await turns()

    async def batch(self, outcome: CheckResult | Exception) -> Run:
        """A call whose check has this outcome."""
        run = self.call()
        await turns()
        await self.checked(outcome)
        return run

    async def restarted(self, outcome: RestartResult | None = None) -> None:
        self.authority.restarts[-1].set_result(outcome or RestartResult(ok=True))
        await turns()


def began(runs: list[Run]) -> list[bool]:
    return [run.began for run in runs]


async def finish(*runs: Run) -> None:
    for run in runs:
        run.finish()
    await turns()


# Batches.


async def test_where_nothing_has_changed_a_call_runs_without_a_check() -> None:
    stage = Stage(news=False)

    runs = await stage.calls(3)

    assert began(runs) == [True] * 3
    assert stage.authority.checks == []


async def test_the_first_call_has_the_code_checked_and_those_that_come_meanwhile_wait_for_that() -> None:
    stage = Stage(news=None)

    runs = await stage.calls(4)
    before = began(runs)
    await stage.checked(UNCHANGED)

    assert before == [False] * 4
    assert began(runs) == [True] * 4
    assert len(stage.authority.checks) == 1


@pytest.mark.parametrize("running", [0, 1])
async def test_where_no_watcher_tells_of_changes_a_later_call_is_checked_again_whatever_runs(running: int) -> None:
    """Else it would be answered by old code for as long as another one runs, and nobody would be told."""
    stage = Stage(news=None)
    runs = await stage.calls(2)
    await stage.checked(UNCHANGED)
    await finish(*runs[running:])

    [late] = await stage.calls(1)

    assert not late.began
    assert len(stage.authority.checks) == 2
    await stage.checked(UNCHANGED)
    assert late.began


@pytest.mark.parametrize(("news", "checks"), [(True, 1), (None, 1), (False, 0)])
async def test_a_list_that_is_read_has_the_code_checked_unless_it_is_known_to_be_unchanged(
    news: bool | None, checks: int
) -> None:
    stage = Stage(news=news)

    stage.queue.check_ahead()
    await turns()

    assert len(stage.authority.checks) == checks


async def test_a_source_that_is_known_to_have_changed_is_checked_while_others_run() -> None:
    stage = Stage(news=False)
    [running] = await stage.calls(1)

    stage.authority.known = True
    call = stage.call()
    await turns()
    stage.authority.known = False
    await stage.checked(UNCHANGED)

    assert running.began
    assert len(stage.authority.checks) == 1
    assert call.began


async def test_an_edit_during_a_check_is_seen_by_the_call_that_comes_after_it() -> None:
    stage = Stage(news=True)
    [first] = await stage.calls(1)

    [late] = await stage.calls(1)
    await stage.checked(UNCHANGED)  # it had looked before the edit

    assert first.began
    assert not late.began
    assert len(stage.authority.checks) == 2
    stage.authority.known = False
    await stage.checked(CHANGED)
    assert late.told["state"] == "restarting"


async def test_one_at_a_time_means_in_the_order_of_coming() -> None:
    stage = Stage(news=False, concurrency=1)

    runs = await stage.calls(3)
    for count, run in enumerate(runs, 1):
        assert began(runs) == [True] * count + [False] * (3 - count)
        await finish(run)

    assert stage.order == runs


async def test_as_many_run_at_once_as_are_allowed() -> None:
    stage = Stage(news=False, concurrency=2)

    runs = await stage.calls(4)
    assert began(runs) == [True, True, False, False]
    await finish(runs[1])

    assert began(runs) == [True, True, True, False]


async def test_the_error_of_a_call_is_its_own_and_makes_room_for_the_next() -> None:
    stage = Stage(news=False, concurrency=1)
    runs = await stage.calls(2)

    runs[0].ending.set_exception(RpcError(-1, "no"))
    await turns()

    assert isinstance(runs[0].task.exception(), RpcError)
    assert runs[1].began


# Cancelling.


@pytest.mark.parametrize("moment", ["while it waits", "in the moment of its turn"])
async def test_a_cancelled_call_is_not_run_and_gives_its_place_to_the_next(moment: str) -> None:
    stage = Stage(news=False, concurrency=1)
    running, waiting, last = await stage.calls(3)

    if moment == "while it waits":
        waiting.task.cancel()
        await turns()
        assert waiting.task.cancelled()
        running.finish()
    else:
        running.finish()
        waiting.task.cancel()
    await turns()

    assert running.task.result() == {"content": []}
    assert not waiting.began
    assert last.began


@pytest.mark.parametrize("moment", range(8))
async def test_at_whatever_moment_a_call_is_cancelled_its_place_is_free(moment: int) -> None:
    stage = Stage(news=None, concurrency=1)
    trigger, other = await stage.calls(2)

    stage.authority.checks[0].set_result(UNCHANGED)
    await turns(moment)
    trigger.task.cancel()
    await turns()

    assert trigger.task.cancelled()
    assert trigger.cancelled is trigger.began
    assert other.began


async def test_cancelling_the_call_that_asked_does_not_cancel_the_check_for_the_others() -> None:
    stage = Stage(news=None)
    trigger, other = await stage.calls(2)

    trigger.task.cancel()
    await turns()
    await stage.checked(failed_build("error 1"))

    assert trigger.task.cancelled()
    assert other.told["state"] == "buildFailed", "somebody has to hear of it"


async def test_a_call_that_runs_is_cancelled_by_its_client_as_ever() -> None:
    stage = Stage(news=False)
    [run] = await stage.calls(1)

    run.task.cancel()
    await turns()

    assert run.cancelled
    assert run.task.cancelled()


# Restarting.


async def test_with_new_code_the_trigger_and_all_who_wait_are_told_and_there_is_one_restart() -> None:
    stage = Stage(news=None)
    runs = await stage.calls(8)

    await stage.checked(CHANGED)
    restarts = len(stage.authority.restarts)
    await stage.restarted()

    assert [run.told for run in runs] == [{"state": "restarting", "run": False}] * 8
    trigger, *others = [text_of(run.task.result()) for run in runs]
    assert "The code of The Acme server has changed" in trigger
    assert all("mcpStatus" in text and "not been run" in text for text in (trigger, *others))
    assert all(len(text) < len(trigger) for text in others)
    assert restarts == len(stage.authority.restarts) == len(stage.authority.checks) == 1


async def test_calls_that_run_are_waited_for_and_those_that_come_meanwhile_are_told() -> None:
    stage = Stage(news=False)
    [running] = await stage.calls(1)
    stage.authority.known = True
    [trigger] = await stage.calls(1)

    await stage.checked(CHANGED)
    [late] = await stage.calls(1)
    waited = stage.authority.restarts == []
    await finish(running)

    assert trigger.told["state"] == late.told["state"] == "restarting"
    assert waited
    assert len(stage.authority.restarts) == 1
    assert running.noted is None


async def test_after_the_restart_calls_run_again() -> None:
    stage = Stage(news=None)
    await stage.batch(CHANGED)

    during = await settled(stage.queue, 0.5)
    await stage.restarted()
    after = await settled(stage.queue, 0.5)
    run = await stage.batch(UNCHANGED)

    assert (during, after) == (False, True)
    assert run.began


async def test_with_wait_calls_they_are_held_and_run_on_the_new_server() -> None:
    stage = Stage(news=False, waits=True)
    [running] = await stage.calls(1)
    stage.authority.known = None
    await finish(running)
    runs = await stage.calls(2)

    await stage.checked(CHANGED)
    [late] = await stage.calls(1)
    held = began([*runs, late])
    await stage.restarted()
    await finish(*runs, late)

    assert held == [False] * 3
    assert [run.noted for run in (*runs, late)] == [{"state": "reloaded", "run": True}] * 3


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_restart_function_that_pauses_and_resumes_itself_does_no_harm(strategy: Strategy) -> None:
    stage = Stage(news=None, strategy=strategy)
    paused = asyncio.Event()

    async def replace() -> RestartResult:
        await stage.queue.pause(hold=strategy is Strategy.SWAP)
        paused.set()
        stage.queue.resume()
        return RestartResult(ok=True)

    stage.authority.ready_to_restart = replace  # type: ignore[method-assign]
    trigger = await stage.batch(CHANGED)
    await turns()

    assert paused.is_set()
    assert await settled(stage.queue, 0)
    assert trigger.began is (strategy is Strategy.SWAP)


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_restart_that_another_part_wants_is_the_same_for_calls(strategy: Strategy) -> None:
    stage = Stage(news=False, strategy=strategy)
    [running] = await stage.calls(1)

    pausing = asyncio.ensure_future(stage.queue.pause(hold=False))
    await turns()
    [meanwhile] = await stage.calls(1)
    waits = not pausing.done()
    await finish(running)
    paused, before = pausing.done(), meanwhile.began
    stage.queue.resume()
    [after] = await stage.calls(1)

    assert (waits, paused, before) == (True, True, False)
    assert meanwhile.began if strategy is Strategy.SWAP else meanwhile.told["state"] == "restarting"
    assert after.began
    assert stage.authority.restarts == []


async def test_calls_that_wait_for_a_check_are_told_of_a_restart_that_comes_first() -> None:
    stage = Stage(news=None)
    runs = await stage.calls(2)

    await stage.queue.pause(hold=False)
    await turns()
    await stage.checked(UNCHANGED)
    stage.queue.resume()

    assert [run.told["state"] for run in runs] == ["restarting"] * 2


async def test_a_pause_that_holds_returns_at_once_and_held_calls_run_afterwards() -> None:
    stage = Stage(news=False)
    [running] = await stage.calls(1)

    await stage.queue.pause(hold=True)
    [held] = await stage.calls(1)
    assert began([running, held]) == [True, False]
    stage.queue.resume()
    await turns()

    assert held.began


async def test_who_comes_when_the_new_server_is_there_waits_for_the_end_of_the_restart() -> None:
    stage = Stage(news=False)
    await stage.queue.pause(hold=False)
    [early] = await stage.calls(1)

    stage.queue.hold()
    [late] = await stage.calls(1)
    before = late.task.done() or late.began
    stage.queue.resume()
    await turns()

    assert early.told["state"] == "restarting"
    assert not before
    assert late.began


@pytest.mark.parametrize(("code", "run_perhaps"), [(UNAVAILABLE, False), (OUTCOME_UNKNOWN, True), (TIMED_OUT, True)])
async def test_a_new_server_that_does_not_start_is_told_with_the_next_answer(code: int, run_perhaps: bool) -> None:
    stage = Stage(news=None, serves=False)
    await stage.batch(CHANGED)
    await stage.restarted(RestartResult(ok=False, problem="It ended with exit code 1.", last_lines=("SyntaxError",)))

    run = await stage.batch(NOT_STARTED)
    run.ending.set_exception(UnansweredRequest(code, "The dev server does not work.", "Repair it."))
    await turns()

    result = said(run.task.result())
    assert result["content"][0]["text"] == "The dev server does not work. Repair it."
    assert "exit code 1" in result["content"][1]["text"]
    assert "SyntaxError" in result["content"][1]["text"]
    assert result["_meta"][META_KEY] == {"state": "failed", "run": run_perhaps}


# Swapping.


async def test_a_swap_holds_calls_and_runs_them_on_the_new_server() -> None:
    stage = Stage(news=False, strategy=Strategy.SWAP)
    [running] = await stage.calls(1)
    stage.authority.known = True
    runs = await stage.calls(2)
    stage.authority.known = False

    await stage.checked(CHANGED)
    [late] = await stage.calls(1)
    asked = len(stage.authority.restarts)
    held = began([*runs, late])
    await stage.restarted()
    await finish(running, *runs, late)

    assert asked == 1, "the one that runs is not waited for"
    assert held == [False] * 3
    assert running.noted is None
    assert [run.noted for run in (*runs, late)] == [{"state": "swapped", "run": True}] * 3
    contents = [str(said(run.task.result())["content"]) for run in (*runs, late)]
    assert ["in memory is gone" in content for content in contents] == [True, False, False], "it is said once"


async def test_a_swap_that_fails_runs_the_held_calls_on_the_old_server_and_the_first_result_says_why() -> None:
    stage = Stage(news=None, strategy=Strategy.SWAP)
    runs = await stage.calls(2)
    await stage.checked(CHANGED)

    problem = RestartResult(ok=False, kept=True, problem="It ended at once.", last_lines=("line 1", "NameError: x"))
    await stage.restarted(problem)
    await finish(*runs)

    first, second = runs
    assert first.noted == {"state": "swapFailed", "run": True}
    text = text_of(first.task.result())
    assert "It ended at once." in text
    assert "NameError: x" in text
    assert "old code still answers" in text
    assert "gave this result" not in text, "it is said once"
    assert second.noted == {"state": "swapFailed", "run": True}
    assert "NameError" not in text_of(second.task.result())


async def test_as_long_as_what_lies_on_disk_did_not_start_each_result_of_the_old_code_says_so() -> None:
    stage = Stage(news=None, strategy=Strategy.SWAP)
    trigger = await stage.batch(CHANGED)
    await stage.restarted(RestartResult(ok=False, kept=True, problem="It ended at once."))
    await finish(trigger)

    noted = []
    for result in (NOT_STARTED, NOT_STARTED, UNCHANGED):
        run = await stage.batch(result)
        await finish(run)
        noted.append(run.noted)
        stage.authority.known = None
    stage.authority.known = False
    [after] = await stage.calls(1)
    await finish(after)

    assert noted == [{"state": "swapFailed", "run": True}] * 2 + [None]
    assert after.noted is None


async def test_a_failed_swap_that_is_known_to_lie_there_still_is_not_looked_at_again() -> None:
    stage = Stage(news=True, strategy=Strategy.SWAP)
    trigger = await stage.batch(CHANGED)
    await stage.restarted(RestartResult(ok=False, kept=True))
    await finish(trigger)
    stage.authority.known = False

    [run] = await stage.calls(1)
    await finish(run)

    assert run.noted == {"state": "swapFailed", "run": True}
    assert len(stage.authority.checks) == 1


async def test_a_swap_that_failed_is_of_no_interest_any_more_when_the_next_one_went_well() -> None:
    stage = Stage(news=None, strategy=Strategy.SWAP)
    cancelled = await stage.batch(CHANGED)
    cancelled.task.cancel()
    await stage.restarted(RestartResult(ok=False, kept=True))

    run = await stage.batch(CHANGED)
    await stage.restarted()
    await finish(run)

    assert run.noted == {"state": "swapped", "run": True}


async def test_held_calls_report_that_they_wait() -> None:
    stage = Stage(news=None, strategy=Strategy.SWAP)
    run = stage.call(_meta={"progressToken": "tok"})
    await turns()

    stage.authority.tells[-1]("Building with npm.")
    await asyncio.sleep(1.5)
    await stage.checked(CHANGED)
    await asyncio.sleep(1)
    await stage.restarted()

    notices = [params for method, params in run.call.heard if method == "notifications/progress" and params]
    values = [notice["progress"] for notice in notices]
    assert [notice["message"] for notice in notices][:2] == [
        "Building with npm.",
        "Waiting for the new code of The Acme server.",
    ]
    assert values == sorted(set(values))
    assert max(values) < 0.001, "the upstream is waited for later, and progress only grows"
    assert run.began


# Failed builds.


async def test_a_failed_build_is_told_once_in_full_and_the_other_calls_run_on_the_old_server() -> None:
    stage = Stage(news=None)
    trigger, other = await stage.calls(2)

    await stage.checked(failed_build("a.ts(1,2): error TS1005", "d1"))
    await finish(other)

    assert trigger.told["state"] == "buildFailed"
    assert "```\na.ts(1,2): error TS1005\n```" in text_of(trigger.task.result())
    assert other.noted == {"state": "buildFailed", "run": True}
    assert "older code" in said(other.task.result())["content"][-1]["text"]
    assert stage.authority.restarts == []


async def test_a_failed_build_without_a_server_does_not_say_that_old_code_answers() -> None:
    stage = Stage(news=None, serves=False)
    trigger = await stage.batch(failed_build("e", "d1"))

    again = await stage.batch(failed_build("e", "d1"))
    again.ending.set_exception(UnansweredRequest(UNAVAILABLE, "The dev server does not work.", "Repair it."))
    await turns()

    assert "does not run" in text_of(trigger.task.result())
    assert "old code" not in text_of(trigger.task.result())
    result = said(again.task.result())
    assert "still cannot be used" in result["content"][1]["text"]
    assert result["_meta"][META_KEY] == {"state": "buildFailed", "run": False}


async def test_while_the_same_code_still_fails_its_calls_run_with_a_note_and_none_asks_to_build_it_again() -> None:
    stage = Stage(news=None)
    await stage.batch(failed_build("took 1.2 s", "d1"))

    again = await stage.batch(failed_build("took 1.2 s", "d1"))
    stage.authority.known = False  # nothing was edited
    [joining] = await stage.calls(1)
    await finish(again, joining)
    [later] = await stage.calls(1)
    await finish(later)

    assert stage.authority.demands == [Demand.NEW_CODE] * 2
    assert [run.noted for run in (again, joining, later)] == [{"state": "buildFailed", "run": True}] * 3


async def test_other_code_that_fails_is_told_anew_and_well_built_code_restarts() -> None:
    stage = Stage(news=None)
    outcomes = []
    for result in (failed_build("e", "d1"), failed_build("e", "d2"), CHANGED):
        run = await stage.batch(result)
        outcomes.append(run.told["state"])
    await stage.restarted()
    after = await stage.batch(UNCHANGED)
    await finish(after)

    assert outcomes == ["buildFailed", "buildFailed", "restarting"]
    assert after.noted == {"state": "reloaded", "run": True}


async def test_an_authority_that_names_no_digest_is_told_apart_by_what_its_builds_print() -> None:
    stage = Stage(news=None)
    told = []
    for output in ("error 1", "error 2", "error 2"):
        run = await stage.batch(failed_build(output))
        told.append(not run.began)
        if run.began:
            await finish(run)

    assert told == [True, True, False]


async def test_a_failed_build_that_was_edited_away_is_of_no_interest_any_more() -> None:
    stage = Stage(news=None)
    await stage.batch(failed_build("e", "d1"))

    run = await stage.batch(UNCHANGED)
    await finish(run)

    assert run.noted is None


# The extension.


async def test_a_call_that_had_the_extension_rebuilt_runs_and_says_so_once() -> None:
    stage = Stage(news=None)
    runs = await stage.calls(2)

    await stage.checked(CheckResult(extension_changed=True, extension_rebuilt=True, client_reloaded=True))
    await finish(*runs)

    assert [run.noted for run in runs] == [{"state": "extensionReloaded", "run": True}, None]


async def test_an_extension_that_cannot_be_built_is_told_in_full_the_first_time() -> None:
    stage = Stage(news=None)
    texts = []
    for _ in range(2):
        run = await stage.batch(CheckResult(extension_changed=True, extension_build_error="TS2304"))
        await finish(run)
        assert run.noted == {"state": "extensionBuildFailed", "run": True}
        texts.append(text_of(run.task.result()))

    assert "TS2304" in texts[0]
    assert "TS2304" not in texts[1]
    assert "still fails" in texts[1]


async def test_where_both_have_changed_the_trigger_hears_of_both() -> None:
    stage = Stage(news=None)
    [trigger] = await stage.calls(1)

    await stage.checked(CHANGED.replace(extension_changed=True, extension_rebuilt=True))

    assert trigger.told == {"state": "restarting", "run": False, "also": ["extensionReloaded"]}
    assert "extension" in text_of(trigger.task.result())


# An authority that fails.


async def test_an_authority_that_fails_stops_no_call_and_the_log_says_so_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = Stage(news=None)
    for outcome in (OSError("disk gone"), OSError("disk gone"), UNCHANGED, OSError("disk gone again")):
        run = await stage.batch(outcome)
        assert run.began
        await finish(run)

    log = capsys.readouterr().err
    assert log.count("disk gone.") == 1
    assert log.count("disk gone again") == 1


async def test_news_that_cannot_be_told_are_as_good_as_unknown() -> None:
    stage = Stage()
    stage.authority.known = RuntimeError("no")

    run = await stage.batch(UNCHANGED)

    assert run.began


async def test_an_authority_that_is_silent_is_given_up_and_nobody_waits_for_the_same_answer_again() -> None:
    stage = Stage(news=None)
    loop = asyncio.get_running_loop()
    first = stage.call()

    await asyncio.sleep(9.9)
    before = first.began
    await asyncio.sleep(0.2)
    await finish(first)
    begun = loop.time()
    [second] = await stage.calls(1)
    await finish(second)
    stage.authority.checks[0].set_result(UNCHANGED)
    await turns()
    [third] = await stage.calls(1)

    assert not before
    assert first.task.done()
    assert second.task.done()
    assert loop.time() == begun
    assert not third.began, "it has come to itself, and is asked again"
    assert len(stage.authority.checks) == 2


async def test_a_build_that_says_what_it_does_is_waited_for() -> None:
    stage = Stage(news=None)
    [run] = await stage.calls(1)

    for second in range(60):
        stage.authority.tells[0](f"Building for {second} s.")
        await asyncio.sleep(9)
    before = run.began
    await stage.checked(UNCHANGED)

    assert not before
    assert run.began


async def test_a_restart_that_fails_or_never_ends_lets_calls_through() -> None:
    stage = Stage(news=None)
    await stage.batch(CHANGED)
    stage.authority.restarts[-1].set_exception(ConnectionError("gone"))
    await turns()
    after_failure = await settled(stage.queue, 0)
    again = await stage.batch(CHANGED)

    after_silence = await settled(stage.queue, 121)

    assert after_failure
    assert not again.began
    assert after_silence


async def test_the_end_of_hot_reload_runs_whatever_waits() -> None:
    stage = Stage(news=None, concurrency=1)
    runs = await stage.calls(3)

    stage.queue.close()
    await turns()

    assert began(runs) == [True] * 3


async def test_the_end_of_hot_reload_does_not_break_off_a_restart() -> None:
    stage = Stage(news=None, waits=True)
    held = await stage.batch(CHANGED)

    stage.queue.close()
    await turns()
    unbroken = not stage.authority.restarts[0].cancelled()
    await stage.restarted()
    await finish(held)

    assert unbroken
    assert held.noted == {"state": "reloaded", "run": True}


async def test_hot_reload_that_ends_before_its_restart_asks_for_none() -> None:
    stage = Stage(news=False)
    [running] = await stage.calls(1)
    stage.authority.known = True
    await stage.batch(CHANGED)

    stage.queue.close()
    await finish(running)

    assert stage.authority.restarts == []


# Calls that are made to answer another one.


async def asks(run: Run) -> None:
    """The call waits for an answer of its client."""
    assert run.running is not None
    run.running.asks()
    await turns()


async def is_answered(run: Run) -> None:
    assert run.running is not None
    run.running.answered()
    await turns()


async def test_a_call_that_waits_for_its_client_does_not_count_against_the_limit() -> None:
    stage = Stage(news=False, concurrency=1)
    outer, queued = await stage.calls(2)

    await asks(outer)
    [nested] = await stage.calls(1)
    began_before = began([queued, nested])
    await finish(queued)
    began_then = nested.began
    await finish(nested)
    await is_answered(outer)
    [late] = await stage.calls(1)

    assert (began_before, began_then) == ([True, False], True)
    assert not late.began, "the outer call counts again"
    await finish(outer)
    assert late.began


@pytest.mark.parametrize("waits", [False, True])
async def test_a_restart_that_waits_for_a_question_lets_the_calls_pass_that_may_be_part_of_the_answer(
    waits: bool,
) -> None:
    stage = Stage(news=False, concurrency=1, waits=waits)
    [outer] = await stage.calls(1)
    await asks(outer)
    stage.authority.known = True
    [nested] = await stage.calls(1)
    await stage.checked(CHANGED)
    stage.authority.known = False
    [second] = await stage.calls(1)

    assert began([nested, second]) == [True, False], "one at a time"
    await finish(nested)
    await finish(second)
    assert stage.authority.restarts == []
    await is_answered(outer)
    [late] = await stage.calls(1)
    await finish(outer)

    assert [run.noted for run in (nested, second)] == [{"state": "restarting", "run": True}] * 2
    assert "old code" in text_of(nested.task.result())
    assert len(stage.authority.restarts) == 1
    assert not late.began
    await stage.restarted()
    assert late.began if waits else late.told["state"] == "restarting"


async def test_calls_that_came_before_the_question_wait_for_the_restart() -> None:
    stage = Stage(news=False, waits=True)
    [outer] = await stage.calls(1)
    stage.authority.known = True
    [earlier] = await stage.calls(1)
    await stage.checked(CHANGED)
    stage.authority.known = False

    await asks(outer)
    [nested] = await stage.calls(1)

    assert began([earlier, nested]) == [False, True]
    await finish(nested)
    await is_answered(outer)
    await finish(outer)
    await stage.restarted()
    assert earlier.began


async def test_a_call_that_found_no_room_before_the_answer_came_is_told_of_the_restart() -> None:
    stage = Stage(news=False, concurrency=1)
    [outer] = await stage.calls(1)
    await asks(outer)
    [busy] = await stage.calls(1)
    stage.authority.known = True
    [nested] = await stage.calls(1)
    await finish(busy)
    await stage.checked(CHANGED)
    [crowded] = await stage.calls(1)

    await is_answered(outer)

    assert nested.began
    assert crowded.told["state"] == "restarting"
    await finish(nested)
    await finish(outer)
    assert len(stage.authority.restarts) == 1


async def test_a_restart_by_another_part_that_holds_calls_lets_them_pass_too() -> None:
    stage = Stage(news=False, strategy=Strategy.SWAP)
    [outer] = await stage.calls(1)
    await asks(outer)
    pausing = asyncio.ensure_future(stage.queue.pause(hold=True, finish=True))
    await turns()

    [nested] = await stage.calls(1)
    await finish(nested)
    waited = not pausing.done()
    await is_answered(outer)
    await finish(outer)

    assert nested.noted == {"state": "restarting", "run": True}
    assert waited
    assert pausing.done()


async def test_after_a_swap_no_call_waits_for_those_of_the_old_server() -> None:
    stage = Stage(news=False, strategy=Strategy.SWAP, concurrency=1)
    [old] = await stage.calls(1)
    stage.authority.known = True
    first = stage.call()
    await turns()
    stage.authority.known = None
    await finish(old)  # its turn comes with the check
    stage.authority.known = False
    await stage.checked(CHANGED)
    await stage.restarted()
    [waiting] = await stage.calls(1)
    assert began([first, waiting]) == [True, False]

    stage.authority.known = True
    third = stage.call()
    stage.authority.known = False
    pausing = asyncio.ensure_future(stage.queue.pause(hold=True))
    await turns()
    stage.queue.resume(RestartResult(ok=True))
    await turns()

    assert pausing.done()
    assert began([first, waiting, third]) == [True, True, False], "the first runs on the old server"
    await finish(first)
    assert not third.began, "only the second counts"
    await finish(waiting)
    assert third.began


# What mcpStatus waits for.


async def refresh(stage: Stage, demand: Demand = Demand.BUILD) -> asyncio.Task[bool]:
    asked = asyncio.ensure_future(stage.queue.refreshed(demand))
    await turns()
    return asked


async def test_whoever_asks_has_the_code_checked_and_waits_for_the_restart() -> None:
    stage = Stage(news=None)

    asked = await refresh(stage)
    await stage.checked(CHANGED)
    waited = not asked.done()
    await stage.restarted()

    assert stage.authority.demands == [Demand.BUILD]
    assert waited
    assert asked.result() is True
    assert stage.queue.replaced == 1


async def test_whoever_asks_does_not_wait_for_a_call_that_waits_for_its_client() -> None:
    stage = Stage(news=False)
    [outer] = await stage.calls(1)
    stage.authority.known = None
    early = await refresh(stage)
    await stage.checked(CHANGED)
    waited = not early.done()

    await asks(outer)

    assert waited
    assert early.result() is False
    assert (await refresh(stage)).result() is False
    assert stage.queue.awaits_answer
    await is_answered(outer)
    await finish(outer)


async def test_code_that_changes_meanwhile_is_checked_before_it_is_called_ready() -> None:
    stage = Stage(news=True)

    asked = await refresh(stage)
    await stage.checked(UNCHANGED)
    waited, settled_before = not asked.done(), stage.queue.is_settled
    stage.authority.known = False
    await stage.checked(UNCHANGED)

    assert (waited, settled_before) == (True, False)
    assert asked.result() is True
    assert stage.authority.demands == [Demand.BUILD, Demand.NEW_CODE]


# Tools that are gone, and code that the user has not agreed to.


def entry(name: str, *properties: str) -> tuple[str, bytes]:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in properties}}
    return name, msgspec.json.encode({"name": name, "inputSchema": schema})


async def test_a_tool_that_a_reload_has_removed_is_told_with_its_new_name() -> None:
    stage = Stage(news=None)
    stage.tools = (entry("echo", "text"), entry("other"))
    await stage.batch(CHANGED)
    stage.tools = (entry("say", "text"), entry("other"))
    await stage.restarted()
    stage.authority.known = False

    [refused, unknown] = await stage.calls(2)
    refused.ending.set_exception(RpcError(-32602, "Unknown tool: echo"))
    unknown.finish({"content": [{"type": "text", "text": "Unknown tool: echo"}], "isError": True})
    await turns()
    other = Run(stage, tool_call("other"), "other")
    await turns()
    await finish(other)

    error = refused.task.exception()
    assert isinstance(error, RpcError)
    assert error.message.startswith("Unknown tool: echo. Note: The Acme server has no tool 'echo' any more")
    assert "'say' is probably its new name" in error.message
    assert unknown.noted is not None
    assert "toolGone" in (unknown.noted["state"], *unknown.noted.get("also", ()))
    assert other.noted is None
    stage.authority.known = None
    await stage.batch(CHANGED)
    stage.tools = (entry("echo", "text"),)
    await stage.restarted()
    assert stage.queue.enter("echo") is None, "the memory is still to be told"


async def test_results_of_code_that_the_user_has_not_agreed_to_replace_say_so() -> None:
    stage = Stage()

    runs = await stage.calls(2)
    await stage.checked(CheckResult(refusal="the config has changed"))
    await finish(*runs)

    assert [run.noted for run in runs] == [{"state": "notAgreed", "run": True}] * 2
    assert text_of(runs[0].task.result()).count("the config has changed") == 1
    assert "uno-devserver trust" in text_of(runs[0].task.result())
    assert stage.queue.notes.failing is not None

    run = await stage.batch(UNCHANGED)
    await finish(run)

    assert run.noted is None, "the user has agreed, or the change was taken back"
    assert stage.queue.notes.failing is None


async def test_a_restart_that_was_refused_is_told_as_a_missing_agreement() -> None:
    stage = Stage()
    refused = await stage.batch(CHANGED)
    await stage.restarted(RestartResult(False, kept=True, refusal="an add-in has been added"))

    run = await stage.batch(CheckResult(refusal="an add-in has been added"))
    await finish(run)

    assert not refused.began
    assert run.noted == {"state": "notAgreed", "run": True}
    assert "did not start" not in text_of(run.task.result())


# Requests that are no calls.


async def is_current(stage: Stage) -> asyncio.Task[None]:
    asked = asyncio.ensure_future(stage.queue.current())
    await turns()
    return asked


async def test_a_request_waits_for_the_new_code_and_has_it_looked_for() -> None:
    stage = Stage(news=True)

    asked = await is_current(stage)
    stage.authority.known = False
    await stage.checked(CHANGED)
    assert not asked.done()
    await stage.restarted()

    assert asked.done()


async def test_a_request_waits_for_no_restart_that_waits_for_a_call_which_may_need_it() -> None:
    stage = Stage(news=False)
    (running,) = await stage.calls(1)
    stage.authority.known = True
    told = await stage.batch(CHANGED)

    asked = await is_current(stage)

    assert asked.done()
    assert (told.told["state"], running.task.done()) == ("restarting", False)
    await finish(running)


async def test_nor_where_the_owner_of_a_host_restarts_it_although_code_is_swapped() -> None:
    stage = Stage(news=False, strategy=Strategy.SWAP)
    (running,) = await stage.calls(1)
    pausing = asyncio.ensure_future(stage.queue.pause(hold=False))
    await turns()

    asked = await is_current(stage)

    assert (asked.done(), pausing.done()) == (True, False)
    await finish(running)
    assert pausing.done()


async def test_a_request_waits_for_a_swap_also_while_calls_run() -> None:
    stage = Stage(news=False, strategy=Strategy.SWAP)
    (running,) = await stage.calls(1)
    await stage.queue.pause(hold=True)

    asked = await is_current(stage)
    assert not asked.done()
    stage.queue.resume()
    await turns()

    assert asked.done()
    await finish(running)


async def test_a_request_waits_for_two_looks_at_most_while_sources_change_all_the_time() -> None:
    stage = Stage(news=True)

    asked = await is_current(stage)
    for _ in range(2):
        assert not asked.done()
        await stage.checked(UNCHANGED)

    assert asked.done()
    assert len(stage.authority.checks) == 2


async def test_a_request_that_waits_goes_on_when_nothing_is_reloaded_any_more() -> None:
    stage = Stage(news=True)
    asked = await is_current(stage)

    stage.queue.close()
    await turns()

    assert asked.done()
    assert asked.exception() is None


# --- code that could not be checked


async def test_results_say_that_the_code_could_not_be_checked_until_a_check_succeeds() -> None:
    stage = Stage()

    unchecked = await stage.batch(RuntimeError("the disk is gone"))
    await finish(unchecked)
    checked = await stage.batch(CheckResult())
    await finish(checked)

    assert unchecked.noted == {"state": "unchecked", "run": True}
    (*_, note) = said(unchecked.task.result())["content"]
    told = "Note: Whether the code of The Acme server has changed could not be checked; the proxy's log says why."
    assert note == {"type": "text", "text": told}
    assert checked.noted is None


async def test_a_result_of_a_later_server_does_not_say_that_the_one_before_could_not_be_checked() -> None:
    stage = Stage()

    call = await stage.batch(RuntimeError("the owner has ended, and the Host with it"))
    stage.generation += 1
    await finish(call)

    assert call.noted is None


async def test_a_crash_is_told_by_the_next_result_that_does_not_say_itself_that_the_server_was_lost() -> None:
    stage = Stage(news=False, concurrency=1)
    stage.queue.notes.pending.append(extension_updated(client_reloaded=True))  # so that it takes its turn
    stage.queue._advance()
    [lost] = await stage.calls(1)
    stage.generation = 2
    stage.queue.connected(is_ours=True)
    lost.ending.set_exception(UnansweredRequest(OUTCOME_UNKNOWN, "The server was lost.", "Look."))
    await turns()

    runs = await stage.calls(2)
    await finish(*runs)

    contents = [str(said(run.task.result())["content"]) for run in (lost, *runs)]
    assert ["in memory is gone" in content for content in contents] == [False, True, False]
