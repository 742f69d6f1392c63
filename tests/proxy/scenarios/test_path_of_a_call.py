"""The ordinary call, as its client and its server see it: the same bytes, the same ids, one answer, in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.bundled import BOTH, Reply, ask
from support.proxies import ERAS, MODERN, NEWEST_HANDSHAKE, Message, Proxies, ProxyClient
from support.rpc_lines import ENVELOPE, text_of
from support.scripted_http import served
from support.scripted_servers import ScriptedServer, text_result
from support.waiting import wait_for
from uno_devserver.system.ports import free_port

WAYS = pytest.mark.parametrize("way", ["pipes", "http"])

# JSON that changes when somebody decodes it and writes it again.
PAYLOADS = {
    "a fraction of zero": b'{"x":1.0,"y":-0.0,"z":1.50}',
    "exponents": b'{"x":1E2,"y":1e-7,"z":2E+3}',
    "a number of 23 digits": b'{"x":12345678901234567890123}',
    "a number beyond all floats": b'{"x":1e400,"y":-1e400}',
    "a number with 30 decimals": b'{"x":0.123456789012345678901234567890}',
    "a member that comes twice": b'{"x":1,"x":2}',
    "escapes that nobody needs": rb'{"x":"\u00e9\/\u002f\u0041\ud83d\ude00"}',
    "letters that need no escapes": '{"x":"é😀\u2028"}'.encode(),
    "members in no order": b'{"z":1,"a":2,"m":3,"":4}',
    "white space": b'{ "x" : [ 1 ,2 ],  "y":{ } }',
    "members that nobody knows": b'{"x":1,"future":{"task":[null,true,{"deep":[]}]}}',
}


def request_line(number: int | str, method: str, params: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def notification_line(method: str, params: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"


def call_line(number: int | str, text: str, *, tool: str = "say", meta: Message | None = None) -> bytes:
    """A call with the argument `text`."""
    params = {"name": tool, "arguments": {"text": text}} | ({"_meta": meta} if meta else {})
    return request_line(number, "tools/call", params)


@contextmanager
def connected(proxies: Proxies, server: ScriptedServer, way: str, modern: bool) -> Iterator[ProxyClient]:
    """A client of a proxy with that server behind it, and every line that the client reads."""
    if way == "pipes":
        client = proxies.connected("--", *server.command(), modern=modern)
        client.transcript = []
        yield client
    else:
        with served(server) as url:
            client = proxies.connected("--upstream-url", url, modern=modern)
            client.transcript = []
            yield client


def send_call(
    client: ProxyClient, number: int | str, arguments: bytes, meta: Message | None = None, more: bytes = b""
) -> None:
    """One call of `say`, whose arguments are these bytes; `more` stands behind them."""
    meta = {**(meta or {}), **(ENVELOPE if client.modern else {})}
    members = b'"name":"say","arguments":%s' % arguments
    members += b',"_meta":%s' % json.dumps(meta).encode() if meta else b""
    client.expect(number)
    line = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{%s%s}}\n'
    client.send_bytes(line % (json.dumps(number).encode(), members, more))


def changed_on_the_way(server: ScriptedServer) -> list[str]:
    """The payloads of calls that say which one they have, and that arrived otherwise."""
    arrived = {json.loads(line)["params"]["is"]: line for line in server.calls("say")}
    return [name for name, payload in PAYLOADS.items() if b'"arguments":' + payload not in arrived.get(name, b"")]


def answer_line(client: ProxyClient, number: int | str) -> bytes:
    """The answer as it came, without what the protocol puts around its payload."""
    client.answer(number)
    assert client.transcript is not None
    return next(line for line in client.transcript if json.loads(line).get("id") == number)


# --- payloads ---------------------------------------------------------------------------------------------------------


@WAYS
@ERAS
def test_arguments_reach_the_server_as_the_bytes_that_the_client_wrote(
    proxies: Proxies, tmp_path: Path, way: str, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server")
    with connected(proxies, server, way, modern) as client:
        for name, payload in PAYLOADS.items():
            send_call(client, name, payload, more=b',"is":"%s"' % name.encode())

        refused = [name for name in PAYLOADS if "error" in client.answer(name)]

    assert refused + changed_on_the_way(server) == []


@ERAS
def test_arguments_reach_the_server_unchanged_also_where_progress_is_wanted(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    """Some clients send a token with every call, and two may send the same: the token alone is ours to change."""
    server = ScriptedServer(tmp_path / "server")
    with connected(proxies, server, "pipes", modern) as client:
        for name, payload in PAYLOADS.items():
            send_call(
                client,
                name,
                payload,
                {"progressToken": name, "com.example/mine": {"keep": 1}},
                b',"is":"%s"' % name.encode(),
            )

        refused = [name for name in PAYLOADS if "error" in client.answer(name)]

    assert refused + changed_on_the_way(server) == []
    metas = [json.loads(line)["params"]["_meta"] for line in server.calls("say")]
    assert all(meta["com.example/mine"] == {"keep": 1} for meta in metas)


@WAYS
@ERAS
def test_results_reach_the_client_as_the_bytes_that_the_server_wrote(
    proxies: Proxies, tmp_path: Path, way: str, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server")
    results = {name: b'{"resultType":"complete","content":[],"odd":%s}' % odd for name, odd in PAYLOADS.items()}
    with connected(proxies, server, way, modern) as client:
        changed = []
        for name, result in results.items():
            server.script("say", b'{"jsonrpc":"2.0","id":@ID@,"result":%s}\n' % result)
            send_call(client, name, b"{}")
            if b'"result":' + result not in answer_line(client, name):
                changed.append(name)

    assert changed == []


@WAYS
def test_errors_reach_the_client_as_the_bytes_that_the_server_wrote(proxies: Proxies, tmp_path: Path, way: str) -> None:
    server = ScriptedServer(tmp_path / "server")
    errors = {name: b'{"code":-31999,"message":"own","data":%s}' % odd for name, odd in PAYLOADS.items()}
    with connected(proxies, server, way, False) as client:
        changed = []
        client.call_result("say")  # opens the connection over which the others go
        for name, error in errors.items():
            server.script("say", b'{"jsonrpc":"2.0","id":@ID@,"error":%s}\n' % error)
            send_call(client, name, b"{}")
            if b'"error":' + error not in answer_line(client, name):
                changed.append(name)

    assert changed == []


# --- ids --------------------------------------------------------------------------------------------------------------

IDS = (
    *(b"0", b"-1", b"70001", b'"70001"', b"9007199254740993", b"9223372036854775808", b"-9223372036854775809"),
    *(b"1" * 40, b'""', b'"0"', b'"null"', rb'"\u00e9"', '"ü😀"'.encode(), rb'"\ud83d\ude00"', rb'"a\/b\\\"\n"'),
    *(rb'"\u0000"', b'"' + b"x" * 5000 + b'"'),
)


@ERAS
def test_every_id_comes_back_with_its_value_and_its_type(proxies: Proxies, tmp_path: Path, modern: bool) -> None:
    server = ScriptedServer(tmp_path / "server")
    with connected(proxies, server, "pipes", modern) as client:
        meta = b',"_meta":%s' % json.dumps(ENVELOPE).encode() if modern else b""
        for raw in IDS:
            client.expect(json.loads(raw))
            line = (
                b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"say","arguments":{"text":%s}%s}}\n'
            )
            client.send_bytes(line % (raw, json.dumps(raw.decode()).encode(), meta))

        answers = [client.answer(json.loads(raw)) for raw in IDS]

    for raw, answer in zip(IDS, answers, strict=True):
        wanted = json.loads(raw)
        assert (answer["id"], type(answer["id"])) == (wanted, type(wanted))
        assert answer["result"]["content"][0]["text"] == raw.decode(), "each has its own answer"


# --- many at once -----------------------------------------------------------------------------------------------------


@WAYS
@ERAS
def test_a_thousand_calls_in_one_write_get_a_thousand_answers(
    proxies: Proxies, tmp_path: Path, way: str, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server")
    count = 1000 if way == "pipes" else 200
    meta = ENVELOPE if modern else None
    with connected(proxies, server, way, modern) as client:
        client.expect(*range(1000, 1000 + count))

        client.send_bytes(b"".join(call_line(1000 + number, f"call {number}", meta=meta) for number in range(count)))

        answers = [client.answer(1000 + number) for number in range(count)]
    assert {answer["error"]["message"] for answer in answers if "error" in answer} == set(), "none is refused"
    for number, answer in enumerate(answers):
        assert text_of(answer) == f"call {number}"
    if way == "pipes":
        texts = [json.loads(line)["params"]["arguments"]["text"] for line in server.calls("say")]
        assert texts == [f"call {number}" for number in range(count)], "in the order in which they were written"


def test_the_first_calls_of_a_session_reach_the_server_in_the_order_in_which_they_were_written(
    proxies: Proxies, tmp_path: Path
) -> None:
    """More than one read takes: what is read later does not overtake what waits for the conversation to begin."""
    for session in range(4):
        server = ScriptedServer(tmp_path / f"server-{session}")
        with connected(proxies, server, "pipes", False) as client:
            client.expect(*range(1000, 1100))

            client.send_bytes(b"".join(call_line(1000 + number, f"{number:<2000}") for number in range(100)))

            for number in range(100):
                assert text_of(client.answer(1000 + number)) == f"{number:<2000}"
        texts = [json.loads(line)["params"]["arguments"]["text"] for line in server.calls("say")]
        assert [int(text) for text in texts] == list(range(100))


def test_calls_lists_pings_health_and_cancellations_in_one_write_do_not_disturb_each_other(
    proxies: Proxies, tmp_path: Path
) -> None:
    server = ScriptedServer(tmp_path / "server", "held")
    server.close("held")
    rounds = range(100)
    with connected(proxies, server, "pipes", False) as client:
        lines = []
        for number in rounds:
            lines += [
                call_line(f"held {number}", "never", tool="held"),
                call_line(f"call {number}", f"text {number}"),
                request_line(f"list {number}", "tools/list", {}),
                notification_line("notifications/cancelled", {"requestId": f"nobody {number}"}),
                request_line(f"ping {number}", "ping", {}),
                notification_line("notifications/cancelled", {"requestId": f"held {number}"}),
                request_line(f"health {number}", "tools/call", {"name": "uno_health", "arguments": {}}),
                call_line(f"more {number}", f"more {number}"),
            ]
        kinds = ("held", "call", "list", "ping", "health", "more")
        client.expect(*(f"{kind} {number}" for kind in kinds for number in rounds))

        client.send_bytes(b"".join(lines))

        for number in rounds:
            assert text_of(client.answer(f"call {number}")) == f"text {number}"
            assert text_of(client.answer(f"more {number}")) == f"more {number}"
            assert client.answer(f"ping {number}")["result"] == {}
            names = [tool["name"] for tool in client.answer(f"list {number}")["result"]["tools"]]
            assert {"say", "held", "uno_health"} <= set(names)
            assert json.loads(text_of(client.answer(f"health {number}")))["connectionState"] == "Connected"
        server.open("held")
        assert client.call("say", text="on") == "on"
        assert client.call("held", text="now") == "now"
        assert not any(client.has_answer(f"held {number}") for number in rounds)
    begun = [json.loads(line)["id"] for line in server.calls("held")[:-1]]
    told = [message["params"]["requestId"] for message in server.received("notifications/cancelled")]
    assert sorted(told) == sorted(begun), "each under the id that its server knows, and no other"


@ERAS
def test_one_of_many_calls_is_cancelled_under_the_id_of_the_server_and_the_others_go_on(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server", "held")
    server.close("held")
    with connected(proxies, server, "pipes", modern) as client:
        calls = {
            number: client.begin("tools/call", {"name": "held", "arguments": {"text": str(number)}}, 500 + number)
            for number in range(16)
        }
        wait_for(lambda: len(server.calls("held")) == 16)

        client.notify("notifications/cancelled", {"requestId": calls.pop(5), "reason": "no longer"})
        wait_for(lambda: server.received("notifications/cancelled"))
        server.open("held")

        for number, call in calls.items():
            assert text_of(client.answer(call)) == str(number)
        assert client.call("say", text="on") == "on"
        assert not client.has_answer(505)
    (told,) = server.received("notifications/cancelled")
    (meant,) = [json.loads(line) for line in server.calls("held") if b'"5"' in line]
    assert told["params"]["requestId"] == meant["id"]


# --- progress ---------------------------------------------------------------------------------------------------------

STEPS = (
    b'{"jsonrpc":"2.0","method":"notifications/progress",'
    b'"params":{"progressToken":@TOKEN@,"progress":1,"message":@TEXT@}}\n' + text_result()
)


@ERAS
def test_progress_carries_the_token_of_its_own_call_with_its_type(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    server = ScriptedServer(tmp_path / "server", "step")
    server.script("step", STEPS)
    server.close("step")
    tokens: tuple[int | str, ...] = (0, "0", 1, "1", -5, 2**53, "", 'ü"\\')
    with connected(proxies, server, "pipes", modern) as client:
        calls = [
            client.begin(
                "tools/call",
                {"name": "step", "arguments": {"text": repr(token)}, "_meta": {"progressToken": token}},
            )
            for token in tokens
        ]
        wait_for(lambda: len(server.calls("step")) == len(tokens))

        server.open("step")

        for call in calls:
            client.answer(call)
        heard = [(each["progressToken"], each["message"]) for each in client.heard("notifications/progress")]
    assert sorted(map(repr, heard)) == sorted(repr((token, repr(token))) for token in tokens)


class Caller(threading.Thread):
    """A call over HTTP, of which everything is kept that comes back."""

    def __init__(self, port: int, call: bytes, headers: Message) -> None:
        super().__init__(daemon=True)
        self._request = port, call, {"Content-Type": "application/json", "Accept": BOTH, **headers}
        self._reply: Reply | None = None

    def run(self) -> None:
        port, call, headers = self._request
        self._reply = ask(port, "POST", "/mcp", call, headers)

    def messages(self) -> list[Any]:
        self.join(20)
        assert self._reply is not None, "the call over HTTP was never answered"
        body = self._reply.body.decode()
        if body.startswith("{"):
            return [json.loads(body)]
        return [json.loads(line.removeprefix("data:")) for line in body.splitlines() if line.startswith("data: {")]


def opened_session(port: int) -> str:
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    about = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "http", "version": "1"}}
    session: str = ask(port, "POST", "/mcp", request_line(1, "initialize", about), headers).headers["mcp-session-id"]
    initialized = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    ask(port, "POST", "/mcp", initialized, {**headers, "Mcp-Session-Id": session})
    return session


def test_clients_with_equal_ids_and_equal_tokens_do_not_mix(proxies: Proxies, tmp_path: Path) -> None:
    """One on pipes, two over HTTP, one of each era."""
    server = ScriptedServer(tmp_path / "server", "step")
    server.script("step", STEPS)
    server.close("step")
    port = free_port()
    client = proxies.connected("--http", str(port), "--", *server.command())
    meta: Message = {"progressToken": "t"}
    modern = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "step"}
    others = {
        "session": Caller(
            port, call_line(70001, "session", tool="step", meta=meta), {"Mcp-Session-Id": opened_session(port)}
        ),
        "modern": Caller(port, call_line(70001, "modern", tool="step", meta={**meta, **ENVELOPE}), modern),
    }

    client.expect(70001)
    client.send_bytes(call_line(70001, "pipes", tool="step", meta=meta))
    for other in others.values():
        other.start()
    wait_for(lambda: len(server.calls("step")) == 3)
    server.open("step")

    assert text_of(client.answer(70001)) == "pipes"
    heard = client.heard("notifications/progress")
    assert [(each["progressToken"], each["message"]) for each in heard] == [("t", "pipes")]
    for name, other in others.items():
        progress, answer = other.messages()
        assert (progress["params"]["progressToken"], progress["params"]["message"]) == ("t", name)
        assert (answer["id"], text_of(answer)) == (70001, name)
