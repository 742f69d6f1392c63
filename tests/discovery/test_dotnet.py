"""Which SDK works in a folder: the rules against recorded answers, and real processes where dotnet is asked."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.files import write
from support.privileges import AS_A_USER, needs_a_user
from uno_devserver.discovery import dotnet
from uno_devserver.discovery.dotnet import (
    DotNet,
    DotNetQuestion,
    installed_runtimes,
    resolve_dotnet,
    searched_by_dotnet,
)
from uno_devserver.discovery.dotnet_roll_forward import SdkChoice, SdkVerdict, choose_sdk

RECORDS = json.loads((Path(__file__).parent.parent / "golden/dotnet-version/dotnet-version.json").read_text("utf-8"))
INSTALLED: list[str] = RECORDS["installed_sdks"]

# Each stand-in notes how it was called, so that a test can say whether dotnet was started at all.
NOTE_THE_CALL = 'echo "$1 in $PWD" >> "${0%/*}/calls"\n'


class Machine:
    """A folder for programs, one for the workspace, and the environment in which dotnet is looked for."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.workspace = root / "ws"
        self.cache = root / "state" / "dotnet-version-cache.json"
        self.environ = {"PATH": f"{self.bin}:/usr/bin:/bin"}
        self.bin.mkdir()
        self.workspace.mkdir()

    def program(self, script: str) -> Path:
        """A `dotnet` that is a script; alone in its folder it is a launcher, not an installation."""
        path = write(self.bin / "dotnet", "#!/bin/sh\n" + NOTE_THE_CALL + script)
        path.chmod(0o755)
        return path

    def installation(self, sdks: Sequence[str], script: str = "exit 99\n") -> None:
        """A `dotnet` with SDKs beside it; asked, it answers by `script`."""
        self.program(script)
        for version in sdks:
            write(self.bin / "sdk" / version / "dotnet.dll", "MZ")
        write(self.bin / "host/fxr/10.0.12/libhostfxr.so", "ELF")

    def calls(self) -> list[str]:
        log = self.bin / "calls"
        return [line.split(" in ")[0] for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    def resolve(self, directory: Path | None = None, force: bool = False) -> DotNet:
        return resolve_dotnet(str(directory or self.workspace), self.environ, cache_path=str(self.cache), force=force)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def problem(found: DotNet) -> tuple[str, str]:
    assert found.issue is not None
    assert (found.version, found.tfm, found.source) == (None, None, None)
    # Without any SDK the bundled Host serves; one that cannot be used is an error of the workspace or the machine.
    absent = found.issue.message.startswith("No 'dotnet'") or found.issue.message.endswith("has no .NET SDK.")
    assert found.issue.fatal is not absent
    return found.issue.code, found.issue.message


# --- the recorded cases ---


def replay(record: Mapping[str, Any]) -> str:
    """A script that answers as the real `dotnet --version` did."""
    quoted = [text.replace("'", "'\\''") for text in (record["stdout"], record["stderr"])]
    return f"printf '%s' '{quoted[0]}'\nprintf '%s' '{quoted[1]}' >&2\nexit {record['exit_code']}\n"


@pytest.mark.parametrize(
    "record", RECORDS["cases"], ids=[f"{case['group']}: {case['why']}" for case in RECORDS["cases"]]
)
def test_the_version_is_the_recorded_one(machine: Machine, record: Mapping[str, Any]) -> None:
    machine.installation(INSTALLED, replay(record))
    for name, content in record["files"].items():
        write(machine.workspace / name, content if isinstance(content, str) else bytes.fromhex(content["hex"]))
    directory = machine.workspace / record["cwd"]
    directory.mkdir(parents=True, exist_ok=True)
    machine.environ["UNO_DEVSERVER_TRUST"] = "1"  # some records ask dotnet about SDKs inside the workspace

    found = machine.resolve(directory)

    if record["exit_code"] == 0:
        assert (found.version, found.tfm, found.issue) == (record["stdout"].strip(), "net10.0", None)
    else:
        code, message = problem(found)
        assert code == ("DotNetVersionUnsupported" if record["exit_code"] == 155 else "DotNetNotFound")
        assert "global.json" in message


EVIL = '{"sdk": {"paths": [".dotnet"]}}'


@pytest.mark.parametrize(
    "content",
    [
        EVIL.encode(),
        rb'{"sdk": {"\u0070aths": [".dotnet"]}}',
        b'{"sdk": {}, "sdk": {"paths": [".dotnet"]},}',
        b'{"sdk": {"version": "10.0.401"}, /* "paths" */}',
        EVIL.encode() + b"rest",
        EVIL.replace("}}", "},}").encode(),
        EVIL.encode("utf-16"),
        EVIL.encode("utf-16-le"),
        EVIL.encode("utf-32"),
        b"\xff\xfe" + EVIL.encode() + b" ",
        EVIL.encode()[:-1] + b', "x": "\xc1\xb0"}',
        b'{"sdk": {"\xc1\xb0aths": [".dotnet"]}}',
        EVIL.encode() + b" " * dotnet.GLOBAL_JSON_BYTES,
        b" " * dotnet.GLOBAL_JSON_BYTES + EVIL.encode(),
        b"{" * (dotnet.GLOBAL_JSON_BYTES + 1),
    ],
    ids=lambda content: f"{content[:44]!r} {len(content)}",
)
def test_an_untrusted_workspace_cannot_make_dotnet_run_an_sdk_of_its_own(machine: Machine, content: bytes) -> None:
    machine.installation(INSTALLED, "echo 10.0.401\n")
    write(machine.workspace / "global.json", content)

    found = machine.resolve()

    refused(machine, found, machine.workspace / "global.json")
    machine.environ["UNO_DEVSERVER_TRUST"] = "1"
    assert machine.resolve().version == "10.0.401"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_file_without_the_word_is_asked_about_in_every_encoding(machine: Machine, encoding: str) -> None:
    machine.installation(INSTALLED, "echo 10.0.401\n")
    write(machine.workspace / "global.json", DOUBTFUL.encode(encoding))

    assert machine.resolve().source == "asked"


def refused(machine: Machine, found: DotNet, named: Path) -> None:
    """The issue names the file and the command by which the user agrees, and nothing was started."""
    code, message = problem(found)
    assert (code, machine.calls()) == ("DotNetVersionUnsupported", [])
    assert str(named) in message
    assert found.issue is not None
    assert "'uno-devserver trust'" in found.issue.remediation


@pytest.mark.parametrize(
    "make",
    [
        lambda path: os.mkfifo(path),
        os.mkdir,
        lambda path: os.symlink("global.json", path),
        lambda path: os.symlink("/dev/zero", path),
        lambda path: os.symlink("evil.json", path),
        lambda path: os.symlink("/proc/self/cwd/evil.json", path),
    ],
    ids=["FIFO", "folder", "loop", "device", "link", "link that leads each process elsewhere"],
)
def test_what_stands_in_the_place_of_global_json_and_is_no_file_starts_nothing(
    machine: Machine, make: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.installation(INSTALLED, "echo 10.0.401\n")
    write(machine.workspace / "evil.json", EVIL)
    write(machine.workspace.parent / "global.json", DOUBTFUL)  # this one alone would be asked about
    make(machine.workspace / "global.json")
    monkeypatch.chdir("/")

    refused(machine, machine.resolve(), machine.workspace / "global.json")


@needs_a_user
def test_a_file_that_the_user_may_not_read_starts_nothing(machine: Machine) -> None:
    machine.installation(INSTALLED, "echo 10.0.401\n")
    write(machine.workspace / "global.json", EVIL).chmod(0)
    ask = "import sys, uno_devserver.discovery.dotnet as d; print(d.resolve_dotnet(sys.argv[1], {'PATH': sys.argv[2]}, "
    ask += "cache_path=sys.argv[3]).issue.message)"
    arguments = [str(machine.workspace), machine.environ["PATH"], str(machine.cache)]

    said = subprocess.run(
        [*AS_A_USER, sys.executable, "-c", ask, *arguments], capture_output=True, text=True, check=True
    ).stdout

    assert f"{machine.workspace / 'global.json'} cannot be read (permission denied), so it may set sdk.paths." in said
    assert machine.calls() == []


def test_the_nearest_file_counts_whatever_is_above_it(machine: Machine) -> None:
    machine.installation(INSTALLED, "echo 10.0.401\n")
    write(machine.workspace / "global.json", EVIL)
    write(machine.workspace / "src" / "global.json", DOUBTFUL)

    assert machine.resolve(machine.workspace / "src").source == "asked"
    assert machine.resolve().issue is not None


def test_windows_searches_the_folder_as_it_is_spelled_and_others_the_real_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    searched = [searched_by_dotnet(str(tmp_path / "link"), windows=windows) for windows in (True, False)]

    assert searched == [str(tmp_path / "link"), str(tmp_path / "real")]


def test_nearly_all_recorded_cases_are_decided_without_asking() -> None:
    verdicts = [choose_sdk(content(case), INSTALLED).verdict for case in RECORDS["cases"]]

    decided = [verdict for verdict in verdicts if verdict is not SdkVerdict.ASK]
    assert (len(decided), len(verdicts)) == (152, 172)


def content(record: Mapping[str, Any]) -> bytes | None:
    for folder in ("a/", ""):
        found = record["files"].get(folder + "global.json")
        if found is not None:
            return found.encode() if isinstance(found, str) else bytes.fromhex(found["hex"])
    return None


# --- the rules, with several SDKs ---

MANY = [
    "8.0.111",
    "8.0.404",
    "9.0.100-rc.2.24474.11",
    "9.0.102",
    "9.0.109",
    "9.0.203",
    "9.0.305",
    "9.1.100",
    "10.0.100-preview.4.25258.110",
    "10.0.100",
    "10.0.204",
    "11.0.100-preview.1",
]


@pytest.mark.parametrize(
    ("policy", "from_102", "from_103", "from_206", "from_310", "from_8_0_500"),
    [
        (None, "9.0.102", "9.0.109", None, None, None),
        ("patch", "9.0.102", "9.0.109", None, None, None),
        ("latestPatch", "9.0.109", "9.0.109", None, None, None),
        ("feature", "9.0.109", "9.0.109", "9.0.305", None, None),
        ("latestFeature", "9.0.305", "9.0.305", "9.0.305", None, None),
        ("minor", "9.0.109", "9.0.109", "9.0.305", "9.1.100", None),
        ("latestMinor", "9.1.100", "9.1.100", "9.1.100", "9.1.100", None),
        ("major", "9.0.109", "9.0.109", "9.0.305", "9.1.100", "9.0.109"),
        ("latestMajor", *["11.0.100-preview.1"] * 5),
        ("disable", "9.0.102", None, None, None, None),
    ],
)
def test_roll_forward_chooses_among_several_sdks(
    policy: str | None,
    from_102: str | None,
    from_103: str | None,
    from_206: str | None,
    from_310: str | None,
    from_8_0_500: str | None,
) -> None:
    wanted = ["9.0.102", "9.0.103", "9.0.206", "9.0.310", "8.0.500"]

    chosen = [choose(sdk(version=version, rollForward=policy)) for version in wanted]

    assert chosen == [from_102, from_103, from_206, from_310, from_8_0_500]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "11.0.100-preview.1"),
        ({"allowPrerelease": True}, "11.0.100-preview.1"),
        ({"allowPrerelease": False}, "10.0.204"),
        ({"version": "10.0.100", "rollForward": "latestMajor", "allowPrerelease": False}, "10.0.204"),
        ({"version": "10.0.300", "rollForward": "major", "allowPrerelease": False}, None),
        ({"version": "10.0.300", "rollForward": "major"}, "11.0.100-preview.1"),
        ({"version": "10.0.100-preview.4.25258.110"}, "10.0.100-preview.4.25258.110"),
        ({"version": "10.0.100-preview.1"}, "10.0.100"),
        ({"version": "10.0.100-rc.1"}, "10.0.100"),
        # A wanted prerelease allows prereleases, whatever allowPrerelease says.
        (
            {"version": "9.0.100-rc.2.24474.11", "rollForward": "disable", "allowPrerelease": False},
            "9.0.100-rc.2.24474.11",
        ),
        ({"version": "11.0.100-alpha", "allowPrerelease": False}, "11.0.100-preview.1"),
    ],
)
def test_prereleases_count_unless_they_are_excluded(settings: Mapping[str, object], expected: str | None) -> None:
    assert choose(sdk(**settings)) == expected


