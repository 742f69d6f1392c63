"""A server that dies: every request is answered once and truthfully, the session stays, the tools come back."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support.files import write
from support.hosts import is_running
from support.odd_servers import Notes, odd_server
from support.proxies import ERAS, Proxies
from support.reloading import SHORT_PAUSES
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
    assert report["proxy"]["lastExit"]["exitCode"] == -signal.SIGKILL
    assert not is_running(host)


def test_many_callers_get_exactly_one_answer_each_whatever_is_killed(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()

    for generation in range(1, 4):
        calls = [
            client.begin("tools/call", {"name": name, "arguments": {"text": "x"} if name == "echo" else {}})
            for name in ("echo", "count") * 8
        ]
        os.kill(client.wait_connected(generation)["hostProcessId"], signal.SIGKILL)
        calls += [client.begin("tools/call", {"name": "echo", "arguments": {"text": "x"}}) for _ in range(16)]
        for call in calls:
            assert "result" in client.answer(call), "an error result, but no error of the protocol"
        client.wait_connected(generation + 1)

    assert client.call("echo", text="on") == "on"


def test_lists_are_answered_from_what_was_known_while_the_host_is_away(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    tools = client.tools()
    bench.close_gate()

    os.kill(client.health()["hostProcessId"], signal.SIGKILL)
    client.wait_health(lambda report: report["connectionState"] != "Connected", "not connected")

    assert client.tools() == tools
    assert {"HostCrashed", "HostUnreachable"} & set(client.issue_codes())
    bench.open_gate()
    client.wait_connected(generation=2)


def test_the_log_of_the_session_tells_of_a_crash_and_nobody_hears_that_tools_changed(
    proxies: Proxies, bench: Workbench
) -> None:
    client = proxies.connected()
    client.result("logging/setLevel", {"level": "info"})
    heard = len(client.heard("notifications/tools/list_changed"))

    os.kill(client.health()["hostProcessId"], signal.SIGKILL)
    client.wait_connected(generation=2)

    message = client.hear("notifications/message", matching=lambda params: params["level"] in ("warning", "error"))
    assert message["data"]
    assert len(client.heard("notifications/tools/list_changed")) == heard


# --- crashes without end ----------------------------------------------------------------------------------------------


def test_a_server_that_never_starts_makes_the_proxy_degraded_until_a_call_asks_again(
    proxies: Proxies, tmp_path: Path
) -> None:
    """All starts fail; one more, which a call asks for, works."""
    notes = Notes(tmp_path / "notes")
    client = proxies.start("--", *odd_server(dies=3, dies_times=3, notes=notes), prefix=SHORT_PAUSES)
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


def test_an_add_in_that_works_can_be_edited_without_a_restart(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    host = client.health()["hostProcessId"]
    client.wait_health(lambda report: report["addIns"], "told of its add-ins")

    bench.write_addin("workbench.py", bench.file.read_text("utf-8") + "\n# edited\n")
    write(bench.machine.workspace / ".devtools" / "host.config.jsonc", '{"proxy": {"waitCalls": true}}')

    report = client.wait_health(lambda report: report["proxy"]["waitCalls"], "aware of what was saved")
    assert (report["hostProcessId"], report["proxy"]["generation"]) == (host, 1)


def test_a_crash_at_every_call_ends_in_degraded(proxies: Proxies, tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    client = proxies.connected("--", *odd_server(notes=notes))

    for generation in range(1, 5):
        client.wait_connected(generation)
        assert client.call_result("die", code=4)["isError"] is True

    report = client.wait_state("Degraded")
    assert [issue["code"] for issue in report["issues"]] == ["HostCrashed"]
    assert len(notes.starts) == 4, "it was started three times more, and then no more"


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
    assert client.health()["proxy"]["lastExit"]["exitCode"] == -signal.SIGSEGV


def test_questions_of_a_server_that_died_are_forgotten(proxies: Proxies, tmp_path: Path) -> None:
    """The client answers a question whose asker is gone: nothing may come of it."""
    client = proxies.start("--", *odd_server(era="handshake"))
    client.replies["sampling/createMessage"] = None
    client.initialize(capabilities={"sampling": {}})
    client.wait_connected()
    asking = client.begin(
        "tools/call", {"name": "ask", "arguments": {"method": "sampling/createMessage", "params": {"messages": []}}}
    )
    client.wait(lambda: client.asked, "the question")

    client.call_result("die", code=1)
    assert client.answer(asking)["result"]["isError"] is True
    client.wait_connected(generation=2)
    client.send({"jsonrpc": "2.0", "id": client.asked[0]["id"], "result": {"role": "assistant"}})

    assert client.call("echo", text="on") == "on"


def test_health_on_the_command_line_shows_the_proxy_of_the_workspace(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    client.call_result("die", code=7)
    client.wait_connected(generation=2)

    def shown() -> dict[str, object] | None:
        listed = bench.machine.run("health", "--json").json["proxies"]
        return next((proxy for proxy in listed if proxy["generation"] == 2), None)

    proxy = wait_for(shown)
    assert (proxy["processId"], proxy["state"]) == (client.process.pid, "Connected")
    assert (proxy["restarts"], proxy["lastExit"]["exitCode"]) == (1, 7)
    assert any("told to die" in line for line in proxy["lastExit"]["lastLines"])
    assert proxy["clients"] == ["test-client"]
    assert json.dumps(proxy["timeline"]) != "{}"
    assert f"- PID: {client.process.pid} (Connected, 1 restart)" in bench.machine.run("health").stdout
