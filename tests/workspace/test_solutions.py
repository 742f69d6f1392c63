"""The projects of a solution, against 104 recorded files.

`solutions/expected.json` holds what .NET's own reader gave (for .slnf, which it does not read, `dotnet sln list`).
Where we differ, `DIFFERENCES` says what we give and why; nothing else may differ.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.files import write
from uno_devserver.workspace.paths import path_key
from uno_devserver.workspace.solutions import Solution, read_solution

GOLDEN = Path(__file__).parents[1] / "golden" / "solutions"
CASES: list[dict[str, Any]] = json.loads((GOLDEN / "expected.json").read_text("utf-8"))["cases"]

APP = {"App/App.csproj"}
LOST = "one project that .NET cannot classify does not lose the others"
NEEDLESS = "a fault that does not hide the project"
DIFFERENCES: dict[str, tuple[set[str], str]] = {
    "sln-lower-guid-spacing": (APP, "indented lines are lost silently by .NET"),
    "sln-indented-project-lines": (APP, "indented lines are lost silently by .NET"),
    "sln-project-keyword-case": (APP, "lower-case keywords are lost silently by .NET"),
    "sln-duplicate-project": (APP, NEEDLESS),
    "sln-duplicate-name": ({"a/App.csproj", "b/App.csproj"}, NEEDLESS),
    "sln-no-header": (APP, NEEDLESS),
    "sln-empty-path": (set(), ".NET reads the separator as the path"),
    "sln-website": ({"App.csproj"}, "an address is no project file"),
    "slnx-types": (
        {"App/App.csproj", "Native/Native.vcxproj", "Shared/Shared.shproj", "js/js.esproj", "Fs/Fs.fsproj"}
        | {"Vb/Vb.vbproj", "W/W.wapproj", "Q/Q.sqlproj", "D/D.dcproj"},
        LOST,
    ),
    "slnx-unknown-type": ({"Odd/Odd.oddproj"}, LOST),
    "slnx-extension-wapproj": ({"P/P.wapproj"}, LOST),
    "slnx-extension-proj": ({"P/P.proj"}, LOST),
    "slnx-extension-pyproj": ({"P/P.pyproj"}, LOST),
    "slnx-extension-msbuildproj": ({"P/P.msbuildproj"}, LOST),
    "slnx-extension-txt": ({"P/P.txt"}, LOST),
    "slnx-extension-none": ({"P/P"}, LOST),
    "slnx-duplicate": (APP, NEEDLESS),
    "slnx-duplicate-case": ({"App/App.csproj", "app/app.csproj"}, "on a case-sensitive disk these are two files"),
    "slnx-same-name": ({"a/App.csproj", "b/App.csproj"}, NEEDLESS),
    "slnx-folder-bad-name": ({"src/App.csproj"}, NEEDLESS),
    "slnx-version": (APP, "a newer format most likely still lists its projects so"),
    "slnx-doctype": (set(), "entities are refused: expanding them can fill the memory"),
    "slnf-comments": ({"src/App/App.csproj"}, "comments and trailing commas are harmless"),
    "slnf-unknown-project": ({"src/App/App.csproj"}, "the projects that do exist are still meant"),
    "slnf-missing-solution": ({"src/App/App.csproj"}, "the filter itself says what is meant"),
}

# Where the file is damaged: what the issue must say.
COMPLAINTS = {
    "sln-empty-path": "without a path",
    "sln-no-header": "does not begin with",
    "sln-empty": "does not begin with",
    "sln-blank": "does not begin with",
    "sln-binary": "does not begin with",
    "sln-is-slnx-content": "does not begin with",
    "sln-truncated-project": "ends inside a Project",
    "sln-truncated-line": "line 8 is not a complete Project line",
    "slnx-no-path": "without a path",
    "slnx-empty-path": "without a path",
    "slnx-case": "without a path",
    "slnx-child-case": "without a path",
    "slnx-root-other": "<Project>",
    "slnx-doctype": "line ",
    "slnx-bad-xml": "line ",
    "slnx-truncated": "line ",
    "slnx-empty": "line ",
    "slnx-blank": "line ",
    "slnx-is-sln-content": "line ",
    "slnf-unknown-project": "none/None.csproj",
    "slnf-missing-solution": "Nope.sln",
    "slnf-malformed": "line 1, column",
}


def recorded(case: dict[str, Any]) -> set[str]:
    if case["file"].endswith(".slnf"):
        lines = case["dotnet_sln_list"]["stdout"].splitlines()
        return set(lines[2:])  # below the heading and its rule; a message of one line means none
    return {project["path"] for project in case["solution_persistence"].get("projects", ())}


def located(folder: Path, projects: Iterable[str]) -> set[str]:
    """Comparable on systems that ignore case, too."""
    return {path_key(os.path.normpath(os.path.join(folder, project))) for project in projects}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_a_recorded_solution_gives_its_projects(case: dict[str, Any]) -> None:
    # given
    path = GOLDEN / case["file"]
    theirs = recorded(case)
    ours, _ = DIFFERENCES.get(case["case"], (theirs, ""))

    # when
    solution = read_solution(str(path))

    # then
    assert located(path.parent, solution.projects) == located(path.parent, ours)
    assert len(solution.projects) == len(located(path.parent, ours))
    assert (case["case"] in DIFFERENCES) == (ours != theirs)
    complaint = COMPLAINTS.get(case["case"])
    assert (solution.issue is None) == (complaint is None)
    if solution.issue and complaint is not None:
        assert solution.issue.code == "SolutionUnreadable"
        assert solution.issue.message.startswith(f"{path}: ")
        assert complaint in solution.issue.message


def test_the_tables_name_recorded_cases_only() -> None:
    assert {*DIFFERENCES, *COMPLAINTS} <= {case["case"] for case in CASES}


def projects(folder: Path, solution: Solution) -> list[str]:
    return [os.path.relpath(project, folder).replace(os.sep, "/") for project in solution.projects]


def sln(*paths: str, end: str = "EndProject\n") -> str:
    lines = [f'Project("{{9A19}}") = "P", "{path}", "{{0}}"\n{end}' for path in paths]
    return "Microsoft Visual Studio Solution File, Format Version 12.00\n" + "".join(lines)


class TestClassicSolutions:
    def test_a_cut_off_file_keeps_its_last_project_and_says_so(self, tmp_path: Path) -> None:
        text = sln("A/A.csproj") + sln("B/B.csproj", end="").split("\n", 1)[1]

        solution = read_solution(str(write(tmp_path / "X.sln", text)))

        assert projects(tmp_path, solution) == ["A/A.csproj", "B/B.csproj"]
        assert solution.issue
        assert "ends inside a Project" in solution.issue.message

    def test_a_damaged_line_costs_only_its_own_project(self, tmp_path: Path) -> None:
        text = sln("A/A.csproj") + 'Project("{9A19}") = "B, B\\B.csproj\nEndProject\n' + sln("C/C.csproj")

        solution = read_solution(str(write(tmp_path / "X.sln", text.replace("\n", "\r\n"))))

        assert projects(tmp_path, solution) == ["A/A.csproj", "C/C.csproj"]
        assert solution.issue
        assert "line 4" in solution.issue.message

    def test_the_order_is_the_files_and_a_project_in_two_spellings_counts_once(self, tmp_path: Path) -> None:
        text = sln("z\\Z.csproj", "a\\..\\b\\B.csproj", ".\\b/B.csproj", "..\\Up.csproj")

        solution = read_solution(str(write(tmp_path / "ws" / "X.sln", text)))

        assert projects(tmp_path / "ws", solution) == ["z/Z.csproj", "b/B.csproj", "../Up.csproj"]
        assert solution.issue is None

    def test_old_macintosh_line_ends_are_line_ends(self, tmp_path: Path) -> None:
        text = sln("A/A.csproj", "B/B.csproj").replace("\n", "\r")

        assert len(read_solution(str(write(tmp_path / "X.sln", text))).projects) == 2

    @pytest.mark.parametrize(
        "line", ['Project("', "Project(" + " " * 40, 'Project("x"' + " " * 40, " \t" * 20, "EndProject"]
    )
    def test_a_huge_damaged_file_is_read_in_linear_time(self, tmp_path: Path, line: str) -> None:
        path = write(tmp_path / "X.sln", f"{line}\n" * (4_000_000 // len(line)) + line * 100_000)

        begin = time.monotonic()
        solution = read_solution(str(path))

        assert solution.issue
        assert time.monotonic() - begin < 10  # 0.2 s here; quadratic work would take hours

    def test_a_path_that_no_system_call_takes_is_left_out(self, tmp_path: Path) -> None:
        solution = read_solution(str(write(tmp_path / "X.sln", sln("A\0.csproj", "B.csproj"))))

        assert projects(tmp_path, solution) == ["B.csproj"]
        assert solution.issue
        assert "'A\\x00.csproj'" in solution.issue.message

    @given(st.text(alphabet=st.sampled_from('Project("{}) = ,\\/.\r\n\tEnd#aé\0'), max_size=200))
    @example(sln("A.csproj"))
    def test_any_text_gives_a_solution(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        path = write(tmp_path_factory.getbasetemp() / "any" / "X.sln", text)

        solution = read_solution(str(path))

        assert all(os.path.isabs(project) and "\0" not in project for project in solution.projects)
        assert solution.issue or "Microsoft Visual Studio Solution File" in text

    @given(st.binary(max_size=400))
    def test_any_bytes_give_a_solution_in_each_format(
        self, tmp_path_factory: pytest.TempPathFactory, content: bytes
    ) -> None:
        for name in ("X.sln", "X.slnx", "X.slnf"):
            path = write(tmp_path_factory.getbasetemp() / "any" / name, content)
            assert read_solution(str(path)).path == str(path)


class TestXmlSolutions:
    def test_folders_in_folders_are_read(self, tmp_path: Path) -> None:
        text = "<Solution>" + "<Folder>" * 50 + '<Project Path="A.csproj" />' + "</Folder>" * 50 + "</Solution>"

        solution = read_solution(str(write(tmp_path / "X.slnx", text)))

        assert (projects(tmp_path, solution), solution.issue) == (["A.csproj"], None)

    def test_hostile_nesting_is_refused(self, tmp_path: Path) -> None:
        solution = read_solution(str(write(tmp_path / "X.slnx", "<Solution>" + "<Folder>" * 1_000_000)))

        assert (solution.projects, bool(solution.issue)) == ((), True)

    def test_projects_of_unknown_elements_do_not_count(self, tmp_path: Path) -> None:
        text = '<Solution><Other><Project Path="A.csproj" /></Other><File Path="B.csproj" /></Solution>'

        assert read_solution(str(write(tmp_path / "X.slnx", text))).projects == ()

    def test_one_project_without_a_path_does_not_lose_the_others(self, tmp_path: Path) -> None:
        text = '<Solution><Project /><Project Path="A.csproj" /></Solution>'

        solution = read_solution(str(write(tmp_path / "X.slnx", text)))

        assert (projects(tmp_path, solution), bool(solution.issue)) == (["A.csproj"], True)


class TestFilters:
    def test_paths_are_relative_to_the_solution_not_to_the_filter(self, tmp_path: Path) -> None:
        write(tmp_path / "src" / "All.sln", sln("A\\A.csproj", "B\\B.csproj"))
        text = json.dumps({"solution": {"path": "..\\src\\All.sln", "projects": ["B\\B.csproj"]}})

        solution = read_solution(str(write(tmp_path / "filters" / "X.slnf", text)))

        assert (projects(tmp_path, solution), solution.issue) == (["src/B/B.csproj"], None)

    @pytest.mark.parametrize("path", ["X.slnf", "Other.slnf", "readme.txt", ""])
    def test_a_filter_of_what_is_no_solution_is_refused(self, tmp_path: Path, path: str) -> None:
        text = json.dumps({"solution": {"path": path, "projects": ["A.csproj"]}})

        solution = read_solution(str(write(tmp_path / "X.slnf", text)))

        assert (solution.projects, bool(solution.issue)) == ((), True)

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            "{}",
            '{"solution": []}',
            '{"solution": {"path": 1, "projects": []}}',
            '{"solution": {"path": "A.sln", "projects": "x"}}',
            '{"solution": {"path": "A\\u0000.sln", "projects": []}}',
        ],
    )
    def test_another_shape_is_refused(self, tmp_path: Path, text: str) -> None:
        solution = read_solution(str(write(tmp_path / "X.slnf", text)))

        assert (solution.projects, bool(solution.issue)) == ((), True)

    @pytest.mark.parametrize("project", [1, None, ["A.csproj"], "\ud800.csproj", "", "\0"])
    def test_an_entry_that_is_no_path_is_named_and_left_out(self, tmp_path: Path, project: object) -> None:
        write(tmp_path / "All.sln", sln("A.csproj"))
        text = json.dumps({"solution": {"path": "All.sln", "projects": [project, "A.csproj"]}})

        solution = read_solution(str(write(tmp_path / "X.slnf", text)))

        assert (projects(tmp_path, solution), bool(solution.issue)) == (["A.csproj"], True)


class TestFilesThatCannotBeRead:
    @pytest.mark.parametrize("name", ["missing.sln", "missing.slnx", "missing.slnf", "a\0b.sln"])
    def test_a_missing_file_is_named(self, tmp_path: Path, name: str) -> None:
        solution = read_solution(str(tmp_path / name))

        assert solution.projects == ()
        assert solution.issue
        assert str(tmp_path) in solution.issue.message

    def test_a_folder_is_no_solution(self, tmp_path: Path) -> None:
        (tmp_path / "X.sln").mkdir()

        assert read_solution(str(tmp_path / "X.sln")).issue

    def test_another_extension_is_no_solution(self, tmp_path: Path) -> None:
        solution = read_solution(str(write(tmp_path / "App.csproj", "<Project />")))

        assert solution.issue
        assert ".slnx" in solution.issue.message

    def test_a_relative_path_is_made_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path / "X.sln", sln("A.csproj"))
        monkeypatch.chdir(tmp_path)

        assert read_solution("X.sln").projects == (str(tmp_path / "A.csproj"),)

    def test_a_removed_current_folder_is_no_crash(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()

        assert read_solution("X.sln").issue
