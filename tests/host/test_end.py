"""How a Host ends: for every reason, in time, with a last word for everybody, and with nothing left behind."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.bundled import BOTH, PATIENCE, BundledHost, changed, visit, write_addin
from support.signals import SIGHUP, SIGQUIT
from support.waiting import wait_for
from uno_devserver.system.processes import is_alive

GRACE_SECONDS = 1.0  # for an IDE to come back, which takes milliseconds
SHORT_GRACE = (
    "from functools import partial",
    "from uno_devserver.host import lifetime",
    f"lifetime.LifetimeLimits = partial(lifetime.LifetimeLimits, ide_grace_seconds={GRACE_SECONDS})",
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, SIGQUIT, SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        entry = json.loads(host.entry.read_text("utf-8"))
        of_a_dead_one = json.dumps({**entry, "ProcessId": 999999})
        (host.registry / "devserver-999999.json").write_text(of_a_dead_one)
        host.process.send_signal(number)
        assert host.ended() == 0
        assert list(host.registry.iterdir()) == []


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    with BundledHost(tmp_path, "--addins", ";", "--ppid", str(parent.pid)) as host:
        parent.communicate(b"\n", PATIENCE)
        assert host.ended() == 0
        assert f"Parent process {parent.pid} not found" in host.output
        assert not host.entry.exists()


def test_msbuild_ends_with_it(tmp_path: Path) -> None:
    started = tmp_path / "started"
    dotnet = tmp_path / "bin" / "dotnet"
    dotnet.parent.mkdir()
    dotnet.write_text(f"#!/bin/sh\ntest $1 = build || exit 1\necho $$ > {started}\nexec sleep 600\n")
    dotnet.chmod(0o755)
    solution = tmp_path / "App.sln"
    solution.write_text("Microsoft Visual Studio Solution File, Format Version 12.00\n")
    environ = {"PATH": f"{dotnet.parent}:/usr/bin:/bin"}

    with BundledHost(tmp_path, "--solution", str(solution), environ=environ) as host:
        pid = wait_for(lambda: int(started.read_text() or 0) or None if started.exists() else None)
        began = time.monotonic()
        host.process.terminate()

        assert host.ended() == 0
        assert time.monotonic() - began < 4
        wait_for(lambda: None if is_alive(pid) else True)


FAILING = """
def register(addin):
    @addin.tool
    def fail() -> str:
        raise RuntimeError("x" * 3000)
"""


def test_a_launcher_that_stops_reading_its_output_does_not_stop_it(tmp_path: Path) -> None:
    host = BundledHost(tmp_path, "--addins", write_addin(tmp_path, "failing.py", FAILING))
    host.process = subprocess.Popen(
        host.argv, cwd=tmp_path, env=host.environ, stdin=host.stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        host.port = wait_for(lambda: json.loads(host.entry.read_text())["Port"] if host.entry.exists() else None)
        session = host.open_session()
        for _ in range(100):  # each is in the log with its traceback, and a pipe holds 64 KB
            assert host.mcp("tools/call", {"name": "fail"}, session).json["result"]["isError"]
        host.process.terminate()

        assert host.ended() == 0
        assert not host.entry.exists()
    finally:
        host.__exit__(None, None, None)
        assert host.process.stdout
        host.process.stdout.close()


WAITING = """
import asyncio, time
from uno_devserver.host.addins import AddIn, Context


def register(addin: AddIn) -> None:
    @addin.tool
    async def wait(ctx: Context) -> None:
        ctx.progress(1)
        await asyncio.sleep(600)

    @addin.tool
    def block() -> None:
        time.sleep(600)

    @addin.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Who?", {"type": "object", "properties": {}}))

    @addin.on_stop
    async def end() -> None:
        addin.log.info("the add-in has stopped")
