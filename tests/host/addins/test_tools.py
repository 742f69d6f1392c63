"""Tools: what a function returns, what its failures look like, and that none of them holds up the Host."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from support.addins import AddInFolder, health_of, text_of
from support.waiting import until
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
import dataclasses, datetime, enum, math, pathlib

@dataclasses.dataclass
class Point:
    x: int

class Colour(enum.Enum):
    RED = "red"

@addin.tool
def give() -> Any:
    return {value}
"""


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def shown(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(blocks)}


def structured(text: str, value: object) -> dict[str, Any]:
    return said(text, structuredContent=value)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("'plain'", said("plain")),
        ("None", shown()),
        ("3", said("3")),
        ("True", said("true")),
        ("[1, 'a']", said('[1,"a"]')),
        ("['a', 'b']", said('["a","b"]')),
        ("{'a': 1}", structured('{"a":1}', {"a": 1})),
        ("Point(1)", structured('{"x":1}', {"x": 1})),
        ("{1: Colour.RED}", structured('{"1":"red"}', {"1": "red"})),
        ("[datetime.date(2026, 7, 28)]", said('["2026-07-28"]')),
        ("{'at': pathlib.Path('a') / 'b'}", structured('{"at":"a/b"}', {"at": "a/b"})),
        ("[math.nan, math.inf]", said("[null,null]")),
        ("image(b'\\0', 'image/gif')", shown({"type": "image", "data": "AA==", "mimeType": "image/gif"})),
        ("audio(b'\\1')", shown({"type": "audio", "data": "AQ==", "mimeType": "audio/wav"})),
        (
            "resource_link('x://y', 'y', title='Y', mime_type='text/css')",
            shown({"type": "resource_link", "uri": "x://y", "name": "y", "title": "Y", "mimeType": "text/css"}),
        ),
        (
            "embedded('x://y', 'text', annotations={'priority': 1})",
            shown(
                {
                    "type": "resource",
                    "resource": {"uri": "x://y", "mimeType": "text/plain", "text": "text"},
                    "annotations": {"priority": 1},
                }
            ),
        ),
        (
            "embedded('x://y', b'\\0')",
            shown(
                {
                    "type": "resource",
                    "resource": {"uri": "x://y", "mimeType": "application/octet-stream", "blob": "AA=="},
                }
            ),
        ),
        (
            "[text('a'), 'b', image(b'\\0')]",
            shown(
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
            ),
        ),
        (
            "ToolResult(['no'], structured={'a': 1}, is_error=True, meta={'m': 1})",
            said("no", structuredContent={"a": 1}, isError=True, _meta={"m": 1}),
        ),
        ("ToolResult('no', is_error=True)", said("no", isError=True)),
        ("'caf\\udce9'", said("caf\\udce9")),
        (
            "{'caf\\udce9': ['a', '\\udce9', 1]}",
            structured(r'{"caf\\udce9":["a","\\udce9",1]}', {"caf\\udce9": ["a", "\\udce9", 1]}),
        ),
    ],
)
async def test_whatever_a_tool_returns_can_be_sent(addins: AddInFolder, value: str, result: dict[str, Any]) -> None:
    async with addins.serve_register(RESULTS.replace("{value}", value)) as client:
        assert await client.call("give") == result


FAILURES = """
import asyncio, math, sys

class Own(BaseException):
    pass

class Odd(Exception):
    def __str__(self):
        raise RuntimeError("not even that")

class Total(Struct):
    total: int

def deeper():
    return deeper()

@addin.tool
{kind} fail() -> {returns}:
    {statement}
"""


@pytest.mark.parametrize(
    ("kind", "statement", "sentence"),
    [
        ("def", "raise ValueError('7 is not enough')", "ValueError: 7 is not enough"),
        ("def", "raise ToolError('Close the file first.')", "Close the file first."),
        ("def", "sys.exit(3)", "SystemExit: 3"),
        ("def", "raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def", "raise StopIteration('over')", "RuntimeError: coroutine raised StopIteration"),
        ("def", "deeper()", "RecursionError: maximum recursion depth exceeded"),
        ("def", "raise Odd", "Odd"),
        ("def", "return object()", "TypeError: a value of type object has no JSON form"),
        ("def", "raise Own('out of here')", "Own: out of here"),
        ("def", "raise ToolError", "The tool failed without saying why."),
        ("def", "return [text('a'), 1]", "TypeError: content is text, image(...) and the like, not int"),
        ("def", "raise ValueError('x' * 100_000)", "ValueError: xxxx"),
        ("async def", "raise ValueError('7 is not enough')", "ValueError: 7 is not enough"),
        ("async def", "sys.exit(3)", "SystemExit: 3"),
        ("async def", "raise asyncio.CancelledError", "the function was cancelled from inside"),
        ("async def", "raise Own('out of here')", "Own: out of here"),
    ],
)
async def test_a_failing_tool_gives_a_result_that_says_why(
    addins: AddInFolder, kind: str, statement: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with addins.serve_register(FAILURES.format(kind=kind, returns="Any", statement=statement)) as client:
        result = await client.call("fail")
        alive = await health_of(client)

    assert result["isError"] is True
    assert text_of(result).startswith(sentence)
    assert len(text_of(result)) <= 4000
    assert "Traceback" not in text_of(result)
    assert alive["status"] == "Healthy"
    if "ToolError" not in statement:
        assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["{'total': 'many'}", "'many'", "None", "{'total': math.nan}"])
async def test_a_result_that_breaks_its_own_schema_is_a_failure(addins: AddInFolder, value: str) -> None:
    body = FAILURES.format(kind="def", returns="Total", statement=f"return {value}")
    async with addins.serve_register(body) as client:
        result = await client.call("fail")

    assert result["isError"] is True
    assert text_of(result).startswith("TypeError: the tool returned something else than it declares: Expected `")


async def test_what_an_author_tells_the_caller_is_not_cut(addins: AddInFolder) -> None:
    async with addins.serve_register("@addin.tool\ndef tell() -> None: raise ToolError('x' * 100_000)") as client:
        assert len(text_of(await client.call("tell"))) == 100_000


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
