"""The client above its wrappers: found in chains of processes, and missed within a second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import is_running
from support.waiting import wait_for
from uno_devserver.proxy.front.client_watch import (
    CLIENT as CLIENT_VARIABLE,
)
from uno_devserver.proxy.front.client_watch import (
    client_chain,
    is_wrapper,
    sends_nothing,
    watch_client,
    watch_ends,
)
from uno_devserver.system.ancestry import Ancestor

from ..front_process import PATIENCE, command

GONE_SECONDS = 1.0
BUSY = 20  # times longer on a machine that runs other tests


def process(name: str, *arguments: str, pid: int = 1) -> Ancestor:
    return Ancestor(pid, name, arguments or (name,), 0)


@pytest.mark.parametrize(
    "wrapper",
    [
        process("uvx", "uvx", "uno-devserver", "--mcp-app"),
        process("uv", "/home/me/.local/bin/uv", "tool", "uvx", "uno-devserver"),
        process("uv.exe", "C:\\\\tools\\\\uv.exe", "tool", "run", "uno-devserver"),
        process("pipx", "/usr/bin/python3", "/usr/bin/pipx", "run", "uno-devserver"),
        process("python3.11", "python3.11", "-m", "pipx", "run", "uno-devserver"),
        process("node", "node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "-y", "x"),
        process("node", "node", "/usr/bin/npx", "x"),
        process("node.exe", "C:\\\\Program Files\\\\nodejs\\\\node.exe", "C:\\\\Program Files\\\\nodejs\\\\npx-cli.js"),
        process("npm exec uno-de", "npm exec uno-devserver --mcp-app"),
        process("sh", "sh", "-c", "uno-devserver --mcp-app"),
        process("bash", "/bin/bash", "-lc", "uno-devserver --mcp-app"),
        process("bash", "bash", "/home/me/start-mcp.sh"),
        process("cmd.exe", "cmd.exe", "/d", "/s", "/c", "uvx uno-devserver"),
        process("pwsh", "pwsh", "-Command", "uno-devserver --mcp-app"),
        process("dnx", "dnx", "uno.devserver", "--mcp-app"),
        process("dotnet", "dotnet", "dnx", "uno.devserver", "--mcp-app"),
        process("dotnet", "/usr/share/dotnet/dotnet", "/usr/share/dotnet/sdk/tool.dll", "run"),
        process("uno-devserver.exe", "uno-devserver.exe", "--mcp-app"),
    ],
    ids=lambda ancestor: " ".join(ancestor.arguments)[:40],
)
def test_these_only_run_what_they_are_told(wrapper: Ancestor) -> None:
    client = process("claude", pid=7)

    assert is_wrapper(wrapper)
    assert client_chain([wrapper, wrapper, client, wrapper]) == (wrapper, wrapper, client)


@pytest.mark.parametrize(
    "client",
    [
        process("claude"),
        process("node", "node", "/usr/lib/node_modules/@google/gemini-cli/dist/index.js"),
        process("node", "node"),
        process("python", "python", "agent.py", "npx"),
        process("python3", "python3", "-m", "agent"),
        process("dotnet", "dotnet", "MyAgent.dll"),
        process("bash", "-bash"),
        process("bash", "bash", "--login"),
        process("zsh", "zsh", "-i", "-l"),
        process("Code.exe", "C:\\\\Program Files\\\\VS Code\\\\Code.exe", "--type=utility"),
        process("systemd", "/sbin/init"),
    ],
    ids=lambda ancestor: " ".join(ancestor.arguments)[:40],
)
def test_these_are_clients(client: Ancestor) -> None:
    assert not is_wrapper(client)
    assert client_chain([client, process("sh", "sh", "-c", "x")]) == (client,)


def test_who_has_ended_before_we_could_look_is_missed_at_once() -> None:
    reasons: list[str] = []

    watch_client(os.getppid() + 1, reasons.append)

    assert "has ended" in reasons[0]


def test_a_client_that_has_told_who_it_is_ends_the_chain_though_it_looks_like_a_wrapper() -> None:
    launcher, inspect = process("py", pid=5), process("python", "python", "-m", "uno_devserver", "inspect", pid=6)
    shell = process("bash", "bash", "-c", "uno-devserver inspect &", pid=7)

    assert client_chain([launcher, inspect, shell], "6") == (launcher, inspect)
    assert client_chain([launcher, inspect, shell, process("claude")], "99")[:3] == (launcher, inspect, shell)


def test_where_there_is_nobody_there_is_nobody_to_watch() -> None:
    assert client_chain([]) == ()


# --- closed ends ----------------------------------------------------------------------------------------------------


class Ended(Exception):
    """In place of the end of the process."""


def end(reason: str) -> None:
    raise Ended(reason)


class Ends:
    """Our input and output, and the client's ends of them."""

    def __init__(self) -> None:
        self.source, self.input = os.pipe()
        self.output, self.sink = os.pipe()

    def close(self) -> None:
        for handle in (self.source, self.input, self.output, self.sink):
            try:
                os.close(handle)
            except OSError:
                pass  # the test has closed it


@pytest.fixture
def ends() -> Iterator[Ends]:
    both = Ends()
    yield both
    both.close()


def test_a_client_that_has_closed_our_output_does_not_read_any_more(ends: Ends) -> None:
    os.close(ends.output)

    with pytest.raises(Ended, match="does not read any more"):
        watch_ends(ends.source, ends.sink, lambda: 0, end)


