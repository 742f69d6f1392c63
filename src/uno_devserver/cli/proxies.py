"""The running proxies of a Host or of a workspace, and access to the objects in their status.

A status comes from a file, in which another version of this program may have written anything.
"""

from __future__ import annotations

from ..system.folders import folders
from ..workspace.paths import is_inside, same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..instances.registry import RegisteredServer
    from ..proxy.health.status_file import Status
    from ..workspace.resolver import Workspace


def proxies_of_host(host: RegisteredServer) -> list[Status]:
    """The running proxies that use this Host, and start it again when it ends.

    A proxy that has just started its Host does not name it in its status yet, but is its parent.
    """
    return [
        status
        for status in _running()
        if host.process_id == object_in(status, "upstream").get("processId")
        or host.parent_process_id == status.get("processId")
    ]


def proxies_of_workspace(workspace: Workspace) -> list[Status]:
    """The running proxies of the workspace's folder and of folders in it."""
    return [status for status in _running() if serves_workspace(status, workspace)]


def _running() -> Sequence[Status]:
    from ..proxy.health.status_file import running_proxies  # takes some ms; `stop` and `start` rarely need it

    return running_proxies(folders().state)


def serves_workspace(status: Status, workspace: Workspace) -> bool:
    """Whether it is a proxy of the workspace; a starting proxy is known by the folder in which it was started."""
    place, homes = status.get("directory"), (workspace.working_directory, workspace.requested_directory)
    if not isinstance(place, str):
        return False
    return any(same_place(place, home) for home in homes) or is_inside(place, homes[0])


def who_starts_it(proxies: Sequence[Status]) -> str:
    """A sentence without its full stop: which of these proxies starts the Host again."""
    each = [
        f"{f'of {clients}, ' if (clients := client_names(status)) else ''}process {status.get('processId')}"
        for status in proxies
    ]
    who = f"The proxy ({each[0]})" if len(each) == 1 else f"One of the proxies ({'; '.join(each)})"
    return f"{who} starts it again at once, with the add-ins as they are now"


def client_names(status: Status) -> str:
    return ", ".join(map(str, list_in(status, "clients")))


def object_in(status: Mapping[str, object], name: str) -> Mapping[str, object]:
    """The object of that name; an empty one if there is none."""
    value = status.get(name)
    return value if isinstance(value, dict) else {}


def list_in(status: Mapping[str, object], name: str) -> list[object]:
    """The list of that name; an empty one if there is none."""
    value = status.get(name)
    return value if isinstance(value, list) else []
