"""The judgement over a dev server: each code with its severity, and when .NET does not matter."""

from __future__ import annotations

import json

import pytest

from support.golden import GOLDEN
from uno_devserver.discovery.discover import Discovery, SdkInfo, ToolPackage
from uno_devserver.discovery.dotnet import DotNet
from uno_devserver.discovery.entry_points import AddInDiscovery, DiscoveredAddIn
from uno_devserver.discovery.packages import SdkPackages
from uno_devserver.instances.health import HealthFacts, HealthReport, HealthStatus, health
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.probe import HostAddIn, Probe
from uno_devserver.instances.registry import RegisteredServer
from uno_devserver.instances.workspace_servers import ActiveServer
from uno_devserver.issues import REMEDIES, Issue, fatal, warning
from uno_devserver.system.processes import Process
from uno_devserver.workspace.global_json import GlobalJson, UnoSdk
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace

WORKSPACE = Workspace(
    requested_directory="/ws",
    working_directory="/ws",
    effective_directory="/ws",
    solution="/ws/App.sln",
    global_json="/ws/global.json",
    kind=ResolutionKind.CurrentDirectory,
    source=SelectionSource.Automatic,
    candidates=("/ws/App.sln",),
    config=None,
    issues=(),
)
UNRESOLVED = WORKSPACE.replace(effective_directory=None, solution=None, global_json=None)
ASSEMBLY = DiscoveredAddIn("Sample.AddIn", "1.0.0", "/cache/Sample.AddIn.dll", "manifest")
DISCOVERY = Discovery(
    WORKSPACE,
    SdkInfo(
        GlobalJson("/ws/global.json", UnoSdk("Uno.Sdk", "6.5.31"), None, {}),
        "/cache/uno.sdk/6.5.31",
        SdkPackages(None, (), None),
        (),
    ),
    DotNet("10.0.401", "net10.0", "installed"),
    ToolPackage("6.5.153", "/cache/host", "/cache/host/Uno.UI.RemoteControl.Host.dll"),
    False,
    ToolPackage(),
    AddInDiscovery((ASSEMBLY,), "manifest", possible=True, duration_ms=1),
    ("/cache",),
    152,
    (),
)
WITHOUT_DOTNET = DISCOVERY.replace(
    dotnet=DotNet(issue=warning("DotNetNotFound", "No dotnet.")),
    host=ToolPackage(),
    addins=AddInDiscovery(),
    issues=(
        warning("DotNetNotFound", "No dotnet."),
        warning("SdkNotInCache", "Uno.Sdk is not there."),
        warning("AddInDiscoveryFallback", "None found."),
    ),
)
LOADED = HostAddIn("colours", "1.0", "/ws/colours.py", True, None)
BUNDLED = Probe(True, True, kind=HostKind.BUNDLED, status="Healthy", version="0.2.0", add_ins=(LOADED,), tool_count=3)
DOTNET = Probe(True, True, kind=HostKind.DOTNET, status="Healthy", version="6.5.153", tool_count=9)

IDLE = HealthFacts("0.2.0", DISCOVERY)
RUNNING = IDLE.replace(started=True, process_id=42, endpoint="http://localhost:5651/mcp", host=DOTNET)


def found(report: HealthReport) -> list[tuple[str, str]]:
    return [(issue.code, issue.severity.value) for issue in report.issues]


def only_issue(report: HealthReport) -> Issue:
    [issue] = report.issues
    return issue


# --- status ---------------------------------------------------------------------------------------------------------


def test_a_host_that_answers_in_a_complete_workspace_is_healthy() -> None:
    report = health(RUNNING)

    assert (report.status, report.issues) == (HealthStatus.HEALTHY, ())


def test_a_warning_makes_it_degraded_and_anything_fatal_unhealthy() -> None:
    warned = DISCOVERY.replace(issues=(warning("RestoreStale", "App.csproj changed."),))
    broken = DISCOVERY.replace(issues=(*warned.issues, fatal("DotNetNotFound", "No dotnet.")))

    assert health(RUNNING.replace(discovery=warned)).status is HealthStatus.DEGRADED
    assert health(RUNNING.replace(discovery=broken)).status is HealthStatus.UNHEALTHY


@pytest.mark.parametrize("code", ["PackageVersionOverridden", "AddInConditionUnknown", "AddInTargetsDeprecated"])
def test_what_works_as_it_is_makes_nobody_ill(code: str) -> None:
    remark = DISCOVERY.replace(issues=(warning(code, "Worth knowing."),))

    assert health(RUNNING.replace(discovery=remark)).status is HealthStatus.HEALTHY


