"""`start`: makes sure that the workspace has a Host, and shows where it serves."""

from __future__ import annotations

import os
import time

from ..instances.health import started_before
from ..instances.host_kind import HostKind
from ..instances.host_program import restored_since
from ..instances.launch import (
    READY_SECONDS,
    StartObserver,
    StartOutcome,
    StartRequest,
    addin_names,
)
from ..instances.launch_failure import LaunchFailure, LaunchFailureReason
from ..instances.probe import KIND_SECONDS, host_report
from ..instances.start import ANOTHER_PORT, ServerOwned, start
from ..issues import REMEDIES, UserError, with_steps
from ..system.folders import folders
from ..system.log import level_named, log
from ..workspace.addins import workspace_addins
from ..workspace.config import read_config
from ..workspace.devtools_folder import ADDINS_FOLDER
from ..workspace.resolver import SOLUTIONS, ResolutionKind
from ..workspace.trust import is_trusted
from .interrupts import Interrupts
from .parse import MAX_PORT, workspace_of
from .progress import say
from .result import Bullets, Report, Result, Row, Section
from .trust import MAY_RUN, REVOKE, Consent, consent_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..instances.child_process import Child
    from ..instances.host_program import LaunchPlan
    from ..instances.launch import RunningHost
    from ..instances.probe import Probe
    from ..workspace.config import Config
    from ..workspace.resolver import Workspace
    from .parse import Invocation

MAX_MILLISECONDS = 3_600_000  # an hour; a longer time is probably a typing error
# Options that have no effect on a Host that runs already.
LAUNCH_OPTIONS = ("host", "addins", "ppid", "force-msbuild-discovery")
RESTART = (
    "Add-ins are loaded when the server starts. After editing one, use --restart; "
    "where the proxy of an AI client has started it, run 'uno-devserver stop': the proxy starts it again."
)


def run(invocation: Invocation) -> Result:
    request = _request(invocation)
    consent = _consent(invocation, request)
    request = request.replace(trusted=consent.given)
    config = read_config(request.workspace.config)
    interrupts = Interrupts()
    observer = _Observer(request, interrupts)
    for issue in config.issues:
        observer.warned(f"{issue.message} {issue.remediation}")
    try:
        running = start(request, folders(), os.environ, observer)
    except ServerOwned as refusal:
        raise _owned_by_proxy(refusal) or refusal from None
    except LaunchFailure as failure:
        raise _launch_error(failure, interrupts.received) from failure
    missing = _not_loaded(running, request) if running.child is None and consent.given else []
    for remark in _remarks(running, request, invocation, consent, missing):
        observer.warned(remark)
    consent.keep("start")
    hint = None if missing else _about_edits(running, request, config)
    result = _result(running, request, hint, observer.warnings, consent)
    if running.child is not None and request.parent == os.getpid():
        child = running.child
        return result.replace(afterwards=lambda: _stay_with(child, interrupts, request.ide_channel))
    return result


def _consent(invocation: Invocation, request: StartRequest) -> Consent:
    """Whether code of the workspace may run; nobody is asked about its add-ins if the user names other ones."""
    if request.addins is not None and not invocation.on("trust"):
        return Consent(given=is_trusted(os.environ, request.folder))
    return consent_to(request.folder, invocation, runs_commands=False)


# The request.


def _request(invocation: Invocation) -> StartRequest:
    if invocation.arguments:
        message = f"'start' does not take '{invocation.arguments[0]}'."
        next_step = "Name the solution with --solution, or the folder with --solution-dir."
        raise UserError("UnexpectedArgument", message, next_step, exit_code=2)
    workspace = _workspace(invocation)
    channel = invocation.value("ideChannel")
    parent = invocation.number("ppid", 0, 2**31 - 1) or None
    if parent is not None:
        _check_parent(parent)
    milliseconds = invocation.number("timeoutMs", 1, MAX_MILLISECONDS)
    address, level = invocation.value("bind"), invocation.value("log-level")
    bind = () if address is None else ("--bind", address)
    log_level = ("--log-level", level) if level is not None and level_named(level) is not None else ()
    return StartRequest(
        workspace,
        invocation.number("httpPort", 0, MAX_PORT) or 0,
        # A Host that serves an IDE must end with it, so this command stays as the Host's parent if no other is named.
        os.getpid() if parent is None and channel is not None else parent,
        channel,
        (*invocation.forwarded, *invocation.child, *bind, *log_level),
        invocation.on("restart"),
        invocation.value("host"),
        invocation.value("addins"),
        invocation.on("force-msbuild-discovery"),
        ready_seconds=READY_SECONDS if milliseconds is None else milliseconds / 1000,
    )


