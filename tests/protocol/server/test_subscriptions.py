"""Modern subscriptions."""

from __future__ import annotations

import pytest

from support.waiting import until
from uno_devserver.protocol.jsonrpc import BUSY, INVALID_PARAMS

from ..conversations import ModernClient, ScriptedService, endpoint_of

ID = "io.modelcontextprotocol/subscriptionId"
ALL = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["file:///a"],
}


async def test_the_first_message_acknowledges_what_was_asked_for() -> None:
    client = ModernClient(endpoint_of(ScriptedService()))

    stream = await client.stream("subscriptions/listen", {"notifications": ALL}, request_id="listen-1")
    first = await stream.message()

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"] == {"notifications": ALL, "_meta": {ID: "listen-1"}}
    assert b"id: " not in stream.raw
    await stream.lose()


async def test_only_what_the_server_can_do_is_acknowledged() -> None:
    service = ScriptedService()
    service.declared = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {}}
    client = ModernClient(endpoint_of(service))

    wish = {**ALL, "promptsListChanged": "yes", "later": True}
    stream = await client.stream("subscriptions/listen", {"notifications": wish})

    assert (await stream.message())["params"]["notifications"] == {"toolsListChanged": True}
    await stream.lose()


async def test_only_what_was_asked_for_is_sent_each_with_the_subscriptions_id() -> None:
    client = ModernClient(endpoint_of(ScriptedService()))
    tools = await client.stream("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, request_id=1)
    file = await client.stream(
        "subscriptions/listen",
        {"notifications": {"toolsListChanged": False, "resourceSubscriptions": ["file:///a"]}},
        request_id="f",
    )
    await tools.message()
    await file.message()

    for name in ("prompts", "resources", "tools"):
        client.endpoint.broadcast(f"notifications/{name}/list_changed")
    client.endpoint.broadcast("notifications/odd")
    for uri in ("file:///b", "file:///a"):
        client.endpoint.resource_updated(uri)

    assert await tools.message() == {
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": {"_meta": {ID: 1}},
    }
    assert await file.message() == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": "file:///a", "_meta": {ID: "f"}},
    }
    await tools.lose()
    await file.lose()


async def test_changes_that_wait_are_told_once() -> None:
    client = ModernClient(endpoint_of(ScriptedService()))
    stream = await client.stream("subscriptions/listen", {"notifications": {"toolsListChanged": True}})

    for _ in range(100):
        client.endpoint.broadcast("notifications/tools/list_changed")
    client.endpoint.broadcast("notifications/tools/list_changed", {"_meta": {"why": "x"}})
    await stream.message()
    told = [await stream.message(), await stream.message()]

    assert [set(message["params"]["_meta"]) for message in told] == [{ID}, {ID, "why"}]
    await stream.lose()


@pytest.mark.parametrize("params", [{}, {"notifications": None}, {"notifications": [1]}])
async def test_a_subscription_says_what_it_wants(params: object) -> None:
    reply = await ModernClient(endpoint_of(ScriptedService())).ask("subscriptions/listen", params)

    assert (reply.status, reply.error) == (400, INVALID_PARAMS)


@pytest.mark.parametrize("uris", ["file:///a", [1], {}, ["a:1", "a:2", "a:3"]])
async def test_watched_resources_are_a_list_of_uris_not_too_long(uris: object) -> None:
    client = ModernClient(endpoint_of(ScriptedService(), watched=2))

    reply = await client.ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})

    assert (reply.status, reply.error) == (400, INVALID_PARAMS)


async def test_a_subscription_is_a_stream_or_nothing() -> None:
    client = ModernClient(endpoint_of(ScriptedService()))

    reply = await client.ask("subscriptions/listen", {"notifications": {}}, accept="application/json")

    assert reply.status == 406


async def test_subscriptions_are_bounded_and_make_room_when_their_client_leaves() -> None:
    client = ModernClient(endpoint_of(ScriptedService(), subscriptions=1))
    first = await client.stream("subscriptions/listen", {"notifications": {}})
    await first.message()

    refused = await client.ask("subscriptions/listen", {"notifications": {}})
    await first.lose()
    second = await client.stream("subscriptions/listen", {"notifications": {}})

    assert refused.error == BUSY
    assert (await second.message())["params"]["notifications"] == {}
    await second.lose()


async def test_a_quiet_subscription_is_kept_alive() -> None:
    client = ModernClient(endpoint_of(ScriptedService(), keep_alive_seconds=0.01))
    stream = await client.stream("subscriptions/listen", {"notifications": {}})

    await until(lambda: stream.raw.count(b": keep-alive") >= 3)

    await stream.lose()


async def test_a_stopping_server_says_that_this_was_all() -> None:
    client = ModernClient(endpoint_of(ScriptedService()))
    stream = await client.stream("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, request_id=7)
    client.endpoint.broadcast("notifications/tools/list_changed")

    await client.endpoint.close()
    messages = await stream.rest()

    assert messages[1]["method"] == "notifications/tools/list_changed"
    assert messages[-1]["id"] == 7
    assert messages[-1]["result"]["_meta"][ID] == 7


async def test_the_handshake_era_has_no_subscriptions() -> None:
    from ..conversations import connected

    reply = await (await connected(ScriptedService())).ask("subscriptions/listen", {"notifications": {}})

    assert reply.error == -32601
