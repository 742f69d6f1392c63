"""The machines on which the commands of the documents are run: a workspace that fits, and the programs that it needs.

Nothing of the real machine is on PATH but a few tools of the system. `npx`, `uvx` and the program of the example
server are stand-ins: what they would download is none of our concern here.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from documents.blocks import ROOT, Block, blocks, steps
from support.files import write, write_all
from support.machine import COMMAND, Machine
from support.npm import NODE
from support.packages import app_mcp, direct_add_in
from support.registration import server_in
from support.workspace import WorkspaceBuilder

# What lines of the documents, and the stand-ins, are made of.
TOOLS = ("bash", "sh", "env", "cat", "mkdir", "cp", "grep", "head", "make", "sed", "uname", "expand", "touch")
SERVER = """
import sys
sys.path.insert(0, {tests!r})
from support.reload_server import serve
serve("hello", {journal!r})
"""
UVX = """#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != uno-devserver ]; do shift; done
exec "$@"
"""

# The Settings application is content; for everything else there is the stand-in of all tests.
DOTNET = """#!/bin/sh
case "$1" in *Uno.Settings.dll) exit 0 ;; esac
exec "$0-sdk" "$@"
"""


def prepare(block: Block, machine: Machine) -> None:
    """The machine with everything that the commands of the block need."""
    machine.data = machine.home / ".local" / "share"  # where also a program looks that has only HOME
    _install_programs(machine)
    words = {word for step in steps(block) for word in step.command.split()}
    example = ROOT / block.page
    if example.is_relative_to(ROOT / "examples"):
        _copy(example.parent, machine.workspace)
    elif words & {"disco", "login"}:
        _uno(machine)
    elif words & {"config", "init"}:
        _copy(ROOT / "examples" / "servers" / "python", machine.workspace)
    else:
        _copy(ROOT / "examples" / "workspace", machine.workspace)
    if "addin" in words:
        package = direct_add_in("Acme.Tool")
        package.pack(machine.workspace)
        write_all(machine.workspace / package.id, package.all_files)
    for folder in sorted(word for word in words if word.startswith("servers/")):
        (machine.workspace / ".git").mkdir(exist_ok=True)
        server_in(machine.workspace / folder, Path(folder).name)
    if words & {"--all-ides", "--all"}:
        (machine.workspace / ".cursor").mkdir()  # there is a client
    # Files that the page has shown before.
    if block.page == "docs/addins.md":
        write(machine.workspace / ".devtools" / "addins" / "shout.py", blocks("python", pages=(example,))[0].text)
    for snippet in blocks("json", pages=(example,)):
        for name in words & {f"{key}.json" for key in json.loads(snippet.text)}:
            write(machine.workspace / name, snippet.text)
    if "trust" not in words and machine.run("trust").exit_code:  # a reader on a terminal is asked, and says yes
        raise AssertionError("what the commands run could not be agreed to")
    if "init" in words:  # it writes what was copied
        (machine.workspace / ".devtools" / "host.config.jsonc").unlink(missing_ok=True)
        write(machine.workspace / "server.js", "")


def _install_programs(machine: Machine) -> None:
    for name in TOOLS:
        found = shutil.which(name)
        assert found, f"{name} is not installed"
        (machine.tools / name).symlink_to(found)
    (machine.tools / "uno-devserver").symlink_to(COMMAND)
    (machine.tools / "node").symlink_to(NODE)
    server = SERVER.format(tests=str(ROOT / "tests"), journal=str(machine.root / "journal"))
    program = write(machine.root / "server.py", server)
    for name in ("npx", "npm", "greeter-py"):
        _script(machine.tools / name, f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
    _script(machine.tools / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    _script(machine.tools / "uvx", UVX)


def _uno(machine: Machine) -> None:
    dotnet = machine.install_dotnet().root / "dotnet"
    dotnet.rename(dotnet.with_name("dotnet-sdk"))
    _script(dotnet, DOTNET)
    workspace = WorkspaceBuilder(machine).uno_6_5()
    workspace.project("src/App/App.csproj", [app_mcp()]).solution("App.slnx")


def _copy(source: Path, target: Path) -> None:
    unwanted = shutil.ignore_patterns("node_modules", ".venv", "__pycache__", "dist")
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=unwanted)


def _script(path: Path, text: str) -> None:
    write(path, text).chmod(0o755)
