"""What a proxy reports of itself: the members of a HealthReport, and its own facts."""

from __future__ import annotations

import json
import os
import time

import pytest

from uno_devserver import __version__
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.probe import HostAddIn, Probe
from uno_devserver.issues import fatal, warning
from uno_devserver.proxy.health.report import BRIEF_BYTES, brief, report
from uno_devserver.proxy.state import ConnectionState

from .facts import BEGUN, CONNECTED, CRASH, DISCOVERY, HOST, issue, issues


def test_a_connected_proxy_is_healthy_and_names_its_host() -> None:
    told = report(CONNECTED)

    assert (told["status"], told["issues"], told["connectionState"]) == ("Healthy", [], "Connected")
    assert (told["upstreamConnected"], told["toolCount"], told["unoSdkVersion"]) == (True, 7, "6.5.31")
    assert (told["hostProcessId"], told["hostEndpoint"]) == (42, "http://localhost:5651/mcp")
    assert (told["hostKind"], told["hostVersion"], told["logFile"]) == ("dotnet", "6.5.153", "/logs/host.log")
    assert told["discoveredSolutions"] == ["src/App.sln"]


def test_the_members_of_the_seeds_come_first_in_their_order_and_the_proxy_last() -> None:
    names = list(report(CONNECTED))

    assert names[:17] == [
        *("status", "devServerVersion", "hostProcessId", "hostEndpoint", "upstreamConnected", "toolCount"),
        *("unoSdkVersion", "discoveryDurationMs", "connectionState", "discoveredSolutions"),
        *("effectiveWorkspaceDirectory", "selectedSolutionPath", "resolutionKind", "selectionSource"),
        *("candidateSolutions", "issues", "discovery"),
    ]
    assert names[-1] == "proxy"


@pytest.mark.parametrize(
    ("sdk", "fresh", "stale"),
    [("5.0.0", False, True), ("5.0.0", True, False), ("6.5.31", False, False), (None, False, False)],
)
def test_lists_from_before_another_sdk_are_stale_until_they_are_read_again(
    sdk: str | None, fresh: bool, stale: bool
) -> None:
    facts = CONNECTED.replace(lists_fresh=fresh, catalogue_sdk=sdk)

    told = report(facts)

    assert told["unoSdkVersion"] == "6.5.31"
    own = told["proxy"]
    assert isinstance(own, dict)
    assert own["catalogueStale"] is stale


def test_what_only_the_proxy_knows_is_its_own_object() -> None:
    facts = CONNECTED.replace(
        generation=3, restarts=2, last_end=CRASH, catalogue_written=time.time() - 60, wait_calls=True, trusted=True
    )

    own = report(facts)["proxy"]

    assert isinstance(own, dict)
    age = own.pop("catalogueAgeSeconds")
    assert 60 <= age < 90
    assert own.pop("catalogueStale") is False
    assert own == {
        "processId": os.getpid(),
        "state": "Connected",
        "generation": 3,
        "restarts": 2,
        "reloads": 0,
        "lastExit": {
            "reason": "it ended with exit code 3",
            "exitCode": 3,
            "lastLines": ["one", "two", "Unhandled exception: boom"],
        },
        "upstream": {
            "kind": "dotnet",
            "processId": 42,
            "endpoint": "http://localhost:5651/mcp",
            "owned": True,
            "logFile": "/logs/host.log",
            "name": "Uno Server",
            "version": "6.5.153",
            "protocolVersion": None,
            "transport": None,
            "standby": None,
        },
        "toolCount": 7,
        "listsFresh": True,
        "timeline": {"initialize": 12, "connected": 240},
        "fallback": False,
        "trusted": True,
        "waitCalls": True,
        "httpEndpoint": None,
        "inspector": None,
        "clients": ["claude-code"],
        "controlChannel": None,
        "hotReload": None,
        "hotReloadOff": None,
    }


def test_where_new_code_is_asked_for_and_how_that_is_are_told() -> None:
    told = {"strategy": "swap", "packages": [{"files": 12}], "lastRestart": None}
    facts = CONNECTED.replace(control_channel="/tmp/CoreFxPipe_uno-1", hot_reload=told)

    own = report(facts)["proxy"]

    assert isinstance(own, dict)
    assert (own["controlChannel"], own["hotReload"]) == ("/tmp/CoreFxPipe_uno-1", told)


def test_a_catalogue_of_the_future_is_new() -> None:
    own = report(CONNECTED.replace(catalogue_written=time.time() + 3600))["proxy"]

    assert isinstance(own, dict)
    assert own["catalogueAgeSeconds"] == 0


def test_every_state_makes_a_report_that_is_json() -> None:
    for state in ConnectionState:
        for facts in (BEGUN, CONNECTED, CONNECTED.replace(last_end=CRASH)):
            assert json.loads(json.dumps(report(facts.replace(state=state))))["connectionState"] == state.value


def test_what_only_dotnet_needs_is_no_more_than_a_warning_behind_a_bundled_host() -> None:
    without = DISCOVERY.replace(issues=(fatal("DotNetNotFound", "No dotnet."), fatal("SdkNotInCache", "No SDK.")))
    bundled = CONNECTED.replace(upstream=HOST.replace(kind=HostKind.BUNDLED), discovery=without, host=Probe())

    assert (report(bundled)["status"], issues(bundled)) == ("Degraded", [("DotNetNotFound", "Warning")])
    assert report(bundled.replace(upstream=None, state=ConnectionState.DEGRADED))["status"] == "Unhealthy"


