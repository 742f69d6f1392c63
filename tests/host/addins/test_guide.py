"""docs/addins.md: every example works, and answers as it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from uno_devserver.host.addins.testing import serve
from uno_devserver.protocol.service import Params, Result

GUIDE = Path(__file__).parents[3] / "docs" / "addins.md"
CALL = re.compile(r"^# (\w+\(.*\)) → (.*)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """The Python of each section, by its heading."""
    found = {}
    for section in re.split(r"^## ", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        for source in re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
            assert heading not in found, "one example per section"
            found[heading] = source
    return found


EXAMPLES = {heading: source for heading, source in sections().items() if heading != "Testing"}


def answers(method: str, _params: Params) -> Result:
    if method == "sampling/createMessage":
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "In short."}}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///work"}]}
    return {"action": "accept", "content": {"name": "Ada", "cups": 2}}


def arguments(call: str) -> tuple[str, dict[str, Any]]:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return node.func.id, {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}


def test_the_guide_has_examples_for_every_part_of_the_api() -> None:
    shown = "\n".join(EXAMPLES.values())

    assert len(EXAMPLES) >= 12
    assert sum(len(CALL.findall(source)) for source in EXAMPLES.values()) >= 15
    for name in ("tool", "resource", "prompt", "completion", "processor", "ide_message", "on_start", "on_stop"):
        assert f"@addin.{name}" in shown
    for name in ("background", "health", "serve(", "setting(", "send_to_ide(", "resource_updated(", "log."):
        assert f"addin.{name}" in shown


@pytest.mark.parametrize("heading", EXAMPLES)
async def test_an_example_of_the_guide_works_as_it_says(tmp_path: Path, heading: str) -> None:
    source = EXAMPLES[heading]
    (tmp_path / "example.py").write_text(source, encoding="utf-8")

    async with serve(str(tmp_path / "example.py"), workspace=str(tmp_path)) as client:
        client.answers = answers
        for call, expected in CALL.findall(source):
            name, given = arguments(call)
            result = await client.call(name, **given)
            assert [block.get("text") for block in result["content"]] == [expected], call


def test_the_example_of_a_test_is_one(tmp_path: Path) -> None:
    names: dict[str, Any] = {}

    exec(sections()["Testing"], names)  # our own guide
    names["test_all"](tmp_path)

    assert (tmp_path / "greet.py").exists()
