"""Which workspace is served: the folder one stands in, the client's roots, the user's word, and what files become."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.files import write
from support.golden import GOLDEN
from uno_devserver.discovery.discover import DiscoveryRequest, discover
from uno_devserver.issues import fatal, warning
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.workspace.client_roots import MAX_ROOTS, read_roots
from uno_devserver.proxy.workspace.decisions import (
    Decision,
    Transition,
    WorkspaceDecisions,
    initialization_rejected,
    initialized,
    selected,
    selection_rejected,
)
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace

UNO = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'
REFRESH, START, STOP = Transition.REFRESH, Transition.START, Transition.STOP
RESTART, DIAGNOSE = Transition.RESTART, Transition.DIAGNOSE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Empty, and apart from what a test keeps beside it."""
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def _uno(folder: Path, *solutions: str, version: str = "6.5.31") -> Path:
    write(folder / "global.json", UNO.replace("6.5.31", version))
    for name in solutions:
        write(folder / name, "<Solution />")
    return folder


def _served(folder: Path) -> WorkspaceDecisions:
    workspaces = WorkspaceDecisions(ProxyOptions(str(folder)))
    workspaces.initial()
    return workspaces


def _roots(*folders: Path) -> dict[str, Any]:
    return {"roots": [{"uri": folder.as_uri()} for folder in folders]}


def _status(decision: Decision) -> str:
    assert decision.result is not None
    return str(decision.result["status"])


# --- the folder that the proxy was started for -----------------------------------------------------------------------


def test_a_workspace_is_started(folder: Path) -> None:
    _uno(folder, "App.slnx")

    decision = WorkspaceDecisions(ProxyOptions(str(folder))).initial()

    assert (decision.transition, decision.workspace.solution) == (START, str(folder / "App.slnx"))
    assert (decision.workspace.source, decision.issues) == (SelectionSource.Automatic, ())


def test_a_folder_that_is_none_is_diagnosed_and_the_workspace_says_why(folder: Path) -> None:
    decision = WorkspaceDecisions(ProxyOptions(str(folder))).initial()

    assert (decision.transition, decision.workspace.kind) == (DIAGNOSE, ResolutionKind.NoCandidates)
    assert [issue.code for issue in decision.workspace.issues] == ["NoSolutionFound", "GlobalJsonNotFound"]


@pytest.mark.parametrize("content", [".devtools/host.config.jsonc", ".devtools/addins/greeter.py"])
def test_a_folder_without_uno_is_served_where_the_bundled_host_can_serve_it(folder: Path, content: str) -> None:
    write(folder / content, "{}")

    decision = WorkspaceDecisions(ProxyOptions(str(folder))).initial()

    assert (decision.transition, decision.workspace.working_directory) == (START, str(folder))


def test_a_folder_that_the_user_names_may_do_without_a_solution(folder: Path) -> None:
    _uno(folder)

    assert WorkspaceDecisions(ProxyOptions(str(folder), explicit=True)).initial().transition is START
    assert WorkspaceDecisions(ProxyOptions(str(folder))).initial().transition is DIAGNOSE


def test_in_forced_fallback_the_folder_is_not_even_looked_at(folder: Path) -> None:
    _uno(folder, "App.slnx")
    workspaces = WorkspaceDecisions(ProxyOptions(str(folder), force_fallback=True))

    decisions = [
        workspaces.initial(),
        workspaces.rescan(started=False),
        workspaces.roots(_roots(folder), started=False),
    ]

    assert [decision.transition for decision in decisions] == [REFRESH] * 3
    assert not workspaces.named
    assert decisions[-1].workspace.candidates == ()


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "written", "removed", "transition", "solution"),
    [
        ((), {"global.json": UNO, "src/App.slnx": "<Solution />"}, None, START, "src/App.slnx"),
        ((), {".devtools/addins/greeter.py": ""}, None, START, None),
        (("App.slnx",), {"src/obj/project.assets.json": "{}"}, None, REFRESH, "App.slnx"),
        (("App.slnx",), {"global.json": UNO.replace("6.5.31", "6.5.32")}, None, RESTART, "App.slnx"),
        (("App.slnx",), {"global.json": UNO.replace("Uno.Sdk", "Uno.Sdk.Private")}, None, RESTART, "App.slnx"),
        (("App.sln",), {"Renamed.slnx": "<Solution />"}, "App.sln", RESTART, "Renamed.slnx"),
    ],
    ids=[
        *("a solution appears", "add-ins appear", "a file that changes nothing", "another version", "another SDK"),
        "a solution takes the place of another",
    ],
)
def test_changed_files_lead_to_what_they_mean(
    folder: Path,
    before: tuple[str, ...],
    written: dict[str, str],
    removed: str | None,
    transition: Transition,
    solution: str | None,
) -> None:
    workspaces = _served(_uno(folder, *before) if before else folder)
    if removed is not None:
        (folder / removed).unlink()
    for name, content in written.items():
        write(folder / name, content)

    decision = workspaces.rescan(started=bool(before))

    assert decision.transition is transition
    assert decision.workspace.solution == (solution and str(folder / solution))
    assert workspaces.rescan(started=True).transition is REFRESH, "once"


