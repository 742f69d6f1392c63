"""The interface of upstreams: what the keeper of the upstream needs of a Host, a command or a URL.

Cheap to import: the launch waits for it.
"""

from __future__ import annotations

from ...issues import Issue
from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from ...instances.host_kind import HostKind
    from ...protocol.client.connection import Connection, Peer
else:
    Protocol = object


class Ending(Value):
    """How an upstream ended."""

    reason: str  # a sentence without a full stop: "it ended with exit code 3", "it does not answer any more"
    exit_code: int | None = None  # negative: the signal that ended it
    last_lines: tuple[str, ...] = ()  # the last lines that it printed
    other_era_next: bool = False  # it left `server/discover` unanswered, and the next start begins with `initialize`


def how_it_ended(exit_code: int | None) -> str:
    """The reason of an `Ending`."""
    if exit_code is None:
        return "it ended"
    return f"it ended with exit code {exit_code}" if exit_code >= 0 else f"it was ended by signal {-exit_code}"


class StartFailure(Exception):
    """The upstream did not start. `issues` say why and what to do; `final`: another attempt would fail, too."""

    def __init__(self, *issues: Issue, final: bool = False, ending: Ending | None = None) -> None:
        super().__init__(issues[0].message if issues else "The upstream did not start.")
        self.issues = issues
        self.final = final
        self.ending = ending


class StartObserver(Protocol):
    """Is told of the progress of one start. Called from the thread that starts, unless stated otherwise."""

    def launching(self, what: str, process_id: int | None) -> None:
        """The process exists (None: it did before), and its readiness is awaited. May be called more than once."""

    def said(self, message: str, *, warning: bool = False) -> None:
        """A line for the log."""

    def strayed(self, line: str) -> None:
        """It wrote this line, which is no message, to its standard output. Called in the event loop, at any time."""

    def go_on(self) -> bool:
        """Asked again and again; on False the start raises StartFailure soon."""


class Running(Protocol):
    """An upstream that runs, as far as can be seen from outside."""

    @property
    def kind(self) -> HostKind: ...
    @property
    def process_id(self) -> int | None: ...
    @property
    def endpoint(self) -> str | None: ...
    @property
    def owned(self) -> bool:
        """Whether this proxy stops it; a Host that another program launched is not owned."""

    @property
    def log_file(self) -> str | None: ...

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """A conversation for one client; raises Lost or Refusal.

        An upstream that can have only one conversation (a command on pipes) returns the same one each time.
        """

    async def ended(self) -> Ending:
        """Return when it has ended, or does not answer any more."""

    def check_now(self) -> None:
        """A connection to it failed: check at once, and not at the next interval, whether it still answers."""

    async def stop(self, *, patient: bool = False) -> None:
        """Stop it with all its processes, if it is owned; bounded in time.

        `patient`: it may take the seconds that it needs to end in order.
        """


class Upstream(Protocol):
    def start(self, observer: StartObserver) -> Running:
        """Start or find it. Blocks, so it runs in a thread of its own; raises StartFailure."""

    def renegotiate(self) -> None:
        """Forget what earlier starts showed of the server's protocol versions: its code may be another by now."""
