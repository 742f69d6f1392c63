"""The proxies behind which a Host stands: when it ends, one of them starts it again."""

from __future__ import annotations

from ..system.folders import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..instances.registry import Server
    from ..proxy.health.status_file import Status


def keepers(host: Server) -> list[Status]:
    """The running proxies behind which this Host stands.

    A proxy that has just started its Host does not name it in its status yet, but is the parent of it.
    """
    from ..proxy.health.status_file import running_proxies  # takes some ms, and most often there is nothing to stop

    return [status for status in running_proxies(folders().state) if _keeps(status, host)]


def _keeps(status: Status, host: Server) -> bool:
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