def _workspace(invocation: Invocation) -> Workspace:
    """The workspace, which may be unresolved: a bundled Host needs neither a solution nor a config."""
    named = invocation.value("solution")
    solution = None if named is None else os.path.normpath(os.path.join(invocation.folder(), named))
    next_step = "Name a .sln or .slnx file that exists, or leave --solution out."
    if solution is not None and not os.path.isfile(solution):
        raise UserError("SolutionNotFound", f"There is no solution {solution}.", next_step)
    if solution is not None and not solution.lower().endswith(SOLUTIONS):
        raise UserError("SolutionNotFound", f"{solution} is no .sln, .slnx or .slnf file.", next_step)
    workspace = workspace_of(invocation)
    if solution is not None:
        return workspace.replace(solution=solution)  # even if the solution does not use Uno: the user named it
    if workspace.kind is ResolutionKind.Ambiguous or not os.path.isdir(workspace.requested_directory):
        issue = workspace.issues[0]
        raise UserError(issue.code, issue.message, issue.remediation)
    return workspace


def _check_parent(parent: int) -> None:
    from ..system.processes import is_alive

    if not is_alive(parent):
        message = f"There is no process {parent}, so a Host with that parent would end at once."
        raise UserError("ParentNotRunning", message, "Give --ppid the id of a running process, or leave it out.")


# The output during the start.


class _Observer(StartObserver):
    """Collects and logs warnings, shows progress on a terminal, and cancels the start at a signal."""

    def __init__(self, request: StartRequest, interrupts: Interrupts) -> None:
        self.warnings: list[str] = []
        self._request = request
        self._interrupts = interrupts

    def planning(self) -> None:
        say("Asking MSBuild for the add-ins" if self._request.force_msbuild else "Looking for the Host")

    def planned(self, plan: LaunchPlan) -> None:
        workspace = self._request.workspace
        doubtful = not workspace.resolved or workspace.undecided
        broken = tuple(issue for issue in workspace.issues if issue.code == "GlobalJsonInvalid")
        misnamed = (issue for issue in workspace.issues if issue.code == "FileMisnamed")
        own = workspace.issues[:1] if doubtful else broken  # the others are its causes
        for text in with_steps(dict.fromkeys((*own, *misnamed, *plan.issues))):
            self.warned(text)
        if broken and self._request.solution is None:
            self.warned("No app finds this Host: without a readable global.json its port is written for no project.")
        instead = plan.program.kind is HostKind.BUNDLED and self._request.host is None
        if instead and workspace.global_json and all(issue.code != "DotNetNotFound" for issue in plan.issues):
            self.warned("The workspace has no .NET Host that can run, so the bundled Host is used.")
        self._interrupts.hold()  # from here on a Host may have been started, and must not be left behind

    def spawned(self, child: Child, port: int) -> None:
        say(f"Waiting for the Host (process {child.pid}, port {port})")
        log.debug(f"the Host is process {child.pid}, for port {port}")

    def go_on(self) -> bool:
        return self._interrupts.received is None

    def said(self, message: str) -> None:
        log.info(message)

    def warned(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)
            log.warn(message)


def _stay_with(child: Child, interrupts: Interrupts, channel: str | None) -> int:
    """Wait until the Host has ended, and return its exit code as a shell reports it."""
    from ..instances.child_process import guard

    log.info(f"Serving the IDE on channel '{channel}' until this command ends (Ctrl+C).")
    code = guard(child, lambda: interrupts.received is not None)
    return code if code >= 0 else 128 - code


# The output after the start.


