"""The proxies behind which a Host stands: when it ends, one of them starts it again."""

from __future__ import annotations

from ..system.folders import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..proxy.health.status_file import Status


def keepers(host: int) -> list[Status]:
    """By the Host's process id."""
    from ..proxy.health.status_file import running_proxies  # takes some ms, and most often there is nothing to stop

    return [
        status
        for status in running_proxies(folders().state)
        if isinstance(upstream := status.get("upstream"), dict) and upstream.get("processId") == host
    ]


def who_starts_it(proxies: Sequence[Status]) -> str:
    each = [f"{_clients(status)}process {status.get('processId')}" for status in proxies]
    who = f"The proxy ({each[0]})" if len(each) == 1 else f"One of the proxies ({'; '.join(each)})"
    return f"{who} starts it again at once, with the add-ins as they are now"


def _clients(status: Status) -> str:
    clients = status.get("clients")
    return f"of {', '.join(map(str, clients))}, " if isinstance(clients, list) and clients else ""
