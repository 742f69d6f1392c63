"""Servers as people lay them out: a server and a package of the same repository that it uses, for each ecosystem.

Each is data: its files, and the commands of its own tools that make it. All have one tool, `answer`, which says what
stands in the server's own file and what stands in the file of the other package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

OWN, SHARED = "own 1", "shared 1"  # what both files say at first
BROKEN = ")(\n"  # a syntax error in every language, after a line
RESTART, SWAP = "restart", "swap"


class Project(NamedTuple):
    name: str
    files: Mapping[str, str]
    made_by: Sequence[str]  # lines of a shell in the repository; {python}, {programs} and {packages} are ours
    root: str  # the folder of the server
    own: str  # the file that is edited there
    shared: str  # and in the package that it uses
    command: Sequence[str] = ()  # in `root`; none: it follows from the package
    strategy: str = SWAP
    broken: str = "swapFailed"  # what is told of a syntax error: `buildFailed` where something finds it before a start
    needs: str = ""  # a program of the system


# --- JavaScript and TypeScript

NODE_SERVER = """
import { createInterface } from "node:readline";
import { shared } from "@demo/shared";

const tool = { name: "answer", inputSchema: { type: "object" } };
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "demo", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": () => ({ content: [{ type: "text", text: `own 1, ${shared}` }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method]?.(params);
  const rest = result ? { result } : { error: { code: -32601, message: "unknown method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...rest }));
});
"""
_SDK_TYPESCRIPT = """
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { shared } from "@demo/shared";

