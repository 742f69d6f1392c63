"""Why a Host could not be had, in words for somebody who has a proxy and not a command line. Pure.

A Host of the workspace: launched, or found where another program has launched it.

What is imported here stands between the start of the proxy and the launch of the Host, so it is little; what is needed
when the Host runs is in `host_running`, and is read while it starts.
"""

from __future__ import annotations

import os

from ...instances.host_command import NO_ADDINS, ProgramKind
from ...instances.launch import LaunchFailure, Reason
from ...instances.start import StartObserver as Watcher
from ...instances.start import Wish, start
from ...issues import Issue, UserError, fatal, warning
from .base import Ending, StartFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...instances.child import Child
    from ...instances.host_choice import Plan
    from ...system.folders import Folders
    from ...workspace.resolver import Workspace
    from .base import StartObserver
    from .host_process import HostProcess


# What may be otherwise a moment later; every other refusal stays until somebody changes something.
PASSING = frozenset({"WorkspaceBusy", "HostUnreachable"})
_AGAIN = "the next tool call makes the proxy start the Host again."
# Next steps of `uno-devserver start` that are none here, where nobody runs it.
_HERE = {
    "PortTaken": "Start the proxy with another --port or without.",
    "WorkspaceBusy": f"Look at what it does, or end it; {_AGAIN}",
    "StateNotWritable": f"See that the disk has room, and that folder and file are yours; {_AGAIN}",
}


def launch_failed(failure: LaunchFailure) -> StartFailure:
    final = failure.reason in (Reason.NOT_STARTED, Reason.NOT_READY) or failure.refusal is not None
    died = failure.reason is Reason.DIED
    ending = Ending(how_it_ended(failure.exit_code), failure.exit_code, tuple(failure.text.splitlines()))
    return StartFailure(_issue(failure), final=final, ending=ending if died else None)


def user_error(error: UserError) -> StartFailure:
    issue = fatal(error.code, error.message, _HERE.get(error.code, error.next_step))
    return StartFailure(issue, final=error.code not in PASSING)


def how_it_ended(exit_code: int | None) -> str:
    """As a sentence without a full stop."""
    if exit_code is None:
        return "it ended"
    return f"it ended with exit code {exit_code}" if exit_code >= 0 else f"it was ended by signal {-exit_code}"


def _issue(failure: LaunchFailure) -> Issue:
    port, log = failure.port, failure.log_file
    if failure.reason is Reason.GIVEN_UP:
        return warning("HostNotStarted", "The start of the Host was given up.", "It is started again when needed.")
    if failure.reason is Reason.PORT_TAKEN:
        message = f"The Host cannot be started: port {port} is taken by another program."
        return fatal("HostNotStarted", message, "End that program, or start the proxy with another --port or without.")
    if failure.reason is Reason.NOT_STARTED:
        message = f"The Host cannot be started: {failure.text.rstrip('.')}."
        return fatal("HostNotStarted", message, f"Repair that; {_AGAIN}")
    if failure.reason is Reason.NOT_READY:
        message = f"The Host did not answer on port {port} within {failure.seconds:g} s and was stopped."
        return fatal("HostUnreachable", message, f"What it printed is in {log}.")
    if failure.refusal is not None:
        reason, next_step = failure.refusal
        return fatal("HostNotStarted", f"The Host cannot be started: {reason}", next_step)
    message = f"The Host did not start: {how_it_ended(failure.exit_code)}."
    return fatal("HostCrashed", message, f"Repair what it reports; what it printed is in {log}.")


# What only the plan of a launch can tell; the rest of its issues is discovery's, and told as such.
OF_THE_PLAN = frozenset({"AddInNeedsBundledHost", "AddInPathUnusable"})

# A Host that only starts has nothing to close; and it must be gone before we are, who have 230 ms.
STOP_SECONDS = 0.1


