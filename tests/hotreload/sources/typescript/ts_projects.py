"""Projects as people lay them out, each of another shape, for the comparison with the real compiler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uno_devserver.hotreload.sources.globs import Globs
from uno_devserver.hotreload.sources.source_tree import Sources, SourceTree
from uno_devserver.hotreload.sources.typescript.imports import ImportedNames
from uno_devserver.hotreload.sources.typescript.program import find_typescript
from uno_devserver.workspace.repository import ReadBudget

Files = Mapping[str, str]  # by path; a text "-> target" is a symbolic link


def typescript_sources(root: Path, cache: dict[str, ImportedNames] | None = None) -> Sources:
    tree = SourceTree(str(root), Globs((), ""), ReadBudget())
    return tree.sources(find_typescript(tree, {} if cache is None else cache))


EXTENDS_A_PACKAGE_AND_AN_ARRAY: Files = {
    "tsconfig.json": """{
        "extends": ["@corp/base", "@corp/exported/strict", "./configs/paths"], "exclude": ["**/*.skip.ts"]
    }""",
    "configs/paths.json": """{
        "extends": "../configs/deeper/more.json",
        "include": ["../app/**/*", "${configDir}/extra"],
        "exclude": ["../app/nothing-of-this-is-used"],
        "compilerOptions": {"paths": {"~/*": ["../app/lib/*"]}, "outDir": "${configDir}/app/out"}
    }""",
    "configs/deeper/more.json": '{"include": ["../../wrong"], "compilerOptions": {"allowJs": true, "outDir": "../x"}}',
    "node_modules/@corp/base/package.json": '{"name": "@corp/base", "tsconfig": "./shared.json"}',
    "node_modules/@corp/base/shared.json": '{"files": ["../../../first.ts"], "compilerOptions": {"module": "esnext"}}',
    "node_modules/@corp/exported/package.json": """{
        "name": "@corp/exported", "exports": {"./strict": {"import": "./none.json", "default": "./configs/strict.json"}}
    }""",
    "node_modules/@corp/exported/configs/strict.json": '{"compilerOptions": {"resolveJsonModule": true}}',
    "first.ts": 'import "~/deep"; import "~/data.json";',
    "app/main.ts": 'import { a } from "./a";',
    "app/a.ts": "export const a = 1;",
    "app/old.js": "module.exports = 1;",
    "app/lib/deep.ts": "export {};",
    "app/lib/data.json": "{}",
    "app/b.skip.ts": "export {};",
    "app/out/built.js": "",
    "extra/one.ts": "",
    "wrong/two.ts": "",
}

SOLUTION: Files = {
    "tsconfig.json": '{"files": [], "references": [{"path": "core"}, {"path": "./app/tsconfig.app.json"}]}',
    "core/tsconfig.json": """{
        "compilerOptions": {"composite": true, "outDir": "../out/core", "rootDir": "src", "module": "nodenext"},
        "include": ["src"], "references": [{"path": "../base/"}]
    }""",
    "core/src/index.ts": 'export * from "./part.js"; export * from "../../base/base.js";',
    "core/src/part.ts": "export const part = 1;",
    "base/tsconfig.json": """{
        "compilerOptions": {"composite": true, "module": "nodenext"}, "files": ["base.ts"]
    }""",
    "base/base.ts": 'export * from "./unlisted.js";',
    "base/unlisted.ts": "export const unlisted = 1;",
    "base/never.ts": "export const never = 1;",
    "app/tsconfig.app.json": """{
        "compilerOptions": {"module": "nodenext"}, "include": ["*.ts"],
        "references": [{"path": "../core/tsconfig.json"}]
    }""",
    "app/main.ts": 'import { part } from "../core/src/index.js"; import "../base/never.js"; console.log(part);',
}

ONE_FILE_AND_ITS_IMPORTS: Files = {
    "tsconfig.json": '{"compilerOptions": {"module": "nodenext", "jsx": "preserve"}, "files": ["src/cli.ts"]}',
    "package.json": """{
        "name": "tool", "type": "module",
        "imports": {"#inner/*": "./src/inner/*.ts", "#one": {"node": "./src/one.ts", "default": "./src/two.ts"}},
        "exports": {".": "./src/api.ts", "./sub/*": "./src/sub/*.ts", "./closed/*": null}
    }""",
    "src/cli.ts": """#!/usr/bin/env node
