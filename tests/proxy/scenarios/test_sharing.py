"""One Host for a workspace, several sessions: adopted, taken over, and never without tools for long."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.bundled import BundledHost
from support.files import write
from support.hosts import is_running
from support.machine import COMMAND
from support.mcp_peers import MODERN, TestPeer
from support.odd_servers import odd_server
from support.packages import app_mcp
from support.proxies import Proxies
from support.reloading import SHORT_PAUSES, hot, state_of, text_of
from support.workspace import WorkspaceBuilder
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.service import Params
from uno_devserver.system.ports import free_port

from .conftest import Workbench

HEALED_SECONDS = 2.0  # what is promised to a session whose Host went with its owner
GREETER = "def register(addin):\n    addin.tool(name='greet', read_only=True)(lambda: '{}')\n"
BUSY = 10.0  # how much longer it may take where other tests run at the same time


def test_the_second_session_of_a_workspace_shares_the_host_of_the_first(proxies: Proxies, bench: Workbench) -> None:
    owner = proxies.connected()
    host = owner.health()["hostProcessId"]

    guest = proxies.connected()

    report = guest.health()
    assert report["hostProcessId"] == host
    assert report["proxy"]["upstream"]["owned"] is False
    assert owner.health()["proxy"]["upstream"]["owned"] is True
    assert guest.call("echo", text="shared") == "shared"


def test_two_sessions_at_the_same_moment_start_one_host(proxies: Proxies, bench: Workbench) -> None:
    both = [proxies.start() for _ in range(2)]
    for client in both:
        client.initialize()

    hosts = {client.wait_connected()["hostProcessId"] for client in both}

    assert len(hosts) == 1
    owners = [client for client in both if client.health()["proxy"]["upstream"]["owned"]]
    assert len(owners) == 1


@pytest.mark.parametrize("how", ["quits", "is killed"])
def test_when_the_owner_goes_the_other_session_has_tools_again_soon(
    proxies: Proxies, bench: Workbench, how: str
) -> None:
    owner, guest = proxies.connected(), proxies.connected()
    host = owner.health()["hostProcessId"]

    if how == "quits":
        owner.close_stdin()
        owner.exit_code()
    else:
        owner.process.kill()
    gone = time.monotonic()

    told = guest.call_result("echo", text="at once")
    assert told["content"][0]["text"] == "at once"
    if how == "quits":  # a Host outlives one that is killed for a moment, and whoever answers then cannot be checked
        assert (text_of(told), state_of(told)) == ("at once", None)
    guest.wait_health(
        lambda report: report["hostProcessId"] != host and report["connectionState"] == "Connected", "healed"
    )
    healed = time.monotonic() - gone
    assert guest.call("echo", text="mine now") == "mine now"
    assert guest.health()["proxy"]["upstream"]["owned"] is True
    assert healed < HEALED_SECONDS * BUSY


def test_a_host_that_the_user_started_is_used_and_outlives_the_session(proxies: Proxies, bench: Workbench) -> None:
    started = bench.machine.run("start", "--json").json
    client = proxies.connected()

    assert client.health()["hostProcessId"] == started["processId"]
    assert client.call("echo", text="hi") == "hi"
    client.close_stdin()
    client.exit_code()

    assert is_running(started["processId"])
    assert bench.machine.run("stop").exit_code == 0


def test_a_host_that_the_user_started_outlives_the_session_also_after_crashes(
    proxies: Proxies, bench: Workbench
) -> None:
    host = bench.machine.run("start", "--json").json["processId"]
    client = proxies.connected()

    for generation in (2, 3):
        os.kill(host, signal.SIGKILL)
        host = client.wait_connected(generation=generation)["hostProcessId"]
        assert client.call("echo", text="again") == "again"
        assert client.health()["proxy"]["upstream"]["owned"] is False
    client.close_stdin()
    client.exit_code()

    assert is_running(host)
    assert bench.machine.run("stop").exit_code == 0


def test_a_session_names_dotnet_add_ins_that_were_restored_after_the_user_started_the_host(
    proxies: Proxies, workspace: WorkspaceBuilder
) -> None:
    workspace.global_json({"Uno.Sdk": "6.5.31"}).project("App/App.csproj", restored=False).solution("App.slnx")
    machine = workspace.machine
    try:
        machine.run("start", "--host", "bundled")
        client = proxies.connected()
        before = client.wait_health(lambda report: report["discovery"] is not None, "looking for packages")
        workspace.uno_6_5().project("App/App.csproj", [app_mcp()])  # as `dotnet restore` leaves it
        (issue,) = not_loaded(client.wait_health(lambda report: bool(not_loaded(report)), "noticing the restore"))
        (told,) = not_loaded(machine.run("health", "--json").json)
        machine.run("start", "--host", "bundled", "--restart")
        client.wait_health(lambda report: not not_loaded(report), "using the new Host")
    finally:
        machine.run("stop")

    assert not not_loaded(before)
    assert issue == told
    assert "Uno.UI.App.Mcp" in issue["message"]


def not_loaded(report: Mapping[str, Any]) -> list[dict[str, str]]:
    return [issue for issue in report["issues"] if issue["code"] == "AddInNotLoaded"]


def test_a_relaunch_right_after_quitting_has_tools_every_time(proxies: Proxies, bench: Workbench) -> None:
    """The .NET proxy was recorded without tools for 15 s, every second time."""
    slowest = 0.0
    for round_number in range(20):
        begun = time.monotonic()
        client = proxies.start()
        client.initialize()
        assert "echo" in client.tools() or round_number == 0
        client.wait_connected()
        assert client.call("echo", text="hi") == "hi"
        slowest = max(slowest, time.monotonic() - begun)
        client.close_stdin()
        client.exit_code()

    assert slowest < 10, "no session had to wait for what another one left behind"


def test_the_host_listens_where_it_was_told_to(proxies: Proxies, bench: Workbench) -> None:
    port = free_port()

    client = proxies.connected("--port", str(port))

    assert client.health()["hostEndpoint"].endswith(f":{port}/mcp")


# --- in a row ---------------------------------------------------------------------------------------------------------


def test_a_proxy_behind_a_proxy_is_a_server_like_any_other(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected("--", COMMAND, "mcp", "start")

    client.wait_health(lambda _: "echo" in client.tools(), "with the tools of the Host behind both")

    assert client.call("echo", text="deep") == "deep"
    report = client.health()
    assert report["proxy"]["processId"] == client.pid, "its own health, not that of the one behind it"
    assert (report["proxy"]["upstream"]["kind"], report["proxy"]["upstream"]["name"]) == ("command", "uno-devserver")


def test_each_edit_restarts_the_users_host_once_and_is_a_crash_to_no_session(proxies: Proxies) -> None:
    machine = proxies.machine
    addin = machine.workspace / ".devtools" / "addins" / "greeter.py"
    write(addin, GREETER.format(0))
    machine.run("start", "--trust")
    try:
        sessions = [hot(proxies) for _ in range(2)]
        for edit in range(1, 6):
            # when both call at once after an edit, or one alone
            write(addin, GREETER.format(edit))
            before = [len(session.stderr) for session in sessions]
            calling = sessions if edit % 2 else sessions[:1]
            begun = [session.begin("tools/call", {"name": "greet", "arguments": {}}) for session in calling]
            for session, call in zip(calling, begun, strict=True):
                session.answer(call)

            # then both have the new code, after one restart
            for session in sessions:
                session.wait(lambda: session.call_result("greet")["content"][0]["text"] == str(edit), f"edit {edit}")  # noqa: B023
            said = "".join(session.stderr[at:] for session, at in zip(sessions, before, strict=True))
            assert said.count("Started a Host") == 1, said
            assert "has gone" not in said
            assert "fail:" not in said
    finally:
        machine.run("stop")


def test_a_crash_behind_two_proxies_is_healed_by_the_one_that_saw_it(proxies: Proxies, bench: Workbench) -> None:
    port = free_port()
    near = proxies.connected("--http", str(port))
    far = proxies.connected("--upstream-url", f"http://127.0.0.1:{port}/mcp")

    os.kill(near.health()["hostProcessId"], signal.SIGKILL)

    near.wait_connected(generation=2)
    assert far.call("echo", text="healed") == "healed"
    assert far.health()["proxy"]["generation"] == 1


# --- a command for many -----------------------------------------------------------------------------------------------


class HttpClient(TestPeer):
    """A client of the proxy's face over HTTP, of the era that the case of its name says."""

    def __init__(self, name: str) -> None:
        super().__init__(name, modern=name.isupper(), answer=lambda *_: {"action": name}, elicitation={})

    async def connect(self, port: int) -> None:
        url = f"http://127.0.0.1:{port}/mcp"
        self.connection = await connect_http(url, self, modern_first=self.client.protocol_version == MODERN)

    async def call(self, tool: str, **arguments: object) -> str:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "the same for all"}}
        result = json.loads(bytes(await self._completed(params)))
        return str(result["content"][0]["text"])

    async def _completed(self, params: Params) -> msgspec.Raw:
        """A modern client is asked by the result, and calls again."""
        result = await self.connection.request("tools/call", params, self)
        said = json.loads(bytes(result))
        if said.get("resultType") != "input_required":
            return result
        answers = {name: {"action": self.client.name} for name in said["inputRequests"]}
        again = {**params, "inputResponses": answers, "requestState": said["requestState"]}
        return await self.connection.request("tools/call", again, self)


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_clients_over_http_share_a_command_and_each_has_its_own_answers_progress_and_questions(
    proxies: Proxies, era: str
) -> None:
    port = free_port()
    client = proxies.start("--http", str(port), "--", *odd_server(era=era))
    client.initialize(capabilities={"elicitation": {}})
    client.wait_connected()
    others = [HttpClient(name) for name in ("a", "B", "c", "D")]
    question = {"message": "Who?", "requestedSchema": {"type": "object"}}

    async def converse() -> None:
        for other in others:
            await other.connect(port)
        calls = [(other, number) for number in range(10) for other in others]
        said = await asyncio.gather(*(other.call("echo", text=f"{other.client.name}{n}") for other, n in calls))
        await asyncio.gather(*(other.call("progress", steps=2) for other in others))
        asked = [json.loads(await other.call("ask", method="elicitation/create", params=question)) for other in others]
        await asyncio.gather(*(other.connection.close() for other in others))

        assert said == [f"{other.client.name}{number}" for other, number in calls]
        assert [answer["result"]["action"] for answer in asked] == ["a", "B", "c", "D"]

    asyncio.run(converse())

    for other in others:
        progress = [params for method, params in other.heard if method == "notifications/progress"]
        assert [each["progress"] for each in progress] == [1, 2]
        assert {each["progressToken"] for each in progress} == {"the same for all"}
    assert client.asked == []
    assert client.call("echo", text="still there") == "still there"


# --- a server at an address -------------------------------------------------------------------------------------------


def test_a_server_at_an_address_is_relayed_and_left_running(proxies: Proxies, bench: Workbench, tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", str(bench.file)) as host:
        client = proxies.connected("--upstream-url", host.url)

        assert client.call("echo", text="there") == "there"
        assert "uno_app_select_solution" not in client.tools()
        assert client.health()["proxy"]["upstream"]["owned"] is False
        client.close_stdin()
        client.exit_code()

        assert host.process.poll() is None


def test_a_server_at_an_address_that_comes_later_is_found(proxies: Proxies, bench: Workbench, tmp_path: Path) -> None:
    port = free_port()
    client = proxies.start("--upstream-url", f"http://127.0.0.1:{port}/mcp", prefix=SHORT_PAUSES)
    client.initialize()
    report = client.wait_health(lambda report: "HostUnreachable" in str(report["issues"]), "aware of nobody there")
    assert str(port) in str(report["issues"])

    with BundledHost(tmp_path, "--addins", str(bench.file), port=port):
        client.wait_health(lambda _: not client.call_result("echo", text="x").get("isError"), "connected")
        assert client.call("echo", text="there") == "there"
