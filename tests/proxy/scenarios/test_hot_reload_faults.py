"""Hot reload when things go wrong: saves at the wrong moment, broken code, odd files, many proxies, nobody's consent.

Never two restarts for one change, never a lost call, and a good save heals everything.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import pytest

from support.files import write
from support.hosts import is_running
from support.machine import Machine
from support.proxies import PATIENCE, Message, Proxies, ProxyClient
from support.reloading import (
    CONFIG,
    SUPPORT,
    BuiltServer,
    EditedServer,
    Extension,
    Journal,
    PythonServer,
    changed_proxy,
    hot,
    renew,
    state_of,
    text_of,
    wait_ready,
    was_run,
)
from support.waiting import wait_for

KINDS = pytest.mark.parametrize("kind", [BuiltServer, PythonServer])

_ADDIN = """\
import sys

sys.path.insert(0, {support!r})
from reload_server import note, wait_for


def register(addin):
    note({journal!r}, "start", answer={answer!r})
    if {fails!r}:
        raise ValueError({fails!r})
    if {waits!r}:
        wait_for({gate!r})

    @addin.tool
    def answer() -> str:
        "Say it."
        return {answer!r}
"""
_ADDIN_OF_VALUE = """\
def register(addin):
    @addin.tool
    def value() -> str:
        "Say it."
        return {!r}
"""


class EditedAddIn:
    """An add-in of a workspace without a config, in a Host."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.gate = machine.root / "gates" / "start"
        self.journal = Journal(machine.root / "gates" / "journal")
        self.file = machine.workspace / ".devtools" / "addins" / "talker.py"
        self.say("one")

    def say(self, answer: str, *, waits: bool = False, fails: str = "") -> None:
        values: dict[str, Any] = {"answer": answer, "waits": waits, "fails": fails, "gate": str(self.gate)}
        write(self.file, _ADDIN.format(support=str(SUPPORT), journal=str(self.journal), **values))


def until_answers(client: ProxyClient, answer: str, seconds: float = PATIENCE) -> Message:
    """Do as an agent is told until the tool answers so; the last result."""
    deadline = time.monotonic() + seconds
    while True:
        result = client.call_result("answer")
        if not result.get("isError") and result["content"][0]["text"] == answer:
            return result
        assert time.monotonic() < deadline, f"'{answer}' never came: {result}"
        if state_of(result) == "restarting":
            client.call_result("mcpStatus")


# --- saves at the wrong moment ----------------------------------------------------------------------------------------


def test_a_save_during_a_build_begins_it_anew(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "build waits")
    call = client.begin("tools/call", {"name": "answer"})
    server.journal.wait("build begins")

    server.say("three")

    assert state_of(client.answer(call)["result"]) == "restarting"
    wait_ready(client)
    assert client.call("answer") == "three"
    assert [event["answer"] for event in server.journal.events("build ends")] == ["three"]
    assert server.journal.starts == 2, "what was never built was never started"


@KINDS
def test_a_save_during_a_restart_is_served_in_the_end(proxies: Proxies, kind: type[EditedServer]) -> None:
    server = kind(proxies.machine)
    client = hot(proxies)
    server.say("two", "waits")
    assert state_of(client.call_result("answer")) == "restarting"
    server.journal.wait("start", 2)

    server.say("three")
    server.open("start")

    until_answers(client, "three")
    assert server.journal.starts <= 3
    assert client.call("answer") == "three"
    assert server.journal.starts <= 3, "and then it is over"


@KINDS
def test_a_save_during_a_swap_is_served_in_the_end(proxies: Proxies, kind: type[EditedServer]) -> None:
    server = kind(proxies.machine, hotReload={"strategy": "swap"})
    client = hot(proxies)
    server.say("two", "waits")
    held = client.begin("tools/call", {"name": "answer", "arguments": {"mark": "held"}})
    server.journal.wait("start", 2)

    server.say("three")
    server.open("start")

    assert text_of(client.answer(held)["result"]).split("\n")[0] in ("two", "three")
    assert until_answers(client, "three")
    assert [event["mark"] for event in server.journal.events("call")].count("held") == 1
    assert server.journal.starts == 3


