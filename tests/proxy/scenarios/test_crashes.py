"""A server that dies: every request is answered once and truthfully, the session stays, the tools come back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.hosts import is_running
from support.odd_servers import Notes, odd_server
from support.proxies import ERAS, Proxies
from support.reloading import SHORT_PAUSES
from support.signals import exit_code_of
from support.waiting import wait_for

from .conftest import Workbench

# --- the Host ---------------------------------------------------------------------------------------------------------


@ERAS
def test_after_a_kill_of_the_host_the_session_stays_and_the_tools_come_back(
    proxies: Proxies, bench: Workbench, modern: bool
) -> None:
    client = proxies.connected(modern=modern)
    host = client.health()["hostProcessId"]

    os.kill(host, signal.SIGKILL)

    report = client.wait_connected(generation=2)
    assert client.call("echo", text="again") == "again"
    assert (report["proxy"]["generation"], report["proxy"]["restarts"]) == (2, 1)
    assert report["hostProcessId"] != host
    client.wait_health(lambda report: report["status"] == "Healthy", "healthy again")
    assert report["proxy"]["lastExit"]["exitCode"] == exit_code_of(signal.SIGKILL)
    assert not is_running(host)


# --- crashes without end ----------------------------------------------------------------------------------------------


def test_a_server_that_never_starts_makes_the_proxy_degraded_until_a_call_asks_again(
    proxies: Proxies, tmp_path: Path
) -> None:
    """All starts fail, also the one that the first call asks for if the pause is over by then; a later one works."""
    notes = Notes(tmp_path / "notes")
    client = proxies.start("--", *odd_server(dies=3, dies_times=4, notes=notes), prefix=SHORT_PAUSES)
    client.initialize()

    report = client.wait_state("Degraded")

    assert report["status"] == "Unhealthy"
    crash = next(issue for issue in report["issues"] if issue["code"] == "HostCrashed")
    assert crash["severity"] == "Fatal"
    assert "the server cannot begin" in crash["message"]
    assert report["proxy"]["lastExit"]["exitCode"] == 3
    assert len(notes.starts) == 3, "it gave up"
    assert "uno_health" in client.tools()
    assert client.call_result("echo", text="x")["isError"] is True

    client.wait_health(lambda _: not client.call_result("echo", text="x").get("isError"), "healed by a call")
    client.wait_connected()
    assert client.health()["status"] == "Healthy"


MENDED = "def register(addin):\n    addin.tool(name='mended')(lambda: 'mended')\n"


@pytest.mark.parametrize(
    ("broken", "state"),
    [
        ("import os\nos.write(2, b'broken add-in\\n')\nos._exit(9)\n", "Degraded"),
        ("def register(addin:\n", "Connected"),
        ("raise RuntimeError('not yet')\n", "Connected"),
    ],
    ids=["it ends the Host", "a syntax error", "it fails"],
)
def test_an_add_in_that_is_mended_is_loaded_without_anybody_asking(
    proxies: Proxies, bench: Workbench, broken: str, state: str
) -> None:
    bench.write_addin("broken.py", broken)
    client = proxies.start(prefix=SHORT_PAUSES)
    client.initialize()
    client.wait_health(
        lambda report: report["connectionState"] == state and report["status"] != "Healthy", "aware of what is wrong"
    )

    bench.write_addin("broken.py", MENDED)

    client.wait_health(lambda report: report["status"] == "Healthy", "well again")
    assert client.call("mended") == "mended"
    assert client.call("echo", text="hi") == "hi"
    assert client.heard("notifications/tools/list_changed")


def test_an_add_in_that_is_mended_while_its_host_starts_is_not_forgotten(proxies: Proxies, bench: Workbench) -> None:
    bench.close_gate()
    bench.write_addin("a_broken.py", "raise RuntimeError('not yet')\n")
    client = proxies.start(prefix=SHORT_PAUSES)
    client.initialize()
    client.wait_state("Connecting")

    bench.write_addin("a_broken.py", MENDED)
    bench.open_gate()

    client.wait_health(lambda _: "mended" in client.tools(), "without the add-in that was mended")
    # A Host that had read the broken one may be known to be outdated only now: then this call begins its restart.
    wait_for(lambda: not client.call_result("mended").get("isError"), "a Host with the mended add-in")
    assert client.call("mended") == "mended"


# --- a command on pipes -----------------------------------------------------------------------------------------------


@ERAS
def test_a_command_that_dies_is_started_again(proxies: Proxies, tmp_path: Path, modern: bool) -> None:
    notes = Notes(tmp_path / "notes")
    client = proxies.connected("--", *odd_server(notes=notes), modern=modern)

    result = client.call_result("die", signal=int(signal.SIGSEGV))

    assert result["isError"] is True
    client.wait_connected(generation=2)
    assert client.call("echo", text="again") == "again"
    assert len(notes.starts) == 2
    assert client.health()["proxy"]["lastExit"]["exitCode"] == exit_code_of(signal.SIGSEGV)
