"""Which program builds a package, with which words, and what is said where that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.files import write, write_all
from support.machine import DATA_HOME
from uno_devserver.hotreload.build_command import BuildCommand, Restore, build_of
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

from .projects import program
from .sources.found import link, package_json


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


def named(root: Path, programs: Path, role: Role = Role.SERVER) -> str | None:
    build = found(root, programs, role)
    return build.named if build else None


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


@pytest.mark.parametrize(
    ("lockfiles", "manager"),
    [
        (("repository/packages/server/yarn.lock", "repository/packages/pnpm-lock.yaml"), "yarn"),
        (("pnpm-lock.yaml",), "npm"),
    ],
    ids=["the nearest wins", "one outside of the repository says nothing"],
)
def test_of_several_folders(root: Path, programs: Path, lockfiles: tuple[str, ...], manager: str) -> None:
    for lockfile in lockfiles:
        (root.parents[2] / lockfile).touch()

    assert named(root, programs) == f"{manager} run build"


def test_a_package_in_no_repository_is_not_judged_by_the_folders_above(root: Path, programs: Path) -> None:
    (root.parents[1] / ".git").rmdir()
    (root.parent / "pnpm-lock.yaml").touch()

    assert named(root, programs) == "npm run build"


BUILT = {"build": "tsc"}


@pytest.mark.parametrize(
    ("role", "package", "expected"),
    [
        (Role.SERVER, {"packageManager": "pnpm@9.1.0", "scripts": BUILT}, "pnpm run build"),
        (Role.SERVER, {"packageManager": "yarn@4.2.2+sha224.00", "scripts": BUILT}, "yarn run build"),
        (Role.SERVER, {"packageManager": "bun", "scripts": BUILT}, "bun run build"),
        (Role.SERVER, {"packageManager": "other@1", "scripts": BUILT}, "npm run build"),
        (Role.SERVER, {"packageManager": 3, "scripts": BUILT}, "npm run build"),
        (Role.EXTENSION, {"scripts": {"compile": "tsc", "build": "vite"}}, "npm run compile"),
        (Role.EXTENSION, {"scripts": {"build": "vite"}}, "npm run build"),
        (Role.EXTENSION, {"scripts": {"test": "jest"}}, None),
        (Role.SERVER, {}, None),
        (Role.SERVER, [], None),
        (Role.SERVER, {"scripts": []}, None),
        (Role.SERVER, {"scripts": {"build": 1}}, None),
        (Role.SERVER, {"scripts": {"x": "y"}}, None),
    ],
)
def test_without_a_lockfile_the_package_tells_how_it_is_built(
    root: Path, programs: Path, role: Role, package: object, expected: str | None
) -> None:
    (root / "package.json").write_text(json.dumps(package))

    assert named(root, programs, role) == expected


def test_of_a_package_json_that_is_no_json_the_manager_shall_say_what_is_wrong(root: Path, programs: Path) -> None:
    (root / "package.json").write_text('{"scripts": {"build": ')

    assert named(root, programs) == "npm run build"


def test_python_has_nothing_to_build(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "pyproject.toml").touch()

    assert found(tmp_path, programs) is None
    assert build_of(WatchedPackage(Role.SERVER, str(tmp_path), addins=True), {}, "linux") is None


def test_a_build_of_the_config_is_run_in_the_root_of_any_kind_of_package(tmp_path: Path, programs: Path) -> None:
    program(tmp_path / "build.sh", "#!/bin/sh\n")
    environ = {"PATH": str(programs)}
    package = WatchedPackage(Role.SERVER, str(tmp_path))

    by_name = build_of(package.replace(build=("npm", "run", "a b")), environ, "linux")
    by_path = build_of(package.replace(build=("./build.sh",)), environ, "linux")

    line = (str(programs / "npm"), "run", "a b")
    assert by_name == BuildCommand("npm run 'a b'", line, str(tmp_path))
    assert by_path is not None
    assert by_path.line == (f"{tmp_path}/./build.sh",)


def test_a_package_that_is_never_built_has_no_build(root: Path, programs: Path) -> None:
    assert build_of(WatchedPackage(Role.SERVER, str(root), build=()), {"PATH": str(programs)}, "linux") is None


def test_a_build_of_the_config_whose_program_is_missing_says_so(root: Path, tmp_path: Path) -> None:
    build = build_of(WatchedPackage(Role.SERVER, str(root), build=("gone", "x")), {"PATH": str(tmp_path)}, "linux")

    assert build is not None
    assert build.problem == "'gone', named in mcpServer.build, was not found. Install it, or correct the config."


def test_a_dotnet_project_is_built_quietly(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "Server.csproj").write_text('<Project Sdk="Microsoft.NET.Sdk" />')

    build = found(tmp_path, programs)

    assert build is not None
    line = (str(programs / "dotnet"), "build", "Server.csproj", "-nologo", "-v", "q", "-clp:NoSummary")
    assert (build.named, build.line, build.folder) == ("dotnet build Server.csproj", line, str(tmp_path))


def test_a_project_that_the_command_names_is_not_replaced_by_another(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "Server.csproj").write_text('<Project Sdk="Microsoft.NET.Sdk" />')
    package = WatchedPackage(Role.SERVER, str(tmp_path), project="Sever.csproj")

    build = build_of(package, {"PATH": str(programs)}, "linux")

    assert build is not None
    assert build.named == "dotnet build Sever.csproj"
    assert build.problem == f"There is no {tmp_path / 'Sever.csproj'}, which the command names. Correct that."


@pytest.fixture
def restored(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a reference, whose restore is recorded."""
    monkeypatch.setenv(DATA_HOME, str(tmp_path / "data"))
    reference = '<ItemGroup><ProjectReference Include="../Lib/Lib.csproj" /></ItemGroup>'
    project = '<Project Sdk="Microsoft.NET.Sdk">{}</Project>'
    write_all(
        tmp_path,
        {
            "S/S.csproj": project.format(reference),
            "Lib/Lib.csproj": project.format(""),
            "Directory.Build.props": "<Project />",
            "nuget.config": "<configuration />",
            "S/obj/project.assets.json": "{}",
            "Lib/obj/project.assets.json": "{}",
            "S/Program.cs": "",
        },
    )
    build = dotnet_build(tmp_path, programs)
    assert build.restore is not None
    build.restore.note()
    return tmp_path


