"""Waiting for the add-ins of a Host that has just been launched: what the Host itself says, and not for long."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stand_in_host import Rule, StandInHost, answer, bundled_host
from uno_devserver.instances.child import Child, Output, spawn
from uno_devserver.instances.probe import ADDINS_WAIT_SECONDS, Probe, wait_until_loaded

PATIENCE = 10.0  # on a busy machine


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """A process that lives."""
    output = Output(str(tmp_path / "child.log"))
    child = spawn([sys.executable, "-c", "import time; time.sleep(60)"], folder="/", environ=os.environ, output=output)
    yield child
    child.stop()
    output.close()


def _told(child: Child, tmp_path: Path, rules: list[Rule]) -> Probe | None:
    with StandInHost(tmp_path, rules) as host:
        return wait_until_loaded(child, host.pid, host.port)


def test_add_ins_that_are_loaded_are_told_at_once(child: Child, tmp_path: Path) -> None:
    told = _told(child, tmp_path, bundled_host(loading=False))

    assert told is not None
    assert [(addin.name, addin.loaded) for addin in told.add_ins] == [("colours", True)]
    assert not told.loading


@pytest.mark.parametrize(
    "rules",
    [bundled_host(loading=True), [], [answer("GET /health", 404)]],
    ids=["still loads", "says nothing", "has no such page"],
)
def test_nobody_waits_for_long(child: Child, tmp_path: Path, rules: list[Rule]) -> None:
    begun = time.monotonic()

    told = _told(child, tmp_path, rules)

    assert ADDINS_WAIT_SECONDS <= time.monotonic() - begun < ADDINS_WAIT_SECONDS + PATIENCE
    assert (told is not None and told.loading) == (rules == bundled_host(loading=True))


def test_a_host_that_has_died_is_not_waited_for(child: Child, tmp_path: Path) -> None:
    child.stop()

    assert _told(child, tmp_path, bundled_host(loading=True)) is None


def test_another_process_on_the_port_tells_nothing(child: Child, tmp_path: Path) -> None:
    with StandInHost(tmp_path, bundled_host(loading=False)) as host:
        assert wait_until_loaded(child, host.pid + 1, host.port) is None
