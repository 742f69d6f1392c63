"""Finds the .NET SDK that `dotnet` uses in a folder, if possible without starting it.

The rules of `dotnet` for global.json are applied to the SDKs next to its executable, in microseconds instead of
80 ms. `dotnet --version` is run, within a time limit, only if the rules give no certain answer; its answer is
cached for a day. Problems become an issue of the result; nothing is raised.

`dotnet` runs the SDK that `sdk.paths` of global.json names. In an untrusted workspace it is therefore run only if it is
certain that no file there chooses what runs. A file that could not be read may say anything.
"""

from __future__ import annotations

import json
import os

from ..issues import Issue, fatal, warning
from ..system import jsonc
from ..system.files import FileProblem, names_in, read_bytes
from ..system.folders import folders
from ..system.log import log
from ..system.programs import find_program
from ..system.run import run
from ..system.state_files import read_own, sha256, write_own
from ..system.text import decode_output
from ..system.values import Value
from ..workspace.paths import upwards
from ..workspace.trust import AGREE, is_trusted
from .dotnet_roll_forward import SdkChoice, SdkVerdict, choose_sdk, lacks_sdk_paths, sdk_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANSWER_SECONDS = 10.0  # an answer takes 80 ms, but seconds on a cold or busy machine
LIST_SECONDS = 3.0  # the native code takes 2 ms; only a broken wrapper takes longer
ANSWER_BYTES = 64 * 1024  # an answer has a few lines, an exception a few KB
GLOBAL_JSON_BYTES = 1024 * 1024  # real ones have less than a page
QUOTED_CHARACTERS = 300  # how much of a message of dotnet is shown: enough for its line and column
NO_SDK_FITS = 155  # the exit code for a global.json that no installed SDK satisfies


class DotNet(Value):
    version: str | None = None
    tfm: str | None = None
    source: str | None = None  # "installed", "asked" or "cache"
    issue: Issue | None = None

    @property
    def absent(self) -> bool:
        """Whether there is no .NET SDK, instead of one that cannot be used."""
        return self.issue is not None and self.issue.code == "DotNetNotFound" and not self.issue.fatal


def resolve_dotnet(
    directory: str, environ: Mapping[str, str], *, cache_path: str, force: bool = False, trusted: bool = False
) -> DotNet:
    """The SDK that `dotnet` would use in `directory`; with `force`, the cached answer is ignored.

    `trusted`: whether the user trusts the workspace although no agreement to it is stored.
    """
    executable = find_program("dotnet", environ)
    if executable is None:
        return DotNet(issue=warning("DotNetNotFound", "No 'dotnet' was found in the folders of PATH."))
    global_json = _nearest_global_json(directory)
    choice = _choose(global_json, _installed_sdks(executable, directory, environ, trusted))
    if choice.version:
        return DotNet(choice.version, _tfm(choice.version), "installed")
    if choice.verdict is SdkVerdict.NONE_FITS:
        return DotNet(issue=_none_fits(choice, executable, global_json.path))

    danger = _danger(executable, global_json)
    if danger and not (trusted or is_trusted(environ, directory)):
        return DotNet(issue=_not_asked(danger))
    place = global_json.path or os.path.realpath(directory)
    question = DotNetQuestion(os.path.realpath(executable), place, global_json.content)
    kept = None if force else read_cached_version(cache_path, question)
    if kept and sdk_version(kept):
        return DotNet(kept, _tfm(kept), "cache")
    answer = _run(executable, "--version", directory, environ)
    # On failure dotnet prints the installed SDKs instead of the version, so the exit code must be checked.
    version = next(filter(sdk_version, answer.lines), None) if answer.succeeded else None
    if version is None:
        return DotNet(issue=_no_version(answer, executable, global_json.path))
    write_cached_version(cache_path, question, version, _tfm(version))
    return DotNet(version, _tfm(version), "asked")


