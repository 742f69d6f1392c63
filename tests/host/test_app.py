"""The Host as a process: its flags, files, endpoints and end, as a launcher, an agent and an IDE see them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.bundled import BOTH, PATIENCE, BundledHost, ask, joined, run_host, wait_for, write_addin
from uno_devserver.system.processes import is_alive

GREETER = '''
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    def greet(name: str, times: int = 1) -> str:
        """Says hello."""
        return f"hello {name} " * times
'''
BROKEN = "raise RuntimeError('no such luck')\n"


# Flags


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--httpPort"),
        (["--httpPort", "abc"], "'abc'"),
        (["--httpPort", "70000"], "'70000'"),
        (["--httpPort", "-5"], "'-5'"),
        (["--httpPort", "0", "--ppid", "abc"], "--ppid"),
        (["--httpPort", "0", "--solution", "/nowhere/App.sln"], "/nowhere/App.sln"),
        (["--HTTPPORT"], "Write --httpPort <port>."),
        (["--httpPort", "0", "--bind", "nowhere.invalid"], "nowhere.invalid"),
        (["--command=dance"], "dance"),
    ],
)
def test_bad_arguments_end_with_1_and_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run_host(tmp_path, *arguments)

    assert done.returncode == 1
    assert said in done.stderr
    assert "next: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said_plainly(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = run_host(tmp_path, "--httpPort", str(port), "--addins", ";")

    assert done.returncode == 1
    assert f"Port {port} is taken" in done.stderr


def test_flags_may_come_from_the_environment(tmp_path: Path) -> None:
    host = BundledHost(tmp_path, environ={"UNO_DEVSERVER_httpPort": "0", "UNO_DEVSERVER_addins": ";"})
    host.argv = host.argv[: host.argv.index("--httpPort")]

    with host:
        assert host.health()["addIns"] == []
        assert "no add-ins are loaded" not in host.output


def test_a_folder_that_is_gone_is_said_plainly(tmp_path: Path) -> None:
    host = BundledHost(tmp_path, "--addins", ";")
    (tmp_path / "gone").mkdir()
    command = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh", *host.argv]

    done = subprocess.run(command, cwd=tmp_path, env=host.environ, capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 1
    assert "folder does not exist any more" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_host_command_is_the_same_host(tmp_path: Path) -> None:
    host = BundledHost(tmp_path, "--addins", ";")
    host.argv[:4] = [str(Path(sys.executable).with_name("uno-devserver")), "host"]

    with host:
        assert host.health()["status"] == "Healthy"


def test_help_shows_the_flags(tmp_path: Path) -> None:
    done = run_host(tmp_path, "--help")

    assert done.returncode == 0
    assert "--ideChannel" in done.stdout


# The registry


def test_it_is_in_the_registry_while_it_runs(tmp_path: Path) -> None:
    solution = tmp_path / "App.sln"
    solution.touch()

    with BundledHost(tmp_path, "--addins", ";", "--solution", "App.sln", "--ppid", str(os.getpid())) as host:
        entry = json.loads(host.entry.read_text("utf-8"))
        path = host.entry

    assert list(entry) == [
        "ProcessId", "ParentProcessId", "SolutionPath", "StartTime", "Port", "MachineName", "UserName", "IdeChannelId",
    ]  # fmt: skip
    assert entry["ProcessId"] == host.process.pid
    assert entry["ParentProcessId"] == os.getpid()
    assert entry["SolutionPath"] == str(solution)
    assert entry["Port"] == host.port
    assert host.process.returncode == 0
    assert not path.exists()


def test_a_registry_that_does_not_answer_keeps_it_neither_from_serving_nor_from_ending(tmp_path: Path) -> None:
    hang = "app.register = app.unregister = lambda *_: threading.Event().wait()"
    lines = ("import threading", "from uno_devserver.host import app", "app.REGISTRY_SECONDS = 0.1", hang)
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        assert host.health()["status"] == "Healthy"
        host.process.terminate()

        assert host.ended() == 0
        assert host.output.count("did not answer within 0.1 s") == 2


def test_a_registry_that_cannot_be_written_is_only_a_warning(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")

    with BundledHost(tmp_path, "--addins", ";") as host:
        assert host.health()["status"] == "Healthy"
        assert "Failed to register" in host.output


# Endpoints


def test_it_answers_on_both_loopback_addresses_and_on_no_other(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        assert host.ask("GET", "/health").status == 200
        if socket.has_ipv6:
            assert host.ask("GET", "/health", address="::1").status == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((_own_address(), host.port), 2).close()


def test_bind_opens_it_to_others(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";", "--bind", "0.0.0.0") as host:
        assert host.ask("GET", "/health", address=_own_address()).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/rc", "/health", "/devserver/idechannel/x", "/applaunch/x"])
@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}])
def test_web_sites_are_refused_everywhere(tmp_path: Path, path: str, header: dict[str, str]) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        assert host.ask("POST", path, headers=header).status == 403


def test_health_shows_a_failed_addin_and_the_host_lives_on(tmp_path: Path) -> None:
    good = write_addin(tmp_path, "greeter.py", GREETER)
    broken = write_addin(tmp_path, "broken.py", BROKEN)

    with BundledHost(tmp_path, "--addins", joined([broken, tmp_path / "missing.py", "/x/Some.dll", good])) as host:
        report = host.health()
        assert report["status"] == "Degraded"
        assert [addin["loaded"] for addin in report["addIns"]] == [False, False, False, True]
        errors = [addin["error"] for addin in report["addIns"]]
        assert "no such luck" in errors[0]
        assert "missing.py" in errors[1] or "exist" in errors[1]
        assert ".NET Host" in errors[2]
        assert host.call("greet", name="Ada")["content"][0]["text"].startswith("hello Ada")
        told = json.loads(host.call("uno_health")["content"][0]["text"])
        assert told["status"] == "Degraded"


def test_the_log_says_when_and_what_is_loaded_and_why_something_is_not(tmp_path: Path) -> None:
    good = write_addin(tmp_path, "greeter.py", "__version__ = '1.0'\n" + GREETER)
    failing = write_addin(tmp_path, "failing.py", "def begin():\n    raise RuntimeError('no luck')\n\nbegin()\n")
    unreadable = write_addin(tmp_path, "unreadable.py", "def register(addin):\n    x = = 3\n")

    with BundledHost(tmp_path, "--addins", joined([failing, unreadable, good])) as host:
        host.health()
        lines = host.output.splitlines()

    stamped = [line.partition(" ")[2] for line in lines if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", line)]
    assert "Add-in greeter 1.0 is loaded: 1 tool." in stamped
    place = lines.index("    raise RuntimeError('no luck')")
    assert stamped[0] == "warn: [failing] loading failed:"
    assert lines[place - 3 : place] == [
        f'  File "{failing}", line 4, in <module>',
        "    begin()",
        f'  File "{failing}", line 2, in begin',
    ]
    place = lines.index("    x = = 3")
    assert lines[place - 1] == f'  File "{unreadable}", line 2'
    assert lines[place + 1 : place + 3] == ["        ^", "SyntaxError: invalid syntax"]
    assert any(line.startswith("Now listening on: ") for line in lines)
    assert any(line.startswith("DevServer registered: ") for line in lines)


def test_health_as_a_resource(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        session = host.open_session()
        result = host.mcp("resources/read", {"uri": "uno://health"}, session).json["result"]
        assert json.loads(result["contents"][0]["text"])["status"] == "Healthy"


def test_bad_json_is_a_json_rpc_error_and_not_a_500(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        reply = host.ask("POST", "/mcp", b"{nope", {"Content-Type": "application/json", "Accept": BOTH})
        assert reply.status == 400
        assert reply.json["error"]["code"] == -32700


def test_paths_ignore_case_and_a_last_slash(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        assert host.ask("GET", "/Health/").status == 200
        assert host.ask("GET", "/MCP/").status == 406
        assert host.ask("GET", "/").status == 404
        assert host.ask("DELETE", "/health").status == 405
        assert host.ask("GET", "/rc").status == 400


# Add-ins and MSBuild


def test_addins_win_over_the_solution_and_empty_means_none(tmp_path: Path) -> None:
    solution = tmp_path / "App.sln"
    solution.touch()
    spaced = write_addin(tmp_path / "with blanks", "greeter.py", GREETER)

    with BundledHost(tmp_path, "--solution", str(solution), "--addins", f" {spaced} ; ;{spaced};") as host:
        assert [addin["name"] for addin in host.health()["addIns"]] == ["greeter"]
    with BundledHost(tmp_path, "--solution", str(solution), "--addins", "") as host:
        report = host.health()
        assert (report["addIns"], report["discoveryError"], report["status"]) == ([], None, "Healthy")


def test_without_addins_msbuild_is_asked_for_those_of_the_solution(tmp_path: Path) -> None:
    solution = tmp_path / "App.sln"
    solution.write_text("Microsoft Visual Studio Solution File, Format Version 12.00\n")

    with BundledHost(tmp_path, "--solution", str(solution), environ={"PATH": "/nowhere"}) as host:
        report = host.health()
        assert report["status"] == "Degraded"
        assert "dotnet" in report["discoveryError"]
        assert host.open_session()


def test_without_addins_and_solution_it_says_that_there_are_none(tmp_path: Path) -> None:
    with BundledHost(tmp_path) as host:
        assert host.health()["status"] == "Healthy"
        assert "no add-ins are loaded" in host.output


# Its end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        host.process.send_signal(number)
        assert host.ended() == 0
        assert list(host.registry.iterdir()) == []


def test_an_open_app_connection_and_an_open_stream_do_not_hold_it_up(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        session = host.open_session()
        stream = socket.create_connection(("127.0.0.1", host.port), PATIENCE)
        head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
        stream.sendall(head.encode())
        assert stream.recv(15).startswith(b"HTTP/1.1 200")
        with connect(f"ws://127.0.0.1:{host.port}/rc") as app:
            started = time.monotonic()
            host.process.terminate()
            assert host.ended() == 0
            seconds = time.monotonic() - started
            with pytest.raises(Exception, match="1001"):
                app.recv(PATIENCE)
        stream.close()

    assert seconds < 4  # the .NET Host takes 30


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    with BundledHost(tmp_path, "--addins", ";", "--ppid", str(parent.pid)) as host:
        parent.communicate(b"\n", PATIENCE)
        assert host.ended() == 0
        assert f"Parent process {parent.pid} not found" in host.output
        assert not host.entry.exists()


def test_a_tool_that_never_returns_does_not_keep_it(tmp_path: Path) -> None:
    marker = tmp_path / "called"
    source = (
        "import pathlib, time\n"
        "def register(addin):\n"
        "    @addin.tool\n"
        "    def hang() -> str:\n"
        f"        pathlib.Path({str(marker)!r}).touch()\n"
        "        time.sleep(600)\n"
    )
    addin = write_addin(tmp_path, "hang.py", source)

    with BundledHost(tmp_path, "--addins", addin) as host:
        session = host.open_session()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hang", "arguments": {}}}
        body = json.dumps(message).encode()
        caller = socket.create_connection(("127.0.0.1", host.port), PATIENCE)
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {BOTH}\r\n"
            f"Mcp-Session-Id: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        caller.sendall(head.encode() + body)
        wait_for(lambda: marker.exists() or None)
        started = time.monotonic()
        host.process.terminate()
        host.ended()
        assert time.monotonic() - started < 8
        assert not host.entry.exists()
        caller.close()


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
        with connect(f"ws://127.0.0.1:{host.port}/rc"), visit(host, "one"):
            began = time.monotonic()
            host.process.terminate()
            host.process.terminate()
            assert host.ended() == 0
            seconds = time.monotonic() - began
        answers = [b"".join(iter(lambda each=each: each.recv(65536), b"")) for each in (*old, *new, told)]  # type: ignore[misc]
        for each in (*old, *new, told, *silent):
            each.close()

    assert seconds < 4
    assert [answer.count(b'"id":1') for answer in answers] == [1] * 6
    assert [b"-32011" in answer for answer in answers] == [True, True, True, True, False, False]
    assert b"input_required" in answers[4]
    assert "the add-in has stopped" in host.output
    for complaint in ("Traceback", "never retrieved", "Warning", "destroyed"):
        assert complaint not in host.output


# The IDE channel


def test_an_ide_channel_is_a_pipe_and_can_be_rebound(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";", "--ideChannel", "one") as host:
        folder = Path(host.temp.name)
        assert (folder / "CoreFxPipe_one").is_socket()
        assert "IDE Channel : Configured: \\\\.\\pipe\\one" in host.output

        assert host.ask("POST", "/devserver/idechannel/two").json == {"ideChannelId": "two"}
        assert (folder / "CoreFxPipe_two").is_socket()
        assert not (folder / "CoreFxPipe_one").exists()
        assert json.loads(host.entry.read_text("utf-8"))["IdeChannelId"] == "two"
        with socket.socket(socket.AF_UNIX) as ide:
            ide.connect(str(folder / "CoreFxPipe_two"))
            assert b"KeepAliveIdeMessage" in ide.recv(4096)
            wait_for(lambda: host.health()["ideChannelConnected"] or None)
        assert host.ask("POST", "/devserver/idechannel/").status == 400


def test_a_channel_that_cannot_be_opened_is_said_at_once(tmp_path: Path) -> None:
    done = run_host(tmp_path, "--httpPort", "0", "--addins", ";", "--ideChannel", "x" * 200)

    assert done.returncode == 1
    assert "next: " in done.stderr


def _own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no network address besides loopback")
        return str(probe.getsockname()[0])


def changed(host: BundledHost, *lines: str) -> BundledHost:
    """That Host, with something changed inside it: a time that a test cannot wait for, a disk that hangs."""
    program = [*lines, "import sys", "from uno_devserver.cli.controller import control"]
    program += ["from uno_devserver.host.main import main", "sys.exit(main(sys.argv[1:], control))"]
    host.argv[:4] = [sys.executable, "-c", "\n".join(program)]
    return host


SHORT_GRACE = (
    "from functools import partial",
    "from uno_devserver.host import lifetime",
    "lifetime.Policy = partial(lifetime.Policy, ide_grace_seconds=0.5)",
)


def visit(host: BundledHost, channel: str) -> socket.socket:
    """An IDE that is connected."""
    ide = socket.socket(socket.AF_UNIX)
    ide.connect(str(Path(host.temp.name) / f"CoreFxPipe_{channel}"))
    assert b"KeepAliveIdeMessage" in ide.recv(4096)
    return ide


def test_it_leaves_when_its_ide_stays_away_and_not_before(tmp_path: Path) -> None:
    with changed(BundledHost(tmp_path, "--addins", ";", "--ideChannel", "one"), *SHORT_GRACE) as host:
        visit(host, "one").close()
        with visit(host, "one"), pytest.raises(subprocess.TimeoutExpired):
            host.process.wait(1)  # it came back in time
        left = time.monotonic()

        assert host.ended() == 0
        assert time.monotonic() - left >= 0.5
        assert "its IDE did not come back" in host.output
        assert not host.entry.exists()


def test_an_ide_that_took_over_later_does_not_end_it(tmp_path: Path) -> None:
    with changed(BundledHost(tmp_path, "--addins", ";"), *SHORT_GRACE) as host:
        host.ask("POST", "/devserver/idechannel/two")
        visit(host, "two").close()

        with pytest.raises(subprocess.TimeoutExpired):
            host.process.wait(1)


def test_two_hosts_do_not_share_a_port(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        done = run_host(tmp_path, "--httpPort", str(host.port), "--addins", ";")

        assert done.returncode == 1
        assert "is taken" in done.stderr
        assert ask(host.port, "GET", "/health").json["processId"] == host.process.pid
