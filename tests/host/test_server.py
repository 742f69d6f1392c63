"""The Host as a process: its flags, files, endpoints and IDE channel, as launchers, agents and IDEs see them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.bundled import HOST, PATIENCE, BundledHost, ask, changed, joined, run_host, visit, write_addin
from support.machine import COMMAND, DATA_HOME
from support.waiting import wait_for

GREETER = '''
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    def greet(name: str, times: int = 1) -> str:
        """Says hello."""
        return f"hello {name} " * times
'''
BROKEN = "raise RuntimeError('no such luck')\n"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BundledHost]:
    """A Host without add-ins, for tests that change nothing of it."""
    with BundledHost(tmp_path_factory.mktemp("host"), "--addins", ";") as host:
        yield host


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
        (["--httpPort", "0", "--addins", ";", "--ideChannel", "x" * 300], "--ideChannel"),
    ],
)
def test_bad_arguments_end_with_1_and_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run_host(tmp_path, *arguments)

    assert done.returncode == 1
    assert said in done.stderr
    assert "next: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said_plainly(tmp_path: Path, host: BundledHost) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        for port in (stranger.getsockname()[1], host.port):
            done = run_host(tmp_path, "--httpPort", str(port), "--addins", ";")

            assert done.returncode == 1
            assert f"Port {port} is taken" in done.stderr
    assert ask(host.port, "GET", "/health").json["processId"] == host.process.pid


def test_a_folder_that_is_gone_is_said_plainly(tmp_path: Path) -> None:
    host = BundledHost(tmp_path, "--addins", ";")
    (tmp_path / "gone").mkdir()
    command = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh", *host.argv]

    done = subprocess.run(command, cwd=tmp_path, env=host.environ, capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 1
    assert "folder does not exist any more" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_host_command_is_the_same_host(tmp_path: Path) -> None:
    source = "import gc\ndef register(addin):\n    addin.tool(name='collects')(lambda: str(gc.isenabled()))\n"
    host = BundledHost(tmp_path, "--addins", write_addin(tmp_path, "collecting.py", source))
    host.argv[:4] = [COMMAND, "host"]

    with host:
        assert host.health()["status"] == "Healthy"
        assert host.call("collects")["content"][0]["text"] == "True"  # commands do without, a Host lives for days


@pytest.mark.parametrize(("level", "shown"), [("Debug", True), ("Information", False)])
def test_the_log_shows_what_it_is_told_to(tmp_path: Path, level: str, shown: bool) -> None:
    with BundledHost(tmp_path, "--addins", ";", "--log-level", level, "--ppid", str(os.getpid())) as host:
        assert ("dbug: " in host.output) is shown


@pytest.mark.parametrize("arguments", [["--help"], ["--httpPort", "0", "--addins", ";"]])
def test_an_output_that_takes_nothing_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    """As a file on a disk that is full."""
    environ = BundledHost(tmp_path).environ
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen([*HOST, *arguments], env=environ, stdout=full, stderr=subprocess.PIPE)
    if "--help" not in arguments:
        registry = tmp_path / "data" / "Uno Platform" / "DevServers" / f"devserver-{process.pid}.json"
        wait_for(registry.exists)
        process.terminate()
    _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0
    assert b"Exception" not in errors


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


def test_whoever_gets_an_answer_finds_it_in_the_registry(tmp_path: Path) -> None:
    lines = (
        "import glob, os",
        "from uno_devserver.protocol.http.server import HttpServer",
        "start = HttpServer.start",
        "async def checked(self):",
        f"    entries = os.path.join(os.environ[{DATA_HOME!r}], '*', 'DevServers', f'devserver-{{os.getpid()}}.json')",
        "    print('entries before it answers:', len(glob.glob(entries)))",
        "    await start(self)",
        "HttpServer.start = checked",
    )
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        assert "entries before it answers: 1" in host.output


def test_whoever_finds_it_in_the_registry_learns_which_folder_it_serves(tmp_path: Path) -> None:
    lines = (
        "from uno_devserver.host import server",
        "register = server.register",
        "def checked(folder, entry):",
        "    print('knows its folder before it is found:', server.has_sidecar(folder, entry.process_id))",
        "    return register(folder, entry)",
        "server.register = checked",
    )
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        assert "knows its folder before it is found: True" in host.output
        sidecar = host.entry.with_suffix(".aux.json")
        assert json.loads(sidecar.read_text("utf-8"))["WorkspaceDirectory"] == str(tmp_path)


def test_what_its_launcher_has_recorded_stays(tmp_path: Path) -> None:
    lines = (
        "from uno_devserver.host import server",
        "def faster(folder, pid):",
        "    server.write_sidecar(folder, pid, ide_channel=None, workspace='/of the launcher', log_file='/its.log')",
        "    return False",
        "server.has_sidecar = faster  # it was written a moment after the look",
    )
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        sidecar = json.loads(host.entry.with_suffix(".aux.json").read_text("utf-8"))
        assert (sidecar["WorkspaceDirectory"], sidecar["LogFile"]) == ("/of the launcher", "/its.log")


def test_a_registry_that_hangs_delays_neither_clients_nor_an_ide_nor_the_end(tmp_path: Path) -> None:
    hang = "server.register = server.unregister = server.update_channel = lambda *_: threading.Event().wait()"
    lines = ("import threading", "from uno_devserver.host import server", "server.REGISTRY_SECONDS = 0.1", hang)
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        assert host.health()["status"] == "Healthy"
        assert host.ask("POST", "/devserver/idechannel/one").json == {"ideChannelId": "one"}
        visit(host, "one").close()
        host.process.terminate()

        assert host.ended() == 0
        assert host.output.count("did not answer within 0.1 s") == 3


def test_a_registry_that_cannot_be_written_is_only_a_warning(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")

    with BundledHost(tmp_path, "--addins", ";") as host:
        assert host.health()["status"] == "Healthy"
        assert "Failed to register" in host.output


def test_a_channel_that_cannot_be_recorded_is_bound_all_the_same(tmp_path: Path) -> None:
    lines = (
        "from uno_devserver.host import server",
        "def full(*_): raise server.FileProblem('devserver.json', 'no space left')",
        "server.update_channel = full",
    )
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        assert host.ask("POST", "/devserver/idechannel/one").status == 200
        visit(host, "one").close()
        assert "The registry does not show the IDE channel one: " in host.output


def test_the_channel_bound_last_is_registered_however_slowly_others_are_written(tmp_path: Path) -> None:
    lines = (
        "import os, threading",
        "from uno_devserver.host import server",
        "write, second = server.update_channel, threading.Event()",
        "def slow(folder, pid, channel):",
        "    if channel == 'one':",
        "        open(os.path.join(folder, 'begun'), 'w').close()",
        "        second.wait(1)  # the second is written before the first, if nothing prevents it",
        "    written = write(folder, pid, channel)",
        "    second.set()",
        "    return written",
        "server.update_channel = slow",
    )
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        binds = [
            threading.Thread(target=host.ask, args=("POST", f"/devserver/idechannel/{name}")) for name in ("one", "two")
        ]
        binds[0].start()
        wait_for((host.entry.parent / "begun").exists)
        binds[1].start()
        for bind in binds:
            bind.join()

        assert json.loads(host.entry.read_text("utf-8"))["IdeChannelId"] == "two"


def test_a_channel_that_is_bound_while_the_host_ends_does_not_register_it_again(tmp_path: Path) -> None:
    lines = (
        "import threading",
        "from uno_devserver.host import server",
        "from uno_devserver.instances import registry",
        "read, update, remove = registry.read_members, server.update_channel, server.unregister",
        "removed = threading.Event()",
        "def read_slowly(file):",
        "    members = read(file)",
        "    removed.wait(0.5)  # the entry is removed between reading and writing, if nothing prevents it",
        "    return members",
        "def update_slowly(*arguments):",
        "    registry.read_members = read_slowly",
        "    return update(*arguments)",
        "def unregister(*arguments):",
        "    registry.read_members = read",
        "    remove(*arguments)",
        "    removed.set()",
        "server.update_channel, server.unregister = update_slowly, unregister",
    )
    with changed(BundledHost(tmp_path, "--addins", ";"), *lines) as host:
        bind = threading.Thread(target=host.ask, args=("POST", "/devserver/idechannel/one"))
        bind.start()
        wait_for(lambda: (Path(host.temp.name) / "CoreFxPipe_one").is_socket())
        host.process.terminate()
        assert host.ended() == 0
        bind.join()

        assert not host.entry.exists()


# Endpoints


def test_it_answers_on_both_loopback_addresses_and_on_no_other(host: BundledHost) -> None:
    assert host.ask("GET", "/health").status == 200
    if socket.has_ipv6:
        assert host.ask("GET", "/health", address="::1").status == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((_own_address(), host.port), 2).close()


def test_bind_opens_it_to_others_who_may_call_the_machine_by_its_name(tmp_path: Path, host: BundledHost) -> None:
    named = {"Host": socket.gethostname()}
    refused = host.ask("GET", "/health", headers=named)
    assert (refused.status, "by which this server is not reached; use localhost" in refused.json["error"]) == (
        403,
        True,
    )
    with BundledHost(tmp_path, "--addins", ";", "--bind", "0.0.0.0") as open_host:
        assert open_host.ask("GET", "/health", address=_own_address()).status == 200
        assert open_host.ask("GET", "/health", headers=named).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/rc", "/health", "/devserver/idechannel/x", "/applaunch/x"])
@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}])
def test_web_sites_are_refused_everywhere(host: BundledHost, path: str, header: dict[str, str]) -> None:
    assert host.ask("POST", path, headers=header).status == 403


def test_pages_that_are_isolated_can_load_its_answers(host: BundledHost) -> None:
    headers = host.ask("GET", "/health").headers

    assert headers["cross-origin-embedder-policy"] == "require-corp"
    assert headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/Health/", 200),
        ("GET", "/MCP/", 406),
        ("GET", "/", 404),
        ("DELETE", "/health", 405),
        ("GET", "/rc", 400),
        ("POST", "/rc", 405),
        ("HEAD", "/rc", 405),
        ("POST", "/devserver/idechannel/", 404),
        ("POST", "/devserver/idechannel/a/b", 404),
        ("GET", "/applaunch/%7B0b7a1a0e-8d1c-4f0e-9d58-0c2f5d1f3a10%7D", 200),
        ("GET", "/applaunch/asm", 400),
    ],
)
def test_paths_lead_where_those_of_the_dotnet_host_do(host: BundledHost, method: str, path: str, status: int) -> None:
    assert host.ask(method, path).status == status


# Add-ins and MSBuild


def test_health_shows_a_failed_addin_and_the_host_lives_on(tmp_path: Path) -> None:
    good = write_addin(tmp_path, "greeter.py", GREETER)
    broken = write_addin(tmp_path, "broken.py", BROKEN)

    assembly = tmp_path / "Some.dll"
    assembly.write_bytes(b"MZ")

    missing = [tmp_path / "missing.py", tmp_path / "Missing.dll"]
    with BundledHost(tmp_path, "--addins", joined([broken, *missing, assembly, good])) as host:
        report = host.health()
        assert report["status"] == "Degraded"
        assert [addin["loaded"] for addin in report["addIns"]] == [False, False, False, False, True]
        errors = [addin["error"] for addin in report["addIns"]]
        assert "no such luck" in errors[0]
        assert all(f"{path} does not exist" in error for path, error in zip(missing, errors[1:3], strict=True))
        assert ".NET Host" in errors[3]
        assert host.call("greet", name="Ada")["content"][0]["text"].startswith("hello Ada")
        told = json.loads(host.call("uno_health")["content"][0]["text"])
        assert told["status"] == "Degraded"


def test_a_tool_that_is_missing_because_its_addin_failed_says_so_with_the_code(tmp_path: Path) -> None:
    broken = write_addin(tmp_path, "broken.py", BROKEN)

    with BundledHost(tmp_path, "--addins", joined([broken])) as host:
        host.health()
        answer = host.mcp("tools/call", {"name": "greet", "arguments": {}}, host.open_session()).json

    message = answer["error"]["message"]
    assert message.startswith("Unknown tool: 'greet'")
    assert "AddInLoadFailed: broken" in message
    assert "no such luck" in message


def test_the_log_says_when_and_what_is_loaded_and_why_something_is_not(tmp_path: Path) -> None:
    good = write_addin(tmp_path, "greeter.py", "__version__ = '1.0'\n" + GREETER)
    failing = write_addin(tmp_path, "failing.py", "def begin():\n    raise RuntimeError('no luck')\n\nbegin()\n")
    unreadable = write_addin(tmp_path, "unreadable.py", "def register(addin):\n    x = = 3\n")

    with BundledHost(tmp_path, "--addins", joined([failing, unreadable, good])) as host:
        host.health()
        # The further lines of an entry are indented by six; Python 3.13 underlines more.
        lines = [line.removeprefix(" " * 6) for line in host.output.splitlines() if "~" not in line]

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


COUNTING = """
def register(addin):
    @addin.health
    def health() -> str:
        return "counting"

    @addin.tool
    def count() -> str:
        addin.resource_updated("counter://now")
        addin.remove_tool("other")
        return "counted"

    @addin.tool
    def other() -> None: ...
