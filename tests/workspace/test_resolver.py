"""Which workspace a directory stands for.

`RECORDED` holds what the real `uno-devserver` answered for these files; `OURS` what we decide otherwise, and why.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.files import write, write_all
from uno_devserver.issues import Severity
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace, resolve, select_solution

from .repositories import ENVIRONMENT, repository

UNO = '{ "msbuild-sdks": { "Uno.Sdk": "6.5.31" } }'
PLAIN = '{"sdk":{"version":"10.0.100"}}'
SLNX = '<Solution><Project Path="App/App.csproj" /></Solution>'


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def codes(workspace: Workspace) -> list[tuple[str, str]]:
    return [(issue.code, issue.severity.value) for issue in workspace.issues]


def seen(workspace: Workspace, root: Path) -> dict[str, Any]:
    """The fields of `disco --json` about the workspace, paths relative to the root."""

    def relative(path: str | None) -> str | None:
        return None if path is None else Path(path).relative_to(root).as_posix()

    return {
        "kind": workspace.kind.value,
        "working": relative(workspace.working_directory),
        "effective": relative(workspace.effective_directory),
        "solution": relative(workspace.solution),
        "global_json": relative(workspace.global_json),
        "candidates": [relative(path) for path in workspace.candidates],
    }


class Record(NamedTuple):
    files: Mapping[str, str]
    kind: str
    effective: str | None = None
    solution: str | None = None
    candidates: tuple[str, ...] = ()


def here(files: Mapping[str, str], solution: str = "App.slnx") -> Record:
    return Record(files, "CurrentDirectory", ".", solution, (solution,))


def invalid(files: Mapping[str, str]) -> Record:
    return Record(files, "NoValidWorkspace", candidates=("App.slnx",))


RECORDED = {
    "complete-slnx": here({"global.json": UNO, "App.slnx": SLNX}),
    "complete-sln": here({"global.json": UNO, "App.sln": ""}, "App.sln"),
    "private-sdk": here({"global.json": '{"msbuild-sdks":{"Uno.Sdk.Private":"6.6.0-dev.12"}}', "App.slnx": SLNX}),
    "global-json-comments": here(
        {"global.json": '// top\n{ /* c */ "msbuild-sdks": { "Uno.Sdk": "6.5.31", }, }', "App.slnx": SLNX}
    ),
    "global-json-bom-crlf": here({"global.json": "\ufeff{\r\n" + UNO[1:], "App.slnx": SLNX}),
    "global-json-other-case": invalid({"global.json": '{"msbuild-sdks":{"uno.sdk":"6.5.31"}}', "App.slnx": SLNX}),
    "global-json-malformed": invalid({"global.json": '{"msbuild-sdks":', "App.slnx": SLNX}),
    "global-json-no-uno": invalid({"global.json": PLAIN, "App.slnx": SLNX}),
    "global-json-missing": invalid({"App.slnx": SLNX}),
    "global-json-in-parent": here({"global.json": UNO, "src/app/App.slnx": SLNX}, "src/app/App.slnx"),
    "nothing": Record({"readme.txt": "x"}, "NoCandidates"),
    "solution-less": Record({"global.json": UNO, "App/App.csproj": "<Project />"}, "NoCandidates"),
    "solution-filter-only": Record({"global.json": UNO, "App.slnf": "{}"}, "NoCandidates"),
    "solution-empty-file": here({"global.json": UNO, "App.slnx": ""}),
    "solution-malformed": here({"global.json": UNO, "App.slnx": "<Solution"}),
    "two-solutions": Record(
        {"global.json": UNO, "App.slnx": SLNX, "Other.slnx": SLNX}, "Ambiguous", candidates=("App.slnx", "Other.slnx")
    ),
    "two-apps-each-global-json": Record(
        {"a/global.json": UNO, "a/A.slnx": SLNX, "b/global.json": UNO, "b/B.slnx": SLNX},
        "Ambiguous",
        candidates=("a/A.slnx", "b/B.slnx"),
    ),
    "one-uno-one-plain": Record(
        {"a/global.json": UNO, "a/A.slnx": SLNX, "b/global.json": "{}", "b/B.slnx": SLNX},
        "AutoDiscovered",
        "a",
        "a/A.slnx",
        ("a/A.slnx", "b/B.slnx"),
    ),
    "nested-three-levels": Record(
        {"1/2/3/global.json": UNO, "1/2/3/A.slnx": SLNX}, "AutoDiscovered", "1/2/3", "1/2/3/A.slnx", ("1/2/3/A.slnx",)
    ),
    "nested-four-levels": Record({"1/2/3/4/global.json": UNO, "1/2/3/4/A.slnx": SLNX}, "NoCandidates"),
    "skipped-folders": here(
        {"global.json": UNO, "App.slnx": SLNX}
        | {f"{folder}/X.slnx": SLNX for folder in ("node_modules", "bin", ".vs", "packages")}
    ),
    "non-ascii-and-spaces": here({"global.json": UNO, "Mön App.slnx": SLNX}, "Mön App.slnx"),
}

OURS = {
    # Recorded: Ambiguous. But a migration leaves both files for a while, and they are the same solution.
    "both-solution-formats-same-folder": here({"global.json": UNO, "App.slnx": SLNX, "App.sln": ""}),
}


@pytest.mark.parametrize("record", [pytest.param(r, id=name) for name, r in (RECORDED | OURS).items()])
def test_a_directory_resolves_as_recorded(tmp_path: Path, record: Record) -> None:
    write_all(tmp_path, record.files)

    workspace = resolve(str(tmp_path))

    assert workspace.requested_directory == str(tmp_path)
    assert workspace.source is SelectionSource.Automatic
    assert seen(workspace, tmp_path) == {
        "kind": record.kind,
        "working": record.effective or ".",
        "effective": record.effective,
        "solution": record.solution,
        "global_json": (Path(record.effective) / "global.json").as_posix() if record.effective else None,
        "candidates": list(record.candidates),
    }


def test_an_ignored_solution_does_not_compete(tmp_path: Path) -> None:
    """Recorded as git-ignored-solution."""
    root = repository(tmp_path / "ws", "gen/\n")
    write_all(root, {"global.json": UNO, "App.slnx": SLNX, "gen/G.slnx": SLNX})

    workspace = resolve(str(root))

    assert (workspace.kind, workspace.candidates) == (ResolutionKind.CurrentDirectory, (str(root / "App.slnx"),))


class TestADirectoryThatTheUserNamed:
    def test_it_resolves_alike_and_says_who_chose(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "App.slnx": SLNX})

        workspace = resolve(str(tmp_path), explicit=True)

        assert workspace == resolve(str(tmp_path)).replace(source=SelectionSource.UserSelected)
        assert workspace.resolved

    def test_its_own_global_json_is_enough(self, tmp_path: Path) -> None:
        write(tmp_path / "global.json", UNO)

        workspace = resolve(str(tmp_path), explicit=True)

        assert seen(workspace, tmp_path) == {
            "kind": "CurrentDirectory",
            "working": ".",
            "effective": ".",
            "solution": None,
            "global_json": "global.json",
            "candidates": [],
        }

    @pytest.mark.parametrize(("content", "cause"), [(PLAIN, "UnoSdkNotInGlobalJson"), ("{", "GlobalJsonInvalid")])
    def test_a_global_json_without_uno_makes_no_workspace(self, tmp_path: Path, content: str, cause: str) -> None:
        write(tmp_path / "global.json", content)

        workspace = resolve(str(tmp_path), explicit=True)

        assert workspace.kind is ResolutionKind.NoValidWorkspace
        assert codes(workspace) == [("WorkspaceNotResolved", "Fatal"), (cause, "Fatal")]

    def test_a_global_json_above_it_is_not_enough(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "src/readme.txt": ""})

        assert resolve(str(tmp_path / "src"), explicit=True).kind is ResolutionKind.NoCandidates


class TestTheNearestGlobalJson:
    def test_it_may_lie_above_the_directory(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "src/app/App.slnx": SLNX})

        workspace = resolve(str(tmp_path / "src" / "app"))

        assert seen(workspace, tmp_path) == {
            "kind": "AutoDiscovered",
            "working": ".",
            "effective": ".",
            "solution": "src/app/App.slnx",
            "global_json": "global.json",
            "candidates": ["src/app/App.slnx"],
        }

    @pytest.mark.parametrize("nearer", [PLAIN, "{", '{"msbuild-sdks":{"Uno.Sdk":""}}'])
    def test_a_nearer_one_without_uno_hides_the_one_above(self, tmp_path: Path, nearer: str) -> None:
        write_all(tmp_path, {"global.json": UNO, "src/global.json": nearer, "src/App.slnx": SLNX})

        assert resolve(str(tmp_path)).kind is ResolutionKind.NoValidWorkspace

    def test_the_solution_closest_to_its_global_json_wins(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "App.slnx": SLNX, "samples/Sample.slnx": SLNX})

        assert resolve(str(tmp_path)).solution == str(tmp_path / "App.slnx")


class TestSeveralSolutionsAtOneDistance:
    def test_the_one_in_the_directory_beats_submodules(self, tmp_path: Path) -> None:
        files = {"global.json": UNO, "App.slnx": SLNX}
        for submodule in ("ext/one", "ext/two"):
            files |= {f"{submodule}/global.json": UNO, f"{submodule}/Lib.slnx": SLNX}
        write_all(tmp_path, files)

        workspace = resolve(str(tmp_path))

        assert (workspace.kind, workspace.solution) == (ResolutionKind.CurrentDirectory, str(tmp_path / "App.slnx"))
        assert len(workspace.candidates) == 3

    def test_the_one_whose_global_json_is_in_the_directory_beats_submodules(self, tmp_path: Path) -> None:
        write_all(
            tmp_path, {"global.json": UNO, "src/App.slnx": SLNX, "ext/global.json": UNO, "ext/src/Lib.slnx": SLNX}
        )

        workspace = resolve(str(tmp_path))

        assert (workspace.kind, workspace.solution) == (ResolutionKind.CurrentDirectory, str(tmp_path / "src/App.slnx"))

    def test_the_one_in_the_directory_wins_also_with_its_global_json_above(self, tmp_path: Path) -> None:
        write_all(
            tmp_path,
            {"global.json": UNO, "app/App.slnx": SLNX, "app/ext/global.json": UNO, "app/ext/src/Lib.slnx": SLNX},
        )

        workspace = resolve(str(tmp_path / "app"))

        assert (workspace.kind, workspace.solution) == (ResolutionKind.AutoDiscovered, str(tmp_path / "app/App.slnx"))

    def test_two_in_the_directory_stay_ambiguous(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "A.slnx": "", "B.slnx": "", "x/global.json": UNO, "x/X.slnx": ""})

        workspace = resolve(str(tmp_path))

        assert workspace.kind is ResolutionKind.Ambiguous
        assert codes(workspace) == [("WorkspaceAmbiguous", "Warning")]

    def test_the_warning_lists_those_that_tie_and_no_others(self, tmp_path: Path) -> None:
        write_all(
            tmp_path,
            {"a/global.json": UNO, "a/A.slnx": "", "b/global.json": UNO, "b/B.slnx": "", "a/far/Far.slnx": ""},
        )

        (issue,) = resolve(str(tmp_path)).issues

        assert f"{tmp_path / 'a' / 'A.slnx'}, {tmp_path / 'b' / 'B.slnx'}" in issue.message
        assert "Far.slnx" not in issue.message

    def test_a_long_list_is_cut_short(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO} | {f"App{number:02}.slnx": "" for number in range(30)})

        (issue,) = resolve(str(tmp_path)).issues

        assert "App09.slnx and 20 more." in issue.message
        assert "App10.slnx" not in issue.message


class TestIssues:
    def test_a_resolved_workspace_has_none(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "App.slnx": SLNX})

        assert resolve(str(tmp_path)).issues == ()

    def test_no_solution_names_the_directory(self, tmp_path: Path) -> None:
        workspace = resolve(str(tmp_path))

        assert codes(workspace) == [("NoSolutionFound", "Warning")]
        assert str(tmp_path) in workspace.issues[0].message

    def test_solutions_without_uno_are_named_with_the_reason(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"a/A.slnx": "", "b/B.slnx": "", "b/global.json": PLAIN})

        workspace = resolve(str(tmp_path))

        assert codes(workspace) == [("WorkspaceNotResolved", "Fatal")]
        message = workspace.issues[0].message
        assert f"{tmp_path / 'a' / 'A.slnx'} (no global.json" in message
        assert f"{tmp_path / 'b' / 'B.slnx'} ({tmp_path / 'b' / 'global.json'} names no Uno SDK)" in message

    def test_a_malformed_global_json_is_named_once_with_its_place(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": '{\n  "msbuild-sdks": }', "A.slnx": "", "B.slnx": ""})

        workspace = resolve(str(tmp_path))

        assert codes(workspace) == [("WorkspaceNotResolved", "Fatal"), ("GlobalJsonInvalid", "Fatal")]
        assert f"{tmp_path / 'global.json'} is not valid JSON: line 2, column 19" in workspace.issues[1].message

    def test_a_malformed_global_json_of_a_loser_is_a_warning(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"a/global.json": UNO, "a/A.slnx": "", "b/global.json": "{", "b/B.slnx": ""})

        workspace = resolve(str(tmp_path))

        assert workspace.solution == str(tmp_path / "a" / "A.slnx")
        assert codes(workspace) == [("GlobalJsonInvalid", "Warning")]


class TestAConfig:
    CONFIG = ".devtools/host.config.jsonc"

    def test_it_makes_its_directory_a_workspace(self, tmp_path: Path) -> None:
        config = write(tmp_path / self.CONFIG, "not read here")

        workspace = resolve(str(tmp_path))

        assert (workspace.kind, workspace.effective_directory) == (ResolutionKind.CurrentDirectory, str(tmp_path))
        assert (workspace.config, workspace.solution, workspace.global_json) == (str(config), None, None)
        assert workspace.issues == ()

    def test_the_nearest_one_above_counts(self, tmp_path: Path) -> None:
        write(tmp_path / self.CONFIG, "{}")
        config = write(tmp_path / "a" / self.CONFIG, "{}")
        (tmp_path / "a" / "b" / "c").mkdir(parents=True)

        workspace = resolve(str(tmp_path / "a" / "b" / "c"))

        assert (workspace.kind, workspace.config) == (ResolutionKind.AutoDiscovered, str(config))
        assert workspace.effective_directory == workspace.working_directory == str(tmp_path / "a")

    def test_a_folder_of_add_ins_makes_a_workspace_as_a_config_does(self, tmp_path: Path) -> None:
        write(tmp_path / "a" / ".devtools" / "addins" / "hello.py", "")
        (tmp_path / "a" / "b").mkdir()

        here, below, above = (resolve(str(tmp_path / name)) for name in ("a", "a/b", ""))

        assert (here.kind, below.kind) == (ResolutionKind.CurrentDirectory, ResolutionKind.AutoDiscovered)
        assert here.effective_directory == below.effective_directory == str(tmp_path / "a")
        assert (here.config, here.issues, above.kind) == (None, (), ResolutionKind.NoCandidates)

    def test_of_config_and_add_ins_the_nearest_counts(self, tmp_path: Path) -> None:
        write(tmp_path / self.CONFIG, "{}")
        write(tmp_path / "a" / ".devtools" / "addins" / "hello.py", "")
        write(tmp_path / "a" / "b" / self.CONFIG, "{}")

        found = [resolve(str(tmp_path / name)) for name in ("", "a", "a/b")]

        folders = [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
        assert [one.effective_directory for one in found] == [str(folder) for folder in folders]
        assert [one.config is None for one in found] == [False, True, False]

    def test_a_file_in_the_place_of_the_add_ins_does_not_count(self, tmp_path: Path) -> None:
        write(tmp_path / ".devtools" / "addins", "")

        assert resolve(str(tmp_path)).kind is ResolutionKind.NoCandidates

    def test_a_folder_of_that_name_does_not_count(self, tmp_path: Path) -> None:
        (tmp_path / self.CONFIG).mkdir(parents=True)

        assert resolve(str(tmp_path)).kind is ResolutionKind.NoCandidates

    def test_an_uno_workspace_decides_and_keeps_the_config_beside_it(self, tmp_path: Path) -> None:
        config = write(tmp_path / self.CONFIG, "{}")
        write_all(tmp_path, {"global.json": UNO, "App.slnx": SLNX})

        workspace = resolve(str(tmp_path))

        assert (workspace.solution, workspace.config) == (str(tmp_path / "App.slnx"), str(config))

    def test_an_uno_workspace_elsewhere_leaves_the_config_out(self, tmp_path: Path) -> None:
        write(tmp_path / self.CONFIG, "{}")
        write_all(tmp_path, {"app/global.json": UNO, "app/App.slnx": SLNX})

        workspace = resolve(str(tmp_path))

        assert (workspace.effective_directory, workspace.config) == (str(tmp_path / "app"), None)

    def test_solutions_without_uno_are_no_longer_an_error(self, tmp_path: Path) -> None:
        write(tmp_path / self.CONFIG, "{}")
        write_all(tmp_path, {"Tool.slnx": SLNX, "global.json": "{"})

        workspace = resolve(str(tmp_path))

        assert workspace.resolved
        assert workspace.candidates == (str(tmp_path / "Tool.slnx"),)
        assert codes(workspace) == [("GlobalJsonInvalid", "Warning")]

    def test_ambiguous_solutions_are_still_worth_a_warning(self, tmp_path: Path) -> None:
        write(tmp_path / self.CONFIG, "{}")
        write_all(tmp_path, {"global.json": UNO, "A.slnx": "", "B.slnx": ""})

        workspace = resolve(str(tmp_path))

        assert (workspace.kind, workspace.solution) == (ResolutionKind.CurrentDirectory, None)
        assert codes(workspace) == [("WorkspaceAmbiguous", "Warning")]

    def test_one_of_its_plain_solutions_can_be_selected(self, tmp_path: Path) -> None:
        write(tmp_path / self.CONFIG, "{}")
        write_all(tmp_path, {"A.slnx": "", "B.slnx": ""})
        workspace = resolve(str(tmp_path))

        selected = select_solution(workspace, "B.slnx")

        assert selected == workspace.replace(solution=str(tmp_path / "B.slnx"), source=SelectionSource.UserSelected)


class TestADirectoryThatCannotBeUsed:
    def test_a_missing_one_says_so(self, tmp_path: Path) -> None:
        workspace = resolve(str(tmp_path / "missing"))

        assert workspace.kind is ResolutionKind.NoCandidates
        assert codes(workspace) == [("WorkspaceNotResolved", "Fatal")]
        assert f"'{tmp_path / 'missing'}': it does not exist" in workspace.issues[0].message

    def test_a_file_says_so(self, tmp_path: Path) -> None:
        file = write(tmp_path / "App.sln", "")

        assert "it is not a folder" in resolve(str(file), explicit=True).issues[0].message

    @pytest.mark.parametrize("directory", ["a\0b", "x" * 5000])
    def test_an_impossible_name_says_so(self, directory: str) -> None:
        workspace = resolve(directory)

        assert (workspace.kind, len(workspace.issues)) == (ResolutionKind.NoCandidates, 1)

    def test_an_unreadable_one_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # given: the test may run as a user who can read everything, so the system's answer is given here
        def refuse(path: str) -> None:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", refuse)

        assert f"'{tmp_path}': permission denied." in resolve(str(tmp_path)).issues[0].message

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove the current folder")
    def test_a_removed_current_folder_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()

        workspace = resolve(".")

        assert (workspace.kind, len(workspace.issues)) == (ResolutionKind.NoCandidates, 1)

    def test_a_relative_one_is_made_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_all(tmp_path, {"ws/global.json": UNO, "ws/App.slnx": SLNX})
        monkeypatch.chdir(tmp_path)

        workspace = resolve("other/../ws/")

        assert workspace.requested_directory == workspace.effective_directory == str(tmp_path / "ws")


class TestSelectingASolution:
    @pytest.fixture
    def ambiguous(self, tmp_path: Path) -> Workspace:
        write_all(
            tmp_path,
            {"a/global.json": UNO, "a/A.slnx": "", "a/A.sln": "", "b/global.json": UNO, "b/B.slnx": "", "c/C.slnx": ""},
        )
        workspace = resolve(str(tmp_path))
        assert workspace.kind is ResolutionKind.Ambiguous
        return workspace

    @pytest.mark.parametrize("absolute", [True, False])
    def test_a_candidate_resolves_the_workspace(self, tmp_path: Path, ambiguous: Workspace, absolute: bool) -> None:
        selected = select_solution(ambiguous, str(tmp_path / "b" / "B.slnx") if absolute else "b/B.slnx")

        assert seen(selected, tmp_path) == {
            "kind": "AutoDiscovered",
            "working": "b",
            "effective": "b",
            "solution": "b/B.slnx",
            "global_json": "b/global.json",
            "candidates": ["a/A.slnx", "b/B.slnx", "c/C.slnx"],
        }
        assert (selected.source, selected.issues) == (SelectionSource.UserSelected, ())

    def test_another_spelling_selects_the_candidate_as_it_was_found(self, tmp_path: Path, ambiguous: Workspace) -> None:
        assert select_solution(ambiguous, "b\\B.slnx").solution == str(tmp_path / "b" / "B.slnx")

    def test_the_old_format_of_a_candidate_may_be_selected(self, tmp_path: Path, ambiguous: Workspace) -> None:
        assert select_solution(ambiguous, "a/A.sln").solution == str(tmp_path / "a" / "A.sln")

    @pytest.mark.parametrize("solution", ["b/Other.slnx", "", "b/B.slnx\0", "../B.slnx", "b"])
    def test_what_is_no_candidate_is_refused_with_the_choice(self, ambiguous: Workspace, solution: str) -> None:
        selected = select_solution(ambiguous, solution)

        assert (selected.kind, selected.solution) == (ResolutionKind.NoCandidates, None)
        assert codes(selected) == [("WorkspaceNotResolved", "Fatal")]
        assert all(candidate in selected.issues[0].remediation for candidate in ambiguous.candidates)

    def test_a_candidate_that_vanished_is_refused(self, tmp_path: Path, ambiguous: Workspace) -> None:
        (tmp_path / "b" / "B.slnx").unlink()

        selected = select_solution(ambiguous, "b/B.slnx")

        assert selected.kind is ResolutionKind.NoCandidates
        assert "does not exist" in selected.issues[0].message

    def test_a_candidate_without_uno_is_refused(self, tmp_path: Path, ambiguous: Workspace) -> None:
        selected = select_solution(ambiguous, "c/C.slnx")

        assert selected.kind is ResolutionKind.NoValidWorkspace
        assert selected.issues[0].severity is Severity.FATAL
        assert str(tmp_path / "c" / "C.slnx") in selected.issues[0].message
