"""What becomes of decisions about the workspace, with real folders and a scripted Host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.conversations import timers
from support.files import write
from support.machine import DATA_HOME
from support.relays import ScriptedSession
from support.upstreams import Kept, Lists, ScriptedRunning, ScriptedUpstream
from support.waiting import until
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.probe import HostAddIn, Probe
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.service import Params, Result
from uno_devserver.proxy.announcements import Announcements
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyFacts, UpstreamFacts
from uno_devserver.proxy.upstream.configured_command import ConfiguredUpstream
from uno_devserver.proxy.upstream.host_launch import HostUpstream
from uno_devserver.proxy.workspace import controller as module
from uno_devserver.proxy.workspace.client_roots import ask_roots, can_be_asked
from uno_devserver.proxy.workspace.controller import (
    DEFAULT_LIMITS,
    WorkspaceController,
    WorkspaceLimits,
    effective_config,
    is_outdated,
)
from uno_devserver.proxy.workspace.decisions import Transition, WorkspaceDecisions
from uno_devserver.workspace.config import AS_BEFORE, Config, ServerCommand, read_config
from uno_devserver.workspace.resolver import resolve


class Hosts(ScriptedUpstream):
    """Takes the place of the Hosts that would be launched."""

    named = "The Host"
    trusted: bool | None = None
    refusal = "the user has not agreed to it"
    sources: int | None = 0
    issues = ()


class World:
    """A proxy in a folder, from the moment that its engine's loop begins."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        limits: WorkspaceLimits,
        **options: Any,
    ) -> None:
        self.options = ProxyOptions(str(folder), **options)
        self.served: list[str] = []  # for each start that was asked for, its workspace
        self.host = ScriptedRunning(Lists())
        self.hosts = Hosts(self.host)
        monkeypatch.setattr(module, "HostUpstream", Hosts)
        monkeypatch.setattr(module, "workspace_upstream", self._host_for)
        monkeypatch.setenv(DATA_HOME, str(folder.parent / "data"))
        self.looks = 0
        decisions = WorkspaceDecisions(self.options)
        first = decisions.initial()
        begins = first.transition is Transition.START
        self.kept = Kept(folder.parent, self.hosts, self.options, begins=begins)
        self.forwarding = SimpleNamespace(waits=False, limit_silence=lambda seconds: None)
        self.controller = self.kept.workspace = WorkspaceController(
            self.options,
            decisions,
            time.time(),
            "channel",
            keeper=self.kept.keeper,
            state=self.kept.state,
            publisher=self.kept.publisher,
            forwarding=self.forwarding,  # type: ignore[arg-type]
            announcements=self.kept.announcements,
            changed=self._changed,
            reload_code=lambda: False,
            limits=limits,
        )
        self.controller.begin()

    @property
    def tools(self) -> str:
        return self.kept.state.lists.tools.decode()

    def _changed(self) -> None:
        self.looks += 1

    def _host_for(self, _: ProxyOptions, workspace: Any, channel_name: str) -> Hosts:
        self.served.append(workspace.working_directory)
        return self.hosts


