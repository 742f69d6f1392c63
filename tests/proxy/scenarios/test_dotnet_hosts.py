"""The .NET Host behind the proxy, played by a stand-in: what it is told, and one that has no MCP."""

from __future__ import annotations

import os
import signal

import pytest

from support.hosts import Manners, Rival, StandInHosts, is_running
from support.machine import WINDOWS
from support.packages import app_mcp
from support.proxies import Proxies
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver.instances.registry import entry_name

FRAMEWORK_MISSING = """You must install or update .NET to run this application.

Framework: 'Microsoft.AspNetCore.App', version '11.0.0' (x64)
.NET location: /usr/share/dotnet
"""
GONE_SECONDS = 10.0  # one is promised, to a machine that runs no other tests


@pytest.fixture
def uno(workspace: WorkspaceBuilder, hosts: StandInHosts) -> WorkspaceBuilder:
    """A workspace with everything that a .NET Host needs."""
    return workspace.uno_6_5().project("App/App.csproj", [app_mcp()]).solution("App.slnx")


def test_a_host_without_mcp_is_told_as_such_and_never_called_crashed(
    proxies: Proxies, uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    """The .NET proxy needed 33 s for it, and then reported repeated crashes of a Host that ran."""
    hosts.behave(Manners(status=404))
    client = proxies.start()
    client.initialize()

    report = client.wait_state("Degraded")

    codes = [issue["code"] for issue in report["issues"]]
    assert "HostMcpEndpointNotAvailable" in codes
    assert "HostCrashed" not in codes
    assert len(hosts.launches()) == 1, "it runs; starting it again would change nothing"
    assert "uno_health" in client.tools()
    assert client.call_result("echo", text="x")["isError"] is True


def test_the_host_is_told_its_solution_its_add_ins_and_who_started_it(
    proxies: Proxies, uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    client = proxies.start("--custom-flag", "7")
    client.initialize()
    client.wait_health(lambda _: hosts.launches(), "launching a Host")

    launch = hosts.launches()[0]

    argv = launch["argv"]
    assert argv[argv.index("--solution") + 1] == str(uno.root / "App.slnx")
    assert argv[argv.index("--ppid") + 1] == str(client.pid)
    assert "Uno.UI.App.Mcp.Server.dll" in argv[argv.index("--addins") + 1]
    assert argv[-2:] == ["--custom-flag", "7"]
    assert launch.get("stdin") == (None if WINDOWS else os.devnull), "it cannot take messages of the client"


def test_a_host_that_never_comes_up_is_given_up_and_leaves_nothing(
    proxies: Proxies, uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies=True, exit_code=134))
    client = proxies.start()
    client.initialize()

    report = client.wait_health(
        lambda report: report["connectionState"] in ("Degraded", "Connected") and report["issues"], "aware of it"
    )

    assert report["status"] != "Healthy"
    assert not any(is_running(launch["pid"]) for launch in hosts.launches())


def test_a_framework_that_the_host_lacks_is_named_in_health_and_no_add_in_is_blamed(
    proxies: Proxies, uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies=True, exit_code=150, last_words=FRAMEWORK_MISSING))
    client = proxies.start()
    client.initialize()

    report = client.wait_health(lambda report: report["connectionState"] == "Degraded", "aware of it")

    told = " ".join(f"{issue['message']} {issue['remediation']}" for issue in report["issues"])
    assert "Microsoft.AspNetCore.App 11.0.0" in told
    assert "/usr/share/dotnet" in told
    assert "AddInsLeftOut" not in [issue["code"] for issue in report["issues"]]
    assert all(launch["argv"][launch["argv"].index("--addins") + 1] != ";" for launch in hosts.launches())


def test_after_a_crash_a_proxy_uses_the_host_that_another_program_registered_first(
    proxies: Proxies, uno: WorkspaceBuilder, hosts: StandInHosts, rival: Rival
) -> None:
    """As a .NET proxy of the same workspace does, which notices the crash, too."""
    hidden = rival.entry.rename(rival.entry.with_suffix(".hidden"))  # not launched yet
    hosts.behave(Manners())
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: report["hostProcessId"] == hosts.launches()[-1]["pid"], "using its own Host")
    first = hosts.launches()[-1]["pid"]
    go = uno.machine.root / "go-ours"
    hosts.behave(Manners(waits_for=str(go)))

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: hosts.launches()[-1]["pid"] not in (first, rival.process.pid), "its next Host")
    second = hosts.launches()[-1]["pid"]
    wait_for(rival.entry.with_name(entry_name(second)).is_file, "its registration")
    hidden.rename(rival.entry)
    rival.listen()
    go.touch()

    client.wait_health(lambda report: report["hostProcessId"] == rival.process.pid, "using the other Host")
    assert not is_running(second)
    assert is_running(rival.process.pid)


def test_a_host_that_hangs_while_it_starts_is_gone_with_the_client(
    proxies: Proxies, uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(listens=False, ignores_sigterm=True))
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda _: hosts.launches(), "launching a Host")

    client.close_stdin()

    assert client.exit_code(GONE_SECONDS) == 0
    wait_for(lambda: not is_running(hosts.launches()[0]["pid"]), seconds=GONE_SECONDS)
