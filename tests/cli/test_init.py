"""`init`: the config that it writes leads to a server, and nothing that exists is changed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.files import snapshot, write
from support.machine import Machine
from support.proxies import Proxies
from support.tables import every
from uno_devserver.system.jsonc import parse

SERVER = Path(__file__).parents[2] / "benchmarks" / "lean_server.py"
CONFIG = Path(".devtools", "host.config.jsonc")
PROJECT = '<Project Sdk="Microsoft.NET.Sdk"><ItemGroup><PackageReference Include="ModelContextProtocol" />'
WAITS = {"waitCalls": True}


def written(machine: Machine) -> object:
    return parse((machine.workspace / CONFIG).read_text("utf-8"))


@pytest.mark.parametrize(
    ("files", "root"),
    [
        ({"Moon.csproj": PROJECT}, ".."),
        ({"src/Moon.csproj": PROJECT}, "../src"),
        ({"src/Moon/Moon.fsproj": PROJECT, "Moon.sln": ""}, "../src/Moon"),
        ({"tools/moon.cs": "#:package ModelContextProtocol@0.3.0"}, "../tools"),
        ({"package.json": '{"main": "a.js"}', "a.js": ""}, ".."),
        ({"pyproject.toml": '[project]\nname = "a"\nscripts = {a = "a:main"}\n', "a.py": ""}, ".."),
    ],
    ids=["a project", "in a folder", "of a solution", "a program in one file", "npm", "Python"],
)
def test_the_package_of_the_folder_becomes_the_server_and_every_command_names_the_way(
    machine: Machine, files: dict[str, str], root: str
) -> None:
    for path, content in files.items():
        write(machine.workspace / path, content)

    before = [machine.run(*words.split()) for words in ("config", "health", "mcp install cursor", "inspect")]
    machine.run("init")

    assert [result.exit_code for result in before] == [1, 1, 1, 1]
    for result in before:
        assert "Run 'uno-devserver init'" in result.stdout + result.stderr
        assert "dotnet new unoapp" not in result.stdout + result.stderr
    assert written(machine) == {"mcpServerRoot": root, "proxy": WAITS}


def test_a_command_that_is_not_known_is_asked_for_with_an_example_that_works(machine: Machine) -> None:
    write(machine.workspace / "go.mod", "module m")

    refused = machine.run("init")
    done = machine.run("init", "--", "go", "run", ".")

    assert refused.exit_code == 1
    assert f"'{machine.workspace}' does not say how an MCP server in it is started" in refused.stderr
    assert "uno-devserver init -- go run ." in refused.stderr
    assert written(machine) == {
        "mcpServerRoot": "..",
        "mcpServer": {"command": "go", "args": ["run", "."]},
        "proxy": WAITS,
    }
    assert f"Wrote {machine.workspace / CONFIG}" in done.stdout


def test_a_url_becomes_a_server_that_is_only_connected_to(machine: Machine) -> None:
    result = machine.run("init", "https://mcp.example.com/mcp")

    assert (result.exit_code, written(machine)) == (0, {"mcpServer": {"url": "https://mcp.example.com/mcp"}})
    assert "'uno-devserver login https://mcp.example.com/mcp' signs in" in result.stdout


def test_a_key_in_a_url_is_told_and_not_shown(machine: Machine) -> None:
    result = machine.run("init", "https://mcp.example.com/mcp?key=abc123def456")

    assert (result.exit_code, "abc123def456" in result.stdout) == (0, False)
    assert "The URL has what may be a key" in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="names are text there")
def test_a_name_that_is_no_text_is_refused_and_leaves_nothing(machine: Machine) -> None:
    by_argument = machine.run("init", "--", os.fsdecode(b"a\xff"))
    write(machine.workspace / os.fsdecode(b"se\xffrv") / "a.csproj", PROJECT)
    by_folder = machine.run("init")

    assert (by_argument.exit_code, by_folder.exit_code) == (1, 1)
    assert "a name that would be in it is no text" in by_argument.stderr
    assert not (machine.workspace / CONFIG).exists()


def test_what_was_written_serves_the_tools_of_the_server(machine: Machine) -> None:
    write(machine.workspace / "server.py", SERVER.read_text("utf-8"))
    done = machine.run("init", "--", sys.executable, "server.py")

    with Proxies(machine) as proxies:
        client = proxies.start(env={"UNO_DEVSERVER_TRUST": "1"})
        client.initialize()
        client.wait_connected()
        tools = {tool["name"] for tool in client.result("tools/list")["tools"]}

    assert (done.exit_code, "Problems" in done.stdout) == (0, False)
    assert "double" in tools


def test_a_config_that_exists_is_never_changed(machine: Machine) -> None:
    write(machine.workspace / "package.json", '{"main": "a.js"}')
    for content in ("{}", "{ broken", ""):
        write(machine.workspace / CONFIG, content)
        before = snapshot(machine.workspace)

        result = machine.run("init")

        assert (result.exit_code, snapshot(machine.workspace)) == (1, before)
        assert f"There is a config already: {machine.workspace / CONFIG}" in result.stderr


def test_wrong_arguments_write_nothing(machine: Machine) -> None:
    write(machine.workspace / "package.json", '{"main": "a.js"}')
    before = snapshot(machine.workspace)
    cases = [
        (("notes",), "uno-devserver init -- notes"),
        (("ftp://example.com",), "is not an HTTP address"),
        (("https://me:secret@example.com/mcp",), "A user name or password before the host"),
        (("--", "https://me:secret@example.com/mcp"), "is a URL and no command"),
        (("http://",), "is not an HTTP address"),
        (("https://example.com/mcp", "--", "node", "a.js"), "Name one of them"),
        (("--", "https://example.com/mcp"), "uno-devserver init https://example.com/mcp"),
        (("--",), "There is no command behind '--'"),
        (("--solution-dir", str(machine.root / "nowhere")), "does not say how an MCP server in it is started"),
    ]

    def check(case: tuple[tuple[str, ...], str]) -> None:
        arguments, told = case
        result = machine.run("init", *arguments)

        assert result.exit_code in (1, 2)
        assert told in result.stderr
        assert "secret" not in result.stderr
        assert snapshot(machine.workspace) == before

    every(cases, check, lambda case: str(case[0]))


def test_a_server_that_cannot_be_started_is_a_problem_and_not_a_next_step(machine: Machine) -> None:
    result = machine.run("init", "--", sys.executable, "missing.py")
    shown = machine.run("config").stdout

    assert result.exit_code == 1
    assert "there is no file" in result.stdout
    assert "Next" not in result.stdout
    assert "missing.py" in shown


def test_as_json_it_tells_the_file_and_the_problems(machine: Machine) -> None:
    write(machine.workspace / "a.js", "")
    write(machine.workspace / "package.json", '{"main": "a.js"}')

    result = machine.run("init", "--json", env={"PATH": "/nowhere"})

    assert result.json["config"] == str(machine.workspace / CONFIG)
    assert ["node" in problem["message"] for problem in result.json["problems"]] == [True]
    assert json.loads(result.stdout)


def test_a_link_out_of_the_folder_is_not_followed(machine: Machine) -> None:
    elsewhere = machine.root / "elsewhere"
    elsewhere.mkdir()
    (machine.workspace / ".devtools").symlink_to(elsewhere)

    result = machine.run("init", "https://example.com/mcp")

    assert (result.exit_code, os.listdir(elsewhere)) == (1, [])
    assert "it leads out of the folder" in result.stderr


def test_a_folder_that_cannot_be_written_is_told(machine: Machine) -> None:
    write(machine.workspace / ".devtools", "a file")

    result = machine.run("init", "https://example.com/mcp")

    assert result.exit_code == 1
    assert f"{machine.workspace / CONFIG} cannot be written" in result.stderr
