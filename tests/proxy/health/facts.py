"""What proxies know in the tests of their reports: one that is healthy, from which each test departs."""

from __future__ import annotations

from uno_devserver.discovery.discover import Discovery, SdkInfo, ToolPackage
from uno_devserver.discovery.entry_points import AddInDiscovery, DiscoveredAddIn
from uno_devserver.discovery.packages import SdkPackages
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.issues import fatal, warning
from uno_devserver.proxy.health.report import report
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyFacts, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.workspace.global_json import GlobalJson, UnoSdk
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace

WORKSPACE = Workspace(
    requested_directory="/ws",
    working_directory="/ws",
    effective_directory="/ws",
    solution="/ws/src/App.sln",
    global_json="/ws/global.json",
    kind=ResolutionKind.CurrentDirectory,
    source=SelectionSource.Automatic,
    candidates=("/ws/src/App.sln",),
    config=None,
    issues=(),
)
DISCOVERY = Discovery(
    WORKSPACE,
    SdkInfo(
        GlobalJson("/ws/global.json", UnoSdk("Uno.Sdk", "6.5.31"), None, {}),
        "/cache/uno.sdk/6.5.31",
        SdkPackages(None, (), None),
        (),
    ),
    None,
    ToolPackage("6.5.153", "/cache/host", "/cache/host/Uno.UI.RemoteControl.Host.dll"),
    False,
    ToolPackage(),
    AddInDiscovery(
        (DiscoveredAddIn("Sample.AddIn", "1.0.0", "/cache/Sample.dll", "manifest"),), "manifest", possible=True
    ),
    ("/cache",),
    152,
    (),
)
BEGUN = ProxyFacts(ProxyOptions("/ws"))
HOST = UpstreamFacts(HostKind.DOTNET, 42, "http://localhost:5651/mcp", True, "/logs/host.log", "Uno Server", "6.5.153")
CONNECTED = BEGUN.replace(
    state=ConnectionState.CONNECTED,
    discovery=DISCOVERY,
    upstream=HOST,
    generation=1,
    tool_count=7,
    lists_fresh=True,
    timeline=(("initialize", 12), ("connected", 240)),
    clients=("claude-code",),
)
CRASH = Ending("it ended with exit code 3", 3, ("one", "two", "Unhandled exception: boom"))


def issues(facts: ProxyFacts) -> list[tuple[str, str]]:
    listed = report(facts)["issues"]
    assert isinstance(listed, list)
    return [(issue["code"], issue["severity"]) for issue in listed]


def issue(facts: ProxyFacts, code: str) -> dict[str, str]:
    listed = report(facts)["issues"]
    assert isinstance(listed, list)
    [found] = [issue for issue in listed if issue["code"] == code]
    return dict(found)


def unresolved(kind: ResolutionKind, *found: str, code: str) -> Discovery:
    judge = fatal if code == "WorkspaceNotResolved" else warning
    workspace = WORKSPACE.replace(
        effective_directory=None,
        solution=None,
        global_json=None,
        kind=kind,
        candidates=found,
        issues=(judge(code, "Something about it."),),
    )
    return DISCOVERY.replace(
        workspace=workspace,
        sdk=SdkInfo(None, None, SdkPackages(None, (), None), ()),
        host=ToolPackage(),
        addins=AddInDiscovery(),
        issues=workspace.issues,
    )
