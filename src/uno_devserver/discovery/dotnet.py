"""Which .NET SDK works in a folder, found out without starting managed code.

The rules that `dotnet` has for global.json are applied to the SDKs beside its executable, which takes microseconds
instead of 80 ms. Only where the rules leave a doubt is `dotnet --version` asked, within a time limit, and its answer
kept for a day. Whatever goes wrong is an issue in the result, never an exception.
"""

from __future__ import annotations

import json
import os
import re
import sys
from enum import Enum

from ..issues import Issue, fatal
from ..system.files import FileProblem, read_bytes
from ..system.values import Value
from . import dotnet_cache
from .versions import Version, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

ANSWER_SECONDS = 10.0  # an answer takes 80 ms when warm, seconds on a cold or loaded machine
ANSWER_BYTES = 64 * 1024  # an answer is a few lines, an exception some KB; what floods is stopped
EXIT_POLL_SECONDS = 0.05  # the end of the output is noticed at once; this only counts where it does not end
GLOBAL_JSON_BYTES = 1024 * 1024  # a page at most in real life; what is larger is left to dotnet
QUOTED_CHARACTERS = 300  # of a foreign message, enough for the line and column it names
NO_SDK_FITS = 155  # the exit code for a global.json that no installed SDK satisfies


class DotNet(Value):
    version: str | None = None
    tfm: str | None = None
    source: str | None = None  # "installed", "asked" or "cache"
    issue: Issue | None = None


def resolve_dotnet(directory: str, environ: Mapping[str, str], *, cache_path: str, force: bool = False) -> DotNet:
    """The SDK that `dotnet` would use in `directory`; with `force` a kept answer does not count."""
    executable = find_executable(environ)
    if executable is None:
        return DotNet(issue=fatal("DotNetNotFound", "No 'dotnet' was found in the folders of PATH."))
    global_json = _nearest_global_json(directory)
    choice = _choose(global_json, _installed_sdks(executable, directory, environ))
    if choice.version:
        return DotNet(choice.version, _tfm(choice.version), "installed")
    if choice.verdict is Verdict.NONE_FITS:
        return DotNet(issue=_none_fits(choice, executable, global_json.path))

    place = global_json.path or os.path.realpath(directory)
    question = dotnet_cache.Question(os.path.realpath(executable), place, global_json.content)
    kept = None if force else dotnet_cache.read(cache_path, question)
    if kept and _sdk_version(kept):
        return DotNet(kept, _tfm(kept), "cache")
    answer = _run(executable, "--version", directory, environ)
    # A failure prints the installed SDKs where the version is expected, so without exit code 0 nothing counts.
    version = next(filter(_sdk_version, answer.lines), None) if answer.succeeded else None
    if version is None:
        return DotNet(issue=_no_version(answer, executable, global_json.path))
    dotnet_cache.write(cache_path, question, version, _tfm(version))
    return DotNet(version, _tfm(version), "asked")


