"""Attempts to use servers of all manners, as processes and over HTTP."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.bundled import wait_for
from support.hosts import is_running
from support.odd_servers import Notes, odd_server
from uno_devserver.setup.doctor.launch_spec import LaunchSpec
from uno_devserver.setup.doctor.trial import MAX_PAGES, Trial, patience_of, try_address, try_command

IMPATIENT = 1.5  # for servers that never answer


def start(command: tuple[str, ...], folder: Path, url: str = "") -> LaunchSpec:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return LaunchSpec(command, str(folder), environ, url, {"X-Token": "mine"}, None, ())


def tried(folder: Path, patience: float = 20.0, **manners: object) -> Trial:
    command = tuple(odd_server(**manners))
    return try_command(command[0], start(command, folder), patience)


def test_a_server_that_works_tells_its_tools_and_how_long_each_step_took(tmp_path: Path) -> None:
    trial = tried(tmp_path, tools=3)

    assert (trial.problem, trial.tools) == ("", 3)
    assert list(trial.milliseconds) == ["spawn", "initialize", "tools"]
    assert trial.seconds == sum(trial.milliseconds.values()) / 1000 > 0


def test_a_server_of_the_modern_era_works_too(tmp_path: Path) -> None:
    assert tried(tmp_path, era="modern", tools=2).tools == 2


def test_a_server_without_tools_works(tmp_path: Path) -> None:
    assert tried(tmp_path, tools=0).problem == ""


def test_one_that_prints_before_it_speaks_works_as_it_does_for_clients(tmp_path: Path) -> None:
    assert tried(tmp_path, garbage=True, tools=1).tools == 1


def test_a_server_that_dies_is_told_with_its_exit_code_and_last_words(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import sys; print('no such module', file=sys.stderr); sys.exit(3)")

    trial = try_command(command[0], start(command, tmp_path))

    assert trial.tools is None
    assert trial.problem == "It ended with exit code 3 before it answered. Its last words: no such module"


def test_one_that_is_killed_is_told_with_the_signal(tmp_path: Path) -> None:
    assert "It ended with signal 9 before it answered." in tried(tmp_path, dies=-9).problem


def test_the_end_of_a_server_is_noticed_although_a_child_holds_its_output(tmp_path: Path) -> None:
    script = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); sys.exit(4)"
    command = (sys.executable, "-c", script)
    begun = time.monotonic()

    trial = try_command(command[0], start(command, tmp_path), 30.0)

    assert "exit code 4" in trial.problem
    assert time.monotonic() - begun < 10


def test_one_that_never_answers_is_given_up(tmp_path: Path) -> None:
    trial = tried(tmp_path, IMPATIENT, never_reads=True)

    assert trial.problem == "It gave no answer within 1.5 s."
    assert list(trial.milliseconds) == ["spawn"]


def test_what_is_given_up_tells_how_long_its_client_would_have_waited(tmp_path: Path) -> None:
    command = tuple(odd_server(never_reads=True))

    trial = try_command(command[0], start(command, tmp_path).replace(limit_seconds=0.5), IMPATIENT)

    assert trial.problem == "It gave no answer within 1.5 s; its client waits 0.5 s."


@pytest.mark.parametrize(("limit", "patience"), [(None, 60.0), (5.0, 15.0), (30.0, 40.0), (300.0, 60.0)])
def test_a_server_has_somewhat_longer_than_its_client_waits(
    tmp_path: Path, limit: float | None, patience: float
) -> None:
    assert patience_of(start((), tmp_path).replace(limit_seconds=limit)) == patience


def test_what_stands_where_only_messages_belong_is_shown(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "print('Welcome to my tool!', flush=True); input(); input()")

    trial = try_command(command[0], start(command, tmp_path), 2 * IMPATIENT)

    assert trial.problem.startswith("It ")
    assert "On its output, where only MCP belongs, it printed: Welcome to my tool!" in trial.problem


def test_one_that_refuses_is_quoted(tmp_path: Path) -> None:
    assert "refuses" in tried(tmp_path, refuses=-32000).problem


def listing(*pages: str, capabilities: Sequence[str] = ("tools",)) -> tuple[str, ...]:
    """A server that answers `tools/list` with one of these texts after the other, and then always with the last."""
    offers: dict[str, object] = {name: {} for name in capabilities}
    hello = json.dumps({"protocolVersion": "2025-06-18", "capabilities": offers, "serverInfo": {}})
    script = (
        "import json, sys\n"
        f"pages = {list(pages)!r}\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        f"        result = {hello!r} if asked['method'] == 'initialize' else pages.pop(0) if pages[1:] else pages[0]\n"
        '        print(\'{"jsonrpc": "2.0", "id": %d, "result": %s}\' % (asked[\'id\'], result), flush=True)\n'
    )
    return (sys.executable, "-c", script)


@pytest.mark.parametrize("tools", ["5", '"none"', "null", "{}"])
def test_one_whose_list_of_tools_is_no_list_does_not_work(tmp_path: Path, tools: str) -> None:
    command = listing(f'{{"tools": {tools}}}')

    trial = try_command(command[0], start(command, tmp_path), 20.0)

    assert trial.problem.startswith("Its answer to tools/list has no list of tools.")


@pytest.mark.parametrize(
    ("pages", "tools"),
    [
        (('{"tools": [{}, {}], "nextCursor": "2"}', '{"tools": [{}]}'), 3),
        (('{"tools": [{}], "nextCursor": "again"}',), MAX_PAGES),
    ],
)
def test_tools_on_several_pages_are_counted_within_a_bound(tmp_path: Path, pages: tuple[str, ...], tools: int) -> None:
    command = listing(*pages)

    assert try_command(command[0], start(command, tmp_path), 20.0).tools == tools


def test_one_that_offers_no_tools_is_not_asked_for_them(tmp_path: Path) -> None:
    command = listing("5", capabilities=())

    trial = try_command(command[0], start(command, tmp_path), 20.0)

    assert (trial.problem, trial.tools) == ("", 0)


def test_of_many_last_words_the_very_last_are_told(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('\\n'.join(map(str, range(20))))")

    assert try_command(command[0], start(command, tmp_path)).problem.endswith(" Its last words: 15 / 16 / 17 / 18 / 19")


def test_of_many_lines_where_only_messages_belong_the_first_are_shown(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "[print('hello', number, flush=True) for number in range(50)]")

    trial = try_command(command[0], start(command, tmp_path), 20.0)

    assert trial.problem.endswith("it printed: hello 0; hello 1; hello 2")


def test_nothing_is_left_of_what_a_server_that_went_had_started(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")

    trial = tried(tmp_path, notes=notes, tools=1, ignores_sigterm=True, grandchild=True)

    assert trial.problem == ""
    assert notes.children
    wait_for(lambda: None if any(map(is_running, notes.children)) else True)  # a killed one takes a moment


def test_a_program_that_cannot_be_executed_says_why(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("no shebang\n")
    script.chmod(0o755)

    trial = try_command(str(script), start((str(script),), tmp_path))

    assert trial.problem == f"'{script}' cannot be started: Exec format error."


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "")

    trial = try_command(command[0], start(command, tmp_path / "gone"))

    assert "cannot be started: No such file or directory." in trial.problem


def test_nothing_is_left_of_a_server_that_does_not_want_to_go(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")

    trial = tried(tmp_path, notes=notes, tools=1, stays=True, ignores_sigterm=True, grandchild=True)

    assert trial.problem == ""
    assert notes.starts
    assert not [pid for pid in (*notes.starts, *notes.children) if is_running(pid)]


class Web(HTTPServer):
    """An MCP server at `/mcp`, and pages for people elsewhere."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.heard: list[str | None] = []  # the tokens that came with requests

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Pages(BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append(self.headers["X-Token"])
        if self.path != "/mcp":
            self._answer(404, "text/html", b"<html>not here</html>")
        elif "id" not in asked:
            self._answer(202, "application/json", b"")
        else:
            result = {"initialize": HELLO, "tools/list": {"tools": TOOLS}}[asked["method"]]
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
            self._answer(200, "application/json", json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._answer(405, "text/html", b"")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "web", "version": "1"},
}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("search", "fetch")]


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_address_is_asked_with_the_headers_of_the_entry(tmp_path: Path, web: Web) -> None:
    trial = try_address(start((), tmp_path, web.address("/mcp")))

    assert (trial.problem, trial.tools) == ("", 2)
    assert list(trial.milliseconds) == ["initialize", "tools"]
    assert set(web.heard) == {"mine"}


def test_an_address_where_something_else_answers_is_told(tmp_path: Path, web: Web) -> None:
    trial = try_address(start((), tmp_path, web.address("/docs")))

    assert "answered with HTTP 404 and text/html" in trial.problem


def test_an_address_where_nobody_is_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

    trial = try_address(start((), tmp_path, f"http://127.0.0.1:{port}/mcp"))

    assert trial.problem == f"The server at http://127.0.0.1:{port}/mcp refuses connections."


def test_what_is_no_address_says_so(tmp_path: Path) -> None:
    assert "is no URL of an HTTP server" in try_address(start((), tmp_path, "file:///etc/passwd")).problem
