"""The add-ins of a Host together: who wins a name, how they start and stop, and what is known of them meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.addins import AddInFolder, health_of, text_of
from support.waiting import until
from uno_devserver.host.addins.invocation import THREADS
from uno_devserver.host.addins.manager import AddInLimits
from uno_devserver.host.addins.testing import Client


def state(addins: AddInFolder) -> set[str]:
    return {path.name for path in addins.folder.iterdir() if not path.suffix}


async def test_the_first_add_in_keeps_a_name_and_the_second_is_reported(addins: AddInFolder) -> None:
    first = addins.register("first.py", 'addin.tool(name="same")(lambda: "first")')
    second = addins.register(
        "second.py", 'addin.tool(name="same")(lambda: "second")\naddin.tool(name="other")(lambda: "other")'
    )

    async with addins.serve(first, second) as client:
        said = [text_of(await client.call(name)) for name in ("same", "other")]
        tools = await client.tools()
        well, refused = client.addins.status.addins
        health = await health_of(client)

    assert said == ["first", "other"]
    assert list(tools) == ["uno_health", "same", "other"]
    assert well.error is None
    assert refused.loaded
    assert refused.error == f"the tool 'same' is refused: add-in {first} offers it already"
    assert health["status"] == "Degraded"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('addin.tool(name="uno_health")(lambda: "lie")', "the tool 'uno_health'"),
        ('addin.resource("uno://health")(lambda: "lie")', "the resource 'uno://health'"),
        ('addin.processor("HotReload")(lambda name, content, app: None)', "the processor 'HotReload'"),
    ],
)
async def test_what_the_host_offers_itself_cannot_be_taken(addins: AddInFolder, line: str, what: str) -> None:
    async with addins.serve_register(line) as client:
        (status,) = client.addins.status.addins
        health = await health_of(client)

    assert status.error == f"{what} is refused: the Host offers it already"
    assert health["hostVersion"] == "1"


async def test_a_name_is_free_again_when_its_add_in_failed(addins: AddInFolder) -> None:
    first = addins.register("first.py", 'addin.tool(name="same")(lambda: "first")\nraise ValueError')
    second = addins.register("second.py", 'addin.tool(name="same")(lambda: "second")')

    async with addins.serve(first, second) as client:
        assert text_of(await client.call("same")) == "second"
        assert client.addins.status.addins[1].error is None


async def test_an_add_in_that_was_left_out_neither_takes_names_nor_gives_away_those_of_others(
    addins: AddInFolder,
) -> None:
    body = """
    import pathlib, time
    addin.tool(name="same")(lambda: "first")
    while not pathlib.Path(addin.workspace, "go").exists():
        try:
            time.sleep(0.01)
        except SystemExit:
            pass
    addin.remove_tool("same")
    addin.tool(name="fresh")(lambda: "first")
    pathlib.Path(addin.workspace, "went").touch()
    """
    first = addins.register("first.py", body)
    second = addins.register("second.py", 'addin.tool(name="same")(lambda: "second")')
    third = """
    @addin.tool
    def more() -> None:
        addin.tool(name="same")(lambda: "third")
        addin.tool(name="fresh")(lambda: "third")
    """
    async with addins.serve(first, second, addins.register("third.py", third), limits=AddInLimits(load=1.0)) as client:
        (addins.folder / "go").touch()
        await until((addins.folder / "went").exists)
        await client.call("more")
        said = [text_of(await client.call(name)) for name in ("same", "fresh")]
        statuses = client.addins.status.addins

    assert said == ["second", "third"]
    assert statuses[2].error == f"the tool 'same' is refused: add-in {second} offers it already"


LIFE = """
import asyncio, pathlib
def mark(name): pathlib.Path(addin.workspace, name).touch()

@addin.on_start
def begin(): mark("begun")

@addin.on_start
async def begin_too(): mark("begun-too")

@addin.background
async def tick():
    mark("ticking")
    try:
        await asyncio.sleep(60)
    finally:
        mark("cancelled")

