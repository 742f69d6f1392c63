"""The source files of a .NET project or file-based program, and of all projects that it references.

They are what its evaluation compiles, embeds or copies, and the files that decide the evaluation and the restore. The
SDK evaluates if it may be asked, which needs the user's agreement; otherwise we do.
"""

from __future__ import annotations

import os

from ...system.folders import relative_path
from ...workspace.dotnet_project import project_graph
from ...workspace.dotnet_query import SdkQuestions, stored_answers
from ...workspace.paths import upwards
from ...workspace.repository import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...workspace.repository import Repository
    from .source_tree import SourceTree

QUESTIONS = "dotnet"  # the entry of a cache with the SdkQuestions, where the SDK may be run


def may_ask_sdk(environ: Mapping[str, str]) -> dict[str, Any]:
    """A cache for the sources of a package whose workspace the user has agreed to."""
    return {QUESTIONS: SdkQuestions(environ)}


def find_dotnet(tree: SourceTree, project: str, repository: Repository, questions: SdkQuestions | None) -> None:
    """Add the files of the project in the root, and of those that it references."""
    root = os.path.abspath(tree.root)
    # The folder with all code of the repository, in the spelling that the root has.
    top = [root, *(above for above in upwards(root) if repository.has(os.path.realpath(above)))][-1]
    environ = questions.environ if questions else os.environ
    answer = questions.answers if questions else stored_answers(environ)
    for each in project_graph(tree.path(project), environ, top, answer):
        if each.problem:
            tree.problems.append(each.problem)
        for path in sorted({*each.files, *each.sources}):
            if is_inside(path, top):  # files of packages and of the SDK lie elsewhere
                _add(tree, path)
        tree.deciding.update(each.awaited)
        tree.folders.update(folder for folder in each.folders if is_inside(folder, top))
        for reference in each.references:
            if not os.path.isfile(reference):
                tree.deciding.add(reference)
                tree.problems.append(f"{each.path} references {reference}, which does not exist.")
            elif not is_inside(reference, top):
                tree.problems.append(f"{reference} is outside of {top}, so its files are not watched.")


def _add(tree: SourceTree, path: str) -> None:
    relative = relative_path(path, tree.root).replace(os.sep, "/")
    if not os.path.isfile(path):
        tree.deciding.add(path)
    elif not tree.excludes(relative):
        tree.files[relative] = path
