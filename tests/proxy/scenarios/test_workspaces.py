"""Which workspace? None, several, one that appears, one that the client names, one that nobody trusts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.golden import GOLDEN
from support.machine import Machine
from support.proxies import Proxies, ProxyClient
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder

from .conftest import WORKBENCH, Workbench

OWN = ["uno_health", "uno_discover_tools", "uno_execute_tool"]


def addins_in(folder: Path) -> Path:
    target = folder / ".devtools" / "addins" / "workbench.py"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(WORKBENCH, target)
    return folder


def issue(report: dict[str, Any], code: str) -> dict[str, str]:
    found = [issue for issue in report["issues"] if issue["code"] == code]
    assert len(found) == 1, f"{code} in {json.dumps(report['issues'], indent=1)}"
    return dict(found[0])


# --- none -------------------------------------------------------------------------------------------------------------


def test_without_a_workspace_the_proxy_answers_and_health_says_what_to_do(proxies: Proxies) -> None:
    client = proxies.start()
    client.initialize(capabilities={"roots": {}})
    client.replies["roots/list"] = lambda _: {"roots": []}

    report = client.wait_state("Degraded")

    assert report["status"] == "Unhealthy"
    assert report["resolutionKind"] == "NoCandidates"
    assert issue(report, "HostNotStarted")["severity"] == "Fatal"
    assert issue(report, "NoSolutionFound")["remediation"]
    assert "uno_health" in client.tools()
    assert client.call_result("echo", text="x")["isError"] is True


def test_when_add_ins_appear_in_the_folder_it_starts_by_itself(proxies: Proxies, machine: Machine) -> None:
    client = proxies.start()
    client.initialize(capabilities={"roots": {}})
    client.replies["roots/list"] = lambda _: {"roots": []}
    client.wait_state("Degraded")

    addins_in(machine.workspace)

    client.wait_connected()
    assert client.call("echo", text="it is there") == "it is there"
    assert client.heard("notifications/tools/list_changed")


# --- several ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    """Two solutions side by side, on a machine without .NET."""
    return workspace.global_json({"Uno.Sdk": "6.5.31"}).solution("A.slnx", []).solution("B.slnx", [])


def test_of_several_solutions_none_is_guessed_and_a_tool_chooses(proxies: Proxies, two: WorkspaceBuilder) -> None:
    client = proxies.start()
    client.initialize(capabilities={"roots": {}})
    client.replies["roots/list"] = lambda _: {"roots": []}
    report = client.wait_health(lambda report: report["resolutionKind"] == "Ambiguous", "ambiguous")
    assert sorted(report["candidateSolutions"]) == [str(two.root / "A.slnx"), str(two.root / "B.slnx")]
    assert "uno_app_select_solution" in issue(report, "WorkspaceAmbiguous")["remediation"]

    result = client.call_result("uno_app_select_solution", solutionPath=str(two.root / "B.slnx"))

    told = json.loads(result["content"][0]["text"])
    assert list(told) == list(_recorded_selection("fs"))
    assert (told["status"], told["devServerAction"]) == ("started", "Start")
    assert told["selectedSolutionPath"] == str(two.root / "B.slnx")
    report = client.wait_connected()
    assert (report["selectedSolutionPath"], report["selectionSource"]) == (str(two.root / "B.slnx"), "UserSelected")


def test_the_solution_can_be_chosen_again(proxies: Proxies, two: WorkspaceBuilder) -> None:
    client = proxies.start()
    client.initialize()

    def choose(name: str, **more: object) -> str:
        path = str(two.root / name)
        result = client.call_result("uno_app_select_solution", solutionPath=path, **more)
        return str(json.loads(result["content"][0]["text"])["status"])

    client.wait_health(lambda report: report["resolutionKind"] == "Ambiguous", "ambiguous")
    assert choose("A.slnx") == "started"
    first = client.wait_connected()["hostProcessId"]
    assert choose("A.slnx") == "already_selected"
    assert choose("B.slnx") == "restarted"
    second = client.wait_health(
        lambda report: report["connectionState"] == "Connected" and report["hostProcessId"] != first, "restarted"
    )
    assert second["selectedSolutionPath"] == str(two.root / "B.slnx")
    assert "HostCrashed" not in client.issue_codes()
    assert choose("B.slnx", forceRestart=True) == "restarted"
    third = client.wait_health(
        lambda report: (
            report["connectionState"] == "Connected" and report["hostProcessId"] not in (first, second["hostProcessId"])
        ),
        "restarted again",
    )
    assert third["proxy"]["lastExit"] is None, "a restart that was wanted is no crash"


def test_a_choice_that_is_no_solution_of_the_workspace_is_rejected(proxies: Proxies, two: WorkspaceBuilder) -> None:
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: report["resolutionKind"] == "Ambiguous", "ambiguous")
    recorded = _recorded_selection("ns")

    for path in (f"{two.root}/none.sln", "/elsewhere/App.sln"):
        result = client.call_result("uno_app_select_solution", solutionPath=path)
        told = json.loads(result["content"][0]["text"])
        assert result["isError"] is True, path
        assert (told["status"], told["devServerAction"]) == (recorded["status"], recorded["devServerAction"])
        assert [issue["code"] for issue in told["issues"]] == [issue["code"] for issue in recorded["issues"]]
        names = ("candidate", "uno_health", "uno_app_select_solution", str(two.root / "A.slnx"))
        assert all(name in told["message"] for name in names), "what an agent needs next"

    for arguments in ({}, {"solutionPath": 3}, {"solutionPath": ""}, {"solutionPath": "a.sln"}):
        result = client.call_result("uno_app_select_solution", **arguments)
        assert result["isError"] is True, arguments
        assert "solutionPath" in result["content"][0]["text"]


def _recorded_selection(request: str) -> dict[str, Any]:
    """What the .NET proxy answered to uno_app_select_solution."""
    path = GOLDEN / "host" / "mcp-app" / "cancel-concurrent-restart.json"
    lines = [
        entry["line"]
        for entry in json.loads(path.read_text("utf-8"))["log"]
        if entry.get("dir") == "<" and "line" in entry
    ]
    message = next(message for message in map(json.loads, lines) if message.get("id") == request)
    told: dict[str, Any] = json.loads(message["result"]["content"][0]["text"])
    return told


def test_a_folder_whose_name_is_no_text_is_a_workspace_too(proxies: Proxies, machine: Machine) -> None:
    folder = Path(os.fsdecode(os.fsencode(machine.root) + b"/w \xff;"))
    addins_in(folder)

    client = proxies.connected(cwd=folder)

    assert client.call("echo", text="hi") == "hi"
    assert client.health()["status"] in ("Healthy", "Degraded")


def test_with_solution_dir_the_workspace_is_that_one(proxies: Proxies, machine: Machine) -> None:
    there = addins_in(machine.root / "there")

    client = proxies.connected("--solution-dir", str(there))

    report = client.health()
    assert report["effectiveWorkspaceDirectory"] == str(there)
    assert report["selectionSource"] == "UserSelected"
    assert client.call("echo", text="hi") == "hi"


# --- the client names it: roots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("capability", [{}, {"listChanged": True}])
def test_the_roots_of_the_client_are_its_workspace(
    proxies: Proxies, machine: Machine, capability: dict[str, bool]
) -> None:
    there = addins_in(machine.root / "with space é")
    client = proxies.start()
    client.replies["roots/list"] = lambda _: {"roots": [{"uri": there.as_uri(), "name": "project"}]}
    client.initialize(capabilities={"roots": capability})

    report = client.wait_connected()

    assert report["effectiveWorkspaceDirectory"] == str(there)
    assert report["selectionSource"] == "RootsConfirmed"
    assert client.call("echo", text="hi") == "hi"
    assert "uno_app_initialize" not in client.tools()


def test_roots_that_changed_are_asked_for_again(proxies: Proxies, machine: Machine) -> None:
    there = addins_in(machine.root / "there")
    client = proxies.start()
    client.replies["roots/list"] = lambda _: {"roots": []}
    client.initialize(capabilities={"roots": {"listChanged": True}})
    client.wait_state("Degraded")

    client.replies["roots/list"] = lambda _: {"roots": [{"uri": there.as_uri()}]}
    client.notify("notifications/roots/list_changed")

    assert client.wait_connected()["effectiveWorkspaceDirectory"] == str(there)
    assert client.call("echo", text="hi") == "hi"


def test_a_client_that_never_answers_roots_list_still_has_tools_and_the_process_ends(
    proxies: Proxies, bench: Workbench
) -> None:
    """The .NET proxy was recorded without an answer to tools/list, and alive 40 s after its client had gone."""
    client = proxies.start()
    client.replies["roots/list"] = None
    client.initialize(capabilities={"roots": {}})

    assert set(OWN) <= set(client.tools())
    client.wait_connected()
    assert client.call("echo", text="hi") == "hi"
    client.close_stdin()
    assert client.exit_code(3) == 0


# --- the client names it: uno_app_initialize --------------------------------------------------------------------------


@pytest.fixture
def lost(proxies: Proxies) -> ProxyClient:
    """A client without roots, in a folder that is no workspace."""
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: report["proxy"]["fallback"], "in fallback mode")
    return client


def test_without_roots_and_without_a_workspace_there_is_a_tool_that_names_it(lost: ProxyClient) -> None:
    log = json.loads((GOLDEN / "host" / "mcp-app" / "force-roots-fallback.json").read_text("utf-8"))["log"]
    messages = [json.loads(entry["line"]) for entry in log if entry.get("dir") == "<" and "line" in entry]
    recorded = next(message["result"]["tools"] for message in messages if message.get("id") == 1)

    tools = lost.result("tools/list")["tools"]

    assert [tool["name"] for tool in tools] == [tool["name"] for tool in recorded]
    ours = next(tool for tool in tools if tool["name"] == "uno_app_initialize")
    theirs = next(tool for tool in recorded if tool["name"] == "uno_app_initialize")
    assert ours["inputSchema"]["required"] == theirs["inputSchema"]["required"]
    assert ours["inputSchema"]["properties"].keys() == theirs["inputSchema"]["properties"].keys()
    assert ours["annotations"].items() >= theirs["annotations"].items()
    report = lost.health()
    assert "uno_app_initialize" in issue(report, "HostNotStarted")["remediation"]


def test_a_modern_client_with_roots_names_its_workspace_by_the_tool_too(proxies: Proxies, machine: Machine) -> None:
    """It can be asked for its roots only inside a call of its own."""
    there = addins_in(machine.root / "there")
    client = proxies.start()
    client.initialize(modern=True, capabilities={"roots": {}})
    client.wait_health(lambda report: report["proxy"]["fallback"], "in fallback mode")

    assert "uno_app_initialize" in client.tools()
    assert json.loads(client.call("uno_app_initialize", workspaceDirectory=str(there)))["status"] == "ready"
    assert client.call("echo", text="hi") == "hi"


@pytest.mark.parametrize("name", ["uno_app_initialize", "uno_app_set_roots"])
def test_the_tool_that_names_the_workspace_starts_it(lost: ProxyClient, machine: Machine, name: str) -> None:
    there = addins_in(machine.root / "there")

    told = json.loads(lost.call(name, workspaceDirectory=str(there)))

    assert list(told)[:4] == ["status", "workspaceDirectory", "toolCount", "message"]
    assert (told["status"], told["workspaceDirectory"]) == ("ready", str(there))
    assert told["toolCount"] > 5
    assert lost.call("echo", text="hi") == "hi"
    assert "uno_app_initialize" not in lost.tools()
    assert lost.heard("notifications/tools/list_changed")


def test_with_force_roots_fallback_even_a_workspace_waits_to_be_named(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.start("--force-roots-fallback")
    client.initialize(capabilities={"roots": {}})
    client.wait_health(lambda report: report["proxy"]["fallback"], "in fallback mode")
    assert "uno_app_initialize" in client.tools()
    wait_for(lambda: set(proxies.processes()) == {client.process.pid, client.pid})  # no Host was started

    told = json.loads(client.call("uno_app_initialize", workspaceDirectory=str(bench.machine.workspace)))

    assert told["status"] == "ready"
    assert client.call("echo", text="hi") == "hi"


@pytest.mark.parametrize("kind", ["uno", "empty"])
def test_after_a_folder_was_named_without_a_solution_health_has_it_as_confirmed(
    proxies: Proxies, workspace: WorkspaceBuilder, kind: str
) -> None:
    folder = workspace.root
    if kind == "uno":
        workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    else:
        folder = workspace.machine.root / "empty"
        folder.mkdir()
    client = proxies.start("--force-roots-fallback", cwd=workspace.machine.root)
    client.initialize()

    told = json.loads(client.call("uno_app_initialize", workspaceDirectory=str(folder)))

    assert told["status"] == ("ready" if kind == "uno" else "degraded")
    report = client.health()
    assert (report["selectionSource"], report["effectiveWorkspaceDirectory"]) == ("RootsConfirmed", str(folder))


def test_a_solution_that_is_named_by_its_path_before_any_workspace_starts_it(
    proxies: Proxies, workspace: WorkspaceBuilder
) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    elsewhere = workspace.machine.root / "empty"
    elsewhere.mkdir()
    client = proxies.start("--force-roots-fallback", cwd=elsewhere)
    client.initialize()

    told = json.loads(client.call("uno_app_select_solution", solutionPath=str(workspace.root / "App.slnx")))

    assert (told["status"], told["effectiveWorkspaceDirectory"]) == ("started", str(workspace.root))
    report = client.wait_connected()
    assert (report["selectionSource"], report["selectedSolutionPath"]) == (
        "UserSelected",
        str(workspace.root / "App.slnx"),
    )


def test_the_lines_for_which_scripts_wait_come_from_a_proxy_too(proxies: Proxies, workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    client = proxies.start("-l", "Trace")
    client.initialize()

    host = client.wait_connected()["hostProcessId"]

    entry = workspace.machine.data / "Uno Platform" / "DevServers" / f"devserver-{host}.json"
    assert f"DevServer registered: {entry}\n" in client.stderr
    assert f"monitor with the folder {workspace.root}\n" in client.stderr


# --- its health -------------------------------------------------------------------------------------------------------


def test_health_is_not_called_healthy_before_it_is_known(proxies: Proxies, workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_sdk().project("App/App.csproj", restored=False).solution("App.slnx")
    client = proxies.start()
    client.initialize()
    seen: list[str] = []

    def knows(report: dict[str, Any]) -> bool:
        seen.append(report["status"])
        return "DevServerPackageNotCached" in str(report["issues"])

    report = client.wait_health(knows, "aware of what is missing")

    assert "Healthy" not in seen
    assert "HealthNotKnown" not in [issue["code"] for issue in report["issues"] if report["upstreamConnected"]]


def test_health_of_a_host_that_was_found_running_is_that_of_one_that_was_started(
    proxies: Proxies, workspace: WorkspaceBuilder
) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_sdk().project("App/App.csproj", restored=False).solution("App.slnx")

    def health() -> tuple[Any, ...]:
        client = proxies.connected()
        report = client.wait_health(
            lambda report: "HealthNotKnown" not in str(report["issues"]), "sure of what it reports"
        )
        client.close_stdin()
        client.ends()
        return report["status"], report["unoSdkVersion"], sorted(issue["code"] for issue in report["issues"])

    started = health()
    workspace.machine.run("start")
    try:
        found = health()
    finally:
        workspace.machine.run("stop")

    assert found == started
    assert found[:2] == ("Degraded", "6.5.31")


def test_who_subscribes_to_the_health_is_told_when_it_changes(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    client.wait_health(lambda report: report["status"] == "Healthy", "healthy")
    client.result("resources/subscribe", {"uri": "uno://health"})
    heard = len(client.heard("notifications/resources/updated"))

    os.kill(client.health()["hostProcessId"], 9)

    assert client.hear("notifications/resources/updated", after=heard) == {"uri": "uno://health"}
    client.wait_connected()
    client.result("resources/unsubscribe", {"uri": "uno://health"})


def test_from_a_folder_of_the_workspace_a_proxy_serves_the_workspace(
    proxies: Proxies, workspace: WorkspaceBuilder
) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    clients = [proxies.connected(cwd=folder) for folder in (workspace.root / "App", workspace.root)]

    inner, outer = (
        client.wait_health(lambda report: report["proxy"]["catalogueAgeSeconds"] is not None, "with a catalogue")
        for client in clients
    )

    assert len(list((workspace.machine.state / "catalogue").glob("*.json"))) == 1
    assert inner["hostProcessId"] == outer["hostProcessId"]
    assert inner["selectedSolutionPath"] == outer["selectedSolutionPath"] == str(workspace.root / "App.slnx")


# --- nobody has agreed ------------------------------------------------------------------------------------------------


SPY = """
import pathlib
pathlib.Path({path!r}).touch()

