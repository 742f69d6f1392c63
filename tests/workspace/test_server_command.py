"""How the server of a config is started: as it says, else as the package in its folder does."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.dotnet_cli import RecordedDotNet, RecordedProject
from support.files import write, write_all
from uno_devserver.issues import Issue
from uno_devserver.workspace.config import Config, read_config
from uno_devserver.workspace.dotnet_project import read_project
from uno_devserver.workspace.dotnet_query import SdkQuestions
from uno_devserver.workspace.server_command import ServerLine, server_command, server_name, without_own_reload

ROOTED = '{"mcpServerRoot": ".."}'


def _config(tmp_path: Path, content: str = ROOTED) -> Config:
    return read_config(str(write(tmp_path / ".devtools" / "host.config.jsonc", content)))


def _line(tmp_path: Path, content: str = ROOTED, *, path: str = "", platform: str = "linux") -> ServerLine:
    found = server_command(_config(tmp_path, content), {"PATH": path}, platform)
    assert isinstance(found, ServerLine)
    return found


def _problem(tmp_path: Path, content: str = ROOTED) -> str:
    found = server_command(_config(tmp_path, content), {}, "linux")
    assert isinstance(found, Issue)
    assert (found.code, found.fatal) == ("ConfigInvalid", True)
    assert '"mcpServer": {"command": ' in found.remediation
    return found.message


# What the config says itself.


def test_a_command_of_the_config_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    server = {"command": "./serve", "args": ["--x", "a b"], "env": {"A": "1"}, "cwd": "../run"}

    line = _line(tmp_path, json.dumps({"mcpServer": server}))

    assert line == ServerLine(
        ("./serve", "--x", "a b"),
        f"{tmp_path}/run",
        (("A", "1"),),
        f"mcpServer in {tmp_path}/.devtools/host.config.jsonc",
    )
    assert line.environ({"A": "0", "B": "2"}) == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("content", "folder"),
    [
        ('{"mcpServer": {"command": "x"}}', ""),
        ('{"mcpServer": {"command": "x"}, "mcpServerRoot": "../code"}', "/code"),
        ('{"mcpServer": {"command": "x", "cwd": "../run"}, "mcpServerRoot": "../code"}', "/run"),
    ],
)
def test_it_runs_where_it_is_told_else_in_its_root_else_in_the_workspace(
    tmp_path: Path, content: str, folder: str
) -> None:
    assert _line(tmp_path, content).folder == f"{tmp_path}{folder}"


def test_the_variables_of_a_file_come_before_those_of_the_config(tmp_path: Path) -> None:
    write(tmp_path / ".env", "A=file\nB=file\n")
    server = {"command": "serve", "envFile": "../.env", "env": {"B": "config"}}

    line = _line(tmp_path, json.dumps({"mcpServer": server}))

    assert (line.environment, line.from_file) == ((("B", "config"),), (("A", "file"), ("B", "file")))
    assert line.environ({"A": "ours", "C": "ours"}) == {"A": "file", "B": "config", "C": "ours"}


def test_a_file_of_variables_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    config = _config(tmp_path, '{"mcpServer": {"command": "serve", "envFile": "../.env"}}')

    found = server_command(config, {}, "linux")

    assert isinstance(found, Issue)
    assert (found.code, found.fatal) == ("ConfigInvalid", True)
    assert f"{tmp_path}/.env: there is no such file" in found.message


def test_without_a_command_arguments_and_environment_are_added_to_what_the_package_names(tmp_path: Path) -> None:
    write(tmp_path / "package.json", '{"main": "a.js"}')

    line = _line(tmp_path, '{"mcpServer": {"args": ["--debug"], "env": {"A": ""}}}')

    assert (line.line, line.environment) == (("node", f"{tmp_path}/a.js", "--debug"), (("A", ""),))


# Packages of Node.


@pytest.mark.parametrize(
    ("package", "file"),
    [
        ({"bin": "dist/index.js"}, "dist/index.js"),
        ({"bin": "./dist/index.js", "main": "lib.js"}, "dist/index.js"),
        ({"bin": {"anything": "one.js"}}, "one.js"),
        ({"name": "two", "bin": {"one": "one.js", "two": "two.js"}}, "two.js"),
        ({"name": "@scope/two", "bin": {"one": "one.js", "two": "two.js"}}, "two.js"),
        ({"bin": {}, "main": "lib.js"}, "lib.js"),
        ({"main": "lib.js"}, "lib.js"),
    ],
)
def test_a_package_names_its_program_by_bin_or_main(tmp_path: Path, package: object, file: str) -> None:
    write(tmp_path / "package.json", json.dumps(package))

    assert _line(tmp_path).line == ("node", f"{tmp_path}/{file}")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"name": "x", "bin": {"one": "1.js", "two": "2.js"}}', "has several programs: one, two"),
        ('{"bin": 5}', "'bin' of {root}/package.json names no file"),
        ('{"main": " "}', "'main' of {root}/package.json names no file"),
        ('{"main": "a\\u0000"}', "'main' of {root}/package.json names no file"),
        ('{"bin": {"x": "\\ud800"}}', "'bin' of {root}/package.json names no file"),
        ('{"a"}', "{root}/package.json:1:5: "),
        ("[]", "{root}/package.json must be an object"),
        ("{}", "{root}/package.json has neither 'bin' nor 'main'"),
    ],
)
def test_a_package_that_does_not_tell_is_a_problem_with_its_place(tmp_path: Path, content: str, why: str) -> None:
    write(tmp_path / "package.json", content)

    assert why.replace("{root}", str(tmp_path)) in _problem(tmp_path)


# Packages of Python.


PYTHON = '[project]\nname = "mine"\nversion = "1"\n[project.scripts]\n'
ONE = PYTHON + 'serve = "a:b"'
UV = ("uv", "run", "--project", "{root}", "serve")


@pytest.mark.parametrize(
    ("files", "platform", "line"),
    [
        ({"pyproject.toml": ONE, ".venv/bin/serve": ""}, "linux", ("{root}/.venv/bin/serve",)),
        ({"pyproject.toml": ONE, ".venv/Scripts/serve.exe": ""}, "win32", ("{root}/.venv/Scripts/serve.exe",)),
        ({"pyproject.toml": ONE, "uv.lock": "", "programs/uv": ""}, "linux", UV),
        ({"pyproject.toml": ONE, "uv.lock": ""}, "linux", ("serve",)),
        ({"pyproject.toml": ONE, "programs/uv": ""}, "linux", ("serve",)),
        ({"pyproject.toml": PYTHON + 'other = "a:b"\nmine = "a:c"'}, "linux", ("mine",)),
        ({"pyproject.toml": ONE, "package.json": '{"scripts": {"build": "x"}}'}, "linux", ("serve",)),
    ],
    ids=[
        "the script of its environment",
        "the same on Windows",
        "by uv, which has locked it",
        "without uv",
        "not locked by uv",
        "of several scripts the one named like the project",
        "a package.json without a program leaves it to Python",
    ],
)
def test_a_python_package_names_its_program_by_its_scripts(
    tmp_path: Path, files: Mapping[str, str], platform: str, line: tuple[str, ...]
) -> None:
    write_all(tmp_path, files)

    found = _line(tmp_path, path=f"{tmp_path}/programs", platform=platform).line

    assert found == tuple(part.replace("{root}", str(tmp_path)) for part in line)


def test_uv_is_looked_for_where_the_server_will_look_for_it(tmp_path: Path) -> None:
    write_all(tmp_path, {"pyproject.toml": ONE, "uv.lock": "", "programs/uv": ""})

    line = _line(tmp_path, f'{{"mcpServerRoot": "..", "mcpServer": {{"env": {{"PATH": "{tmp_path}/programs"}}}}}}').line

    assert line[:2] == ("uv", "run")


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"uv.lock": "", ".venv/bin/serve": ""}, ("{top}/.venv/bin/serve",)),
        ({"uv.lock": "", "programs/uv": ""}, ("uv", "run", "--project", "{top}/packages/mine", "serve")),
        ({".venv/bin/serve": "", "programs/uv": ""}, ("serve",)),
        ({"../uv.lock": "", "../.venv/bin/serve": ""}, ("serve",)),
    ],
    ids=["in its environment", "by uv", "an environment without a lockfile is none of uv", "outside of the repository"],
)
def test_a_member_of_a_uv_workspace_is_started_from_the_environment_of_the_workspace(
    tmp_path: Path, files: Mapping[str, str], line: tuple[str, ...]
) -> None:
    top = tmp_path / "repository"
    write_all(top, {".git/HEAD": "", "packages/mine/pyproject.toml": ONE, **files})

    found = _line(top / "packages" / "mine", path=f"{top}/programs").line

    assert found == tuple(part.replace("{top}", str(top)) for part in line)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"pyproject.toml": PYTHON + 'one = "a:b"\ntwo = "a:c"'},
            "'project.scripts' of {root}/pyproject.toml has several programs: one, two",
        ),
        (
            {"pyproject.toml": PYTHON + '"a\\u0000" = "a:b"'},
            "'project.scripts' of {root}/pyproject.toml names no program",
        ),
        ({"pyproject.toml": "[project\n"}, "{root}/pyproject.toml: "),
        ({"pyproject.toml": "a." * 15_000 + "a = 1\n"}, "{root}/pyproject.toml: a key has more than 64 parts"),
        ({"A.csproj": "", "B.csproj": ""}, "has several projects: A.csproj, B.csproj"),
        ({}, "{root} has no package.json with 'bin' or 'main'"),
    ],
    ids=[
        "several scripts",
        "a name that no program can have",
        "a broken file",
        "an endless key",
        "several projects",
        "nothing",
    ],
)
def test_a_folder_that_does_not_tell_is_a_problem(tmp_path: Path, files: Mapping[str, str], why: str) -> None:
    write_all(tmp_path, files)

    assert why.replace("{root}", str(tmp_path)) in _problem(tmp_path)


def test_a_folder_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path}/gone." in _problem(tmp_path, '{"mcpServerRoot": "../gone"}')


# Projects of .NET.


def _project(properties: str = "") -> str:
    group = f"<OutputType>Exe</OutputType><TargetFramework>net10.0</TargetFramework>{properties}"
    return f'<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>{group}</PropertyGroup></Project>'


@pytest.mark.parametrize("name", ["Server.csproj", "Server.fsproj", "Server.vbproj"])
def test_the_program_of_a_dotnet_project_is_started_itself(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, _project("<StartArguments>--stdio &quot;a b&quot;</StartArguments>"))

    plain = _line(tmp_path)
    more = _line(tmp_path, '{"mcpServerRoot": "..", "mcpServer": {"args": ["-x"]}}')

    output = f"{tmp_path}/bin/Debug/net10.0"
    assert plain.line == (f"{output}/Server", "--stdio", "a b")
    assert more.line == (*plain.line, "-x")
    assert (plain.output, plain.folder, plain.origin) == (output, str(tmp_path), f"{tmp_path}/{name}")


def test_a_program_without_a_host_of_its_own_is_started_by_dotnet(tmp_path: Path) -> None:
    write(tmp_path / "Server.csproj", _project("<UseAppHost>false</UseAppHost>"))

    assert _line(tmp_path).line == ("dotnet", "exec", f"{tmp_path}/bin/Debug/net10.0/Server.dll")


def test_what_cannot_be_evaluated_is_left_to_dotnet_run(tmp_path: Path) -> None:
    write(tmp_path / "Server.csproj", "<Project")

    assert _line(tmp_path).line == ("dotnet", "run", "--no-build", "--project", f"{tmp_path}/Server.csproj")


def test_a_file_based_program_is_run_by_its_name_until_the_sdk_was_asked(tmp_path: Path) -> None:
    recorded = RecordedProject("file-based", tmp_path / "ws")
    dotnet = RecordedDotNet(tmp_path / "net")
    dotnet.knows(recorded.path, recorded.answer())
    config = _config(recorded.folder)

    before = server_command(config, dotnet.environ, "linux")
    SdkQuestions(dotnet.environ).answers([read_project(str(recorded.path), dotnet.environ)])
    after = server_command(config, dotnet.environ, "linux")

    assert isinstance(before, ServerLine)
    assert isinstance(after, ServerLine)
    assert before.line == ("dotnet", "run", "--no-build", str(recorded.path))
    assert after.line == (recorded.property("RunCommand"),)


def test_the_launch_profile_counts_as_it_does_for_dotnet_run(tmp_path: Path) -> None:
    project = {"commandName": "Project", "commandLineArgs": '--stdio "a b"', "applicationUrl": "http://localhost:5000"}
    variables = {"DOTNET_ENVIRONMENT": "Development", "PLACE": "%PATH%/x"}
    profiles = {"IIS": {"commandName": "IISExpress"}, "Server": {**project, "environmentVariables": variables}}
    write(tmp_path / "Server.csproj", _project())
    write(tmp_path / "Properties" / "launchSettings.json", "\ufeff// ours\n" + json.dumps({"profiles": profiles}))
    own = '{"mcpServerRoot": "..", "mcpServer": {"args": ["-x"], "env": {"DOTNET_ENVIRONMENT": "Mine"}}}'

    plain, more = _line(tmp_path, path="/p"), _line(tmp_path, own)

    assert plain.line[1:] == ("--stdio", "a b")
    assert plain.environ({}) == {
        "ASPNETCORE_URLS": "http://localhost:5000",
        "DOTNET_ENVIRONMENT": "Development",
        "PLACE": "/p/x",
    }
    assert more.line[1:] == ("-x",)
    assert more.environ({})["DOTNET_ENVIRONMENT"] == "Mine"


def test_variables_of_a_file_replace_those_of_the_launch_profile_and_are_not_shown_by_it(tmp_path: Path) -> None:
    variables = {"MODE": "profile", "SHOWN": "%TOKEN%"}
    profiles = {"Server": {"commandName": "Project", "environmentVariables": variables}}
    write_all(
        tmp_path,
        {
            "Server.csproj": _project(),
            "Properties/launchSettings.json": json.dumps({"profiles": profiles}),
            ".env": "MODE=file\nTOKEN=secret\n",
        },
    )

    found = _line(tmp_path, '{"mcpServerRoot": "..", "mcpServer": {"envFile": "../.env"}}')

    assert found.environment == (("SHOWN", "%TOKEN%"),)
    assert found.environ({}) == {"MODE": "file", "TOKEN": "secret", "SHOWN": "%TOKEN%"}


def test_without_a_build_the_program_of_the_last_one_is_started(tmp_path: Path) -> None:
    write(tmp_path / "Server.csproj", _project())
    own = '"mcpServerRoot": "..", "mcpServer": {"build": false}, "hotReload": {"enabled": %s}'

    found = [_line(tmp_path, f"{{{own % reloads}}}") for reloads in ("true", "false")]

    assert {each.line for each in found} == {(f"{tmp_path}/bin/Debug/net10.0/Server",)}


def test_a_program_is_told_where_dotnet_is(tmp_path: Path) -> None:
    dotnet = RecordedDotNet(tmp_path / "net")
    write(tmp_path / "Server.csproj", _project())
    config = _config(tmp_path)

    found = server_command(config, dotnet.environ, "linux")
    given = server_command(config, {**dotnet.environ, "DOTNET_ROOT": "/mine"}, "linux")

    assert isinstance(found, ServerLine)
    assert isinstance(given, ServerLine)
    assert found.environ({}) == {"DOTNET_ROOT": str(dotnet.folder)}
    assert given.environ({}) == {}


def test_a_project_of_dotnet_builds_itself_where_hot_reload_does_not(tmp_path: Path) -> None:
    write(tmp_path / "Server.csproj", "")

    line = _line(tmp_path, '{"mcpServerRoot": "..", "hotReload": {"enabled": false}}').line

    assert line == ("dotnet", "run", "--project", f"{tmp_path}/Server.csproj")


@pytest.mark.parametrize(
    ("files", "platform", "example"),
    [
        (["server.py"], "linux", "python3 server.py"),
        (["main.py", "a.py"], "win32", "python main.py"),
        (["__main__.py", ".venv/bin/python"], "linux", ".venv/bin/python __main__.py"),
        (["main.py", ".venv/Scripts/python.exe"], "win32", ".venv/Scripts/python.exe main.py"),
        (["notes.py"], "linux", "python3 notes.py"),
        (["pyproject.toml"], "linux", "python3 server.py"),
        (["go.mod", "main.go", "main.py"], "linux", "go run ."),
        (["go.mod", "lib.go", "cmd/server/main.go"], "linux", "go run ./cmd/server"),
        (["go.mod", "lib.go", "server/main.go"], "linux", "go run ./server"),
        (["Cargo.toml"], "linux", "cargo run --quiet"),
        (["A.csproj", "B.csproj", "main.py"], "linux", "dotnet run --project A.csproj"),
        (["package.json", "main.py"], "linux", "node dist/index.js"),
        (["README.md"], "linux", "node dist/index.js"),
    ],
)
def test_what_to_write_is_shown_for_the_kind_of_server_and_can_be_taken_as_it_is(
    tmp_path: Path, files: list[str], platform: str, example: str
) -> None:
    contents = {"json": "{}", "go": "package main\n"}
    write_all(tmp_path, {name: contents.get(name.rpartition(".")[2], "") for name in files if name != "lib.go"})
    if "lib.go" in files:
        write(tmp_path / "lib.go", "package lib\n")

    found = server_command(_config(tmp_path), {}, platform)

    assert isinstance(found, Issue)
    told = found.remediation.removeprefix("Write it into that file, as in ").removesuffix(".")
    line = _line(tmp_path, f'{{"mcpServerRoot": "..", {told}}}', platform=platform)
    assert (line.line, line.folder) == (tuple(example.split()), str(tmp_path))
    others = {"package.json", "pyproject.toml", "go.mod", "Cargo.toml"} - {*files}
    assert len(others) == 4 or not any(name in found.message for name in others)


# Names.


@pytest.mark.parametrize(("given", "meant"), [(".", ".."), ("server", "../server"), ("./server/", "../server")])
def test_a_path_that_begins_at_the_workspace_is_told_as_it_must_be(tmp_path: Path, given: str, meant: str) -> None:
    (tmp_path / "server").mkdir()

    found = server_command(_config(tmp_path, json.dumps({"mcpServerRoot": given})), {}, "linux")

    assert isinstance(found, Issue)
    path, folder = tmp_path / ".devtools" / "host.config.jsonc", os.path.normpath(tmp_path / ".devtools" / meant)
    assert found.message.startswith(f'mcpServerRoot in {path} must probably be "{meant}", which is {folder}')
    assert found.remediation.startswith(f'Write "mcpServerRoot": "{meant}"')


@pytest.mark.parametrize(
    ("files", "content", "name"),
    [
        ({"package.json": '{"name": "@a/b"}'}, ROOTED, "@a/b"),
        ({"pyproject.toml": '[project]\nname = "py"'}, ROOTED, "py"),
        ({"package.json": '{"name": "js"}'}, '{"hotReload": {"mcpServerName": "mine"}, "mcpServer": {}}', "mine"),
        ({}, '{"mcpServer": {"command": "python"}}', "ws"),
        ({"package.json": "{"}, '{"mcpServer": {"command": "serve"}}', "ws"),
        ({"package.json": '{"name": "a\\nb"}'}, '{"mcpServer": {"command": "serve"}}', "ws"),
        ({"package.json": '{"name": "\\ud83d"}'}, '{"mcpServer": {"command": "serve"}}', "ws"),
        ({"package.json": '{"name": 5}', "pyproject.toml": "project = 5"}, ROOTED, "ws"),
    ],
)
def test_a_server_is_called_as_the_config_says_else_its_package_else_its_folder(
    tmp_path: Path, files: Mapping[str, str], content: str, name: str
) -> None:
    write_all(tmp_path / "ws", files)

    assert server_name(_config(tmp_path / "ws", content)) == name


# Programs that would reload the server themselves.


@pytest.mark.parametrize(
    ("typed", "run"),
    [
        ("node --watch index.js --watch", "node index.js --watch"),
        (
            "/usr/bin/node --enable-source-maps --watch-path=src --watch index.js",
            "/usr/bin/node --enable-source-maps index.js",
        ),
        ("node --watch-path src --import tsx --watch index.ts", "node --import tsx index.ts"),
        ("npx -y tsx watch --clear-screen=false src/index.ts watch", "npx -y tsx src/index.ts watch"),
        ("bun run --hot index.ts", "bun run index.ts"),
        (
            "uv run fastmcp run server.py --reload --reload-dir src -- --reload",
            "uv run fastmcp run server.py -- --reload",
        ),
        ("python server.py --reload", "python server.py --reload"),
        ("node", "node"),
    ],
)
def test_options_by_which_a_program_reloads_the_server_itself_are_left_out(typed: str, run: str) -> None:
    assert shlex.join(without_own_reload(tuple(shlex.split(typed)))) == run


def test_a_server_that_is_not_reloaded_by_us_may_reload_itself(tmp_path: Path) -> None:
    server = '"mcpServer": {"command": "node", "args": ["--watch", "index.js"]}'

    off = _line(tmp_path, f'{{"mcpServerRoot": "..", {server}, "hotReload": {{"enabled": false}}}}').line
    on = _line(tmp_path, f'{{"mcpServerRoot": "..", {server}}}').line

    assert off == ("node", "--watch", "index.js")
    assert on == ("node", "index.js")


@pytest.mark.parametrize(
    ("platform", "variables"),
    [("linux", {"PATH": "ours", "Path": "config", "A": "file"}), ("win32", {"PATH": "config", "A": "file"})],
)
def test_a_variable_replaces_one_of_ours_as_the_system_compares_names(platform: str, variables: dict[str, str]) -> None:
    line = ServerLine(("server",), "/", (("Path", "config"),), "a config", (("A", "file"),))

    assert line.environ({"PATH": "ours"}, platform) == variables