def test_an_issue_that_two_sources_report_is_told_once() -> None:
    twice = warning("RestoreStale", "App.csproj changed.")

    assert len(health(RUNNING.replace(discovery=DISCOVERY.replace(issues=(twice, twice)))).issues) == 1


# --- the Host -------------------------------------------------------------------------------------------------------


def test_where_no_host_runs_the_next_step_is_to_start_one() -> None:
    issue = only_issue(health(IDLE))

    assert (issue.code, issue.fatal) == ("HostNotStarted", True)
    assert "'uno-devserver start'" in issue.remediation


def test_where_there_is_no_workspace_that_comes_before_starting() -> None:
    nothing = UNRESOLVED.replace(
        kind=ResolutionKind.NoCandidates, candidates=(), issues=(warning("NoSolutionFound", "No solution."),)
    )

    report = health(IDLE.replace(discovery=DISCOVERY.replace(workspace=nothing, issues=nothing.issues)))

    assert found(report) == [("HostNotStarted", "Fatal"), ("NoSolutionFound", "Warning")]
    assert report.issues[0].remediation != REMEDIES["HostNotStarted"]


def test_a_host_that_does_not_answer_is_unreachable_and_its_port_says_why() -> None:
    report = health(RUNNING.replace(host=Probe(problem="refuses connections")))

    issue = only_issue(report)
    assert (report.status, issue.code) == (HealthStatus.DEGRADED, "HostUnreachable")
    assert "process 42" in issue.message
    assert "http://localhost:5651/mcp refuses connections." in issue.message


@pytest.mark.parametrize("addins", [(), (ASSEMBLY,)], ids=["no add-in", "an add-in"])
def test_a_host_without_mcp_is_fatal_and_the_usual_cause_is_an_add_in(addins: tuple[DiscoveredAddIn, ...]) -> None:
    discovery = DISCOVERY.replace(addins=DISCOVERY.addins.replace(found=addins))

    issue = only_issue(health(RUNNING.replace(discovery=discovery, host=Probe(answers=True))))

    assert (issue.code, issue.fatal) == ("HostMcpEndpointNotAvailable", True)
    assert "add-in" in issue.message
    assert ("dotnet restore" in issue.remediation) == (not addins)


def test_a_host_that_refuses_mcp_is_an_upstream_error() -> None:
    issue = only_issue(health(RUNNING.replace(host=DOTNET.replace(error="'initialize' failed with HTTP status 500"))))

    assert (issue.code, issue.fatal) == ("UpstreamError", True)
    assert issue.message.endswith("HTTP status 500.")


def test_a_proxy_judges_its_connection_by_itself() -> None:
    judged = warning("HostUnreachable", "Not connected yet.")

    report = health(RUNNING.replace(host=Probe(), upstream_issues=(judged,)))

    assert report.issues == (judged,)


def test_of_two_judgements_over_the_same_the_first_counts() -> None:
    mild, strict = (judge("RestoreStale", "App.csproj changed.") for judge in (warning, fatal))

    report = health(RUNNING.replace(upstream_issues=(mild,), discovery=DISCOVERY.replace(issues=(strict,))))

    assert report.issues == (mild,)


# --- its add-ins ----------------------------------------------------------------------------------------------------


def test_every_add_in_that_was_not_loaded_is_named_with_its_reason() -> None:
    broken = [HostAddIn(name, None, f"/ws/{name}.py", False, f"{name} is broken.") for name in ("a", "b")]

    report = health(RUNNING.replace(host=BUNDLED.replace(status="Degraded", add_ins=(LOADED, *broken))))

    assert found(report) == [("AddInLoadFailed", "Warning")] * 2
    assert [issue.message for issue in report.issues] == [
        "The add-in a (/ws/a.py) was not loaded: a is broken.",
        "The add-in b (/ws/b.py) was not loaded: b is broken.",
    ]


def test_an_add_in_of_which_a_part_failed_is_told_too() -> None:
    partly = LOADED.replace(error="a tool has a bad schema")

    issue = only_issue(health(RUNNING.replace(host=BUNDLED.replace(status="Degraded", add_ins=(partly,)))))

    assert issue.message == "The add-in colours 1.0 (/ws/colours.py) works only in part: a tool has a bad schema."


