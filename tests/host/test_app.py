"""The Host as a process: its flags, files, endpoints and end, as a launcher, an agent and an IDE see them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.bundled import BOTH, PATIENCE, BundledHost, ask, joined, run_host, wait_for, write_addin

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
        (["--httpPort"], "--httpport"),
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


def test_two_hosts_do_not_share_a_port(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        done = run_host(tmp_path, "--httpPort", str(host.port), "--addins", ";")

        assert done.returncode == 1
        assert "is taken" in done.stderr
        assert ask(host.port, "GET", "/health").json["processId"] == host.process.pid
