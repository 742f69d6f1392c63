"""What the .NET SDK says of a project: asked by `dotnet msbuild -getItem -getProperty`, and stored by content.

An answer takes 0.5 s and runs code of the workspace, so that only callers with the user's agreement may ask. A stored
answer is valid as long as the files that decide the evaluation have the same content. It is compared with our own
evaluation: where both agree, later files are found by ours. SDKs before 8.0.100 cannot be asked.
"""

from __future__ import annotations

import json
import os
import re

from ..system.files import FileProblem, names_in, read_bytes
from ..system.folders import folders
from ..system.log import log
from ..system.programs import find_program
from ..system.run import run
from ..system.state_files import name_for, read_state, sha256, write_state
from ..system.text import decode_output
from .config import can_be_given
from .dotnet_project import choose_framework, dotnet_root, installed_runtimes, is_program, is_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .dotnet_project import DotNetProject

ASK_SECONDS = 8.0  # an answer takes 0.5 s, on a cold machine 3 s; a check of the code may take 10 s
ANSWER_BYTES = 16 * 1024 * 1024  # an item has 20 fields: 1 KB
AT_ONCE = 4  # questions; each takes one core
FIRST_SDK = (8, 0, 100)  # the first that can be asked
MAX_FILE_BYTES = 64 * 1024 * 1024  # project files have a few KB, the result of a large restore some MB
ITEMS = ("Compile", "EmbeddedResource", "AdditionalFiles", "Content", "None")
PROPERTIES = ("TargetFramework", "TargetFrameworks", "TargetPath", "RunCommand", "RunArguments")
ENVIRONMENT = ("Configuration", "Platform")  # variables that move the output


def stored_answer(project: DotNetProject, environ: Mapping[str, str]) -> DotNetProject | None:
    """The project as the SDK has evaluated it; None if it was not asked about the present content."""
    stored = read_state(_path(project, environ), ANSWER_BYTES)
    if stored.get("key") != _key(project, environ):
        return None
    if not stored.get("agrees"):
        if stored.get("names") != _names(project, _texts(stored, "sources")):
            return None
        sources, references = frozenset(_texts(stored, "sources")), tuple(_texts(stored, "references"))
        project = project.replace(sources=sources, references=references)
    return project.replace(
        target=str(stored.get("target")),
        command=str(stored.get("command")),
        arguments=str(stored.get("arguments")),
        framework=str(stored.get("framework")),
        problem="",
    )


def stored_answers(environ: Mapping[str, str]) -> Callable[[Sequence[DotNetProject]], list[DotNetProject]]:
    """A function that replaces projects by the stored answers about them, where there are any. Runs nothing."""
    return lambda projects: [stored_answer(project, environ) or project for project in projects]