Serve = Callable[..., World]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Makes a `World` in a folder; it is closed when the test ends."""
    worlds: list[World] = []

    def make(folder: Path, limits: WorkspaceLimits = DEFAULT_LIMITS, **options: Any) -> World:
        worlds.append(World(folder, monkeypatch, limits, **options))
        return worlds[-1]

    yield make
    for world in worlds:
        world.controller.close()


def workspace_at(folder: Path) -> Path:
    (folder / ".devtools" / "addins").mkdir(parents=True)
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder that is no workspace."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def client(**capabilities: Any) -> ScriptedSession:
    return ScriptedSession(**capabilities)


class Rooted(ScriptedSession):
    """A client with roots; without any it never answers."""

    def __init__(self, *folders: Path) -> None:
        super().__init__(roots={})
        self._roots = [{"uri": folder.as_uri()} for folder in folders]

    async def ask(self, method: str, params: Params) -> Result:
        assert method == "roots/list"
        if not self._roots:
            await asyncio.Event().wait()
        return {"roots": self._roots}


async def test_without_a_workspace_and_without_roots_it_is_degraded_and_asks_to_be_told(
    empty: Path, serve: Serve
) -> None:
    world = serve(empty)
    assert world.kept.keeper.state.value == "Initializing", "the client may have roots"

    world.controller.met(ScriptedSession())

    assert world.kept.keeper.state.value == "Degraded"
    assert world.kept.keeper.fallback
    assert "uno_app_initialize" in world.tools


async def test_a_client_that_never_says_who_it_is_does_not_keep_it_from_being_told(empty: Path, serve: Serve) -> None:
    world = serve(empty, WorkspaceLimits(greeting_seconds=0.01))

    await until(lambda: world.kept.keeper.fallback)


async def test_the_clients_roots_are_asked_for_and_what_they_name_is_served(
    empty: Path, tmp_path: Path, serve: Serve
) -> None:
    world = serve(empty)
    there = workspace_at(tmp_path / "there")

    world.controller.met(Rooted(there))
    assert not world.kept.keeper.fallback, "the answer is waited for"

    await world.kept.until_state("Connected")
    assert world.served == [str(there)]


async def test_a_new_question_for_the_roots_replaces_the_one_that_waits(
    empty: Path, tmp_path: Path, serve: Serve
) -> None:
    world = serve(empty)
    there = workspace_at(tmp_path / "there")
    world.controller.met(Rooted())
    first = world.controller._asking
    await asyncio.sleep(0)  # it waits by now

    world.controller.met(Rooted(there))

    await world.kept.until_state("Connected")
    assert first is not None
    assert first.cancelled()
    assert world.served == [str(there)]


async def test_a_client_that_never_names_its_roots_is_given_up(empty: Path, serve: Serve) -> None:
    world = serve(empty, WorkspaceLimits(roots_seconds=0.01))

    world.controller.met(Rooted())
    assert not world.kept.keeper.fallback

    await until(lambda: world.kept.keeper.fallback)


async def test_at_the_end_nobody_is_asked_for_roots_any_more(empty: Path, serve: Serve) -> None:
    world = serve(empty)
    world.controller.met(Rooted())
    asking = world.controller._asking
    await asyncio.sleep(0)

    world.controller.close()

    assert asking is not None
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_client_that_does_not_answer_delays_nobody(tmp_path: Path, serve: Serve) -> None:
    world = serve(workspace_at(tmp_path / "ws"))

    world.controller.met(Rooted())

    assert await world.kept.keeper.until_connected(5)


async def test_initialize_starts_the_workspace_it_names_and_waits_for_it(
    empty: Path, tmp_path: Path, serve: Serve
) -> None:
    world = serve(empty, force_fallback=True)
    there = workspace_at(tmp_path / "there")
    assert world.kept.keeper.fallback is True
    assert not await asyncio.wait_for(world.kept.keeper.until_connected(60), 5), "waiting is no use before"

    told = await world.kept.keeper.set_workspace(str(there), None)

    assert (told["status"], told["toolCount"]) == ("ready", 1)
    assert world.served == [str(there)]
    assert world.kept.facts.fallback is False


async def test_an_agent_that_names_the_workspace_twice_at_once_has_it_started_once(
    empty: Path, tmp_path: Path, serve: Serve
) -> None:
    world = serve(empty, force_fallback=True)
    there = workspace_at(tmp_path / "there")

    told = await asyncio.gather(*(world.kept.keeper.set_workspace(str(there), None) for _ in range(2)))

    assert [one["status"] for one in told] == ["ready", "ready"]
    assert (world.served, world.host.stops) == ([str(there)], 0)


async def test_a_folder_that_becomes_a_workspace_is_served_by_itself(empty: Path, serve: Serve) -> None:
    world = serve(empty)
    world.controller.met(ScriptedSession())
    workspace_at(empty)

    world.controller._changed()

    await world.kept.until_state("Connected")
    assert world.served == [str(empty)]


async def test_a_workspace_that_goes_takes_its_host_with_it(tmp_path: Path, serve: Serve) -> None:
    folder = workspace_at(tmp_path / "ws")
    world = serve(folder)
    assert await world.kept.keeper.until_connected(5)
    (folder / ".devtools" / "addins").rmdir()

    world.controller._changed()

    await world.kept.until_state("Degraded")
    await until(lambda: world.host.stops == 1)
    assert world.kept.facts.upstream is None


async def test_a_saved_file_is_a_reason_to_try_again_what_did_not_work(tmp_path: Path, serve: Serve) -> None:
    world = serve(workspace_at(tmp_path / "ws"))
    assert await world.kept.keeper.until_connected(5)
    world.kept.keeper.carry_out(world.kept.lifecycle.halt("It does not work."))
    assert world.kept.keeper.state.value == "Degraded"

    world.controller._changed()

    await world.kept.until_state("Connected")


async def test_a_project_that_is_added_while_a_dotnet_host_is_connected_gets_its_port(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundled Host does it itself."""
    folder = tmp_path / "ws"
    write(folder / "global.json", '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
    write(folder / "App.slnx", "<Solution />")

    monkeypatch.setattr(module, "HostProcess", ScriptedRunning)
    monkeypatch.setattr(ScriptedRunning, "left_out", None, raising=False)
    monkeypatch.setattr(ScriptedRunning, "port", 4321, raising=False)
    world = serve(folder)
    world.host.kind = HostKind.DOTNET
    assert await world.kept.keeper.until_connected(5)

    write(folder / "New" / "New.csproj", '<Project Sdk="Uno.Sdk" />')
    write(folder / "App.slnx", '<Solution><Project Path="New/New.csproj" /></Solution>')
    world.controller._changed()

    await until((folder / "New" / "New.csproj.user").is_file)
    assert ">4321#<" in (folder / "New" / "New.csproj.user").read_text("utf-8-sig")
    assert world.kept.keeper.generation == 1, "it was not restarted for that"


async def test_when_the_user_agrees_the_host_is_started_again_with_the_workspaces_code(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = serve(workspace_at(tmp_path / "ws"))
    world.hosts.trusted = False
    assert await world.kept.keeper.until_connected(5)
    assert world.kept.facts.trusted is False
    monkeypatch.setenv("UNO_DEVSERVER_TRUST", "1")

    world.controller._changed()

    await until(lambda: world.kept.keeper.generation == 2)


async def test_whoever_needs_the_host_makes_us_look_for_the_users_agreement_at_once(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = serve(workspace_at(tmp_path / "ws"))
    world.hosts.trusted = False
    assert await world.kept.keeper.until_connected(5)
    await world.kept.keeper.reconsider()
    assert world.served == [], "nothing has changed"
    monkeypatch.setenv("UNO_DEVSERVER_TRUST", "1")
    world.hosts.gate.clear()

    await asyncio.gather(world.kept.keeper.reconsider(), world.kept.keeper.reconsider())

    assert world.served == [str(tmp_path / "ws")]
    world.hosts.gate.set()


async def test_an_agreement_that_comes_when_the_workspace_has_gone_starts_nothing(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace_at(tmp_path / "ws")
    world = serve(folder)
    world.hosts.trusted = False
    assert await world.kept.keeper.until_connected(5)
    (folder / ".devtools" / "addins").rmdir()
    world.controller._changed()
    await world.kept.until_state("Degraded")
    monkeypatch.setenv("UNO_DEVSERVER_TRUST", "1")

    await world.kept.keeper.reconsider()

    assert world.kept.facts.trusted is None
    assert world.served == []


async def test_what_the_config_says_counts_and_what_is_wrong_with_it_is_told(tmp_path: Path, serve: Serve) -> None:
    folder = workspace_at(tmp_path / "ws")
    config = folder / ".devtools" / "host.config.jsonc"
    config.write_text('{"proxy": {"waitCalls": true}}', "utf-8")
    world = serve(folder)
    world.controller.met(ScriptedSession())
    assert world.forwarding.waits
    assert world.kept.facts.wait_calls

    config.write_text('{"proxy": {"waitCalls": "perhaps"}}', "utf-8")
    world.controller._changed()

    await until(lambda: world.kept.facts.issues)
    assert [issue.code for issue in world.kept.facts.issues] == ["ConfigInvalid"]
    assert not world.forwarding.waits


async def test_decisions_are_carried_out_one_after_the_other(tmp_path: Path, serve: Serve) -> None:
    one, two = workspace_at(tmp_path / "one"), workspace_at(tmp_path / "two")
    world = serve(one)

    results = await asyncio.gather(
        *(world.kept.keeper.set_workspace(str(folder), None) for folder in (two, one, two)),
    )

    assert [result["status"] for result in results] == ["ready"] * 3
    assert world.served == [str(two), str(one), str(two)]


async def test_a_call_that_is_cancelled_has_its_decision_carried_out_all_the_same(tmp_path: Path, serve: Serve) -> None:
    one, two = workspace_at(tmp_path / "one"), workspace_at(tmp_path / "two")
    world = serve(one)
    call = asyncio.ensure_future(world.kept.keeper.set_workspace(str(two), None))
    await asyncio.sleep(0)  # it is being decided

    call.cancel()

    await until(lambda: world.served == [str(two)])


@pytest.mark.parametrize("uno", [True, False])
async def test_the_tool_that_selects_a_solution_is_listed_in_an_uno_workspace(
    tmp_path: Path, serve: Serve, uno: bool
) -> None:
    folder = workspace_at(tmp_path / "ws")
    write(folder / "App.sln", "")
    if uno:
        write(folder / "global.json", '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
    world = serve(folder)
    first = world.tools

    assert await world.kept.keeper.until_connected(5)

    assert ('"uno_app_select_solution"' in world.tools) is uno
    assert ('"uno_app_select_solution"' in first) is uno, "a glance at the folder told it"
    assert world.kept.state.uno_workspace is uno
    assert "uno_app_select_solution" in world.kept.state.own_tools, "it can be called all the same"


async def test_what_a_folder_without_a_workspace_will_be_is_not_known(tmp_path: Path, serve: Serve) -> None:
    folder = workspace_at(tmp_path / "ws")
    world = serve(folder)
    assert await world.kept.keeper.until_connected(5)
    assert not world.kept.state.uno_workspace

    (folder / ".devtools" / "addins").rmdir()
    world.controller._changed()

    await until(lambda: world.kept.state.uno_workspace)


async def test_who_depends_on_the_workspace_hears_each_time_that_it_was_looked_at(tmp_path: Path, serve: Serve) -> None:
    world = serve(workspace_at(tmp_path / "ws"))
    assert await world.kept.keeper.until_connected(5)

    world.controller._changed()

    await until(lambda: world.looks == 1)
    assert world.kept.state.workspace == world.controller.workspace


# --- saved files


BROKEN = Probe(add_ins=(HostAddIn("a", None, None, loaded=False, error="it is wrong"),))
WELL = Probe(add_ins=(HostAddIn("a", None, None, loaded=True, error=None),))
LAUNCHED, EDITED = 1, 2  # keys of the add-ins' files


class Upstream:
    sources: int | None = LAUNCHED


class RepairWorld:
    """A controller beside a keeper in a given state, which counts what is asked of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, state: ConnectionState, **facts: Any) -> None:
        monkeypatch.setattr(module, "HostUpstream", Upstream)
        monkeypatch.setattr(module, "workspace_upstream", lambda *_: Upstream())
        self.restarts = self.looks = self.wishes = self.reloads = 0
        self.watched = False  # whether somebody watches the code
        self.rest = 0.0
        self.upstream = Upstream()
        keeper: Any = SimpleNamespace(
            state=state,
            upstream=self.upstream,
            running=None,
            retry_due_in=lambda: self.rest,
            wanted=lambda: self._count("wishes"),
            begin=lambda _: self._count("restarts"),
        )
        owned = UpstreamFacts(owned=facts.pop("owned", True))
        options = ProxyOptions(str(folder))
        known: Any = SimpleNamespace(facts=ProxyFacts(options, upstream=owned, **facts))
        unused: Any = None
        decisions = WorkspaceDecisions(options)
        self.controller = WorkspaceController(
            options,
            decisions,
            time.time(),
            "channel",
            keeper=keeper,
            state=known,
            publisher=unused,
            forwarding=unused,
            announcements=Announcements(lambda *_: None),
            changed=lambda: None,
            reload_code=self._reload,
            limits=WorkspaceLimits(greeting_seconds=600),
        )
        self.controller._no_client.cancel()
        monkeypatch.setattr(self.controller, "_changed", lambda: self._count("looks"))

    @property
    def done(self) -> tuple[int, int, int]:
        """Restarts, wishes, and looks to come."""
        return self.restarts, self.wishes, self.looks

    def _reload(self) -> bool:
        self.reloads += self.watched
        return self.watched

    def _count(self, what: str) -> None:
        setattr(self, what, getattr(self, what) + 1)


async def test_a_host_that_runs_is_not_started_again_with_code_that_the_user_has_not_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = RepairWorld(tmp_path, monkeypatch, ConnectionState.CONNECTED, host=BROKEN)

    world.controller._repair(EDITED, trusted=False)

    assert world.restarts == 0


@pytest.mark.parametrize(
    ("facts", "sources", "restarts"),
    [
        ({"host": BROKEN}, EDITED, 1),
        ({"left_out": ("a",)}, EDITED, 1),
        ({"host": BROKEN}, LAUNCHED, 0),  # touched, or another file
        ({"host": WELL}, EDITED, 0),
        ({}, EDITED, 0),
        ({"host": BROKEN, "owned": False}, EDITED, 0),
    ],
)
async def test_a_host_that_runs_is_only_started_again_for_an_add_in_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], sources: int, restarts: int
) -> None:
    world = RepairWorld(tmp_path, monkeypatch, ConnectionState.CONNECTED, **facts)

    world.controller._repair(sources, trusted=True)

    assert world.done == (restarts, 0, 0)


async def test_where_somebody_watches_the_code_one_save_is_one_restart_of_theirs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = RepairWorld(tmp_path, monkeypatch, ConnectionState.CONNECTED, host=BROKEN)
    world.watched = True

    world.controller._repair(EDITED, trusted=True)

    assert world.done == (0, 0, 0)
    assert world.reloads == 1


@pytest.mark.parametrize("sources", [LAUNCHED, EDITED])
async def test_where_nothing_works_any_file_is_worth_an_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: int
) -> None:
    world = RepairWorld(tmp_path, monkeypatch, ConnectionState.DEGRADED)

    world.controller._repair(sources, trusted=True)

    assert world.done == (0, 1, 0)


@pytest.mark.parametrize("state", [ConnectionState.CONNECTED, ConnectionState.DEGRADED, ConnectionState.LAUNCHING])
async def test_what_is_saved_too_early_is_remembered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: ConnectionState
) -> None:
    world = RepairWorld(tmp_path, monkeypatch, state, host=BROKEN)
    world.rest = 0.01
    before = timers()

    world.controller._repair(EDITED, trusted=True)
    world.controller._repair(EDITED, trusted=True)

    assert world.done == (0, 0, 0)
    assert timers() == before + 1
    await until(lambda: world.looks == 1)


async def test_at_the_end_nothing_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = RepairWorld(tmp_path, monkeypatch, ConnectionState.DEGRADED)
    world.rest = 60.0
    before = timers()
    world.controller._repair(EDITED, trusted=True)
    assert timers() == before + 1

    world.controller.close()

    assert timers() == before


@pytest.mark.parametrize(("known", "wishes"), [(LAUNCHED, 1), (0, 0), (None, 0)])
async def test_what_was_saved_during_a_start_is_noticed_when_it_is_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: int | None, wishes: int
) -> None:
    world = RepairWorld(tmp_path, monkeypatch, ConnectionState.DEGRADED)
    world.upstream.sources = known  # and the folder, which has no add-ins, has the key 0

    await world.controller.ask_host()

    assert world.wishes == wishes


# --- which files count


HOST = Config("/ws/.devtools/host.config.jsonc")
FIRST = HOST.replace(server=ServerCommand("first"))
UNREADABLE = HOST.replace(readable=False)


@pytest.mark.parametrize(
    ("before", "trusted", "now", "outdated"),
    [
        (FIRST, True, FIRST, False),
        (FIRST, True, FIRST.replace(wait_calls=True), False),  # which needs no other server
        (FIRST, True, FIRST.replace(server=ServerCommand("second")), True),
        (FIRST, True, FIRST.replace(server=ServerCommand("first", env_file="/ws/.env")), True),
        (FIRST, True, FIRST.replace(server=ServerCommand("first", build=(), silence_timeout_ms=1)), False),
        (FIRST, True, FIRST.replace(server_root="/ws/other"), True),
        (FIRST, True, HOST, True),
        (FIRST, True, UNREADABLE, False),
        (None, None, FIRST, False),  # before its first start
        (None, None, HOST, True),
        (FIRST, False, FIRST, True),  # what was not agreed to is always outdated
        (FIRST, False, UNREADABLE, True),
    ],
)
def test_a_server_of_the_config_is_outdated_when_that_names_another(
    tmp_path: Path, before: Config | None, trusted: bool | None, now: Config, outdated: bool
) -> None:
    upstream = ConfiguredUpstream(resolve(str(tmp_path)), {})
    upstream.config, upstream.trusted = before, trusted

    assert is_outdated(upstream, now) is outdated


@pytest.mark.parametrize(("now", "outdated"), [(HOST, False), (FIRST, True), (UNREADABLE, False)])
def test_a_host_is_outdated_when_the_config_names_a_server(tmp_path: Path, now: Config, outdated: bool) -> None:
    host = HostUpstream(resolve(str(tmp_path)), {})

    assert is_outdated(host, now) is outdated


def test_a_config_that_is_just_being_written_changes_no_setting(tmp_path: Path) -> None:
    # given
    path = write(tmp_path / ".devtools" / "host.config.jsonc", '{"proxy": {"waitCalls": true}}')
    before = read_config(str(path))
    assert before.wait_calls

    # when
    write(path, '{"proxy": {"waitCalls": tr')
    kept = effective_config(before, read_config(str(path)))

    # then
    assert kept.wait_calls
    assert [issue.remediation for issue in kept.issues] == [AS_BEFORE]


def test_a_config_in_another_place_counts_whether_it_can_be_read_or_not(tmp_path: Path) -> None:
    path = write(tmp_path / ".devtools" / "host.config.jsonc", "{")
    now = read_config(str(path))

    assert effective_config(FIRST.replace(wait_calls=True), now) is now


# --- who has roots ---------------------------------------------------------------------------------------------------


def _client(capabilities: dict[str, Any], version: str = "2025-06-18") -> ClientInfo:
    return ClientInfo("client", "1", capabilities, version)


ANSWER = {"roots": [{"uri": "file:///a", "name": "a root"}]}


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"roots": {"listChanged": True}}, True),
        ({"roots": {"listChanged": False}}, True),
        ({"roots": {}}, True),
        ({}, False),
        ({"roots": None}, False),
        ({"sampling": {}}, False),
    ],
)
def test_a_client_has_roots_if_it_declares_them_even_without_details(
    capabilities: dict[str, Any], expected: bool
) -> None:
    assert can_be_asked(_client(capabilities)) is expected


@pytest.mark.parametrize(("version", "expected"), [("2024-11-05", True), ("2025-11-25", True), ("2026-07-28", False)])
def test_only_a_client_of_the_handshake_era_can_be_asked_outside_a_call(version: str, expected: bool) -> None:
    assert can_be_asked(_client({"roots": {}}, version)) is expected
    assert not can_be_asked(_client({}, version))


# --- asking ----------------------------------------------------------------------------------------------------------


class _Session:
    """A client as the inquiry sees it; `reply` is its answer, an error, or None: it never answers."""

    def __init__(self, reply: object) -> None:
        self.client = _client({"roots": {}})
        self.asked: list[str] = []
        self._reply = reply

    def notify(self, method: str, params: object = None) -> None:
        raise AssertionError("nobody is notified")

    async def ask(self, method: str, params: object) -> Any:
        self.asked.append(method)
        if self._reply is None:
            await asyncio.Event().wait()
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


@pytest.mark.parametrize(
    ("reply", "taken", "logged"),
    [
        (ANSWER, ANSWER, ""),
        (None, None, "did not answer roots/list within 0.01 s"),
        (RpcError(-32601, "Method not found"), None, "did not name them: Method not found"),
    ],
    ids=["it answers", "it never answers", "it refuses"],
)
def test_the_answer_of_a_client_is_taken_and_a_missing_one_is_logged(
    capsys: pytest.CaptureFixture[str], reply: object, taken: object, logged: str
) -> None:
    session = _Session(reply)

    assert asyncio.run(ask_roots(session, 10.0 if reply else 0.01)) == taken

    assert session.asked == ["roots/list"]
    assert logged in capsys.readouterr().err
