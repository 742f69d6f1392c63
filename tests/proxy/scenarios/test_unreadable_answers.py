"""What a server writes and nobody can read: its request fails at once and clearly, and everything else goes on."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from support.machine import SLOWNESS
from support.proxies import ERAS, Message, Proxies, ProxyClient
from support.rpc_lines import text_of
from support.scripted_http import served
from support.scripted_servers import ScriptedServer, text_result

SOON_SECONDS = 1.0  # what is promised
BUSY = 10.0  # how much longer it may take where other tests run at the same time
LONG_SECONDS = 20.0  # for some times 64 MiB to come at all, on a busy machine
SHOWN_SECONDS = 10.0 * SLOWNESS  # within which health tells of what a server prints; a second, on an idle machine

DEEP = b"[" * 100_000 + b"]" * 100_000

# On one line each. What is wrong is in the payload, in what stands around it, or it is not all there.
UNREADABLE = {
    "broken JSON": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[}}\n',
    "broken JSON behind the payload": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]}]\n',
    "broken JSON and the id first": b'{"id":@ID@,"jsonrpc":"2.0","result":{"content":[}}\n',
    "broken JSON and the id last": b'{"jsonrpc":"2.0","result":{"content":[},"id":@ID@}\n',
    "broken JSON with white space": b'{ "jsonrpc" : "2.0" , "id" : @ID@ , "result" : {"content":[} }\n',
    "a line that was cut off": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"te\n',
    "nested too deeply": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":%s}}\n' % DEEP,
    "bytes that are no text": b'{"jsonrpc":"2.0","id":@ID@,\xff\xfe"result":{"content":[]}}\n',
    "a result that is a number": b'{"jsonrpc":"2.0","id":@ID@,"result":3}\n',
    "a result that is a list": b'{"jsonrpc":"2.0","id":@ID@,"result":[]}\n',
    "a result that is null": b'{"jsonrpc":"2.0","id":@ID@,"result":null}\n',
    "an error that is a text": b'{"jsonrpc":"2.0","id":@ID@,"error":"no"}\n',
    "an error that is null": b'{"jsonrpc":"2.0","id":@ID@,"error":null}\n',
    "an error of wrong types": b'{"jsonrpc":"2.0","id":@ID@,"error":{"code":"x","message":3}}\n',
    "neither result nor error": b'{"jsonrpc":"2.0","id":@ID@}\n',
    "a method that is a number": b'{"jsonrpc":"2.0","id":@ID@,"method":7,"result":{"content":[]}}\n',
}
TOO_LONG = {
    "too long and the id first": b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"x":"@LONG@"}}\n',
    "too long and the id last": b'{"jsonrpc":"2.0","result":{"content":[],"x":"@LONG@"},"id":@ID@}\n',
    "too long and a text for an id": b'{"jsonrpc":"2.0","result":{"content":[],"x":"@LONG@"},"id":"@ID@"}\n',
    "too long and members after the id": b'{"result":{"x":"@LONG@"},"id":@ID@,"jsonrpc":"2.0","_meta":{"id":0}}\n',
    "too long and an error": b'{"jsonrpc":"2.0","id":@ID@,"error":{"code":1,"message":"@LONG@"}}\n',
}


# What a failure says of it, whatever its other words.
UNREADABLE_WORDS = r"answer|result|read|refuse|JSON"
TOO_LONG_WORDS = r"has run 'odd-\d'.* 64 MiB.* Ask for less"

# Lines that are no messages, and what of them health has to show.
STRAYS = {
    b"hello from a library": "hello from a library",
    b'{"level":"info","message":"listening on 3000"}': "listening on 3000",
    b"[1, 2]": "[1, 2]",
    b"\x80\x81 binary words": "binary words",
    b'{"jsonrpc": "2.0", "id"': '{"jsonrpc": "2.0", "id"',
    b"[INFO] {ready}": "[INFO] {ready}",
}


def failure_of(answer: Message) -> str:
    """What is said of a request that failed: an error of the protocol, or a tool's own."""
    if "error" in answer:
        return str(answer["error"]["message"])
    assert answer["result"].get("isError") is True, answer
    return str(answer["result"]["content"][0]["text"])


