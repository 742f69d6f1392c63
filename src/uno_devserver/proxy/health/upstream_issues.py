"""What is wrong with the server behind a proxy, and what to do: codes and severities are those of the .NET tool.

A proxy starts its server by itself and tries again by itself, so what helps here differs from what helps on a command
line. A server that runs is never called crashed.
"""

from __future__ import annotations

from ...instances.host_kind import HostKind
from ...issues import ADDINS_DO, REMEDIES, Issue, fatal, warning
from ...workspace.addins import FOLDER as ADDINS
from ..state import ConnectionState
from .status_file import STARTING, STARTING_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..state import ProxyFacts


NOT_TRUSTED = "WorkspaceNotTrusted"
CRASHED = "HostCrashed"
QUOTED_LINES = 20  # of what a server printed last: Node prints a dozen behind the error itself, which comes first
QUOTED_CHARACTERS = 2000  # of these lines together; what else is kept of them is in `lastExit`
STOPPED = (0, -15)  # the exit codes of a server that somebody has ended on purpose
TRY_AGAIN = "Repair it; the next tool call makes the proxy start it again."
BY_ITSELF = "The proxy notices, and starts the Host by itself."

# Next steps that differ from those of the command line: an agent has tools, and the proxy watches the workspace.
_HERE = {
    "WorkspaceAmbiguous": (
        "Call uno_app_select_solution with the absolute path of the one you mean, "
        "or start the proxy with --solution-dir."
    ),
    "WorkspaceNotResolved": f"{REMEDIES['WorkspaceNotResolved']} {BY_ITSELF}",
    "NoSolutionFound": f"Create a project ('dotnet new unoapp' makes one). {ADDINS_DO} {BY_ITSELF}",
    "SdkNotInCache": f"Run 'dotnet restore' in the workspace. {BY_ITSELF}",
    "DevServerPackageNotCached": f"Run 'dotnet restore' in the workspace. {BY_ITSELF}",
}
# Where the Host is ours, and loads the workspace's add-ins.
MENDED = {
    "AddInLoadFailed": f"Repair or update the add-in, and save it. {BY_ITSELF}",
    "AddInsLeftOut": f"Repair the one at fault. {BY_ITSELF}",
}


def upstream_issues(facts: ProxyFacts) -> Iterator[Issue]:
    """Each once: what a failed start has said itself tells more than we can; but of a crash we know the last words."""
    said = {issue.code for issue in facts.issues if issue.fatal} - {CRASHED}
    own = [*(issue for issue in _judged(facts) if issue.code not in said), *_stray_output(facts)]
    yield from own
    if facts.trusted is False and all(issue.code != NOT_TRUSTED for issue in facts.issues):
        yield _not_trusted(facts)
    if facts.connected:
        yield from _not_reloaded(facts)
    crashed = any(issue.code == CRASHED for issue in own)
    yield from (issue for issue in facts.issues if not (crashed and issue.code == CRASHED))


def _judged(facts: ProxyFacts) -> Iterator[Issue]:
    if facts.upstream is None:
        yield fatal("HostNotStarted", *_why_not_started(facts))
    elif facts.without_mcp:
        yield fatal("HostMcpEndpointNotAvailable", *_why_no_mcp(facts))
    elif not facts.connected:
        yield from _not_connected(facts)


def in_a_proxy(issue: Issue, facts: ProxyFacts) -> Issue:
    """The issue with the next step that helps here, in this state of affairs."""
    fallback = facts.fallback and facts.upstream is None and issue.code == "NoSolutionFound"
    if fallback and issue.remediation == REMEDIES[issue.code]:
        return issue.replace(remediation=f"{_INITIALIZE} {ADDINS_DO}")
    upstream = facts.upstream
    reloads = upstream is not None and (upstream.owned or facts.hot_reload is not None)  # we, or its owner
    if issue.code in MENDED and reloads and upstream is not None and upstream.kind is HostKind.BUNDLED:
        return issue.replace(remediation=MENDED[issue.code])
    return with_step_here(issue)


def with_step_here(issue: Issue) -> Issue:
    """The issue with the next step that helps here, unless somebody knew a better one than the usual."""
    usual = issue.remediation == REMEDIES.get(issue.code)
    return issue.replace(remediation=_HERE[issue.code]) if usual and issue.code in _HERE else issue


