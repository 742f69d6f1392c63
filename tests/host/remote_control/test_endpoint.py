"""Apps on `/rc`: they are always served, whatever IDEs, add-ins and other apps do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from host.remote_control.apps import SERVER_SCOPE, VERSION, app_at, app_of, remote_control, served
from support.waiting import until
from uno_devserver.host.addins.handlers import App, Processor, guarded_handler
from uno_devserver.host.addins.invocation import CallTarget
from uno_devserver.host.remote_control import connection
from uno_devserver.host.remote_control.endpoint import IDE_WAIT_SECONDS
from uno_devserver.host.remote_control.frames import Frame, encode_frame
from uno_devserver.protocol.http.messages import Answer, Request, Upgrade
from uno_devserver.protocol.http.server import HttpServer, open_sockets


def processor(scope: str, function: Callable[..., Any], addin: str = "Sample") -> Processor:
    return Processor(scope, guarded_handler(function, CallTarget(addin, "processor", scope), lambda: None), addin)


class NoIde:
    async def ready(self) -> None:
        await asyncio.Event().wait()


async def test_an_app_is_served_without_the_ide_when_that_does_not_come() -> None:
    async with app_of(remote_control(ide=NoIde(), ide_wait_seconds=0.05)) as app:
        name, content = await app.ask(SERVER_SCOPE, "KeepAliveMessage", {"SequenceId": 1})
        assert (name, content["SequenceId"]) == ("KeepAliveMessage", 1)


def test_by_default_the_ide_is_waited_for_less_long_than_an_app_waits() -> None:
    assert 1 <= IDE_WAIT_SECONDS <= 10  # an app gives up after 30


async def test_a_processor_of_an_addin_answers_in_its_scope() -> None:
    async def answer(name: str, content: object, app: App) -> None:
        app.send(f"{name}Response", {"Was": content})
        app.send("Note", None, scope="Elsewhere")

    async with app_of(remote_control(processors=lambda: [processor("Acme", answer)])) as app:
        await app.send("Acme", "Greet", {"a": [1, None]})
        assert await app.receive() == Frame("Acme", "GreetResponse", '{"Was":{"a":[1,null]}}')
        assert await app.receive() == Frame("Elsewhere", "Note", "null")


async def test_a_plain_function_runs_beside_the_host_and_may_send_from_its_thread() -> None:
    def answer(name: str, _: object, app: App) -> None:
        app.send(name, {"Done": True})

    async with app_of(remote_control(processors=lambda: [processor("Acme", answer)])) as app:
        assert await app.ask("Acme", "Work", {}) == ("Work", {"Done": True})


async def test_the_hosts_own_scopes_cannot_be_taken_over() -> None:
    mine = [processor(scope, lambda name, content, app: app.send("mine", {})) for scope in (SERVER_SCOPE, "HotReload")]
    async with app_of(remote_control(processors=lambda: mine)) as app:
        assert (await app.ask(SERVER_SCOPE, "KeepAliveMessage", {}))[0] == "KeepAliveMessage"
        assert (await app.ask("HotReload", "ConfigureServer", {}))[0] == "UpdateFile"


async def test_a_processor_that_is_registered_later_is_used() -> None:
    registered: list[Processor] = []

    async with app_of(remote_control(processors=lambda: registered)) as app:
        await app.send("Late", "x", {})
        assert await app.answers() == []
        registered.append(processor("Late", lambda name, content, app: app.send("here", {})))
        assert (await app.ask("Late", "x", {}))[0] == "here"


@pytest.mark.parametrize("kind", ["raises", "exits", "sends nonsense", "is cancelled"])
async def test_a_failing_processor_is_logged_and_the_connection_lives_on(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str, content: object, app: App) -> None:
        if kind == "raises":
            raise RuntimeError("the processor's own trouble")
        if kind == "exits":
            raise SystemExit("the processor's own trouble")
        if kind == "is cancelled":
            raise asyncio.CancelledError("the processor's own trouble")
        app.send(name, object())

    async with app_of(remote_control(processors=lambda: [processor("Acme", fail)])) as app:
        for number in range(3):
            await app.send("Acme", f"x{number}", {})
        await app.send("Acme", "unreadable", "{")
        assert await app.answers() == []

    assert "[Sample] processor 'Acme' failed" in capsys.readouterr().err


async def test_a_processor_that_hangs_holds_up_nobody_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "DRAIN_SECONDS", 0.05)
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.5)
    lost = 25  # if each were waited for, the answer would come too late

    async def hang(name: str, content: object, app: App) -> None:
        await asyncio.Event().wait()

    control = remote_control(processors=lambda: [processor("Slow", hang)])
    async with served(control) as port:
        async with app_at(port) as app:
            for _ in range(connection.MAX_WAITING_FRAMES + 1 + lost):
                await app.send("Slow", "x", {})
            assert await app.answers() == []
        await until(lambda: control.connection_count == 0, "the end of the connection")

    logged = capsys.readouterr().err
    assert logged.count("[Slow / x] is dropped: 256 frames wait before it") == lost
    assert "its last frames were not handled" in logged


async def test_large_frames_for_a_processor_that_hangs_are_not_collected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "DRAIN_SECONDS", 0.05)
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.2)

    async def hang(name: str, content: object, app: App) -> None:
        await asyncio.Event().wait()

    control = remote_control(processors=lambda: [processor("Slow", hang)])
    async with served(control) as port, app_at(port) as app:
        for _ in range(10):
            await app.send("Slow", "x", '"' + "x" * 5_000_000 + '"')
        await app.send("Slow", "small", {})
        assert await app.answers() == []

    logged = capsys.readouterr().err
    assert logged.count("[Slow / x] is dropped: 0 frames wait before it") == 9
    assert "[Slow / small] is dropped" not in logged


async def test_large_frames_that_come_faster_than_they_are_handled_are_all_handled() -> None:
    handled: list[int] = []

    async def note(name: str, content: object, app: App) -> None:
        await asyncio.sleep(0.02)
        handled.append(len(str(content)))

    control = remote_control(processors=lambda: [processor("Slow", note), processor("Other", note)])
    async with served(control) as port, app_at(port) as app:
        for scope in ("Slow", "Other") * 4:
            await app.send(scope, "x", '"' + "x" * 16_000_000 + '"')
        await until(lambda: len(handled) == 8, "all frames")

    assert handled == [16_000_000] * 8


async def test_an_app_that_sends_faster_than_its_frames_are_handled_loses_none_and_no_order() -> None:
    count = 10 * connection.MAX_WAITING_FRAMES

    async def echo(name: str, content: object, app: App) -> None:
        await asyncio.sleep(0)
        app.send(name, content)

    async with app_of(remote_control(processors=lambda: [processor("Echo", echo)])) as app:
        for number in range(count):
            await app.send("Echo", "n", number)
        assert [(await app.receive()).content for _ in range(count)] == [str(number) for number in range(count)]


async def test_a_processor_that_hung_gets_frames_again_when_it_moves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(connection, "MAX_WAITING_FRAMES", 2)
    go_on = asyncio.Event()

    async def work(name: str, content: object, app: App) -> None:
        await go_on.wait()
        app.send(name, content)

    async with app_of(remote_control(processors=lambda: [processor("Acme", work)])) as app:
        for number in range(5):
            await app.send("Acme", "n", number)
        assert await app.answers() == []
        monkeypatch.setattr(connection, "PATIENCE_SECONDS", 10.0)
        go_on.set()
        for number in range(3):
            assert (await app.receive()).content == str(number)
        for number in range(20):
            await app.send("Acme", "n", number)
        assert [(await app.receive()).content for _ in range(20)] == [str(number) for number in range(20)]

    assert capsys.readouterr().err.count("is dropped") == 2


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\1",
        b"\1\0",
        b"\1\0\x7fabc",
        b"\1\0\xff\xff\xff\xff\x0f",
        b"\xff" * 100,
        b"\0" * 100_000,
        bytes(range(256)),
    ],
)
async def test_garbage_is_ignored_and_the_connection_lives_on(garbage: bytes) -> None:
    async with app_of(remote_control()) as app:
        await app.socket.send(garbage)
        assert await app.answers() == []


async def test_a_large_frame_is_read() -> None:
    async def length(name: str, content: object, app: App) -> None:
        app.send(name, len(str(content)))

    async with app_of(remote_control(processors=lambda: [processor("Acme", length)])) as app:
        assert await app.ask("Acme", "n", json.dumps("y" * 4_000_000)) == ("n", 4_000_000)


async def test_what_an_app_asked_for_before_it_left_is_done() -> None:
    done: list[str] = []
    go_on = asyncio.Event()

    async def work(name: str, content: object, app: App) -> None:
        await go_on.wait()
        done.append(name)
        app.send(name, "nobody is there")

    control = remote_control(processors=lambda: [processor("Acme", work)])
    async with served(control) as port:
        async with app_at(port) as app:
            await app.send("Acme", "first", {})
            await app.send("Acme", "second", {})
            await app.answers()
        assert done == []
        go_on.set()
        await until(lambda: done == ["first", "second"], "the work")
        await until(lambda: control.connection_count == 0, "the end of the connection")


async def test_an_app_that_does_not_read_is_let_go_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "MAX_UNSENT_BYTES", 4_000_000)
    frame = Frame("Acme", "N", json.dumps("x" * 1_000_000))
    apps: list[App] = []

    control = remote_control(processors=lambda: [processor("Acme", lambda name, content, app: apps.append(app))])
    async with served(control) as port, app_at(port) as reading:
        await reading.send("Acme", "here", {})
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(
            b"GET /rc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        await reader.readuntil(b"\r\n\r\n")
        hello = encode_frame(Frame("Acme", "here", "{}"))
        writer.write(bytes([0x82, 0x80 | len(hello), 0, 0, 0, 0]) + hello)  # a WebSocket frame, masked with zeros
        await until(lambda: len(apps) == 2, "both apps")

        # when: more is sent than all buffers on the way can hold
        for _ in range(40):
            for app in apps:
                app.send(frame.name, "x" * 1_000_000)
            assert await reading.receive() == frame

        # then
        await until(lambda: control.connection_count == 1, "the end of the app that does not read")
        assert await reading.answers() == []
        writer.close()

    assert capsys.readouterr().err.count("it is disconnected") == 1


async def test_the_host_stops_at_once_with_apps_connected() -> None:
    async def hang(name: str, content: object, app: App) -> None:
        await asyncio.Event().wait()

    async def handler(_: Request) -> Answer:
        return Upgrade(control.serve)

    control = remote_control(processors=lambda: [processor("Slow", hang)])
    server = HttpServer(handler, open_sockets(0))
    await server.start()
    async with app_at(server.port) as busy, app_at(server.port) as idle:
        await busy.send("Slow", "x", {})
        await busy.answers()
        await idle.answers()
        began = time.monotonic()
        await server.stop()
        seconds = time.monotonic() - began
        with pytest.raises(ConnectionClosed):
            await idle.receive()

    assert control.connection_count == 0
    assert seconds < 3  # the .NET Host takes 30 s


def _tasks() -> set[asyncio.Task[Any]]:
    """Without those in which the event loop of Windows accepts connections, a new one for each."""
    return {task for task in asyncio.all_tasks() if "accept_coro" not in str(task.get_coro())}


async def test_nothing_goes_on_after_an_app_left() -> None:
    control = remote_control(processors=lambda: [processor("Acme", lambda name, content, app: None)])
    async with served(control) as port:
        before = _tasks()
        async with app_at(port) as app:
            await app.send("Acme", "x", {})
            await app.answers()
        await until(lambda: _tasks() <= before, "the end of all tasks of the connection")


async def test_a_closed_connection_takes_a_late_answer_quietly() -> None:
    apps: list[App] = []

    async def remember(name: str, content: object, app: App) -> None:
        apps.append(app)
        app.send(name, {})

    control = remote_control(processors=lambda: [processor("Acme", remember)])
    async with served(control) as port:
        async with app_at(port) as app:
            await app.ask("Acme", "x", {})
        await until(lambda: control.connection_count == 0, "the end of the connection")
        apps[0].send("late", {})
        await asyncio.to_thread(apps[0].send, "later", {})

    apps[0].send("after the Host's end", {})


@pytest.mark.parametrize(("sent", "told"), [("1.0", "1.0"), ("6.5.3-dev.1+a1b2", "6.5.3-dev.1+a1b2"), (None, VERSION)])
async def test_an_app_is_told_its_own_version_so_that_it_finds_no_mismatch(sent: str | None, told: str) -> None:
    async with app_of(remote_control()) as app:
        _, content = await app.ask(SERVER_SCOPE, "KeepAliveMessage", {"AssemblyVersion": sent, "SequenceId": 3})
        assert content == {"Scope": SERVER_SCOPE, "AssemblyVersion": told, "SequenceId": 3}


@pytest.mark.parametrize("sequence", [-1, 2**64, "7", 7.5, None, True, [], 10**400])
async def test_an_impossible_sequence_number_is_answered_with_zero(sequence: object) -> None:
    async with app_of(remote_control()) as app:
        _, content = await app.ask(SERVER_SCOPE, "KeepAliveMessage", {"SequenceId": sequence})
        assert content["SequenceId"] == 0


async def test_an_app_that_vanishes_without_a_word_is_forgotten() -> None:
    control = remote_control()
    async with served(control) as port, app_at(port) as app:
        await app.answers()
        app.socket.transport.abort()
        await until(lambda: control.connection_count == 0, "the end of the connection")