def test_the_order_of_the_installed_sdks_does_not_matter() -> None:
    wish = sdk(version="9.0.206", rollForward="major")

    assert choose(wish, MANY) == choose(wish, MANY[::-1]) == "9.0.305"


def test_folders_that_are_no_version_are_passed_over() -> None:
    assert choose(b"{}", ["NuGetFallbackFolder", "10.0", "010.0.100", "9.0.100", "10.0.x"]) == "9.0.100"


def test_what_is_installed_and_wanted_is_told_when_nothing_fits() -> None:
    choice = choose_sdk(sdk(version="12.0.100", rollForward="latestPatch", errorMessage="Run ./install."), ["9.0.100"])

    assert choice == SdkChoice(
        SdkVerdict.NONE_FITS, None, ("9.0.100",), "12.0.100 (rollForward latestpatch)", "Run ./install."
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"sdk": {"version": "9.0.102",}}',
        '{"sdk": {"version": "9.0.102"} /* unterminated',
        '{"sdk": {"version": "9.0.102"}} /*/',
        '{"sdk": {"version": "9.0.102"}, "x": NaN}',
        '{"sdk": {"version": "9.0.102"}, "x": "unterminated',
        '{"sdk": {"version": "9.0.102"}, "x": "ends in \\',
        '{"test": {"runner": "Mine"}}',
        '{"test": {"runner": 5}}',
        '{"test": []}',
        '{"sdk": {"paths": [".dotnet"]}}',
        '{"sdk": {"errorMessage": []}}',
        '"text"',
        "7",
        "[" * 1_000_000,
        '{"a":' * 1_000_000,
        '{"n": ' + "9" * 100_000 + "}",
        '"' + '\\"' * 500_000,
        "/*" * 500_000,
    ],
    ids=lambda text: text[:24],
)
def test_where_the_rules_leave_a_doubt_dotnet_must_be_asked(text: str) -> None:
    assert choose_sdk(text.encode(), MANY) == SdkChoice(SdkVerdict.ASK)


