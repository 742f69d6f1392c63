"""The handshake era: sessions, calls, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest

from support.waiting import until
from uno_devserver.protocol.jsonrpc import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SESSION_NOT_FOUND,
    SESSION_REQUIRED,
    STOPPED,
    RpcError,
)
from uno_devserver.protocol.service import Call, Result

from ..conversations import Client, ScriptedService, Waiting, connected, endpoint_of, text


async def test_initialize_opens_a_session_and_agrees_on_a_version() -> None:
    service = ScriptedService()
    client = Client(endpoint_of(service))

    reply = await client.initialize("2025-06-18", roots={})

    assert reply.status == 200
    assert reply.json["result"] == {
        "protocolVersion": "2025-06-18",
        "capabilities": service.declared,
        "serverInfo": {"name": "scripted", "version": "1.2.3", "title": "A scripted service"},
        "instructions": "Be nice.",
    }
    assert len(reply.headers["mcp-session-id"]) == 32
    assert client.endpoint.session_count == 1
    session = service.sessions[0]
    assert (session.client.name, session.client.version) == ("c", "1")
    assert session.client.capabilities == {"roots": {}}
    assert session.client.protocol_version == "2025-06-18"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_version_is_spoken(version: str) -> None:
    client = await connected(ScriptedService(), version)

    assert client.headers["mcp-protocol-version"] == version
    assert (await client.ask("ping")).json["result"] == {}


VERSIONS = ("2026-07-28", "2099-01-01", "garbage", "", 5, None)


@pytest.mark.parametrize("params", [None, *({"protocolVersion": one, "capabilities": {}} for one in VERSIONS)])
async def test_an_unknown_version_is_answered_with_the_newest_of_the_era_and_so_are_no_params(params: Any) -> None:
    reply = await Client(endpoint_of(ScriptedService())).ask("initialize", params)

    assert reply.json["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("params", [{"capabilities": 5}, {"clientInfo": "me"}, {"capabilities": [1]}])
async def test_an_ill_formed_initialize_is_refused_and_opens_nothing(params: object) -> None:
    client = Client(endpoint_of(ScriptedService()))

    reply = await client.ask("initialize", params)

    assert (reply.status, reply.error) == (200, INVALID_PARAMS)
    assert "mcp-session-id" not in reply.headers
    assert client.endpoint.session_count == 0


async def test_session_ids_are_visible_ascii_and_differ() -> None:
    endpoint = endpoint_of(ScriptedService())

    ids = {(await Client(endpoint).initialize()).headers["mcp-session-id"] for _ in range(20)}

    assert len(ids) == 20
    assert all("!" <= character <= "~" for one in ids for character in one)


async def test_requests_before_the_initialized_notification_are_served() -> None:
    client = Client(endpoint_of(ScriptedService()))
    reply = await client.ask("initialize", {})

    listed = await client.ask("tools/list", mcp_session_id=reply.headers["mcp-session-id"])

    assert listed.json["result"] == {"tools": []}


async def test_a_request_without_session_is_told_to_initialize() -> None:
    client = Client(endpoint_of(ScriptedService()))

    reply = await client.ask("tools/list", request_id="abc")

    assert (reply.status, reply.error, reply.json["id"]) == (400, SESSION_REQUIRED, "abc")


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_an_unknown_session_is_404(method: str) -> None:
    client = Client(endpoint_of(ScriptedService()))

    reply = await client.send(method, b'{"jsonrpc":"2.0","id":1,"method":"ping"}', mcp_session_id="nope")

    assert (reply.status, reply.error) == (404, SESSION_NOT_FOUND)


async def test_a_client_may_shake_hands_again_in_its_session() -> None:
    service = ScriptedService()
    client = await connected(service, "2025-11-25")

    again = await client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}})
    stale = await client.ask("initialize", {}, mcp_session_id="gone")

    assert again.json["result"]["protocolVersion"] == "2025-06-18"
    assert again.headers["mcp-session-id"] == client.headers["mcp-session-id"]
    assert service.sessions[0].client.capabilities == {"roots": {}}
    assert client.endpoint.session_count == 1
    assert (stale.status, stale.error) == (404, SESSION_NOT_FOUND)


async def test_delete_ends_the_session() -> None:
    service = ScriptedService()
    client = await connected(service)

    first, second = await client.send("DELETE"), await client.send("DELETE")
    missing = await client.send("DELETE", mcp_session_id=None)

    assert (first.status, first.body, second.status, missing.status) == (200, b"", 404, 400)
    assert service.sessions == []
    assert (await client.ask("tools/list")).status == 404


async def test_a_call_that_runs_when_its_session_ends_gets_a_last_word() -> None:
    forever = Waiting(speaks=True)
    client = await connected(ScriptedService(forever=forever))
    stream = await client.stream("tools/call", {"name": "forever"}, request_id=5)
    standing = await client.listen()
    await client.send("DELETE")

    await asyncio.wait_for(forever.stopped.wait(), 5)
    last = (await stream.rest())[-1]
    await standing.end()

    assert (last["id"], last["error"]["code"]) == (5, STOPPED)


@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", "x"])
async def test_an_unsupported_version_header_is_refused(version: str) -> None:
    client = await connected(ScriptedService())

    posted = await client.ask("ping", mcp_protocol_version=version)
    listened = await client.send("GET", mcp_protocol_version=version)

    assert (posted.status, listened.status) == (400, 400)
    assert posted.json["error"]["data"]["requested"] == version
    assert posted.json["error"]["data"]["supported"][:2] == ["2026-07-28", "2025-11-25"]


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18"])
async def test_a_missing_or_other_version_header_of_the_era_is_taken(version: str | None) -> None:
    client = await connected(ScriptedService(), "2025-11-25")

    assert (await client.ask("ping", mcp_protocol_version=version)).status == 200


@pytest.mark.parametrize(
    ("body", "status", "code", "known"),
    [
        (b"{", 400, PARSE_ERROR, None),
        (b"[" * 200_000, 400, PARSE_ERROR, None),
        (b"nonsense", 400, PARSE_ERROR, None),
        (b"", 400, INVALID_REQUEST, None),
        (b"7", 400, INVALID_REQUEST, None),
        (b"{}", 400, INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, INVALID_REQUEST, None),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":"7","method":"no/such"}', 200, METHOD_NOT_FOUND, "7"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}', 200, INVALID_PARAMS, 1),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_a_body_that_is_no_request_is_400_and_one_that_cannot_be_fulfilled_is_200(
    body: bytes, status: int, code: int, known: object
) -> None:
    reply = await (await connected(ScriptedService())).post(body)

    assert (reply.status, reply.error, reply.json["id"], reply.json["jsonrpc"]) == (status, code, known, "2.0")


async def test_a_long_name_is_not_repeated_in_the_answer() -> None:
    client = await connected(ScriptedService(fails=_raise))

    for request in (
        client.request("m" * 100_000, [1]),
        {"jsonrpc": "2.0", "id": 1, "method": "n" * 100_000, "params": 5},
    ):
        reply = await client.post(request)
        assert len(reply.body) < 500


async def test_notifications_and_responses_are_202_without_body() -> None:
    service = ScriptedService()
    client = await connected(service)

    told = await client.tell("notifications/roots/list_changed", {"_meta": {"a": 1}})
    answered = await client.respond(99, result={})
    refused = await client.respond(None, error={"code": 1, "message": "x"})

    assert [(reply.status, reply.body) for reply in (told, answered, refused)] == [(202, b"")] * 3
    await until(lambda: service.told == [("notifications/roots/list_changed", {"_meta": {"a": 1}})])


async def test_a_service_that_fails_on_a_notification_does_no_harm() -> None:
    class Failing(ScriptedService):
        async def notified(self, session: object, method: str, params: object) -> None:
            raise SystemExit(method)

    client = await connected(Failing())

    assert (await client.tell("notifications/odd")).status == 202
    assert (await client.ask("ping")).status == 200


async def test_what_the_client_sends_reaches_the_service_untouched() -> None:
    seen: list[Call] = []

    async def look(call: Call) -> Result:
        seen.append(call)
        return {"content": [], "vendor": {"x": [1, 2.5, None]}, "_meta": {"k": "v"}}

    params = {"name": "look", "arguments": {"a": [1, {"b": None}]}, "_meta": {"progressToken": "p"}, "more": 1.5}
    client = await connected(ScriptedService(look=look))
    reply = await client.ask("tools/call", params, request_id="an id")

    assert seen[0].params == params
    assert (seen[0].id, seen[0].method) == ("an id", "tools/call")
    assert reply.json == {
        "jsonrpc": "2.0",
        "id": "an id",
        "result": {"content": [], "vendor": {"x": [1, 2.5, None]}, "_meta": {"k": "v"}},
    }


async def _raise(call: Call) -> Result:
    raise ValueError("a secret")


async def _exit(call: Call) -> Result:
    raise SystemExit(3)


async def _cancelled_inside(call: Call) -> Result:
    raise asyncio.CancelledError


async def _cancels_itself(call: Call) -> Result:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()
    return {}


async def _group(call: Call) -> Result:
    raise BaseExceptionGroup("several", [SystemExit(1), ValueError("a secret")])


async def _nothing(call: Call) -> Result:
    return None  # type: ignore[return-value]


async def _unspeakable(call: Call) -> Result:
    return {"content": object()}


async def _endless(call: Call) -> Result:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    return endless


async def _contrary(call: Call) -> Result:
    class Nowhere(tzinfo):
        def utcoffset(self, when: datetime | None) -> timedelta:
            raise LookupError("a secret")

    return {"content": datetime(2026, 1, 1, tzinfo=Nowhere())}  # type: ignore[abstract]


@pytest.mark.parametrize(
    "tool",
    [_raise, _exit, _cancelled_inside, _cancels_itself, _group, _nothing, _unspeakable, _endless, _contrary],
)
async def test_a_failing_service_is_an_internal_error_without_details(tool: Any) -> None:
    client = await connected(ScriptedService(fails=tool))

    reply = await client.ask("tools/call", {"name": "fails"}, request_id=3)

    assert (reply.status, reply.error, reply.json["id"]) == (200, INTERNAL_ERROR, 3)
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body
    assert (await client.ask("ping")).status == 200


async def test_the_traceback_of_a_failure_is_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    client = await connected(ScriptedService(fails=_raise))

    await client.ask("tools/call", {"name": "fails"})

    logged = capsys.readouterr().err
    assert "ValueError: a secret" in logged
    assert "in _raise" in logged


@pytest.mark.parametrize(("data", "told"), [({"uri": "x"}, {"data": {"uri": "x"}}), (object(), {})])
async def test_an_error_of_the_service_keeps_code_message_and_the_data_that_json_can_say(data: Any, told: Any) -> None:
    async def refuse(call: Call) -> Result:
        raise RpcError(-32002, "gone", data)

    client = await connected(ScriptedService(refuse=refuse))
    reply = await client.ask("tools/call", {"name": "refuse"})

    assert reply.status == 200
    assert reply.json["error"] == {"code": -32002, "message": "gone", **told}


async def test_a_cancelled_call_stops_and_is_not_answered() -> None:
    wait = Waiting()
    client = await connected(ScriptedService(wait=wait))
    call = asyncio.create_task(client.ask("tools/call", {"name": "wait"}, request_id="x"))
    await wait.started.wait()
    told = await client.tell("notifications/cancelled", {"requestId": "x", "reason": "enough"})
    reply = await call

    assert told.status == 202
    assert wait.stopped.is_set()
    assert (reply.status, reply.body) == (202, b"")


async def test_a_call_that_is_cancelled_before_it_began_ends_too() -> None:
    client = await connected(ScriptedService())
    call = asyncio.create_task(client.post(client.request("ping", request_id=3)))
    cancellation = asyncio.create_task(client.tell("notifications/cancelled", {"requestId": 3}))

    reply, told = await call, await cancellation

    assert (reply.status, told.status) == (202, 202)


async def test_a_call_whose_session_ends_before_it_began_gets_a_last_word() -> None:
    client = await connected(ScriptedService())
    call = asyncio.create_task(client.ask("ping"))
    ending = asyncio.create_task(client.send("DELETE"))

    assert (await call).error == STOPPED
    await ending


async def test_a_cancelled_call_is_not_answered_even_if_it_has_an_answer() -> None:
    started = asyncio.Event()

    async def stubborn(call: Call) -> Result:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return text("anyway")
        return {}

    client = await connected(ScriptedService(stubborn=stubborn))
    call = asyncio.create_task(client.post(client.request("tools/call", {"name": "stubborn"}, request_id=8)))
    await started.wait()
    await client.tell("notifications/cancelled", {"requestId": 8})
    reply = await call

    assert (reply.status, reply.body) == (202, b"")


async def test_a_cancelled_stream_ends_without_an_answer_and_cannot_be_resumed() -> None:
    client = await connected(ScriptedService(wait=Waiting(speaks=True)))
    stream = await client.stream("tools/call", {"name": "wait"}, request_id=4)
    await stream.event()
    last = (await stream.event()).id
    await client.tell("notifications/cancelled", {"requestId": 4})

    assert await stream.rest() == []
    assert (await client.send("GET", last_event_id=last)).status == 400


@pytest.mark.parametrize(("cancels", "cancelled"), [("one", n) for n in ("1", 2, None, [1], True)] + [("other", 1)])
async def test_cancelling_something_else_or_a_call_of_another_does_nothing(cancels: str, cancelled: object) -> None:
    wait = Waiting(speaks=True)
    one = await connected(ScriptedService(wait=wait))
    other = Client(one.endpoint)
    await other.initialize()
    stream = await one.stream("tools/call", {"name": "wait"}, request_id=1)
    client = one if cancels == "one" else other
    assert (await client.tell("notifications/cancelled", {"requestId": cancelled})).status == 202
    wait.go.set()

    assert (await stream.rest())[-1]["result"] == text("done")


async def test_the_log_level_is_remembered_per_session() -> None:
    async def chat(call: Call) -> Result:
        for level in ("debug", "info", "error"):
            call.notify("notifications/message", {"level": level, "data": level})
        return text(call.log_level)

    one = await connected(ScriptedService(chat=chat))
    other = Client(one.endpoint)
    await other.initialize()
    assert (await one.ask("logging/setLevel", {"level": "error"})).json["result"] == {}

    said = await (await one.stream("tools/call", {"name": "chat"})).rest()
    others = await (await other.stream("tools/call", {"name": "chat"})).rest()

    assert [message["params"]["data"] for message in said[:-1]] == ["error"]
    assert said[-1]["result"] == text("error")
    assert [message["params"]["data"] for message in others[:-1]] == ["info", "error"]


@pytest.mark.parametrize("level", ["loud", None, 5, ["debug"]])
async def test_an_unknown_log_level_is_refused(level: object) -> None:
    reply = await (await connected(ScriptedService())).ask("logging/setLevel", {"level": level})

    assert reply.error == INVALID_PARAMS


@pytest.mark.parametrize("method", ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"])
async def test_what_the_service_does_not_offer_is_not_found(method: str) -> None:
    service = ScriptedService()
    service.declared = {"tools": {}, "resources": {}}

    reply = await (await connected(service)).ask(method, {"level": "info", "uri": "a:b"})

    assert reply.error == METHOD_NOT_FOUND


async def test_calls_of_a_session_are_bounded() -> None:
    wait = Waiting(speaks=True)
    client = await connected(ScriptedService(wait=wait), limits={"calls": 2})
    streams = [await client.stream("tools/call", {"name": "wait"}) for _ in range(2)]
    refused = await client.ask("ping")
    wait.go.set()
    for stream in streams:
        await stream.end()

    assert refused.error == BUSY
    assert (await client.ask("ping")).error is None


async def test_two_requests_with_one_id_are_both_answered() -> None:
    go = asyncio.Event()

    async def wait(call: Call) -> Result:
        await go.wait()
        return text(call.params["n"])

    client = await connected(ScriptedService(wait=wait))
    calls = [
        asyncio.create_task(client.ask("tools/call", {"name": "wait", "n": number}, request_id=1))
        for number in range(2)
    ]
    await asyncio.sleep(0)
    go.set()

    assert [(await call).json["result"] for call in calls] == [text(0), text(1)]


# --- batches


async def test_a_batch_is_answered_by_a_list_in_the_version_that_has_them() -> None:
    service = ScriptedService()
    client = await connected(service, "2025-03-26")

    reply = await client.post(
        [
            client.request("ping", request_id=1),
            {"jsonrpc": "2.0", "method": "notifications/odd"},
            client.request("no/such", request_id="2"),
            {"jsonrpc": "1.0", "id": 3, "method": "ping"},
            client.request("initialize", {}, request_id=4),
            5,
        ]
    )

    answers = {answer["id"]: answer for answer in reply.json}
    assert reply.status == 200
    assert answers[1]["result"] == {}
    assert answers["2"]["error"]["code"] == METHOD_NOT_FOUND
    assert {answers[one]["error"]["code"] for one in (3, 4, None)} == {INVALID_REQUEST}
    assert len(reply.json) == 5
    await until(lambda: service.told == [("notifications/odd", {})])


async def test_a_batch_of_one_is_still_a_list() -> None:
    client = await connected(ScriptedService(), "2025-03-26")

    reply = await client.post([client.request("ping", request_id=1)])

    assert reply.json == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_nothing_is_kept_of_a_batch_that_is_all_mistakes() -> None:
    client = await connected(ScriptedService(), "2025-03-26")

    reply = await client.post([5])
    kept = await client.send("GET", last_event_id="1-0")

    assert [answer["error"]["code"] for answer in reply.json] == [INVALID_REQUEST]
    assert kept.status == 400


async def test_a_batch_without_requests_is_202() -> None:
    client = await connected(ScriptedService(), "2025-03-26")

    reply = await client.post(
        [{"jsonrpc": "2.0", "method": "notifications/odd"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]
    )

    assert (reply.status, reply.body) == (202, b"")


async def test_a_batch_in_which_something_speaks_becomes_a_stream_of_all_answers() -> None:
    async def speak(call: Call) -> Result:
        call.notify("notifications/progress", {"progress": 1})
        return text("spoken")

    client = await connected(ScriptedService(speak=speak), "2025-03-26")
    stream = await client.open(
        [client.request("tools/call", {"name": "speak"}, request_id=1), client.request("ping", request_id=2)]
    )

    messages = await stream.rest()
    assert {message["id"] for message in messages if "id" in message} == {1, 2}
    assert len(messages) == 3


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_other_versions_refuse_batches(version: str) -> None:
    client = await connected(ScriptedService(), version)

    reply = await client.post([client.request("ping")])

    assert (reply.status, reply.error) == (400, INVALID_REQUEST)
    assert version in reply.json["error"]["message"]


@pytest.mark.parametrize("size", [0, 4])
async def test_empty_and_huge_batches_are_refused(size: int) -> None:
    client = await connected(ScriptedService(), "2025-03-26", {"batch": 3})

    reply = await client.post([client.request("ping") for _ in range(size)])

    assert (reply.status, reply.error) == (400, INVALID_REQUEST)


async def test_a_batch_without_session_is_told_to_initialize() -> None:
    client = Client(endpoint_of(ScriptedService()))

    reply = await client.post([client.request("initialize", {})])

    assert (reply.status, reply.error) == (400, SESSION_REQUIRED)
