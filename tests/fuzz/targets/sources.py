"""Which files are the code: manifests of each language, TypeScript's configuration and imports, patterns, commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from support.machine import DATA_HOME
from uno_devserver.hotreload.build_command import build_of
from uno_devserver.hotreload.sources import dotnet, python_dependencies  # noqa: F401  # to be instrumented
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.sources.globs import Globs
from uno_devserver.hotreload.sources.go import main_package
from uno_devserver.hotreload.sources.typescript import program  # noqa: F401  # to be instrumented
from uno_devserver.hotreload.sources.typescript.imports import scan
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.msbuild import expressions
from uno_devserver.system.run import RunOutcome
from uno_devserver.workspace import dotnet_query
from uno_devserver.workspace.command_package import (
    OutsideRepository,
    followed_manifests,
    package_of,
    script_watcher,
    started_files,
)
from uno_devserver.workspace.config import read_config
from uno_devserver.workspace.dotnet_command import dotnet_command
from uno_devserver.workspace.dotnet_project import read_project
from uno_devserver.workspace.server_command import without_own_reload

from ..documents import BUILT, RAW, WORDS, document
from ..pieces import Pieces
from ..scratch import folder, put
from ..target import Target, told
from .build import BOUNDS, XML_WORDS
from .workspace import check_server

# --- manifests --------------------------------------------------------------------------------------------------------


def check_manifests(data: bytes) -> None:
    """package.json and pyproject.toml: a command that can be started, sources that are there, or what is wrong."""
    if data[:1] and data[0] % 2:
        put("ws/server/package.json", document(data[1:], PACKAGE_NAMES, PACKAGE_VALUES))
        _remove("ws/server/pyproject.toml")
    else:
        text = Pieces(data[2:]).joined(PYPROJECT_WORDS).encode() if data[1:2] == BUILT else data[2:]
        put("ws/server/pyproject.toml", text)
        _remove("ws/server/package.json")
    put("ws/server/src/a.py", b"")
    put("ws/.git/HEAD", b"")  # so that the server can use the package beside it
    put("ws/x/pyproject.toml", b'[project]\nname = "x"\ndependencies = ["server"]\n')
    put("ws/x/package.json", b'{"name": "x", "dependencies": {"server": "portal:../server"}}')
    path = put("ws/.devtools/host.config.jsonc", b'{"mcpServerRoot": "../server"}')
    config = read_config(path)
    check_server(config)
    _check_sources(str(folder() / "ws" / "server"))


def _check_sources(root: str) -> None:
    package = WatchedPackage(Role.SERVER, root)
    sources = find_sources(package)
    for path in (*sources.files.values(), *sources.folders, *sources.deciding):  # all of them are watched
        assert "\0" not in path
        os.fsencode(path)
    assert sources == find_sources(package)
    build = build_of(package, {"PATH": "/nowhere"}, "linux")
    if build is not None:
        assert all("\0" not in word for word in build.line)


def _remove(name: str) -> None:
    (folder() / name).unlink(missing_ok=True)


PACKAGE_NAMES = (
    "name", "bin", "main", "scripts", "build", "compile", "packageManager", "dependencies", "devDependencies",
    "exports", "imports", "type", "types", "typesVersions", "version",
)  # fmt: skip
PACKAGE_VALUES = (
    '"./dist/index.js"',
    '{"a": "b.js"}',
    '"@s/n"',
    '"tsc"',
    '"pnpm@9"',
    '"yarn"',
    '{"tsc": "x"}',
    '"module"',
    '{"x": "link:../x"}',
    '{"../x": "*", "\\ud800": "*", "\\u0000": "link:\\ud800"}',
)
PYPROJECT_WORDS = (
    "[project]\n", 'name = "a-b"\n', "[project.scripts]\n", 'a-b = "a:main"\n', "[build-system]\n",
    "[tool.hatch.build.targets.wheel]\n", 'packages = ["src/a"]\n', "[tool.setuptools]\n", 'py-modules = ["m"]\n',
    "[tool.setuptools.packages.find]\n", 'where = ["src"]\n', 'where = ["\\u0000"]\n', 'include = ["a*"]\n',
    "[tool.setuptools.package-dir]\n", '"" = "src"\n', "[[tool.poetry.packages]]\n", 'include = "a/**/*.py"\n',
    'from = "lib"\n', "[tool.flit.module]\n", 'name = "\\u0000"\n', "[tool.uv.build-backend]\n",
    'module-name = ["a.b"]\n', 'module-root = ""\n', 'packages = ["../x", "/abs"]\n', "only-include = 1\n",
    "name = []\n", 'name = "../../x"\n', "packages = true\n", "tool = 1\n", 'exclude = ["["]\n', "\n", "x = nan\n",
    'module-root = "\\u0000"\n', 'dependencies = ["x", "y @ file:../x", "\\u0000 @ \\u0000"]\n',
    "[tool.uv.sources]\n", 'x = {path = "../x"}\n', "x = {workspace = true}\n", "[tool.uv.workspace]\n",
    'members = ["*", "../x", "["]\n', "[tool.poetry.dependencies]\n", "[dependency-groups]\n", 'dev = ["x"]\n',
)  # fmt: skip


def manifest_seeds() -> list[bytes]:
    package = b'{"name": "@s/n", "bin": {"n": "./n.js"}, "scripts": {"build": "tsc"}, "packageManager": "pnpm@9"}'
    python = b'[project]\nname = "a-b"\n[project.scripts]\na-b = "a:main"\n[tool.hatch.build]\npackages = ["src/a"]\n'
    built = [
        b"\0" + BUILT + bytes(order)
        for order in ([0, 1, 2, 3], [4, 0, 1], [9, 10, 12], [7, 8, 13, 14], [15, 16, 17], [20, 21, 22])
    ]
    return [b"\1" + RAW + package, b"\0" + RAW + python, b"\1" + BUILT + bytes(range(40)), *built]


# --- npm, Python and Go projects that use others ----------------------------------------------------------------------

PARTS = b"\n\xff\n"  # between the files of an input


def check_projects(data: bytes) -> None:
    """Files that can be watched, and what is wrong is said, whatever the files around the package say."""
    layout = LAYOUTS[data[0] % len(LAYOUTS)] if data else LAYOUTS[0]
    parts = data[1:].split(PARTS)
    for number, name in enumerate(layout):
        put(name, parts[number] if number < len(parts) else b"")
    _check_sources(str((folder() / layout[0]).parent))
    if layout is LAYOUTS[-1]:
        main_package(str(folder() / "go/server/program"), str(folder() / "go/server"))


# By language: the manifest of the server, then the other files that decide.
LAYOUTS = (
    ("npm/server/package.json", "npm/yarn.lock", "npm/lib/package.json", "npm/.git/HEAD", "npm/lib/index.js"),
    (
        *("python/server/pyproject.toml", "python/server/requirements.txt", "python/pyproject.toml"),
        *(f"python/.venv/lib/python3.11/site-packages/{name}" for name in ("x-1.dist-info/direct_url.json", "x.pth")),
        *("python/x/pyproject.toml", "python/.venv/pyvenv.cfg", "python/.git/HEAD"),
    ),
    ("go/server/go.mod", "go/server/main.go", "go/go.work", "go/lib/go.mod", "go/server/program", "go/.git/HEAD"),
)
YARN_LOCK = b'"lib@workspace:*":\n  version: 0\n  resolution: "lib@workspace:lib"\n'
DIRECT_URL = b'{"url": "file:///dev/shm/x", "dir_info": {"editable": true}}'
GO_MOD = b"module example.com/a\n\nrequire (\n\texample.com/lib v1.0.0 // c\n)\nreplace example.com/lib => ../lib\n"
GO_MAIN = b'package main\n\nimport _ "embed"\n\n//go:embed all:static/*.txt "a b" `c`\nvar x string\n'
GO_WORK = b"go 1.22\nuse (\n\t./server\n\t./lib\n)\n"
_INFO = b"\t".join((b"path", b"example.com/a")) + b"\nmod\texample.com/a\t(devel)\nbuild\t-compiler=gc\n"
GO_PROGRAM = (
    b"\x7fELF".ljust(16, b"\0") + b"\xff Go buildinf:\x08\x02".ljust(32, b"\0") + b"\x08go1.22.0"
    + bytes([len(_INFO) + 32]) + b"m" * 16 + _INFO + b"m" * 16
)  # fmt: skip


def project_seeds() -> list[bytes]:
    package = (
        b'{"name": "a", "dependencies": {"lib": "workspace:*"}, "exports": {".": {"types": "x", "default": "./i"}}}'
    )
    library = b'{"name": "lib", "main": "dist/index.js", "scripts": {"build": "tsc"}}'
    python = b'[project]\nname = "a"\ndependencies = ["x @ file:../x", "y"]\n[tool.uv.sources]\ny = {path = "../x"}\n'
    workspace = b'[tool.uv.workspace]\nmembers = ["*"]\nexclude = ["b"]\n[tool.uv.sources]\nx = {workspace = true}\n'
    requirements = b"-e ../x\n--editable=file:../x[a]\n-r requirements.txt\n-r ../x/r.txt\n"
    name = b'[project]\nname = "x"\n'
    return [
        b"\0" + PARTS.join((package, YARN_LOCK, library)),
        b"\1" + PARTS.join((python, requirements, workspace, DIRECT_URL, b"/dev/shm\nimport x\n", name)),
        b"\2" + PARTS.join((GO_MOD, GO_MAIN, GO_WORK, b"module example.com/lib\n", GO_PROGRAM)),
    ]


PROJECT_WORDS = (
    *("-e ", "-r ", "--editable=", "file:", "file://", "../x", "@", "${PROJECT_ROOT}", "%00", "[tool.uv.workspace]"),
    *("replace ", "=>", "require ", "use ", "module ", "(", ")", "//go:embed ", "all:", "`", PARTS, "@workspace:"),
    *("\xff Go buildinf:", '"editable": true', 'resolution: "', "../", "**", "\t", "/", "."),
)


# --- .NET -------------------------------------------------------------------------------------------------------------

CSHARP = b'#:sdk Microsoft.NET.Sdk.Web\n#:property OutputType=Exe\n#:project ../lib\nConsole.WriteLine("a");\n'
DOTNET_WORDS = (
    '<Project Sdk="Microsoft.NET.Sdk">', "<PropertyGroup>", "</PropertyGroup>", "<ItemGroup>", "</ItemGroup>",
    "<TargetFramework>net8.0</TargetFramework>", "<TargetFrameworks>net8.0;net10.0-ios</TargetFrameworks>",
    "<OutputType>Exe</OutputType>", "<OutputPath>$(A)%00</OutputPath>", '<Compile Include="**/*.cs" Exclude="a.cs"/>',
    '<None Include="*.json" CopyToOutputDirectory="Always" />', '<ProjectReference Include="..\\lib\\lib.csproj" />',
    "<AssemblyName>..\\x</AssemblyName>", "<RunCommand>$(TargetPath)</RunCommand>", '<RunArguments>"a b</RunArguments>',
    '<Import Project="..\\Directory.Build.props" />', "<MSBuildProjectExtensionsPath>x</MSBuildProjectExtensionsPath>",
    "<EnableDefaultItems>false</EnableDefaultItems>", "<UseAppHost>false</UseAppHost>", "</Project>", "#:project ",
    "#:property ", "#:sdk ", "#!", '<Sdk Name="x" />',
)  # fmt: skip
SETTINGS_NAMES = (
    "profiles",
    "commandName",
    "commandLineArgs",
    "applicationUrl",
    "environmentVariables",
    "A",
    "Project",
)
ANSWER_NAMES = (
    *("Properties", "Items", *dotnet_query.PROPERTIES, *dotnet_query.ITEMS, "ProjectReference", "FullPath"),
    *("CopyToOutputDirectory", "key", "agrees", "names", "sources", "references", "target", "command", "arguments"),
)


def check_dotnet(data: bytes) -> None:
    """Files that can be watched and a command that can be started, whatever projects, profiles and the SDK say."""
    projects, _, rest = data[1:].partition(PARTS)
    settings, _, answer = rest.partition(PARTS)
    path = put(
        "net/server/App.csproj", Pieces(projects).joined(DOTNET_WORDS).encode() if data[:1] == BUILT else projects
    )
    put("net/server/Program.cs", CSHARP)
    put("net/Directory.Build.props", projects if data[:1] == BUILT else b"<Project />")
    put("net/lib/lib.cs", projects)
    put("net/.git/HEAD", b"")
    put(
        "net/server/Properties/launchSettings.json", document(settings, SETTINGS_NAMES, ('"Project"', '"%A%"', '"a b"'))
    )
    said = document(
        answer, ANSWER_NAMES, (json.dumps(path), '"net8.0"', '"net8.0;net9.0"', '"Always"', '[{"FullPath": "x"}]')
    )
    environ = {"PATH": "/nowhere", DATA_HOME: str(folder()), "A": "b"}
    with patch.multiple(expressions, **BOUNDS):  # type: ignore[call-overload]
        project = read_project(path, environ)
        _check_sdk_answer(project, environ, said)
        for is_built in (True, False):
            line = dotnet_command(path, ("a",), environ, is_built=is_built)
            for word in (*line.line, *(text for pair in line.environment for text in pair)):
                assert "\0" not in word
                os.fsencode(word)
        _check_sources(os.path.dirname(path))
        _check_sources(os.path.join(os.path.dirname(os.path.dirname(path)), "lib"))


def _check_sdk_answer(project: Any, environ: dict[str, str], said: bytes) -> None:
    """What the SDK prints is taken or refused, and so is what was stored of it."""
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        answer = {}
    answer = answer if isinstance(answer, dict) else {}
    outcome = RunOutcome(0, b"MSBuild said something\n" + said)
    stored = dotnet_query._path(project, environ)
    put(os.path.relpath(stored, folder()), json.dumps({**answer, "key": dotnet_query._key(project, environ)}).encode())
    dotnet_query.stored_answer(project, environ)
    with (
        patch.object(dotnet_query, "run", lambda *_, **__: outcome),
        patch.object(dotnet_query, "find_program", lambda *_: sys.executable),
        patch.object(dotnet_query, "sdk_can_be_asked", lambda _: True),
    ):
        os.remove(stored)
        (answered,) = dotnet_query.SdkQuestions(environ).answers([project])
        assert all("\0" not in path for path in answered.sources)


# --- typed commands ---------------------------------------------------------------------------------------------------

COMMAND_WORDS = (
    "npm", "pnpm", "yarn", "bun", "node", "npx", "uv", "python", "go", "dotnet", "run", "exec", "start", "workspace",
    "-w", "--workspace=sub", "--filter", "--package=sub", "--", "-C", "sub", "./sub", "../x", ".", "/", "", "-", "=",
    "src/a.ts", "index.js", "-m", "--watch", "watch", "tsx", "nodemon", "--reload", "--reload-dir", "-r", "env", "A=b",
    "a b", "é", "\udcff", "~", "$(x)", "-" * 50,
)  # fmt: skip


def check_commands(data: bytes) -> None:
    """Which files a command starts and which package it belongs to, in the repository; or a sentence."""
    count = data[0] % 8 if data else 0
    line = tuple(COMMAND_WORDS[byte % len(COMMAND_WORDS)] for byte in data[1 : 1 + count])
    put("typed/.git/HEAD", b"")
    put("typed/src/a.ts", b"")
    put("typed/package.json", document(data[1 + count :], SCRIPT_NAMES, SCRIPT_VALUES))
    put("typed/sub/package.json", b'{"name": "sub", "scripts": {"start": "node ."}, "main": "x"}')
    put("typed/sub/pyproject.toml", b'[project]\nname = "sub"\n')
    root = str(folder() / "typed")
    for path in (*started_files(line, root), *followed_manifests(line, root)):
        os.path.exists(path)
    script_watcher(line, root)
    assert without_own_reload(line)[:1] == line[:1]
    try:
        package = package_of(line, root)
    except OutsideRepository as refusal:
        told(refusal)
    else:
        assert package == root or package.startswith(root + os.sep)


SCRIPT_NAMES = ("name", "scripts", "start", "prestart", "dev", "main", "bin", "watch", "exec", "dependencies")
SCRIPT_VALUES = (
    '{"start": "node src/a.ts"}', '"tsx watch src/a.ts"', '"npm run start"', '"yarn workspace sub start"',
    '"nodemon \\u0000"', '"node \\u0000.js"', '"env A=b node \\"a b\\""', '"node \'"', '"a && b"', '"\\ud800 x"',
)  # fmt: skip


# --- TypeScript -------------------------------------------------------------------------------------------------------

TS_NAMES = (
    "extends", "files", "include", "exclude", "compilerOptions", "references", "path", "paths", "baseUrl", "rootDir",
    "outDir", "typeRoots", "types", "allowJs", "module", "moduleResolution", "resolveJsonModule", "customConditions",
    "a/*", "*", "rootDirs",
)  # fmt: skip
TS_VALUES = (
    '"./base.json"', '"./tsconfig.json"', '["./base.json", "@x/y"]', '["**/*.ts"]', '["src/**/*", "*"]', '["a.ts"]',
    '"nodenext"', '"bundler"', '["./src/*"]', '"${configDir}/src"', '[{"path": "./sub"}]', '"src"', '"."', '"../.."',
    '["**/**/**/*"]', '["/**"]', '["?.ts", "*.*"]',
)  # fmt: skip


def check_tsconfig(data: bytes) -> None:
    """Sources, and sentences about what is wrong; the same each time, whatever extends and includes what."""
    half = len(data) // 2 if data[:1] > b"\x7f" else len(data)
    put("ts/src/a.ts", b"import './b'; import x from 'a/q'; export * from '../c.js'")
    put("ts/src/b.ts", b"")
    put("ts/base.json", document(data[half:], TS_NAMES, TS_VALUES))
    put("ts/tsconfig.json", document(data[1:half], TS_NAMES, TS_VALUES))
    _check_sources(str(folder() / "ts"))


def check_ts_imports(data: bytes) -> None:
    """Names, however broken the source is; the same in a file of JavaScript as far as both know the syntax."""
    text = Pieces(data[1:]).joined(TS_WORDS).encode() if data[:1] == BUILT else data[1:]
    for javascript in (False, True):
        found = scan(text, javascript=javascript)
        assert found == scan(text, javascript=javascript)


TS_WORDS = (
    "import ", "export ", "from ", "'./a'", '"b"', "* as x ", "{ a, b } ", "require(", ")", ";", "\n", "// c\n",
    "/* c */", "`t${", "}`", "{", "}", "/re[/]/g", "import(", "type ", "= ", "a ", "/// <reference path='x' />\n",
    "/// <reference types=\"n\" />\n", "'", '"', "`", "\\", "/", "declare module 'm' {", "<a>", "</a>", "(", "=> ",
    "?.", ".", "import.meta", "case ", "return ", "1 / 2", "#!x\n", "\u2028", "@d ", "async ",
)  # fmt: skip


def check_globs(data: bytes) -> None:
    """Patterns that describe what they should in bounded time, or a sentence for each that cannot be used."""
    *patterns, path = data.decode("utf-8", "replace").split("\n")
    globs = Globs(patterns, "hotReload.include")
    assert len(globs.problems) <= len(patterns)
    globs.match(path)
    globs.by_start()
    endings = globs.endings()
    if endings is not None and globs.match(path) and not any(globs.match(above) for above in _above(path)):
        assert any(path.lower().endswith(ending) for ending in endings)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


TS_SEED = b'{"extends": "./base.json", "compilerOptions": {"paths": {"a/*": ["./src/*"]}}, "include": ["src/**/*"]}'
IMPORT_SEED = b"import a, {b} from './a';\nexport * from \"b\"; const c = require('c') // d\n"
COMMENTS_SEED = bytes([0, *[12] * 30, 16, *[12] * 3, 29, 34])  # between an import and what it never names
DOTNET_SEED = "".join(DOTNET_WORDS[place] for place in (0, 1, 5, 7, 2, 3, 9, 10, 11, 4, 19)).encode()
DOTNET_ORDERS = ([0, 1, 6, 2, 19], [0, 1, 5, 7, 8, 12, 2, 19], [0, 3, 9, 10, 4, 1, 13, 14, 2, 19], list(range(25)))
LAUNCH_SEED = b'{"profiles": {"a": {"commandName": "Project", "commandLineArgs": "--x", "applicationUrl": "http://a"}}}'
ANSWER_SEED = (
    b'{"Properties": {"TargetFramework": "net8.0", "TargetFrameworks": "", "TargetPath": "/a.dll", "RunCommand": "/a"},'
    b' "Items": {"Compile": [{"FullPath": "/x/a.cs"}], "ProjectReference": []}}'
)
HOSTILE_SEED = b"*a" * 12 + b"b\n" + b"**/a/" * 12 + b"b\n" + b"a" * 40 + b"/a" * 40

TARGETS = (
    Target(
        "manifests",
        "package.json, pyproject.toml: a command that can be started, sources, or what is wrong",
        check_manifests,
        manifest_seeds,
        (*WORDS, *PYPROJECT_WORDS, *(f'"{name}"' for name in PACKAGE_NAMES)),
    ),
    Target(
        "used-packages",
        "of npm, Python and Go: files that can be watched, and what is wrong is said",
        check_projects,
        project_seeds,
        PROJECT_WORDS,
    ),
    Target(
        "dotnet-projects",
        "files that can be watched, a command that can be started, whatever the SDK says",
        check_dotnet,
        lambda: [
            RAW + PARTS.join((DOTNET_SEED, RAW + LAUNCH_SEED, RAW + ANSWER_SEED)),
            RAW + PARTS.join((CSHARP, BUILT + bytes(range(30)), BUILT + bytes(range(90)))),
            *(BUILT + PARTS.join((bytes(order), RAW, BUILT + bytes(order))) for order in DOTNET_ORDERS),
        ],
        (*WORDS, *DOTNET_WORDS, *XML_WORDS[:13], *(f'"{name}"' for name in ANSWER_NAMES)),
        1000,
    ),
    Target(
        "typed-commands",
        "the files that it starts and its package, in the repository, or a sentence",
        check_commands,
        lambda: [
            b"\2\0\x0c" + RAW + b'{"scripts": {"start": "tsx watch src/a.ts"}}',
            b"\3\2\x0d\x14" + RAW + b"{}",
            b"\2\4\x1c" + RAW + b'{"name": "a"}',
            *(
                bytes([5, *range(start, start + 5)]) + BUILT + bytes(range(start, start + 40))
                for start in range(0, 40, 4)
            ),
        ],
        (*WORDS, *(f'"{name}"' for name in SCRIPT_NAMES), *SCRIPT_VALUES),
        500,
    ),
    Target(
        "tsconfig",
        "the same sources each time, and what is wrong is said",
        check_tsconfig,
        lambda: [
            b"\0" + RAW + TS_SEED,
            b"\0" + BUILT + bytes(range(60)),
            b"\xff" + BUILT + bytes(range(60)) + BUILT + bytes(range(61)),
        ],
        (*WORDS, *(f'"{name}"' for name in TS_NAMES), *TS_VALUES),
        600,
    ),
    Target(
        "ts-imports",
        "the same names each time, however broken the source",
        check_ts_imports,
        lambda: [RAW + IMPORT_SEED, BUILT + bytes(range(40)), BUILT + COMMENTS_SEED],
        TS_WORDS,
    ),
    Target(
        "globs",
        "what is described ends as it says, in bounded time",
        check_globs,
        lambda: [
            b"src/**/*.{py,toml}\n*.json\nsrc/a/b.py",
            b"**/a*b*c*d\n{a,{b,c}}/?\na/b",
            b"a/./b//**/**\na/b/c",
            HOSTILE_SEED,
        ],
        ("**", "*", "?", "{", "}", ",", "/", "..", "\\", "[", "]", "\n", ".py"),
        400,
    ),
)
