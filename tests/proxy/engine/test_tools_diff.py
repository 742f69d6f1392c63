"""What new tools are against the old ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from uno_devserver.proxy.reload.restart import compare

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def tool(name: str, properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": "does", "inputSchema": schema, **more}


def raw(*found: dict[str, Any]) -> tuple[tuple[str, bytes], ...]:
    return tuple((one["name"], json.dumps(one).encode()) for one in found)


BEFORE = raw(tool("add", {"a": NUMBER}, "a"), tool("say", {"text": TEXT}))


@pytest.mark.parametrize(
    ("after", "verdict", "told"),
    [
        (BEFORE, "same", "the tools are the same"),
        (tuple(reversed(BEFORE)), "same", "the tools are the same"),
        ((*BEFORE, *raw(tool("new", {}))), "grown", "the tools: 1 new ('new')"),
        (
            raw(tool("add", {"a": NUMBER, "b": NUMBER}, "a"), tool("say", {"text": TEXT})),
            "grown",
            "the tools: 1 with more options ('add')",
        ),
        (BEFORE[:1], "changed", "the tools: 1 gone ('say')"),
        (
            raw(tool("add", {"a": NUMBER, "b": NUMBER}, "a", "b"), tool("say", {"text": TEXT})),
            "changed",
            "the tools: 1 changed ('add')",
        ),
        (raw(tool("add", {"a": TEXT}, "a"), tool("say", {"text": TEXT})), "changed", "the tools: 1 changed ('add')"),
        (raw(tool("add", {}, "a"), tool("say", {"text": TEXT})), "changed", "the tools: 1 changed ('add')"),
        (
            raw(tool("add", {"a": NUMBER}, "a", title="Add"), tool("say", {"text": TEXT})),
            "changed",
            "the tools: 1 changed ('add')",
        ),
        (
            raw(tool("new", {}), tool("say", {"text": TEXT, "loud": TEXT})),
            "changed",
            "the tools: 1 new ('new'), 1 gone ('add'), 1 with more options ('say')",
        ),
    ],
)
def test_tools_are_the_same_or_have_grown_or_have_changed(after: Any, verdict: str, told: str) -> None:
    difference = compare(BEFORE, after)

    assert (difference.verdict, str(difference)) == (verdict, told)


def test_the_order_in_which_a_server_writes_members_means_nothing() -> None:
    before = (("say", b'{"name":"say","inputSchema":{"type":"object"}}'),)

    assert compare(before, (("say", b'{"inputSchema": {"type": "object"}, "name": "say"}'),)).verdict == "same"


@pytest.mark.parametrize(
    "after", [b"[1]", b'{"name":"say","inputSchema":[]}', b"{", b'{"inputSchema":{"properties":[1]}}']
)
def test_what_cannot_be_understood_has_changed(after: bytes) -> None:
    assert compare((("say", b'{"name":"say"}'),), (("say", after),)).verdict == "changed"


def test_the_first_optional_property_of_a_tool_without_a_schema_is_growth() -> None:
    after = b'{"name":"say","inputSchema":{"properties":{"loud":{}}}}'

    assert compare((("say", b'{"name":"say","inputSchema":{}}'),), (("say", after),)).verdict == "grown"


def test_many_tools_are_counted_and_the_first_are_named() -> None:
    after = raw(*(tool(f"tool-{number}", {}) for number in range(7)))

    told = str(compare((), after))

    assert told == "the tools: 7 new ('tool-0', 'tool-1', 'tool-2', 'tool-3', 'tool-4' and 2 more)"