@pytest.mark.parametrize(
    "text",
    [
        '{"test": {"runner": "Microsoft.Testing.Platform"}, "sdk": {"version": "9.0.102"}}',
        '{"test": {"runner": "vstest"}, "sdk": {"version": "9.0.102"}}',
        '{"test": {}, "sdk": {"version": "9.0.102"}}',
        '{"sdk": {"version": "9.0.102", "paths": ["$host$"]}}',
        '{"sdk": {"version": "9.0.102"}, "url": "https://example.org/*x*/"} // https://example.org',
        '// first\r\n{/**/"sdk": {"version": /* exactly */ "9.0.102"}}\r\n',
    ],
)
def test_what_is_certain_needs_no_question(text: str) -> None:
    assert choose_sdk(text.encode(), MANY).version == "9.0.102"


@given(st.binary())
def test_any_bytes_give_a_verdict(data: bytes) -> None:
    assert choose_sdk(data, MANY).verdict in SdkVerdict


def sdk(**settings: object) -> bytes:
    return json.dumps({"sdk": settings}).encode()


def choose(global_json: bytes, installed: Sequence[str] = MANY) -> str | None:
    return choose_sdk(global_json, installed).version


# --- where dotnet is ---


def test_no_dotnet_on_the_path_is_an_issue(machine: Machine) -> None:
    found = resolve_dotnet(str(machine.workspace), {"PATH": str(machine.bin)}, cache_path=str(machine.cache))

    assert problem(found) == ("DotNetNotFound", "No 'dotnet' was found in the folders of PATH.")
    assert installed_runtimes(str(machine.workspace), {}) == ()