_INITIALIZE = (
    "Call uno_app_initialize with the absolute path of the workspace's folder as workspaceDirectory; "
    "that starts the Host."
)


def _why_not_started(facts: ProxyFacts) -> tuple[str, str]:
    if facts.fallback:
        return "No Host runs: the proxy has not been told its workspace.", _INITIALIZE
    what = facts.upstream_name
    if facts.state is not ConnectionState.DEGRADED:
        return STARTING.format(what), STARTING_STEP
    cause = _cause(facts)
    return f"{what} was not started.", in_a_proxy(cause, facts).remediation if cause else TRY_AGAIN


def _cause(facts: ProxyFacts) -> Issue | None:
    """The issue to settle first."""
    failures = [issue for issue in facts.issues if issue.fatal]
    return next(iter((*failures, *(facts.workspace.issues if facts.workspace else ()))), None)


def _why_no_mcp(facts: ProxyFacts) -> tuple[str, str]:
    """A .NET Host has /mcp only if an add-in brings it."""
    upstream = facts.upstream
    message = f"The Host runs and answers over HTTP, but has no {(upstream and upstream.endpoint) or '/mcp'}"
    addins = facts.discovery.addins if facts.discovery else None
    if addins and addins.found:
        why = ", although add-ins were found: it may have been started without them, or none of them brings MCP tools."
        return message + why, "Run 'uno-devserver stop' in the workspace: the proxy starts it again with its add-ins."
    restore = "Restore a package that brings one ('dotnet restore'); 'uno-devserver disco' shows which are found."
    looked = addins is not None and addins.possible
    why = "no add-in was found that could bring it" if looked else "one of its add-ins has to bring it"
    return f"{message}: {why}.", f"{restore} {BY_ITSELF}"


def _not_connected(facts: ProxyFacts) -> Iterator[Issue]:
    what, gone = facts.upstream_name, facts.last_end
    degraded = facts.state is ConnectionState.DEGRADED
    if facts.options.url is not None:
        yield from _out_of_reach(facts)
        return
    if facts.connect_error:
        yield fatal("UpstreamError", f"{what} cannot be used over MCP: {facts.connect_error.rstrip('.')}.", TRY_AGAIN)
    elif degraded:
        if not any(issue.fatal and issue.code != CRASHED for issue in facts.issues):  # the reason is another
            how = f": {gone.reason}" if gone else ""
            message = f"{what} {_what_it_did(facts)}{how}.{_what_ran(facts)}{_last_words(facts)}"
            yield fatal(CRASHED, message, _after_crashes(facts))
    elif gone and gone.exit_code in STOPPED:
        message = f"{what} was stopped ({gone.reason}) and is being started again."
        yield warning("HostUnreachable", message, "Wait some seconds, then try again; tools come back by themselves.")
    elif gone:
        message = f"{what} ended unexpectedly ({gone.reason}) and is being started again.{_last_words(facts)}"
        yield warning(CRASHED, message, "Wait some seconds, then try again; tools come back by themselves.")
    else:
        pid = facts.upstream.process_id if facts.upstream else None
        who = f"{what} (process {pid})" if pid else what
        yield warning("HostUnreachable", f"{who} was started, but is not connected yet.", "Wait some seconds.")


def _stray_output(facts: ProxyFacts) -> Iterator[Issue]:
    """A server on pipes prints where only messages belong: what stands there may be lost, or hide an answer."""
    upstream = facts.upstream
    if upstream is None or not upstream.stray_line:
        return
    printed = f"'{upstream.stray_line[:QUOTED_CHARACTERS]}' on its standard output, which is not an MCP message"
    if facts.connected:
        step = "Let the server print to stderr what is for people; standard output belongs to MCP."
        yield warning("UpstreamError", f"{facts.upstream_name} has printed {printed}.", step)
    else:
        step = "See that the command is an MCP server over stdio, and prints to stderr what is for people."
        yield warning("UpstreamError", f"{facts.upstream_name} does not answer; it has printed {printed}.", step)


