"""The modern era: every request stands for itself."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from uno_devserver.protocol.jsonrpc import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RpcError,
)
from uno_devserver.protocol.service import Call, Result
from uno_devserver.protocol.versions import HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION

from ..conversations import (
    MODERN,
    Client,
    ModernClient,
    ScriptedService,
    Waiting,
    endpoint_of,
    text,
)

META = "io.modelcontextprotocol/"
SERVER = {"name": "scripted", "version": "1.2.3", "title": "A scripted service"}


async def _echo(call: Call) -> Result:
    return text(call.params.get("arguments"))


async def test_discover_tells_what_the_server_can() -> None:
    service = ScriptedService()

    reply = await ModernClient(endpoint_of(service)).ask("server/discover", request_id="server-discover-probe-1")

    assert reply.status == 200
    assert reply.json == {
        "jsonrpc": "2.0",
        "id": "server-discover-probe-1",
        "result": {
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": service.declared,
            "instructions": "Be nice.",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META + "serverInfo": SERVER},
        },
    }


async def test_a_request_needs_no_session_and_gets_none() -> None:
    service = ScriptedService(echo=_echo)
    client = ModernClient(endpoint_of(service))

    reply = await client.ask("tools/call", {"name": "echo", "arguments": {"a": 1}}, mcp_session_id="whatever")

    assert reply.json["result"]["content"] == text({"a": 1})["content"]
    assert "mcp-session-id" not in reply.headers
    assert client.endpoint.session_count == 0
    assert service.sessions == []


@pytest.mark.parametrize(
    "method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"]
)
async def test_lists_say_how_long_they_hold(method: str) -> None:
    service = ScriptedService()

    async def answer(call: Call) -> Result:
        return {"things": []}

    service.methods[method] = answer
    result = (await ModernClient(endpoint_of(service)).ask(method, {"uri": "a:b"})).json["result"]

    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")


async def test_what_the_service_says_itself_stays() -> None:
    service = ScriptedService()

    async def answer(call: Call) -> Result:
        return {
            "tools": [],
            "ttlMs": 5000,
            "cacheScope": "public",
            "_meta": {"mine": 1, META + "serverInfo": {"name": "x"}},
        }

    service.methods["prompts/list"] = answer
    result = (await ModernClient(endpoint_of(service)).ask("prompts/list")).json["result"]

    assert (result["ttlMs"], result["cacheScope"]) == (5000, "public")
    assert result["_meta"] == {"mine": 1, META + "serverInfo": {"name": "x"}}


async def test_other_results_do_not_say_how_long_they_hold() -> None:
    result = (await ModernClient(endpoint_of(ScriptedService(echo=_echo))).ask("tools/call", {"name": "echo"})).json[
        "result"
    ]

    assert "ttlMs" not in result
    assert result["resultType"] == "complete"


async def test_the_service_sees_who_asks_and_everything_it_sent() -> None:
    seen: list[Call] = []

    async def look(call: Call) -> Result:
        seen.append(call)
        return {}

    client = ModernClient(endpoint_of(ScriptedService(look=look)), sampling={"tools": {}})
    meta = {
        META + "clientInfo": {"name": "me", "version": "9"},
        META + "logLevel": "error",
        "progressToken": 5,
        "x/y": 1,
    }
    await client.ask("tools/call", {"name": "look", "odd": [1], "_meta": meta}, request_id="q")

    call = seen[0]
    assert (call.id, call.method, call.log_level) == ("q", "tools/call", "error")
    assert (call.session.client.name, call.session.client.version) == ("me", "9")
    assert call.session.client.capabilities == {"sampling": {"tools": {}}}
    assert call.session.client.protocol_version == MODERN
    assert call.params["odd"] == [1]
    assert call.params["_meta"]["x/y"] == 1


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
async def test_a_missing_key_of_the_envelope_is_named(missing: str) -> None:
    client = ModernClient(endpoint_of(ScriptedService()))
    request = client.request("tools/list", request_id=4)
    del request["params"]["_meta"][META + missing]

    reply = await client.post(request)

    assert (reply.status, reply.error, reply.json["id"]) == (400, INVALID_PARAMS, 4)
    assert META + missing in reply.json["error"]["message"]


@pytest.mark.parametrize("params", [None, {}, {"_meta": None}, {"_meta": 5}])
async def test_a_request_without_envelope_is_refused(params: object) -> None:
    client = Client(endpoint_of(ScriptedService()))

    reply = await client.ask("tools/list", params, mcp_protocol_version=MODERN, mcp_method="tools/list")

    assert (reply.status, reply.error) == (400, INVALID_PARAMS)


async def test_client_info_is_optional() -> None:
    assert (await ModernClient(endpoint_of(ScriptedService())).ask("tools/list")).status == 200


@pytest.mark.parametrize("capabilities", [None, 5, []])
async def test_capabilities_must_be_an_object(capabilities: Any) -> None:
    client = ModernClient(endpoint_of(ScriptedService()))
    request = client.request("tools/list")
    request["params"]["_meta"][META + "clientCapabilities"] = capabilities

    reply = await client.post(request)

    assert (reply.status, reply.error) == (
        200 if capabilities is None else 400,
        None if capabilities is None else INVALID_PARAMS,
    )


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("mcp_protocol_version", None),
        ("mcp_protocol_version", "2025-11-25"),
        ("mcp_protocol_version", "2099-01-01"),
        ("mcp_protocol_version", f"{MODERN}, {MODERN}"),
        ("mcp_method", None),
        ("mcp_method", "tools/list"),
        ("mcp_method", "TOOLS/CALL"),
        ("mcp_name", None),
        ("mcp_name", "other"),
        ("mcp_name", "=?base64?!!!?="),
        ("mcp_name", "=?base64?ZWNobx==?="),
        ("mcp_name", "=?base64?/w==?="),
    ],
)
async def test_headers_must_say_what_the_body_says(header: str, value: str | None) -> None:
    client = ModernClient(endpoint_of(ScriptedService(echo=_echo)))

    reply = await client.ask("tools/call", {"name": "echo"}, request_id=6, **{header: value})

    assert (reply.status, reply.error, reply.json["id"]) == (400, HEADER_MISMATCH, 6)


@pytest.mark.parametrize("name", ["echo", "écho", " padded ", "=?base64?x?="])
async def test_a_name_may_be_wrapped_in_base64(name: str) -> None:
    client = ModernClient(endpoint_of(ScriptedService(**{name: _echo})))
    wrapped = f"=?base64?{base64.b64encode(name.encode()).decode()}?="

    assert (await client.ask("tools/call", {"name": name}, mcp_name=wrapped)).status == 200


async def test_resources_are_named_by_their_uri() -> None:
    service = ScriptedService()

    async def answer(call: Call) -> Result:
        return {"contents": []}

    service.methods["resources/read"] = answer
    client = ModernClient(endpoint_of(service))

    right = await client.ask("resources/read", {"uri": "file:///a b"})
    wrong = await client.ask("resources/read", {"uri": "file:///a b"}, mcp_name="file:///b")

    assert (right.status, wrong.status) == (200, 400)


async def test_an_unsupported_version_is_answered_with_the_supported_ones() -> None:
    client = ModernClient(endpoint_of(ScriptedService()))
    request = client.request("tools/list", request_id=1)
    request["params"]["_meta"][META + "protocolVersion"] = "2027-01-01"

    reply = await client.post(request, mcp_protocol_version="2027-01-01")

    assert (reply.status, reply.error) == (400, UNSUPPORTED_VERSION)
    assert reply.json["error"]["data"] == {"supported": [MODERN], "requested": "2027-01-01"}


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"]
)
async def test_methods_that_this_era_does_not_have_are_404(method: str) -> None:
    reply = await ModernClient(endpoint_of(ScriptedService())).ask(method, {"uri": "a:b", "level": "info"})

    assert (reply.status, reply.error) == (404, METHOD_NOT_FOUND)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", PARSE_ERROR),
        (b"", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', INVALID_PARAMS),
    ],
)
async def test_bodies_that_are_no_request_are_400(body: bytes, code: int) -> None:
    reply = await ModernClient(endpoint_of(ScriptedService())).post(body)

    assert (reply.status, reply.error) == (400, code)


async def test_notifications_are_accepted_and_dropped() -> None:
    service = ScriptedService()
    client = ModernClient(endpoint_of(service))

    reply = await client.tell("notifications/cancelled", {"requestId": 1})
    unknown = await client.post({"jsonrpc": "2.0", "method": "notifications/x"}, mcp_protocol_version="2099-01-01")

    assert (reply.status, reply.body) == (202, b"")
    assert (unknown.status, unknown.error) == (400, UNSUPPORTED_VERSION)
    assert service.told == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_nothing_to_get_or_delete(method: str) -> None:
    reply = await ModernClient(endpoint_of(ScriptedService())).send(method)

    assert (reply.status, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (RpcError(INVALID_PARAMS, "bad"), 400, INVALID_PARAMS),
        (RpcError(METHOD_NOT_FOUND, "none"), 404, METHOD_NOT_FOUND),
        (RpcError(-32002, "no such resource", {"uri": "x"}), 400, INVALID_PARAMS),
        (RpcError(-32005, "ours"), 200, -32005),
        (ValueError("secret"), 200, INTERNAL_ERROR),
        (SystemExit(1), 200, INTERNAL_ERROR),
    ],
    ids=repr,
)
async def test_errors_of_the_service_have_their_http_status(raised: BaseException, status: int, code: int) -> None:
    async def fail(call: Call) -> Result:
        raise raised

    reply = await ModernClient(endpoint_of(ScriptedService(fail=fail))).ask("tools/call", {"name": "fail"})

    assert (reply.status, reply.error) == (status, code)
    assert b"secret" not in reply.body


async def test_a_call_that_cancels_itself_is_answered() -> None:
    async def fail(call: Call) -> Result:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()
        return {}

    reply = await ModernClient(endpoint_of(ScriptedService(fail=fail))).ask("tools/call", {"name": "fail"})

    assert (reply.status, reply.error) == (200, INTERNAL_ERROR)


async def test_a_call_that_speaks_gets_a_stream_without_event_ids() -> None:
    async def speak(call: Call) -> Result:
        call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        call.session.notify("notifications/tools/list_changed")
        call.close_stream()
        return text("spoken")

    stream = await ModernClient(endpoint_of(ScriptedService(speak=speak))).stream("tools/call", {"name": "speak"})
    messages = await stream.rest()

    assert [message.get("method") for message in messages] == ["notifications/progress", None]
    assert messages[-1]["result"]["resultType"] == "complete"
    assert b"id: " not in stream.raw
    assert stream.headers["X-Accel-Buffering"] == "no"


@pytest.mark.parametrize(
    ("level", "heard"), [(None, []), ("debug", ["debug", "error"]), ("error", ["error"]), ("x", [])]
)
async def test_log_messages_are_sent_to_those_who_ask_for_them(level: str | None, heard: list[str]) -> None:
    async def chat(call: Call) -> Result:
        for one in ("debug", "error"):
            call.notify("notifications/message", {"level": one, "data": one})
        return text("done")

    client = ModernClient(endpoint_of(ScriptedService(chat=chat)))
    meta = {} if level is None else {META + "logLevel": level}
    messages = await client.messages("tools/call", {"name": "chat", "_meta": meta})

    assert [message["params"]["data"] for message in messages[:-1]] == heard


async def test_a_lost_connection_cancels_the_call() -> None:
    wait = Waiting(speaks=True)
    stream = await ModernClient(endpoint_of(ScriptedService(wait=wait))).stream("tools/call", {"name": "wait"})
    await stream.message()
    await stream.lose()

    await asyncio.wait_for(wait.stopped.wait(), 5)


async def test_a_client_that_leaves_before_anything_was_said_cancels_the_call() -> None:
    wait = Waiting()
    client = ModernClient(endpoint_of(ScriptedService(wait=wait)))
    call = asyncio.create_task(client.post(client.request("tools/call", {"name": "wait"})))
    await wait.started.wait()
    call.cancel()

    await asyncio.wait_for(wait.stopped.wait(), 5)


async def test_calls_are_bounded() -> None:
    wait = Waiting(speaks=True)
    client = ModernClient(endpoint_of(ScriptedService(wait=wait), calls=1))
    stream = await client.stream("tools/call", {"name": "wait"})
    refused = await client.ask("tools/list")
    wait.go.set()
    await stream.end()

    assert refused.error == BUSY
    assert (await client.ask("tools/list")).error is None


async def test_a_missing_capability_is_400() -> None:
    async def who(call: Call) -> Result:
        return await call.ask("elicitation/create", {})

    reply = await ModernClient(endpoint_of(ScriptedService(who=who))).ask("tools/call", {"name": "who"})

    assert (reply.status, reply.error) == (400, MISSING_CAPABILITY)
    assert reply.json["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