def call_all(
    client: ProxyClient, server: ScriptedServer, scripts: dict[str, bytes], seconds: float = SOON_SECONDS * BUSY
) -> dict[str, Message | None]:
    """Call a tool for each script, all at once; what was answered soon, and None for what was not."""
    for number, script in enumerate(scripts.values()):
        server.script(f"odd-{number}", script)
    deadline = time.monotonic() + seconds
    calls = {
        what: client.begin("tools/call", {"name": f"odd-{number}", "arguments": {"text": what}})
        for number, what in enumerate(scripts)
    }
    return {what: answer_before(deadline, client, call) for what, call in calls.items()}


def answer_before(deadline: float, client: ProxyClient, call: int | str) -> Message | None:
    try:
        return client.answer(call, max(0.0, deadline - time.monotonic()))
    except AssertionError:
        return None


def check_failures(answers: dict[str, Message | None], clear: str) -> None:
    assert [what for what, answer in answers.items() if answer is None] == [], "never answered"
    said = {what: failure_of(answer) for what, answer in answers.items() if answer is not None}
    assert {what: text for what, text in said.items() if not re.search(clear, text)} == {}


# --- on pipes ---------------------------------------------------------------------------------------------------------


@ERAS
def test_answers_that_cannot_be_read_fail_their_requests_and_no_others(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server", "held", *names_of(UNREADABLE))
    server.close("held")
    client = proxies.connected("--", *server.command(), modern=modern)
    held = client.begin("tools/call", {"name": "held", "arguments": {"text": "held"}})

    answers = call_all(client, server, UNREADABLE)

    check_failures(answers, UNREADABLE_WORDS)
    check_others(client, server, held)
    assert [len(server.calls(name)) for name in names_of(UNREADABLE)] == [1] * len(UNREADABLE), "none is asked again"


def test_answers_that_are_too_long_fail_their_requests_and_no_others(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server", "held", *names_of(TOO_LONG))
    server.close("held")
    client = proxies.connected("--", *server.command())
    held = client.begin("tools/call", {"name": "held", "arguments": {"text": "held"}})

    answers = call_all(client, server, TOO_LONG, LONG_SECONDS)

    check_failures(answers, TOO_LONG_WORDS)
    check_others(client, server, held)


def check_others(client: ProxyClient, server: ScriptedServer, held: int | str) -> None:
    """The session goes on, and what was under way ends well."""
    assert client.call("say", text="on") == "on"
    server.open("held")
    assert text_of(client.answer(held)) == "held"
    assert len(server.starts) == 1, "the server stays"


def names_of(scripts: dict[str, bytes]) -> list[str]:
    return [f"odd-{number}" for number in range(len(scripts))]


def test_an_unreadable_list_does_not_hide_the_server(proxies: Proxies, tmp_path: Path) -> None:
    """A list is asked for by the proxy itself: it is told, and calls go on."""
    server = ScriptedServer(tmp_path / "server")
    (server.folder / "tools").write_text('[{"name": 3}, 7, {"name": "say", "inputSchema": {"type": "object"}}]')
    client = proxies.start("--", *server.command())
    client.initialize()

    client.wait_state("Connected")

    assert client.call("say", text="on") == "on"


def test_of_a_list_that_is_too_long_the_beginning_is_offered_and_health_tells(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server")
    tools = [{"name": name, "inputSchema": {}} for name in ("say", *(f"t{number}" for number in range(12_000)))]
    (server.folder / "tools").write_text(json.dumps(tools))
    client = proxies.start("--", *server.command())
    client.initialize()

    client.wait_state("Connected")
    report = client.health()

    assert report["toolCount"] == 10_000
    [warned] = warnings(report)
    assert "lists too much: of its tools/list, only the first 10,000 entries are offered" in warned
    assert client.call("say", text="on") == "on"


# --- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", [False, True], ids=["as a body", "as an event"])
@ERAS
def test_answers_over_http_that_cannot_be_read_fail_their_requests(
    proxies: Proxies, tmp_path: Path, modern: bool, events: bool
) -> None:
    """The stream of events stays open: the server takes its answer for given."""
    server = ScriptedServer(tmp_path / "server", *names_of(UNREADABLE))
    with served(server, events=events) as url:
        client = proxies.connected("--upstream-url", url, modern=modern)

        answers = call_all(client, server, UNREADABLE)

        check_failures(answers, UNREADABLE_WORDS)
        assert client.call("say", text="on") == "on"


@pytest.mark.parametrize("events", [False, True], ids=["as a body", "as an event"])
def test_an_answer_over_http_that_is_too_long_fails_its_request(proxies: Proxies, tmp_path: Path, events: bool) -> None:
    scripts = {what: TOO_LONG[what] for what in ("too long and the id first",)}
    server = ScriptedServer(tmp_path / "server", *names_of(scripts))
    with served(server, events=events) as url:
        client = proxies.connected("--upstream-url", url)

        answers = call_all(client, server, scripts, LONG_SECONDS)

        check_failures(answers, TOO_LONG_WORDS)
        assert client.call("say", text="on") == "on"


# --- lines that are no messages ---------------------------------------------------------------------------------------


def warnings(report: Message) -> list[str]:
    return [issue["message"] for issue in report["issues"] if issue["severity"] == "Warning"]


def wait_warned(client: ProxyClient, text: str) -> Message:
    return client.wait_health(
        lambda report: any(text in warned for warned in warnings(report)),
        f"one that warns of {text!r}",
        SHOWN_SECONDS,
    )


# What stands in front of an answer, and a word of it that health has to show.
FRONTS = {
    "a word": (b"log: ", "log:"),
    "no space": (b"note:", "note:"),
    "a bracket": (b"[INFO] ", "[INFO]"),
    "braces": (b"{ready} ", "{ready}"),
    "JSON": (b'{"level":"trace"} ', "trace"),
    "colours": (b"\x1b[32mgreen\x1b[0m ", "green"),
    "a bar of progress": (b"10%\r50%\r100%\r", "100%"),
    "bytes that are no text": (b"\x80\x81binary ", "binary"),
    "a text with a quote": (b'said "hello ', "hello"),
}


def test_what_is_no_message_is_shown_in_health_while_the_server_is_connected(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server", "chatty")
    client = proxies.connected("--", *server.command())
    assert client.call("say", text="on") == "on"
    report = client.health()
    assert (report["status"], report["issues"]) == ("Healthy", []), "it has written only messages"

    lines = [(line + b"\n", shown) for line, shown in STRAYS.items()]
    for stray, shown in (*lines, *(FRONTS[what] for what in ("a word", "JSON", "a bar of progress"))):
        server.script("chatty", stray + text_result())
        call = client.begin("tools/call", {"name": "chatty", "arguments": {"text": "said"}})
        assert text_of(client.answer(call, SOON_SECONDS * BUSY)) == "said"

        assert wait_warned(client, shown)["connectionState"] == "Connected"


@pytest.mark.parametrize("opening", ["Server v1 is ready!\n", "listening on stdio "])
def test_what_came_before_the_first_message_hides_nothing_and_is_shown_too(
    proxies: Proxies, tmp_path: Path, opening: str
) -> None:
    server = ScriptedServer(tmp_path / "server")
    client = proxies.connected("--", *server.command(opening=opening.encode()))

    report = wait_warned(client, opening.strip())

    assert report["connectionState"] == "Connected"
    assert client.call("say", text="on") == "on"


def test_text_in_front_of_an_answer_does_not_hide_it(proxies: Proxies, tmp_path: Path) -> None:
    scripts = {what: front + text_result() for what, (front, _) in FRONTS.items()}
    server = ScriptedServer(tmp_path / "server", *names_of(scripts))
    client = proxies.connected("--", *server.command())

    answers = call_all(client, server, scripts)

    texts = {what: answer and text_of(answer) for what, answer in answers.items()}
    assert texts == {what: what for what in scripts}


def test_text_in_front_of_a_notification_and_a_question_does_not_hide_them(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server", "chatty")
    told = b'log: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"told"}}\n'
    progress = (
        b'log: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1}}\n'
    )
    asked = b'log: {"jsonrpc":"2.0","id":"q","method":"roots/list"}\n'
    server.script("chatty", told + progress + asked + text_result())
    client = proxies.start("--", *server.command())
    client.replies["roots/list"] = lambda _: {"roots": [{"uri": "file:///there"}]}
    client.initialize(capabilities={"roots": {}})
    client.wait_connected()

    params = {"name": "chatty", "arguments": {"text": "said"}, "_meta": {"progressToken": "mine"}}
    client.result("tools/call", params)

    client.hear("notifications/message", matching=lambda params: params["data"] == "told", seconds=SHOWN_SECONDS)
    assert client.hear("notifications/progress")["progressToken"] == "mine"
    client.wait_health(lambda _: any(b"file:///there" in line for line in server.lines), "answered by the client")
    replies = [json.loads(line) for line in server.lines if b"file:///there" in line]
    assert [reply["id"] for reply in replies] == ["q"]