def register(addin):
    addin.tool(name="spy")(lambda: "spied")
"""


@pytest.fixture
def hostile(machine: Machine) -> Path:
    """The mark that the code of a workspace leaves when it runs."""
    mark = machine.root / "it-ran"
    write(machine.workspace / ".devtools" / "addins" / "spy.py", SPY.format(path=str(mark)))
    return mark


@pytest.fixture
def strangers(machine: Machine) -> Iterator[Proxies]:
    with Proxies(machine) as proxies:
        yield proxies


def test_code_of_a_workspace_that_nobody_trusts_does_not_run_and_health_says_how_to_agree(
    strangers: Proxies, hostile: Path
) -> None:
    client = strangers.start()
    client.initialize()

    report = client.wait_health(lambda report: "WorkspaceNotTrusted" in str(report["issues"]), "aware of the stranger")
    client.wait_state("Connected", "Degraded")

    assert "uno-devserver trust" in issue(report, "WorkspaceNotTrusted")["remediation"]
    assert "spy" not in client.tools()
    assert not hostile.exists()


def test_an_add_in_that_is_written_while_the_host_runs_needs_an_agreement_and_health_says_so(
    strangers: Proxies, machine: Machine
) -> None:
    write(machine.workspace / "global.json", '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
    write(machine.workspace / "App.slnx", "<Solution />")
    mark, addin = machine.root / "it-ran", machine.workspace / ".devtools" / "addins" / "spy.py"
    client = strangers.start()
    client.initialize()
    client.wait_connected()
    assert "WorkspaceNotTrusted" not in client.issue_codes(), "there is nothing to agree to"

    write(addin, SPY.format(path=str(mark)))
    client.wait_health(lambda report: "WorkspaceNotTrusted" in str(report["issues"]), "aware of the new code")
    assert not mark.exists()
    addin.unlink()

    client.wait_health(lambda report: "WorkspaceNotTrusted" not in str(report["issues"]), "content again")


@pytest.mark.parametrize("first", [True, False], ids=["the first agreement ever", "one more"])
def test_when_the_user_agrees_the_code_runs_within_a_moment(
    strangers: Proxies, hostile: Path, machine: Machine, first: bool
) -> None:
    if not first:
        assert machine.run("trust", "--solution-dir", str(addins_in(machine.root / "there"))).exit_code == 0
    client = strangers.start()
    client.initialize()
    client.wait_state("Degraded")

    assert machine.run("trust").exit_code == 0

    client.wait_health(
        lambda report: report["connectionState"] != "Degraded", "aware of it", seconds=8
    )  # without a notice it would take 10 s
    client.wait_connected()
    assert client.call("spy") == "spied"
    assert "WorkspaceNotTrusted" not in client.issue_codes()
    assert hostile.exists()


def test_a_config_that_was_changed_since_is_told_as_the_reason(
    strangers: Proxies, hostile: Path, machine: Machine
) -> None:
    assert machine.run("trust").exit_code == 0
    write(machine.workspace / ".devtools" / "host.config.jsonc", "{}")
    client = strangers.start()
    client.initialize()

    report = client.wait_state("Degraded")

    assert "its config was changed since the user agreed" in issue(report, "WorkspaceNotTrusted")["message"]
    assert not hostile.exists()


def test_a_stranger_that_the_agent_names_is_told_as_such_and_another_can_be_named(
    strangers: Proxies, hostile: Path, machine: Machine
) -> None:
    there = addins_in(machine.root / "there")
    assert machine.run("trust", "--solution-dir", str(there)).exit_code == 0
    empty = machine.root / "empty"
    empty.mkdir()
    client = strangers.start(cwd=empty)
    client.initialize()
    client.wait_health(lambda report: report["proxy"]["fallback"], "in fallback mode")

    told = json.loads(client.call("uno_app_initialize", workspaceDirectory=str(machine.workspace)))
    assert told["status"] == "degraded"
    assert "uno-devserver trust" in issue(told, "WorkspaceNotTrusted")["remediation"]
    assert "uno-devserver trust" in told["message"]
    assert "uno_app_initialize" in client.tools()
    told = json.loads(client.call("uno_app_initialize", workspaceDirectory=str(there)))

    assert told["status"] == "ready"
    assert client.call("echo", text="hi") == "hi"
    assert "uno_app_initialize" not in client.tools()
    assert not hostile.exists()


def test_the_workspace_of_a_stranger_cannot_agree_for_itself(
    strangers: Proxies, hostile: Path, machine: Machine
) -> None:
    write(machine.workspace / ".devtools" / "host.config.jsonc", '{"trusted": true, "trust": true}')
    write(machine.workspace / ".env", "UNO_DEVSERVER_TRUST=1")
    client = strangers.start()
    client.initialize()

    client.wait_state("Connected", "Degraded")

    assert "WorkspaceNotTrusted" in client.issue_codes()
    assert not hostile.exists()
