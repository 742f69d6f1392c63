"""Secrets in a config's variables, in files of AI clients and on command lines reach no output and no log."""

from __future__ import annotations

import json
import shlex

import pytest

from support.files import write
from support.machine import Machine
from support.odd_servers import odd_server
from support.proxies import Proxies

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
    found = {where: [line for line in text.splitlines() if SECRET in line] for where, text in texts.items()}
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
    script = write(machine.root / "server", f"#!/bin/sh\nexec {shlex.join(odd_server())}\n")  # takes any argument
    script.chmod(0o755)
    command = (str(script), *ON_THE_LINE)
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
