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

from .repositories import repository

UNO = '{ "msbuild-sdks": { "Uno.Sdk": "6.5.31" } }'
PLAIN = '{"sdk":{"version":"10.0.100"}}'
SLNX = '<Solution><Project Path="App/App.csproj" /></Solution>'


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
        "config": relative(workspace.config),
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
    "both-solution-formats-same-folder": here({"global.json": UNO, "App.slnx": SLNX, "App.sln": ""})
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
        "config": None,
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
            "config": None,
        }

    @pytest.mark.parametrize(("content", "cause"), [(PLAIN, "UnoSdkNotInGlobalJson"), ("{", "GlobalJsonInvalid")])
    def test_a_global_json_without_uno_makes_no_workspace(self, tmp_path: Path, content: str, cause: str) -> None:
        write(tmp_path / "global.json", content)

        workspace = resolve(str(tmp_path), explicit=True)

        assert workspace.kind is ResolutionKind.NoValidWorkspace
        assert codes(workspace) == [("WorkspaceNotResolved", "Fatal"), (cause, "Fatal")]

    def test_a_folder_in_it_is_the_same_workspace(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": UNO, "src/readme.txt": ""})

        inner, outer = (resolve(str(folder), explicit=True) for folder in (tmp_path / "src", tmp_path))

        assert inner.kind is ResolutionKind.AutoDiscovered
        assert inner.replace(requested_directory=outer.requested_directory, kind=outer.kind) == outer

    def test_a_global_json_without_uno_above_it_is_named(self, tmp_path: Path) -> None:
        write_all(tmp_path, {"global.json": PLAIN, "src/readme.txt": ""})

        workspace = resolve(str(tmp_path / "src"), explicit=True)

        assert codes(workspace) == [("NoSolutionFound", "Warning"), ("UnoSdkNotInGlobalJson", "Warning")]
        assert str(tmp_path / "global.json") in workspace.issues[1].message


CONFIG = ".devtools/host.config.jsonc"
ADDINS = ".devtools/addins/hello.py"
NO_VERSION = '{"msbuild-sdks":{"Uno.Sdk":""}}'
CONTENTS = {"uno": UNO, "plain": PLAIN, "broken": '{\n  "msbuild-sdks": }', "no-version": NO_VERSION, "": ""}

# The files, a name that ends in a slash being a folder; the folder that is resolved; and what is found there.
CASES = {
    "a global.json may lie above the directory": (
        "global.json=uno src/app/App.slnx", "src/app",
        "kind=AutoDiscovered working=. effective=. solution=src/app/App.slnx candidates=src/app/App.slnx",
    ),
    "that is the one that counts": ("global.json=uno src/App.slnx", "src", "global_json=global.json"),
    "a nearer global.json without Uno hides the one above": (
        "global.json=uno src/global.json=plain src/App.slnx", ".", "kind=NoValidWorkspace",
    ),
    "so does a broken one": ("global.json=uno src/global.json=broken src/App.slnx", ".", "kind=NoValidWorkspace"),
    "so does one without a version": (
        "global.json=uno src/global.json=no-version src/App.slnx", ".", "kind=NoValidWorkspace",
    ),
    "the solution closest to its global.json wins": (
        "global.json=uno App.slnx samples/Sample.slnx", ".", "solution=App.slnx",
    ),
    "a solution in the directory beats submodules": (
        "global.json=uno App.slnx one/global.json=uno one/Lib.slnx two/global.json=uno two/Lib.slnx", ".",
        "kind=CurrentDirectory solution=App.slnx candidates=App.slnx,one/Lib.slnx,two/Lib.slnx",
    ),
    "a solution whose global.json is in the directory beats submodules": (
        "global.json=uno src/App.slnx ext/global.json=uno ext/src/Lib.slnx", ".",
        "kind=CurrentDirectory solution=src/App.slnx",
    ),
    "a solution in the directory wins also with its global.json above": (
        "global.json=uno app/App.slnx app/ext/global.json=uno app/ext/src/Lib.slnx", "app",
        "kind=AutoDiscovered solution=app/App.slnx",
    ),
    "two in the directory stay ambiguous": (
        "global.json=uno A.slnx B.slnx x/global.json=uno x/X.slnx", ".",
        "kind=Ambiguous issues=WorkspaceAmbiguous:Warning",
    ),
    "a resolved workspace has no issues": ("global.json=uno App.slnx", ".", "issues="),
    "no solution and no global.json": (
        "empty/", "empty", "working=empty issues=NoSolutionFound:Warning,GlobalJsonNotFound:Warning",
    ),
    "no solution, and a global.json without Uno above": (
        "global.json=plain a/", "a", "working=a issues=NoSolutionFound:Warning,UnoSdkNotInGlobalJson:Warning",
    ),
    "no solution, and a global.json with Uno above": (
        "global.json=uno a/b/", "a/b", "kind=NoCandidates working=. effective=None issues=NoSolutionFound:Warning",
    ),
    "a folder in a workspace is that workspace": (
        "global.json=uno App.slnx App/src/", "App/src",
        "kind=AutoDiscovered working=. effective=. solution=App.slnx global_json=global.json candidates=App.slnx",
    ),
    "the solution nearest above counts": (
        "global.json=uno App.slnx lib/Lib.slnx lib/src/", "lib/src", "effective=. solution=lib/Lib.slnx",
    ),
    "a solution above is found at any depth": (
        "global.json=uno 1/2/3/4/App.slnx 1/2/3/4/App/src/", "1/2/3/4/App/src", "effective=. solution=1/2/3/4/App.slnx",
    ),
    "from a folder in it, two solutions are as ambiguous": (
        "global.json=uno A.slnx B.slnx App/", "App",
        "kind=Ambiguous working=. candidates=A.slnx,B.slnx issues=WorkspaceAmbiguous:Warning",
    ),
    "a folder of a submodule is the submodule": (
        "global.json=uno App.slnx ext/global.json=uno ext/Lib.slnx ext/src/", "ext/src",
        "effective=ext solution=ext/Lib.slnx",
    ),
    "a nearer global.json without Uno ends the workspace above": (
        "global.json=uno App.slnx tools/global.json=plain tools/src/", "tools/src",
        "kind=NoCandidates working=tools/src issues=NoSolutionFound:Warning,UnoSdkNotInGlobalJson:Warning",
    ),
    "solutions without Uno below leave a folder in its workspace": (
        "global.json=uno App.slnx tools/x/global.json=plain tools/x/T.slnx", "tools", "effective=. solution=App.slnx",
    ),
    "a config between a folder and the solution above decides": (
        f"global.json=uno App.slnx mcp/{CONFIG} mcp/src/", "mcp/src", "effective=mcp solution=None global_json=None",
    ),
    "a config farther than the solution above does not decide": (
        f"{CONFIG} app/global.json=uno app/App.slnx app/src/", "app/src",
        "effective=app solution=app/App.slnx config=None",
    ),
    "a malformed global.json of a loser is a warning": (
        "a/global.json=uno a/A.slnx b/global.json=broken b/B.slnx", ".",
        "solution=a/A.slnx issues=GlobalJsonInvalid:Warning",
    ),
    "a config makes its directory a workspace, and is not read": (
        CONFIG, ".", f"kind=CurrentDirectory effective=. config={CONFIG} solution=None global_json=None issues=",
    ),
    "the nearest config above counts": (
        f"{CONFIG} a/{CONFIG} a/b/c/", "a/b/c", f"kind=AutoDiscovered config=a/{CONFIG} effective=a working=a",
    ),
    "a folder of add-ins makes a workspace as a config does": (
        f"a/{ADDINS}", "a", "kind=CurrentDirectory effective=a config=None issues=",
    ),
    "a folder of add-ins above counts, too": (f"a/{ADDINS} a/b/", "a/b", "kind=AutoDiscovered effective=a"),
    "a folder of add-ins below does not count": (f"a/{ADDINS}", ".", "kind=NoCandidates"),
    "a config above add-ins": (f"{CONFIG} a/{ADDINS} a/b/{CONFIG}", ".", f"effective=. config={CONFIG}"),
    "add-ins below a config": (f"{CONFIG} a/{ADDINS} a/b/{CONFIG}", "a", "effective=a config=None"),
    "a config below add-ins": (f"{CONFIG} a/{ADDINS} a/b/{CONFIG}", "a/b", f"effective=a/b config=a/b/{CONFIG}"),
    "a file in the place of the add-ins does not count": (".devtools/addins", ".", "kind=NoCandidates"),
    "a folder in the place of the config does not count": (f"{CONFIG}/", ".", "kind=NoCandidates"),
    "an Uno workspace decides and keeps the config beside it": (
        f"{CONFIG} global.json=uno App.slnx", ".", f"solution=App.slnx config={CONFIG}",
    ),
    "an Uno workspace elsewhere leaves the config out": (
        f"{CONFIG} app/global.json=uno app/App.slnx", ".", "effective=app config=None",
    ),
    "a folder in it has that solution, too, beside a config": (
        f"{CONFIG} global.json=uno App.slnx App/src/", "App/src",
        f"kind=AutoDiscovered effective=. solution=App.slnx global_json=global.json config={CONFIG}",
    ),
    "and beside add-ins": (
        f"{ADDINS} global.json=uno App.slnx App/", "App", "effective=. solution=App.slnx global_json=global.json",
    ),
    "and where the solution is deeper": (
        f"{ADDINS} global.json=uno src/App.slnx tools/x/", "tools/x", "effective=. solution=src/App.slnx",
    ),
    "beside a config, a global.json with Uno counts without a solution": (
        f"{CONFIG} global.json=uno App/", "App", f"effective=. solution=None global_json=global.json config={CONFIG}",
    ),
    "a folder beside an Uno workspace below a config has the config": (
        f"{CONFIG} app/global.json=uno app/App.slnx mcp/", "mcp", f"effective=. solution=None config={CONFIG}",
    ),
    "from a folder in it, solutions beside a config are as ambiguous": (
        f"{CONFIG} global.json=uno A.slnx B.slnx App/", "App",
        "kind=AutoDiscovered effective=. solution=None candidates=A.slnx,B.slnx issues=WorkspaceAmbiguous:Warning",
    ),
    "beside a config, solutions without Uno are no longer an error": (
        f"{CONFIG} Tool.slnx global.json=broken", ".",
        "kind=CurrentDirectory candidates=Tool.slnx issues=GlobalJsonInvalid:Warning",
    ),
    "and without a solution, too": (
        f"{CONFIG} global.json=broken", ".", "kind=CurrentDirectory issues=GlobalJsonInvalid:Warning",
    ),
    "beside a config, ambiguous solutions are still worth a warning": (
        f"{CONFIG} global.json=uno A.slnx B.slnx", ".",
        "kind=CurrentDirectory solution=None issues=WorkspaceAmbiguous:Warning",
    ),
}  # fmt: skip


def lay_out(root: Path, files: str) -> None:
    for name, _, content in (file.partition("=") for file in files.split()):
        if name.endswith("/"):
            (root / name).mkdir(parents=True)
        else:
            write(root / name, CONTENTS[content])


@pytest.mark.parametrize(("files", "start", "expected"), CASES.values(), ids=CASES)
def test_a_directory_resolves(tmp_path: Path, files: str, start: str, expected: str) -> None:
    lay_out(tmp_path, files)

    workspace = resolve(str(tmp_path / start))

    found = seen(workspace, tmp_path)
    found["candidates"] = ",".join(found["candidates"])
    found["issues"] = ",".join(":".join(issue) for issue in codes(workspace))
    assert {f"{name}={value}" for name, value in found.items()} >= set(expected.split())


@pytest.mark.parametrize(
    ("files", "issues", "said", "silent"),
    [
        ("x.txt", ["NoSolutionFound:Warning", "GlobalJsonNotFound:Warning"], ["{root}"], "x.txt"),
        (
            "a/global.json=uno a/A.slnx b/global.json=uno b/B.slnx a/far/Far.slnx",
            ["WorkspaceAmbiguous:Warning"],
            ["{root}{sep}a{sep}A.slnx, {root}{sep}b{sep}B.slnx"],
            "Far.slnx",
        ),
        (
            " ".join(["global.json=uno", *(f"App{number:02}.slnx" for number in range(30))]),
            ["WorkspaceAmbiguous:Warning"],
            ["App09.slnx and 20 more."],
            "App10.slnx",
        ),
        (
            "a/A.slnx b/B.slnx b/global.json=plain",
            ["WorkspaceNotResolved:Fatal", "GlobalJsonNotFound:Fatal", "UnoSdkNotInGlobalJson:Fatal"],
            [
                "{root}{sep}a{sep}A.slnx (no global.json",
                "{root}{sep}b{sep}B.slnx ({root}{sep}b{sep}global.json names no version of an Uno SDK)",
            ],
            "is not valid",
        ),
        (
            "global.json=broken A.slnx B.slnx",
            ["WorkspaceNotResolved:Fatal", "GlobalJsonInvalid:Fatal"],
            ["{root}{sep}global.json is not valid JSON: line 2, column 19"],
            "names no",
        ),
    ],
    ids=["the directory", "those that tie, and no others", "ten of many", "why there is no Uno", "a file, once"],
)
def test_issues_name(tmp_path: Path, files: str, issues: list[str], said: list[str], silent: str) -> None:
    lay_out(tmp_path, files)

    workspace = resolve(str(tmp_path))

    assert [":".join(issue) for issue in codes(workspace)] == issues
    messages = " ".join(issue.message for issue in workspace.issues)
    assert all(words.format(root=tmp_path, sep=os.sep) in messages for words in said), messages
    assert silent not in messages


def test_beside_a_config_a_plain_solution_can_be_selected(tmp_path: Path) -> None:
    write_all(tmp_path, {CONFIG: "{}", "A.slnx": "", "B.slnx": ""})
    workspace = resolve(str(tmp_path))

    selected = select_solution(workspace, "B.slnx")

    assert selected == workspace.replace(solution=str(tmp_path / "B.slnx"), source=SelectionSource.UserSelected)


class TestADirectoryThatCannotBeUsed:
    def test_a_missing_one_says_so(self, tmp_path: Path) -> None:
        workspace = resolve(str(tmp_path / "missing"))

        assert workspace.kind is ResolutionKind.NoCandidates
        assert codes(workspace) == [("WorkspaceNotResolved", "Fatal")]
        assert f"There is no folder {tmp_path / 'missing'}." in workspace.issues[0].message

    def test_a_file_says_so(self, tmp_path: Path) -> None:
        file = write(tmp_path / "App.sln", "")

        assert "is not a folder." in resolve(str(file), explicit=True).issues[0].message

    @pytest.mark.parametrize("directory", ["a\0b", "x" * 5000])
    def test_an_impossible_name_says_so(self, directory: str) -> None:
        workspace = resolve(directory)

        assert (workspace.kind, len(workspace.issues)) == (ResolutionKind.NoCandidates, 1)

    def test_an_unreadable_one_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # given: the test may run as a user who can read everything, so the system's answer is given here
        def refuse(path: str) -> None:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", refuse)

        assert f"The folder {tmp_path} cannot be read: permission denied." in resolve(str(tmp_path)).issues[0].message

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
            "config": None,
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


def test_what_a_link_in_the_folder_leads_to_is_not_its_own(tmp_path: Path) -> None:
    """Neither is written into, although the solution there is selected."""
    for name in ("outside", "ws/inside"):
        write(tmp_path / name / "global.json", '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
        write(tmp_path / name / "App.slnx", "<Solution/>")
    workspace = tmp_path / "ws"

    own = resolve(str(workspace)).own_directory
    (workspace / "inside" / "App.slnx").unlink()
    (workspace / "link").symlink_to(tmp_path / "outside")
    found = resolve(str(workspace))

    assert own == str(workspace / "inside")
    assert (found.working_directory, found.own_directory) == (str(workspace / "link"), str(workspace))
    below = resolve(str(tmp_path / "outside" / "src"), explicit=True)
    assert below.own_directory == str(tmp_path / "outside" / "src")


def test_a_link_to_a_folder_of_a_workspace_is_that_workspace(tmp_path: Path) -> None:
    lay_out(tmp_path, "ws/global.json=uno ws/App.slnx ws/App/")
    (tmp_path / "link").symlink_to(tmp_path / "ws" / "App")

    found = resolve(str(tmp_path / "link"), explicit=True)

    assert found.requested_directory == str(tmp_path / "link")
    assert found.solution == str(tmp_path / "ws" / "App.slnx")
    assert found.working_directory == found.own_directory == str(tmp_path / "ws")


def test_a_workspace_from_which_a_nearer_global_json_separates_a_folder_is_named(tmp_path: Path) -> None:
    lay_out(tmp_path, "global.json=uno App.slnx a/global.json=plain a/b/global.json=plain a/b/c/")

    issue = resolve(str(tmp_path / "a" / "b" / "c")).issues[0]

    assert (issue.code, str(tmp_path / "global.json") in issue.message) == ("NoSolutionFound", True)
    assert issue.remediation.startswith(f"Run from {tmp_path}, ")


def test_the_folder_of_a_global_json_above_the_requested_one_is_its_own(tmp_path: Path) -> None:
    write(tmp_path / "global.json", '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
    write(tmp_path / "src" / "App.slnx", "<Solution/>")

    assert resolve(str(tmp_path / "src")).own_directory == str(tmp_path)


# --- names that are nearly right ---


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("addin/one.py", "addins"),
        ("add-ins/one.py", "addins"),
        ("Addins/one.py", "addins"),
        ("host.config.json", "host.config.jsonc"),
        ("hosts.config.jsonc", "host.config.jsonc"),
        ("addins/one.py", None),
        ("host.config.jsonc", None),
        ("host.config.schema.json", None),
        ("other.json", None),
    ],
)
@pytest.mark.parametrize("beside", ["", "global.json"])
def test_a_name_that_is_nearly_right_is_told_from_each_folder_of_the_workspace(
    tmp_path: Path, name: str, right: str | None, beside: str
) -> None:
    devtools = tmp_path / ".devtools"
    path = write(devtools / name, "{}")
    misnamed = path if path.parent == devtools else path.parent
    if beside:
        write(tmp_path / beside, '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
        write(tmp_path / "App.slnx", "<Solution />")
    (tmp_path / "src").mkdir()
    # Where case does not count, as on Windows, `Addins` is the right name.
    is_told = right is not None and not (devtools / right).exists()

    for folder in (tmp_path, tmp_path / "src"):
        found = [issue for issue in resolve(str(folder)).issues if issue.code == "FileMisnamed"]

        assert [str(misnamed) in issue.message for issue in found] == [True] * is_told
        assert all(str(right) in issue.remediation for issue in found)


def test_many_misnamed_files_are_counted(tmp_path: Path) -> None:
    for number in range(40):
        write(tmp_path / ".devtools" / f"host.config{number}.json", "{}")

    found = [issue.message for issue in resolve(str(tmp_path)).issues if issue.code == "FileMisnamed"]

    assert len(found) == 6
    assert found[-1].startswith("35 more in")


def test_misnamed_files_of_other_users_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / ".devtools" / "host.config.json", "{}")
    (tmp_path / "src").mkdir()
    monkeypatch.setattr("uno_devserver.workspace.devtools_folder.is_foreign", lambda _: True)

    assert "FileMisnamed" not in [issue.code for issue in resolve(str(tmp_path / "src")).issues]