@addin.on_stop
def end(): mark("ended")
"""


async def test_an_add_in_is_started_and_stopped(addins: AddInFolder) -> None:
    async with addins.serve_register(LIFE):
        await until((addins.folder / "ticking").exists)
        running = state(addins)

    assert running == {"begun", "begun-too", "ticking"}
    assert state(addins) == running | {"cancelled", "ended"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("@addin.on_start\ndef begin(): raise OSError('no disk')", "its start failed: OSError: no disk ("),
        ("@addin.on_start\nasync def begin(): raise OSError('no disk')", "its start failed: OSError: no disk ("),
        (
            "@addin.on_start\ndef begin(): raise TimeoutError('no answer')",
            "its start failed: TimeoutError: no answer (",
        ),
        ("@addin.on_start\ndef begin(): exit(3)", "its start failed: SystemExit: 3"),
        (
            "import asyncio\n@addin.on_start\nasync def begin(): await asyncio.sleep(60)",
            "its start failed: it took more than 1 s",
        ),
    ],
)
async def test_an_add_in_that_does_not_start_is_left_out(addins: AddInFolder, body: str, reason: str) -> None:
    bad = addins.register("bad.py", "addin.tool(name='bad')(lambda: 1)\n" + body)
    good = addins.register("good.py", "addin.tool(name='good')(lambda: 1)")

    async with addins.serve(bad, good, limits=AddInLimits(start=1)) as client:
        tools = await client.tools()
        health = await health_of(client)

    assert list(tools) == ["uno_health", "good"]
    assert health["status"] == "Degraded"
    assert health["addIns"][0]["loaded"] is False
    assert health["addIns"][0]["error"].startswith(reason)


async def test_a_background_task_that_fails_is_reported_and_the_tools_stay(addins: AddInFolder) -> None:
    body = """
    addin.tool(name="still")(lambda: "here")

    @addin.background
    async def watch():
        raise OSError("too many files")
    """
    async with addins.serve_register(body) as client:
        await until(lambda: client.addins.status.addins[0].error)
        said = await client.call("still")
        health = await health_of(client)

    assert text_of(said) == "here"
    assert health["status"] == "Degraded"
    assert health["addIns"][0]["loaded"] is True
    assert health["addIns"][0]["error"].startswith("a background task failed: OSError: too many files (")


@pytest.mark.parametrize(
    "body",
    [
        "@addin.on_stop\ndef end(): raise ValueError",
        "@addin.on_stop\ndef end():\n    import time\n    time.sleep(60)",
        "import asyncio\n@addin.on_stop\nasync def end(): await asyncio.sleep(60)",
        """
        import asyncio, pathlib

        @addin.background
        async def stay():
            while not pathlib.Path(addin.workspace, "released").exists():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    pass
        """,
    ],
)
async def test_nothing_keeps_the_host_from_stopping(addins: AddInFolder, body: str) -> None:
    async with starting(addins, body, limits=AddInLimits(stop=0.3)) as (client, start):
        await start
        began = time.monotonic()
        await client.addins.stop()

    assert time.monotonic() - began < 5
    (addins.folder / "released").touch()


async def test_an_add_in_may_say_how_it_is(addins: AddInFolder) -> None:
    body = """
    answers = iter(["3 files", ValueError("no files"), "4 files"])

    @addin.health
    def health():
        answer = next(answers)
        if isinstance(answer, Exception): raise answer
        return answer
    """
    async with addins.serve_register(body) as client:
        reports = [await health_of(client) for _ in range(3)]

    assert [(report["status"], report["addIns"][0]["detail"]) for report in reports] == [
        ("Healthy", "3 files"),
        ("Degraded", "3 files"),
        ("Healthy", "4 files"),
    ]
    assert reports[1]["addIns"][0]["error"] == "its health check failed: ValueError: no files"


async def test_a_health_check_that_hangs_does_not_hold_up_the_report(addins: AddInFolder) -> None:
    body = "import threading\n@addin.health\ndef health(): threading.Event().wait(60)"

    async with addins.serve_register(body, limits=AddInLimits(health=0.2)) as client:
        report = await health_of(client)

    assert report["addIns"][0]["error"] == "its health check failed: no answer within 0.2 s"


async def test_a_health_check_that_hangs_is_not_asked_again_until_it_has_answered(addins: AddInFolder) -> None:
    body = """
    import pathlib, time
    asked, go = [], pathlib.Path(addin.workspace, "go")

    @addin.health
    def health():
        asked.append(1)
        while not go.exists():
            time.sleep(0.005)
        return f"asked {len(asked)} times"
    """
    async with addins.serve_register(body, limits=AddInLimits(health=0.05)) as client:
        for _ in range(3):
            assert (await health_of(client))["status"] == "Degraded"
        (addins.folder / "go").touch()
        while (report := await health_of(client))["status"] != "Healthy":
            pass

    assert report["addIns"][0]["detail"] in ("asked 1 times", "asked 2 times")


async def test_tools_that_hold_all_threads_hide_neither_health_nor_stop(addins: AddInFolder) -> None:
    body = """
    import pathlib, threading
    held, go = [], threading.Event()

    @addin.tool
    def hold() -> None:
        held.append(1)
        go.wait(60)

    @addin.health
    def health(): return str(len(held))

    @addin.on_stop
    def end():
        go.set()
        pathlib.Path(addin.workspace, "ended").touch()
    """
    async with addins.serve_register(body, limits=AddInLimits(health=30)) as client:
        calls = [asyncio.create_task(client.call("hold")) for _ in range(THREADS + 1)]
        details = [""]
        while details[-1] != str(THREADS):
            report = await health_of(client)
            assert report["status"] == "Healthy"
            details.append(report["addIns"][0]["detail"])

    assert "ended" in state(addins)
    await asyncio.gather(*calls)


async def test_an_add_in_knows_its_workspace_and_the_settings_the_host_does_not_know(addins: AddInFolder) -> None:
    body = """
    @addin.tool
    def facts() -> list[str | None]:
        return [addin.name, addin.workspace, addin.solution, addin.setting("My-Flag"), addin.setting("other")]
    """
    async with addins.serve_register(body, solution="/w/App.slnx", settings={"my-flag": "on"}) as client:
        facts = text_of(await client.call("facts"))

    assert json.loads(facts) == ["sample", str(addins.folder), "/w/App.slnx", "on", None]


SLOW = """
import pathlib, time
go = pathlib.Path(addin.workspace, "go")
while not go.exists():
    time.sleep(0.01)
