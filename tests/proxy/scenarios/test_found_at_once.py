"""A proxy can be found and asked as soon as it can be seen: from its first answer on, by every command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.files import write
from support.inspectors import inspector_of
from support.machine import Machine
from support.odd_servers import odd_server
from support.proxies import Message, Proxies, ProxyClient
from support.reloading import PythonServer

FIRST_REQUESTS = ("initialize", "server/discover", "tools/list", "ping", "uno_health")
ROUNDS = 2  # of each: what is late is late by chance
RUN_SECONDS = 30  # for a command that takes a tenth of one; one that starts a proxy of its own never ends

ADDIN = "def register(addin):\n    addin.tool(name='one')(lambda: '1')\n"


def add_ins(machine: Machine) -> tuple[str, ...]:
    write(machine.workspace / ".devtools" / "addins" / "one.py", ADDIN)
    return ()


def configured(machine: Machine) -> tuple[str, ...]:
    PythonServer(machine)
    return ()


def slow(machine: Machine) -> tuple[str, ...]:
    """A server that never gets ready."""
    PythonServer(machine, "one").say("one", "waits")
    return ()


def typed(machine: Machine) -> tuple[str, ...]:
    return ("--", *odd_server())


def nothing(machine: Machine) -> tuple[str, ...]:
    return ()


# What may be behind a proxy; those that its inspector can be asked of.
BEHIND: dict[str, Callable[[Machine], tuple[str, ...]]] = {
    "a Host": add_ins,
    "the config's server": configured,
    "a server that is not ready": slow,
    "a typed command": typed,
    "no workspace": nothing,
}
WITH_PAGE = ("a Host", "a typed command", "no workspace")
ASKED = ("a Host", "the config's server", "a server that is not ready")


def first_answer(client: ProxyClient, request: str) -> None:
    """Ask one thing, and nothing before it."""
    if request == "initialize":
        client.initialize()
    elif request == "server/discover":
        client.initialize(modern=True)
    elif request == "uno_health":
        client.call("uno_health")
    else:
        client.result(request)


def status_of(machine: Machine, client: ProxyClient) -> Message | None:
    path = machine.state / "proxies" / f"{client.pid}.json"
    status: Message | None = json.loads(path.read_text("utf-8")) if path.exists() else None
    return status


def end(client: ProxyClient) -> None:
    client.close_stdin()
    assert client.ends()


@contextmanager
def busy_machine() -> Iterator[None]:
    """Twice as many processes as cores that do nothing but compute; other tests go before them."""
    loop = [sys.executable, "-ISc", "import os; os.nice(10)\nwhile True: pass"]
    loops = [subprocess.Popen(loop) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


@pytest.mark.parametrize("behind", BEHIND)
def test_its_status_file_is_there_when_its_client_has_the_first_answer(
    proxies: Proxies, machine: Machine, behind: str
) -> None:
    options = BEHIND[behind](machine)
    found = {}
    for request in FIRST_REQUESTS:
        client = proxies.start(*options)
        first_answer(client, request)

        status = status_of(machine, client)

        found[request] = status and (status["processId"] == client.pid, status["directory"])
        end(client)

    assert found == dict.fromkeys(FIRST_REQUESTS, (True, str(machine.workspace)))


def test_its_status_file_is_there_also_on_a_busy_machine(proxies: Proxies, machine: Machine) -> None:
    missing = []
    with busy_machine():
        for number in range(5):
            client = proxies.start("--", *odd_server())
            first_answer(client, "initialize")
            if status_of(machine, client) is None:
                missing.append(number)
            end(client)

    assert missing == []


@pytest.mark.parametrize("behind", BEHIND)
def test_list_and_health_name_it_at_once(proxies: Proxies, machine: Machine, behind: str) -> None:
    options = BEHIND[behind](machine)
    found = []
    for _ in range(ROUNDS):
        client = proxies.start(*options)
        first_answer(client, "initialize")

        running = [machine.spawn(command, "--json") for command in ("list", "health")]
        documents = [json.loads(each.communicate(timeout=RUN_SECONDS)[0]) for each in running]
        found += [[proxy["processId"] == client.pid for proxy in each["proxies"]] for each in documents]
        end(client)

    assert found == [[True]] * len(found)


def inspected(*commands: subprocess.Popen[str]) -> list[Message]:
    """What `inspect --json` says; one that has started a proxy of its own, and would stay with it, is ended."""
    told = []
    for command in commands:
        alarm = threading.Timer(RUN_SECONDS, command.kill)
        alarm.start()
        assert command.stdout
        document = ""
        while (line := command.stdout.readline()) not in ("", "}\n"):
            document += line
        assert line, "it was too slow, or failed"
        told.append(json.loads(document + line))
        if told[-1].get("started"):
            command.send_signal(signal.SIGINT)
        command.communicate()
        alarm.cancel()
    return told


def inspect(machine: Machine) -> subprocess.Popen[str]:
    return machine.spawn("inspect", "--json", "--no-open", "--port", "0")


@pytest.mark.parametrize("behind", ASKED)
def test_inspect_asks_it_at_once_and_starts_no_other(proxies: Proxies, machine: Machine, behind: str) -> None:
    BEHIND[behind](machine)
    for request in ("initialize", "server/discover", "tools/list"):
        client = proxies.start()
        first_answer(client, request)

        (told,) = inspected(inspect(machine))

        assert (told["processId"], told["started"]) == (client.pid, False)
        end(client)


@pytest.mark.parametrize("behind", ASKED[1:])
def test_inspect_asks_it_at_once_also_on_a_busy_machine(proxies: Proxies, machine: Machine, behind: str) -> None:
    BEHIND[behind](machine)
    with busy_machine():
        client = proxies.start()
        first_answer(client, "initialize")

        (told,) = inspected(inspect(machine))

    assert (told["processId"], told["started"]) == (client.pid, False)


@pytest.mark.parametrize("behind", WITH_PAGE)
def test_the_page_of_a_proxy_with_an_inspector_is_found_at_once(
    proxies: Proxies, machine: Machine, behind: str
) -> None:
    client = proxies.start("--inspector", "0", *BEHIND[behind](machine))
    first_answer(client, "initialize")

    (told,) = inspected(inspect(machine))

    assert (told["processId"], told["started"]) == (client.pid, False)
    assert told["token"] == inspector_of(client).token


def test_two_who_inspect_at_the_same_time_see_the_same_page(proxies: Proxies, machine: Machine) -> None:
    configured(machine)
    client = proxies.start()
    first_answer(client, "initialize")

    first, second = inspected(inspect(machine), inspect(machine))

    assert (first["processId"], second["processId"]) == (client.pid, client.pid)
    assert (first["port"], first["token"]) == (second["port"], second["token"])
