from __future__ import annotations

import asyncio

import pytest

from support.authorities import ScriptedAuthority
from support.relays import QUICK
from support.virtual_time import run_virtually, turns
from uno_devserver.hotreload.authority import UNCHANGED, CheckResult, Restarted
from uno_devserver.proxy.calls.call_queue import ReloadQuery

POLICY = QUICK.replace(check_seconds=10.0, restart_seconds=120.0)


def test_an_answer_is_passed_on_and_so_is_what_is_said_meanwhile() -> None:
    async def ask() -> tuple[CheckResult | None, list[str]]:
        authority, said = ScriptedAuthority(), list[str]()
        checking = asyncio.ensure_future(ReloadQuery(authority, POLICY).check(said.append))
        await turns()
        authority.tells[0]("Building.")
        authority.checks[0].set_result(UNCHANGED)
        return await checking, said

    assert run_virtually(ask()) == (UNCHANGED, ["Building."])


def test_without_a_word_a_check_is_given_up_after_its_bound_and_a_restart_after_a_longer_one() -> None:
    async def ask() -> tuple[float, float]:
        asking, loop = ReloadQuery(ScriptedAuthority(), POLICY), asyncio.get_running_loop()
        assert await asking.check(lambda _: None) is None
        checked = loop.time()
        assert await asking.restart() is None
        asking.close()
        return checked, loop.time()

    assert run_virtually(ask()) == pytest.approx((10.0, 130.0))


def test_a_word_gives_it_the_full_time_again() -> None:
    async def ask() -> float:
        authority = ScriptedAuthority()
        asking, loop = ReloadQuery(authority, POLICY), asyncio.get_running_loop()
        loop.call_later(7, lambda: authority.tells[0]("Still at it."))
        assert await asking.check(lambda _: None) is None
        asking.close()
        return loop.time()

    assert run_virtually(ask()) == pytest.approx(17.0)


def test_cancelling_who_asks_cancels_the_question() -> None:
    async def ask() -> bool:
        authority = ScriptedAuthority()
        restarting = asyncio.ensure_future(ReloadQuery(authority, POLICY).restart())
        await turns()
        restarting.cancel()
        await turns()
        return authority.restarts[0].cancelled() and restarting.cancelled()

    assert run_virtually(ask())


def test_an_authority_that_cancels_itself_is_one_that_gives_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    async def ask() -> Restarted | None:
        authority = ScriptedAuthority()
        restarting = asyncio.ensure_future(ReloadQuery(authority, POLICY).restart())
        await turns()
        authority.restarts[0].cancel()
        return await restarting

    assert run_virtually(ask()) is None
    assert "it was cancelled" in capsys.readouterr().err
