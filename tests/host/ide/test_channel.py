"""The IDE channel with real sockets: who may connect when, and what becomes of messages."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.waiting import until
from uno_devserver.host.ide.channel import ChannelProblem
from uno_devserver.host.ide.message_types import environment_status

from .client import ASSEMBLY, Ide, of_this_process, open_channel


async def test_keep_alives_come_at_their_interval_and_count_on_in_the_next_connection() -> None:
    async with open_channel(keep_alive_seconds=0.01):
        numbers = []
        for _ in range(2):
            ide = await Ide.connect()
            types = []
            for _ in range(4):
                name, body = await ide.message()
                types.append(name)
                if name == "KeepAliveIdeMessage":
                    assert (body["Source"], body["Scope"]) == ("dev-server", "IdeChannel")
                    numbers.append(body["SequenceId"])
            assert (
                types == ["KeepAliveIdeMessage", "DevelopmentEnvironmentStatusIdeMessage"] + ["KeepAliveIdeMessage"] * 2
            )
            await ide.leave()

        assert numbers == sorted(set(numbers))
        assert numbers[1:3] == [numbers[0] + 1, numbers[0] + 2]


async def test_each_ide_is_told_how_the_host_is_when_it_connects() -> None:
    errors: dict[str, str] = {}

    async with open_channel(status=lambda: environment_status(**errors)) as (channel, _):
        first = await Ide.connect()
        await first.message()
        assert (await first.message())[1]["Description"] == "Ready"
        await first.leave()
        await until(lambda: not channel.connected)
        errors["load_error"] = "acme.py: no such module"

        second = await Ide.connect()
        await second.message()
        status = (await second.message())[1]

        assert (status["Status"], status["Details"]) == (3, "acme.py: no such module")


async def test_messages_are_handed_on_in_order_and_keep_alives_stay_inside() -> None:
    async with open_channel() as (_, received):
        ide = await Ide.greeted()
        for number in range(20):
            ide.call(number, "HotReloadEventIdeMessage", {"Event": number})
            ide.call(f"k{number}", "KeepAliveIdeMessage", {"Source": "IDE"})
        await until(lambda: len(received) == 20)

        assert received == [("HotReloadEventIdeMessage", {"Event": number}) for number in range(20)]


async def test_an_answer_does_not_wait_for_the_handler() -> None:
    finish = asyncio.Event()
    async with open_channel(on_message=lambda name, body: finish.wait()):
        ide = await Ide.greeted()
        for number in range(3):
            ide.call(number, "HotReloadEventIdeMessage", {})

        assert [(await ide.content())["id"] for _ in range(3)] == [0, 1, 2]


async def test_a_handler_that_fails_costs_its_message_only(capsys: pytest.CaptureFixture[str]) -> None:
    handled = []

    def handle(name: str, body: dict[str, Any]) -> None:
        if body["Event"] == 0:
            raise KeyError("Mvid")
        handled.append(body)

    async with open_channel(on_message=handle) as (channel, _):
        ide = await Ide.greeted()
        ide.call(1, "HotReloadEventIdeMessage", {"Event": 0})
        ide.call(2, "HotReloadEventIdeMessage", {"Event": 1})
        await until(lambda: handled)

        assert channel.connected

    assert "HotReloadEventIdeMessage from the IDE could not be handled: KeyError" in capsys.readouterr().err


async def test_a_message_is_handled_although_its_ide_has_left() -> None:
    busy, handled = asyncio.Event(), []

    async def handle(name: str, body: dict[str, Any]) -> None:
        await busy.wait()
        handled.append(body["Event"])

    async with open_channel(on_message=handle) as (channel, _):
        ide = await Ide.greeted()
        for number in range(3):
            ide.call(number, "HotReloadEventIdeMessage", {"Event": number})
        await ide.leave()
        await until(lambda: not channel.connected)
        busy.set()
        await until(lambda: len(handled) == 3)

        assert handled == [0, 1, 2]


async def test_what_the_host_sends_reaches_the_ide_with_its_scope() -> None:
    async with open_channel() as (channel, _):
        ide = await Ide.greeted()
        channel.send("CommandRequestIdeMessage", {"Command": "x"})

        assert await ide.message() == ("CommandRequestIdeMessage", {"Command": "x", "Scope": "IDE"})


async def test_any_thread_may_send_and_no_frame_is_torn_while_the_ide_reads_slowly() -> None:
    threads, messages, text = 8, 40, "x" * 200_000

    async with open_channel(max_unsent_bytes=1 << 30) as (channel, _):
        ide = await Ide.greeted()

        def chatter(number: int) -> None:
            for _ in range(messages):
                channel.send("HotReloadEventIdeMessage", {"From": number, "Text": text})

        sending = [asyncio.create_task(asyncio.to_thread(chatter, number)) for number in range(threads)]
        bodies = [(await ide.message())[1] for _ in range(threads * messages)]
        await asyncio.gather(*sending)

        assert all(body["Text"] == text for body in bodies)
        assert [body["From"] for body in bodies].count(0) == messages


async def test_what_json_cannot_hold_is_told_to_the_sender() -> None:
    async with open_channel() as (channel, _):
        await Ide.greeted()

        with pytest.raises(TypeError):
            await asyncio.to_thread(channel.send, "HotReloadEventIdeMessage", {"a": object()})


async def test_types_are_named_as_the_ide_names_them() -> None:
    full = f"{ASSEMBLY}, Version=255.255.255.255, Culture=neutral, PublicKeyToken=null"

    async with open_channel() as (channel, received):
        ide = await Ide.greeted()
        channel.send("HotReloadEventIdeMessage", {})
        before = (await ide.envelope())["MessageType"]
        ide.call(1, "HotReloadEventIdeMessage", {}, assembly=full)
        ide.call(2, "HotReloadEventIdeMessage", {}, assembly="Acme.Own")
        await until(lambda: len(received) == 2)
        channel.send("HotReloadEventIdeMessage", {})

        assert before.endswith(f".HotReloadEventIdeMessage, {ASSEMBLY}")
        assert [(await ide.content())["id"] for _ in range(2)] == [1, 2]
        assert (await ide.envelope())["MessageType"].endswith(f".HotReloadEventIdeMessage, {full}")


async def test_an_ide_can_leave_and_come_back_as_often_as_it_likes() -> None:
    async with open_channel() as (channel, _):
        for _ in range(5):
            ide = await Ide.greeted()
            assert channel.connected
            await ide.leave()
            await until(lambda: not channel.connected)


async def test_a_killed_ide_is_noticed_at_once() -> None:
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(99)); input()"
    )

    async with open_channel() as (channel, _):
        path = f"{os.environ['TMPDIR']}/CoreFxPipe_one"
        ide = subprocess.Popen([sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with ide:
            await until(lambda: channel.connected)
            ide.send_signal(signal.SIGKILL)
            await until(lambda: not channel.connected)

        await Ide.greeted()


async def test_a_second_ide_is_told_that_the_channel_is_taken_and_the_first_does_not_notice() -> None:
    async with open_channel(takeover_seconds=0.01) as (channel, received):
        first = await Ide.greeted()
        second = await Ide.connect()

        name, body = await second.message()
        assert await second.rest() == b""
        channel.send("HotReloadEventIdeMessage", {})
        first.call(7, "AppLaunchRegisterIdeMessage", {})

        assert name == "NotificationRequestIdeMessage"
        assert (body["Kind"], body["Scope"], body["Commands"]) == (1, "IDE", None)
        assert "Another IDE is connected" in body["Message"]
        assert (await first.message())[0] == "HotReloadEventIdeMessage"
        assert (await first.content())["id"] == 7
        await until(lambda: received)
        await first.leave()
        await until(lambda: not channel.connected)
        await Ide.greeted()  # it may try again


async def test_what_a_refused_ide_sends_is_not_handled() -> None:
    async with open_channel(takeover_seconds=0.01) as (_, received):
        first = await Ide.greeted()
        second = await Ide.connect()
        second.call(1, "AppLaunchRegisterIdeMessage", {"Ide": "second"})
        await second.rest()
        first.call(1, "AppLaunchRegisterIdeMessage", {"Ide": "first"})
        await until(lambda: received)

        assert received == [("AppLaunchRegisterIdeMessage", {"Ide": "first"})]


async def test_an_ide_whose_new_connection_overtakes_its_goodbye_is_served() -> None:
    async with open_channel(takeover_seconds=5.0):
        first = await Ide.greeted()
        second = await Ide.connect()
        await first.leave()

        assert (await second.message())[0] == "KeepAliveIdeMessage"


async def test_a_crowd_of_clients_does_not_disturb_the_ide() -> None:
    async with open_channel(takeover_seconds=0.05):
        ide = await Ide.greeted()
        crowd = await asyncio.gather(*(Ide.connect() for _ in range(50)))
        ends = await asyncio.gather(*(client.rest() for client in crowd))
        ide.call(1, "KeepAliveIdeMessage", {})

        assert all(b"KeepAlive" not in end for end in ends)
        assert b"" in ends  # beyond a few, nobody is told anything
        assert (await ide.content())["id"] == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage\r\n\r\n",
        b"\0\1\2\3",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n{",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 3\r\n\r\n{{{",
        b"Content-Length: 4\r\n\r\n\xff\xff\xff\xff",
        b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    ],
    ids=lambda sent: repr(sent[:24]),
)
async def test_a_client_that_speaks_another_language_loses_its_connection_and_nothing_else(
    sent: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_channel() as (channel, _):
        stranger = await Ide.greeted()
        stranger.send(sent)
        assert await stranger.rest() == b""
        await until(lambda: not channel.connected)

        await Ide.greeted()

    err = capsys.readouterr().err
    assert f"IDE channel {of_this_process('one')}: the connection was closed, because the client sent" in err
    assert "Traceback" not in err
    if sent.startswith(b"garbage"):
        assert "the client sent b'garbage\\r\\n' where a header was expected." in err


@pytest.mark.parametrize("part", [b"Content-Le", b"Content-Length: 10\r\n\r\n", b"Content-Length: 10\r\n\r\n{}"])
async def test_a_frame_that_is_cut_off_is_reported_and_the_pipe_listens_again(
    part: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_channel() as (channel, _):
        ide = await Ide.greeted()
        ide.send(part)
        await ide.leave()
        await until(lambda: not channel.connected)

        await Ide.greeted()

    assert "in the middle of a message" in capsys.readouterr().err


async def test_an_ide_that_never_reads_costs_bounded_memory_and_gets_messages_again_when_it_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with open_channel(max_unsent_bytes=1_000_000) as (channel, _):
        ide = await Ide.greeted()
        for number in range(200):
            channel.send("HotReloadEventIdeMessage", {"Number": number, "Filler": "x" * 100_000})
            await asyncio.sleep(0)  # let the socket take what it can
        channel.send("HotReloadEventIdeMessage", {"Number": "after"})  # small enough to fit
        numbers = []
        while (number := (await ide.message())[1]["Number"]) != "after":
            numbers.append(number)

        assert numbers == list(range(len(numbers)))  # the beginning, without a gap
        assert 9 <= len(numbers) < 50

    assert capsys.readouterr().err.count("does not read its messages") == 1


async def test_an_ide_that_asks_without_reading_the_answers_is_not_read_either() -> None:
    async with open_channel(close_seconds=0.01):
        ide = await Ide.greeted()
        for number in range(10_000):
            ide.call(number, "KeepAliveIdeMessage", {})

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ide.writer.drain(), 0.7)


async def test_binding_the_same_id_again_does_not_disturb_the_ide() -> None:
    async with open_channel() as (channel, _):
        ide = await Ide.greeted()
        await channel.bind("one")
        ide.call(1, "KeepAliveIdeMessage", {})

        assert (await ide.content())["id"] == 1


async def test_binding_another_id_lets_the_old_ide_go_and_waits_for_the_new_one(temp: Path) -> None:
    async with open_channel() as (channel, _):
        old = await Ide.greeted()
        await channel.bind("two")

        assert await old.rest() == b""
        assert (channel.channel_id, channel.connected) == ("two", False)
        assert os.listdir(temp) == ["CoreFxPipe_two"]
        await Ide.greeted("two")
        assert channel.connected


async def test_a_binding_that_fails_leaves_the_old_one_as_it_is(temp: Path) -> None:
    (temp / "CoreFxPipe_plain").write_text("precious")

    async with open_channel() as (channel, _):
        ide = await Ide.greeted()
        for bad in ("plain", "a/b", "x" * 200, "anonymous"):
            with pytest.raises(ChannelProblem, match=bad):
                await channel.bind(bad)
        ide.call(1, "KeepAliveIdeMessage", {})

        assert (await ide.content())["id"] == 1
        assert channel.channel_id == "one"

    assert (temp / "CoreFxPipe_plain").read_text() == "precious"


async def test_a_socket_that_a_cleaner_removed_comes_back_with_the_next_binding_and_the_ide_stays(temp: Path) -> None:
    async with open_channel(takeover_seconds=0.01) as (channel, _):
        ide = await Ide.greeted()
        (temp / "CoreFxPipe_one").unlink()
        await channel.bind("one")
        ide.call(1, "KeepAliveIdeMessage", {})

        assert (await ide.content())["id"] == 1
        second = await Ide.connect()
        assert (await second.message())[0] == "NotificationRequestIdeMessage"


@pytest.mark.parametrize("blank", [None, "", "  "])
async def test_a_blank_id_drops_the_channel(blank: str | None, temp: Path) -> None:
    async with open_channel() as (channel, _):
        ide = await Ide.greeted()
        await channel.bind(blank)

        assert await ide.rest() == b""
        assert channel.channel_id is None
        assert os.listdir(temp) == []
        channel.send("HotReloadEventIdeMessage", {})  # to nobody


async def test_bindings_at_the_same_time_end_with_one_pipe(temp: Path) -> None:
    async with open_channel() as (channel, _):
        await asyncio.gather(*(channel.bind(name) for name in ("a", "b", "c", "b")))

        assert channel.channel_id == "b"
        assert os.listdir(temp) == ["CoreFxPipe_b"]


async def test_the_state_is_told_in_the_words_of_the_banner() -> None:
    async with open_channel(None) as (channel, _):
        states = [channel.state]
        await channel.bind("one")
        states.append(channel.state)
        await Ide.greeted()
        states.append(channel.state)

        assert states == ["Not configured", "Configured: \\\\.\\pipe\\one", "Connected: \\\\.\\pipe\\one"]


async def test_without_a_channel_nobody_has_to_wait_for_an_ide() -> None:
    async with open_channel(None) as (channel, _):
        await channel.ready()


async def test_with_a_channel_apps_wait_for_the_first_ide_and_never_again() -> None:
    async with open_channel() as (channel, _):
        waiting = asyncio.create_task(channel.ready())
        await channel.bind("two")
        ide = await Ide.greeted("two")
        await waiting
        await ide.leave()
        await until(lambda: not channel.connected)

        await channel.ready()


async def test_apps_wait_as_long_as_no_ide_has_come() -> None:
    async with open_channel() as (channel, _):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(channel.ready(), 0.05)


async def test_dropping_the_channel_ends_the_waiting() -> None:
    async with open_channel() as (channel, _):
        waiting = asyncio.create_task(channel.ready())
        await asyncio.sleep(0)
        await channel.bind(None)

        await waiting


async def test_an_ide_that_stays_away_is_noticed() -> None:
    async with open_channel() as (channel, _):
        waiting = asyncio.create_task(channel.wait_disconnected_for(0.02))
        await (await Ide.greeted()).leave()

        await waiting


async def test_an_ide_that_never_came_does_not_stay_away() -> None:
    async with open_channel() as (channel, _):
        await channel.bind("two")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(channel.wait_disconnected_for(0), 0.05)


async def test_an_ide_that_came_back_has_not_stayed_away() -> None:
    async with open_channel() as (channel, _):
        await (await Ide.greeted()).leave()
        await until(lambda: not channel.connected)
        ide = await Ide.greeted()
        waiting = asyncio.create_task(channel.wait_disconnected_for(0))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        await ide.leave()

        await waiting


async def test_another_pipe_gives_its_ide_the_whole_time_to_come() -> None:
    async with open_channel() as (channel, _):
        await (await Ide.greeted()).leave()
        await channel.wait_disconnected_for(0.1)
        begin = asyncio.get_running_loop().time()
        await channel.bind("two")
        await channel.wait_disconnected_for(0.1)

        assert round(asyncio.get_running_loop().time() - begin, 6) >= 0.1


async def test_closing_leaves_no_socket_and_no_task_whoever_is_connected(temp: Path) -> None:
    before = asyncio.all_tasks()
    async with open_channel(takeover_seconds=5.0, on_message=lambda name, body: asyncio.sleep(60)) as (channel, _):
        ide = await Ide.greeted()
        ide.call(1, "AppLaunchRegisterIdeMessage", {})
        await ide.frame()
        second = await Ide.connect()
        await until(lambda: len(asyncio.all_tasks()) > len(before) + 2)
        await channel.close()

        assert os.listdir(temp) == []
        assert asyncio.all_tasks() == before
        assert await ide.rest() == b""
        assert await second.rest() == b""
        with pytest.raises(ChannelProblem, match="stopping"):
            await channel.bind("two")


async def test_closing_does_not_wait_for_an_ide_that_does_not_read() -> None:
    before = asyncio.all_tasks()
    async with open_channel(close_seconds=0.05) as (channel, _):
        ide = await Ide.greeted()
        for _ in range(100):
            channel.send("HotReloadEventIdeMessage", {"Filler": "x" * 100_000})
        async with asyncio.timeout(1):
            await channel.close()

        assert asyncio.all_tasks() == before
        assert len(await ide.rest()) < 5_000_000  # the rest is given up


async def test_an_ide_that_connects_while_the_channel_closes_is_let_go(temp: Path) -> None:
    before = asyncio.all_tasks()
    for turns in range(8):
        async with open_channel() as (channel, _):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(temp / "CoreFxPipe_one"))
                client.setblocking(False)
                for _ in range(turns):
                    await asyncio.sleep(0)  # it may be anywhere between the door and the table
                await channel.close()

                with contextlib.suppress(ConnectionError):
                    while await asyncio.get_running_loop().sock_recv(client, 65536):
                        pass
                assert asyncio.all_tasks() == before
