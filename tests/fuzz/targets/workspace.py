"""Files of a workspace, which others may have written."""

from __future__ import annotations

import json
import os

from support.golden import GOLDEN
from uno_devserver.discovery.dotnet_roll_forward import choose_sdk
from uno_devserver.discovery.nuget import PackageFolders
from uno_devserver.protocol.http.client import split_url
from uno_devserver.system import jsonc
from uno_devserver.system.files import FileProblem, decode
from uno_devserver.system.text import (
    VisibleOutput,
    one_line,
    shown_variable,
    shown_words,
    variable_to_agree_to,
    words_to_agree_to,
)
from uno_devserver.workspace.config import MOST_SERVERS, SERVER_NAME, Config, read_config
from uno_devserver.workspace.env_file import read_env_file
from uno_devserver.workspace.global_json import read_global_json
from uno_devserver.workspace.server_command import ServerLine, server_command, server_name
from uno_devserver.workspace.solutions import read_solution

from ..documents import BUILT, RAW, WORDS, document, raw
from ..pieces import Pieces
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


def check_servers(data: bytes) -> None:
    """Each entry of `servers` can be started or connected to, under a name that tools may have; others are told."""
    text = document(data, (*SERVER_NAMES, *CONFIG_NAMES), (*SERVER_VALUES, *CONFIG_VALUES))
    if data[:1] == BUILT:
        text = b'{"servers": ' + text + b"}"
    path = put("ws/.devtools/host.config.jsonc", text)
    put("ws/server/package.json", b'{"name": "a", "main": "a.js"}')
    config = read_config(path)
    assert len({entry.name for entry in config.servers}) == len(config.servers) <= MOST_SERVERS
    for entry in config.servers:
        assert entry.name
        assert SERVER_NAME.fullmatch(entry.name)
        assert read_config(path, entry.name) == entry
        if entry.connects_only:
            assert entry.server
            try:
                split_url(entry.server.url or "")
            except ValueError as error:  # the name of a host may be too long; the start says so
                told(error)
        for tool in ("", "a", "forecast_" + "a" * 50):
            entry.tools.allows(tool)
        if entry.server_folder is not None and not entry.connects_only:
            check_server(entry)
    for issue in config.issues:
        assert path in issue.message


SERVER_NAMES = ("servers", "one", "two", "main", "a b", "x" * 33, "url", "headers", "root", "cwd", "envFile", "standby",
    "prefix", "tools", "build", "startupTimeout", "silenceTimeout", "watch", "concurrency")  # fmt: skip
SERVER_VALUES = (
    '"http://localhost:8000/mcp"', '"https://mcp.example/mcp"', '"http://[::1"', '"http://x y"', '"http://x:99999"',
    '{"Authorization": "Bearer ${A}"}', '{"Host": "x"}', '"../server"', '"../../.env"', '"../.env"', "1000", "true",
    '["*" , "[", "get_*", "' + "*a" * 25 + '"]', '"npm run build"', '"a && b"', '{"command": "x"}', "{}",
    '{"url": "https://mcp.example/mcp", "headers": {"A": "${B}"}}', '{"root": "../server", "standby": true}',
)  # fmt: skip
SERVERS_SEED = (
    b'{"mcpServerRoot": "..", "servers": {"one": {"command": "node", "args": ["x.js"], "standby": true,'
    b' "prefix": true}, "two": {"url": "https://mcp.example/mcp", "tools": {"exclude": ["get_*"]}},'
    b' "three": {"root": "../server"}}}'
)

VALUE = "s3cr3t-value"


def say_no_value(text: str) -> None:
    assert VALUE not in text, text


def check_env_file(data: bytes) -> None:
    """Variables that a process can get, each once; or a sentence that names the line and shows no value."""
    text = Pieces(data[1:]).joined(ENV_WORDS).encode() if data[:1] == BUILT else data[1:]
    path = put("env/.env", text)
    try:
        variables = read_env_file(path)
    except FileProblem as problem:
        told(problem, path)
        say_no_value(str(problem))
        return
    assert len(dict(variables)) == len(variables)
    for name, value in variables:
        assert name
        assert "=" not in name
        assert "\0" not in name + value
        os.fsencode(name + value)


ENV_WORDS = (
    "\n", "\r\n", " ", "\t", "#", "'", '"', "\\", "\\n", f"A={VALUE}", f"B='{VALUE}'", f'C="{VALUE}', "export ", "D=",
    "=", "$A", "${A}", "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw==", "\ufeff", "\0", "é",
)  # fmt: skip


def check_shown(data: bytes) -> None:
    """A command and its variables as they are shown: as many words, and no key of a known kind or name."""
    count = data[0] % 6 if data else 0
    line = tuple(SHOWN_WORDS[byte % len(SHOWN_WORDS)] for byte in data[1 : 1 + count])
    text = data[1 + count :].decode("utf-8", "replace")
    for shown in (shown_words, words_to_agree_to):
        assert len(shown((*line, text))) == len(line) + 1
        assert not any(f"token={VALUE}" in word for word in shown(("x", *line)) if "$(" not in word)
    for name in ("API_KEY", "NODE_OPTIONS", text[:20]):
        shown_variable(name, text)
        variable_to_agree_to(name, text, line)
    assert VALUE not in shown_variable("API_KEY", VALUE)
    one_line(text)
    half = len(data) // 2
    output = VisibleOutput()
    said = output.decode(data[:half]) + output.decode(data[half:])
    assert not any(letter in said for letter in "\0\x1b\x7f")


SHOWN_WORDS = (
    "node", "--token", f"--token={VALUE}", f"--api-token={VALUE}", "-H", "--header", f"Authorization: Bearer {VALUE}",
    VALUE, f"https://user:{VALUE}@x/y", f"https://x/?key={VALUE}", "a.js", "-c", "$(x)", f"TOKEN={VALUE}", "'", "é",
    "\udcff",
)  # fmt: skip


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
    Target(
        "config-servers",
        "each entry can be started or connected to, under a name that tools may have; the others are told",
        check_servers,
        lambda: raw(SERVERS_SEED, b'{"servers": {"a": {"url": "http://x/y", "command": "z"}, "main": {}, "": 1}}'),
        (*WORDS, *(f'"{name}"' for name in SERVER_NAMES), *SERVER_VALUES),
    ),
    Target(
        "env-files",
        "variables that a process can get, or a sentence that shows no value",
        check_env_file,
        lambda: [
            RAW + b"# c\nexport A=b c # d\nB='x\ny'\nC=\"\\n\\\\\"\n",
            BUILT + bytes(range(23)),
            BUILT + bytes([11, 0, 9, 0, 5, 0, 17, 0, 10]),
        ],
        tuple(word for word in ENV_WORDS if word.isprintable()),
        500,
    ),
    Target(
        "shown-texts",
        "as many words as before, and no key of a known kind or name",
        check_shown,
        lambda: [
            bytes([5, *range(start, start + 5)]) + b"--token=x https://u:p@h/?a=b \x1b[31mred\x1b[0m"
            for start in range(12)
        ],
        (*(word for word in SHOWN_WORDS if word.isprintable()), "Bearer ", "://", "@", "sk-", "=", "\x1b["),
        400,
    ),
)
