"""TOML files as people might write them: every way to state servers, among things that only look like servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

ROOT = "mcp_servers"

VALUES = (
    '"x"',
    "''",
    "'[mcp_servers.fake]'",
    '"""\n[mcp_servers.fake]\ncommand = "no" # "\n"""',
    "'''\n[[mcp_servers]]\n# '' no ''\n'''",
    '""""quoted""""',
    "''''quoted'''''",
    '"""a \\\n   b \\""" \\\\"""',
    '"\\"# \\\\"',
    '[\n  "a", # one ] of "them\n\n  "b", # [mcp_servers.fake]\n]',
    "[[1, 2], ['],'], [{ a = ']' }]]",
    '{ k = 1, "q.r" = [1, { z = 2 }], s.t = "}" }',
    "{}",
    "[]",
    "[ # none\n]",
    "1979-05-27 07:32:00Z",
    "07:32:00.5",
    "nan",
    "-inf",
    "1e5",
    "0x1F",
    "1_000",
    "true",
)
NAMES = ("a", "context7", '"Uno Docs"', "'lit.eral'", '"é\\u0041\\""', '"\'"', "123", '""', "-")

# Whole pieces are drawn, not characters: an example is some thirty choices, so hundreds of them take a second.
NOISE = (
    (),
    (),
    (),
    ("",),
    ("", "   "),
    ("# comment",),
    ("", "  # [mcp_servers.fake]"),
    ("#", "", "\t"),
    ('# "', "# {"),
)
ENDS = ("", "\n", "\n\n", " # end", "\n# end", "\n\n  # end\n  ")
LINES = ("{} = {}", "{} = {}", "{}={}", "{} = {} # comment", "{}\t=  {}\t# [x]", "{} = {} ")

values = st.sampled_from(VALUES)
keys = st.sampled_from(((), ("command",), ("command", "url"), ("env", '"odd key"'), ("enabled", "'[x]'", "env")))
noise = st.sampled_from(NOISE)
lines = st.sampled_from(LINES)


@st.composite
def toml_texts(draw: DrawFn) -> str:
    """A valid text: keys at the top, then tables in any order, the servers in one way or in several."""
    top, sections = [_pair(draw, f"top{index}") for index in range(draw(st.integers(0, 2)))], []
    way = draw(st.sampled_from(("none", "tables", "tables", "table", "table", "dotted", "inline")))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    if way == "inline":
        top.append(f"{ROOT} = {_inline(draw, [_inline_server(draw, name) for name in names])}")
    elif way == "dotted":
        top += [f"{ROOT}.{line}" for name in names for line in _dotted(draw, name)]
    elif way == "tables":
        sections += [section for name in names for section in _tables(draw, name)]
    elif way == "table":
        inside = [line for name in names for line in _in_table(draw, name)]
        sections.append(_section(draw, f"[{ROOT}]", inside))
        sections += [part for name in NAMES[:3] if name not in names for part in _tables(draw, name)]
    for index in range(draw(st.integers(0, 3))):
        header = draw(
            st.sampled_from((f"[other{index}]", f"[ other{index} . 'in.ner' ]", "[[list]]", f"[x.{ROOT}.n{index}]"))
        )
        sections.append(_section(draw, header, [_pair(draw, key) for key in draw(keys)]))
    return _joined(draw, [top, *draw(st.permutations(sections))])


def _joined(draw: DrawFn, sections: list[list[str]]) -> str:
    text = "\n".join(line for section in sections for line in (*draw(noise), *section))
    end, newline = draw(st.sampled_from([(end, newline) for end in ENDS for newline in ("\n", "\r\n")]))
    return (text + end).replace("\n", newline)


def _tables(draw: DrawFn, name: str) -> list[list[str]]:
    """A server under its header, with or without sub tables, or by these alone; or something that is no server."""
    shape = draw(st.sampled_from(("own", "own", "with sub table", "sub table", "array")))
    own = _section(draw, f"[{ROOT}.{name}]", [_pair(draw, key) for key in draw(keys)])
    sub = _section(draw, f"[{ROOT}.{name}.headers]", [_pair(draw, key) for key in draw(keys)])
    array = _section(draw, f"[[{ROOT}.{name}]]", [_pair(draw, key) for key in draw(keys)])
    return {"own": [own], "with sub table": [own, sub], "sub table": [sub], "array": [array, array]}[shape]


def _inline_server(draw: DrawFn, name: str) -> str:
    members = [_member(draw, key) for key in draw(keys)]
    return draw(st.sampled_from((f"{name} = {_inline(draw, members)}", f"{name}.command = 'x', {name}.args.x = []")))


def _in_table(draw: DrawFn, name: str) -> list[str]:
    shape = draw(st.sampled_from(("inline", "dotted", "no table")))
    if shape == "dotted":
        return _dotted(draw, name)
    value = _inline(draw, [_member(draw, key) for key in draw(keys)]) if shape == "inline" else "5"
    return [f"{name} = {value}"]


def _dotted(draw: DrawFn, name: str) -> list[str]:
    shape = draw(st.sampled_from(("{}.{}", "{} . {}", "{}.{}.deep")))
    return [_pair(draw, shape.format(name, key)) for key in draw(keys) or ("command",)]


def _section(draw: DrawFn, header: str, statements: list[str]) -> list[str]:
    indent, end = draw(st.sampled_from((("", ""), ("", ""), ("  ", ""), ("", " # [x]"), ("\t", "\t"))))
    body = [line for statement in statements for line in (*draw(noise), indent + statement)]
    return [indent + header + end, *body]


def _pair(draw: DrawFn, key: str) -> str:
    return draw(lines).format(key, draw(values))


def _member(draw: DrawFn, key: str) -> str:
    return draw(st.sampled_from(("{} = {}", "{}={}", "{}.inner = {}"))).format(key, draw(values))


def _inline(draw: DrawFn, members: list[str]) -> str:
    space, comma = draw(st.sampled_from((("", ","), ("", ", "), (" ", ", "), ("  ", " ,"))))
    return "{" + space + comma.join(members) + space + "}"
