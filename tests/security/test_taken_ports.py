"""Another user who takes the port of a server learns nothing from the programs that look for that server there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.machine import DATA_HOME
from support.mcp_peers import TestPeer
from support.ports import lasting_port
from uno_devserver.inspector.access import page_url
from uno_devserver.instances.local_http import Loopback, NoHttpAnswer, http_request
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.credentials import FixedHeaders
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.proxy.upstream.access_tokens import SignIn, write_sign_in
from uno_devserver.proxy.upstream.oauth_sign_in import Client, Redirect, SignInProblem, renew_stored, sign_in
from uno_devserver.proxy.upstream.url_upstream import UrlUpstream

from .victim import NOBODY, Victim, needs_two_users, program

pytestmark = needs_two_users
CALLS = 20
# Takes the port as soon as it is free, answers every request as a Host would, and tells what it has received.
FAKE_HOST = r"""
def answer(peer):
    received = peer.recv(65536)
    print("received", received, flush=True)
    number = received.partition(b'"id":')[2].partition(b",")[0].partition(b"}")[0].strip() or b"1"
    result = b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}'
    body = b'{"jsonrpc":"2.0","id":%b,"processId":1,"addIns":[],"result":%b}' % (number, result)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    if received:
        peer.sendall(head + body)
        answer(peer)

def take(address):
    while True:
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, int(sys.argv[1])))
            listener.listen()
            return listener
        except OSError:
            listener.close()

def serve(listener):
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

print("spinning", flush=True)
for listener in [take(address) for address in sys.argv[2:]]:
    threading.Thread(target=serve, args=(listener,)).start()
print("ready", flush=True)
threading.Event().wait()  # Python 3.12 starts no threads after the end of the main one
"""


def test_a_proxy_whose_host_dies_tells_nothing_to_another_user_who_takes_the_port() -> None:
    with Victim() as victim, _taking(victim.host, "127.0.0.1", "::1") as attacker:
        proxy = victim.agent.process
        assert attacker.stdout
        os.kill(proxy.pid, signal.SIGSTOP)  # it notices the calls and the end of the Host at the same moment
        os.kill(victim.host_pid, signal.SIGKILL)
        assert attacker.stdout.readline() == "ready\n"
        calls = [victim.agent.begin("tools/call", _call(f"secret {number}")) for number in range(CALLS)]
        os.kill(proxy.pid, signal.SIGCONT)
        answers = [victim.agent.answer(call) for call in calls]
        received = _received(attacker)

    assert received == []
    assert {answer["result"]["content"][0]["text"] for answer in answers} == {"noted"}


def _status(port: int) -> None:
    assert Loopback().ask("GET", port, "/secret", 5.0) is None


def _answer(port: int) -> None:
    with pytest.raises(NoHttpAnswer, match="belongs to a program of another user"):
        http_request("127.0.0.1", port, "GET", "/secret", deadline=time.monotonic() + 5)


def _conversation(port: int) -> None:
    async def connect() -> None:
        with pytest.raises(ConnectionLost, match="a program of another user has its port") as lost:
            await connect_http(f"http://localhost:{port}/mcp", TestPeer(), modern_first=False, this_users=True)
        assert not lost.value.sent

    asyncio.run(connect())


def _credentials(port: int) -> None:
    """The user names such a server, but did not mean to give its token to another user."""

    async def connect() -> None:
        upstream = UrlUpstream(f"http://localhost:{port}/mcp", FixedHeaders({"Authorization": "Bearer secret"}))
        with pytest.raises(ConnectionLost, match="a program of another user has its port"):
            await upstream.connect(TestPeer(), modern_first=False)

    asyncio.run(connect())


class Signed(FixedHeaders):
    def use(self, headers: dict[str, str]) -> None:
        self._headers = headers


def _later_credentials(port: int) -> None:
    """A sign-in that is made while a conversation without credentials is open."""

    async def connect() -> None:
        credentials = Signed({})
        upstream = UrlUpstream(f"http://localhost:{port}/mcp", credentials)
        connection = await upstream.connect(TestPeer(), modern_first=False)
        credentials.use({"Authorization": "Bearer secret"})
        with pytest.raises(ConnectionLost, match="a program of another user has its port"):
            await connection.request("tools/list", {}, TestPeer())
        await connection.close()

    asyncio.run(connect())


def test_a_sign_in_that_is_made_later_is_not_sent_to_a_server_of_another_user() -> None:
    with _taking(port := lasting_port(), "127.0.0.1") as attacker:
        assert attacker.stdout
        assert attacker.stdout.readline() == "ready\n"
        _later_credentials(port)
        received = _received(attacker)

    assert received
    assert not any("secret" in line for line in received)


def _sign_in(port: int) -> None:
    async def ask() -> None:
        async with Redirect() as redirect:
            with pytest.raises(SignInProblem, match="A program of another user has the port of"):
                await sign_in(f"http://localhost:{port}/mcp", Client("me", "secret"), None, redirect, _no_page)

    asyncio.run(ask())


async def _no_page(page: str) -> None:
    raise AssertionError(page)


def _renewal(port: int) -> None:
    url = f"http://localhost:{port}/mcp"
    write_sign_in(
        SignIn(
            url=url,
            issuer=f"http://localhost:{port}",
            client={"client_id": "me"},
            registered=True,
            tokens={"access_token": "one", "refresh_token": "secret", "token_type": "Bearer"},
            expires_at=None,
            authorization_server=None,
            resource=None,
        )
    )
    problem, unsaved = renew_stored(url, "one")
    assert problem is not None
    assert "A program of another user has the port of" in problem
    assert unsaved is None


def _page(port: int) -> None:
    assert page_url(port, "secret") is None


@pytest.mark.parametrize("ask", [_status, _answer, _conversation, _credentials, _sign_in, _renewal, _page])
@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", "::1"]])
def test_nothing_is_sent_to_a_server_of_another_user(
    ask: Callable[[int], None], addresses: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_HOME, str(tmp_path))
    with _taking(port := lasting_port(), *addresses) as attacker:
        assert attacker.stdout
        assert attacker.stdout.readline() == "ready\n"
        for _ in range(10):  # the server has accepted some of them when the kernel is asked, and others not yet
            ask(port)

        assert _received(attacker) == []


@contextmanager
def _taking(port: int, *addresses: str) -> Iterator[subprocess.Popen[str]]:
    with program(FAKE_HOST, str(port), *addresses, user=NOBODY) as attacker:
        assert attacker.stdout
        assert attacker.stdout.readline() == "spinning\n"
        yield attacker


def _received(attacker: subprocess.Popen[str]) -> list[str]:
    attacker.kill()
    assert attacker.stdout
    return [line for line in attacker.stdout if line.strip() != "received b''"]


def _call(who: str) -> dict[str, object]:
    return {"name": "note", "arguments": {"who": who}}