def test_an_installation_is_read_without_starting_anything(machine: Machine) -> None:
    machine.installation(["9.0.305", "10.0.401"])
    write(machine.workspace / "global.json", '{"sdk": {"version": "9.0.300"}}')

    found = machine.resolve()

    assert found == DotNet("9.0.305", "net9.0", "installed")
    assert machine.calls() == []
    assert not machine.cache.exists()


def test_a_link_leads_to_the_installation(machine: Machine, tmp_path: Path) -> None:
    machine.installation(["10.0.401"])
    links = tmp_path / "links"
    links.mkdir()
    (links / "dotnet").symlink_to("../bin/dotnet")

    found = resolve_dotnet(str(machine.workspace), {"PATH": str(links)}, cache_path=str(machine.cache))

    assert found == DotNet("10.0.401", "net10.0", "installed")
    assert machine.calls() == []


def test_what_an_uninstaller_left_behind_is_no_sdk(machine: Machine) -> None:
    machine.installation(["9.0.305"])
    write(machine.bin / "sdk/10.0.401/leftover.txt", "")
    write(machine.bin / "sdk/a file", "")

    assert machine.resolve().version == "9.0.305"


def test_a_launcher_is_asked_for_its_lists_in_the_workspace_only_if_that_is_trusted(
    machine: Machine, tmp_path: Path
) -> None:
    machine.program("echo 'a notice' >&2; echo '9.0.305 [/opt/a b/sdk]'; echo '10.0.401 [/opt/a b/sdk]'\n")
    machine.environ["HOME"] = str(tmp_path)
    for trust, folder in (("", tmp_path), ("1", machine.workspace)):
        machine.environ["UNO_DEVSERVER_TRUST"] = trust

        found = machine.resolve()
        installed_runtimes(str(machine.workspace), machine.environ)

        assert found == DotNet("10.0.401", "net10.0", "installed")
        asked = (machine.bin / "calls").read_text("utf-8").splitlines()[-2:]
        assert asked == [f"--list-sdks in {folder}", f"--list-runtimes in {folder}"]