def test_a_workspace_that_ceases_to_be_one_stops_the_server_and_starts_it_when_it_is_back(folder: Path) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))

    (folder / "App.slnx").unlink()
    gone = workspaces.rescan(started=True)
    write(folder / "App.slnx", "<Solution />")
    back = workspaces.rescan(started=False)

    assert (gone.transition, back.transition) == (STOP, START)
    assert [issue.code for issue in gone.workspace.issues] == ["NoSolutionFound"]


# --- the client's roots ----------------------------------------------------------------------------------------------


def test_a_root_that_is_a_workspace_is_started_where_the_folder_is_none(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(folder)
    app = _uno(tmp_path / "my app", "App.slnx")

    decision = workspaces.roots(_roots(app), started=False)

    assert (decision.transition, decision.workspace.working_directory) == (START, str(app))
    assert decision.workspace.source is SelectionSource.RootsConfirmed


def test_a_root_that_is_no_workspace_yet_is_watched_until_it_is_one(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(folder)
    empty = tmp_path / "empty"
    empty.mkdir()

    before = workspaces.roots(_roots(empty), started=False)
    _uno(empty, "App.slnx")
    after = workspaces.rescan(started=False)

    assert (before.transition, before.workspace.requested_directory) == (DIAGNOSE, str(empty))
    assert (after.transition, after.workspace.source) == (START, SelectionSource.RootsConfirmed)


@pytest.mark.parametrize(("started", "expected"), [(True, REFRESH), (False, START)])
def test_a_root_that_is_what_is_served_confirms_it(
    folder: Path, tmp_path: Path, started: bool, expected: Transition
) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))
    (tmp_path / "link").symlink_to(folder)

    decision = workspaces.roots(_roots(tmp_path / "link"), started=started)

    assert (decision.transition, decision.issues) == (expected, ())
    assert decision.workspace.source is SelectionSource.RootsConfirmed
    assert decision.workspace.working_directory == str(folder), "in the spelling that the server was started with"


def test_a_root_that_holds_what_is_served_among_others_confirms_it(folder: Path) -> None:
    _uno(folder, "a/A.slnx", "b/B.slnx")
    workspaces = _served(folder / "a")

    decision = workspaces.roots(_roots(folder), started=True)

    assert (decision.transition, decision.issues) == (REFRESH, ())
    assert decision.workspace.solution == str(folder / "a" / "A.slnx")


def test_a_root_that_is_another_workspace_takes_nothing_away(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))
    other = _uno(tmp_path / "other", "Other.slnx")

    decision = workspaces.roots(_roots(other), started=True)

    (issue,) = decision.issues
    assert (decision.transition, decision.workspace.solution) == (DIAGNOSE, str(folder / "App.slnx"))
    assert issue.code == "RootsElsewhere"
    assert str(other / "Other.slnx") in issue.remediation
    assert workspaces.rescan(started=True).issues == (issue,), "until it is settled"


def test_the_solution_that_the_root_offers_can_be_selected(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))
    other = _uno(tmp_path / "other", "Other.slnx")
    workspaces.roots(_roots(other), started=True)

    decision = workspaces.select(str(other / "Other.slnx"), started=True)

    assert (decision.transition, _status(decision), decision.issues) == (RESTART, "restarted", ())
    assert workspaces.rescan(started=True).workspace.solution == str(other / "Other.slnx")


