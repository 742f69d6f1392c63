"""Evaluates .NET projects and file-based programs without the SDK: their sources, references, and what is started.

The files of the SDK are replaced by the few rules in `msbuild/net_sdk`. Nothing is run. What cannot be evaluated
becomes a sentence in `problem`, and the default files of a project are used.
"""

from __future__ import annotations

import os
import re

from ..system.files import FileProblem, names_in, read_bytes
from ..system.programs import find_program
from ..system.values import Value
from .config import PROJECTS
from .paths import upwards
from .repository import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ..msbuild.evaluation import Evaluation
    from ..msbuild.frameworks import Framework

PROGRAM = ".cs"  # of a file-based program, which `dotnet run <file>` runs without a project
PROPS, TARGETS, PACKAGES = "Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props"
NEAREST = (PROPS, TARGETS, PACKAGES, "Directory.Build.rsp", "global.json")  # only the nearest one upwards counts
EACH = ("nuget.config", "NuGet.config", "NuGet.Config")  # those of all folders count, in one of these spellings
LOCK = "packages.lock.json"
ASSETS = "project.assets.json"  # the result of a restore, among the intermediate files
MAX_PROJECTS = 1000  # large solutions have some hundred
MAX_PROGRAM_BYTES = 1024 * 1024  # directives stand at the top of a file, and code has a few KB
_SDK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "msbuild", "net_sdk")
_DIRECTIVE = re.compile(r"#:\s*(\w+)\s+(.*?)\s*$")
_NOT_COPIED = ("", "never")
DEFAULTS = "The default files of a project are used."


class DotNetProject(Value):
    """A project, as it is evaluated now. All paths are absolute and normal."""

    path: str  # the project file, or the file of a file-based program
    files: tuple[str, ...]  # the files that decide the evaluation and the restore: the project, imported ones and more
    awaited: tuple[str, ...]  # files that would decide too if they existed
    folders: frozenset[str]  # the folders that wildcards have read
    sources: frozenset[str]  # the files that are compiled, embedded, or copied to the output
    references: tuple[str, ...]  # the projects that it references directly
    framework: str  # the target framework; of several, the one that is started
    intermediate: str  # the folder for intermediate files: obj
    target: str = ""  # the assembly; empty if only the SDK knows its path
    command: str = ""  # the program that is started; empty for a library, and if only the SDK knows it
    arguments: str = ""  # as one text, quoted for a command line
    several: bool = False  # whether the project has several target frameworks
    problem: str = ""  # why the project cannot be evaluated: a sentence


def is_program(path: str) -> bool:
    return path.lower().endswith(PROGRAM)


def project_in(folder: str, names: Collection[str], meant: str = "") -> str | None:
    """The project file among the names in a folder, else the file-based program.

    Of several, the one that is `meant`, else the first by name.
    """
    found = projects_in(folder, names)
    return meant if meant in found else next(iter(found), None)


def named_in(line: Sequence[str], directory: str, folder: str) -> str:
    """The name of the project or program in `folder` that a command line names; empty if it names none."""
    files = (
        os.path.realpath(os.path.join(directory, word)) for word in line if word.lower().endswith((*PROJECTS, PROGRAM))
    )
    return next((os.path.basename(file) for file in files if os.path.dirname(file) == os.path.realpath(folder)), "")


def projects_in(folder: str, names: Collection[str]) -> list[str]:
    """The names of the project files in a folder; without one, of the file-based programs."""
    if projects := sorted(name for name in names if name.lower().endswith(PROJECTS)):
        return projects
    code = sorted(name for name in names if is_program(name))
    marked = [name for name in code if _is_marked(os.path.join(folder, name))]
    alone = len(code) == 1 and not any(name.endswith((".py", ".go", ".rs", "go.mod", "Cargo.toml")) for name in names)
    return code if alone else marked


def read_project(path: str, environ: Mapping[str, str], *, framework: str = "", top: str = "") -> DotNetProject:
    """Evaluate a project; `framework` is that of the project that references it.

    `top`: the folder up to which files that do not exist are awaited; the project's own folder by default.
    """
    path = os.path.abspath(path)
    evaluation, problem, wrong = _evaluate(path, environ, "")
    frameworks = [name for part in _text(evaluation, "TargetFrameworks").split(";") if (name := part.strip())]
    several = bool(frameworks) and not _text(evaluation, "TargetFramework")
    if several:
        chosen = choose_framework(frameworks, framework, installed_runtimes(environ))
        evaluation, problem, wrong = _evaluate(path, environ, chosen)
    files, awaited = _deciding(path, top)
    own = (file for file in (evaluation.imported if evaluation else ()) if not file.startswith(_SDK + os.sep))
    folder = os.path.dirname(path)
    target = _target(path, evaluation)
    return DotNetProject(
        path,
        tuple(dict.fromkeys(os.path.normpath(file) for file in (path, wrong, *own, *files) if os.path.isfile(file))),
        awaited,
        evaluation.folders if evaluation else frozenset(),
        frozenset(_sources(path, evaluation)),
        tuple(dict.fromkeys(_references(path, evaluation))),
        _text(evaluation, "TargetFramework"),
        _below(folder, _text(evaluation, "MSBuildProjectExtensionsPath") or "obj"),
        target,
        *_started(target, evaluation),
        several,
        problem,
    )


