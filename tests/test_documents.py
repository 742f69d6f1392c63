"""The documents keep their word: what they name exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.bundled import BundledHost, wait_for, write_addin
from support.files import write
from support.machine import Machine
from uno_devserver.cli.parse import parse
from uno_devserver.workspace.config import read_config

ROOT = Path(__file__).parent.parent
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text("utf-8"), re.MULTILINE)
}
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(page for folder in ("docs", "benchmarks") for page in (ROOT / folder).glob("*.md")),
    *(page for page in (ROOT / "examples").glob("*/*/README.md")),
]


def test_every_test_that_a_document_names_exists() -> None:
    named = {name for page in DOCUMENTS for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))}

    assert named
    assert named - TESTS == set()


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_every_link_between_documents_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_every_link_to_a_heading_finds_it(page: Path) -> None:
    for target, name in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text("utf-8")):
        headings = re.findall(r"^#+ (.*)", (page.parent / target if target else page).read_text("utf-8"), re.MULTILINE)

        assert name in {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


COMMANDS = sorted(
    {
        line
        for page in DOCUMENTS
        for line in re.findall(r"^\$ uno-devserver (.*)", page.read_text("utf-8"), re.MULTILINE)
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_documents_is_one_that_this_version_has(line: str) -> None:
    invocation = parse(shlex.split(line.partition(" > ")[0], comments=True))

    assert invocation.on("version") or (invocation.command is not None)
    assert not invocation.forwarded, "an option that is not ours is passed on"


def _configs() -> list[str]:
    """Whole ones, and settings that a sentence mentions."""
    found = []
    for page in DOCUMENTS:
        text = page.read_text("utf-8")
        found += re.findall(r"```jsonc\n(.*?)```", text, re.DOTALL)
        found += [
            f"{{{setting}}}" for setting in re.findall(r'`("(?:hotReload|pipeline|proxy|mcpServer)": .*?)`', text)
        ]
    return found


@pytest.mark.parametrize("config", _configs())
def test_every_config_of_the_documents_is_without_problems(tmp_path: Path, config: str) -> None:
    write(tmp_path / "package.json", "{}")

    found = read_config(str(write(tmp_path / ".devtools" / "host.config.jsonc", config)))

    assert found.issues == ()
    assert found.given, "it sets something"


def test_the_client_and_the_server_of_the_registration_guide_can_be_installed(machine: Machine) -> None:
    page = (ROOT / "docs" / "registration.md").read_text("utf-8")
    section = page.partition("\n## Another client, another server\n")[2].partition("\n## ")[0]
    client, server = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    clients = write(machine.root / "clients.json", client)
    servers = write(machine.root / "servers.json", server)
    definitions = ("--ide-definitions", str(clients), "--server-definitions", str(servers))

    installed = machine.run("mcp", "install", "my-editor", *definitions, "--json")
    status = machine.run("mcp", "status", "my-editor", *definitions, "--json")

    assert [one["action"] for one in installed.json["operations"]] == ["created"]
    written = json.loads((machine.workspace / ".my-editor" / "mcp.json").read_text("utf-8"))
    assert written == {"mcpServers": {"my-server": json.loads(server)["my-server"]["variants"]["stable"]}}
    assert [one["status"] for one in status.json["servers"][0]["ides"]] == ["registered"]


def test_the_readmes_addin_answers_the_readmes_client(tmp_path: Path) -> None:
    addin, client = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    path = write_addin(tmp_path, "greeter.py", addin)

    with BundledHost(tmp_path, "--addins", path) as host:
        program = re.sub(r"localhost:\d+", f"127.0.0.1:{host.port}", client)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "Hello Ada!" in done.stdout


def test_the_ide_client_of_the_guide_talks_with_the_host(tmp_path: Path) -> None:
    (client,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "ide-channel.md").read_text("utf-8"), re.DOTALL)

    with BundledHost(tmp_path, "--addins", ";", "--ideChannel", "mine") as host:
        argv = [sys.executable, "-c", client, f"{host.temp.name}/CoreFxPipe_mine"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        launches = wait_for(lambda: host.health()["launches"] or None)

    assert (done.returncode, done.stderr) == (0, "")
    first, second, answer = done.stdout.splitlines()
    assert first.startswith('KeepAliveIdeMessage {"Source":"dev-server","SequenceId":')
    assert second.startswith("DevelopmentEnvironmentStatusIdeMessage ")
    assert answer == "{'jsonrpc': '2.0', 'id': 1, 'result': None}"
    assert "8f8b6b5e-0d0c-4c0e-9c3a-0d5b0a4e6a11" in str(launches)