def test_a_root_that_is_no_workspace_takes_nothing_away(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))
    empty = tmp_path / "empty"
    empty.mkdir()

    decision = workspaces.roots(_roots(empty), started=True)

    assert (decision.transition, decision.workspace.solution) == (DIAGNOSE, str(folder / "App.slnx"))
    assert str(empty) in decision.issues[0].message


def test_of_several_roots_the_first_that_can_be_used_counts(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(folder)
    documents = tmp_path / "documents"
    documents.mkdir()
    first, second = _uno(tmp_path / "a", "A.slnx"), _uno(tmp_path / "b", "B.slnx")

    decision = workspaces.roots(_roots(tmp_path / "missing", documents, first, second), started=False)

    assert decision.workspace.solution == str(first / "A.slnx")


@pytest.mark.parametrize("answer", [None, {}, {"roots": []}, {"roots": [{"uri": "https://example.com"}]}])
def test_an_answer_that_names_no_folder_changes_nothing(folder: Path, answer: object) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))

    decision = workspaces.roots(answer, started=False)

    assert (decision.transition, decision.workspace.source) == (REFRESH, SelectionSource.Automatic)


# --- uno_app_initialize ----------------------------------------------------------------------------------------------


def test_the_user_names_a_workspace(folder: Path, tmp_path: Path) -> None:
    workspaces = WorkspaceDecisions(ProxyOptions(str(folder), force_fallback=True))
    app = _uno(tmp_path / "app", "App.slnx")

    decision = workspaces.initialize(str(app), None, started=False)

    assert (decision.transition, decision.result, workspaces.named) == (START, None, True)
    assert decision.workspace.source is SelectionSource.RootsConfirmed


def test_a_solution_that_was_only_found_is_no_choice_of_the_user(folder: Path) -> None:
    workspaces = WorkspaceDecisions(ProxyOptions("/", force_fallback=True))
    workspaces.initialize(str(_uno(folder, "A.slnx")), None, started=False)
    write(folder / "B.slnx", "<Solution />")

    assert workspaces.rescan(started=True).workspace.kind is ResolutionKind.Ambiguous


def test_the_user_names_a_workspace_and_its_solution(folder: Path) -> None:
    _uno(folder, "A.slnx", "B.slnx")
    workspaces = _served(folder)

    decision = workspaces.initialize(str(folder), str(folder / "B.slnx"), started=False)

    assert (decision.transition, decision.workspace.solution) == (START, str(folder / "B.slnx"))
    assert workspaces.rescan(started=True).workspace.solution == str(folder / "B.slnx"), "it stays selected"


def test_a_folder_that_is_no_workspace_is_kept_and_watched(folder: Path) -> None:
    workspaces = WorkspaceDecisions(ProxyOptions("/", force_fallback=True))

    before = workspaces.initialize(str(folder), None, started=False)
    _uno(folder, "App.slnx")
    after = workspaces.rescan(started=False)

    assert (before.transition, _status(before)) == (DIAGNOSE, "degraded")
    assert before.result
    assert str(folder) in before.result["message"]
    assert after.transition is START


def test_the_solutions_that_compete_are_named(folder: Path) -> None:
    _uno(folder, "A.slnx", "B.slnx")

    result = (
        WorkspaceDecisions(ProxyOptions("/", force_fallback=True)).initialize(str(folder), None, started=False).result
    )

    assert result
    assert (result["status"], result["issues"][0]["code"]) == ("degraded", "WorkspaceAmbiguous")
    assert str(folder / "A.slnx") in result["message"]
    assert "uno_app_select_solution" in result["message"]


@pytest.mark.parametrize("name", ["missing", "file.txt", "relative", "nul\0"])
def test_what_is_no_folder_is_rejected_and_nothing_changes(folder: Path, name: str) -> None:
    write(folder / "file.txt", "")
    workspaces = WorkspaceDecisions(ProxyOptions(str(folder), force_fallback=True))
    path = name if name == "relative" else f"{folder}/{name}"

    decision = workspaces.initialize(path, None, started=False)

    assert (decision.transition, _status(decision), workspaces.named) == (REFRESH, "rejected", False)
    assert decision.result
    assert path in decision.result["message"]
    assert [issue["severity"] for issue in decision.result["issues"]] == ["Warning"]


