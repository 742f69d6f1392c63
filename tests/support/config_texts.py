"""Configuration files as people and programs write them, generated: with comments, odd blanks, any line ends.

Each is a text whose meaning is known to the parser of its format, without any of our servers in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

# Letters of all kinds, and what JSON, TOML, YAML and comments give a meaning to.
TEXTS = st.text(st.sampled_from("abzé日😀 _-.#/*\\\"'{}[]:,&!|>%@\t"), max_size=8)
NAMES = st.one_of(st.sampled_from(["other", "my server", "a.b", "é", "x/*y*/", 'q"t', "#1", "true", "12"]), TEXTS)
WORDS = st.text(st.sampled_from("abz019 -_./*#é"), max_size=10)
PLAIN_KEYS = st.sampled_from(["theme", "model", "editor", "telemetry", "limits", "ui", "profile"])

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def jsonc_texts(draw: Draw, root: str) -> str:
    """An object, with or without servers below `root`; sometimes nothing but blanks and comments."""
    style = _JsonStyle(draw)
    if draw(st.integers(0, 14)) == 0:
        return style.blank() + style.end()
    members = draw(st.lists(st.tuples(NAMES.filter(lambda name: name != root), _values()), max_size=3))
    if draw(st.integers(0, 3)):
        servers = draw(st.dictionaries(NAMES, _entries(), max_size=3))
        members.insert(draw(st.integers(0, len(members))), (root, servers))
    unique = list({name: (name, value) for name, value in members}.values())
    return style.blank() + style.object(unique, 1) + style.blank() + style.end()


class _JsonStyle:
    """How one file is laid out; by chance rather than drawn, because so many choices would take most of the time."""

    def __init__(self, draw: Draw) -> None:
        self._chance = Random(draw(st.integers(0, 2**32)))
        self._newline: str = draw(st.sampled_from(["\n", "\r\n"]))
        self._indent: str = draw(st.sampled_from(["", "  ", "    ", "\t"]))
        self._comments = draw(st.booleans())
        self._trailing = draw(st.booleans())
        self._one_line = draw(st.integers(0, 3)) == 0

    def blank(self) -> str:
        if not self._comments or self._chance.random() < 0.75:
            return self._chance.choice(["", "", "", " "])
        text = self._chance.choice(["", "why", "é {x}", '"a": 1,', "http://x/*", "'}],"])
        if not self._one_line and self._chance.random() < 0.5:
            return f" // {text}{self._newline}"
        return f"/* {text} */"

    def end(self) -> str:
        return self._chance.choice(["", self._newline, self._newline, self._newline * 2])

    def object(self, members: list[tuple[str, Any]], depth: int) -> str:
        rows = [
            f"{json.dumps(name)}{self.blank()}:{self.blank()}{self._value(value, depth)}" for name, value in members
        ]
        return self._group("{", rows, "}", depth)

    def _value(self, value: Any, depth: int) -> str:
        if isinstance(value, dict):
            return self.object(list(value.items()), depth + 1)
        if isinstance(value, list):
            return self._group("[", [self._value(item, depth + 1) for item in value], "]", depth + 1)
        return json.dumps(value, ensure_ascii=self._chance.random() < 0.5)

    def _group(self, begin: str, rows: list[str], end: str, depth: int) -> str:
        if not rows:
            return begin + self.blank() + end
        lay_out = not self._one_line and self._chance.random() < 0.8
        before = self._newline + self._indent * depth if lay_out else ""
        after = self._newline + self._indent * (depth - 1) if lay_out else ""
        trailing = "," if self._trailing and self._chance.random() < 0.5 else ""
        inside = ",".join(f"{before}{self.blank()}{row}{self.blank()}" for row in rows)
        return begin + inside + trailing + self.blank() + after + end


@st.composite
def toml_texts(draw: Draw) -> str:
    """Settings, tables, and other servers below `mcp_servers`; comments and blank lines anywhere between lines."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines: list[str] = []

    def noise() -> None:
        lines.extend(
            draw(st.lists(st.sampled_from(["", "# a comment = [x]", "   # [mcp_servers.UnoApp]", "\t"]), max_size=2))
        )

    noise()
    for key in draw(st.lists(PLAIN_KEYS, max_size=3, unique=True)):
        lines.append(f"{key} = {draw(_toml_values())}{draw(st.sampled_from(['', '  # why']))}")
        noise()
    tables = draw(st.lists(st.sampled_from(["projects", "tui", "tools"]), max_size=2, unique=True))
    headers = [draw(st.sampled_from([table, f'{table}."/a b/c"', f"{table}.'x.y'"])) for table in tables]
    names = st.sampled_from(["other", "'my server'", '"a.b"', "e-1"])
    for name in draw(st.lists(names, max_size=3, unique=True)):
        headers.append(f"mcp_servers.{name}")
        if draw(st.booleans()):
            headers.append(f"mcp_servers.{name}.env")
    for header in headers:
        lines.append(draw(st.sampled_from([f"[{header}]", f"[ {header} ]", f"[{header}] # its table"])))
        noise()
        for key in draw(st.lists(st.sampled_from(["command", "args", "cwd", "x-y"]), max_size=3, unique=True)):
            lines.append(f"{key} = {draw(_toml_values())}")
            noise()
    end = draw(st.sampled_from(["", newline, newline * 2]))
    return str(newline.join(lines) + (end if lines else ""))


