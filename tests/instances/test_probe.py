"""What a Host says of itself, and that a registration is not believed: real processes that answer as Hosts do."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.golden import GOLDEN
from support.stand_in_host import (
    Rule,
    StandInHost,
    answer,
    bundled_host,
    dotnet_host,
    http_records,
    recorded,
)
from uno_devserver.instances import probe as probe_module
from uno_devserver.instances.child_process import Child, Output, spawn
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.probe import (
    ADDINS_WAIT_SECONDS,
    PROBE_SECONDS,
    HostAddIn,
    Probe,
    kind_of,
    probe,
    probe_loaded,
    wait_until_loaded,
)
from uno_devserver.instances.registry import RegisteredServer

# For a Host that answers: a busy machine may be slow. For one that does not: no longer than needed.
SECONDS = 20.0
BRIEF = 0.5


def probed(tmp_path: Path, rules: Sequence[Rule], seconds: float = SECONDS, address: str = "127.0.0.1") -> Probe:
    with StandInHost(tmp_path, rules, address) as host:
        return probe(host.server(), seconds)


# --- the bundled Host -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_bundled_host_tells_all_of_itself_on_its_health_page(tmp_path: Path, address: str) -> None:
    found = probed(tmp_path, bundled_host(), address=address)

    assert found == Probe(
        answers=True,
        mcp=True,
        kind=HostKind.BUNDLED,
        status="Healthy",
        version="0.2.0",
        add_ins=(HostAddIn("colours", "1.0", "/ws/colours.py", True, None),),
        tool_count=6,  # without the one that tells this
        ide_channel_connected=True,
    )
    assert found.connected


def test_the_reason_why_an_add_in_was_not_loaded_is_passed_on(tmp_path: Path) -> None:
    broken = {"name": "b", "version": None, "assemblyPath": "/ws/b.py", "loaded": False, "error": "SyntaxError\n"}

    found = probed(tmp_path, bundled_host(status="Degraded", addIns=[broken]))

    assert (found.status, found.add_ins) == ("Degraded", (HostAddIn("b", None, "/ws/b.py", False, "SyntaxError"),))


def test_the_path_of_an_add_in_is_told_once_also_if_the_reason_names_it() -> None:
    for reason in ("no such luck", "/ws/b.py does not exist"):
        failure = HostAddIn("b", None, "/ws/b.py", False, reason).failure

        assert (failure.count("/ws/b.py"), reason in failure) == (1, True)


def test_a_stream_at_mcp_that_never_ends_does_not_hold_up_the_probe(tmp_path: Path) -> None:
    stream = answer("GET /mcp", 200, ": hello\n\n", hold=True, headers={"Content-Type": "text/event-stream"})

    assert probed(tmp_path, [bundled_host()[0], stream]).connected


def test_another_bundled_host_on_the_port_is_not_taken_for_the_registered_one(tmp_path: Path) -> None:
    with StandInHost(tmp_path, bundled_host()) as host:
        found = probe(host.server().replace(process_id=1), SECONDS)

    assert found == Probe(problem=f"is answered by process {host.pid}, not by the registered 1")


@pytest.mark.parametrize(
    "body",
    ["Healthy", "[]", '{"status": "UP"}', '{"processId": "x", "addIns": []}', "{", "[" * 100_000],
    ids=lambda body: body[:20],
)
def test_a_health_page_of_another_kind_does_not_make_a_bundled_host(tmp_path: Path, body: str) -> None:
    found = probed(tmp_path, [answer("GET /health", 200, body), answer("GET /mcp", 404)])

    assert found == Probe(answers=True)


@pytest.mark.parametrize("wrong", [None, "x", {"a": 1}, [None, 3, {}], 5], ids=repr)
def test_fields_of_another_type_are_as_good_as_absent(tmp_path: Path, wrong: object) -> None:
    fields = ("status", "hostVersion", "addIns", "ideChannelConnected", "toolCount", "problems")

    found = probed(tmp_path, bundled_host(**dict.fromkeys(fields, wrong)))

    assert (found.connected, found.kind, found.ide_channel_connected) == (True, HostKind.BUNDLED, None)
    assert found.tool_count == (wrong - 1 if isinstance(wrong, int) else 0)
    assert len(found.add_ins) == (1 if isinstance(wrong, list) else 0)
    assert found.busy == ()


def test_what_a_bundled_host_says_of_hanging_calls_is_heard(tmp_path: Path) -> None:
    found = probed(tmp_path, bundled_host(status="Degraded", problems=["add-in notes: all busy", ""]))

    assert found.busy == ("add-in notes: all busy",)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process for a while")
def test_the_wait_for_add_ins_ends_in_time_even_if_the_host_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandInHost(tmp_path, bundled_host(loading=True)) as host:
        server = host.server()
        monkeypatch.setattr(probe_module, "LOADING_SECONDS", BRIEF)
        monkeypatch.setattr(time, "sleep", lambda _seconds: os.kill(server.process_id, signal.SIGSTOP))
        begun = time.monotonic()
        try:
            found = probe_loaded(server)
        finally:
            os.kill(server.process_id, signal.SIGCONT)

    assert (found.answers, found.loading, found.tool_count) == (True, True, 6)
    assert time.monotonic() - begun < PROBE_SECONDS


# --- a .NET Host ----------------------------------------------------------------------------------------------------


def test_a_dotnet_host_is_asked_for_its_tools_and_its_add_ins_as_an_mcp_client_would(tmp_path: Path) -> None:
    with StandInHost(tmp_path, dotnet_host()) as host:
        found = probe(host.server(), SECONDS)
        requests = host.requests()

    path = "{CACHE}/sample.addin/1.0.0/tools/devserver/Sample.AddIn.dll"
    assert found == Probe(
        answers=True,
        mcp=True,
        kind=HostKind.DOTNET,
        status="Healthy",
        version="6.0.0-real",
        add_ins=(HostAddIn("Sample.AddIn", "1.0.0", path, True, None),),
        tool_count=len(_recorded_tools()) - 1,  # without uno_health
        ide_channel_connected=False,
    )
    session = "Mcp-Session-Id: MhnT3I8qx1H-G5XtT_CozQ"
    assert [session in request for request in requests] == [False, False, False, True, True, True, True]
    assert requests[-1].startswith("DELETE /mcp "), "the session is closed"


def _recorded_tools() -> list[Any]:
    body = http_records("with-addin")["tools/list"]["responseBody"]
    tools: list[Any] = json.loads(body.partition("data: ")[2])["result"]["tools"]
    assert len(tools) > 5
    return tools


def test_an_add_in_that_a_dotnet_host_could_not_load_is_seen(tmp_path: Path) -> None:
    record = json.loads((GOLDEN / "host" / "addins" / "good-plus-missing.json").read_text("utf-8"))

    found = probed(tmp_path, dotnet_host(call=answer("uno_health", 200, record["uno_health"])))

    assert found.status == "Degraded"
    assert [(addin.name, addin.loaded) for addin in found.add_ins] == [("Sample.AddIn", True), ("None", False)]
    assert found.add_ins[1].error
    assert found.add_ins[1].error.endswith("cannot find the file specified.")


def test_a_dotnet_host_without_an_add_in_for_it_has_no_mcp(tmp_path: Path) -> None:
    record = http_records("without-addin")
    rules = [recorded("GET /health", record["GET /unknown"]), recorded("GET /mcp", record["GET /mcp no Accept"])]

    found = probed(tmp_path, rules)

    assert found == Probe(answers=True)
    assert not found.connected


def test_a_stranger_on_the_port_of_a_dotnet_host_is_not_taken_for_it(tmp_path: Path) -> None:
    with StandInHost(tmp_path, dotnet_host()) as host:
        found = probe(host.server().replace(process_id=1), SECONDS)

    assert found == Probe(problem="is answered by another process than the registered 1")


def test_a_long_list_of_tools_is_counted_page_by_page(tmp_path: Path) -> None:
    pages = [
        answer('"cursor": "two"', 200, _result(2 + 1, {"tools": [{"name": "c"}]})),
        answer("tools/list", 200, _result(2, {"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": "two"})),
    ]
    first, *rest = dotnet_host(tools=pages[0])

    assert probed(tmp_path, [first, *rest[:-2], pages[1], rest[-1]]).tool_count == 3


def test_a_list_of_tools_without_end_is_given_up(tmp_path: Path) -> None:
    # An empty id answers every request.
    endless = answer("tools/list", 200, {"id": "", "result": {"tools": [{"name": "a"}], "nextCursor": "again"}})

    assert probed(tmp_path, dotnet_host(tools=endless)).tool_count == 20


def test_an_answer_may_be_plain_json_and_a_stream_may_stay_open_behind_it(tmp_path: Path) -> None:
    plain = answer("tools/list", 200, _result(2, {"tools": []}), headers={"Content-Type": "application/json"})
    events = f": ping\r\n\r\nevent: message\r\ndata: {json.dumps(_result(1, {}))}\r\n\r\n"
    open_stream = answer('"initialize"', 200, events, hold=True, headers={"Content-Type": "text/event-stream"})

    found = probed(tmp_path, dotnet_host(initialize=open_stream, tools=plain))

    assert (found.connected, found.tool_count, found.kind) == (True, 0, None)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (answer('"initialize"', 500), "'initialize' at /mcp was answered with HTTP status 500"),
        (answer('"initialize"', 200, "hello"), "'initialize' at /mcp was answered with HTTP status 200"),
        (
            answer('"initialize"', 400, {"id": "", "error": {"code": -32000, "message": "Bad Request: no"}}),
            "'initialize' at /mcp was answered with HTTP status 400: Bad Request: no",
        ),
        (
            answer('"initialize"', 200, {"id": 1, "error": {"code": -1, "message": "x" * 10_000}}),
            "'initialize' at /mcp was answered with HTTP status 200: " + "x" * 300,
        ),
    ],
    ids=["500", "no JSON", "an error of the transport", "a long error"],
)
def test_a_host_that_answers_initialize_with_an_error_is_not_connected(tmp_path: Path, rule: Rule, error: str) -> None:
    found = probed(tmp_path, dotnet_host(initialize=rule))

    assert (found.answers, found.mcp, found.error, found.connected) == (True, True, error, False)


def test_what_a_host_has_said_before_its_health_failed_is_kept(tmp_path: Path) -> None:
    found = probed(tmp_path, dotnet_host(call=answer("uno_health", 500)))

    assert (found.kind, found.tool_count, found.connected) == (HostKind.DOTNET, len(_recorded_tools()) - 1, False)
    assert found.version
    assert found.error == "'tools/call' at /mcp was answered with HTTP status 500"


def test_a_host_that_does_not_list_its_tools_in_time_is_not_connected(tmp_path: Path) -> None:
    never = answer("tools/list", 200, "", hold=True)

    found = probed(tmp_path, dotnet_host(tools=never), seconds=3 * BRIEF)

    assert (found.answers, found.mcp, found.problem) == (True, True, "gave no answer in time")
    assert not found.connected


# --- nobody, or somebody else ---------------------------------------------------------------------------------------


def test_a_process_that_listens_to_nobody_is_refused_by_its_port(tmp_path: Path) -> None:
    with StandInHost(tmp_path, []) as host:
        server = host.server()

    assert probe(server, SECONDS) == Probe(problem="refuses connections")


def test_a_port_that_swallows_everything_costs_no_more_than_the_bound(tmp_path: Path) -> None:
    begun = time.monotonic()

    found = probed(tmp_path, [], seconds=BRIEF)

    assert found == Probe(problem="gave no answer in time")
    assert time.monotonic() - begun < 10 * BRIEF


def test_something_else_than_http_is_told_as_such(tmp_path: Path) -> None:
    found = probed(tmp_path, [Rule("", "220 mail.example ESMTP\r\n\r\n")])

    assert found == Probe(problem="speaks something else than HTTP")


@pytest.mark.parametrize("port", [0, -1, 70000])
def test_a_registration_with_an_impossible_port_is_no_host(port: int) -> None:
    server = RegisteredServer(1, 0, None, "", port, "", "", None)

    assert probe(server, SECONDS) == Probe(problem="is no port")


def _result(number: int, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def test_an_address_that_swallows_everything_leaves_time_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uno_devserver.instances.probe.ADDRESSES", ("127.0.0.1", "::1"))
    with StandInHost(tmp_path, bundled_host(), "::1") as host, socket.create_server(("127.0.0.1", host.port)):
        assert probe(host.server()).connected


@pytest.mark.parametrize(
    ("rules", "kind"), [(bundled_host(), HostKind.BUNDLED), ([answer("GET /health", 404)], HostKind.DOTNET)]
)
def test_a_host_whose_command_line_tells_nothing_is_bundled_if_it_has_the_health_page(
    tmp_path: Path, rules: Sequence[Rule], kind: HostKind
) -> None:
    with StandInHost(tmp_path, rules) as host:
        assert kind_of(host.pid, host.port) is kind


# --- add-ins that load -----------------------------------------------------------------------------------------------


PATIENCE = 60.0  # on a busy machine


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """A process that lives."""
    output = Output(str(tmp_path / "child.log"))
    child = spawn([sys.executable, "-c", "import time; time.sleep(60)"], folder="/", environ=os.environ, output=output)
    yield child
    child.stop()
    output.close()


def _told(child: Child, tmp_path: Path, rules: list[Rule]) -> Probe | None:
    with StandInHost(tmp_path, rules) as host:
        return wait_until_loaded(child, host.pid, host.port)


def test_add_ins_that_are_loaded_are_told_at_once(child: Child, tmp_path: Path) -> None:
    told = _told(child, tmp_path, bundled_host(loading=False))

    assert told is not None
    assert [(addin.name, addin.loaded) for addin in told.add_ins] == [("colours", True)]
    assert not told.loading


@pytest.mark.parametrize(
    "rules",
    [bundled_host(loading=True), [], [answer("GET /health", 404)]],
    ids=["still loads", "says nothing", "has no such page"],
)
def test_nobody_waits_for_long(child: Child, tmp_path: Path, rules: list[Rule]) -> None:
    begun = time.monotonic()

    told = _told(child, tmp_path, rules)

    assert ADDINS_WAIT_SECONDS <= time.monotonic() - begun < ADDINS_WAIT_SECONDS + PATIENCE
    assert (told is not None and told.loading) == (rules == bundled_host(loading=True))


def test_a_host_that_has_died_is_not_waited_for(child: Child, tmp_path: Path) -> None:
    child.stop()

    assert _told(child, tmp_path, bundled_host(loading=True)) is None


def test_another_process_on_the_port_tells_nothing(child: Child, tmp_path: Path) -> None:
    with StandInHost(tmp_path, bundled_host(loading=False)) as host:
        assert wait_until_loaded(child, host.pid + 1, host.port) is None
