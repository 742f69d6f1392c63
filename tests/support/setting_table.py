"""The tables in docs/configuration.md, from the schema of the config and from what is read of it.

`python tests/support/setting_table.py` brings them up to date. What a setting may hold is said as in error messages.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import uno_devserver.workspace
from uno_devserver.workspace.config import FIELDS, Field, FieldKind

PAGE = Path(__file__).parent.parent.parent / "docs" / "configuration.md"
SCHEMA = Path(str(uno_devserver.workspace.__file__)).parent / "host.config.schema.json"
BEGIN, END = "<!-- begin: generated from host.config.schema.json -->\n", "<!-- end: generated -->\n"
HEAD = "| setting | it is | default | meaning |\n|---|---|---|---|\n"
DEFAULT = " Default: "
META = "$schema"  # for editors


def current(page: str) -> str:
    """The page with the tables as they should be."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables()}{END}{after}"


def tables() -> str:
    """One for the settings at the top, and one for each section."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    top = [name for name, part in schema["properties"].items() if "properties" not in part]
    parts = [_table(schema, "", top)]
    for name, part in schema["properties"].items():
        if name not in top:
            table = _table(part, name, list(part["properties"]))
            parts.append(f"### `{name}`\n\n{part['description']}\n\n{table}")
    return "".join(parts)


def _table(schema: dict[str, Any], section: str, keys: list[str]) -> str:
    known = {field.key: field for field in FIELDS if field.section == section}
    return HEAD + "".join(_row(known[key], schema["properties"][key]) for key in keys if key != META) + "\n"


def _row(field: Field, described: dict[str, Any]) -> str:
    meaning, _, said = described["description"].partition(DEFAULT)
    default = f"`{json.dumps(described['default'])}`" if "default" in described else said.rstrip(".") or "none"
    bounds = f", {field.least} to {field.most}" if field.kind is FieldKind.NUMBER else ""
    return f"| `{field.title}` | {field.kind.value}{bounds} | {default} | {meaning} |\n"


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text("utf-8")), "utf-8")
