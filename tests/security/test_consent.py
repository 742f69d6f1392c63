"""Code of a workspace runs only after the user was shown it and agreed: never in passing, and not what came later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence

import pytest

from support.machine import COMMAND, WINDOWS, Machine, Result
from support.odd_servers import odd_server
from support.proxies import Message
from support.terminals import Terminal
from support.waiting import wait_for

from .hostile import ESCAPES
from .marks import CONFIG, Marks, agreements, opened

INSTALL = ("mcp", "install", "cursor")
INSPECT = ("inspect", "--no-open", "--port", "0")
QUESTION = "[y/N]"
Run = Callable[[Machine], Result]
Step = Callable[[Marks], object]
CTRL_C, CTRL_D = b"\x03", b"\x04"


@pytest.fixture
def marks(machine: Machine) -> Iterator[Marks]:
    """A workspace with an add-in; Hosts that are left are stopped."""
    marks = Marks(machine)
    marks.addin("first.py", "first")
    yield marks
    machine.run("stop", "--all")


# --- where nobody can be asked ------------------------------------------------------------------------------------


def ran(*argv: str) -> Run:
    return lambda machine: machine.run(*argv)


def with_a_pipe_full_of_yes(machine: Machine) -> Result:
    line, where, words = [COMMAND, "start"], machine.workspace, "y\n" * 9
    done = subprocess.run(
        line, cwd=where, env=machine.variables(), input=words, capture_output=True, text=True, timeout=60
    )
    return Result(("start",), done.returncode, done.stdout, done.stderr)


def with_errors_in_a_pipe(machine: Machine) -> Result:
    terminal = Terminal(machine, "start", stderr=subprocess.PIPE)
    assert terminal.process.stderr is not None
    errors = terminal.process.stderr.read().decode()
    return Result(("start",), terminal.process.wait(60), terminal.end(), errors)


def as_json_at_a_terminal(machine: Machine) -> Result:
    terminal = Terminal(machine, "start", "--json")
    shown = terminal.end()
    return Result(("start",), terminal.process.returncode, shown, shown)


def inspected(machine: Machine) -> Result:
    """`inspect` until it has told its address, and Ctrl+C."""
    if WINDOWS:
        pytest.skip("no other process can press Ctrl+C there")
    process = machine.spawn(*INSPECT)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=60)
    return Result(INSPECT, process.returncode, told, errors)


ELSEWHERE: dict[str, Run] = {
    "start": ran("start"),
    "start --json": ran("start", "--json"),
    "start --json at a terminal": as_json_at_a_terminal,
    "start with a pipe full of yes": with_a_pipe_full_of_yes,
    "start with standard error in a pipe": with_errors_in_a_pipe,
    "inspect": inspected,
    "mcp install": ran(*INSTALL),
    "mcp install --json": ran(*INSTALL, "--json"),
}


@pytest.mark.parametrize("run", ELSEWHERE.values(), ids=ELSEWHERE)
def test_without_a_terminal_nothing_is_agreed_to_in_passing(marks: Marks, run: Run) -> None:
    done = run(marks.machine)

    assert marks.left == set()
    assert agreements(marks.machine) == []
    assert done.exit_code == 0, "the command goes on without that code"
    assert QUESTION not in done.stderr
    said = (done.stdout + done.stderr).replace("\n  ", " ")
    assert "first.py" in said
    assert "--trust" in said


@pytest.mark.parametrize("argv", [("start", "--trust"), (*INSTALL, "--trust")], ids=["start", "mcp install"])
def test_the_option_agrees_and_the_agreement_counts_from_then_on(marks: Marks, argv: Sequence[str]) -> None:
    done = marks.machine.run(*argv)

    assert done.exit_code == 0, done.stderr
    marks.machine.run("stop", "--all")
    with opened(marks.machine):
        assert marks.left == {"first"}


def test_the_environment_agrees_for_one_command_and_nothing_is_kept(marks: Marks) -> None:
    marks.machine.run("start", env={"UNO_DEVSERVER_TRUST": "1"})

    assert marks.left == {"first"}
    assert agreements(marks.machine) == []


FAILING = {
    "no such Host": ("start", "--host", "dotnet"),
    "no such file": ("start", "--host", "/nowhere/host"),
    "no such address": ("start", "--bind", "300.1.1.1"),
    "no time": ("start", "--timeoutMs", "1"),
    "a client's file that cannot be changed": INSTALL,
}


@pytest.mark.parametrize("trust", [(), ("--trust",)], ids=["", "with --trust"])
@pytest.mark.parametrize("argv", FAILING.values(), ids=FAILING)
def test_a_command_that_fails_keeps_no_agreement(marks: Marks, argv: Sequence[str], trust: Sequence[str]) -> None:
    marks.file(".cursor/mcp.json", "{ broken")

    failed = marks.machine.run(*argv, *trust)

    assert failed.exit_code != 0
    assert agreements(marks.machine) == []


# --- at a terminal --------------------------------------------------------------------------------------------------

AtATerminal = Callable[..., Terminal]


@pytest.fixture
def at_a_terminal(marks: Marks) -> Iterator[AtATerminal]:
    """Begins a command; one that waits for an answer for ever is ended with the test."""
    begun: list[Terminal] = []

    def begin(*argv: str) -> Terminal:
        begun.append(Terminal(marks.machine, *argv))
        return begun[-1]

    yield begin
    for terminal in begun:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait(60)


@pytest.mark.parametrize(
    ("keys", "agrees"),
    [(b"y\n", True), (b"yes\n", True), (b"n\n", False), (b"\n", False), (b"yesterday\n", False), (CTRL_D, False)],
    ids=["y", "yes", "n", "nothing", "another word", "end of input"],
)
def test_at_a_terminal_only_a_yes_agrees(marks: Marks, at_a_terminal: AtATerminal, keys: bytes, agrees: bool) -> None:
    terminal = at_a_terminal("start")

    asked = terminal.until(QUESTION)
    before = marks.left, agreements(marks.machine)
    terminal.press(keys)
    terminal.end()

    assert "first.py" in asked
    assert before == (set(), []), "nothing runs, and nothing is kept, before the answer"
    assert terminal.process.returncode == 0
    assert marks.left == ({"first"} if agrees else set())
    assert bool(agreements(marks.machine)) == agrees


@pytest.mark.parametrize(("argv", "until"), [(INSPECT, "http://"), (INSTALL, "UnoApp")], ids=["inspect", "install"])
def test_the_others_ask_too_and_go_on_without_that_code(
    marks: Marks, at_a_terminal: AtATerminal, argv: Sequence[str], until: str
) -> None:
    terminal = at_a_terminal(*argv)

    assert "first.py" in terminal.until(QUESTION)
    terminal.press(b"n\n")
    terminal.until(until)
    if argv is INSPECT:
        terminal.press(CTRL_C)
    terminal.end()

    assert terminal.process.returncode == 0
    assert (marks.left, agreements(marks.machine)) == (set(), [])


def test_ctrl_c_at_the_question_ends_the_command(marks: Marks, at_a_terminal: AtATerminal) -> None:
    terminal = at_a_terminal("start")

    terminal.until(QUESTION)
    terminal.press(CTRL_C)
    terminal.end()

    assert terminal.process.returncode == 130
    assert (marks.left, agreements(marks.machine)) == (set(), [])
    assert marks.machine.run("list", "--json").json["servers"] == []


def test_a_yes_is_no_agreement_to_what_came_while_the_question_was_open(
    marks: Marks, at_a_terminal: AtATerminal
) -> None:
    terminal = at_a_terminal("start")

    terminal.until(QUESTION)
    marks.addin("late.py", "late")
    terminal.press(b"y\n")
    terminal.end()

    marks.machine.run("stop", "--all")
    with opened(marks.machine):
        assert "late" not in marks.left


def test_a_name_cannot_repaint_the_question(marks: Marks, at_a_terminal: AtATerminal) -> None:
    marks.addin(f"{ESCAPES}.py", "first")
    terminal = at_a_terminal("start")

    asked = terminal.until(QUESTION)
    terminal.press(b"n\n")
    terminal.end()

    assert "pwned" in asked
    assert "\x1b]0;pwned" not in asked
    assert "\u202e" not in asked


# --- what an agreement names ----------------------------------------------------------------------------------------


def served(marks: Marks, scripts: str = "{}", compiles: str = "{}") -> None:
    """A server and an extension of the config; `npm` leaves a mark instead of building them."""
    program, *arguments = odd_server()
    server = {"command": program, "args": arguments}
    marks.file(CONFIG, json.dumps({"mcpServer": server, "mcpServerRoot": "../server", "extensionPath": "../extension"}))
    marks.file("server/package.json", f'{{"name": "s", "main": "index.js", "scripts": {scripts}}}')
    marks.file("extension/package.json", f'{{"name": "e", "main": "index.js", "scripts": {compiles}}}')
    marks.program(marks.machine.tools / "npm", "new")


def edit(marks: Marks) -> None:
    for folder in ("server", "extension"):
        marks.file(f"{folder}/index.js", f"// {os.urandom(8).hex()}")


def nothing(marks: Marks) -> None:
    marks.file(CONFIG, "{}")
    (marks.machine.workspace / ".devtools/addins/first.py").unlink()


# What was there when the user agreed, and what a later `git pull` brings.
LATER: dict[str, tuple[Step, Step]] = {
    "an add-in file": (lambda _: None, lambda marks: marks.addin("second.py", "new")),
    "an add-in folder": (lambda _: None, lambda marks: marks.addin("second/__init__.py", "new")),
    "the first code": (nothing, lambda marks: marks.addin("second.py", "new")),
    "a build": (served, lambda marks: served(marks, '{"build": "x"}')),
    "a build of the extension": (served, lambda marks: served(marks, "{}", '{"compile": "x"}')),
}


@pytest.mark.parametrize(("before", "later"), LATER.values(), ids=LATER)
def test_code_of_a_new_kind_asks_again(marks: Marks, before: Step, later: Step) -> None:
    before(marks)
    edit(marks)
    marks.machine.run("trust")

    later(marks)
    refused = used(marks)
    ran_before = marks.left
    marks.machine.run("trust")
    agreed = used(marks, until=lambda: "new" in marks.left)

    assert "new" not in ran_before
    assert "WorkspaceNotTrusted" in refused
    assert "new" in marks.left, "the trick is none that could never work"
    assert "WorkspaceNotTrusted" not in agreed


def test_a_proxy_that_runs_does_not_load_an_add_in_that_appears(marks: Marks) -> None:
    marks.machine.run("trust")
    with opened(marks.machine) as (client, _):
        assert marks.left == {"first"}

        def is_decided(report: Message) -> bool:
            client.request("tools/call", {"name": "echo", "arguments": {}})  # which has edited code loaded
            return "new" in marks.left or "WorkspaceNotTrusted" in str(report["issues"])

        marks.addin("second.py", "new")
        client.wait_health(is_decided, "either")

        assert "new" not in marks.left


EDITS: dict[str, tuple[Step, Step]] = {
    "of an add-in": (lambda _: None, lambda marks: marks.addin("first.py", "new")),
    "of a module of an add-in": (
        lambda marks: marks.addin("two/__init__.py", "two"),
        lambda marks: (marks.addin("two/__init__.py", "new"), marks.addin("two/more.py", "two")),
    ),
    "of a build's script": (
        lambda marks: served(marks, '{"build": "x"}'),
        lambda marks: served(marks, '{"build": "x --faster"}'),
    ),
}


@pytest.mark.parametrize(("before", "later"), EDITS.values(), ids=EDITS)
def test_edits_of_what_was_agreed_to_do_not_ask(marks: Marks, before: Step, later: Step) -> None:
    before(marks)
    edit(marks)
    marks.machine.run("trust")

    later(marks)
    issues = used(marks)

    assert "new" in marks.left
    assert "WorkspaceNotTrusted" not in issues


def used(marks: Marks, until: Callable[[], bool] = lambda: True) -> str:
    """Open the workspace, edit its code and call a tool, which has it built; the issues of its health.

    An edit of an extension counts from when its code is watched, a moment after the connection: `until` then, it is
    edited again.
    """
    with opened(marks.machine) as (client, report):

        def edited() -> bool:
            edit(marks)
            client.request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
            return until()

        wait_for(edited, "the build")
        return f"{report['issues']} {client.health()['issues']}"
