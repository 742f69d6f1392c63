"""What `start` says at its end: where the server is, or why there is none."""

from __future__ import annotations

import os

from ..instances.host_command import ProgramKind, addin_paths
from ..instances.launch import Reason
from ..instances.start import How
from ..issues import REMEDIES, UserError
from ..workspace.addins import FOLDER as ADDINS
from ..workspace.addins import workspace_addins
from .agreeing import MAY_RUN, REVOKE
from .results import Bullets, Report, Result, Row, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..instances.launch import Launched, LaunchFailure
    from ..instances.probe import Probe
    from ..instances.start import Running, Wish
    from .parse import Invocation

# What only a Host that is launched now can obey.
LAUNCH_OPTIONS = ("host", "addins", "ppid", "force-msbuild-discovery")
RESTART = (
    "Add-ins are loaded when the server starts. After editing one, use --restart; "
    "where the proxy of an AI client has started it, run 'uno-devserver stop': the proxy starts it again."
)


def report(running: Running, wish: Wish, warnings: list[str], agreed: tuple[str, ...]) -> Result:
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


def _about_edits(running: Running, folder: str) -> str | None:
    """What becomes of an edited add-in, where there are some."""
    bundled = running.plan is None or running.plan.program.kind is ProgramKind.BUNDLED
    if not bundled or not workspace_addins(folder):
        return None
    from ..proxy.reload.subject import packages_of
    from ..workspace.config import read_config
    from ..workspace.config_file import CONFIG

    config = read_config(os.path.join(folder, CONFIG))
    watched = [package for package in packages_of(folder, config) if package.addins]
    if not watched or not config.hot_reload.enabled:
        return None if running.launched else RESTART
    from ..hotreload.sources.find import find_sources

    count = len(find_sources(watched[0]).files)
    files = f"{count} source file{'' if count == 1 else 's'} in {ADDINS}"
    return f"Hot reload: {files}; edits count at the next call of a tool through the proxy of an AI client."


def _loaded(told: Probe | None) -> str | None:
    if told is None:
        return None
    count = sum(addin.loaded for addin in told.add_ins)
    return f"{count} of {len(told.add_ins)} loaded" + (", still loading" if told.loading else "")


def _data(running: Running, wish: Wish, warnings: list[str]) -> dict[str, object]:
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


def _title(running: Running) -> str:
    """Sentences that other programs look for in the output of the .NET tool."""
    if running.how is How.STARTED:
        return f"DevServer is ready on port {running.port}."
    what = "solution" if running.solution else "workspace"
    done = "Reusing." if running.how is How.REUSED else "Rebinding IDE channel."
    return f"DevServer already running for {what} (PID {running.process_id}, Port {running.port}). {done}"


def remarks(running: Running, wish: Wish, invocation: Invocation) -> list[str]:
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


def _remarks_on(running: Running, launched: Launched, bind: str | None) -> list[str]:
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


def _no_mcp(running: Running) -> str:
    return (
        f"HostMcpEndpointNotAvailable: the Host answers on port {running.port} but has no /mcp, so it has no tools for "
        "AI agents. A .NET Host gets it from an add-in: restore the package that brings it, or use --host bundled."
    )


def crash(failure: LaunchFailure, addins: str | None) -> str:
    """The warning before the attempt without add-ins."""
    return (
        f"The Host died while it started: it {_end(failure)}. Starting it once more without add-ins. "
        f"Left out: {_names(addin_paths(addins))}. Repair the one at fault, then run 'uno-devserver start' again; all "
        f"of the output is in {failure.log_file}.{_printed(failure)}"
    )


def _names(addins: tuple[str, ...]) -> str:
    return ", ".join(addins) or "what MSBuild names"


def explain(failure: LaunchFailure, signal_number: int | None) -> UserError:
    """A failed launch in words."""
    port, log_file = failure.port, failure.log_file
    if failure.reason is Reason.GIVEN_UP:
        message = "Interrupted: the Host that was being started is stopped, and nothing is left running."
        return UserError("Interrupted", message, "Run start again.", 128 + (signal_number or 2))
    if failure.reason is Reason.PORT_TAKEN:
        return UserError("PortTaken", _taken(port), "Choose another --httpPort, or leave it out to get a free one.")
    if failure.reason is Reason.NOT_STARTED:
        message = f"The Host cannot be started: {failure.text}."
        return UserError("HostNotStarted", message, "Check --host, or use --host bundled.")
    if failure.reason is Reason.NOT_READY:
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
    from ..system.listeners import listener

    owner = listener(port)
    who = f"process {owner.pid} ({owner.name})" if owner else "another program"
    return f"Port {port} is taken by {who}."


def _printed(failure: LaunchFailure) -> str:
    if not failure.text.strip():
        return " It printed nothing."
    return "\nThe end of its output:\n" + "\n".join(f"  | {line}" for line in failure.text.splitlines())
