"""`trust`: what is agreed to is shown and kept, and can be revoked; other commands ask before they run code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.dotnet import Build, FakeDotNet
from support.files import snapshot, write
from support.hosts import StandInHosts
from support.machine import DATA_HOME, Machine
from support.packages import APP_MCP, CORE, host, tools_only
from support.terminals import Terminal, shown
from support.workspace import WorkspaceBuilder
from uno_devserver.cli import trust
from uno_devserver.cli.parse import parse
from uno_devserver.issues import UserError
from uno_devserver.workspace.config import Config, read_config
from uno_devserver.workspace.trust import TRUST_VARIABLE, is_agreed

CONFIG = ".devtools/host.config.jsonc"
ADDIN = ".devtools/addins/greeter.py"


def _trusts(machine: Machine, directory: Path | None = None) -> bool:
    return is_agreed(str(machine.state), str(directory or machine.workspace))


def without(program: str) -> str:
    """What is shown of a build whose program is not on this machine."""
    return f" (cannot run: {program} was not found on PATH. Install it, or start the proxy with a PATH that has it.)"


def test_what_may_run_is_shown_and_kept(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}").file(ADDIN, "")

    result = machine.run("trust")

    root = machine.workspace
    kept = next((machine.state / "trust").iterdir())
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Code of the workspace {root} may run.",
        "",
        f"  config: {root / CONFIG}",
        f"  kept in: {kept}",
        "",
        "What may run:",
        f"- {root / ADDIN}",
        f"- The settings of {root / CONFIG}, which name no command",
        "",
        trust.REMARK,
    ]
    assert _trusts(machine)


def test_a_dry_run_shows_the_same_and_agrees_to_nothing(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, "").file("server/package.json", '{"bin": "main.js", "scripts": {"build": "tsc"}}')
    workspace.file(CONFIG, '{"mcpServerRoot": "../server", "hotReloads": {}}')

    shown, data = machine.run("trust", "--dry-run"), machine.run("trust", "--dry-run", "--json").json

    assert not machine.state.exists()
    assert not _trusts(machine)
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (
        0,
        f"Code of the workspace {machine.workspace} would be allowed to run.",
    )
    assert shown.stdout.splitlines()[-1] == trust.NOTHING_AGREED
    assert "kept in" not in shown.stdout
    agreed = machine.run("trust", "--json").json
    assert len(agreed["commands"]) == 2
    assert (data.pop("dryRun"), data.pop("trusted"), agreed.pop("trusted")) == (True, False, True)
    assert Path(agreed.pop("agreement")).exists()
    assert data == agreed
    again = machine.run("trust", "--dry-run", "--json").json
    assert again["trusted"] is True, "what was agreed to before stays"


def test_programs_get_the_same_as_json(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, "")

    result = machine.run("trust", "--json").json

    assert result == {
        "workspaceDirectory": str(machine.workspace),
        "trusted": True,
        "addIns": [str(machine.workspace / ADDIN)],
        "commands": [],
        "msBuild": False,
        "config": None,
        "problems": [],
        "agreement": str(next((machine.state / "trust").iterdir())),
    }


def test_the_commands_that_a_config_leads_to_are_shown_in_words(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("server/package.json", '{"bin": "out/main.js", "scripts": {"build": "tsc"}}')
    workspace.file("extension/package.json", '{"scripts": {"compile": "tsc"}}').file("extension/yarn.lock", "")
    workspace.file(
        CONFIG,
        """{
          "mcpServerRoot": "../server",
          "extensionPath": "../extension",
          "client": {"command": "code", "args": ["--new-window", "my files"]},
        }""",
    )

    shown, data = machine.run("trust").stdout, machine.run("trust", "--json").json

    root = machine.workspace
    words = [
        f"The MCP server: node {root}/server/out/main.js, in {root}/server",
        f"When code of the server has changed: npm run build, in {root}/server{without('npm')}",
        f"When code of the extension has changed: yarn run compile, in {root}/extension{without('yarn')}",
        f"The client: code --new-window 'my files', in {root}/extension",
    ]
    assert [line for line in shown.splitlines() if line.startswith("- ")] == [f"- {word}" for word in words]
    assert data["commands"] == words


@pytest.mark.parametrize(("name", "verb"), [("S.csproj", "msbuild"), ("server.cs", "build")])
def test_a_csharp_server_is_shown_with_its_build_and_its_evaluation(
    workspace: WorkspaceBuilder, machine: Machine, name: str, verb: str
) -> None:
    workspace.file(f"server/{name}", '<Project Sdk="Microsoft.NET.Sdk" />')
    workspace.file(CONFIG, '{"mcpServerRoot": "../server"}')

    [_, *shown] = _may_run(machine)

    folder = f"{machine.workspace}/server"
    assert shown == [
        f"- When code of the server has changed: dotnet build {name}, in {folder}{without('dotnet')}",
        f"- To find the code of the server: dotnet {verb} {name} -getItem, in {folder}",
    ]


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"mcpServer": {"build": False}}, ["- To find"]),
        ({"mcpServer": {"build": "make"}}, ["- When co", "- To find"]),
        ({"hotReload": {"watch": ["*.cs"]}}, ["- When co"]),
    ],
    ids=["no build", "another build", "named files"],
)
def test_the_evaluation_of_csharp_code_is_shown_whatever_builds_it_unless_the_config_names_the_files(
    workspace: WorkspaceBuilder, machine: Machine, settings: dict[str, object], shown: list[str]
) -> None:
    workspace.file("server/S.csproj", '<Project Sdk="Microsoft.NET.Sdk" />')
    workspace.file(CONFIG, json.dumps({"mcpServerRoot": "../server", **settings}))

    [_, *lines] = _may_run(machine)

    assert [line[: len("- To find")] for line in lines] == shown


def test_a_csharp_program_that_appears_is_a_new_kind_of_code(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("server/server.cs", "#:property A=b").file(CONFIG, '{"mcpServerRoot": "../server"}')
    machine.run("trust")
    assert machine.run("config", "--json").json["trusted"]

    workspace.file("server/second.cs", "#:property A=b")

    assert "the package of server/second.cs" in machine.run("config", "--json").json["refusal"]


def _may_run(machine: Machine) -> list[str]:
    return [line for line in machine.run("trust").stdout.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        (  # variables decide what runs
            r'{"command": "node", "args": ["a.js"], "env": {"NODE_OPTIONS": "--require ./evil.js", "A": "1"}}',
            "node a.js, in {root}, with 'NODE_OPTIONS=--require ./evil.js' A=1",
        ),
        (  # an argument cannot look like another line
            r'{"command": "sh", "args": ["-c", "evil\n- good \u001b[2K"]}',
            r"sh -c 'evil\n- good \x1b[2K', in {root}",
        ),
        (  # without hot reload nothing is built and no client is started
            "{}",
            "node {root}/a.js, in {root}",
        ),
    ],
)
def test_a_command_is_shown_with_all_that_decides_what_runs(
    workspace: WorkspaceBuilder, machine: Machine, server: str, shown: str
) -> None:
    rest = '"mcpServerRoot": "..", "client": {"command": "code"}, "hotReload": {"enabled": false}'
    workspace.file("package.json", '{"bin": "a.js", "scripts": {"build": "tsc"}}')
    workspace.file(CONFIG, f'{{"mcpServer": {server}, {rest}}}')

    assert _may_run(machine) == [f"- The MCP server: {shown.format(root=machine.workspace)}"]


def test_an_unknown_server_is_agreed_to_and_is_a_problem(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("a.py", "").file(CONFIG, '{"mcpServerRoot": ".."}')

    agreed, problem = _may_run(machine)

    assert agreed == "- The MCP server, as soon as its package says how it is started"
    assert problem.startswith(f"- How the server of {machine.workspace / CONFIG} is started is not known: ")
    assert '"mcpServer": {"command": "python3", "args": ["a.py"]}' in problem


def test_the_build_for_a_command_that_is_typed_is_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("package.json", '{"scripts": {"build": "tsc"}}').file(CONFIG, "{}")

    (shown,) = _may_run(machine)

    whose = "a server that you start by 'mcp start -- <command>'"
    assert shown == f"- When code of {whose} has changed: npm run build, in {machine.workspace}{without('npm')}"


def test_a_config_that_is_saved_while_it_is_shown_is_not_agreed_to(
    workspace: WorkspaceBuilder, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.file(CONFIG, '{"mcpServer": {"command": "evil"}}')
    monkeypatch.setenv(DATA_HOME, str(machine.data))

    def saved_before(path: str | None) -> Config:
        workspace.file(CONFIG, '{"mcpServer": {"command": "good"}}')
        return read_config(path)

    monkeypatch.setattr("uno_devserver.cli.trust.read_config", saved_before)

    with pytest.raises(UserError, match="was changed meanwhile"):
        trust.run(parse(["trust", "--solution-dir", str(machine.workspace)]))

    assert not machine.state.exists()


def test_all_agreements_are_listed_with_what_became_of_them(workspace: WorkspaceBuilder, machine: Machine) -> None:
    for name in ("fine", "edited", "gone"):
        workspace.file(f"{name}/{CONFIG}", "{}")
        machine.run("trust", "--solution-dir", name)
    workspace.file(f"edited/{CONFIG}", "{ }")
    (machine.workspace / "gone").rename(machine.workspace / "moved")
    (machine.state / "trust" / "broken.json").write_text("{")

    shown, data = machine.run("trust", "--list"), machine.run("trust", "--list", "--json").json

    root = machine.workspace
    listed = {one["workspaceDirectory"]: (one["trusted"], one["outdated"]) for one in data["agreements"]}
    assert listed == {
        f"{root}/edited": (False, "its config was changed since the user agreed to it"),
        f"{root}/fine": (True, None),
        f"{root}/gone": (False, "the workspace does not exist any more"),
    }
    assert {one["agreedBy"] for one in data["agreements"]} == {"trust"}
    first, _, edited, fine, gone = shown.stdout.splitlines()
    assert (shown.exit_code, first) == (0, "3 workspaces were agreed to.")
    assert fine.startswith(f"  {root}/fine: agreed by 'trust' at 20")
    assert edited.endswith("it does not count any more, because its config was changed since the user agreed to it")
    assert gone.endswith("because the workspace does not exist any more")


def test_a_list_without_agreements_says_so_and_names_the_environment(machine: Machine) -> None:
    plain, by_environment = machine.run("trust", "--list"), machine.run("trust", "--list", env={TRUST_VARIABLE: "1"})

    assert plain.stdout == "No workspaces were agreed to.\n"
    assert "UNO_DEVSERVER_TRUST=1 is set" in by_environment.stdout


def test_a_list_takes_nothing_back(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")
    machine.run("trust")

    assert machine.run("trust", "--list", "--revoke").exit_code == 2
    assert machine.run("trust", "--dry-run", "--revoke").exit_code == 2
    assert _trusts(machine)


def test_the_workspace_is_agreed_to_and_not_the_current_folder(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}").file("src/deep/a.txt", "")

    machine.run("trust", cwd=machine.workspace / "src" / "deep")

    assert _trusts(machine)


def test_it_can_be_taken_back(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, "")
    machine.run("trust")

    result = machine.run("trust", "--revoke")

    assert result.exit_code == 0
    assert "uno-devserver stop" in result.stdout
    assert trust.STILL_SERVES not in result.stdout
    assert not _trusts(machine)
    again = machine.run("trust", "--revoke", "--json")
    assert (again.exit_code, again.json["revoked"], again.json["trusted"]) == (0, False, False)


def test_a_revocation_says_what_ends_a_server_of_the_config(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{"mcpServer": {"command": "sh"}}')
    machine.run("trust")

    assert trust.STILL_SERVES in machine.run("trust", "--revoke").stdout


def test_it_can_be_taken_back_when_the_folder_has_gone(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file("ws/" + ADDIN, "")
    folder = machine.workspace / "ws"
    machine.run("trust", "--solution-dir", str(folder))
    moved = folder.rename(machine.workspace / "moved")

    result = machine.run("trust", "--revoke", "--json", "--solution-dir", str(folder))
    moved.rename(folder)

    assert result.json["revoked"] is True
    assert not _trusts(machine, folder)


def test_the_environment_still_agrees_after_a_revocation_and_that_is_said(machine: Machine) -> None:
    result = machine.run("trust", "--revoke", env={"UNO_DEVSERVER_TRUST": "1"})

    assert "UNO_DEVSERVER_TRUST=1 is set" in result.stdout


def test_where_there_is_no_workspace_there_is_nothing_to_agree_to(machine: Machine) -> None:
    result = machine.run("trust", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "NoSolutionFound"
    assert ".devtools/addins/" in result.stdout
    assert str(machine.workspace) in result.json["error"]["message"]
    assert not machine.state.exists()


def test_of_several_solutions_one_can_be_named(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.uno_sdk().solution("A.slnx", []).solution("B.slnx", [])

    undecided = machine.run("trust", "--json")
    decided = machine.run("trust", "--solution", "B.slnx")

    assert undecided.json["error"]["code"] == "WorkspaceAmbiguous"
    assert decided.exit_code == 0
    assert _trusts(machine)


def test_a_config_that_cannot_be_read_cannot_be_agreed_to(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, "")
    (machine.workspace / CONFIG).mkdir()

    result = machine.run("trust")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {machine.workspace / CONFIG} cannot be read: ")


def test_a_config_that_is_no_json_is_not_agreed_to(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, "").file(CONFIG, '{\n  "mcpServer": {"comm')

    result = machine.run("trust")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {machine.workspace / CONFIG}:2:17: this is not valid JSON: ")
    assert not _trusts(machine)


def test_problems_of_the_config_are_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{"mcpServer": {"command": "serve"}, "hotReloads": {},\n "extensionPath": "gone"}')

    result = machine.run("trust")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    first, second = lines[lines.index("Problems of the config:") + 1 :][:2]
    assert first.startswith(f"- {machine.workspace / CONFIG}:1:")
    assert "did you mean 'hotReload'?" in first
    assert second.startswith(f"- {machine.workspace / CONFIG}:2:")
    assert "there is no folder" in second
    assert _trusts(machine)


def test_a_state_folder_that_cannot_be_written_is_named(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, "")
    (machine.data / "Uno Platform").write_text("a file where a folder should be")

    result = machine.run("trust", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "StateNotWritable"
    assert str(machine.data / "Uno Platform") in result.json["error"]["message"]


def test_nothing_is_written_into_the_workspace(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}").file(ADDIN, "")
    before = snapshot(machine.workspace)

    machine.run("trust")
    machine.run("trust", "--revoke")

    assert snapshot(machine.workspace) == before


def test_where_no_code_is_nothing_is_agreed_to_since_code_may_come_later(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    (machine.workspace / ".devtools" / "addins").mkdir(parents=True)

    result, data = machine.run("trust"), machine.run("trust", "--json").json

    assert result.exit_code == 0
    assert result.stdout.startswith(f"The workspace {machine.workspace} has no code that could run")
    assert (data["trusted"], data["agreement"]) == (False, None)
    assert not machine.state.exists()


def test_the_build_that_may_run_for_discovery_is_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.uno_sdk().solution("A.slnx", [])

    assert _may_run(machine) == [f"- {trust.BUILDS}"]
    assert machine.run("trust", "--json").json["msBuild"] is True


def test_a_page_that_the_config_opens_is_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, '{"inspector": {"enabled": true, "port": 7000}}')

    assert _may_run(machine) == ["- The inspector page, served on this machine at port 7000"]


# --- commands that run code -------------------------------------------------------------------------------------------


@pytest.fixture
def uno_code(uno: WorkspaceBuilder, hosts: StandInHosts) -> Machine:
    """A workspace with an add-in and a command, to which the user has not agreed."""
    uno.file(ADDIN, "").file(CONFIG, '{"mcpServer": {"command": "sh"}}')
    return uno.machine


def _code(machine: Machine) -> list[str]:
    return [str(machine.workspace / ADDIN), f"The MCP server: sh, in {machine.workspace}", trust.BUILDS]


def test_a_start_with_trust_agrees_and_says_to_what(uno_code: Machine) -> None:
    first, again = uno_code.run("start", "--trust"), uno_code.run("start", "--trust", "--json")

    said = ["", "Code of this workspace that may run from now on:"]
    said += [*(f"- {each}" for each in _code(uno_code)), "", "'uno-devserver trust --revoke' revokes this."]
    assert first.stdout.splitlines()[-len(said) :] == said
    assert again.json["agreedTo"] == []
    assert _trusts(uno_code)


def test_elsewhere_than_on_a_terminal_a_start_runs_no_code_without_trust(uno_code: Machine) -> None:
    result = uno_code.run("start", "--json").json

    (warning,) = [each for each in result["warnings"] if each.startswith("Not run")]
    assert warning == f"Not run until you agree: {'; '.join(_code(uno_code))}. {trust.HOW_TO_AGREE}"
    assert result["agreedTo"] == []
    assert not _trusts(uno_code)


def test_on_a_terminal_the_code_is_shown_and_the_user_is_asked(uno_code: Machine) -> None:
    terminal = Terminal(uno_code, "start")
    asked = shown(terminal.until(trust.MAY_IT_RUN))
    terminal.press(b"y\n")
    lines = shown(terminal.end())

    question = trust.QUESTION.format("the user has not agreed to it")
    code = [f"- {each}" for each in _code(uno_code)]
    assert asked == [question, *code, trust.REVOKE, trust.MAY_IT_RUN.rstrip()]
    assert f"{trust.MAY_RUN}:" not in lines, "it was shown already"
    assert _trusts(uno_code)


def test_the_question_says_why_it_is_asked_again(uno_code: Machine) -> None:
    uno_code.run("trust")
    write(uno_code.workspace / ".devtools" / "addins" / "second.py", "")

    asked = Terminal(uno_code, "start").until(trust.MAY_IT_RUN)

    assert "does not run: the add-in second.py has been added since the user agreed to it." in asked


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_trust_asks_on_a_terminal_before_it_agrees(uno_code: Machine, answer: str, code: int) -> None:
    terminal = Terminal(uno_code, "trust")
    asked = terminal.until(trust.MAY_IT_RUN)
    assert not _trusts(uno_code)
    terminal.press(f"{answer}\n".encode())
    terminal.end()

    assert all(each in shown(asked) for each in (f"- {each}" for each in _code(uno_code)))
    assert terminal.process.returncode == code
    assert _trusts(uno_code) is (answer == "y")


def test_no_name_of_a_file_passes_for_another_line(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(".devtools/addins/good.py\n\nNothing else was found.\nx.py", "")

    for command in (("trust", "--dry-run"), ("trust",), ("disco",), ("health",)):
        assert "Nothing else was found." not in machine.run(*command).stdout.splitlines(), command


def test_the_place_that_a_linked_add_in_leads_to_is_shown(workspace: WorkspaceBuilder, machine: Machine) -> None:
    target = write(machine.root / "elsewhere.py", "")
    workspace.file(".devtools/addins/keep.py", "")
    link = machine.workspace / ".devtools" / "addins" / "out.py"
    link.symlink_to(target)

    assert f"- {link} -> {target}" in machine.run("trust", "--dry-run").stdout.splitlines()


@pytest.mark.parametrize("change", ["another link", "a folder"])
def test_an_add_in_that_leads_elsewhere_is_new(workspace: WorkspaceBuilder, machine: Machine, change: str) -> None:
    workspace.file(".devtools/addins/a.py", "")
    addin = machine.workspace / ".devtools" / "addins" / "a.py"
    machine.run("trust")
    assert _trusts(machine)

    addin.unlink()
    if change == "a folder":
        write(addin / "__init__.py", "")
    else:
        addin.symlink_to(write(machine.root / "other.py", ""))

    assert not _trusts(machine)


@pytest.mark.parametrize(("keys", "code"), [(b"n\n", 0), (b"\n", 0), (b"\x04", 0), (b"yesterday\n", 0), (b"\x03", 130)])
def test_any_other_answer_is_a_no(uno_code: Machine, keys: bytes, code: int) -> None:
    terminal = Terminal(uno_code, "start")
    terminal.until(trust.MAY_IT_RUN)
    terminal.press(keys)
    sent = terminal.end()

    assert terminal.process.returncode == code
    assert ("DevServer is ready" in sent) is (code == 0), "the Host starts without that code"
    assert not _trusts(uno_code)


@pytest.mark.parametrize("options", [("--json",), ("--trust",)])
def test_programs_and_those_who_have_said_it_are_not_asked(uno_code: Machine, options: tuple[str, ...]) -> None:
    sent = Terminal(uno_code, "start", *options).end()

    assert trust.MAY_IT_RUN not in sent
    assert _trusts(uno_code) is ("--trust" in options)


def test_what_the_question_shows_cannot_move_the_cursor(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    uno.file(".devtools/addins/a\x1b[2K\n- harmless.py", "")
    terminal = Terminal(uno.machine, "start")
    sent = terminal.until(trust.MAY_IT_RUN)
    terminal.press(b"n\n")
    terminal.end()

    assert "\x1b[2K" not in sent.replace("\r\x1b[K", "")
    assert r"a\x1b[2K\n- harmless.py" in sent


@pytest.mark.parametrize("config", ["{}", '{"proxy": {"waitCalls": true}}', '{"nonsense": 1}', "{ broken"])
def test_nobody_is_asked_where_nothing_would_run(uno: WorkspaceBuilder, hosts: StandInHosts, config: str) -> None:
    uno.file(CONFIG, config)

    assert trust.MAY_IT_RUN not in Terminal(uno.machine, "start").end()
    uno.file(ADDIN, "")
    assert not _trusts(uno.machine), "code that came later was not agreed to"


def test_nobody_is_asked_about_add_ins_that_the_user_names(uno_code: Machine) -> None:
    terminal = Terminal(uno_code, "start", "--host", "bundled", "--addins", ADDIN)
    sent = terminal.end()

    assert trust.MAY_IT_RUN not in sent
    assert "Not run until" not in sent
    assert not _trusts(uno_code)
    uno_code.run("stop")


def test_nor_about_commands_that_a_start_does_not_run(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    uno.file(CONFIG, '{"mcpServer": {"command": "sh"}}')

    assert trust.MAY_IT_RUN not in Terminal(uno.machine, "start").end()
    assert not _trusts(uno.machine)


def test_who_agrees_while_a_host_runs_is_told_how_it_loads_the_code(workspace: WorkspaceBuilder) -> None:
    machine = workspace.file(ADDIN, "def register(addin):\n    pass\n").machine
    try:
        machine.run("start")
        agreed = machine.run("start", "--trust", "--json").json
        again = machine.run("start", "--restart", "--json").json
    finally:
        machine.run("stop")

    assert any("use --restart" in warning for warning in agreed["warnings"])
    assert again["addIns"] == [str(machine.workspace / ADDIN)]


def test_a_command_that_fails_keeps_no_agreement(uno_code: Machine) -> None:
    result = uno_code.run("start", "--trust", "--host", str(uno_code.workspace / "gone"))

    assert result.exit_code == 1
    assert not _trusts(uno_code)


def test_what_cannot_be_shown_cannot_be_agreed_to(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    uno.file(CONFIG, '{"mcpServer": {"comm')

    result = uno.machine.run("start", "--trust")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {uno.machine.workspace / CONFIG}:1:16: this is not valid JSON: ")
    assert not _trusts(uno.machine)


def test_an_agreement_that_cannot_be_kept_is_a_warning(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine.workspace / ADDIN, "")
    (tmp_path / "gone").symlink_to(tmp_path / "gone")  # no folder can be made there, not even by root
    monkeypatch.setenv(DATA_HOME, str(tmp_path / "gone" / "data"))

    trust.consent_to(str(machine.workspace), parse(["start", "--trust"])).keep("start")

    said = capsys.readouterr().err
    assert str(tmp_path / "gone" / "data") in said
    assert "Make the folder writable" in said


def test_a_workspace_that_is_trusted_may_run_its_build_for_discovery(workspace: WorkspaceBuilder) -> None:
    mute = tools_only("Uno.UI.App.Mcp", "1.1.0")
    add_in = mute.dll(workspace.machine.nuget)
    dotnet = workspace.machine.install_dotnet(FakeDotNet(build=Build(["net10.0;"], {"net10.0": [add_in]})))
    workspace.uno_sdk(groups=(CORE, APP_MCP)).package(host(), mute).project("App/App.csproj").solution("App.slnx")
    untrusted = workspace.machine.disco()

    workspace.machine.run("trust")
    trusted = workspace.machine.disco()

    assert (untrusted.add_ins, trusted.add_ins) == ([], [add_in])
    assert dotnet.build_calls()