def test_a_launcher_without_a_list_is_asked_for_the_version_if_the_workspace_is_trusted(machine: Machine) -> None:
    machine.program('[ "$1" = --version ] && echo 10.0.401-rc.1\n')
    assert "is a launcher" in problem(machine.resolve())[1]
    assert machine.calls() == ["--list-sdks"]
    machine.environ["UNO_DEVSERVER_TRUST"] = "1"

    found = machine.resolve()

    assert found == DotNet("10.0.401-rc.1", "net10.0", "asked")
    assert machine.calls() == ["--list-sdks", "--list-sdks", "--version"]


def test_an_installation_without_an_sdk_is_an_issue(machine: Machine) -> None:
    executable = machine.program("exit 0\n")

    assert problem(machine.resolve()) == ("DotNetNotFound", f"{executable} has no .NET SDK.")


def test_runtimes_are_read_from_the_installation_or_asked_of_a_launcher(machine: Machine) -> None:
    lines = [
        "Microsoft.AspNetCore.App 8.0.1 [/x]",
        "Microsoft.NETCore.App 8.0.1 [/x]",
        "Microsoft.NETCore.App 10.0.12 [/x]",
    ]
    machine.program("".join(f"echo '{line}'\n" for line in lines))
    asked = installed_runtimes(str(machine.workspace), machine.environ)
    machine.installation(["10.0.401"])
    write(machine.bin / "shared/Microsoft.NETCore.App/9.0.9/x.json", "{}")

    read = installed_runtimes(str(machine.workspace), machine.environ)

    assert (asked, read) == (("8.0.1", "10.0.12"), ("9.0.9",))
    assert machine.calls() == ["--list-runtimes"]


def test_global_json_is_looked_for_from_the_real_folder(machine: Machine, tmp_path: Path) -> None:
    machine.installation(["9.0.305", "10.0.401"])
    write(machine.workspace / "global.json", '{"sdk": {"version": "9.0.305"}}')
    (machine.workspace / "src").mkdir()
    (tmp_path / "link").symlink_to(machine.workspace / "src")

    assert machine.resolve(tmp_path / "link").version == "9.0.305"