@st.composite
def yaml_texts(draw: Draw, root: str, as_list: bool) -> str:
    """Block style as people write it, with other servers below `root` as a map or as a list of named ones."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    step = draw(st.sampled_from(["  ", "    "]))
    lines: list[str] = []

    def noise(indent: str = "") -> None:
        lines.extend(indent + one for one in draw(st.lists(st.sampled_from(["", "# a comment: [x]"]), max_size=2)))

    noise()
    if draw(st.integers(0, 4)) == 0:
        lines.append("---")
    sections = draw(st.lists(PLAIN_KEYS, max_size=3, unique=True))
    if draw(st.integers(0, 3)):
        sections.insert(draw(st.integers(0, len(sections))), root)
    for section in sections:
        if section != root:
            lines.extend(_yaml_section(draw, section, step))
        else:
            names = draw(st.lists(st.sampled_from(["other", "my server", "x", "'a: b'"]), max_size=3, unique=True))
            if not names:
                lines.append(f"{root}:{draw(st.sampled_from(['', ' []' if as_list else ' {}', ' # none']))}")
            else:
                lines.append(f"{root}:{draw(st.sampled_from(['', ' # mine']))}")
                # A list may stand at the indentation of its key.
                indent = draw(st.sampled_from(["", step])) if as_list else step
                for name in names:
                    lines.extend(_yaml_server(draw, name, indent, step, as_list))
                    noise(indent)
        noise()
    end = draw(st.sampled_from(["", newline, newline]))
    return str(newline.join(lines) + (end if lines else ""))


def _yaml_section(draw: Draw, name: str, step: str) -> list[str]:
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return [f"{name}:", f"{step}nested: {draw(_yaml_values())}", f"{step}more:", f"{step * 2}- a", f"{step * 2}- b"]
    if kind == 1:
        return [f"{name}: |", f"{step}# no comment", f"{step}mcpServers:", "", f"{step}end"]
    if kind == 2:
        return [f"{name}:", "- one", "- two: 2", "  three: 3"]
    return [f"{name}: {draw(_yaml_values())}{draw(st.sampled_from(['', '  # why']))}"]


def _yaml_server(draw: Draw, name: str, indent: str, step: str, as_list: bool) -> list[str]:
    rows = draw(
        st.lists(
            st.sampled_from(["cmd: x", "args: [a, 'b c']", "enabled: true", "env: {K: v}"]), max_size=3, unique=True
        )
    )
    if as_list:
        return [f"{indent}- name: {name}", *(f"{indent}  {row}" for row in rows)]
    return [f"{indent}{name}:{'' if rows else ' {}'}", *(f"{indent}{step}{row}" for row in rows)]


def _values() -> st.SearchStrategy[Any]:
    leaves = st.one_of(TEXTS, st.integers(-5, 10**6), st.sampled_from([0.5, -1e30, True, None]))
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=4
    )


def _entries() -> st.SearchStrategy[Any]:
    entry = st.fixed_dictionaries({"command": WORDS}, optional={"args": st.lists(TEXTS, max_size=2), "env": _values()})
    return entry | st.fixed_dictionaries({"url": st.just("https://example.org/{x}//mcp")}) | _values()


def _toml_values() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(["5", "true", "1.5", "'lit # eral'", '"a \\"b\\" [x]"', "[1, 2]", "{ a = 1, b = 'x' }"]),
        st.sampled_from(
            ["1979-05-27T07:32:00Z", '["a", # one\n  "b",\n]', "'''\n[mcp_servers.no]\n'''", '"""a\n# b"""']
        ),
    )


def _yaml_values() -> st.SearchStrategy[str]:
    return st.sampled_from(["5", "yes", "text here", "'a # b'", '"x: \\"y\\""', "[a, b]", "{a: 1}", "null", "~", "a#b"])