def test_a_solution_that_is_not_in_the_folder_is_rejected(folder: Path, tmp_path: Path) -> None:
    other = _uno(tmp_path / "other", "Other.slnx") / "Other.slnx"
    workspaces = WorkspaceDecisions(ProxyOptions("/", force_fallback=True))

    decision = workspaces.initialize(str(_uno(folder, "App.slnx")), str(other), started=False)

    assert (_status(decision), workspaces.named) == ("rejected", False)


def test_what_is_served_is_not_given_up_for_a_folder_that_is_no_workspace(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    workspaces = _served(_uno(folder, "App.slnx"))

    decision = workspaces.initialize(str(empty), None, started=True)

    assert (decision.transition, _status(decision)) == (REFRESH, "rejected")
    assert decision.workspace.solution == str(folder / "App.slnx")


def test_another_workspace_that_the_user_names_is_served_instead(folder: Path, tmp_path: Path) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))
    other = _uno(tmp_path / "other", "Other.slnx")

    assert workspaces.initialize(str(other), None, started=True).transition is RESTART


# --- uno_app_select_solution -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("started", "force", "transition", "status", "action"),
    [
        (True, False, REFRESH, "already_selected", "None"),
        (True, True, RESTART, "restarted", "Restart"),
        (False, False, START, "started", "Start"),
    ],
)
def test_the_solution_that_is_served_can_be_selected(
    folder: Path, started: bool, force: bool, transition: Transition, status: str, action: str
) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))

    decision = workspaces.select(str(folder / "App.slnx"), started=started, force_restart=force)

    assert (decision.transition, _status(decision)) == (transition, status)
    assert decision.result
    assert decision.result["devServerAction"] == action
    assert decision.result["selectedSolutionPath"] == str(folder / "App.slnx")
    assert decision.result["effectiveWorkspaceDirectory"] == str(folder)
    assert str(folder / "App.slnx") in decision.result["message"]
    assert decision.workspace.source is SelectionSource.UserSelected


def test_of_several_solutions_one_is_selected_and_stays_so(folder: Path) -> None:
    workspaces = _served(_uno(folder, "A.slnx", "B.slnx"))

    decision = workspaces.select(str(folder / "B.slnx"), started=False)

    assert (decision.transition, _status(decision)) == (START, "started")
    write(folder / "C.slnx", "<Solution />")
    assert workspaces.rescan(started=True).workspace.solution == str(folder / "B.slnx")
    assert workspaces.roots(_roots(folder), started=True).transition is REFRESH


@pytest.mark.parametrize("started", [False, True])
def test_an_agent_that_names_the_folder_of_the_selected_solution_keeps_it(folder: Path, started: bool) -> None:
    """Otherwise it would be told to choose, by a proxy that serves what was chosen."""
    _uno(folder, "A.slnx", "B.slnx")
    workspaces = WorkspaceDecisions(ProxyOptions("/", force_fallback=True))
    workspaces.select(str(folder / "B.slnx"), started=False)

    decision = workspaces.initialize(str(folder), None, started=started)

    assert decision.transition is (REFRESH if started else START)
    assert decision.workspace.solution == str(folder / "B.slnx")
    assert decision.workspace.source is SelectionSource.UserSelected
    assert workspaces.rescan(started=True).workspace.solution == str(folder / "B.slnx")


def test_a_selected_solution_that_goes_leaves_the_choice_open_again(folder: Path) -> None:
    workspaces = _served(_uno(folder, "A.slnx", "B.slnx"))
    workspaces.select(str(folder / "B.slnx"), started=False)

    (folder / "B.slnx").unlink()
    decision = workspaces.rescan(started=True)

    assert (decision.transition, decision.workspace.solution) == (RESTART, str(folder / "A.slnx"))


def test_a_solution_that_was_just_created_can_be_selected(folder: Path) -> None:
    workspaces = _served(_uno(folder, "A.slnx"))

    write(folder / "New.slnx", "<Solution />")

    assert workspaces.select(str(folder / "New.slnx"), started=True).transition is RESTART