"""


def test_health_says_what_there_is_and_how_it_is(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", write_addin(tmp_path, "counting.py", COUNTING)) as host:
        report = host.health()
        assert report["addIns"][0]["detail"] == "counting"
        assert report["toolCount"] == 3  # with its own
        host.call("count")
        report = host.health()

    assert report["toolCount"] == 2
    assert report["sessions"] == 1
    assert report["processId"] == host.process.pid
    assert report["port"] == host.port


def test_changes_reach_those_whom_they_concern(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", write_addin(tmp_path, "counting.py", COUNTING)) as host:
        host.health()
        watching, other = host.open_session(), host.open_session()
        host.mcp("resources/subscribe", {"uri": "counter://now"}, watching)
        host.call("count")
        told = {session: _first_events(host, session) for session in (watching, other)}

    updated, changed_list = b"notifications/resources/updated", b"notifications/tools/list_changed"
    assert [updated in told[session] for session in (watching, other)] == [True, False]
    assert [changed_list in told[session] for session in (watching, other)] == [True, True]


def _first_events(host: BundledHost, session: str) -> bytes:
    """What a session is told, up to the change of the tools."""
    with socket.create_connection(("127.0.0.1", host.port), PATIENCE) as stream:
        head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
        stream.sendall(head.encode())
        told = b""
        while b"tools/list_changed" not in told:
            told += stream.recv(65536)
        return told


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


# The IDE channel


def test_an_ide_channel_is_a_pipe_and_can_be_rebound(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";", "--ideChannel", "one") as host:
        folder = Path(host.temp.name)
        assert (folder / "CoreFxPipe_one").is_socket()
        assert "IDE Channel : Configured: \\\\.\\pipe\\one" in host.output

        assert host.ask("POST", "/devserver/IDEchannel/Two").json == {"ideChannelId": "Two"}
        assert (folder / "CoreFxPipe_Two").is_socket()
        assert not (folder / "CoreFxPipe_one").exists()
        assert json.loads(host.entry.read_text("utf-8"))["IdeChannelId"] == "Two"
        with socket.socket(socket.AF_UNIX) as ide:
            ide.connect(str(folder / "CoreFxPipe_Two"))
            assert b"KeepAliveIdeMessage" in ide.recv(4096)
            wait_for(lambda: host.health()["ideChannelConnected"])


def test_an_ide_that_came_early_hears_of_addins_that_failed_later(tmp_path: Path) -> None:
    go = tmp_path / "go"
    source = (
        f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nraise RuntimeError('too late')\n"
    )
    addin = write_addin(tmp_path, "late.py", source)

    with BundledHost(tmp_path, "--addins", addin, "--ideChannel", "one") as host, visit(host, "one") as ide:
        wait_for(lambda: host.ask("GET", "/health").json["ideChannelConnected"])
        go.touch()
        ide.settimeout(PATIENCE)
        heard = b""
        while b"too late" not in heard:
            heard += ide.recv(4096)

    assert b"Unable to load Studio" in heard


NOTES = """
import asyncio, pathlib

