"""What is decided and begun before there is an event loop, and what has not been imported by then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.files import write
from support.machine import Machine
from uno_devserver.proxy import first_start as module
from uno_devserver.proxy.first_start import FirstStart
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.reload.watched_code import BEHIND_URL, NO_CONFIG
from uno_devserver.proxy.state import ConnectionState, Timeline
from uno_devserver.proxy.upstream.base import Upstream
from uno_devserver.proxy.upstream.command_launch import CommandUpstream
from uno_devserver.proxy.upstream.configured_command import ConfiguredUpstream
from uno_devserver.proxy.upstream.host_launch import HostUpstream
from uno_devserver.proxy.upstream.url_upstream import UrlUpstream
from uno_devserver.proxy.workspace.decisions import Transition
from uno_devserver.workspace.trust import TRUST_VARIABLE

BOUND = 20.0
CONFIG = ".devtools/host.config.jsonc"
# Begins the first start, up to the moment in which a child is about to be spawned, and says what has been imported.
BEFORE_THE_LAUNCH = """
import os, sys, time
from uno_devserver.instances import launch
from uno_devserver.proxy.first_start import FirstStart
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import Timeline

def spawn(*_, **__):
    sys.stdout.write(" ".join(sorted(sys.modules)))
    sys.stdout.flush()
    os._exit(0)

launch.spawn = spawn
FirstStart(ProxyOptions(os.getcwd()), Timeline())
time.sleep(10)
"""
# What takes milliseconds to import, and has them while the Host starts.
HEAVY = {"asyncio", "typing", "msgspec", "httptools", "psutil", "inspect", "logging", "dataclasses", "concurrent"}


class ScriptedLauncher:
    """Starts nothing, and remembers what it was to start."""

    def __init__(self, timeline: Timeline) -> None:
        self.started: list[tuple[int, Upstream]] = []
        self.waited = 0.0

    def start(self, attempt: int, upstream: Upstream) -> None:
        self.started.append((attempt, upstream))

    def wait_until_launched(self, seconds: float) -> None:
        assert self.started, "it waits for what it has started"
        self.waited = seconds


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a workspace to come; nothing is started there."""
    monkeypatch.setattr(module, "Launcher", ScriptedLauncher)
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def begun(options: ProxyOptions) -> tuple[FirstStart, ScriptedLauncher]:
    first = FirstStart(options, Timeline())
    assert isinstance(first.launcher, ScriptedLauncher)
    return first, first.launcher


def test_a_command_is_started_at_once_and_depends_on_no_workspace(folder: Path) -> None:
    first, launcher = begun(ProxyOptions(str(folder), command=("serve",)))

    assert isinstance(first.upstream, CommandUpstream)
    assert launcher.started == [(1, first.upstream)]
    assert 0 < launcher.waited < 1
    assert (first.decisions, first.is_host, first.unknown_code) == (None, False, NO_CONFIG)
    assert first.lifecycle.state is ConnectionState.DISCOVERING


def test_the_code_of_a_command_is_looked_at_before_it_is_launched(folder: Path) -> None:
    write(folder / "server" / "main.py", "VALUE = 1\n")
    write(folder / CONFIG, '{"mcpServerRoot": "../server"}')

    first, _ = begun(ProxyOptions(str(folder), command=("serve",)))
    write(folder / "server" / "main.py", "VALUE = 2\n")
    second, _ = begun(ProxyOptions(str(folder), command=("serve",)))

    assert first.unknown_code is None
    assert first.content is not None
    assert first.content != second.content


def test_a_server_at_a_url_is_looked_for_at_once_and_its_code_is_not_known(folder: Path) -> None:
    first, launcher = begun(ProxyOptions(str(folder), url="http://localhost:1/mcp"))

    assert isinstance(first.upstream, UrlUpstream)
    assert launcher.started == [(1, first.upstream)]
    assert (first.unknown_code, first.content) == (BEHIND_URL, None)


def test_a_workspace_with_add_ins_has_a_host_which_looks_at_its_code_itself(folder: Path) -> None:
    write(folder / ".devtools" / "addins" / "one.py", "")

    first, launcher = begun(ProxyOptions(str(folder)))

    assert isinstance(first.upstream, HostUpstream)
    assert launcher.started == [(1, first.upstream)]
    assert (first.is_host, first.content, first.unknown_code) == (True, None, None)
    assert first.decision is not None
    assert first.decision.workspace.working_directory == str(folder)


def test_a_workspace_whose_config_names_a_server_has_that_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    write(folder / "server" / "main.py", "VALUE = 1\n")
    write(folder / CONFIG, '{"mcpServerRoot": "../server", "mcpServer": {"command": "serve"}}')

    first, launcher = begun(ProxyOptions(str(folder)))

    assert isinstance(first.upstream, ConfiguredUpstream)
    assert launcher.started == [(1, first.upstream)]
    assert (first.is_host, first.unknown_code) == (False, None)
    assert first.content is not None


def test_where_there_is_no_workspace_nothing_is_started(folder: Path) -> None:
    first, launcher = begun(ProxyOptions(str(folder)))

    assert (first.upstream, launcher.started) == (None, [])
    assert first.decisions is not None
    assert first.decision is not None
    assert first.decision.transition is not Transition.START
    assert first.lifecycle.state is ConnectionState.INITIALIZING


def test_the_launch_waits_for_nothing_that_only_the_rest_needs(machine: Machine) -> None:
    machine.environment[TRUST_VARIABLE] = "1"
    write(machine.workspace / ".devtools" / "addins" / "greeter.py", "")

    result = subprocess.run(
        [sys.executable, "-P", "-c", BEFORE_THE_LAUNCH],
        cwd=machine.workspace,
        env=machine.variables(),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )

    imported = set(result.stdout.split())
    assert "uno_devserver.instances.launch" in imported, result.stderr
    assert HEAVY & imported == set()