/// <reference path="./ambient.d.ts" />
/// <reference path="plain" />
import type { Options } from './options.js';
import inner from "#inner/thing";
import "#one";
import { api } from "tool";
import sub from "tool/sub/deep/x";
import "tool/closed/y";
import data from "./data.json" with { type: "json" };
import legacy = require("./legacy.cjs");
import "./no-extension";
import "./folder/index.js";
import "./view.js";
export type { Shape } from "./shape.mjs";
export * as everything from "./everything.js";
type Lazy = import("./only-type.js").Lazy;
const later = () => import("./later.js");
const computed = (name: string) => import(`./computed/${name}.js`);
""",
    "src/ambient.d.ts": "declare const ambient: number;",
    "src/plain.ts": "",
    "src/options.ts": "export interface Options {}",
    "src/inner/thing.ts": "export default 1;",
    "src/one.ts": "export {};",
    "src/two.ts": "export {};",
    "src/api.ts": "export const api = 1;",
    "src/sub/deep/x.ts": "export default 1;",
    "src/closed/y.ts": "export {};",
    "src/data.json": "{}",
    "src/legacy.cts": 'import x = require("./common"); let t: import("./cjs-type").T; export = x;',
    "src/cjs-type.ts": "export type T = 1;",
    "src/common/index.ts": "export {};",
    "src/no-extension.ts": "export {};",
    "src/folder/index.ts": "export {};",
    "src/view.tsx": "export {};",
    "src/shape.mts": "export interface Shape {}",
    "src/everything.ts": 'export * from "./declared.js";',
    "src/declared.d.ts": "export declare const declared: number;",
    "src/declared.js": "export const declared = 1;",
    "src/only-type.ts": "export type Lazy = 1;",
    "src/later.ts": "export {};",
    "src/computed/a.ts": "export {};",
    "src/unused.ts": "export {};",
}

GLOBS: Files = {
    "tsconfig.json": """{
        "include": ["src/**/*.spec.ts", "src/?odule", "lib/*/entry.ts", "tools", "*.config.ts", "typings/*.d.ts"],
        "exclude": ["src/**/skipped", "tools/old*"]
    }""",
    "src/a.spec.ts": "",
    "src/deep/er/b.spec.ts": "",
    "src/deep/skipped/c.spec.ts": "",
    "src/.hidden/d.spec.ts": "",
    "src/node_modules/e.spec.ts": "",
    "src/module/f.ts": "",
    "src/nodule/g.tsx": "",
    "src/other/h.ts": "",
    "lib/one/entry.ts": "",
    "lib/two/entry.ts": "",
    "lib/two/more/entry.ts": "",
    "tools/t.ts": "",
    "tools/t.js": "",
    "tools/.t.ts": "",
    "tools/deep/u.mts": "",
    "tools/old/v.ts": "",
    "tools/older.ts": "",
    "vite.config.ts": "",
    "plain.ts": "",
    "typings/x.d.ts": "",
    "typings/y.ts": "",
}

EXCLUDED_BUT_IMPORTED: Files = {
    "tsconfig.json": '{"exclude": ["generated", "**/*.test.ts", "vendor/**"], "compilerOptions": {"outDir": "build"}}',
    "main.ts": 'import { g } from "./generated/used"; import "./vendor/x";',
    "generated/used.ts": "export const g = 1;",
    "generated/unused.ts": "export {};",
    "vendor/x.ts": "export {};",
    "vendor/y.ts": "export {};",
    "main.test.ts": "export {};",
    "build/main.ts": "export {};",
    "node_modules/dep/index.ts": "export {};",
}

COMMENTS_AND_COMMAS: Files = {
    "tsconfig.json": """\ufeff// the whole project
{
    /* what
       counts */
    "include": ["src/**/*" /* all */, "text with // no comment/*", ],
    "compilerOptions": {
        // "allowJs": true,
        "module": "NodeNext", // in any case
    },
}
""",
    "src/a.ts": "",
    "src/b.js": "",
    "text with // no comment/c.ts": "",
}

JAVASCRIPT_AND_JSON: Files = {
    "tsconfig.json": """{
        "compilerOptions": {"allowJs": true, "module": "commonjs", "resolveJsonModule": true, "jsx": "react"},
        "include": ["lib/**/*", "conf/*.json"]
    }""",
    "lib/index.js": """
