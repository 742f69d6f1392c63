"""Launching as other parts of the program use it: in steps that can be watched, and given up at any moment."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.files import write
from support.hosts import is_running
from uno_devserver.instances.child import Child, Output
from uno_devserver.instances.host_program import HostArguments, HostProgram, ProgramKind, bundled_host
from uno_devserver.instances.launch import Launched, LaunchFailure, LaunchFailureReason, Observer, Order, launch
from uno_devserver.system.ports import free_port, is_free

# Answers everything, on the port that it was told.
SERVES = r"""
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--httpPort") + 1])))
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 406 No\r\nContent-Length: 0\r\n\r\n")
    connection.close()
"""


class Witness(Observer):
    def __init__(self, go_on: Callable[[], bool] = lambda: True) -> None:
        self.children: list[Child] = []
        self.was_free = False
        self._go_on = go_on

    def spawned(self, child: Child, port: int) -> None:
        self.children.append(child)
        self.was_free = is_free(port)

    def go_on(self, seconds: float) -> bool:
        return self._go_on()


@pytest.fixture
def order(tmp_path: Path) -> Iterator[Order]:
    """A bundled Host on a machine of its own."""
    output = Output(str(tmp_path / "logs" / "host.log"))
    registry = tmp_path / "Uno Platform" / "DevServers"
    environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    yield Order(bundled_host(), HostArguments(0, str(tmp_path), addins=";"), environ, str(registry), output)
    output.close()


@pytest.fixture
def launched(order: Order) -> Iterator[Launched]:
    launched = launch(order, Observer())
    yield launched
    launched.child.stop()


def _script(order: Order, path: Path, text: str) -> Order:
    """An order for a program that stands where a Host should."""
    write(path, text)
    return order.replace(program=HostProgram(ProgramKind.PATH, (sys.executable, str(path))))


def test_a_launched_host_is_the_child_it_serves_and_ends_when_it_is_stopped(launched: Launched) -> None:
    assert launched.process_id == launched.child.pid
    assert launched.has_mcp
    assert launched.left_out is None
    assert not is_free(launched.port)

    launched.child.stop()

    assert launched.child.exit_code() == 0
    assert is_free(launched.port)


def test_there_is_time_for_other_work_between_the_spawn_and_the_readiness(order: Order, tmp_path: Path) -> None:
    go = tmp_path / "go"

    class Working(Witness):
        def spawned(self, child: Child, port: int) -> None:
            super().spawned(child, port)
            go.touch()  # the Host does not listen before this work is done

    witness = Working()
    waiting = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"

    launched = launch(_script(order, tmp_path / "host.py", waiting + SERVES), witness)

    launched.child.stop()
    assert [child.pid for child in witness.children] == [launched.process_id]
    assert witness.was_free


def test_a_launch_that_is_given_up_leaves_no_process(order: Order) -> None:
    witness = Witness(go_on=lambda: not witness.children)

    with pytest.raises(LaunchFailure) as failure:
        launch(order, witness)

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP
    assert not is_running(witness.children[0].pid)


def test_a_launch_that_was_given_up_before_starts_no_process(order: Order) -> None:
    witness = Witness(go_on=lambda: False)

    with pytest.raises(LaunchFailure) as failure:
        launch(order, witness)

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP
    assert witness.children == []


def test_an_observer_that_fails_leaves_no_process(order: Order) -> None:
    class Failing(Witness):
        def spawned(self, child: Child, port: int) -> None:
            super().spawned(child, port)
            raise RuntimeError("not our day")

    witness = Failing()

    with pytest.raises(RuntimeError):
        launch(order, witness)

    assert not is_running(witness.children[0].pid)


def test_a_workspace_that_is_gone_is_named(order: Order, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")

    with pytest.raises(LaunchFailure) as failure:
        launch(order.replace(arguments=order.arguments.replace(workspace=gone)), Observer())

    assert failure.value.reason is LaunchFailureReason.NOT_STARTED
    assert failure.value.text.startswith(gone)


def test_a_crash_carries_what_was_printed_at_the_end(order: Order, tmp_path: Path) -> None:
    lines = "\n".join(f"print('line {number}')" for number in range(1000))
    crashing = _script(order, tmp_path / "crash.py", f"{lines}\nraise SystemExit('the end')\n")

    with pytest.raises(LaunchFailure) as failure:
        launch(crashing, Observer())

    assert failure.value.reason is LaunchFailureReason.DIED
    assert failure.value.exit_code == 1
    assert failure.value.text.splitlines()[-2:] == ["line 999", "the end"]
    assert len(failure.value.text.splitlines()) == 30
    assert failure.value.log_file == order.output.path


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("error: No such address.\nnext: Choose another.\n", ("No such address.", "Choose another.")),
        ("warn: old\nerror: No such\n  address.\nnext: Choose.", ("No such\n  address.", "Choose.")),
        ("error: an add-in printed this\nnext: and this\nSegmentation fault\n", None),
        ("the error: x\nnext: y\n", None),
        ("", None),
    ],
)
def test_a_refusal_is_how_the_output_ends(text: str, refusal: tuple[str, str] | None) -> None:
    assert LaunchFailure(LaunchFailureReason.DIED, 1, text=text).refusal == refusal


def test_a_port_that_is_usual_is_taken_only_if_it_is_free(order: Order) -> None:
    usual = free_port()
    first = launch(order.replace(usual_port=usual), Observer())
    try:
        second = launch(order.replace(usual_port=usual), Observer())
        second.child.stop()
    finally:
        first.child.stop()

    assert (first.port, second.port == usual) == (usual, False)


def test_the_usual_port_is_waited_for_while_the_host_before_ends(order: Order) -> None:
    """A client that starts its server anew has the next proxy up before the Host of the last one is gone."""
    usual = free_port()
    with socket.create_server(("127.0.0.1", usual)) as ending:
        threading.Timer(0.05, lambda: ending.shutdown(socket.SHUT_RDWR)).start()

        launched = launch(order.replace(usual_port=usual), Observer())

    launched.child.stop()
    assert launched.port == usual


@pytest.mark.parametrize(
    ("kind", "end", "attempts"),
    [
        (ProgramKind.PATH, "os.kill(os.getpid(), 15)", 1),
        (ProgramKind.PATH, "os.kill(os.getpid(), 2)", 1),
        (ProgramKind.PATH, "os.kill(os.getpid(), 9)", 2),
        (ProgramKind.PATH, "print('!', flush=True); os._exit(0)", 2),  # as a .NET Host also does when it failed
        (ProgramKind.BUNDLED, "os._exit(0)", 1),
        (ProgramKind.BUNDLED, "os._exit(1)", 2),
    ],
)
def test_a_host_that_somebody_stops_while_it_starts_is_not_started_again(
    order: Order, tmp_path: Path, kind: ProgramKind, end: str, attempts: int
) -> None:
    ending = _script(order, tmp_path / "end.py", f"import os, signal; signal.signal(2, signal.SIG_DFL); {end}")
    ending = ending.replace(program=ending.program.replace(kind=kind))
    witness = Witness()

    with pytest.raises(LaunchFailure) as failure:
        launch(ending.replace(arguments=order.arguments.replace(addins="/a.py")), witness)

    assert failure.value.reason is LaunchFailureReason.DIED
    assert len(witness.children) == attempts


DIES_OF_ADDINS = f"""
import sys
if sys.argv[sys.argv.index("--addins") + 1] != ";":
    print("an add-in killed it", flush=True)
    sys.exit(7)
{SERVES}
"""


@pytest.mark.parametrize("tries_without", [True, False])
def test_whether_a_host_that_dies_with_its_addins_is_tried_without_is_up_to_whoever_wants_it(
    order: Order, tmp_path: Path, tries_without: bool
) -> None:
    order = _script(order, tmp_path / "fragile.py", DIES_OF_ADDINS)
    order = order.replace(arguments=order.arguments.replace(addins="/a.dll"), tries_without=tries_without)
    witness = Witness()

    if tries_without:
        launched = launch(order, witness)
        launched.child.stop()
        assert launched.left_out == ("/a.dll",)
    else:
        with pytest.raises(LaunchFailure) as failure:
            launch(order, witness)
        assert (failure.value.reason, failure.value.exit_code) == (LaunchFailureReason.DIED, 7)
        assert "an add-in killed it" in failure.value.text

    assert len(witness.children) == 1 + tries_without


@pytest.mark.parametrize("asks", [True, False])
def test_what_became_of_the_addins_is_asked_for_only_if_somebody_wants_to_know(
    order: Order, tmp_path: Path, asks: bool
) -> None:
    addin = write(tmp_path / "greeter.py", "def register(addin):\n    addin.tool(name='greet')(lambda: 'hello')\n")
    order = order.replace(arguments=order.arguments.replace(addins=str(addin)), asks_addins=asks)

    launched = launch(order, Observer())

    launched.child.stop()
    assert (launched.told is not None) is asks