def choose_framework(frameworks: Sequence[str], wanted: str, runtimes: Collection[tuple[int, ...]]) -> str:
    """The framework of a project with several: for a reference, the newest that `wanted` can use.

    For a program, the newest whose runtime is installed, else the newest. Those of a platform come last.
    """
    from ..msbuild.frameworks import is_compatible, parse_framework

    target = parse_framework(wanted)
    parsed = [(name, found) for name in frameworks if (found := parse_framework(name)) is not None]

    def rank(pair: tuple[str, Framework]) -> tuple[bool, bool, bool, tuple[int, ...]]:
        found = pair[1]
        usable = is_compatible(target, found) is True if target else found.version[:2] in runtimes
        return usable, found.identifier == ".NETCoreApp", not found.platform, found.version

    return max(parsed, key=rank)[0] if parsed else frameworks[0]


def installed_runtimes(environ: Mapping[str, str]) -> frozenset[tuple[int, ...]]:
    """The installed versions of .NET, as (major, minor); empty if they cannot be read beside `dotnet`."""
    root = dotnet_root(environ)
    names = names_in(os.path.join(root, "shared", "Microsoft.NETCore.App")) if root else []
    return frozenset(tuple(map(int, found.groups())) for name in names if (found := re.match(r"(\d+)\.(\d+)\.", name)))


def dotnet_root(environ: Mapping[str, str]) -> str | None:
    """The installation folder of the `dotnet` on PATH; None without one, or if it is a launcher (snap, asdf)."""
    program = find_program("dotnet", environ)
    root = os.path.dirname(os.path.realpath(program)) if program else ""
    return root if root and os.path.isdir(os.path.join(root, "host", "fxr")) else None


def project_graph(
    path: str,
    environ: Mapping[str, str],
    top: str = "",
    answer: Callable[[Sequence[DotNetProject]], Sequence[DotNetProject]] = lambda level: level,
) -> list[DotNetProject]:
    """A project and all that it references, directly or not.

    `answer` replaces each evaluated project by what is known better; it gets all projects of one level at once.
    """
    graph: dict[str, DotNetProject] = {}
    level = {os.path.abspath(path): ""}
    while level and len(graph) < MAX_PROJECTS:
        evaluated = answer([read_project(each, environ, framework=name, top=top) for each, name in level.items()])
        graph.update((project.path, project) for project in evaluated)
        level = {
            reference: project.framework
            for project in evaluated
            for reference in project.references
            if reference not in graph and os.path.isfile(reference)
        }
    return list(graph.values())


# The evaluation.


def _evaluate(path: str, environ: Mapping[str, str], framework: str) -> tuple[Evaluation | None, str, str]:
    """The evaluation; if it fails, that of an empty project, with the reason as a sentence and the wrong file."""
    from ..msbuild.evaluation import Evaluator
    from ..msbuild.problems import EvaluationProblem

    props, packages, targets = (_above(path, name) for name in (PROPS, PACKAGES, TARGETS))
    project = os.path.splitext(path)[0] + PROJECTS[0] if is_program(path) else path
    evaluator = Evaluator(
        project,
        global_properties={"TargetFramework": framework} if framework else {},
        properties=_properties(path, os.path.dirname(props[0] if props else path)),
        environment=environ,
        undefined_is_unknown=False,
        skips_sdk_imports=True,
    )
    first, last = os.path.join(_SDK, "Sdk.props"), os.path.join(_SDK, "Sdk.targets")
    body = () if is_program(path) else (path,)
    problem = wrong = ""
    for files in ((*props, first, *packages, *body, last, *targets), (first, last)):
        try:
            return evaluator.evaluate(files), problem, wrong
        except EvaluationProblem as error:
            wrong = wrong or error.path or path
            problem = problem or f"{wrong} cannot be evaluated: {error.message}. {DEFAULTS}"
    return None, problem, wrong


def _properties(path: str, props_folder: str) -> dict[str, str]:
    """The properties that our rules for the SDK need, and those that a file-based program sets."""
    from ..msbuild.expressions import escape

    directives = list(_directives(path)) if is_program(path) else []
    sdks = [value.partition("@")[0] for kind, value in directives if kind == "sdk"] or _sdks(path)
    properties = {f"Using{name.replace('.', '')}": "true" for name in sdks}
    properties["PropsFolder"] = escape(os.path.join(props_folder, ""))
    properties["UsesSdk"] = "true" if sdks and not is_program(path) else "false"
    for kind, value in directives:
        if kind == "property":
            name, _, text = value.partition("=")
            properties[name.strip()] = text.strip()
    return properties