@pytest.mark.parametrize("unread", [b"", b"something that nobody reads"])
def test_a_client_that_has_closed_our_input_is_noticed_though_nobody_reads(ends: Ends, unread: bytes) -> None:
    os.write(ends.input, unread)
    os.close(ends.input)
    began = time.monotonic()

    with pytest.raises(Ended, match="closed our input"):
        watch_ends(ends.source, ends.sink, lambda: 5, end)

    assert time.monotonic() - began < GONE_SECONDS * BUSY


def test_as_long_as_the_rest_of_a_closed_input_is_read_it_is_waited_for(ends: Ends) -> None:
    os.close(ends.input)
    reads = iter([1, 2, 3, 4, 4, 5])

    with pytest.raises(Ended, match="closed our input"):
        watch_ends(ends.source, ends.sink, lambda: next(reads), end)

    assert list(reads) == [5]


# --- real chains ----------------------------------------------------------------------------------------------------

# Starts what it is told to, with its own input and output, and waits, as npx does; the rest is in its file's name.
RUNNER = """
import subprocess, sys
sys.exit(subprocess.Popen(sys.argv[1:]).wait())
"""
# A client does the same, and lives on.
CLIENT = """
import subprocess, sys, time
subprocess.Popen(sys.argv[1:]).wait()
time.sleep(1000)
"""


class Chain:
    """A client, wrappers below it, and a proxy below those, whose input never ends: the test holds it open."""

    def __init__(self, folder: Path, wrappers: list[list[str]]) -> None:
        self.read_end, self.write_end = os.pipe()
        client = folder / "client.py"
        client.write_text(CLIENT)
        argv = [sys.executable, str(client), *(word for wrapper in wrappers for word in wrapper), *command()]
        self.client = subprocess.Popen(argv, cwd=folder, stdin=self.read_end, stdout=subprocess.PIPE)
        os.write(self.write_end, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert self.client.stdout
        assert b"result" in self.client.stdout.readline()
        self.pids = [self.client.pid]
        while len(self.pids) < len(wrappers) + 2:
            self.pids.append(_child(self.pids[-1]))
        self.proxy = self.pids[-1]
        wait_for(lambda: _watched(self.proxy) >= len(self.pids) - 1)

    def close(self) -> None:
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.client.wait(PATIENCE)
        assert self.client.stdout
        self.client.stdout.close()
        os.close(self.read_end)
        os.close(self.write_end)


def _child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_for(lambda: children.read_text().split())
    return int(children.read_text().split()[0])


def _watched(pid: int) -> int:
    """How many processes it watches."""
    folder = f"/proc/{pid}/fd"
    targets = []
    for name in os.listdir(folder):
        try:
            targets.append(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:
            pass
    return sum("pidfd" in target for target in targets)


@pytest.fixture
def chains() -> Iterator[list[Chain]]:
    started: list[Chain] = []
    yield started
    for chain in started:
        chain.close()


def runner(folder: Path, name: str) -> list[str]:
    script = folder / name
    script.write_text(RUNNER)
    return [sys.executable, str(script)]


@pytest.mark.parametrize("wrapped", ["directly", "in a shell", "by npx", "by uvx in a shell by npx"])
def test_a_client_that_is_killed_is_missed_though_its_pipe_stays_open(
    tmp_path: Path, chains: list[Chain], wrapped: str
) -> None:
    shell = ["sh", "-c", '"$0" "$@"; true']  # true: else it would become what it runs
    wrappers = {
        "directly": [],
        "in a shell": [shell],
        "by npx": [runner(tmp_path, "npx-cli.js")],
        "by uvx in a shell by npx": [runner(tmp_path, "npx-cli.js"), shell, runner(tmp_path, "uvx.py")],
    }
    chain = Chain(tmp_path, wrappers[wrapped])
    chains.append(chain)

    os.kill(chain.client.pid, signal.SIGKILL)

    wait_for(lambda: not is_running(chain.proxy), seconds=GONE_SECONDS * BUSY)


@pytest.mark.parametrize("killed", [1, 2])
def test_a_wrapper_that_is_killed_is_missed_as_well(tmp_path: Path, chains: list[Chain], killed: int) -> None:
    chain = Chain(tmp_path, [["sh", "-c", '"$0" "$@"; true'], runner(tmp_path, "npx-cli.js")])
    chains.append(chain)

    os.kill(chain.pids[killed], signal.SIGKILL)

    wait_for(lambda: not is_running(chain.proxy), seconds=GONE_SECONDS * BUSY)
    assert is_running(chain.client.pid)


def test_whoever_is_above_the_client_may_end(tmp_path: Path, chains: list[Chain]) -> None:
    chain = Chain(tmp_path, [])
    chains.append(chain)

    assert _watched(chain.proxy) == 1


@pytest.mark.parametrize(
    ("named", "silent"), [(str(os.getppid()), True), (str(os.getpid()), False), ("", False)], ids=["own", "above", "no"]
)
def test_a_command_of_ours_that_starts_a_proxy_sends_it_nothing(
    monkeypatch: pytest.MonkeyPatch, named: str, *, silent: bool
) -> None:
    monkeypatch.setenv(CLIENT_VARIABLE, named)

    assert sends_nothing() is silent
