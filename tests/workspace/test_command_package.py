"""Which package a typed command belongs to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write_all
from uno_devserver.workspace.command_package import OutsideRepository, package_of
from uno_devserver.workspace.trust import ForeignCode

FILES = {
    ".git/HEAD": "",
    "package.json": '{"workspaces": ["packages/*"], "name": "all"}',
    "packages/a/package.json": '{"scripts": {"build": "tsc"}}',
    "packages/a/src/index.ts": "",
    "packages/a/dist/package.json": '{"type": "module"}',
    "packages/a/dist/index.js": "",
    "packages/broken/package.json": "{",
    "packages/broken/src/index.js": "",
    "services/py/pyproject.toml": "",
    "services/py/pkg/__init__.py": "",
    "services/go/go.mod": "",
    "services/go/cmd/server/main.go": "",
    "services/cs/Server.csproj": "",
    "services/one/server.cs": "#:property A=b",
    "node_modules/.bin/tsx": "",
    "node_modules/tool/package.json": '{"name": "tool"}',
    "node_modules/tool/index.js": "",
    "services/py/.venv/bin/python": "",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write_all(tmp_path / "repository", FILES)
    write_all(tmp_path, {"package.json": '{"name": "above"}', "other/package.json": "{}", "other/x.js": ""})
    return tmp_path / "repository"


@pytest.mark.parametrize(
    ("working", "command", "package"),
    [
        ("packages/a", "npx tsx src/index.ts", "packages/a"),
        ("packages/a/src", "npx tsx index.ts", "packages/a"),
        (".", "npx tsx packages/a/src/index.ts", "packages/a"),
        (".", "node packages/a/dist/index.js", "packages/a"),  # the output has a manifest, but is no package
        (".", "node packages/a/build/index.js", "packages/a"),  # which is not built yet
        (".", "node --import tsx packages/a/src/index.ts ./services/py", "packages/a"),
        (".", "node packages/broken/src/index.js", "packages/broken"),
        (".", "npx -y my-server", "."),
        (".", "npx -y @scope/my-server", "."),
        (".", "npm --prefix packages/a start", "packages/a"),
        ("services/py", ".venv/bin/python -m pkg", "services/py"),
        (".", "services/py/.venv/bin/python services/py/pkg/__init__.py", "services/py"),
        ("packages/a", "../../node_modules/.bin/tsx src/index.ts", "packages/a"),
        ("packages/a", "node ../../node_modules/tool/index.js", "packages/a"),
        ("services/go", "go run ./cmd/server", "services/go"),
        (".", "dotnet run --project services/cs/Server.csproj", "services/cs"),
        (".", "dotnet run services/one/server.cs", "services/one"),
        (".", "curl http://localhost/x.js", "."),
    ],
)
def test_the_package_is_the_nearest_one_above_what_the_command_names(
    repository: Path, working: str, command: str, package: str
) -> None:
    found = package_of(command.split(), str(repository / working))

    assert found == str((repository / package).resolve())


def test_in_no_repository_nothing_above_the_working_folder_counts(tmp_path: Path) -> None:
    write_all(tmp_path, {"package.json": '{"name": "above"}', "here/tools/server.py": ""})

    assert package_of(("python", "tools/server.py"), str(tmp_path / "here")) == str(tmp_path / "here" / "tools")
    assert package_of(("my-server",), str(tmp_path / "here")) == str(tmp_path / "here")


def test_a_link_that_leads_out_of_the_repository_is_not_followed(repository: Path) -> None:
    (repository / "linked").symlink_to(repository.parent / "other")

    for script in ("linked/x.js", "../other/x.js"):
        with pytest.raises(OutsideRepository, match="the command's script is not in"):
            package_of(("node", script), str(repository))


@pytest.mark.parametrize("planted", [".git", "package.json"])
@pytest.mark.usefixtures("ordinary_user")
def test_what_another_user_has_put_above_the_working_folder_is_no_package_of_the_command(
    tmp_path: Path, planted: str
) -> None:
    write_all(tmp_path, {".git/HEAD": "", "package.json": '{"scripts": {"build": "evil"}}', "mine/server.js": ""})
    os.chown(tmp_path / planted, 65534, -1)

    with pytest.raises(ForeignCode, match=f"{tmp_path / planted}: it belongs to another user"):
        package_of(("node", "server.js"), str(tmp_path / "mine"))
