"""The real authority, asked by its owner and over the channel at the same time: one restart per change, for all."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from support.waiting import until
from uno_devserver.hotreload.authority import CheckResult, RestartResult
from uno_devserver.hotreload.control.client import RemoteAuthority
from uno_devserver.hotreload.control.server import ControlServer
from uno_devserver.hotreload.digest_store import DigestStore
from uno_devserver.hotreload.local_authority import LocalAuthority
from uno_devserver.hotreload.package_state import BuildSettings
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.workspace.config import Strategy

from .channels import SECONDS, Client, open_inspector


class Owner:
    """A proxy that owns a server of some Python files, and announces its restarts."""

    def __init__(self, root: Path, path: str, seconds: float) -> None:
        self.source = root / "server" / "main.py"
        self.source.parent.mkdir()
        self.source.write_text("VALUE = 1\n", "utf-8")
        self.restarts = 0
        self._seconds = seconds
        package = WatchedPackage(Role.SERVER, str(self.source.parent))
        state = str(root / "state")
        self.authority = LocalAuthority(
            [package],
            BuildSettings(DigestStore(state, str(root)), {}, state),
            strategy=Strategy.RESTART,
            restart=self._restart,
            answers=self._answers,
            say=lambda _level, _text: None,
            status_changed=lambda: None,
        )
        self.channel = ControlServer(path, self.authority, [package], open_inspector)

    async def _restart(self) -> RestartResult:
        await self.channel.announce_restart(self._seconds)
        self.restarts += 1
        outcome = RestartResult(True, lists=f"restart {self.restarts}")
        self.channel.announce_restarted(outcome)
        return outcome

    async def _answers(self) -> bool:
        return True


class Adopter:
    def __init__(self, path: str) -> None:
        self.paused = 0
        self.restarted: list[RestartResult] = []
        self.idle = asyncio.Event()
        self.idle.set()
        self.authority = RemoteAuthority(path, self._pause, self.restarted.append)

    async def check(self) -> CheckResult:
        return await self.authority.check(lambda _: None)

    async def _pause(self) -> None:
        self.paused += 1
        await self.idle.wait()


@contextlib.asynccontextmanager
async def workspace(root: Path, seconds: float = SECONDS) -> AsyncIterator[tuple[Owner, Adopter, Adopter]]:
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        owner = Owner(root, f"{folder}/c", seconds)
        await owner.authority.note_launch()
        owner.authority.connected()
        path = await owner.channel.open()
        adopters = Adopter(path), Adopter(path)
        try:
            for adopter in adopters:
                assert not (await adopter.check()).server_changed
            yield owner, *adopters
        finally:
            for adopter in adopters:
                await adopter.authority.close()
            await owner.channel.close()
            await owner.authority.close()


async def test_all_proxies_see_a_change_and_there_is_one_restart(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (owner, first, second):
        owner.source.write_text("VALUE = 2\n", "utf-8")

        found = await asyncio.gather(first.check(), second.check(), owner.authority.check(lambda _: None))
        asked = (first.authority, second.authority, owner.authority)
        outcomes = await asyncio.gather(*(authority.ready_to_restart() for authority in asked))

        assert [result.restart_due for result in found] == [True] * 3
        assert owner.restarts == 1
        assert {outcome.lists for outcome in outcomes} == {"restart 1"}
        assert not (await first.check()).server_changed


async def test_the_restart_that_one_proxy_wants_waits_for_the_calls_of_the_other(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (owner, first, second):
        owner.source.write_text("VALUE = 2\n", "utf-8")
        assert (await first.check()).restart_due
        second.idle.clear()

        restart = asyncio.create_task(first.authority.ready_to_restart())
        await until(lambda: second.paused)
        assert owner.restarts == 0
        second.idle.set()

        assert (await restart).lists == "restart 1"
        await until(lambda: second.restarted)
        assert (second.restarted, first.paused) == ([RestartResult(True, lists="restart 1")], 0)


async def test_a_peer_that_says_ready_too_late_makes_no_second_restart(tmp_path: Path) -> None:
    async with workspace(tmp_path, seconds=0.05) as (owner, first, _):
        late = await Client.connect(owner.channel._listener.path)  # type: ignore[union-attr]
        await late.result("checkForChanges", {"mcpServerRoot": str(owner.source.parent)})
        owner.source.write_text("VALUE = 2\n", "utf-8")
        assert (await first.check()).restart_due
        assert (await first.authority.ready_to_restart()).lists == "restart 1"

        assert (await late.result("readyToRestart"))["lists"] == "restart 1"

        assert owner.restarts == 1
        assert (await late.result("getStatus"))["restarts"] == 1
        assert (await late.result("mcpReady"))["ready"] is True
