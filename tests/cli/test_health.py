"""`health` as a user calls it: real processes in the registry, the report as text and as JSON, the exit code."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.files import write
from support.golden import GOLDEN
from support.machine import Machine, Result
from support.proxies import Proxies
from support.servers import Processes
from support.stand_in_host import Rule, StandInHost, answer, bundled_host, dotnet_host
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver import __version__
from uno_devserver.cli.health import settled_proxies
from uno_devserver.cli.trust import LOADED_LATER
from uno_devserver.issues import warning
from uno_devserver.system.processes import process_started
from uno_devserver.workspace.resolver import resolve

START_SECONDS = 40.0  # what start allows a Host on a busy machine, and a bit


@pytest.fixture
def app(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    """A complete workspace on a machine with .NET."""
    workspace.machine.install_dotnet()
    return workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")


@pytest.fixture
def plain(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    """A workspace without Uno.Sdk, which needs no .NET."""
    return workspace.project("App/App.csproj", restored=False).solution("App.slnx")


def health_with(workspace: WorkspaceBuilder, rules: list[Rule], *options: str, solution: str = "App.slnx") -> Result:
    machine = workspace.machine
    with StandInHost(machine.root, rules) as host:
        host.sign_in(machine.data / "Uno Platform" / "DevServers", workspace.root / solution)
        return machine.run("health", *options)


# --- no Host --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["missing", "file"])
def test_of_a_folder_that_does_not_exist_only_that_is_said(machine: Machine, what: str) -> None:
    write(machine.root / "file", "")

    result = machine.run("health", "--solution-dir", str(machine.root / what), "--json")

    [issue] = result.json["issues"]
    assert (result.exit_code, result.json["status"]) == (1, "Unhealthy")
    assert (issue["code"], issue["remediation"]) == (
        "WorkspaceNotResolved",
        "Name a folder that exists and that you may read.",
    )


def test_with_nothing_running_it_says_how_to_start(app: WorkspaceBuilder) -> None:
    result = app.machine.run("health")

    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        "Status: Unhealthy",
        "Connection: Not connected",
        f"Workspace: {app.root}",
        f"Solution: {app.root / 'App.slnx'}",
        "Resolution: CurrentDirectory",
        "Selection: Automatic",
        "Tools: 0",
        "Candidates:",
        f"- {app.root / 'App.slnx'}",
        "Issues:",
        "- [Fatal] HostNotStarted: No Host runs for this workspace.",
        "  next: Run 'uno-devserver start' in the workspace.",
    ]


def test_a_server_of_the_config_is_started_by_a_proxy(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(".devtools/host.config.jsonc", '{"mcpServer": {"command": "serve"}, "hotReload": []}')

    result = machine.run("health", "--json")

    assert result.exit_code == 1
    config, started, trust = result.json["issues"]
    assert (started["code"], "--mcp-app" in started["remediation"]) == ("HostNotStarted", True)
    assert "'uno-devserver inspect'" in started["remediation"]
    assert (trust["code"], "'uno-devserver trust'" in trust["remediation"]) == ("WorkspaceNotTrusted", True)
    assert (config["code"], "hotReload: it must be an object" in config["message"]) == ("ConfigInvalid", True)


def test_where_the_user_has_agreed_nothing_is_said_of_trust(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(".devtools/host.config.jsonc", '{"mcpServer": {"command": "serve"}}')
    assert machine.run("trust").exit_code == 0

    assert machine.run("health", "--json").issue_codes == ["HostNotStarted"]


def test_a_mistake_in_the_config_is_named_before_the_start_that_would_read_it(app: WorkspaceBuilder) -> None:
    path = app.root / ".devtools/host.config.jsonc"
    app.file(".devtools/host.config.jsonc", '{"proxy": {"waitCalls": 1}}')

    config, started = app.machine.run("health", "--json").json["issues"]

    assert config["message"] == f"{path}:1:25: proxy.waitCalls: it must be true or false."
    assert started["remediation"] == "Run 'uno-devserver start' in the workspace."


@pytest.mark.parametrize("broken", ['{"mcpServer": {"comm', '{"mcpServers": {}}'])
def test_an_unclear_config_starts_nothing_and_that_is_reported(
    workspace: WorkspaceBuilder, machine: Machine, broken: str
) -> None:
    path = workspace.root / ".devtools/host.config.jsonc"
    workspace.file(".devtools/host.config.jsonc", broken)

    config, started = machine.run("health", "--json").json["issues"]
    shown = machine.run("config")

    assert (config["code"], config["severity"], started["code"]) == ("ConfigInvalid", "Fatal", "HostNotStarted")
    assert config["message"].startswith(f"{path}:1:")
    assert config["remediation"].endswith("until then proxies start no server.")
    assert started["remediation"].startswith("Correct the config first.")
    assert "'uno-devserver start'" not in started["remediation"]
    assert "\n  server: not known\n" in shown.stdout
    assert f"{config['message']} {config['remediation']}" in shown.stdout


def test_a_problem_of_the_config_is_reported_once_beside_a_working_host(app: WorkspaceBuilder) -> None:
    app.file(".devtools/host.config.jsonc", '{"proxy": {"waitCalls": 1}}')

    result = health_with(app, bundled_host(), "--json")

    assert [issue["code"] for issue in result.json["issues"]].count("ConfigInvalid") == 1
    assert result.json["status"] == "Degraded"


def test_where_the_registry_cannot_be_read_it_does_not_claim_to_know(app: WorkspaceBuilder) -> None:
    registry = write(app.machine.data / "Uno Platform" / "DevServers", "a file")

    issue = app.machine.run("health", "--json").issue("HostNotStarted")

    assert issue["message"] == (
        f"Whether a Host runs for this workspace is not known. The registry {registry} cannot be read: Not a directory."
    )
    assert "folder" in issue["remediation"]


def test_in_a_folder_without_a_solution_it_says_what_is_missing(machine: Machine) -> None:
    result = machine.run("health")

    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[2:5] == ["Workspace: <unresolved>", "Solution: <none>", "Resolution: NoCandidates"]
    assert len([line for line in lines if line.startswith("  next: ")]) == 2


OF_UNO = re.compile(r"[Ss]olution|\bUno\b(?! Platform[/\\])|unoapp|dotnet|Resolution|Selection|\bHost\b")


@pytest.mark.parametrize("manifest", ["package.json", "pyproject.toml", "go.mod", "Cargo.toml"])
def test_in_the_folder_of_a_package_that_nothing_serves_it_does_not_speak_of_uno(
    machine: Machine, manifest: str
) -> None:
    write(machine.workspace / manifest, "")

    result = machine.run("health")

    assert result.exit_code == 1
    assert f"Folder: {machine.workspace}\n" in result.stdout
    assert "Run 'uno-devserver init'" in result.stdout
    assert OF_UNO.findall(result.stdout) == []


def test_in_the_folder_of_a_typed_command_that_crashes_it_quotes_its_lines_once_and_does_not_speak_of_uno(
    machine: Machine,
) -> None:
    write(machine.workspace / "server.py", "import sys\nsys.exit('no database\\n' + 'at\\n' * 10 + 'v20')")
    with Proxies(machine) as proxies:
        client = proxies.start("--watch", "--", sys.executable, "server.py")
        client.initialize()
        client.wait_state("Degraded")

        shown = wait_for(lambda: "does not start" in (text := machine.run("health").stdout) and text, "the crash")

    assert f"Folder: {machine.workspace}\n" in shown
    assert shown.count("no database") == shown.count("v20") == 1
    assert OF_UNO.findall(shown) == []


def test_as_json_the_report_is_one_object(app: WorkspaceBuilder) -> None:
    result = app.machine.run("health", "--json")

    assert (result.exit_code, result.json["status"], result.issue_codes) == (1, "Unhealthy", ["HostNotStarted"])
    assert (result.json["devServerVersion"], result.json["unoSdkVersion"]) == (__version__, "6.5.31")


def test_a_host_of_another_workspace_is_shown_but_is_not_ours(app: WorkspaceBuilder) -> None:
    other = app.machine.root / "other" / "Other.sln"

    result = health_with(app, bundled_host(), "--json", solution=str(other))

    assert result.issue_codes == ["HostNotStarted"]
    [server] = result.json["discovery"]["activeServers"]
    assert (server["solutionPath"], server["isInWorkspace"]) == (str(other), False)


def test_a_host_that_ended_without_signing_out_has_crashed(app: WorkspaceBuilder) -> None:
    registry = app.machine.data / "Uno Platform" / "DevServers"
    with StandInHost(app.machine.root, bundled_host()) as host:
        host.sign_in(registry, app.root / "App.slnx")

    result = app.machine.run("health", "--json")

    assert (result.issue_codes, result.json["discovery"]["activeServers"]) == (["HostCrashed"], None)
    assert f"process {host.pid}" in result.issue("HostCrashed")["message"]
    assert app.machine.run("list").exit_code == 0  # and removes it
    assert app.machine.run("health", "--json").issue_codes == ["HostNotStarted"]


def test_a_host_of_another_workspace_that_ended_is_not_ours(app: WorkspaceBuilder) -> None:
    registry = app.machine.data / "Uno Platform" / "DevServers"
    with StandInHost(app.machine.root, bundled_host()) as host:
        host.sign_in(registry, app.machine.root / "other" / "Other.sln")

    assert app.machine.run("health", "--json").issue_codes == ["HostNotStarted"]


# --- a Host that works ----------------------------------------------------------------------------------------------


def test_without_dotnet_an_uno_workspace_is_degraded_because_its_tools_cannot_come(plain: WorkspaceBuilder) -> None:
    result = health_with(plain.global_json({"Uno.Sdk": "6.5.31"}), bundled_host(), "--json")

    [issue] = result.json["issues"]
    assert (result.exit_code, result.json["status"]) == (1, "Degraded")
    assert (issue["code"], issue["severity"]) == ("DotNetNotFound", "Warning")
    assert issue["remediation"].startswith("Install the .NET SDK")


def test_without_dotnet_a_workspace_with_a_bundled_host_is_healthy(plain: WorkspaceBuilder) -> None:
    result = health_with(plain, bundled_host(), "--json")

    report = result.json
    assert (result.exit_code, report["status"], report["issues"]) == (0, "Healthy", [])
    assert (report["hostKind"], report["toolCount"], report["upstreamConnected"]) == ("bundled", 6, True)
    [server] = report["discovery"]["activeServers"]
    assert (report["hostProcessId"], report["hostEndpoint"]) == (server["processId"], server["mcpEndpoint"])
    assert report["startedAt"] == server["startTime"]


def test_a_bundled_host_of_a_folder_without_a_solution_is_healthy(machine: Machine) -> None:
    with StandInHost(machine.root, bundled_host()) as host:
        host.sign_in(machine.data / "Uno Platform" / "DevServers", None, machine.workspace)
        result = machine.run("health", "--json")

    assert (result.exit_code, result.json["status"], result.json["resolutionKind"]) == (0, "Healthy", "NoCandidates")


def test_the_text_has_the_lines_of_the_dotnet_tool_in_their_order(app: WorkspaceBuilder) -> None:
    record = json.loads((GOLDEN / "host" / "start" / "health-one-text.json").read_text("utf-8"))
    recorded_labels = _labels(record["stdout"].splitlines()[1:])  # without the banner

    result = health_with(app, bundled_host())

    assert result.exit_code == 0, result.stdout
    labels = _labels(result.stdout.splitlines())
    assert [label for label in labels if label in recorded_labels] == recorded_labels
    assert [label for label in labels if label not in recorded_labels] == [
        "Host",
        "Endpoint",
        "Add-Ins",
        "- colours 1.0",
    ]
    assert "Status: Healthy" in result.stdout
    assert "Tools: 6" in result.stdout
    assert "Host: bundled 0.2.0" in result.stdout
    assert "  Workspace Match: True" in result.stdout


def _labels(lines: list[str]) -> list[str]:
    """`Status`, `- PID` and the like; a line that is a bare path has none."""
    return [parts[0] for line in lines if len(parts := re.split(r":(?!\\)", line)) > 1]


def test_a_dotnet_host_with_its_recorded_answers_is_healthy(app: WorkspaceBuilder) -> None:
    result = health_with(app, dotnet_host(), "--json")

    assert (result.exit_code, result.json["status"], result.json["issues"]) == (0, "Healthy", [])
    assert (result.json["hostKind"], result.json["hostVersion"]) == ("dotnet", "6.0.0-real")
    assert result.json["toolCount"] > 5
    assert [addin["name"] for addin in result.json["addIns"]] == ["Sample.AddIn"]


@pytest.fixture
def started(plain: WorkspaceBuilder) -> Iterator[Callable[[], Result]]:
    """Start the real Host; it is stopped at the end."""
    yield lambda: plain.machine.run("start", "--trust", timeout=START_SECONDS)
    plain.machine.run("stop", timeout=START_SECONDS)


def test_the_real_host_is_healthy_without_dotnet(plain: WorkspaceBuilder, started: Callable[[], Result]) -> None:
    assert started().exit_code == 0

    result = plain.machine.run("health", "--json")

    assert (result.exit_code, result.json["status"], result.json["hostKind"]) == (0, "Healthy", "bundled")
    assert result.json["toolCount"] == 0, "its own report is no tool of the workspace"


@pytest.mark.parametrize(("bind", "is_open"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_host_that_is_open_to_the_network_is_shown_as_such(plain: WorkspaceBuilder, bind: str, is_open: bool) -> None:
    plain.machine.run("start", "--bind", bind, timeout=START_SECONDS)
    try:
        shown = plain.machine.run("health").stdout
    finally:
        plain.machine.run("stop", timeout=START_SECONDS)

    assert (f"open to the network and to other users, by --bind {bind}" in shown) is is_open


def test_the_real_host_reports_a_broken_add_in(plain: WorkspaceBuilder, started: Callable[[], Result]) -> None:
    plain.file(".devtools/addins/broken.py", "raise RuntimeError('out of colours')")
    assert started().exit_code == 0

    result = plain.machine.run("health", "--json")

    assert (result.exit_code, result.json["status"], result.issue_codes) == (1, "Degraded", ["AddInLoadFailed"])
    assert "out of colours" in result.issue("AddInLoadFailed")["message"]


def test_add_ins_that_are_not_run_for_lack_of_agreement_are_reported(plain: WorkspaceBuilder) -> None:
    plain.file(".devtools/addins/greeter.py", "def register(addin):\n    pass\n")
    machine = plain.machine
    try:
        first, again = (machine.run("start", "--json", timeout=START_SECONDS).json for _ in range(2))
        result = machine.run("health", "--json")
    finally:
        machine.run("stop", timeout=START_SECONDS)

    assert all("Not run until you agree" in str(start["warnings"]) for start in (first, again))
    assert (result.exit_code, result.json["status"], result.issue_codes) == (1, "Degraded", ["WorkspaceNotTrusted"])
    assert "greeter.py is not run: the user has not agreed to it" in result.issue("WorkspaceNotTrusted")["message"]


def test_add_ins_that_came_after_the_start_are_named_by_trust_start_and_health(plain: WorkspaceBuilder) -> None:
    machine = plain.machine
    code = "def register(addin):\n    pass\n"
    try:
        machine.run("start", "--json", timeout=START_SECONDS)
        plain.file(".devtools/addins/greeter.py", code)
        agreed = machine.run("trust").stdout
        late, again = machine.run("health", "--json"), machine.run("start", "--json").json
        reused = machine.run("start").stdout
        assert "\n  host: bundled\n" in reused, "also of a Host that was found"
        assert "Hot reload" not in reused, "it has not loaded what could be reloaded"
        assert (again["outcome"], again["host"]) == ("reused", "bundled")
        machine.run("start", "--restart", timeout=START_SECONDS)
        loaded, quiet = machine.run("health", "--json"), machine.run("trust").stdout
        machine.run("start", "--restart", "--addins", "", timeout=START_SECONDS)
        chosen = machine.run("health", "--json")
    finally:
        machine.run("stop", timeout=START_SECONDS)

    assert (LOADED_LATER in agreed, LOADED_LATER in quiet) == (True, False)
    assert (late.exit_code, late.json["status"], late.issue_codes) == (1, "Degraded", ["AddInNotLoaded"])
    assert "greeter.py" in late.issue("AddInNotLoaded")["message"]
    assert any("greeter.py" in warning and "--restart" in warning for warning in again["warnings"])
    assert (loaded.exit_code, loaded.issue_codes) == (0, [])
    assert (chosen.exit_code, chosen.issue_codes) == (0, []), "the user named other add-ins"


@pytest.mark.parametrize(
    ("dotnet", "next_step"), [(True, "'uno-devserver start --restart'"), (False, "Install the .NET SDK")]
)
def test_dotnet_add_ins_that_were_restored_after_the_start_are_named_by_start_and_health(
    plain: WorkspaceBuilder, dotnet: bool, next_step: str
) -> None:
    machine = plain.global_json({"Uno.Sdk": "6.5.31"}).machine
    if dotnet:
        machine.install_dotnet()
    try:
        machine.run("start", timeout=START_SECONDS)
        before = machine.run("health", "--json")
        plain.uno_6_5().project("App/App.csproj")  # as `dotnet restore` leaves it
        late, again = machine.run("health", "--json"), machine.run("start", "--json").json
        machine.run("stop")
        machine.run("start", "--host", "bundled", "--addins", "", timeout=START_SECONDS)
        chosen = machine.run("health", "--json")
    finally:
        machine.run("stop", timeout=START_SECONDS)

    assert "AddInNotLoaded" not in before.issue_codes
    assert (late.exit_code, late.json["status"]) == (1, "Degraded")
    issue = late.issue("AddInNotLoaded")
    assert "Uno.UI.App.Mcp" in issue["message"]
    assert next_step in issue["remediation"]
    assert any("Uno.UI.App.Mcp" in each and next_step in each for each in again["warnings"])
    assert "AddInNotLoaded" not in chosen.issue_codes, "the user named other add-ins"


def test_a_python_add_in_beside_a_dotnet_host_is_told_by_disco_and_health(app: WorkspaceBuilder) -> None:
    app.file(".devtools/addins/greeter.py", "def register(addin):\n    pass\n")

    for found in (health_with(app, dotnet_host(), "--json"), app.machine.disco()):
        assert "greeter.py" in found.issue("AddInNeedsBundledHost")["message"]


SLOW = """
import pathlib, time