class SdkQuestions:
    """Asks the SDK about projects for which no answer is stored; each question is asked once. Blocks."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._failed: set[str] = set()  # the keys of questions without an answer

    def answers(self, projects: Sequence[DotNetProject]) -> list[DotNetProject]:
        """The projects as the SDK evaluates them; unchanged where it cannot."""
        found = [stored_answer(project, self.environ) for project in projects]
        open_ones = [project for project, answer in zip(projects, found, strict=True) if answer is None]
        program = find_program("dotnet", self.environ) if open_ones else None
        if program is not None and sdk_can_be_asked(self.environ):
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda project: self._ask(program, project), open_ones))
            found = [stored_answer(project, self.environ) for project in projects]
        return [answer or project for project, answer in zip(projects, found, strict=True)]

    def _ask(self, program: str, project: DotNetProject) -> None:
        key = _key(project, self.environ)
        if key in self._failed:
            return
        answer = self._question(program, project, project.framework if project.several else "")
        properties = answer.get("Properties", {})
        several = properties.get("TargetFrameworks", "").split(";")
        if answer and not properties.get("TargetFramework") and several != [""]:
            framework = choose_framework(several, "", installed_runtimes(self.environ))
            answer = self._question(program, project, framework)
            properties = answer.get("Properties", {})
        if not properties:
            self._failed.add(key)
            return
        items = answer.get("Items", {})
        counted = [item for kind in ITEMS for item in items.get(kind, ()) if is_source(kind, item)]
        sources = sorted({os.path.normpath(item["FullPath"]) for item in counted})
        references = [os.path.normpath(item["FullPath"]) for item in items.get("ProjectReference", ())]
        agrees = set(sources) == project.sources and set(references) == set(project.references)
        if not agrees:
            log.debug(f"the SDK finds other files in {project.path} than we do: its answer counts")
        try:
            write_state(
                _path(project, self.environ),
                {
                    "key": key,
                    "agrees": agrees,
                    "sources": [] if agrees else sources,
                    "references": [] if agrees else references,
                    "names": "" if agrees else _names(project, sources),
                    "framework": properties.get("TargetFramework", ""),
                    "target": properties.get("TargetPath", ""),
                    "command": properties.get("RunCommand", ""),
                    "arguments": properties.get("RunArguments", ""),
                },
            )
        except OSError as error:
            self._failed.add(key)
            log.debug(f"an answer of the SDK cannot be stored: {error}")

    def _question(self, program: str, project: DotNetProject, framework: str) -> dict[str, Any]:
        """The answer of the SDK; empty if there is none."""
        answer, problem = ask_sdk(
            program, project.path, (*ITEMS, "ProjectReference"), PROPERTIES, framework, self.environ, ASK_SECONDS
        )
        if problem:
            log.debug(f"the SDK gives no answer about {project.path}, so our own evaluation counts: {problem}")
        return answer


def ask_sdk(
    program: str,
    path: str,
    items: Iterable[str],
    properties: Iterable[str],
    framework: str,
    environ: Mapping[str, str],
    seconds: float,
) -> tuple[dict[str, Any], str]:
    """What `dotnet msbuild` says of a project by evaluating it, or why it says nothing."""
    line = [program, question_verb(path), path, "-nologo"]
    line += [f"-getItem:{kind}" for kind in items]
    line += [f"-getProperty:{name}" for name in properties]
    line += [f"-p:TargetFramework={framework}"] if framework else []
    outcome = run(
        line,
        cwd=os.path.dirname(path),
        environ={**environ, "DOTNET_NOLOGO": "1"},
        seconds=seconds,
        keep_bytes=ANSWER_BYTES,  # with standard error, where an SDK that can be asked prints its errors
    )
    printed = decode_output(outcome.output)
    begin = re.search(r"^\{", printed, re.MULTILINE) if outcome.succeeded else None
    if begin:
        try:
            answer, _ = json.JSONDecoder().raw_decode(printed, begin.start())
            return (answer, "") if _is_answer(answer) else ({}, "the answer has another form than MSBuild's")
        except (ValueError, RecursionError):
            pass
    return {}, outcome.problem or printed.strip()[:1000] or f"exit code {outcome.exit_code}"


def _is_answer(answer: object) -> bool:
    """Whether it has the form of MSBuild's answers: code of the workspace may print something else."""
    if not isinstance(answer, dict):
        return False
    properties, items = answer.get("Properties", {}), answer.get("Items", {})
    if not isinstance(properties, dict) or not isinstance(items, dict):
        return False
    found: list[Any] = [item for each in items.values() for item in (each if isinstance(each, list) else [None])]
    if not all(isinstance(item, dict) and "FullPath" in item for item in found):
        return False
    return all(can_be_given(text) for texts in (properties, *found) for text in texts.values())


def question_verb(path: str) -> str:
    return "build" if is_program(path) else "msbuild"


def sdk_can_be_asked(environ: Mapping[str, str]) -> bool:
    """Whether an SDK that can be asked may be installed."""
    root = dotnet_root(environ)
    if root is None:
        return True  # a launcher, which may lead to any SDK
    versions = (re.match(r"(\d+)\.(\d+)\.(\d+)", name) for name in names_in(os.path.join(root, "sdk")))
    return any(tuple(map(int, found.groups())) >= FIRST_SDK for found in versions if found)


def content_key(paths: Iterable[str]) -> str:
    """A digest of the paths and contents of files."""
    return sha256(json.dumps([(path, _content(path)) for path in sorted(paths)]).encode())


def _content(path: str) -> str:
    try:
        return sha256(read_bytes(path, MAX_FILE_BYTES))
    except FileNotFoundError:
        return "missing"
    except FileProblem:
        return "unreadable"


def _key(project: DotNetProject, environ: Mapping[str, str]) -> str:
    """What decides an answer: the content of the files, the SDK, and what moves the output."""
    program = os.path.realpath(find_program("dotnet", environ) or "")
    sdks = names_in(os.path.join(os.path.dirname(program), "sdk"))
    given = [environ.get(name, "") for name in ENVIRONMENT]
    return sha256(json.dumps([content_key(project.files), program, sdks, given, project.framework]).encode())


def _names(project: DotNetProject, sources: Iterable[str]) -> str:
    """A digest of the names in all folders in which a new file may be a source."""
    folders = sorted({*project.folders, *map(os.path.dirname, sources)})
    listed = [(folder, names_in(folder)) for folder in folders]
    return sha256(json.dumps(listed).encode())


def _path(project: DotNetProject, environ: Mapping[str, str]) -> str:
    return os.path.join(folders(environ).state, "dotnet", f"{name_for(project.path)}.json")


def _texts(stored: Mapping[str, object], name: str) -> list[str]:
    value = stored.get(name)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
