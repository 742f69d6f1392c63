"""What a page hears of a proxy: all of it once somebody looks, and nothing is done for it before and after."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.files import snapshot
from support.machine import DATA_HOME
from support.relays import Scene, tool_call
from support.servers import Processes, Registry
from support.virtual_time import virtual
from support.waiting import until
from uno_devserver import __version__
from uno_devserver.inspector.feed import MAX_WAITING, Feed
from uno_devserver.protocol.http.messages import Streaming
from uno_devserver.protocol.http.sse import EventReader
from uno_devserver.proxy.inspection import page_events as module
from uno_devserver.proxy.inspection.call_recorder import REMEMBERED, CallRecorder
from uno_devserver.proxy.inspection.log_feed import LogFeed
from uno_devserver.proxy.inspection.page_events import PageEvents, machine_servers
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyState, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.system.folders import Folders, folders, folders_on
from uno_devserver.system.log import DEBUG, NONE, log
from uno_devserver.system.processes import process_started
from uno_devserver.workspace.resolver import resolve

LINGER_SECONDS = 0.05
PARTS = (PageEvents, LogFeed, CallRecorder, Feed)


class Page:
    """Somebody who looks, and reads whatever comes unless told to wait."""

    def __init__(self, events: PageEvents) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self._reader = EventReader()
        answer = events.feed.answer()
        assert isinstance(answer, Streaming)
        self._task = asyncio.ensure_future(answer.run(self))

    async def write(self, data: bytes) -> None:
        await self.reads.wait()
        self.heard += [(event.name, json.loads(event.data)) for event in self._reader.feed(data)]

    def all(self, name: str) -> list[Any]:
        return [data for event, data in self.heard if event == name]

    async def hears(self, name: str, accept: Callable[[Any], object] = lambda _: True) -> Any:
        await until(lambda: any(accept(data) for data in self.all(name)))
        return next(data for data in self.all(name) if accept(data))

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = ProxyState(ProxyOptions(str(folder)))
        self.scene = Scene()
        self.scene.link.answers = lambda asked: asked.answer({"content": [{"type": "text", "text": "yes"}]})
        self.events = PageEvents(self.state, self.scene.service, linger_seconds=LINGER_SECONDS)

    async def open_page(self) -> Page:
        """A page that has its snapshot."""
        page = Page(self.events)
        await page.hears("snapshot")
        return page

    async def snapshot(self) -> Any:
        return (await self.open_page()).all("snapshot")[0]

    def is_idle(self) -> bool:
        """Nothing is done for pages, and nothing will be by itself."""
        loop = asyncio.get_running_loop()
        timers = [handle._callback for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        ours = [timer for timer in timers if isinstance(getattr(timer, "__self__", None), PARTS)]
        tasks = [task for task in asyncio.all_tasks() if "PageEvents." in str(task.get_coro())]
        followed = self.scene.service.forwarding.observer is not None or bool(self.state._listeners)
        return not followed and log.tap_level == NONE and not ours and not tasks


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_HOME, str(tmp_path / "data"))


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    made = World(folder)
    try:
        yield made
    finally:
        made.events.close()
        made.events.feed.close()
        made.state.close()


# --- code


class EditingItself:
    """The queue of a server that writes one of its sources with each start."""

    def __init__(self) -> None:
        self.knows_news = True
        self.started: list[float] = []

    def check_ahead(self) -> None:
        self.started.append(asyncio.get_running_loop().time())


@virtual
async def test_a_server_that_edits_itself_is_started_ever_more_seldom_until_it_is_called_or_left_alone(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        queue, loop = EditingItself(), asyncio.get_running_loop()
        made.scene.service.forwarding.queue = queue  # type: ignore[assignment]
        following = asyncio.ensure_future(made.events._follow_code())

        await asyncio.sleep(300.2)
        pauses = [round(later - start, 1) for start, later in pairwise(queue.started)]
        assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]

        made.events._calls.begin("tools/call", "echo", tool_call().session.client, {})
        await asyncio.sleep(1)
        assert loop.time() - queue.started[-1] <= 1, "after a call"

        queue.knows_news = False
        await asyncio.sleep(61)
        queue.knows_news, edited = True, loop.time()
        await asyncio.sleep(2)
        assert len([start for start in queue.started if start > edited]) == 2, "after a quiet minute"
        following.cancel()


# --- the snapshot


async def test_a_page_hears_first_how_everything_is(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        log.info("before anybody looked")

        snapshot = await made.snapshot()

    assert (snapshot["version"], snapshot["processId"]) == (__version__, os.getpid())
    assert (snapshot["directory"], snapshot["solution"], snapshot["name"]) == (str(tmp_path), None, "The Host")
    assert snapshot["home"] == str(Path.home())
    assert {"uno_health", "mcpStatus", "mcpRestart"} <= set(snapshot["ownTools"])
    assert snapshot["startedAt"] < snapshot["now"] <= time.time()
    assert snapshot["health"]["proxy"]["state"] == "Initializing"
    assert snapshot["log"][-1]["text"] == "before anybody looked"
    assert (snapshot["calls"], snapshot["servers"], snapshot["proxies"]) == ([], [], [])


async def test_a_workspace_is_named_with_its_solution(tmp_path: Path) -> None:
    (tmp_path / ".devtools" / "addins").mkdir(parents=True)
    workspace = resolve(str(tmp_path))
    async with world(tmp_path) as made:
        made.state.workspace = workspace

        snapshot = await made.snapshot()

    assert (snapshot["directory"], snapshot["solution"]) == (workspace.working_directory, workspace.solution)


async def test_a_second_page_sees_the_calls_that_the_first_saw(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.snapshot()
        await made.scene.start(tool_call())

        snapshot = await made.snapshot()

    assert [(call["name"], call["state"]) for call in snapshot["calls"]] == [("echo", "done")]


async def test_a_disk_that_does_not_answer_keeps_no_page_from_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> dict[str, object]:
        raise OSError("the disk is gone")

    monkeypatch.setattr(module, "machine_servers", fails)
    async with world(tmp_path) as made:
        snapshot = await made.snapshot()

    assert (snapshot["servers"], snapshot["proxies"]) == ([], [])


async def test_a_disk_that_hangs_is_asked_once_and_told_of_when_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = [], threading.Event()

    def hangs(*_: object) -> dict[str, object]:
        asked.append(1)
        answers.wait(10)
        return {"servers": [], "proxies": ["one"]}

    monkeypatch.setattr(module, "machine_servers", hangs)
    monkeypatch.setattr(module, "DISK_SECONDS", 0.01)
    monkeypatch.setattr(module, "SERVERS_SECONDS", 0.01)
    async with world(tmp_path) as made:
        pages = [Page(made.events) for _ in range(3)]
        for page in pages:
            assert (await page.hears("snapshot"))["proxies"] == []
        await until(lambda: bool(asked))  # the thread may begin later than the pages wait
        assert len(asked) == 1, "each is a thread that hangs"

        answers.set()
        assert (await pages[0].hears("servers"))["proxies"] == ["one"]


# --- what changes


async def test_calls_are_told_while_somebody_looks(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        page = await made.open_page()

        await made.scene.start(tool_call())

        call = await page.hears("call")
        assert (call["state"], call["outcome"]) == ("done", "yes")


async def test_many_changes_of_the_state_are_few_reports_and_the_last_is_the_truth(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        page = await made.open_page()

        for number in range(500):
            made.state.learn(restarts=number)
            await asyncio.sleep(0)
        made.state.learn(state=ConnectionState.CONNECTED)

        await page.hears("health", lambda report: report["proxy"]["state"] == "Connected")
        assert len(page.all("health")) < 50
        assert page.all("health")[-1]["proxy"]["restarts"] == 499


async def test_log_lines_are_told_with_the_detailed_ones(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        page = await made.open_page()

        log.debug("in detail")

        lines = await page.hears("log", lambda lines: any(line["text"] == "in detail" for line in lines))
        assert {line["source"] for line in lines} == {"proxy"}


async def test_what_the_server_prints_is_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OUTPUT_SECONDS", 0.01)
    file = tmp_path / "host.log"
    file.write_text("info: it begins\n", "utf-8")
    async with world(tmp_path) as made:
        page = await made.open_page()

        made.state.learn(upstream=UpstreamFacts(log_file=str(file)))
        [first] = await page.hears("log", lambda lines: lines[0]["source"] == "server")
        with file.open("a", encoding="utf-8") as stream:
            stream.write("fail: it breaks\n")
        [second] = await page.hears("log", lambda lines: lines[0]["text"] == "it breaks")

        assert (first["level"], first["text"]) == ("Information", "it begins")
        assert (second["level"], second["source"]) == ("Error", "server")
        again = Page(made.events)
        assert len([line for line in (await again.hears("snapshot"))["log"] if line["source"] == "server"]) == 2


async def test_the_last_words_of_a_server_are_told_once_when_the_next_has_taken_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OUTPUT_SECONDS", 0.01)
    file, other = tmp_path / "host.log", tmp_path / "other"

    def prints(text: str) -> None:
        """As a server of its own, into a new file."""
        other.write_text(text, "utf-8")
        other.replace(file)

    async with world(tmp_path) as made:
        page = await made.open_page()
        prints("one\n")
        first = UpstreamFacts(log_file=str(file), process_id=1)
        made.state.learn(upstream=first)
        await page.hears("log", _ends_with("one"))

        made.state.learn(upstream=first.replace(process_id=None), last_end=Ending("it ended", 1, ("two", "three")))
        with file.open("a", encoding="utf-8") as stream:
            stream.write("two\n")
        await page.hears("log", _ends_with("two"))
        prints("next\n")
        await page.hears("log", _ends_with("next"))
        made.state.learn(upstream=first.replace(process_id=2))
        for text in ("runs", "on"):  # the first look may have begun before the server was known
            with file.open("a", encoding="utf-8") as stream:
                stream.write(f"{text}\n")
            await page.hears("log", _ends_with(text))
        prints("a third, after a swap\n")
        await page.hears("log", _ends_with("a third, after a swap"))

        told = [line["text"] for lines in page.all("log") for line in lines if line["source"] == "server"]
        assert told == ["one", "two", "three", "next", "runs", "on", "a third, after a swap"]


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("notifications/tools/list_changed", [{"changed": ["tools"]}]),
        ("notifications/resources/list_changed", [{"changed": ["resources"]}]),
        ("notifications/prompts/list_changed", [{"changed": ["prompts"]}]),
        ("notifications/message", []),
    ],
)
async def test_lists_that_changed_are_to_be_read_again(tmp_path: Path, method: str, told: list[Any]) -> None:
    async with world(tmp_path) as made:
        page = await made.open_page()

        made.events.lists_changed(method)
        made.events.feed.tell("end", {})
        await page.hears("end")

        assert page.all("lists") == told


async def test_servers_that_come_and_go_are_told_and_nothing_where_nothing_changed(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SERVERS_SECONDS", 0.01)
    registry = Registry(Path(folders().registry))
    async with world(tmp_path) as made:
        page = await made.open_page()
        server = processes.start()

        registry.sign_in(server.pid, port=5611)
        [told] = (await page.hears("servers"))["servers"]
        server.kill()
        await page.hears("servers", lambda told: not told["servers"])

        assert (told["processId"], told["port"], told["isInWorkspace"]) == (server.pid, 5611, False)
        assert len(page.all("servers")) == 2, "it was looked at many times"


# --- nobody looks


async def test_nothing_runs_before_somebody_looks_and_a_while_after_the_last_has_gone(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.state.learn(restarts=1)
        await made.scene.start(tool_call())
        assert made.is_idle()

        page = await made.open_page()
        made.state.learn(restarts=2)
        assert not made.is_idle()
        assert log.tap_level == DEBUG
        await page.leave()
        await until(made.is_idle)

        made.state.learn(restarts=3)
        await made.scene.start(tool_call())
        log.info("still kept")
        assert made.is_idle()

        again = await made.snapshot()
        assert "still kept" in [line["text"] for line in again["log"]]
        assert again["calls"] == [], "nobody looked"


async def test_a_page_that_is_loaded_again_misses_no_call(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        page = await made.open_page()
        await page.leave()
        await made.scene.start(tool_call("between"))

        snapshot = await made.snapshot()

        assert [call["name"] for call in snapshot["calls"]] == ["between"]


async def test_after_its_end_nothing_runs_whoever_comes(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        page = await made.open_page()

        made.events.close()
        made.events.feed.close()

        await page.hears("closing")
        await until(made.is_idle)
        assert log.tap is None


async def test_a_page_that_does_not_read_slows_no_call(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        slow, quick = Page(made.events), Page(made.events)
        await asyncio.gather(slow.hears("snapshot"), quick.hears("snapshot"))
        slow.reads.clear()

        for batch in range(MAX_WAITING // REMEMBERED + 2):  # of calls that are told at once, whatever the machine
            for number in range(REMEMBERED):
                await made.scene.start(tool_call(f"tool-{batch}-{number}"))
            await quick.hears("call", _is_of(last := f"tool-{batch}-{REMEMBERED - 1}"))
        slow.reads.set()

        caught_up = await slow.hears("snapshot", lambda snapshot: len(snapshot["calls"]) == REMEMBERED)
        assert caught_up["calls"][-1]["name"] == last


def _is_of(name: str) -> Callable[[Any], bool]:
    return lambda call: bool(call["name"] == name)


def _ends_with(text: str) -> Callable[[Any], bool]:
    return lambda lines: bool(lines[-1]["text"] == text)


# --- the other servers of this machine


def machine_folders(root: Path) -> Folders:
    return folders_on("linux", {"HOME": str(root), "XDG_DATA_HOME": str(root / "data")}, lambda: str(root))


def proxy_file(known: Folders, pid: int, **status: Any) -> None:
    folder = Path(known.state) / "proxies"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"processId": pid, "created": process_started(pid), **status}
    (folder / f"{pid}.json").write_text(json.dumps(document), "utf-8")


def test_on_an_empty_machine_there_are_none(tmp_path: Path) -> None:
    assert machine_servers(machine_folders(tmp_path), None) == {"servers": [], "proxies": []}


def test_hosts_are_told_as_the_command_line_does_and_nothing_is_removed(tmp_path: Path, processes: Processes) -> None:
    known = machine_folders(tmp_path)
    registry = Registry(Path(known.registry))
    workspace = tmp_path / "work"
    (workspace / ".devtools" / "addins").mkdir(parents=True)
    ours, other, dead = processes.start(), processes.start(), processes.start()
    registry.sign_in(ours.pid, port=5611, workspace=workspace)
    registry.sign_in(other.pid, port=5612, solution="/elsewhere/App.sln")
    registry.sign_in(dead.pid, port=5613)
    dead.kill()
    before = snapshot(registry.folder)

    servers: Any = machine_servers(known, resolve(str(workspace)))["servers"]

    by_port = {server.pop("port"): server for server in servers}
    assert set(by_port) == {5611, 5612}
    assert by_port[5611].pop("startTime")
    assert by_port[5611] == {
        "processId": ours.pid,
        "mcpEndpoint": "http://localhost:5611/mcp",
        "solutionPath": None,
        "workspaceDirectory": str(workspace),
        "isInWorkspace": True,
        "hostKind": None,
    }
    assert (by_port[5612]["isInWorkspace"], by_port[5612]["solutionPath"]) == (False, "/elsewhere/App.sln")
    assert snapshot(registry.folder) == before


def test_a_folder_full_of_them_is_not_told_whole(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = machine_folders(tmp_path)
    for port in (5611, 5612):
        process = processes.start()
        Registry(Path(known.registry)).sign_in(process.pid, port=port)
        proxy_file(known, process.pid)
    monkeypatch.setattr(module, "MOST_SERVERS", 1)

    told: Any = machine_servers(known, None)

    assert {name: len(each) for name, each in told.items()} == {"servers": 1, "proxies": 1}


def test_proxies_are_told_with_the_address_of_their_pages_and_which_is_our_own(
    tmp_path: Path, processes: Processes
) -> None:
    known, other = machine_folders(tmp_path), processes.start()
    url, token = "http://localhost:6275/", "t" * 32
    facts = {"state": "Connected", "status": "Healthy", "clients": ["c"], "toolCount": 3}
    proxy_file(known, other.pid, **facts, inspector=url, inspectorToken=token)
    proxy_file(known, os.getpid(), state="Degraded", upstream={"lastLines": ["not shown"]})

    proxies: Any = machine_servers(known, None)["proxies"]

    by_pid = {proxy["processId"]: proxy for proxy in proxies}
    assert by_pid[other.pid] == {
        "processId": other.pid,
        "state": "Connected",
        "status": "Healthy",
        "directory": None,
        "solution": None,
        "clients": ["c"],
        "toolCount": 3,
        "inspector": url,
        "own": False,
    }
    assert by_pid[os.getpid()]["own"] is True
    assert "upstream" not in by_pid[os.getpid()]