def register(addin):
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.01)
"""


def test_loading_add_ins_are_awaited(plain: WorkspaceBuilder, started: Callable[[], Result], tmp_path: Path) -> None:
    plain.file(".devtools/addins/notes.py", SLOW.format(go=str(tmp_path / "go")))
    assert started().exit_code == 0
    asking = plain.machine.spawn("health", "--json")
    (tmp_path / "go").touch()

    out, _ = asking.communicate(timeout=START_SECONDS)

    report = json.loads(out)
    assert (report["status"], report["addInsLoading"]) == ("Healthy", False)
    assert [addin["loaded"] for addin in report["addIns"]] == [True]


def test_add_ins_that_never_load_are_loading(
    plain: WorkspaceBuilder, started: Callable[[], Result], tmp_path: Path
) -> None:
    plain.file(".devtools/addins/notes.py", SLOW.format(go=str(tmp_path / "go")))
    assert started().exit_code == 0

    result = plain.machine.run("health")

    (tmp_path / "go").touch()
    assert result.exit_code == 1
    assert "- [Warning] AddInsLoading: The Host is still loading its add-ins: notes." in result.stdout
    assert "- notes: loading" in result.stdout.splitlines()


def test_the_log_of_the_host_is_named(plain: WorkspaceBuilder, started: Callable[[], Result]) -> None:
    assert started().exit_code == 0

    [line] = [line for line in plain.machine.run("health").stdout.splitlines() if line.startswith("Log: ")]

    assert "Now listening on" in Path(line.removeprefix("Log: ")).read_text()


def test_a_proxy_that_has_just_started_shows_only_what_it_knows(machine: Machine, processes: Processes) -> None:
    pid = processes.start().pid
    status = {"processId": pid, "created": process_started(pid), "state": "Initializing", "status": "Unhealthy"}
    about = {"directory": str(machine.workspace), "issues": []}
    write(machine.state / "proxies" / f"{pid}.json", json.dumps({**status, **about}))

    lines = machine.run("health").stdout.splitlines()

    assert lines[lines.index("Proxies:") :] == ["Proxies:", f"- PID: {pid} (Initializing)"]


def test_what_a_proxy_is_about_to_know_is_awaited(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, object] = {"state": "Connected", "listsFresh": True, "issues": []}
    unknown = {**known, "issues": [warning("HealthNotKnown", "The add-ins have not been looked at yet.").to_json()]}
    told = iter([[unknown], [unknown], [known]])
    monkeypatch.setattr("uno_devserver.cli.health.proxies_of_workspace", lambda _: next(told))

    assert settled_proxies(resolve(str(machine.workspace))) == [known]


# --- a Host that does not -------------------------------------------------------------------------------------------


def test_a_host_without_mcp_is_unhealthy_although_it_answers(app: WorkspaceBuilder) -> None:
    result = health_with(app, [answer("GET /", 404)], "--json")

    assert (result.exit_code, result.json["status"]) == (1, "Unhealthy")
    assert (result.issue_codes, result.json["upstreamConnected"]) == (["HostMcpEndpointNotAvailable"], False)


def test_an_add_in_that_was_not_loaded_is_named_with_the_reason_and_the_next_step(plain: WorkspaceBuilder) -> None:
    broken = {"name": "b", "version": None, "assemblyPath": "/ws/b.py", "loaded": False, "error": "SyntaxError"}

    result = health_with(plain, bundled_host(status="Degraded", addIns=[broken]))

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = lines.index("- [Warning] AddInLoadFailed: The add-in b (/ws/b.py) was not loaded: SyntaxError.")
    assert lines[at + 1].startswith("  next: ")
    assert lines[0] == "Status: Degraded"
    assert "- b: not loaded" in lines


def test_a_registered_process_that_does_not_listen_is_unreachable(app: WorkspaceBuilder) -> None:
    machine = app.machine
    with StandInHost(machine.root, []) as gone:
        port = gone.port
    with StandInHost(machine.root, []) as host:
        host.port = port
        host.sign_in(machine.data / "Uno Platform" / "DevServers", app.root / "App.slnx")
        result = machine.run("health", "--json")

    assert (result.exit_code, result.json["status"]) == (1, "Degraded")
    assert f"http://localhost:{port}/mcp refuses connections." in result.issue("HostUnreachable")["message"]


def test_what_a_host_says_cannot_move_the_cursor(plain: WorkspaceBuilder) -> None:
    broken = {"name": "b\x1b[2J", "version": None, "assemblyPath": None, "loaded": False, "error": "x\x07"}

    result = health_with(plain, bundled_host(status="Degraded", addIns=[broken]))

    assert "b\\x1b[2J" in result.stdout
    assert not {"\x1b", "\x07"} & set(result.stdout)


# --- several solutions ----------------------------------------------------------------------------------------------


@pytest.fixture
def two(app: WorkspaceBuilder) -> WorkspaceBuilder:
    return app.solution("Other.slnx")


def test_of_several_solutions_the_report_is_about_the_one_that_has_a_host(two: WorkspaceBuilder) -> None:
    result = health_with(two, bundled_host(), "--json", solution="Other.slnx")

    assert (result.json["status"], result.issue_codes) == ("Healthy", [])
    assert result.json["selectedSolutionPath"] == str(two.root / "Other.slnx")
    assert result.json["upstreamConnected"] is True


def test_a_solution_that_is_named_ends_the_doubt(two: WorkspaceBuilder) -> None:
    result = health_with(two, bundled_host(), "--json", "--solution", "Other.slnx", solution="Other.slnx")

    assert (result.exit_code, result.json["selectedSolutionPath"]) == (0, str(two.root / "Other.slnx"))


def test_the_host_of_the_chosen_solution_comes_before_others_of_the_workspace(two: WorkspaceBuilder) -> None:
    machine = two.machine
    registry = machine.data / "Uno Platform" / "DevServers"
    folders = [machine.root / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with StandInHost(folders[0], bundled_host()) as first, StandInHost(folders[1], bundled_host(toolCount=2)) as second:
        first.sign_in(registry, two.root / "App.slnx")
        second.sign_in(registry, two.root / "Other.slnx")
        chosen = {name: machine.run("health", "--json", "--solution", name) for name in ("App.slnx", "Other.slnx")}

    assert [result.json["toolCount"] for result in chosen.values()] == [6, 1]
    assert [len(result.json["discovery"]["activeServers"]) for result in chosen.values()] == [2, 2]


def test_solution_dir_names_the_workspace_from_elsewhere(plain: WorkspaceBuilder, tmp_path: Path) -> None:
    machine = plain.machine
    with StandInHost(machine.root, bundled_host()) as host:
        host.sign_in(machine.data / "Uno Platform" / "DevServers", plain.root / "App.slnx")
        result = machine.run("health", "--json", "--solution-dir", str(plain.root), cwd=tmp_path)

    assert (result.exit_code, result.json["selectionSource"]) == (0, "UserSelected")
