"""Another user of the machine cannot pass for this one, however it makes its connection; this user's programs can.

The attacker's socket gets the port of a listener of the victim, or leaves its port to the victim's next connection, so
that a careless question "whose is this port?" is answered with the victim.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from uno_devserver.system.ports import LOOPBACK

from .victim import NOBODY, Victim, needs_two_users, program, tool_call

pytestmark = needs_two_users
RACERS = 20  # who resets its connection has to do so before the server asks; of 20 at once some always do
# Binds sockets of that address, tells their ports, and connects with the request when it is told to.
ATTACK = r"""
source, target, port, options, end, count, request = sys.argv[1:]
peers = [socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET) for _ in range(int(count))]
for peer in peers:
    peer.settimeout(10)
    for option in options.split():
        peer.setsockopt(socket.SOL_SOCKET, getattr(socket, option), b"lo\0" if option == "SO_BINDTODEVICE" else 1)
    if end == "reset":
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.bind((source, 0))
print(*(peer.getsockname()[1] for peer in peers), flush=True)
sys.stdin.readline()
for peer in peers:
    peer.connect((target, int(port)))
    peer.sendall(request.encode())
    if end == "half-closed":
        peer.shutdown(socket.SHUT_WR)
    status = "" if end in ("closed", "reset") else peer.makefile("rb").readline().decode()
    peer.close()
print(status.strip(), flush=True)
"""
LO, REUSEPORT = "SO_REUSEADDR SO_BINDTODEVICE", "SO_REUSEADDR SO_REUSEPORT SO_BINDTODEVICE"
# The address that the attacker binds, the one it connects to, its options, how it ends, and the victim's listener.
TRICKS = {
    "bound to lo": ("127.0.0.1", "127.0.0.1", LO, "open", "127.0.0.1"),
    "bound to lo, listener of all addresses": ("127.0.0.1", "127.0.0.1", LO, "open", "0.0.0.0"),
    "bound to lo, listener of both families": ("127.0.0.1", "127.0.0.1", LO, "open", "::"),
    "bound to lo, shared port": ("127.0.0.1", "127.0.0.1", REUSEPORT, "open", "127.0.0.1"),
    "bound to lo, another loopback address": ("127.0.0.2", "127.0.0.1", LO, "open", "127.0.0.2"),
    "bound to lo, half-closed": ("127.0.0.1", "127.0.0.1", LO, "half-closed", "127.0.0.1"),
    "bound to lo, closed": ("127.0.0.1", "127.0.0.1", LO, "closed", "127.0.0.1"),
    "bound to lo, v4-mapped": ("::ffff:127.0.0.1", "::ffff:127.0.0.1", LO, "open", "127.0.0.1"),
    "bound to lo, v4-mapped, listener of both": ("::ffff:127.0.0.1", "::ffff:127.0.0.1", LO, "open", "::"),
    "bound to lo, IPv6": ("::1", "::1", LO, "open", "::1"),
    "bound to lo, IPv6, listener of all addresses": ("::1", "::1", LO, "open", "::"),
    "reset": ("127.0.0.1", "127.0.0.1", "SO_REUSEADDR", "reset", "127.0.0.1"),
    "reset, IPv6": ("::1", "::1", "SO_REUSEADDR", "reset", "::1"),
}
# Ways in which honest programs connect: sources and targets.
HONEST = {
    "IPv4": ("127.0.0.1", "127.0.0.1", "open"),
    "IPv6": ("::1", "::1", "open"),
    "v4-mapped": ("::ffff:127.0.0.1", "::ffff:127.0.0.1", "open"),
    "another loopback address": ("127.0.0.2", "127.0.0.1", "open"),
    "half-closed": ("127.0.0.1", "127.0.0.1", "half-closed"),
}


@pytest.mark.parametrize("name", TRICKS)
def test_another_user_calls_no_tool_with_a_port_that_a_listener_of_the_victim_has_too(
    victim: Victim, name: str
) -> None:
    source, target, options, end, listening = TRICKS[name]
    statuses = []
    with ExitStack() as listeners:  # until the end: who has closed its socket is asked about later
        for where, port in (("Host", victim.host), ("--http", victim.http)):
            count = RACERS if end == "reset" else 1
            attack = (source, target, str(port), options, end, str(count), tool_call(f"{name}: {where}").decode())
            with program(ATTACK, *attack, user=NOBODY) as attacker:
                assert attacker.stdin
                assert attacker.stdout
                for taken in attacker.stdout.readline().split():
                    listeners.enter_context(_listener(listening, int(taken)))
                print("go", file=attacker.stdin, flush=True)
                statuses.append(attacker.stdout.readline().strip())
        gained = victim.gains(f"tool {name}: ")

    assert gained == set()
    assert set(statuses) <= {"", "HTTP/1.1 403 Forbidden"}


@pytest.mark.parametrize("source", LOOPBACK)
def test_another_user_calls_no_tool_by_a_connection_from_whose_port_the_victim_connects_next(
    victim: Victim, source: str
) -> None:
    with ExitStack() as nexts:
        for port, process in ((victim.host, victim.host_pid), (victim.http, victim.agent.process.pid)):
            call = tool_call(f"next to {source} {port}").decode()
            attack = (source, source, str(port), "SO_REUSEADDR", "reset", "1", call)
            with program(ATTACK, *attack, user=NOBODY) as attacker, _stopped(process):
                assert attacker.stdin
                assert attacker.stdout
                taken = int(attacker.stdout.readline())
                print("go", file=attacker.stdin, flush=True)
                attacker.stdout.readline()
                nexts.enter_context(_connection(source, taken, port))
        gained = victim.gains("tool next to ")

    assert gained == set()


@pytest.mark.parametrize("name", HONEST)
def test_a_program_of_this_user_calls_tools_wherever_it_comes_from(victim: Victim, name: str) -> None:
    source, target, end = HONEST[name]
    for port in (victim.host, victim.http):
        with program(ATTACK, source, target, str(port), "", end, "1", tool_call(f"honest {name}").decode()) as honest:
            assert honest.stdin
            assert honest.stdout
            honest.stdout.readline()
            print("go", file=honest.stdin, flush=True)
            assert honest.stdout.readline().strip() == "HTTP/1.1 200 OK"

    assert victim.gains("honest") >= {f"tool honest {name}"}


@contextmanager
def _stopped(process: int) -> Iterator[None]:
    """The server is busy with something else: what comes in the meantime, it sees afterwards."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _connection(address: str, own_port: int, port: int) -> socket.socket:
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.bind((address, own_port))
    connection.connect((address, port))
    return connection


def _listener(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    return listener