def test_calls_that_hold_all_threads_are_told() -> None:
    host = BUNDLED.replace(status="Degraded", busy=("add-in notes: 16 of 16 worker threads are busy: hang x16",))

    report = health(RUNNING.replace(host=host, log_file="/logs/host.log"))

    assert found(report) == [("AddInCallsHang", "Warning")]
    assert report.issues[0].message == "Calls hang: add-in notes: 16 of 16 worker threads are busy: hang x16."
    assert "/logs/host.log" in report.issues[0].remediation
    assert report.status is HealthStatus.DEGRADED


def test_while_add_ins_load_none_is_called_failed_and_that_is_told() -> None:
    coming = HostAddIn("notes", None, "/ws/notes.py", False, None)
    broken = HostAddIn("b", None, "/ws/b.py", False, "SyntaxError")
    host = BUNDLED.replace(status="Degraded", loading=True, add_ins=(LOADED, broken, coming))

    report = health(RUNNING.replace(host=host, log_file="/logs/host.log"))

    assert found(report) == [("AddInsLoading", "Warning"), ("AddInLoadFailed", "Warning")]
    assert report.issues[0].message == "The Host is still loading its add-ins: notes."
    assert "/logs/host.log" in report.issues[0].remediation
    assert report.status is HealthStatus.DEGRADED


@pytest.mark.parametrize(("left_out", "named"), [(("/ws/a.py", "/ws/b.py"), "/ws/a.py, /ws/b.py"), ((), "all of them")])
def test_a_host_without_its_add_ins_is_degraded_however_well_it_feels(left_out: tuple[str, ...], named: str) -> None:
    report = health(RUNNING.replace(host=BUNDLED.replace(add_ins=()), left_out=left_out))

    assert (report.status, found(report)) == (HealthStatus.DEGRADED, [("AddInsLeftOut", "Warning")])
    assert named in report.issues[0].message
    assert report.to_json()["leftOutAddIns"] == list(left_out)


def test_a_host_that_ended_without_signing_out_is_told_with_its_log() -> None:
    report = health(IDLE.replace(ended_process=77, log_file="/logs/host.log"))

    assert found(report) == [("HostCrashed", "Fatal")]
    assert "process 77" in report.issues[0].message
    assert report.issues[0].remediation == "Run 'uno-devserver start'. What it printed is in /logs/host.log."


def test_an_add_in_that_is_still_loading_is_no_issue() -> None:
    coming = LOADED.replace(loaded=False)

    assert health(RUNNING.replace(host=BUNDLED.replace(add_ins=(coming,)))).status is HealthStatus.HEALTHY


@pytest.mark.parametrize("status", ["Degraded", "Unhealthy"])
@pytest.mark.parametrize("reason", [None, "MSBuild failed."])
def test_a_host_that_does_not_call_itself_healthy_is_believed(reason: str | None, status: str) -> None:
    host = DOTNET.replace(status=status, discovery_error=reason)

    issue = only_issue(health(RUNNING.replace(host=host)))

    assert issue.code == "AddInLoadFailed"
    assert (reason or "does not say why") in issue.message


def test_an_add_in_that_was_not_loaded_does_not_hide_that_others_were_not_found() -> None:
    broken = HostAddIn("a", None, "/ws/a.py", False, "broken")

    host = BUNDLED.replace(status="Degraded", add_ins=(broken,), discovery_error="MSBuild failed.")

    issues = health(RUNNING.replace(host=host)).issues
    assert [issue.message.partition(":")[2] for issue in issues] == [" broken.", " MSBuild failed."]


def test_a_dotnet_assembly_in_the_bundled_host_leads_to_the_dotnet_host() -> None:
    assembly = HostAddIn("Sample", "1.0", "/cache/Sample.dll", False, "needs .NET")

    issue = only_issue(health(RUNNING.replace(host=BUNDLED.replace(status="Degraded", add_ins=(assembly,)))))

    assert "start --host dotnet" in issue.remediation
    assert "Install the .NET SDK" in issue.remediation
    assert "Repair" not in issue.remediation, "nothing is wrong with the add-in"


def test_a_dotnet_assembly_that_is_missing_is_reported_as_missing() -> None:
    assembly = HostAddIn("Sample", None, "/cache/Sample.dll", False, "/cache/Sample.dll does not exist")

    issue = only_issue(health(RUNNING.replace(host=BUNDLED.replace(status="Degraded", add_ins=(assembly,)))))

    assert "does not exist" in issue.message
    assert issue.remediation.startswith("Run 'dotnet restore --force'")


