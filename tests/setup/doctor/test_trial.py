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

from support.hosts import is_running
from support.odd_servers import Notes, odd_server
from support.waiting import wait_for
from uno_devserver.setup.doctor import trial
from uno_devserver.setup.doctor.launch_spec import LaunchSpec
from uno_devserver.setup.doctor.trial import MAX_PAGES, Trial, patience_of, try_address, try_command


def spec(command: tuple[str, ...], folder: Path, url: str = "", limit: float | None = None) -> LaunchSpec:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return LaunchSpec(command, str(folder), environ, url, {"X-Token": "mine"}, limit, ())


def tried(folder: Path, **manners: object) -> Trial:
    command = tuple(odd_server(**manners))
    return try_command(command[0], spec(command, folder))


def script_tried(folder: Path, script: str) -> Trial:
    return try_command(sys.executable, spec((sys.executable, "-c", script), folder))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "PATIENCE_SECONDS", 1.5)


def test_a_server_that_works_tells_its_tools_and_how_long_each_step_took(tmp_path: Path) -> None:
    found = tried(tmp_path, tools=3)

    assert (found.problem, found.tools) == ("", 3)
    assert list(found.milliseconds) == ["spawn", "initialize", "tools"]
    assert found.seconds == sum(found.milliseconds.values()) / 1000 > 0


@pytest.mark.parametrize(
    ("manners", "tools"),
    [({"era": "modern", "tools": 2}, 2), ({"tools": 0}, 0), ({"garbage": True, "tools": 1}, 1)],
    ids=["modern era", "no tools", "prints before it speaks"],
)
def test_servers_of_other_manners_work_too(tmp_path: Path, manners: dict[str, object], tools: int) -> None:
    found = tried(tmp_path, **manners)

    assert (found.problem, found.tools) == ("", tools)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            "print('no such module', file=sys.stderr); sys.exit(3)",
            "It ended with exit code 3 before it answered. Its last output: no such module",
        ),
        (
            "sys.exit('\\n'.join(map(str, range(20))))",
            "It ended with exit code 1 before it answered. Its last output: 15 / 16 / 17 / 18 / 19",
        ),
        (
            "[print('hello', number, flush=True) for number in range(50)]",
            "On its output, where only MCP belongs, it printed: hello 0; hello 1; hello 2",
        ),
    ],
)
def test_a_server_that_dies_is_quoted(tmp_path: Path, script: str, problem: str) -> None:
    found = script_tried(tmp_path, f"import sys; {script}")

    assert found.tools is None
    assert found.problem.endswith(problem)


def test_one_that_is_killed_is_told_with_the_signal(tmp_path: Path) -> None:
    assert "It ended with signal 9 before it answered." in tried(tmp_path, dies=-9).problem


def test_the_end_of_a_server_is_noticed_although_a_child_holds_its_output(tmp_path: Path) -> None:
    begun = time.monotonic()

    found = script_tried(
        tmp_path, "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); sys.exit(4)"
    )

    assert "exit code 4" in found.problem
    assert time.monotonic() - begun < 20, "not the patience for a server that runs"


@pytest.mark.usefixtures("impatient")
def test_one_that_never_answers_is_given_up_and_told_with_its_clients_limit(tmp_path: Path) -> None:
    command = tuple(odd_server(never_reads=True))

    found = tried(tmp_path, never_reads=True)
    limited = try_command(command[0], spec(command, tmp_path, limit=0.5))

    assert found.problem == "It gave no answer within 1.5 s."
    assert list(found.milliseconds) == ["spawn"]
    assert limited.problem == "It gave no answer within 1.5 s; its client waits 0.5 s."


@pytest.mark.parametrize(("limit", "patience"), [(None, 60.0), (5.0, 15.0), (30.0, 40.0), (300.0, 60.0)])
def test_a_server_has_somewhat_longer_than_its_client_waits(
    tmp_path: Path, limit: float | None, patience: float
) -> None:
    assert patience_of(spec((), tmp_path, limit=limit)) == patience


