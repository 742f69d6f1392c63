"""The checks that look at processes and folders, each given what breaks it; and a short run of the real thing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos import clients, driver
from chaos.clients import Client, Tally
from chaos.driver import Driver, left_over
from chaos.invariants import ANSWER_SECONDS, NO_TRACEBACK, NOTHING_LEFT, PROXY_GOES, PROXY_STAYS, RECOVERS, VALID_LINES
from chaos.record import Run, failure
from chaos.run import chaos
from chaos.world import World
from chaos.worlds import ConfiguredWorld
from support.waiting import wait_for

SEED = 9
# The disk is full; servers, a standby and the owner of one are killed; a sibling is edited; tokens expire while the
# sign-in server is away; the page is watched.
SHORT_SEED, SHORT_SECONDS = 10058, 4.0


@pytest.mark.timeout(2 * ANSWER_SECONDS)  # only where an answer never comes
def test_a_short_run_breaks_nothing() -> None:
    run = chaos(SHORT_SEED, SHORT_SECONDS, ["swap", "shared", "several", "signed-in"], may_mount=False)

    assert not run.broken, failure(run)
    assert run.injected >= 4, "two in each world"
    assert run.answers["done"] > 10


# --- clients of programs that are no proxies


@pytest.mark.parametrize(
    ("program", "invariant"),
    [
        ("print('x', file=sys.stderr); sys.exit(3)", PROXY_STAYS),
        ("sys.stderr.write('Traceback (most recent call last):\\n'); sys.stdin.read()", NO_TRACEBACK),
        ('os.write(1, b\'{"jsonrpc": "2.0", "met\')', VALID_LINES),
    ],
)
def test_a_proxy_that_does_what_none_may_do_is_found(tmp_path: Path, program: str, invariant: str) -> None:
    client = start(tmp_path, program)

    wait_for(lambda: invariant in [each.invariant for each in client.tally.broken], f"'{invariant}'")

    client.says_goodbye()


def test_a_proxy_that_outlives_its_client_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "END_SECONDS", 0.2)
    client = start(tmp_path, "os.write(2, b'ready\\n'); time.sleep(600)")
    wait_for(lambda: client.stderr, "its start")

    client.dies(pipes_stay=False)

    assert [each.invariant for each in client.tally.broken] == [PROXY_GOES]


def start(folder: Path, program: str) -> Client:
    argv = [sys.executable, "-IS", "-c", f"import os, sys, time; {program}"]
    return Client("client", argv, folder, {}, Tally(), modern=True, seed=1)


# --- a world and what is left of it


@pytest.fixture
def world() -> Iterator[World]:
    with ConfiguredWorld("restart", SEED, may_mount=False) as made:
        yield made


def test_a_world_in_which_nothing_happened_has_nothing_left(world: World) -> None:
    assert not left_over(world)


def test_everything_that_is_left_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "GONE_SECONDS", 0.0)
    (world.machine.temp / "scratch").touch()
    (world.machine.workspace / "odd").touch()
    world.machine.state.mkdir(parents=True)
    (world.machine.state / "odd").touch()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(world.root / "socket"))
    line = [sys.executable, "-IS", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(line, env=world.machine.variables(), stdin=subprocess.PIPE) as process:
        wait_for(lambda: process.pid in world.processes(), "its start")

        broken = left_over(world)

        assert process.stdin
        process.stdin.close()
    assert {each.invariant for each in broken} == {NOTHING_LEFT}
    for what in (f"process {process.pid}", "scratch", "socket", "uno.devserver/odd", "workspace: odd"):
        assert [each for each in broken if what in each.text], what


def test_a_world_that_does_not_recover_is_found_and_told_with_its_seed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "RECOVER_SECONDS", 0.5)
    os.remove(world.machine.workspace / "server" / "server.py")
    one = Driver(world, [], threading.Event())

    began = time.monotonic()
    one.run()
    run = Run(SEED, 60.0, time.monotonic() - began, [one])
    for client in world.clients:
        client.says_goodbye()

    assert [each.invariant for each in run.broken] == [RECOVERS]
    assert "--seed 9 --minutes 1 --worlds restart" in failure(run)
