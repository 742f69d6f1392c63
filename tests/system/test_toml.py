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


@pytest.mark.parametrize("piece", ['"""\\', "'''a''b", '"', "'", "a .", "a  ", ". ", '"\\', "''.", "#", "a.a\n"])
def test_the_time_is_linear_whatever_is_unclosed(piece: str) -> None:
    text = "= " + piece * (500_000 // len(piece))

    begin = time.process_time()
    with pytest.raises(ValueError, match=r"."):
        parse(text)

    assert time.process_time() - begin < 2
