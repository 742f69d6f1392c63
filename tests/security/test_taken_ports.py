"""Another user who takes the port of a server learns nothing from the programs that look for that server there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.mcp_peers import TestPeer
from support.ports import lasting_port
from uno_devserver.inspector.access import page_url
from uno_devserver.instances.local_http import Loopback, NoHttpAnswer, http_request
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.streamable_http import connect_http

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


def _page(port: int) -> None:
    assert page_url(port, "secret") is None


@pytest.mark.parametrize("ask", [_status, _answer, _conversation, _page])
@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", "::1"]])
def test_nothing_is_sent_to_a_server_of_another_user(ask: Callable[[int], None], addresses: list[str]) -> None:
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
