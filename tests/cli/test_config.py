"""`config`: what counts, what follows from it, and what is wrong, for people, programs and editors."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import uno_devserver
from support.dotnet_cli import RecordedDotNet, RecordedProject
from support.files import snapshot, write
from support.machine import Machine
from support.workspace import WorkspaceBuilder
from uno_devserver.system.command_lines import quoted_line
from uno_devserver.system.jsonc import parse
from uno_devserver.workspace.config import (
    FIELDS,
    SERVER_FIELDS,
    SERVERS,
    Config,
    FieldKind,
    HotReloadSettings,
    ServerCommand,
    read_config,
)

CONFIG = ".devtools/host.config.jsonc"
SECTIONS = tuple(dict.fromkeys(field.section for field in FIELDS if field.section))
SCHEMA = Path(uno_devserver.__file__).parent / "workspace" / "host.config.schema.json"


def _rows(stdout: str) -> dict[str, str]:
    rows = [line.strip().partition(": ") for line in stdout.splitlines() if line.startswith("  ")]
    return {key: value for key, _, value in rows}


def test_without_a_config_the_defaults_are_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(".devtools/addins/greeter.py", "")

    result = machine.run("config")

    rows = _rows(result.stdout)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"The config of the workspace {machine.workspace}: none, so the defaults count\n")
    assert rows["all"] == "their defaults, which docs/configuration.md and --json list"
    assert rows["server"].startswith("a Host, with the workspace's add-ins")
    assert rows["sources of the server"] == f"Python add-ins, 1 file in {machine.workspace}"
    assert rows["trusted"] == "no: the user has not agreed to it; run 'uno-devserver trust' in the workspace to agree"


def test_given_settings_and_what_follows_are_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("server/pyproject.toml", '[project]\nname = "mine"\n[project.scripts]\nrun-it = "a:b"')
    workspace.file("server/mine/__init__.py", "").file("server/.venv/bin/run-it", "")
    workspace.file(CONFIG, '{"mcpServerRoot": "../server", "hotReload": {"strategy": "swap", "exclude": ["x"]}}')
    machine.run("trust")

    result = machine.run("config")

    root = machine.workspace
    rows = _rows(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (rows["mcpServerRoot"], rows["hotReload.strategy"]) == (str(root / "server"), "swap")
    assert (rows["hotReload.exclude"], "hotReload.include" in rows, "all others" in rows) == ('["x"]', False, True)
    assert rows["trusted"] == "yes"
    assert (rows["server"], rows["runs in"]) == (f"{root}/server/.venv/bin/run-it", f"{root}/server")
    assert rows["as said by"] == f"'project.scripts' of {root}/server/pyproject.toml"
    assert rows["hot reload"] == "on, by swap"
    assert rows["sources of the server"] == f"Python, 1 file in {root}/server"
    assert rows["build of the server"] == "none; new code with a syntax error is not started"


def test_programs_get_all_of_it_as_json(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"main": "a.js"}').file("a.js", "")
    server = '{"command": "sh", "args": ["-c", "a b"], "env": {"A": "1"}}'
    workspace.file(CONFIG, f'{{"mcpServerRoot": "..", "mcpServer": {server}, "client": {{"command": "sh"}}}}')

    found = machine.run("config", "--json").json

    root = str(machine.workspace)
    assert (found["workspaceDirectory"], found["config"]) == (root, str(machine.workspace / CONFIG))
    assert (found["trusted"], found["refusal"]) == (False, "the user has not agreed to it")
    assert found["settings"]["mcpServer.env"] == {"value": {"A": "1"}, "given": True}
    assert found["settings"]["pipeline.concurrency"] == {"value": None, "given": False}
    assert set(found["settings"]) == {field.title for field in FIELDS}
    assert found["server"] == {
        "command": ["sh", "-c", "a b"],
        "cwd": root,
        "env": {"A": "1"},
        "envFromFile": [],
        "url": None,
        "origin": f"mcpServer in {found['config']}",
    }
    (package,) = found["packages"]
    assert (package["role"], package["kind"], package["files"]) == ("server", "JavaScript", ["a.js"])
    assert found["client"] == {"command": ["sh"], "cwd": root}


@pytest.mark.parametrize(
    "command", [("config",), ("config", "--json"), ("trust", "--dry-run"), ("trust", "--dry-run", "--json"), ("trust",)]
)
def test_secrets_of_the_config_are_not_shown_and_what_decides_is(
    workspace: WorkspaceBuilder, machine: Machine, command: tuple[str, ...]
) -> None:
    env = {"API_KEY": "SECRET", "NODE_OPTIONS": "--require=/evil.js", "OTHER": "ghp_SECRET0123456789SECRET0123456789"}
    args = ["server.js", "--token=SECRET", "--password=SECRET", "https://me:SECRET@host/x?k=SECRET"]
    build = ["npm", "run", "build", "--auth=SECRET"]
    workspace.file(".env", "PLAIN=SECRET\nLD_PRELOAD=SECRET.so\n")
    client = {"command": "code", "args": ["--api-key=SECRET"]}
    workspace.file("server.js", "").file("package.json", '{"main": "server.js"}')
    server = {"command": "node", "args": args, "env": env, "envFile": "../.env", "build": build}
    server["url"] = "http://localhost:8000/mcp?token=SECRET"
    workspace.file(CONFIG, json.dumps({"mcpServerRoot": "..", "mcpServer": server, "client": client}))

    shown = machine.run(*command).stdout

    assert "SECRET" not in shown
    assert "server.js" in shown
    assert "--require=/evil.js" in shown
    assert all(name in shown for name in ("API_KEY", "OTHER", "--token", "--password=", "--api-key", "host/x?k="))
    assert "http://localhost:8000/mcp" in shown or command[0] == "trust"
    assert all(name in shown for name in ("PLAIN", "LD_PRELOAD", "npm run build"))


def test_the_settings_of_a_server_are_shown_with_what_follows(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("main.go", "").file(".env", "# none").file("tools/build.sh", "").file("go.mod", "")
    (machine.workspace / "tools" / "build.sh").chmod(0o755)
    server = {"command": "sh", "url": "http://localhost:8000/mcp", "envFile": "../.env", "startupTimeout": 60_000}
    config = {"mcpServerRoot": "..", "mcpServer": {**server, "build": "tools/build.sh 'to here'"}}
    workspace.file(CONFIG, json.dumps(config))

    rows = _rows(machine.run("config").stdout)
    asked = machine.run("trust", "--dry-run").stdout

    root = machine.workspace
    assert (rows["mcpServer.startupTimeout"], "mcpServer.silenceTimeout" in rows) == ("60000", False)
    assert rows["listens at"] == "http://localhost:8000/mcp"
    assert rows["variables"] == f"no variables from {root / '.env'}"
    build = quoted_line(["tools/build.sh", "to here"])
    assert rows["build of the server"] == f"{build}, in {root}"
    assert f"When code of the server has changed: {build}, in {root}" in asked


def test_a_build_that_is_off_is_shown_as_such(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"main": "a.js", "scripts": {"build": "tsc"}}').file("a.js", "")
    workspace.file(CONFIG, '{"mcpServerRoot": "..", "mcpServer": {"build": false}}')

    rows = _rows(machine.run("config").stdout)

    assert (rows["mcpServer.build"], rows["build of the server"]) == ("false", "none, by mcpServer.build")


def test_a_mistake_in_the_file_of_variables_is_a_problem(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(".env", "A='never closed")
    workspace.file(CONFIG, '{"mcpServer": {"command": "sh", "envFile": "../.env"}}')

    result = machine.run("config")

    assert result.exit_code == 1
    assert f"{machine.workspace / '.env'}:1: the value of A has no closing quote" in result.stdout


def test_problems_are_listed_and_the_exit_code_tells_of_them(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{\n  "mcpServer": {"command": "no-such-program"},\n  "hotReload": {"enabled": "no"}\n}')

    shown, data = machine.run("config"), machine.run("config", "--json")

    path = machine.workspace / CONFIG
    assert (shown.exit_code, data.exit_code) == (1, 1)
    assert shown.stdout.split("Problems:\n")[1].splitlines() == [
        f"- {path}:3:28: hotReload.enabled: it must be true or false.",
        (
            "- The server cannot be started: the program 'no-such-program' is not found. "
            f"Install it, or name another one as mcpServer.command in {path}."
        ),
    ]
    assert len(data.json["problems"]) == 2


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"mcpServer": {"command": "sh serve.sh"}}, "Write its arguments apart, as mcpServer.args"),
        ({"mcpServer": {"command": "sh", "args": ["gone.py"]}}, "there is no file {root}{sep}gone.py."),
        ({"mcpServer": {"command": "sh"}, "client": {"command": "gone"}}, "The client cannot be started"),
        ({"servers": {"a": {"command": "gone"}}}, "another one as servers.a.command"),
        ({"servers": {"a": {"command": "sh", "args": ["gone.py"]}}}, "there is no file {root}{sep}gone.py."),
        (
            {"servers": {"a": {"root": "../plain"}}},
            '"a": {{"root": "../plain", "command": "node", "args": ["serve.mjs"]}}',
        ),
    ],
)
def test_what_fails_is_a_problem(workspace: WorkspaceBuilder, machine: Machine, config: object, problem: str) -> None:
    workspace.file(CONFIG, json.dumps(config)).file("plain/serve.mjs", "")

    result = machine.run("config")

    assert result.exit_code == 1
    assert problem.format(root=machine.workspace, sep=os.sep) in result.stdout.split("Problems:\n")[1]


@pytest.mark.parametrize("section", ["mcpServer", "servers.far"])
def test_a_header_without_its_variable_is_a_problem_here_and_in_health(
    workspace: WorkspaceBuilder, machine: Machine, section: str
) -> None:
    server = {"url": "https://far.example/mcp", "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}}
    config = {"mcpServer": server} if section == "mcpServer" else {"servers": {"far": server}}
    workspace.file(CONFIG, json.dumps(config))
    where = f"{section}.headers in {machine.workspace / CONFIG}"
    problem = f"{where} cannot be used: the variable FAR_TOKEN is not set, or empty."

    told, health = machine.run("config", "--json"), machine.run("health", "--json")
    with_it = machine.run("config", "--json", env={"FAR_TOKEN": "x"})

    (found,) = told.json["problems"]
    assert (told.exit_code, found["message"]) == (1, problem)
    assert f"{section}.envFile" in found["nextStep"]
    assert problem in [issue["message"] for issue in health.json["issues"]]
    assert with_it.json["problems"] == []


def test_a_command_with_arguments_is_not_taken_for_a_file_that_is_still_to_be_built(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file("package.json", '{"scripts": {"build": "x"}}').file("a b/serve.sh", "")
    for name in ("node", "npm"):
        (machine.tools / name).touch(mode=0o755)
    found = {}
    for command in ("node dist/index.js --token=a1b2", "a b/serve.sh", "gone dist/x"):
        workspace.file(CONFIG, json.dumps({"mcpServerRoot": "..", "mcpServer": {"command": command, "args": ["x"]}}))
        found[command] = [each["nextStep"] for each in machine.run("config", "--json").json["problems"]]

    [[step], named, unbuilt] = found.values()
    assert step.startswith('Write them into args: "mcpServer": {"command": "node", "args": ["dist/index.js", "--token=')
    assert step.endswith(', "x"]}.')
    assert "a1b2" not in step
    assert (named, unbuilt) == ([], [])


def test_where_typescript_writes_is_shown_if_the_missing_file_is_elsewhere(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file("package.json", '{"main": "index.js", "scripts": {"build": "tsc"}}').file("a.ts", "")
    workspace.file("tsconfig.json", '{"compilerOptions": {"outDir": "dist"}}').file(CONFIG, '{"mcpServerRoot": ".."}')
    for name in ("node", "npm"):
        (machine.tools / name).touch(mode=0o755)

    [remark] = machine.run("config", "--json").json["remarks"]

    root = machine.workspace
    correct = f"if it does not write that file, correct 'main' of {root}/package.json."
    assert remark.endswith(f"But {root}/tsconfig.json has it write into {root}/dist: {correct}")


def test_missing_builds_and_idle_patterns_are_remarks(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"main": "dist/index.js", "scripts": {"build": "x"}}').file("a.ts", "")
    workspace.file("a.test.ts", "").file("views/page.html", "").file("tsconfig.json", "{}")
    tools = {"hotReload": {"include": ["views/*.html", "gone/**"], "exclude": ["**/*.test.ts", "lost.ts"]}}
    workspace.file(CONFIG, json.dumps({"mcpServerRoot": "..", **tools}))
    for name in ("node", "npm"):
        (machine.tools / name).touch(mode=0o755)

    result = machine.run("config", "--json")

    assert result.json["problems"] == []
    assert result.json["remarks"] == [
        f"{machine.workspace}/dist/index.js does not exist yet; npm run build is run when the server is first needed.",
        'hotReload.include: "gone/**" fits no file; patterns begin at the root of the package.',
        'hotReload.exclude: "lost.ts" fits no file; patterns begin at the root of the package.',
    ]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("build", "remark", "problem"),
    [
        ('"build": "go build -o bin/server .", ', "does not exist yet; go build -o bin/server . is run when", ""),
        ("", "", ", and 'go build ./...' does not write it. Correct its path, or name a build that writes it"),
        ('"build": false, ', "", "there is no file {root}/bin/server. Correct its path, or name a build"),
    ],
    ids=["a build that writes it", "a build that only checks", "no build"],
)
def test_a_program_that_is_still_to_be_built_is_missing_only_if_no_build_writes_it(
    workspace: WorkspaceBuilder, machine: Machine, build: str, remark: str, problem: str
) -> None:
    # Of two main packages it is not certain which one is meant.
    workspace.file("go.mod", "module m\n").file("main.go", "package main\n").file("cmd/x/main.go", "package main\n")
    workspace.file(CONFIG, f'{{"mcpServerRoot": "..", "mcpServer": {{{build}"command": "./bin/server"}}}}')
    (machine.tools / "go").touch(mode=0o755)

    result = machine.run("config")

    assert remark in result.stdout
    assert problem.format(root=machine.workspace) in result.stdout
    assert result.exit_code == (1 if problem else 0)


def test_packages_that_the_server_uses_are_listed_and_so_are_files(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    manifest = '{"name": "server", "main": "a.js", "dependencies": {"shared": "*"}, "scripts": {"build": "x"}}'
    workspace.file("server/package.json", manifest).file("server/a.js", "").file("notes/a.md", "")
    workspace.file("shared/package.json", '{"name": "shared", "main": "dist/b.js", "scripts": {"build": "x"}}')
    workspace.file("shared/src/b.js", "").file("shared/src/c.js", "").file("server/.env", "")
    (machine.workspace / "server/node_modules").mkdir()
    (machine.workspace / "server/node_modules/shared").symlink_to("../../shared")
    patterns = ["../notes/*.md", ".env", "../../*"]
    workspace.file(CONFIG, json.dumps({"mcpServerRoot": "../server", "hotReload": {"include": patterns}}))
    for name in ("node", "npm"):
        (machine.tools / name).touch(mode=0o755)
    root = machine.workspace

    shown, data = machine.run("config", "--files"), machine.run("config", "--json").json

    rows = _rows(shown.stdout)
    assert rows["sources of the server"] == f"JavaScript, 3 files in {root / 'server'}"
    assert rows["with the package"] == f"JavaScript, 2 files in {root / 'shared'}"
    builds = [f"npm run build, in {root / package}" for package in ("shared", "server")]
    assert rows["build of the server"] == ", then ".join(builds)
    files = ["../notes/a.md", "../shared/src/b.js", "../shared/src/c.js", ".env", "a.js"]
    listed = shown.stdout.split(f"Sources of the server, from {root}/server:\n")[1].splitlines()
    assert listed[: len(files)] == [f"- {name}" for name in files]
    (package,) = data["packages"]
    assert package["files"] == files
    assert package["uses"] == [{"root": f"{root}/shared", "kind": "JavaScript", "files": 2}]
    assert [problem["message"] for problem in data["problems"]] == [
        f'hotReload.include: "../../*" leads out of the workspace folder {root}; it is left out.'
    ]
    assert data["remarks"] == []
    assert "- a.js" not in machine.run("config").stdout
    trust = machine.run("trust", "--dry-run").stdout
    assert f"npm run build, in {root}/shared, then npm run build, in {root}/server" in trust


@pytest.mark.parametrize(
    ("files", "kind"),
    [({"go.mod": "module m\n", "main.go": ""}, "Go, 2 files"), ({"Cargo.toml": "", "a.rs": ""}, "other, 2 files")],
)
def test_the_kind_of_a_server_is_named_right(
    workspace: WorkspaceBuilder, machine: Machine, files: dict[str, str], kind: str
) -> None:
    for name, content in files.items():
        workspace.file(f"server/{name}", content)
    workspace.file(CONFIG, '{"mcpServerRoot": "../server", "mcpServer": {"command": "/bin/sh"}}')

    result = machine.run("config")

    assert result.exit_code == 0
    assert _rows(result.stdout)["sources of the server"] == f"{kind} in {machine.workspace}/server"


def test_a_server_whose_code_is_elsewhere_is_a_remark(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{"mcpServer": {"command": "/bin/sh"}}')

    result = machine.run("config", "--json")

    (remark,) = result.json["remarks"]
    assert remark.startswith(f"No file in {machine.workspace} counts as code of the server")
    assert (result.exit_code, result.json["problems"]) == (0, [])


def test_a_missing_folder_is_reported_once_and_has_no_kind(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{"mcpServerRoot": "../gone", "mcpServer": {"command": "/bin/sh", "cwd": ".."}}')

    result = machine.run("config")

    assert _rows(result.stdout)["sources of the server"] == f"none: there is no folder {machine.workspace / 'gone'}"
    assert len(result.stdout.split("Problems:\n")[1].splitlines()) == 1


@pytest.mark.parametrize(
    ("config", "off"),
    [('{"hotReload": {"enabled": false}}', "off, by hotReload.enabled"), ("{}", "off: there is no code to watch")],
)
def test_a_reason_is_given_for_no_reload(workspace: WorkspaceBuilder, machine: Machine, config: str, off: str) -> None:
    workspace.file(CONFIG, config)

    assert _rows(machine.run("config").stdout)["hot reload"] == off


def test_an_unknown_server_command_is_a_problem(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{"mcpServer": {"cwd": ".."}}')

    result = machine.run("config")

    assert result.exit_code == 1
    assert _rows(result.stdout)["server"] == "not known"
    assert '"mcpServer": {"command": ' in result.stdout


def test_of_code_without_a_command_it_says_who_needs_none(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("server.py", "").file(CONFIG, '{"mcpServerRoot": ".."}')

    result = machine.run("config")

    assert result.exit_code == 1
    assert _rows(result.stdout)["sources of the server"].startswith("Python, 1 file")
    assert "('mcp start -- <command>' does not need it.)" in result.stdout


def test_of_a_typed_command_it_shows_what_watch_watches(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"name": "mine", "scripts": {"build": "tsc"}}').file("src/index.js", "")

    result = machine.run("config", "--files", "--", "npx", "tsx", "watch", "src/index.js", "--token", "s3cret")

    rows = _rows(result.stdout)
    assert rows["server"] == quoted_line(["npx", "tsx", "src/index.js", "--token", "…"])
    assert rows["hot reload"] == "on, by --watch"
    assert rows["sources of the server"] == f"JavaScript, 1 file in {machine.workspace}"
    assert rows["build of the server"].startswith("npm run build, in ")
    assert "- src/index.js\n" in result.stdout
    assert "- 'watch' is left out of the command: hot reload restarts the server" in result.stdout
    assert machine.run("config", "--json", "--", "node", "src/index.js").json["packages"][0]["files"] == [
        "src/index.js"
    ]


def test_options_that_are_left_out_of_the_command_are_named(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("server.py", "")
    command = '{"command": "fastmcp", "args": ["run", "server.py", "--reload", "--reload-dir", "x"]}'
    workspace.file(CONFIG, f'{{"mcpServerRoot": "..", "mcpServer": {command}}}')

    shown = machine.run("config").stdout

    assert _rows(shown)["server"] == "fastmcp run server.py"
    assert "- '--reload --reload-dir x' is left out of the command" in shown


@pytest.mark.parametrize(
    ("script", "instead"),
    [
        ("tsx watch src/index.ts", "'npx tsx src/index.ts'"),
        ("node --watch index.js", "'node index.js'"),
        ("nodemon index.js", "the server's own command"),
    ],
)
def test_a_script_that_runs_a_watcher_is_a_remark(
    workspace: WorkspaceBuilder, machine: Machine, script: str, instead: str
) -> None:
    workspace.file("package.json", json.dumps({"name": "mine", "scripts": {"dev": script}}))

    shown = machine.run("config", "--", "npm", "run", "dev").stdout

    assert f"- The script runs '{script}', which restarts the server itself" in shown
    assert f"write {instead} instead." in shown


def test_a_project_that_uses_no_mcp_is_not_taken_for_a_server(machine: Machine) -> None:
    (machine.workspace / "App.csproj").write_text('<Project Sdk="Uno.Sdk" />')

    assert "dotnet new unoapp" in machine.run("config").stderr
    assert machine.run("mcp", "install", "cursor").exit_code == 0


def test_in_a_package_without_a_config_it_does_not_speak_of_uno(machine: Machine) -> None:
    (machine.workspace / "pyproject.toml").write_text('[project]\nname = "mine"\n')

    shown = machine.run("config").stderr

    assert f"There is no config for {machine.workspace}, the folder of a package." in shown
    assert "uno-devserver config -- <its command>" in shown
    assert not [word for word in ("dotnet", ".sln", "Uno ") if word in shown]


def test_a_build_that_cannot_run_is_a_problem(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"main": "a.js", "scripts": {"build": "x"}}').file("pnpm-lock.yaml", "")
    workspace.file(CONFIG, '{"mcpServerRoot": "..", "mcpServer": {"command": "sh"}}')

    result = machine.run("config", env={"PATH": "/nowhere"})

    assert result.exit_code == 1
    assert "- pnpm was not found on PATH." in result.stdout


def test_nothing_is_written_and_nothing_of_the_workspace_runs(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"main": "a.js", "scripts": {"build": "touch built"}}')
    workspace.file(CONFIG, '{"mcpServerRoot": "..", "client": {"command": "sh", "args": ["-c", "touch ran"]}}')
    before = snapshot(machine.workspace)

    machine.run("config")

    assert snapshot(machine.workspace) == before
    assert not machine.state.exists()


def test_a_csharp_server_is_shown_without_running_dotnet(machine: Machine) -> None:
    recorded = RecordedProject("reference", machine.workspace)
    dotnet = RecordedDotNet(machine.root / "net")
    dotnet.knows(recorded.path, recorded.answer())
    write(machine.workspace / CONFIG, '{"mcpServerRoot": "../S"}')
    machine.environment["PATH"] = str(dotnet.folder)

    result = machine.run("config")

    rows = _rows(result.stdout)
    assert result.exit_code == 0
    assert rows["server"] == recorded.property("RunCommand")
    assert rows["sources of the server"] == f".NET, 2 files in {machine.workspace}/S"
    assert rows["with the package"] == f".NET, 2 files in {machine.workspace}/Core"
    assert rows["build of the server"] == f"dotnet build S.csproj, in {machine.workspace}/S"
    assert "S does not exist yet; dotnet build S.csproj is run when the server is first needed." in result.stdout
    assert dotnet.calls() == []


def test_without_a_workspace_it_says_how_to_make_one(machine: Machine) -> None:
    result = machine.run("config", "--json")

    assert result.exit_code == 1
    assert "run 'uno-devserver init'" in result.json["error"]["nextStep"]


def test_only_the_missing_folder_is_reported(machine: Machine) -> None:
    result = machine.run("config", "--solution-dir", "/nope")

    assert result.stderr.splitlines()[-1] == "next: Name a folder that exists and that you may read."


# The schema.


def test_the_schema_is_printed_for_editors(machine: Machine) -> None:
    shown, data = machine.run("config", "--schema"), machine.run("config", "--schema", "--json")

    assert shown.exit_code == 0
    assert shown.stdout == SCHEMA.read_text("utf-8")
    assert json.loads(shown.stdout) == data.json


def _schema_of(section: str) -> dict[str, Any]:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    found: dict[str, Any] = schema["properties"][section] if section else schema
    return found


@pytest.mark.parametrize("section", ["", *SECTIONS])
def test_the_schema_has_the_settings_that_are_read_and_no_others(section: str) -> None:
    keys = {field.key for field in FIELDS if field.section == section}
    schema = _schema_of(section)

    assert set(schema["properties"]) == keys | (set() if section else {"$schema", SERVERS, *SECTIONS})
    assert schema["additionalProperties"] is False
    assert all(described["description"] for described in schema["properties"].values())


def test_the_schema_of_an_entry_of_servers_refers_to_the_settings_that_it_shares() -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    entry = schema["$defs"]["server"]

    assert set(entry["properties"]) == {field.section or field.key for field in SERVER_FIELDS}
    referred = {key: part["$ref"] for key, part in entry["properties"].items() if "$ref" in part}
    assert set(entry["properties"]) - set(referred) == {"root", "prefix", "enabled"}
    for reference in referred.values():
        found = schema
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found["description"]


TYPES: dict[FieldKind, dict[str, Any]] = {
    FieldKind.SWITCH: {"type": "boolean"},
    FieldKind.NUMBER: {"type": "integer"},
    FieldKind.TEXT: {"type": "string", "minLength": 1},
    FieldKind.FOLDER: {"type": "string", "minLength": 1},
    FieldKind.FILE: {"type": "string", "minLength": 1},
    FieldKind.URL: {"type": "string", "minLength": 1},
    FieldKind.BUILD: {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {"const": False},
        ]
    },
    FieldKind.PROGRAM: {"type": "string", "minLength": 1},
    FieldKind.PATTERN: {"type": "string", "minLength": 1},
    FieldKind.TEXTS: {"type": "array", "items": {"type": "string"}},
    FieldKind.VARIABLES: {"type": "object", "additionalProperties": {"type": "string"}},
    FieldKind.HEADERS: {"type": "object", "additionalProperties": {"type": "string"}},
    FieldKind.STRATEGY: {"enum": ["restart", "swap"]},
}
DEFAULTS = {
    "mcpServer.startupTimeout": ServerCommand().startup_timeout_ms,
    "mcpServer.silenceTimeout": ServerCommand().silence_timeout_ms,
    "mcpServer.standby": ServerCommand().standby,
    "hotReload.enabled": HotReloadSettings().enabled,
    "hotReload.restartDelay": HotReloadSettings().restart_delay_ms,
    "hotReload.mcpStatusTimeout": HotReloadSettings().status_timeout_ms,
    "hotReload.strategy": HotReloadSettings().strategy.value,
    "proxy.waitCalls": Config().wait_calls,
    "inspector.enabled": Config().inspector.enabled,
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.title)
def test_the_schema_says_of_each_setting_what_is_accepted(field: Any) -> None:
    described = _schema_of(field.section)["properties"][field.key]

    expected = dict(TYPES[field.kind])
    if field.kind is FieldKind.NUMBER:
        expected |= {"minimum": field.least, "maximum": field.most}
    assert expected.items() <= described.items()
    empty: dict[str, object] = {"array": [], "object": {}}
    default = DEFAULTS.get(field.title, empty.get(described.get("type", "")))
    assert described.get("default") == default


# The documents.

ROOT = Path(__file__).parents[2]


def test_the_guide_explains_every_setting_once() -> None:
    guide = (ROOT / "docs" / "configuration.md").read_text("utf-8")

    explained = re.findall(r"^\| `([\w.<>]+)` \|", guide, re.MULTILINE)

    own = [f"{SERVERS}.<name>.{name}" for name in ("root", "prefix", "enabled")]
    assert sorted(explained) == sorted([*(field.title for field in FIELDS), *own])


def test_the_config_of_the_guide_is_without_problems(workspace: WorkspaceBuilder, machine: Machine) -> None:
    (example,) = re.findall(r"```jsonc\n(.*?)```", (ROOT / "docs" / "configuration.md").read_text("utf-8"), re.DOTALL)
    workspace.file("package.json", '{"bin": "a.js"}').file("tsconfig.json", "{}").file("a.ts", "")
    workspace.file(CONFIG, example)

    found = read_config(str(machine.workspace / CONFIG))

    assert (found.issues, found.hot_reload.strategy.value, found.concurrency) == ((), "swap", 4)


@pytest.mark.parametrize("example", ["typescript", "python"])
def test_the_example_servers_have_a_config_without_problems_and_with_the_schema(example: str) -> None:
    path = ROOT / "examples" / "servers" / example / CONFIG

    config = read_config(str(path))

    assert config.issues == ()
    assert config.server_folder == str(ROOT / "examples" / "servers" / example)
    document = parse(path.read_bytes())
    assert isinstance(document, dict)
    assert (path.parent / document["$schema"]).resolve() == SCHEMA


# Several servers.


def test_the_servers_of_the_config_are_shown_with_what_each_serves(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file("weather/package.json", '{"name": "weather", "bin": "a.js"}').file("weather/a.js", "")
    servers = {
        "weather": {"root": "../weather"},
        "docs": {"url": "https://example.com/mcp"},
        "files": {"command": "npx", "args": ["-y", "some-server"]},
        "off": {"command": "npx", "enabled": False},
    }
    workspace.file(CONFIG, json.dumps({"servers": servers}))

    shown, data = machine.run("config"), machine.run("config", "--json").json
    agreed = machine.run("trust", "--dry-run")

    rows = _rows(shown.stdout)
    weather = machine.workspace / "weather"
    assert f"node {weather / 'a.js'}, in {weather}; hot" in rows["server 'weather'"]
    assert rows["server 'docs'"] == "connected to at https://example.com/mcp"
    assert rows["server 'files'"].endswith("; no hot reload")
    assert rows["server 'off'"] == "not served, by enabled"
    assert [each["name"] for each in data["servers"]] == list(servers)
    told = " ".join(agreed.stdout.split())
    assert f"The MCP server 'weather': node {weather / 'a.js'}" in told
    assert "A connection to the MCP server 'docs' at https://example.com/mcp" in told
    assert "The MCP server 'files': npx -y some-server" in told
    assert "'off'" not in told