def register(addin):
    heard, go = pathlib.Path(addin.workspace, "heard"), pathlib.Path(addin.workspace, "go")

    def note(word):
        with heard.open("a") as file:
            file.write(word + "\\n")

    @addin.ide_message("Acme.Note")
    def take(body, ide):
        if body["Word"] == "bad":
            raise ValueError("bad")
        note(body["Word"])

    @addin.ide_message("Acme.Hang")
    async def hang(body, ide):
        while not go.exists():
            await asyncio.sleep(0.005)
        note("hung")
"""


def test_messages_of_the_ide_reach_the_launches_and_the_add_ins_whatever_these_do(tmp_path: Path) -> None:
    mvid = "9f8f6a1e-4a2b-4f0e-8a65-0b7a3c9d1e2f"
    launch = {"Mvid": mvid, "Platform": "Desktop", "Ide": "vs", "Plugin": "1"}
    messages: list[tuple[str, dict[str, Any]]] = [
        ("AppLaunchRegisterIdeMessage", {"Ide": "vs", "Plugin": "1"}),
        ("AppLaunchRegisterIdeMessage", launch),
        *(("Acme.Note", {"Word": word}) for word in ("one", "bad", "two")),
        ("Acme.Other", {}),
        ("Acme.Hang", {}),
        ("Acme.Note", {"Word": "three"}),
    ]
    lines = ("from uno_devserver.host import server", "server.HANDLER_SECONDS = 0.05")
    host = BundledHost(tmp_path, "--addins", write_addin(tmp_path, "notes.py", NOTES), "--ideChannel", "one")
    heard = tmp_path / "heard"

    def wait_until_heard(*words: str) -> None:
        wait_for(lambda: heard.exists() and heard.read_text().split() == list(words))

    with changed(host, *lines), visit(host, "one") as ide:
        host.health()
        for type_name, body in messages:
            ide.sendall(_frame(type_name, body))
        wait_until_heard("one", "two", "three")
        (tmp_path / "go").touch()
        wait_until_heard("one", "two", "three", "hung")
        (known,) = host.health()["launches"]

    assert (known["mvid"], known["ide"]) == (mvid, "vs")
    assert "needs Mvid, Ide and Plugin" in host.output
    assert "[notes] the handler of Acme.Hang has been running for more than 0.05 s." in host.output


def _frame(type_name: str, body: dict[str, Any]) -> bytes:
    envelope = {"MessageType": f"{type_name}, Acme", "MessageBody": json.dumps(body)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendToDevServerAsync", "params": [envelope]}
    data = json.dumps(call).encode()
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


def _own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no network address besides loopback")
        return str(probe.getsockname()[0])
