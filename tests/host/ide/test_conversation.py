"""The recorded conversation with the .NET Host, held again with ours over a real socket."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.golden import GOLDEN
from support.waiting import until
from uno_devserver.host.ide.channel import IdeChannel

from .client import Ide, open_channel

FOLDER = GOLDEN / "host/ide-channel"
STEPS = {step["step"]: step for step in json.loads((FOLDER / "conversation.json").read_text("utf-8"))}
CALLS = [name for name, step in STEPS.items() if step.get("sent", "").endswith("}")]

# Where our answer is another one: theirs, ours, and why.
DIFFERENCES: dict[str, tuple[str, str, str]] = {
    "request SendToDevServerAsync with null token arg": (
        "-32602",
        "null",
        "the meaning is clear: a client that passes its CancellationToken has nothing to cancel",
    ),
    "unknown message type": (
        "-32000",
        "null",
        "types are names here, and an add-in may know those that we do not: the message is handed on",
    ),
}


def outcome(frame: str) -> tuple[Any, str]:
    """The id, and the code of the error or the result: sentences and stack traces are not compared."""
    content = json.loads(frame.partition("\r\n\r\n")[2])
    return content["id"], str(content["error"]["code"]) if "error" in content else json.dumps(content["result"])


def recorded_answers(step: str) -> list[str]:
    """Without keep-alives, which come when their time has come."""
    texts = [received["text"] for received in STEPS[step]["received"]]
    return [text for text in texts if "MessageFromDevServer" not in text]


@pytest.mark.parametrize("step", CALLS)
async def test_each_call_is_answered_as_recorded(step: str) -> None:
    async with open_channel():
        ide = await Ide.greeted()
        ide.send(STEPS[step]["sent"])
        ide.call("last", "KeepAliveIdeMessage", {})

        answers = []
        while outcome(answer := (await ide.frame()).decode())[0] != "last":
            answers.append(answer)

        recorded = recorded_answers(step)
        if step in DIFFERENCES:
            theirs, ours, _ = DIFFERENCES[step]
            assert [outcome(text)[1] for text in recorded] == [theirs]
            assert [outcome(text)[1] for text in answers] == [ours]
        elif "error" in "".join(recorded):
            assert [outcome(text) for text in answers] == [outcome(text) for text in recorded]
            assert "stack" not in "".join(answers)
        else:
            assert answers == recorded  # byte for byte, headers included


async def test_the_recorded_calls_are_all_there_in_one_conversation() -> None:
    async with open_channel() as (_, received):
        ide = await Ide.greeted()
        for step in CALLS:
            ide.send(STEPS[step]["sent"])
        for step in CALLS:
            for _ in recorded_answers(step):
                await ide.frame()
        await until(lambda: len(received) == 2)

        assert [name for name, _ in received] == ["AppLaunchRegisterIdeMessage", "Type"]
        assert received[0][1] == {
            "Mvid": "0b7a1a0e-8d1c-4f0e-9d58-0c2f5d1f3a10",
            "Platform": "Desktop",
            "IsDebug": True,
            "Ide": "vscode",
            "Plugin": "1",
        }


async def test_the_first_messages_are_the_recorded_ones_with_the_status_once() -> None:
    recorded = json.loads((FOLDER / "clean-disconnect.json").read_text("utf-8"))[0]["text"]
    types = [part.partition(",")[0] for part in recorded.split('"MessageType":"')[1:]]

    async with open_channel():
        ide = await Ide.connect()
        first, second = await ide.envelope(), await ide.envelope()
        ide.call(1, "KeepAliveIdeMessage", {})

        assert [first["MessageType"].partition(",")[0], second["MessageType"].partition(",")[0]] == types[:2]
        assert types[2] == types[1]  # theirs comes twice
        assert (await ide.content())["id"] == 1  # ours does not


async def test_a_malformed_header_ends_the_connection_as_recorded() -> None:
    step = STEPS["malformed header"]
    assert step["received"][0]["eof"]

    async with open_channel():
        ide = await Ide.greeted()
        ide.send(step["sent"])

        assert await ide.rest() == b""


async def test_the_socket_is_where_the_net_host_had_it_and_open_to_its_user_alone(temp: Path) -> None:
    step = STEPS["socket files in the temp directory"]
    at = step["files"].index("{TMP}/CoreFxPipe_chan-ide")
    assert step["isSocket"][at]
    assert step["mode"][at] == "0o140755"  # theirs may be seen by all; to connect, one needs the right to write

    async with open_channel("chan-ide"):
        assert oct(os.stat(temp / "CoreFxPipe_chan-ide").st_mode) == "0o140600"


async def test_after_the_ide_has_gone_the_same_pipe_listens_again_where_the_net_host_gave_up() -> None:
    assert STEPS["a client connects after the first has closed"]["connect"].startswith("FileNotFoundError")
    assert STEPS["connect after that rebind to the same id"]["connect"] == "FileNotFoundError"

    async def leave_and_come_back(channel: IdeChannel) -> None:
        await (await Ide.greeted()).leave()
        await until(lambda: not channel.connected)
        await (await Ide.greeted()).leave()
        await until(lambda: not channel.connected)

    async with open_channel() as (channel, _):
        await leave_and_come_back(channel)
        await channel.bind("one")
        await leave_and_come_back(channel)


async def test_after_a_rebind_the_old_socket_is_gone_and_the_new_one_greets(temp: Path) -> None:
    recorded = json.loads((FOLDER / "rebind.json").read_text("utf-8"))
    pipes = [name for name in recorded["filesInTemp"] if name.startswith("CoreFxPipe_")]

    async with open_channel("chan-ide") as (channel, _):
        await channel.bind("two")

        assert os.listdir(temp) == pipes
        await Ide.greeted("two")
