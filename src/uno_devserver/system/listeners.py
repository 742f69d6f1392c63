"""Who listens on a TCP port of this machine?"""

from __future__ import annotations

from .processes import Process, listens_on


def listener_in_family(pid: int, port: int) -> int | None:
    """The process, or that of its descendants, which listens on the port."""
    if listens_on(pid, port):
        return pid
    import psutil

    try:
        descendants = [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return None
    return next((descendant for descendant in descendants if listens_on(descendant, port)), None)


def listener(port: int) -> Process | None:
    """The process that listens on the port; None when nobody does, or it is another user's and cannot be told."""
    import psutil

    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:  # macOS tells only root
        return None
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        if listens and connection.pid:
            return Process(connection.pid, _name(connection.pid))
    return None


def _name(pid: int) -> str | None:
    import psutil

    try:
        name: str = psutil.Process(pid).name()
    except psutil.Error:
        return None
    return name
