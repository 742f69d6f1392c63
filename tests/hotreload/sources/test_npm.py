"""Packages of npm, pnpm and yarn workspaces, laid out as these tools do it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hotreload.sources.found import assert_noticed, link, names, package_json, sources_of
from hotreload.trees import watched
from support.files import write, write_all
from uno_devserver.workspace.npm_packages import missing_outputs, packages_to_build

BUILD = {"build": "tsc -p ."}
TSCONFIG = '{"compilerOptions": {"outDir": "dist", "rootDir": "src", "module": "nodenext"}, "include": ["src"]}'


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    """A server that uses `shared`, which uses `core`; `other` is used by neither. All are compiled to `dist`."""
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    for name, uses in {"server": "@a/shared", "shared": "@a/core", "core": "", "other": ""}.items():
        folder = root / "packages" / name
        package_json(folder, f"@a/{name}", *filter(None, [uses]), main="dist/index.js", types="dist/index.d.ts")
        document = json.loads((folder / "package.json").read_text())
        write(folder / "package.json", json.dumps({**document, "type": "module", "scripts": BUILD}))
        write_all(folder, {"tsconfig.json": TSCONFIG, "src/index.ts": f'import "{uses}"' if uses else "export {}"})
    package_json(root, "root", workspaces=["packages/*"])
    return root


def hoist(root: Path) -> None:
    """Link all workspaces into the top folder, as npm and yarn 1 do."""
    for folder in sorted((root / "packages").iterdir()):
        link(root / "node_modules/@a" / folder.name, folder)


def link_each(root: Path) -> None:
    """Link each dependency into the folder of the package that has it, as pnpm does."""
    for name, uses in (("server", "shared"), ("shared", "core")):
        link(root / "packages" / name / "node_modules/@a" / uses, root / "packages" / uses)


def lock(root: Path) -> None:
    """Write the lockfile of a yarn that has no `node_modules`."""
    entries = [
        f'"@a/{name}@workspace:*, @a/{name}@workspace:packages/{name}":\n  version: 0.0.0-use.local\n'
        f'  resolution: "@a/{name}@workspace:packages/{name}"\n  linkType: soft\n'
        for name in ("server", "shared", "core", "other")
    ]
    write(root / "yarn.lock", "__metadata:\n  version: 10\n\n" + "\n".join(entries))


CODE = ["../core/src/index.ts", "../shared/src/index.ts", "src/index.ts"]


@pytest.mark.parametrize("install", [hoist, link_each, lock])
def test_packages_of_the_workspace_count_through_all_levels(monorepo: Path, install: object) -> None:
    assert callable(install)
    install(monorepo)

    sources = sources_of(monorepo / "packages/server")

    assert sorted(sources.files) == CODE
    assert [(os.path.basename(each.root), each.kind, each.files) for each in sources.packages] == [
        ("server", "TypeScript", 1),
        ("shared", "TypeScript", 1),
        ("core", "TypeScript", 1),
    ]


def test_an_edit_in_a_package_two_levels_away_is_noticed(monorepo: Path) -> None:
    hoist(monorepo)

    assert_noticed(monorepo / "packages/server", monorepo / "packages/core/src/index.ts", "export const a = 1")


def test_what_builds_of_used_packages_write_is_no_edit(monorepo: Path) -> None:
    hoist(monorepo)
    server = monorepo / "packages/server"
    with watched(server) as one:
        before = one.digest()
        for name in ("shared", "core"):
            write_all(monorepo / "packages" / name, {"dist/index.js": "1", "dist/index.d.ts": "export {}"})

        assert one.digest() == before
    assert names(server) == CODE


def test_a_link_that_appears_by_an_installation_is_noticed(monorepo: Path) -> None:
    server = monorepo / "packages/server"
    with watched(server) as one:
        assert list(one.files) == ["src/index.ts"]
        link_each(monorepo)

        assert one.news() is True
        one.digest()
        assert sorted(one.files) == CODE


def test_a_package_without_links_or_outside_of_the_repository_does_not_count(tmp_path: Path) -> None:
    server = tmp_path / "repo/server"
    package_json(server, "server", "copied", "far", "missing", "@bad/../x")
    write_all(server, {"index.js": "", "node_modules/copied/index.js": "", "node_modules/copied/package.json": "{}"})
    write_all(tmp_path / "far", {"package.json": '{"name": "far"}', "index.js": ""})
    link(server / "node_modules/far", tmp_path / "far")
    (tmp_path / "repo/.git").mkdir()

    assert names(server) == ["index.js"]


def test_without_git_the_workspace_folder_is_the_limit(tmp_path: Path) -> None:
    server, shared = tmp_path / "ws/server", tmp_path / "ws/shared"
    package_json(server, "server", "shared")
    package_json(shared, "shared")
    write_all(tmp_path / "ws", {"server/index.js": "", "shared/index.js": ""})
    link(server / "node_modules/shared", shared)

    assert names(server) == ["index.js"]
    assert names(server, tmp_path / "ws") == ["../shared/index.js", "index.js"]


def test_a_package_that_uses_the_folder_around_it_does_not_count_everything(monorepo: Path) -> None:
    server = monorepo / "packages/server"
    package_json(server, "@a/server", "root")
    link(server / "node_modules/root", monorepo)

    assert names(server) == ["src/index.ts"]


def test_a_linked_path_counts_where_yarn_makes_no_links(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    package_json(tmp_path / "server", "server", dependencies={"shared": "portal:../shared"})
    package_json(tmp_path / "shared", "shared")
    write_all(tmp_path, {"server/index.js": "", "shared/index.js": ""})

    assert names(tmp_path / "server") == ["../shared/index.js", "index.js"]


def test_a_used_package_that_nobody_declares_is_found_by_the_import_of_what_it_writes(monorepo: Path) -> None:
    """The top `node_modules` has links to all workspaces, so that an undeclared import works."""
    hoist(monorepo)
    server = monorepo / "packages/server"
    write(server / "src/index.ts", 'import "@a/other"')
    write_all(monorepo / "packages/other", {"dist/index.js": "", "dist/index.d.ts": "export {}"})

    assert "../other/src/index.ts" in names(server)


def test_paths_of_a_tsconfig_count_file_by_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    options = {"module": "esnext", "moduleResolution": "bundler", "paths": {"lib/*": ["../lib/src/*"]}}
    write_all(
        tmp_path,
        {
            "server/package.json": '{"name": "server"}',
            "server/tsconfig.json": json.dumps({"compilerOptions": options, "include": ["src"]}),
            "server/src/index.ts": 'import "lib/a"',
            "lib/package.json": '{"name": "lib"}',
            "lib/src/a.ts": "export {}",
            "lib/src/unused.ts": "export {}",
        },
    )

    sources = sources_of(tmp_path / "server")

    assert sorted(sources.files) == ["../lib/src/a.ts", "src/index.ts"]
    assert [(each.root, each.files) for each in sources.packages[1:]] == [(str(tmp_path / "lib"), 1)]


def test_circles_of_packages_end(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name, uses in (("a", "b"), ("b", "a")):
        package_json(tmp_path / name, name, uses, main="dist/index.js", scripts=BUILD)
        write(tmp_path / name / "src.js", "")
        link(tmp_path / "node_modules" / name, tmp_path / name)

    assert names(tmp_path / "a") == ["../b/src.js", "src.js"]
    assert packages_to_build(str(tmp_path / "a"), "") == [str(tmp_path / "b")]


# Builds.


def test_used_packages_are_built_in_the_order_of_their_use(monorepo: Path) -> None:
    hoist(monorepo)

    found = packages_to_build(str(monorepo / "packages/server"), "")

    assert found == [str(monorepo / "packages/core"), str(monorepo / "packages/shared")]


@pytest.mark.parametrize(
    ("manifest", "files", "expected"),
    [
        ({"main": "dist/index.js"}, {"src/index.js": ""}, True),
        ({"main": "dist/index"}, {"src/index.js": ""}, True),
        ({"main": "src/index.js"}, {"src/index.js": ""}, False),
        ({"main": "index.js"}, {"tsconfig.json": "{}", "index.ts": ""}, True),
        (
            {"main": "src/index.js"},
            {"tsconfig.json": '{"compilerOptions": {"allowJs": true}}', "src/index.js": ""},
            False,
        ),
        ({"exports": "./src/index.ts"}, {"tsconfig.json": "{}", "src/index.ts": ""}, False),
        ({"exports": {".": {"types": "./src/a.d.ts", "default": "./dist/a.js"}}}, {"src/a.d.ts": ""}, True),
        ({"exports": {"./*": ["./dist/*.mjs"]}}, {}, True),
        ({"exports": {"./style.css": "./dist/style.css"}}, {}, False),
        ({"exports": 7, "main": 7}, {"index.js": ""}, False),
    ],
)
def test_a_used_package_is_built_if_others_load_what_its_build_writes(
    tmp_path: Path, manifest: dict[str, object], files: dict[str, str], expected: bool
) -> None:
    (tmp_path / ".git").mkdir()
    package_json(tmp_path / "server", "server", "used")
    package_json(tmp_path / "used", "used", scripts=BUILD, **manifest)
    write_all(tmp_path / "used", files)
    link(tmp_path / "server/node_modules/used", tmp_path / "used")

    assert packages_to_build(str(tmp_path / "server"), "") == ([str(tmp_path / "used")] if expected else [])


@pytest.mark.parametrize(
    ("manifest", "built", "missing"),
    [
        ({"exports": {".": "./dist/a.js", "./x/*": "./dist/*.js"}}, "dist/a.js", "dist/a.js"),
        ({"exports": {".": ["./dist/a.js", {"default": "./b.js"}]}}, "b.js", "dist/a.js"),
        ({"exports": {".": ["./a.css"]}}, None, None),
        ({"main": "dist"}, "dist/index.js", "dist"),
        ({"main": "./lib/"}, "lib/index.js", "lib"),
        ({"main": "dist/server"}, "dist/server.js", "dist/server"),
        ({"main": "style.css"}, None, None),
        ({"types": "dist/index.d.ts"}, "dist/index.d.ts", "dist/index.d.ts"),
        ({"bin": {"tool": "dist/tool.js"}}, "dist/tool.js", "dist/tool.js"),
        ({}, "index.js", "index.js"),
    ],
)
def test_a_missing_output_is_known(
    tmp_path: Path, manifest: dict[str, object], built: str | None, missing: str | None
) -> None:
    package_json(tmp_path, "used", **manifest)
    assert missing_outputs(str(tmp_path)) == ([] if missing is None else [missing])

    if built is not None:
        write(tmp_path / built, "")
    assert missing_outputs(str(tmp_path)) == []
