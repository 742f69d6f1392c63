"""Resources and templates."""

from __future__ import annotations

from typing import Any

import pytest

from support.addins import AddInFolder
from support.waiting import until
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError

BODY = """
@addin.resource("notes://today", name="Today", title="What is on", mime_type="text/markdown")
def today() -> str:
    "The notes of today."
    return "# Today"

@addin.resource("notes://logo", mime_type="image/png")
async def logo() -> bytes:
    return b"\\x89PNG"

@addin.resource("notes://data", annotations={"audience": ["user"]})
def data() -> Any:
    return {"a": [1]}

@addin.resource("notes://buffer", mime_type="image/png")
def buffer() -> Any:
    return bytearray(b"\\x89PNG")

@addin.resource("notes://folder")
def folder() -> list[Content]:
    return [embedded("notes://folder/a", "A"), embedded("notes://folder/b", b"B", "application/x-b")]

@addin.resource("notes://day/{day}", name="Day")
def day(day: int, ctx: Context) -> str | None:
    return None if day > 31 else f"day {day} for {ctx.session.client.name}"

@addin.resource("file:///{+path}")
def file(path: str) -> str:
    return path

@addin.resource("notes://broken")
def broken() -> str:
    raise OSError("the disk is full")

@addin.resource("notes://locked")
def locked() -> str:
    raise ToolError("Unlock your notes first.")

@addin.resource("notes://picture")
def picture() -> Any:
    return image(b"")

@addin.resource("page://{name}.html")
def page(name: str) -> str:
    return name

@addin.resource("notes://day/first")
def first() -> str:
    return "the first"
"""


async def read(addins: AddInFolder, uri: str) -> Any:
    async with addins.serve_register(BODY) as client:
        return (await client.request("resources/read", {"uri": uri}))["contents"]


async def refusal(addins: AddInFolder, uri: str) -> RpcError:
    with pytest.raises(RpcError) as raised:
        await read(addins, uri)
    return raised.value


async def test_resources_and_templates_are_listed_apart(addins: AddInFolder) -> None:
    async with addins.serve_register(BODY) as client:
        resources = (await client.request("resources/list"))["resources"]
        templates = (await client.request("resources/templates/list"))["resourceTemplates"]

    assert [resource["uri"] for resource in resources][:3] == ["uno://health", "notes://today", "notes://logo"]
    assert resources[1] == {
        "uri": "notes://today",
        "name": "Today",
        "title": "What is on",
        "description": "The notes of today.",
        "mimeType": "text/markdown",
    }
    assert resources[3]["annotations"] == {"audience": ["user"]}
    assert templates == [
        {"uriTemplate": "notes://day/{day}", "name": "Day"},
        {"uriTemplate": "file:///{+path}", "name": "file"},
        {"uriTemplate": "page://{name}.html", "name": "page"},
    ]


@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("notes://today", [{"uri": "notes://today", "mimeType": "text/markdown", "text": "# Today"}]),
        ("notes://logo", [{"uri": "notes://logo", "mimeType": "image/png", "blob": "iVBORw=="}]),
        ("notes://buffer", [{"uri": "notes://buffer", "mimeType": "image/png", "blob": "iVBORw=="}]),
        ("notes://data", [{"uri": "notes://data", "mimeType": "application/json", "text": '{"a":[1]}'}]),
        (
            "notes://folder",
            [
                {"uri": "notes://folder/a", "mimeType": "text/plain", "text": "A"},
                {"uri": "notes://folder/b", "mimeType": "application/x-b", "blob": "Qg=="},
            ],
        ),
        ("notes://day/7", [{"uri": "notes://day/7", "mimeType": "text/plain", "text": "day 7 for tests"}]),
        ("page://a.b.html", [{"uri": "page://a.b.html", "mimeType": "text/plain", "text": "a.b"}]),
        ("notes://day/first", [{"uri": "notes://day/first", "mimeType": "text/plain", "text": "the first"}]),
        ("file:///a/b%20c", [{"uri": "file:///a/b%20c", "mimeType": "text/plain", "text": "a/b c"}]),
    ],
)
async def test_a_resource_is_what_its_function_returns(addins: AddInFolder, uri: str, contents: Any) -> None:
    assert await read(addins, uri) == contents


@pytest.mark.parametrize(
    "uri", ["notes://nothing", "notes://day/40", "notes://day/1/2", "notes://day/", "NOTES://today", "page://a-html"]
)
async def test_an_unknown_resource_has_its_own_error(addins: AddInFolder, uri: str) -> None:
    error = await refusal(addins, uri)

    assert (error.code, error.message, error.data) == (
        RESOURCE_NOT_FOUND,
        f"Unknown resource URI: {uri}",
        {"uri": uri},
    )


@pytest.mark.parametrize(
    ("uri", "code", "message"),
    [
        (
            "notes://day/monday",
            INVALID_PARAMS,
            "notes://day/monday: Argument 'day' is wrong: 'monday' is not a whole number.",
        ),
        ("notes://locked", INVALID_PARAMS, "Unlock your notes first."),
        ("notes://broken", INTERNAL_ERROR, "OSError: the disk is full"),
        ("notes://picture", INTERNAL_ERROR, "TypeError: a resource gives text, bytes, data, or embedded(...) contents"),
    ],
)
async def test_a_resource_that_cannot_be_read_says_why(addins: AddInFolder, uri: str, code: int, message: str) -> None:
    error = await refusal(addins, uri)

    assert (error.code, error.message) == (code, message)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('addin.resource("today")(lambda: "")', "'today' cannot be a resource's address"),
        ('addin.resource("a://{x}")(lambda: "")', "the function that reads 'a://{x}' must take: x"),
        ('addin.resource("a://b")(lambda x: "")', "the function that reads 'a://b' must take: no arguments"),
        ('addin.resource("a://{x}/{x}")(lambda x: "")', "the template 'a://{x}/{x}' is not supported"),
        ('addin.resource("a://}x")(lambda: "")', "the template 'a://}x' is not supported"),
        ('addin.resource("a://{x*}")(lambda x: "")', "the template 'a://{x*}' is not supported"),
    ],
)
async def test_an_impossible_address_is_refused_when_the_add_in_is_loaded(
    addins: AddInFolder, line: str, reason: str
) -> None:
    async with addins.serve_register(line) as client:
        (status,) = client.addins.status.addins

    assert reason in str(status.error)


async def test_an_add_in_tells_when_a_resource_changed(addins: AddInFolder) -> None:
    body = """
    @addin.tool
    def change() -> None:
        addin.resource_updated("notes://today")
        addin.resource("notes://new")(lambda: "")
    """
    async with addins.serve_register(body) as client:
        await client.call("change")
        await until(lambda: len(client.announced) == 2)

    assert client.announced == [
        ("notifications/resources/updated", {"uri": "notes://today"}),
        ("notifications/resources/list_changed", None),
    ]
