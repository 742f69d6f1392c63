"""Asking MSBuild: how `dotnet build` is called, how its dump files are read, and what becomes of its failures.

The stand-in for dotnet does what the two targets of the Uno SDK do: it appends to the file that it is told, as UTF-16.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from support.files import write
from uno_devserver.discovery import msbuild_query
from uno_devserver.discovery.msbuild_query import MSBuildAnswer, ask_msbuild

FRAMEWORKS, ADD_INS = "UnoDumpTargetFrameworks", "UnoDumpRemoteControlAddIns"
BOM = b"\xff\xfe"

_DOTNET = """#!{python} -IS
import json, os, signal, sys
from urllib.parse import unquote
here = os.path.dirname(os.path.abspath(__file__))
argv = sys.argv[1:]
with open(os.path.join(here, "calls.jsonl"), "a") as log:
    log.write(json.dumps({{"argv": argv, "cwd": os.getcwd(), "nologo": os.environ.get("DOTNET_NOLOGO")}}) + "\\n")
with open(os.path.join(here, "plan.json")) as file:
    plan = json.load(file)
target = next(a for a in argv if a.startswith("-t:"))[3:]
framework = argv[argv.index("--framework") + 1] if "--framework" in argv else ""
step = plan.get(target + "/" + framework) or plan.get(target, {{}})
sys.stdout.write(step.get("prints", ""))
sys.stdout.flush()
value = next(a for a in argv if a.startswith("-p:" + target + "TargetFile=")).split("=", 1)[1]
for data in step.get("dumps", []):
    with open(unquote(value), "ab") as file:
        file.write(bytes.fromhex(data))
if step.get("hangs"):
    signal.pause()
sys.exit(step.get("exit", 0))
"""


def dump(*texts: str, bom: bytes = BOM) -> list[str]:
    """What WriteLinesToFile appends, call by call: the mark only at the start of the file."""
    parts = [text.encode("utf-16-le") for text in texts]
    return [(bom + parts[0]).hex(), *(part.hex() for part in parts[1:])]


class Workspace:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.solution = write(root / "My App" / "My App.sln", "")
        self.host = write(root / "nuget" / "host" / "net10.0" / "Uno.UI.RemoteControl.Host.dll", b"MZ")
        self.scratch = root / "state" / "msbuild"
        self.bin = root / "dotnet"
        write(self.bin / "dotnet", _DOTNET.format(python=sys.executable)).chmod(0o755)

    def plan(self, **steps: dict[str, Any]) -> Workspace:
        """What each target does; the frameworks are net10.0 unless said."""
        default = {FRAMEWORKS: {"dumps": dump("net10.0\n")}}
        named = {name.replace("__", "/").replace("_", "."): step for name, step in steps.items()}
        write(self.bin / "plan.json", json.dumps(default | named))
        return self

    def ask(self, host: Path | None = None) -> MSBuildAnswer:
        environ = {"PATH": str(self.bin)}
        return ask_msbuild(str(self.solution), (), str(host) if host else None, str(self.scratch), environ)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.bin / "calls.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def value_of(argument: str) -> str:
    """The value of a property on MSBuild's command line, with its escapes undone."""
    return unquote(argument.partition("=")[2])


# --- the calls ----------------------------------------------------------------------------------------------------