def _sdks(path: str) -> list[str]:
    """The names of the project SDKs, by `<Project Sdk>`, `<Sdk Name>` and `<Import Sdk>`; the usual one by default."""
    from ..msbuild.project_files import MAX_BYTES
    from ..msbuild.xml import XmlProblem, parse_xml

    try:
        root = parse_xml(read_bytes(path, MAX_BYTES))
    except (FileNotFoundError, FileProblem, XmlProblem):
        return ["Microsoft.NET.Sdk"]  # the evaluation reports what is wrong
    named = root.attributes.get("Sdk", "").split(";")
    named += [child.attributes.get("Name" if child.name == "Sdk" else "Sdk", "") for child in root.elements]
    return [name for text in named if (name := text.partition("/")[0].strip())]


def _sources(path: str, evaluation: Evaluation | None) -> Iterator[str]:
    if is_program(path):
        yield path
    for kind in ("Compile", "EmbeddedResource", "AdditionalFiles", "Content", "None"):
        for item in evaluation.items(kind) if evaluation else ():
            if is_source(kind, item.metadata) and can_exist(item.full_path):
                yield os.path.normpath(item.full_path)


def is_source(kind: str, metadata: Mapping[str, str]) -> bool:
    """Whether an item of this type decides what the program does: files beside the code count if they are copied."""
    return kind not in ("Content", "None") or metadata.get("CopyToOutputDirectory", "").lower() not in _NOT_COPIED


def _references(path: str, evaluation: Evaluation | None) -> Iterator[str]:
    folder = os.path.dirname(path)
    for kind, value in _directives(path) if is_program(path) else ():
        if kind == "project" and can_exist(value):
            named = _below(folder, value)
            if os.path.isdir(named):
                named = os.path.join(named, project_in(named, names_in(named)) or "")
            yield named
    for item in evaluation.items("ProjectReference") if evaluation else ():
        if can_exist(item.full_path):
            yield os.path.normpath(item.full_path)


def can_exist(path: str) -> bool:
    """Whether a file can have this path; MSBuild can make a null character of `%00`."""
    return "\0" not in path


def _target(path: str, evaluation: Evaluation | None) -> str:
    if evaluation is None or is_program(path):  # the output of a program lies in a folder that only the SDK knows
        return ""
    output = _below(os.path.dirname(path), _text(evaluation, "OutputPath"))
    return os.path.join(output, _text(evaluation, "AssemblyName") + ".dll")


def _started(target: str, evaluation: Evaluation | None) -> tuple[str, str]:
    """The program and its arguments."""
    if not target or _text(evaluation, "OutputType").lower() not in ("exe", "winexe"):
        return "", ""
    command, arguments = _text(evaluation, "RunCommand"), _text(evaluation, "RunArguments")
    given = arguments or _text(evaluation, "StartArguments")
    if command:
        return command, given
    if _text(evaluation, "UseAppHost").lower() != "false":
        return target.removesuffix(".dll") + (".exe" if os.name == "nt" else ""), given
    return "dotnet", f'exec "{target}" {given}'.rstrip()


def _text(evaluation: Evaluation | None, name: str) -> str:
    return (evaluation.property(name) or "").strip() if evaluation else ""


def _below(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path if os.name == "nt" else path.replace("\\", "/")))


# Files around a project.


def _deciding(path: str, top: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files beside and above a project that decide its evaluation or its restore, and those that are awaited."""
    folder = os.path.dirname(path)
    found, awaited = [], [os.path.join(folder, LOCK)]
    if os.path.isfile(awaited[0]):
        found.append(awaited.pop())
    missing = list(NEAREST)
    for above in upwards(folder):
        nearest = [name for name in missing if os.path.isfile(os.path.join(above, name))]
        config = next((name for name in EACH if os.path.isfile(os.path.join(above, name))), None)
        found += [os.path.join(above, name) for name in (*nearest, *((config,) if config else ()))]
        missing = [name for name in missing if name not in nearest]
        if above == folder or (top and is_inside(above, top)):
            awaited += [os.path.join(above, name) for name in (*missing, *(() if config else EACH))]
    return tuple(found), tuple(awaited)


def _above(path: str, name: str) -> tuple[str, ...]:
    """The nearest file with this name in the project's folder or above it, if there is one."""
    candidates = (os.path.join(above, name) for above in upwards(os.path.dirname(path)))
    return tuple(candidate for candidate in candidates if os.path.isfile(candidate))[:1]


# File-based programs.


def _is_marked(path: str) -> bool:
    """Whether a file begins as a file-based program does: with a directive, or a line for the shell."""
    return _program_text(path).startswith("#!") or any(True for _ in _directives(path))


def _directives(path: str) -> Iterator[tuple[str, str]]:
    """The kind and the value of each `#:` directive: they stand before the code, among comments and blank lines."""
    for line in _program_text(path).splitlines():
        if found := _DIRECTIVE.match(line):
            yield found[1].lower(), found[2]
        elif line.strip() and not line.lstrip().startswith(("#", "//")):
            return


def _program_text(path: str) -> str:
    try:
        return read_bytes(path, MAX_PROGRAM_BYTES).decode("utf-8-sig", "replace")
    except (FileNotFoundError, FileProblem):
        return ""
