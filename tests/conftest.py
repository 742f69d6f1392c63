"""Shared by all tests; the builders live in tests/support."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, settings

from support.hosts import Rival, StandInHosts
from support.machine import DATA_HOME, WINDOWS, Machine
from support.servers import Processes, Registry
from support.virtual_time import run_virtually
from support.workspace import WorkspaceBuilder
from uno_devserver.system import run
from windows.left_out import reason_of

ASYNC_TEST_SECONDS = 90  # for a busy machine; below the limit of pytest-timeout, so that the loop is closed well

# No deadline, so that a busy machine fails no test. Forty examples find what a change broke; some tests ask for more.
settings.register_profile("unhurried", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Under nohup, or after a shell's `&`, these signals are ignored, also by the processes that tests end with them.
if sys.platform == "win32":
    setattr(signal, "SIGKILL", signal.SIGTERM)  # which kills there  # noqa: B010
else:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, which would take half of the time: they live to the end anyway."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not even import the files that have no meaning on Windows."""
    return True if WINDOWS and reason_of(_below_tests(collection_path)) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if WINDOWS else ():
        if reason := reason_of(_below_tests(item.path), item.name.partition("[")[0]):
            item.add_marker(pytest.mark.skip(reason=reason))


def _below_tests(path: Path) -> PurePosixPath:
    return PurePosixPath(os.path.relpath(path, Path(__file__).parent).replace("\\", "/"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run each async test in a loop of its own, within a bound."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    if pyfuncitem.get_closest_marker("virtual_time"):
        run_virtually(test(**arguments))
    else:
        asyncio.run(asyncio.wait_for(test(**arguments), ASYNC_TEST_SECONDS))
    return True


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests, and programs that they run, out of the user's own folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATA_HOME, str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True)
def _go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the flag by which a test says that its process ends."""
    monkeypatch.setattr(run, "_ending", False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """An empty machine, without dotnet."""
    return Machine(tmp_path)


@pytest.fixture
def workspace(machine: Machine) -> WorkspaceBuilder:
    return WorkspaceBuilder(machine)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Processes that are ended with the test."""
    started = Processes()
    yield started
    started.end()


@pytest.fixture
def registry(machine: Machine) -> Registry:
    """The registry of the machine."""
    return Registry(machine.data / "Uno Platform" / "DevServers")


@pytest.fixture
def hosts(machine: Machine) -> Iterator[StandInHosts]:
    """.NET on the machine, and stand-ins for the Hosts that it runs."""
    hosts = StandInHosts(machine.install_dotnet())
    yield hosts
    hosts.end_all()


@pytest.fixture
def rival(workspace: WorkspaceBuilder, hosts: StandInHosts) -> Iterator[Rival]:
    """A Host for `App.slnx` that another program has launched."""
    rival = Rival(workspace.root / "App.slnx", hosts, workspace.machine.variables())
    yield rival
    rival.process.kill()
    rival.process.wait()


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temp folder of this process, with a path that is short enough for the address of a socket."""
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)
