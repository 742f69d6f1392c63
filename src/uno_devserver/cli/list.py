"""`list`: shows every server in the registry, including those of other machines and users, and this user's proxies.

Stale entries are removed.
"""

from __future__ import annotations

from ..instances.host_kind import HostKind
from ..instances.registry import prune
from ..instances.workspace_servers import of_workspace
from ..proxy.health.status_file import running_proxies
from ..system.folders import folders
from ..system.log import log
from ..system.values import Value
from ..workspace.resolver import resolve
from .proxies import client_names
from .result import Report, Result, Row, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..instances.registry import RegisteredServer
    from ..proxy.health.status_file import Status
    from ..system.processes import Process
    from .parse import Invocation


PROXY_FIELDS = ("processId", "state", "status", "directory", "solution", "clients", "inspector")
_HOST = "Uno.UI.RemoteControl.Host"


class Listed(Value):
    server: RegisteredServer
    foreign: bool  # whether it belongs to another machine or user; its process is not looked up then
    in_workspace: bool
    links: tuple[Process, ...]
    kind: HostKind | None  # None if the server is foreign, or its command line does not show it


def run(invocation: Invocation) -> Result:
    pruned = prune(folders().registry)
    for problem in pruned.problems:
        log.warn(problem)
    mine: tuple[RegisteredServer, ...] = ()
    if pruned.running:
        named = invocation.value("solution-dir")  # not .folder(): the current folder may have been removed
        mine = of_workspace(pruned.running, resolve(named or ".", explicit=named is not None))
    listed = [_looked_up(server, server in mine) for server in pruned.running]
    listed += [Listed(server, True, False, (), None) for server in pruned.foreign]
    proxies = running_proxies(folders().state)
    data = {
        "servers": [_data(one) for one in listed],
        "proxies": [{name: status.get(name) for name in PROXY_FIELDS} for status in proxies],
    }
    return Result(data, _report(listed, proxies), 0 if pruned.complete else 1)


def _looked_up(server: RegisteredServer, in_workspace: bool) -> Listed:
    from ..system.processes import chain, command_line

    links = chain(server.process_id, server.parent_process_id)
    return Listed(server, False, in_workspace, links, HostKind.of_command_line(command_line(server.process_id)))


def _data(one: Listed) -> dict[str, object]:
    server = one.server
    return {
        **server_data(server, one.links, in_workspace=one.in_workspace),
        "workspaceDirectory": server.workspace,
        "leftOutAddIns": None if server.left_out is None else list(server.left_out),
        "hostKind": one.kind and one.kind.value,
        "controlChannel": server.control_channel,
        "machineName": server.machine,
        "userName": server.user,
        "foreign": one.foreign,
    }


def _report(listed: list[Listed], proxies: Sequence[Status]) -> Report:
    """The lines of the .NET tool, which scripts search for, and our own lines."""
    last = f"Total active DevServers: {len(listed)}" if listed else "No active DevServers found."
    servers = (*(_section(one) for one in listed), Section(last, ()))
    return Report("Active Uno DevServers:", (*servers, *(_proxy(status) for status in proxies)))


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
        Row("Host", one.kind.value if one.kind else "unknown"),
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


def server_data(server: RegisteredServer, links: Sequence[Process], *, in_workspace: bool) -> dict[str, object]:
    """What `list --json` and `disco --json` both show of a server; names and order are those of the .NET tool."""
    return {
        **server.to_json(),
        "processChain": [{"processId": link.pid, "processName": link.name} for link in links],
        "isInWorkspace": in_workspace,
    }


def chain_text(links: Sequence[Process]) -> str:
    """The processes from the oldest ancestor to the server."""
    return " → ".join(_link(link) for link in reversed(links))


def _link(link: Process) -> str:
    if link.name is None:
        return str(link.pid)
    return f"{'Host' if link.name.startswith(_HOST) else link.name} ({link.pid})"


def started_text(server: RegisteredServer) -> str:
    import time

    from ..system.dotnet_formats import from_time

    moment = from_time(server.started)
    if moment is None:
        return server.started or "unknown"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))


def _proxy(status: Status) -> Section:
    rows = (
        ("State", f"{status.get('state')} ({status.get('status')})"),
        ("Workspace", status.get("directory")),
        ("Solution", status.get("solution")),
        ("Clients", client_names(status)),
        ("Inspector", status.get("inspector")),
    )
    shown = tuple(Row(name, str(value)) for name, value in rows if value)
    return Section(f"Proxy: process {status.get('processId')}", shown)
