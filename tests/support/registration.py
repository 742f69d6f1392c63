"""A machine whose AI clients' files are looked at: `mcp status`, `install`, `uninstall` as real processes.

Every run is `--json` unless a test asks for the text, and what it left in the home folder and the workspace can be
compared with what was there before.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.files import write
from support.golden import GOLDEN
from support.machine import COMMAND, WINDOWS, Machine, Result
from uno_devserver import __version__
from uno_devserver.setup.server_definition import is_release

SEED_SERVERS = GOLDEN / "registration-seed" / "server-definitions.json"

DOCS_URL = "https://mcp.platform.uno/v1"
DNX = {"command": "dnx", "args": ["-y", "uno.devserver", "--mcp-app"]}
BY_PATH = {"command": COMMAND, "args": ["--mcp-app"]}


def by_uvx(version: str, *options: str) -> dict[str, Any]:
    """The entry that takes the minor version of `version` from the package index."""
    minor = ".".join(version.split(".")[:2])
    return {"command": "uvx", "args": [*options, "--from", f"uno-devserver=={minor}.*", "uno-devserver", "--mcp-app"]}


UVX, UVX_PRERELEASE = by_uvx(__version__), by_uvx(__version__, "--prerelease", "allow")
WRITTEN = UVX if is_release(__version__) else BY_PATH  # by `mcp install` without options
# What it wrote before versions were named.
UNPINNED = {"command": "uvx", "args": ["uno-devserver", "--mcp-app"]}
UNPINNED_PRERELEASE = {"command": "uvx", "args": ["--prerelease", "allow", "uno-devserver", "--mcp-app"]}
DOCS = {"url": DOCS_URL}
VSCODE_USER = "~/AppData/Roaming/Code/User/mcp.json" if WINDOWS else "~/.config/Code/User/mcp.json"


_SERVER = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    tools = [{"name": NAME, "inputSchema": {"type": "object"}}]
    info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    info["serverInfo"] = {"name": NAME, "version": "1"}
    result = {"initialize": info, "tools/list": {"tools": tools}}.get(asked.get("method"), {})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def server_in(folder: Path, name: str, manifest: str = "pyproject.toml") -> Path:
    """A server that has one tool of its name, and its config."""
    texts = {
        "pyproject.toml": f'[project]\nname = "{name}"\n',
        "package.json": json.dumps({"name": name, "main": "server.js"}),
        "go.mod": f"module example.org/{name}\n",
        f"{name}.csproj": "<Project/>",
    }
    write(folder / manifest, texts[manifest])
    write(folder / "server.py", f"NAME = {name!r}\n{_SERVER}")
    command = {"command": sys.executable, "args": [str(folder / "server.py")], "build": False}
    write(folder / ".devtools" / "host.config.jsonc", json.dumps({"mcpServerRoot": "..", "mcpServer": command}))
    return folder


def as_version(machine: Machine, version: str) -> str:
    """Have the programs on this machine run as this version of ours; returns it."""
    folder = machine.root / f"version-{version}"  # a file of the same size and second would be taken for the same
    write(folder / "sitecustomize.py", f"import uno_devserver; uno_devserver.__version__ = {version!r}\n")
    machine.environment["PYTHONPATH"] = str(folder)
    return version


class Clients:
    """The files of AI clients on a machine, and the commands that register servers in them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.home = machine.home
        self.workspace = machine.workspace

    def at(self, path: str) -> Path:
        """`~/x` is in the home folder, everything else in the workspace."""
        return self.home / path[2:] if path.startswith("~/") else self.workspace / path

    def write(self, path: str, content: str | bytes | Mapping[str, Any]) -> Path:
        """Write a file; a mapping as JSON."""
        text = json.dumps(content, indent=2) + "\n" if isinstance(content, Mapping) else content
        return write(self.at(path), text)

    def read(self, path: str) -> Any:
        """The file as strict JSON."""
        return json.loads(self.at(path).read_bytes())

    def bytes(self, path: str) -> bytes:
        return self.at(path).read_bytes()

    def mcp(self, *argv: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Result:
        return self.machine.run("mcp", *argv, "--json", env=env, cwd=cwd)

    def text(self, *argv: str) -> Result:
        return self.machine.run("mcp", *argv)

    def status(self, *argv: str, env: Mapping[str, str] | None = None) -> Result:
        result = self.mcp("status", *argv, env=env)
        assert result.exit_code == 0, result.stdout
        return result

    def install(self, *argv: str, env: Mapping[str, str] | None = None) -> Result:
        return self.mcp("install", *argv, env=env)

    def uninstall(self, *argv: str, env: Mapping[str, str] | None = None) -> Result:
        return self.mcp("uninstall", *argv, env=env)

    def tree(self) -> dict[str, object]:
        """All of the home folder and the workspace: kind, mode, content or target. Equal means: nothing changed."""
        seen: dict[str, object] = {}
        for root in (self.home, self.workspace):
            for folder, folders, files in os.walk(root):
                for name in [*folders, *files]:
                    path = os.path.join(folder, name)
                    seen[path] = _what(path)
        return seen


def of_client(result: Result, server: str, client: str) -> dict[str, Any]:
    """What `status` says about a server in a client; status "absent" if it does not mention the client."""
    named = next(one for one in result.json["servers"] if one["name"] == server)
    found = [one for one in named["ides"] if one["ide"] == client]
    assert len(found) <= 1, found
    return found[0] if found else {"ide": client, "status": "absent"}


def operations(result: Result) -> list[dict[str, Any]]:
    """The operations of a result, after a check of the fields that each must have."""
    listed: list[dict[str, Any]] = result.json["operations"]
    for operation in listed:
        assert list(operation)[:2] == ["server", "ide"], operation
        assert {"action", "path", "reason"} <= set(operation), operation
        assert operation["reason"], operation
        assert operation["path"] is None or os.path.isabs(operation["path"]), operation
    return listed


def actions(result: Result) -> dict[str, str]:
    """The action for each server; for results with one operation per server."""
    listed = operations(result)
    done = {one["server"]: one["action"] for one in listed}
    assert len(done) == len(listed), listed
    return done


def includes(whole: Any, part: Any, at: str = "$") -> bool:
    """Whether all that `part` says is so in `whole`: objects may have more members, lists must have the same length."""
    if isinstance(part, dict):
        assert isinstance(whole, dict), f"{at}: {whole!r} is no object"
        for key, value in part.items():
            assert key in whole, f"{at} has no {key}: {whole!r}"
            includes(whole[key], value, f"{at}.{key}")
    elif isinstance(part, list):
        assert isinstance(whole, list), f"{at}: {whole!r} is no list"
        assert len(whole) == len(part), f"{at}: {whole!r} and not {part!r}"
        for index, value in enumerate(part):
            includes(whole[index], value, f"{at}[{index}]")
    else:
        assert whole == part, f"{at}: {whole!r} and not {part!r}"
    return True


def foreign_bytes_are_in_place(before: bytes, after: bytes) -> bool:
    """Whether `after` is `before` with something put in at one place.

    At most blanks, or a word for nothing, were taken out there. The comma behind the entry before may have its own
    place, in front of a comment.
    """
    head = _common(before, after)
    if _is_filled_in(before[head:], after[head:]):
        return True
    if after[head : head + 1] == b",":
        return foreign_bytes_are_in_place(before[head:], after[head + 1 :])
    return _lines_are_in_place(before, after)


def without_comments(text: str) -> Any:
    """The meaning of simple JSON with comments and trailing commas: no such marks inside its strings, but addresses."""
    text = re.sub(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\n]*', lambda found: found[1] or "", text, flags=re.DOTALL)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text.removeprefix("\ufeff")))


def _lines_are_in_place(before: bytes, after: bytes) -> bool:
    """Whether all lines are still there, in their order: comments of YAML may come to stand between two entries."""
    nothing = re.compile(rb"\s*(\{\}|\[\]|~|null)?\s*$")
    left = iter([nothing.sub(b"", line) for line in after.split(b"\n")])
    return all(nothing.sub(b"", line) in left for line in before.split(b"\n"))


def _is_filled_in(before: bytes, after: bytes) -> bool:
    tail = min(_common(before[::-1], after[::-1]), len(before))
    return re.fullmatch(rb"[\s\0]*(\{\s*\}?|\[\s*\]?|~|null)?[\s\0]*", before[: len(before) - tail]) is not None


def _common(one: bytes, other: bytes) -> int:
    """How many bytes at the beginning are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _what(path: str) -> object:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return (stat.S_IFMT(status.st_mode), mode)
    try:
        return (mode, Path(path).read_bytes())
    except PermissionError:
        return (mode, status.st_size, status.st_mtime_ns)
