"""Asks MSBuild for the add-ins.

.NET SDKs since 8.0.100 evaluate a project in half a second, and nothing is built. With older ones `dotnet build` runs
two targets of the Uno SDK that append their answers to a file, as UTF-16, which takes 10 to 30 seconds. Both run code
of the workspace, so MSBuild is asked only if the user requested it or trusts the workspace.
"""

from __future__ import annotations

import os
import re
import time

from ..issues import REMEDIES, Issue, warning
from ..system.files import FileProblem, remove_file
from ..system.log import log
from ..system.programs import find_program
from ..system.run import run
from ..system.state_files import make_own_folder, read_own
from ..system.text import decode_output
from ..system.values import Value
from ..workspace.dotnet_query import AT_ONCE, ask_sdk, sdk_can_be_asked
from .entry_points import ADDIN_ITEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Projects = Sequence[tuple[str, Sequence[str]]]  # project files with their target frameworks, if these are known

EVALUATION_SECONDS = 60.0  # half a second, on a cold and busy machine much longer
BUILD_SECONDS = 180.0  # the first evaluation, with a cold disk, takes up to a minute
BUDGET_SECONDS = 600.0  # for all evaluations, or all builds: one per target framework, until one build answers
KEEP_BYTES = 256 * 1024  # how much of a build's output is kept for the log
MAX_DUMP_BYTES = 16 * 1024 * 1024
QUOTED_CHARACTERS = 300
SDK_MISSING = "Install the ["
UNKNOWN_SWITCH = "MSB1001"  # the error of an MSBuild that does not know -getItem
_SEPARATORS = re.compile(r"[\r\n;,]+")


class MSBuildAnswer(Value):
    paths: tuple[str, ...]
    issues: tuple[Issue, ...] = ()


def ask_msbuild(
    solution: str, projects: Projects, host_path: str | None, scratch: str, environ: Mapping[str, str]
) -> MSBuildAnswer:
    """The add-in paths that a build of the solution would use; `scratch` is the folder for the answer files."""
    dotnet = find_program("dotnet", environ)
    if dotnet is None:
        return _failed(solution, "no 'dotnet' was found on PATH", REMEDIES["DotNetNotFound"])
    started = time.monotonic()
    deadline = started + BUDGET_SECONDS
    if projects and sdk_can_be_asked(environ):
        answer = _evaluated(dotnet, projects, environ, deadline)
        if answer is not None:
            log.info(f"MSBuild evaluated {len(projects)} project(s) in {time.monotonic() - started:.1f} s.")
            return answer
    log.info("Asking MSBuild by a build, which takes 10 to 30 seconds ...")
    build = _Build(dotnet, solution, host_path, scratch, environ, deadline)
    frameworks, problem = build.dump("UnoDumpTargetFrameworks")
    if not frameworks:
        return _failed(solution, problem or "the solution names no target frameworks")
    for framework in frameworks:
        paths, problem = build.dump("UnoDumpRemoteControlAddIns", "--framework", framework, "-nowarn:MSB4057")
        if paths:
            return MSBuildAnswer(paths)
        log.debug(f"MSBuild finds no add-ins for {framework}: {problem or 'the list is empty'}")
    return _failed(solution, problem) if problem else MSBuildAnswer(())


