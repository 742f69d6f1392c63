"""Files of a workspace, which others may have written."""

from __future__ import annotations

import json
import os

from support.golden import GOLDEN
from uno_devserver.discovery.dotnet_roll_forward import choose_sdk
from uno_devserver.discovery.nuget import PackageFolders
from uno_devserver.system import jsonc
from uno_devserver.system.files import decode
from uno_devserver.workspace.config import Config, read_config
from uno_devserver.workspace.global_json import read_global_json
from uno_devserver.workspace.server_command import ServerLine, server_command, server_name
from uno_devserver.workspace.solutions import read_solution

from ..documents import BUILT, RAW, WORDS, document, raw
from ..scratch import folder, put
from ..target import Target, told

# --- solutions --------------------------------------------------------------------------------------------------------

SOLUTION_KINDS = (".sln", ".slnx", ".slnf")


def check_solution(data: bytes) -> None:
    """Projects by absolute paths, each once, that a system can be asked for; and what is wrong is said."""
    kind = data[0] % 3 if data else 0
    content = data[1:]
    if kind == 2:
        put("solution/a.sln", SLN)
        content = document(data[1:], ("solution", "path", "projects"), ('"a.sln"', '"A\\\\A.csproj"', '"b.slnx"'))
    path = put(f"solution/x{SOLUTION_KINDS[kind]}", content)
    solution = read_solution(path)
    assert len(set(solution.projects)) == len(solution.projects)
    for project in solution.projects:
        assert os.path.isabs(project)
        os.path.exists(project)
        assert "\0" not in project
        os.fsencode(project)
    if solution.issue is not None:
        assert path in solution.issue.message or "a.sln" in solution.issue.message


SLN = (
    b"Microsoft Visual Studio Solution File, Format Version 12.00\r\n"
    b'Project("{FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}") = "A", "A\\A.csproj", "{1}"\r\nEndProject\r\n'
)


def solution_seeds() -> list[bytes]:
    found = []
    for path in sorted((GOLDEN / "solutions").rglob("*.sln*")):
        kind = SOLUTION_KINDS.index(path.suffix.lower())
        if path.is_file() and path.stat().st_size < 1500:
            found.append(bytes([kind]) + (RAW if kind == 2 else b"") + path.read_bytes())
    return [*found[::2], b"\2" + BUILT + bytes(range(30))]


# --- JSON files of a workspace ----------------------------------------------------------------------------------------


def check_json(data: bytes) -> None:
    """A value with which a strict reader agrees, or a problem with its place, which is in the text."""
    text = decode(data)
    try:
        value = jsonc.parse(data)
    except jsonc.JsonProblem as problem:
        told(problem, "line", "column")
        _check_place(text, problem)
        return
    blanked = jsonc.without_trailing_commas(jsonc.without_comments(text))
    try:
        assert json.loads(text) == value
    except ValueError:
        assert len(blanked) == len(text)
        assert json.loads(blanked) == value
    if isinstance(value, dict):
        for name in list(value)[:3]:
            line, column = jsonc.JsonPositions(data).position((name,), at_key=True)
            assert text.split("\n")[line - 1][column - 1] == '"'


def _check_place(text: str, problem: jsonc.JsonProblem) -> None:
    assert 1 <= problem.line <= text.count("\n") + 1
    assert problem.column >= 1


def check_global_json(data: bytes) -> None:
    """An SDK whose version can be one folder's name, or what is missing; and a choice of the .NET SDK."""
    text = document(data, ("sdk", "version", "rollForward", "allowPrerelease", "msbuild-sdks", *UNO), GLOBAL_VALUES)
    read = read_global_json(put("global/global.json", text))
    assert (read.uno_sdk is None) == (read.issue is not None)
    if read.uno_sdk is not None:
        assert os.path.basename(read.uno_sdk.version) == read.uno_sdk.version
        assert read.uno_sdk.version not in ("", ".", "..")
        PackageFolders([str(folder())]).find(read.uno_sdk.package, read.uno_sdk.version)
    choice = choose_sdk(text, ("8.0.100", "10.0.100-rc.1", "9.0.305"))
    assert choice.version is None or choice.version in choice.installed


UNO = ("Uno.Sdk", "Uno.Sdk.Private", "uno.sdk", "errorMessage", "paths")
GLOBAL_VALUES = (
    '"6.0.1"',
    '"10.0.100"',
    '"8.0.1xx"',
    '"latestMajor"',
    '"patch"',
    '"disable"',
    '"10.0.100-rc.1"',
    '"$host$"',
)


def check_config(data: bytes) -> None:
    """Settings of the right kinds, and of each wrong one a place; the server that it names can be started."""
    text = document(data, CONFIG_NAMES, CONFIG_VALUES)
    path = put("ws/.devtools/host.config.jsonc", text)
    config = read_config(path)
    for issue in config.issues:
        assert path in issue.message
    if config.server_folder is not None:
        check_server(config)


def check_server(config: Config) -> None:
    assert server_name(config)
    line = server_command(config, {"PATH": "/nowhere"}, "linux")
    if isinstance(line, ServerLine):
        for word in (*line.line, line.folder, *(text for pair in line.environment for text in pair)):
            assert "\0" not in word
            os.fsencode(word)


CONFIG_NAMES = (
    "$schema", "mcpServerRoot", "mcpServer", "command", "args", "env", "client", "hotReload", "enabled", "include",
    "exclude", "strategy", "serverName", "pipeline", "proxy", "inspector", "port", "extensionRoot", "readyPattern",
)  # fmt: skip
CONFIG_VALUES = (
    '".."',
    '"../server"',
    '"node"',
    '["a", "b"]',
    '{"A": "b"}',
    '"swap"',
    '"restart"',
    "5000",
    '["**/*.py"]',
    '"("',
)


CONFIG_SEED = (
    b'{\n  // c\n  "mcpServerRoot": "..", "mcpServer": {"command": "node", "args": ["x.js"], "env": {"A": "b"}},\n'
    b'  "hotReload": {"strategy": "swap", "include": ["**/*.py"], "enabled": true,}, "unknown": 1\n}\n'
)
JSON_SEEDS = (
    CONFIG_SEED,
    b'\xef\xbb\xbf{"a": [1, 2.5e3, "\\u00e9", null, true,],} // end',
    b"[/* c */]",
    '{"é": NaN}'.encode("utf-16"),
)

SOLUTION_WORDS = (
    'Project("', '") = "', '", "', "EndProject", "<Solution>", "<Project Path=", "<Folder Name=", "/>", "\\", "://",
    "\n",
)  # fmt: skip
GLOBAL_SEED = b'{"sdk": {"version": "10.0.100", "rollForward": "latestMajor"}, "msbuild-sdks": {"Uno.Sdk": "6.0.1"}}'

TARGETS = (
    Target(
        "solutions",
        "projects by absolute paths, and what is wrong is said",
        check_solution,
        solution_seeds,
        SOLUTION_WORDS,
    ),
    Target("jsonc", "a strict reader agrees, or a problem with its place", check_json, lambda: JSON_SEEDS, WORDS),
    Target(
        "global-json",
        "an SDK whose version is one folder's name, or what is missing",
        check_global_json,
        lambda: raw(GLOBAL_SEED),
        (*WORDS, *UNO, *GLOBAL_VALUES),
    ),
    Target(
        "config",
        "settings of the right kinds, a place for each wrong one, a server that can be started",
        check_config,
        lambda: raw(CONFIG_SEED),
        (*WORDS, *(f'"{name}"' for name in CONFIG_NAMES), *CONFIG_VALUES),
    ),
)