# --- asking ---

DOUBTFUL = '{"sdk": {"version": "10.0.401",}}'


def test_an_answer_is_kept_until_it_is_forced_or_the_file_changes(machine: Machine) -> None:
    machine.installation(["10.0.401"], "echo 10.0.401\n")
    global_json = write(machine.workspace / "global.json", DOUBTFUL)

    sources = [machine.resolve().source, machine.resolve().source, machine.resolve(force=True).source]
    global_json.write_text(DOUBTFUL + "\n", "utf-8")
    sources.append(machine.resolve().source)

    assert sources == ["asked", "cache", "asked", "asked"]
    assert machine.calls() == ["--version"] * 3


def test_a_kept_answer_that_is_no_version_is_asked_again(machine: Machine) -> None:
    machine.installation(["10.0.401"], "echo 10.0.401\n")
    write(machine.workspace / "global.json", DOUBTFUL)
    machine.resolve()
    machine.cache.write_text(machine.cache.read_text("utf-8").replace("10.0.401", "ten"), "utf-8")

    assert machine.resolve() == DotNet("10.0.401", "net10.0", "asked")


def test_a_trailing_comma_quotes_what_dotnet_says_and_names_the_file(machine: Machine) -> None:
    record = next(case for case in RECORDS["cases"] if case["why"] == "trailing comma")
    machine.installation(INSTALLED, replay(record))
    path = write(machine.workspace / "global.json", record["files"]["global.json"])

    found = machine.resolve()

    code, message = problem(found)
    assert code == "DotNetNotFound"
    assert "exit code 1: System.Text.Json.JsonException: The JSON object contains a trailing comma" in message
    assert str(path) in message
    assert found.issue is not None
    assert str(path) in found.issue.remediation
    assert not machine.cache.exists()


def test_the_list_of_sdks_that_comes_with_a_failure_is_no_version(machine: Machine) -> None:
    machine.installation(["10.0.401"], "echo 10.0.401\nexit 155\n")
    write(machine.workspace / "global.json", DOUBTFUL)

    assert problem(machine.resolve())[0] == "DotNetVersionUnsupported"


def test_the_advice_of_the_file_reaches_the_user(machine: Machine) -> None:
    machine.installation(["10.0.401"])
    write(machine.workspace / "global.json", sdk(version="12.0.100", errorMessage="Run ./install first."))

    code, message = problem(machine.resolve())

    assert code == "DotNetVersionUnsupported"
    assert "12.0.100" in message
    assert "10.0.401" in message
    assert "Run ./install first." in message


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no version here\n", "exit code 0: no version here"),
        ("exit 3\n", "exit code 3: it printed nothing"),
        ("kill -9 $$\n", "exit code -9: it printed nothing"),
        ("printf '\\377\\376'; exit 1\n", "exit code 1: \ufffd\ufffd"),
    ],
)
def test_an_answer_that_is_none_is_quoted(machine: Machine, script: str, said: str) -> None:
    machine.installation(["10.0.401"], script)
    write(machine.workspace / "global.json", DOUBTFUL)

    assert said in problem(machine.resolve())[1]


def test_dotnet_gets_no_input(machine: Machine) -> None:
    machine.installation(["10.0.401"], "read line && exit 9; echo 10.0.401\n")
    write(machine.workspace / "global.json", DOUBTFUL)

    assert machine.resolve().version == "10.0.401"


