"""The proxies of a workspace, by what they say of themselves."""

from __future__ import annotations

from ..instances.membership import is_inside, same_place
from ..proxy.health.status_file import running_proxies
from ..system.folders import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..proxy.health.status_file import Status
    from ..workspace.resolver import Workspace


def proxies_of(workspace: Workspace) -> list[Status]:
    """Those of its folder and of folders in it; a proxy that just starts is known by the folder it was started in."""
    homes = (workspace.working_directory, workspace.requested_directory)
    return [
        status
        for status in running_proxies(folders().state)
        if isinstance(place := status.get("directory"), str)
        and (any(same_place(place, home) for home in homes) or is_inside(place, homes[0]))
    ]