def installed_runtimes(directory: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The versions of Microsoft.NETCore.App that a program can run on; empty where that cannot be told."""
    executable = find_executable(environ)
    if executable is None:
        return ()
    root = _installation(executable)
    if root:
        return tuple(_names(os.path.join(root, "shared", "Microsoft.NETCore.App")))
    lines = _run(executable, "--list-runtimes", directory, environ).lines
    return tuple(line.split(" ")[1] for line in lines if line.startswith("Microsoft.NETCore.App "))


def _tfm(version: str) -> str:
    major, minor = version.split(".")[:2]
    return f"net{major}.{minor}"


def _none_fits(choice: Choice, executable: str, global_json: str | None) -> Issue:
    if not choice.installed:
        return fatal("DotNetNotFound", f"{executable} has no .NET SDK.")
    advice = f" The file says: {choice.advice[:QUOTED_CHARACTERS]}" if choice.advice else ""
    installed = ", ".join(choice.installed)
    message = f"{global_json} wants .NET SDK {choice.wanted}, but installed are: {installed}.{advice}"
    return fatal("DotNetVersionUnsupported", message)


def _no_version(answer: _Answer, executable: str, global_json: str | None) -> Issue:
    said = answer.problem or f"ended with exit code {answer.exit_code}: {_main_line(answer.lines)}"
    reads = f" It reads {global_json}." if global_json else ""
    message = f"'{executable} --version' {said}{reads}"
    if answer.exit_code == NO_SDK_FITS:
        return fatal("DotNetVersionUnsupported", message)
    if global_json is None or answer.problem:
        return fatal("DotNetNotFound", message)
    check = (
        f"Run 'dotnet --version' there and repair what it reports: {global_json} may have comments, no trailing commas."
    )
    return fatal("DotNetNotFound", message, check)


def _main_line(lines: Sequence[str]) -> str:
    """The line that names the cause: below the host's list of possibilities, or at the inner exception."""
    for position, line in enumerate(lines[:-1]):
        if line.endswith(".NET SDK command:"):
            return lines[position + 1][:QUOTED_CHARACTERS]
    causes = [line.partition("---> ")[2] for line in lines if "---> " in line]
    return next(iter([*causes, *lines]), "it printed nothing")[:QUOTED_CHARACTERS]


# --- where dotnet is, and what is installed beside it ---


def find_executable(environ: Mapping[str, str]) -> str | None:
    for path in executable_candidates(environ, sys.platform):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def executable_candidates(environ: Mapping[str, str], platform: str) -> list[str]:
    """Where `dotnet` may be, in the order of PATH; never relative, for that could start a file of the workspace."""
    path = environ.get("PATH", "")
    if platform != "win32":
        return [f"{folder.rstrip('/')}/dotnet" for folder in path.split(":") if folder.startswith("/")]
    folders = [folder.strip('" ').rstrip("\\/") + "\\" for folder in path.split(";")]
    endings = (environ.get("PATHEXT") or ".COM;.EXE;.BAT;.CMD").lower().split(";")
    absolute = [folder for folder in folders if re.match(r"[A-Za-z]:[\\/]|\\\\", folder)]
    return [f"{folder}dotnet{ending}" for folder in absolute for ending in endings if ending]


def _installation(executable: str) -> str | None:
    """The folder of a real installation; None for a launcher (snap, asdf, a wrapper script) that stands elsewhere."""
    root = os.path.dirname(os.path.realpath(executable))
    complete = os.path.isdir(os.path.join(root, "sdk")) and os.path.isdir(os.path.join(root, "host", "fxr"))
    return root if complete else None


def _installed_sdks(executable: str, directory: str, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    root = _installation(executable)
    if root:
        sdks = os.path.join(root, "sdk")
        # What an uninstaller left behind has no dotnet.dll, and the host passes it over too.
        return tuple(name for name in _names(sdks) if os.path.isfile(os.path.join(sdks, name, "dotnet.dll")))
    answer = _run(executable, "--list-sdks", directory, environ)
    names = tuple(line.split(" ")[0] for line in answer.lines)
    return tuple(filter(_sdk_version, names)) if answer.succeeded else None


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


# --- which of them global.json chooses ---


class Verdict(Enum):
    FITS = "fits"
    NONE_FITS = "none fits"
    ASK = "ask"


class Choice(Value):
    """What the rules say: a version, or that nothing installed is what is wanted, or that only dotnet can tell."""

    verdict: Verdict
    version: str | None = None
    installed: tuple[str, ...] = ()
    wanted: str = ""
    advice: str = ""  # the file's own errorMessage


class _GlobalJson(Value):
    path: str | None = None
    content: bytes | None = None  # None with a path: it is there, but cannot be read


def _nearest_global_json(directory: str) -> _GlobalJson:
    # dotnet walks up from the real working directory, whatever links led there.
    folder = os.path.realpath(directory)
    while True:
        path = os.path.join(folder, "global.json")
        try:
            return _GlobalJson(path, read_bytes(path, GLOBAL_JSON_BYTES))
        except FileNotFoundError:
            folder, child = os.path.dirname(folder), folder
            if folder == child:
                return _GlobalJson()
        except FileProblem:
            return _GlobalJson(path)


def _choose(global_json: _GlobalJson, installed: Sequence[str] | None) -> Choice:
    if installed is None or (global_json.path and global_json.content is None):
        return Choice(Verdict.ASK)
    return choose_sdk(global_json.content, installed)


def choose_sdk(global_json: bytes | None, installed: Sequence[str]) -> Choice:
    """Apply the rules of the native host, as far as all its versions and the managed part agree on the file."""
    try:
        wish = _ANYTHING if global_json is None else _read_wish(global_json)
    except _Unclear:
        return Choice(Verdict.ASK)
    version = _pick(wish, installed)
    if version is None:
        return Choice(Verdict.NONE_FITS, None, tuple(installed), str(wish), wish.advice)
    return Choice(Verdict.FITS, version, tuple(installed))


class _Unclear(Exception):
    """What becomes of the file depends on the version of dotnet, or on more than the file."""


class _Policy(Value):
    same: int  # how many of major, minor and feature band must be those of the wanted version
    newest: bool  # the newest of all that fit, or the newest of the nearest feature band


_POLICIES = {
    "disable": _Policy(3, False),
    "patch": _Policy(3, False),
    "feature": _Policy(2, False),
    "minor": _Policy(1, False),
    "major": _Policy(0, False),
    "latestpatch": _Policy(3, True),
    "latestfeature": _Policy(2, True),
    "latestminor": _Policy(1, True),
    "latestmajor": _Policy(0, True),
}


class _Wish(Value):
    version: str | None = None
    policy: str = "latestmajor"
    prerelease: bool = True
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.version} (rollForward {self.policy})" if self.version else "that is no prerelease"


_ANYTHING = _Wish()
_TEST_RUNNERS = ("vstest", "microsoft.testing.platform")  # the managed part stops at any other name
_MAX_OPENINGS = 64  # the managed part reads 64 levels; counting brackets is simpler, and a real file has a few
# Unterminated strings and comments match up to the end: to look for their end from each place would be quadratic.
_STRING_OR_COMMENT = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|//[^\r\n]*|/\*.*?(?:\*/|\Z)'


def _read_wish(data: bytes) -> _Wish:
    root = _parse(data)
    if root is None:
        return _ANYTHING
    if not isinstance(root, dict) or not _is_test_section(root.get("test")):
        raise _Unclear
    sdk = root.get("sdk")
    if not isinstance(sdk, dict):
        return _ANYTHING
    paths, advice = sdk.get("paths"), sdk.get("errorMessage")
    # Only newer hosts know these two, and may then look elsewhere or ignore the whole file.
    if paths not in (None, ["$host$"]) or not isinstance(advice, str | None):
        raise _Unclear
    version, policy, prerelease = sdk.get("version"), sdk.get("rollForward"), sdk.get("allowPrerelease")
    understood = (
        (version is None or (isinstance(version, str) and _sdk_version(version)))
        and (policy is None or (isinstance(policy, str) and policy.lower() in _POLICIES))
        and isinstance(prerelease, bool | None)
    )
    # One value it does not understand, or a policy that lacks its version, and the host ignores the whole file.
    if not understood or (version is None and policy and policy.lower() != "latestmajor"):
        return _ANYTHING
    default = "patch" if version else "latestmajor"
    return _Wish(version, (policy or default).lower(), prerelease is not False or "-" in (version or ""), advice or "")


def _parse(data: bytes) -> object:
    """JSON as both parts of dotnet take it: with comments, without trailing commas, the first of equal keys counts."""
    if data.count(b"{") + data.count(b"[") > _MAX_OPENINGS:
        raise _Unclear
    try:
        text = re.sub(_STRING_OR_COMMENT, _without_comment, data.decode("utf-8-sig"), flags=re.DOTALL)
        return json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)), parse_constant=_refuse)
    except ValueError as error:
        raise _Unclear from error


