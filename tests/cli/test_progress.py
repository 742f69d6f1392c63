"""What takes long shows that it lives: on a real terminal, after a second, and without leaving anything there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import Manners, StandInHosts
from support.machine import RUN_SECONDS, Machine
from support.servers import IGNORES_SIGTERM, Processes, Registry
from support.terminals import Terminal, columns_of, open_terminal, shown
from support.workspace import WorkspaceBuilder
from uno_devserver.cli.interrupts import ENDING
from uno_devserver.cli.progress import AFTER_SECONDS, CLEAR, _StatusLine, shown_while

if sys.platform != "win32":
    pass

FRAMES = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ")

# A command that runs until there is a file of the name `go`; its progress line comes after `after` seconds.
SLOW = """
import os, sys, time
from uno_devserver.cli import main as program, progress
from uno_devserver.cli.progress import say
from uno_devserver.cli.result import Result
from uno_devserver.system.log import log
progress.AFTER_SECONDS = {after}
def until_drawn(is_drawn=True):
    while sys.stderr._is_drawn is not is_drawn:
        time.sleep(0.01)
def run(invocation):
    {body}
    while not os.path.exists("go"):
        time.sleep(0.01)
    return Result({{"ok": True}}, "done")
program._runner = lambda command: run
code = program.main(sys.argv[1:])
sys.stderr.write(f"threads: {{len(sys._current_frames())}}\\n")
sys.exit(code)
"""
SOON = 0.05
LATER = "time.sleep(0.3)"  # a line would have been drawn by then


class Slow:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def start(self, *argv: str, body: str = "pass", after: float = SOON, **options: object) -> Terminal:
        options.setdefault("env", {"NO_COLOR": "1"})
        program = (sys.executable, "-c", SLOW.format(body=body, after=after))
        return Terminal(self._machine, *argv, program=program, **options)  # type: ignore[arg-type]

    def let_go(self) -> None:
        (self._machine.workspace / "go").touch()

    def end(self, terminal: Terminal) -> str:
        self.let_go()
        return terminal.end()


@pytest.fixture
def slow(machine: Machine) -> Iterator[Slow]:
    slow = Slow(machine)
    yield slow
    slow.let_go()


# --- the line -----------------------------------------------------------------------------------------------------


def test_after_a_second_it_says_what_is_done_and_for_how_long(slow: Slow) -> None:
    terminal = slow.start("list", after=AFTER_SECONDS)

    begun = time.monotonic()
    terminal.until("Looking for servers … 1 s")

    assert time.monotonic() - begun >= AFTER_SECONDS / 2, "the process takes a moment before it begins to count"
    assert shown(slow.end(terminal)) == ["done", "threads: 1"]


def test_what_is_over_within_a_second_shows_nothing(machine: Machine) -> None:
    took, deadline = AFTER_SECONDS, time.monotonic() + RUN_SECONDS
    while took >= AFTER_SECONDS:  # a busy machine
        assert time.monotonic() < deadline
        begun = time.monotonic()
        sent = Terminal(machine, "list").end()
        took = time.monotonic() - begun

    assert CLEAR not in sent
    assert not FRAMES.search(sent)


def test_a_new_activity_replaces_the_one_before(slow: Slow) -> None:
    terminal = slow.start("list", body="say('Asking the Host')")

    terminal.until("Asking the Host … 0 s")

    assert "Looking for servers" not in slow.end(terminal)


def test_it_is_cleared_before_the_log_writes_and_drawn_again(slow: Slow) -> None:
    terminal = slow.start("list", body="until_drawn(); log.warn('first'); until_drawn(); log.warn('second')")

    terminal.until("second\r\n")
    terminal.until(" s")  # it is drawn once more

    assert shown(slow.end(terminal)) == ["warn: first", "warn: second", "done", "threads: 1"]
    assert len(re.findall(r"s\r\x1b\[Kwarn: ", terminal.sent)) == 2


def test_a_line_that_was_begun_is_left_alone(slow: Slow) -> None:
    body = f"until_drawn(); sys.stderr.write('begun '); sys.stderr.flush(); {LATER}; log.warn('ended')"
    terminal = slow.start("list", body=body)

    terminal.until("ended")

    assert "begun warn: ended" in shown(slow.end(terminal))


def test_an_error_finds_an_empty_line(slow: Slow) -> None:
    body = "until_drawn(); from uno_devserver.issues import UserError; raise UserError('A', 'b', 'c')"
    terminal = slow.start("list", body=body)

    assert shown(terminal.end()) == ["error: b", "next: c", "threads: 1"]
    assert CLEAR in terminal.sent


def test_ctrl_c_ends_it_and_the_command(slow: Slow) -> None:
    terminal = slow.start("list")
    terminal.until("0 s")

    terminal.press(b"\x03")
    terminal.end()

    assert terminal.process.returncode == 130
    assert [line for line in shown(terminal.sent) if "^C" not in line] == ["threads: 1"]


@pytest.mark.parametrize("what", ["'Waiting for ' + 'something long ' * 20", "'日本' * 40"], ids=["long", "wide"])
def test_it_stays_within_one_line(slow: Slow, what: str) -> None:
    terminal = slow.start("list", body=f"say({what})", columns=40)

    terminal.until(" 0 s\r\x1b[K")
    slow.end(terminal)

    drawn = [part for part in terminal.sent.split(CLEAR) if FRAMES.match(part)]
    assert drawn
    assert max(columns_of(part) for part in drawn) < 40


@pytest.mark.skipif(sys.platform != "linux", reason="Linux shows which signals a thread blocks")
def test_its_thread_takes_no_signal_that_ends_the_command() -> None:
    """The main thread may wait for an answer, which only a signal to itself interrupts."""
    tasks = Path("/proc/self/task")

    def blocks_ending_signals(task: str) -> bool:
        (blocked,) = re.findall(r"SigBlk:\s*(\w+)", (tasks / task / "status").read_text("utf-8"))
        return all(int(blocked, 16) >> (number - 1) & 1 for number in ENDING)

    before = {*os.listdir(tasks)}
    own = shown_while("waiting", lambda: [blocks_ending_signals(task) for task in {*os.listdir(tasks)} - before])

    assert own == [True]
    assert not blocks_ending_signals(str(threading.get_native_id()))


def test_in_the_background_it_leaves_the_terminal_to_others(slow: Slow) -> None:
    given_away = """
    import signal, subprocess
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    other = subprocess.Popen(["/bin/sleep", "30"], process_group=0)
    until_drawn()
    os.tcsetpgrp(2, other.pid)
    until_drawn(False)
    log.warn("from behind")
    other.kill()
    other.wait()
    """
    terminal = slow.start("list", body=given_away.strip())

    terminal.until("from behind")
    slow.end(terminal)

    assert f"{CLEAR}warn: from behind" not in terminal.sent
    assert terminal.sent.endswith("warn: from behind\r\ndone\r\nthreads: 1\r\n")


def test_a_terminal_of_ascii_gets_ascii(slow: Slow) -> None:
    terminal = slow.start("list", env={"PYTHONIOENCODING": "ascii"})

    terminal.until("Looking for servers ... 0 s")

    assert slow.end(terminal).isascii()


def test_a_terminal_that_went_away_does_not_stop_the_work() -> None:
    ours, theirs = open_terminal()
    stream = os.fdopen(theirs, "w")
    os.close(ours)
    line = _StatusLine(stream)

    line.draw()
    line.clear()

    with pytest.raises(OSError):  # it really had gone
        stream.close()


# --- where there is none ------------------------------------------------------------------------------------------


def test_a_terminal_that_cannot_clear_a_line_gets_none(slow: Slow) -> None:
    terminal = slow.start("list", body=f"{LATER}; log.warn('alive')", env={"TERM": "dumb"})

    terminal.until("alive")

    assert "Looking for servers" not in slow.end(terminal)


def test_json_on_a_terminal_is_json_alone(slow: Slow) -> None:
    terminal = slow.start("list", "--json", body=LATER)

    document, _, rest = slow.end(terminal).rpartition("threads")

    assert json.loads(document) == {"ok": True}
    assert rest == ": 1\r\n"


def test_a_pipe_gets_nothing_of_it(slow: Slow, machine: Machine) -> None:
    command = [sys.executable, "-c", SLOW.format(body=LATER, after=SOON), "list"]
    slow.let_go()

    result = subprocess.run(command, cwd=machine.workspace, env=machine.variables(), capture_output=True)

    assert (result.stdout, result.stderr) == (b"done\n", b"threads: 1\n")


def test_without_a_terminal_nothing_is_imported_for_it(machine: Machine) -> None:
    code = "import sys\nfrom uno_devserver.cli.main import main\nmain(['list'])\nprint(*sys.modules)"
    command = [sys.executable, "-c", code]

    result = subprocess.run(command, cwd=machine.workspace, env=machine.variables(), capture_output=True, text=True)

    assert "uno_devserver.cli.list" in result.stdout.split()
    assert not {"uno_devserver.cli.progress", "uno_devserver.cli.terminal"} & set(result.stdout.split())


@pytest.mark.parametrize("typed", ["mcp start", "host", "--mcp-app"])
def test_a_proxy_on_a_terminal_shows_none(slow: Slow, typed: str) -> None:
    assert not FRAMES.search(slow.end(slow.start(*typed.split(), body=LATER)))


# --- what it says -------------------------------------------------------------------------------------------------


def test_start_says_which_process_it_waits_for(uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    terminal = Terminal(uno.machine, "start")

    terminal.until("Waiting for the Host (process ")
    terminal.until(" 1 s")
    (tmp_path / "go").touch()

    assert "Waiting for the Host" not in "\n".join(shown(terminal.end()))
    assert terminal.process.returncode == 0


def test_stop_says_whose_end_it_waits_for(machine: Machine, registry: Registry, processes: Processes) -> None:
    stubborn = processes.start(IGNORES_SIGTERM)
    registry.sign_in(stubborn.pid, workspace=machine.workspace)
    terminal = Terminal(machine, "stop", "--all")

    terminal.until(f"Waiting for the end of process {stubborn.pid} … 1 s")
    stubborn.kill()

    assert "Successfully stopped 1 DevServer(s)" in shown(terminal.end())


def test_the_doctor_says_whose_entry_it_tries(machine: Machine) -> None:
    program = machine.tools / "slow-server"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n")
    program.chmod(0o755)
    (machine.workspace / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"UnoApp": {"command": str(program), "args": ["--mcp-app"]}}})
    )
    terminal = Terminal(machine, "mcp", "doctor", "claude-code", "--force")

    terminal.until("Starting what Claude Code would start … ")
    terminal.press(b"\x03")
    terminal.end()

    assert terminal.process.returncode == 130


def test_disco_says_that_msbuild_is_asked(uno: WorkspaceBuilder) -> None:
    dotnet = Path(str(uno.machine.dotnet and uno.machine.dotnet.root)) / "dotnet"
    go = uno.machine.root / "go"
    dotnet.rename(dotnet.with_name("dotnet-itself"))
    waiting = f"while ! test -e '{go}'; do /bin/sleep 0.05; done"
    dotnet.write_text(f'#!/bin/sh\ncase "$1" in build|msbuild) {waiting};; esac\nexec "{dotnet}-itself" "$@"\n')
    dotnet.chmod(0o755)
    terminal = Terminal(uno.machine, "disco", "--force-msbuild-discovery")

    terminal.until("Asking MSBuild for the add-ins … 1 s")
    go.touch()

    assert "Discovery" in shown(terminal.end())