def test_a_dotnet_that_hangs_is_stopped_with_its_children(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    # Parent and child hold the pipe; its end is the proof that both are gone.
    pipe = machine.bin / "alive"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    machine.installation(["10.0.401"], f"exec 3> '{pipe}'\necho started >&3\nsleep 600 &\nwait\n")
    write(machine.workspace / "global.json", DOUBTFUL)
    monkeypatch.setattr(dotnet, "ANSWER_SECONDS", 1.5)

    code, message = problem(machine.resolve())

    assert code == "DotNetNotFound"
    assert "gave no answer within 1.5 s and was stopped" in message
    assert read_to_end(reader) == b"started\n"


def test_a_dotnet_that_floods_is_stopped(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.installation(["10.0.401"], "while :; do echo 10.0.401; done\n")
    write(machine.workspace / "global.json", DOUBTFUL)
    monkeypatch.setattr(dotnet, "ANSWER_SECONDS", 0.5)

    assert "gave no answer within 0.5 s and was stopped" in problem(machine.resolve())[1]


def test_an_answer_counts_although_something_keeps_the_pipe_open(machine: Machine, tmp_path: Path) -> None:
    pipe = tmp_path / "end"
    os.mkfifo(pipe)
    machine.installation(["10.0.401"], f"cat '{pipe}' &\necho 10.0.401\n")
    write(machine.workspace / "global.json", DOUBTFUL)

    found = machine.resolve()

    assert found == DotNet("10.0.401", "net10.0", "asked")
    with pytest.raises(OSError, match="No such device"):  # nobody reads: what dotnet left behind was ended
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)


def test_a_file_that_cannot_be_started_is_an_issue(machine: Machine) -> None:
    write(machine.bin / "dotnet", "#!/no/such/interpreter\n").chmod(0o755)
    machine.environ["UNO_DEVSERVER_TRUST"] = "1"

    code, message = problem(machine.resolve())

    assert code == "DotNetNotFound"
    assert "could not be started" in message


def test_a_folder_that_is_gone_is_an_issue(machine: Machine) -> None:
    machine.program("echo 10.0.401\n")
    machine.environ["UNO_DEVSERVER_TRUST"] = "1"

    assert "could not be started" in problem(machine.resolve(machine.workspace / "gone"))[1]


def test_a_cache_that_cannot_be_written_is_no_problem(machine: Machine) -> None:
    machine.installation(["10.0.401"], "echo 10.0.401\n")
    write(machine.workspace / "global.json", DOUBTFUL)
    write(machine.cache.parent, "a file where the folder should be")

    assert machine.resolve() == DotNet("10.0.401", "net10.0", "asked")


def test_importing_it_stays_cheap() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import sys, uno_devserver.discovery.dotnet; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    expensive = {
        "typing",
        "dataclasses",
        "pathlib",
        "subprocess",
        "threading",
        "hashlib",
        "datetime",
        "signal",
        "inspect",
    }
    assert expensive.isdisjoint(listed)


def read_to_end(handle: int) -> bytes:
    """Everything from a pipe until all its writers are gone; fails when one is still there after 10 s."""
    read = b""
    with open(handle, "rb", buffering=0) as stream:
        while True:
            assert select.select([stream], [], [], 10)[0], "a process that should be gone is alive"
            chunk = stream.read()
            if not chunk:
                return read
            read += chunk


GLOBAL_JSON = b'{"sdk": {"version": "10.0.100", "rollForward": "latestFeature", "allowPrerelease": true,}}'
QUESTION = DotNetQuestion("/opt/dotnet/dotnet", "/src/app/global.json", GLOBAL_JSON)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "dotnet-version-cache.json"


def keep(path: Path, question: DotNetQuestion = QUESTION) -> None:
    dotnet.write_cached_version(str(path), question, "10.0.101", "net10.0")


def read(path: Path, question: DotNetQuestion = QUESTION) -> str | None:
    return dotnet.read_cached_version(str(path), question)


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    entry = json.loads(path.read_bytes())
    edit(entry)
    path.write_text(json.dumps(entry), "utf-8")


def ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def test_a_kept_answer_is_read_again(path: Path) -> None:
    assert read(path) is None

    keep(path)

    assert read(path) == "10.0.101"


def test_the_file_has_the_fields_of_the_net_tool_and_one_of_ours(path: Path) -> None:
    before = datetime.now(UTC)

    keep(path)

    entry = json.loads(path.read_bytes())
    assert list(entry) == ["version", "rawVersion", "tfm", "sdkVersionKey", "timestamp", "question"]
    assert entry["version"] == 1
    assert entry["rawVersion"] == "10.0.101"
    assert entry["tfm"] == "net10.0"
    assert entry["sdkVersionKey"] == "10.0.100|latestFeature|True"
    assert entry["timestamp"].endswith("Z")
    assert before <= datetime.fromisoformat(entry["timestamp"]) <= datetime.now(UTC)
    assert path.read_text("utf-8").startswith('{\n  "version": 1,\n')


@pytest.mark.parametrize(
    ("global_json", "key"),
    [
        (b'{"sdk": {"version": "9.0.100"}}', "9.0.100||"),
        (b'{"sdk": {"version": "9.0.100", "allowPrerelease": false}}', "9.0.100||False"),
        (b'{"sdk": {"rollForward": "major"}}', ""),
        (b'{"sdk": []}', ""),
        (b"[]", ""),
        (b"{", ""),
        (b"", ""),
        (None, ""),
    ],
)
def test_the_key_of_the_net_tool_is_empty_without_a_version(path: Path, global_json: bytes | None, key: str) -> None:
    keep(path, QUESTION.replace(global_json=global_json))

    assert json.loads(path.read_bytes())["sdkVersionKey"] == key


@pytest.mark.parametrize(
    "other",
    [
        QUESTION.replace(executable="/usr/bin/dotnet"),
        QUESTION.replace(place="/src/other/global.json"),
        QUESTION.replace(global_json=GLOBAL_JSON + b"\n"),
        QUESTION.replace(global_json=b""),
        QUESTION.replace(global_json=None),
    ],
)
def test_an_answer_counts_for_its_own_question_only(path: Path, other: DotNetQuestion) -> None:
    keep(path)

    assert read(path, other) is None


def test_no_file_and_an_empty_one_are_different_questions(path: Path) -> None:
    keep(path, QUESTION.replace(global_json=None))

    assert read(path, QUESTION.replace(global_json=b"")) is None


def test_names_that_are_no_utf_8_can_be_asked_about(path: Path) -> None:
    question = QUESTION.replace(executable="/opt/\udcff/dotnet")

    keep(path, question)

    assert read(path, question) == "10.0.101"


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (lambda: ago(hours=23, minutes=50), "10.0.101"),  # before the test, and not before all tests
        (ago(hours=24), None),
        (ago(days=-1), None),  # the clock was set back: nobody knows how old it is
        ("2026-02-24T10:02:07.1234567", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (5, None),
    ],
    ids=["nearly a day", "a day", "the future", "no zone", "words", "empty", "null", "a number"],
)
def test_the_age_is_told_by_the_time_inside(path: Path, timestamp: object, expected: str | None) -> None:
    keep(path)

    change(path, lambda entry: entry.update(timestamp=timestamp() if callable(timestamp) else timestamp))

    assert read(path) == expected


def test_the_seven_digits_of_net_are_understood(path: Path) -> None:
    keep(path)

    change(path, lambda entry: entry.update(timestamp=ago(hours=1)[:19] + ".1234567Z"))

    assert read(path) == "10.0.101"


@pytest.mark.parametrize(
    "edit",
    [
        lambda entry: entry.update(version=2),
        lambda entry: entry.pop("version"),
        lambda entry: entry.pop("rawVersion"),
        lambda entry: entry.update(rawVersion=""),
        lambda entry: entry.update(rawVersion=10),
        lambda entry: entry.pop("tfm"),
        lambda entry: entry.pop("question"),
        lambda entry: entry.pop("timestamp"),
    ],
)
def test_an_entry_that_is_not_complete_does_not_count(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    keep(path)

    change(path, edit)

    assert read(path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 60_000, b" " * 1_000_000])
def test_a_broken_file_is_as_good_as_none(path: Path, content: bytes) -> None:
    write(path, content)

    assert read(path) is None

    keep(path)
    assert read(path) == "10.0.101"


def test_a_folder_in_its_place_is_no_problem(path: Path) -> None:
    path.mkdir(parents=True)

    keep(path)

    assert read(path) is None
    assert list(path.parent.iterdir()) == [path]
