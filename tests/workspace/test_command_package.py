"""Which package a typed command belongs to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.files import write_all
from uno_devserver.workspace.command_package import OutsideRepository, node_of, package_of, started_files
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
    "services/deno/deno.json": "{}",
    "services/deno/main.ts": "",
    "services/zig/build.zig": "",
    "services/java/pom.xml": "",
    "scripts/a/b/c/package.json": '{"name": "third", "scripts": {"start": "node x.js"}}',
    "scripts/a/b/c/d/package.json": '{"name": "fourth", "scripts": {"start": "node x.js"}}',
    "scripts/package.json": (
        '{"name": "scripts", "main": "lib/main.js", "scripts": {"start": "npm start -w @all/s", "dev": "npm run a",'
        ' "a": "npm run dev", "built": "npm run build && node dist/x.js", "hooked": "node x.js",'
        ' "prehooked": "tsc"}}'
    ),
    "scripts/packages/s/package.json": (
        '{"name": "@all/s", "scripts": {"start": "NODE_ENV=x cross-env A=b node --enable-source-maps dist/index.js"}}'
    ),
    "scripts/w/package.json": r'{"name": "windows", "scripts": {"start": "node .\\dist\\index.js"}}',
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
        ("services", "dotnet run --project cs", "services/cs"),
        ("services", "dotnet run --project=cs", "services/cs"),
        ("services", "uv run --project py server", "services/py"),
        ("services", "uv run cs", "."),  # a program, not the folder of that name
        (".", "dotnet run services/one/server.cs", "services/one"),
        (".", "curl http://localhost/x.js", "."),
        (".", "deno run -A services/deno/main.ts", "services/deno"),
        (".", "services/zig/zig-out/bin/server", "services/zig"),
        (".", "java -jar services/java/target/server.jar", "services/java"),
        (".", "bun packages/a/src/index.ts", "packages/a"),
        (".", "bun run --watch packages/a/src/index.ts", "packages/a"),
        (".", "yarn node packages/a/src/index.ts", "packages/a"),
        (".", "pnpm exec tsx packages/a/src/index.ts", "packages/a"),
        (".", "npm exec -- tsx packages/a/src/index.ts", "packages/a"),
    ],
)
def test_the_package_is_the_nearest_one_above_what_the_command_names(
    repository: Path, working: str, command: str, package: str
) -> None:
    found = package_of(command.split(), str(repository / working))

    assert found == str((repository / package).resolve())


@pytest.mark.parametrize("option", [["--package", "my_srv"], ["--package=my-srv"]])
def test_the_member_of_a_uv_workspace_that_the_command_names_is_the_package(
    repository: Path, option: list[str]
) -> None:
    write_all(
        repository / "ws",
        {
            "pyproject.toml": '[project]\nname = "root"\n[tool.uv.workspace]\nmembers = ["members/*"]\n',
            "members/a/pyproject.toml": '[project]\nname = "other"\n',
            "members/b/pyproject.toml": '[project]\nname = "my-srv"\n',
        },
    )

    assert package_of(("uv", "run", *option, "srv"), str(repository / "ws")) == str(repository / "ws/members/b")
    assert package_of(("uv", "run", "srv"), str(repository / "ws")) == str(repository / "ws")


def test_in_no_repository_nothing_above_the_working_folder_counts(tmp_path: Path) -> None:
    write_all(tmp_path, {"package.json": '{"name": "above"}', "here/tools/server.py": ""})

    assert package_of(("python", "tools/server.py"), str(tmp_path / "here")) == str(tmp_path / "here" / "tools")
    assert package_of(("my-server",), str(tmp_path / "here")) == str(tmp_path / "here")


def test_a_link_that_leads_out_of_the_repository_is_not_followed(repository: Path) -> None:
    (repository / "linked").symlink_to(repository.parent / "other")

    for script in ("linked/x.js", "../other/x.js"):
        for program in (("node",), ("bun",), ("yarn", "node"), ("npm", "exec", "tsx")):
            with pytest.raises(OutsideRepository, match="the command's script is not in"):
                package_of((*program, script), str(repository))


@pytest.mark.parametrize("planted", [".git", "package.json"])
@pytest.mark.usefixtures("ordinary_user")
def test_what_another_user_has_put_above_the_working_folder_is_no_package_of_the_command(
    tmp_path: Path, planted: str
) -> None:
    write_all(tmp_path, {".git/HEAD": "", "package.json": '{"scripts": {"build": "evil"}}', "mine/server.js": ""})
    os.chown(tmp_path / planted, 65534, -1)

    with pytest.raises(ForeignCode, match=f"{tmp_path / planted}: it belongs to another user"):
        package_of(("node", "server.js"), str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("command", "started"),
    [
        ("node dist/index.js --out result/x.json", "dist/index.js"),
        ("node --import tsx src/index.ts", "src/index.ts"),
        ("node .", "lib/main.js"),
        ("./bin/server --port 1", "bin/server"),
        ("java -Xmx1g -jar build/server.jar", "build/server.jar"),
        ("dotnet bin/Server.dll", "bin/Server.dll"),
        (".venv/bin/python server.py", "server.py .venv/bin/python"),
        (".venv/bin/python -m server some/file.js", ".venv/bin/python"),
        ("npx -y my-server", ""),
        ("go run ./cmd/server", ""),
        ("npm start", "packages/s/dist/index.js"),
        ("npm start --workspace=@all/s -- --verbose", "packages/s/dist/index.js"),
        ("npm run start -w packages/s", "packages/s/dist/index.js"),
        ("pnpm --filter @all/s start", "packages/s/dist/index.js"),
        ("yarn workspace @all/s start", "packages/s/dist/index.js"),
        ("npm start -w @all/gone", ""),
        ("npm run built", ""),  # it builds by itself
        ("npm run hooked", ""),
        ("npm run dev", ""),  # it never ends
        ("npm run gone", ""),
        ("./target/debug/server ./data", "target/debug/server"),
        ("/opt/bin/node packages/s/src/main.ts", "packages/s/src/main.ts /opt/bin/node"),
        ("bun src/index.ts --port 1", "src/index.ts"),
        ("bun index.ts", "index.ts"),
        ("bun run start", "packages/s/dist/index.js"),
        ("yarn workspace @all/s node --enable-source-maps dist/x.js", "packages/s/dist/x.js"),
        ("npm exec -w @all/s -- node dist/x.js", "packages/s/dist/x.js"),
        ("pnpm -C packages/s exec node dist/x.js", "packages/s/dist/x.js"),
        ("npm start -w third", "a/b/c/x.js"),
        ("npm start -w fourth", ""),  # too deep
    ],
)
def test_the_files_that_a_command_starts_are_found_also_through_scripts(
    repository: Path, command: str, started: str
) -> None:
    folder = repository / "scripts"

    found = started_files(command.split(), str(folder))

    assert list(found) == [os.path.normpath(folder / path) for path in started.split()]


@pytest.mark.parametrize(
    ("command", "node"),
    [
        ("node --enable-source-maps dist/index.js --import x", "node"),
        ("npm start", "node"),
        ("/opt/bin/node dist/index.js", "/opt/bin/node"),
        ("./bin/node dist/index.js", "scripts/bin/node"),
        ("node --import tsx src/index.js", ""),
        ("node -r ./hook.js dist/index.js", ""),
        ("node --experimental-loader=./hook.js dist/index.js", ""),
        ("node -e 1", ""),
        ("bun index.js", ""),
        ("tsx index.js", ""),
        ("npx -y my-server", ""),
    ],
)
def test_the_node_that_runs_a_script_is_known_if_nothing_changes_the_code(
    repository: Path, command: str, node: str
) -> None:
    found = node_of(command.split(), str(repository / "scripts"), {})

    assert found == (str(repository / node) if node.startswith("scripts") else os.path.normpath(node) if node else "")
    assert node_of(command.split(), str(repository / "scripts"), {"NODE_OPTIONS": "--import tsx"}) == ""


def test_a_script_belongs_to_the_package_that_it_starts(repository: Path) -> None:
    assert package_of(["npm", "start"], str(repository / "scripts")) == str(repository / "scripts/packages/s")


@pytest.mark.skipif(sys.platform != "win32", reason="elsewhere a backslash quotes the next character")
def test_a_script_may_have_paths_of_windows(repository: Path) -> None:
    (found,) = started_files(["npm", "start"], str(repository / "scripts" / "w"))

    assert found == str(repository / "scripts" / "w" / "dist" / "index.js")