class HostUpstream:
    named = "The Host"  # at the beginning of a sentence

    def __init__(
        self,
        workspace: Workspace,
        folders: Folders,
        environ: Mapping[str, str],
        *,
        trusts: Callable[[Workspace], bool],
        port: int = 0,
        forwarded: tuple[str, ...] = (),
        control_channel: str | None = None,
    ) -> None:
        self._workspace = workspace
        self._folders = folders
        self._environ = environ
        self._trusts = trusts
        self._wish = Wish(
            workspace.working_directory,
            workspace.solution,
            port,
            os.getpid(),
            forwarded=forwarded,
            asks_addins=False,  # whoever reads the lists waits for them anyway
            tries_without=False,  # its add-ins are all that a Host is wanted for here
            stop_seconds=STOP_SECONDS,
            control_channel=control_channel,
        )
        self._own: HostProcess | None = None  # the last one that we launched
        self._replaces = False  # whether the next start replaces a Host that is nobody's
        self._detached = False  # whether the next that is launched is nobody's, too
        self.trusted: bool | None = None  # whether the workspace's own code was launched; None: there is none
        self.sources: int | None = None  # the key of the add-ins' files at the last launch; None: nothing was launched
        self.refusal = ""  # why it was not, where there is some: the end of a sentence
        self.issues: tuple[Issue, ...] = ()  # what the user should know of the launch

    def start(self, observer: StartObserver) -> HostProcess:
        wish, detached = self._wish, self._detached
        if detached:
            wish = wish.replace(restart=self._replaces, parent=None, control_channel=None)
            self._replaces = False  # what there is the next time, somebody has launched meanwhile
        try:
            found = start(wish, self._plan, self._folders, self._environ, _Watcher(observer, detached=detached))
        except LaunchFailure as failure:
            raise launch_failed(failure) from failure
        except UserError as error:
            raise user_error(error) from error
        from .host_process import HostProcess

        if self._own is not None and self._own.process_id == found.process_id:
            return self._own
        self._detached = False
        running = HostProcess(found, self._folders.registry, detached=detached)
        if running.owned:
            self._own = running
        elif found.launched is None:
            observer.launching(f"the Host that runs already (process {found.process_id})", None)
        return running

    def replace(self, running: HostProcess) -> str:
        """Have the next start replace a Host that is nobody's by one that is nobody's; why that cannot be. Blocks."""
        from ...instances.existing import ServerOwned, is_orphan
        from ...instances.host_kind import HostKind
        from ...instances.registry import running_servers

        if running.kind is not HostKind.BUNDLED:
            return "The Host is not one that loads Python code, so a restart would change nothing."
        servers = running_servers(self._folders.registry)
        server = next((one for one in servers if one.process_id == running.process_id), None)
        if server is None:
            return ""  # it has gone: somebody was faster, and the next start finds what they have launched
        if server.parent_process_id > 0 and not is_orphan(server):
            owned = ServerOwned(server)
            return f"{owned.message} {owned.next_step}"
        self._replaces = self._detached = True
        return ""

    def _plan(self) -> Plan:
        from ...instances.host_choice import Wanted, plan
        from ...workspace.addins import sources_key, workspace_addins
        from ...workspace.trust import refusal

        folder = self._workspace.working_directory
        self.sources = sources_key(folder)
        trusted = self._trusts(self._workspace)
        planned = plan(Wanted(trusted=trusted), self._workspace, self._environ)
        has_code = bool(workspace_addins(folder))
        would_build = any(issue.code == "WorkspaceNotTrusted" for issue in planned.issues)
        self.trusted = trusted if has_code or would_build else None
        self.refusal = refusal(self._folders.state, folder) if self.trusted is False else ""
        self.issues = tuple(issue for issue in planned.issues if issue.code in OF_THE_PLAN)
        nothing_else = planned.program.kind is ProgramKind.BUNDLED and planned.addins == NO_ADDINS
        if self.trusted is False and nothing_else:
            message = f"All that could be served is code of the workspace {folder}, and {self.refusal}."
            raise StartFailure(fatal("WorkspaceNotTrusted", message), final=True)
        return planned


class _Watcher(Watcher):
    """Passes on what happens while a Host starts."""

    def __init__(self, observer: StartObserver, *, detached: bool) -> None:
        """`detached`: the Host is not ours, and goes on to start when we end."""
        self._observer = observer
        self._detached = detached
        self._spawned = False

    def spawned(self, child: Child, port: int) -> None:
        self._spawned = True
        if self._detached:
            child.release()
        self._observer.launching(f"a Host on port {port}", child.pid)

    def said(self, message: str) -> None:
        self._observer.said(message)

    def warned(self, message: str) -> None:
        self._observer.said(message, warning=True)

    def go_on(self, seconds: float) -> bool:  # noqa: ARG002
        return (self._detached and self._spawned) or self._observer.go_on()