def _result(
    running: RunningHost, request: StartRequest, hint: str | None, warnings: list[str], consent: Consent
) -> Result:
    """`hint` is a sentence about edits."""
    program = running.program
    data: dict[str, object] = {
        "outcome": running.outcome.value,
        "processId": running.process_id,
        "port": running.port,
        "mcpEndpoint": f"http://localhost:{running.port}/mcp",
        "solutionPath": running.solution,
        "workspaceDirectory": request.folder,
        "ideChannelId": running.ide_channel,
        "host": running.kind.value if running.kind else None if program is None else "path",
        "hostCommand": None if program is None else list(program.command),
        "addIns": None if program is None else list(running.addins),
        "safeMode": running.left_out is not None,
        "hasMcp": running.has_mcp,
        "logFile": running.log_file,
        "warnings": warnings,
        "agreedTo": list(consent.agreed),
    }
    shown = ("processId", "port", "mcpEndpoint", "solutionPath", "workspaceDirectory", "ideChannelId", "host")
    rows = [Row(key, str(data[key])) for key in shown if data[key] is not None]
    if running.child is not None:
        count = str(len(running.addins)) if running.left_out is None else "left out, because the Host died with them"
        rows.append(Row("addIns", _loaded(running.report) or count))
    if running.log_file:
        rows.append(Row("logFile", running.log_file))
    sections = (
        Section("", tuple(rows)),
        *((Section(hint, ()),) if hint else ()),
        *((Bullets(MAY_RUN, consent.untold), Section(REVOKE, ())) if consent.untold else ()),
    )
    return Result(data, Report(_title(running), sections))


def _loaded(report: Probe | None) -> str | None:
    if report is None:
        return None
    count = sum(addin.loaded for addin in report.add_ins)
    return f"{count} of {len(report.add_ins)} loaded" + (", still loading" if report.loading else "")


def _about_edits(running: RunningHost, request: StartRequest, config: Config) -> str | None:
    """A sentence: how edits of the workspace's add-ins take effect; None if the Host has no such add-ins."""
    if running.kind is not HostKind.BUNDLED or not request.trusted or not workspace_addins(request.folder):
        return None
    from ..proxy.reload.watched_code import count_addin_sources

    count = count_addin_sources(request.folder, config)
    if count is None:
        return None if running.child is not None else RESTART
    files = f"{count} source file{'' if count == 1 else 's'} in {ADDINS_FOLDER}"
    return f"Hot reload: {files}; edits take effect at the next call of a tool through the proxy of an AI client."


def _title(running: RunningHost) -> str:
    """The first line of the report, worded like the .NET tool's, because other programs search for it."""
    if running.outcome is StartOutcome.STARTED:
        return f"DevServer is ready on port {running.port}."
    what = "solution" if running.solution else "workspace"
    done = "Reusing." if running.outcome is StartOutcome.REUSED else "Rebinding IDE channel."
    return f"DevServer already running for {what} (PID {running.process_id}, Port {running.port}). {done}"


def _remarks(
    running: RunningHost, request: StartRequest, invocation: Invocation, consent: Consent, missing: list[str]
) -> list[str]:
    """Warnings: requests that were not fulfilled although there is a Host, and effects that may not be wanted."""
    remarks = [consent.refused] if consent.refused else []
    if running.child is not None:
        failed = [addin for addin in running.report.add_ins if addin.error] if running.report else []
        remarks += [f"{addin.failure} Run 'uno-devserver health' for the next step." for addin in failed]
        if not running.has_mcp:
            remarks.append(
                f"HostMcpEndpointNotAvailable: the Host answers on port {running.port} but has no /mcp, so it has no "
                "tools for AI agents. A .NET Host gets it from an add-in: restore the package that brings it, or use "
                "--host bundled."
            )
        bind = invocation.value("bind")
        if bind is not None and not _is_loopback(bind):
            remarks.append(
                f"The Host listens on {bind}: everybody who reaches this machine over the network can call its tools, "
                "without authentication. Leave --bind out where that is not wanted."
            )
        return remarks
    if missing:
        remarks.append(
            f"The Host that runs was started without {', '.join(missing)}. To load what is missing, use --restart."
        )
    remarks += _restored_since(running, request)
    if request.port not in (0, running.port):
        remarks.append(f"The server has port {running.port}, not {request.port}: a workspace has one server.")
    if running.left_out is not None:
        without = f"The server runs without its add-ins, because it died with them: {addin_names(running.left_out)}."
        remarks.append(f"{without} {REMEDIES['AddInsLeftOut']}")
    given = [f"--{name}" for name in LAUNCH_OPTIONS if name in invocation.options] + list(request.forwarded)
    if given:
        remarks.append(f"Not passed to the server that was already running: {' '.join(given)}. Use --restart.")
    return remarks


