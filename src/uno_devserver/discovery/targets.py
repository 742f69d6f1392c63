"""The add-ins that .props and .targets files declare: the items `UnoRemoteControlAddIns`, with MSBuild's meaning.

MSBuild gives up on a whole project when one file is wrong. Here that file is left out and reported; the others count.
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..msbuild.evaluation import Evaluator
from ..msbuild.problems import EvaluationProblem
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..msbuild.projects import ProjectFiles

ITEM = "UnoRemoteControlAddIns"


class Candidate(Value):
    """An entry point that a package names; whether the file is there is checked later."""

    path: str
    defined_in: str  # the file that names it
    source: str  # "targets" or "manifest"
    certain: bool = True  # False: something could not be decided, the file's existence decides
    undecided: tuple[str, ...] = ()  # the expressions that could not be decided


def declared_addins(
    project: str,
    files: Sequence[str],
    *,
    properties: Mapping[str, str],
    global_properties: Mapping[str, str],
    environ: Mapping[str, str],
    load: ProjectFiles,
    issues: list[Issue],
    undecided: dict[str, tuple[str, ...]],
) -> list[Candidate]:
    """The items of all files, evaluated in this order as parts of one project."""
    remaining = list(files)
    while remaining:
        evaluator = Evaluator(
            project, properties=properties, global_properties=global_properties, environment=environ, load=load
        )
        try:
            evaluation = evaluator.evaluate(remaining)
        except EvaluationProblem as problem:
            issues.append(invalid(problem))
            del remaining[problem.entry]
            continue
        for _, path in evaluation.notes:
            undecided[path] = tuple(dict.fromkeys(text for text, where in evaluation.notes if where == path))
        notes = evaluation.notes_about(ITEM)
        return [
            Candidate(
                os.path.normpath(item.full_path),
                item.defined_in,
                "targets",
                item.certain,
                () if item.certain else tuple(text for text, path in notes if path == item.defined_in),
            )
            for item in evaluation.items(ITEM)
        ]
    return []


def invalid(problem: EvaluationProblem) -> Issue:
    return warning("AddInTargetsInvalid", f"{problem.path} was left out: {problem.message}.")
