"""The engine as a whole, in a process of its own: what comes first, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.hosts import is_running
from support.machine import Machine
from support.proxies import Proxies

ADDIN = "def register(addin):\n    addin.tool(name='greet')(lambda: 'hello')\n"
BOUND = 20.0

# Runs the proxy while its Host starts, until all of these have been imported, and writes what has been to a file.
WHILE_IT_STARTS = """
import os, sys, time
from types import SimpleNamespace
from uno_devserver.instances import launch
from uno_devserver.proxy.main import serve
from uno_devserver.proxy.options import ProxyOptions

def starting(*_, **__):
    latest = time.monotonic() + 10
    while not set(sys.argv[2:]) <= set(sys.modules) and time.monotonic() < latest:
        time.sleep(0.01)
    with open(sys.argv[1], "w") as stream:
        stream.write(" ".join(sorted(sys.modules)))
    os._exit(0)

launch.spawn = lambda *_, **__: SimpleNamespace(pid=os.getpid())
launch.wait_until_ready = starting
serve(ProxyOptions(os.getcwd()))
"""
# A proxy that writes its catalogue only when it ends.
SAVES_LATE = """
import sys
from uno_devserver.proxy import engine

engine.FIRST_CALLS_SECONDS = 60.0
del sys.argv[0]
from uno_devserver.__main__ import main
sys.exit(main())
"""
# What a proxy needs as soon as its Host is connected.
AFTER_IT = {"discovery.discover", "hotreload.control.server", "hotreload.local_authority", "system.inotify"}
AFTER_IT |= {"proxy.reload.reloader", "proxy.health.status_file", "proxy.calls.call_queue"}


@pytest.fixture
def proxies(machine: Machine) -> Iterator[Proxies]:
    """In a workspace with one add-in, which the user trusts."""
    addins = machine.workspace / ".devtools" / "addins"
    addins.mkdir(parents=True)
    (addins / "greeter.py").write_text(ADDIN, "utf-8")
    machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    with Proxies(machine) as proxies:
        yield proxies


def test_what_a_connected_host_leads_to_is_read_while_it_starts(proxies: Proxies, machine: Machine) -> None:
    wanted, told = {f"uno_devserver.{name}" for name in AFTER_IT}, machine.root / "imported"

    with subprocess.Popen(
        [sys.executable, "-P", "-c", WHILE_IT_STARTS, str(told), *wanted],
        cwd=machine.workspace,
        env=machine.variables(),
        stdin=subprocess.PIPE,  # which stays open: a proxy ends with its client
        stdout=subprocess.DEVNULL,
    ) as proxy:
        assert proxy.wait(BOUND) == 0

    assert wanted - set(told.read_text("utf-8").split()) == set()


def test_a_tool_call_comes_through_and_the_timeline_tells_the_stages(proxies: Proxies) -> None:
    client = proxies.connected()

    assert client.call("greet") == "hello"

    stages = client.health()["proxy"]["timeline"]
    assert stages["engine"] <= stages["launched"] <= stages["ready"] <= stages["connected"]
    assert stages["launched"] <= stages["loop"] <= stages["connected"]


def test_what_was_listed_is_kept_although_the_client_leaves_before_it_was_time_to_write_it(proxies: Proxies) -> None:
    client = proxies.connected(prefix=[sys.executable, "-P", "-c", SAVES_LATE])

    client.close_stdin()

    assert client.exit_code() == 0
    again = proxies.start()
    again.initialize()
    assert "greet" in again.tools()


def test_a_catalogue_cannot_be_made_where_there_is_no_workspace_and_that_is_said_at_once(machine: Machine) -> None:
    result = machine.run("mcp", "start", "--force-generate-tool-cache")

    assert result.exit_code == 1
    assert f"No tool catalogue was made. There is no .sln or .slnx file in {machine.workspace}" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("moment", ["at once", "launching", "connected"])
def test_the_end_of_the_client_ends_everything_at_whatever_moment_it_comes(proxies: Proxies, moment: str) -> None:
    client = proxies.start()
    if moment != "at once":
        client.initialize()
        client.wait_health(
            lambda report: report["proxy"]["timeline"].get("launched") and moment in ("launching", _state(report)),
            moment,
        )
    begun = time.monotonic()

    client.close_stdin()

    assert client.exit_code() == 0
    assert time.monotonic() - begun < 3.0, "300 ms is the promise, on a machine that has nothing else to do"
    children = [pid for pid in proxies.processes() if pid != client.pid]
    while any(map(is_running, children)):
        assert time.monotonic() - begun < 3.0, "what was being started stays"
        time.sleep(0.005)
    assert proxies.machine.run("list", "--json").json["proxies"] == [], "nobody finds a proxy that is gone"


def _state(report: dict[str, Any]) -> str:
    return str(report["connectionState"]).lower()


def test_everything_that_a_client_hears_of_the_life_of_its_server_is_a_log_message(proxies: Proxies) -> None:
    client = proxies.connected()
    host = client.health()["hostProcessId"]
    os.kill(host, 9)
    client.wait_connected(2)

    told = [
        (note["params"]["level"], note["params"]["data"])
        for note in client.notifications
        if note["method"] == "notifications/message" and note["params"]["logger"] == "uno-devserver"
    ]

    text = json.dumps(told)
    assert f"The workspace is {proxies.machine.workspace}" in text
    assert [level for level, _ in told if level != "info"] == ["warning"]
    assert "The Host has gone: it was ended by signal 9. It is being started again." in text
    assert text.count("The Host is connected, with 1 tool.") == 2


def test_a_client_that_wants_only_errors_hears_nothing_else(proxies: Proxies) -> None:
    client = proxies.connected()
    client.result("logging/setLevel", {"level": "error"})
    before = len(client.notifications)
    os.kill(client.health()["hostProcessId"], 9)
    client.wait_connected(2)

    heard = [note for note in client.notifications[before:] if note["method"] == "notifications/message"]

    assert heard == []