def _not_loaded(running: RunningHost, request: StartRequest) -> list[str]:
    """Add-ins of the workspace that the Host was not told to load, unless a proxy loads them with the next call."""
    server, addins = running.found, workspace_addins(request.folder)
    if server is None or server.names_addins or running.left_out is not None or running.kind is not HostKind.BUNDLED:
        return []
    report = host_report(running.process_id, running.port, time.monotonic() + KIND_SECONDS) if addins else None
    missing = report.lacks(addins) if report else []
    if not missing:
        return []
    from .proxies import owners_of_host

    return [] if owners_of_host(server) else missing


def _restored_since(running: RunningHost, request: StartRequest) -> list[str]:
    """The warning about .NET add-ins that came after the start of a bundled Host that no proxy starts again."""
    server, workspace = running.found, request.workspace
    if server is None or running.kind is not HostKind.BUNDLED or workspace.global_json is None:
        return []
    report = host_report(running.process_id, running.port, time.monotonic() + KIND_SECONDS)
    if report is None:
        return []
    from ..discovery.discover import DiscoveryRequest, discover
    from .proxies import owners_of_host

    discovery = discover(DiscoveryRequest(workspace.requested_directory, workspace=workspace), os.environ)
    missing = restored_since(server, report, discovery, os.environ)
    if not missing or owners_of_host(server):
        return []
    return with_steps([started_before(missing, discovery)])


def _is_loopback(address: str) -> bool:
    address = address.strip().strip("[]").lower()
    return address in ("localhost", "::1") or address.startswith("127.")


def _owned_by_proxy(refusal: ServerOwned) -> UserError | None:
    """The error if the Host's owner is a proxy, which starts the Host again after a `stop`; else None."""
    from .proxies import owners_of_host, who_starts_it

    owner = owners_of_host(refusal.server)
    if not owner:
        return None
    return UserError(refusal.code, refusal.message, f"Run 'uno-devserver stop'. {who_starts_it(owner)}.")


def _launch_error(failure: LaunchFailure, signal_number: int | None) -> UserError:
    match failure.reason:
        case LaunchFailureReason.GIVEN_UP:
            message = "Interrupted: the Host that was being started is stopped, and nothing is left running."
            return UserError("Interrupted", message, "Run start again.", 128 + (signal_number or 2))
        case LaunchFailureReason.PORT_TAKEN:
            message = f"Port {failure.port} is taken by {_port_user(failure.port)}."
            return UserError("PortTaken", message, ANOTHER_PORT)
        case LaunchFailureReason.NOT_STARTED:
            return UserError("HostNotStarted", failure.message, "Check --host, or use --host bundled.")
        case LaunchFailureReason.NOT_READY:
            next_step = f"Look into {failure.log_file}, or give it more time with --timeoutMs."
            return UserError("HostUnreachable", failure.message + failure.printed, next_step)
    if failure.refusal is not None:
        return UserError("HostNotStarted", failure.message, failure.refusal[1])
    if not failure.text.strip():
        message = f"{failure.message} It printed nothing, so it may not be a Host at all."
        next_step = "Check --host: a Host serves HTTP on the --httpPort that it is given. Or use --host bundled."
        return UserError("HostCrashed", message, next_step)
    next_step = f"Fix what the Host reports; its whole output is in {failure.log_file}."
    return UserError("HostCrashed", failure.message + failure.printed, next_step)


def _port_user(port: int) -> str:
    from ..system.processes import listener

    owner = listener(port)
    return f"process {owner.pid} ({owner.name})" if owner else "another program"
