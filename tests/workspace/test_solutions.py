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


def filter_of(path: str, *selected: object) -> str:
    return json.dumps({"solution": {"path": path, "projects": selected}})


NESTED = "<Solution>" + "<Folder>" * 50 + '<Project Path="A.csproj" />' + "</Folder>" * 50 + "</Solution>"
DAMAGED = 'Project("{9A19}") = "B, B\\B.csproj\nEndProject\n'
# The name of the file, its text, the projects, and what is said of it; beside it lies src/All.sln with A and B.
FILES: dict[str, tuple[str, str, list[str], str]] = {
    "a cut off file keeps its last project": (
        "X.sln",
        sln("A/A.csproj") + sln("B/B.csproj", end="").split("\n", 1)[1],
        ["A/A.csproj", "B/B.csproj"],
        "ends inside a Project",
    ),
    "a damaged line costs only its own project": (
        "X.sln",
        (sln("A/A.csproj") + DAMAGED + sln("C/C.csproj")).replace("\n", "\r\n"),
        ["A/A.csproj", "C/C.csproj"],
        "line 4",
    ),
    "the order is that of the file, and a project in two spellings counts once": (
        "X.sln",
        sln("z\\Z.csproj", "a\\..\\b\\B.csproj", ".\\b/B.csproj", "..\\Up.csproj"),
        ["z/Z.csproj", "b/B.csproj", "../Up.csproj"],
        "",
    ),
    "old Macintosh line ends are line ends": (
        "X.sln", sln("A.csproj", "B.csproj").replace("\n", "\r"), ["A.csproj", "B.csproj"], "",
    ),
    "a path that no system call takes is left out": (
        "X.sln", sln("A\0.csproj", "B.csproj"), ["B.csproj"], "'A\\x00.csproj'",
    ),
    "folders in folders are read": ("X.slnx", NESTED, ["A.csproj"], ""),
    "hostile nesting is refused": ("X.slnx", "<Solution>" + "<Folder>" * 1_000_000, [], "X.slnx"),
    "projects of unknown elements do not count": (
        "X.slnx",
        '<Solution><Other><Project Path="A.csproj" /></Other><File Path="B.csproj" /></Solution>',
        [],
        "",
    ),
    "one project without a path does not lose the others": (
        "X.slnx", '<Solution><Project /><Project Path="A.csproj" /></Solution>', ["A.csproj"], "without a path",
    ),
    "paths of a filter are relative to the solution": (
        "filters/X.slnf", filter_of("..\\src\\All.sln", "B\\B.csproj"), ["../src/B/B.csproj"], "",
    ),
    **{
        f"a filter of what is no solution is refused: {path!r}": ("X.slnf", filter_of(path, "A.csproj"), [], "X.slnf")
        for path in ("X.slnf", "Other.slnf", "readme.txt", "")
    },
    **{
        f"another shape is refused: {text}": ("X.slnf", text, [], "it lacks 'solution'")
        for text in (
            "[]",
            "{}",
            '{"solution": []}',
            '{"solution": {"path": 1, "projects": []}}',
            '{"solution": {"path": "A.sln", "projects": "x"}}',
            '{"solution": {"path": "A\\u0000.sln", "projects": []}}',
        )
    },
    **{
        f"an entry that is no path is named and left out: {entry!r}": (
            "X.slnf", filter_of("src/All.sln", entry, "A\\A.csproj"), ["src/A/A.csproj"], "which is not in",
        )
        for entry in (1, None, ["A.csproj"], "\ud800.csproj", "", "\0")
    },
    "another extension is no solution": ("App.csproj", "<Project />", [], ".slnx"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected", "words"), FILES.values(), ids=FILES)
def test_a_file_gives_its_projects(tmp_path: Path, name: str, text: str, expected: list[str], words: str) -> None:
    write(tmp_path / "src" / "All.sln", sln("A\\A.csproj", "B\\B.csproj"))
    path = write(tmp_path / name, text)

    solution = read_solution(str(path))

    assert projects(path.parent, solution) == expected
    assert bool(solution.issue) is bool(words)
    assert solution.issue is None or words in solution.issue.message


@pytest.mark.parametrize(
    "line", ['Project("', "Project(" + " " * 40, 'Project("x"' + " " * 40, " \t" * 20, "EndProject"]
)
def test_a_huge_damaged_file_is_read_in_linear_time(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "X.sln", f"{line}\n" * (4_000_000 // len(line)) + line * 100_000)

    begin = time.monotonic()
    solution = read_solution(str(path))

    assert solution.issue
    assert time.monotonic() - begin < 10  # 0.2 s here; quadratic work would take hours


@given(st.text(alphabet=st.sampled_from('Project("{}) = ,\\/.\r\n\tEnd#aé\0'), max_size=200))
@example(sln("A.csproj"))
def test_any_text_gives_a_solution(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any" / "X.sln", text)

    solution = read_solution(str(path))

    assert all(os.path.isabs(project) and "\0" not in project for project in solution.projects)
    assert solution.issue or "Microsoft Visual Studio Solution File" in text


@given(st.binary(max_size=400))
def test_any_bytes_give_a_solution_in_each_format(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    for name in ("X.sln", "X.slnx", "X.slnf"):
        path = write(tmp_path_factory.getbasetemp() / "any" / name, content)
        assert read_solution(str(path)).path == str(path)


@pytest.mark.parametrize("name", ["missing.sln", "missing.slnx", "missing.slnf", "a\0b.sln"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    solution = read_solution(str(tmp_path / name))

    assert solution.projects == ()
    assert solution.issue
    assert str(tmp_path) in solution.issue.message


def test_a_folder_is_no_solution(tmp_path: Path) -> None:
    (tmp_path / "X.sln").mkdir()

    assert read_solution(str(tmp_path / "X.sln")).issue


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "X.sln", sln("A.csproj"))
    monkeypatch.chdir(tmp_path)

    assert read_solution("X.sln").projects == (str(tmp_path / "A.csproj"),)


def test_a_removed_current_folder_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert read_solution("X.sln").issue
