"""Drives one world through its plan: faults at their moments, mending in between, recovery behind each round.

Whatever is broken ends all worlds at once, so that what it looks like then can be told.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from chaos.clients import Client
from chaos.faults import inject
from chaos.invariants import (
    NEW_CODE,
    NO_TOKENS,
    NOTHING_LEFT,
    RECOVERS,
    Broken,
    Request,
    Verdict,
    broken_in_ledger,
    outcome_of,
    strange_files,
)
from chaos.page import opens
from chaos.plan import Fault
from chaos.upstreams.tools import EFFECTIVE
from chaos.world import World
from chaos.worlds import SignedInWorld

RECOVER_SECONDS = 90.0  # a Degraded proxy tries every five seconds; the rest is for a machine that is busy
STEP_SECONDS = 0.02
ASK_SECONDS = 0.3  # between two looks whether it has recovered
CHECK_SECONDS = 1.0
LAST_CLIENTS = 2  # a proxy is gone within 0.3 s: what it leaves so on a busy machine, the next one removes
GONE_SECONDS = 10.0  # for processes to be gone when their proxies have ended; the promise is one second
KEPT_FAULTS = 25


class Driver:
    def __init__(self, world: World, rounds: Sequence[Sequence[Fault]], stop: threading.Event) -> None:
        self.world = world
        self.injected: Counter[str] = Counter()
        self.recoveries: list[float] = []  # seconds that each took
        self.broken: list[Broken] = []
        self.last: deque[str] = deque(maxlen=KEPT_FAULTS)
        self.began = time.monotonic()
        self._rounds = rounds
        self._stop = stop
        self._checked = 0.0
        self._answered: Request

    def run(self) -> None:
        try:
            self._run()
        except Stopped:
            pass
        except Exception as error:  # a defect of ours is told like a broken invariant: the run does not count
            self._found([Broken("the driver works", f"{self.world.name}: {type(error).__name__}: {error}")])
            raise

    def _run(self) -> None:
        world = self.world
        for _ in range(world.clients_wanted):
            world.start_client()
        self._recover()
        for faults in self._rounds:
            for fault in faults:
                self._pass(fault.after)
                self.last.append(f"{time.monotonic() - self.began:8.2f} s  {fault}")
                inject(world, fault)
                self.injected[fault.kind + (f": {fault.manner}" if fault.manner else "")] += 1
            self._recover()
        self._end()

    # --- while faults come

    def _pass(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.world.mend()
            self._check()
            time.sleep(STEP_SECONDS)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped
        now = time.monotonic()
        world = self.world
        broken = list(world.tally.broken)
        if now - self._checked > CHECK_SECONDS:
            self._checked = now
            broken += [late for client in world.clients for late in client.conversation.overdue(now)]
        self._found(broken)

    def _found(self, broken: list[Broken]) -> None:
        if broken:
            self.broken += broken
            self._stop.set()
            raise Stopped

    # --- when they stop

    def _recover(self) -> None:
        """All is mended: every client must have a server that works, and an answer to everything that it asked while
        it was not, before it is killed in the next round; and what ran must be what was answered."""
        world = self.world
        world.mend(everything=True)
        world.withdraw_orders()
        began = time.monotonic()
        for client in list(world.clients):
            client.slow_until = 0.0
            self._wait(lambda client=client: self._works(client), began, client)  # type: ignore[misc]
        self._expect_new_code()
        self.recoveries.append(time.monotonic() - began)
        if isinstance(world, SignedInWorld):
            self._renew(world)
        while any(client.conversation.awaits_any_from_before(began) for client in world.clients):
            self._pass(STEP_SECONDS)  # to what is overdue
        outcomes = list(world.tally.outcomes)
        self._found(broken_in_ledger(outcomes, world.ledger()))

    def _works(self, client: Client, *, helped: bool = True) -> bool:
        health = client.ask_health()
        calls = [client.call(EFFECTIVE, prefix=prefix) for prefix in self.world.prefixes]
        while not all(request.answer for request in (health, *calls)):
            self._check()
            time.sleep(STEP_SECONDS)
        servers = client.health.get("servers", ())
        states = [client.health.get("connectionState"), *(server["state"] for server in servers)]
        self._answered = calls[0]
        if states == ["Connected"] * len(self.world.prefixes) and all(map(_is_done, calls)):
            return True
        if helped:
            self.world.help_user(client.health)
        return False

    def _wait(self, works: Callable[[], bool], began: float, client: Client, what: str = "") -> None:
        while not works():
            if time.monotonic() - began > RECOVER_SECONDS:
                state = client.health.get("connectionState")
                issues = client.health.get("issues")
                text = f"{what}{client.name} is {state} after {RECOVER_SECONDS:g} s; its issues: {issues}"
                self._found([Broken(RECOVERS, text)])
            self._pass(ASK_SECONDS)

    def _expect_new_code(self) -> None:
        """All edits were before these calls, so their answers must be those of the code as it is now."""
        world = self.world
        for client in list(world.clients):
            self._works(client)
            answer = self._answered.answer or {}
            if world.revision not in str(answer) and _is_done(self._answered):
                self._found([Broken(NEW_CODE, f"{client.name}: {str(answer)[:300]} is not of {world.revision!r}")])
            page = world.page(client)
            if page is not None:
                self._wait(partial(opens, page), time.monotonic(), client, "the page does not open; ")

    def _renew(self, world: SignedInWorld) -> None:
        """Nobody is needed for a token that expires."""
        began = time.monotonic()
        world.ask_authorization("expire")
        for client in list(world.clients):
            self._wait(lambda client=client: self._works(client, helped=False), began, client)  # type: ignore[misc]

    # --- the end

    def _end(self) -> None:
        """All clients go; more come and go, because only they can clear up after those that were killed."""
        world = self.world
        self._leave()
        for _ in range(LAST_CLIENTS):
            world.start_client()
            self._recover()
            self._leave()
            left = left_over(world)
            if not left:
                break
        self._found(world.tally.broken + left)

    def _leave(self) -> None:
        for client in self.world.clients:
            client.says_goodbye()
        self.world.clients.clear()


class Stopped(Exception):
    """An invariant is broken, in this world or in another one."""


def left_over(world: World) -> list[Broken]:
    deadline = time.monotonic() + GONE_SECONDS
    while (running := world.foreign_processes()) and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
    broken = [Broken(NOTHING_LEFT, f"process {each}") for each in running]
    broken += [Broken(NOTHING_LEFT, f"in the temporary folder: {name}") for name in os.listdir(world.machine.temp)]
    broken += [Broken(NOTHING_LEFT, f"unix socket {path}") for path in _sockets(world.root)]
    kept = [path for path in world.vendor.rglob("*") if not path.is_dir()]
    broken += strange_files(str(path.relative_to(world.vendor)) for path in kept)
    broken += _told_tokens(world)
    new = world.workspace_files() - world.laid_out
    return broken + [Broken(NOTHING_LEFT, f"in the workspace: {name}") for name in sorted(new)]


def _told_tokens(world: World) -> list[Broken]:
    """The logs, and the files of our own folder but for those of the sign-ins, that have a token."""
    tokens = [token.encode() for token in world.tokens()]
    logs = [*world.root.glob("*.log"), *(path for path in world.state_files() if path.parent.name != "sign-ins")]
    texts = {path: path.read_bytes() for path in logs} if tokens else {}
    return [Broken(NO_TOKENS, str(path)) for path, text in texts.items() if any(token in text for token in tokens)]


def _sockets(root: Path) -> list[str]:
    """Sockets with a listener, and those of which only the file is left."""
    paths = [line.split()[-1] for line in Path("/proc/net/unix").read_text("utf-8").splitlines()]
    files = [str(path) for path in root.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
    return [path for path in paths if path.startswith(str(root))] + files


def _is_done(call: Request) -> bool:
    assert call.answer is not None
    return outcome_of(call, call.answer)[0].verdict is Verdict.DONE
