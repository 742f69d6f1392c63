"""A server behind the proxy says too much: every request is answered, and the proxy's memory stays bounded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from support.machine import Machine
from support.proxies import Proxies, ProxyClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

MIB = 1 << 20
MEMORY = 300 * MIB  # the most that a proxy may take: a line of 64 MiB, its copy, and the program itself
ANSWER_SECONDS = 30.0  # 70 MiB take half a second, and several on a busy machine
MOST_TOOLS = 10_100  # that a client is told: ten thousand of the server, and some of the proxy
# Where the id of the answer stands; @ID@, and @BIG@ for 70 MiB.
RESULT = '"result":{"content":[{"type":"text","text":"@BIG@"}]}'
TOO_LONG = {
    "behind the result, and more behind it": f'{{"jsonrpc":"2.0",{RESULT},"id":@ID@,"x":"{"x" * 5000}"}}',
    "behind the result, and an object behind it": f'{{"jsonrpc":"2.0",{RESULT},"id":@ID@,"x":{{}}}}',
    "behind another long member": f'{{"jsonrpc":"2.0","x":"{"x" * 5000}","id":@ID@,{RESULT}}}',
    "in letters that are escaped": f'{{"jsonrpc":"2.0","\\u0069d":@ID@,{RESULT}}}',
    "in a batch": f'[{{"jsonrpc":"2.0","id":@ID@,{RESULT}}}]',
}
USUAL = {
    "before the result": f'{{"jsonrpc":"2.0","id":@ID@,{RESULT}}}',
    "at the end": f'{{"jsonrpc":"2.0",{RESULT},"id":@ID@}}',
}
SERVER = r"""
import json, sys
tools, big = int(sys.argv[1]), 70 << 20

def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    number = json.dumps(asked["id"])
    if asked["method"] == "initialize":
        can = {"tools": {}}
        result = {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": {"name": "big", "version": "1"}}
    elif asked["method"] == "tools/call":
        given = asked["params"]["arguments"]
        if "answer" in given:
            say(given["answer"].replace("@ID@", number).replace("@BIG@", "x" * big))
            continue
        result = {"content": [{"type": "text", "text": "x" * given.get("size", 1)}]}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": f"{each:x}"} for each in range(tools)]}
    else:
        say('{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}' % number)
        continue
    say('{"jsonrpc":"2.0","id":%s,"result":%s}' % (number, json.dumps(result)))
"""


def server(tools: int = 1) -> tuple[str, ...]:
    return ("--", sys.executable, "-ISc", SERVER, str(tools))


def most_memory(client: ProxyClient) -> int:
    status = Path(f"/proc/{client.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def call(client: ProxyClient, **arguments: Any) -> int | str:
    return client.begin("tools/call", {"name": "0", "arguments": arguments})


def unanswered(client: ProxyClient, answers: dict[str, str]) -> list[str]:
    """Call for each of these answers; those for which the client waits in vain."""
    left = []
    for where, answer in answers.items():
        asked = call(client, answer=answer)
        try:
            client.answer(asked, ANSWER_SECONDS)
        except AssertionError:
            left.append(where)
    return left


def test_an_answer_that_is_too_long_is_an_answer_wherever_its_id_stands(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        client = proxies.connected(*server())

        left = unanswered(client, USUAL | TOO_LONG)
        memory = most_memory(client)
        client.wait_connected()
        after = client.answer(call(client))

    assert left == []
    assert memory < MEMORY
    assert after["result"]["content"][0]["text"] == "x", "the next call works"


def test_a_million_tools_do_not_fill_the_memory(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        client = proxies.start(*server(1_000_000))
        client.initialize()
        client.wait_connected()
        listed = client.tools()
        memory = most_memory(client)

    assert memory < MEMORY
    assert len(listed) < MOST_TOOLS


# --- what must keep working -----------------------------------------------------------------------------------------


def test_an_answer_below_the_limit_arrives_as_it_is(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        client = proxies.connected(*server())

        answer = client.answer(call(client, size=60 * MIB))

    assert len(answer["result"]["content"][0]["text"]) == 60 * MIB


def test_a_thousand_tools_are_all_offered(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        client = proxies.connected(*server(1000))

        tools = set(client.tools())

    assert {f"{each:x}" for each in range(1000)} <= tools