def installed_runtimes(directory: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The installed versions of Microsoft.NETCore.App; empty if they cannot be determined."""
    executable = find_program("dotnet", environ)
    if executable is None:
        return ()
    root = _installation(executable)
    if root:
        return tuple(names_in(os.path.join(root, "shared", "Microsoft.NETCore.App")))
    lines = _run(executable, "--list-runtimes", _folder_for_lists(directory, environ), environ).lines
    return tuple(line.split(" ")[1] for line in lines if line.startswith("Microsoft.NETCore.App "))


def _tfm(version: str) -> str:
    major, minor = version.split(".")[:2]
    return f"net{major}.{minor}"


def _none_fits(choice: SdkChoice, executable: str, global_json: str | None) -> Issue:
    if not choice.installed:
        return warning("DotNetNotFound", f"{executable} has no .NET SDK.")
    advice = f" The file says: {choice.advice[:QUOTED_CHARACTERS]}" if choice.advice else ""
    installed = ", ".join(choice.installed)
    message = f"{global_json} requires .NET SDK {choice.wanted}; installed: {installed}.{advice}"
    return fatal("DotNetVersionUnsupported", message)


def _danger(executable: str, global_json: _GlobalJson) -> str:
    """A sentence: why running dotnet in the folder may run code of the workspace; empty if it certainly does not."""
    if global_json.doubt:
        return f"{global_json.doubt}, so it may set sdk.paths."
    if global_json.content is not None and not lacks_sdk_paths(global_json.content):
        return f"{global_json.path} may set sdk.paths."
    if _installation(executable) is None:
        # asdf runs the program that `dotnet path:<folder>` in the folder's .tool-versions names.
        return f"{executable} is a launcher, which may choose what it runs by files of the folder."
    return ""


def _not_asked(danger: str) -> Issue:
    message = f"{danger} Only running dotnet could tell which SDK it uses, and that may run code of the workspace."
    return fatal("DotNetVersionUnsupported", message, f"If you trust its code, run {AGREE}.")


def _no_version(answer: _Answer, executable: str, global_json: str | None) -> Issue:
    said = answer.problem or f"ended with exit code {answer.exit_code}: {_main_line(answer.lines)}"
    reads = f" (it reads {global_json})" if global_json else ""
    message = f"'{executable} --version'{reads} {said}"
    if answer.exit_code == NO_SDK_FITS:
        return fatal("DotNetVersionUnsupported", message)
    if global_json is None or answer.problem:
        return fatal("DotNetNotFound", message)
    allowed = "Comments are allowed, trailing commas are not."
    check = f"Run 'dotnet --version' beside {global_json}, and fix what it reports. {allowed}"
    return fatal("DotNetNotFound", message, check)


def _main_line(lines: Sequence[str]) -> str:
    """The line of dotnet's output that names the cause: after the list of possibilities, or at the inner exception."""
    for position, line in enumerate(lines[:-1]):
        if line.endswith(".NET SDK command:"):
            return lines[position + 1][:QUOTED_CHARACTERS]
    causes = [line.partition("---> ")[2] for line in lines if "---> " in line]
    return next(iter([*causes, *lines]), "it printed nothing")[:QUOTED_CHARACTERS]


def _installation(executable: str) -> str | None:
    """The installation folder of dotnet; None if the executable is a launcher (snap, asdf, a wrapper script)."""
    root = os.path.dirname(os.path.realpath(executable))
    complete = os.path.isdir(os.path.join(root, "sdk")) and os.path.isdir(os.path.join(root, "host", "fxr"))
    return root if complete else None


def _installed_sdks(
    executable: str, directory: str, environ: Mapping[str, str], trusted: bool
) -> tuple[str, ...] | None:
    root = _installation(executable)
    if root:
        sdks = os.path.join(root, "sdk")
        # A folder that an uninstaller left has no dotnet.dll; dotnet ignores it too.
        return tuple(name for name in names_in(sdks) if os.path.isfile(os.path.join(sdks, name, "dotnet.dll")))
    answer = _run(executable, "--list-sdks", _folder_for_lists(directory, environ, trusted), environ)
    names = tuple(line.split(" ")[0] for line in answer.lines)
    return tuple(filter(sdk_version, names)) if answer.succeeded else None


def _folder_for_lists(directory: str, environ: Mapping[str, str], trusted: bool = False) -> str:
    """The folder in which a launcher is asked: not the workspace unless it is trusted, for launchers read its files."""
    if trusted or is_trusted(environ, directory):
        return directory
    home = folders(environ).home
    return home if os.path.isdir(home) else os.path.abspath(os.sep)


class _GlobalJson(Value):
    path: str | None = None
    content: bytes | None = None  # None if there is no file, or if it cannot be read
    doubt: str = ""  # the beginning of a sentence: why dotnet may read something else


def _nearest_global_json(directory: str) -> _GlobalJson:
    doubt = ""
    for folder in upwards(searched_by_dotnet(directory)):
        path = os.path.join(folder, "global.json")
        if os.path.islink(path) and not doubt:
            # A link by way of /proc/self leads each process to another file, or only dotnet to one.
            doubt = f"{path} is a link, which may lead dotnet to another file"
        try:
            return _GlobalJson(path, read_bytes(path, GLOBAL_JSON_BYTES), doubt)
        except FileNotFoundError:
            continue
        except FileProblem as problem:
            return _GlobalJson(path, None, doubt or f"{path} cannot be read ({problem.reason})")
    return _GlobalJson(doubt=doubt)


def searched_by_dotnet(directory: str, *, windows: bool = os.name == "nt") -> str:
    """The folder from which dotnet searches upwards: its working directory; links are resolved, except on Windows."""
    return os.path.abspath(directory) if windows else os.path.realpath(directory)


def _choose(global_json: _GlobalJson, installed: Sequence[str] | None) -> SdkChoice:
    if installed is None or (global_json.path and global_json.content is None):
        return SdkChoice(SdkVerdict.ASK)
    return choose_sdk(global_json.content, installed)


class _Answer(Value):
    exit_code: int = 0
    lines: tuple[str, ...] = ()
    problem: str = ""  # why there is no answer; empty if dotnet answered

    @property
    def succeeded(self) -> bool:
        return not self.problem and self.exit_code == 0


def _run(executable: str, argument: str, directory: str, environ: Mapping[str, str]) -> _Answer:
    """Runs dotnet and returns its output, with both streams joined."""
    log.debug(f"asking '{executable} {argument}' in {directory}")
    outcome = run(
        [executable, argument],
        cwd=directory,
        environ={**environ, "DOTNET_NOLOGO": "1"},
        seconds=ANSWER_SECONDS if argument == "--version" else LIST_SECONDS,
        keep_bytes=ANSWER_BYTES,
    )
    lines = decode_output(outcome.output).splitlines()
    problem = f"{outcome.problem}." if outcome.problem else ""
    return _Answer(outcome.exit_code or 0, tuple(line.strip() for line in lines if line.strip()), problem)


CACHE_FORMAT = 1
MAX_CACHE_AGE_SECONDS = 24 * 60 * 60  # a newly installed SDK is noticed after this time at the latest
MAX_CACHE_BYTES = 64 * 1024  # one entry has 300 bytes


class DotNetQuestion(Value):
    """Everything known that the answer of `dotnet --version` depends on."""

    executable: str
    place: str  # the path of global.json, otherwise the folder; relative paths and version managers depend on it
    global_json: bytes | None  # the whole file, because even a comma outside of the sdk section can matter

    def digest(self) -> str:
        presence = b"none" if self.global_json is None else b"some"
        parts = (presence, os.fsencode(self.executable), os.fsencode(self.place), self.global_json or b"")
        return sha256(b"\0".join(parts))


def read_cached_version(path: str, question: DotNetQuestion) -> str | None:
    """The cached answer to the same question, if there is one that is not too old."""
    try:
        entry = jsonc.parse(read_own(path, MAX_CACHE_BYTES))
    except (FileNotFoundError, FileProblem, jsonc.JsonProblem):
        return None
    if (
        not isinstance(entry, dict)
        or entry.get("version") != CACHE_FORMAT
        or entry.get("question") != question.digest()
    ):
        return None
    version, tfm = entry.get("rawVersion"), entry.get("tfm")
    complete = isinstance(version, str) and isinstance(tfm, str) and version and tfm
    return version if complete and _is_fresh(entry.get("timestamp")) else None


def write_cached_version(path: str, question: DotNetQuestion, version: str, tfm: str) -> None:
    from datetime import UTC, datetime

    entry = {
        "version": CACHE_FORMAT,
        "rawVersion": version,
        "tfm": tfm,
        "sdkVersionKey": _sdk_version_key(question.global_json),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "question": question.digest(),
    }
    try:
        write_own(path, json.dumps(entry, indent=2).encode())
    except OSError:
        pass


def _is_fresh(timestamp: object) -> bool:
    from datetime import UTC, datetime

    try:
        age = datetime.now(UTC) - datetime.fromisoformat(str(timestamp))
    except (ValueError, TypeError, OverflowError):  # not a time, or a time without a zone
        return False
    return 0 <= age.total_seconds() < MAX_CACHE_AGE_SECONDS


def _sdk_version_key(global_json: bytes | None) -> str:
    """The key of a cache entry in the .NET tool: `version|rollForward|allowPrerelease`."""
    try:
        root = jsonc.parse(global_json or b"")
    except jsonc.JsonProblem:
        return ""
    sdk = root.get("sdk") if isinstance(root, dict) else None
    if not isinstance(sdk, dict) or not sdk.get("version"):
        return ""
    values = (sdk.get(name) for name in ("version", "rollForward", "allowPrerelease"))
    return "|".join("" if value is None else str(value) for value in values)