def dotnet_build(folder: Path, programs: Path) -> BuildCommand:
    environ = {"PATH": str(programs), DATA_HOME: str(folder / "data"), "HOME": str(folder)}
    build = build_of(WatchedPackage(Role.SERVER, str(folder / "S")), environ, "linux")
    assert build is not None
    return build


def test_code_is_built_without_a_restore_after_one(restored: Path, programs: Path) -> None:
    write(restored / "S" / "Program.cs", "class New;")

    build = dotnet_build(restored, programs)

    assert build.line[-1] == "--no-restore"
    assert build.restore is None
    assert build.with_restore is not None
    assert build.with_restore.line == build.line[:-1]


@pytest.mark.parametrize(
    "name",
    [
        *("S/S.csproj", "Lib/Lib.csproj", "Directory.Build.props", "Directory.Packages.props", "nuget.config"),
        *("global.json", "S/packages.lock.json", "Lib/Directory.Build.targets", "Lib/obj/project.assets.json"),
    ],
)
def test_a_change_of_what_a_restore_reads_or_has_written_restores(restored: Path, programs: Path, name: str) -> None:
    before = (restored / name).read_text() if (restored / name).exists() else "<Project></Project>"
    write(restored / name, before + "\n")

    assert "--no-restore" not in dotnet_build(restored, programs).line


