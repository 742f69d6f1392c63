"""Tools: what a function returns, what its failures look like, and that none of them holds up the Host."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from support.addins import AddInFolder, health_of, text_of, until
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS, RpcError
from uno_devserver.protocol.versions import MISSING_CAPABILITY
from uno_devserver.system.log import log

MODERN = "2026-07-28"


async def test_a_tool_is_described_by_its_name_docstring_and_annotations(addins: AddInFolder) -> None:
    body = '''
    class Sum(Struct):
        total: int

    @addin.tool(title="Add up", read_only=True, idempotent=True, destructive=False, open_world=False)
    def add(numbers: list[int]) -> Sum:
        """Add numbers.

        Works for none, too.
        """
        return Sum(sum(numbers))
    '''
    async with addins.serve_register(body) as client:
        tools = await client.tools()
        result = await client.call("add", numbers=[1, 2])

    assert tools["add"] == {
        "name": "add",
        "title": "Add up",
        "description": "Add numbers.\n\nWorks for none, too.",
        "inputSchema": {
            "type": "object",
            "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}},
            "required": ["numbers"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "title": "Sum",
            "type": "object",
            "properties": {"total": {"type": "integer"}},
            "required": ["total"],
        },
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    assert result == {"content": [{"type": "text", "text": '{"total":3}'}], "structuredContent": {"total": 3}}


async def test_a_tool_can_be_named_and_described_apart_from_its_function(addins: AddInFolder) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "$defs": {"a": {}}}
    body = f"""
    @addin.tool(name="say.it/now", description="Say it.", input_schema={schema}, meta={{"icon": 1}})
    def function(name: str = "nobody") -> str:
        "Not shown."
        return name
    """
    async with addins.serve_register(body) as client:
        tools = await client.tools()
        said = await client.call("say.it/now", name="Ada")
        refused = await client.call("say.it/now", name=1)

    assert tools["say.it/now"] == {
        "name": "say.it/now",
        "description": "Say it.",
        "inputSchema": schema,
        "_meta": {"icon": 1},
    }
    assert text_of(said) == "Ada"
    assert refused["isError"]


RESULTS = """
import base64, dataclasses, datetime, enum, math, pathlib

@dataclasses.dataclass
class Point:
    x: int

class Colour(enum.Enum):
    RED = "red"

@addin.tool
def give(what: str) -> Any:
    return {
        "text": "plain",
        "nothing": None,
        "number": 3,
        "truth": True,
        "list": [1, "a"],
        "texts": ["a", "b"],
        "object": {"a": 1},
        "dataclass": Point(1),
        "odd keys": {1: Colour.RED},
        "dates": [datetime.date(2026, 7, 28)],
        "path": {"at": pathlib.Path("a") / "b"},
        "image": image(b"\\0", "image/gif"),
        "audio": audio(b"\\1"),
        "link": resource_link("x://y", "y", title="Y", mime_type="text/css"),
        "embedded": embedded("x://y", "text", annotations={"priority": 1}),
        "embedded bytes": embedded("x://y", b"\\0"),
        "mixed": [text("a"), "b", image(b"\\0")],
        "whole": ToolResult(["no"], structured={"a": 1}, is_error=True, meta={"m": 1}),
        "odd text": "caf\\udce9",
        "odd data": {"caf\\udce9": ["a", "\\udce9", 1]},
        "just text": ToolResult("no", is_error=True),
        "numbers": [math.nan, math.inf],
    }[what]
