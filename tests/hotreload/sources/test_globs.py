"""Patterns of hotReload.include and exclude."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.hotreload.sources.globs import Globs


def fits(pattern: str, path: str) -> bool:
    return Globs([pattern], "hotReload.include").match(path)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.sql", "a.sql", True),
        ("*.sql", "db/a.sql", False),  # from the root
        ("**/*.sql", "a.sql", True),
        ("**/*.sql", "db/deep/a.sql", True),
        ("db/**/*.sql", "db/a.sql", True),
        ("db/**", "db/x/y", True),
        ("db/**", "dbx/y", False),
        ("db", "db/x/y", True),  # a folder means all that is in it
        ("./db/", "db/x", True),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("a*", "a/b", True),
        ("*.{yaml,yml}", "x.yml", True),
        ("*.{yaml,yml}", "x.json", False),
        ("{a,b}/{c,d}.py", "b/c.py", True),
        ("a.b", "axb", False),  # a dot is a dot
        ("[ab].py", "a.py", False),
        ("[ab].py", "[ab].py", True),
        ("src\\*.py", "src/a.py", True),
        ("**/gen/**", "src/gen/x.py", True),
        ("**/gen/**", "src/general/x.py", False),
        ("src/**/**/x.py", "src/x.py", True),
        ("**/gen", "general/gen", True),  # a name that only begins so is no place where it fits
        ("**/a*/b", "ab/ac/b", True),
        ("**/x.py", "a\nb/x.py", True),
        ("db/**", "db/a\nb", True),
    ],
)
def test_a_pattern_describes_paths_from_the_root(pattern: str, path: str, expected: bool) -> None:
    assert fits(pattern, path) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        *("../x", "a/../../x", "/etc/passwd", "C:\\x"),
        *("{..,a}/x", ".{.}/x", "a/{b,..}/../x", "{/etc,a}/passwd"),
        *("", " ", "x" * 2000, "{a,b}" * 12),
    ],
)
def test_one_that_leads_out_or_is_too_much_is_left_out_with_a_sentence(pattern: str) -> None:
    globs = Globs([pattern, "ok.py"], "hotReload.include")

    assert globs.patterns == ["ok.py"]
    [problem] = globs.problems
    assert problem.startswith('hotReload.include: "')


def test_where_a_search_has_to_begin() -> None:
    begins = Globs(["db/x/*.sql", "*.py", "a/b.txt"], "").by_start()

    assert set(begins) == {"db/x", "", "a/b.txt"}
    assert begins["db/x"]("db/x/a.sql")
    assert not begins["db/x"]("a.py")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [(["*.sql", "x/*.d.TS"], {".sql", ".ts"}), (["db/**"], None), (["*.s?l"], None), (["Makefile"], None), ([], set())],
)
def test_how_described_names_can_end(patterns: list[str], expected: set[str] | None) -> None:
    assert Globs(patterns, "").endings() == expected


def test_a_hostile_pattern_takes_no_time() -> None:
    globs = Globs(["**/a*a*a*a*b/**/**/a*a*b/**/*x"], "")
    start = time.process_time()

    assert not globs.match("/".join(["a" * 60] * 12))
    assert time.process_time() - start < 2


@pytest.mark.parametrize(("pattern", "path"), [("*a" * 40 + "b", "a" * 200), ("**/a/" * 40 + "b", "a/" * 200 + "c")])
def test_many_wildcards_take_a_moment(pattern: str, path: str) -> None:
    begin = time.process_time()

    assert not fits(pattern, path)

    assert time.process_time() - begin < 1  # trying every place for each would take longer than there is time


PARTS = st.sampled_from(["**", "*", "a", "b", "*a", "a*", "*a*b", "?", "a?*", "b*a*"])
NAMES = st.text("ab", min_size=1, max_size=3)


@given(st.lists(PARTS, min_size=1, max_size=5), st.lists(NAMES, min_size=1, max_size=5))
@settings(max_examples=300)
def test_a_path_is_described_if_it_or_a_folder_above_it_fits_name_by_name(parts: list[str], names: list[str]) -> None:
    expected = any(matches(parts, names[:count]) for count in range(len(names) + 1))

    assert fits("/".join(parts), "/".join(names)) is expected


def matches(parts: list[str], names: list[str]) -> bool:
    """By trying everything."""
    if not parts:
        return not names
    if set(parts) == {"**"}:
        return bool(names)  # what is in a folder, and not the folder
    if parts[0] == "**":
        return any(matches(parts[1:], names[count:]) for count in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], parts[0]) and matches(parts[1:], names[1:])