const a = require("./a");
const b = require(`./b`);
const c = require("./c", "two arguments");
const d = other.require("./d");
/** @type {import("./types").T} */
const e = null;
// require("./commented")
const f = "require('./in-a-text')";
const data = require("../data.json");
""",
    "lib/a.js": "",
    "lib/types.d.ts": "export type T = 1;",
    "lib/typed.js": "",
    "lib/typed.d.ts": "",
    "lib/twice.js": "",
    "lib/twice.ts": "",
    "lib/page.jsx": "",
    "lib/library.min.js": "",
    "lib/esm.mjs": 'import "../outside.mjs";',
    "lib/not-listed.json": "{}",
    "b.js": "",
    "data.json": "{}",
    "outside.mjs": "export {};",
    "conf/one.json": "{}",
    "conf/two.json5": "{}",
}

PATHS_AND_ROOT_DIRS: Files = {
    "tsconfig.json": """{
        "compilerOptions": {
            "module": "esnext", "moduleResolution": "bundler", "moduleSuffixes": [".node", ""],
            "paths": {
                "@app/*": ["./nowhere/*", "./src/app/*"], "@app/exact": ["./src/exact/file.ts"],
                "*.style": ["./styles/*"],
                "whole": ["./src/whole"], "/abs/*": ["./src/abs/*"]
            },
            "rootDirs": ["src", "generated"]
        },
        "files": ["src/main.ts"]
    }""",
    "src/main.ts": """
import "@app/one";
import "@app/exact";
import "button.style";
import "whole";
import "/abs/x";
import "./from-generated";
import "./suffixed";
import "@app/missing";
import "./page.js";
""",
    "src/app/one.ts": 'import "./two";',
    "src/app/two/index.ts": "export {};",
    "src/app/exact.ts": "export {};",
    "src/exact/file.ts": "export {};",
    "styles/button.ts": "export {};",
    "src/whole/package.json": '{"main": "./entry.js"}',
    "src/whole/entry.ts": "export {};",
    "src/whole/index.ts": "export {};",
    "src/abs/x.ts": "export {};",
    "generated/from-generated.ts": 'import "./back";',
    "src/back.ts": "export {};",
    "src/suffixed.ts": "export {};",
    "src/suffixed.node.ts": "export {};",
    "src/page.tsx": "export {};",
}

BASE_URL: Files = {
    "tsconfig.json": """{
        "compilerOptions": {"baseUrl": "./src", "module": "commonjs", "paths": {"alias/*": ["lib/*"]}},
        "files": ["src/main.ts"]
    }""",
    "src/main.ts": 'import "lib/a"; import "alias/b"; import "lib"; import "fs";',
    "src/lib/a.ts": "export {};",
    "src/lib/b.ts": "export {};",
    "src/lib/index.ts": "export {};",
    "src/fs.ts": "export {};",
}

LINKED_WORKSPACE: Files = {
    "package.json": '{"private": true, "workspaces": ["packages/*"]}',
    "node_modules/@ws/core": "-> ../../packages/core",
    "node_modules/@ws/plain": "-> ../../packages/plain",
    "node_modules/@ws/modern": "-> ../../packages/modern",
    "node_modules/foreign/package.json": '{"name": "foreign", "types": "index.d.ts"}',
    "node_modules/foreign/index.d.ts": "export {};",
    "packages/core/package.json": '{"name": "@ws/core", "main": "dist/index.js", "types": "src/index.ts"}',
    "packages/core/src/index.ts": 'export * from "./more"; export * from "@ws/plain/lib/util";',
    "packages/core/src/more.ts": "export const more = 1;",
    "packages/plain/package.json": '{"name": "@ws/plain"}',
    "packages/plain/index.d.ts": "export {};",
    "packages/plain/index.js": "",
    "packages/plain/lib/util.ts": "export {};",
    "packages/modern/package.json": """{
        "name": "@ws/modern",
        "exports": {
            ".": {"import": {"types": "./dist/index.d.ts", "default": "./dist/index.js"}, "require": "./wrong.ts"},
            "./features/*.js": "./src/features/*.ts"
        }
    }""",
    "packages/modern/dist/index.d.ts": "export {};",
    "packages/modern/wrong.ts": "export {};",
    "packages/modern/src/features/x.ts": "export {};",
    "tsconfig.json": """{
        "compilerOptions": {"module": "esnext", "moduleResolution": "bundler"}, "files": ["app/main.ts"]
    }""",
    "app/main.ts": """