addin.tool(name="slow")(lambda: "here")
"""


@asynccontextmanager
async def starting(
    addins: AddInFolder, *sources: str, discovery_error: str | None = None, **options: Any
) -> AsyncIterator[tuple[Client, asyncio.Task[None]]]:
    """A client of add-ins that are still loading, and the task that starts them."""
    client = Client(workspace=str(addins.folder), **options)
    paths = [addins.register(f"slow{number}.py", source) for number, source in enumerate(sources)]
    client.addins.load(paths, discovery_error)
    start = asyncio.create_task(client.addins.start())
    await asyncio.sleep(0)
    yield client, start
    await client.addins.stop()


async def test_a_list_waits_for_add_ins_that_are_still_loading(addins: AddInFolder) -> None:
    async with starting(addins, SLOW) as (client, start):
        listing = asyncio.create_task(client.tools())
        calling = asyncio.create_task(client.call("slow"))
        health = await health_of(client)
        (addins.folder / "go").touch()
        await start

        assert (health["status"], health["loading"]) == ("Healthy", True)
        assert health["addIns"][0]["loaded"] is False
        assert list(await listing) == ["uno_health", "slow"]
        assert text_of(await calling) == "here"
        assert client.announced == []


async def test_a_list_that_cannot_wait_longer_is_followed_by_the_news(addins: AddInFolder) -> None:
    async with starting(addins, SLOW, limits=AddInLimits(ready=0.1)) as (client, start):
        early = await client.tools()
        (addins.folder / "go").touch()
        await start
        late = await client.tools()

    assert (list(early), list(late)) == (["uno_health"], ["uno_health", "slow"])
    assert [method for method, _ in client.announced] == [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    ]


async def test_a_host_that_stops_while_add_ins_load_starts_none_of_them(addins: AddInFolder) -> None:
    source = SLOW + "addin.on_start(lambda: (go.parent / 'begun').touch())\n"
    async with starting(addins, source) as (client, start):
        await client.addins.stop()
        (addins.folder / "go").touch()
        await start

    assert "begun" not in state(addins)


@pytest.mark.parametrize(("error", "status"), [(None, "Healthy"), ("no target frameworks", "Degraded")])
async def test_no_add_ins_are_ready_at_once_and_a_failed_discovery_degrades_the_host(
    addins: AddInFolder, error: str | None, status: str
) -> None:
    async with starting(addins, discovery_error=error) as (client, start):
        await start

        health = await health_of(client)
        assert list(await client.tools()) == ["uno_health"]
        assert (health["addIns"], health["status"], health["discoveryError"]) == ([], status, error)
