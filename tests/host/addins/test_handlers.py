"""Add-ins that talk to apps and to the IDE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.addins import AddInFolder, health_of, text_of

BODY = """
@addin.processor("Notes")
def notes(name: str, content: object, app: App) -> None:
    if name == "Fail":
        raise ValueError("cannot")
    app.send("Answer", {"Got": content})
    app.send("Elsewhere", None, scope="Other")

@addin.processor("Async")
async def notes_too(name: str, content: object, app: App) -> None:
    app.send(name.upper(), content)

@addin.ide_message("Acme.Hello")
def hello(body: dict[str, Any], ide: Ide) -> None:
    if not body:
        raise ValueError("empty")
    ide.send("Acme.Bye", body)

@addin.tool
def tell() -> bool:
    return addin.send_to_ide("Acme.News", {"Text": "new"})
"""


class Recorder:
    """An app, and an IDE."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def send(self, name: str, content: object, scope: str | None = None) -> None:
        self.sent.append((name, content) if scope is None else (name, content, scope))


async def test_a_processor_answers_the_frames_of_its_scope(addins: AddInFolder) -> None:
    app = Recorder()
    async with addins.serve_register(BODY) as client:
        plain, coroutine = client.addins.processors
        await plain.handler("Ask", {"A": 1}, app)
        await coroutine.handler("ask", [2], app)

    assert [(processor.scope, processor.addin) for processor in (plain, coroutine)] == [
        ("Notes", "sample"),
        ("Async", "sample"),
    ]
    assert app.sent == [("Answer", {"Got": {"A": 1}}), ("Elsewhere", None, "Other"), ("ASK", [2])]


async def test_a_failing_handler_is_counted_and_the_next_message_is_handled(addins: AddInFolder) -> None:
    app, ide = Recorder(), Recorder()
    async with addins.serve_register(BODY) as client:
        processor = client.addins.processors[0]
        (handler,) = client.addins.ide_handlers
        await processor.handler("Fail", None, app)
        await handler.handler({}, ide)
        await processor.handler("Ask", 1, app)
        await handler.handler({"a": 1}, ide)
        health = await health_of(client)

    assert len(app.sent) == 2
    assert (handler.type_name, ide.sent) == ("Acme.Hello", [("Acme.Bye", {"a": 1})])
    assert health["addIns"][0]["failures"] == 2
    assert health["status"] == "Healthy"


async def test_one_scope_has_one_processor(addins: AddInFolder) -> None:
    first = addins.register("first.py", 'addin.processor("Notes")(lambda name, content, app: None)')
    second = addins.register("second.py", 'addin.processor("Notes")(lambda name, content, app: None)')

    async with addins.serve(first, second) as client:
        (processor,) = client.addins.processors
        _, refused = client.addins.status.addins

    assert processor.addin == "first"
    assert refused.error == f"the processor 'Notes' is refused: add-in {first} offers it already"


async def test_an_add_in_speaks_to_the_ide_if_one_is_there(addins: AddInFolder) -> None:
    sent: list[tuple[str, Mapping[str, Any]]] = []

    def send(type_name: str, body: Mapping[str, Any]) -> bool:
        sent.append((type_name, body))
        return True

    async with addins.serve_register(BODY) as client:
        alone = text_of(await client.call("tell"))
    async with addins.serve_register(BODY, send_to_ide=send) as client:
        together = text_of(await client.call("tell"))

    assert (alone, together) == ("false", "true")
    assert sent == [("Acme.News", {"Text": "new"})]


async def test_an_add_in_that_is_left_out_handles_nothing(addins: AddInFolder) -> None:
    async with addins.serve_register(BODY + "\nraise ValueError") as client:
        assert client.addins.processors == ()
        assert client.addins.ide_handlers == ()
