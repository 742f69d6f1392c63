"""What the service hears of the resources that clients watch, over HTTP and over lines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.waiting import until
from uno_devserver.protocol.jsonrpc import BUSY, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from uno_devserver.protocol.server.subscriptions import WatchedResources

from ..conversations import Client, ModernClient, ScriptedService, endpoint_of
from ..line_clients import LineClient, ModernLineClient

A, B = "file:///a", "file:///b"


def watching(*uris: str, **more: bool) -> dict[str, Any]:
    return {"notifications": {"resourceSubscriptions": list(uris), **more}}


class Slow(ScriptedService):
    """Lets the test decide when it has heard of something."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def watched(self, uri: str, wanted: bool) -> None:
        self.follows.append((uri, wanted))
        await self.go.wait()
        if uri in self.refused:
            raise RpcError(RESOURCE_NOT_FOUND, "no")


async def test_the_service_hears_of_the_first_and_of_the_last_of_all_clients() -> None:
    service = ScriptedService()
    endpoint = endpoint_of(service)
    old, older, new = Client(endpoint), Client(endpoint), ModernClient(endpoint)
    await old.initialize()
    await older.initialize()

    for _ in range(2):
        assert (await old.ask("resources/subscribe", {"uri": A})).json["result"] == {}
    await older.ask("resources/subscribe", {"uri": A})
    stream = await new.stream("subscriptions/listen", watching(A, A))
    assert (await stream.message())["params"]["notifications"] == {"resourceSubscriptions": [A]}
    for _ in range(2):
        await old.ask("resources/unsubscribe", {"uri": A})
    await older.send("DELETE")
    before = list(service.follows)
    await stream.lose()
    await until(lambda: len(service.follows) == 2)

    assert before == [(A, True)]
    assert service.follows == [(A, True), (A, False)]


async def test_a_session_that_ends_watches_nothing() -> None:
    service = ScriptedService()
    client = LineClient(service)
    await client.initialize()
    for uri in (A, B):
        await client.ask("resources/subscribe", {"uri": uri})
    await client.endpoint.close()

    assert service.follows[:2] == [(A, True), (B, True)]
    assert sorted(service.follows[2:]) == [(A, False), (B, False)]


@pytest.mark.parametrize("over", ["http", "lines"])
async def test_closing_waits_for_a_service_that_takes_its_time_to_hear_of_it(over: str) -> None:
    class Late(ScriptedService):
        async def watched(self, uri: str, wanted: bool) -> None:
            await asyncio.sleep(0.01)
            self.follows.append((uri, wanted))

    service = Late()
    if over == "http":
        client = Client(endpoint_of(service))
        await client.initialize()
        await client.ask("resources/subscribe", {"uri": A})
        await client.endpoint.close()
    else:
        line = LineClient(service)
        await line.initialize()
        await line.ask("resources/subscribe", {"uri": A})
        await line.endpoint.close()

    assert service.follows == [(A, True), (A, False)]


async def test_a_refused_resource_is_not_watched() -> None:
    service = ScriptedService()
    service.refused = {A}
    client = LineClient(service)
    await client.initialize()

    refused = await client.ask("resources/subscribe", {"uri": A})
    client.endpoint.resource_updated(A)
    service.refused = set()
    granted = await client.ask("resources/subscribe", {"uri": A})

    assert refused["error"] == {"code": RESOURCE_NOT_FOUND, "message": f"no {A}"}
    assert granted["result"] == {}
    assert service.follows == [(A, True), (A, True)]


async def test_who_watches_all_that_it_can_may_say_so_again() -> None:
    client = LineClient(ScriptedService(), watched=1)
    await client.initialize()
    answers = [await client.ask("resources/subscribe", {"uri": uri}) for uri in (A, A, B)]

    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, BUSY]


async def test_long_uris_are_refused_in_both_eras() -> None:
    endpoint = endpoint_of(ScriptedService())
    old, new = Client(endpoint), ModernClient(endpoint)
    await old.initialize()
    longest, longer = "x://" + "u" * 4092, "x://" + "u" * 4093

    assert (await old.ask("resources/subscribe", {"uri": longest})).json["result"] == {}
    for refused in (
        await old.ask("resources/subscribe", {"uri": longer}),
        await new.ask("subscriptions/listen", watching(A, longer)),
    ):
        assert refused.error == INVALID_PARAMS
        assert "must not be longer than 4096 characters" in refused.json["error"]["message"]


async def test_all_clients_together_watch_a_limited_number_of_resources() -> None:
    endpoint = endpoint_of(ScriptedService(), all_watched=2)
    clients = [Client(endpoint) for _ in range(3)]
    for client in clients:
        await client.initialize()
    answers = [await client.ask("resources/subscribe", {"uri": A}) for client in clients]

    assert answers[2].error == BUSY
    await clients[0].ask("resources/unsubscribe", {"uri": A})
    assert (await clients[2].ask("resources/subscribe", {"uri": A})).json["result"] == {}


