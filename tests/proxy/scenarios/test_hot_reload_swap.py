"""The strategy `swap`: calls go on while the code is edited."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.files import write
from support.proxies import PATIENCE, Message, Proxies, ProxyClient
from support.reloading import BuiltServer, EditedServer, PythonServer, hot
from support.waiting import wait_for
from uno_devserver.cli.init import config_text
from uno_devserver.system.jsonc import parse

SWAP: dict[str, Any] = {"hotReload": {"strategy": "swap"}, "pipeline": {"concurrency": 16}}
EDITS = 6  # enough to see it; the benchmark makes twenty


@dataclass
class Load:
    """The results of calls that many threads made while the code was edited."""

    calls: int = 0
    failed: list[Message] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)
    repeated: list[str] = field(default_factory=list)  # calls that the servers ran more than once
    unserved: list[str] = field(default_factory=list)  # answered calls that no server noted
    starts: int = 0  # of servers, since the first edit


def edit_under_load(
    client: ProxyClient, server: EditedServer, *, callers: int, edits: int, calls_between: int = 100
) -> Load:
    """Edit the code while callers call `answer` without a pause.

    The next edit follows when the last one has answered, and `calls_between` calls after it.
    """
    load, lock, over = Load(), threading.Lock(), threading.Event()
    starts = server.journal.starts
    answered = threading.Condition(lock)
    served: list[str] = []

    def call_on(caller: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            mark = f"{caller}-{number}"
            request = client.begin("tools/call", {"name": "answer", "arguments": {"mark": mark}}, f"load-{mark}")
            reply = client.answer(request)
            with lock:
                load.calls += 1
                if "result" not in reply or reply["result"].get("isError"):
                    load.failed.append(reply)
                else:
                    load.answers.add(reply["result"]["content"][0]["text"])
                    served.append(mark)
                answered.notify_all()

    threads = [threading.Thread(target=call_on, args=(number,), daemon=True) for number in range(callers)]
    for thread in threads:
        thread.start()
    try:
        for number in range(edits):
            answer = f"edit {number}"
            server.say(answer)
            with answered:
                assert answered.wait_for(lambda: answer in load.answers, PATIENCE), f"'{answer}' never came: {load}"  # noqa: B023
                enough = load.calls + calls_between
                assert answered.wait_for(lambda: load.calls >= enough, PATIENCE), f"calls are not answered: {load}"  # noqa: B023
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
    ran = Counter(event["mark"] for event in server.journal.events("call"))
    load.repeated = [mark for mark, times in ran.items() if mark and times > 1]
    load.unserved = [mark for mark in served if mark not in ran]
    load.starts = server.journal.starts - starts
    return load


def test_no_call_fails_and_none_is_answered_twice_while_the_code_is_swapped(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, **SWAP)
    client = hot(proxies)

    load = edit_under_load(client, server, callers=16, edits=EDITS)

    assert load.failed == []
    assert load.repeated == []
    assert load.unserved == []
    assert {f"edit {number}" for number in range(EDITS)} <= load.answers
    assert load.starts == EDITS, "one start for each edit"
    assert client.problems == []
    wait_for(lambda: server.journal.running == [f"edit {EDITS - 1}"], "the end of all old servers")


@pytest.mark.parametrize("kind", [BuiltServer, PythonServer])
def test_one_changed_byte_under_eight_calls_is_one_build_and_one_swap(
    proxies: Proxies, kind: type[EditedServer]
) -> None:
    server = kind(proxies.machine, **SWAP)
    client = hot(proxies)
    server.say("onf")

    calls = [client.begin("tools/call", {"name": "answer", "arguments": {"mark": n}}) for n in range(8)]
    results = [client.answer(call)["result"] for call in calls]

    assert [result["content"][0]["text"] for result in results] == ["onf"] * 8
    assert not [result for result in results if result.get("isError")]
    assert server.journal.starts == 2
    assert server.journal.builds == (1 if kind is BuiltServer else 0)


# What it does before anything else, as often as its file says: nobody can find a fault in the code for that.
KILLED_WHILE_IT_STARTS = """import os, pathlib, signal
left = pathlib.Path({left!r})
count = int(left.read_text())
if count:
    left.write_text(str(count - 1))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("kills", "answer"), [(1, "two"), (2, "one")])
def test_new_code_that_is_killed_from_outside_is_started_once_more(proxies: Proxies, kills: int, answer: str) -> None:
    server = PythonServer(proxies.machine, **SWAP)
    client = hot(proxies)
    left = proxies.machine.root / "kills"
    left.write_text(str(kills), "utf-8")

    server.source.write_text(KILLED_WHILE_IT_STARTS.format(left=str(left)) + server.code("two"), "utf-8")

    result = client.call_result("answer")
    assert result["content"][0]["text"] == answer
    assert ("was ended by signal 9" in str(result)) == (answer == "one")
    assert left.read_text("utf-8") == "0"


def test_with_the_config_that_init_writes_the_next_call_runs_the_new_code(proxies: Proxies) -> None:
    write(proxies.machine.root / "package" / "package.json", '{"main": "a.js"}')
    shown = config_text(str(proxies.machine.root / "package"), None, ())
    config = parse(shown.encode())
    assert isinstance(config, dict)
    server = PythonServer(proxies.machine, **config | {"mcpServerRoot": "../server"})
    client = hot(proxies)

    server.say("two")

    assert client.call_result("answer")["content"][0]["text"] == "two"
