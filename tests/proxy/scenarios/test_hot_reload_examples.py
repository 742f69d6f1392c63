"""The example servers, made with the official SDKs, edited while official clients talk to them through the proxy.

What their READMEs tell is done: install, build once, agree, let the client start `uno-devserver --mcp-app`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from support.files import write
from support.machine import COMMAND
from support.npm import NODE, NPM, installed
from support.proxies import Message, Proxies
from support.reloading import state_of, text_of, was_run

from .typescript_client import TypeScriptClient

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # old eras are our topic

EXAMPLES = Path(__file__).parents[3] / "examples" / "servers"
WAIT_SECONDS = 60  # the SDKs take a second to import, the compiler as long, on a machine with nothing else to do

Call = Callable[..., Awaitable[Message]]


class TypeScriptExample:
    """Copied, with its packages installed, and built once."""

    def __init__(self, proxies: Proxies) -> None:
        machine = proxies.machine
        self.root = machine.workspace / "greeter-ts"
        shutil.copytree(EXAMPLES / "typescript", self.root, ignore=shutil.ignore_patterns("node_modules", "dist"))
        (self.root / "node_modules").symlink_to(installed(EXAMPLES / "typescript") / "node_modules")
        (machine.tools / "node").symlink_to(NODE)
        (machine.tools / "sh").symlink_to("/bin/sh")
        write(machine.tools / "npm", f'#!/bin/sh\nexec "{NODE}" "{NPM}" "$@"\n').chmod(0o755)
        self.source = self.root / "src" / "greeting.ts"
        environment = machine.variables()
        subprocess.run(["npm", "run", "build"], cwd=self.root, env=environment, check=True, capture_output=True)

    def say(self, sentence: str) -> None:
        write(self.source, f"export function greeting(name: string): string {{\n  return {sentence};\n}}\n")


class PythonExample:
    """Copied, and installed as `pip install --editable` does it: a script that imports the sources where they are."""

    def __init__(self, proxies: Proxies) -> None:
        self.root = proxies.machine.workspace / "greeter-py"
        shutil.copytree(EXAMPLES / "python", self.root, ignore=shutil.ignore_patterns(".venv", "__pycache__"))
        self.source = self.root / "src" / "greeter" / "greeting.py"
        script = [f"#!{sys.executable}", "import sys", f"sys.path.insert(0, {str(self.root / 'src')!r})"]
        script += ["from greeter.server import main", "sys.exit(main())", ""]
        write(self.root / ".venv" / "bin" / "greeter-py", "\n".join(script)).chmod(0o755)

    def say(self, sentence: str) -> None:
        write(self.source, f"def greeting(name: str) -> str:\n    return {sentence}\n")


@asynccontextmanager
async def connected(proxies: Proxies, folder: Path, mode: str) -> AsyncIterator[Call]:
    """A client of the Python SDK; what it gives are results as they are on the wire."""
    variables = proxies.machine.variables()
    server = StdioServerParameters(command=COMMAND, args=["--mcp-app"], env=variables, cwd=folder)
    async with Client(server, mode=mode) as client:

        async def call(tool: str, **arguments: Any) -> Message:
            result = await client.call_tool(tool, arguments)
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        yield call


async def until_ready(call: Call) -> Message:
    """The first answer of the server itself: before that the proxy says that there is none yet."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (result := await call("greet", name="you")).get("isError"):
        assert time.monotonic() < deadline, result
        await asyncio.sleep(0.05)
    return result


async def reload_typescript(example: TypeScriptExample, call: Call) -> None:
    """What an agent does, and is told."""
    assert text_of(await until_ready(call)) == "Hello, you!"

    example.say("`Good morning, ${name}!`")
    told = await call("greet", name="you")
    assert (told["isError"], state_of(told), was_run(told)) == (True, "restarting", False)
    assert not (await call("mcpStatus")).get("isError")
    assert text_of(await call("greet", name="you")) == "Good morning, you!"

    example.say("missing(name)")
    failed = await call("greet", name="you")
    assert (failed["isError"], state_of(failed), was_run(failed)) == (True, "buildFailed", False)
    assert "src/greeting.ts" in text_of(failed)
    assert "error TS2304" in text_of(failed)
    old = await call("greet", name="you")
    assert not old.get("isError")
    assert old["content"][0]["text"] == "Good morning, you!"
    assert (state_of(old), was_run(old)) == ("buildFailed", True)

    example.say("`Good night, ${name}!`")
    assert state_of(await call("greet", name="you")) == "restarting"
    assert not (await call("mcpStatus")).get("isError")
    assert text_of(await call("greet", name="you")) == "Good night, you!"
    assert text_of(await call("count_words", text="three more words")) == "3"


def test_the_typescript_example_is_reloaded_for_the_python_client(proxies: Proxies) -> None:
    example = TypeScriptExample(proxies)

    async def talk() -> None:
        async with connected(proxies, example.root, "legacy") as call:
            await reload_typescript(example, call)

    asyncio.run(asyncio.wait_for(talk(), WAIT_SECONDS))


def test_the_typescript_example_is_reloaded_for_the_typescript_client(proxies: Proxies) -> None:
    example = TypeScriptExample(proxies)
    variables = proxies.machine.variables()

    with TypeScriptClient(COMMAND, ["--mcp-app"], example.root, variables) as client:

        async def call(tool: str, **arguments: Any) -> Message:
            result: Message = client.call(tool, **arguments)
            return result

        asyncio.run(asyncio.wait_for(reload_typescript(example, call), WAIT_SECONDS))


def test_the_python_example_is_reloaded_for_the_python_client(proxies: Proxies) -> None:
    """It is swapped: the call that finds new code waits for it."""
    example = PythonExample(proxies)

    async def talk() -> None:
        async with connected(proxies, example.root, "auto") as call:
            assert text_of(await until_ready(call)) == "Hello, you!"

            example.say('f"Good morning, {name}!"')
            assert (await call("greet", name="you"))["content"][0]["text"] == "Good morning, you!"

            write(example.source, "def greeting(name: str) -> str:\nreturn 1\n")
            broken, later = await call("greet", name="you"), await call("greet", name="you")
            assert (state_of(broken), was_run(broken)) == ("buildFailed", False)
            assert "IndentationError" in text_of(broken)
            assert later["content"][0]["text"] == "Good morning, you!"
            assert (state_of(later), was_run(later)) == ("buildFailed", True)

            example.say('f"Good night, {name}!"')
            assert (await call("greet", name="you"))["content"][0]["text"] == "Good night, you!"
            assert text_of(await call("count_words", text="three more words")) == "3"

    asyncio.run(asyncio.wait_for(talk(), WAIT_SECONDS))


def test_the_command_line_tells_what_follows_from_the_examples_configs(proxies: Proxies) -> None:
    for example in (PythonExample(proxies), TypeScriptExample(proxies)):
        told = proxies.machine.run("config", "--json", cwd=example.root)

        assert told.exit_code == 0, told.stdout + told.stderr
        assert os.path.basename(example.root).removeprefix("greeter-") in told.stdout
