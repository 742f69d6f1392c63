"""What /proc tells must be what psutil tells, for real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import psutil
import pytest

from support.servers import LISTENS, OBEYS, Processes
from uno_devserver.system import proc

pytestmark = pytest.mark.skipif(not proc.AVAILABLE, reason="only Linux has such files")


def test_it_tells_of_a_process_what_psutil_tells(processes: Processes) -> None:
    child = processes.start()

    assert proc.is_alive(child.pid)
    assert proc.created(child.pid) == pytest.approx(psutil.Process(child.pid).create_time(), abs=0.02)


def test_a_name_with_brackets_and_blanks_does_not_confuse_it(processes: Processes) -> None:
    name = ") Z 1 ("
    script = f"open('/proc/self/comm', 'w').write({name!r}); print(flush=True); input()"
    command = [sys.executable, "-ISc", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()

        assert proc.is_alive(child.pid)
        assert proc.created(child.pid) == pytest.approx(psutil.Process(child.pid).create_time(), abs=0.02)
        child.stdin.close()


def test_a_process_with_a_handler_handles_signals_and_one_that_gave_it_up_does_not(processes: Processes) -> None:
    interruptible = processes.start()  # Python turns SIGINT into an exception
    without = processes.start(f"import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n{OBEYS}")

    assert proc.handles_signals(interruptible.pid)
    assert not proc.handles_signals(without.pid)
    assert not proc.handles_signals(processes.zombie())


def test_one_that_has_ended_is_not_alive_and_was_never_created(processes: Processes) -> None:
    zombie = processes.zombie()
    child = subprocess.Popen([sys.executable, "-ISc", ""])
    child.wait(20)

    for pid in (zombie, child.pid):
        assert not proc.is_alive(pid)
        assert proc.created(pid) is None
        assert not proc.listens_on(pid, 80)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listening_socket_of_either_family_is_found_and_a_connected_one_is_none(family: int, address: str) -> None:
    with socket.socket(family) as listener, socket.socket(family) as client:
        listener.bind((address, 0))
        listener.listen()
        port = listener.getsockname()[1]
        client.connect((address, port))

        assert proc.listens_on(os.getpid(), port)
        assert not proc.listens_on(os.getpid(), client.getsockname()[1])


def test_a_port_on_which_another_process_listens_is_not_ours(processes: Processes) -> None:
    other = processes.start(LISTENS)
    [port] = {one.laddr.port for one in psutil.Process(other.pid).net_connections("tcp")}

    assert proc.listens_on(other.pid, port)
    assert not proc.listens_on(os.getpid(), port)
