"""TOML that anybody may have written: what `tomllib` reads is read, and what would use up the memory is refused."""

from __future__ import annotations

import time
import tomllib
import tracemalloc

import pytest
from hypothesis import given

from support.toml_texts import toml_texts
from uno_devserver.system.toml import MAX_PARTS, TomlProblem, parse

# tomllib takes 900 MB for it.
ENDLESS = ".".join(["a"] * 15_000)  # 30 KB


@pytest.mark.parametrize(
    "text",
    [
        f"{ENDLESS}=1",
        f"[{ENDLESS}]",
        f"[[ {ENDLESS} ]]",
        f"x = {{ {ENDLESS} = 1 }}",
        f"x = [{{ {ENDLESS} = 1 }}]",
        ENDLESS.replace("a", '"a"') + "=1",
        ENDLESS.replace("a", "'.'") + "=1",
        ENDLESS.replace(".", " \t.\t ") + "=1",
        f'# """\n{ENDLESS}=1',
        f"x = '#\"'\n{ENDLESS}=1",
        f'x = "\\"#"\n{ENDLESS}=1',
        f'x = """\\""""\n{ENDLESS}=1',
        f'x = """a\n""b"""""\n{ENDLESS}=1',
        f"x = '''\"\"\"\n''b'''''\n{ENDLESS}=1",
        f"x = ''''''\r\n{ENDLESS}=1",
    ],
)
def test_an_endless_key_is_refused_before_it_takes_memory(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TomlProblem, match="a key has more than 64 parts") as problem:
            parse(text)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert problem.value.line == text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * MAX_PARTS) + " = 1",
        f'x = "{ENDLESS}"',
        f"x = '{ENDLESS}'",
        f'x = """\n{ENDLESS}=1\\"""{ENDLESS}"""',
        f"x = '''\n{ENDLESS}=1'' {ENDLESS}'''''",
        f"x = 1 # {ENDLESS}",
        "x = [" + "1.5, " * 1000 + "]",
        "\n".join(f"a{number}.b = 1.5" for number in range(100)),
    ],
)
def test_only_keys_are_counted(text: str) -> None:
    assert parse(text) == tomllib.loads(text)


@given(toml_texts())
def test_what_tomllib_reads_is_read(text: str) -> None:
    assert repr(parse(text)) == repr(tomllib.loads(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = {\n  a = 1,\n  b = 2\n}\ny = 3\n", {"x": {"a": 1, "b": 2}, "y": 3}),
        ("x = { a = 1, }", {"x": {"a": 1}}),
        ("x = {\r\n a = 1, # one, }\r\n # none\r\n}\r\n", {"x": {"a": 1}}),
        ("x = { a = { b = [\n1, # }\n2,\n], }, }", {"x": {"a": {"b": [1, 2]}}}),
        ("x = [{\na = '}',\n}, {\nb = \"#\"\n}]", {"x": [{"a": "}"}, {"b": "#"}]}),
        ("[t]\nx = {\n\n}\n[[u]]\ny = {a.b = 1,\n}", {"t": {"x": {}}, "u": [{"y": {"a": {"b": 1}}}]}),
        ("x = \"\\e\\x41\\\\e\"\ny = '\\e'", {"x": "\x1bA\\e", "y": "\\e"}),
        ('x = """\\x41\n{\n,}"""\ny = {\n}', {"x": "A\n{\n,}", "y": {}}),
        ("x = 07:32\ny = 2026-01-02 03:04+05:06", tomllib.loads("x = 07:32:00\ny = 2026-01-02 03:04:00+05:06")),
    ],
)
def test_what_toml_1_1_adds_is_read(text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text", ["x = {,}", "x = {a = 1,,}", "x = {\na = 1\nb = 2}", 'x = {\n"a" 1}', "x = {\n", "x = '\n'"]
)
def test_what_neither_version_allows_is_refused(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        parse(text)


def test_the_line_of_an_error_after_a_table_of_toml_1_1_is_right() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="line 6"):
        parse("x = {\n a = 1,\n # why\n b = 2,\n}\ny = \n")


@pytest.mark.parametrize(
    "piece", ['"""\\', "'''a''b", '"', "'", "a .", "a  ", ". ", '"\\', "''.", "#", "a.a\n", "[", "{,"]
)
def test_the_time_is_linear_whatever_is_unclosed(piece: str) -> None:
    text = "= " + piece * (500_000 // len(piece))

    begin = time.process_time()
    with pytest.raises(ValueError, match=r"."):
        parse(text)

    assert time.process_time() - begin < 2
