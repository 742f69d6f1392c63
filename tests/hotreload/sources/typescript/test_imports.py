"""The scanner finds what TypeScript would import, and nothing that only looks like it."""

from __future__ import annotations

import time

import pytest

from uno_devserver.hotreload.sources.typescript.imports import ImportedNames, scan


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import './a'", "./a"),
        ("import{a}from'./a'", "./a"),
        ('import a, { b as c, type D } from "./a";', "./a"),
        ("import * as a\n  from\n  './a'", "./a"),
        ("import type A from './a'", "./a"),
        ("import { from } from './a'", "./a"),
        ('import { "a-b" as c } from "./a" with { type: "json" };', "./a"),
        ("import /* why */ a // because\n from /* here */ './a'", "./a"),
        ("import $, { _ } from './a'", "./a"),
        ("import größe from './größe'", "./größe"),
        ("export * from './a'", "./a"),
        ("export * as a from './a'", "./a"),
        ("export { a, b }\nfrom './a'", "./a"),
        ("export type { A } from './a'", "./a"),
        ("export type * from './a'", "./a"),
        ("declare module 'x' { import a from 'b' }", "b"),
        ("let a: import('./a').A", "./a"),
        ("type A = typeof import('./a')", "./a"),
        ("let a: B | import('./a')", "./a"),
        ("type A = import('./a').B<C>", "./a"),
        ("// ends with a dot.\nimport './a'", "./a"),
        ("import '\\u002e/\\x61'", "./a"),
        ("const a = 1 / 2; import './a' // '", "./a"),
        ("const a = b ? /'/ : /`/; import './a'", "./a"),
        ("const a = /[/'\"`]/.test(b); import './a'", "./a"),
        ("if (a) /`/.test(b)\nimport './a'", "./a"),
        ("return /'/\nimport './a'", "./a"),
        ("const a = (b) / 2, c = d / 3 // it's\nimport './a'", "./a"),
        ("const a = `it's ${b ? `nested ' ${'`'}` : {c: '}'}.c} \\` $ {`; import './a'", "./a"),
        ("const a = 'not \\' the end'; import './a'", "./a"),
        ("const a = <p>don't</p>\nimport './a'", "./a"),
        ("const a = <p>{b}</p> / 1\nimport './a'", "./a"),
    ],
)
def test_a_declaration_is_found(text: str, name: str) -> None:
    assert scan(text.encode(), javascript=False) == ImportedNames(static=(name,))


@pytest.mark.parametrize(
    "text",
    [
        "// import './a'",
        "/* import './a' */",
        "/** @type {import('./a').A} */",
        "'import \"./a\"'",
        "`import './a'`",
        "`${b} import './a'`",
        "`\n import a from './a'\n`",
        "const a = /import '.a'/",
        "a.import('./a')",
        "important('./a')",
        "reimport './a'",
        "import.meta.url",
        "const a = { import: './a' }",
        "import(name)",
        "import(`./${name}`)",
        "import('./a' + b)",
        "export const from = './a'",
        "export { a }; const from = './a'",
        "export interface A { from: './a' }",
        "require('./a')",
        "import A = B.C",
        "const text = 'a' /* ' */ + `\n// import './a'\n`",
    ],
)
def test_what_only_looks_like_an_import_is_none(text: str) -> None:
    assert scan(text.encode(), javascript=False) == ImportedNames()


@pytest.mark.parametrize(
    "text",
    [
        "const a = await import('./a')",
        "import(/* chunk */ './a', { with: {} })",
        "import(`./a`)",
        "import('./a').then(b)",
        "const a = { b: import('./a') }",
        "const a = `${await import('./a')}`",
        "const a = [...import('./a')]",
        "import\n('./a')",
    ],
)
def test_an_import_that_is_called_is_found(text: str) -> None:
    assert scan(text.encode(), javascript=False) == ImportedNames(dynamic=("./a",))


@pytest.mark.parametrize(
    "text", ["import a = require('./a')", 'export import a = require("./a");', "import type A = require('./a')"]
)
def test_an_import_by_require_is_found(text: str) -> None:
    assert scan(text.encode(), javascript=False) == ImportedNames(required=("./a",))


def test_javascript_may_require_and_may_import_in_its_comments() -> None:
    text = b"""
        const a = require('./a'), b = require(`./b`), c = require(name), d = e.require('./d'), f = require('./f', 1);
        /** @param {import('./g').G} g */
        /** @import { H } from './h' */
        // require('./i')
        /* {import('./j')} */
    """

    found = scan(text, javascript=True)

    assert found == ImportedNames(static=("./g", "./h"), required=("./a", "./b"))


def test_references_count_before_the_first_statement_only() -> None:
    text = b"""\xef\xbb\xbf#!/usr/bin/env node
        /* /// <reference path="no.ts" /> */
        /// <reference path="a.ts" />
        ///<reference types='b' preserve="true"/>
        // / <reference path="no.ts" />
        /// <reference lib="es2020" />
        const x = 1
        /// <reference path="late.ts" />
    """

    assert scan(text, javascript=False) == ImportedNames(references=("a.ts",), types=("b",))


def test_a_file_in_utf_16_is_read() -> None:
    assert scan("import './ä'".encode("utf-16"), javascript=False) == ImportedNames(static=("./ä",))


@pytest.mark.parametrize(
    "text",
    [
        b"import " * 20_000,
        b"import" + b" " * 500_000,
        b"import a, " + b"b, " * 100_000,
        b"export { " + b"a, " * 100_000,
        b"'" * 100_001 + b"import",
        b"/" * 200_001 + b"\nimport",
        b"`${" * 100_000 + b"import",
        b"/*" * 100_000 + b"import",
        b"import(" + b"/**/" * 50_000,
        b"\\" * 100_001 + b"import",
        b"import " + b"/* c */" * 30 + b"} /* c */ 'm' {",
        b"from/*" * 20_000,
        b"=/[" * 20_000 + b"import",
        b")/[" * 20_000 + b"]/ import",
        b"a/[" * 20_000 + b"]/ import",
        b"/\\" * 20_000 + b"import",
    ],
)
def test_no_text_takes_long(text: bytes) -> None:
    began = time.process_time()

    scan(text, javascript=True)

    assert time.process_time() - began < 2
