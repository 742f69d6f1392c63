"""Old code never answers silently: what a command starts may not be what a build of its package has written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.files import write, write_all
from support.npm import NODE, NPM
from support.programs import needed
from support.proxies import Message, Proxies, ProxyClient
from support.reloading import CONFIG, state_of, text_of, was_run

from .real_projects import GO_SERVER, NODE_SERVER

CALL_SECONDS = 60  # the compilers take a second or two, on an idle machine
OLD = "oldOutput"
NODE_TEXT = NODE_SERVER.replace('import { shared } from "@demo/shared";\n', "").replace("own 1, ${shared}", "own 1")
GO_TEXT = GO_SERVER.replace('\n\t"example.com/shared"\n', "").replace('"own 1, " + shared.Shared', '"own 1"')
COPY = "require('fs').mkdirSync('dist', { recursive: true }); require('fs').copyFileSync('src/main.ts', 'dist/main.js')"
MANIFEST = {"name": "@demo/server", "version": "1.0.0", "type": "module"}


@pytest.fixture
def tools(proxies: Proxies) -> Path:
    machine = proxies.machine
    (machine.tools / "sh").symlink_to("/bin/sh")
    (machine.tools / "node").symlink_to(NODE)
    write(machine.tools / "npm", f'#!/bin/sh\nexec "{NODE}" "{NPM}" "$@"\n').chmod(0o755)
    return machine.tools


class NodePackage:
    """A package whose code is `src/main.ts` and which runs `dist/main.js`."""

    def __init__(self, root: Path, build: str | None, **more: object) -> None:
        self.root, self.source, self.output = root, root / "src/main.ts", root / "dist/main.js"
        scripts = {"start": "node dist/main.js", **({"build": "node build.cjs"} if build is not None else {})}
        write(root / "package.json", json.dumps({**MANIFEST, "main": "dist/main.js", "scripts": scripts, **more}))
        write(root / "tsconfig.json", '{ "include": ["src"] }')
        write(root / "build.cjs", build or "")
        write(self.source, NODE_TEXT)

    def build(self) -> None:
        self.output.parent.mkdir(exist_ok=True)
        shutil.copyfile(self.source, self.output)

    def say(self, text: str) -> None:
        write(self.source, NODE_TEXT.replace("own 1", text))


def called(client: ProxyClient) -> Message:
    result: Message = client.answer(client.begin("tools/call", {"name": "answer", "arguments": {}}), CALL_SECONDS)[
        "result"
    ]
    return result


def states(result: Message) -> list[str]:
    told = result.get("_meta", {}).get("uno-devserver/hotReload", {})
    return [told["state"], *told.get("also", [])] if told else []


def watching(proxies: Proxies, *command: str) -> ProxyClient:
    client = proxies.start("--wait-calls", "--watch", "--", *command)
    client.initialize()
    return client


def configured(proxies: Proxies, **config: object) -> ProxyClient:
    write(proxies.machine.workspace / CONFIG, json.dumps({"mcpServerRoot": "..", **config}))
    client = proxies.start("--wait-calls")
    client.initialize()
    return client


def assert_old_until(client: ProxyClient, edit: Callable[[], None], build: Callable[[], None], named: str) -> None:
    """An edit that nothing builds is told with each result and by mcpStatus, until what is started was built."""
    assert called(client)["content"] == [{"type": "text", "text": "own 1"}]

    edit()
    first, later = called(client), called(client)
    status = client.call_result("mcpStatus")

    for result in (first, later):
        assert result["content"][0]["text"] == "own 1"
        assert OLD in states(result), result
        assert was_run(result)
        assert f"{named} has not been rebuilt" in json.dumps(result)
        assert "with its new code" not in json.dumps(result)
    assert (state_of(status), OLD in states(status)) == ("ready", True)
    assert f"may be older than its present code: {named} has not been rebuilt" in text_of(status)
    assert [issue["code"] for issue in client.health()["issues"]] == ["ReloadFailed"]

    build()
    new = called(client)
    assert (new["content"][0]["text"], OLD in states(new)) == ("own 2", False), new
    assert called(client)["content"] == [{"type": "text", "text": "own 2"}]
    assert client.health()["issues"] == []


@pytest.mark.parametrize("build", [None, "console.log('checked')"], ids=["no build", "a build that only checks"])
def test_an_output_that_the_build_does_not_write_is_told_until_it_is_built(
    proxies: Proxies, tools: Path, build: str | None
) -> None:
    package = NodePackage(proxies.machine.workspace, build)
    package.build()

    client = watching(proxies, "node", "dist/main.js")

    assert_old_until(client, lambda: package.say("own 2"), package.build, "dist/main.js")


def test_an_output_that_a_config_lets_others_build_is_told_until_they_have(proxies: Proxies, tools: Path) -> None:
    package = NodePackage(proxies.machine.workspace, COPY)
    package.build()

    client = configured(proxies, mcpServer={"build": False})

    assert_old_until(client, lambda: package.say("own 2"), package.build, "dist/main.js")


def test_a_build_by_others_is_not_taken_for_one_of_the_package(proxies: Proxies, tools: Path) -> None:
    package = NodePackage(proxies.machine.workspace, "console.log('checked')")
    package.build()
    client = watching(proxies, "node", "dist/main.js")
    called(client)
    package.say("own 2")
    package.build()
    new = called(client)
    assert (new["content"][0]["text"], OLD in states(new)) == ("own 2", False)

    package.say("own 3")

    assert OLD in states(called(client))


@pytest.mark.parametrize("build", [None, "console.log('checked')"], ids=["no build", "a build that only checks"])
def test_the_next_proxy_tells_it_too(proxies: Proxies, tools: Path, build: str | None) -> None:
    package = NodePackage(proxies.machine.workspace, build)
    package.build()
    before = watching(proxies, "node", "dist/main.js")
    called(before)
    before.close_stdin()
    assert before.ends()
    package.say("own 2")

    for _ in range(2):
        client = watching(proxies, "node", "dist/main.js")
        assert OLD in states(called(client))
        assert OLD in states(called(client))
        client.close_stdin()
        assert client.ends()

    package.build()
    assert called(watching(proxies, "node", "dist/main.js"))["content"][0]["text"] == "own 2"


def test_a_change_that_is_undone_needs_no_build(proxies: Proxies, tools: Path) -> None:
    package = NodePackage(proxies.machine.workspace, None)
    package.build()
    client = watching(proxies, "node", "dist/main.js")
    called(client)
    package.say("own 2")
    assert OLD in states(called(client))

    package.say("own 1")

    assert OLD not in states(called(client))
    assert called(client)["content"] == [{"type": "text", "text": "own 1"}]


def test_a_build_that_writes_the_same_again_is_believed(proxies: Proxies, tools: Path) -> None:
    same = "const fs = require('fs'); fs.writeFileSync('dist/main.js', fs.readFileSync('dist/main.js'))"
    package = NodePackage(proxies.machine.workspace, same)
    package.build()
    client = watching(proxies, "node", "dist/main.js")
    called(client)

    package.say("own 1 // a comment")

    assert OLD not in states(called(client))


@pytest.mark.parametrize("command", [["npm", "start", "-w", "@demo/server"], ["npm", "start"]])
def test_a_script_of_the_repository_builds_the_package_that_it_starts(
    proxies: Proxies, tools: Path, command: list[str]
) -> None:
    top = proxies.machine.workspace
    scripts = {"start": "npm start -w packages/server"}
    write(
        top / "package.json",
        json.dumps({"name": "all", "private": True, "workspaces": ["packages/*"], "scripts": scripts}),
    )
    package = NodePackage(top / "packages/server", COPY)

    client = watching(proxies, *command)

    assert called(client)["content"][0]["text"] == "own 1"
    package.say("own 2")
    assert called(client)["content"][0]["text"] == "own 2"


@pytest.fixture
def module(proxies: Proxies) -> Path:
    machine = proxies.machine
    found = needed("golang")
    (machine.tools / "go").symlink_to(found)
    machine.environment |= {"GOCACHE": str(Path(sys.prefix) / "go-cache"), "GOFLAGS": "-mod=mod"}
    write_all(machine.workspace, {"go.mod": "module example.com/server\n", "cmd/server/main.go": GO_TEXT})
    return machine.workspace


def go_build(proxies: Proxies, *words: str) -> None:
    subprocess.run(
        ["go", "build", "-o", "bin/server", *words, "./cmd/server"],
        cwd=proxies.machine.workspace,
        env={**proxies.machine.variables(), "PATH": os.environ["PATH"]},
        check=True,
        timeout=CALL_SECONDS,
    )


def test_a_compiled_program_of_go_is_built_where_it_is_certain_from_what(proxies: Proxies, module: Path) -> None:
    write(module / "cmd/other/main.go", GO_TEXT)
    go_build(proxies)
    client = watching(proxies, "./bin/server")
    assert called(client)["content"][0]["text"] == "own 1"

    write(module / "cmd/server/main.go", GO_TEXT.replace("own 1", "own 2"))

    result = called(client)
    assert (result["content"][0]["text"], OLD in states(result)) == ("own 2", False)


def test_a_compiled_program_of_go_with_options_of_its_own_is_told_until_it_is_built(
    proxies: Proxies, module: Path
) -> None:
    def build() -> None:
        go_build(proxies, "-tags", "special")

    def edit() -> None:
        write(module / "cmd/server/main.go", GO_TEXT.replace("own 1", "own 2"))

    build()
    client = watching(proxies, "./bin/server")

    assert_old_until(client, edit, build, "bin/server")


def test_a_program_of_go_that_was_never_compiled_is_compiled_first(proxies: Proxies, module: Path) -> None:
    client = watching(proxies, "./bin/server")

    assert called(client)["content"][0]["text"] == "own 1"


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("waits", [True, False])
def test_the_first_call_of_a_fresh_clone_waits_for_its_first_build(
    proxies: Proxies, tools: Path, typed: bool, waits: bool
) -> None:
    package = NodePackage(proxies.machine.workspace, COPY)
    if not typed:
        write(package.root / CONFIG, '{ "mcpServerRoot": ".." }')
    options = [*(["--wait-calls"] if waits else []), *(["--watch", "--", "node", "dist/main.js"] if typed else [])]
    client = proxies.start(*options)
    client.initialize()

    result = called(client)

    assert result["content"][0]["text"] == "own 1", result
    proxy = client.health()["proxy"]
    assert (proxy["generation"], proxy["hotReload"]["builds"]) == (1, 1)
    assert "Cannot find module" not in client.stderr


@pytest.mark.parametrize("typed", [True, False])
def test_the_first_call_of_a_fresh_clone_waits_for_the_build_of_a_used_package(
    proxies: Proxies, tools: Path, typed: bool
) -> None:
    root = proxies.machine.workspace
    (root / ".git").mkdir()
    shared = NodePackage(root / "shared", COPY, name="@demo/shared", exports={".": "./dist/main.js", "./x": "./x.js"})
    write(shared.source, 'export const shared = "shared 1";')
    write(
        root / "server/package.json",
        json.dumps({**MANIFEST, "main": "index.js", "dependencies": {"@demo/shared": "*"}}),
    )
    write(root / "server/index.js", NODE_SERVER)
    (root / "server/node_modules/@demo").mkdir(parents=True)
    (root / "server/node_modules/@demo/shared").symlink_to(shared.root)
    write(root / CONFIG, json.dumps({"mcpServerRoot": "../server"}))
    client = proxies.start(*(["--watch", "--", "node", "server/index.js"] if typed else []))
    client.initialize()

    result = called(client)
    client.close_stdin()
    client.exit_code()
    shutil.rmtree(shared.output.parent)
    later = proxies.start(*(["--watch", "--", "node", "server/index.js"] if typed else []))
    later.initialize()

    assert result["content"][0]["text"] == "own 1, shared 1", result
    assert "Cannot find module" not in client.stderr
    assert called(later)["content"][0]["text"] == "own 1, shared 1"


def test_a_first_build_that_fails_is_told_to_the_first_call(proxies: Proxies, tools: Path) -> None:
    NodePackage(proxies.machine.workspace, "console.log('src/main.ts: an error'); process.exit(2)")
    client = proxies.start("--watch", "--", "node", "dist/main.js")
    client.initialize()

    result = called(client)

    assert (state_of(result), was_run(result)) == ("buildFailed", False)
    assert "src/main.ts: an error" in text_of(result)
    assert "has changed" not in text_of(result)
    [not_started, why] = client.health()["issues"]
    assert (not_started["code"], why["code"]) == ("HostNotStarted", "ReloadFailed")
    assert "src/main.ts: an error" in why["message"]
    assert not_started["remediation"] == why["remediation"]
