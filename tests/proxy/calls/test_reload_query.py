"""What becomes of requests to the authority of hot reload."""

from __future__ import annotations

import asyncio

import pytest

from support.authorities import ScriptedAuthority
from support.relays import QUICK
from support.virtual_time import turns
from uno_devserver.hotreload.authority import UNCHANGED
from uno_devserver.proxy.calls.reload_query import ReloadQuery

pytestmark = pytest.mark.virtual_time

LIMITS = QUICK.replace(check_seconds=10.0, restart_seconds=120.0)


async def test_an_answer_is_passed_on_and_so_is_what_is_said_meanwhile() -> None:
    authority, messages = ScriptedAuthority(), list[str]()
    checking = asyncio.ensure_future(ReloadQuery(authority, LIMITS).check(messages.append))
    await turns()
    authority.tells[0]("Building.")
    authority.checks[0].set_result(UNCHANGED)

    assert (await checking, messages) == (UNCHANGED, ["Building."])


@pytest.mark.parametrize("word_at", [None, 7])
async def test_a_check_is_abandoned_after_its_bound_without_a_word_and_a_restart_after_a_longer_one(
    word_at: int | None,
) -> None:
    authority, loop = ScriptedAuthority(), asyncio.get_running_loop()
    query = ReloadQuery(authority, LIMITS)
    if word_at is not None:
        loop.call_later(word_at, lambda: authority.tells[0]("Still at it."))

    assert await query.check(lambda _: None) is None
    checked = loop.time()
    assert await query.restart() is None
    query.close()

    assert checked == pytest.approx((word_at or 0) + 10.0)
    assert loop.time() == pytest.approx(checked + 120.0)


async def test_cancelling_who_asks_cancels_the_question() -> None:
    authority = ScriptedAuthority()
    restarting = asyncio.ensure_future(ReloadQuery(authority, LIMITS).restart())
    await turns()
    restarting.cancel()
    await turns()

    assert authority.restarts[0].cancelled()
    assert restarting.cancelled()


async def test_an_authority_that_cancels_itself_gives_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    authority = ScriptedAuthority()
    restarting = asyncio.ensure_future(ReloadQuery(authority, LIMITS).restart())
    await turns()
    authority.restarts[0].cancel()

    assert await restarting is None
    assert "it was cancelled" in capsys.readouterr().err
