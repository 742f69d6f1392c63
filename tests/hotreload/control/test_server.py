"""The control channel: what peers ask and hear, how restarts wait for them, and that no peer harms another."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
import time
from pathlib import Path

import pytest

from support.waiting import until
from uno_devserver import __version__
from uno_devserver.hotreload.authority import CheckResult, RestartResult
from uno_devserver.hotreload.control.channel_name import channel_name
from uno_devserver.hotreload.control.line_rpc import RpcLimits
from uno_devserver.hotreload.control.server import CHANGED, ControlLimits
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.system.pipes import pipe_path

from .channels import SECONDS, Client, connected, open_channel

CHECKED = CheckResult(True, False, "error TS1005", True, True, None, True)
RESTARTED = RestartResult(False, "It does not start.", ("boom",), True, "same")


@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("system.ping", None, {"pong": True, "version": __version__, "processId": os.getpid()}),
        (
            "checkForChanges",
            {},
            {
                "mcpChanged": True,
                "mcpRebuilt": False,
                "mcpBuildError": "error TS1005",
                "extChanged": True,
                "extRebuilt": True,
                "extBuildError": None,
                "extClientReloaded": True,
            },
        ),
        ("getStatus", None, {"enabled": True, "checks": 0}),
        ("mcpReady", None, {"ready": True}),
        (
            "readyToRestart",
            None,
            {
                "ok": False,
                "problem": "It does not start.",
                "lastLines": ["boom"],
                "kept": True,
                "lists": "same",
                "refusal": "",
            },
        ),
        ("openInspector", None, {"url": "http://localhost:6274/"}),
        ("openInspector", {"port": 7000}, {"url": "http://localhost:7000/"}),
    ],
)
async def test_a_request_is_answered_field_by_field(method: str, params: object, result: object) -> None:
    async with connected() as (opened, client):
        opened.authority.result, opened.authority.outcome = CHECKED, RESTARTED

        assert await client.call(method, params) == {"jsonrpc": "2.0", "id": 1, "result": result}


async def test_a_check_of_the_packages_that_are_watched_may_name_them(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    async with connected(WatchedPackage(Role.SERVER, str(tmp_path))) as (_, client):
        assert await client.result("checkForChanges", {"mcpServerRoot": str(tmp_path / "link"), "extensionPath": None})


@pytest.mark.parametrize(
    ("method", "params", "code", "words"),
    [
        (
            "checkForChanges",
            {"mcpServerRoot": "/elsewhere"},
            -32602,
            "'mcpServerRoot' is /elsewhere, but this authority",
        ),
        ("checkForChanges", {"mcpServerRoot": "/elsewhere"}, -32602, "watches /ws/server"),
        (
            "checkForChanges",
            {"extensionPath": "/elsewhere"},
            -32602,
            "'extensionPath' is /elsewhere, but this authority",
        ),
        ("checkForChanges", {"extensionPath": "/elsewhere"}, -32602, "watches no such package"),
        ("checkForChanges", {"mcpServerRoot": 5}, -32602, "'mcpServerRoot' is the absolute path"),
        *(("openInspector", {"port": port}, -32602, "from 0 to 65535") for port in ("7000", -1, 65536, True, 1.5)),
        ("openInspector", {"port": 1}, -32001, "Port 1 is taken."),
    ],
)
async def test_a_request_that_cannot_be_met_is_refused(method: str, params: object, code: int, words: str) -> None:
    async with connected(WatchedPackage(Role.SERVER, "/ws/server")) as (opened, client):
        refused, message = await client.error(method, params)

        assert refused == code
        assert words in message
        assert opened.authority.checks == 0


async def test_an_authority_that_fails_is_an_answer() -> None:
    async with connected() as (opened, client):
        opened.authority.result = TimeoutError("hashing took more than 10 s")

        expected = (-32001, "The authority has no answer: hashing took more than 10 s")
        assert await client.error("checkForChanges") == expected


async def test_requests_of_one_connection_run_side_by_side() -> None:
    async with connected() as (opened, client):
        opened.authority.goes_on.clear()
        check = client.ask("checkForChanges")
        await until(lambda: opened.authority.checks)

        assert (await client.call("system.ping"))["result"]["pong"] is True
        opened.authority.goes_on.set()
        assert (await client.hear())["id"] == check


async def test_what_a_check_is_at_is_told_and_repeated_while_it_is_silent() -> None:
    async with open_channel(limits=ControlLimits(progress_seconds=0.02)) as opened:
        opened.authority.goes_on.clear()
        client, other = await Client.connect(opened.path), await Client.connect(opened.path)
        await other.call("system.ping")
        client.ask("checkForChanges")
        await until(lambda: opened.authority.checks)

        opened.authority.tell("npm run build")
        heard = [await client.hear()]
        while heard.count(heard[-1]) < 3:
            heard.append(await client.hear())

        progress = {"jsonrpc": "2.0", "method": "hotReload/progress", "params": {"message": "npm run build"}}
        assert heard[-1] == progress
        other.ask("system.ping")
        assert "result" in await other.hear(), "who asked nothing hears nothing"


async def test_an_answer_in_a_half_closed_connection_still_arrives() -> None:
    """As in `echo … | nc -NU path`."""
    async with connected() as (opened, client):
        opened.authority.goes_on.clear()
        number = client.ask("checkForChanges")
        await until(lambda: opened.authority.checks)
        client.writer.write_eof()
        await (await Client.connect(opened.path)).call("system.ping")
        opened.authority.goes_on.set()

        assert (await client.hear())["id"] == number
        assert await client.hear() == {}


# Restarts.


async def test_a_restart_waits_until_peers_that_run_calls_are_ready_and_tells_how_it_went() -> None:
    async with open_channel() as opened:
        clients = [await Client.connect(opened.path) for _ in range(2)]
        for client in clients:
            await client.result("checkForChanges")

        announcing = asyncio.create_task(opened.channel.announce_restart(SECONDS))
        for client in clients:
            assert (await client.hear())["params"] == {"reason": CHANGED}
        ready = [clients[0].ask("readyToRestart")]
        await clients[0].call("getStatus")
        assert not announcing.done(), "the second one has not said so"
        ready.append(clients[1].ask("readyToRestart"))
        await announcing
        opened.channel.announce_restarted(RestartResult(True, lists="grown"))

        for client, number in zip(clients, ready, strict=True):
            heard = [await client.hear(), await client.hear()]
            told = next(message for message in heard if "method" in message)
            answer = next(message for message in heard if "id" in message)
            assert (told["method"], told["params"]["ok"]) == ("hotReload/restarted", True)
            assert (answer["id"], answer["result"]["lists"]) == (number, "grown")
        assert opened.authority.restarts == 0, "it is the announced one that they agreed to"


async def test_the_peer_that_wants_the_restart_is_not_asked_whether_it_is_ready() -> None:
    async with connected() as (opened, client):
        await client.result("checkForChanges")
        opened.authority.goes_on.clear()
        number = client.ask("readyToRestart")
        await until(lambda: opened.authority.restarts)

        await asyncio.wait_for(opened.channel.announce_restart(SECONDS), SECONDS / 2)
        opened.authority.goes_on.set()

        assert (await client.hear())["id"] == number


async def test_a_peer_that_never_answers_is_waited_for_within_the_bound_and_only_once() -> None:
    async with connected() as (opened, client):
        await client.result("checkForChanges")

        begun = time.monotonic()
        await opened.channel.announce_restart(0.05)
        first = time.monotonic() - begun
        opened.channel.announce_restarted(RestartResult(True))
        await asyncio.wait_for(opened.channel.announce_restart(60), SECONDS)

        assert first >= 0.05


async def test_a_peer_that_was_late_and_says_ready_is_waited_for_again() -> None:
    async with connected() as (opened, client):
        await client.result("checkForChanges")
        await opened.channel.announce_restart(0.01)
        opened.channel.announce_restarted(RestartResult(True))
        await client.result("readyToRestart")

        announcing = asyncio.create_task(opened.channel.announce_restart(SECONDS))
        assert (await client.hear())["method"] == "hotReload/restarting"
        await client.result("getStatus")

        assert not announcing.done()
        client.ask("readyToRestart")
        await announcing


async def test_a_peer_that_only_looks_is_told_and_not_waited_for() -> None:
    async with connected() as (opened, client):
        await client.result("getStatus")

        await asyncio.wait_for(opened.channel.announce_restart(60), SECONDS)

        assert (await client.hear())["method"] == "hotReload/restarting"


async def test_a_peer_that_goes_is_not_waited_for() -> None:
    async with connected() as (opened, client):
        await client.result("checkForChanges")
        announcing = asyncio.create_task(opened.channel.announce_restart(60))
        assert (await client.hear())["method"] == "hotReload/restarting"

        client.writer.close()

        await asyncio.wait_for(announcing, SECONDS)


async def test_a_restart_goes_on_when_the_peer_that_wanted_it_has_gone() -> None:
    done: list[str] = []
    async with connected(limits=ControlLimits(rpc=RpcLimits(finish_seconds=0.0))) as (opened, client):
        opened.authority.goes_on.clear()
        restart = opened.authority.ready_to_restart

        async def watched() -> RestartResult:
            outcome = await restart()
            done.append("restarted")
            return outcome

        opened.authority.ready_to_restart = watched  # type: ignore[method-assign]
        client.ask("readyToRestart")
        await until(lambda: opened.authority.restarts)

        client.writer.transport.abort()
        await until(lambda: not opened.channel._peers)
        opened.authority.goes_on.set()

        await until(lambda: done)


# Wrong, many, slow.


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b"garbage", -32700, "not valid JSON"),
        (b"\xff\xfe\x00", -32700, "not valid JSON"),
        (b"[" * 100_000, -32700, "nested too deeply"),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "system.ping"}]', -32600, "Batches"),
        (b'"text"', -32600, "object"),
        (b'{"id": 1, "method": "system.ping"}', -32600, "2.0"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "system.ping", "params": [1]}', -32602, "object"),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "system.ping"}', -32600, "id"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "rm -rf"}', -32601, "checkForChanges"),
        (b"x" * (1024 * 1024 + 1), -32600, "1,048,576"),
        (b'"' + b"x" * 5_000_000 + b'"', -32600, "1,048,576"),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_what_cannot_be_understood_is_answered_and_the_connection_stays(
    line: bytes, code: int, words: str
) -> None:
    async with connected() as (_, client):
        client.write(line + b"\n")

        error = (await client.hear())["error"]
        assert error["code"] == code
        assert words in error["message"]
        number = client.ask("system.ping")
        assert (await client.hear())["id"] == number, "and it is answered once"


async def test_a_request_that_is_too_long_is_refused_by_its_id() -> None:
    async with connected() as (_, client):
        client.ask("system.ping", {"padding": "x" * 1024 * 1024})

        assert (await client.hear())["id"] == 1


async def test_a_message_may_come_in_pieces_and_blank_lines_are_nothing() -> None:
    async with connected() as (_, client):
        for byte in b'\n\r\n{"jsonrpc": "2.0", "id": "a", "method": "system.ping"}\r\n':
            client.write(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)

        assert (await client.hear())["id"] == "a"


async def test_half_a_line_at_the_end_of_a_connection_is_forgotten() -> None:
    async with connected() as (opened, client):
        client.write(b'{"jsonrpc": "2.0", "id": 1, "method": "readyToRestart"}')
        client.writer.close()

        assert (await (await Client.connect(opened.path)).call("system.ping"))["result"]
        assert opened.authority.restarts == 0


async def test_a_peer_that_floods_is_answered_in_full_and_holds_up_nobody() -> None:
    async with open_channel() as opened:
        flooder, other = await Client.connect(opened.path), await Client.connect(opened.path)
        flood = 5000
        lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "getStatus"}) for n in range(flood)]
        flooder.write(("\nx\n".join(lines) + "\n").encode())

        longest = 0.0
        for _ in range(10):
            begun = time.monotonic()
            await other.call("system.ping")
            longest = max(longest, time.monotonic() - begun)

        answers = [await flooder.hear() for _ in range(2 * flood - 1)]
        assert sorted(told["id"] for told in answers if "result" in told) == list(range(flood))
        assert longest < 1.0, "it takes some ms"


async def test_between_the_lines_of_a_flood_others_have_their_turn() -> None:
    async with open_channel() as opened:
        flooder = await Client.connect(opened.path)
        turns, lines = 0, 10_000

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(take_turns())
        flooder.write(b"x\n" * lines)
        for _ in range(lines):
            assert (await flooder.hear())["error"]["code"] == -32700
        ticking.cancel()

        assert turns > 250, "there is one after every 32 lines"


async def test_of_the_requests_of_one_peer_only_so_many_are_under_way() -> None:
    async with open_channel(limits=ControlLimits(rpc=RpcLimits(requests=4))) as opened:
        opened.authority.goes_on.clear()
        eager, other = await Client.connect(opened.path), await Client.connect(opened.path)
        numbers = [eager.ask("checkForChanges") for _ in range(10)]
        await until(lambda: opened.authority.checks >= 4)
        await other.call("system.ping")

        assert opened.authority.checks == 4
        opened.authority.goes_on.set()
        assert sorted([(await eager.hear())["id"] for _ in numbers]) == numbers


async def test_a_peer_that_asks_and_does_not_read_is_not_heard_any_further() -> None:
    async with open_channel(limits=ControlLimits(rpc=RpcLimits(requests=1))) as opened:
        opened.authority.result = CheckResult(True, False, "x" * 500_000)
        deaf, other = await Client.connect(opened.path), await Client.connect(opened.path)
        deaf.stop_reading()
        for _ in range(100):
            deaf.ask("checkForChanges")
        await until(lambda: opened.authority.checks)

        for _ in range(200):
            await other.call("system.ping")

        assert opened.authority.checks < 10


async def test_a_peer_that_does_not_read_is_cut_off_and_the_others_are_served() -> None:
    limits = ControlLimits(rpc=RpcLimits(unread_bytes=1000, unread_seconds=0.05))
    async with open_channel(limits=limits) as opened:
        opened.authority.result = CheckResult(True, False, "x" * 2_000_000)
        deaf, other = await Client.connect(opened.path), await Client.connect(opened.path)
        deaf.stop_reading()

        deaf.ask("checkForChanges")
        await until(lambda: opened.authority.checks)

        await until(lambda: len(opened.channel._peers) == 1)
        assert len((await other.result("checkForChanges"))["mcpBuildError"]) == 2_000_000


async def test_there_is_a_bound_to_what_is_kept_for_a_peer_that_does_not_read() -> None:
    limits = ControlLimits(rpc=RpcLimits(unsent_bytes=1_000_000, unread_seconds=3600))
    async with open_channel(limits=limits) as opened:
        deaf = await Client.connect(opened.path)
        deaf.stop_reading()
        opened.authority.goes_on.clear()
        deaf.ask("checkForChanges")
        await until(lambda: opened.authority.checks)

        while opened.channel._peers:
            opened.authority.tell("x" * 100_000)
            await asyncio.sleep(0)


async def test_the_proxies_of_a_hundred_agents_are_served_and_hear_of_a_restart() -> None:
    async with open_channel() as opened:
        clients = [await Client.connect(opened.path) for _ in range(101)]
        for client in clients:
            assert (await client.call("system.ping"))["result"]["pong"]

        await opened.channel.announce_restart(seconds=10.0)

        for client in clients:
            assert (await client.hear())["params"] == {"reason": CHANGED}
        opened.channel.announce_restarted(RestartResult(True))


async def test_one_peer_too_many_is_told_so() -> None:
    async with open_channel(limits=ControlLimits(peers=2)) as opened:
        first, second = await Client.connect(opened.path), await Client.connect(opened.path)
        await first.call("system.ping")
        await second.call("system.ping")

        third = await Client.connect(opened.path)

        assert "2 peers" in (await third.hear())["error"]["message"]
        assert await third.hear() == {}
        first.writer.close()
        await until(lambda: len(opened.channel._peers) == 1)
        fourth = await Client.connect(opened.path)
        assert (await fourth.call("system.ping"))["result"]["pong"]


# The socket.


async def test_the_socket_is_this_users_alone_and_goes_with_the_channel() -> None:
    async with connected() as (opened, client):
        assert stat.S_IMODE(os.stat(opened.path).st_mode) == 0o600
        await client.call("system.ping")

        await opened.channel.close()

        assert not os.path.exists(opened.path)
        assert await client.hear() == {}, "peers see the end at once"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both")
async def test_another_user_is_not_served_even_where_the_socket_lets_everybody_in() -> None:
    asks = (
        "import os, socket, sys; os.setuid(int(sys.argv[2])); pipe = socket.socket(socket.AF_UNIX);"
        "pipe.connect(sys.argv[1]); print(pipe.makefile('rwb').read())"
    )
    async with open_channel() as opened:
        os.chmod(os.path.dirname(opened.path), 0o755)
        os.chmod(opened.path, 0o666)
        argv = [sys.executable, "-ISc", asks, opened.path, "65534"]
        stranger = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)

        printed, _ = await asyncio.wait_for(stranger.communicate(), SECONDS)

        assert printed == b"b''\n"


async def test_closing_is_quick_whatever_peers_do() -> None:
    async with open_channel() as opened:
        opened.authority.goes_on.clear()
        opened.authority.result = CheckResult(True, False, "x" * 2_000_000)
        deaf = await Client.connect(opened.path)
        deaf.stop_reading()
        deaf.ask("checkForChanges")
        await until(lambda: opened.authority.checks)
        opened.authority.goes_on.set()
        await asyncio.sleep(0)

        begun = time.monotonic()
        await opened.channel.close()

        assert time.monotonic() - begun < 3.0, "it takes 0.1 s on an idle machine"


async def test_a_socket_that_a_cleaner_removed_is_there_again_under_its_path() -> None:
    async with connected(limits=ControlLimits(look_seconds=0.01)) as (opened, client):
        await client.call("system.ping")

        os.unlink(opened.path)

        await until(lambda: os.path.exists(opened.path))
        other = await Client.connect(opened.path)
        assert (await other.call("system.ping"))["result"]["pong"]
        assert (await client.call("system.ping"))["result"]["pong"], "who was connected does not notice"
        await until(lambda: listening(opened.path) == 1)


async def test_the_socket_of_a_proxy_that_was_killed_is_removed_by_the_next() -> None:
    left = pipe_path(channel_name())
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(left)
        killed.listen()

    async with open_channel() as opened:
        await until(lambda: not os.path.exists(left))

        assert os.path.exists(opened.path), "its own stays"


def listening(path: str) -> int:
    """How many sockets listen under that name; one whose file was removed still has it."""
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()]
    return sum(row[-1] == path and row[3] == "00010000" for row in rows)
