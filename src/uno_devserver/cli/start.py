"""`start`: the workspace has a server when this succeeds, and it is told where."""

from __future__ import annotations

import os

from ..instances.existing import ServerOwned
from ..instances.launch import READY_SECONDS, LaunchFailure, Reason
from ..instances.start import StartObserver, Wish, start
from ..issues import UserError
from ..system.folders import folders
from ..system.log import level_named, log
from ..workspace.config import read_config
from ..workspace.resolver import ResolutionKind, resolve, select_solution
from .agreeing import agree_to
from .interrupts import Interrupts
from .parse import MAX_PORT, absolute
from .progress import say
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..instances.child import Child
    from ..instances.host_choice import Plan
    from ..instances.start import Running
    from ..workspace.resolver import Workspace
    from .parse import Invocation

MAX_MILLISECONDS = 3_600_000  # an hour; more is a slip of the keyboard


def run(invocation: Invocation) -> Result:
    _refuse_arguments(invocation)
    workspace = _workspace(invocation)
    wish = _wish(invocation, workspace)
    agreed = agree_to(workspace.working_directory, "start")  # a proxy need not ask for it again
    interrupts = Interrupts()
    observer = _Teller(interrupts)
    for issue in read_config(workspace.config).issues:
        observer.warned(f"{issue.message} {issue.remediation}")

    def plan() -> Plan:
        from ..instances.host_choice import Wanted
        from ..instances.host_choice import plan as choose

        force_msbuild = invocation.on("force-msbuild-discovery")
        say("Asking MSBuild for the add-ins" if force_msbuild else "Looking for the Host")
        wanted = Wanted(invocation.value("host"), invocation.value("addins"), force_msbuild)
        chosen = choose(wanted, workspace, os.environ)
        for issue in (*(() if workspace.resolved else workspace.issues), *chosen.issues):
            observer.warned(f"{issue.message} {issue.remediation}")
        interrupts.hold()  # from here on a Host may have been started, and must not be left behind
        return chosen

    try:
        running = start(wish, plan, folders(), os.environ, observer)
        if interrupts.received is not None and running.launched:
            running.launched.child.stop()
            raise LaunchFailure(Reason.GIVEN_UP, running.port)
    except ServerOwned as refusal:
        raise _of_a_proxy(refusal) or refusal from None
    except LaunchFailure as failure:
        from .start_report import explain

        raise explain(failure, interrupts.received) from failure
    return _result(running, wish, invocation, observer, interrupts, agreed)


def _of_a_proxy(refusal: ServerOwned) -> UserError | None:
    """A proxy cannot be told to restart its Host, but does so when it ends."""
    from .keepers import keepers, who_starts_it

    server = refusal.server
    owner = [each for each in keepers(server) if each["processId"] == server.parent_process_id]
    if not owner:
        return None
    return UserError(refusal.code, refusal.message, f"Run 'uno-devserver stop'. {who_starts_it(owner)}.")


def _result(
    running: Running,
    wish: Wish,
    invocation: Invocation,
    observer: _Teller,
    interrupts: Interrupts,
    agreed: tuple[str, ...],
) -> Result:
    from .start_report import remarks, report

    for sentence in remarks(running, wish, invocation):
        observer.warned(sentence)
    result = report(running, wish, observer.warnings, agreed)
    if running.launched and wish.parent == os.getpid():
        child = running.launched.child
        return result.replace(afterwards=lambda: _stay_with(child, interrupts, wish.ide_channel))
    return result


# What is asked for.


def _refuse_arguments(invocation: Invocation) -> None:
    if invocation.arguments:
        message = f"'start' does not take '{invocation.arguments[0]}'."
        next_step = "Name the solution with --solution, or the folder with --solution-dir."
        raise UserError("UnexpectedArgument", message, next_step, exit_code=2)


def _workspace(invocation: Invocation) -> Workspace:
    """The workspace, or the bare folder: a bundled Host needs neither solution nor config."""
    named, solution = invocation.value("solution-dir"), invocation.value("solution")
    directory = absolute(named or ".")
    if solution is not None:
        return _workspace_of(os.path.normpath(os.path.join(directory, solution)))
    workspace = resolve(directory, explicit=named is not None)
    if workspace.kind is ResolutionKind.Ambiguous or not os.path.isdir(directory):
        issue = workspace.issues[0]
        raise UserError(issue.code, issue.message, issue.remediation)
    return workspace


def _workspace_of(solution: str) -> Workspace:
    """A solution that is named decides, wherever it lies."""
    if not os.path.isfile(solution):
        next_step = "Name a .sln or .slnx file that exists, or leave --solution out."
        raise UserError("SolutionNotFound", f"There is no solution {solution}.", next_step)
    workspace = resolve(os.path.dirname(solution), explicit=True)
    selected = select_solution(workspace, solution)
    if not selected.resolved and workspace.resolved:  # git ignores the solution, for example
        return workspace.replace(solution=solution)
    return selected.replace(solution=solution)  # also one that is no Uno solution can be served: the user named it


def _wish(invocation: Invocation, workspace: Workspace) -> Wish:
    channel = invocation.value("ideChannel")
    parent = invocation.number("ppid", 0, 2**31 - 1) or None
    if parent is not None:
        _check_parent(parent)
    milliseconds = invocation.number("timeoutMs", 1, MAX_MILLISECONDS)
    return Wish(
        workspace.working_directory,
        workspace.solution,
        invocation.number("httpPort", 0, MAX_PORT) or 0,
        # A Host with an IDE must not outlive it; we stay, so that there is somebody to outlive.
        os.getpid() if parent is None and channel is not None else parent,
        channel,
        (*invocation.forwarded, *invocation.child, *_bind(invocation), *_log_level(invocation)),
        READY_SECONDS if milliseconds is None else milliseconds / 1000,
        invocation.on("restart"),
    )


def _bind(invocation: Invocation) -> tuple[str, ...]:
    address = invocation.value("bind")
    return () if address is None else ("--bind", address)


def _log_level(invocation: Invocation) -> tuple[str, ...]:
    """Whoever wants to see more of the start wants to see more of the Host, too."""
    level = invocation.value("log-level")
    return ("--log-level", level) if level is not None and level_named(level) is not None else ()


def _check_parent(parent: int) -> None:
    from ..system.processes import is_alive

    if not is_alive(parent):
        message = f"There is no process {parent}, so a Host with that parent would end at once."
        raise UserError("ParentNotRunning", message, "Give --ppid the id of a running process, or leave it out.")


# What is said meanwhile.


class _Teller(StartObserver):
    """Warnings go to the log; a person at a terminal sees what is waited for."""

    def __init__(self, interrupts: Interrupts) -> None:
        self.warnings: list[str] = []
        self._interrupts = interrupts

    def said(self, message: str) -> None:
        log.info(message)

    def warned(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)
            log.warn(message)

    def spawned(self, child: Child, port: int) -> None:
        say(f"Waiting for the Host (process {child.pid}, port {port})")
        log.debug(f"the Host is process {child.pid}, for port {port}")

    def crashed(self, failure: LaunchFailure, addins: str | None) -> None:
        from .start_report import crash

        self.warned(crash(failure, addins))

    def go_on(self, _: float) -> bool:
        return self._interrupts.received is None


def _stay_with(child: Child, interrupts: Interrupts, channel: str | None) -> int:
    """The Host's exit code, as a shell would tell it."""
    from ..instances.guardian import guard

    log.info(f"Serving the IDE on channel '{channel}' until this command ends (Ctrl+C).")
    code = guard(child, lambda: interrupts.received is not None)
    return code if code >= 0 else 128 - code
