"""Projects that a Python project uses, as uv, pip and poetry declare and install them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotreload.sources.found import assert_noticed, names, sources_of
from hotreload.trees import watched
from support.files import write, write_all
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

SITE_PACKAGES = "lib/python3.12/site-packages"


def project(folder: Path, *dependencies: str, more: str = "") -> None:
    name = folder.name
    head = f'[project]\nname = "{name}"\nversion = "0"\ndependencies = {json.dumps(dependencies)}\n'
    build = '[build-system]\nrequires = ["uv_build"]\nbuild-backend = "uv_build"\n'
    write_all(folder, {"pyproject.toml": head + build + more, f"src/{name}/__init__.py": ""})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Projects in `packages`: a server, and two that it may use."""
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    for name in ("server", "shared", "core"):
        project(root / "packages" / name)
    return root


def install(environment: Path, folder: Path, *, editable: bool = True) -> None:
    """Write what uv and pip write for a project that is installed from a folder."""
    packages = environment / SITE_PACKAGES
    details = {"url": folder.as_uri(), "dir_info": {"editable": True} if editable else {}}
    write_all(packages, {f"{folder.name}-0.dist-info/direct_url.json": json.dumps(details), f"{folder.name}.pth": ""})
    if editable:
        write(packages / f"{folder.name}.pth", f"{folder / 'src'}\n")
    write_all(environment, {"pyvenv.cfg": ""})
    write(packages / "_virtualenv.pth", "import _virtualenv")
    write(packages / "mcp-1.0.dist-info/METADATA", "")


def code(*folders: str) -> list[str]:
    return sorted(f"{folder}src/{folder.strip('./') or 'server'}/__init__.py" for folder in folders)


def test_members_of_a_uv_workspace_count_through_all_levels(repository: Path) -> None:
    packages = repository / "packages"
    write(repository / "pyproject.toml", '[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/x*"]\n')
    project(packages / "server", "shared>=1", more="[tool.uv.sources]\nshared = { workspace = true }\n")
    project(packages / "shared", "Core", more="[tool.uv.sources]\ncore = { workspace = true }\n")
    project(packages / "other")

    sources = sources_of(packages / "server")

    assert sorted(sources.files) == code("", "../shared/", "../core/")
    assert [(each.kind, each.files) for each in sources.packages] == [("Python", 1)] * 3
    assert_noticed(packages / "server", packages / "core/src/core/__init__.py")


DECLARED = {
    "uv, by a path": '[tool.uv.sources]\nshared = { path = "../shared", editable = true }\n',
    "uv, by paths with conditions": (
        '[tool.uv.sources]\nshared = [{ index = "x" }, { path = "../shared", marker = "sys_platform != 1" }]\n'
    ),
    "poetry": '[tool.poetry.dependencies]\nshared = { path = "../shared", develop = true }\n',
    "a group of poetry": '[tool.poetry.group.dev.dependencies]\nshared = { path = "../shared" }\n',
}


@pytest.mark.parametrize("more", DECLARED.values(), ids=DECLARED.keys())
def test_path_dependencies_count(repository: Path, more: str) -> None:
    project(repository / "packages/server", "shared", more=more)

    assert names(repository / "packages/server") == code("", "../shared/")


@pytest.mark.parametrize("url", ["file://{root}/packages/shared", "{{root:uri}}/../shared", "file:../shared"])
def test_a_requirement_with_the_url_of_a_folder_counts(repository: Path, url: str) -> None:
    project(
        repository / "packages/server",
        "mcp[cli]>=1",
        "shared @ " + url.format(root=repository),
        "x @ git+ssh://git@h/x",
    )

    assert names(repository / "packages/server") == code("", "../shared/")


def test_editable_lines_of_requirements_files_count(repository: Path) -> None:
    server = repository / "packages/server"
    write_all(
        server,
        {
            "requirements.txt": "mcp\n-e ../shared[extra]  # ours\n-r more/dev.txt\n-e git+https://h/x\n-e .\n",
            "more/dev.txt": "-r ../requirements.txt\n--editable=../core\n",
        },
    )

    assert names(server) == code("", "../shared/", "../core/")


