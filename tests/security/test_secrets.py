"""Secrets in variables, headers, files of AI clients and command lines reach no output, no log and no page."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from support.dotnet import write_program
from support.files import write
from support.guarded_server import GuardedServer
from support.http_proxy import LoopbackProxy
from support.inspectors import inspector_of
from support.machine import WINDOWS, Machine
from support.odd_servers import odd_server
from support.proxies import Proxies
from uno_devserver.system.processes import command_line

from .marks import CONFIG

SECRET = "hunter2-x7Qp"
VARIABLES = {
    "API_KEY": f"{SECRET}-key",
    "GITHUB_TOKEN": f"ghp_{SECRET}",
    "DB_PASSWORD": f"{SECRET}-password",
    "DATABASE_URL": f"postgres://user:{SECRET}@db.example/x",
    "NODE_OPTIONS": "--require ./trace.js",
}
SHOWN = "--require ./trace.js"  # variables decide what runs: what is no secret stays to be seen
ON_THE_LINE = ("--token", f"{SECRET}-one", f"--api-key={SECRET}-two", f"--header=Authorization: Bearer {SECRET}-three")


def leaks(texts: dict[str, str]) -> dict[str, list[str]]:
    """The lines with a secret, by where they were found."""
    forms = (SECRET, b64encode(f"me:{SECRET}".encode()).decode()[:16])  # the second as Basic has it
    found = {
        where: [line for line in text.splitlines() if any(form in line for form in forms)]
        for where, text in texts.items()
    }
    return {where: lines for where, lines in found.items() if lines}


def printed(machine: Machine, *commands: str) -> dict[str, str]:
    """What each of these commands prints, as text and as JSON, with the most talkative log."""
    texts = {}
    for command in commands:
        for form in ((), ("--json",)):
            done = machine.run(*command.split(), *form, "--log-level", "Trace")
            texts[" ".join((command, *form))] = done.stdout + done.stderr
    return texts


def kept(machine: Machine) -> dict[str, str]:
    """All that the program has written about itself: state, logs, registry."""
    files = [path for path in machine.data.rglob("*") if path.is_file() and "backups" not in path.parts]
    return {str(path): f"{path}\n{path.read_text('utf-8', 'replace')}" for path in files}


def test_variables_of_a_config_are_named_and_their_secrets_are_not_shown(machine: Machine) -> None:
    write(machine.workspace / CONFIG, json.dumps({"mcpServer": {"command": "serve", "env": VARIABLES}}))

    looks = printed(machine, "config", "trust --dry-run", "mcp install cursor --dry-run", "disco", "health")
    changes = printed(machine, "mcp install cursor", "trust", "trust --list", "list")

    assert leaks(looks | changes | kept(machine)) == {}
    for command in ("config", "config --json", "trust --dry-run", "trust --dry-run --json"):
        for name in VARIABLES:
            assert name in looks[command], command
        assert SHOWN in looks[command], command


@pytest.mark.parametrize("how", ["typed", "configured"])
def test_a_started_command_is_logged_without_its_tokens(machine: Machine, how: str) -> None:
    arguments = odd_server()[2:]
    run = f"import runpy, sys\nsys.argv = {list(arguments)!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    write_program(machine.root / "server", f"#!{sys.executable}\n{run}")  # takes any argument
    command = (str(machine.root / ("server.exe" if WINDOWS else "server")), *ON_THE_LINE)
    if how == "configured":
        write(
            machine.workspace / CONFIG,
            json.dumps({"mcpServer": {"command": command[0], "args": command[1:], "env": VARIABLES}}),
        )
        machine.run("trust")
    log = machine.root / "log.txt"
    with Proxies(machine) as proxies:
        typed = ("--", *command) if how == "typed" else ()
        client = proxies.connected("--log-level", "Trace", "--file-log", str(log), *typed)
        told = {"health": json.dumps(client.health()), "notifications": json.dumps(client.notifications)}
        told |= printed(machine, "health", "list")
    told |= {"stderr": client.stderr, "file log": log.read_text("utf-8")}

    assert "Started" in client.stderr
    assert leaks(told) == {}


# --- servers at URLs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["typed", "configured"])
def test_the_tokens_of_a_remote_server_and_of_the_way_to_it_are_nowhere(
    machine: Machine, tmp_path: Path, how: str
) -> None:
    tokens = tmp_path / "tokens"  # outside of what is looked through: the server's own file
    tokens.mkdir()
    server = GuardedServer(tokens)
    server.allow(f"{SECRET}-bearer")
    variables = write(tokens / "keys.env", f"REMOTE_KEY={SECRET}-bearer\n").read_text()
    headers = {"Authorization": "Bearer ${REMOTE_KEY}", "X-Tenant": f"{SECRET}-tenant"}
    options = ["--upstream-url", "http://weather.test/mcp", "--header", "Authorization: Bearer ${REMOTE_KEY}"]
    options += ["--header", "X-Tenant: ${REMOTE_KEY}"]
    if how == "configured":
        config = {"mcpServer": {"url": "http://weather.test/mcp", "headers": headers, "envFile": "../.env"}}
        write(machine.workspace / CONFIG, json.dumps(config))
        write(machine.workspace / ".env", variables)
        machine.run("trust")
        options = []
    log = machine.root / "log.txt"
    with LoopbackProxy({"weather.test": server.port}, basic(f"me:{SECRET}-proxy")) as way, Proxies(machine) as proxies:
        env = {"HTTP_PROXY": f"http://me:{SECRET}-proxy@{way.address}", "REMOTE_KEY": f"{SECRET}-bearer"}
        log_options = ("--log-level", "Trace", "--file-log", str(log), "--inspector", "0")
        client = proxies.connected(*log_options, *options, env=env)
        page = inspector_of(client)
        with page.listen("/events") as events:
            events.wait("snapshot")
            assert client.call("steps") == "done"
            told = {"health": json.dumps(client.health())}
            server.allow()
            told["a refused call"] = json.dumps(client.call_result("steps"))
            told["health without access"] = json.dumps(client.wait_state("Degraded"))
            events.wait("UpstreamUnauthorized")
            told["page"] = events.received.decode("utf-8", "replace") + page.ask("GET", "/").body.decode()
        told |= printed(machine, "health", "list", "config", "trust --dry-run")
        lines = {pid: command_line(pid) for pid in proxies.processes()}
        told |= {f"process {pid}": "\n".join(line) for pid, line in lines.items()}
        told["notifications"] = json.dumps(client.notifications)
        told |= kept(machine)
    server.stop()
    told |= kept(machine) | {"stderr": client.stderr, "file log": log.read_text("utf-8")}

    assert len(lines) >= 1
    assert "HTTP 401" in told["a refused call"]
    assert leaks(told) == {}


def basic(credentials: str) -> str:
    return f"Basic {b64encode(credentials.encode()).decode()}"


# --- files of AI clients --------------------------------------------------------------------------------------------

OTHER = {
    "url": "https://other.example/mcp",
    "headers": {"Authorization": f"Bearer {SECRET}"},
    "env": {"API_KEY": f"{SECRET}-key", "HARMLESS": SECRET},
    "args": ["--plain", SECRET, f"--pw={SECRET}"],
}
FILES = {
    "in one line": ("cursor", ".cursor/mcp.json", json.dumps({"mcpServers": {"other": OTHER}})),
    "between ours in one line": (
        "cursor",
        ".cursor/mcp.json",
        json.dumps({"mcpServers": {"UnoDocs": {"url": "https://mcp.platform.uno/v1"}, "other": OTHER, "UnoApp": {}}}),
    ),
    "in lines": ("cursor", ".cursor/mcp.json", json.dumps({"mcpServers": {"other": OTHER}}, indent=2)),
    "as TOML": (
        "codex",
        ".codex/config.toml",
        f'[mcp_servers.other]\nurl = "https://other.example"\nhttp_headers = {{ Authorization = "Bearer {SECRET}" }}\n',
    ),
}


@pytest.mark.parametrize(("client", "file", "content"), FILES.values(), ids=FILES)
def test_a_change_is_shown_without_the_secrets_of_other_servers(
    machine: Machine, client: str, file: str, content: str
) -> None:
    path = write(machine.workspace / file, content)

    before = printed(machine, f"mcp install {client} --dry-run", "mcp status", f"mcp doctor {client}")
    unchanged = path.read_text("utf-8") == content
    machine.run("mcp", "install", client)
    after = printed(machine, f"mcp uninstall {client} --dry-run", f"mcp restore {client} --dry-run")

    assert leaks(before | after) == {}
    assert unchanged, "a dry run changes nothing"
    assert "UnoApp" in before[f"mcp install {client} --dry-run"], "what is added is shown"
    assert SECRET in path.read_text("utf-8"), "and the file keeps what it had"
