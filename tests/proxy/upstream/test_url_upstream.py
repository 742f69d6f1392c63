"""Servers at URLs: there or not, and gone without a word."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from support.bundled import BundledHost
from support.mcp_peers import TestPeer
from support.waiting import until
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.protocol.client.connection import ConnectionLost, UnusableServer
from uno_devserver.proxy.upstream.base import StartFailure
from uno_devserver.proxy.upstream.url_upstream import UrlLimits, UrlUpstream
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
    running = UrlUpstream(url_of(listener), limits=SWIFT)
    ending = asyncio.ensure_future(running.ended())
    await asyncio.sleep(0.05)
    assert not ending.done(), "as long as something listens there, it has not gone"

    listener.close()

    ended = await asyncio.wait_for(ending, BOUND)
    assert ended.reason == "it cannot be reached any more: Connection refused"


async def test_whoever_doubts_it_does_not_wait_for_the_next_look(listener: socket.socket) -> None:
    running = UrlUpstream(url_of(listener), limits=UrlLimits(check_seconds=3600.0, check_failures=1))
    ending = asyncio.ensure_future(running.ended())
    await asyncio.sleep(0)
    listener.close()

    running.check_now()

    await asyncio.wait_for(ending, BOUND)


async def test_one_failure_in_between_means_nothing(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    running = UrlUpstream(url_of(listener), limits=SWIFT)
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


async def test_a_server_elsewhere_is_only_checked_when_a_connection_has_failed(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = UrlUpstream(url_of(listener), limits=SWIFT)
    running.far = True
    looks: list[str] = []
    monkeypatch.setattr(running, "out_of_reach", lambda: looks.append("looked"))
    ending = asyncio.ensure_future(running.ended())
    await asyncio.sleep(20 * SWIFT.check_seconds)
    assert looks == []

    running.check_now()

    await until(lambda: bool(looks))
    assert not ending.done()
    monkeypatch.setattr(running, "out_of_reach", lambda: "refused")
    running.check_now()
    assert (await asyncio.wait_for(ending, BOUND)).reason.endswith("refused")


@pytest.mark.parametrize(
    ("url", "far"),
    [("http://localhost:1/", False), ("http://127.0.0.1/", False), ("https://[::1]/", False), ("https://a.test", True)],
)
def test_servers_of_other_machines_are_told_from_those_of_this_one(url: str, far: bool) -> None:
    assert UrlUpstream(url).far is far


def test_nothing_is_known_of_a_server_behind_a_proxy_until_a_request_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    upstream = UrlUpstream("https://no-such-host.invalid/mcp")

    assert upstream.start(Observer()) is upstream


def test_a_proxy_that_cannot_be_used_keeps_the_start_from_being_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")

    with pytest.raises(StartFailure) as failure:
        UrlUpstream("https://no-such-host.invalid/mcp").start(Observer())

    [issue] = failure.value.issues
    assert (failure.value.final, issue.code) == (True, "HostUnreachable")
    assert "ALL_PROXY" in issue.message


async def test_other_credentials_are_noticed() -> None:
    class Changing:
        given: ClassVar[dict[str, str]] = {"X-Key": "one"}

        def headers(self) -> dict[str, str]:
            return self.given

        async def renew(self, refused: Mapping[str, str]) -> bool:
            return False

    credentials = Changing()
    running = UrlUpstream("http://localhost:1/", credentials)
    with pytest.raises(ConnectionLost):
        await running.connect(TestPeer(), modern_first=False)
    assert not running.has_other_credentials()

    Changing.given = {"X-Key": "two"}

    assert running.has_other_credentials()
