"""An add-in that offers what the scenarios of the public MCP conformance suite ask a server for."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

from uno_devserver.host.addins import (
    AddIn,
    Content,
    Context,
    Elicited,
    Message,
    ToolError,
    audio,
    embedded,
    image,
    user,
)

RED_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
SILENCE = bytes.fromhex("524946462400000057415645666d74201000000001000100401f0000803e0000020010006461746100000000")
PAUSE_SECONDS = 0.05  # what the scenarios ask for between two notifications

ADDRESS_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
USER_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
OPTIONS = ["option1", "option2", "option3"]
ENUMS_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": f"value{n}", "title": f"{word} Option"}
                for n, word in enumerate(("First", "Second", "Third"), 1)
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": f"value{n}", "title": f"{word} Choice"}
                    for n, word in enumerate(("First", "Second", "Third"), 1)
                ]
            },
        },
    },
}


def register(addin: AddIn) -> None:
    _register_content(addin)
    _register_changes(addin)
    _register_talking(addin)
    _register_asking(addin)
    _register_resources(addin)
    _register_prompts(addin)


def _register_content(addin: AddIn) -> None:
    @addin.tool
    def test_simple_text() -> str:
        """Text."""
        return "This is a simple text response for testing."

    @addin.tool
    def test_image_content() -> Content:
        """A picture."""
        return image(RED_PIXEL)

    @addin.tool
    def test_audio_content() -> Content:
        """A sound."""
        return audio(SILENCE)

    @addin.tool
    def test_embedded_resource() -> Content:
        """A resource with its contents."""
        return embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")

    @addin.tool
    def test_multiple_content_types() -> list[Content | str]:
        """Text, a picture and a resource."""
        data = json.dumps({"test": "data", "value": 123})
        resource = embedded("test://mixed-content-resource", data, "application/json")
        return ["Multiple content types test:", image(RED_PIXEL), resource]

    @addin.tool
    def test_error_handling() -> str:
        """An error."""
        raise ToolError("This tool intentionally returns an error for testing")

    @addin.tool(input_schema=ADDRESS_SCHEMA)
    def json_schema_2020_12_tool(**arguments: Any) -> str:
        """Tool with JSON Schema 2020-12 features"""
        return json.dumps(arguments)


def _register_changes(addin: AddIn) -> None:
    numbers = count(1)

    @addin.tool
    def test_trigger_tool_change() -> str:
        """Offers one tool more."""
        addin.tool(name=f"test_new_tool_{next(numbers)}")(test_trigger_tool_change)
        return "changed"

    @addin.tool
    def test_trigger_prompt_change() -> str:
        """Offers one prompt more."""
        addin.prompt(name=f"test_new_prompt_{next(numbers)}")(test_trigger_tool_change)
        return "changed"


def _register_talking(addin: AddIn) -> None:
    @addin.tool
    async def test_tool_with_logging(ctx: Context) -> str:
        """Log messages while it works."""
        ctx.log("info", "Tool execution started")
        await asyncio.sleep(PAUSE_SECONDS)
        ctx.log("info", "Tool processing data")
        await asyncio.sleep(PAUSE_SECONDS)
        ctx.log("info", "Tool execution completed")
        return "logged"

    @addin.tool
    def test_logging_tool(ctx: Context) -> str:
        """A log message, for those who want one."""
        ctx.log("info", "Tool execution started")
        return "logged"

    @addin.tool
    async def test_tool_with_progress(ctx: Context) -> str:
        """Progress while it works."""
        for progress in (0, 50, 100):
            ctx.progress(progress, 100)
            await asyncio.sleep(PAUSE_SECONDS)
        return "progressed"

    @addin.tool
    async def test_reconnection(ctx: Context) -> str:
        """Closes the connection and finishes when the client comes back."""
        ctx.close_stream()
        await asyncio.sleep(2 * PAUSE_SECONDS)
        return "Reconnection test completed successfully."


def _register_asking(addin: AddIn) -> None:
    @addin.tool
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Asks the client's model."""
        sampled = await ctx.sample(prompt, max_tokens=100)
        return f"LLM response: {sampled['content']['text']}"

    @addin.tool
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Asks the user."""
        elicited = await ctx.elicit(message, USER_FORM)
        return f"User response: {_told(elicited)}"

    @addin.tool
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Asks with defaults of all kinds."""
        return f"Elicitation completed: {_told(await ctx.elicit('Please check these values', DEFAULTS_FORM))}"

    @addin.tool
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Asks for choices of all kinds."""
        return f"Elicitation completed: {_told(await ctx.elicit('Please choose', ENUMS_FORM))}"

    @addin.tool
    async def test_input_required_result_elicitation(ctx: Context) -> str:
        """Asks for a name."""
        return f"Hello, {await _ask_for(ctx, 'What is your name?', 'name', question='user_name')}!"

    @addin.tool
    async def test_input_required_result_sampling(ctx: Context) -> str:
        """Asks the client's model for a capital."""
        sampled = await ctx.sample("What is the capital of France?", max_tokens=100)
        return str(sampled["content"]["text"])

    @addin.tool
    async def test_input_required_result_list_roots(ctx: Context) -> str:
        """Asks for the client's folders."""
        return json.dumps(await ctx.roots())

    @addin.tool
    async def test_input_required_result_request_state(ctx: Context) -> str:
        """Asks, and knows where it was when the answer comes."""
        await _ask_for(ctx, "Please confirm", "ok", "boolean")
        return "state-ok"

    @addin.tool
    async def test_input_required_result_tampered_state(ctx: Context) -> str:
        """Asks, for somebody who comes back with another state."""
        await _ask_for(ctx, "Please confirm", "ok", "boolean")
        return "state-ok"

    @addin.tool
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
        """Asks three questions at once."""
        name, greeting, roots = await asyncio.gather(
            _ask_for(ctx, "What is your name?", "name"), ctx.sample("Generate a greeting", max_tokens=50), ctx.roots()
        )
        return f"{greeting['content']['text']}, {name}: {len(roots)} roots"

    @addin.tool
    async def test_input_required_result_multi_round(ctx: Context) -> str:
        """Asks one question after the other."""
        name = await _ask_for(ctx, "Step 1: What is your name?", "name")
        color = await _ask_for(ctx, "Step 2: What is your favorite color?", "color")
        return f"{name} likes {color}"

    @addin.tool
    async def test_input_required_result_capabilities(ctx: Context) -> str:
        """Asks only for what the client can do."""
        can = ctx.session.client.capabilities
        if "sampling" in can:
            await ctx.sample("Say something", max_tokens=10)
        if "elicitation" in can:
            await _ask_for(ctx, "Say something", "something")
        return "asked"

    @addin.tool
    async def test_missing_capability(ctx: Context) -> str:
        """Asks for what the client did not declare."""
        return str(await ctx.sample("Anybody there?", max_tokens=10))

    @addin.tool
    async def test_streaming_elicitation(ctx: Context) -> str:
        """Reports progress, then asks."""
        ctx.progress(1, 2)
        return str(await _ask_for(ctx, "Shall I go on?", "answer"))


