from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.signals import SIGHUP
from support.waiting import wait_for
from uno_devserver.proxy.health.status_file import running_proxies, status_of
from uno_devserver.proxy.lists.catalogue import Catalogue, identity_of, save
from uno_devserver.proxy.lists.merge import Offered, entries
from uno_devserver.proxy.main import _end_children
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.system import run
from uno_devserver.system.folders import folders

from .front_process import PATIENCE, FrontProcess, command

GONE_SECONDS = 0.3  # what is promised from the end of the input on
BUSY = 20  # times longer on a machine that runs other tests

ECHO = {"name": "echo", "arguments": {"x": 1}}


def test_the_catalogue_is_there_at_the_first_question(tmp_path: Path) -> None:
    offered = Offered(tools=entries([("build", b'{"name":"build"}')]))
    catalogue = Catalogue(offered, {}, {"experimental": {"x": {}}}, "Say please.", time.time(), sdk_version="6.5.31")
    save(folders().state, identity_of(ProxyOptions(str(tmp_path))), catalogue)

    with FrontProcess(tmp_path) as proxy:
        hello = proxy.ask("initialize", {"protocolVersion": "2025-11-25"})
        tools = [tool["name"] for tool in proxy.ask("tools/list")["tools"]]
    with FrontProcess(tmp_path, "--force_fallback") as proxy:
        strange = [tool["name"] for tool in proxy.ask("tools/list")["tools"]]
    with FrontProcess(tmp_path, "--wait_tools") as proxy:
        passed_on = proxy.ask("tools/list")

    assert "build" not in strange, "nobody knows yet which workspace it will be"
    assert "echo" in passed_on
    assert hello["instructions"].endswith("Say please.")
    assert hello["capabilities"]["experimental"] == {"x": {}}
    assert tools == ["uno_health", "uno_app_select_solution", "build", "uno_discover_tools", "uno_execute_tool"]


def test_the_front_answers_and_can_be_found_while_the_first_start_takes_long(tmp_path: Path) -> None:
    with FrontProcess(tmp_path, env={"ODD_ENGINE": "sleeps"}) as proxy:
        assert proxy.ask("ping") == {}
        assert status_of(folders().state, proxy.process.pid) is not None, "from the first answer on"
        assert _health(proxy)["connectionState"] == "Initializing"
        proxy.send({"jsonrpc": "2.0", "id": "held", "method": "tools/call", "params": ECHO})
        for number in range(3):
            assert proxy.ask("ping", None, number) == {}
            assert proxy.ask("tools/list", None, number)["tools"]
        proxy.close()
        assert running_proxies(folders().state) == ()


def test_what_the_front_cannot_answer_the_engine_does_in_order(tmp_path: Path) -> None:
    with FrontProcess(tmp_path) as proxy:
        assert proxy.ask("ping") == {}
        for number in range(20):
            proxy.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"n": number}})

        assert [proxy.heard()["result"]["echo"]["n"] for _ in range(20)] == list(range(20))


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("oddity", ["fails", "cannot be made", "breaks"])
def test_the_front_survives_the_engine_and_says_what_happened(tmp_path: Path, oddity: str) -> None:
    with FrontProcess(tmp_path, env={"ODD_ENGINE": oddity}) as proxy:
        proxy.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if oddity == "breaks":
            proxy.send({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": ECHO})
        wait_for(lambda: _health(proxy)["connectionState"] == "Degraded")
        health, error = _health(proxy), proxy.ask("tools/call", ECHO)
        assert proxy.ask("ping") == {}
        assert proxy.close() < GONE_SECONDS * BUSY
        log = proxy.errors()

    assert error["code"] == -32603
    assert "Restart" in error["message"]
    assert health["status"] == "Unhealthy"
    assert any("RuntimeError" in issue["message"] for issue in health["issues"])
    assert "RuntimeError" in log
    assert "Traceback" not in log


def test_what_waited_for_an_engine_that_never_came_is_answered(tmp_path: Path) -> None:
    with FrontProcess(tmp_path, "--wait_tools", env={"ODD_ENGINE": "fails"}) as proxy:
        assert proxy.ask("tools/call", ECHO)["code"] == -32603
        proxy.send({"jsonrpc": "2.0", "id": 1, "result": {}})  # is no question
        assert proxy.ask("tools/list", None, 2)["tools"]


def _health(proxy: FrontProcess) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(proxy.ask("tools/call", {"name": "uno_health"})["content"][0]["text"])
    return report


def test_nothing_but_the_protocol_reaches_the_client(tmp_path: Path) -> None:
    """Neither what Python prints nor what a child does; and a child does not read what the client writes."""
    with FrontProcess(tmp_path, env={"ODD_ENGINE": "prints"}) as proxy:
        assert proxy.ask("tools/call", ECHO, 1) == {"echo": ECHO}
        assert proxy.ask("tools/call", ECHO, 2) == {"echo": ECHO}
        proxy.close()
        log = proxy.errors()

    assert "a stray line" in log
    assert "a child" in log


def test_a_message_of_16_megabytes_passes_and_a_longer_one_is_refused(tmp_path: Path) -> None:
    text = "x" * 16_000_000
    with FrontProcess(tmp_path) as proxy:
        assert proxy.ask("tools/call", {"name": "echo", "text": text})["echo"]["text"] == text
        error = proxy.ask("tools/call", {"name": "echo", "text": text + text}, 2)
        assert proxy.ask("ping", None, 3) == {}

    assert error["code"] == -32600


def test_pieces_of_characters_and_lines_of_all_systems_are_put_together(tmp_path: Path) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "grün"}}
    line = json.dumps(message, ensure_ascii=False).encode() + b"\r\n"
    with FrontProcess(tmp_path) as proxy:
        for at in range(len(line)):
            proxy.send(line[at : at + 1])

        assert proxy.heard()["result"] == {"echo": {"name": "grün"}}


