"""Every command of the documents works as written: it is run, ends as it should, and prints what they show."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from documents.blocks import PAGES, ROOT, Block, Step, blocks, steps
from documents.console import Console, invocation_of
from documents.scenes import prepare
from documents.shown import missing
from support.bundled import BundledHost
from support.machine import Machine
from support.proxies import Proxies
from uno_devserver.cli.commands import COMMANDS, GLOBAL_OPTIONS

UPSTREAM = "http://127.0.0.1:8000/mcp"  # of documents; a Host stands in for it
NETWORK = "UnoDocs is reached over the network, which a test machine may not have"

# What may also end with 1 on some machines, and why.
UNCERTAIN = {
    "uno-devserver mcp doctor cursor": NETWORK,
    "uno-devserver mcp doctor": NETWORK,
}


def _make_target(words: list[str]) -> None:
    """make itself says what it would run; nothing is set up or run."""
    targets = [word for word in words[1:] if "=" not in word]
    told = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert (told.returncode, bool(told.stdout.strip())) == (0, True), told.stderr


def _our_package(_words: list[str]) -> None:
    """Installing it puts the commands there that the documents go on with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == "uno-devserver"
    assert "uno-devserver" in project["scripts"]


def _example_has(name: str) -> Callable[[list[str]], None]:
    def check(_words: list[str]) -> None:
        assert list((ROOT / "examples").glob(f"servers/*/{name}"))

    return check


def _a_module(words: list[str]) -> None:
    assert (ROOT / f"{words[2].replace('.', '/')}.py").is_file()


# What a test cannot run: how such a line begins, why it is not run, and what of it is checked all the same.
NOT_RUN: dict[str, tuple[str, Callable[[list[str]], None] | None]] = {
    "make ": ("it sets up an environment over the network, or runs all tests, this one among them", _make_target),
    "uno-devserver demo": ("tests/cli/test_demo.py runs it, and looks at what it prints", None),
    "pipx install ": ("it downloads", _our_package),
    "uv tool install ": ("it downloads", _our_package),
    "python3 -m venv ~/.uno && ": ("it downloads", _our_package),
    "uno-devserver login https://": (
        "it asks a server on the network; tests/cli/test_server_login.py signs in to one",
        None,
    ),
    "python -m venv .venv && .venv/bin/pip": ("it downloads", _example_has("pyproject.toml")),
    "npm ": ("it downloads", _example_has("package.json")),
    ".venv/bin/python -m benchmarks.": ("it measures, for minutes and on a quiet machine", _a_module),
}


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.name)
def test_the_commands_of_a_block_work_one_after_the_other(machine: Machine, tmp_path: Path, block: Block) -> None:
    prepare(block, machine)
    with Proxies(machine) as everything:  # nothing that they start outlives the block
        console = Console(machine)
        try:
            for step in steps(block):
                if not _only_checked(step):
                    _try(step, console, tmp_path)
        finally:
            console.close()
            if everything.processes():
                console.ask("stop", "--all")


def _only_checked(step: Step) -> bool:
    for beginning, (_why, check) in NOT_RUN.items():
        if step.command.startswith(beginning):
            if check:
                check(shlex.split(step.command))
            return True
    return False


def _try(step: Step, console: Console, tmp_path: Path) -> None:
    if UPSTREAM in step.command:
        with BundledHost(tmp_path, "--addins", ";") as host:
            outcome = console.run(step.command.replace(UPSTREAM, host.url))
    else:
        outcome = console.run(step.command)

    codes = {step.exit_code, *([1] if step.command in UNCERTAIN else [])}
    assert outcome.exit_code in codes, f"$ {step.command}\n{outcome.output}"
    assert "Traceback" not in outcome.output
    assert missing(step.shown, outcome.output) == [], f"$ {step.command}\n{outcome.output}"


def test_what_is_not_run_or_may_fail_stands_in_the_documents() -> None:
    lines = {step.command for block in blocks("console") for step in steps(block)}

    assert UNCERTAIN.keys() - lines == set()
    assert [beginning for beginning in NOT_RUN if not any(line.startswith(beginning) for line in lines)] == []


# Commands that a sentence mentions.

PROSE = "".join(re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL) for page in PAGES)
MENTIONED = sorted(set(re.findall(r"`(uno-devserver [^`…[]+)`", PROSE)))


@pytest.mark.parametrize("line", MENTIONED)
def test_every_command_in_a_sentence_is_one_that_this_version_has(line: str) -> None:
    invocation = invocation_of(re.sub(r"<([^>]+)>", r"\1", line))

    assert invocation
    assert invocation.on("version") or invocation.command is not None
    assert not invocation.forwarded, "an option that is not ours is passed on"


OPTIONS = {
    name
    for options in (GLOBAL_OPTIONS, *(command.options for command in COMMANDS))
    for option in options
    for name in option.names
}
# Flags of the Host, of `dotnet` and of other programs, and examples.
OF_OTHERS = {
    "--axis",
    "--command",
    "--list-runtimes",
    "--list-sdks",
    "--mcp-app",
    "--metadata-updates",
    "--no-restore",
    "--option",
    "--quick",
    "--reload",
    "--stateful",
    "--tick-seconds",
    "--token",
}


def test_every_option_that_the_documents_name_is_one_of_ours_or_known_as_anothers() -> None:
    named = set(re.findall(r"`(--[\w-]+)", PROSE))

    assert named - OPTIONS == OF_OTHERS