def test_two_builds_ask_for_the_frameworks_and_then_for_the_add_ins(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/nuget/a.dll\n/nuget/b.dll\n")})

    answer = workspace.ask(workspace.host)

    assert answer == MSBuildAnswer(("/nuget/a.dll", "/nuget/b.dll"))
    first, second = (call["argv"] for call in workspace.calls)
    custom = f"-p:CustomBeforeMicrosoftCSharpTargets={workspace.host.parent}/DevServer.Custom.Targets"
    assert first[:3] == ["build", str(workspace.solution), f"-t:{FRAMEWORKS}"]
    assert first[3].startswith(f"-p:{FRAMEWORKS}TargetFile={workspace.scratch}/")
    assert first[4:] == [custom, "--verbosity", "quiet"]
    assert second[:3] == ["build", str(workspace.solution), f"-t:{ADD_INS}"]
    assert second[3].startswith(f"-p:{ADD_INS}TargetFile={workspace.scratch}/")
    assert second[4:] == [custom, "--verbosity", "quiet", "--framework", "net10.0", "-nowarn:MSB4057"]


def test_without_a_host_there_are_no_targets_of_it(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/nuget/a.dll\n")}).ask()

    assert not [part for call in workspace.calls for part in call["argv"] if "CustomBefore" in part]


def test_builds_run_in_the_solutions_folder(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/nuget/a.dll\n")}).ask()

    assert {call["cwd"] for call in workspace.calls} == {str(workspace.solution.parent)}
    assert {call["nologo"] for call in workspace.calls} == {"1"}


@pytest.mark.parametrize(
    "name", ["with space", "semi;colon", "com,ma", "per%20cent", "dollar$(A)", "at@(B)", "quote'", "(x86)"]
)
def test_a_path_with_characters_that_msbuild_reads_arrives_as_it_is(tmp_path: Path, name: str) -> None:
    workspace = Workspace(tmp_path / name)
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/nuget/a.dll\n")})

    answer = workspace.ask(workspace.host)

    assert answer.paths == ("/nuget/a.dll",)
    for call in workspace.calls:
        assert call["argv"][1] == str(workspace.solution)
        properties = [part for part in call["argv"] if part.startswith("-p:")]
        assert not [part for part in properties if any(separator in part for separator in ";,$@")]
        assert Path(value_of(properties[0])).parent == workspace.scratch
        assert value_of(properties[1]) == str(workspace.host.parent / "DevServer.Custom.Targets")


# --- the answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dumps",
    [
        dump("/a.dll\n/b.dll\n"),
        dump("/a.dll\r\n/b.dll\r\n"),
        dump("/a.dll;/b.dll"),
        dump("/a.dll,/b.dll\n"),
        dump("/a.dll\n", "/b.dll\n"),
        dump("\n\n /a.dll \n;;/b.dll;\n\n"),
        dump("/a.dll\n/b.dll\n/A.DLL\n/a.dll\n"),
        dump("/a.dll\n/b.dll\n", bom=b""),
        dump("", "/a.dll\n", "/b.dll\n"),
    ],
    ids=["lines", "CRLF", "semicolons", "commas", "appended", "blanks", "repeated", "no mark", "empty first"],
)
def test_a_dump_is_a_list_in_any_of_the_forms_that_targets_write(workspace: Workspace, dumps: list[str]) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dumps})

    assert workspace.ask() == MSBuildAnswer(("/a.dll", "/b.dll"))


def test_names_in_other_letters_arrive(workspace: Workspace) -> None:
    """The reason why the dump is UTF-16: console encodings spoil them."""
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/Žluťoučký/🐎.dll\n")})

    assert workspace.ask().paths == ("/Žluťoučký/🐎.dll",)


def test_frameworks_are_asked_in_turn_until_one_has_add_ins(workspace: Workspace) -> None:
    workspace.plan(
        UnoDumpTargetFrameworks={"dumps": dump(";net9.0;net10.0\n", "net10.0-android;net11.0\n")},
        UnoDumpRemoteControlAddIns__net9_0={"exit": 1, "prints": "error MSB4057\n"},
        UnoDumpRemoteControlAddIns__net10_0={"dumps": [BOM.hex()]},
        **{"UnoDumpRemoteControlAddIns__net10_0-android": {"dumps": dump("/a.dll\n")}},
    )

    answer = workspace.ask()

    assert answer == MSBuildAnswer(("/a.dll",))
    asked = [call["argv"][call["argv"].index("--framework") + 1] for call in workspace.calls[1:]]
    assert asked == ["net9.0", "net10.0", "net10.0-android"]