def _out_of_reach(facts: ProxyFacts) -> Iterator[Issue]:
    """A server elsewhere has no crashes that we could see, nor could we start it."""
    what = facts.upstream_name
    if facts.connect_error:
        step = "Make sure that the URL of --upstream-url is the address of an MCP server."
        yield fatal("UpstreamError", f"{what} cannot be used over MCP: {facts.connect_error.rstrip('.')}.", step)
        return
    why = f": {facts.last_end.reason}" if facts.last_end else ""
    step = "See that the server runs; the proxy goes on trying."
    severity = fatal if facts.state is ConnectionState.DEGRADED else warning
    yield severity("HostUnreachable", f"{what} is not connected{why}.", step)


def _what_it_did(facts: ProxyFacts) -> str:
    failure = next((each for each in _failing(facts) if each.get("step") == "start"), None)
    if failure is not None:
        return f"did not start with its new code, at {failure.get('at')}"
    return "ended unexpectedly, again and again" if facts.generation else "does not start"


def _not_reloaded(facts: ProxyFacts) -> Iterator[Issue]:
    """The newest code does not run, and what is connected is the code before; or the client does not use it."""
    for failure in _failing(facts):
        when, why = failure.get("at"), failure.get("problem")
        because = f": {why}" if why else "."
        if failure.get("step") == "start":
            message = f"{facts.upstream_name} did not start with its new code, at {when}{because}"
        else:
            build = failure.get("named")
            what = f"{build} of its new code failed" if build else "its new code cannot be used"
            message = f"The {failure.get('role')} runs with its old code: {what}, at {when}{because}"
        log = failure.get("logFile")
        yield warning("ReloadFailed", message + (f" What it printed is in {log}." if log else ""))
    client = facts.hot_reload.get("client") if facts.hot_reload else None
    if isinstance(client, dict) and client.get("problem"):
        log = f" What it printed is in {client.get('logFile')}."
        yield warning("ClientNotReady", str(client["problem"]), REMEDIES["ClientNotReady"] + log)


def _failing(facts: ProxyFacts) -> Iterator[Mapping[str, object]]:
    """As the authority has it (`hotreload/figures.py`)."""
    failing = facts.hot_reload.get("failing") if facts.hot_reload else None
    yield from failing if isinstance(failing, list) else ()


def _what_ran(facts: ProxyFacts) -> str:
    if facts.discovery is None:
        return ""
    bundled = facts.upstream is not None and facts.upstream.kind is HostKind.BUNDLED
    program = None if bundled else facts.discovery.host.program
    global_json = facts.discovery.sdk.global_json
    sdk = global_json.uno_sdk if global_json else None
    addins = ", ".join(f"{addin.package} {addin.version}".strip() for addin in facts.discovery.addins.found)
    return (
        (f" It is {program}." if program else "")
        + (f" The SDK is {sdk.package} {sdk.version}." if sdk else "")
        + (f" Its add-ins: {addins}." if addins else "")
    )


def _last_words(facts: ProxyFacts) -> str:
    lines = facts.last_end.last_lines[-QUOTED_LINES:] if facts.last_end else ()
    printed = "\n".join(line.rstrip() for line in lines).strip()
    return f" Its last lines:\n{printed[-QUOTED_CHARACTERS:]}" if printed else ""


def _after_crashes(facts: ProxyFacts) -> str:
    is_host = facts.options.uses_host and not _is_command(facts)
    cause = "An add-in that does not fit is the usual cause. " if is_host else ""
    log = facts.upstream.log_file if facts.upstream else None
    return f"{cause}{TRY_AGAIN}" + (f" What it printed is in {log}." if log else "")


def _not_trusted(facts: ProxyFacts) -> Issue:
    """The rest is served; a start that this makes useless tells it as its failure."""
    folder = facts.workspace.working_directory if facts.workspace else facts.options.directory
    code = "the commands of its config" if _is_command(facts) else f"{ADDINS}, packages in it, or its build"
    return warning(NOT_TRUSTED, f"Code of the workspace {folder} ({code}) is not run: {facts.refusal}.")


def _is_command(facts: ProxyFacts) -> bool:
    return facts.upstream is not None and facts.upstream.kind is HostKind.COMMAND
