"""The issues of a proxy's upstream, with their next steps. Codes and severities are those of the .NET tool.

The next steps differ from those of the command line, because a proxy starts its server by itself, tries again by
itself, and has tools. No issue says that a running server has crashed.
"""

from __future__ import annotations

from ...instances.host_kind import HostKind
from ...issues import ACCESS_CODES, ADDINS_DO, REMEDIES, Issue, access_step, fatal, printed_in, warning
from ...system.text import visible
from ...workspace.devtools_folder import ADDINS_FOLDER as ADDINS
from ..state import NOT_TRUSTED, ConnectionState, unusable
from .status_file import STARTING, STARTING_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..state import ProxyFacts, UpstreamFacts

CRASHED = "HostCrashed"
UNBUILT = "ServerNotBuilt"
UNUSABLE = "ReloadFailed"
STRAY_CHARACTERS = 200  # of a line that is not a message
STOPPED_CODES = (0, -15)  # the exit codes of a server that was stopped on purpose

NO_SERVERS = "The config names no server that is enabled."
ENABLE = "Write one into its 'servers', or enable one; the proxy notices, and starts it."
TRY_AGAIN = "Fix it; the next tool call makes the proxy start it again."
NO_MCP_THERE = "Make sure that --upstream-url, or mcpServer.url in the config, is the address of an MCP server."
BY_ITSELF = "The proxy notices, and starts the Host by itself."
WAIT_SECONDS = "Wait a few seconds, then try again; the tools come back by themselves."
INITIALIZE = (
    "Call uno_app_initialize with the absolute path of the workspace's folder as workspaceDirectory; "
    "that starts the Host."
)
# Next steps that replace those of the command line.
PROXY_STEPS = {
    "WorkspaceAmbiguous": (
        "Call uno_app_select_solution with the absolute path of the one you mean, "
        "or start the proxy with --solution-dir."
    ),
    "WorkspaceNotResolved": f"{REMEDIES['WorkspaceNotResolved']} {BY_ITSELF}",
    "NoSolutionFound": f"Create a project ('dotnet new unoapp' makes one). {ADDINS_DO} {BY_ITSELF}",
    "SdkNotInCache": f"Run 'dotnet restore' in the workspace. {BY_ITSELF}",
    "DevServerPackageNotCached": f"Run 'dotnet restore' in the workspace. {BY_ITSELF}",
}
# Next steps if the add-ins of the Host are reloaded.
ADDIN_STEPS = {
    "AddInLoadFailed": f"Fix or update the add-in, and save it. {BY_ITSELF}",
    "AddInsLeftOut": f"Fix the add-in at fault. {BY_ITSELF}",
    "AddInNotLoaded": "Call mcpRestart, which loads it.",
}


def upstream_issues(facts: ProxyFacts) -> Iterator[Issue]:
    """Each issue once: that of a failed start replaces ours, except for a crash, whose output ours quotes; and a build
    that has failed replaces that it is still to run.
    """
    failed = () if facts.connected else tuple(_failed_builds(facts))
    if failed:
        facts = facts.replace(issues=(*failed, *(issue for issue in facts.issues if issue.code != UNBUILT)))
    known = {issue.code for issue in facts.issues if issue.fatal} - {CRASHED}
    own = _connection_issue(facts)
    if own is not None and own.code not in known:
        yield own
    crashed = own is not None and own.code == CRASHED
    yield from _stray_output(facts)
    if facts.trusted is False and all(issue.code != NOT_TRUSTED for issue in facts.issues):
        yield _not_trusted(facts)
    if facts.connected:
        yield from _not_reloaded(facts)
    yield from (issue for issue in facts.issues if not (crashed and issue.code == CRASHED))


def with_proxy_step(issue: Issue, facts: ProxyFacts | None = None) -> Issue:
    """The issue with the next step for a proxy (with these facts), unless it has a special one."""
    usual = issue.remediation == REMEDIES.get(issue.code)
    step = PROXY_STEPS.get(issue.code) if usual else None
    upstream = facts.upstream if facts else None
    if facts and facts.fallback and upstream is None and usual and issue.code == "NoSolutionFound":
        step = f"{INITIALIZE} {ADDINS_DO}"
    if facts and upstream and upstream.kind is HostKind.BUNDLED and (upstream.owned or facts.hot_reload is not None):
        return with_addin_step(issue if step is None else issue.replace(remediation=step))
    return issue if step is None else issue.replace(remediation=step)


def with_addin_step(issue: Issue) -> Issue:
    """The issue with the next step for add-ins that are reloaded, unless it has one of its own.

    A .NET add-in has, because saving it would not help. The usual step may name the log besides.
    """
    has_own = issue.code in ADDIN_STEPS and not issue.remediation.startswith(REMEDIES[issue.code])
    return issue if has_own else issue.replace(remediation=ADDIN_STEPS.get(issue.code, issue.remediation))


