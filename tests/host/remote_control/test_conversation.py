"""The recorded conversation with the .NET Host, held again with ours."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from host.remote_control.apps import AppClient, app_at, remote_control, served
from support.assemblies import assembly
from support.golden import GOLDEN
from uno_devserver.host.app_launches import LaunchMonitor
from uno_devserver.host.remote_control.endpoint import RemoteControl
from uno_devserver.host.remote_control.frames import Frame, encode_frame

Step = dict[str, Any]

RECORD: list[Step] = json.loads((GOLDEN / "host" / "rc" / "conversation.json").read_text("utf-8"))

# Where ours is meant to be different, or the step is no part of this conversation.
NOT_REPLAYED = {
    "upgrade": "every test here begins with one",
    "KeepAlive, other version": "the .NET Host tells its own version; ours is none of Uno's, so it repeats the app's",
    "close 1000": "see the test of the close",
    "upgrade with a foreign Origin": "the .NET Host serves web sites; ours refuses them (tests of the server)",
    "upgrade with subprotocols": "a matter of the server, which chooses none either",
    "two clients: first": "see the test of two apps",
    "two clients: second": "see the test of two apps",
    "idle 35 s: does the server send anything?": "half a minute for what the first step shows in a moment",
    "SIGTERM to the Host while connected": "the .NET Host needs 30 s; ours is timed in the tests of the endpoint",
    "Host exited": "likewise",
}


async def test_the_recorded_conversation_gets_the_same_bytes_in_answer(tmp_path: Path) -> None:
    places = lay_out(tmp_path)
    replayed: list[str] = []

    async with served(remote_control()) as port, app_at(port) as app:
        for step in RECORD:
            if step["step"] not in NOT_REPLAYED:
                await hold(step, app, places)
                replayed.append(step["step"])

    assert len(replayed) == len(RECORD) - len(NOT_REPLAYED) == 32


async def hold(step: Step, app: AppClient, places: dict[str, str]) -> None:
    """Send what was sent, and compare what comes with what came."""
    sent = step.get("sent")
    if "200 kB" in step["step"]:
        await app.socket.send(encode_frame(Frame("Nope", "Big", "x" * 200_000)))
    elif sent and sent["opcode"] == "ping":
        await asyncio.wait_for(await app.socket.ping(base64.b64decode(sent["base64"])), 10)
        return
    elif step["step"] == "fragment 1":
        return  # sent together with the second: the client's interface wants it so
    elif step["step"] == "fragment 2 (continuation)":
        first = next(other for other in RECORD if other["step"] == "fragment 1")
        await app.socket.send([base64.b64decode(part["sent"]["base64"]) for part in (first, step)])
    elif sent:
        data = payload(sent, places)
        await app.socket.send(data.decode() if sent["opcode"] == "text" else data)
    expected = [payload(received, places) for received in step.get("received", [])]
    assert await app.answers() == expected, step["step"]


def payload(message: dict[str, Any], places: dict[str, str]) -> bytes:
    if message["base64"] is not None:
        return base64.b64decode(message["base64"])
    # It held a path of the machine that recorded it.
    decoded = message["decoded"]
    content: str = decoded["content"]
    for placeholder, place in places.items():
        content = content.replace(f"{{{placeholder}}}", place)
    return encode_frame(Frame(decoded["scope"], decoded["name"], content))


def lay_out(tmp_path: Path) -> dict[str, str]:
    """The folders and files that the recorded frames name."""
    places = {name: str(tmp_path / name.lower()) for name in ("DIR", "WORK", "CACHE", "ADDINS")}
    sample = tmp_path / "cache" / "sample.addin" / "1.0.0" / "tools" / "devserver" / "Sample.AddIn.dll"
    broken = tmp_path / "addins" / "NotDotNet" / "NotDotNet.dll"
    for file, content in ((sample, assembly(name="Sample.AddIn")), (broken, b"not dotnet")):
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    (tmp_path / "dir").mkdir()
    return places


async def test_two_apps_have_a_conversation_each() -> None:
    async with served(remote_control()) as port, app_at(port) as first, app_at(port) as second:
        for app, step in ((first, "two clients: first"), (second, "two clients: second")):
            await hold(next(other for other in RECORD if other["step"] == step), app, {})
        assert await first.answers() == []


async def test_a_close_is_answered_where_the_net_host_dropped_the_connection() -> None:
    (received,) = next(step for step in RECORD if step["step"] == "close 1000")["received"]
    assert received["opcode"] == "tcp-closed"

    async with served(remote_control()) as port, app_at(port) as app:
        await app.answers()
        await app.socket.close(1000, "bye")

        assert app.socket.close_code == 1000, "without an answer it would be 1006"


async def test_frames_wait_for_the_ide_as_recorded() -> None:
    record: list[Step] = json.loads((GOLDEN / "host" / "rc" / "while-ide-channel-pending.json").read_text("utf-8"))
    question, answer = record

    class Ide:
        def __init__(self) -> None:
            self.came = asyncio.Event()

        async def ready(self) -> None:
            await self.came.wait()

    ide = Ide()
    async with served(remote_control(ide=ide, ide_wait_seconds=60)) as port, app_at(port) as app:
        # given: the server has the frame, since it answers a later ping
        await app.socket.send(payload(question["sent"], {}))
        await asyncio.wait_for(await app.socket.ping(), 10)
        # when
        ide.came.set()
        # then
        assert await app.answers() == [payload(answer["received"][0], {})]


def test_the_launches_of_the_conversation_are_matched() -> None:
    # given
    names = ("AppLaunch Launched", "AppLaunch Connected (match)", "AppLaunch Connected (no match)")
    steps = [step for step in RECORD if step["step"].startswith("AppLaunch")]
    launches = LaunchMonitor()

    async def converse(control: RemoteControl) -> None:
        async with served(control) as port, app_at(port) as app:
            for step in steps:
                await hold(step, app, {})

    # when
    asyncio.run(converse(remote_control(launches=launches)))

    # then
    assert {step["step"] for step in steps} > set(names)
    (launch,) = launches.snapshot()
    assert (launch["platform"], launch["isDebug"], launch["ide"], launch["state"]) == (
        "Desktop",
        True,
        "vscode",
        "Connected",
    )