def test_what_a_selected_solution_runs_is_discovered_not_what_the_folder_would_choose(folder: Path) -> None:
    _uno(folder, "App.slnx")
    _uno(folder / "module", "Module.slnx", version="5.0.1")
    workspaces = _served(folder)
    assert workspaces.workspace.solution == str(folder / "App.slnx")

    workspace = workspaces.select(str(folder / "module" / "Module.slnx"), started=True).workspace
    found = discover(DiscoveryRequest(str(folder), workspace=workspace), {"HOME": str(folder)})

    assert found.workspace == workspace
    assert found.sdk.global_json
    assert found.sdk.global_json.uno_sdk
    assert found.sdk.global_json.uno_sdk.version == "5.0.1"


@pytest.mark.parametrize("case", ["relative", "elsewhere", "missing", "not uno"])
def test_a_solution_that_cannot_be_had_is_rejected_and_nothing_changes(folder: Path, tmp_path: Path, case: str) -> None:
    _uno(folder, "App.slnx")
    write(folder / "plain" / "global.json", "{}")
    write(folder / "plain" / "Plain.slnx", "<Solution />")
    other = _uno(tmp_path / "other", "Other.slnx")
    workspaces = _served(folder)
    path = {
        "relative": "App.slnx",
        "elsewhere": str(other / "Other.slnx"),
        "missing": str(folder / "Missing.slnx"),
        "not uno": str(folder / "plain" / "Plain.slnx"),
    }[case]

    decision = workspaces.select(path, started=True, force_restart=True)

    assert (decision.transition, _status(decision)) == (REFRESH, "rejected")
    assert decision.result
    assert path in decision.result["message"]
    assert {issue["severity"] for issue in decision.result["issues"]} == {"Warning"}
    cause = {"UnoSdkNotInGlobalJson"} if case == "not uno" else set()
    assert {issue["code"] for issue in decision.result["issues"]} == {"WorkspaceNotResolved"} | cause
    assert (decision.result["selectedSolutionPath"], decision.result["devServerAction"]) == (None, "None")
    assert workspaces.workspace.solution == str(folder / "App.slnx")


@pytest.mark.parametrize("force_fallback", [True, False])
def test_while_no_workspace_is_known_the_path_of_a_solution_names_it(
    folder: Path, tmp_path: Path, force_fallback: bool
) -> None:
    (tmp_path / "empty").mkdir()
    workspaces = WorkspaceDecisions(ProxyOptions(str(tmp_path / "empty"), force_fallback=force_fallback))
    workspaces.initial()
    _uno(folder, "App.slnx")

    decision = workspaces.select(str(folder / "App.slnx"), started=False)

    assert (decision.transition, _status(decision)) == (START, "started")
    assert decision.workspace.source is SelectionSource.UserSelected
    assert decision.workspace.working_directory == str(folder)
    assert workspaces.rescan(started=True).workspace.solution == str(folder / "App.slnx")


@pytest.mark.parametrize("name", ["Missing.slnx", "App.csproj", "src"])
@pytest.mark.parametrize("force_fallback", [True, False])
def test_while_no_workspace_is_known_what_is_no_solution_is_rejected_with_the_next_step(
    folder: Path, tmp_path: Path, name: str, force_fallback: bool
) -> None:
    (tmp_path / "empty").mkdir()
    workspaces = WorkspaceDecisions(ProxyOptions(str(tmp_path / "empty"), force_fallback=force_fallback))
    workspaces.initial()
    write(_uno(folder, "App.slnx") / "App.csproj", "<Project />")
    (folder / "src").mkdir()

    decision = workspaces.select(str(folder / name), started=False)

    assert (decision.transition, _status(decision)) == (REFRESH, "rejected")
    assert decision.result
    step = "uno_app_select_solution" if name == "App.csproj" else "uno_app_initialize"
    assert step in decision.result["message"]


# --- what all of them share ------------------------------------------------------------------------------------------


def test_the_results_have_the_members_of_the_recorded_ones_in_their_order(folder: Path) -> None:
    workspaces = _served(_uno(folder, "App.slnx"))
    selected = workspaces.select(str(folder / "App.slnx"), started=True).result
    ready = initialized(workspaces.workspace, tool_count=0, connected=False)

    assert list(selected or {}) == list(_recorded("session-main", "already_selected"))
    recorded = _recorded("force-roots-fallback", "starting")
    assert list(ready) == [*recorded, "issues"], "the last is ours"
    assert ready["status"] == recorded["status"]


