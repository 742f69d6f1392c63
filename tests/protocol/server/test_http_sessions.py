"""How sessions are kept and end."""

from __future__ import annotations

import asyncio

import pytest

from support.virtual_time import virtual
from support.waiting import until
from uno_devserver.protocol.http.messages import Answer, Request
from uno_devserver.protocol.http.transport import MemoryBudget, UsedMessage
from uno_devserver.protocol.jsonrpc import BUSY, INVALID_PARAMS
from uno_devserver.protocol.service import Call, Result
from uno_devserver.protocol.versions import LONGEST_KEPT, initializing_client

from ..conversations import Client, ScriptedService, endpoint_of


async def _wait(call: Call) -> Result:
    call.notify("notifications/progress", {"progress": 1})
    await asyncio.Event().wait()
    return {}


async def test_the_longest_idle_session_makes_room_for_a_new_one() -> None:
    service = ScriptedService()
    endpoint = endpoint_of(service, sessions=3)
    clients = [Client(endpoint) for _ in range(4)]
    for client in clients[:3]:
        await client.initialize()
    await clients[0].ask("ping")

    await clients[3].initialize()
    statuses = [(await client.ask("ping")).status for client in clients]

    assert statuses == [200, 404, 200, 200]
    assert endpoint.session_count == 3
    assert len(service.sessions) == 3


async def test_busy_sessions_are_not_ended_for_a_new_one() -> None:
    endpoint = endpoint_of(ScriptedService(wait=_wait), sessions=2)
    calling, listening, late = Client(endpoint), Client(endpoint), Client(endpoint)
    await calling.initialize()
    await listening.initialize()
    call = await calling.stream("tools/call", {"name": "wait"})
    listener = await listening.listen()
    await listener.event()

    refused = await late.ask("initialize", {})
    await listener.lose()
    await late.initialize()

    assert (refused.status, refused.error) == (503, BUSY)
    assert (await listening.ask("ping")).status == 404
    assert (await calling.ask("ping")).status == 200
    await endpoint.close()
    await call.end()


async def test_the_body_of_a_call_that_outlives_its_connection_counts_until_the_call_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget = MemoryBudget(1_000_000)
    endpoint = endpoint_of(ScriptedService(wait=_wait))
    client = Client(endpoint)
    await client.initialize()
    handle, used = endpoint.handle, UsedMessage(budget, 100_000)

    async def handle_large(request: Request) -> Answer:
        return await handle(request.replace(used=used))

    monkeypatch.setattr(endpoint, "handle", handle_large)
    call = await client.stream("tools/call", {"name": "wait"})
    await call.lose()
    used.release()  # by the connection

    assert budget._total == 100_000
    await endpoint.close()
    await until(lambda: budget._total == 0)


async def test_answers_that_are_kept_for_lost_clients_share_one_budget() -> None:
    async def large(call: Call) -> Result:
        call.notify("notifications/progress", {"progress": 1})
        return {"content": [{"type": "text", "text": "x" * 100_000}]}

    endpoint = endpoint_of(ScriptedService(large=large), kept_bytes=250_000)
    clients = [Client(endpoint) for _ in range(5)]
    for client in clients:
        await client.initialize()
        await (await client.stream("tools/call", {"name": "large"})).lose()

    sessions = list(endpoint._sessions)
    await until(lambda: sum(len(session._kept) for session in sessions) == 2)
    assert [session.size > 0 for session in sessions] == [False, False, False, True, True]


@pytest.mark.parametrize("capabilities", [{"experimental": {"x": ["c" * 9000]}}, {"experimental": [[]] * 9000}])
async def test_a_client_that_says_too_much_of_itself_gets_no_session(capabilities: dict[str, object]) -> None:
    endpoint = endpoint_of(ScriptedService())

    refused = await Client(endpoint).ask("initialize", {"capabilities": capabilities})

    assert refused.error == INVALID_PARAMS
    assert "client's capabilities must not be longer" in refused.json["error"]["message"]
    assert endpoint.session_count == 0


def test_of_a_clients_name_and_version_the_beginning_is_kept() -> None:
    client = initializing_client({"clientInfo": {"name": "n" * 10_000_000, "version": "1" * 9000}})

    assert (client.name, client.version) == ("n" * LONGEST_KEPT, "1" * LONGEST_KEPT)


async def test_idle_sessions_expire() -> None:
    service = ScriptedService()
    client = Client(endpoint_of(service, session_idle_seconds=0.02, sweep_seconds=0.005))
    await client.initialize()

    await until(lambda: client.endpoint.session_count == 0)

    assert (await client.ask("ping")).status == 404
    assert service.sessions == []


@virtual
async def test_a_session_that_is_used_or_listened_to_does_not_expire() -> None:
    endpoint = endpoint_of(ScriptedService(wait=_wait), session_idle_seconds=0.3, sweep_seconds=0.01)
    listening, calling, idle = Client(endpoint), Client(endpoint), Client(endpoint)
    await listening.initialize()
    await calling.initialize()
    listener = await listening.listen()
    call = await calling.stream("tools/call", {"name": "wait"})
    await call.lose()  # the call goes on
    await idle.initialize()

    await until(lambda: endpoint.session_count == 2)  # the last one that came has expired

    assert (await listening.ask("ping")).status == 200
    assert (await calling.ask("ping")).status == 200
    await listener.lose()
    await endpoint.close()


async def test_sessions_can_come_again_after_all_have_expired() -> None:
    endpoint = endpoint_of(ScriptedService(), session_idle_seconds=0.01, sweep_seconds=0.005)
    for _ in range(2):
        await Client(endpoint).initialize()
        await until(lambda: endpoint.session_count == 0)


async def test_a_service_that_fails_on_coming_and_going_does_no_harm() -> None:
    class Failing(ScriptedService):
        def opened(self, session: object) -> None:
            raise ValueError

        def closed(self, session: object) -> None:
            raise ValueError

    client = Client(endpoint_of(Failing()))
    await client.initialize()

    assert (await client.ask("ping")).status == 200
    await client.send("DELETE")
    assert client.endpoint.session_count == 0
