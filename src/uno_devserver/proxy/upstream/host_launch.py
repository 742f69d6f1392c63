"""A Host of the workspace as upstream: launched, or found where another program has launched it.

Cheap to import: the launch waits for it, and `host_process`, which is needed afterwards, is imported while the Host
starts. The functions at the end turn failed launches into issues, with next steps for the users of a proxy.
"""

from __future__ import annotations

import os

from ...instances.host_kind import HostKind
from ...instances.host_program import NO_ADDINS
from ...instances.launch import StartObserver, StartRequest
from ...instances.launch_failure import LaunchFailure, LaunchFailureReason
from ...instances.start import ServerOwned, is_orphan, start
from ...issues import Issue, UserError, fatal, printed_in, warning
from ...system.folders import folders
from ...system.processes import how_it_ended
from ..options import HOST
from .base import Ending, StartFailure, Upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...instances.child_process import Child
    from ...instances.host_program import LaunchPlan
    from ...workspace.resolver import Workspace
    from .host_process import HostProcess
    from .launcher import UpstreamObserver

STOP_SECONDS = 0.1  # for a Host that is still starting: it has nothing to close, and the proxy ends within 230 ms
# The issues of a launch plan that are reported here; its other issues are reported by discovery.
PLAN_ISSUES = frozenset({"AddInNeedsBundledHost", "AddInPathUnusable"})
# Obstacles that may be gone a moment later. Every other one lasts until the user changes something.
PASSING_ERRORS = frozenset({"WorkspaceBusy", "HostUnreachable"})
_NEXT_CALL = "the next tool call makes the proxy start the Host again."
# Next steps that differ from those of `uno-devserver start`.
_PROXY_STEPS = {
    "PortTaken": "Start the proxy with another --port or without.",
    "WorkspaceBusy": f"Look at what it does, or end it; {_NEXT_CALL}",
    "StateNotWritable": f"Make sure that the disk has room, and that you own the folder and the file; {_NEXT_CALL}",
}


class HostUpstream(Upstream):
    named = HOST

    def __init__(
        self,
        workspace: Workspace,
        environ: Mapping[str, str],
        *,
        port: int = 0,
        forwarded: tuple[str, ...] = (),
        control_channel: str | None = None,
    ) -> None:
        self._folders = folders(environ)
        self._environ = environ
        self._request = StartRequest(
            workspace,
            port,
            os.getpid(),
            forwarded=forwarded,
            by_user=False,
            asks_addins=False,  # reading the lists waits for the add-ins anyway
            tries_without=False,  # a Host without its add-ins has no tools
            stop_seconds=STOP_SECONDS,
            control_channel=control_channel,
        )
        self._launched: HostProcess | None = None  # the last Host that this proxy owned
        self._ownerless: int | None = None  # the process of the last Host, if it had no owner
        self._replaces = False  # whether the next start replaces a Host without an owner
        self._detached = False  # whether the next Host is launched without an owner, like the one that it replaces
        self.trusted: bool | None = None  # whether the workspace's own code was launched; None if it has none
        self.sources: int | None = None  # the key of the add-ins' files at the last launch, if there was one
        self.refusal = ""  # why the workspace's own code was not launched: the end of a sentence
        self.issues: tuple[Issue, ...] = ()  # the issues of the launch plan

    def start(self, observer: UpstreamObserver) -> HostProcess:
        self._detached = self._detached or self._ownerless_crashed()
        request, detached = self._request, self._detached
        if detached:
            request = request.replace(restart=self._replaces, parent=None, control_channel=None)
            self._replaces = False  # a Host that a later start finds was launched by another program, and is kept
        try:
            found = start(request, self._folders, self._environ, _HostObserver(self, observer, detached=detached))
        except LaunchFailure as failure:
            raise launch_failed(failure) from failure
        except UserError as error:
            raise user_error(error) from error
        from .host_process import HostProcess

        if self._launched is not None and self._launched.process_id == found.process_id:
            return self._launched
        self._detached = False
        is_ownerless = found.found is not None and found.found.parent_process_id == 0
        self._ownerless = found.process_id if detached or is_ownerless else None
        running = HostProcess(found, self._folders.registry, detached=detached)
        if running.owned:
            self._launched = running
        elif found.child is None:
            observer.launching(f"the Host that runs already (process {found.process_id})", None)
        return running

    def _ownerless_crashed(self) -> bool:
        """Whether the last Host had no owner, and ended without being stopped: its successor has to stay like it."""
        if self._ownerless is None:
            return False
        from ...instances.registry import scan_registry

        # One that was stopped has removed its entry.
        ended = scan_registry(self._folders.registry, removing=False).ended
        return any(one.process_id == self._ownerless for one in ended)

    def replace(self, running: HostProcess) -> str:
        """Let the next start replace this Host, if it has no owner; return why it cannot be replaced, or "". Blocks."""
        from ...instances.registry import running_servers

        if running.kind is not HostKind.BUNDLED:
            return "The Host is not one that loads Python code, so a restart would change nothing."
        servers = running_servers(self._folders.registry)
        server = next((one for one in servers if one.process_id == running.process_id), None)
        if server is None:
            return ""  # another proxy has replaced it, and the next start finds that Host
        if server.parent_process_id > 0 and not is_orphan(server):
            owned = ServerOwned(server)
            return f"{owned.message} {owned.next_step}"
        self._replaces = self._detached = True
        return ""

    def note_sources(self) -> None:
        """Record the add-ins' files before the Host reads them, so that a save in between is noticed as a change."""
        from ...workspace.addins import sources_key

        self.sources = sources_key(self._request.folder)

    def note_plan(self, plan: LaunchPlan) -> None:
        """Record the trust and the issues of a launch plan; StartFailure if nothing would be served."""
        from ...workspace.addins import workspace_addins
        from ...workspace.trust import not_run, refusal

        folder = self._request.folder
        would_build = any(issue.code == "WorkspaceNotTrusted" for issue in plan.issues)
        self.trusted = plan.trusted if workspace_addins(folder) or would_build else None
        self.refusal = refusal(self._folders.state, folder) if self.trusted is False else ""
        self.issues = tuple(issue for issue in plan.issues if issue.code in PLAN_ISSUES)
        nothing_else = plan.program.kind is HostKind.BUNDLED and plan.addins == NO_ADDINS
        if self.trusted is False and nothing_else:
            what = f"Code of the workspace {folder}, which is all that could be served,"
            raise StartFailure(not_run(what, self.refusal, nothing_else=True), final=True)