def _recorded(name: str, status: str) -> dict[str, Any]:
    """The result object with this status in a session of the .NET proxy."""
    record = json.loads((GOLDEN / "host" / "mcp-app" / f"{name}.json").read_bytes())
    for line in record["log"]:
        answer = json.loads(line["line"]) if line.get("dir") == "<" and "line" in line else {}
        for block in answer.get("result", {}).get("content", ()):
            found = json.loads(block["text"]) if block["text"].startswith("{") else {}
            if found.get("status") == status:
                return dict(found)
    raise AssertionError(f"{name} holds no result with the status {status}")


# --- what the answer of a client names


def _roots_answer(*uris: object) -> dict[str, Any]:
    return {"roots": [{"uri": uri, "name": "a root"} for uri in uris]}


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///home/ada/app", "/home/ada/app"),
        ("file:///home/ada/app/", "/home/ada/app"),
        ("file://localhost/home/ada", "/home/ada"),
        ("FILE:/home/ada", "/home/ada"),
        ("file:///home/ada/my%20app", "/home/ada/my app"),
        ("file:///home/ada/my app", "/home/ada/my app"),
        ("file:///home/ada/%C3%BCn%C3%AF", "/home/ada/ünï"),
        ("file:///home/ada/100%", "/home/ada/100%"),
        ("file:///home/ada/c%23", "/home/ada/c#"),
        ("file:///home/ada/c#", "/home/ada/c#"),
        ("file:///home/ada/../eve", "/home/eve"),
        ("/home/ada", "/home/ada"),
        ("app", "/current/app"),
        ("./app/", "/current/app"),
        ("c", "/current/c"),
    ],
)
def test_a_root_becomes_a_path(uri: str, path: str) -> None:
    assert read_roots(_roots_answer(uri), "/current", "linux") == ([path], [])


def test_a_root_whose_name_is_no_text_becomes_a_path() -> None:
    path = os.fsdecode(b"/home/ada/\xff")

    assert read_roots(_roots_answer("file:///home/ada/%FF"), "/current", "linux") == ([path], [])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c:/Users/ada", r"c:\Users\ada"),
        ("file:///C%3A/Users/ada%20l", r"C:\Users\ada l"),
        ("file://localhost/c:/x", r"c:\x"),
        ("file://server/share/app", r"\\server\share\app"),
        ("file:///app", r"D:\app"),
        (r"C:\Users\ada", r"C:\Users\ada"),
        ("C:/Users/ada/", r"C:\Users\ada"),
        ("app", r"D:\current\app"),
    ],
)
def test_a_root_becomes_a_path_of_windows(uri: str, path: str) -> None:
    assert read_roots(_roots_answer(uri), r"D:\current", "win32") == ([path], [])


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("https://example.com/app", "only file: URIs name local folders"),
        ("vscode-remote://ssh/app", "only file: URIs name local folders"),
        ("file://server/share", "it is on another machine, server"),
        ("file:app", "it has no absolute path"),
        ("file://", "it has no absolute path"),
        ("file:///a%00b", "it contains a NUL character"),
        ("", "it is not a URI"),
        ("  ", "it is not a URI"),
        (7, "it is not a URI"),
        (None, "it is not a URI"),
    ],
)
def test_what_is_no_local_folder_is_left_out_with_a_sentence(uri: object, reason: str) -> None:
    paths, problems = read_roots(_roots_answer(uri, "/good"), "/current", "linux")

    assert (paths, problems) == (["/good"], [f"The client's root {uri!r} cannot be used: {reason}."])


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"roots": None}, {"roots": {}}, {"roots": "file:///a"}])
def test_an_ill_formed_answer_names_nothing(answer: object) -> None:
    assert read_roots(answer, "/", "linux") == ([], ["The client's answer to roots/list contains no list of roots."])
    assert read_roots({"roots": []}, "/", "linux") == ([], [])
    paths, problems = read_roots({"roots": ["file:///a", 3, answer, {"uri": "/good"}]}, "/", "linux")
    assert (paths, len(problems)) == (["/good"], 3)


