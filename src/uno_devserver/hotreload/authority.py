"""The seam between those who want the newest code and the one component that hashes, builds and restarts.

The authority lives in the process that owns the upstream; others reach it over the control channel. It is asked, and
never has to be waited for: whoever asks sets a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class CheckResult(Value):
    """What a check has found and done; the members on the wire are in `to_json`."""

    server_changed: bool = False  # the code of the MCP server is another than what runs
    server_rebuilt: bool = False  # and is ready to be started: it was built, or needs no build
    server_build_error: str | None = None  # what the build printed, whole, where it failed
    extension_changed: bool = False
    extension_rebuilt: bool = False
    extension_build_error: str | None = None
    client_reloaded: bool = False  # the client process was started again, and is ready
    # Of the code whose build failed: an agent is told of it once, not at each try. Where nothing else is said of the
    # server: of what lies on disk, if that did not start when it was tried.
    server_digest: str | None = None
    client_problem: str | None = None  # a sentence: why the client is not ready; None as well where there is none

    @property
    def restart_due(self) -> bool:
        return self.server_changed and self.server_rebuilt

    def to_json(self) -> dict[str, Any]:
        document = {name: getattr(self, field) for name, field in _MEMBERS.items()}
        ours = {name: value for name, field in _OURS.items() if (value := getattr(self, field)) is not None}
        return {**document, **ours}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> CheckResult:
        """Members that are missing, or of another kind, are as good as absent: the peer may be another version."""
        known: dict[str, Any] = {}
        for name, field in _MEMBERS.items():
            value = document.get(name)
            if isinstance(value, str if field.endswith("_error") else bool):
                known[field] = value
        known |= {field: document[name] for name, field in _OURS.items() if isinstance(document.get(name), str)}
        return cls(**known)


_MEMBERS = {
    "mcpChanged": "server_changed",
    "mcpRebuilt": "server_rebuilt",
    "mcpBuildError": "server_build_error",
    "extChanged": "extension_changed",
    "extRebuilt": "extension_rebuilt",
    "extBuildError": "extension_build_error",
    "extClientReloaded": "client_reloaded",
}
# Only where there is something to say. A peer that does not know the digest tells failures apart by their output.
_OURS = {"mcpDigest": "server_digest", "extClientProblem": "client_problem"}
UNCHANGED = CheckResult()


class RestartResult(Value):
    """What became of a restart."""

    ok: bool  # the new code answers
    problem: str = ""  # sentences: why it does not, or what of it does not
    last_lines: tuple[str, ...] = ()  # what it printed last
    kept: bool = False  # the old server still answers: a swap whose new one did not start
    lists: str = ""  # the new tools against the old: same, grown or changed
    tools: ToolChanges | None = None  # which those are; known to the process that owns the server


class Authority(Protocol):
    """As the pipeline sees it; in the engine's loop."""

    def news(self) -> bool | None:
        """At once: whether a source may have changed since the last check. None: only a check can tell."""

    async def check(self, tell: Callable[[str], None]) -> CheckResult:
        """checkForChanges: the extension first, then the server; builds what has changed. All who ask while a check
        is under way get its result. `tell` hears what it is at, for people. Raises where there is no answer.
        """

    async def ready_to_restart(self) -> RestartResult:
        """readyToRestart: nothing of the asker's runs any more, so the server may be replaced. Returns when the next
        one answers, or does not; all who ask meanwhile get the same.
        """


class AuthorityProblem(Exception):
    """What lies on disk cannot be told within the bound; says why."""


ToolVerdict = Literal["same", "grown", "changed"]
NAMED_TOOLS = 5  # tools that are named in a sentence; nobody reads more
LISTED_TOOLS = 20  # of each kind, in a history of many reloads that agents read, too


class ToolChanges(Value):
    """The names of tools, each in one of these."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()  # they take what they took before, and more
    changed: tuple[str, ...] = ()

    @property
    def verdict(self) -> ToolVerdict:
        """`grown`: whoever knows the old tools can go on as before."""
        if self.removed or self.changed:
            return "changed"
        return "grown" if self.added or self.grown else "same"

    def __str__(self) -> str:
        kinds = {"new": self.added, "gone": self.removed, "with more options": self.grown, "changed": self.changed}
        told = [f"{len(names)} {kind} ({_named_tools(names)})" for kind, names in kinds.items() if names]
        return f"the tools: {', '.join(told)}" if told else "the tools are the same"

    def to_json(self) -> dict[str, list[str]]:
        kinds = {"added": self.added, "removed": self.removed, "grown": self.grown, "changed": self.changed}
        return {kind: list(names[:LISTED_TOOLS]) for kind, names in kinds.items()}


def _named_tools(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:NAMED_TOOLS])
    return shown if len(names) <= NAMED_TOOLS else f"{shown} and {len(names) - NAMED_TOOLS} more"
