"""The proxies behind which a Host stands: when it ends, one of them starts it again."""

from __future__ import annotations

from ..proxy.health.status_file import running_proxies
from ..system.folders import folders
from ..workspace.paths import is_inside, same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..instances.registry import RegisteredServer
    from ..proxy.health.status_file import Status
    from ..workspace.resolver import Workspace


def proxies_of_host(host: RegisteredServer) -> list[Status]:
    """The running proxies behind which this Host stands.

    A proxy that has just started its Host does not name it in its status yet, but is the parent of it.
    """
    from ..proxy.health.status_file import running_proxies  # takes some ms, and most often there is nothing to stop

    return [status for status in running_proxies(folders().state) if _keeps(status, host)]


def _keeps(status: Status, host: RegisteredServer) -> bool:
    upstream = status.get("upstream")
    named = isinstance(upstream, dict) and upstream.get("processId") == host.process_id
    return named or status.get("processId") == host.parent_process_id


def who_starts_it(proxies: Sequence[Status]) -> str:
    each = [f"{_clients(status)}process {status.get('processId')}" for status in proxies]
    who = f"The proxy ({each[0]})" if len(each) == 1 else f"One of the proxies ({'; '.join(each)})"
    return f"{who} starts it again at once, with the add-ins as they are now"


def _clients(status: Status) -> str:
    clients = status.get("clients")
    return f"of {', '.join(map(str, clients))}, " if isinstance(clients, list) and clients else ""


def proxies_of_workspace(workspace: Workspace) -> list[Status]:
    """Those of its folder and of folders in it."""
    return [status for status in running_proxies(folders().state) if serves_workspace(status, workspace)]


def serves_workspace(status: Status, workspace: Workspace) -> bool:
    """Whether it is a proxy of the workspace; one that just starts is known by the folder it was started in."""
    place, homes = status.get("directory"), (workspace.working_directory, workspace.requested_directory)
    if not isinstance(place, str):
        return False
    return any(same_place(place, home) for home in homes) or is_inside(place, homes[0])
