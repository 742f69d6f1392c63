"""A server that was repaired is a new one: its protocol version is negotiated anew, and calls are made in that era."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.files import write
from support.machine import Machine
from support.odd_servers import Notes, odd_server
from support.proxies import MODERN, NEWEST_HANDSHAKE, Message, Proxies, ProxyClient
from support.reloading import SHORT_PAUSES
from support.waiting import wait_for

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
ENDS_AT_ONCE = "raise SystemExit('broken')\n"
ENDS_WHEN_GREETED = "import sys\nsys.stdin.readline()\nraise SystemExit('broken')\n"


class Program:
    """The file of a server, which is edited while the proxy runs it."""

    def __init__(self, path: Path, notes: Notes) -> None:
        self.path = path
        self.notes = notes

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-IS", str(self.path))

    def save(self, source: str) -> None:
        """As editors do: a new file takes the place of the old one."""
        new = write(self.path.with_name(".new"), source)
        new.replace(self.path)

    def be(self, era: str, *, shy: bool = False) -> None:
        """A server of that era. `shy`: it ends when its first message is not initialize."""
        argv = list(odd_server(era=era, shy=shy, notes=self.notes))
        self.save(f"import os\nos.execv({argv[0]!r}, {argv!r})\n")

    def calls(self) -> list[Message]:
        """The params of the calls that came there."""
        return [message["params"] for message in self.notes.received if message.get("method") == "tools/call"]


@pytest.fixture
def program(machine: Machine, tmp_path: Path) -> Program:
    return Program(machine.workspace / "server.py", Notes(tmp_path / "notes"))


def wait_served(client: ProxyClient, process: int | None = None) -> str:
    """Call until somebody answers, who is not that process; the protocol version that was agreed on."""

    def answered(report: Message) -> bool:
        served = not client.call_result("echo", text="x").get("isError")
        upstream = report["proxy"]["upstream"] or {}
        return served and (process is None or upstream.get("processId") != process)

    client.wait_health(answered, "served by the repaired server")
    version = client.wait_connected()["proxy"]["upstream"]["protocolVersion"]
    return str(version)


def check_modern(client: ProxyClient, program: Program) -> None:
    assert client.call("echo", text="in its era") == "in its era"
    last = program.calls()[-1]
    assert last["_meta"][VERSION_KEY] == MODERN
    assert json.loads(client.call("facts"))["era"] == "modern"


def configure(machine: Machine, program: Program) -> None:
    """A server of the workspace is started again when its file is saved, and needs nobody who calls."""
    command, *arguments = program.command
    config = {"mcpServerRoot": "..", "mcpServer": {"command": command, "args": arguments}}
    write(machine.workspace / ".devtools" / "host.config.jsonc", json.dumps(config))


@pytest.mark.parametrize("options", ["config", "typed"])
def test_after_a_failed_start_and_its_repair_the_version_is_negotiated_anew(
    proxies: Proxies, program: Program, machine: Machine, options: str
) -> None:
    configure(machine, program)
    program.save(ENDS_WHEN_GREETED if options == "config" else ENDS_AT_ONCE)
    client = proxies.start(*(("--", *program.command) if options == "typed" else ()), prefix=SHORT_PAUSES)
    client.initialize(modern=True)
    client.wait_state("Degraded")

    program.be("both")

    assert wait_served(client) == MODERN
    check_modern(client, program)


def test_the_call_that_asks_for_a_new_attempt_waits_for_it(proxies: Proxies, program: Program) -> None:
    program.save(ENDS_AT_ONCE)
    client = proxies.start("--", *program.command, prefix=SHORT_PAUSES)
    client.initialize()
    client.wait_state("Degraded")

    program.be("handshake")
    answers: list[Message] = []

    def is_served() -> bool:
        answers.append(client.call_result("echo", text="x"))
        return not answers[-1].get("isError")

    wait_for(is_served, "the end of the pause between two attempts")
    assert answers[-1]["content"][0]["text"] == "x"
    for earlier in answers[:-1]:
        assert "s or later makes a new attempt" in earlier["content"][0]["text"], "it said when it is tried again"


@pytest.mark.parametrize("shy", [False, True], ids=["it knows no server/discover", "it ends on server/discover"])
def test_new_code_that_speaks_the_newer_era_is_served_in_that(
    proxies: Proxies, program: Program, machine: Machine, shy: bool
) -> None:
    configure(machine, program)
    program.be("handshake", shy=shy)
    client = proxies.start()
    client.initialize(modern=True)
    report = client.wait_connected()
    client.wait_health(lambda report: report["proxy"]["hotReload"], "watching the code")
    assert report["proxy"]["upstream"]["protocolVersion"] == NEWEST_HANDSHAKE
    assert client.call("echo", text="older") == "older"

    program.be("both")

    assert wait_served(client, report["proxy"]["upstream"]["processId"]) == MODERN
    check_modern(client, program)