def test_a_save_during_the_first_start_is_served_in_the_end(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    server.say("one", "waits")
    client = proxies.start()
    client.initialize()
    server.journal.wait("start")

    server.say("two")
    server.open("start")
    client.wait_connected()

    until_answers(client, "two")
    assert server.journal.starts <= 2


@KINDS
def test_an_edit_as_soon_as_the_server_is_connected_is_served_in_the_end(
    proxies: Proxies, kind: type[EditedServer]
) -> None:
    server = kind(proxies.machine)
    client = proxies.connected()

    server.say("two")

    until_answers(client, "two")
    assert server.journal.starts == 2


def test_a_crash_after_an_edit_needs_no_second_restart(proxies: Proxies) -> None:
    """What is started again is the new code: that it changed is not news any more."""
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    assert client.call("answer") == "one"
    server.say("two")
    os.kill(server.journal.events("start")[0]["pid"], signal.SIGKILL)
    client.wait_connected(generation=2)

    assert client.call("answer") == "two"
    assert server.journal.starts == 2


def test_two_edits_of_the_same_length_within_a_second_are_both_served(proxies: Proxies) -> None:
    """Python's own cache of compiled modules looks at their length and at the second in which they were written."""
    server = PythonServer(proxies.machine)
    words = write(server.root / "src" / "talker" / "words.py", 'WORD = "one"\n')
    main = server.source.read_text("utf-8").replace("serve('one'", "from words import WORD\n\nserve(WORD")
    write(server.source, main.replace("import sys\n", f"import sys\n\nsys.path.insert(0, {str(words.parent)!r})\n", 1))
    client = hot(proxies)
    assert client.call("answer") == "one"

    for word in ("two", "six", "one"):
        write(words, f'WORD = "{word}"\n')
        renew(client, word)


def test_two_edits_of_an_add_in_within_a_second_are_both_served(proxies: Proxies) -> None:
    addin = EditedAddIn(proxies.machine)
    client = hot(proxies)

    for word in ("two", "six"):
        addin.say(word)
        until_answers(client, word)
    assert addin.journal.starts == 3


# --- broken code ------------------------------------------------------------------------------------------------------


@KINDS
def test_a_new_server_that_dies_at_once_is_told_and_a_save_heals_it(proxies: Proxies, kind: type[EditedServer]) -> None:
    server = kind(proxies.machine)
    client = hot(proxies)
    server.say("two", "dies")
    assert state_of(client.call_result("answer")) == "restarting"

    status = client.call_result("mcpStatus")

    assert status["isError"]
    assert "two cannot begin" in text_of(status), "its last words"
    starts = server.journal.starts
    server.say("three")
    until_answers(client, "three")
    assert server.journal.starts == starts + 1
    assert client.call("answer") == "three"


def test_a_call_of_a_new_server_that_dies_at_once_is_told_once_what_another_call_does(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "dies")
    assert state_of(client.call_result("answer")) == "restarting"
    assert client.call_result("mcpStatus")["isError"]

    told = text_of(client.call_result("answer"))

    assert told.startswith("The server '")
    assert "two cannot begin" in told
    assert "The dev server" not in told
    assert "makes a new attempt to start it" in told
    assert "the next tool call" not in told


def test_code_that_cannot_be_used_is_told_in_place_of_how_the_code_before_it_ended(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "dies")
    assert state_of(client.call_result("answer")) == "restarting"
    assert client.call_result("mcpStatus")["isError"]
    write(server.source, "def broken(:\n")
    assert state_of(client.call_result("answer")) == "buildFailed"

    told = text_of(client.call_result("answer"))
    issues = client.health()["issues"]

    for text in (told, json.dumps(issues)):
        assert "does not run, and its present code cannot be used." in text
        assert "SyntaxError" in text
        assert "two cannot begin" not in text
        assert "again and again" not in text


@KINDS
def test_a_new_server_that_dies_at_once_leaves_the_old_one_where_it_is_swapped(
    proxies: Proxies, kind: type[EditedServer]
) -> None:
    server = kind(proxies.machine, hotReload={"strategy": "swap"})
    client = hot(proxies)
    server.say("two", "dies")

    result = client.call_result("answer")

    assert not result.get("isError")
    assert result["content"][0]["text"] == "one"
    assert (state_of(result), was_run(result)) == ("swapFailed", True)
    assert "two cannot begin" in text_of(result), "its last words"
    assert client.health()["connectionState"] == "Connected"
    for _ in range(2):  # as long as it lies there
        later = client.call_result("answer")
        assert (state_of(later), was_run(later)) == ("swapFailed", True)
        assert "two cannot begin" not in text_of(later)
    server.say("three")
    assert text_of(client.call_result("answer")).startswith("three")


@pytest.mark.parametrize("strategy", ["restart", "swap"])
def test_an_add_in_with_a_syntax_error_is_a_failed_build(proxies: Proxies, strategy: str) -> None:
    addin, other = EditedAddIn(proxies.machine), proxies.machine.workspace / ".devtools" / "addins" / "other.py"
    write(proxies.machine.workspace / CONFIG, json.dumps({"hotReload": {"strategy": strategy}}))
    write(other, "register(:\n")  # broken from the beginning, which keeps back nothing
    client = hot(proxies)
    host = client.health()["hostProcessId"]
    write(addin.file, addin.file.read_text("utf-8") + "print(a b)\n")

    told, noted = client.call_result("answer"), client.call_result("answer")
    write(addin.file.with_name("third.py"), "def register(addin):\n    pass\n")
    still = client.call_result("answer")

    assert (state_of(told), was_run(told)) == ("buildFailed", False)
    for part in (f'File "{addin.file}", line', "\n    print(a b)\n          ^^^\nSyntaxError: "):
        assert part in text_of(told)
    assert "other.py" not in text_of(told)
    assert (state_of(noted), was_run(noted), noted["content"][0]["text"]) == ("buildFailed", True, "one")
    assert state_of(still) == "buildFailed"
    assert client.health()["hostProcessId"] == host
    addin.say("two")
    until_answers(client, "two")


def test_an_add_in_that_does_not_load_with_its_new_code_is_told(proxies: Proxies) -> None:
    addin = EditedAddIn(proxies.machine)
    write(addin.file.with_name("other.py"), _ADDIN_OF_VALUE.format("x"))
    client = hot(proxies)
    assert client.call("value") == "x"
    addin.say("two", fails="out of colours")

    told = client.call_result("value")
    ready = wait_ready(client)
    [issue] = [issue for issue in client.health()["issues"] if issue["code"] == "AddInLoadFailed"]
    noted, later = client.call_result("value"), client.call_result("value")

    assert state_of(told) == "restarting"
    for text in (text_of(ready), issue["message"], text_of(noted)):
        assert str(addin.file) in text
        assert "out of colours" in text
    assert "uno-devserver stop" not in issue["remediation"]
    assert text_of(later) == "x"
    addin.say("three")
    until_answers(client, "three")
    assert text_of(client.call_result("value")) == "x"


@pytest.mark.parametrize("strategy", ["restart", "swap"])
def test_a_server_that_was_never_built_is_built_and_started_without_a_call(proxies: Proxies, strategy: str) -> None:
    server = BuiltServer(proxies.machine, hotReload={"strategy": strategy})
    (server.root / "build" / "answer.json").unlink()

    client = proxies.connected()

    assert "answer" in client.tools()
    assert server.journal.builds == 1


def test_a_build_that_fails_is_not_tried_again_and_again_without_a_call(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    (server.root / "build" / "answer.json").unlink()
    server.say("one", "build fails")

    client = proxies.start()
    client.initialize()
    server.journal.wait("build fails")
    told = client.call_result("uno_execute_tool", toolName="answer", arguments={})

    assert state_of(told) == "buildFailed"
    assert server.journal.builds <= 2  # one for the start that failed, one for the call
    server.say("two")
    until_answers(client, "two")


# --- odd files --------------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read_do_no_harm(proxies: Proxies) -> None:
    """A pipe would be waited for for ever, links may lead nowhere or round in circles."""
    server = PythonServer(proxies.machine)
    folder = server.source.parent
    os.mkfifo(folder / "pipe.py")
    (folder / "nowhere.py").symlink_to("gone.py")
    (folder / "itself.py").symlink_to("itself.py")
    (folder / "around").symlink_to(folder)
    (folder / "folder.py").mkdir()
    locked = write(folder / "locked.py", "secret = 1\n")
    locked.chmod(0)
    client = hot(proxies)
    assert client.call("answer") == "one"

    server.say("two")

    renew(client, "two")
    assert server.journal.starts == 2


@KINDS
def test_a_source_that_vanishes_and_comes_back(proxies: Proxies, kind: type[EditedServer]) -> None:
    server = kind(proxies.machine)
    client = hot(proxies)
    assert client.call("answer") == "one"

    server.source.unlink()
    lost = client.call_result("answer")
    assert state_of(lost) in ("restarting", "buildFailed")
    client.call_result("mcpStatus")

    server.say("two")
    until_answers(client, "two")


# --- many proxies -----------------------------------------------------------------------------------------------------


def test_a_call_of_any_session_of_a_host_has_its_owner_reload_it_once(proxies: Proxies) -> None:
    addin = EditedAddIn(proxies.machine)
    owner, guest = hot(proxies), hot(proxies)
    assert guest.health()["proxy"]["upstream"]["owned"] is False
    assert (owner.call("answer"), guest.call("answer")) == ("one", "one")
    addin.say("two")

    assert state_of(guest.call_result("answer")) == "restarting"
    wait_ready(guest)

    assert guest.call("answer") == "two"
    until_answers(owner, "two")
    assert addin.journal.starts == 2
    assert owner.health()["proxy"]["upstream"]["owned"] is True, "it was its own to restart"
    assert guest.health()["proxy"]["restarts"] == 0, "it was told, and saw no crash"


def test_calls_of_all_sessions_at_the_same_moment_reload_a_host_once(proxies: Proxies) -> None:
    addin = EditedAddIn(proxies.machine)
    clients = [hot(proxies) for _ in range(3)]
    addin.say("two")

    calls = [(client, client.begin("tools/call", {"name": "answer"})) for client in clients for _ in range(4)]

    for client, call in calls:
        result = client.answer(call)["result"]
        assert state_of(result) == "restarting" or text_of(result).startswith("two"), result
    for client in clients:
        until_answers(client, "two")
    assert addin.journal.starts == 2


def test_a_guest_serves_the_new_code_when_the_owner_is_killed_in_the_midst_of_a_restart(proxies: Proxies) -> None:
    addin = EditedAddIn(proxies.machine)
    owner, guest = hot(proxies), hot(proxies)
    addin.say("two", waits=True)
    assert state_of(guest.call_result("answer")) == "restarting"
    addin.journal.wait("start", 2)

    owner.process.kill()
    addin.gate.touch()

    until_answers(guest, "two")
    assert guest.health()["proxy"]["upstream"]["owned"] is True
    addin.say("three")
    until_answers(guest, "three")


# --- consent ----------------------------------------------------------------------------------------------------------


def test_an_untrusted_workspace_runs_nothing_of_its_own(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    extension = Extension(server)
    del proxies.machine.environment["UNO_DEVSERVER_TRUST"]
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: "WorkspaceNotTrusted" in str(report["issues"]), "aware of it")

    server.say("two")
    extension.say("second")
    result = client.call_result("answer")

    assert result["isError"]
    assert "trust" in text_of(result)
    assert server.journal.events() == [], "no server, no build, no client"
    assert server.machine.run("trust").exit_code == 0
    # What was built before we knew of it, or what was edited meanwhile, if that is noticed before the first answer.
    wait_for(lambda: text_of(client.call_result("answer")) in ("one", "two"), "a server that answers")
    client.wait_health(lambda report: report["proxy"]["hotReload"], "one that tells of hot reload")
    server.say("three")
    until_answers(client, "three")


def test_a_config_that_was_edited_runs_nothing_new_before_the_user_agrees(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    del proxies.machine.environment["UNO_DEVSERVER_TRUST"]
    assert server.machine.run("trust").exit_code == 0
    client = hot(proxies)
    assert client.call("answer") == "one"
    mark = server.gate("intruder")
    intruder = {"command": sys.executable, "args": ["-c", f"open({str(mark)!r}, 'w')"]}

    server.write_config(mcpServer=intruder)
    client.wait_health(lambda report: "WorkspaceNotTrusted" in str(report["issues"]), "aware of it")
    client.call_result("answer")
    server.say("two")
    client.call_result("answer")
    client.call_result("mcpStatus")
    os.kill(server.journal.events("start")[0]["pid"], signal.SIGKILL)
    client.wait_health(lambda report: report["connectionState"] != "Connected", "without its server")
    client.call_result("answer")

    assert not mark.exists()


def test_hot_reload_that_is_switched_off_changes_nothing(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine, hotReload={"enabled": False})
    client = proxies.connected()
    server.say("two")

    results = [client.call_result("answer") for _ in range(3)]

    assert [text_of(result) for result in results] == ["one"] * 3
    assert [state_of(result) for result in results] == [None] * 3
    assert (server.journal.builds, server.journal.starts) == (0, 1)
    assert "mcpStatus" not in client.tools()


def test_a_build_that_hangs_is_ended_and_told(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies, prefix=changed_proxy("hotreload.package_state", "PackageLimits", build_seconds=1.5))
    server.say("two", "build waits")

    result = client.call_result("answer")

    assert state_of(result) == "buildFailed"
    # On a very busy machine it was ended before it could note that it began.
    builders = [begun["pid"] for begun in server.journal.events("build begins")]
    wait_for(lambda: not any(map(is_running, builders)), "the end of the build")
    assert text_of(client.call_result("answer")).startswith("one")
    server.say("three")
    renew(client, "three")