def test_an_add_in_that_the_host_could_not_load_is_told_as_on_the_command_line() -> None:
    broken = HostAddIn("a", None, "/ws/a.py", False, "SyntaxError")
    host = Probe(kind=HostKind.BUNDLED, status="Degraded", add_ins=(broken,))

    assert issues(CONNECTED.replace(host=host)) == [("AddInLoadFailed", "Warning")]


@pytest.mark.parametrize(
    ("owned", "reloads", "mended"), [(True, None, True), (False, {"owner": False}, True), (False, None, False)]
)
def test_a_broken_add_in_of_a_host_that_a_proxy_started_only_has_to_be_mended(
    owned: bool, reloads: dict[str, object] | None, mended: bool
) -> None:
    broken = HostAddIn("a", None, "/ws/a.py", False, "SyntaxError")
    upstream = HOST.replace(kind=HostKind.BUNDLED, owned=owned)
    host = Probe(kind=HostKind.BUNDLED, add_ins=(broken,))
    facts = CONNECTED.replace(upstream=upstream, host=host, hot_reload=reloads)

    assert ("uno-devserver stop" not in issue(facts, "AddInLoadFailed")["remediation"]) is mended


def test_a_dotnet_add_in_in_the_bundled_host_of_a_proxy_does_not_have_to_be_mended() -> None:
    assembly = HostAddIn("a", None, "/cache/a.dll", False, "it is a .NET assembly")
    upstream = HOST.replace(kind=HostKind.BUNDLED, owned=True)
    facts = CONNECTED.replace(upstream=upstream, host=Probe(kind=HostKind.BUNDLED, add_ins=(assembly,)))

    assert "Install the .NET SDK" in issue(facts, "AddInLoadFailed")["remediation"]


# --- the brief form


RELOAD = {
    "at": "2026-02-03T04:05:06Z",
    "role": "server",
    "changed": [f"/ws/src/part{number}.ts" for number in range(20)],
    "build": "npm run build",
    "buildSeconds": 1.25,
    "restartSeconds": 0.3,
    "ok": True,
    "lists": "grown",
    "problem": None,
    "tools": {"added": [f"tool_{number}" for number in range(50)], "removed": [], "grown": [], "changed": []},
}


def test_the_brief_form_has_what_matters_first_and_nothing_of_uno() -> None:
    facts = CONNECTED.replace(
        upstream=HOST.replace(kind=HostKind.COMMAND, endpoint=None), discovery=None, hot_reload={"state": "idle"}
    )

    form = brief(report(facts))

    assert form == {
        "status": "Healthy",
        "connectionState": "Connected",
        "server": {"name": "Uno Server", "version": "6.5.153", "processId": 42, "logFile": "/logs/host.log"},
        "toolCount": 7,
        "issues": [],
        "hotReload": "idle",
        "restarts": 0,
        "devServerVersion": __version__,
    }
    assert list(form)[:5] == ["status", "connectionState", "server", "toolCount", "issues"]


def test_the_brief_form_tells_the_last_reload_and_why_there_is_none() -> None:
    reloaded = brief(report(CONNECTED.replace(hot_reload={"state": "idle", "history": [{}, RELOAD]})))
    off = brief(report(CONNECTED.replace(hot_reload_off="no config names its code")))

    assert reloaded["lastReload"] == {
        "at": "2026-02-03T04:05:06Z",
        "ok": True,
        "changed": [f"part{number}.ts" for number in range(5)],
        "tools": {"added": [f"tool_{number}" for number in range(5)]},
        "buildSeconds": 1.25,
        "restartSeconds": 0.3,
    }
    assert off["hotReload"] == "off, because no config names its code"
    assert "lastReload" not in off


@pytest.mark.parametrize("character", ["x", "ü", "\U0001f600", "\x01", "\n"])
def test_the_brief_form_stays_brief_whatever_it_tells(character: str) -> None:
    long = character * 5000
    failures = tuple(fatal("UpstreamError", f"First {number}. {long} last {number}", long) for number in range(9))
    facts = CONNECTED.replace(
        state=ConnectionState.DEGRADED,
        upstream=HOST.replace(name=long, version=long, log_file=f"/logs/{long}", endpoint=long),
        issues=failures,
        last_end=CRASH.replace(last_lines=(long,)),
        hot_reload={"state": "idle", "history": [{**RELOAD, "ok": False, "problem": long, "logFile": long}]},
    )

    form = brief(report(facts))

    assert len(json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()) <= BRIEF_BYTES == 2000
    told = form["issues"]
    assert isinstance(told, list)
    assert len(told) == 3
    assert form["moreIssues"] == 6
    assert told[0]["message"].startswith("First")
    assert told[0]["message"].endswith("last 0")


def test_the_brief_form_tells_fatal_issues_before_warnings() -> None:
    facts = CONNECTED.replace(issues=(warning("ConfigInvalid", "Odd."), fatal("UpstreamError", "Worse.")))

    told = brief(report(facts))["issues"]

    assert isinstance(told, list)
    assert [(issue["severity"], issue["message"]) for issue in told] == [("Fatal", "Worse."), ("Warning", "Odd.")]
    assert all(issue["code"] and issue["remediation"] for issue in told)


def test_the_brief_form_stays_brief_with_many_renamed_tools() -> None:
    renamed = {f"{number:064}": "own" for number in range(100)}
    member = CONNECTED.replace(options=CONNECTED.options.replace(server="x" * 40), renamed=renamed)

    told = report(CONNECTED.replace(members=(member,) * 10))
    form = brief(told)

    assert told["servers"][0]["renamedTools"] == renamed
    assert len(json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()) <= BRIEF_BYTES
    assert form["servers"][0]["renamedTools"]  # type: ignore[index]