def _without_comment(match: re.Match[str]) -> str:
    found = match.group()
    if found.startswith("/*") and (len(found) < len("/**/") or not found.endswith("*/")):
        raise ValueError("a comment without an end")
    return " " if found.startswith("/") else found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _is_test_section(test: object) -> bool:
    if not isinstance(test, dict):
        return test is None
    runner = test.get("runner")
    return runner is None or (isinstance(runner, str) and runner.lower() in _TEST_RUNNERS)


def _pick(wish: _Wish, installed: Sequence[str]) -> str | None:
    if wish.policy in ("disable", "patch") and wish.version in installed:
        return wish.version
    if wish.policy == "disable":
        return None
    policy = _POLICIES[wish.policy]
    fitting = {name: version for name in installed if (version := _sdk_version(name)) and _fits(version, wish, policy)}
    if fitting and not policy.newest:
        nearest = min(map(_band, fitting.values()))
        fitting = {name: version for name, version in fitting.items() if _band(version) == nearest}
    return max(fitting, key=fitting.__getitem__, default=None)


def _sdk_version(text: str) -> Version | None:
    """The native host is strict: exactly three numbers, no leading zeros, no blanks."""
    version = parse(text)
    release = text.partition("+")[0].partition("-")[0]
    return version if version and release == ".".join(map(str, version.numbers[:3])) else None