def test_a_solution_without_add_ins_is_an_answer_and_no_failure(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": [BOM.hex()]})

    assert workspace.ask() == MSBuildAnswer(())


def test_add_ins_count_even_if_the_build_fails_afterwards(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/a.dll\n"), "exit": 1, "prints": "error CS0000\n"})

    assert workspace.ask() == MSBuildAnswer(("/a.dll",))


@pytest.mark.parametrize("data", [b"\xff", b"\xfe\xff", b"\xff\xfe\x00", b"MZ\0\0", b"\0" * 9], ids=repr)
def test_a_dump_of_garbage_is_no_error(workspace: Workspace, data: bytes) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": [data.hex()]})

    assert isinstance(workspace.ask(), MSBuildAnswer)


# --- failures -----------------------------------------------------------------------------------------------------


def failure(answer: MSBuildAnswer) -> str:
    (issue,) = answer.issues
    assert answer.paths == ()
    assert (issue.code, issue.fatal) == ("MSBuildDiscoveryFailed", False)
    return issue.message


def test_a_failing_build_is_quoted(workspace: Workspace) -> None:
    workspace.plan(UnoDumpTargetFrameworks={"exit": 1, "prints": "App.csproj: error NU1101: no such package\nmore\n"})

    message = failure(workspace.ask())

    assert "App.csproj: error NU1101: no such package" in message
    assert "more" not in message
    assert str(workspace.solution) in message


def test_the_reason_is_the_first_error_and_not_what_is_printed_before_it(workspace: Workspace) -> None:
    before = "Welcome to .NET!\n\nMicrosoft (R) Build Engine\nA.csproj : warning NU1701: old\n"
    error = "A.csproj(4,3): error : The service index cannot be loaded."
    workspace.plan(UnoDumpTargetFrameworks={"exit": 1, "prints": f"{before}  {error}\nBuild FAILED.\n"})

    assert failure(workspace.ask()).endswith(f"dotnet build: {error}")


def test_a_build_that_fails_without_a_word_gives_its_exit_code(workspace: Workspace) -> None:
    assert "exit code 7" in failure(workspace.plan(UnoDumpTargetFrameworks={"exit": 7}).ask())


def test_an_endless_line_is_quoted_in_part(workspace: Workspace) -> None:
    message = failure(workspace.plan(UnoDumpTargetFrameworks={"exit": 1, "prints": "x" * 100_000}).ask())

    assert len(message) < 1000


def test_no_frameworks_are_a_failure_also_of_a_build_that_succeeds(workspace: Workspace) -> None:
    assert "no target frameworks" in failure(workspace.plan(UnoDumpTargetFrameworks={}).ask())


def test_builds_that_fail_for_every_framework_are_a_failure(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"exit": 1, "prints": "error MSB4057: no such target\n"})

    assert "error MSB4057" in failure(workspace.ask())


def test_a_build_that_hangs_is_stopped(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msbuild_query, "BUILD_SECONDS", 0.3)
    workspace.plan(UnoDumpTargetFrameworks={"prints": "Restoring...\n", "hangs": True})

    assert "gave no answer within 0.3 s" in failure(workspace.ask())


def test_without_dotnet_nothing_is_started(workspace: Workspace) -> None:
    (workspace.bin / "dotnet").unlink()

    assert "'dotnet'" in failure(workspace.plan().ask())


def test_a_scratch_folder_that_cannot_be_made_is_named(workspace: Workspace) -> None:
    write(workspace.scratch.parent, "a file")

    assert str(workspace.scratch) in failure(workspace.plan().ask())


# --- what is left behind ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [{"dumps": dump("/a.dll\n")}, {"exit": 1, "dumps": dump("/a.dll\n")}, {"dumps": dump("/a.dll\n"), "hangs": True}],
    ids=["success", "failure", "hanging"],
)
def test_no_dump_file_is_left(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, step: dict[str, Any]) -> None:
    monkeypatch.setattr(msbuild_query, "BUILD_SECONDS", 0.5)

    workspace.plan(UnoDumpRemoteControlAddIns=step).ask()

    assert list(workspace.scratch.iterdir()) == []


def test_the_dump_of_a_killed_run_with_the_same_process_id_is_not_mixed_in(workspace: Workspace) -> None:
    workspace.plan(UnoDumpRemoteControlAddIns={"dumps": dump("/new.dll\n")}).ask()
    for call in workspace.calls:
        write(Path(value_of(call["argv"][3])), bytes.fromhex(dump("/old.dll\nnet1.0\n")[0]))

    assert workspace.ask() == MSBuildAnswer(("/new.dll",))
