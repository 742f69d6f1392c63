"""`disco`: shows the SDK, Host, add-ins and servers of the workspace.

The report is made by disco_report.py, so that `--addins-only` does not wait for its imports.
"""

from __future__ import annotations

import os

from ..discovery.discover import DiscoveryRequest, discover, discover_addins
from ..issues import REMEDIES, UserError, with_steps
from ..system.log import log
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..discovery.discover import Discovery
    from ..discovery.entry_points import AddInDiscovery
    from .parse import Invocation


def run(invocation: Invocation) -> Result:
    request = DiscoveryRequest(
        invocation.folder(),
        explicit=invocation.names_folder,
        solution=invocation.value("solution"),
        force=invocation.on("force"),
        force_msbuild=invocation.on("force-msbuild-discovery"),
    )
    if request.force_msbuild:
        from .progress import say

        say("Asking MSBuild for the add-ins")
    if invocation.on("addins-only"):
        return _paths(discover_addins(request, os.environ), request.directory)
    from .disco_report import report

    verbose = invocation.on("verbose")
    if not invocation.on("verify"):
        return report(discover(request, os.environ), verbose=verbose)
    found = discover(request.replace(force_msbuild=False), os.environ)
    return report(found, _asked(request, found), verbose=verbose)


def _asked(request: DiscoveryRequest, found: Discovery) -> AddInDiscovery:
    """What MSBuild says of the add-ins; raises UserError if there is none, or the user has not agreed to it."""
    from ..system.programs import find_program
    from ..workspace.trust import AGREE, is_trusted
    from .progress import say

    directory = found.workspace.working_directory
    if not request.force_msbuild and not is_trusted(os.environ, directory):
        if find_program("dotnet", os.environ) is None:
            message = "--verify asks MSBuild, and no 'dotnet' was found in the folders of PATH."
            raise UserError("DotNetNotFound", message, REMEDIES["DotNetNotFound"])
        message = f"--verify would run the build of {directory}, to which the user has not agreed."
        raise UserError("WorkspaceNotTrusted", message, f"Leave it out, or run {AGREE}.")
    say("Asking MSBuild for the add-ins")
    return discover_addins(request.replace(force_msbuild=True), os.environ)


def _paths(addins: AddInDiscovery, directory: str) -> Result:
    """The paths of the add-ins as a value for `--addins`; issues go to the log."""
    for text in with_steps(addins.issues):
        log.warn(text)
    paths = list(addins.for_host)
    possible = bool(paths) or (addins.possible and not addins.failed)
    if not possible and not addins.issues:
        log.warn(
            f"{directory} is not an Uno workspace, so it has no .NET add-ins. Python add-ins are loaded by 'start'."
        )
    return Result(paths, ";".join(paths) if possible else None, 0 if possible else 1)
