"""What a function can tell and ask while it answers."""

from __future__ import annotations

from typing import Any

import pytest

from support.addins import AddInFolder, text_of
from uno_devserver.host.addins.context import Context
from uno_devserver.host.addins.testing import Client, InProcessCall
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.service import Params, Result


async def told(
    addins: AddInFolder, *statements: str, meta: object = None, level: str | None = "debug"
) -> tuple[list[Any], Result]:
    """What a tool with these statements sends to its client, and its result."""
    body = "@addin.tool\ndef work(ctx: Context) -> None:\n    " + "\n    ".join(statements)
    async with addins.serve_register(body) as client:
        client.log_level = level
        result = await client.request("tools/call", {"name": "work", "_meta": meta})
    return client.told, result


async def test_progress_goes_to_a_client_that_asked_for_it(addins: AddInFolder) -> None:
    steps = ("ctx.progress(0, 2)", "ctx.progress(1.5, 2, 'half')", "ctx.progress(3)")

    assert (await told(addins, *steps, meta={"progressToken": "t1"}))[0] == [
        ("notifications/progress", {"progressToken": "t1", "progress": 0, "total": 2}),
        ("notifications/progress", {"progressToken": "t1", "progress": 1.5, "total": 2, "message": "half"}),
        ("notifications/progress", {"progressToken": "t1", "progress": 3}),
    ]


@pytest.mark.parametrize(
    ("meta", "count"),
    [({"progressToken": 0}, 1), ({"progressToken": ""}, 1), ({"progressToken": [1]}, 0), ({}, 0), ([], 0), (None, 0)],
)
async def test_progress_needs_a_number_or_a_text_to_go_to(addins: AddInFolder, meta: object, count: int) -> None:
    assert len((await told(addins, "ctx.progress(1)", meta=meta))[0]) == count


@pytest.mark.parametrize(("level", "count"), [("debug", 3), ("warning", 1), ("error", 0), (None, 0)])
async def test_a_client_hears_the_levels_it_wants(addins: AddInFolder, level: str | None, count: int) -> None:
    lines = (
        "ctx.log('warning', {'disk': 'full'}, logger='disk')",
        "ctx.log('info', 'caf\\udce9')",
        "ctx.log('debug', 1)",
    )
    expected = [
        ("notifications/message", {"level": "warning", "logger": "disk", "data": {"disk": "full"}}),
        ("notifications/message", {"level": "info", "logger": "sample", "data": "caf\\udce9"}),
        ("notifications/message", {"level": "debug", "logger": "sample", "data": 1}),
    ]

    assert (await told(addins, *lines, level=level))[0] == expected[:count]


async def test_an_unknown_level_is_the_authors_mistake(addins: AddInFolder) -> None:
    _, result = await told(addins, "ctx.log('loud', '!')")

    assert text_of(result).startswith("ValueError: log level 'loud' is unknown; use one of debug, info,")


async def test_a_tool_knows_its_call(addins: AddInFolder) -> None:
    body = """
    @addin.tool
    def who(ctx: Context) -> dict[str, Any]:
        ctx.close_stream()
        return {"id": ctx.request_id, "client": ctx.session.client.name, "cancelled": ctx.cancelled}
    """
    async with addins.serve_register(body) as client:
        result = await client.call("who")

    assert result["structuredContent"] == {"id": 7, "client": "tests", "cancelled": False}
    assert client.told == [("close", None)]


TYPES = """
import enum

class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"

class Order(Struct):
    name: Annotated[str, Meta(description="Your name")]
    size: Size = Size.SMALL
    count: int = 1
    note: str | None = None
    gift: bool = False

class Nested(Struct):
    inner: Order
"""
ASKS = """
@addin.tool
async def ask_model(ctx: Context) -> Any:
    return (await ctx.sample("What?", max_tokens=5, system="Be brief."))["content"]["text"]

@addin.tool
async def ask_model_raw(ctx: Context) -> Any:
    return await ctx.sample({"messages": [], "maxTokens": 1, "temperature": 0})

@addin.tool
async def order(ctx: Context) -> Any:
    answer = await ctx.elicit("What would you like?", Order)
    return f"{answer.action} {answer.content}" if answer.accepted else answer.action

@addin.tool
async def order_raw(ctx: Context) -> Any:
    answer = await ctx.elicit("?", {"type": "object", "properties": {"a": {"type": "string", "enumNames": ["A"]}}})
    return answer.content

@addin.tool
async def order_nested(ctx: Context) -> Any:
    return await ctx.elicit("?", Nested)

@addin.tool
async def folders(ctx: Context) -> Any:
    return [root["uri"] for root in await ctx.roots()]

@addin.tool
async def anything(ctx: Context) -> Any:
    return await ctx.ask("elicitation/create", {"mode": "url", "url": "https://example.com"})
"""