def _fits(version: Version, wish: _Wish, policy: _Policy) -> bool:
    if version.labels and not wish.prerelease:
        return False
    wanted = _sdk_version(wish.version or "")
    return wanted is None or (version >= wanted and _band(version)[: policy.same] == _band(wanted)[: policy.same])


def _band(version: Version) -> tuple[int, int, int]:
    """Major, minor and feature band: 10.0.401 is a patch of band 4."""
    major, minor, patch = version.numbers[:3]
    return (major, minor, patch // 100)


# --- asking dotnet ---


class _Answer(Value):
    exit_code: int = 0
    lines: tuple[str, ...] = ()
    problem: str = ""  # why there is no answer at all

    @property
    def succeeded(self) -> bool:
        return not self.problem and self.exit_code == 0


def _run(executable: str, argument: str, directory: str, environ: Mapping[str, str]) -> _Answer:
    """What dotnet prints, both streams as one; it gets no input, a process group of its own, and is stopped in time."""
    import subprocess
    import threading
    import time

    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        process = subprocess.Popen(
            [executable, argument],
            cwd=directory,
            env={**environ, "DOTNET_NOLOGO": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError) as error:
        return _Answer(problem=f"could not be started: {error}.")
    output = bytearray()
    # On a thread, because something that dotnet left running could hold the pipe open for ever.
    reader = threading.Thread(target=_read_to_end, args=(process, output), daemon=True)
    reader.start()
    while reader.is_alive() and process.poll() is None and time.monotonic() < deadline:
        reader.join(EXIT_POLL_SECONDS)
    if process.poll() is None:
        _kill(process)
        return _Answer(problem=f"gave no answer within {ANSWER_SECONDS:g} s and was stopped.")
    reader.join(EXIT_POLL_SECONDS)
    if len(output) > ANSWER_BYTES:
        return _Answer(problem=f"printed more than {ANSWER_BYTES:,} bytes and was stopped.")
    lines = bytes(output).decode("utf-8", "replace").splitlines()
    return _Answer(process.returncode, tuple(line.strip() for line in lines if line.strip()))


def _read_to_end(process: subprocess.Popen[bytes], output: bytearray) -> None:
    assert process.stdout
    with process.stdout as stream:
        while len(output) <= ANSWER_BYTES and (chunk := stream.read(ANSWER_BYTES)):
            output += chunk
    if len(output) > ANSWER_BYTES:
        _kill(process)
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile
