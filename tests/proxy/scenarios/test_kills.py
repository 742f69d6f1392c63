"""A server that is killed again and again while calls are under way: each has one answer, and a true one."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from support.hosts import is_running
from support.proxies import ERAS, Proxies, ProxyClient
from support.rpc_lines import text_of
from support.scripted_servers import ScriptedServer
from support.waiting import wait_for

from .conftest import Workbench

KILLS = 8
CALLS = 8  # of each of the two tools


def begin(client: ProxyClient, tool: str, kill: int) -> dict[str, int | str]:
    """Several calls; each says something of its own."""
    texts = [f"{tool} {kill}.{number}" for number in range(CALLS)]
    return {text: client.begin("tools/call", {"name": tool, "arguments": {"text": text}}) for text in texts}


def wait_received(server: ScriptedServer, tool: str, count: int) -> None:
    wait_for(lambda: len(server.calls(tool)) >= count)


def texts_of(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["params"]["arguments"]["text"] for line in lines]


@ERAS
def test_a_server_that_is_killed_again_and_again_leaves_each_call_with_one_true_answer(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server", "write", read_only=("read",))
    server.close("write")
    client = proxies.connected("--", *server.command(), modern=modern)

    for kill in range(KILLS):
        server.close("read")
        reads, writes = begin(client, "read", kill), begin(client, "write", kill)
        wait_received(server, "read", CALLS * (2 * kill + 1))
        wait_received(server, "write", CALLS * (kill + 1))

        os.kill(server.starts[-1], signal.SIGKILL)

        for text, call in writes.items():
            result = client.answer(call)["result"]
            assert result["isError"] is True, text
            assert "outcome is unknown" in result["content"][0]["text"]
        wait_received(server, "read", CALLS * 2 * (kill + 1))
        assert not any(client.has_answer(call) for call in reads.values())
        server.open("read")
        assert [text_of(client.answer(call)) for call in reads.values()] == list(reads)

    assert len(server.starts) == KILLS + 1
    wrote, read = texts_of(server.calls("write")), texts_of(server.calls("read"))
    assert len(wrote) == len(set(wrote)) == KILLS * CALLS, "none was made twice"
    assert sorted(read) == sorted([*set(read), *set(read)]), "each was made twice, and no more"
    assert client.health()["proxy"]["restarts"] == KILLS


def test_a_server_that_is_killed_at_any_moment_leaves_each_call_with_one_answer(
    proxies: Proxies, tmp_path: Path
) -> None:
    """While it is killed, calls are being written, run and answered."""
    server = ScriptedServer(tmp_path / "server", "write", read_only=("read",))
    client = proxies.connected("--", *server.command())

    for kill in range(KILLS):
        calls = {**begin(client, "read", 2 * kill), **begin(client, "write", 2 * kill)}
        os.kill(server.starts[-1], signal.SIGKILL)
        calls |= {**begin(client, "read", 2 * kill + 1), **begin(client, "write", 2 * kill + 1)}

        for text, call in calls.items():
            result = client.answer(call)["result"]
            if text.startswith("read") or not result.get("isError"):
                assert result["content"][0]["text"] == text
            else:
                assert "outcome is unknown" in result["content"][0]["text"]
        client.wait_connected(kill + 2)

    wrote = texts_of(server.calls("write"))
    assert len(wrote) == len(set(wrote)), "none was made twice"
    assert client.call("say", text="on") == "on"


def test_a_host_that_is_killed_leaves_each_call_with_one_true_answer(
    proxies: Proxies, bench: Workbench, tmp_path: Path
) -> None:
    client = proxies.connected()

    for generation in range(1, 3):
        begun, until = tmp_path / f"begun-{generation}", tmp_path / f"until-{generation}"
        arguments = {"begun": str(begun), "until": str(until)}
        calls = {
            name: [client.begin("tools/call", {"name": name, "arguments": arguments}) for _ in range(CALLS)]
            for name in ("hold", "hold_again")
        }
        wait_for(begun.exists)
        wait_for(lambda begun=begun: len(begun.read_text().split()) == 2 * CALLS)  # type: ignore[misc]
        host = client.health()["hostProcessId"]

        os.kill(host, signal.SIGKILL)
        until.touch()

        for call in calls["hold"]:
            result = client.answer(call)["result"]
            assert result["isError"] is True
            assert "outcome is unknown" in result["content"][0]["text"]
        assert [text_of(client.answer(call)) for call in calls["hold_again"]] == ["held"] * CALLS
        assert len(begun.read_text().split()) == 3 * CALLS, "only those that may be repeated were"
        assert not is_running(host)
