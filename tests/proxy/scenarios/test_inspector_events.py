"""What the events of a running proxy tell whoever has its page open; on real processes, over real sockets."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from support.pages import Page
from support.proxies import Proxies
from support.reloading import BuiltServer, hot, renew
from support.waiting import wait_for

from .conftest import Workbench

ADDED = '''
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()
'''


def is_named(name: str, state: str) -> Any:
    return lambda call: (call["name"], call["state"]) == (name, state)


def test_a_call_is_seen_while_it_runs_and_with_its_outcome(proxies: Proxies, bench: Workbench, tmp_path: Path) -> None:
    client = proxies.connected("--inspector", "0")
    begun, until = tmp_path / "begun", tmp_path / "until"
    with Page.of(client) as page:
        snapshot = page.snapshot
        held = client.begin("tools/call", {"name": "hold", "arguments": {"begun": str(begun), "until": str(until)}})
        running = page.hear("call", is_named("hold", "running"))
        until.touch()
        client.answer(held)
        done = page.hear("call", is_named("hold", "done"))

    assert (snapshot["processId"], snapshot["directory"]) == (client.process.pid, str(bench.machine.workspace))
    assert snapshot["health"]["status"] == "Healthy"
    assert [(proxy["processId"], proxy["own"]) for proxy in snapshot["proxies"]] == [(client.process.pid, True)]
    assert [server["isInWorkspace"] for server in snapshot["servers"]] == [True]
    assert (running["client"], running["totalMs"], running["method"]) == ("test-client", None, "tools/call")
    assert str(begun) in running["arguments"]
    assert (done["id"], done["outcome"]) == (running["id"], "held")
    assert done["totalMs"] >= running["runningMs"]


def test_a_kill_of_the_host_and_its_healing_are_seen(proxies: Proxies, bench: Workbench, tmp_path: Path) -> None:
    client = proxies.connected("--inspector", "0")
    begun, until = tmp_path / "begun", tmp_path / "until"
    with Page.of(client) as page:
        host = page.snapshot["health"]["hostProcessId"]
        held = client.begin(
            "tools/call", {"name": "hold_again", "arguments": {"begun": str(begun), "until": str(until)}}
        )
        wait_for(lambda: begun.exists() and begun.read_text())

        os.kill(host, signal.SIGKILL)

        healed = page.hear(
            "health", lambda report: report["proxy"]["state"] == "Connected" and report["proxy"]["generation"] == 2
        )
        until.touch()
        client.answer(held)
        done = page.hear("call", is_named("hold_again", "done"))

    assert healed["hostProcessId"] not in (None, host)
    assert healed["proxy"]["lastExit"]["exitCode"] == -signal.SIGKILL
    assert done["outcome"] == "held"
    assert done["queuedMs"] > 0, "while there was no Host"


def test_a_reload_is_seen_with_what_changed_and_the_tools_that_came(proxies: Proxies, bench: Workbench) -> None:
    client = hot(proxies, "--inspector", "0")
    with Page.of(client) as page:
        bench.write_addin("shouting.py", ADDED)

        told = client.call_result("echo", text="one")
        client.call_result("mcpStatus")

        report = page.hear("health", lambda report: report["proxy"]["hotReload"]["history"])
        assert client.call("shout", text="two") == "TWO"
        page.hear("lists", lambda lists: lists["changed"] == ["tools"])
        restarting = page.hear("call", is_named("echo", "restarting"))
        page.hear("call", is_named("shout", "done"))

    [reload] = report["proxy"]["hotReload"]["history"]
    assert (reload["changed"], reload["ok"], reload["lists"]) == ([".devtools/addins/shouting.py"], True, "grown")
    assert reload["tools"] == {"added": ["shout"], "removed": [], "grown": [], "changed": []}
    assert reload["restartSeconds"] > 0
    assert told["isError"] is True
    last = page.calls[restarting["id"]]
    assert (last["state"], last["runningMs"]) == ("restarting", None)
    assert last["totalMs"] is not None


def test_a_build_that_fails_and_its_mending_are_in_the_history(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies, "--inspector", "0")
    assert client.call("answer") == "one"
    with Page.of(client) as page:
        server.say("two", "build fails")
        client.call_result("answer")
        client.call_result("answer")  # which tries again
        failing = page.hear("health", lambda report: report["proxy"]["hotReload"]["builds"] == 2)
        server.say("three")
        renew(client, "three")
        mended = page.hear("health", lambda report: report["proxy"]["hotReload"]["restarts"])

    [failed] = failing["proxy"]["hotReload"]["history"]
    assert (failed["ok"], failed["build"]) == (False, "npm run build")
    assert failed["changed"] == [str(server.source.relative_to(server.root))]
    assert "TS2322" in failed["problem"]
    assert os.path.exists(failed["logFile"])
    assert [entry["ok"] for entry in mended["proxy"]["hotReload"]["history"]] == [False, True]


def test_the_log_tells_of_the_start_of_what_happens_and_what_the_host_prints(
    proxies: Proxies, bench: Workbench
) -> None:
    client = proxies.connected("--inspector", "0")
    with Page.of(client) as page:
        snapshot = page.snapshot
        client.begin("tools/call", {"name": "die", "arguments": {}})
        line = page.line("has gone")
        last_words = page.line("the workbench was told to die", "server")
        client.wait_connected(generation=2)

    assert any("is connected, with" in line["text"] for line in snapshot["log"]), "from before anybody looked"
    numbers = [line["n"] for line in [*snapshot["log"], *(line for lines in page.all("log") for line in lines)]]
    assert numbers == sorted(set(numbers)), "each once, and in order"
    assert (line["level"], last_words["level"]) == ("Warning", "Information")


def test_a_page_that_does_not_read_slows_nobody_and_catches_up(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected("--inspector", "0")
    text = "ü" * 2000
    with Page.of(client, reads=False) as slow, Page.of(client) as quick:
        quick.hear("snapshot")
        begun = time.monotonic()
        for number in range(600):  # some 14 MB of events, more than a socket and a page's share can hold
            client.call("echo", text=f"{number} {text}")
        took = time.monotonic() - begun
        last = quick.hear("call", lambda call: call["outcome"].startswith("599 "))
        slow.read()
        caught_up = slow.hear(
            "snapshot", lambda snapshot: snapshot["calls"] and snapshot["calls"][-1]["id"] >= last["id"]
        )

    assert took < 20, "a call takes a millisecond or two"
    assert len(caught_up["calls"]) == 200


def test_pages_hear_that_the_proxy_ends(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected("--inspector", "0")
    with Page.of(client) as page:
        page.hear("snapshot")

        client.close_stdin()

        page.hear("closing")
        assert client.exit_code() == 0