def test_answers_of_front_and_engine_to_a_batch_come_in_one_line(tmp_path: Path) -> None:
    with FrontProcess(tmp_path) as proxy:
        proxy.ask("initialize", {"protocolVersion": "2025-03-26"})
        calls = [{"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": ECHO} for name in ("a", 2)]
        proxy.send([calls[0], {"jsonrpc": "2.0", "id": "p", "method": "ping"}, calls[1]])

        assert {answer["id"] for answer in proxy.heard()} == {"a", 2, "p"}


def test_where_nothing_can_be_polled_it_answers_and_ends_all_the_same(tmp_path: Path) -> None:
    """As on Windows."""
    with FrontProcess(tmp_path, env={"AS_ON_WINDOWS": "1"}) as proxy:
        for number in range(10):
            assert proxy.ask("tools/call", ECHO, number) == {"echo": ECHO}
        assert len(proxy.ask("tools/call", {"text": "x" * 1_000_000})["echo"]["text"]) == 1_000_000
        proxy.send(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
        assert proxy.close() < GONE_SECONDS * BUSY

        assert proxy.heard()["id"] == "last"


# --- the end --------------------------------------------------------------------------------------------------------


def test_a_request_without_a_line_end_is_answered_before_the_end(tmp_path: Path) -> None:
    with FrontProcess(tmp_path) as proxy:
        proxy.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        proxy.close()

        assert proxy.heard()["result"] == {}
        assert proxy.process.returncode == 0


def test_what_the_engine_did_not_come_to_is_refused_at_the_end(tmp_path: Path) -> None:
    with FrontProcess(tmp_path, env={"ODD_ENGINE": "sleeps"}) as proxy:
        proxy.send({"jsonrpc": "2.0", "id": "early", "method": "tools/call", "params": ECHO})
        proxy.close()

        answer = proxy.heard()
    assert (answer["id"], answer["error"]["code"]) == ("early", -32603)


@pytest.mark.parametrize("oddity", ["", "hangs"])
@pytest.mark.parametrize("moment", ["at once", "answered", "during a call"])
def test_it_is_gone_when_its_input_ends_whatever_the_engine_does(tmp_path: Path, moment: str, oddity: str) -> None:
    with FrontProcess(tmp_path, env={"ODD_ENGINE": oddity}) as proxy:
        proxy.ask("ping")
        if moment != "at once":
            proxy.ask("tools/call", ECHO)
        if moment == "during a call":
            proxy.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "slow"}})

        assert proxy.close() < GONE_SECONDS * BUSY
        assert proxy.process.returncode == 0


@pytest.mark.parametrize("unread", [False, True])
@pytest.mark.parametrize("as_on_windows", ["", "1"], ids=["", "as on Windows"])
def test_it_is_gone_also_when_the_loop_of_the_engine_hangs(tmp_path: Path, unread: bool, as_on_windows: str) -> None:
    with FrontProcess(tmp_path, env={"AS_ON_WINDOWS": as_on_windows}) as proxy:
        proxy.ask("tools/call", ECHO)
        proxy.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "block"}})
        time.sleep(0.05)  # it hangs
        if unread:
            proxy.send({"jsonrpc": "2.0", "id": 3, "method": "ping"})

        assert proxy.close() < GONE_SECONDS * BUSY
        assert proxy.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, SIGHUP])
@pytest.mark.parametrize("oddity", ["", "hangs"])
def test_a_signal_ends_it_as_well(tmp_path: Path, number: int, oddity: str) -> None:
    with FrontProcess(tmp_path, env={"ODD_ENGINE": oddity}) as proxy:
        proxy.ask("tools/call", ECHO)
        began = time.monotonic()

        proxy.process.send_signal(number)

        assert proxy.process.wait(PATIENCE) == 0
        assert time.monotonic() - began < GONE_SECONDS * BUSY


