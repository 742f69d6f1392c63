"""Is there a server already? Whether one that is registered is used, waited for, or replaced.

A registration is not believed: its process must live, be that process, and answer. Nobody's server is stopped while
somebody owns it: only one whose owner is gone, or that nobody owns and that never answers, or that had to be launched
without its add-ins.
"""

from __future__ import annotations

import time

from ..issues import UserError
from ..system.processes import START_SLACK_SECONDS, is_alive, listens_on, process_started
from .launch import LaunchFailure, Reason
from .loopback import Loopback
from .readiness import MCP_PATH
from .registry import creation_time
from .stopping import stop_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .registry import Server

ANSWER_SECONDS = 3.0  # a Host answers in milliseconds, a busy one in a second
STEP_SECONDS = 0.02


class ServerOwned(UserError):
    def __init__(self, server: Server) -> None:
        message = (
            f"{_named(server)} was started by process {server.parent_process_id}, which is running and relies on it, "
            "so it was not restarted."
        )
        next_step = f"Restart it from that program, or end it: uno-devserver stop --pid {server.process_id}."
        super().__init__("ServerOwned", message, next_step)
        self.server = server


def usable(
    registry: str,
    find: Callable[[], Server | None],
    *,
    starting_seconds: float,
    go_on: Callable[[float], bool],
    say: Callable[[str], None],
    with_addins: bool,
) -> Server | None:
    """The server that `find` finds in the registry, if it can be used; what has to go is gone when this returns.

    One that does not answer may still be starting, for `starting_seconds` after its creation. `with_addins`: one that
    had to do without is not good enough, because they may have been repaired meanwhile.
    """
    loopback = Loopback()
    patience = min(ANSWER_SECONDS, starting_seconds)
    begun = time.monotonic()
    while (server := find()) is not None:
        if is_orphan(server):
            say(f"{_named(server)} is orphaned: its parent, process {server.parent_process_id}, is gone. Replacing it.")
            _stop(registry, server)
        elif with_addins and server.left_out is not None and not is_used(server):
            say(f"{_named(server)} runs without its add-ins. Replacing it, to try with them again.")
            _stop(registry, server)
        elif answers(server, loopback, patience):
            return server
        elif _age(server) < starting_seconds and time.monotonic() - begun < starting_seconds:
            if not go_on(time.monotonic() - begun):
                raise LaunchFailure(Reason.GIVEN_UP, server.port)
            time.sleep(STEP_SECONDS)
        elif server.parent_process_id > 0:
            raise _unresponsive(server)
        else:
            say(f"{_named(server)} does not answer. Replacing it.")
            _stop(registry, server)
    return None


def is_orphan(server: Server) -> bool:
    """Whether it has lost its parent. One that was started without a parent (0) is nobody's, and meant to stay."""
    parent = server.parent_process_id
    if parent <= 0:
        return False
    if not is_alive(parent):
        return True
    # A process that is younger than its child has only got the number of the one that was the parent.
    born, created = process_started(parent), creation_time(server)
    return born is not None and created is not None and born > created + START_SLACK_SECONDS


def is_used(server: Server) -> bool:
    """Whether some program relies on it: the one that is its parent, or an IDE."""
    return server.parent_process_id > 0 or server.ide_channel is not None


def answers(server: Server, loopback: Loopback, seconds: float) -> bool:
    """Whether HTTP is answered on its port, and by itself."""
    if loopback.ask("GET", server.port, MCP_PATH, seconds) is None:
        return False
    return listens_on(server.process_id, server.port)


def make_room(registry: str, server: Server, say: Callable[[str], None]) -> None:
    """Stop a server, well or not, so that it can be started anew; UserError where it is another program's."""
    if server.parent_process_id > 0 and not is_orphan(server):
        raise ServerOwned(server)
    say(f"Stopping the DevServer that runs (PID {server.process_id}, Port {server.port}).")
    _stop(registry, server)


def _age(server: Server) -> float:
    created = creation_time(server)
    return 0.0 if created is None else time.time() - created


def _named(server: Server) -> str:
    return f"The DevServer that is registered (PID {server.process_id}, Port {server.port})"


def _stop(registry: str, server: Server) -> None:
    outcome = stop_server(registry, server)
    if not outcome.gone:
        message = f"{_named(server)} has to be replaced and cannot be stopped: {outcome.problem}."
        raise UserError("HostUnreachable", message, f"End process {server.process_id}, then run start again.")


def _unresponsive(server: Server) -> UserError:
    message = (
        f"{_named(server)} does not answer on its port. It belongs to process {server.parent_process_id}, "
        "which is running, so it was left alone."
    )
    next_step = f"Wait or restart that program, or end the Host: uno-devserver stop --pid {server.process_id}."
    return UserError("HostUnreachable", message, next_step)
