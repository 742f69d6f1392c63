"""A server made with the official SDK that offers what the scenarios ask for, as far as the SDK has a short way to it.

python sdk_server.py            # over stdio
python sdk_server.py http       # over Streamable HTTP; prints its port
"""

from __future__ import annotations

import json
import socket
import sys
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Audio, Context, Image, MCPServer, UserMessage
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.addin import (
    ADDRESS_SCHEMA,
    DEFAULTS_FORM,
    ENUMS_FORM,
    PAUSE_SECONDS,
    RED_PIXEL,
    SILENCE,
    USER_FORM,
)
from protocol.client.official_server import Store

PIXEL = Image(data=RED_PIXEL, format="png")
_numbers = count(1)


def json_schema_2020_12_tool() -> str:
    """Tool with JSON Schema 2020-12 features"""
    return "called"


schema_tool = Tool.from_function(json_schema_2020_12_tool)
schema_tool.parameters = ADDRESS_SCHEMA
server = MCPServer("sdk", version="1", tools=[schema_tool])


# --- content


@server.tool()
def test_simple_text() -> str:
    """Test simple text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> Image:
    """Test image content."""
    return PIXEL


@server.tool()
def test_audio_content() -> Audio:
    """Test audio content."""
    return Audio(data=SILENCE, format="wav")


@server.tool()
def test_embedded_resource() -> EmbeddedResource:
    """Test embedded resource."""
    return _embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Test multiple content types."""
    data = json.dumps({"test": "data", "value": 123})
    return [
        "Multiple content types test:",
        PIXEL,
        _embedded("test://mixed-content-resource", data, "application/json"),
    ]


@server.tool()
def test_error_handling() -> CallToolResult:
    """Test error handling."""
    text = TextContent(type="text", text="This tool intentionally returns an error for testing")
    return CallToolResult(content=[text], is_error=True)


def _embedded(uri: str, text: str, mime_type: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, text=text, mime_type=mime_type)
    return EmbeddedResource(type="resource", resource=contents)


# --- changes


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Test trigger tool change."""
    server.add_tool(test_simple_text, name=f"test_new_tool_{next(_numbers)}")
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Test trigger prompt change."""
    server.prompt(name=f"test_new_prompt_{next(_numbers)}")(test_simple_prompt)
    await ctx.notify_prompts_changed()
    return "changed"


# --- talking


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Test tool with logging."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await anyio.sleep(PAUSE_SECONDS)
    return "logged"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Test logging tool."""
    await ctx.info("Tool execution started")
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Test tool with progress."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        await anyio.sleep(PAUSE_SECONDS)
    return "progressed"


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Test reconnection."""
    await ctx.close_sse_stream()
    await anyio.sleep(2 * PAUSE_SECONDS)
    return "Reconnection test completed successfully."


# --- asking, as servers of the handshake era do


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Test sampling."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    sampled = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    assert isinstance(sampled.content, TextContent)
    return f"LLM response: {sampled.content.text}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Test elicitation."""
    return f"User response: {await _elicited(ctx, message, USER_FORM)}"


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Test elicitation sep1034 defaults."""
    return f"Elicitation completed: {await _elicited(ctx, 'Please check these values', DEFAULTS_FORM)}"


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Test elicitation sep1330 enums."""
    return f"Elicitation completed: {await _elicited(ctx, 'Please choose', ENUMS_FORM)}"


async def _elicited(ctx: Context, message: str, form: dict[str, Any]) -> str:
    elicited = await ctx.session.elicit(message, form, related_request_id=ctx.request_id)
    return f"action={elicited.action}, content={json.dumps(elicited.content)}"


