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
    """Those of its folder and of folders in it."""
    return [status for status in running_proxies(folders().state) if belongs(status, workspace)]


def belongs(status: Status, workspace: Workspace) -> bool:
    """Whether it is a proxy of the workspace; one that just starts is known by the folder it was started in."""
    place, homes = status.get("directory"), (workspace.working_directory, workspace.requested_directory)
    if not isinstance(place, str):
        return False
    return any(same_place(place, home) for home in homes) or is_inside(place, homes[0])