async def test_a_subscription_is_acknowledged_without_what_was_refused() -> None:
    service = ScriptedService()
    service.refused = {A}
    client = ModernLineClient(service)

    some = await client.ask("subscriptions/listen", watching(A, B))
    other = await client.ask("subscriptions/listen", watching(A, toolsListChanged=True))
    none = await client.ask("subscriptions/listen", watching(A))

    assert some["params"]["notifications"] == {"resourceSubscriptions": [B]}
    assert other["params"]["notifications"] == {"toolsListChanged": True}
    assert none["error"] == {"code": INVALID_PARAMS, "message": f"no {A}"}


async def test_a_refused_subscription_over_http_has_the_status_of_its_error() -> None:
    service = ScriptedService()
    service.refused = {A}

    reply = await ModernClient(endpoint_of(service)).ask("subscriptions/listen", watching(A))

    assert (reply.status, reply.error) == (400, INVALID_PARAMS)


async def test_a_service_that_fails_refuses() -> None:
    class Failing(ScriptedService):
        async def watched(self, uri: str, wanted: bool) -> None:
            raise ValueError("oops")

    old, new = LineClient(Failing()), ModernLineClient(Failing())
    await old.initialize()

    assert (await old.ask("resources/subscribe", {"uri": A}))["error"]["code"] == INTERNAL_ERROR
    assert (await new.ask("subscriptions/listen", watching(A)))["error"]["code"] == INTERNAL_ERROR


async def test_the_second_waits_for_the_word_that_the_first_gets() -> None:
    service = Slow()
    service.refused = {A}
    client = LineClient(service)
    await client.initialize()
    for number in (1, 2):
        client.send("resources/subscribe", {"uri": A}, request_id=number)
    await until(lambda: bool(service.follows))
    before = client.silent
    service.go.set()
    answers = [await client.message() for _ in range(2)]

    assert before
    assert {answer["error"]["code"] for answer in answers} == {RESOURCE_NOT_FOUND}


async def test_asking_twice_at_once_counts_once() -> None:
    service = Slow()
    client = LineClient(service)
    await client.initialize()
    for number in (1, 2):
        client.send("resources/subscribe", {"uri": A}, request_id=number)
    await until(lambda: service.follows == [(A, True)])  # the second waits behind it
    service.go.set()
    for _ in range(2):
        await client.message()
    await client.ask("resources/unsubscribe", {"uri": A})

    await until(lambda: service.follows == [(A, True), (A, False)])


async def test_the_last_word_is_right_however_fast_watchers_come_and_go() -> None:
    service = Slow()
    followed = WatchedResources(service)
    begun = asyncio.create_task(followed.begin(A))
    await until(lambda: service.follows == [(A, True)])
    service.go.set()
    await begun
    service.go.clear()

    followed.end(A)
    await until(lambda: service.follows[-1] == (A, False))  # the service thinks about it
    again = asyncio.create_task(followed.begin(A))
    await asyncio.sleep(0)
    service.go.set()
    await again

    assert service.follows == [(A, True), (A, False), (A, True)]


async def test_a_subscription_that_is_given_up_half_way_leaves_nothing_behind() -> None:
    class Half(ScriptedService):
        async def watched(self, uri: str, wanted: bool) -> None:
            self.follows.append((uri, wanted))
            if uri == B and wanted:
                await asyncio.Event().wait()

    service = Half()
    client = ModernLineClient(service)
    client.send("subscriptions/listen", watching(A, B), request_id=1)
    await until(lambda: len(service.follows) == 2)
    client.cancel(1)

    await until(lambda: sorted(service.follows) == [(A, False), (A, True), (B, False), (B, True)])
    assert client.silent


async def test_who_is_late_to_tell_the_end_does_not_end_what_has_begun_since() -> None:
    service = Slow()
    followed = WatchedResources(service)
    service.go.set()
    await followed.begin(A)
    service.go.clear()
    followed.end(A)
    await until(lambda: service.follows[-1] == (A, False))  # the service thinks about it
    given_up = asyncio.create_task(followed.begin(A))
    await asyncio.sleep(0)
    given_up.cancel()  # so there is a second end to tell, which waits behind the first
    await asyncio.wait([given_up])
    await asyncio.sleep(0)
    service.go.set()
    await asyncio.create_task(followed.begin(A))
    followed.end(A)
    await followed.close(5)

    assert service.follows == [(A, True), (A, False), (A, True), (A, False)]


async def test_what_ended_before_it_was_told_is_not_told() -> None:
    service = Slow()
    service.go.set()
    followed = WatchedResources(service)
    await followed.begin(A)
    followed.end(A)
    await followed.begin(A)
    await followed.close(1)

    assert service.follows == [(A, True)]


async def test_a_watcher_that_gives_up_waiting_is_told_of_as_gone() -> None:
    service = Slow()
    followed = WatchedResources(service)
    begun = asyncio.create_task(followed.begin(A))
    await until(lambda: service.follows == [(A, True)])
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await begun
    service.go.set()
    await followed.close(5)

    assert service.follows == [(A, True), (A, False)]


async def test_an_end_that_the_service_refuses_is_an_end() -> None:
    service = Slow()
    service.go.set()
    followed = WatchedResources(service)
    await followed.begin(A)
    service.refused = {A}
    followed.end(A)
    await followed.close(5)
    service.refused = set()
    await followed.begin(A)

    assert service.follows == [(A, True), (A, False), (A, True)]
