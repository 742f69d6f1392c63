"""`list`: every server in the registry, also those of other machines and users, and the proxies of this user.

Stale entries go on the way.
"""

from __future__ import annotations

from ..instances.host_kind import host_kind
from ..instances.membership import of_workspace
from ..instances.registry import prune
from ..proxy.health.status_file import running_proxies
from ..system.folders import folders
from ..system.log import log
from ..system.values import Value
from ..workspace.resolver import resolve
from .proxy_data import proxy_data, proxy_section
from .results import Report, Result, Row, Section
from .server_data import chain_text, server_data, started_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..instances.registry import Server
    from ..proxy.health.status_file import Status
    from ..system.processes import Process
    from .parse import Invocation


class Listed(Value):
    server: Server
    foreign: bool  # another machine's or user's: its process id means nothing here
    in_workspace: bool
    links: tuple[Process, ...]
    kind: str | None  # bundled, dotnet, or None where the process does not tell


def run(invocation: Invocation) -> Result:
    pruned = prune(folders().registry)
    for problem in pruned.problems:
        log.warn(problem)
    mine: tuple[Server, ...] = ()
    if pruned.running:
        named = invocation.value("solution-dir")
        mine = of_workspace(pruned.running, resolve(named or ".", explicit=named is not None))
    listed = [_looked_up(server, server in mine) for server in pruned.running]
    listed += [Listed(server, True, False, (), None) for server in pruned.foreign]
    proxies = running_proxies(folders().state)
    data = {"servers": [_data(one) for one in listed], "proxies": [proxy_data(status) for status in proxies]}
    return Result(data, _report(listed, proxies), 0 if pruned.complete else 1)


def _looked_up(server: Server, in_workspace: bool) -> Listed:
    from ..system.processes import chain, command_line

    links = chain(server.process_id, server.parent_process_id)
    return Listed(server, False, in_workspace, links, host_kind(command_line(server.process_id)))


def _data(one: Listed) -> dict[str, object]:
    server = one.server
    return {
        **server_data(server, one.links, in_workspace=one.in_workspace),
        "workspaceDirectory": server.workspace,
        "leftOutAddIns": None if server.left_out is None else list(server.left_out),
        "hostKind": one.kind,
        "controlChannel": server.control_channel,
        "machineName": server.machine,
        "userName": server.user,
        "foreign": one.foreign,
    }


def _report(listed: list[Listed], proxies: Sequence[Status]) -> Report:
    """The lines of the .NET tool, which scripts search for, and some of ours among and behind them."""
    last = f"Total active DevServers: {len(listed)}" if listed else "No active DevServers found."
    servers = (*(_section(one) for one in listed), Section(last, ()))
    return Report("Active Uno DevServers:", (*servers, *(proxy_section(status) for status in proxies)))


def _section(one: Listed) -> Section:
    server = one.server
    names = {link.pid: link.name for link in one.links}
    mark = " [workspace]" if one.in_workspace else " [another machine or user]" if one.foreign else ""
    rows = (
        Row("Parent PID", _process(server.parent_process_id, names) if server.parent_process_id > 0 else "<none>"),
        Row("Port", str(server.port)),
        Row("Endpoint", server.mcp_endpoint),
        Row("Solution", server.solution or "N/A"),
        Row("Workspace", server.workspace or "N/A"),
        Row("IDE Channel", server.ide_channel or "<none>"),
        *(() if server.control_channel is None else (Row("Control Channel", server.control_channel),)),
        Row("Host", one.kind or "unknown"),
        *(() if server.left_out is None else (Row("Left out", ", ".join(server.left_out) or "all add-ins"),)),
        Row("Process Chain", chain_text(one.links) or "N/A"),
        Row("Machine", server.machine or "N/A"),
        Row("User", server.user or "N/A"),
        Row("Started", started_text(server)),
    )
    return Section(f"Process ID: {_process(server.process_id, names)}{mark}", rows)


def _process(pid: int, names: dict[int, str | None]) -> str:
    name = names.get(pid)
    return f"{pid} ({name})" if name else str(pid)
