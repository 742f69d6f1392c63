"""The server that a config names: started if the user agreed to that config, by what it says at that moment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.machine import DATA_HOME
from support.mcp_peers import TestPeer
from support.odd_servers import odd_server
from uno_devserver.issues import Issue
from uno_devserver.proxy.upstream.base import StartFailure
from uno_devserver.proxy.upstream.configured_command import STARTED_WHEN_SAVED, UNNAMED, ConfiguredUpstream
from uno_devserver.workspace.resolver import resolve
from uno_devserver.workspace.trust import TRUST_VARIABLE

from .commands import Observer, text


class World:
    """A workspace with a config, and the upstream that it leads to."""

    def __init__(
        self, root: Path, config: object, *, trusted: bool = True, environ: dict[str, str] | None = None
    ) -> None:
        self.root = root / "ws"
        self.path = self.root / ".devtools" / "host.config.jsonc"
        self.says(config)
        self.trusted = trusted
        environ = {**os.environ, DATA_HOME: str(root / "data"), **(environ or {})}
        workspace = resolve(str(self.root))
        self.asked: Callable[[], object] = lambda: None  # whether it is trusted
        self.upstream = ConfiguredUpstream(workspace, environ)
        self.upstream._is_trusted = self._trusts  # type: ignore[method-assign]

    def _trusts(self) -> bool:
        self.asked()
        return self.trusted

    def says(self, config: object) -> None:
        write(self.path, config if isinstance(config, str) else json.dumps(config))

    def failure(self) -> Issue:
        with pytest.raises(StartFailure) as failed:
            self.upstream.start(Observer())
        assert failed.value.final
        (issue,) = failed.value.issues
        assert issue.fatal
        return issue


def server(name: str = "odd", **more: Any) -> dict[str, Any]:
    program, *arguments = odd_server(name=name)
    return {"mcpServer": {"command": program, "args": arguments, **more}}


async def test_the_command_of_the_config_is_started_and_spoken_to(tmp_path: Path) -> None:
    world = World(tmp_path, server(env={"ODD": "yes"}))
    observer = Observer()

    running = world.upstream.start(observer)

    connection = await running.connect(TestPeer(), modern_first=False)
    facts = json.loads(await text(connection, "facts"))
    assert (facts["pid"], facts["cwd"]) == (running.process_id, str(world.root))
    assert b"ODD=yes" in Path(f"/proc/{running.process_id}/environ").read_bytes()
    assert (world.upstream.trusted, world.upstream.refusal) == (True, "")
    assert world.upstream.named == "The server 'ws'"
    assert len(observer.launched) == 1
    await running.stop()


def test_without_the_users_agreement_nothing_is_started_and_the_reason_is_told(tmp_path: Path) -> None:
    world = World(tmp_path, {"mcpServer": {"command": "touch", "args": ["started"]}}, trusted=False)

    issue = world.failure()

    assert issue.code == "WorkspaceNotTrusted"
    assert issue.message == f"The server that {world.path} names is not run: the user has not agreed to it."
    assert (world.upstream.trusted, world.upstream.refusal) == (False, "the user has not agreed to it")
    assert world.upstream.named == UNNAMED
    assert not (world.root / "started").exists()


def test_a_config_that_is_saved_between_the_question_and_the_start_is_not_run(tmp_path: Path) -> None:
    """The user has agreed to what was there when trust was looked for first, and to nothing else."""
    world = World(tmp_path, server())
    agreed = world.path.read_bytes()

    def saved_meanwhile() -> bool:
        trusted = world.path.read_bytes() == agreed
        world.says({"mcpServer": {"command": "touch", "args": ["started"]}})
        return trusted

    world.upstream._is_trusted = saved_meanwhile  # type: ignore[method-assign]

    assert world.failure().code == "WorkspaceNotTrusted"
    assert not (world.root / "started").exists()


async def test_an_edited_config_counts_at_the_next_start_and_prints_into_the_same_log(tmp_path: Path) -> None:
    world = World(tmp_path, server("first"))
    first = world.upstream.start(Observer())
    world.says(server("second"))

    second = world.upstream.start(Observer())

    connections = [await running.connect(TestPeer(), modern_first=False) for running in (first, second)]
    assert [connection.server.info["name"] for connection in connections] == ["first", "second"]
    assert first.log_file == second.log_file
    assert world.upstream.config is not None
    assert "second" in str(world.upstream.config.server)
    for running in (first, second):
        await running.stop()


@pytest.mark.parametrize(
    ("config", "code", "said"),
    [
        ({"mcpServer": {"command": "no-such"}}, "HostBinaryNotFound", "The command 'no-such' is not in the folders"),
        ({"mcpServer": {"command": "./no-such"}}, "HostBinaryNotFound", "ws/./no-such does not exist"),
        ({"mcpServerRoot": "../gone"}, "ConfigInvalid", "there is no folder"),
        ({"mcpServerRoot": ".."}, "ConfigInvalid", "has no package.json"),
    ],
)
def test_what_cannot_be_started_is_told_with_the_place_to_repair_it(
    tmp_path: Path, config: object, code: str, said: str
) -> None:
    world = World(tmp_path, config)

    issue = world.failure()

    assert (issue.code, said in issue.message) == (code, True), issue.message
    assert "--" not in issue.remediation
    assert "mcpServer" in issue.remediation


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ("{}", "names no server any more"),
        ('{"mcpServer"', "this is not valid JSON"),
        (None, "names no server any more"),
    ],
)
def test_a_config_that_names_no_server_any_more_is_told(tmp_path: Path, later: str | None, said: str) -> None:
    world = World(tmp_path, server())
    if later is None:
        world.path.unlink()
    else:
        world.says(later)

    issue = world.failure()

    assert issue.code == "ConfigInvalid"
    assert said in issue.message


async def test_while_it_cannot_be_read_what_it_said_before_is_started(tmp_path: Path) -> None:
    world = World(tmp_path, server("mine"), environ={TRUST_VARIABLE: "1"})
    await world.upstream.start(Observer()).stop()
    world.says('{"mcpServer": {"comm')
    world.trusted = False  # it is another content

    running = world.upstream.start(Observer())

    connection = await running.connect(TestPeer(), modern_first=False)
    assert connection.server.info["name"] == "mine"
    await running.stop()


async def test_also_where_that_begins_just_when_it_was_read(tmp_path: Path) -> None:
    world = World(tmp_path, server("mine"), environ={TRUST_VARIABLE: "1"})
    await world.upstream.start(Observer()).stop()
    questions: list[None] = []

    def asked() -> None:
        questions.append(None)
        if len(questions) == 2:
            world.says('{"mcpServer": {"comm')
            world.trusted = False

    world.asked = asked
    running = world.upstream.start(Observer())

    connection = await running.connect(TestPeer(), modern_first=False)
    assert connection.server.info["name"] == "mine"
    await running.stop()


async def test_what_it_said_before_is_not_started_any_more_when_the_user_has_taken_the_agreement_back(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, server("mine"))
    await world.upstream.start(Observer()).stop()
    world.says('{"mcpServer": {"comm')
    world.trusted = False

    assert world.failure().code == "WorkspaceNotTrusted"


@pytest.mark.parametrize(
    "config", ['{"mcpServer"', {"mcpServers": {}}, {"mcpServerRoot": 5}, {"mcpServer": "node x.js"}]
)
def test_a_config_of_which_nobody_knows_what_it_names_says_where_to_mend_it(tmp_path: Path, config: object) -> None:
    world = World(tmp_path, config)

    issue = world.failure()

    assert issue.code == "ConfigInvalid"
    assert issue.message.startswith(f"{world.path}:1:")
    assert issue.remediation == STARTED_WHEN_SAVED


CSHARP = (
    '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net10.0'
    "</TargetFramework><UseAppHost>false</UseAppHost><OutputPath>../out</OutputPath></PropertyGroup></Project>"
)


@pytest.mark.parametrize(
    ("name", "content", "output", "build"),
    [
        ("package.json", '{"main": "dist/index.js", "scripts": {"build": "tsc"}}', "dist/index.js", "npm run build"),
        ("S.csproj", CSHARP, "../out/net10.0/S.dll", "dotnet build S.csproj"),
    ],
    ids=["JavaScript", "C#, outside of its folder"],
)
def test_a_server_whose_output_is_still_to_be_built_is_not_started(
    tmp_path: Path, name: str, content: str, output: str, build: str
) -> None:
    world = World(tmp_path, {"mcpServerRoot": ".."})
    write(world.root / name, content)
    observer = Observer()

    with pytest.raises(StartFailure) as failed:
        world.upstream.start(observer)

    missing = os.path.normpath(world.root / output)
    assert str(failed.value) == f"{missing} does not exist yet, so '{build}' runs first."
    assert failed.value.final
    assert observer.launched == []