# --- asking, as modern servers do


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Test input required result elicitation."""
    return _unanswered(ctx, user_name=_form("What is your name?", "name")) or f"Hello, {_said(ctx, 'user_name')}!"


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    """Test input required result sampling."""
    return _unanswered(ctx, capital=_sample("What is the capital of France?")) or _said(ctx, "capital")


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    """Test input required result list roots."""
    return _unanswered(ctx, roots=ListRootsRequest()) or _said(ctx, "roots")


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """Test input required result request state."""
    return _unanswered(ctx, "state", confirm=_form("Please confirm", "ok", "boolean")) or "state-ok"


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    """Test input required result tampered state."""
    return _unanswered(ctx, "state", confirm=_form("Please confirm", "ok", "boolean")) or "state-ok"


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    """Test input required result multiple inputs."""
    questions = {
        "name": _form("What is your name?", "name"),
        "greeting": _sample("Generate a greeting"),
        "roots": ListRootsRequest(),
    }
    return _unanswered(ctx, "state", **questions) or ", ".join(_said(ctx, name) for name in questions)


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    """Test input required result multi round."""
    if not (ctx.request_state or "").startswith("second"):
        asked = _unanswered(ctx, "first", step1=_form("Step 1: What is your name?", "name"))
        if asked is not None:
            return asked
        color = _form("Step 2: What is your favorite color?", "color")
        return InputRequiredResult(input_requests={"step2": color}, request_state=f"second {_said(ctx, 'step1')}")
    name = str(ctx.request_state).partition(" ")[2]
    return f"{name} likes {_said(ctx, 'step2')}"


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
    """Test input required result capabilities."""
    can = ctx.client_capabilities
    questions: dict[str, Any] = {}
    if can is not None and can.sampling is not None:
        questions["sampled"] = _sample("Say something")
    if can is not None and can.elicitation is not None:
        questions["said"] = _form("Say something", "something")
    return (_unanswered(ctx, **questions) if questions else None) or "asked"


@server.tool()
async def test_missing_capability(ctx: Context) -> str | InputRequiredResult:
    """Asks for what the client did not declare."""
    if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
        missing: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "The client cannot sample.", missing)
    return _unanswered(ctx, sampled=_sample("Anybody there?")) or _said(ctx, "sampled")


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Test streaming elicitation."""
    await ctx.report_progress(1, 2)
    return _unanswered(ctx, answer=_form("Shall I go on?", "answer")) or _said(ctx, "answer")


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """Test input required result prompt."""
    question = _form("What context should the prompt use?", "context")
    return _unanswered(ctx, context=question) or f"Use this: {_said(ctx, 'context')}"


def _form(message: str, name: str, kind: str = "string") -> ElicitRequest:
    form = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=form))


def _sample(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def _unanswered(ctx: Context, state: str | None = None, **questions: Any) -> InputRequiredResult | None:
    """The questions, unless all of them were answered."""
    answers = ctx.input_responses or {}
    if all(_is_answer(answers.get(name), question) for name, question in questions.items()):
        return None
    return InputRequiredResult(input_requests=questions, request_state=state)


def _is_answer(answer: object, question: object) -> bool:
    if isinstance(question, ElicitRequest):
        return isinstance(answer, ElicitResult)
    return isinstance(answer, CreateMessageResult if isinstance(question, CreateMessageRequest) else ListRootsResult)


def _said(ctx: Context, name: str) -> str:
    answer = (ctx.input_responses or {})[name]
    if isinstance(answer, ElicitResult):
        return ", ".join(str(value) for value in (answer.content or {}).values())
    if isinstance(answer, CreateMessageResult) and isinstance(answer.content, TextContent):
        return answer.content.text
    return answer.model_dump_json()


# --- resources


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Static text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Static binary."""
    return RED_PIXEL


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """Watched."""
    return "watched"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 (the scenario's name)
    """Template."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


# --- prompts


@server.prompt()
def test_simple_prompt() -> str:
    """Test simple prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Test prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 (the scenario's name)
    """Test prompt with embedded resource."""
    resource = _embedded(resourceUri, "Embedded resource content for testing.", "text/plain")
    return [UserMessage(content=resource), UserMessage(content="Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """Test prompt with image."""
    return [UserMessage(content=PIXEL.to_image_content()), UserMessage(content="Please analyze the image above.")]


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    words = [word for word in ("paris", "park", "party") if word.startswith(argument.value)]
    return Completion(values=words, total=len(words), has_more=False)


# --- what MCPServer leaves to the server beneath it


async def _agree(ctx: Any, params: Any) -> EmptyResult:
    return EmptyResult()


for method, params_type in (
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
    ("logging/setLevel", SetLevelRequestParams),
):
    server._lowlevel_server.add_request_handler(method, params_type, _agree)


def main() -> None:
    if "http" not in sys.argv:
        server.run()
        return
    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(event_store=Store(), retry_interval=20)
    print(f"listening on port {listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
