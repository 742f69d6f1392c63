"""The output of `disco`: JSON for IDE extensions, a short page for people, and with `--verbose` every field.

`disco --addins-only` does not import this module.
"""

from __future__ import annotations

from ..discovery.fallback import compare
from ..instances.registry import is_in_workspace, running_servers
from ..issues import needs_bundled_host, with_steps
from ..system.folders import folders
from ..workspace.addins import workspace_addins
from ..workspace.resolver import ResolutionKind
from .result import Bullets, Report, Result, Row, Section
from .terminal import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..discovery.discover import Discovery
    from ..discovery.entry_points import AddInDiscovery, DiscoveredAddIn
    from ..instances.registry import RegisteredServer
    from ..workspace.resolver import Workspace


def report(discovery: Discovery, asked: AddInDiscovery | None = None, *, verbose: bool) -> Result:
    """The result of `disco`; `asked` is what MSBuild said of the add-ins, if they are to be compared."""
    scripts = workspace_addins(discovery.workspace.working_directory) if discovery.host.program else []
    if scripts:  # the .NET Host would be started
        discovery = discovery.replace(issues=(*discovery.issues, needs_bundled_host(scripts)))
    # Without a workspace there is nothing that a server could belong to.
    servers = running_servers(folders().registry) if discovery.workspace.resolved else ()
    active = [_server(server, discovery.workspace.working_directory) for server in servers]
    data = _data(discovery, active)
    shown = _every_field(discovery, data, active) if verbose else _page(discovery, active)
    if asked is None:
        return Result(data, shown, 1 if discovery.errors else 0)
    data["verification"] = verification = _verification(discovery.addins, asked)
    shown = shown.replace(sections=(*shown.sections, Section("Verification", tuple(_verdict(verification)))))
    return Result(data, shown, 0 if verification["agrees"] and not discovery.errors else 1)


def _verification(read: AddInDiscovery, asked: AddInDiscovery) -> dict[str, Any]:
    compared = compare(read, asked)
    problems = [issue.message for issue in asked.issues if issue.code == "MSBuildDiscoveryFailed"]
    return {
        "agrees": not (compared.only_read or compared.only_msbuild or problems),
        "onlyRead": list(compared.only_read),
        "onlyMSBuild": list(compared.only_msbuild),
        "problems": problems,
        "durationMs": asked.duration_ms,
    }


def _verdict(verification: dict[str, Any]) -> Iterator[Row]:
    agrees = verification["agrees"]
    other = verification["onlyRead"] or verification["onlyMSBuild"]
    verdict = "names the same add-ins" if agrees else "names other add-ins" if other else "did not answer fully"
    yield Row("MSBuild", f"{verdict} ({verification['durationMs']} ms)", style=Style.GOOD if agrees else Style.BAD)
    for field, label in (("onlyRead", "only read"), ("onlyMSBuild", "only MSBuild"), ("problems", "problem")):
        yield from (Row(label, value) for value in verification[field])


def _data(discovery: Discovery, active: list[dict[str, object]]) -> dict[str, object]:
    """The JSON object: the .NET tool's fields in their order, then our additions."""
    workspace, dotnet, addins = discovery.workspace, discovery.dotnet, discovery.addins
    home = discovery.sdk.global_json
    uno_sdk = home.uno_sdk if home else None
    return {
        **workspace.to_json(),
        "candidateSolutions": list(workspace.candidates),
        "globalJsonPath": home.path if home else None,
        "unoSdkSource": "global.json" if uno_sdk else None,
        "unoSdkSourcePath": home.path if home and uno_sdk else None,
        "unoSdkPackage": uno_sdk.package if uno_sdk else None,
        "unoSdkVersion": uno_sdk.version if uno_sdk else None,
        "unoSdkPath": discovery.sdk.path,
        "packagesJsonPath": discovery.sdk.packages.path,
        "devServerPackageVersion": discovery.host.version,
        "devServerPackagePath": discovery.host.folder,
        "settingsPackageVersion": discovery.settings.version,
        "settingsPackagePath": discovery.settings.folder,
        "dotNetVersion": dotnet.version if dotnet else None,
        "dotNetTfm": dotnet.tfm if dotnet else None,
        "hostPath": discovery.host.program,
        "hostRequiresMajorRollForward": discovery.host_requires_major_roll_forward,
        "settingsPath": discovery.settings.program,
        "addIns": [
            {
                "packageName": addin.package,
                "packageVersion": addin.version,
                "entryPointDll": addin.path,
                "discoverySource": addin.source,
                "certain": addin.certain,
                "replacedBy": addin.replaced_by or None,
            }
            for addin in addins.found
        ],
        "addInsDiscoveryMethod": addins.method,
        "discoveryDurationMs": discovery.duration_ms,
        "addInsDiscoveryDurationMs": addins.duration_ms,
        "addInDiscoveryFailed": addins.failed,
        "activeServers": active,
        "warnings": list(discovery.warnings),
        "errors": list(discovery.errors),
        "activeServer": next((server for server in active if server["isInWorkspace"]), None),
        "nuGetCacheLocations": list(discovery.package_locations),
        "configPath": workspace.config,
        "workspaceAddIns": workspace_addins(workspace.working_directory) if workspace.resolved else [],
        "issues": [issue.to_json() for issue in discovery.issues],
    }


