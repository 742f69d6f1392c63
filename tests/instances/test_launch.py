"""Launching a Host: in steps that can be watched, and given up at any moment."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.hosts import is_running
from support.machine import home_variables
from support.ports import stop_listening
from uno_devserver.instances import launch as launch_module
from uno_devserver.instances.child_process import Child, Output
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.host_program import HostProgram, LaunchPlan, bundled_host
from uno_devserver.instances.launch import RunningHost, StartObserver, launch
from uno_devserver.instances.launch_failure import LaunchFailure, LaunchFailureReason
from uno_devserver.system.ports import free_port, is_free

from .start_requests import start_request

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


class Witness(StartObserver):
    def __init__(self, go_on: Callable[[], bool] = lambda: True) -> None:
        self.children: list[Child] = []
        self.was_free = False
        self._go_on = go_on

    def spawned(self, child: Child, port: int) -> None:
        self.children.append(child)
        self.was_free = is_free(port)

    def go_on(self) -> bool:
        return self._go_on()


class Bench:
    """Launches Hosts on a machine of its own, the bundled one without add-ins unless told otherwise, and ends them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.registry = root / "Uno Platform" / "DevServers"
        self.output = Output(str(root / "logs" / "host.log"))
        self.plan = LaunchPlan(bundled_host(), ";")
        self._launched: list[Child] = []

    def runs(self, text: str, kind: HostKind | None = None) -> None:
        """Let a Python program stand where a Host should."""
        program = HostProgram(kind, (sys.executable, str(write(self.root / "program.py", text))))
        self.plan = self.plan.replace(program=program)

    def launch(
        self, observer: StartObserver | None = None, *, usual_port: int = 0, folder: Path | None = None, **wanted: Any
    ) -> RunningHost:
        environ = {**os.environ, **home_variables(self.root, self.root)}
        request = start_request(folder or self.root, **wanted)
        observer = observer or StartObserver()
        running = launch(request, self.plan, usual_port, self.output, str(self.registry), environ, observer)
        assert running.child
        self._launched.append(running.child)
        return running

    def end(self) -> None:
        for child in self._launched:
            child.stop()
        self.output.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.end()


def test_a_launched_host_is_the_child_it_serves_and_ends_when_it_is_stopped(bench: Bench) -> None:
    launched = bench.launch()

    assert launched.child
    assert launched.process_id == launched.child.pid
    assert launched.has_mcp
    assert launched.left_out is None
    assert not is_free(launched.port)

    launched.child.stop()

    assert launched.child.exit_code() == 0
    assert is_free(launched.port)


def test_a_child_that_starts_the_host_as_its_own_child_keeps_no_record(bench: Bench) -> None:
    """As a script does, and the python.exe of a virtual environment on Windows."""
    host = [*bundled_host().command]
    bench.runs(f"import subprocess, sys; sys.exit(subprocess.call([*{host!r}, *sys.argv[1:]]))")

    launched = bench.launch()

    assert launched.child
    assert launched.process_id != launched.child.pid
    records = [path.name for path in bench.registry.glob("*.aux.json")]
    assert records == [f"devserver-{launched.process_id}.aux.json"]


