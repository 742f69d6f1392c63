"""Prompts, and the completion of their arguments."""

from __future__ import annotations

from typing import Any

import pytest

from support.addins import AddInFolder
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError

BODY = """
@addin.prompt
def simple() -> str:
    "Say hello."
    return "Hello!"

@addin.prompt(name="review", title="Review code", description="Look at code.")
async def review_code(file: Annotated[str, Meta(description="which file")], depth: int = 1) -> list[Message]:
    return [user(f"Review {file}, depth {depth + 0}."), assistant("I will.")]

@addin.prompt
def rich() -> list[Content | str]:
    return [embedded("x://y", "text"), image(b""), "and now?"]

@addin.prompt
def broken() -> str:
    return 1 / 0

@addin.prompt
def odd() -> Any:
    return 7

@addin.resource("x://{name}/{kind}")
def template(name: str, kind: str) -> str:
    return name

@addin.completion("review", "file")
def files(value: str) -> list[str]:
    return [name for name in ("main.py", "make.py", "test.py") if name.startswith(value)]

@addin.completion("x://{name}/{kind}", "kind")
async def kinds(value: str, others: dict[str, str]) -> list[str]:
    return [f"{others.get('name')}-{number}" for number in range(150)]

@addin.completion("review", "depth")
def depths(value: str) -> list[str]:
    raise ValueError("no depths")
"""


async def get(addins: AddInFolder, name: str, **arguments: str) -> Any:
    async with addins.serve_register(BODY) as client:
        return await client.request("prompts/get", {"name": name, "arguments": arguments})


async def complete(addins: AddInFolder, ref: dict[str, str], argument: str, value: str, **others: str) -> Any:
    params = {"ref": ref, "argument": {"name": argument, "value": value}, "context": {"arguments": others}}
    async with addins.serve_register(BODY) as client:
        return (await client.request("completion/complete", params))["completion"]


async def test_prompts_are_listed_with_their_arguments(addins: AddInFolder) -> None:
    async with addins.serve_register(BODY) as client:
        prompts = (await client.request("prompts/list"))["prompts"]

    assert prompts[:2] == [
        {"name": "simple", "description": "Say hello."},
        {
            "name": "review",
            "title": "Review code",
            "description": "Look at code.",
            "arguments": [
                {"name": "file", "description": "which file", "required": True},
                {"name": "depth", "required": False},
            ],
        },
    ]


async def test_text_is_a_message_of_the_user(addins: AddInFolder) -> None:
    assert await get(addins, "simple") == {
        "description": "Say hello.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello!"}}],
    }


async def test_arguments_come_as_text_and_arrive_as_declared(addins: AddInFolder) -> None:
    result = await get(addins, "review", file="a.py", depth="3")

    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Review a.py, depth 3."}},
        {"role": "assistant", "content": {"type": "text", "text": "I will."}},
    ]


async def test_messages_may_hold_resources_and_pictures(addins: AddInFolder) -> None:
    result = await get(addins, "rich")

    assert [message["content"]["type"] for message in result["messages"]] == ["resource", "image", "text"]


@pytest.mark.parametrize(
    ("name", "arguments", "code", "message"),
    [
        ("none", {}, INVALID_PARAMS, "Unknown prompt: 'none'"),
        (
            "review",
            {},
            INVALID_PARAMS,
            "Prompt 'review': Argument 'file' is missing. It takes: file, depth (optional).",
        ),
        (
            "review",
            {"file": "a", "depth": "deep"},
            INVALID_PARAMS,
            "Prompt 'review': Argument 'depth' is wrong: 'deep' is not a whole number.",
        ),
        ("broken", {}, INTERNAL_ERROR, "ZeroDivisionError: division by zero"),
        ("odd", {}, INTERNAL_ERROR, "TypeError: a prompt gives text, content or messages, not int"),
    ],
)
async def test_what_is_wrong_with_a_prompt_is_said(
    addins: AddInFolder, name: str, arguments: dict[str, str], code: int, message: str
) -> None:
    with pytest.raises(RpcError) as raised:
        await get(addins, name, **arguments)

    assert (raised.value.code, raised.value.message) == (code, message)


async def test_an_argument_of_a_prompt_is_completed(addins: AddInFolder) -> None:
    completion = await complete(addins, {"type": "ref/prompt", "name": "review"}, "file", "ma")

    assert completion == {"values": ["main.py", "make.py"], "total": 2, "hasMore": False}


async def test_a_variable_of_a_template_is_completed_with_the_others_known_and_within_the_limit(
    addins: AddInFolder,
) -> None:
    ref = {"type": "ref/resource", "uri": "x://{name}/{kind}"}

    completion = await complete(addins, ref, "kind", "", name="a")

    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 150, True)
    assert completion["values"][0] == "a-0"


@pytest.mark.parametrize("context", [None, [], {"arguments": None}, {"arguments": ["a"]}])
async def test_other_arguments_that_are_no_object_are_none(addins: AddInFolder, context: object) -> None:
    body = """
    @addin.completion("p", "a")
    def complete(value: str, others: dict[str, str]) -> list[str]: return [str(others)]
    """
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}, "context": context}
    async with addins.serve_register(body) as client:
        result = await client.request("completion/complete", params)

    assert result["completion"]["values"] == ["{}"]


async def test_an_argument_without_completion_has_no_values(addins: AddInFolder) -> None:
    assert (await complete(addins, {"type": "ref/prompt", "name": "simple"}, "x", "a"))["values"] == []


@pytest.mark.parametrize(
    ("ref", "argument", "code"),
    [
        ({"type": "ref/prompt", "name": "none"}, "x", INVALID_PARAMS),
        ({"type": "ref/prompt"}, "x", INVALID_PARAMS),
        ({"type": "ref/prompt", "name": "review"}, "depth", INTERNAL_ERROR),
    ],
)
async def test_what_cannot_be_completed_is_an_error(
    addins: AddInFolder, ref: dict[str, str], argument: str, code: int
) -> None:
    with pytest.raises(RpcError) as raised:
        await complete(addins, ref, argument, "")

    assert raised.value.code == code


async def test_a_completion_takes_the_text_and_perhaps_the_other_arguments(addins: AddInFolder) -> None:
    async with addins.serve_register('addin.completion("p", "a")(lambda: [])') as client:
        (status,) = client.addins.status.addins

    assert "must take the text so far, and may take the other arguments" in str(status.error)
