"""Who is asked for newer code, and since when: real folders, configs and agreements around a scripted server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotreload.control.channels import Client
from hotreload.projects import Project, real_npm
from support.authorities import settled
from support.files import write
from support.machine import DATA_HOME
from support.relays import tool_call
from support.upstreams import Kept, Lists, ScriptedRunning, ScriptedUpstream
from support.virtual_time import turns
from support.waiting import until
from uno_devserver.hotreload.authority import CheckResult, RestartResult
from uno_devserver.hotreload.control import messages
from uno_devserver.hotreload.control.channel_name import channel_name
from uno_devserver.hotreload.control.remote_authority import RemoteAuthority
from uno_devserver.hotreload.control.server import ControlServer
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.issues import Issue, fatal, warning
from uno_devserver.protocol.jsonrpc import RpcNotification
from uno_devserver.protocol.service import Result
from uno_devserver.proxy.calls.call_queue import RunningCalls
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.own_tools import STATUS
from uno_devserver.proxy.reload import reloader as module
from uno_devserver.proxy.reload.reloader import Reloader
from uno_devserver.proxy.reload.restart_or_swap import Restarter
from uno_devserver.proxy.upstream.base import StartFailure
from uno_devserver.system.folders import folders
from uno_devserver.workspace.addins import sources_key
from uno_devserver.workspace.trust import agree, trust_question

CONFIG = ".devtools/host.config.jsonc"
NO_SERVER = StartFailure(fatal("UpstreamError", "It cannot be started."), final=True)


class ScriptedForwarding:
    """What hot reload needs of the calls."""

    waits = False
    observer = None
    queue: Any = None  # what holds calls while code is asked for; None: nothing does


class World:
    """A typed command in a workspace with a config, behind a keeper; the code is `server/main.py`."""

    def __init__(self, folder: Path, *outcomes: ScriptedRunning | StartFailure) -> None:
        self.folder = folder
        self.save("1")
        self.config("{}")
        self.upstream = ScriptedUpstream(*(outcomes or [ScriptedRunning(Lists(), HostKind.COMMAND)]))
        options = ProxyOptions(str(folder), command=("serve",))
        self.kept = Kept(folder.parent, self.upstream, options, begins=False)
        self.keeper = self.kept.keeper
        self.forwarding = ScriptedForwarding()
        self.reloader = self.kept.reloader = Reloader(
            options,
            channel_name(),
            None,
            keeper=self.keeper,
            forwarding=self.forwarding,  # type: ignore[arg-type]
            open_inspector=self.open_inspector,
        )

    async def open_inspector(self, port: int | None) -> str | Issue:
        return warning("InspectorNotServed", "No port is free.") if port == 0 else f"http://localhost:{port or 6274}/"

    def save(self, value: str) -> None:
        write(self.folder / "server" / "main.py", f"VALUE = {value}\n")

    def config(self, hot_reload: str) -> None:
        write(self.folder / CONFIG, f'{{"mcpServerRoot": "../server", "hotReload": {hot_reload}}}')

    def agree(self) -> None:
        agree(folders(os.environ).state, trust_question(str(self.folder)), "trust")

    def begin(self) -> None:
        self.keeper.begin(self.upstream)

    async def connect(self) -> None:
        self.begin()
        await self.kept.until_state("Connected")

    async def watch(self) -> None:
        """The user agrees, the server is connected, and its code is watched."""
        self.agree()
        await self.connect()
        await self.update()

    async def reconfigure(self, hot_reload: str) -> None:
        """The user edits the config, and agrees."""
        self.config(hot_reload)
        self.agree()
        await self.update()

    async def update(self) -> None:
        """Until what follows from it is done."""
        self.reloader.update()
        async with asyncio.timeout(10):
            await asyncio.gather(*self.reloader._tasks._running)

    async def check(self) -> CheckResult:
        assert self.reloader._own is not None
        return await self.reloader._own.check(lambda _: None)

    @property
    def lists_status(self) -> bool:
        return f'"{STATUS}"'.encode() in self.kept.state.lists.tools


class Hosts(ScriptedUpstream):
    """Takes the place of the Hosts that would be launched."""

    sources: int | None = None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(DATA_HOME, str(tmp_path / "data"))
    return tmp_path / "workspace"


@asynccontextmanager
async def world_in(folder: Path, *outcomes: Any) -> AsyncIterator[World]:
    world = World(folder, *outcomes)
    try:
        yield world
    finally:
        await world.reloader.close()
        await world.keeper.close()


async def test_a_save_after_the_launch_is_news_also_where_the_user_has_just_agreed(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.update()
        world.agree()
        world.upstream.gate.clear()

        world.begin()
        await until(lambda: world.upstream.starts)
        world.save("2")
        world.upstream.gate.set()
        await world.kept.until_state("Connected")
        await world.update()

        assert (await world.check()).restart_due


async def test_what_was_launched_is_no_news(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()

        assert not (await world.check()).server_changed


@pytest.mark.parametrize("saved", [True, False])
async def test_a_save_during_the_start_of_a_host_is_news(
    folder: Path, monkeypatch: pytest.MonkeyPatch, saved: bool
) -> None:
    monkeypatch.setattr(module, "HostUpstream", Hosts)
    monkeypatch.setattr(module, "HostProcess", ScriptedRunning)
    addin = folder / ".devtools" / "addins" / "greeter.py"
    async with world_in(folder) as world:
        write(addin, "VALUE = 1\n")
        world.agree()
        world.upstream = hosts = Hosts(ScriptedRunning(Lists()))
        hosts.sources = sources_key(str(folder))
        hosts.gate.clear()

        world.begin()
        await until(lambda: hosts.starts)
        if saved:
            write(addin, "VALUE = 22\n")
        hosts.gate.set()
        await world.kept.until_state("Connected")
        await world.update()

        assert (await world.check()).restart_due is saved


async def test_a_reload_that_is_asked_for_while_the_running_code_is_determined_comes_after_that(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a Host whose add-in was saved while it started
    monkeypatch.setattr(module, "HostUpstream", Hosts)
    monkeypatch.setattr(module, "HostProcess", ScriptedRunning)
    compares, may_compare = threading.Event(), threading.Event()

    def compare(workspace: str) -> int:
        compares.set()
        may_compare.wait(30)
        return sources_key(workspace)

    monkeypatch.setattr(module, "sources_key", compare)
    addin = folder / ".devtools" / "addins" / "greeter.py"
    async with world_in(folder) as world:
        write(addin, "VALUE = 1\n")
        world.agree()
        world.upstream = hosts = Hosts(ScriptedRunning(Lists()), ScriptedRunning(Lists()))
        hosts.sources = sources_key(str(folder))
        await world.connect()
        write(addin, "VALUE = 22\n")
        world.reloader.update()
        await until(compares.is_set)
        assert world.reloader._own is not None
        check, early = world.reloader._own.check, []

        def noted_check(*arguments: Any) -> Coroutine[Any, Any, CheckResult]:
            early.append(not may_compare.is_set())
            return check(*arguments)

        monkeypatch.setattr(world.reloader._own, "check", noted_check)

        # when it is found to lack that add-in
        assert world.reloader.reload()
        await turns()
        may_compare.set()

        # then it is started again
        await until(lambda: world.kept.facts.reloads == 1)
        assert not any(early)


async def test_a_change_is_still_due_when_the_config_was_edited_behind_it(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        before = world.forwarding.queue

        world.save("2")
        await world.reconfigure('{"restartDelay": 5}')

        assert world.forwarding.queue not in (before, None)
        assert (await world.check()).restart_due


async def test_the_history_of_reloads_survives_an_edited_config_and_a_pause(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        world.save("2")
        await world.check()
        before = world.reloader.status()

        await world.reconfigure('{"enabled": false}')
        off = world.reloader.status()
        await world.reconfigure('{"restartDelay": 5}')
        after = world.reloader.status()

        assert off is None
        assert before is not None
        assert after is not None
        assert (before["checks"], before["lastCheck"]) == (after["checks"], after["lastCheck"])
        assert after["checks"] == 1


async def test_without_agreement_nobody_is_asked_and_no_status_is_offered_that_an_earlier_proxy_had(
    folder: Path,
) -> None:
    async with world_in(folder) as world:
        world.kept.publisher.adapt(hot_reload=True)

        await world.connect()
        await world.update()

        assert world.forwarding.queue is None
        assert not world.lists_status


async def test_the_status_is_offered_where_code_is_reloaded_and_no_more_when_the_config_says_no(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        offered = world.lists_status

        await world.reconfigure('{"enabled": false}')

        assert offered
        assert world.forwarding.queue is None
        assert not world.lists_status


async def test_a_server_that_did_not_start_before_anybody_watched_is_built(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = real_npm(tmp_path / "bin")
    async with world_in(folder, NO_SERVER) as world:
        (folder / "server" / "main.py").unlink()
        project = Project(folder / "server", programs)
        monkeypatch.setenv("PATH", project.environ["PATH"])
        world.begin()
        await world.kept.until_state("Degraded")

        world.agree()
        await world.update()

        assert (await world.check()).restart_due


async def test_calls_go_on_after_a_restart_by_the_owner_that_brings_us_no_server(folder: Path) -> None:
    async with world_in(folder, NO_SERVER) as world:
        world.agree()
        world.begin()
        await world.kept.until_state("Degraded")
        await world.update()

        await world.reloader._restart_announced()
        paused = not await settled(world.forwarding.queue, 0)
        world.reloader._restarted(RestartResult(True))

        assert paused
        assert await settled(world.forwarding.queue, 0)


async def test_what_cannot_be_arranged_leaves_nothing_behind_and_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world_in(folder) as world:
        await world.connect()
        world.agree()
        with monkeypatch.context() as broken:
            broken.setattr(ControlServer, "open", _out_of_order)
            await world.update()
        nobody = world.forwarding.queue is None and world.reloader._own is None

        await world.update()

        assert nobody
        assert world.forwarding.queue is not None


async def test_others_hear_of_a_restart_that_breaks_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world_in(folder) as world:
        await world.watch()
        monkeypatch.setattr(Restarter, "renew", _out_of_order)
        heard: asyncio.Future[RestartResult] = asyncio.get_running_loop().create_future()
        path = world.kept.facts.control_channel
        guest = RemoteAuthority(path, _nothing, heard.set_result)

        world.save("2")
        due = (await guest.check(lambda _: None)).restart_due
        assert world.reloader._own is not None
        outcome = await world.reloader._own.ready_to_restart()
        async with asyncio.timeout(10):
            told = await heard
        await guest.close()

        assert due
        assert not outcome.ok
        assert not told.ok
        assert await settled(world.forwarding.queue, 0)


async def test_a_config_that_counts_other_files_makes_none_of_them_newer(folder: Path) -> None:
    async with world_in(folder) as world:
        write(folder / "server" / "other.py", "")
        await world.watch()

        await world.reconfigure('{"exclude": ["other.py"]}')

        assert not (await world.check()).server_changed


async def test_an_edit_is_still_due_when_a_config_that_counts_other_files_follows_it(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        world.save("2")

        await world.reconfigure('{"include": ["*.txt"]}')

        assert (await world.check()).restart_due


async def test_a_config_that_counts_other_files_follows_the_restart_that_is_under_way(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        world.save("2")
        assert (await world.check()).restart_due
        own = world.reloader._own
        assert own is not None
        restarting = asyncio.ensure_future(own.ready_to_restart())
        await until(lambda: own.restarting)
        world.config('{"include": ["*.txt"]}')
        world.agree()
        await world.reloader.update()
        meanwhile, was_over = world.reloader._own, restarting.done()  # a quick restart may be over by now

        outcome = await restarting

        assert meanwhile is own or was_over
        assert outcome.ok, outcome
        await until(lambda: world.reloader._own not in (None, own))
        assert not (await world.check()).restart_due


async def test_a_call_that_was_held_is_run_when_the_config_says_that_nothing_is_reloaded(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        await world.forwarding.queue.pause(hold=True)
        held = asyncio.ensure_future(world.forwarding.queue.run(tool_call(), _done))

        await world.reconfigure('{"enabled": false}')

        assert await asyncio.wait_for(held, 10) == {"content": []}


async def test_a_restart_that_others_ask_for_waits_for_the_call_that_runs_and_holds_no_later_one(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        queue, own, ending = world.forwarding.queue, world.reloader._own, asyncio.Event()
        assert own is not None

        async def execute(_: RunningCalls) -> Result:
            await ending.wait()
            return {"content": []}

        running = asyncio.ensure_future(queue.run(tool_call(), execute))
        await until(lambda: queue._running.count)
        world.save("2")
        assert (await world.check()).restart_due
        restarting = asyncio.ensure_future(own.ready_to_restart())
        await until(lambda: queue.awaits)
        starts = world.upstream.starts
        ending.set()
        outcome = await restarting

        assert starts == 1
        assert await running == {"content": []}
        assert outcome.ok
        assert world.upstream.starts == 2
        first = await queue.run(tool_call(), _done)
        assert "in memory is gone" in str(first), "the queue hears of restarts that others ask for"
        assert await queue.run(tool_call(), _done) == {"content": []}


@pytest.mark.parametrize("well", [True, False])
async def test_calls_wait_for_our_own_connection_only_where_the_owners_restart_went_well(
    folder: Path, well: bool
) -> None:
    async with world_in(folder) as world:
        world.agree()
        world.upstream.gate.clear()
        world.begin()
        await until(lambda: world.upstream.starts)
        await world.update()

        await world.reloader._restart_announced()
        world.reloader._restarted(RestartResult(well))

        assert await settled(world.forwarding.queue, 0) is not well
        world.upstream.gate.set()


async def test_the_end_of_a_host_is_no_crash_also_where_it_is_noticed_after_its_owners_restart(folder: Path) -> None:
    async with world_in(folder) as world:
        owner = RemoteAuthority("", _nothing, lambda _result: None)
        world.reloader._remote = owner
        before = world.reloader.ends_on_purpose()

        owner._heard(RpcNotification(messages.RESTARTED, {"ok": True}))

        assert not before
        assert world.reloader.ends_on_purpose()


async def _nothing() -> None:
    pass


async def _done(_: RunningCalls) -> Result:
    return {"content": []}


async def _out_of_order(*_: object) -> Any:
    raise RuntimeError("out of order")


async def test_who_asks_on_the_control_channel_has_the_inspector_opened(folder: Path) -> None:
    async with world_in(folder) as world:
        await world.watch()
        path = world.kept.state.facts.control_channel
        assert path is not None
        client = await Client.connect(path)

        assert await client.result("openInspector", {"port": 7000}) == {"url": "http://localhost:7000/"}
        code, message = await client.error("openInspector", {"port": 0})

    assert code == -32001
    assert message.startswith("No port is free. Start the proxy with another port")