def test_a_restore_that_has_written_nothing_is_not_done(tmp_path: Path) -> None:
    restore = Restore(str(tmp_path / "record.json"), "read", (str(tmp_path / "gone.json"),))
    restore.note()

    assert not restore.is_done()


def test_a_result_of_a_restore_that_is_gone_restores(restored: Path, programs: Path) -> None:
    (restored / "S" / "obj" / "project.assets.json").unlink()

    assert "--no-restore" not in dotnet_build(restored, programs).line


def test_a_project_with_several_frameworks_is_built_for_the_one_that_is_started(tmp_path: Path, programs: Path) -> None:
    several = "<PropertyGroup><TargetFrameworks>net8.0;net10.0</TargetFrameworks></PropertyGroup>"
    write(tmp_path / "S" / "S.csproj", f'<Project Sdk="Microsoft.NET.Sdk">{several}</Project>')

    assert dotnet_build(tmp_path, programs).line[-2:] == ("-f", "net10.0")


def test_a_file_based_program_is_built_by_its_name(tmp_path: Path, programs: Path) -> None:
    write(tmp_path / "S" / "server.cs", "#:property PublishAot=false\n")

    build = dotnet_build(tmp_path, programs)

    assert build.named == "dotnet build server.cs"
    assert build.restore is None


def test_a_manager_that_is_not_installed_is_named_with_what_to_do(root: Path, tmp_path: Path) -> None:
    (root / "pnpm-lock.yaml").touch()

    build = found(root, tmp_path / "nothing here")

    assert build
    assert build.problem.startswith("pnpm was not found on PATH. Install it")


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


def test_a_go_module_is_compiled_without_an_output_where_go_is_installed(tmp_path: Path, programs: Path) -> None:
    root = tmp_path / "module"
    root.mkdir()
    (root / "go.mod").touch()
    assert found(root, programs) is None

    program(programs / "go", "#!/bin/sh\n")
    build = found(root, programs)

    assert build is not None
    assert (build.named, build.line[1:]) == ("go build ./...", ("build", "-o", "/dev/null", "./..."))


def test_of_a_go_module_only_the_package_that_runs_is_compiled(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "go.mod").touch()
    program(programs / "go", "#!/bin/sh\n")

    package = WatchedPackage(Role.SERVER, str(tmp_path), project="./cmd/server")
    build = build_of(package, {"PATH": str(programs)}, "linux")

    assert build is not None
    assert (build.named, build.line[1:]) == ("go build ./cmd/server", ("build", "-o", "/dev/null", "./cmd/server"))


@pytest.mark.parametrize("own", ["build", None], ids=["before its own", "where it needs none itself"])
def test_packages_that_the_server_uses_are_built(root: Path, programs: Path, own: str | None) -> None:
    package_json(root, "server", "shared", scripts={own: "tsc"} if own else {})
    shared = root.parent / "shared"
    package_json(shared, "shared", main="dist/index.js", scripts={"build": "tsc"})
    link(root / "node_modules/shared", shared)

    build = found(root, programs)

    assert build is not None
    assert [(each.named, each.folder) for each in build.prerequisites] == [("npm run build", str(shared))]
    assert bool(build.line) is bool(own)


def test_a_used_package_that_cannot_be_built_is_told_and_names_its_own_manager(root: Path, programs: Path) -> None:
    package_json(root, "server", "first", "second", scripts={"build": "tsc"})
    for name, manager in (("first", "pnpm@9"), ("second", "npm@11")):
        package_json(root.parent / name, name, main="dist/index.js", scripts={"build": "tsc"}, packageManager=manager)
        link(root / "node_modules" / name, root.parent / name)
    (programs / "pnpm").unlink(missing_ok=True)

    build = found(root, programs)

    assert build is not None
    assert [each.named for each in build.prerequisites] == ["pnpm run build", "npm run build"]
    assert build.problem.startswith("pnpm was not found on PATH.")
