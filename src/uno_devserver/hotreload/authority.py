"""The interface through which calls get the newest code: `Authority`, and the results of its two requests.

For each server one component hashes, builds and restarts: the `LocalAuthority` of the process that owns the server.
Other processes reach it over the control channel, by a `RemoteAuthority`. Callers limit their waits.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol

from ..system.text import LONGEST_NAME
from ..system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

NAMED_TOOLS = 5  # the most tools that a sentence names
LISTED_TOOLS = 20  # the most of each kind in an entry of the history, which agents read too

ToolVerdict = Literal["same", "grown", "changed"]


class AuthorityProblem(Exception):
    """The authority cannot answer; the text is a sentence that says why."""


class Demand(Enum):
    """What a check is asked to do; each includes the one before."""

    NEW_CODE = "newCode"  # a call: build what has changed
    BUILD = "build"  # an agent that asks: build again what failed to build, even if nothing has changed
    RESTART = "restart"  # start the server again, even if its code has not changed


class CheckResult(Value):
    """What a check has found and done."""

    server_changed: bool = False  # the code of the MCP server differs from what runs
    server_rebuilt: bool = False  # the changed code can be started: it was built, or needs no build
    server_build_error: str | None = None  # the whole output of a build that failed
    extension_changed: bool = False
    extension_rebuilt: bool = False
    extension_build_error: str | None = None
    client_reloaded: bool = False  # the client process was started again, and is ready
    # The digest of the code whose build failed, so that an agent is told once and not at each attempt. If the server is
    # unchanged: the digest of the code on disk, if that failed to start.
    server_digest: str | None = None
    server_old_output: str | None = None  # sentences, if what is started was not built again after the code had changed
    # The build failed, and so had the one before the server's start, which may have written what runs. Only told in the
    # process of the authority: what a proxy shares, a Host, has no build.
    server_of_failed_build: bool = False
    client_problem: str | None = None  # why the client is not ready; None if it is, or if there is no client
    # Why nothing was built or started: the user has not agreed to what has changed. The end of a sentence.
    refusal: str | None = None

    @property
    def restart_due(self) -> bool:
        return self.server_changed and self.server_rebuilt


UNCHANGED = CheckResult()


class ToolChanges(Value):
    """The names of the tools that differ, each in one of these lists."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()  # tools that accept everything they accepted before, and more
    changed: tuple[str, ...] = ()

    @property
    def verdict(self) -> ToolVerdict:
        """`grown`: all calls that were valid before are still valid."""
        if self.removed or self.changed:
            return "changed"
        return "grown" if self.added or self.grown else "same"

    def __str__(self) -> str:
        kinds = {"new": self.added, "gone": self.removed, "with more options": self.grown, "changed": self.changed}
        told = [f"{len(names)} {kind} ({_named_tools(names)})" for kind, names in kinds.items() if names]
        return f"the tools: {', '.join(told)}" if told else "the tools are the same"

    def to_json(self) -> dict[str, list[str]]:
        return {kind: [name[:LONGEST_NAME] for name in names[:LISTED_TOOLS]] for kind, names in self.__dict__.items()}


class RestartResult(Value):
    ok: bool  # the new code answers
    problem: str = ""  # sentences that say why it does not answer, or which part of it does not work
    last_lines: tuple[str, ...] = ()  # the last output of the new server
    kept: bool = False  # the old server still answers, because the new one did not start
    lists: str = ""  # the `ToolVerdict` on the new tools
    tools: ToolChanges | None = None  # known only in the process that owns the server
    refusal: str = ""  # why the new code was not started: the user has not agreed to it; the end of a sentence


class Authority(Protocol):
    """All methods are called on the event loop."""

    def news(self) -> bool | None:
        """Whether a source may have changed since the last check; None if only a check can tell. Never waits."""

    async def check(self, tell: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult:
        """Build what has changed, the extension before the server; callers during a check share its result.

        A build that failed is not repeated until something that it reads has changed, or `demand` asks for it. `tell`
        is called with progress messages for people. Raises AuthorityProblem.
        """

    async def ready_to_restart(self) -> RestartResult:
        """Let the server be replaced, because no call of the caller runs any more; callers during a restart share it.

        Returns when the new server answers or has failed to start.
        """


def _named_tools(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name[:LONGEST_NAME]}'" for name in names[:NAMED_TOOLS])
    return shown if len(names) <= NAMED_TOOLS else f"{shown} and {len(names) - NAMED_TOOLS} more"
