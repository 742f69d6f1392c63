"""All servers that run on this machine, seen from a workspace: which are its own, and who started each."""

from __future__ import annotations

from .health_report import ActiveServer
from .membership import of_workspace
from .survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..workspace.resolver import Workspace
    from .registry import Server


def active_servers(registry: str, workspace: Workspace) -> tuple[ActiveServer, ...]:
    return with_ancestors(survey(registry, removing=False).running, workspace)


def with_ancestors(running: tuple[Server, ...], workspace: Workspace) -> tuple[ActiveServer, ...]:
    if not running:
        return ()
    from ..system.processes import chain

    mine = of_workspace(running, workspace)
    return tuple(
        ActiveServer(server, server in mine, chain(server.process_id, server.parent_process_id)) for server in running
    )