def _server(server: RegisteredServer, directory: str) -> dict[str, object]:
    from ..system.processes import chain
    from .list import server_data  # needed only if a server runs

    links = chain(server.process_id, server.parent_process_id)
    return server_data(server, links, in_workspace=is_in_workspace(server, directory))


_GLOBAL_JSON, _UNO_GLOBAL_JSON = "a global.json", "a global.json that names Uno.Sdk"
_UNO_SDK, _RESTORED = "Uno.Sdk under msbuild-sdks in global.json", "the restored package in the NuGet cache"
# Sections of the report: the title, and the fields of the JSON object, each with the text for a missing value.
_SECTIONS = {
    "": {
        "requestedWorkingDirectory": "",
        "workingDirectory": "",
        "effectiveWorkspaceDirectory": _UNO_GLOBAL_JSON,
        "selectedSolutionPath": "a .sln or .slnx file",
        "selectedGlobalJsonPath": _UNO_GLOBAL_JSON,
        "resolutionKind": "",
        "selectionSource": "",
        "configPath": "",
    },
    "Uno SDK": {
        "unoSdkSource": _GLOBAL_JSON,
        "unoSdkSourcePath": _GLOBAL_JSON,
        "globalJsonPath": _GLOBAL_JSON,
        "unoSdkPackage": _UNO_SDK,
        "unoSdkVersion": _UNO_SDK,
        "unoSdkPath": _RESTORED,
        "packagesJsonPath": "packages.json in the SDK package",
    },
    "DevServer": {
        "devServerPackageVersion": "Uno.WinUI.DevServer in packages.json",
        "devServerPackagePath": _RESTORED,
        "hostPath": "a Host in the package for the installed .NET",
        "hostRequiresMajorRollForward": "",
    },
    "Settings": {
        "settingsPackageVersion": "uno.settings.devserver in packages.json",
        "settingsPackagePath": _RESTORED,
        "settingsPath": "the application in the package",
    },
    ".NET": {"dotNetVersion": "a .NET SDK on PATH", "dotNetTfm": "a .NET SDK on PATH"},
}


def _label(field: str) -> str:
    """The .NET tool's label of a field in its report."""
    return {"hostPath": "devServerHostPath"}.get(field, field.replace("unoSdk", "sdk"))


def _page(discovery: Discovery, active: list[dict[str, object]]) -> Report:
    workspace, home = discovery.workspace, discovery.sdk.global_json
    place = workspace.effective_directory or f"none ({workspace.requested_directory})"
    rows = [Row("Workspace", place, style=None if workspace.resolved else Style.BAD)]
    rows += [Row("Solution", workspace.solution)] if workspace.solution else []
    if workspace.resolved and workspace.global_json is not None:
        sdk = home.uno_sdk if home else None
        rows.append(
            Row(
                "Uno SDK",
                f"{sdk.package} {sdk.version}{'' if discovery.sdk.path else ' (not restored)'}" if sdk else "none",
            )
        )
        rows.append(Row("Host", discovery.host.program or "the bundled one: no .NET Host was found"))
        rows.append(Row(".NET SDK", (discovery.dotnet and discovery.dotnet.version) or "not found"))
    rows += [Row("Config", workspace.config)] if workspace.config else []
    mine = [f"process {server['processId']}, port {server['port']}" for server in active if server["isInWorkspace"]]
    rows += (
        [Row("Running", "; ".join(mine) or "no server", style=Style.GOOD if mine else None)]
        if workspace.resolved
        else []
    )
    told = _with_steps(discovery)
    unloaded = "" if discovery.host.program else " (not loaded by the bundled Host)"
    addins = [
        f"{f'{addin.package} {addin.version}'.strip() or addin.path}{unloaded}" for addin in discovery.addins.found
    ]
    addins += workspace_addins(workspace.working_directory) if workspace.resolved else []
    return Report(
        "Discovery",
        (
            Section("", tuple(rows)),
            Bullets(_about_solutions(workspace), () if workspace.solution else workspace.candidates),
            Bullets("Add-ins", tuple(addins)),
            Bullets("Problems", told[: len(discovery.errors)], Style.BAD),
            Bullets("Warnings", told[len(discovery.errors) :], Style.WARN),
            Section("'uno-devserver disco --verbose' shows every field, --json for programs.", ()),
        ),
    )