def _connection_issue(facts: ProxyFacts) -> Issue | None:
    if not facts.serves:
        nothing = not facts.members and not any(issue.fatal for issue in facts.issues)
        return fatal("HostNotStarted", NO_SERVERS, ENABLE) if nothing else None
    if facts.upstream is None:
        if facts.options.server is not None and any(issue.fatal for issue in facts.issues):
            return None  # that issue is the reason; the codes of the .NET tool are only expected of a main server
        return fatal("HostNotStarted", *_why_not_started(facts))
    if facts.without_mcp:
        return fatal("HostMcpEndpointNotAvailable", *_why_no_mcp(facts, facts.upstream.endpoint))
    return None if facts.connected else _not_connected(facts, facts.upstream)


def _why_not_started(facts: ProxyFacts) -> tuple[str, str]:
    if facts.fallback:
        undecided = facts.workspace is not None and facts.workspace.undecided
        step = PROXY_STEPS["WorkspaceAmbiguous"] if undecided else INITIALIZE
        return "No Host runs, because the proxy does not know its workspace.", step
    what = facts.upstream_name
    if facts.state is not ConnectionState.DEGRADED:
        return STARTING.format(what), STARTING_STEP
    failures = [issue for issue in facts.issues if issue.fatal or issue.code in ("HostNotStarted", UNBUILT, UNUSABLE)]
    cause = next(iter((*failures, *(facts.workspace.issues if facts.workspace else ()))), None)
    return f"{what} was not started.", with_proxy_step(cause, facts).remediation if cause else TRY_AGAIN


def _why_no_mcp(facts: ProxyFacts, endpoint: str | None) -> tuple[str, str]:
    """Message and step for a .NET Host without /mcp, which an add-in has to provide."""
    message = f"The Host runs and answers over HTTP, but has no {endpoint or '/mcp'}"
    addins = facts.discovery.addins if facts.discovery else None
    if addins and addins.found:
        why = ", although add-ins were found: it may have been started without them, or none of them brings MCP tools."
        return message + why, "Run 'uno-devserver stop' in the workspace: the proxy starts it again with its add-ins."
    restore = "Restore a package that brings one ('dotnet restore'); 'uno-devserver disco' shows which are found."
    looked = addins is not None and addins.possible
    why = "no add-in was found that could bring it" if looked else "one of its add-ins has to bring it"
    return f"{message}: {why}.", f"{restore} {BY_ITSELF}"


def _not_connected(facts: ProxyFacts, upstream: UpstreamFacts) -> Issue | None:
    what, ending = facts.upstream_name, facts.last_end
    how = f": {ending.reason}" if ending else ""
    remote = facts.is_remote  # the proxy can neither see it crash nor start it
    degraded = facts.state is ConnectionState.DEGRADED
    if facts.access_denied is not None:
        denied = facts.access_denied
        step = access_step(denied.status, denied.url, fixed=denied.fixed)
        return fatal(ACCESS_CODES[denied.status], facts.connect_error, facts.with_setting(step))
    if facts.connect_error:
        step = NO_MCP_THERE if remote else TRY_AGAIN
        return fatal("UpstreamError", unusable(what, facts.connect_error), step)
    if remote:
        step = "Make sure that the server runs; the proxy keeps trying."
        return (fatal if degraded else warning)("HostUnreachable", f"{what} is not connected{how}.", step)
    if degraded:
        if any(issue.fatal and issue.code != CRASHED for issue in facts.issues):
            return None  # that issue is the reason, and is reported by itself
        if any(_failed_builds(facts)):  # what ended had other code, so its output does not help
            return fatal("HostNotStarted", f"{what} does not run, and its present code cannot be used.", TRY_AGAIN)
        message = f"{what} {_what_it_did(facts)}{how}.{_what_ran(facts, upstream)}{_last_output(facts)}"
        is_host = facts.options.uses_host and upstream.kind is not HostKind.COMMAND
        loads = facts.trusted or facts.discovery is None or bool(facts.discovery.addins.found)
        cause = "An add-in that does not fit is the usual cause. " if is_host and loads else ""
        return fatal(CRASHED, message, f"{cause}{TRY_AGAIN}{printed_in(upstream.log_file)}")
    if ending and ending.exit_code in STOPPED_CODES:
        message = f"{what} was stopped ({ending.reason}) and is being started again."
        return warning("HostUnreachable", message, WAIT_SECONDS)
    if ending:
        message = f"{what} ended unexpectedly ({ending.reason}) and is being started again.{_last_output(facts)}"
        return warning(CRASHED, message, WAIT_SECONDS)
    who = f"{what} (process {upstream.process_id})" if upstream.process_id else what
    return warning("HostUnreachable", f"{who} was started, but is not connected yet.", "Wait a few seconds.")