async def _ask_for(ctx: Context, message: str, name: str, kind: str = "string", question: str | None = None) -> Any:
    form = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ((await ctx.elicit(message, form, name=question)).content or {}).get(name)


def _told(elicited: Elicited) -> str:
    return f"action={elicited.action}, content={json.dumps(elicited.content)}"


def _register_resources(addin: AddIn) -> None:
    @addin.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """Text that does not change."""
        return "This is the content of the static text resource."

    @addin.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A picture that does not change."""
        return RED_PIXEL

    @addin.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """Something to subscribe to."""
        return "watched"

    @addin.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> dict[str, Any]:  # noqa: A002 (the scenario's name)
        """Data by id."""
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def _register_prompts(addin: AddIn) -> None:
    @addin.prompt
    def test_simple_prompt() -> str:
        """A prompt without arguments."""
        return "This is a simple prompt for testing."

    @addin.prompt
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @addin.completion("test_prompt_with_arguments", "arg1")
    def complete_arg1(value: str) -> list[str]:
        return [word for word in ("paris", "park", "party") if word.startswith(value)]

    @addin.prompt
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 (the scenario's name)
        """A prompt with a resource in it."""
        resource = embedded(resourceUri, "Embedded resource content for testing.", "text/plain")
        return [user(resource), user("Please process the embedded resource above.")]

    @addin.prompt
    async def test_input_required_result_prompt(ctx: Context) -> str:
        """A prompt that asks."""
        return f"Use this: {await _ask_for(ctx, 'What context should the prompt use?', 'context')}"

    @addin.prompt
    def test_prompt_with_image() -> list[Message]:
        """A prompt with a picture in it."""
        return [user(image(RED_PIXEL)), user("Please analyze the image above.")]
