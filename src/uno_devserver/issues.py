"""Issues and errors that users and models can act on.

An issue has a stable code, a severity, a sentence that names the file or value, and the next step. The codes and their
usual next steps are the table at the end; the sentence is written where the facts are known.
"""

from __future__ import annotations

import os
from enum import Enum

from .system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Severity(Enum):
    FATAL = "Fatal"
    WARNING = "Warning"


class Issue(Value):
    code: str
    severity: Severity
    message: str
    remediation: str

    @property
    def fatal(self) -> bool:
        return self.severity is Severity.FATAL

    def to_json(self) -> dict[str, str]:
        return {**self.__dict__, "severity": self.severity.value}


def fatal(code: str, message: str, remediation: str = "") -> Issue:
    return Issue(code, Severity.FATAL, message, remediation or REMEDIES[code])


def warning(code: str, message: str, remediation: str = "") -> Issue:
    return Issue(code, Severity.WARNING, message, remediation or REMEDIES[code])


def with_steps(issues: Iterable[Issue], between: str = " ") -> list[str]:
    """Each message with its next step, unless an issue before it has the same."""
    texts: list[str] = []
    steps: set[str] = set()
    for issue in issues:
        texts.append(issue.message if issue.remediation in steps else f"{issue.message}{between}{issue.remediation}")
        steps.add(issue.remediation)
    return texts


