"""Servers in a TOML file: found in whatever way they are written, changed without touching anything else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.toml_texts import toml_texts
from uno_devserver.setup.edits.document import EditProblem
from uno_devserver.setup.edits.toml_document import TomlDocument
from uno_devserver.system.toml import parse

plain_settings = st.recursive(
    st.text(st.characters(codec="utf-8"), max_size=6) | st.booleans() | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)

ROOT = ("mcp_servers",)
UNO = {"command": "uvx", "args": ["uno-devserver", "--mcp-app"]}
UNO_TABLE = '[mcp_servers.UnoApp]\ncommand = "uvx"\nargs = ["uno-devserver", "--mcp-app"]\n'
UNO_INLINE = 'UnoApp = { command = "uvx", args = ["uno-devserver", "--mcp-app"] }'

COMMENTED = "[mcp_servers.uno] # mine\n  command='x' # why\n  args = [ # none\n  'a',\n]\nenabled = true\n"
WITH_TABLE = "[mcp_servers.uno]\n  a = 1\n\n# the environment\n[mcp_servers.uno.env]\nB = '2'\n"
TWO, ENV = {"c": 3, "d": 4}, {"env": {"B": "3"}}


def added(text: str, values: Mapping[str, object] = UNO, name: str = "UnoApp") -> str:
    return TomlDocument(text, ROOT).put(None, name, values)


def changed(text: str, values: Mapping[str, object], *drop: str, name: str = "uno") -> str:
    document = TomlDocument(text, ROOT)
    return document.put(index_of(document, name), name, values, drop)


def removed(text: str, *names: str) -> str:
    document = TomlDocument(text, ROOT)
    return document.remove([index_of(document, name) for name in names or ("uno",)])


def index_of(document: TomlDocument, name: str) -> int:
    return [entry.name for entry in document.entries].index(name)


# --- reading


def test_servers_are_found_in_the_order_of_their_first_appearance() -> None:
    text = '[mcp_servers.b.env]\nA = "1"\n[mcp_servers.a]\nurl = "u"\n[mcp_servers.b]\ncommand = "x"\n'

    entries = TomlDocument(text, ROOT).entries

    assert [(entry.name, entry.settings) for entry in entries] == [
        ("b", {"env": {"A": "1"}, "command": "x"}),
        ("a", {"url": "u"}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers."Uno App"]\ncommand = "x"',
        "[ mcp_servers . 'Uno App' ]\ncommand = 'x'",
        '[mcp_servers]\n"Uno App" = { command = "x" }',
        '[mcp_servers]\n"Uno App".command = "x"',
        'mcp_servers."Uno\\u0020App".command = "x"',
        'mcp_servers = { "Uno App" = { command = "x" } }',
        'mcp_servers = { "Uno App".command = "x" }',
    ],
)
def test_a_server_is_found_in_whatever_way_it_is_written(text: str) -> None:
    (entry,) = TomlDocument(text, ROOT).entries

    assert (entry.name, entry.settings) == ("Uno App", {"command": "x"})


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "model = 'x'\n", "[mcp_servers]\n", "mcp_servers = {}"])
def test_a_file_without_servers_has_no_entries_and_comments_are_no_remarks(text: str) -> None:
    assert (TomlDocument(text, ROOT).entries, TomlDocument(text, ROOT).remarks) == ((), ())


def test_what_is_no_table_is_an_entry_without_settings() -> None:
    document = TomlDocument("[mcp_servers]\na = 5\n[[mcp_servers.b]]\n[mcp_servers.c]\n", ROOT)

    assert [(entry.name, entry.settings) for entry in document.entries] == [("a", None), ("b", None), ("c", {})]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\nb =\n", r"\(line 2, column 4\)"),
        ("a = 1\r\n[b\r\n", r"\(line 2, column 3\)"),
        ("[a]\n[a]\n", r"\(line 2, column 3\)"),
        ("a = 1\na = 2\n", r"\(line 2, column 6\)"),
        ("a = [1,\n  2", r"\(line 2, column 4\)"),
        ('a = "', r"\(line 1, column 6\)"),
        ('{ "mcpServers": {} }', r"\(line 1, column 1\)"),
        ("a = " + "[" * 5000, "^nested too deeply"),
        ("\n" + "a." * 15_000 + "a = 1", r"^a key has more than 64 parts \(line 2, column 1\)"),
        ("a = " + "1" * 5000, "^a number has too many digits"),
        ("mcp_servers = 5", "^'mcp_servers' is a number, not a table"),
        ("mcp_servers = 'x'", "^'mcp_servers' is a string, not a table"),
        ("mcp_servers = true", "^'mcp_servers' is a boolean, not a table"),
        ("mcp_servers = []", "^'mcp_servers' is an array, not a table"),
        ("mcp_servers = 07:00:00", "^'mcp_servers' is a date or time, not a table"),
        ("[[mcp_servers]]\nname = 'x'\n", "^'mcp_servers' is an array, not a table"),
    ],
)
def test_a_file_that_can_hold_no_servers_says_why_and_where(text: str, problem: str) -> None:
    with pytest.raises(EditProblem, match=f"{problem}$") as caught:
        TomlDocument(text, ROOT)

    assert "(at " not in str(caught.value)


def test_the_key_on_the_way_that_is_no_table_is_named() -> None:
    with pytest.raises(EditProblem, match=r"^'a\.b' is an array, not a table$"):
        TomlDocument("[[a.b]]\n[a.b.c]\n", ("a", "b", "c"))


# --- adding


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a table behind the last one, or at the end
        ("", UNO_TABLE),
        ("# mine\n", f"# mine\n\n{UNO_TABLE}"),
        ("model = 'x'\n\n\n", f"model = 'x'\n\n{UNO_TABLE}\n\n"),
        ("model = 'x'", f"model = 'x'\n\n{UNO_TABLE}".removesuffix("\n")),
        ("[mcp_servers]\n\n[z]\n", f"[mcp_servers]\n\n{UNO_TABLE}\n[z]\n"),
        ("[mcp_servers.a]\nurl = 'u'\n\n[z]\n", f"[mcp_servers.a]\nurl = 'u'\n\n{UNO_TABLE}\n[z]\n"),
        (
            "[mcp_servers.a]\n[z]\n[mcp_servers.a.env]\nA = '''\n[z]'''\n\n[y]\n",
            f"[mcp_servers.a]\n[z]\n[mcp_servers.a.env]\nA = '''\n[z]'''\n\n{UNO_TABLE}\n[y]\n",
        ),
        # a comment that ends the last server stays with it, and one that begins the next table with that
        ("[mcp_servers.a]\n# url = 'u'\n\n[z]\n", f"[mcp_servers.a]\n# url = 'u'\n\n{UNO_TABLE}\n[z]\n"),
        ("[mcp_servers.a]\n# about z\n[z]\n", f"[mcp_servers.a]\n\n{UNO_TABLE}# about z\n[z]\n"),
        # written as the others are
        ("mcp_servers = {} # none\n", f"mcp_servers = {{{UNO_INLINE}}} # none\n"),
        ("mcp_servers = { }", f"mcp_servers = {{ {UNO_INLINE} }}"),
        ("mcp_servers = { a = { url = 'u' } }\n", f"mcp_servers = {{ a = {{ url = 'u' }}, {UNO_INLINE} }}\n"),
        ("mcp_servers = {a.url='u'}\n[z]\n", f"mcp_servers = {{a.url='u', {UNO_INLINE}}}\n[z]\n"),
        ("[mcp_servers]\n  a = {} # x\n[z]\n", f"[mcp_servers]\n  a = {{}} # x\n  {UNO_INLINE}\n[z]\n"),
        ("mcp_servers.a = {}", f"mcp_servers.a = {{}}\nmcp_servers.{UNO_INLINE}"),
        (
            "[mcp_servers]\na.url = 'u'\n",
            '[mcp_servers]\na.url = \'u\'\nUnoApp.command = "uvx"\nUnoApp.args = ["uno-devserver", "--mcp-app"]\n',
        ),
        # lines end as those of the file
        ("a = 1\r\n", "a = 1\r\n\r\n" + UNO_TABLE.replace("\n", "\r\n")),
        # a name that is taken
        (UNO_TABLE.replace("uvx", "dnx"), UNO_TABLE),
    ],
)
def test_a_new_server_is_written_as_the_file_is(text: str, expected: str) -> None:
    assert added(text) == expected


def test_names_and_values_are_quoted_where_they_must_be() -> None:
    values = {"odd key": 'a"\\\n\x7f\x01é', "env": {"A.B": "1", "E": {}}, "on": True, "n": [1, -2.5, ["x"]]}

    text = added("", values, "Uno App")

    assert text == (
        '[mcp_servers."Uno App"]\n"odd key" = "a\\"\\\\\\n\\u007F\\u0001é"\n'
        'env = { "A.B" = "1", E = {} }\non = true\nn = [1, -2.5, ["x"]]\n'
    )


def test_what_toml_cannot_say_is_a_problem() -> None:
    with pytest.raises(EditProblem, match=r"^TOML has no way to write None$"):
        added("", {"command": None})


def test_a_root_inside_of_others_is_made_and_found_in_any_way() -> None:
    for before, after in {
        "": "[a.b.N]\nx = 1\n",
        "[a]\nc = 1\n": "[a]\nc = 1\n\n[a.b.N]\nx = 1\n",
        "a = {}": "a = {b.N = { x = 1 }}",
        "a = { b = { M = {} } }": "a = { b = { M = {}, N = { x = 1 } } }",
        "[a]\nb.M.x = 2\n": "[a]\nb.M.x = 2\nb.N.x = 1\n",
    }.items():
        assert TomlDocument(before, ("a", "b")).put(None, "N", {"x": 1}) == after


def test_a_server_without_settings_is_added_beside_dotted_ones() -> None:
    assert added("mcp_servers.a.url = 'u'\n", {}) == "mcp_servers.a.url = 'u'\nmcp_servers.UnoApp = {}\n"


# --- changing


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        # only the bytes of values that differ
        (COMMENTED, {"command": "y", "args": ["a"], "enabled": True}, COMMENTED.replace("'x'", '"y"')),
        # a value of another kind differs, also where Python takes it for equal
        ("[mcp_servers.uno]\na = 1\n", {"a": True}, "[mcp_servers.uno]\na = true\n"),
        ("[mcp_servers.uno]\na = 1.0\n", {"a": 1}, "[mcp_servers.uno]\na = 1\n"),
        ("[mcp_servers.uno]\na = '1'\n", {"a": 1}, "[mcp_servers.uno]\na = 1\n"),
        # missing keys: behind the last own one, in the way the server is written
        (WITH_TABLE, {"c": 3}, WITH_TABLE.replace("  a = 1\n", "  a = 1\n  c = 3\n")),
        ("[mcp_servers.uno]", TWO, "[mcp_servers.uno]\nc = 3\nd = 4"),
        (
            "mcp_servers.uno.a = 1\nz = 1\n",
            TWO,
            "mcp_servers.uno.a = 1\nmcp_servers.uno.c = 3\nmcp_servers.uno.d = 4\nz = 1\n",
        ),
        ("mcp_servers = { uno = { a = 1 }, b = {} }", TWO, "mcp_servers = { uno = { a = 1, c = 3, d = 4 }, b = {} }"),
        ("mcp_servers = { uno.a = 1, b = {} }", TWO, "mcp_servers = { uno.a = 1, b = {}, uno.c = 3, uno.d = 4 }"),
        ("[mcp_servers]\nuno = {}\n", TWO, "[mcp_servers]\nuno = {c = 3, d = 4}\n"),
        (
            "# x\n[mcp_servers.uno.env]\nA = '1'\n",
            TWO,
            "# x\n[mcp_servers.uno]\nc = 3\nd = 4\n\n[mcp_servers.uno.env]\nA = '1'\n",
        ),
        # keys that are dropped, in whatever way they are written
        (
            (
                "[mcp_servers.uno]\nurl = 'u' # gone with it\n# stays\nenabled = true\n\n"
                "[mcp_servers.uno.http_headers]\nA = '1'\n\n[z]\n"
            ),
            {"command": "x"},
            '[mcp_servers.uno]\n# stays\nenabled = true\ncommand = "x"\n\n[z]\n',
        ),
        ("[mcp_servers.uno]\nurl = 'u'", {"command": "x"}, '[mcp_servers.uno]\ncommand = "x"'),
        ("[mcp_servers]\nuno.url = 'u'\n", {"command": "x"}, '[mcp_servers]\nuno.command = "x"\n'),
        ("mcp_servers.uno = { url = 'u' }", {"command": "x"}, 'mcp_servers.uno = { command = "x" }'),
        ("mcp_servers = { uno.url = 'u', a = {} }", {"command": "x"}, 'mcp_servers = { a = {}, uno.command = "x" }'),
        ("[mcp_servers.uno]\nurl.a = 1\nurl.b = 2\nc = 3\n", {"d": 4}, "[mcp_servers.uno]\nc = 3\nd = 4\n"),
        (
            "[mcp_servers.uno]\n[[mcp_servers.uno.url]]\n[[mcp_servers.uno.url]]\n",
            TWO,
            "[mcp_servers.uno]\nc = 3\nd = 4\n",
        ),
        ("[mcp_servers.uno]\nurl = 1\n", {"url": 2}, "[mcp_servers.uno]\nurl = 2\n"),  # not what is put
        # a sub table is changed like a table, and keeps its comments
        (
            "[mcp_servers.uno]\na = 1\n[mcp_servers.uno.env]\n# why\nB = '2' # so\nC = '3'\n",
            {"env": {"B": "9", "D": "4"}},
            '[mcp_servers.uno]\na = 1\n[mcp_servers.uno.env]\n# why\nB = "9" # so\nD = "4"\n',
        ),
        # one that is not under a header is replaced
        ("[mcp_servers.uno]\nenv.A = '1'\nenv.B = '2'\nz = 1\n", ENV, '[mcp_servers.uno]\nz = 1\nenv = { B = "3" }\n'),
        ("[mcp_servers.uno]\nenv = { A = '1' }\nz = 1\n", ENV, '[mcp_servers.uno]\nenv = { B = "3" }\nz = 1\n'),
        ("mcp_servers.uno.env.A = '1'\n", ENV, '[mcp_servers.uno]\nenv = { B = "3" }\n'),
        ("[mcp_servers.uno.env.deep]\n", ENV, '[mcp_servers.uno]\nenv = { B = "3" }\n'),
        # what is no table becomes one
        ("[mcp_servers]\nuno = 5 # five\na = {}\n", {"c": 3}, "[mcp_servers]\nuno = { c = 3 } # five\na = {}\n"),
        ("mcp_servers = { uno = [1] }", {"c": 3}, "mcp_servers = { uno = { c = 3 } }"),
        ("[[mcp_servers.uno]]\na = 1\n[z]\n[[mcp_servers.uno]]\n", {"c": 3}, "[z]\n\n[mcp_servers.uno]\nc = 3\n"),
        # a number that equals nothing does not stop a change
        (
            "[mcp_servers.uno]\na = nan\n[z]\nb = nan\n",
            {"c": 1},
            "[mcp_servers.uno]\na = nan\nc = 1\n[z]\nb = nan\n",
        ),
    ],
)
def test_a_change_touches_what_differs_and_nothing_else(text: str, values: Mapping[str, object], expected: str) -> None:
    assert changed(text, values, "url", "http_headers", "unknown") == expected


# --- removing


def test_a_server_goes_with_its_sub_tables_wherever_they_stand_and_comments_before_it_stay() -> None:
    text = (
        "# top\n\n[mcp_servers.uno.env]\nA = '1'\n\n# about z\n[z]\ny = 1\n\n# mine\n[mcp_servers.uno]\n"
        "# inside\na = '''\n[z]'''\n\n[mcp_servers.uno.env.deep]\n[[mcp_servers.uno.list]]\n\n# end\n"
    )

    assert removed(text) == "# top\n\n# about z\n[z]\ny = 1\n\n# mine\n\n# end\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[mcp_servers.uno]\na = 1\n\n[z]\n", "[z]\n"),
        ("[z]\n[mcp_servers.uno]\na = 1\n\n[y]\n", "[z]\n\n[y]\n"),
        ("[z]\n\n\n[mcp_servers.uno]", "[z]\n"),
        ("[mcp_servers]\nuno = {} # x\nb = {}\n", "[mcp_servers]\nb = {}\n"),
        ("[mcp_servers]\nuno = {}", "[mcp_servers]"),
        ("mcp_servers = { uno = {} }", "mcp_servers = { }"),
        ("mcp_servers = {uno={}, b = {}}", "mcp_servers = {b = {}}"),
        ("mcp_servers = { b = {}, uno.x = 1, uno.y = 2 } # z", "mcp_servers = { b = {} } # z"),
        ("mcp_servers.uno.x = 1\nz = 1\nmcp_servers.uno.y = 2\n", "z = 1\n"),
        ("[mcp_servers]\nuno = 5\n", "[mcp_servers]\n"),
        ("[mcp_servers]\nuno.x = 1\n[z]\n[mcp_servers.uno.env]\n[y]\n", "[mcp_servers]\n[z]\n[y]\n"),
        ("[mcp_servers.uno]\n", ""),
    ],
)
def test_a_server_is_removed_in_whatever_way_it_is_written(text: str, expected: str) -> None:
    assert removed(text) == expected


def test_comments_in_an_inline_table_of_several_lines_stay_when_a_server_goes() -> None:
    text = "mcp_servers = {\n  # one\n  a = {}, # two\n  uno = {\n    b = 1,\n  },\n  # three\n}\n"

    assert removed(text) == "mcp_servers = {\n  # one\n  a = {}, # two\n  # three\n}\n"
    assert removed("mcp_servers = { uno = {}, }\n") == "mcp_servers = { }\n"


def test_several_servers_are_removed_at_once() -> None:
    text = "[mcp_servers.a]\n\n[mcp_servers.b]\nx = 1\n\n[mcp_servers.c]\n"

    assert removed(text, "c", "a") == "[mcp_servers.b]\nx = 1\n"
    assert removed(text, "a", "b", "c") == ""
    assert TomlDocument(text, ROOT).remove([]) == text


# --- safety


def test_a_change_that_cannot_be_made_is_refused() -> None:
    text = "[mcp_servers]\nuno.url = 'u'\n"  # without its only key, nothing says that it is there

    with pytest.raises(EditProblem, match=r"^'mcp_servers\.uno' is written in a way that cannot be changed safely$"):
        changed(text, {}, "url")


def test_keys_nested_without_end_are_refused_and_not_a_crash() -> None:
    text = "[mcp_servers.uno]\na = 1\n[" + ".".join("x" * 5000) + "]\n"

    with pytest.raises(EditProblem, match=r"^a key has more than 64 parts \(line 3, column 2\)$"):
        changed(text, {"a": 2})


def test_a_long_file_is_changed_in_a_moment() -> None:
    text = "".join(f"[projects.\"/p{index}\"]\ntrust_level = '''{'x' * 2000}'''\n" for index in range(1000))  # 2 MB

    began = time.process_time()
    assert added(text) == f"{text}\n{UNO_TABLE}"
    assert time.process_time() - began < 5


# --- whatever is written

NAMES = st.sampled_from(("UnoApp", "Uno App", "é.[x]\n"))
SETTINGS = st.dictionaries(st.sampled_from(("command", "args", "env", "odd key")), plain_settings, max_size=3)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(toml_texts(newer=True), NAMES, SETTINGS)
def test_what_is_added_is_all_that_is_new_and_removing_it_gives_back_the_file(
    text: str, name: str, values: dict[str, object]
) -> None:
    before = TomlDocument(text, ROOT)

    new = before.put(None, name, values)

    assert common(text, new) + common(text[::-1], new[::-1]) >= len(text)
    after = TomlDocument(new, ROOT)
    assert after.entries[index_of(after, name)].settings == values
    assert [repr(entry) for entry in after.entries if entry.name != name] == [repr(entry) for entry in before.entries]
    assert after.put(index_of(after, name), name, values) == new
    assert after.put(None, name, values) == new
    assert after.remove([index_of(after, name)]) == text


@MANY
@given(toml_texts(newer=True), st.data(), SETTINGS, st.sets(st.sampled_from(("command", "url", "env", "headers"))))
def test_a_change_of_any_server_changes_its_settings_and_no_other_line(
    text: str, data: st.DataObject, values: dict[str, object], drop: set[str]
) -> None:
    before = TomlDocument(text, ROOT)
    if not before.entries:
        return
    at = data.draw(st.integers(0, len(before.entries) - 1))
    values["args"] = ["new"]  # one at least, or an entry of dotted keys could be gone

    new = before.put(at, before.entries[at].name, values, drop)

    after = TomlDocument(new, ROOT)
    here = index_of(after, before.entries[at].name)
    old = {key: value for key, value in (before.entries[at].settings or {}).items() if key not in drop}
    assert repr(sorted((after.entries[here].settings or {}).items())) == repr(sorted({**old, **values}.items()))
    assert after.put(here, "", values, drop) == new
    assert others(new) == others(text)


@MANY
@given(toml_texts(newer=True), st.data())
def test_a_key_that_is_added_to_any_server_is_all_that_is_new(text: str, data: st.DataObject) -> None:
    before = TomlDocument(text, ROOT)
    tables = [index for index, entry in enumerate(before.entries) if "args" not in (entry.settings or {"args": 0})]
    if not tables:
        return

    new = before.put(data.draw(st.sampled_from(tables)), "", {"args": ["new"]})

    assert common(text, new) + common(text[::-1], new[::-1]) >= len(text)


@MANY
@given(toml_texts(newer=True), st.data())
def test_removing_any_servers_leaves_all_else(text: str, data: st.DataObject) -> None:
    before = TomlDocument(text, ROOT)
    gone = data.draw(st.sets(st.integers(0, len(before.entries) - 1))) if before.entries else set()

    new = before.remove(gone)

    left = [entry for index, entry in enumerate(before.entries) if index not in gone]
    assert [repr(entry) for entry in TomlDocument(new, ROOT).entries] == [repr(entry) for entry in left]
    assert others(new) == others(text)
    rest = iter(text)
    assert all(character in rest for character in new)  # nothing was written, nothing changed its place


def others(text: str) -> str:
    """All that is not about the servers, by meaning."""
    return repr({key: value for key, value in parse(text).items() if key != "mcp_servers"})


def common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