"""


@pytest.mark.parametrize(
    ("what", "result"),
    [
        ("text", {"content": [{"type": "text", "text": "plain"}]}),
        ("nothing", {"content": []}),
        ("number", {"content": [{"type": "text", "text": "3"}]}),
        ("truth", {"content": [{"type": "text", "text": "true"}]}),
        ("list", {"content": [{"type": "text", "text": '[1,"a"]'}]}),
        ("texts", {"content": [{"type": "text", "text": '["a","b"]'}]}),
        ("object", {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}}),
        ("dataclass", {"content": [{"type": "text", "text": '{"x":1}'}], "structuredContent": {"x": 1}}),
        ("odd keys", {"content": [{"type": "text", "text": '{"1":"red"}'}], "structuredContent": {"1": "red"}}),
        ("dates", {"content": [{"type": "text", "text": '["2026-07-28"]'}]}),
        ("path", {"content": [{"type": "text", "text": '{"at":"a/b"}'}], "structuredContent": {"at": "a/b"}}),
        ("image", {"content": [{"type": "image", "data": "AA==", "mimeType": "image/gif"}]}),
        ("audio", {"content": [{"type": "audio", "data": "AQ==", "mimeType": "audio/wav"}]}),
        (
            "link",
            {"content": [{"type": "resource_link", "uri": "x://y", "name": "y", "title": "Y", "mimeType": "text/css"}]},
        ),
        (
            "embedded",
            {
                "content": [
                    {
                        "type": "resource",
                        "resource": {"uri": "x://y", "mimeType": "text/plain", "text": "text"},
                        "annotations": {"priority": 1},
                    }
                ]
            },
        ),
        (
            "embedded bytes",
            {
                "content": [
                    {
                        "type": "resource",
                        "resource": {"uri": "x://y", "mimeType": "application/octet-stream", "blob": "AA=="},
                    }
                ]
            },
        ),
        (
            "mixed",
            {
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "text", "text": "b"},
                    {"type": "image", "data": "AA==", "mimeType": "image/png"},
                ]
            },
        ),
        (
            "whole",
            {
                "content": [{"type": "text", "text": "no"}],
                "structuredContent": {"a": 1},
                "isError": True,
                "_meta": {"m": 1},
            },
        ),
        ("odd text", {"content": [{"type": "text", "text": "caf\\udce9"}]}),
        (
            "odd data",
            {
                "content": [{"type": "text", "text": r'{"caf\\udce9":["a","\\udce9",1]}'}],
                "structuredContent": {"caf\\udce9": ["a", "\\udce9", 1]},
            },
        ),
        ("just text", {"content": [{"type": "text", "text": "no"}], "isError": True}),
        ("numbers", {"content": [{"type": "text", "text": "[null,null]"}]}),
    ],
)
async def test_whatever_a_tool_returns_can_be_sent(addins: AddInFolder, what: str, result: dict[str, Any]) -> None:
    async with addins.serve_register(RESULTS) as client:
        assert await client.call("give", what=what) == result


FAILURES = """
import asyncio, math, sys

class Own(BaseException):
    pass

class Odd(Exception):
    def __str__(self):
        raise RuntimeError("not even that")

class Total(Struct):
    total: int

@addin.tool
def fail(how: str) -> Any:
    def deeper(): return deeper()
    if how == "value": raise ValueError("7 is not enough")
    if how == "told": raise ToolError("Close the file first.")
    if how == "exit": sys.exit(3)
    if how == "interrupt": raise KeyboardInterrupt
    if how == "stop": raise StopIteration("over")
    if how == "deep": deeper()
    if how == "odd": raise Odd
    if how == "json": return object()
    if how == "own": raise Own("out of here")
    if how == "silent": raise ToolError
    if how == "content": return [text("a"), 1]
    if how == "long": raise ValueError("x" * 100_000)

@addin.tool
async def fail_async(how: str) -> Any:
    if how == "exit": sys.exit(3)
    if how == "cancel": raise asyncio.CancelledError
    if how == "own": raise Own("out of here")
    raise ValueError("7 is not enough")

@addin.tool
def lie(how: str) -> Total:
    return {"wrong": {"total": "many"}, "text": "many", "nothing": None, "nan": {"total": math.nan}}[how]