def test_an_endless_list_is_read_to_its_beginning_only() -> None:
    assert len(read_roots(_roots_answer(*("/a",) * 10_000), "/", "linux")[0]) == MAX_ROOTS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["roots", "uri", "name"]), inner),
)


@given(JSON, st.sampled_from(["linux", "darwin", "win32"]))
def test_any_answer_can_be_read(answer: object, platform: str) -> None:
    current = r"C:\here" if platform == "win32" else "/here"

    paths, _ = read_roots(answer, current, platform)

    assert all(path.startswith("/") or platform == "win32" for path in paths)


# --- what the tools answer


RESOLVED = Workspace(
    requested_directory="/w/src",
    working_directory="/w",
    effective_directory="/w",
    solution="/w/App.sln",
    global_json="/w/global.json",
    kind=ResolutionKind.AutoDiscovered,
    source=SelectionSource.UserSelected,
    candidates=("/w/App.sln",),
    config=None,
    issues=(),
)
AMBIGUOUS = warning("WorkspaceAmbiguous", "2 solutions in /w fit equally well: /w/A.sln, /w/B.sln.")


STRANGER = fatal("WorkspaceNotTrusted", "It is a stranger's.")
UNDECIDED = RESOLVED.replace(kind=ResolutionKind.Ambiguous, solution=None, issues=(AMBIGUOUS,))


@pytest.mark.parametrize(
    ("workspace", "how", "status", "parts"),
    [
        (RESOLVED, {"tool_count": 7, "connected": True}, "ready", ("with 7 tools.",)),
        (RESOLVED, {"tool_count": 1, "connected": True}, "ready", ("with 1 tool.",)),
        (RESOLVED, {"connected": True}, "ready", ("with 0 tools. If there should be some, call uno_health.",)),
        (RESOLVED, {}, "starting", ("uno_discover_tools",)),
        (RESOLVED, {"degraded": True}, "degraded", ("uno_health",)),
        (UNDECIDED, {"degraded": True}, "degraded", (AMBIGUOUS.message, "uno_app_select_solution")),
        (
            RESOLVED,
            {"degraded": True, "reasons": (STRANGER,)},
            "degraded",
            (f"{STRANGER.message} {STRANGER.remediation}",),
        ),
    ],
    ids=[
        "ready",
        "ready with one tool",
        "ready without tools",
        "it takes longer",
        "it did not start",
        "no workspace",
        "nobody trusts it",
    ],
)
def test_who_names_a_workspace_hears_how_its_server_is_and_what_to_do(
    workspace: Workspace, how: dict[str, Any], status: str, parts: tuple[str, ...]
) -> None:
    result = initialized(workspace, **{"tool_count": 0, "connected": False, **how})

    assert (result["status"], result["workspaceDirectory"]) == (status, "/w/src")
    assert result["toolCount"] == how.get("tool_count", 0)
    for part in parts:
        assert part in result["message"]
    issues = (*how.get("reasons", ()), *workspace.issues)
    assert [issue["code"] for issue in result["issues"] or ()] == [issue.code for issue in issues]
    if issues:
        [told] = result["issues"]
        assert result["message"] == f"{told['message']} {told['remediation']} Call uno_health for the details."


def test_a_selection_never_claims_more_than_was_done() -> None:
    """The answer comes while the server is being started."""
    started = selected(RESOLVED, Transition.START)["message"]
    same = selected(RESOLVED, Transition.REFRESH)["message"]

    assert started.startswith("/w/App.sln is selected, and its DevServer is being started.")
    assert "uno_health" in started
    assert same == "/w/App.sln is the one that is served already."


def test_a_rejection_holds_all_members_and_nothing_that_was_not_done() -> None:
    selection, initialization = selection_rejected(AMBIGUOUS), initialization_rejected("/x", AMBIGUOUS)

    assert selection == {
        "status": "rejected",
        "selectedSolutionPath": None,
        "effectiveWorkspaceDirectory": None,
        "devServerAction": "None",
        "message": selection["message"],
        "issues": selection["issues"],
    }
    assert (initialization["status"], initialization["workspaceDirectory"]) == ("rejected", "/x")
    assert initialization["message"] == selection["message"]
    assert initialization["message"].startswith(AMBIGUOUS.message)
