"""Syntax errors of JavaScript: what Node would load is checked as Node would read it, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write_all
from support.npm import NODE
from uno_devserver.hotreload.javascript_syntax import javascript_errors
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

MODULE, COMMONJS, NO_TYPE = '{"type": "module"}', '{"type": "commonjs"}', "{}"
IMPORTING = 'import "./lib/code.js";\nimport("./lib/later.js");\n'
REQUIRING = 'const code = require("./lib/code");\n'


def errors(root: Path, node: str = str(NODE)) -> str:
    """The errors if all files of the package have changed."""
    package = WatchedPackage(Role.SERVER, str(root), started=(str(root / "server.js"),), node=node)
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return javascript_errors(package, names, [], os.environ) or ""


@pytest.mark.parametrize(
    ("manifest", "server", "code"),
    [
        (MODULE, IMPORTING, "export const a = 1;\nexport const = 2;\n"),
        (NO_TYPE, IMPORTING, "export const a = 1;\nexport const = 2;\n"),
        (NO_TYPE, IMPORTING, "const a = 1;\nexports.a(;\n"),
        (COMMONJS, REQUIRING, "exports.a = 1;\nexports.b = ;\n"),
        (NO_TYPE, REQUIRING, "exports.a = 1;\nexports.b = ;\n"),
        (COMMONJS, REQUIRING, "exports.a = 1;\nexport const b = 1;\n"),
    ],
    ids=["module", "module without a type", "no type", "CommonJS", "CommonJS without a type", "module in CommonJS"],
)
def test_an_error_in_what_node_loads_names_the_file_and_the_line(
    tmp_path: Path, manifest: str, server: str, code: str
) -> None:
    write_all(tmp_path, {"package.json": manifest, "server.js": server, "lib/code.js": code, "lib/later.js": "f();\n"})

    printed = errors(tmp_path).splitlines()

    assert printed[0].removeprefix("file://") == f"{(tmp_path / 'lib' / 'code.js').resolve()}:2"
    assert printed[-1].startswith("SyntaxError: ")
    assert not [line for line in printed if "    at " in line], "no stack of Node's own"


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        (MODULE, "#!/usr/bin/env node\nawait f();\nexport const a = import.meta.url;\n"),
        (NO_TYPE, "import 'fs';\nawait f();\nexport { a };\nconst a = 1;\n"),
        (COMMONJS, "#!/usr/bin/env node\nvar await = 010;\nif (await) return;\nwith (module) exports.a = 1;\n"),
        (NO_TYPE, "// @import is a comment\nvar await = 010;\nreturn;\n"),
    ],
)
def test_what_node_understands_is_no_error(tmp_path: Path, manifest: str, code: str) -> None:
    server = REQUIRING if manifest == COMMONJS else IMPORTING
    write_all(tmp_path, {"package.json": manifest, "server.js": server, "lib/code.js": code, "lib/later.js": code})

    assert errors(tmp_path) == ""


def test_nothing_is_run_and_what_node_does_not_load_is_not_checked(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        {
            "package.json": COMMONJS,
            "server.js": f'require("fs").writeFileSync({str(tmp_path / "ran")!r}, "");\n',
            "web/page.js": "export const page = <p>JSX</p>;\n",
            "notes.txt": ")(",
        },
    )

    assert errors(tmp_path) == ""
    assert not (tmp_path / "ran").exists()


def test_without_node_nothing_is_an_error(tmp_path: Path) -> None:
    write_all(tmp_path, {"package.json": MODULE, "server.js": ")(\n"})

    assert errors(tmp_path)
    assert errors(tmp_path, node=str(tmp_path / "no-node")) == ""


def test_what_is_told_of_many_errors_is_bounded(tmp_path: Path) -> None:
    files = {f"lib/a{number}.js": f"const = {'1 + ' * 5_000}1;\n" for number in range(7)}
    imports = "".join(f'require("./{name}");\n' for name in files)
    write_all(tmp_path, {"package.json": COMMONJS, "server.js": imports, **files})

    printed = errors(tmp_path)

    assert printed.count("SyntaxError: ") == 5
    assert len(printed) < 15_000


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_file_outside_of_the_package_is_not_quoted(tmp_path: Path) -> None:
    write_all(tmp_path, {"secret/key.js": "const password = ;\n", "ws/package.json": COMMONJS})
    write_all(tmp_path, {"ws/server.js": 'require("./link.js");\n'})
    (tmp_path / "ws" / "link.js").symlink_to(tmp_path / "secret" / "key.js")

    assert errors(tmp_path / "ws") == ""
