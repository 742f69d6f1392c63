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


INLINE_1_0 = (("", ",", ""), ("", ", ", ""), (" ", ", ", " "), ("  ", " ,", "  "))
INLINE_1_1 = (
    (" ", ", ", ", "),
    ("\n  ", ",\n  ", ",\n"),
    ("\n  ", ", # why\n  ", "\n"),
    (" # why\n\t", ",\n\t", ", # }\n"),
)


@st.composite
def toml_texts(draw: DrawFn, newer: bool = False) -> str:
    """A valid text: keys at the top, then tables in any order, the servers in one way or in several.

    With `newer`, inline tables are written as in TOML 1.1, too.
    """
    top, sections = [_pair(draw, f"top{index}") for index in range(draw(st.integers(0, 2)))], []
    way = draw(st.sampled_from(("none", "tables", "tables", "table", "table", "dotted", "inline")))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    if way == "inline":
        top.append(f"{ROOT} = {_inline([_inline_server(draw, name) for name in names])}")
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
    text = _joined(draw, [top, *draw(st.permutations(sections))])
    return _with_inline_tables(draw, text, INLINE_1_0 + (INLINE_1_1 * 2 if newer else ()))


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
    return draw(st.sampled_from((f"{name} = {_inline(members)}", f"{name}.command = 'x', {name}.args.x = []")))


def _in_table(draw: DrawFn, name: str) -> list[str]:
    shape = draw(st.sampled_from(("inline", "dotted", "no table")))
    if shape == "dotted":
        return _dotted(draw, name)
    value = _inline([_member(draw, key) for key in draw(keys)]) if shape == "inline" else "5"
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


# Inline tables are written with these marks first, because their form is drawn only in the end.
OPEN, NEXT, CLOSE = "\x01", "\x02", "\x03"


def _inline(members: list[str]) -> str:
    return OPEN + NEXT.join(members) + CLOSE


def _with_inline_tables(draw: DrawFn, text: str, forms: tuple[tuple[str, str, str], ...]) -> str:
    while OPEN in text:
        before, _, rest = text.rpartition(OPEN)
        inside, _, after = rest.partition(CLOSE)
        begin, comma, end = draw(st.sampled_from(forms)) if inside else ("", "", "")
        newline = "\r\n" if "\r\n" in text else "\n"
        begin, comma, end = (part.replace("\n", newline) for part in (begin, comma, end))
        text = before + "{" + begin + inside.replace(NEXT, comma) + end + "}" + after
    return text