"""
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def test_its_end_answers_everybody_and_leaves_no_loose_ends(tmp_path: Path) -> None:
    """With calls of every kind under way, and told twice to end."""
    host = BundledHost(tmp_path, "--addins", write_addin(tmp_path, "waiting.py", WAITING), "--ideChannel", "one")
    host.argv[1:1] = ["-X", "dev"]  # which makes Python and asyncio complain of what is left behind

    def send(head: str, params: object = None, method: str = "tools/call") -> socket.socket:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = b"" if params is None else json.dumps(message).encode()
        connection = socket.create_connection(("127.0.0.1", host.port), PATIENCE)
        common = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(f"{head}\r\n{common}\r\n".encode() + body)
        return connection

    with host:
        host.health()
        session = f"Accept: {BOTH}\r\nMcp-Session-Id: {host.open_session()}"
        modern = f"Accept: {BOTH}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: "
        old = [
            send(f"POST /mcp HTTP/1.1\r\n{session}", {"name": name, "_meta": {"progressToken": 1}})
            for name in ("wait", "block")
        ]
        new = [
            send(f"POST /mcp HTTP/1.1\r\n{modern}tools/call\r\nMcp-Name: {name}", {"name": name, "_meta": MODERN})
            for name in ("wait", "block", "ask")
        ]
        wish = {"notifications": {"toolsListChanged": True}, "_meta": MODERN}
        told = send(f"POST /mcp HTTP/1.1\r\n{modern}subscriptions/listen", wish, "subscriptions/listen")
        silent = [
            send(f"GET /mcp HTTP/1.1\r\n{session}"),
            send("POST /mcp HTTP/1.1\r\nX: half\r\nTransfer-Encoding: chunked"),
            socket.create_connection(("127.0.0.1", host.port), PATIENCE),
        ]
        for speaking in (old[0], new[0], new[2], told):  # these calls have certainly begun
            assert speaking.recv(9) == b"HTTP/1.1 "
        with connect(f"ws://127.0.0.1:{host.port}/rc") as app, visit(host, "one"):
            began = time.monotonic()
            host.process.terminate()
            host.process.terminate()
            assert host.ended() == 0
            seconds = time.monotonic() - began
            with pytest.raises(Exception, match="1001"):
                app.recv(PATIENCE)
        answers = [b"".join(iter(lambda each=each: each.recv(65536), b"")) for each in (*old, *new, told)]  # type: ignore[misc]
        for each in (*old, *new, told, *silent):
            each.close()

    assert seconds < 4  # the .NET Host takes 30
    assert not host.entry.exists()
    assert [answer.count(b'"id":1') for answer in answers] == [1] * 6
    assert [b"-32011" in answer for answer in answers] == [True, True, True, True, False, False]
    assert b"input_required" in answers[4]
    assert "the add-in has stopped" in host.output
    for complaint in ("Traceback", "never retrieved", "Warning", "destroyed"):
        assert complaint not in host.output


def test_it_is_gone_in_time_even_if_an_addin_never_lets_go(tmp_path: Path) -> None:
    source = "import time\ndef register(addin):\n    @addin.on_stop\n    async def end(): time.sleep(600)\n"
    addin = write_addin(tmp_path, "clinging.py", source)
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lines = (
        "from functools import partial",
        "from uno_devserver.host import lifetime",
        "lifetime.LifetimeLimits = partial(lifetime.LifetimeLimits, shutdown_seconds=0.5)",
    )

    with changed(BundledHost(tmp_path, "--addins", addin, "--ppid", str(parent.pid)), *lines) as host:
        host.health()
        parent.communicate(b"\n", PATIENCE)

        assert host.ended() == 4  # what launchers take for: the parent has gone, and it had to be forced
        assert not host.entry.exists()


def test_it_leaves_when_its_ide_stays_away_and_not_before(tmp_path: Path) -> None:
    with changed(BundledHost(tmp_path, "--addins", ";", "--ideChannel", "one"), *SHORT_GRACE) as host:
        visit(host, "one").close()
        with visit(host, "one"), pytest.raises(subprocess.TimeoutExpired):
            host.process.wait(1.5 * GRACE_SECONDS)  # it came back in time
        left = time.monotonic()

        assert host.ended() == 0
        assert time.monotonic() - left >= GRACE_SECONDS
        assert "its IDE did not come back" in host.output
        assert not host.entry.exists()


def test_an_ide_that_took_over_later_does_not_end_it(tmp_path: Path) -> None:
    with changed(BundledHost(tmp_path, "--addins", ";"), *SHORT_GRACE) as host:
        host.ask("POST", "/devserver/idechannel/two")
        visit(host, "two").close()

        with pytest.raises(subprocess.TimeoutExpired):
            host.process.wait(1.5 * GRACE_SECONDS)
