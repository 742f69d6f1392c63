"""The ordinary call: relayed without a task, byte for byte; and each way in which it ceases to be ordinary."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from protocol.client.http_servers import HandshakeServer, ModernServer, Server, say
from protocol.conversations import timers
from support.authorities import ScriptedAuthority
from support.proxies import ERAS
from support.raw_servers import Asked as HttpAsked
from support.raw_servers import RawServer, Visitor
from support.relays import DEGRADED, QUICK, RECONNECTING, Asked
from support.virtual_time import turns, virtual
from support.waiting import until
from uno_devserver.hotreload.authority import UNCHANGED
from uno_devserver.protocol.client.raw_messages import RawMessage
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, STOPPED
from uno_devserver.proxy.calls.call_queue import CallQueue
from uno_devserver.proxy.inspection.call_recorder import CallRecorder
from uno_devserver.proxy.state import ConnectionState
from uno_devserver.workspace.config import Strategy

from .relayed import KEY, HttpLink, PipedLink, PipedServer, RelayedClient, envelope, message, no_tasks, relayed_client

SILENCE = QUICK.silence_seconds
ODD_PARAMS = (
    b'{ "name":"echo", "arguments" : {"big":123456789012345678901234567890,"huge":1e400,"exact":1.50,'
    b'"escaped":"\\u00e9\\/","text":"\xc3\xa9","twice":1,"twice":2} ,"unknown":[null,{}]}'
)
ODD_RESULT = b'{"content": [ {"n":1.50,"big":12345678901234567890123,"huge":-1e999} ],"e":"\\u00e9","unknown":null}'
ODD_CALL = b'{"jsonrpc":"2.0","method":"tools/call","id":7,"params":%b,"x":1}' % ODD_PARAMS
ODD_ANSWER = b'{"jsonrpc":"2.0","id":7,"result":%b}' % ODD_RESULT
READ_ONLY = {"look": {"name": "look", "annotations": {"readOnlyHint": True}}}


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[RelayedClient]:
    """A client whose next call is ordinary."""
    with relayed_client(**options) as client:
        client.link.tools = dict(READ_ONLY)
        await client.begin()
        yield client


@asynccontextmanager
async def piped(*, modern: bool = False) -> AsyncIterator[tuple[RelayedClient, PipedServer]]:
    """The same, with a server on pipes."""
    link = PipedLink(modern=modern)
    with relayed_client(link=link, modern=modern) as client:
        client.introduce()
        client.call("begin", "first")
        await until(lambda: bool(link.servers))
        server = link.servers[0]
        try:
            server.say({"id": json.loads(await server.next())["id"], "result": {}})
            await client.answer("first")
            client.lines.clear()
            yield client, server
        finally:
            server.hang_up()


HttpAnswer = Callable[[Visitor, HttpAsked], Awaitable[None]]


@asynccontextmanager
async def over_http(answer: HttpAnswer, *, modern: bool = False) -> AsyncIterator[tuple[RelayedClient, Server]]:
    """The same, with a server over HTTP that answers calls so; the connection of the first call is kept."""

    async def call(visitor: Visitor, asked: HttpAsked) -> None:
        if asked.json["params"]["name"] == "begin":
            say(visitor, asked, {"content": []})
        else:
            await answer(visitor, asked)

    server = ModernServer(call=call) if modern else HandshakeServer(call=call)
    async with RawServer(server) as raw:
        with relayed_client(link=HttpLink(raw.url, modern=modern), modern=modern) as client:
            client.introduce()
            client.call("begin", "first")
            await client.answer("first")
            client.lines.clear()
            try:
                yield client, server
            finally:
                await client.service.close()


def answering(result: dict[str, Any]) -> HttpAnswer:
    async def answer(visitor: Visitor, asked: HttpAsked) -> None:
        say(visitor, asked, result)

    return answer


def queue_of(authority: ScriptedAuthority, concurrency: int | None = None) -> CallQueue:
    return CallQueue(
        authority, concurrency=concurrency, strategy=Strategy.RESTART, waits=lambda: False, name="Acme", limits=QUICK
    )


def is_balanced(client: RelayedClient) -> bool:
    """Whether nothing is left of the calls that were made."""
    queue = client.service.forwarding.queue
    route_is_free = all(one.route is None or not one.route.callers for one in client.service.conversations.all())
    return not client.session.open and route_is_free and (queue is None or queue._running.count == 0)


# --- an ordinary call


@ERAS
async def test_an_ordinary_call_creates_no_task_and_no_coroutine(modern: bool) -> None:
    async with connected(modern=modern) as client:
        with no_tasks():
            client.call("echo", 1)
            client.call("echo", "two")
            assert all(asked.relayed for asked in client.link.asked)
            for asked in client.link.asked:
                asked.answer({"content": [asked.params["name"]]})

        assert client.answers(1) == [{"jsonrpc": "2.0", "id": 1, "result": {"content": ["echo"]}}]
        assert client.answers("two") == [{"jsonrpc": "2.0", "id": "two", "result": {"content": ["echo"]}}]
        assert is_balanced(client)


@ERAS
async def test_nor_does_it_on_pipes(modern: bool) -> None:
    async with piped(modern=modern) as (client, server):
        with no_tasks():
            client.call("echo")
            await until(lambda: bool(server.read()))
            server.say({"id": json.loads(server.received[0])["id"], "result": {"content": [1]}})
            await until(lambda: bool(client.answers()))

        assert client.answers() == [{"jsonrpc": "2.0", "id": 1, "result": {"content": [1]}}]


@ERAS
async def test_nor_does_it_over_a_kept_http_connection(modern: bool) -> None:
    async with over_http(answering({"content": [1]}), modern=modern) as (client, server):
        with no_tasks():
            client.call("echo")
            await until(lambda: bool(client.answers()))

        assert client.answers() == [{"jsonrpc": "2.0", "id": 1, "result": {"content": [1]}}]
        (asked,) = [asked for asked in server.posts("tools/call") if asked.json["params"]["name"] == "echo"]
        assert (KEY + "protocolVersion" in asked.json["params"].get("_meta", {})) is modern


async def test_its_params_and_its_result_pass_byte_for_byte_on_pipes() -> None:
    async with piped() as (client, server):
        client.send(ODD_CALL)
        received = await server.next()
        number = json.loads(received)["id"]
        server.write(b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (number, ODD_RESULT))
        await until(lambda: bool(client.heard()))

        assert received == b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % (number, ODD_PARAMS)
        assert client.lines == [ODD_ANSWER]


async def test_its_params_and_its_result_pass_byte_for_byte_over_http() -> None:
    async def answer(visitor: Visitor, asked: HttpAsked) -> None:
        body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (asked.json["id"], ODD_RESULT)
        visitor.answer(body, Content_Type="application/json")

    async with over_http(answer) as (client, server):
        client.send(ODD_CALL)
        await until(lambda: bool(client.heard()))

        assert server.posts("tools/call")[-1].body.endswith(b'"params":%b}' % ODD_PARAMS)
        assert client.lines == [ODD_ANSWER]


@pytest.mark.parametrize("request_id", [0, -5, 2**53 + 1, 2**70, "", "1", 'a"b\\', "\u00e9\U0001f600", "\x00\n"])
async def test_an_id_comes_back_as_it_was(request_id: int | str) -> None:
    async with connected() as client:
        client.call("echo", request_id)
        client.asked.answer()

        assert [said["id"] for said in client.heard()] == [request_id]
        assert client.link.asked[0].relayed


async def test_calls_that_come_together_are_written_together_and_so_are_their_answers() -> None:
    async with piped() as (client, server):
        client.send(*(client.line("echo", number) for number in (1, 2, 3)))
        numbers = [json.loads(line)["id"] for line in server.read()]  # without a turn of the loop between
        server.say(*({"id": number, "result": {"n": number}} for number in reversed(numbers)))
        await until(lambda: bool(client.heard()))

        assert len(numbers) == 3
        assert [said["id"] for said in client.heard()] == [3, 2, 1]


async def test_the_keeper_learns_once_that_its_upstream_answers() -> None:
    async with connected() as client:
        client.link.proven = 0
        for number in (1, 2):
            client.call("echo", number)
            client.asked.answer()
            assert client.link.proven == (1 if number == 1 else 0)
            client.link.proven = 0


# --- what leaves the path, and is answered the general way


async def _first_call(client: RelayedClient) -> None:
    for conversation in client.service.conversations.all():
        assert conversation.route is not None
        conversation.route.leave()


async def _other_generation(client: RelayedClient) -> None:
    client.link.connect_anew()  # and the conversations have not been told


async def _own_tool(client: RelayedClient) -> None:
    client.state.own_tools = frozenset({"echo"})  # a name that no tool of ours has: the upstream's after all


async def _declining_connection(client: RelayedClient) -> None:
    client.link.declines_calls = True


async def _reloader_unknown(client: RelayedClient) -> None:
    known = asyncio.get_running_loop().create_future()
    client.service.forwarding.await_reloader(known)
    asyncio.get_running_loop().call_later(0.005, known.set_result, None)


async def _changed_code(client: RelayedClient) -> None:
    authority = ScriptedAuthority(True)
    client.use_queue(queue_of(authority))

    def unchanged() -> None:
        authority.known = False
        authority.checks[-1].set_result(UNCHANGED)

    _when_asked(authority, unchanged)


async def _unknown_code(client: RelayedClient) -> None:
    authority = ScriptedAuthority(None)
    client.use_queue(queue_of(authority))
    _when_asked(authority, lambda: authority.checks[-1].set_result(UNCHANGED))


def _when_asked(authority: ScriptedAuthority, answer: Callable[[], None]) -> None:
    """Answer the first check of the authority, whenever it comes."""
    if authority.checks:
        answer()
    else:
        asyncio.get_running_loop().call_later(0.005, _when_asked, authority, answer)


async def _held_queue(client: RelayedClient) -> None:
    queue = queue_of(ScriptedAuthority(False))
    client.use_queue(queue)
    await queue.pause(hold=True)
    asyncio.get_running_loop().call_later(0.005, queue.resume)


async def _reconnecting(client: RelayedClient) -> None:
    client.link.be(RECONNECTING)
    asyncio.get_running_loop().call_later(0.005, client.link.connect_anew)


@pytest.mark.parametrize(
    "reason",
    [
        _first_call,
        _other_generation,
        _own_tool,
        _declining_connection,
        _reloader_unknown,
        _changed_code,
        _unknown_code,
        _held_queue,
        _reconnecting,
    ],
)
@ERAS
async def test_a_call_leaves_the_path_for_a_reason_and_has_one_answer(
    reason: Callable[[RelayedClient], Awaitable[None]], modern: bool
) -> None:
    async with connected(modern=modern) as client:
        await reason(client)

        client.call("echo", arguments={"x": 1})
        asked = await client.next_asked()
        asked.answer({"content": ["general"]})

        assert (await client.answer())["result"]["content"] == ["general"]
        assert (asked.relayed, asked.params["arguments"]) == (False, {"x": 1})
        assert len(client.link.asked) == 1
        await until(lambda: is_balanced(client))


@pytest.mark.parametrize("modern", [False, True], ids=["handshake client", "modern client"])
async def test_a_server_of_the_other_era_is_called_the_general_way(modern: bool) -> None:
    async with connected(modern=modern, modern_server=not modern) as client:
        client.call("echo")
        asked = await client.next_asked()
        asked.answer({"content": [1]})

        assert (await client.answer())["result"]["content"] == [1]
        assert not asked.relayed


async def test_a_modern_client_of_another_name_is_called_for_over_a_connection_of_its_own() -> None:
    async with connected(modern=True) as client:
        other = {**envelope(), f"{KEY}clientInfo": {"name": "other", "version": "1"}}
        for relayed in (False, True):
            client.send(message(1, "tools/call", {"name": "echo", "_meta": other}))
            asked = await client.next_asked()
            asked.answer()
            await client.answer()
            client.lines.clear()
            assert (asked.relayed, asked.peer.client.name) == (relayed, "other")
        assert len(client.link.connections) == 2


@pytest.mark.parametrize("member", ["requestState", "inputResponses"])
async def test_a_modern_call_that_brings_answers_goes_the_general_way(member: str) -> None:
    async with connected(modern=True) as client:
        brought: dict[str, Any] = {"requestState": "theirs", "inputResponses": {"who": {"action": "accept"}}}
        client.call("echo", **{member: brought[member]})
        asked = await client.next_asked()
        asked.answer({"content": [], "resultType": "complete"})

        assert (await client.answer())["result"]["content"] == []
        assert not asked.relayed
        assert member in asked.params


async def test_health_is_answered_by_the_front_while_calls_are_relayed() -> None:
    async with connected() as client:
        client.state.own_tools = frozenset({"uno_health"})

        client.send(client.line("echo", 1), client.line("uno_health", 2))

        assert client.answers(2)[0]["result"]["structuredContent"]["status"] == "Healthy"
        assert client.asked.relayed


async def _execute_is_ours(client: RelayedClient) -> None:
    client.state.own_tools = frozenset({"uno_execute_tool"})


async def _degraded(client: RelayedClient) -> None:
    client.link.be(DEGRADED)


async def _restarting(client: RelayedClient) -> None:
    client.use_queue(queue_of(ScriptedAuthority(False)))
    queue = client.service.forwarding.queue
    assert queue is not None
    await queue.pause(hold=False)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (_execute_is_ours, "toolName must be"),
        (_degraded, "does not work"),
        (_restarting, "is restarting with new code"),
    ],
)
async def test_a_call_that_is_not_for_the_upstream_now_is_answered_here(
    reason: Callable[[RelayedClient], Awaitable[None]], words: str
) -> None:
    async with connected() as client:
        await reason(client)

        client.call("uno_execute_tool", arguments={})

        assert words in await client.text()
        assert client.link.asked == []


async def test_an_id_that_is_open_is_refused_and_the_first_call_goes_on() -> None:
    async with connected() as client:
        client.call("echo", 1)
        client.call("echo", 1)
        (refusal,) = client.answers()
        client.asked.answer({"content": ["first"]})

        assert refusal["error"]["code"] == INVALID_REQUEST
        assert client.answers()[1:] == [{"jsonrpc": "2.0", "id": 1, "result": {"content": ["first"]}}]
        assert len(client.link.asked) == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":01}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":NaN}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"echo"}}',
    ],
    ids=["not UTF-8", "cut off", "no number", "NaN", "a list as params", "another JSON-RPC"],
)
async def test_a_line_that_is_no_request_is_refused_once(line: bytes) -> None:
    async with connected() as client:
        client.send(line)
        await turns()

        (refusal,) = client.heard()
        assert refusal["id"] == 1
        assert refusal["error"]["code"] in (-32700, -32600, -32602)
        assert client.link.asked == []


@pytest.mark.parametrize("request_id", ["null", "1.5", "true", "[]", "{}"])
async def test_what_is_no_id_is_refused_without_one(request_id: str) -> None:
    async with connected() as client:
        client.send(b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"a"}}' % request_id.encode())
        await turns()

        (refusal,) = client.heard()
        assert (refusal["id"], refusal["error"]["code"]) == (None, INVALID_REQUEST)
        assert client.link.asked == []


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (b'{"name":5}', {"name": 5}),
        (b"{}", {}),
        (b'{"name":"echo","_meta":5}', {"name": "echo", "_meta": 5}),
    ],
    ids=["a name that is none", "no name", "odd _meta"],
)
async def test_an_odd_call_is_the_servers_to_refuse(params: bytes, expected: dict[str, Any]) -> None:
    async with connected() as client:
        client.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)
        asked = await client.next_asked()
        asked.fail(-32602, "Odd.")

        assert (await client.answer())["error"] == {"code": -32602, "message": "Odd."}
        assert (asked.relayed, asked.params) == (False, expected)


async def test_arguments_pass_byte_for_byte_off_the_path_too() -> None:
    async with piped() as (client, server):
        client.service.forwarding.await_reloader(asyncio.ensure_future(asyncio.sleep(0.005)))
        client.send(ODD_CALL)
        received = await server.next()
        server.write(b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (json.loads(received)["id"], ODD_RESULT))
        await until(lambda: bool(client.heard()))

        arguments = ODD_PARAMS.partition(b'"arguments" : ')[2].partition(b" ,")[0]
        assert arguments in received
        assert b'"unknown":[null,{}]' in received
        assert client.lines == [ODD_ANSWER]


async def test_a_tool_of_ours_that_is_given_a_number_which_python_cannot_read_refuses_it() -> None:
    async with connected() as client:
        client.state.own_tools = frozenset({"echo"})

        client.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % ODD_PARAMS)

        assert "error" in await client.answer()
        assert client.link.asked == []


async def test_another_request_that_names_the_method_somewhere_is_none() -> None:
    async with connected() as client:
        client.send(message(1, "prompts/get", {"name": "tools/call", "method": "tools/call"}))
        asked = await client.next_asked()
        asked.answer({"messages": []})

        assert (await client.answer())["result"] == {"messages": []}
        assert asked.method == "prompts/get"


@pytest.mark.parametrize("token", [1, "mine", "\u00e9", 'a"/'])
async def test_progress_reaches_the_client_under_its_own_token(token: int | str) -> None:
    async with piped() as (client, server):
        client.call("slow", _meta={"progressToken": token})
        asked = json.loads(await server.next())
        progress = {"progressToken": asked["params"]["_meta"]["progressToken"], "progress": 1}
        server.say({"method": "notifications/progress", "params": progress}, {"id": asked["id"], "result": {}})
        await client.answer()

        assert [said["params"] for said in client.heard() if "method" in said] == [
            {"progressToken": token, "progress": 1}
        ]


async def test_where_no_http_connection_is_kept_a_call_goes_the_general_way() -> None:
    together = asyncio.Barrier(2)

    async def answer(visitor: Visitor, asked: HttpAsked) -> None:
        await together.wait()  # one connection is kept, and both calls run at the same time
        say(visitor, asked, {"content": [asked.json["params"]["name"]]})

    async with over_http(answer) as (client, _):
        client.send(client.line("a", 1), client.line("b", 2))

        assert (await client.answer(1))["result"]["content"] == ["a"]
        assert (await client.answer(2))["result"]["content"] == ["b"]


# --- what the upstream answers otherwise


@ERAS
async def test_an_error_of_the_upstream_stays_that_error(modern: bool) -> None:
    async with connected(modern=modern) as client:
        client.call()
        client.asked.fail(-32042, "No.", {"why": [1]})

        assert (await client.answer())["error"] == {"code": -32042, "message": "No.", "data": {"why": [1]}}
        assert is_balanced(client)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        *(
            (answer, "neither a result object nor an error object")
            for answer in (b"{}", b'{"result":null}', b'{"result":5}', b'{"error":null}', b'{"error":null,"result":[]}')
        ),
        (b'{"error":null,"result":{"content":[]}}', {"content": []}),
    ],
)
async def test_an_answer_without_a_result_and_without_an_error_is_a_failure(
    answer: bytes, told: str | dict[str, Any]
) -> None:
    async with connected() as client:
        client.call()
        call = client.asked.call
        assert call is not None
        call.settle(msgspec.json.decode(answer, type=RawMessage))
        call.turn_over()
        said = await client.answer()

        if isinstance(told, str):
            assert said["error"]["code"] == INTERNAL_ERROR
            assert told in said["error"]["message"]
        else:
            assert said["result"] == told


async def test_an_answer_that_cannot_be_read_fails_its_call() -> None:
    async with piped() as (client, server):
        client.call()
        number = json.loads(await server.next())["id"]
        server.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}}\n' % number)

        assert (await client.answer())["error"]["code"] == INTERNAL_ERROR
        assert is_balanced(client)


ID_BEFORE = b'{"jsonrpc":"2.0","id":%d,"result":{"text":"%s"}}\n'
ID_AFTER = b'{"jsonrpc":"2.0","result":{"text":"%%s"},"id":%%d,"_meta":{"text":"%s"}}\n' % (b"y" * 10_000)


@pytest.mark.parametrize("id_first", [True, False])
async def test_an_answer_that_is_too_long_is_told_in_words_and_the_next_call_goes_on(
    id_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uno_devserver.protocol.client.pipe_lines.MAX_LINE_BYTES", 20_000)
    async with piped() as (client, server):
        client.call("act")
        number, long = json.loads(await server.next())["id"], b"x" * 40_000
        server.write(ID_BEFORE % (number, long) if id_first else ID_AFTER % (long, number))
        said = (await client.answer())["result"]

        assert said["isError"] is True
        assert "has run 'act' and has answered, but the answer is longer than 64 MiB" in said["content"][0]["text"]
        assert "Ask for less" in said["content"][0]["text"]
        assert is_balanced(client)
        client.call("act", 2)
        number = json.loads(await server.next())["id"]
        server.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % number)
        assert (await client.answer(2))["result"] == {"content": []}


# --- an upstream that is lost


async def test_a_call_that_the_lost_upstream_had_has_an_unknown_outcome_and_is_not_repeated() -> None:
    async with connected() as client:
        client.call("act")
        client.link.crash()

        text = await client.text()
        assert "was lost while it ran 'act'" in text
        assert "outcome is unknown" in text
        assert client.link.losses == [1]
        client.link.connect_anew()
        client.service.conversations.renew()
        await turns()
        assert len(client.link.asked) == 1


@pytest.mark.parametrize(("tool", "sent"), [("look", True), ("look", False), ("act", False)])
@virtual
async def test_a_call_that_may_run_again_or_never_ran_goes_to_the_next_upstream(tool: str, sent: bool) -> None:
    async with connected() as client:
        client.call(tool, arguments={"x": 1})
        client.link.crash(sent=sent)
        await asyncio.sleep(QUICK.again_seconds * 0.8)  # almost as long as it is waited for
        client.link.connect_anew()
        again = await client.next_asked()
        again.answer({"content": ["again"]})

        assert (await client.answer())["result"] == {"content": ["again"]}
        assert again.params == {"name": tool, "arguments": {"x": 1}}
        assert again.connection.generation == 2
        assert len(client.link.asked) == 2


async def test_a_call_is_repeated_as_often_as_on_the_general_way() -> None:
    async with connected() as client:
        client.call("look")
        for _ in range(1 + QUICK.repetitions):
            (await client.next_asked()).lose()
            await turns()

        text = await client.text()
        assert f"each of the {1 + QUICK.repetitions} times" in text
        assert len(client.link.asked) == 1 + QUICK.repetitions


async def test_after_a_loss_the_next_call_goes_over_another_connection_and_the_old_one_is_closed() -> None:
    async with connected() as client:
        client.send(client.line("act", 1), client.line("act", 2))
        first, second = client.link.asked
        first.lose()
        await client.answer(1)
        client.call("act", 3)
        await until(lambda: len(client.link.asked) == 3)

        old, new = client.link.connections
        assert client.link.asked[2].connection is new
        assert not old.closed, "another call still waits there"
        second.answer()
        await until(lambda: old.closed)
        assert len(client.answers(2)) == 1


@pytest.mark.parametrize(
    ("tool", "sent", "words"),
    [
        ("look", True, "was lost while it ran 'look'"),
        ("look", False, "This request has not been run."),
        ("act", False, "This request has not been run."),
    ],
    ids=["sent", "not sent", "not sent, not repeatable"],
)
@pytest.mark.parametrize("state", [RECONNECTING, DEGRADED])
@virtual
async def test_where_no_other_upstream_comes_a_call_is_told_whether_it_may_have_run(
    tool: str, sent: bool, words: str, state: ConnectionState
) -> None:
    async with connected() as client:
        client.call(tool)
        client.link.crash(state, sent=sent)
        await asyncio.sleep(2 * QUICK.again_seconds)

        text = await client.text()
        assert words in text
        assert ("has not been run." in text) is not sent


@ERAS
async def test_all_calls_of_a_server_on_pipes_that_ends_are_told(modern: bool) -> None:
    async with piped(modern=modern) as (client, server):
        client.send(client.line("act", 1), client.line("act", 2))
        await server.next()
        server.hang_up()

        for request_id in (1, 2):
            assert "outcome is unknown" in await client.text(request_id)
        assert is_balanced(client)


async def test_a_call_that_a_server_on_pipes_cannot_have_seen_goes_to_the_next() -> None:
    async with piped() as (client, server):
        server.stop_reading()
        client.call("act")
        link = client.link
        assert isinstance(link, PipedLink)
        await until(lambda: len(link.servers) == 2)
        another = link.servers[1]
        try:
            another.say({"id": json.loads(await another.next())["id"], "result": {"content": ["next"]}})

            assert (await client.answer())["result"] == {"content": ["next"]}
        finally:
            another.hang_up()


async def test_a_call_whose_params_python_cannot_write_again_is_answered_when_its_upstream_is_lost() -> None:
    async with piped() as (client, server):
        odd = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % ODD_PARAMS
        client.send(odd, client.line("act", 2))
        await server.next()
        server.hang_up()

        assert await client.answer(1)
        assert "outcome is unknown" in await client.text(2)
        assert is_balanced(client)


@pytest.mark.parametrize("least", range(800, 1000, 20))
async def test_a_call_with_arguments_as_deep_as_can_be_read_is_answered_when_its_upstream_is_lost(least: int) -> None:
    deep = [b"[" * depth + b"]" * depth for depth in range(least, least + 20)]
    async with piped() as (client, server):
        client.send(
            client.line("act", "first"),
            *(
                b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"act","arguments":{"a":%b}}}' % each
                for each in enumerate(deep)
            ),
        )
        await until(lambda: len(server.read()) + len(client.heard()) == 1 + len(deep))  # sent, or refused
        server.hang_up()

        for request_id in ("first", *range(len(deep))):
            assert await client.answer(request_id)
        assert is_balanced(client)


async def test_a_defect_of_ours_costs_a_call_its_outcome_but_not_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with piped() as (client, server):
        client.send(client.line("act", 1))
        await server.next()
        monkeypatch.setattr("uno_devserver.proxy.calls.relay.opened_params", lambda _: 1 / 0)
        server.hang_up()

        error = (await client.answer(1))["error"]
        assert "Whether the call was run is not known" in error["message"]
        assert is_balanced(client)


async def test_half_of_a_surrogate_pair_changes_nothing_else_of_a_call() -> None:
    async with piped() as (client, server):
        client.send(
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
            b'"params":{"name":"act","arguments":{"t":"cut \\ud83d","n":1.10,"n":1E2}}}'
        )

        received = await server.next()

        assert received.endswith(b'"params":{"name":"act","arguments":{"t":"cut \\ufffd","n":1.10,"n":1E2}}}')


async def test_a_server_over_http_that_hangs_up_leaves_the_outcome_unknown() -> None:
    async def answer(visitor: Visitor, asked: HttpAsked) -> None:
        visitor.abort()

    async with over_http(answer) as (client, _):
        client.call("act")

        assert "outcome is unknown" in await client.text()
        assert is_balanced(client)


@pytest.mark.parametrize(("tool", "again"), [("act", False), ("look", True)])
async def test_a_server_that_says_that_it_stops_is_one_that_is_lost(tool: str, again: bool) -> None:
    async with connected() as client:
        client.call(tool)
        client.asked.fail(STOPPED, "The outcome is unknown.")
        if again:
            (await client.next_asked()).answer({"content": ["again"]})
        answer = await client.answer()

        if again:
            assert answer["result"] == {"content": ["again"]}
        else:
            assert answer["error"] == {"code": STOPPED, "message": "The outcome is unknown."}
        assert len(client.link.asked) == 1 + again


async def test_a_call_that_runs_when_the_upstream_is_replaced_is_answered_by_the_old_one() -> None:
    async with connected() as client:
        client.call("act", 1)
        old = client.asked
        client.link.connect_anew()
        client.service.conversations.renew(old_answers=True)
        unused = asyncio.ensure_future(client.service.conversations.until_unused(1))
        client.call("act", 2)
        await until(lambda: len(client.link.asked) == 2)
        client.link.asked[1].answer({"by": "the new one"})
        await client.answer(2)

        assert not unused.done()
        assert not client.link.connections[0].closed
        old.answer({"by": "the old one"})
        assert client.answers(1)[0]["result"] == {"by": "the old one"}
        await asyncio.wait_for(unused, 5)
        await until(lambda: client.link.connections[0].closed)


# --- a client that does not want to know any more


@ERAS
async def test_a_cancelled_call_is_cancelled_at_the_upstream_and_not_answered(modern: bool) -> None:
    async with connected(modern=modern) as client:
        client.call("act")
        asked = client.asked
        client.cancel(1)

        assert asked.cancelled
        assert is_balanced(client)
        client.call("act")  # its id is free again
        client.asked.answer({"content": ["second"]})
        assert [said["result"] for said in client.answers()] == [{"content": ["second"]}]


async def test_a_late_answer_to_a_cancelled_call_is_not_taken_for_the_next_one() -> None:
    async with piped() as (client, server):
        client.call("act")
        first = json.loads(await server.next())
        client.cancel(1)
        cancelled = json.loads(await server.next())
        client.call("act")
        second = json.loads(await server.next())
        server.say({"id": first["id"], "result": {"n": 1}}, {"id": second["id"], "result": {"n": 2}})

        assert (await client.answer())["result"] == {"n": 2}
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == first["id"]


async def test_a_call_and_its_cancellation_in_one_read_do_no_harm() -> None:
    async with piped() as (client, server):
        cancellation = message(None, "notifications/cancelled", {"requestId": 1})
        client.send(client.line("act", 1), cancellation, client.line("act", 2))
        received = [json.loads(await server.next()) for _ in range(3)]
        server.say({"id": received[0]["id"], "result": {}}, {"id": received[2]["id"], "result": {"n": 2}})

        assert (await client.answer(2))["result"] == {"n": 2}
        assert client.answers(1) == []
        assert [one["method"] for one in received] == ["tools/call", "notifications/cancelled", "tools/call"]


async def test_a_call_that_goes_on_the_general_way_can_still_be_cancelled() -> None:
    async with connected() as client:
        client.call("act")
        client.link.crash(sent=False)
        await turns()
        client.cancel(1)
        client.link.connect_anew()
        await turns(50)

        assert client.answers() == []
        assert len(client.link.asked) == 1
        assert is_balanced(client)


# --- what the upstream says meanwhile


async def test_a_question_of_the_upstream_is_put_to_the_client() -> None:
    with relayed_client() as client:
        await client.begin(elicitation={})
        client.call("who")
        asking = asyncio.ensure_future(client.asked.peer.ask("elicitation/create", {"message": "Who?"}))
        await until(lambda: bool(client.heard()))
        (question,) = client.heard()
        client.reply(question, {"action": "accept"})

        assert await asking == {"action": "accept"}
        assert (question["method"], question["params"]) == ("elicitation/create", {"message": "Who?"})
        client.asked.answer()
        assert len(client.answers()) == 1


@pytest.mark.parametrize("end", ["answered", "cancelled"])
async def test_a_call_that_is_made_to_answer_a_question_does_not_wait_for_the_one_that_asks(end: str) -> None:
    with relayed_client() as client:
        await client.begin(elicitation={})
        queue = queue_of(ScriptedAuthority(False), concurrency=1)
        client.use_queue(queue)
        client.call("who", 1)
        outer = client.asked
        asking = asyncio.ensure_future(outer.peer.ask("elicitation/create", {"message": "Who?"}))
        await until(lambda: bool(client.heard()))
        client.call("look", 2)
        await until(lambda: len(client.link.asked) == 2)
        client.link.asked[-1].answer()
        assert len(client.answers(2)) == 1
        if end == "answered":
            client.reply(client.heard()[0], {"action": "accept"})
            assert await asking == {"action": "accept"}
            outer.answer()
        else:
            client.cancel(1)
            asking.cancel()
        await until(lambda: is_balanced(client))

        assert queue._running.asking == 0


async def test_a_handshake_client_hears_the_log_messages_of_its_level() -> None:
    async with connected() as client:
        client.send(message("level", "logging/setLevel", {"level": "warning"}))
        await client.answer("level")
        client.lines.clear()
        client.call("talk")
        for level in ("info", "error"):
            client.asked.peer.notify("notifications/message", {"level": level})

        assert [said["params"] for said in client.heard()] == [{"level": "error"}]


@pytest.mark.parametrize(
    ("wanted", "heard"), [("warning", ["error"]), ("debug", ["info", "error"]), ("loud", []), (None, [])]
)
async def test_a_modern_client_says_with_each_call_which_log_messages_it_wants(
    wanted: str | None, heard: list[str]
) -> None:
    async with connected(modern=True) as client:
        client.call("talk", _meta={} if wanted is None else {f"{KEY}logLevel": wanted})
        for level in ("info", "error"):
            client.asked.peer.notify("notifications/message", {"level": level})

        assert [said["params"]["level"] for said in client.heard()] == heard
        assert client.asked.peer.log_level in (wanted, None)


# --- silence


@virtual
async def test_a_call_of_which_nothing_is_heard_is_cancelled_and_answered() -> None:
    async with connected() as client:
        client.call("act")
        asked = client.asked
        await asyncio.sleep(SILENCE - 1)
        before = client.answers()
        await asyncio.sleep(1 + SILENCE / 5)

        text = await client.text()
        assert before == []
        assert f"Nothing has been heard from 'act' for {SILENCE:g} s" in text
        assert asked.cancelled
        assert is_balanced(client)


@virtual
async def test_progress_and_log_messages_are_signs_of_life() -> None:
    async with connected() as client:
        client.call("build", _meta={"progressToken": 1})
        for method in ("notifications/progress", "notifications/message") * 5:
            await asyncio.sleep(SILENCE * 0.8)
            client.asked.peer.notify(method, {"progressToken": 1, "level": "debug"})

        assert client.asked.open
        await asyncio.sleep(SILENCE * 1.2)
        assert "Nothing has been heard" in await client.text()


@virtual
async def test_a_call_is_not_silent_because_an_earlier_one_was_heard_of_long_ago() -> None:
    async with connected() as client:
        client.call("build", 1)
        client.asked.peer.notify("notifications/progress", {"progressToken": 1})
        client.asked.answer()
        await asyncio.sleep(SILENCE * 2)

        client.call("build", 2)
        await asyncio.sleep(SILENCE * 0.8)

        assert client.answers(2) == []
        client.asked.answer()
        assert len(client.answers(2)) == 1


@virtual
async def test_while_the_client_is_asked_the_upstream_is_not_silent() -> None:
    with relayed_client() as client:
        await client.begin(elicitation={})
        client.call("who")
        asking = asyncio.ensure_future(client.asked.peer.ask("elicitation/create", {"message": "Who?"}))
        await asyncio.sleep(SILENCE * 1.8)
        (question,) = client.heard()
        client.reply(question, {"action": "accept"})
        await asking
        await asyncio.sleep(SILENCE * 0.8)
        before = client.answers()
        await asyncio.sleep(SILENCE * 0.5)

        assert before == []
        assert "Nothing has been heard" in await client.text()


@virtual
async def test_one_timer_watches_all_calls_and_none_is_left_when_they_are_over() -> None:
    async with connected() as client:
        await asyncio.sleep(SILENCE)
        before = timers()
        client.send(*(client.line("echo", number) for number in range(50)))
        during = timers()
        for asked in client.link.asked:
            asked.answer()
        await asyncio.sleep(SILENCE)

        assert (during - before, timers() - before) == (1, 0)


# --- calls and reloads


@pytest.mark.parametrize(
    "end",
    [
        lambda client: client.asked.answer(),
        lambda client: client.asked.fail(-1, "no"),
        lambda client: client.asked.lose(),
        lambda client: client.cancel(1),
    ],
    ids=["answered", "refused", "lost", "cancelled"],
)
async def test_a_relayed_call_counts_as_running_until_it_ends(end: Callable[[RelayedClient], None]) -> None:
    async with connected() as client:
        queue = queue_of(ScriptedAuthority(False))
        client.use_queue(queue)
        client.call("act")
        assert client.asked.relayed
        pausing = asyncio.ensure_future(queue.pause(hold=False))
        await turns()

        assert not pausing.done()
        assert queue.awaits == "it waits for a call that still runs"
        end(client)
        await asyncio.wait_for(pausing, 5)
        queue.resume()
        await until(lambda: is_balanced(client))


async def test_calls_beyond_the_concurrency_wait_for_their_turn_in_order() -> None:
    async with connected() as client:
        client.use_queue(queue_of(ScriptedAuthority(False), concurrency=1))
        client.send(*(client.line("act", number) for number in (1, 2, 3)))
        for number in (1, 2, 3):
            asked = await client.next_asked()
            assert asked.relayed is (number == 1)
            asked.answer({"n": number})

        for number in (1, 2, 3):
            assert (await client.answer(number))["result"] == {"n": number}
        await until(lambda: is_balanced(client))


async def test_a_call_that_its_connection_does_not_take_holds_no_place_in_the_queue() -> None:
    async with connected() as client:
        client.use_queue(queue_of(ScriptedAuthority(False), concurrency=1))
        client.link.declines_calls = True
        for number in (1, 2):
            client.call("act", number)
            (await client.next_asked()).answer()
            await client.answer(number)

        assert is_balanced(client)


async def test_a_call_that_is_lost_while_a_restart_waits_for_it_is_not_said_to_have_never_run() -> None:
    async with connected() as client:
        queue = queue_of(ScriptedAuthority(False))
        client.use_queue(queue)
        client.call("look")
        pausing = asyncio.ensure_future(queue.pause(hold=False))
        await turns()
        client.link.crash()
        await turns()
        client.link.connect_anew()
        queue.resume()
        await turns()
        for asked in client.link.asked:
            if asked.open:
                asked.answer({"content": ["again"]})
        answer = await client.answer()
        await pausing

        assert "has not been run" not in str(answer)


# --- recorded calls


class Watched:
    """A recorder that follows the calls of a client."""

    def __init__(self, client: RelayedClient) -> None:
        self.recorder = CallRecorder(lambda _: None)
        self.recorder.live = True
        client.service.forwarding.observer = self.recorder

    def calls(self) -> list[tuple[str, str]]:
        """The name and the state of each call that was recorded."""
        return [(one["name"], one["state"]) for one in self.recorder.documents()]


@ERAS
async def test_a_recorded_call_is_still_relayed_without_a_task(modern: bool) -> None:
    async with connected(modern=modern) as client:
        watched = Watched(client)
        with no_tasks():
            client.call("echo", arguments={"a": 1})
            running = watched.calls()
            client.asked.answer({"content": [{"type": "text", "text": "said"}]})

        (document,) = watched.recorder.documents()
        assert running == [("echo", "running")]
        assert (document["state"], document["client"], document["outcome"]) == ("done", "c", "said")
        assert document["arguments"] == '{"a": 1}'


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (lambda client: client.asked.answer({"content": [], "isError": True}), "failed"),
        (lambda client: client.asked.fail(-1, "no"), "failed"),
        (lambda client: client.asked.lose(), "failed"),
        (lambda client: client.cancel(1), "cancelled"),
        (lambda client: None, "failed"),
    ],
    ids=["a tool's error", "an error", "lost", "cancelled", "silent"],
)
@virtual
async def test_a_recorded_call_that_fails_is_recorded_once(end: Callable[[RelayedClient], None], state: str) -> None:
    async with connected() as client:
        watched = Watched(client)
        client.call("act")
        end(client)
        await asyncio.sleep(SILENCE * 1.2)

        assert watched.calls() == [("act", state)]


@pytest.mark.parametrize("sent", [True, False])
async def test_a_recorded_call_that_is_made_again_is_recorded_once(sent: bool) -> None:
    async with connected() as client:
        watched = Watched(client)
        client.call("look")
        client.asked.lose(sent=sent)
        (await client.next_asked()).answer({"content": ["again"]})

        assert (await client.answer()).get("result") == {"content": ["again"]}
        assert watched.calls() == [("look", "done")]


async def test_a_call_is_answered_though_the_observer_goes_while_it_runs() -> None:
    async with connected() as client:
        Watched(client)
        client.call("act", 1)
        client.call("look", 2)
        client.service.forwarding.observer = None
        first, second = client.link.asked
        first.answer()
        second.lose(sent=False)
        (await client.next_asked()).answer({"content": ["again"]})

        assert len(client.answers(1)) == 1
        assert (await client.answer(2))["result"] == {"content": ["again"]}


async def test_a_call_whose_params_cannot_be_shown_is_relayed_all_the_same() -> None:
    async with connected() as client:
        watched = Watched(client)
        watched.recorder.live = False  # then each record is made short at once
        client.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % ODD_PARAMS)
        client.asked.answer(ODD_RESULT)

        assert len(client.answers()) == 1
        assert watched.calls() == [("echo", "done")]


# --- the end


@pytest.mark.parametrize(
    "after",
    [lambda asked: None, lambda asked: asked.answer(), lambda asked: asked.fail(-1), lambda asked: asked.lose()],
    ids=["nothing", "an answer", "an error", "a loss"],
)
@ERAS
async def test_a_call_that_runs_when_the_proxy_ends_is_told_once_whatever_comes_then(
    after: Callable[[Asked], None], modern: bool
) -> None:
    async with connected(modern=modern) as client:
        client.use_queue(queue_of(ScriptedAuthority(False)))
        client.call("act")
        asked = client.asked
        await client.session.close()
        if asked.open:
            after(asked)
        await turns()

        (answer,) = client.answers()
        assert answer["error"]["code"] == STOPPED
        assert is_balanced(client)


async def test_a_server_on_pipes_that_ends_with_the_proxy_causes_no_second_answer() -> None:
    async with piped() as (client, server):
        client.call("act")
        await server.next()
        closing = asyncio.ensure_future(client.session.close())
        await client.answer()
        server.hang_up()
        await closing
        await turns(50)

        assert len(client.answers()) == 1


@pytest.mark.parametrize("general", [False, True], ids=["relayed", "on the general way"])
@ERAS
async def test_a_call_that_was_cancelled_just_before_the_end_is_not_answered(general: bool, modern: bool) -> None:
    async with connected(modern=modern) as client:
        client.link.declines_calls = general
        client.call("act")
        await client.next_asked()
        client.cancel(1)
        await client.session.close()

        assert client.answers() == []


@ERAS
async def test_a_call_that_comes_after_the_end_is_refused(modern: bool) -> None:
    async with connected(modern=modern) as client:
        await client.session.close()

        client.call("act")

        assert (await client.answer())["error"]["code"] == STOPPED
        assert client.link.asked == []


# --- clients and connections that come back


async def test_after_a_new_upstream_calls_are_relayed_again() -> None:
    async with connected() as client:
        client.link.connect_anew()
        client.service.conversations.renew()
        await until(lambda: len(client.link.connections) == 2)
        await turns()

        client.call("echo")
        client.asked.answer()

        assert client.link.asked[0].relayed
        assert client.link.asked[0].connection.generation == 2


async def test_a_modern_client_whose_conversation_was_given_up_is_relayed_again() -> None:
    async with connected(modern=True, limits=QUICK.replace(modern_clients=1)) as client:
        client.call("echo", "relayed")
        client.asked.answer()
        other = {**envelope(), f"{KEY}clientInfo": {"name": "other", "version": "1"}}
        client.send(message(1, "tools/call", {"name": "echo", "_meta": other}))
        (await client.next_asked()).answer()
        await client.answer()

        relayed = []
        for number in (2, 3):
            client.call("echo", number)
            asked = await client.next_asked()
            asked.answer()
            await client.answer(number)
            relayed.append(asked.relayed)

        assert relayed == [False, True]


async def test_routes_that_are_closed_are_not_kept() -> None:
    async with connected() as client:
        for _ in range(5):
            client.call("look")
            client.asked.lose()
            (await client.next_asked()).answer()
            await client.answer()
            client.lines.clear()
            client.link.asked.clear()
        await turns()

        assert len(client.service.conversations.routes) == 1


async def test_calls_are_relayed_as_soon_as_it_is_known_who_reloads_the_code() -> None:
    async with connected() as client:
        known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        client.service.forwarding.await_reloader(known)
        client.use_queue(queue_of(ScriptedAuthority(False)))
        known.set_result(None)
        await turns()

        client.call("echo")

        assert client.asked.relayed