class _HostObserver(StartObserver):
    """Reports the progress of a start. `detached`: the Host is not owned, and its start survives this proxy."""

    def __init__(self, upstream: HostUpstream, observer: UpstreamObserver, *, detached: bool) -> None:
        self._upstream = upstream
        self._observer = observer
        self._detached = detached
        self._spawned = False

    def planning(self) -> None:
        self._upstream.note_sources()

    def planned(self, plan: LaunchPlan) -> None:
        self._upstream.note_plan(plan)

    def spawned(self, child: Child, port: int) -> None:
        self._spawned = True
        if self._detached:
            child.release()
        self._observer.launching(f"a Host on port {port}", child.pid)

    def said(self, message: str) -> None:
        self._observer.said(message)

    def warned(self, message: str) -> None:
        self._observer.said(message, warning=True)

    def go_on(self) -> bool:
        return (self._detached and self._spawned) or self._observer.go_on()


def launch_failed(failure: LaunchFailure) -> StartFailure:
    lasting = failure.reason in (LaunchFailureReason.NOT_STARTED, LaunchFailureReason.NOT_READY)
    ending = Ending(how_it_ended(failure.exit_code), failure.exit_code, tuple(failure.text.splitlines()))
    return StartFailure(
        _issue(failure),
        final=lasting or failure.refusal is not None,
        ending=ending if failure.reason is LaunchFailureReason.DIED else None,
    )


def user_error(error: UserError) -> StartFailure:
    issue = fatal(error.code, error.message, _PROXY_STEPS.get(error.code, error.next_step))
    return StartFailure(issue, final=error.code not in PASSING_ERRORS)


def _issue(failure: LaunchFailure) -> Issue:
    match failure.reason:
        case LaunchFailureReason.GIVEN_UP:
            return warning("HostNotStarted", failure.message, "It is started again when needed.")
        case LaunchFailureReason.PORT_TAKEN:
            step = "End that program, or start the proxy with another --port or without."
        case LaunchFailureReason.NOT_STARTED:
            step = f"Fix that; {_NEXT_CALL}"
        case LaunchFailureReason.NOT_READY:
            return fatal("HostUnreachable", failure.message, printed_in(failure.log_file).lstrip())
        case LaunchFailureReason.DIED:
            if failure.refusal is None:
                step = f"Fix what it reports; its output is in {failure.log_file}."
                return fatal("HostCrashed", failure.message, step)
            step = failure.refusal[1]
    return fatal("HostNotStarted", failure.message, step)
