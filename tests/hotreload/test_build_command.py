"""Which program builds a package, with which words, and what is said where that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uno_devserver.hotreload.build_command import BuildCommand, build_of
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

from .projects import program


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("npm", "pnpm", "yarn", "bun", "dotnet"):
        program(folder / name, "#!/bin/sh\n")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "packages" / "server"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (folder / "package.json").write_text('{"scripts": {"build": "tsc"}}')
    return folder


def found(root: Path, programs: Path, role: Role = Role.SERVER) -> BuildCommand | None:
    return build_of(WatchedPackage(role, str(root)), {"PATH": str(programs)}, "linux")


@pytest.mark.parametrize(
    ("lockfile", "manager"),
    [
        ("pnpm-lock.yaml", "pnpm"),
        ("package-lock.json", "npm"),
        ("npm-shrinkwrap.json", "npm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
    ],
)
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_the_lockfile_of_the_package_or_of_a_folder_above_tells_the_manager(
    root: Path, programs: Path, lockfile: str, manager: str, levels: int
) -> None:
    folder = (root, *root.parents)[levels]
    (folder / lockfile).touch()

    build = found(root, programs)

    assert build == BuildCommand(f"{manager} run build", (str(programs / manager), "run", "build"), str(root))


def test_the_nearest_lockfile_wins(root: Path, programs: Path) -> None:
    (root / "yarn.lock").touch()
    (root.parent / "pnpm-lock.yaml").touch()

    build = found(root, programs)

    assert build
    assert build.named == "yarn run build"


def test_a_lockfile_outside_of_the_repository_says_nothing(root: Path, programs: Path) -> None:
    (root.parents[2] / "pnpm-lock.yaml").touch()

    build = found(root, programs)

    assert build
    assert build.named == "npm run build"


def test_a_package_in_no_repository_is_not_judged_by_the_folders_above(tmp_path: Path, programs: Path) -> None:
    root = tmp_path / "server"
    root.mkdir()
    (root / "package.json").write_text('{"scripts": {"build": "tsc"}}')
    (tmp_path / "pnpm-lock.yaml").touch()

    build = found(root, programs)

    assert build
    assert build.named == "npm run build"


@pytest.mark.parametrize(
    ("declared", "manager"),
    [("pnpm@9.1.0", "pnpm"), ("yarn@4.2.2+sha224.00", "yarn"), ("bun", "bun"), ("other@1", "npm"), (3, "npm")],
)
def test_without_a_lockfile_the_package_says_itself_who_manages_it(
    root: Path, programs: Path, declared: object, manager: str
) -> None:
    (root / "package.json").write_text(json.dumps({"packageManager": declared, "scripts": {"build": "tsc"}}))

    build = found(root, programs)

    assert build
    assert build.named == f"{manager} run build"


@pytest.mark.parametrize(
    ("scripts", "named"),
    [
        ({"compile": "tsc", "build": "vite"}, "npm run compile"),
        ({"build": "vite"}, "npm run build"),
        ({"test": "jest"}, None),
    ],
)
def test_an_extension_is_compiled_or_else_built(
    root: Path, programs: Path, scripts: dict[str, str], named: str | None
) -> None:
    (root / "package.json").write_text(json.dumps({"scripts": scripts}))

    build = found(root, programs, Role.EXTENSION)

    assert (build and build.named) == named


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"scripts": []}', '{"scripts": {"build": 1}}', '{"scripts": {"x": "y"}}']
)
def test_without_a_script_there_is_nothing_to_build(root: Path, programs: Path, text: str) -> None:
    (root / "package.json").write_text(text)

    assert found(root, programs) is None


def test_of_a_package_json_that_is_no_json_the_manager_shall_say_what_is_wrong(root: Path, programs: Path) -> None:
    (root / "package.json").write_text('{"scripts": {"build": ')

    build = found(root, programs)

    assert build
    assert build.named == "npm run build"


def test_python_has_nothing_to_build(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "pyproject.toml").touch()

    assert found(tmp_path, programs) is None
    assert build_of(WatchedPackage(Role.SERVER, str(tmp_path), addins=True), {}, "linux") is None


def test_a_dotnet_project_is_built_quietly(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "Server.csproj").touch()

    build = found(tmp_path, programs)

    line = (str(programs / "dotnet"), "build", "Server.csproj", "--nologo", "--verbosity", "quiet")
    assert build == BuildCommand("dotnet build Server.csproj", line, str(tmp_path))


def test_a_manager_that_is_not_installed_is_named_with_what_to_do(root: Path, tmp_path: Path) -> None:
    (root / "pnpm-lock.yaml").touch()

    build = found(root, tmp_path / "nothing here")

    assert build
    assert build.problem.startswith("pnpm is not in the folders of PATH. Install it")


def test_packages_that_were_never_installed_are_a_hint(root: Path, programs: Path) -> None:
    (root / "package.json").write_text('{"scripts": {"build": "tsc"}, "devDependencies": {"typescript": "5"}}')
    (root / "pnpm-lock.yaml").touch()

    before = found(root, programs)
    (root.parents[1] / "node_modules").mkdir()
    after = found(root, programs)

    assert before
    assert after
    assert "run 'pnpm install' there" in before.hint
    assert after.hint == ""
