"""`config`: which config counts, each of its settings, what follows from it, and what is wrong."""

from __future__ import annotations

import os

from ..issues import UserError
from ..system.folders import folders
from ..workspace.config import read_config
from ..workspace.resolver import resolve, select_solution
from ..workspace.trust import is_trusted, refusal
from .parse import absolute
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..workspace.resolver import Workspace
    from .config_report import Findings
    from .parse import Invocation

SCHEMA = "host.config.schema.json"


def run(invocation: Invocation) -> Result:
    if invocation.on("schema"):
        return _schema()
    from .config_report import data, report

    found = _look(_workspace(invocation))
    return Result(data(found), report(found), 1 if found.problems else 0)


def _schema() -> Result:
    import json

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "workspace", SCHEMA), encoding="utf-8") as stream:
        text = stream.read()
    return Result(json.loads(text), text.rstrip("\n"))


def _workspace(invocation: Invocation) -> Workspace:
    named, solution = invocation.value("solution-dir"), invocation.value("solution")
    workspace = resolve(absolute(named or "."), explicit=named is not None)
    if solution is not None:
        workspace = select_solution(workspace, solution)
    if not workspace.resolved:
        issue = workspace.issues[0]
        raise UserError(issue.code, f"There is no workspace, so no config counts. {issue.message}", issue.remediation)
    return workspace


def _look(workspace: Workspace) -> Findings:
    from ..hotreload.sources.find import find_sources
    from .config_checks import problems, remarks
    from .config_commands import commands_of
    from .config_issues import config_issues
    from .config_report import Findings

    folder = workspace.working_directory
    config = read_config(workspace.config)
    config = config.replace(issues=config_issues(config, workspace))
    commands = commands_of(folder, config)
    found = Findings(
        folder,
        config,
        "" if is_trusted(os.environ, folder) else refusal(folders().state, folder),
        commands,
        tuple((package, build, find_sources(package)) for package, build in commands.packages),
    )
    return found.replace(problems=tuple(dict.fromkeys(problems(found))), remarks=tuple(remarks(found)))
