"""Servers at URLs: there or not, and gone without a word."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bundled import BundledHost
from support.mcp_peers import TestPeer
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.protocol.client.connection import ConnectionLost, UnusableServer
from uno_devserver.proxy.upstream.base import StartFailure
from uno_devserver.proxy.upstream.url import UrlLimits, UrlUpstream
from uno_devserver.system.ports import free_port

from .commands import Observer

BOUND = 10.0
SWIFT = UrlLimits(check_seconds=0.01)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Something listens there, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


async def test_a_server_at_a_url_is_spoken_to_and_belongs_to_somebody_else(tmp_path: Path) -> None:
    with BundledHost(tmp_path) as host:
        observer = Observer()

        running = UrlUpstream(host.url).start(observer)

        assert observer.launched == [(f"the server at {host.url}", None)]
        assert (running.owned, running.process_id, running.endpoint) == (False, None, host.url)
        assert running.kind is HostKind.COMMAND
        connection = await running.connect(TestPeer(), modern_first=False)
        assert connection.server.info["name"] == "Uno Server"
        await connection.close()
        await running.stop()
        assert host.process.poll() is None


def test_nothing_there_is_no_reason_to_give_up_for_good() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"

    with pytest.raises(StartFailure) as failure:
        UrlUpstream(url).start(Observer())

    [issue] = failure.value.issues
    assert not failure.value.final
    assert issue.code == "HostUnreachable"
    assert f"{url} cannot be reached: Connection refused." in issue.message


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300])
def test_a_host_that_nobody_knows_cannot_be_reached(host: str) -> None:
    with pytest.raises(StartFailure) as failure:
        UrlUpstream(f"http://{host}:80/mcp").start(Observer())

    assert failure.value.issues[0].code == "HostUnreachable"


def test_what_is_no_url_stays_none() -> None:
    with pytest.raises(StartFailure) as failure:
        UrlUpstream("ftp://somewhere").start(Observer())

    assert failure.value.final
    assert "'ftp://somewhere' is not the URL" in failure.value.issues[0].message


async def test_one_that_goes_is_noticed_though_it_says_nothing(listener: socket.socket) -> None:
    running = UrlUpstream(url_of(listener), SWIFT)
    ending = asyncio.ensure_future(running.ended())
    await asyncio.sleep(0.05)
    assert not ending.done(), "as long as something listens there, it has not gone"

    listener.close()

    ended = await asyncio.wait_for(ending, BOUND)
    assert ended.reason == "it cannot be reached any more: Connection refused"


async def test_whoever_doubts_it_does_not_wait_for_the_next_look(listener: socket.socket) -> None:
    running = UrlUpstream(url_of(listener), UrlLimits(check_seconds=3600.0, check_failures=1))
    ending = asyncio.ensure_future(running.ended())
    await asyncio.sleep(0)
    listener.close()

    running.check_now()

    await asyncio.wait_for(ending, BOUND)


async def test_one_failure_in_between_means_nothing(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    running = UrlUpstream(url_of(listener), SWIFT)
    looks = iter(["refused", None, "refused", None, "refused", "refused"])
    monkeypatch.setattr(running, "out_of_reach", lambda: next(looks))

    ended = await asyncio.wait_for(running.ended(), BOUND)

    assert ended.reason.endswith("refused")
    assert next(looks, "all used") == "all used"


async def test_something_else_than_mcp_refuses_and_silence_is_lost(tmp_path: Path, listener: socket.socket) -> None:
    with BundledHost(tmp_path) as host:
        with pytest.raises(UnusableServer) as refusal:
            await UrlUpstream(host.url.replace("/mcp", "/nothing")).connect(TestPeer(), modern_first=True)
        assert refusal.value.status == 404
    with pytest.raises((ConnectionLost, UnusableServer)):
        await UrlUpstream(f"http://127.0.0.1:{free_port()}/mcp").connect(TestPeer(), modern_first=True)
