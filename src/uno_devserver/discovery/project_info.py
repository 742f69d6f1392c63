"""Reads a project without building it: its frameworks, its references, and the folder of its restore files."""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..msbuild.evaluation import Evaluator
from ..msbuild.expressions import escape
from ..msbuild.problems import EvaluationProblem
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..msbuild.evaluation import Evaluation
    from ..msbuild.project_files import ProjectFileCache


PROGRAMS = ("exe", "winexe", "appcontainerexe")  # the output types of programs


class ProjectInfo(Value):
    path: str
    frameworks: tuple[str, ...]  # after evaluation; empty if none is named, or the project cannot be evaluated
    sdks: tuple[str, ...]  # `Name` or `Name/Version`
    references: tuple[tuple[str, str], ...]  # package and version after evaluation ("" without a version)
    restore_folder: str
    before: tuple[str, ...]  # Directory.Build.props
    after: tuple[str, ...]  # Directory.Build.targets
    body: tuple[str, ...]  # the project file, if it can be evaluated
    user: tuple[str, ...] = ()  # `<project>.user`, which MSBuild imports after it
    issue: Issue | None = None
    starts: bool = False  # whether it is a program and not a library

    @property
    def own_files(self) -> tuple[str, ...]:
        return (*self.before, *self.body, *self.user, *self.after)


def read_project(path: str, load: ProjectFileCache, environ: Mapping[str, str]) -> ProjectInfo:
    """Reads a project; if it cannot be evaluated, the result has an issue instead of frameworks and references."""
    folder = os.path.dirname(path)
    before, after = (load.nearest(folder, name) for name in ("Directory.Build.props", "Directory.Build.targets"))
    user = tuple(filter(os.path.isfile, (path + ".user",)))
    issue = None
    body: Evaluation | None = None
    try:
        evaluator = Evaluator(path, properties=_first(path), environment=environ, load=load)
        body = evaluator.evaluate([*before, sdk_defaults(path), path, *user])
    except EvaluationProblem as problem:
        remedy = "" if os.path.exists(problem.path) else "Put the file back, or take the project out of the solution."
        issue = warning("ProjectUnreadable", f"{problem.path} cannot be evaluated: {problem.message}.", remedy)
    return ProjectInfo(
        path,
        _frameworks(body),
        _sdks(path, load),
        _references(body),
        _restore_folder(path, before, load, environ),
        before,
        after,
        () if issue else (path,),
        () if issue else user,
        issue,
        (body.property("OutputType") or "").lower() in PROGRAMS if body else False,
    )


def known_properties(project: ProjectInfo, solution: str | None) -> dict[str, str]:
    """The properties that are set before all files; files may change them."""
    known = _first(project.path)
    if any(sdk.lower().startswith("uno.sdk") for sdk in project.sdks):
        known["UsingUnoSdk"] = "true"
    if solution:
        stem, extension = os.path.splitext(escape(os.path.basename(solution)))
        known |= {
            "SolutionDir": escape(os.path.dirname(solution) + os.sep),
            "SolutionPath": escape(solution),
            "SolutionName": stem,
            "SolutionFileName": stem + extension,
            "SolutionExt": extension,
        }
    return known


def framework_properties(framework: str | None) -> dict[str, str]:
    """What the SDK derives from the target framework after the project file, before the .targets files of packages."""
    if framework is None:
        return {}
    from ..msbuild.frameworks import parse_framework, version_text

    target = parse_framework(framework)
    if target is None:
        return {}
    version = "v" + version_text(target.version, 2)
    return {
        "TargetFrameworkIdentifier": target.identifier,
        "TargetFrameworkVersion": version,
        "TargetFrameworkMoniker": f"{target.identifier},Version={version}",
        "TargetPlatformIdentifier": target.platform,
    }


def sdk_defaults(path: str) -> dict[str, str]:
    """What the SDK sets by default after the .props files of packages, before the project file."""
    name = escape(os.path.splitext(os.path.basename(path))[0])
    return {
        "Configuration": "Debug",
        "Platform": "AnyCPU",
        "OutputType": "Library",
        "Optimize": "false",
        "AssemblyName": name,
        "RootNamespace": name,
    }


def _first(path: str) -> dict[str, str]:
    """What the SDK sets before everything else."""
    return {
        "UsingMicrosoftNETSdk": "true",
        "MSBuildProjectExtensionsPath": escape(os.path.join(os.path.dirname(path), "obj") + os.sep),
    }


def _frameworks(body: Evaluation | None) -> tuple[str, ...]:
    if body is None:
        return ()
    several = body.property("TargetFrameworks") or body.property("TargetFramework") or ""
    return tuple(dict.fromkeys(name.strip() for name in several.split(";") if name.strip()))


def _sdks(path: str, load: ProjectFileCache) -> tuple[str, ...]:
    """The project SDKs, from `<Project Sdk="A;B/1.0">` and `<Sdk Name="A" Version="1.0" />`."""
    try:
        root = load.load(path).root
    except EvaluationProblem:
        return ()
    names = [name.strip() for name in root.attributes.get("Sdk", "").split(";")]
    for child in root.elements:
        if child.name == "Sdk":
            version = child.attributes.get("Version", "")
            names.append(child.attributes.get("Name", "") + (f"/{version}" if version else ""))
    return tuple(name for name in names if name)


def _references(body: Evaluation | None) -> tuple[tuple[str, str], ...]:
    if body is None:
        return ()
    return tuple((item.identity, item.metadata.get("Version", "")) for item in body.items("PackageReference"))


def _restore_folder(path: str, before: tuple[str, ...], load: ProjectFileCache, environ: Mapping[str, str]) -> str:
    """`obj` next to the project, unless Directory.Build.props sets another folder; the project file cannot."""
    folder, name = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    default = os.path.join(folder, "obj")
    if not before:
        return default
    try:
        props = Evaluator(path, environment=environ, load=load).evaluate(before)
    except EvaluationProblem:
        return default
    moved = props.property("MSBuildProjectExtensionsPath") or props.property("BaseIntermediateOutputPath")
    artifacts = props.property("ArtifactsPath") or ""
    if not moved and (artifacts or (props.property("UseArtifactsOutput") or "").lower() == "true"):
        moved = os.path.join(artifacts or os.path.join(os.path.dirname(before[0]), "artifacts"), "obj", name)
    return os.path.normpath(os.path.join(folder, moved.replace("\\", os.sep))) if moved else default
