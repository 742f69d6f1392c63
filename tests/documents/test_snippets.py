"""Every snippet of the documents is what it says: configs and entries are read by what would read them, code is run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from documents.blocks import PAGES, ROOT, Block, blocks
from documents.scenes import prepare
from support.bundled import BundledHost, write_addin
from support.files import write
from support.machine import Machine
from support.npm import NODE
from support.proxies import Proxies
from support.systems import LINUX
from support.systems import machine as system
from support.waiting import wait_for
from uno_devserver.cli.parse import parse
from uno_devserver.discovery.manifest import read_manifest
from uno_devserver.instances.registry import members_of, server_of
from uno_devserver.setup.definitions import load
from uno_devserver.workspace.config import FIELDS, read_config

# Which test runs the code of a page.
RUN_BY = {
    ("README.md", "python"): "test_the_addin_of_the_readme_answers",
    ("docs/addins.md", "python"): "test_an_example_of_the_guide_works_as_it_says",
    ("docs/control-channel.md", "python"): "test_the_clients_of_the_guide_have_the_newest_code_run",
    ("docs/control-channel.md", "js"): "test_the_clients_of_the_guide_have_the_newest_code_run",
    ("docs/dotnet-addins.md", "xml"): "test_the_examples_of_the_guide_are_good_packages",
    ("docs/ide-channel.md", "python"): "test_the_ide_client_of_the_guide_talks_with_the_host",
    ("docs/ide-extensions.md", "js"): "test_the_extension_of_the_guide_has_a_server_as_long_as_it_lives",
}
# Pictures and output of programs, which are not input to anything.
PROSE = ("", "text", "mermaid")
CHECKED = ("console", "json", "jsonc", "python", "js", "xml")


def test_every_snippet_is_in_a_language_that_is_checked() -> None:
    fences = (fence for page in PAGES for fence in re.findall(r"^```(\w+)$", page.read_text("utf-8"), re.MULTILINE))

    assert {*fences} - {*CHECKED, *PROSE} == set()


def test_every_piece_of_code_is_run_by_a_test() -> None:
    found = {(block.page, block.language) for block in blocks("python", "js", "xml")}
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))

    assert found == set(RUN_BY)
    for name in RUN_BY.values():
        assert f"def {name}(" in tests


# Configs.


def _settings() -> list[str]:
    """Those that a sentence mentions."""
    named = "|".join({field.section for field in FIELDS if field.section})
    spans = (span for page in PAGES for span in re.findall(rf'`("(?:{named})": .*?)`', page.read_text("utf-8")))
    return sorted({f"{{{span}}}" for span in spans})


@pytest.mark.parametrize("config", [*(block.text for block in blocks("jsonc")), *_settings()])
def test_every_config_of_the_documents_is_without_problems(tmp_path: Path, config: str) -> None:
    for folder in (tmp_path, tmp_path / "weather", tmp_path / "notes"):
        write(folder / "package.json", "{}")

    found = read_config(str(write(tmp_path / ".devtools" / "host.config.jsonc", config)))

    assert found.issues == ()
    assert found.given or found.servers, "it sets something"


# Other JSON: what it is shows in its members.


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.name)
def test_every_json_snippet_is_understood_by_what_would_read_it(tmp_path: Path, block: Block) -> None:
    document = json.loads(block.text)
    file = str(write(tmp_path / "snippet.json", block.text))

    if "mcpServers" in document:
        for entry in document["mcpServers"].values():
            assert _is_entry(entry)
    elif "jsonrpc" in document:
        assert all(json.loads(envelope["MessageBody"]) for envelope in document["params"])
    elif "ProcessId" in document:
        assert members_of(server_of(document) or pytest.fail("no entry of the registry")) == document
    elif "addins" in document:
        write(tmp_path / "devserver-addin.json", block.text)
        manifest = read_manifest(str(tmp_path), "Acme.Tool", "6.5.0")
        assert (len(manifest.entry_points or ()), manifest.issues) == (len(document["addins"]), ())
    elif "error" in document:
        assert set(document["error"]) == {"code", "message", "nextStep"}
    else:  # definitions of one's own
        (definition,) = document.values()
        if "variants" in definition:
            assert [server.name for server in load(system(LINUX), servers=file).servers] == [*document]
        else:
            assert [profile.id for profile in load(system(LINUX), clients=file).profiles] == [*document]


def _is_entry(entry: dict[str, Any]) -> bool:
    """One that starts a command of ours."""
    invocation = parse(entry["args"])
    return entry["command"] == "uno-devserver" and invocation.command is not None and not invocation.forwarded


def test_the_client_and_the_server_of_the_registration_guide_can_be_installed(machine: Machine) -> None:
    client, server = (block.text for block in blocks("json", pages=(ROOT / "docs" / "registration.md",)))
    clients = write(machine.root / "clients.json", client)
    servers = write(machine.root / "servers.json", server)
    definitions = ("--ide-definitions", str(clients), "--server-definitions", str(servers))

    installed = machine.run("mcp", "install", "my-editor", *definitions, "--json")
    status = machine.run("mcp", "status", "my-editor", *definitions, "--json")

    assert [one["action"] for one in installed.json["operations"]] == ["created"]
    written = json.loads((machine.workspace / ".my-editor" / "mcp.json").read_text("utf-8"))
    assert written == {"mcpServers": {"my-server": json.loads(server)["my-server"]["variants"]["stable"]}}
    assert [one["status"] for one in status.json["servers"][0]["ides"]] == ["registered"]


# Code.


async def test_the_addin_of_the_readme_answers(tmp_path: Path) -> None:
    (addin,) = (block.text for block in blocks("python", pages=(ROOT / "README.md",)))
    path = write_addin(tmp_path, "greeter.py", addin)

    with BundledHost(tmp_path, "--addins", path) as host:
        async with Client(f"http://127.0.0.1:{host.port}/mcp") as client:
            answer = await client.call_tool("greet", {"name": "Ada"})

    assert "Hello Ada!" in str(answer)


def test_the_ide_client_of_the_guide_talks_with_the_host(tmp_path: Path) -> None:
    (client,) = (block.text for block in blocks("python", pages=(ROOT / "docs" / "ide-channel.md",)))

    with BundledHost(tmp_path, "--addins", ";", "--ideChannel", "mine") as host:
        argv = [sys.executable, "-c", client, f"{host.temp.name}/CoreFxPipe_mine"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        launches = wait_for(lambda: host.health()["launches"])

    assert (done.returncode, done.stderr) == (0, "")
    first, second, answer = done.stdout.splitlines()
    assert first.startswith('KeepAliveIdeMessage {"Source":"dev-server","SequenceId":')
    assert second.startswith("DevelopmentEnvironmentStatusIdeMessage ")
    assert answer == "{'jsonrpc': '2.0', 'id': 1, 'result': None}"
    assert "8f8b6b5e-0d0c-4c0e-9c3a-0d5b0a4e6a11" in str(launches)


def test_the_extension_of_the_guide_has_a_server_as_long_as_it_lives(machine: Machine) -> None:
    page = (ROOT / "docs" / "ide-extensions.md",)
    (code,) = (block.text for block in blocks("js", pages=page))
    prepare(next(block for block in blocks("console", pages=page) if "start" in block.text), machine)
    program = write(machine.root / "extension.mjs", code.replace("5000", "100"))
    output = machine.root / "extension.txt"

    with Proxies(machine) as everything, output.open("wb") as stream:
        extension = subprocess.Popen(
            [str(NODE), str(program), str(machine.workspace)],
            env=machine.variables(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(lambda: "Healthy, 2 tools\n" in output.read_text("utf-8"))
            wait_for(lambda: "heard KeepAliveIdeMessage\n" in output.read_text("utf-8"))
            servers = machine.run("list", "--json").json["servers"]
            os.kill(servers[0]["processId"], signal.SIGKILL)
            wait_for(lambda: output.read_text("utf-8").count("Healthy, 2 tools\n") == 2)
        finally:
            extension.kill()
            extension.wait(20)
        # The Host ends with it: the block would fail if anything were left.
        wait_for(lambda: None if everything.processes() else True)

    assert [server["isInWorkspace"] for server in servers] == [True]
    assert f"started: {servers[0]['mcpEndpoint']}\n" in output.read_text("utf-8")
    assert output.read_text("utf-8").count("started: ") == 2, "the one that was killed has a successor"


def test_the_extension_of_the_guide_tells_a_folder_that_is_missing_from_a_program_that_is(machine: Machine) -> None:
    (code,) = (block.text for block in blocks("js", pages=(ROOT / "docs" / "ide-extensions.md",)))
    program = write(machine.root / "extension.mjs", code)

    def told(folder: Path, programs: Path) -> str:
        done = subprocess.run(
            [str(NODE), str(program), str(folder)],
            env={**machine.variables(), "PATH": str(programs)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1
        return done.stderr

    assert f"There is no folder {machine.root}/gone." in told(machine.root / "gone", Path(sys.executable).parent)
    assert "uno-devserver is not installed" in told(machine.workspace, machine.root)