import { more } from "@ws/core";
import "@ws/plain";
import "@ws/modern";
import "@ws/modern/features/x.js";
import "@ws/modern/hidden";
import "foreign";
import "fs";
""",
}

BUILD_CONFIG: Files = {
    "tsconfig.json": '{"compilerOptions": {"module": "nodenext", "outDir": "dist"}, "include": ["src", "test"]}',
    "tsconfig.build.json": '{"extends": "./tsconfig.json", "include": ["src"], "exclude": ["**/*.test.ts"]}',
    "package.json": '{"type": "module"}',
    "src/server.ts": 'import { tool } from "./tools/tool.js";',
    "src/tools/tool.ts": "export const tool = 1;",
    "src/tools/tool.test.ts": "export {};",
    "test/end.ts": "export {};",
    "dist/server.ts": "export {};",
}

OWN_TYPES: Files = {
    "tsconfig.json": """{
        "compilerOptions": {
            "typeRoots": ["./typings"], "types": ["globals", "./loose/one"], "module": "esnext",
            "allowArbitraryExtensions": true
        },
        "files": ["main.ts"]
    }""",
    "main.ts": '/// <reference types="other" />\nimport "untyped"; import "./page.css"; import "./page.svg";',
    "typings/globals/index.d.ts": 'declare const g: typeof import("./more");',
    "typings/globals/more.d.ts": "export {};",
    "typings/other/package.json": '{"types": "entry.d.ts"}',
    "typings/other/entry.d.ts": "declare const o: number;",
    "typings/untyped/index.d.ts": "export {};",
    "typings/unused/index.d.ts": "export {};",
    "loose/one.d.ts": "declare const one: number;",
    "page.d.css.ts": "export {};",
    "page.css": "",
    "page.svg": "",
}

LINKED_FOLDERS: Files = {
    "tsconfig.json": "{}",
    "src/a.ts": 'import "./loop/b";',
    "src/b.ts": "",
    "src/loop": "-> .",
    "shared": "-> other",
    "other/c.ts": "",
    "src/broken.ts": "-> nowhere.ts",
    "src/link.ts": "-> ../target.txt",
    "target.txt": "export {};",
}

OUTPUTS_OF_ITS_OWN: Files = {
    "tsconfig.json": """{
        "compilerOptions": {"module": "nodenext", "rootDir": "src", "outDir": "dist", "declaration": true},
        "files": ["src/main.ts"]
    }""",
    "package.json": """{
        "name": "me", "type": "module", "exports": {"./*": "./dist/*.js"}, "imports": {"#x": "./dist/x.js"}
    }""",
    "src/main.ts": 'import "me/self"; import "#x";',
    "src/self.ts": "export {};",
    "src/x.ts": "export {};",
    "dist/self.js": "",
    "dist/self.d.ts": "export {};",
}

PROJECTS: Mapping[str, Files] = {
    name: files for name, files in globals().items() if name.isupper() and isinstance(files, dict)
}
