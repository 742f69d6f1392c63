"""`disco`: what the workspace runs."""

from __future__ import annotations

import os

from ..discovery.discover import Request, discover, discover_addins
from ..system.log import log
from .directory import absolute
from .results import Result
from .surface import GLOBAL_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..discovery.discover import AddInDiscovery
    from .parse import Invocation
    from .surface import Command


def run(invocation: Invocation) -> Result:
    assert invocation.command
    _mention_ignored(invocation.command, invocation.forwarded)
    named = invocation.value("solution-dir")
    request = Request(
        absolute(named or "."),
        explicit=named is not None,
        solution=invocation.value("solution"),
        force=invocation.on("force"),
        force_msbuild=invocation.on("force-msbuild-discovery"),
    )
    if invocation.on("addins-only"):
        return _paths(discover_addins(request, os.environ))
    from .disco_report import report

    return report(discover(request, os.environ))


def _mention_ignored(command: Command, options: tuple[str, ...]) -> None:
    """IDEs pass options that are not ours; people mistype."""
    for option in options:
        from difflib import get_close_matches

        known = [name for one in (*command.options, *GLOBAL_OPTIONS) for name in one.names]
        close = get_close_matches(option.partition("=")[0], known, 1)
        log.warn(f"Ignoring '{option}'." + (f" Did you mean '{close[0]}'?" if close else ""))


def _paths(addins: AddInDiscovery) -> Result:
    """Made to be piped into `--addins`; everything else is said on stderr."""
    for issue in addins.issues:
        log.warn(f"{issue.message} {issue.remediation}")
    paths = list(dict.fromkeys(addin.path for addin in addins.found))
    possible = bool(paths) or (addins.possible and not addins.failed)
    return Result(paths, ";".join(paths) if possible else None, 0 if possible else 1)