def _about_solutions(workspace: Workspace) -> str:
    unfit = workspace.kind is ResolutionKind.NoValidWorkspace
    return "Solutions, none of which can be used" if unfit else "Solutions to choose from"


def _with_steps(discovery: Discovery) -> tuple[str, ...]:
    """The errors, then the warnings, each with its next step unless a message before it has the same."""
    issues = {issue.message: issue for issue in reversed(discovery.issues)}
    messages = (*discovery.errors, *discovery.warnings)
    return tuple(with_steps((issues[message] for message in messages), between="\n  next: "))


def _every_field(discovery: Discovery, data: dict[str, object], active: list[dict[str, object]]) -> Report:
    workspace, told = discovery.workspace, _with_steps(discovery)
    about_uno = workspace.resolved and workspace.global_json is not None
    is_ambiguous = workspace.kind is ResolutionKind.Ambiguous
    undecided = f"a choice between {len(workspace.candidates)} solutions" if is_ambiguous else ""
    sections = [
        Section(title, tuple(Row(_label(name), _text(data[name]), undecided or lacks) for name, lacks in rows.items()))
        for title, rows in _SECTIONS.items()
        if about_uno or not title
    ]
    addins = [
        Row("discoveryMethod", discovery.addins.method, "add-ins"),
        Row("addInsDiscoveryDurationMs", str(discovery.addins.duration_ms)),
        Row("totalDiscoveryDurationMs", str(discovery.duration_ms)),
        Row("addInDiscoveryFailed", str(discovery.addins.failed), style=Style.BAD if discovery.addins.failed else None),
        *(Row(f"{a.package} {a.version}".strip(), f"{a.path} ({_remarks(a)})") for a in discovery.addins.found),
    ]
    found = (
        Section("Add-Ins", tuple(addins)),
        Section("Active Servers", tuple(_server_rows(active)) or (Row("status", "not running"),)),
    )
    return Report(
        "Discovery",
        (
            *sections,
            *(found if workspace.resolved else ()),
            Bullets("nuGetCacheLocations", discovery.package_locations),
            Bullets("candidateSolutions", workspace.candidates),
            Bullets("workspaceAddIns", tuple(workspace_addins(workspace.working_directory))),
            Bullets("errors", told[: len(discovery.errors)], Style.BAD),
            Bullets("warnings", told[len(discovery.errors) :], Style.WARN),
        ),
    )


def _remarks(addin: DiscoveredAddIn) -> str:
    instead = f", the Host gets {addin.replaced_by} instead" if addin.replaced_by else ""
    return f"{addin.source}{'' if addin.certain else ', uncertain'}{instead}"


def _server_rows(active: list[dict[str, object]]) -> list[Row]:
    rows: list[Row] = []
    for server in active:
        where = "[workspace]" if server["isInWorkspace"] else "[other]"
        style = Style.GOOD if server["isInWorkspace"] else None
        rows.append(Row("processId", f"{server['processId']} {where}", style=style))
        fields = ("port", "mcpEndpoint", "solutionPath", "parentProcessId", "startTime", "ideChannelId")
        rows += [Row(field, _text(server[field])) for field in fields]
        links = server["processChain"]
        assert isinstance(links, list)
        names = [f"{link['processName']} ({link['processId']})" for link in reversed(links)]
        rows.append(Row("processChain", " → ".join(names)))
    return rows


def _text(value: object) -> str | None:
    return None if value is None else str(value)