# --- when .NET matters ----------------------------------------------------------------------------------------------


def test_without_dotnet_a_bundled_host_that_has_loaded_everything_lacks_the_tools_of_uno() -> None:
    report = health(RUNNING.replace(discovery=WITHOUT_DOTNET, host=BUNDLED))

    assert (report.status, found(report)) == (HealthStatus.DEGRADED, [("DotNetNotFound", "Warning")])
    assert only_issue(report).remediation.startswith("Install the .NET SDK")


def test_with_dotnet_at_hand_a_bundled_host_does_not_hide_that_the_sdk_is_not_restored() -> None:
    unrestored = DISCOVERY.replace(issues=(fatal("SdkNotInCache", "Uno.Sdk is not there."),))

    report = health(RUNNING.replace(discovery=unrestored, host=BUNDLED))

    assert (report.status, found(report)) == (HealthStatus.DEGRADED, [("SdkNotInCache", "Warning")])


def test_behind_a_proxy_any_other_server_does_without_dotnet_too() -> None:
    command = Probe(True, True, kind=HostKind.COMMAND, tool_count=1)

    assert health(RUNNING.replace(discovery=WITHOUT_DOTNET, host=command)).status is HealthStatus.HEALTHY


def test_what_is_wrong_with_dotnet_is_told_where_the_bundled_host_had_to_leave_an_assembly_out() -> None:
    assembly = HostAddIn("Sample", "1.0", "/cache/Sample.dll", False, "needs .NET")

    report = health(
        RUNNING.replace(discovery=WITHOUT_DOTNET, host=BUNDLED.replace(status="Degraded", add_ins=(assembly,)))
    )

    assert report.status is HealthStatus.DEGRADED
    codes = ["AddInLoadFailed", "DotNetNotFound", "SdkNotInCache", "AddInDiscoveryFallback"]
    assert found(report) == [(code, "Warning") for code in codes]


def test_before_the_start_missing_dotnet_is_only_a_warning_where_the_bundled_host_can_serve() -> None:
    report = health(IDLE.replace(discovery=WITHOUT_DOTNET))

    assert [issue.code for issue in report.issues if issue.fatal] == ["HostNotStarted"]
    assert ("DotNetNotFound", "Warning") in found(report)


def test_before_the_start_missing_dotnet_is_fatal_where_add_ins_need_it() -> None:
    needed = DISCOVERY.replace(issues=(fatal("HostBinaryNotFound", "No Host for net10.0."),))

    assert ("HostBinaryNotFound", "Fatal") in found(health(IDLE.replace(discovery=needed)))


def test_with_a_dotnet_host_running_its_needs_stay_fatal() -> None:
    broken = DISCOVERY.replace(issues=(fatal("DotNetVersionUnsupported", "global.json wants another."),))

    assert found(health(RUNNING.replace(discovery=broken))) == [("DotNetVersionUnsupported", "Fatal")]


def test_a_workspace_by_its_own_config_need_not_be_about_uno() -> None:
    own = WORKSPACE.replace(solution=None, global_json=None, config="/ws/.devtools/host.config.jsonc")
    issues = (fatal("GlobalJsonNotFound", "There is none."), fatal("DotNetNotFound", "No dotnet."))

    report = health(IDLE.replace(discovery=WITHOUT_DOTNET.replace(workspace=own, issues=issues)))

    assert found(report) == [("HostNotStarted", "Fatal")]


@pytest.mark.parametrize(("host", "status"), [(BUNDLED, HealthStatus.HEALTHY), (DOTNET, HealthStatus.DEGRADED)])
def test_a_folder_without_uno_is_healthy_when_the_bundled_host_serves_it(host: Probe, status: HealthStatus) -> None:
    nothing = UNRESOLVED.replace(
        kind=ResolutionKind.NoCandidates, candidates=(), issues=(warning("NoSolutionFound", "No solution."),)
    )

    report = health(RUNNING.replace(discovery=DISCOVERY.replace(workspace=nothing, issues=nothing.issues), host=host))

    assert report.status is status


