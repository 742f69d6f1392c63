"""Which add-ins a Host loads: those it was told, or those that MSBuild names for its solution."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from ..system.log import log
from .addins.loading import parse_addins
from .configuration import Configuration


async def chosen_addins(configuration: Configuration, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Their paths, and why there may be too few. Being told, even of none, saves asking MSBuild."""
    if configuration.addins is not None and not configuration.force_msbuild:
        return _told(configuration.addins, configuration.workspace), None
    if configuration.solution is None:
        if configuration.addins is not None:
            return _told(configuration.addins, configuration.workspace), None
        log.warn("No solution and no --addins were given, so no add-ins are loaded.")
        return [], None
    return await asyncio.to_thread(_asked_of_msbuild, configuration.solution, environ)


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