def _what_it_did(facts: ProxyFacts) -> str:
    failure = next((each for each in _reload_failures(facts) if each.get("step") == "start"), None)
    if failure is not None:
        return f"did not start with its new code ({failure.get('at')})"
    return "ended unexpectedly, again and again" if facts.generation else "does not start"


def _what_ran(facts: ProxyFacts, upstream: UpstreamFacts) -> str:
    if facts.discovery is None:
        return ""
    program = None if upstream.kind is HostKind.BUNDLED else facts.discovery.host.program
    global_json = facts.discovery.sdk.global_json
    sdk = global_json.uno_sdk if global_json else None
    addins = ", ".join(f"{addin.package} {addin.version}".strip() for addin in facts.discovery.addins.found)
    return (
        (f" It is {program}." if program else "")
        + (f" The SDK is {sdk.package} {sdk.version}." if sdk else "")
        + (f" Its add-ins: {addins}." if addins else "")
    )


def _last_output(facts: ProxyFacts) -> str:
    printed = facts.last_end.printed if facts.last_end else ""
    return f" Its last lines:\n{printed}" if printed else ""


def _stray_output(facts: ProxyFacts) -> Iterator[Issue]:
    """The warning about a line on the standard output of a command that is not a message."""
    if facts.upstream is None or not facts.upstream.stray_line:
        return
    line = visible(facts.upstream.stray_line)[:STRAY_CHARACTERS]
    if facts.connected:
        has = "has printed"
        step = "Let the server print text for people to stderr; standard output is only for MCP."
    else:
        has = "does not answer; it has printed"
        step = "Make sure that the command is an MCP server over stdio, and prints text for people to stderr."
    message = f"{facts.upstream_name} {has} '{line}' on its standard output, which is not an MCP message."
    yield warning("UpstreamError", message, step)


def _not_trusted(facts: ProxyFacts) -> Issue:
    """The warning that code is not run. If nothing else can be served, the start fails with an issue of its own."""
    from ...workspace.trust import STAYS, not_run

    new = "New code" if facts.refusal.endswith(STAYS) else "Code"
    folder = facts.workspace.working_directory if facts.workspace else facts.options.directory
    is_command = facts.upstream is not None and facts.upstream.kind is HostKind.COMMAND
    code = "the commands of its config" if is_command else f"{ADDINS}, packages in it, or its build"
    return not_run(f"{new} of the workspace {folder} ({code})", facts.refusal)


def _not_reloaded(facts: ProxyFacts) -> Iterator[Issue]:
    """Warnings that the connected server, or the client app, runs older code than there is on disk."""
    for failure in _reload_failures(facts):
        if failure.get("step") == "output":
            message = f"{facts.upstream_name} may run older code than there is on disk."
            yield warning(UNUSABLE, message, str(failure.get("problem")))
        elif failure.get("step") == "start":
            yield _unusable(f"{facts.upstream_name} did not start with its new code", failure)
        else:
            build = failure.get("named")
            what = f"{build} of its new code failed" if build else "its new code cannot be used"
            runs = "runs with its old code" if _runs_known_code(facts, failure) else "may run what a failed build wrote"
            yield _unusable(f"The {failure.get('role')} {runs}: {what}", failure)
    client = facts.hot_reload.get("client") if facts.hot_reload else None
    if isinstance(client, dict) and client.get("problem"):
        step = REMEDIES["ClientNotReady"] + printed_in(client.get("logFile"))
        yield warning("ClientNotReady", str(client["problem"]), step)


def _runs_known_code(facts: ProxyFacts, failure: Mapping[str, object]) -> bool:
    """Whether it is known which code runs: not if it was started after a build that failed."""
    packages = facts.hot_reload.get("packages") if facts.hot_reload else None
    found = packages if isinstance(packages, list) else []
    role = failure.get("role")
    return all(package["sha256"]["running"] for package in found if package["role"] == role)


def _failed_builds(facts: ProxyFacts) -> Iterator[Issue]:
    """Warnings that the code of a server that does not run cannot be built or used."""
    for failure in _reload_failures(facts):
        if failure.get("step") == "build" and failure.get("role") == "server":
            build = failure.get("named")
            what = f"{build} of the server failed" if build else "The code of the server is wrong"
            yield _unusable(what, failure, TRY_AGAIN)


def _unusable(what: str, failure: Mapping[str, object], step: str = REMEDIES[UNUSABLE]) -> Issue:
    why = str(failure.get("problem") or "").rstrip()
    quoted = f":\n{why}" if "\n" in why else f": {why}" if why else "."  # what the compiler says has its columns
    return warning(UNUSABLE, f"{what} ({failure.get('at')}){quoted}", f"{step}{printed_in(failure.get('logFile'))}")


def _reload_failures(facts: ProxyFacts) -> Iterator[Mapping[str, object]]:
    """The present failures of hot reload, in the form of `hotreload/history.py`."""
    failing = facts.hot_reload.get("failing") if facts.hot_reload else None
    yield from failing if isinstance(failing, list) else ()