def listed(names: Sequence[str], most: int = 10) -> str:
    """The first of these names, and how many more there are: people and agents read it."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def printed_in(log_file: object) -> str:
    """A sentence to be added to a next step; empty where there is no log."""
    return f" What it printed is in {log_file}." if log_file else ""


class UserError(Exception):
    """A command cannot go on. `exit_code` 1: it failed; 2: its arguments are wrong."""

    def __init__(self, code: str, message: str, next_step: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.next_step = next_step
        self.exit_code = exit_code

    @property
    def explanation(self) -> str:
        """The text for people."""
        return f"error: {self.message}\nnext: {self.next_step}"


def needs_bundled_host(paths: Iterable[str]) -> Issue:
    """The issue that a .NET Host does not load these add-ins in Python."""
    names = ", ".join(os.path.basename(path) for path in paths)
    return warning("AddInNeedsBundledHost", f"The workspace's Python add-ins are not loaded by a .NET Host: {names}.")


RESTART_HOST = "'uno-devserver stop' and 'uno-devserver start'"
_RESTORE = "Run 'dotnet restore' in the workspace to download what is missing, then try again."
ADDINS_DO = (
    "For an MCP server of your own, run 'uno-devserver init', which writes a config; a folder with Python add-ins in "
    ".devtools/addins/ is a workspace, too."
)
_FORCE_RESTORE = "Run 'dotnet restore --force' in the workspace: the package is only partly on disk."

REMEDIES = {
    # the workspace
    "WorkspaceAmbiguous": "Name the one you mean: --solution <path>.",
    "WorkspaceNotResolved": "Put a global.json with Uno.Sdk under msbuild-sdks next to the solution or above it.",
    "NoSolutionFound": (
        f"Create a project ('dotnet new unoapp' makes one), or name its folder with --solution-dir. {ADDINS_DO}"
    ),
    "GlobalJsonNotFound": "Create a global.json that names Uno.Sdk under msbuild-sdks.",
    "GlobalJsonInvalid": "Make it a readable file with a JSON object (comments and trailing commas are allowed).",
    "UnoSdkNotInGlobalJson": 'Add "msbuild-sdks": { "Uno.Sdk": "<version>" } to the file.',
    # Agents read this, too, and must not agree on behalf of the user.
    "WorkspaceNotTrusted": (
        "Only the user may agree, by running 'uno-devserver trust' in the workspace; the proxy then continues."
    ),
    "ProjectNotInSolution": "Add it with 'dotnet sln add <project>' if it is an app that should reach the Host.",
    "ProjectWithoutPort": "Run 'uno-devserver start' in the workspace: it writes the port, and keeps the Host.",
    "RootsElsewhere": "Nothing to do, unless the client's folder was meant: then start the proxy there.",
    "ConfigInvalid": "Correct the file; until then the default is used.",
    "FileMisnamed": "Give it the right name.",
    "ProjectUnreadable": "Repair the project file; until then its own properties and items are not known.",
    "SolutionUnreadable": "Repair the solution file; until then its projects are looked for below its folder.",
    # packages
    "SdkNotInCache": _RESTORE,
    "PackagesJsonNotFound": "The SDK package looks damaged: delete its folder from the NuGet cache and restore again.",
    "PackagesJsonInvalid": "The SDK package looks damaged: delete its folder from the NuGet cache and restore again.",
    "PackageVersionOverridden": "Nothing to do, unless the other version was meant: then change the target framework.",
    "NuGetConfigInvalid": "Correct the file; until then its globalPackagesFolder is not used.",
    "RestoreMissing": _RESTORE,
    "RestoreFailed": "Run 'dotnet restore' and fix what it reports; until then, packages may be missing.",
    "RestoreStale": "Run 'dotnet restore': the project changed after its last restore.",
    "RestoreElsewhere": "Run 'dotnet restore' here, so that builds find the packages, too.",
    "RestoreFileInvalid": "Delete the project's obj folder and run 'dotnet restore'.",
    # the Host
    "DevServerPackageNotCached": _RESTORE,
    "HostNotStarted": "Run 'uno-devserver start' in the workspace.",
    "ServerNotBuilt": "It is started when it is built.",
    "HostCrashed": "Run 'uno-devserver start' to see what the Host prints; the likely cause is an add-in.",
    "HostUnreachable": f"Try again in a few seconds; if nothing changes, run {RESTART_HOST}.",
    "HostMcpEndpointNotAvailable": "Run 'uno-devserver stop', then 'uno-devserver start': that passes the add-ins on.",
    "UpstreamError": f"Run {RESTART_HOST}; if the problem comes back, look at what the Host prints.",
    "UpstreamUnauthorized": (
        "Run 'uno-devserver login <url>' to sign in to that server, or give the credentials it wants: --header "
        "'Authorization: Bearer ${NAME}' of 'mcp start', or mcpServer.headers in the config; then call a tool."
    ),
    "UpstreamForbidden": (
        "Use credentials that are allowed to: ask who runs that server, then sign in again ('uno-devserver login "
        "<url>') or change the header; then call a tool."
    ),
    "HostBinaryNotFound": "Install a .NET SDK that the Host supports, or choose another Uno.Sdk version.",
    "DotNetNotFound": "Install the .NET SDK and make sure that 'dotnet' is on the PATH.",
    "DotNetVersionUnsupported": "Install the .NET SDK that global.json asks for, or relax its 'sdk' section.",
    "ReloadFailed": "Fix what is wrong with the code; the next tool call tries again.",
    "ClientNotReady": "Correct 'client' in the config, or the client; a rebuild of the extension starts it again.",
    "HttpNotServed": "Start the proxy with another port after --http, or with 0 for any free one.",
    "InspectorNotServed": "Start the proxy with another port after --inspector, or with 0 for any free one.",
    "HealthNotKnown": "Ask again in a second.",
    # add-ins
    "AddInPackageNotCached": _RESTORE,
    "AddInLoadFailed": f"Repair or update the add-in, then run {RESTART_HOST}.",
    "AddInsLeftOut": f"Repair the one at fault, then run {RESTART_HOST}.",
    "AddInsLoading": "Ask again in a few seconds. If an add-in never finishes loading, see the log.",
    "AddInCallsHang": "The log names their lines; cancel them, or run 'uno-devserver start --restart'.",
    "AddInNotLoaded": "Run 'uno-devserver start --restart'.",
    "AddInNeedsBundledHost": "Use 'uno-devserver start --host bundled' to have them instead of the .NET ones.",
    "AddInPathUnusable": "Move it to a folder whose path has no semicolon.",
    "AddInBinaryNotFound": _FORCE_RESTORE,
    "AddInBinaryCorrupted": _FORCE_RESTORE,
    "AddInEntryPointUnknown": "Ask the package's author for a devserver-addin.json or an UnoRemoteControlAddIns item.",
    "AddInEntryPointRefused": "Ask the package's author to keep the entry point inside the package.",
    "AddInBuildFilesExcluded": (
        "If the add-in is wanted, let the PackageReference include 'build' and 'buildTransitive' (see ExcludeAssets, "
        "IncludeAssets), and run 'dotnet restore'."
    ),
    "AddInVersionsDiffer": "Use the same version of the package in all projects of the solution.",
    "AddInHostVersionUnknown": "Nothing to do if the add-in works; else run 'dotnet restore' to make it known.",
    "AddInHostTooOld": "Choose a newer Uno.Sdk version, or an older version of the package.",
    "AddInManifestInvalid": "Ask the package's author to correct devserver-addin.json, or restore the package again.",
    "AddInManifestUnsupported": "Update uno-devserver; until then the package's .targets files are used.",
    "AddInTargetsInvalid": "Repair or update the package: MSBuild cannot evaluate this file either.",
    "AddInConditionUnknown": "Nothing to do if the add-in is wanted: it was included because its file exists.",
    "AddInTargetsDeprecated": "Ask the package's author to move the file from build/ to buildTransitive/.",
    "AddInDiscoveryFallback": "Check that the NuGet packages are restored; see the other messages for the cause.",
    "MSBuildDiscoveryFailed": "Run 'dotnet build' on the solution and repair what it reports.",
}
# The codes of servers that answer with these HTTP statuses.
ACCESS_CODES = {401: "UpstreamUnauthorized", 403: "UpstreamForbidden"}
ANOTHER_HEADER = (
    "Correct the Authorization header (--header of 'mcp start', or mcpServer.headers in the config), or remove it to "
    "use a sign-in, over which it has precedence; then call a tool."
)


def access_step(status: int, url: str, *, fixed: bool) -> str:
    """The next step after a server answered 401 or 403; `fixed`: to an Authorization header that the user gave."""
    if fixed and status == 401:
        return ANOTHER_HEADER
    step = REMEDIES[ACCESS_CODES[status]]
    if "…" in url:  # such a URL cannot be copied
        step = step.replace("'uno-devserver login <url>'", "'uno-devserver login' with the whole URL of the server")
    return step.replace("<url>", url)