def answers(method: str, params: Params) -> Result:
    if method == "sampling/createMessage":
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "That."}}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///a", "name": "a"}]}
    if params.get("mode") == "url":
        return {"action": "decline"}
    return {"action": "accept", "content": {"name": "Ada", "size": "large"}}


@pytest.mark.parametrize(
    ("tool", "text", "method", "params"),
    [
        (
            "ask_model",
            "That.",
            "sampling/createMessage",
            {
                "messages": [{"role": "user", "content": {"type": "text", "text": "What?"}}],
                "maxTokens": 5,
                "systemPrompt": "Be brief.",
            },
        ),
        (
            "ask_model_raw",
            '{"role":"assistant","model":"m","content":{"type":"text","text":"That."}}',
            "sampling/createMessage",
            {"messages": [], "maxTokens": 1, "temperature": 0},
        ),
        (
            "order_raw",
            '{"name":"Ada","size":"large"}',
            "elicitation/create",
            {
                "message": "?",
                "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "enumNames": ["A"]}}},
            },
        ),
        ("folders", '["file:///a"]', "roots/list", {}),
        ("anything", '{"action":"decline"}', "elicitation/create", {"mode": "url", "url": "https://example.com"}),
    ],
)
async def test_a_client_can_be_asked(
    addins: AddInFolder, tool: str, text: str, method: str, params: dict[str, Any]
) -> None:
    async with addins.serve_register(ASKS, TYPES) as client:
        client.answers = answers
        result = await client.call(tool)

    assert text_of(result) == text
    assert client.asked == [(method, params)]


async def test_questions_keep_the_names_that_the_author_gives_them() -> None:
    named: list[str | None] = []

    class Call(InProcessCall):
        async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
            named.append(name)
            return await super().ask(method, params, name)

    client = Client(workspace="/")
    client.answers = lambda _method, _params: {"roots": []}
    context = Context(Call(client, "tools/call", {}), "sample")
    await context.ask("roots/list", {}, name="any")
    await context.sample("text", name="model")
    await context.sample({}, name="whole")
    await context.elicit("Who?", {}, name="user")
    await context.roots(name="folders")
    await context.roots()

    assert named == ["any", "model", "whole", "user", "folders", None]


async def test_a_type_becomes_a_form_and_the_answer_is_of_that_type(addins: AddInFolder) -> None:
    async with addins.serve_register(ASKS, TYPES) as client:
        client.answers = answers
        result = await client.call("order")

    ((_, params),) = client.asked
    assert params["requestedSchema"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Your name"},
            "size": {"title": "Size", "type": "string", "enum": ["large", "small"], "default": "small"},
            "count": {"type": "integer", "default": 1},
            "note": {"type": "string"},
            "gift": {"type": "boolean", "default": False},
        },
        "required": ["name"],
    }
    assert text_of(result).startswith("accept Order(name='Ada', size=<Size.LARGE: 'large'>, count=1")


async def test_a_user_may_decline_and_a_client_may_answer_nonsense(addins: AddInFolder) -> None:
    async with addins.serve_register(ASKS, TYPES) as client:
        client.answers = lambda _method, _params: {"action": "decline"}
        declined = await client.call("order")
        client.answers = lambda _method, _params: {"action": "accept", "content": {"name": 1}}
        failed = await client.call("order")

    assert text_of(declined) == "decline"
    assert text_of(failed) == "ValidationError: Expected `str`, got `int` - at `$.name`"


async def test_a_form_must_be_flat(addins: AddInFolder) -> None:
    async with addins.serve_register(ASKS, TYPES) as client:
        result = await client.call("order_nested")

    assert text_of(result).startswith("TypeError: field 'inner' cannot be asked for")


async def test_a_client_that_refuses_fails_the_tool_with_its_own_words(addins: AddInFolder) -> None:
    def refuse(_method: str, _params: Params) -> Result:
        raise RpcError(-1, "The user said no.")

    async with addins.serve_register(ASKS, TYPES) as client:
        client.answers = refuse
        result = await client.call("ask_model")

    assert result["isError"]
    assert text_of(result) == "The user said no."