@pytest.mark.parametrize("host", [BUNDLED, DOTNET])
def test_what_is_wrong_with_the_workspace_itself_counts_with_every_host(host: Probe) -> None:
    issue = warning("WorkspaceAmbiguous", "Two fit.")
    ambiguous = UNRESOLVED.replace(kind=ResolutionKind.Ambiguous, issues=(issue,))

    report = health(
        RUNNING.replace(discovery=DISCOVERY.replace(workspace=ambiguous, issues=ambiguous.issues), host=host)
    )

    assert found(report) == [("WorkspaceAmbiguous", "Warning")]


@pytest.mark.parametrize("code", ["PackagesJsonNotFound", "PackagesJsonInvalid"])
def test_a_missing_list_of_packages_is_a_warning(code: str) -> None:
    report = health(RUNNING.replace(discovery=DISCOVERY.replace(issues=(fatal(code, "No list."),))))

    assert found(report) == [(code, "Warning")]


# --- JSON -----------------------------------------------------------------------------------------------------------

# The members that we add, behind those of the .NET tool.
OURS = [
    "hostKind",
    "hostVersion",
    "startedAt",
    "ideChannelConnected",
    "addIns",
    "addInsLoading",
    "leftOutAddIns",
    "logFile",
]


def test_the_report_has_the_members_and_values_of_the_dotnet_tool_in_its_order() -> None:
    text = (GOLDEN / "host" / "start" / "health-one.json").read_text("utf-8")
    recorded = json.loads(json.loads(text)["stdout"].replace("{HOSTPID}", "42").replace("{DIR}", "/ws"))
    server = RegisteredServer(42, 0, "/ws/App.sln", "2026-11-15T08:27:37.4240525Z", 5651, "machine", "user", None)
    facts = RUNNING.replace(servers=(ActiveServer(server, True, (Process(42, "dotnet"),)),))

    report = health(facts).to_json()

    assert list(report) == [*recorded, *OURS]
    discovery = report["discovery"]
    assert isinstance(discovery, dict)
    assert list(discovery) == list(recorded["discovery"])
    assert discovery["activeServers"] == recorded["discovery"]["activeServers"]
    assert list(discovery["activeServers"][0]) == list(recorded["discovery"]["activeServers"][0])
    assert [list(entry) for entry in discovery["addIns"]] == [list(recorded["discovery"]["addIns"][0])]
    own_values = {"devServerVersion", "toolCount", "unoSdkVersion", "discoveryDurationMs", "discovery"}
    assert {name: report[name] for name in recorded if name not in own_values} == {
        name: value for name, value in recorded.items() if name not in own_values
    }


def test_before_anything_is_known_the_report_says_so_with_nulls() -> None:
    report = health(HealthFacts("0.2.0", connection="Initializing")).to_json()

    assert (report["status"], report["connectionState"]) == ("Unhealthy", "Initializing")
    assert (report["toolCount"], report["upstreamConnected"], report["addIns"]) == (0, False, [])
    assert all(report[name] is None for name in ("discovery", "resolutionKind", "discoveredSolutions", "hostKind"))


def test_no_candidates_and_no_servers_are_null_as_in_the_dotnet_tool() -> None:
    workspace = UNRESOLVED.replace(kind=ResolutionKind.NoCandidates, candidates=())

    report = health(IDLE.replace(discovery=DISCOVERY.replace(workspace=workspace))).to_json()

    assert report["candidateSolutions"] is None
    discovery = report["discovery"]
    assert isinstance(discovery, dict)
    assert (discovery["candidateSolutions"], discovery["activeServers"]) == (None, None)


def test_solutions_that_a_proxy_found_are_listed_also_when_there_are_none() -> None:
    assert health(IDLE.replace(solutions=())).to_json()["discoveredSolutions"] == []
    assert health(IDLE.replace(solutions=("src/A.sln",))).to_json()["discoveredSolutions"] == ["src/A.sln"]


def test_issues_and_add_ins_are_written_out() -> None:
    broken = HostAddIn("b", None, "/ws/b.py", False, "SyntaxError")

    report = health(RUNNING.replace(host=BUNDLED.replace(status="Degraded", add_ins=(broken,)))).to_json()

    assert report["issues"] == [
        {
            "code": "AddInLoadFailed",
            "severity": "Warning",
            "message": "The add-in b (/ws/b.py) was not loaded: SyntaxError.",
            "remediation": REMEDIES["AddInLoadFailed"],
        }
    ]
    assert report["addIns"] == [
        {"name": "b", "version": None, "assemblyPath": "/ws/b.py", "loaded": False, "error": "SyntaxError"}
    ]
    assert (report["hostKind"], report["hostVersion"]) == ("bundled", "0.2.0")
