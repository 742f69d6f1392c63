"""A terminal on a machine: it runs a line of a document as a shell would, and tells what came of it.

A command that stays in the foreground is started, asked whether it serves, and ended as a user would end it: at once,
or, where further commands are about what it shows, with the terminal.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from support.machine import RUN_SECONDS, Machine
from support.ports import lasting_port
from support.proxies import NEWEST_HANDSHAKE
from support.waiting import wait_for
from uno_devserver.cli.parse import Invocation, parse
from uno_devserver.proxy.state import ConnectionState

OPERATORS = {"|", "||", "&&", ";", ">", ">>", "<", "&"}
PORT = re.compile(r"(--(?:httpPort|http|port|inspector) )[1-9]\d*")
LISTENING = re.compile(r"Now listening on: (http://\S+)")
READY = re.compile(r"(DevServer is ready)")
INSPECTOR = re.compile(r"http://(?:[0-9a-f]{20}\.)?(localhost:\d+/)[\s?]")
SETTLED = (ConnectionState.CONNECTED.value, ConnectionState.DEGRADED.value)
HELLO = {
    "protocolVersion": NEWEST_HANDSHAKE,
    "capabilities": {},
    "clientInfo": {"name": "documents", "version": "1"},
}


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    output: str  # of both streams


class Console:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._started = 0
        self._open: list[subprocess.Popen[bytes]] = []

    def run(self, command: str) -> Outcome:
        """The line, with a free port for each that it names, and the running Host for what stands in angle brackets."""
        line = PORT.sub(lambda option: f"{option[1]}{lasting_port()}", self._filled_in(command))
        first = invocation_of(line)
        if first is None or (serving := _serving(first)) is None:
            return self._run(line)
        return self._served(line, serving, inspected="inspector" in first.options, typed=bool(first.child))

    def ask(self, *argv: str) -> Outcome:
        """The same for a test's own question."""
        return self._run(shlex.join(["uno-devserver", *argv]))

    def _filled_in(self, command: str) -> str:
        if not re.search(r"<(pid|port)>", command):
            return command
        servers = json.loads(self.ask("list", "--json").output)["servers"]
        assert servers, f"no Host runs for '{command}'"
        return command.replace("<pid>", str(servers[0]["processId"])).replace("<port>", str(servers[0]["port"]))

    def _run(self, line: str) -> Outcome:
        done = subprocess.run(
            [str(self._machine.tools / "bash"), "-c", line],
            cwd=self._machine.workspace,
            env=self._machine.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=RUN_SECONDS,
        )
        return Outcome(done.returncode, done.stdout)

    def close(self) -> None:
        """Ctrl+C for whatever is still open."""
        for process in self._open:
            _interrupt(process)
        codes = [_ended(process) for process in self._open]
        assert not any(codes), codes

    def _settled(self, page: str) -> bool:
        """Whether the first start of the proxy behind a page has come to its end, well or not."""
        proxies = json.loads(self.ask("list", "--json").output)["proxies"]
        return any(proxy["inspector"] == page and proxy["state"] in SETTLED for proxy in proxies)

    def _served(self, line: str, serving: str, *, inspected: bool, typed: bool) -> Outcome:
        self._started += 1
        log = self._machine.root / f"console-{self._started}.txt"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [str(self._machine.tools / "bash"), "-c", f"exec {line}"],
                cwd=self._machine.workspace,
                env=self._machine.variables(),
                stdin=subprocess.PIPE if serving == "mcp" else subprocess.DEVNULL,
                stdout=subprocess.PIPE if serving == "mcp" else errors,
                stderr=errors,
                start_new_session=True,
            )
        code = 0
        try:
            if serving == "mcp":
                _talk(process)
            elif serving == "ide":
                _printed(process, log, READY)
            elif serving == "host":
                _reach(_printed(process, log, LISTENING) + "/health")
            if inspected or serving == "inspector":
                page = f"http://{_printed(process, log, INSPECTOR)}"
                _reach(page)
                wait_for(lambda: self._settled(page))  # a reader is slower than the next line here
            if serving == "inspector" and (typed or not self._open):
                self._open.append(process)
            elif serving != "inspector":  # a second one has found the page of the first, and ends by itself
                _interrupt(process)
        finally:
            if process not in self._open:
                code = _ended(process)
        return Outcome(code, log.read_text("utf-8", "replace"))


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        process.stdin.close()  # as a client that goes
    elif process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)


def _ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(RUN_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(RUN_SECONDS)
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def invocation_of(line: str) -> Invocation | None:
    """What the first command of the line is, if it is ours."""
    words: list[str] = []
    for word in shlex.split(line, comments=True):
        if word in OPERATORS:
            break
        words.append(word)
    return parse(words[1:]) if words[:1] == ["uno-devserver"] else None


def _serving(invocation: Invocation) -> str | None:
    """How it is asked whether it serves; None for one that ends by itself."""
    name = invocation.command.name if invocation.command else ""
    if invocation.on("help"):
        return None
    if name in ("mcp start", "mcp serve"):
        return None if invocation.on("force-generate-tool-cache") else "mcp"
    if name == "host":
        return "host" if "--httpPort" in invocation.child else None
    if name == "start":
        return "ide" if invocation.value("ideChannel") and not invocation.value("ppid") else None
    return "inspector" if name == "inspect" else None


def _talk(process: subprocess.Popen[bytes]) -> None:
    """Say hello, and ask for the tools; what it prints is the protocol and nothing else."""
    assert process.stdin
    assert process.stdout
    for number, (method, params) in enumerate((("initialize", HELLO), ("tools/list", {})), 1):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while (answer := json.loads(process.stdout.readline())).get("id") != number:
            assert "method" in answer, answer
        assert "result" in answer, answer


def _reach(url: str) -> None:
    with urllib.request.urlopen(url, timeout=RUN_SECONDS) as reply:
        assert reply.status == 200, url


def _printed(process: subprocess.Popen[bytes], log: Path, pattern: re.Pattern[str]) -> str:
    def found() -> str | None:
        text = log.read_text("utf-8", "replace")
        match = pattern.search(text)
        assert match or process.poll() is None, f"it ended with {process.returncode}: {text}"
        return match[1] if match and text.endswith("\n") else None

    return str(wait_for(found))
