"""When a file without our entries is the file from before."""

from __future__ import annotations

import pytest

from uno_devserver.setup.edits.equivalence import means_the_same
from uno_devserver.setup.profiles import Format

JSON, JSONC, TOML, YAML = Format.JSON, Format.JSONC, Format.TOML, Format.YAML


@pytest.mark.parametrize(
    ("original", "removed", "form"),
    [
        ("", '{\n  "mcpServers": {}\n}\n', JSON),
        ("// mine\n", '// mine\n{"mcpServers": {}}', JSONC),
        ("{}", '{"projects": {"/ws": {"mcpServers": {}}}}', JSON),
        ('{"mcpServers": null}', '{"mcpServers": {}}', JSON),
        ('{"a": [1, /* x */ 2,]}', '{"a": [1, 2], "mcpServers": {}}', JSONC),
        ("a = 1979-05-27\nb = nan\n", "a = 1979-05-27\nb = nan\n[mcp_servers]\n", TOML),
        ("a: !secret x\n", "a: !secret x\nmcpServers: []\n", YAML),
        ("mcpServers:\n", "mcpServers: []\n", YAML),
        ("", "extensions: {}\n", YAML),
        ("a: &x [1]\nb: *x\n? [k]\n: v\n", "a: &x [1]\nb: *x\n? [k]\n: v\nextensions: {}\n", YAML),
    ],
)
def test_what_we_made_and_is_empty_now_does_not_count(original: str, removed: str, form: Format) -> None:
    assert means_the_same(original, removed, form)


@pytest.mark.parametrize(
    ("original", "removed", "form"),
    [
        ('{"mcpServers": {"UnoApp": {}}}', '{"mcpServers": {}}', JSON),
        ("{}", '{"servers": {"UnoApp": {"command": "x"}}, "mcpServers": {}}', JSON),
        ('{"a": 1}', '{"a": true}', JSON),
        ('{"a": 1}', '{"a": 1.0}', JSON),
        ('{"a": {}}', '{"a": ""}', JSON),
        ('{"a": [1, 2]}', '{"a": [1]}', JSON),
        ("{}", "{", JSON),
        ("a = 1\n", "a = 2\n", TOML),
        ("", "a." * 15_000 + "a = 1", TOML),
        ("a: x\n", "a: !secret x\n", YAML),
        ("a: 1\n", "a: '1'\n", YAML),
        ("[" * 100_000, "[" * 100_000, YAML),
    ],
)
def test_anything_else_does(original: str, removed: str, form: Format) -> None:
    assert not means_the_same(original, removed, form)


def test_an_alias_of_itself_and_a_bomb_of_aliases_are_compared_at_once() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))

    assert means_the_same(bomb, f"{bomb}extensions: {{}}\n", YAML)
    assert means_the_same("a: &a [*a]\n", "a: &a [*a]\nextensions: {}\n", YAML)
    assert not means_the_same(bomb.replace("[x, x]", "[x, y]"), bomb, YAML)


def test_what_is_nested_too_deep_is_not_the_same() -> None:
    deep = '{"a":' * 900 + "1" + "}" * 900

    assert not means_the_same(deep, deep[:-1], JSON)
