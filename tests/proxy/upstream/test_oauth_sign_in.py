"""The loopback address to which the browser returns after a sign-in."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from uno_devserver.proxy.upstream.oauth_sign_in import Redirect, SignInProblem


async def test_the_wait_for_the_browser_has_an_end() -> None:
    async with Redirect() as redirect:
        with pytest.raises(SignInProblem, match=r"did not come back within 0\.01 s"):
            await redirect.answer("state", 0.01)


async def test_one_answer_is_taken() -> None:
    async with Redirect() as redirect, httpx2.AsyncClient() as browser:
        waiting = asyncio.ensure_future(redirect.answer("right", 20))
        before = await browser.get(redirect.uri, params={"code": "zero", "state": "wrong"})
        posted = await browser.post(redirect.uri, params={"code": "zero", "state": "right"})
        first = await browser.get(redirect.uri, params={"code": "one", "state": "right"})
        second = await browser.get(redirect.uri, params={"code": "two", "state": "right"})

        assert [answer.status_code for answer in (before, posted, first, second)] == [404, 404, 200, 404]
        assert (await waiting).code == "one"


async def test_what_the_answer_says_is_not_put_into_the_page() -> None:
    async with Redirect() as redirect, httpx2.AsyncClient() as browser:
        waiting = asyncio.ensure_future(redirect.answer("right", 20))
        page = await browser.get(
            redirect.uri, params={"error": "<script>", "error_description": "no\n<b>", "state": "right"}
        )

        assert "<script>" not in page.text
        assert "<b>" not in page.text
        with pytest.raises(SignInProblem, match=r"refused: no\\n<b>\."):
            await waiting


async def test_the_port_that_the_user_chose_may_be_taken() -> None:
    async with Redirect() as redirect:
        port = int(redirect.uri.split(":")[2].partition("/")[0])

        with pytest.raises(OSError, match=str(port)):
            Redirect(port)