@pytest.mark.usefixtures("impatient")
def test_what_stands_where_only_messages_belong_is_shown_although_the_server_runs(tmp_path: Path) -> None:
    problem = script_tried(tmp_path, "print('Welcome to my tool!', flush=True); input(); input()").problem

    assert problem.startswith("It ")
    assert "On its output, where only MCP belongs, it printed: Welcome to my tool!" in problem


def test_one_that_refuses_is_quoted(tmp_path: Path) -> None:
    assert "refuses" in tried(tmp_path, refuses=-32000).problem


def listing(folder: Path, *pages: str, capabilities: Sequence[str] = ("tools",)) -> Trial:
    """Of a server that answers `tools/list` with one of these texts after the other, and then always with the last."""
    offers: dict[str, object] = {name: {} for name in capabilities}
    hello = json.dumps({"protocolVersion": "2025-06-18", "capabilities": offers, "serverInfo": {}})
    return script_tried(
        folder,
        "import json, sys\n"
        f"pages = {list(pages)!r}\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        f"        result = {hello!r} if asked['method'] == 'initialize' else pages.pop(0) if pages[1:] else pages[0]\n"
        '        print(\'{"jsonrpc": "2.0", "id": %d, "result": %s}\' % (asked[\'id\'], result), flush=True)\n',
    )


@pytest.mark.parametrize("tools", ["5", '"none"', "null", "{}"])
def test_one_whose_list_of_tools_is_no_list_does_not_work(tmp_path: Path, tools: str) -> None:
    problem = listing(tmp_path, f'{{"tools": {tools}}}').problem

    assert problem.startswith("Its answer to tools/list has no list of tools.")


@pytest.mark.parametrize(
    ("pages", "tools"),
    [
        (('{"tools": [{}, {}], "nextCursor": "2"}', '{"tools": [{}]}'), 3),
        (('{"tools": [{}], "nextCursor": "again"}',), MAX_PAGES),
    ],
)
def test_tools_on_several_pages_are_counted_within_a_bound(tmp_path: Path, pages: tuple[str, ...], tools: int) -> None:
    assert listing(tmp_path, *pages).tools == tools


def test_one_that_offers_no_tools_is_not_asked_for_them(tmp_path: Path) -> None:
    found = listing(tmp_path, "5", capabilities=())

    assert (found.problem, found.tools) == ("", 0)


def test_a_program_that_cannot_be_executed_says_why(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("no shebang\n")
    script.chmod(0o755)

    problem = try_command(str(script), spec((str(script),), tmp_path)).problem

    assert problem == f"'{script}' cannot be started: Exec format error."


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert "cannot be started: No such file or directory." in script_tried(tmp_path / "gone", "").problem


@pytest.mark.parametrize("stays", [False, True])
def test_nothing_is_left_of_a_server_and_what_it_had_started(tmp_path: Path, stays: bool) -> None:
    notes = Notes(tmp_path / "notes")

    found = tried(tmp_path, notes=notes, tools=1, stays=stays, ignores_sigterm=True, grandchild=True)

    assert found.problem == ""
    assert notes.starts
    assert notes.children
    assert not any(map(is_running, notes.starts))
    wait_for(lambda: None if any(map(is_running, notes.children)) else True)  # a killed one takes a moment


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
    found = try_address(spec((), tmp_path, web.address("/mcp")))

    assert (found.problem, found.tools) == ("", 2)
    assert list(found.milliseconds) == ["initialize", "tools"]
    assert set(web.heard) == {"mine"}


def test_an_address_where_something_else_or_nothing_answers_is_told(tmp_path: Path, web: Web) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"

    other, nothing, no_address = (
        try_address(spec((), tmp_path, url)).problem for url in (web.address("/docs"), free, "file:///etc/passwd")
    )

    assert "answered with HTTP 404 and text/html" in other
    assert nothing == f"The server at {free} refuses connections."
    assert "is not the URL of an HTTP server" in no_address
