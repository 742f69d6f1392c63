"""What the events of a running proxy tell whoever has its page open; on real processes, over real sockets."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from support.inspectors import InspectorClient, inspector_of
from support.proxies import PATIENCE, Proxies, ProxyClient
from support.reloading import BuiltServer, hot, renew
from uno_devserver.protocol.http.sse import EventReader

from .conftest import Workbench

ADDED = '''
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()
'''


Accept = Callable[[Any], object]


class Page:
    """A page of the inspector that reads its events in a thread, over a real socket."""

    def __init__(self, inspector: InspectorClient, *, reads: bool = True) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._changed = threading.Condition()
        self._over = False
        self._reads = threading.Event()
        self._connection = http.client.HTTPConnection("localhost", inspector.port, timeout=PATIENCE)
        if reads:
            self._reads.set()
        else:  # so that the kernel does not read for it
            self._connection.sock = socket.socket()
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            self._connection.sock.connect(("127.0.0.1", inspector.port))
        self._connection.request("GET", "/events", headers=inspector.bearer)
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, client: ProxyClient, **how: Any) -> Page:
        return cls(inspector_of(client), **how)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reads.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the proxy has closed it
        self._thread.join(PATIENCE)
        self._connection.close()

    def read(self) -> None:
        """Start to read the socket."""
        self._reads.set()

    def all(self, name: str) -> list[Any]:
        return [data for event, data in list(self.heard) if event == name]

    def hear(self, name: str, accept: Accept = lambda _: True, seconds: float = PATIENCE) -> Any:
        """The first event of that name that is accepted, also one that came before."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or any(map(accept, self.all(name))), seconds)
            found = [data for data in self.all(name) if accept(data)]
        assert found, f"no such {name}; the last were {self.all(name)[-3:]}"
        return found[0]

    @property
    def snapshot(self) -> Any:
        return self.hear("snapshot")

    @property
    def calls(self) -> dict[int, Any]:
        """The latest state of each call."""
        return {call["id"]: call for call in self.all("call")}

    def line(self, text: str, source: str = "proxy") -> Any:
        """The first line of the log that holds this."""

        def found(lines: list[Any]) -> list[Any]:
            return [line for line in lines if text in line["text"] and line["source"] == source]

        return found(self.hear("log", found))[0]

    def _read(self) -> None:
        events = EventReader()
        try:
            while self._reads.wait() and (chunk := self._answer.read1(65536)):
                told = [(event.name, json.loads(event.data)) for event in events.feed(chunk)]
                with self._changed:
                    self.heard += told
                    self._changed.notify_all()
        except (OSError, http.client.HTTPException, ValueError):
            pass  # its end, however it comes
        with self._changed:
            self._over = True
            self._changed.notify_all()


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

    assert (snapshot["processId"], snapshot["directory"]) == (client.pid, str(bench.machine.workspace))
    assert snapshot["health"]["status"] == "Healthy"
    assert [(proxy["processId"], proxy["own"]) for proxy in snapshot["proxies"]] == [(client.pid, True)]
    assert [server["isInWorkspace"] for server in snapshot["servers"]] == [True]
    assert (running["client"], running["totalMs"], running["method"]) == ("test-client", None, "tools/call")
    assert json.dumps(str(begun)) in running["arguments"]
    assert (done["id"], done["outcome"]) == (running["id"], "held")
    assert done["totalMs"] >= running["runningMs"]


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


def test_an_edit_is_built_and_started_without_a_call_while_a_page_is_open(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies, "--inspector", "0")
    with Page.of(client) as page:
        server.say("two", "tool:more")

        page.hear("lists", lambda lists: "tools" in lists["changed"])
        page.hear("health", lambda report: report["proxy"]["hotReload"]["restarts"] == 1)

        server.say("three", "build fails")
        page.hear("health", lambda report: report["proxy"]["hotReload"]["failing"])

    assert server.journal.builds == 2
    assert "more" in client.tools()


def test_a_build_that_fails_and_its_mending_are_in_the_history(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies, "--inspector", "0")
    assert client.call("answer") == "one"
    with Page.of(client) as page:
        server.say("two", "build fails")
        client.call_result("answer")
        client.call_result("mcpStatus")  # which builds again
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
