"""A running server as commands show it: the JSON object that IDE extensions read, and texts for people."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..instances.registry import Server
    from ..system.processes import Process

_HOST = "Uno.UI.RemoteControl.Host"


def server_data(server: Server, links: Sequence[Process], *, in_workspace: bool) -> dict[str, object]:
    """Names and order are those of the .NET tool."""
    return {
        "processId": server.process_id,
        "port": server.port,
        "mcpEndpoint": server.mcp_endpoint,
        "parentProcessId": server.parent_process_id,
        "startTime": server.started,
        "ideChannelId": server.ide_channel,
        "solutionPath": server.solution,
        "processChain": [{"processId": link.pid, "processName": link.name} for link in links],
        "isInWorkspace": in_workspace,
    }


def chain_text(links: Sequence[Process]) -> str:
    """The ancestors first, as in a path."""
    return " → ".join(_link(link) for link in reversed(links))


def _link(link: Process) -> str:
    if link.name is None:
        return str(link.pid)
    return f"{'Host' if link.name.startswith(_HOST) else link.name} ({link.pid})"


def started_text(server: Server) -> str:
    import time

    from ..system.dotnet_formats import from_time

    moment = from_time(server.started)
    if moment is None:
        return server.started or "unknown"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