def test_each_editable_install_in_the_environment_counts_where_nothing_declares_it(repository: Path) -> None:
    server = repository / "packages/server"
    (server / "pyproject.toml").unlink()
    install(server / ".venv", repository / "packages/shared")

    assert names(server) == code("", "../shared/")
    assert_noticed(server, repository / "packages/shared/src/shared/__init__.py")


def test_an_editable_install_that_follows_is_noticed(repository: Path) -> None:
    server = repository / "packages/server"
    with watched(server) as one:
        install(repository / ".venv", repository / "packages/shared")
        assert one.news() is True
        one.digest()
        assert sorted(one.files) == code("", "../shared/")

        install(repository / ".venv", repository / "packages/core")
        assert one.news() is True
        one.digest()
        assert sorted(one.files) == code("", "../shared/", "../core/")


def test_with_a_lockfile_only_declared_projects_count(repository: Path) -> None:
    """Then the environment has all projects of the workspace, perhaps, and what is declared is complete."""
    project(repository / "packages/server", "shared")
    for name in ("server", "shared", "core"):
        install(repository / ".venv", repository / "packages" / name)
    write(repository / "uv.lock", "")

    assert names(repository / "packages/server") == code("", "../shared/")


def test_a_folder_that_a_pth_file_names_counts_without_a_project(repository: Path) -> None:
    server = repository / "packages/server"
    write(repository / "plain/tools.py", "")
    write_all(
        server / ".venv", {"pyvenv.cfg": "", f"{SITE_PACKAGES}/mine.pth": f"# ours\n{repository}/plain\n/nowhere\n"}
    )

    assert names(server) == ["../../plain/tools.py", "src/server/__init__.py"]


def test_the_environment_of_the_configured_program_counts(repository: Path, tmp_path: Path) -> None:
    server = repository / "packages/server"
    install(tmp_path / "environments/x", repository / "packages/shared")
    package = WatchedPackage(Role.SERVER, str(server), environment=str(tmp_path / "environments/x"))

    assert sorted(find_sources(package).files) == code("", "../shared/")


def test_a_copy_in_the_environment_is_told(repository: Path) -> None:
    server = repository / "packages/server"
    install(server / ".venv", repository / "packages/shared", editable=False)

    sources = sources_of(server)

    assert sorted(sources.files) == code("")
    assert "shared is installed as a copy" in sources.problems[0]


def test_an_install_from_outside_of_the_repository_does_not_count(repository: Path, tmp_path: Path) -> None:
    project(tmp_path / "far")
    install(repository / "packages/server/.venv", tmp_path / "far")

    assert names(repository / "packages/server") == code("")


@pytest.mark.parametrize(
    "content",
    [
        b"[project]\ndependencies = 7\n[tool.uv]\nsources = 3\nworkspace = {members = 1}\n[tool.poetry]\ngroup = {}",
        b'[project]\ndependencies = ["x @ \\u0000", "", 3, "\\u0000"]\n[tool.uv.sources]\nx = {path = "\\u0000"}',
        b'[tool.uv.workspace]\nmembers = ["\\u0000", "[", "../**"]\n[tool.poetry.dependencies]\nx = {path = "\\u0000"}',
        b"[",
    ],
)
def test_odd_declarations_are_passed_over(repository: Path, content: bytes) -> None:
    server = repository / "packages/server"
    write(server / "pyproject.toml", content)
    write(server / "requirements.txt", b"-e \x00\n-r \x00\n-e \xff\n")
    write(server / ".venv/pyvenv.cfg", "")
    for number, text in enumerate(
        ("[]", '{"url": 3}', "[" * 5000, '{"url": "file://\\u0000", "dir_info": {"editable": true}}')
    ):
        write(server / ".venv" / SITE_PACKAGES / f"x{number}-0.dist-info/direct_url.json", text)

    assert "src/server/__init__.py" in names(server)
