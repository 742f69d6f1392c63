"""A service with another server behind it: results that are complete, and states that are that server's."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from protocol.conversations import QUESTION, ask_who
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS
from uno_devserver.protocol.service import Call, Result

from ..conversations import Client, ModernClient, ScriptedService, endpoint_of, text
from ..line_clients import ModernLineClient

ASKING = {
    "resultType": "input_required",
    "inputRequests": {"theirs": {"method": "elicitation/create", "params": QUESTION}},
    "requestState": "their-state",
}


def relaying(**tools: Any) -> ScriptedService:
    service = ScriptedService(**tools)
    service.relays = True
    return service


@pytest.mark.parametrize("raw", [True, False])
async def test_a_question_of_the_server_behind_passes_and_so_does_its_answer(raw: bool) -> None:
    seen: list[Any] = []

    async def theirs(call: Call) -> Any:
        seen.append(dict(call.params))
        if "requestState" not in call.params:
            return msgspec.Raw(json.dumps(ASKING).encode()) if raw else dict(ASKING)
        return msgspec.Raw(b'{"resultType":"complete","content":[],"theirs":1.50}')

    again = {"name": "theirs", "requestState": "their-state", "inputResponses": {"theirs": {"action": "decline"}}}
    line = ModernLineClient(relaying(theirs=theirs))
    asked = await line.ask("tools/call", {"name": "theirs"})
    line.call("theirs", **{key: value for key, value in again.items() if key != "name"}, request_id="a")
    done = await line.raw()
    http = ModernClient(endpoint_of(relaying(theirs=theirs)), elicitation={})
    asked_over_http = await http.ask("tools/call", {"name": "theirs"})
    done_over_http = await http.ask("tools/call", again, request_id="a")

    assert asked["result"] == ASKING
    assert asked_over_http.json["result"] == ASKING
    assert done == b'{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[],"theirs":1.50}}'
    assert done_over_http.body == done
    for params in (seen[1], seen[3]):
        assert {key: value for key, value in params.items() if key != "_meta"} == again


async def test_a_question_of_the_service_itself_is_parked_beside_that() -> None:
    client = ModernLineClient(relaying(who=ask_who))
    asked = await client.ask("tools/call", {"name": "who"})
    state = asked["result"]["requestState"]
    again = {"name": "who", "requestState": state, "inputResponses": {"question-1": {"content": {"name": "Ada"}}}}
    done = await client.ask("tools/call", again)
    twice = await client.ask("tools/call", again)

    assert done["result"]["content"] == text("Ada")["content"]
    # A state of ours that is used up must not begin the call again.
    assert twice["error"]["code"] == INVALID_PARAMS


async def test_without_a_server_behind_a_foreign_state_is_refused() -> None:
    client = ModernLineClient(ScriptedService(who=ask_who))

    refused = await client.ask("tools/call", {"name": "who", "requestState": "their-state"})

    assert refused["error"]["code"] == INVALID_PARAMS


async def test_without_a_server_behind_a_question_says_who_asks() -> None:
    async def asking(call: Call) -> Result:
        return dict(ASKING)

    answer = await ModernLineClient(ScriptedService(asking=asking)).ask("tools/call", {"name": "asking"})

    assert answer["result"].pop("_meta").keys() == {"io.modelcontextprotocol/serverInfo"}
    assert answer["result"] == ASKING


async def test_a_result_of_a_service_that_is_json_already_is_complete() -> None:
    async def raw(call: Call) -> msgspec.Raw:
        return msgspec.Raw(b'{ "content": [] ,\n"x": 1e2 }')

    endpoint = endpoint_of(ScriptedService(raw=raw))
    old, new = Client(endpoint), ModernClient(endpoint)
    await old.initialize()

    for client in (old, new):
        reply = await client.ask("tools/call", {"name": "raw"}, request_id=1)
        assert reply.body == b'{"jsonrpc":"2.0","id":1,"result":{ "content": [] , "x": 1e2 }}'


@pytest.mark.parametrize("space", [b" ", b"\n", b"\r", b"\r\n\t"])
async def test_such_a_result_is_one_line_whatever_white_space_is_in_it(space: bytes) -> None:
    async def raw(call: Call) -> msgspec.Raw:
        return msgspec.Raw(b'{"content":%s[]}' % space)

    answer = await ModernLineClient(ScriptedService(raw=raw)).ask("tools/call", {"name": "raw"})

    assert answer["result"] == {"content": []}


async def test_such_a_result_is_one_event_of_a_stream() -> None:
    async def raw(call: Call) -> msgspec.Raw:
        call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        return msgspec.Raw(b'{\r\n"content": []\r\n}')

    stream = await ModernClient(endpoint_of(ScriptedService(raw=raw))).stream("tools/call", {"name": "raw"})

    assert (await stream.rest())[-1]["result"] == {"content": []}