def test_there_is_time_for_other_work_between_the_spawn_and_the_readiness(bench: Bench, tmp_path: Path) -> None:
    go = tmp_path / "go"

    class Working(Witness):
        def spawned(self, child: Child, port: int) -> None:
            super().spawned(child, port)
            go.touch()  # the Host does not listen before this work is done

    witness = Working()
    bench.runs(f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n{SERVES}")

    launched = bench.launch(witness)

    assert [child.pid for child in witness.children] == [launched.process_id]
    assert witness.was_free


def test_a_launch_that_was_given_up_before_starts_no_process(bench: Bench) -> None:
    witness = Witness(go_on=lambda: False)

    with pytest.raises(LaunchFailure) as failure:
        bench.launch(witness)

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP
    assert witness.children == []


@pytest.mark.parametrize("when", ["while it starts", "when it is ready"])
def test_a_launch_that_is_given_up_leaves_no_process(bench: Bench, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Witness(go_on=lambda: not (witness.children and (when == "while it starts" or ready)))
    ready: list[object] = []
    wait = launch_module.wait_until_ready

    def waited(*arguments: Any, **options: Any) -> object:
        ready.append(wait(*arguments, **options))
        return ready[0]

    monkeypatch.setattr(launch_module, "wait_until_ready", waited)

    with pytest.raises(LaunchFailure) as failure:
        bench.launch(witness)

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP
    assert isinstance(ready[0], tuple) is (when == "when it is ready")
    assert not is_running(witness.children[0].pid)


def test_an_observer_that_fails_leaves_no_process(bench: Bench) -> None:
    class Failing(Witness):
        def spawned(self, child: Child, port: int) -> None:
            super().spawned(child, port)
            raise RuntimeError("not our day")

    witness = Failing()

    with pytest.raises(RuntimeError):
        bench.launch(witness)

    assert not is_running(witness.children[0].pid)


def test_a_workspace_that_is_gone_is_named(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(LaunchFailure) as failure:
        bench.launch(folder=tmp_path / "gone")

    assert failure.value.reason is LaunchFailureReason.NOT_STARTED
    assert failure.value.text.startswith(str(tmp_path / "gone"))


def test_a_crash_carries_what_was_printed_at_the_end(bench: Bench) -> None:
    lines = "\n".join(f"print('line {number}')" for number in range(1000))
    bench.runs(f"{lines}\nraise SystemExit('the end')\n")

    with pytest.raises(LaunchFailure) as failure:
        bench.launch()

    assert failure.value.reason is LaunchFailureReason.DIED
    assert failure.value.exit_code == 1
    assert failure.value.text.splitlines()[-2:] == ["line 999", "the end"]
    assert len(failure.value.text.splitlines()) == 30
    assert failure.value.log_file == bench.output.path


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


@pytest.mark.parametrize("exit_code", [131, 147, 0x80008083, 0x80008093])
def test_a_failure_of_dotnet_itself_is_told_on_windows_too(exit_code: int) -> None:
    failure = LaunchFailure(LaunchFailureReason.DIED, 1, exit_code=exit_code, text="Invalid runtimeconfig.json [/x]")

    assert failure.refusal
    assert failure.refusal[0] == f"dotnet could not run it (exit code {exit_code}): Invalid runtimeconfig.json [/x]."


@pytest.mark.parametrize("exit_code", [None, 1, -6, -9, 0xC0000005, 0x80004005])
def test_another_end_is_none_of_dotnets(exit_code: int | None) -> None:
    assert LaunchFailure(LaunchFailureReason.DIED, 1, exit_code=exit_code, text="boom").refusal is None


def test_a_port_that_is_usual_is_taken_only_if_it_is_free(bench: Bench) -> None:
    usual = free_port()

    first, second = (bench.launch(usual_port=usual) for _ in range(2))

    assert (first.port, second.port == usual) == (usual, False)


def test_the_usual_port_is_waited_for_while_the_host_before_ends(bench: Bench) -> None:
    """A client that starts its server anew has the next proxy up before the Host of the last one is gone."""
    with socket.create_server(("127.0.0.1", 0)) as ending:
        usual = ending.getsockname()[1]
        questions = count()

        def go_on() -> bool:
            if next(questions) == 1:  # asked once before the first look at the port
                stop_listening(ending)
            return True

        launched = bench.launch(Witness(go_on), usual_port=usual)

    assert launched.port == usual


def test_a_launch_that_is_given_up_while_its_port_is_taken_says_that_it_was_given_up(bench: Bench) -> None:
    questions = count()

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(LaunchFailure) as failure:
        bench.launch(Witness(lambda: next(questions) == 0), usual_port=taken.getsockname()[1])

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP


@pytest.mark.parametrize(
    ("kind", "end", "attempts"),
    [
        (None, "os.kill(os.getpid(), 15)", 1),
        (None, "os.kill(os.getpid(), 2)", 1),
        (None, "os.kill(os.getpid(), 9)", 2),
        (None, "print('!', flush=True); os._exit(0)", 2),  # as a .NET Host also does when it failed
        (HostKind.BUNDLED, "os._exit(0)", 1),
        (HostKind.BUNDLED, "os._exit(1)", 2),
    ],
)
def test_a_host_that_is_stopped_while_it_starts_is_not_started_again(
    bench: Bench, kind: HostKind | None, end: str, attempts: int
) -> None:
    bench.runs(f"import os, signal; signal.signal(2, signal.SIG_DFL); {end}", kind)
    bench.plan = bench.plan.replace(addins="/a.py")
    witness = Witness()

    with pytest.raises(LaunchFailure) as failure:
        bench.launch(witness)

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
def test_a_host_that_dies_with_its_addins_is_tried_without_only_if_that_is_wanted(
    bench: Bench, tries_without: bool
) -> None:
    bench.runs(DIES_OF_ADDINS)
    bench.plan = bench.plan.replace(addins="/a.dll")
    witness = Witness()

    if tries_without:
        assert bench.launch(witness).left_out == ("/a.dll",)
    else:
        with pytest.raises(LaunchFailure) as failure:
            bench.launch(witness, tries_without=False)
        assert (failure.value.reason, failure.value.exit_code) == (LaunchFailureReason.DIED, 7)
        assert "an add-in killed it" in failure.value.text

    assert len(witness.children) == 1 + tries_without


@pytest.mark.parametrize("asks", [True, False])
def test_a_host_is_asked_about_its_addins_only_if_that_is_wanted(bench: Bench, tmp_path: Path, asks: bool) -> None:
    addin = write(tmp_path / "greeter.py", "def register(addin):\n    addin.tool(name='greet')(lambda: 'hello')\n")
    bench.plan = bench.plan.replace(addins=str(addin))

    assert (bench.launch(asks_addins=asks).report is not None) is asks
