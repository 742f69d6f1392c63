"""`start`: the workspace has a server when this succeeds, and it is told where."""

from __future__ import annotations

import os

from ..instances.host_program import ProgramKind, addin_paths
from ..instances.launch import READY_SECONDS, LaunchFailure, LaunchFailureReason
from ..instances.start import ServerOwned, StartObserver, StartOutcome, StartRequest, start
from ..issues import REMEDIES, UserError
from ..system.folders import folders
from ..system.log import level_named, log
from ..workspace.addins import ADDINS_FOLDER as ADDINS
from ..workspace.addins import workspace_addins
from ..workspace.config import read_config
from ..workspace.resolver import ResolutionKind, resolve, select_solution
from .interrupts import Interrupts
from .parse import MAX_PORT, absolute
from .progress import say
from .result import Bullets, Report, Result, Row, Section
from .trust import MAY_RUN, REVOKE, agree_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..instances.child import Child
    from ..instances.host_program import LaunchPlan
    from ..instances.launch import Launched, LaunchFailure
    from ..instances.probe import Probe
    from ..instances.start import RunningHost, StartRequest
    from ..workspace.resolver import Workspace
    from .parse import Invocation

MAX_MILLISECONDS = 3_600_000  # an hour; more is a slip of the keyboard


def run(invocation: Invocation) -> Result:
    _refuse_arguments(invocation)
    workspace = _workspace(invocation)
    wish = _wish(invocation, workspace)
    agreed = agree_to(workspace.working_directory, "start")  # a proxy need not ask for it again
    interrupts = Interrupts()
    observer = _Observer(interrupts)
    for issue in read_config(workspace.config).issues:
        observer.warned(f"{issue.message} {issue.remediation}")

    def plan() -> LaunchPlan:
        from ..instances.host_program import HostOptions
        from ..instances.host_program import plan_launch as choose

        force_msbuild = invocation.on("force-msbuild-discovery")
        say("Asking MSBuild for the add-ins" if force_msbuild else "Looking for the Host")
        wanted = HostOptions(invocation.value("host"), invocation.value("addins"), force_msbuild)
        chosen = choose(wanted, workspace, os.environ)
        for issue in (*(() if workspace.resolved else workspace.issues), *chosen.issues):
            observer.warned(f"{issue.message} {issue.remediation}")
        interrupts.hold()  # from here on a Host may have been started, and must not be left behind
        return chosen

    try:
        running = start(wish, plan, folders(), os.environ, observer)
        if interrupts.received is not None and running.launched:
            running.launched.child.stop()
            raise LaunchFailure(LaunchFailureReason.GIVEN_UP, running.port)
    except ServerOwned as refusal:
        raise _of_a_proxy(refusal) or refusal from None
    except LaunchFailure as failure:
        raise launch_error(failure, interrupts.received) from failure
    return _result(running, wish, invocation, observer, interrupts, agreed)


def _of_a_proxy(refusal: ServerOwned) -> UserError | None:
    """A proxy cannot be told to restart its Host, but does so when it ends."""
    from .proxies import proxies_of_host, who_starts_it

    server = refusal.server
    owner = [each for each in proxies_of_host(server) if each["processId"] == server.parent_process_id]
    if not owner:
        return None
    return UserError(refusal.code, refusal.message, f"Run 'uno-devserver stop'. {who_starts_it(owner)}.")


def _result(
    running: RunningHost,
    wish: StartRequest,
    invocation: Invocation,
    observer: _Observer,
    interrupts: Interrupts,
    agreed: tuple[str, ...],
) -> Result:

    for sentence in remarks(running, wish, invocation):
        observer.warned(sentence)
    result = started_result(running, wish, observer.warnings, agreed)
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


