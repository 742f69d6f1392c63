"""Stop servers within a time limit (each is asked to end, then killed), and remove their registration."""

from __future__ import annotations

from ..system.files import FileProblem
from ..system.log import log
from ..system.processes import GRACE_SECONDS, StopOutcome, stop_process
from .registry import RegisteredServer, creation_time, unregister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def stop_servers(
    folder: str, servers: Sequence[RegisteredServer], *, grace_seconds: float = GRACE_SECONDS
) -> tuple[StopOutcome, ...]:
    """Stop running servers of this user in parallel, so that several take no longer than one."""
    if len(servers) < 2:
        return tuple(stop_server(folder, server, grace_seconds=grace_seconds) for server in servers)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(lambda server: stop_server(folder, server, grace_seconds=grace_seconds), servers))


def stop_server(folder: str, server: RegisteredServer, *, grace_seconds: float = GRACE_SECONDS) -> StopOutcome:
    """Stop a server of this user if it runs, and remove its registration if it has ended."""
    created = creation_time(server)
    outcome = (
        StopOutcome() if created is None else stop_process(server.process_id, created, grace_seconds=grace_seconds)
    )
    if outcome.gone:
        try:
            unregister(folder, server.process_id)
        except FileProblem as problem:
            log.warn(f"The server has ended, but its registration cannot be removed: {problem}.")
    return outcome
