"""Launches of apps, announced over HTTP, by the IDE or by the app, and matched with the app that connects."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from support.assemblies import MVID, TARGET_PLATFORM, assembly
from support.golden import GOLDEN
from support.waiting import until
from uno_devserver.host import app_launches as module
from uno_devserver.host import routes as routes_module
from uno_devserver.host.app_launches import LaunchKey, LaunchMonitor, guid, register_message, timeout_from
from uno_devserver.host.assemblies import Assembly, assembly_reads, read_assembly
from uno_devserver.host.remote_control.frames import Members
from uno_devserver.host.routes import announce_launch
from uno_devserver.protocol.http.messages import Request
from uno_devserver.protocol.http.server import HttpServer, open_sockets
from uno_devserver.system.event_loop import WorkQueue

OTHER = "11111111-2222-3333-4444-555555555555"
KEY = LaunchKey(MVID, "Desktop", True)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def monitor(clock: Clock) -> Iterator[LaunchMonitor]:
    monitor = LaunchMonitor(clock=clock)
    yield monitor
    monitor.close()


def on(platform: str, mvid: str = MVID) -> LaunchKey:
    return LaunchKey(mvid, platform, False)


def states(monitor: LaunchMonitor) -> list[object]:
    return [launch["state"] for launch in monitor.snapshot()]


async def test_a_connection_is_matched_with_its_launch(monitor: LaunchMonitor, clock: Clock) -> None:
    monitor.register(KEY, "vscode", "1.0")
    clock.now += 2.5
    assert monitor.connected(KEY) is True

    (launch,) = monitor.snapshot()
    assert str(launch.pop("launchedAt")).endswith("Z")
    assert launch == {
        "mvid": MVID,
        "platform": "Desktop",
        "isDebug": True,
        "ide": "vscode",
        "plugin": "1.0",
        "state": "Connected",
        "connectedAfterSeconds": 2.5,
    }


@pytest.mark.parametrize(
    "other", [(OTHER, "Desktop", True), (MVID, "desktop", True), (MVID, "Desktop", False), (MVID, None, True)]
)
async def test_another_app_platform_or_debugger_is_no_match(
    monitor: LaunchMonitor, other: tuple[str, str | None, bool]
) -> None:
    monitor.register(KEY, "vscode", "1.0")

    assert monitor.connected(LaunchKey.of(*other)) is False
    assert states(monitor) == ["Waiting"]


async def test_no_platform_is_the_platform_unspecified(monitor: LaunchMonitor) -> None:
    monitor.register(LaunchKey.of(MVID, None, False), None, None)

    assert [monitor.snapshot()[0][field] for field in ("platform", "ide", "plugin")] == [
        "Unspecified", "Unknown", "Unknown",
    ]  # fmt: skip
    assert monitor.connected(on("Unspecified")) is True


async def test_of_equal_launches_the_oldest_comes_first(monitor: LaunchMonitor) -> None:
    for ide in ("first", "second"):
        monitor.register(KEY, ide, "1")
    monitor.connected(KEY)
    assert [(launch["ide"], launch["state"]) for launch in monitor.snapshot()] == [
        ("second", "Waiting"),
        ("first", "Connected"),
    ]
    assert monitor.connected(KEY) is True
    assert states(monitor) == ["Connected", "Connected"]
    assert monitor.connected(KEY) is False


async def test_an_app_that_connects_again_counts_as_the_newest_and_replaces_no_other(monitor: LaunchMonitor) -> None:
    for number in (*range(module.MAX_KEPT), 1):
        monitor.connected(on(f"P{number}"))
    monitor.register(on("P0"), "x", "1")
    assert states(monitor) == ["Connected"]

    for number in (1000, 1001):  # one takes the place of P0, the other that of the oldest, which is P2 now
        monitor.connected(on(f"P{number}"))
    for number in (1, 2):
        monitor.register(on(f"P{number}"), "x", "1")
    assert states(monitor) == ["Waiting", "Connected", "Connected"]


async def test_an_app_may_connect_before_its_launch_is_announced(monitor: LaunchMonitor, clock: Clock) -> None:
    assert monitor.connected(KEY) is False
    clock.now += 1.5
    monitor.register(KEY, "vscode", "1")
    assert monitor.snapshot()[0]["connectedAfterSeconds"] == -1.5

    monitor.register(KEY, "vscode", "1")
    assert states(monitor) == ["Waiting", "Connected"]


async def test_launches_are_forgotten_after_half_an_hour_and_connections_after_an_hour(
    monitor: LaunchMonitor, clock: Clock
) -> None:
    monitor.register(KEY, "vscode", "1")
    clock.now += 30 * 60 - 1
    assert states(monitor) == ["Waiting"]
    clock.now += 2
    assert states(monitor) == []

    assert monitor.connected(KEY) is False
    clock.now += 60 * 60 + 1
    monitor.register(KEY, "vscode", "1")
    assert states(monitor) == ["Waiting"]


async def test_memory_is_bounded(monitor: LaunchMonitor) -> None:
    newest = f"P{3 * module.MAX_KEPT - 1}"
    for number in range(3 * module.MAX_KEPT):
        monitor.connected(on(f"P{number}", OTHER))
        monitor.register(on(f"P{number}"), "x", "1")
    assert len(monitor.snapshot()) == module.MAX_KEPT
    assert monitor.snapshot()[0]["platform"] == newest

    for platform in ("P0", newest):  # the connection of P0 is forgotten
        monitor.register(on(platform, OTHER), "x", "1")
    assert states(monitor)[:2] == ["Connected", "Waiting"]


async def test_of_long_names_the_beginning_is_kept(monitor: LaunchMonitor) -> None:
    key = LaunchKey.of(MVID, "p" * 60_000, False)

    monitor.register(key, "i" * 60_000, "g" * 60_000)

    kept = monitor.snapshot()[0]
    assert [len(str(kept[name])) for name in ("platform", "ide", "plugin")] == [200, 200, 200]
    assert monitor.connected(LaunchKey.of(MVID, "p" * 60_000, False))


async def test_an_app_that_does_not_connect_in_time_is_reported_and_may_connect_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    monitor = LaunchMonitor(timeout_seconds=0.01)
    monitor.register(KEY, "vscode", "1")
    await until(lambda: states(monitor) == ["TimedOut"])

    assert monitor.connected(KEY) is True
    assert states(monitor) == ["Connected"]
    assert f"has not connected: {MVID} on Desktop, with a debugger" in capsys.readouterr().err


async def test_an_app_that_has_connected_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = LaunchMonitor(timeout_seconds=0.01)
    monitor.register(KEY, "vscode", "1")
    monitor.connected(KEY)
    monitor.register(on("Any", OTHER), "vscode", "1")  # its alarm goes off later than that of the first would
    await until(lambda: "TimedOut" in states(monitor))

    assert states(monitor) == ["TimedOut", "Connected"]
    assert MVID not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, 60), ({module.TIMEOUT_VARIABLE: " 90 "}, 90), ({module.TIMEOUT_VARIABLE: ""}, 60)]
)
def test_the_timeout_is_read_from_the_environment(given: dict[str, str], seconds: float) -> None:
    assert timeout_from(given) == seconds


@pytest.mark.parametrize("given", ["soon", "-1", "0", "nan", "inf", "1e9"])
def test_an_impossible_timeout_is_warned_of(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert timeout_from({module.TIMEOUT_VARIABLE: given}) == 60
    assert f"UNO_DEVSERVER_APPLAUNCH_TIMEOUT is '{given}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", [MVID, MVID.upper(), MVID.replace("-", ""), MVID.replace("-", "").upper(), f"{{{MVID}}}", f"({MVID})"]
)
def test_every_usual_form_of_a_guid_is_read(text: str) -> None:
    assert guid(text) == MVID


@pytest.mark.parametrize(
    "text", ["", "not-a-guid", MVID[:-1], MVID + "0", "{" + MVID, MVID.replace("-", "", 1), f"{MVID}\n"]
)
def test_what_is_no_guid_is_none(text: str) -> None:
    assert guid(text) is None


async def test_a_launch_in_a_message_of_the_ide_is_registered(monitor: LaunchMonitor) -> None:
    body = {"Mvid": MVID, "Platform": "Desktop", "isDebug": True, "Ide": "vscode", "Plugin": "1"}

    assert register_message(Members(body), monitor) is True
    assert register_message(Members({**body, "Mvid": "x"}), monitor) is False
    assert register_message(Members({"Mvid": MVID}), monitor) is False
    assert len(monitor.snapshot()) == 1
    assert monitor.connected(KEY)


# --- over HTTP

Reply = tuple[int, dict[str, str], str]


@asynccontextmanager
async def routes(
    monitor: LaunchMonitor, reads: WorkQueue | None = None
) -> AsyncIterator[Callable[..., Coroutine[Any, Any, Reply]]]:
    queue = reads or assembly_reads()
    server = HttpServer(lambda request: announce_launch(request, monitor, queue), open_sockets(0))
    await server.start()

    async def get(target: str, method: str = "GET") -> Reply:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
        head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
        writer.close()
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(status.split()[1]), headers, body.decode()

    try:
        yield get
    finally:
        await server.stop(grace_seconds=0.1)
        monitor.close()


async def ask(*targets: str) -> tuple[list[Reply], list[dict[str, object]]]:
    """The answers to these requests, and the launches that are known then."""
    monitor = LaunchMonitor()
    async with routes(monitor) as get:
        return [await get(target) for target in targets], monitor.snapshot()


RECORDED = {
    record["name"]: record
    for record in json.loads((GOLDEN / "host" / "http" / "with-addin.json").read_text("utf-8"))
    if "/applaunch" in record["name"]
}
# Ours says why where the .NET Host sends an empty body, and takes the plain path.
EMPTY_IN_DOTNET = {"GET /applaunch bad bool", "GET /applaunch/asm empty"}
WORKS_HERE = {"GET /applaunch/asm existing assembly, plain path"}


@pytest.mark.parametrize("name", RECORDED)
async def test_recorded_requests_get_the_recorded_answers(name: str, tmp_path: Path) -> None:
    places = {"CACHE": str(tmp_path / "cache"), "ADDINS": str(tmp_path / "addins")}
    sample = tmp_path / "cache" / "sample.addin" / "1.0.0" / "tools" / "devserver" / "Sample.AddIn.dll"
    broken = tmp_path / "addins" / "NotDotNet" / "NotDotNet.dll"
    mvid = "9c99979b-6ea1-4610-8914-0ee6ad08f09a"
    for file, content in ((sample, assembly(mvid=mvid)), (broken, b"not dotnet")):
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    line = RECORDED[name]["request"].split("\r\n")[0]
    for placeholder, place in places.items():
        line = line.replace(f"{{{placeholder}}}", place)
        line = line.replace(f"{{{placeholder} as %2F...}}", place.replace("/", "%2F"))
    method, target, _ = line.split(" ")

    async with routes(LaunchMonitor()) as get:
        status, headers, body = await get(target, method)

    head, expected = RECORDED[name]["responseHead"], RECORDED[name]["responseBody"]
    if name in WORKS_HERE:
        assert (status, json.loads(body)["mvid"]) == (200, mvid)
        return
    assert status == int(head.split(" ")[1])
    assert body if name in EMPTY_IN_DOTNET else body == expected
    for header in ("Content-Type: application/json", "Allow: GET"):
        if header in head:
            assert headers[header.split(":")[0].lower()] == header.split(": ")[1]


@pytest.mark.parametrize("folder", ["plain", "with space", "příliš", "plus+sign", "hash#percent%41"])
async def test_an_assembly_is_found_however_its_path_is_written(folder: str, tmp_path: Path) -> None:
    app = tmp_path / folder / "App.dll"
    app.parent.mkdir()
    app.write_bytes(assembly([(TARGET_PLATFORM, "Desktop1.0")]))
    encoded = [quote(str(app), safe=""), quote_plus(str(app)), quote(str(app)).removeprefix("/"), quote(str(app))]

    replies, known = await ask(*(f"/applaunch/asm/{path}?ide=vscode&plugin=1&IsDebug=TRUE" for path in encoded))

    assert [(status, json.loads(body)) for status, _, body in replies] == [
        (200, {"mvid": MVID, "targetFramework": "Desktop1.0"})
    ] * 4
    assert [(launch["platform"], launch["isDebug"], launch["ide"]) for launch in known] == [
        ("Desktop1.0", True, "vscode")
    ] * 4


async def test_a_file_name_that_is_no_text_is_found(tmp_path: Path) -> None:
    app = bytes(tmp_path) + b"/caf\xe9.dll"
    with open(app, "wb") as stream:
        stream.write(assembly())

    replies, _ = await ask("/applaunch/asm/" + app.decode("latin-1").replace("/", "%2F").replace("é", "%E9"))

    assert replies[0][0] == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/applaunch/asm/%00", 400),
        ("/applaunch/asm/%2Fdev%2Fzero", 400),
        ("/applaunch/asm/%2Ftmp", 400),
        ("/applaunch/asm/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 400),
        ("/applaunch/asm", 400),
        ("/applaunch/asm/", 400),
        ("/applaunch/", 404),
        (f"/applaunch/{MVID}/more", 404),
        (f"/AppLaunch/{MVID}/", 200),
        (f"/applaunch/%7B{MVID}%7D", 200),
        (f"/applaunch/({MVID})", 200),
        ("/applaunch/%FF", 404),
        (f"/applaunch/{MVID}?" + "&".join(f"a{n}=1" for n in range(200)), 400),
        (f"/applaunch/{MVID}?isDebug=&platform=%FF", 200),
        (f"/applaunch/{MVID}?isDebug=1", 400),
    ],
)
async def test_odd_requests_get_a_plain_answer(target: str, status: int) -> None:
    replies, known = await ask(target)

    assert replies[0][0] == status
    assert len(known) == (status == 200)
    if status == 400:
        assert replies[0][2].endswith(".")


@pytest.mark.parametrize(("path", "status"), [(MVID, 405), ("asm", 405), ("none", 404), (f"{MVID}/more", 404)])
async def test_another_method_is_refused_where_there_is_something(path: str, status: int) -> None:
    request = Request("POST", f"/applaunch/{path}", "", {}, b"")

    assert (await announce_launch(request, LaunchMonitor(), assembly_reads())).status == status


async def test_a_repeated_value_of_the_query_counts_with_all_its_values() -> None:
    replies, (launch,) = await ask(f"/applaunch/{MVID}?platform=Desktop&Platform=Other&ide=vs")

    assert json.loads(replies[0][2])["targetPlatform"] == launch["platform"] == "Desktop,Other"


async def test_a_platform_is_answered_as_it_was_asked_and_escaped() -> None:
    replies, known = await ask(f"/applaunch/{MVID}?platform=net10.0%2Bx%22&isDebug=true&ide=vscode&plugin=1")

    assert replies[0][2] == f'{{"mvid":"{MVID}","targetPlatform":"net10.0\\u002Bx\\u0022"}}'
    assert known[0]["platform"] == 'net10.0+x"'


async def test_launches_that_come_while_too_many_assemblies_are_read_are_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: a disk that does not answer
    app = tmp_path / "App.dll"
    app.write_bytes(assembly())
    disk_is_back = threading.Event()
    reading: list[str] = []

    def hang(path: str) -> Assembly:
        reading.append(path)
        disk_is_back.wait(30)
        return Assembly(MVID, "1.0.0.0", None, ())

    monkeypatch.setattr(routes_module, "read_assembly", hang)
    target = f"/applaunch/asm/{quote(str(app), safe='')}"

    async with routes(LaunchMonitor(), WorkQueue(30, most_waiting=2, most_hanging=8)) as get:
        # when
        first = asyncio.create_task(get(target))
        await until(lambda: bool(reading))
        others = [asyncio.create_task(get(target)) for _ in range(5)]
        await until(lambda: sum(task.done() for task in others) == 3)
        refused = [task.result() for task in others if task.done()]
        disk_is_back.set()
        read = [await first, *[await task for task in others]]

    # then
    assert [(status, headers["retry-after"]) for status, headers, _ in refused] == [(503, "1")] * 3
    assert all("try again" in body for _, _, body in refused)
    assert sorted(status for status, _, _ in read) == [200, 200, 200, 503, 503, 503]


async def test_a_disk_that_does_not_answer_is_given_up_and_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, here = tmp_path / "lost.dll", tmp_path / "here.dll"
    for path in (lost, here):
        path.write_bytes(assembly())
    disk_is_back = threading.Event()

    def hang(path: str) -> Assembly:
        if path == str(lost):
            disk_is_back.wait(30)
        return read_assembly(path)

    monkeypatch.setattr(routes_module, "read_assembly", hang)

    async with routes(LaunchMonitor(), assembly_reads(0.2)) as get:
        replies = [await get(f"/applaunch/asm/{quote(str(path), safe='')}") for path in (lost, here)]
        disk_is_back.set()

    assert [status for status, _, _ in replies] == [503, 200]
    assert "does not answer" in replies[0][2]
