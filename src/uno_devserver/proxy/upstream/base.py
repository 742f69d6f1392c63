"""The seam between the engine and what it keeps running. Cheap to import: the first start waits for it."""

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
    """How an upstream came to its end."""

    reason: str  # a sentence without a full stop: "it ended with exit code 3", "it does not answer any more"
    exit_code: int | None = None  # negative: the signal that ended it
    last_lines: tuple[str, ...] = ()  # what it printed last


class StartFailure(Exception):
    """There is no upstream. `issues` say why, and what to do; `final`: trying again without a change is no use."""

    def __init__(self, *issues: Issue, final: bool = False, ending: Ending | None = None) -> None:
        super().__init__(issues[0].message if issues else "The upstream did not start.")
        self.issues = issues
        self.final = final
        self.ending = ending


class StartObserver(Protocol):
    """Who watches a start; called from the thread that starts."""

    def launching(self, what: str, process_id: int | None) -> None:
        """There is a process (None: it was there already), and it is waited for. Calls may come more than once."""

    def said(self, message: str, *, warning: bool = False) -> None:
        """Something for the log."""

    def strayed(self, line: str) -> None:
        """What was started has written this where only messages belong, and has not answered yet; in the event loop."""

    def go_on(self) -> bool:
        """Asked again and again; False gives up, and the start raises StartFailure soon."""


class Running(Protocol):
    """An upstream that works, as far as one can see from outside."""

    @property
    def kind(self) -> HostKind: ...
    @property
    def process_id(self) -> int | None: ...
    @property
    def endpoint(self) -> str | None: ...
    @property
    def owned(self) -> bool:
        """Whether it is ours to end; an adopted Host is not."""

    @property
    def log_file(self) -> str | None: ...

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """A conversation for one client. Lost or Refusal where that is not possible.

        An upstream that can have only one conversation (a command on pipes) hands out the same each time.
        """

    async def ended(self) -> Ending:
        """Returns when it is of no use any more."""

    def doubt(self) -> None:
        """Somebody could not reach it: see at once whether it is still of use, and not in a while."""

    async def stop(self, *, patient: bool = False) -> None:
        """End it, if it is ours, with all that it started; bounded in time.

        `patient`: nobody is in a hurry, so it may take the seconds that it needs to end well.
        """


class Upstream(Protocol):
    def start(self, observer: StartObserver) -> Running:
        """Start it, or find it; blocks, in a thread of its own. Raises StartFailure."""