serveStdio(() => {
  const server = new McpServer({ name: "demo", version: "1" });
  server.registerTool("answer", { inputSchema: z.object({}) }, async () => ({
    content: [{ type: "text", text: `own 1, ${shared}` }],
  }));
  return server;
});
"""
_SHARED = 'export const shared = "shared 1";\n'
_OPTIONS = (
    '"target": "es2023", "module": "nodenext", "types": ["node"], "strict": true, "skipLibCheck": true, '
    '"noEmitOnError": true, "declaration": true, "rootDir": "src", "outDir": "dist"'
)
_TSCONFIG = f'{{ "compilerOptions": {{ {_OPTIONS} }}, "include": ["src"] }}\n'
_REFERENCED = f'{{ "compilerOptions": {{ {_OPTIONS}, "composite": true }}, "include": ["src"] }}\n'
_REFERS = f'{{ "compilerOptions": {{ {_OPTIONS} }}, "include": ["src"], "references": [{{ "path": "../shared" }}] }}\n'


def _workspaces(server: str, shared: str, *, version: str = "*", manager: str = "") -> dict[str, str]:
    """Two packages of one repository, with these fields; `manager` is a field of its root."""
    return {
        ".gitignore": "node_modules\ndist\n.yarn\n",
        "package.json": f'{{ "name": "demo", "private": true, {manager}"workspaces": ["packages/*"] }}\n',
        "packages/server/package.json": (
            f'{{ "name": "@demo/server", "version": "1.0.0", "type": "module", {server}, '
            f'"dependencies": {{ "@demo/shared": "{version}" }} }}\n'
        ),
        "packages/shared/package.json": (
            f'{{ "name": "@demo/shared", "version": "1.0.0", "type": "module", {shared} }}\n'
        ),
    }


_PLAIN = {"packages/server/index.js": NODE_SERVER, "packages/shared/index.js": _SHARED}
_PLAIN_MAIN = '"main": "index.js"'
_NPM_INSTALL = "npm install --offline --no-audit --no-fund"
_BUILT_MAIN = '"main": "dist/index.js"'


def _plain(name: str, made_by: str, files: Mapping[str, str], command: Sequence[str] = ()) -> Project:
    own, shared = "packages/server/index.js", "packages/shared/index.js"
    return Project(name, {**files, **_PLAIN}, [made_by], "packages/server", own, shared, command, broken="buildFailed")


def _typescript(name: str, server: str, files: Mapping[str, str], **how: object) -> Project:
    own, shared = "packages/server/src/index.ts", "packages/shared/src/index.ts"
    sources = {own: server, shared: _SHARED}
    return Project(name, {**files, **sources}, [_NPM_INSTALL], "packages/server", own, shared, **how)  # type: ignore[arg-type]


_JAVASCRIPT = (
    _plain("npm workspaces", _NPM_INSTALL, _workspaces(_PLAIN_MAIN, _PLAIN_MAIN)),
    _plain(
        "pnpm workspace",
        "pnpm install --offline",
        _workspaces(_PLAIN_MAIN, _PLAIN_MAIN, version="workspace:*")
        | {"pnpm-workspace.yaml": "packages:\n  - packages/*\n"},
    ),
    _plain(
        "yarn workspaces",
        "yarn install",
        _workspaces(_PLAIN_MAIN, _PLAIN_MAIN, version="workspace:^")
        | {".yarnrc.yml": "nodeLinker: node-modules\nenableTelemetry: false\n", "yarn.lock": ""},
    ),
    _plain(
        "yarn workspaces without node_modules",
        "yarn install",
        _workspaces(_PLAIN_MAIN, _PLAIN_MAIN, version="workspace:^")
        | {".yarnrc.yml": "enableTelemetry: false\n", "yarn.lock": ""},
        ["yarn", "node", "index.js"],
    ),
    _plain(
        "node --watch",
        _NPM_INSTALL,
        _workspaces(_PLAIN_MAIN, _PLAIN_MAIN),
        ["node", "--watch", "index.js"],
    ),
    _typescript(
        "tsx",
        NODE_SERVER.replace("const results =", "const results: Record<string, (params: any) => object> ="),
        _workspaces('"private": true', '"exports": "./src/index.ts"'),
        command=["tsx", "src/index.ts"],
    ),
    _typescript(
        "TypeScript SDK, packages with builds",
        _SDK_TYPESCRIPT,
        _workspaces(
            f'{_BUILT_MAIN}, "scripts": {{ "build": "tsc" }}', f'{_BUILT_MAIN}, "scripts": {{ "build": "tsc" }}'
        )
        | {"packages/server/tsconfig.json": _TSCONFIG, "packages/shared/tsconfig.json": _TSCONFIG},
        strategy=RESTART,
        broken="buildFailed",
    ),
    _typescript(
        "TypeScript SDK, project references",
        _SDK_TYPESCRIPT,
        _workspaces(f'{_BUILT_MAIN}, "scripts": {{ "build": "tsc --build" }}', _BUILT_MAIN)
        | {"packages/server/tsconfig.json": _REFERS, "packages/shared/tsconfig.json": _REFERENCED},
        strategy=RESTART,
        broken="buildFailed",
    ),
)

# --- Python

_PLAIN_PYTHON = """
import json
import sys

from demo_shared import SHARED


def main():
    for line in sys.stdin:
        message = json.loads(line)
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "demo", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "answer", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"own 1, {SHARED}"}]},
        }
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}
            print(json.dumps(answer), flush=True)
"""
_SDK_PYTHON = """
from mcp.server.mcpserver import MCPServer

from demo_shared import SHARED

server = MCPServer("demo")


@server.tool()
def answer() -> str:
    return f"own 1, {SHARED}"


def main():
    server.run()
"""
_FASTMCP = """
from demo_shared import SHARED
from fastmcp import FastMCP

server = FastMCP("demo")


@server.tool
def answer() -> str:
    return f"own 1, {SHARED}"