def test_a_signal_that_was_to_be_ignored_is(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    with FrontProcess(tmp_path, preexec_fn=ignore) as proxy:
        proxy.ask("tools/call", ECHO)

        status = Path(f"/proc/{proxy.process.pid}/status").read_text()

    ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    assert int(ignored, 16) & 1 << signal.SIGHUP - 1


def test_a_client_that_reads_nothing_can_still_close_its_end(tmp_path: Path) -> None:
    with FrontProcess(tmp_path) as proxy:
        proxy.send(*({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(500)))

        assert proxy.close() < GONE_SECONDS * BUSY


def test_a_client_that_leaves_too_much_unread_is_not_read_and_can_still_go(tmp_path: Path) -> None:
    """Its answers are kept up to 64 MiB, and then what it writes waits in the pipe."""
    large = {"name": "echo", "text": "x" * 4_000_000}
    with FrontProcess(tmp_path) as proxy:
        stdin = proxy.process.stdin
        assert stdin
        os.set_blocking(stdin.fileno(), False)
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": large}).encode() + b"\n"
        data = line * 30
        taken = _write_until_stuck(stdin.fileno(), data)

        assert 64 * 1024 * 1024 <= taken < len(data)
        assert proxy.close() < GONE_SECONDS * BUSY


def _write_until_stuck(handle: int, data: bytes) -> int:
    """How much was taken before nothing was taken for a while."""
    taken, last = 0, time.monotonic()
    while taken < len(data) and time.monotonic() - last < 3.0:
        try:
            taken += os.write(handle, data[taken : taken + 65_536])
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.001)
    return taken


def test_a_client_that_reads_nothing_and_writes_nothing_is_given_up_in_the_end(tmp_path: Path) -> None:
    with FrontProcess(tmp_path, env={"ODD_ENGINE": "floods"}) as proxy:
        assert proxy.process.wait(PATIENCE) == 0
        assert "unread" in proxy.errors()


def test_a_client_that_has_read_everything_is_read_again(tmp_path: Path) -> None:
    """More than is ever kept for a client passes, as long as it reads."""
    large = {"name": "echo", "text": "x" * 4_000_000}
    with FrontProcess(tmp_path) as proxy:
        for number in range(17):
            assert len(proxy.ask("tools/call", large, number)["echo"]["text"]) == 4_000_000


def test_a_client_that_closes_our_output_is_gone(tmp_path: Path) -> None:
    with FrontProcess(tmp_path) as proxy:
        proxy.ask("tools/call", ECHO)
        assert proxy.process.stdout

        proxy.process.stdout.close()

        assert proxy.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("unread", [False, True])
def test_a_client_that_talks_over_sockets_may_go_with_something_unread(tmp_path: Path, unread: bool) -> None:
    """As Node's children do; whoever reads there after that gets an error, and no end."""
    client, server = socket.socketpair()
    with open(tmp_path / "errors", "wb") as errors:
        process = subprocess.Popen(
            command(), cwd=tmp_path, stdin=server.fileno(), stdout=server.fileno(), stderr=errors
        )
    server.close()
    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}\n')
    assert client.recv(1, 0 if not unread else socket.MSG_PEEK)
    if not unread:
        client.recv(65_536)

    client.close()

    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "errors").read_bytes() == b""


def test_to_fill_the_catalogue_no_client_is_needed(tmp_path: Path) -> None:
    result = subprocess.run(
        command("--only_catalogue"),
        cwd=tmp_path,
        env={**os.environ, "ODD_ENGINE": "returns"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (result.returncode, result.stdout) == (3, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_input_or_output_it_says_so(tmp_path: Path, closed: str) -> None:
    console_script = str(Path(sys.executable).parent / "uno-devserver")
    result = subprocess.run(
        ["sh", "-c", f'"$0" mcp start {closed}', console_script],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert result.returncode == 1
    assert b"closed" in result.stderr
    assert b"Traceback" not in result.stderr


def test_without_stderr_it_works_too(tmp_path: Path) -> None:
    shell = ("sh", "-c", 'exec "$0" "$@" 2>&-')
    with FrontProcess(tmp_path, prefix=shell, env={"ODD_ENGINE": "prints"}) as proxy:
        assert proxy.ask("tools/call", ECHO) == {"echo": ECHO}
        proxy.close()

        assert proxy.process.returncode == 0


def test_at_the_end_all_children_are_killed_by_the_module_that_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is looked up by its name, because importing it would cost time where there are no children."""
    ended: list[bool] = []
    monkeypatch.setattr(run, "stop_all", lambda: ended.append(True))

    _end_children()

    assert ended == [True]