def _wish(invocation: Invocation, workspace: Workspace) -> StartRequest:
    channel = invocation.value("ideChannel")
    parent = invocation.number("ppid", 0, 2**31 - 1) or None
    if parent is not None:
        _check_parent(parent)
    milliseconds = invocation.number("timeoutMs", 1, MAX_MILLISECONDS)
    return StartRequest(
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


class _Observer(StartObserver):
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

        self.warned(crash_warning(failure, addins))

    def go_on(self, _: float) -> bool:
        return self._interrupts.received is None


def _stay_with(child: Child, interrupts: Interrupts, channel: str | None) -> int:
    """The Host's exit code, as a shell would tell it."""
    from ..instances.child import guard

    log.info(f"Serving the IDE on channel '{channel}' until this command ends (Ctrl+C).")
    code = guard(child, lambda: interrupts.received is not None)
    return code if code >= 0 else 128 - code


# What only a Host that is launched now can obey.
LAUNCH_OPTIONS = ("host", "addins", "ppid", "force-msbuild-discovery")
RESTART = (
    "Add-ins are loaded when the server starts. After editing one, use --restart; "
    "where the proxy of an AI client has started it, run 'uno-devserver stop': the proxy starts it again."
)


def started_result(running: RunningHost, wish: StartRequest, warnings: list[str], agreed: tuple[str, ...]) -> Result:
    """`agreed`: what this start has agreed to, which nobody had before."""
    data = {**_data(running, wish, warnings), "agreedTo": list(agreed)}
    shown = ("processId", "port", "mcpEndpoint", "solutionPath", "workspaceDirectory", "ideChannelId", "host")
    rows = [Row(key, str(data[key])) for key in shown if data[key] is not None]
    if running.launched:
        count = str(len(running.addins)) if running.left_out is None else "left out, because the Host died with them"
        rows.append(Row("addIns", _loaded(running.launched.told) or count))
    if running.log_file:
        rows.append(Row("logFile", running.log_file))
    hint = _about_edits(running, wish.workspace)
    sections = (
        Section("", tuple(rows)),
        *((Section(hint, ()),) if hint else ()),
        *((Bullets(MAY_RUN, agreed), Section(REVOKE, ())) if agreed else ()),
    )
    return Result(data, Report(_title(running), sections))


def _about_edits(running: RunningHost, folder: str) -> str | None:
    """What becomes of an edited add-in, where there are some."""
    bundled = running.plan is None or running.plan.program.kind is ProgramKind.BUNDLED
    if not bundled or not workspace_addins(folder):
        return None
    from ..proxy.reload.watched_code import packages_of
    from ..workspace.config import read_config
    from ..workspace.config_file import CONFIG

    config = read_config(os.path.join(folder, CONFIG))
    watched = [package for package in packages_of(folder, config) if package.addins]
    if not watched or not config.hot_reload.enabled:
        return None if running.launched else RESTART
    from ..hotreload.sources.finder import find_sources

    count = len(find_sources(watched[0]).files)
    files = f"{count} source file{'' if count == 1 else 's'} in {ADDINS}"
    return f"Hot reload: {files}; edits count at the next call of a tool through the proxy of an AI client."


def _loaded(told: Probe | None) -> str | None:
    if told is None:
        return None
    count = sum(addin.loaded for addin in told.add_ins)
    return f"{count} of {len(told.add_ins)} loaded" + (", still loading" if told.loading else "")


def _data(running: RunningHost, wish: StartRequest, warnings: list[str]) -> dict[str, object]:
    launched, plan = running.launched, running.plan
    return {
        "outcome": running.how.value,
        "processId": running.process_id,
        "port": running.port,
        "mcpEndpoint": f"http://localhost:{running.port}/mcp",
        "solutionPath": running.solution,
        "workspaceDirectory": wish.workspace,
        "ideChannelId": running.ide_channel,
        "host": plan.program.kind.value if plan else None,
        "hostCommand": list(plan.program.command) if plan else None,
        "addIns": list(running.addins) if launched else None,
        "safeMode": running.left_out is not None,
        "hasMcp": launched.has_mcp if launched else None,
        "logFile": running.log_file,
        "warnings": warnings,
    }


def _title(running: RunningHost) -> str:
    """Sentences that other programs look for in the output of the .NET tool."""
    if running.how is StartOutcome.STARTED:
        return f"DevServer is ready on port {running.port}."
    what = "solution" if running.solution else "workspace"
    done = "Reusing." if running.how is StartOutcome.REUSED else "Rebinding IDE channel."
    return f"DevServer already running for {what} (PID {running.process_id}, Port {running.port}). {done}"


def remarks(running: RunningHost, wish: StartRequest, invocation: Invocation) -> list[str]:
    """What the user wanted and did not get, although there is a server; and what may not be wanted."""
    if running.launched:
        return _remarks_on(running, running.launched, invocation.value("bind"))
    said = []
    if wish.port not in (0, running.port):
        said.append(f"It has port {running.port}, not {wish.port}: a workspace has one server.")
    if running.left_out is not None:
        said.append(f"It runs without its add-ins, because it died with them: {_names(running.left_out)}.")
        said[-1] += " " + REMEDIES["AddInsLeftOut"]
    given = [f"--{name}" for name in LAUNCH_OPTIONS if name in invocation.options] + list(wish.forwarded)
    if given:
        said.append(f"Not passed to the server that was already running: {' '.join(given)}. Use --restart.")
    return said


def _remarks_on(running: RunningHost, launched: Launched, bind: str | None) -> list[str]:
    failed = [addin for addin in launched.told.add_ins if addin.error] if launched.told else []
    said = [f"{addin.failure} Run 'uno-devserver health' for the next step." for addin in failed]
    if not launched.has_mcp:
        said.append(_no_mcp(running))
    if bind is not None and not _is_loopback(bind):
        said.append(
            f"The Host listens on {bind}: everybody who reaches this machine over the network can call its tools, "
            "without authentication. Leave --bind out where that is not wanted."
        )
    return said


def _is_loopback(address: str) -> bool:
    address = address.strip().strip("[]").lower()
    return address in ("localhost", "::1") or address.startswith("127.")


def _no_mcp(running: RunningHost) -> str:
    return (
        f"HostMcpEndpointNotAvailable: the Host answers on port {running.port} but has no /mcp, so it has no tools for "
        "AI agents. A .NET Host gets it from an add-in: restore the package that brings it, or use --host bundled."
    )


def crash_warning(failure: LaunchFailure, addins: str | None) -> str:
    """The warning before the attempt without add-ins."""
    return (
        f"The Host died while it started: it {_end(failure)}. Starting it once more without add-ins. "
        f"Left out: {_names(addin_paths(addins))}. Repair the one at fault, then run 'uno-devserver start' again; all "
        f"of the output is in {failure.log_file}.{_printed(failure)}"
    )


def _names(addins: tuple[str, ...]) -> str:
    return ", ".join(addins) or "what MSBuild names"


def launch_error(failure: LaunchFailure, signal_number: int | None) -> UserError:
    """A failed launch in words."""
    port, log_file = failure.port, failure.log_file
    if failure.reason is LaunchFailureReason.GIVEN_UP:
        message = "Interrupted: the Host that was being started is stopped, and nothing is left running."
        return UserError("Interrupted", message, "Run start again.", 128 + (signal_number or 2))
    if failure.reason is LaunchFailureReason.PORT_TAKEN:
        return UserError("PortTaken", _taken(port), "Choose another --httpPort, or leave it out to get a free one.")
    if failure.reason is LaunchFailureReason.NOT_STARTED:
        message = f"The Host cannot be started: {failure.text}."
        return UserError("HostNotStarted", message, "Check --host, or use --host bundled.")
    if failure.reason is LaunchFailureReason.NOT_READY:
        message = f"The Host did not answer on port {port} within {failure.seconds:g} s and was stopped."
        next_step = f"Look into {log_file}, or give it more time with --timeoutMs."
        return UserError("HostUnreachable", message + _printed(failure), next_step)
    if failure.refusal is not None:
        reason, next_step = failure.refusal
        return UserError("HostNotStarted", f"The Host cannot be started: {reason}", next_step)
    message = f"The Host {_end(failure)} before it was ready."
    if not failure.text.strip():
        message += " It printed nothing, so it may not be a Host at all."
        next_step = "Check --host: a Host serves HTTP on the --httpPort that it is given. Or use --host bundled."
        return UserError("HostCrashed", message, next_step)
    return UserError("HostCrashed", message + _printed(failure), f"Repair what it reports; all of it is in {log_file}.")


def _end(failure: LaunchFailure) -> str:
    code = failure.exit_code or 0
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


def _taken(port: int) -> str:
    from ..system.processes import listener

    owner = listener(port)
    who = f"process {owner.pid} ({owner.name})" if owner else "another program"
    return f"Port {port} is taken by {who}."


def _printed(failure: LaunchFailure) -> str:
    if not failure.text.strip():
        return " It printed nothing."
    return "\nThe end of its output:\n" + "\n".join(f"  | {line}" for line in failure.text.splitlines())
