"""The running proxies of a Host or of a workspace, and access to the objects in their status.

A status comes from a file that another version of this program may have written, so any member may have any type.
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
    """The running proxies that use this Host, and would start it again if it ended.

    The status of a proxy that has just started its Host does not name the Host yet; such a proxy is the Host's parent.
    """
    return [
        status
        for status in _running()
        if host.process_id == object_in(status, "upstream").get("processId")
        or host.parent_process_id == status.get("processId")
    ]


def owners_of_host(host: RegisteredServer) -> list[Status]:
    """The running proxy that has started this Host and restarts it for new code; empty if there is none."""
    return [status for status in proxies_of_host(host) if status.get("processId") == host.parent_process_id]


def proxies_of_workspace(workspace: Workspace) -> list[Status]:
    """The running proxies that serve the workspace's folder or a folder in it."""
    return [status for status in _running() if serves_workspace(status, workspace)]


def _running() -> Sequence[Status]:
    from ..proxy.health.status_file import running_proxies  # takes a few ms; `stop` and `start` rarely need it

    return running_proxies(folders().state)


def serves_workspace(status: Status, workspace: Workspace) -> bool:
    """Whether the proxy serves the workspace, or, while it starts, was started in the workspace's folder."""
    place, homes = status.get("directory"), (workspace.working_directory, workspace.requested_directory)
    if not isinstance(place, str):
        return False
    return any(same_place(place, home) for home in homes) or is_inside(place, homes[0])


def who_starts_it(proxies: Sequence[Status]) -> str:
    """A sentence without its full stop, which names the proxies that start the Host again."""
    each = [proxy_named(status) for status in proxies]
    who = f"The proxy ({each[0]})" if len(each) == 1 else f"One of the proxies ({'; '.join(each)})"
    return f"{who} starts it again at once, with the add-ins as they are now"


def proxy_named(status: Status) -> str:
    clients = client_names(status)
    return f"{f'of {clients}, ' if clients else ''}process {status.get('processId')}"


def client_names(status: Status) -> str:
    return ", ".join(map(str, list_in(status, "clients")))


def object_in(status: Mapping[str, object], name: str) -> Mapping[str, object]:
    """The member of that name; an empty object if it is missing or has another type."""
    value = status.get(name)
    return value if isinstance(value, dict) else {}


def list_in(status: Mapping[str, object], name: str) -> list[object]:
    """The member of that name; an empty list if it is missing or has another type."""
    value = status.get(name)
    return value if isinstance(value, list) else []


def text_in(status: Mapping[str, object], name: str) -> str:
    """The member of that name; an empty text if it is missing or has another type."""
    value = status.get(name)
    return value if isinstance(value, str) else ""