"""


def _pyproject(name: str, backend: str, more: str = "") -> str:
    return f'[project]\nname = "{name}"\nversion = "1"\nrequires-python = ">=3.11"\n{more}{backend}'


def _python(
    name: str,
    server: str,
    backend: str,
    made_by: Sequence[str],
    more: str = "",
    command: Sequence[str] = (),
    **files: str,
) -> Project:
    own, shared = "packages/server/src/demo_server/__init__.py", "packages/shared/src/demo_shared/__init__.py"
    uses = f'dependencies = ["demo-shared"]\n[project.scripts]\ndemo-server = "demo_server:main"\n{more}'
    manifests = {
        "packages/server/pyproject.toml": _pyproject("demo-server", backend, uses),
        "packages/shared/pyproject.toml": _pyproject("demo-shared", backend),
    }
    sources = {own: server, shared: 'SHARED = "shared 1"\n', ".gitignore": ".venv\n__pycache__\n"}
    project = Project(name, {**manifests, **sources, **files}, made_by, "packages/server", own, shared, command)
    return project._replace(strategy=RESTART, broken="buildFailed")


# The environment has the packages of ours, and with them the backend, so nothing is downloaded.
_EDITABLE = ".venv/bin/python -m pip install --no-build-isolation --no-deps --no-index --quiet"
_PIP = [
    "cd packages/server && {python} -m venv --without-pip .venv",
    "cd packages/server/.venv/lib/python*/site-packages && echo {packages} > ours.pth",
    f"cd packages/server && {_EDITABLE} --editable ../shared --editable .",
]
_UV_BUILD = '[build-system]\nrequires = ["uv_build"]\nbuild-backend = "uv_build"\n'
# To find out by itself where the code is, hatchling would need another package.
_HATCH = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
dev-mode-dirs = ["src"]
"""

_PYTHON = (
    _python(
        "uv workspace",
        _PLAIN_PYTHON,
        _UV_BUILD,
        ["uv sync --offline --all-packages --python {python}"],
        "[tool.uv.sources]\ndemo-shared = { workspace = true }\n",
        **{"pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n'},
    ),
    _python("Python SDK, editable pip install", _SDK_PYTHON, _HATCH, _PIP),
    _python(
        "fastmcp run --reload",
        _FASTMCP,
        _HATCH,
        _PIP,
        command=[
            ".venv/bin/python",
            "{programs}/fastmcp",
            "run",
            "--reload",
            "--no-banner",
            "src/demo_server/__init__.py",
        ],
    ),
)

# --- Go

GO_SERVER = """
package main

import (
\t"bufio"
\t"encoding/json"
\t"os"

\t"example.com/shared"
)

type object map[string]any

func main() {
\tout := json.NewEncoder(os.Stdout)
\tlines := bufio.NewScanner(os.Stdin)
\tfor lines.Scan() {
\t\tvar message struct {
\t\t\tID     any
\t\t\tMethod string
\t\t}
\t\tif json.Unmarshal(lines.Bytes(), &message) != nil || message.ID == nil {
\t\t\tcontinue
\t\t}
\t\tresult := object{}
\t\tswitch message.Method {
\t\tcase "initialize":
\t\t\tinfo := object{"name": "demo", "version": "1"}
\t\t\tresult = object{"protocolVersion": "2025-11-25", "capabilities": object{"tools": object{}}, "serverInfo": info}
\t\tcase "tools/list":
\t\t\tresult = object{"tools": []object{{"name": "answer", "inputSchema": object{"type": "object"}}}}
\t\tcase "tools/call":
\t\t\tresult = object{"content": []object{{"type": "text", "text": "own 1, " + shared.Shared}}}
\t\t}
\t\tout.Encode(object{"jsonrpc": "2.0", "id": message.ID, "result": result})
\t}
}
"""
_GO_PROJECT = Project(
    "Go modules with replace",
    {
        "server/main.go": GO_SERVER,
        "server/other/main.go": "package main\n\nbroken, and not run\n",
        "shared/shared.go": 'package shared\n\nconst Shared = "shared 1"\n',
    },
    [
        "cd shared && go mod init example.com/shared",
        "cd server && go mod init example.com/server",
        "cd server && go mod edit -require example.com/shared@v0.0.0 -replace example.com/shared=../shared",
    ],
    "server",
    "server/main.go",
    "shared/shared.go",
    ["go", "run", "."],
    RESTART,
    "buildFailed",
    "golang",
)

PROJECTS = (*_JAVASCRIPT, *_PYTHON, _GO_PROJECT)
