"""One question on the control channel, as a command asks it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from uno_devserver.hotreload.authority import AuthorityProblem
from uno_devserver.hotreload.control.client import ask

from .channels import open_channel


async def test_a_question_is_answered() -> None:
    async with open_channel() as opened:
        answer = await asyncio.to_thread(ask, opened.path, "openInspector", {"port": 7000}, 5)

    assert answer == {"url": "http://localhost:7000/"}


async def test_what_the_other_end_refuses_is_said() -> None:
    async with open_channel() as opened:
        with pytest.raises(AuthorityProblem, match="Port 1 is taken"):
            await asyncio.to_thread(ask, opened.path, "openInspector", {"port": 1}, 5)


async def test_silence_has_a_bound() -> None:
    async with open_channel() as opened:
        opened.authority.goes_on.clear()

        with pytest.raises(AuthorityProblem, match="does not answer"):
            await asyncio.to_thread(ask, opened.path, "checkForChanges", {}, 0.05)


@pytest.mark.parametrize("path", ["/there/is/nothing", "no path at all"])
def test_where_nobody_listens_that_is_said(path: str) -> None:
    with pytest.raises(AuthorityProblem, match="not reached"):
        ask(path, "system.ping", {}, 5)


async def test_one_that_goes_without_an_answer_is_no_traceback(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), path)
    async with server:
        with pytest.raises(AuthorityProblem, match="has closed"):
            await asyncio.to_thread(ask, path, "system.ping", {}, 5)