def _evaluated(dotnet: str, projects: Projects, environ: Mapping[str, str], deadline: float) -> MSBuildAnswer | None:
    """The add-ins that an evaluation of each project and framework gives; None if the SDK cannot be asked that way."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(path: str, framework: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """The add-ins and target frameworks of a project, or why they are not known."""
        seconds = max(0.0, min(EVALUATION_SECONDS, deadline - time.monotonic()))
        answer, problem = ask_sdk(dotnet, path, [ADDIN_ITEM], ["TargetFrameworks"], framework, environ, seconds)
        found = answer.get("Items", {}).get(ADDIN_ITEM, ())
        several = answer.get("Properties", {}).get("TargetFrameworks", "").split(";")
        # Not Identity, which is not normalised.
        paths = tuple(os.path.normpath(item["FullPath"]) for item in found)
        return paths, tuple(name.strip() for name in several if name.strip()), problem

    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [(path, framework) for path, frameworks in projects for framework in frameworks or ("",)]
        answers = list(pool.map(ask, *zip(*asked, strict=True)))
        more = [
            (path, name)
            for (path, framework), (_, several, _) in zip(asked, answers, strict=True)
            if not framework
            for name in several
        ]
        if more:
            asked += more
            answers += pool.map(ask, *zip(*more, strict=True))
    problems = [(path, problem) for (path, _), (_, _, problem) in zip(asked, answers, strict=True) if problem]
    if problems and all(UNKNOWN_SWITCH in problem for _, problem in problems):
        return None  # global.json asks for an older SDK
    paths = _one_of_each([path for found, _, _ in answers for path in found])
    issues = dict.fromkeys(issue for path, problem in problems for issue in _failed(path, _reason(problem)).issues)
    return MSBuildAnswer(paths, tuple(issues))


class _Build(Value):
    dotnet: str
    solution: str
    host_path: str | None
    scratch: str
    environ: Mapping[str, str]
    deadline: float

    def dump(self, target: str, *options: str) -> tuple[tuple[str, ...], str]:
        """The lines that a target writes, or the reason why there are none."""
        answer_file = os.path.join(self.scratch, f"{target}-{os.getpid()}.txt")
        try:
            make_own_folder(self.scratch)
            _remove(answer_file)  # targets append to the file, and a killed process with the same id may have left one
            problem = self._run(target, answer_file, options)
            return _read_dump(answer_file), problem
        except OSError as error:
            return (), f"{self.scratch} cannot be used: {error.strerror}"
        finally:
            _remove(answer_file)

    def _run(self, target: str, answer_file: str, options: tuple[str, ...]) -> str:
        """Builds the target; returns the reason if that fails, otherwise an empty text."""
        arguments = [self.dotnet, "build", self.solution, f"-t:{target}"]
        arguments.append(f"-p:{target}TargetFile={_escaped(answer_file)}")
        if self.host_path:
            custom = os.path.join(os.path.dirname(self.host_path), "DevServer.Custom.Targets")
            arguments.append(f"-p:CustomBeforeMicrosoftCSharpTargets={_escaped(custom)}")
        arguments += ["--verbosity", "quiet", *options]
        outcome = run(
            arguments,
            cwd=os.path.dirname(self.solution),
            environ={**self.environ, "DOTNET_NOLOGO": "1"},
            seconds=max(0.0, min(BUILD_SECONDS, self.deadline - time.monotonic())),
            keep_bytes=KEEP_BYTES,
        )
        printed = decode_output(outcome.output).strip()
        log.debug(f"{' '.join(arguments)} -> {outcome.problem or outcome.exit_code}\n{printed}")
        if outcome.succeeded:
            return ""
        return f"dotnet build: {outcome.problem or _reason(printed) or f'exit code {outcome.exit_code}'}"


def _reason(printed: str) -> str:
    """The first error in the output; a welcome text, the engine's name and warnings may precede it.

    Where the SDK of global.json is missing, `dotnet` prints those that are there, and which to install.
    """
    lines = printed.splitlines()
    errors = [line.strip() for line in lines if ": error " in line]
    missing = [line.strip() for line in lines if line.startswith(SDK_MISSING)]
    return next(iter([*errors, *missing, *lines]), "")[:QUOTED_CHARACTERS].rstrip(".:")


def _escaped(path: str) -> str:
    """Escapes a property value for the command line, where ; and , are separators and $ @ * ? % are special."""
    return re.sub(r"[%;,$@*?\"']", lambda match: f"%{ord(match[0]):02X}", path)


def _remove(path: str) -> None:
    try:
        remove_file(path)
    except OSError:
        pass


def _read_dump(path: str) -> tuple[str, ...]:
    """The entries of a dump file, each once; none if the file cannot be read."""
    try:
        data = read_own(path, MAX_DUMP_BYTES)
    except (FileNotFoundError, FileProblem):
        return ()
    text = data.removeprefix(b"\xff\xfe").decode("utf-16-le", "replace")
    return _one_of_each([entry.strip() for entry in _SEPARATORS.split(text) if entry.strip()])


def _one_of_each(names: Sequence[str]) -> tuple[str, ...]:
    """The names without those that differ only in case; of two paths, one that exists counts."""
    found: dict[str, str] = {}
    for name in sorted(names, key=os.path.isfile, reverse=True):  # which keeps the order otherwise
        found.setdefault(name.lower(), name)
    return tuple(found.values())


def _failed(solution: str, reason: str, next_step: str = "") -> MSBuildAnswer:
    message = f"MSBuild gave no add-ins for {solution}: {reason}."
    return MSBuildAnswer((), (warning("MSBuildDiscoveryFailed", message, next_step),))
