"""Which add-ins a Host loads: those it was told, or those that MSBuild names for its solution."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from functools import partial

from ..system.log import log
from .addins.loading import parse_addins
from .addins.workers import invoke_apart
from .configuration import Configuration


async def chosen_addins(configuration: Configuration, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Their paths, and why there may be too few. Being told, even of none, saves asking MSBuild."""
    told, solution = configuration.addins, configuration.solution
    if told is not None and (solution is None or not configuration.force_msbuild):
        return _told(told, configuration.workspace), None
    if solution is None:
        log.warn("No solution and no --addins were given, so no add-ins are loaded.")
        return [], None
    try:
        found: tuple[list[str], str | None] = await invoke_apart(partial(_asked_of_msbuild, solution, environ))
    except Exception as error:
        log.debug(traceback.format_exc())
        return [], f"The discovery of add-ins failed: {error!r}."
    return found


def _told(value: str, workspace: str | None) -> list[str]:
    """A launcher writes a path relative to the workspace where the full one has a semicolon."""
    return [os.path.join(workspace or "", path) for path in parse_addins(value)]


def _asked_of_msbuild(solution: str, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    from ..discovery.discover import Request, discover_addins

    directory = os.path.dirname(solution)
    found = discover_addins(Request(directory, explicit=True, solution=solution, force_msbuild=True), environ)
    for issue in found.issues:
        log.warn(f"{issue.message} {issue.remediation}")
    failure = next((issue.message for issue in found.issues if issue.code == "MSBuildDiscoveryFailed"), None)
    paths = list(dict.fromkeys(addin.path for addin in found.found))
    if not paths and failure is None:
        log.info(f"Didn't find any add-ins for solution '{solution}'.")
    return paths, failure