"""


@pytest.mark.parametrize(
    ("tool", "how", "sentence"),
    [
        ("fail", "value", "ValueError: 7 is not enough"),
        ("fail", "told", "Close the file first."),
        ("fail", "exit", "SystemExit: 3"),
        ("fail", "interrupt", "KeyboardInterrupt"),
        ("fail", "stop", "RuntimeError: coroutine raised StopIteration"),
        ("fail", "deep", "RecursionError: maximum recursion depth exceeded"),
        ("fail", "odd", "Odd"),
        ("fail", "json", "TypeError: a value of type object has no JSON form"),
        ("fail", "own", "Own: out of here"),
        ("fail", "silent", "The tool failed without saying why."),
        ("fail", "content", "TypeError: content is text, image(...) and the like, not int"),
        ("fail", "long", "ValueError: xxxx"),
        ("fail_async", "value", "ValueError: 7 is not enough"),
        ("fail_async", "exit", "SystemExit: 3"),
        ("fail_async", "cancel", "the function was cancelled from inside"),
        ("fail_async", "own", "Own: out of here"),
    ],
)
async def test_a_failing_tool_gives_a_result_that_says_why(
    addins: AddInFolder, tool: str, how: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with addins.serve_register(FAILURES) as client:
        result = await client.call(tool, how=how)
        alive = await health_of(client)

    assert result["isError"] is True
    assert text_of(result).startswith(sentence)
    assert len(text_of(result)) <= 4000
    assert "Traceback" not in text_of(result)
    assert alive["status"] == "Healthy"
    if how not in ("told", "silent"):
        assert "Traceback" in capsys.readouterr().err


async def test_what_an_author_tells_the_caller_is_not_cut(addins: AddInFolder) -> None:
    async with addins.serve_register("@addin.tool\ndef tell() -> None: raise ToolError('x' * 100_000)") as client:
        assert len(text_of(await client.call("tell"))) == 100_000


@pytest.mark.parametrize("how", ["wrong", "text", "nothing", "nan"])
async def test_a_result_that_breaks_its_own_schema_is_a_failure(addins: AddInFolder, how: str) -> None:
    async with addins.serve_register(FAILURES) as client:
        result = await client.call("lie", how=how)

    assert result["isError"] is True
    assert text_of(result).startswith("TypeError: the tool returned something else than it declares: Expected `")


async def test_an_unknown_tool_is_an_error_and_no_result(addins: AddInFolder) -> None:
    async with addins.serve_register("pass") as client:
        with pytest.raises(RpcError) as raised:
            await client.call("nothing")

    assert (raised.value.code, raised.value.message) == (INVALID_PARAMS, "Unknown tool: 'nothing'")


async def test_a_tool_that_blocks_holds_up_nobody(addins: AddInFolder) -> None:
    body = """
    import threading
    together = threading.Barrier(5)

    @addin.tool
    def wait() -> str:
        together.wait(30)
        return threading.current_thread().name
    """
    async with addins.serve_register(body) as client:
        names = [text_of(result) for result in await asyncio.gather(*(client.call("wait") for _ in range(5)))]

    assert len(set(names)) == 5
    assert threading.current_thread().name not in names


@pytest.mark.parametrize("tool", ["spin", "linger"])
async def test_a_cancelled_tool_is_told_and_its_call_ends_at_once(addins: AddInFolder, tool: str) -> None:
    body = """
    import asyncio, pathlib
    begun, ended = pathlib.Path(addin.workspace, "begun"), pathlib.Path(addin.workspace, "ended")

    @addin.tool
    def spin(ctx: Context) -> None:
        begun.touch()
        while not ctx.cancelled:
            pass
        ended.touch()

    @addin.tool
    async def linger() -> None:
        begun.touch()
        try:
            await asyncio.sleep(60)
        finally:
            ended.touch()
    """
    async with addins.serve_register(body) as client:
        call = asyncio.create_task(client.call(tool))
        await until((addins.folder / "begun").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await until((addins.folder / "ended").exists)


async def test_tools_may_come_and_go_while_the_host_runs(addins: AddInFolder) -> None:
    body = """
    @addin.tool
    def more(name: str) -> None:
        @addin.tool(name=name)
        def new() -> str:
            return "new"

    @addin.tool
    def less(name: str) -> None:
        addin.remove_tool(name)
    """
    async with addins.serve_register(body) as client:
        await client.call("more", name="extra")
        offered = await client.tools()
        called = await client.call("extra")
        await client.call("less", name="extra")
        left = await client.tools()
        again = await client.call("less", name="extra")
        await until(lambda: len(client.announced) == 2)

    assert "extra" in offered
    assert text_of(called) == "new"
    assert "extra" not in left
    assert text_of(again) == "KeyError: 'extra'"
    assert client.announced == [("notifications/tools/list_changed", None)] * 2


@pytest.mark.parametrize("name", ["", "with space", "é", "x" * 129, "a,b"])
async def test_an_impossible_name_is_refused_when_the_add_in_is_loaded(addins: AddInFolder, name: str) -> None:
    async with addins.serve_register(f"@addin.tool(name={name!r})\ndef function() -> None: ...") as client:
        (status,) = client.addins.status.addins

    assert not status.loaded
    assert status.error is not None
    assert f"ValueError: {name!r} cannot be a tool's name" in status.error


async def test_a_capability_that_the_client_lacks_is_an_error_in_the_modern_era_only(addins: AddInFolder) -> None:
    body = """
    from uno_devserver.protocol.jsonrpc import RpcError

    @addin.tool
    async def ask(code: int) -> None:
        raise RpcError(code, "The client did not declare sampling.")
    """
    async with addins.serve_register(body) as client:
        told = await client.call("ask", code=MISSING_CAPABILITY)
    async with addins.serve_register(body, version=MODERN) as client:
        with pytest.raises(RpcError) as raised:
            await client.call("ask", code=MISSING_CAPABILITY)
        refused = await client.call("ask", code=-1)

    assert text_of(told) == text_of(refused) == "The client did not declare sampling."
    assert raised.value.code == MISSING_CAPABILITY


async def test_what_an_add_in_logs_carries_its_name(
    addins: AddInFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "level", 0)
    body = 'addin.log.info("one")\naddin.log.warn("two")\naddin.log.debug("three")'

    async with addins.serve_register(body):
        pass

    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "[sample]" in line] == [
        "[sample] one",
        "warn: [sample] two",
        "dbug: [sample] three",
    ]
