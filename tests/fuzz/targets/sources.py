"""Which files are the code: manifests, TypeScript's configuration and imports, patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator

from uno_devserver.hotreload.build_command import build_of
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.sources.globs import Globs
from uno_devserver.hotreload.sources.typescript import program  # noqa: F401  # to be instrumented
from uno_devserver.hotreload.sources.typescript.imports import scan
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.workspace.config import read_config

from ..documents import BUILT, RAW, WORDS, document
from ..pieces import Pieces
from ..scratch import folder, put
from ..target import Target
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
