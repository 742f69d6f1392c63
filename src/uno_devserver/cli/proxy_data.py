"""A running proxy as `list` shows it, to programs and to people. It comes from a file, which may say anything."""

from __future__ import annotations

from .results import Row, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..proxy.health.status_file import Status

SHOWN = ("processId", "state", "status", "directory", "solution", "clients", "inspector")


def proxy_data(status: Status) -> dict[str, object]:
    """`inspector` is missing in what an older version wrote."""
    return {name: status.get(name) for name in SHOWN}


def proxy_section(status: Status) -> Section:
    clients = status.get("clients")
    rows = (
        ("State", f"{status.get('state')} ({status.get('status')})"),
        ("Workspace", status.get("directory")),
        ("Solution", status.get("solution")),
        ("Clients", ", ".join(map(str, clients)) if isinstance(clients, list) else None),
        ("Inspector", status.get("inspector")),
    )
    shown = tuple(Row(name, str(value)) for name, value in rows if value)
    return Section(f"Proxy: process {status.get('processId')}", shown)
