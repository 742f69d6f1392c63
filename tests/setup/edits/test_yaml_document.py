"""Servers in a YAML file: found in whatever way they are written, changed without touching anything else."""

from __future__ import annotations

from textwrap import dedent

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from support.yaml_texts import SETTINGS, YamlText, yaml_texts
from uno_devserver.setup.edits.document import EditProblem
from uno_devserver.setup.edits.yaml_document import YamlDocument

UNO = {"command": "uvx", "args": ["uno-devserver", "--mcp-app"]}
ONE = {"x": 1}
Server = tuple[str, dict[str, object]]  # its name, and its settings

IN_LINES = "command: uvx\n{0}args:\n{0}  - uno-devserver\n{0}  - --mcp-app\n"


def goose(text: str) -> YamlDocument:
    return YamlDocument(text, ("extensions",), None)


def cont(text: str) -> YamlDocument:
    return YamlDocument(text, ("mcpServers",), "name")


def of(text: str) -> YamlDocument:
    return cont(text) if "mcpServers" in text else goose(text)


def opened(file: YamlText, text: str) -> YamlDocument:
    return YamlDocument(text, (file.root,), file.name_key)


# Reading


def test_entries_of_a_mapping_are_found_with_plain_values() -> None:
    text = dedent("""\
        extensions:
          dev: {cmd: 'a', "args": [x, 'on'], enabled: true, timeout: 300}
          12:
            ratio: .5
            none: ~
            old: yes
            forced: !!str 1
    """)
    first, second = goose(text).entries
    assert (first.name, first.settings) == ("dev", {"cmd": "a", "args": ["x", "on"], "enabled": True, "timeout": 300})
    assert (second.name, second.settings) == ("12", {"ratio": 0.5, "none": None, "old": "yes", "forced": "1"})


def test_entries_of_a_list_have_the_name_that_they_say() -> None:
    entries = cont("mcpServers:\n- name: dev\n  command: x\n- command: y\n- text\n").entries
    assert [entry.name for entry in entries] == ["dev", "", ""]
    assert [entry.settings for entry in entries] == [{"name": "dev", "command": "x"}, {"command": "y"}, None]


@pytest.mark.parametrize("items", ["- - ", "- []", "- [a]", "- [a, b, c]", "- x", "- "])
def test_an_item_that_is_no_mapping_has_no_name(items: str) -> None:
    assert [(entry.name, entry.settings) for entry in cont(f"mcpServers:\n{items}\n").entries] == [("", None)]


def test_twins_are_both_entries() -> None:
    entries = goose("extensions:\n  a: {x: 1}\n  a: {x: 2}\n").entries

    assert [entry.settings for entry in entries] == [{"x": 1}, {"x": 2}]


def test_aliases_and_merges_are_followed() -> None:
    text = (
        "base: &b {cmd: x, args: [1]}\nextensions:\n  one: *b\n  two: {<<: *b, cmd: y}\n  three: {<<: [{cmd: z}, *b]}\n"
    )
    assert [entry.settings for entry in goose(text).entries] == [
        {"cmd": "x", "args": [1]},
        {"cmd": "y", "args": [1]},
        {"cmd": "z", "args": [1]},
    ]


@pytest.mark.parametrize("text", ["", "\n \n", "# only this", "---\n", "--- # c\n...\n", "a: 1", "extensions:", "{}"])
def test_a_text_without_servers_has_no_entries(text: str) -> None:
    assert goose(text).entries == ()
    assert goose(text).remarks == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: b: c\n", "mapping values are not allowed"),
        ("a: [1\n", "did not find expected ',' or ']'"),
        ("é: \x01\n", r"contains a character that YAML does not allow \(line 1, column 4\)"),
        ("a: *b\n", r"has no anchor for the alias \*b \(line 1, column 4\)"),
        ("a: 1\n---\nb: 2\n", r"several documents.*\(line 2, column 1\)"),
        ("- a\n", "the top level is a list, not a mapping"),
        ("null\n", "the top level is null, not a mapping"),
        ("extensions: []\n", r"'extensions' is a list, not a mapping \(line 1, column 13\)"),
        ("extensions: on\n", "'extensions' is a text, not a mapping"),
        ("extensions: 3\n", "'extensions' is a number or truth value, not a mapping"),
        ("extensions: {a: &a [*a]}\n", r"refers to itself through the alias \*a"),
        ("a: " + "[" * 200 + "]" * 200, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(EditProblem, match=reason):
        goose(text)


def test_a_mapping_is_no_list() -> None:
    with pytest.raises(EditProblem, match="'mcpServers' is a mapping, not a list"):
        cont("mcpServers:\n  a: 1\n")


def test_aliases_of_aliases_are_not_followed_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 12)]
    with pytest.raises(EditProblem, match="too much"):
        goose("\n".join(lines) + "\nextensions: {bomb: {args: *a11}}\n")


@pytest.mark.parametrize("opened", [("[", "]"), ("{a: ", "}"), ("{<<: ", "}")])
def test_aliases_do_not_nest_values_without_end(opened: tuple[str, str]) -> None:
    begin, end = opened
    lines = ["a0: &a0 {}", *(f"a{at}: &a{at} {begin * 90}*a{at - 1}{end * 90}" for at in range(1, 41))]
    with pytest.raises(EditProblem, match="nested too deeply through aliases"):
        goose("\n".join(lines) + "\nextensions: {deep: {args: *a40}}\n")


# Adding


def test_a_new_file_gets_two_columns_and_a_final_newline() -> None:
    assert goose("").put(None, "UnoApp", UNO) == "extensions:\n  UnoApp:\n    " + IN_LINES.format("    ")
    assert cont("").put(None, "UnoApp", UNO) == "mcpServers:\n  - name: UnoApp\n    " + IN_LINES.format("    ")


@pytest.mark.parametrize("text", ["# c\n", "---\n", "%YAML 1.2\n---\n# c\n", "model: x\n# about the end\n\n"])
def test_a_missing_root_goes_behind_everything(text: str) -> None:
    assert goose(text).put(None, "UnoApp", UNO) == text + goose("").put(None, "UnoApp", UNO)


UNO_IN_FLOW = "UnoApp: {command: uvx, args: [uno-devserver, --mcp-app]}"
LAID_OUT = (
    "mcpServers:\r\n-   name: a # first\r\n    args:\r\n    - x # its own\r\n    # and this\r\n# not this\r\nb: 1"
)
UNO_LAID_OUT = "-   name: UnoApp\r\n    command: uvx\r\n    args:\r\n    - uno-devserver\r\n    - --mcp-app\r\n"
JSON = '{\n\t"extensions": {\n\t\t"a": {"x": 1} # mine\n\t}\n}\n'


@pytest.mark.parametrize(
    ("text", "name", "values", "expected"),
    [
        # a missing root goes before the end of the document, and needs no line end
        ("a: 1\n...\n", "new", ONE, "a: 1\nextensions:\n  new:\n    x: 1\n...\n"),
        ("a: 1", "uno", ONE, "a: 1\nextensions:\n  uno:\n    x: 1"),
        ("# only\n# comments", "uno", ONE, "# only\n# comments\nextensions:\n  uno:\n    x: 1"),
        # an empty root is filled, and its comment stays
        *(
            (f"extensions:{empty} # mine\nb: 1\n", "new", ONE, "extensions: # mine\n  new:\n    x: 1\nb: 1\n")
            for empty in ("", " {}", " ~", " null")
        ),
        # laid out like its neighbours
        (LAID_OUT, "UnoApp", UNO, LAID_OUT.replace("# not this", UNO_LAID_OUT + "# not this")),
        ("extensions:\n  a: {}", "b", ONE, "extensions:\n  a: {}\n  b:\n    x: 1"),  # no line end
        # brackets stay brackets, and JSON stays JSON
        ("extensions: {a: {x: 1}}\n", "UnoApp", UNO, f"extensions: {{a: {{x: 1}}, {UNO_IN_FLOW}}}\n"),
        ("{extensions: {}}", "UnoApp", UNO, f"{{extensions: {{{UNO_IN_FLOW}}}}}"),
        ("mcpServers: [{name: a},]\n", "b", ONE, "mcpServers: [{name: a}, {name: b, x: 1},]\n"),
        (JSON, "b", {"y": ["z"]}, JSON.replace('{"x": 1} # mine', '{"x": 1}, # mine\n\t\t"b": {"y": ["z"]}')),
        # an alias that stands for nothing gives way
        (
            "none: &none\nextensions: *none\nother: *none\n",
            "UnoApp",
            ONE,
            "none: &none\nextensions:\n  UnoApp:\n    x: 1\nother: *none\n",
        ),
    ],
)
def test_a_new_entry_is_written_as_the_file_is(text: str, name: str, values: dict[str, object], expected: str) -> None:
    assert of(text).put(None, name, values) == expected


def test_several_missing_keys_are_made() -> None:
    document = YamlDocument("a:\n    x: 1\n", ("a", "b", "c"), None)

    made = "    b:\n        c:\n            new:\n                k: v\n"
    assert document.put(None, "new", {"k": "v"}) == f"a:\n    x: 1\n{made}"


@pytest.mark.parametrize("text", [
    "# one\r\nextensions:\r\n  dev:\n    cmd: a\nother: 1\r\n",
    "# one\nextensions:\n  dev:\r\n    cmd: a\r\nother: 1\n",
    "# one\r\nextensions: {\r\n  dev: {cmd: a}, # dev\n}\r\n",
    "extensions:\n  dev:\n    about: |\n      text\n    # end",
])  # fmt: skip
def test_mixed_line_ends_and_a_comment_at_the_end_come_back_as_they_were(text: str) -> None:
    changed = goose(text).put(None, "UnoApp", UNO)

    assert goose(changed).remove([1]) == text


# Changing


def test_only_what_differs_is_written_anew() -> None:
    text = dedent("""\
        extensions:
          uno:  # mine
            cmd:   "old"   # was it
            args: # these
            # first
            - 'uno-devserver'
            - --mcp-app # last
            url: http://x
            enabled: yes
            keep: [1,2]
        # end
    """)
    wanted = {"cmd": "uvx", "args": ["uno-devserver", "--mcp-app"], "enabled": True, "timeout": 300}
    assert goose(text).put(0, "uno", wanted, ["url", "nothing"]) == dedent("""\
        extensions:
          uno:  # mine
            cmd:   "uvx"   # was it
            args: # these
            # first
            - 'uno-devserver'
            - --mcp-app # last
            enabled: true
            keep: [1,2]
            timeout: 300
        # end
    """)


CHANGED_KINDS = "extensions:\n  uno:\n    a: x # c\n    b: # d\n      - 1\n      - 2 # gone\n    c: [1]\n"
CHANGED_KINDS += "    d: |\n      text\n    e:\n"
BESIDE_A_DASH = "mcpServers:\n  - url: x # gone\n    name: a\n  - url: x\n    # stays\n    name: b\n"
MERGED = "base: &b {url: x}\nextensions:\n  uno:\n    <<: *b\n    k: 1\n"


@pytest.mark.parametrize(
    ("text", "at", "values", "expected"),
    [
        # a value may change its kind
        (
            CHANGED_KINDS,
            0,
            {"a": ["v"], "b": "z", "c": ["w"], "d": {"k": 1}, "e": 5},
            "extensions:\n  uno:\n    a: # c\n      - v\n    b: z # d\n    c: [w]\n    d:\n      k: 1\n    e: 5\n",
        ),
        # the name of an entry in a list stays
        (
            "mcpServers:\n  - name: my uno\n    command: x\n",
            0,
            {"name": "UnoApp", "command": "z"},
            "mcpServers:\n  - name: my uno\n    command: z\n",
        ),
        # the key beside a dash can be dropped
        (BESIDE_A_DASH, 0, {"name": "a"}, BESIDE_A_DASH.replace("url: x # gone\n    ", "")),
        (BESIDE_A_DASH, 1, {"name": "b"}, BESIDE_A_DASH.replace("- url: x\n    # stays", "-\n    # stays")),
        # what is no mapping becomes one
        ("mcpServers:\n- 3 # c\n", 0, ONE, "mcpServers:\n- name: new\n  x: 1 # c\n"),
        ("mcpServers: [3, {name: b}]\n", 0, ONE, "mcpServers: [{name: new, x: 1}, {name: b}]\n"),
        # a name in brackets with nothing behind it gets settings
        ("extensions: {x, y: 1}\n", 0, {"cmd": "a"}, "extensions: {x: {cmd: a}, y: 1}\n"),
        ("extensions: {x: , y: 1}\n", 0, {"cmd": "a"}, "extensions: {x: {cmd: a} , y: 1}\n"),
        # a setting that is put is not dropped; of twins the last is changed, and all are dropped
        ("extensions:\n  x:\n    url: a\n", 0, {"url": "b"}, "extensions:\n  x:\n    url: b\n"),
        (
            "extensions:\n  uno:\n    a: 1\n    url: 1\n    a: 2\n    url: 2\n",
            0,
            {"a": 3},
            "extensions:\n  uno:\n    a: 1\n    a: 3\n",
        ),
        # what is merged into an entry can be overridden
        (MERGED, 0, {"url": "z"}, f"{MERGED}    url: z\n"),
    ],
)
def test_a_change_touches_what_differs_and_nothing_else(
    text: str, at: int, values: dict[str, object], expected: str
) -> None:
    assert of(text).put(at, "new", values, ["url", "nothing", "name"]) == expected


@pytest.mark.parametrize("old", ["", " 3 # c", " ~", " {}", "\n    - a\n    - b"])
def test_what_is_no_mapping_becomes_one(old: str) -> None:
    put = goose(f"extensions:\n  uno:{old}\n  b: 1\n").put(0, "uno", {"x": 1})

    assert yaml.safe_load(put) == {"extensions": {"uno": {"x": 1}, "b": 1}}
    assert ("# c" in put) == ("# c" in old)


@pytest.mark.parametrize("empty", ["{ # c\n}", "{# c\n}"])
def test_empty_brackets_with_a_comment_are_filled_and_keep_it(empty: str) -> None:
    put = goose(f"extensions: {empty}\n").put(None, "uno", {"x": 1})

    assert yaml.safe_load(put) == {"extensions": {"uno": {"x": 1}}}
    assert "# c\n" in put


# Removing


WITH_COMMENTS = dedent("""\
    extensions:
      # above
      a:
        x: 1 # in it
        # in it, too

      # between
      b: {y: 1}
    c: 1
""")


@pytest.mark.parametrize(
    ("text", "gone", "expected"),
    [
        # an entry goes with its lines and its own comments only
        (WITH_COMMENTS, [0], "extensions:\n  # above\n\n  # between\n  b: {y: 1}\nc: 1\n"),
        ("extensions: {a: {}, b: {}\n}\n", [1], "extensions: {a: {}\n}\n"),
        ("extensions:\n  a: {}\n  ? b\n  : {}\n", [1], "extensions:\n  a: {}\n"),
        ("base: &b {x: 1}\nextensions:\n  uno: *b\n  o: 1\n", [0], "base: &b {x: 1}\nextensions:\n  o: 1\n"),
        # the last one leaves empty brackets
        ("extensions: # c\n  a:\n    x: 1\n  b: 2\nc: 1\n", [1, 0], "extensions: {} # c\nc: 1\n"),
        ("mcpServers:\n- name: a", [0], "mcpServers: []"),
        ("extensions: !!map\n  a: 1\n", [0], "extensions: !!map {}\n"),
        ("extensions: {a: 1, b: 2,}\n", [0, 1], "extensions: {}\n"),
        # a text before it keeps its line break, and gets no blank lines
        ("extensions:\n  a:\n    x: |\n      line\n  b: 1", [1], "extensions:\n  a:\n    x: |\n      line\n"),
        (
            "extensions:\n  a:\n    x: |+\n      line\n\n  b: 1\n\n \nc: 1\n",
            [1],
            "extensions:\n  a:\n    x: |+\n      line\n\nc: 1\n",
        ),
    ],
)
def test_an_entry_goes_and_all_else_stays(text: str, gone: list[int], expected: str) -> None:
    assert of(text).remove(gone) == expected


@pytest.mark.parametrize("at", [0, 1, 2])
def test_of_lines_in_brackets_one_goes_and_the_commas_fit(at: int) -> None:
    lines = ["  {name: a}", "  {name: b}", "  {name: c}"]
    text = "mcpServers: [\n{}, # 1\n{}, # 2\n{} # 3\n]\n".format(*lines)
    removed = cont(text).remove([at])
    assert [entry.name for entry in cont(removed).entries] == [name for name in "abc" if name != "abc"[at]]
    assert [f"# {number}" in removed for number in (1, 2, 3)] == [number != at + 1 for number in (1, 2, 3)]


@pytest.mark.parametrize("header", ["|", ">", "|+", "&a |", "|-"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        "extensions:\n  a: {{x: 1}}\n  # why\n  b:\n    x: {}\n      no newline",
        "extensions:\n  a:\n    x: {}\n      no newline ",
        "mcpServers:\n# why\n- name: a\n  x: {}\n    no newline",
        "extensions:\n  a: {{x: 1}}\n# why\nlast: {}\n  no newline",
    ],
)
def test_a_block_scalar_without_a_line_break_at_the_end_stays_as_it_is(text: str, header: str, newline: str) -> None:
    text = text.format(header).replace("\n", newline)

    put = of(text).put(None, "uno", UNO)

    names = [entry.name for entry in of(put).entries]
    assert text.endswith(put[-len("# why\nlast:") :])
    assert sorted(names) == sorted([*(entry.name for entry in of(text).entries), "uno"])
    assert of(put).remove([names.index("uno")]) == text


def test_without_servers_they_go_before_such_a_block_scalar() -> None:
    assert goose("a: 1\n# why\nb: |\n  x").put(None, "u", ONE) == "a: 1\nextensions:\n  u:\n    x: 1\n# why\nb: |\n  x"


@pytest.mark.parametrize(
    "text",
    [
        "\t\nextensions:\n  a: {x: 1}\n",
        "extensions:\n  a:\n    x: 1\n\t\n  b:\n    y: 2\n \t \n",
        "extensions:\n  a:\n    x: 1\r\n\t\r\n    y: |\r\n      1\r\n      \t\r\n      2\r\n",
        "mcpServers:\n  - name: a\n    args:\n      - x\n\t\n      - y\n\t\n  - name: b\n",
    ],
)
def test_blank_lines_of_tabs_are_read_and_stay(text: str) -> None:
    put = of(text).put(None, "uno", UNO)

    assert of(put).remove([len(of(put).entries) - 1]) == text


def test_a_tab_in_a_block_scalar_is_its_text_also_where_others_are_blank_lines() -> None:
    (entry,) = goose("extensions:\n  a:\n\t\n    x: |\n      1\n      \t\n      2\n").entries

    assert entry.settings == {"x": "1\n\t\n2\n"}
    with pytest.raises(EditProblem, match="tab character"):
        goose("extensions:\n  a:\n    x: |\n      1\n\t\n      2\n")


# Refusing


@pytest.mark.parametrize(
    "text",
    [
        "extensions: &e\n  uno: {x: 1}\ncopy: *e\n",
        "extensions:\n  uno: &u {x: 1}\n  copy: *u\n",
        "extensions:\n  uno: {x: &x 1}\n  copy: {y: *x}\n",
        "a: &u 1\nextensions:\n  uno: {x: &u 1}\n  copy: {y: *u}\n",
        "base: &b {uno: {x: 1}}\nextensions: *b\n",
    ],
)
def test_what_others_refer_to_is_not_changed(text: str) -> None:
    document = goose(text)
    with pytest.raises(EditProblem, match="is written in a way that cannot be changed safely"):
        document.remove([0])
    with pytest.raises(EditProblem, match="is written in a way that cannot be changed safely"):
        document.put(0, "uno", {"x": 2})


@pytest.mark.parametrize(
    ("text", "at", "values", "drop", "problem"),
    [
        ("extensions:\n  ? uno\n", 0, ONE, [], "cannot be changed safely"),  # a key without a colon
        ("extensions:\n  a: 1\n  ? uno\n", 1, ONE, [], "cannot be changed safely"),
        ("mcpServers:\n- url: x\n", 0, {}, ["url"], "line 2, column 3"),  # the only key beside a dash
        ("mcpServers:\n- - a\n  - b\n", 0, ONE, [], "line 2, column 1"),  # a list in a list
        ("base: &b {x: 1}\nextensions:\n  uno: *b\n  o: 1\n", 0, {"x": 2}, [], "safely"),  # an alias
        (MERGED, 0, {"command": "y"}, ["url"], "safely"),  # what is merged into an entry stays
        ("mcpServers:\n- a: |\n   no newline", 0, ONE, [], "line 2, column 3"),  # it would gain a line break
    ],
)
def test_what_cannot_be_changed_safely_is_refused(
    text: str, at: int | None, values: dict[str, object], drop: list[str], problem: str
) -> None:
    with pytest.raises(EditProblem, match=problem):
        of(text).put(at, "uno", values, drop)


@pytest.mark.parametrize("gone", [[0], [0, 1]])
def test_an_item_behind_the_colon_of_a_long_key_does_not_go(gone: list[int]) -> None:
    with pytest.raises(EditProblem, match="line 2, column 3"):
        cont("? mcpServers\n: - name: a\n  - name: b\n").remove(gone)


# In general


@given(
    st.text(max_size=8) | st.sampled_from(["y", "NO", "1e3", "0o7", "1:2", "=", "<<", "---", "- ", "+.inf", "a:", ":a"])
)
@settings(max_examples=40)
def test_any_text_is_written_so_that_old_and_new_readers_take_it_as_text(value: str) -> None:
    for text in ("", "{extensions: {a: {}}}", '{extensions: {"a": {}}}'):
        put = goose(text).put(None, "n", {"k": value, "l": [value], value: 1})
        expected = {"k": value, "l": [value], value: 1}
        assert yaml.safe_load(put)["extensions"]["n"] == expected
        assert goose(put).entries[-1].settings == expected


@given(yaml_texts(), SETTINGS)
@settings(max_examples=40)
def test_putting_a_new_entry_keeps_all_else_and_removing_it_gives_the_text_back(
    file: YamlText, values: dict[str, object]
) -> None:
    document = opened(file, file.text)
    assert tuple(entry.name for entry in document.entries) == file.names

    put = document.put(None, "UnoApp", values)

    before = meaning(file, file.text)
    at = [name for name, _ in meaning(file, put)].index("UnoApp")
    # A text that ends within the last entry's block scalar, without a line break, must not get one there.
    assert at == len(before) or (at == len(before) - 1 and ends_in_block_scalar(file.text))
    assert meaning(file, put) == [*before[:at], as_entry(file, "UnoApp", values), *before[at:]]
    assert others(file, put) == others(file, file.text)
    again = opened(file, put)
    assert again.put(at, "UnoApp", values) == put
    removed = again.remove([at])
    assert meaning(file, removed) == meaning(file, file.text)
    if file.names:
        assert removed == file.text
        assert is_inserted(file.text, put, file.is_flow)


@given(yaml_texts(min_servers=1), SETTINGS, st.data())
@settings(max_examples=40)
def test_changing_or_removing_an_entry_keeps_all_else(
    file: YamlText, values: dict[str, object], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(file.names) - 1))
    before = meaning(file, file.text)
    drop = sorted({"url", "args", "a b"} - values.keys())

    put = opened(file, file.text).put(at, file.names[at], values, drop)

    name, old = before[at]
    kept = {key: value for key, value in old.items() if str(key) not in {*values, *drop}}
    after = meaning(file, put)
    assert after[at] == (name, {**kept, **as_entry(file, name, values)[1]})
    assert after[:at] + after[at + 1 :] == before[:at] + before[at + 1 :]
    assert others(file, put) == others(file, file.text)
    assert opened(file, put).put(at, file.names[at], values, drop) == put

    removed = opened(file, file.text).remove([at])
    assert meaning(file, removed) == before[:at] + before[at + 1 :]
    assert others(file, removed) == others(file, file.text)


def test_it_works_without_the_parser_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    text = "mcpServers:\n- name: a\n  x: |+\n    y\n\nb:\n"
    put = cont(text).put(None, "b", {"c": ["d"]})
    assert put == text.replace("b:\n", "- name: b\n  c:\n  - d\nb:\n")
    assert cont(put).remove([1]) == text
    with pytest.raises(EditProblem, match=r"contains a character that YAML does not allow \(line 1, column 4\)"):
        cont("é: \x01\n")


def meaning(file: YamlText, text: str) -> list[Server]:
    """The servers, as another reader sees them."""
    servers = yaml.safe_load(text)[file.root] or []
    pairs = [(entry["name"], entry) for entry in servers] if file.name_key else list(dict(servers).items())
    return [(str(name), {str(key): value for key, value in entry.items()}) for name, entry in pairs]


def as_entry(file: YamlText, name: str, values: dict[str, object]) -> Server:
    return name, {**({"name": name} if file.name_key else {}), **values}


def others(file: YamlText, text: str) -> dict[object, object]:
    return {key: value for key, value in yaml.safe_load(text).items() if key != file.root}


def ends_in_block_scalar(text: str) -> bool:
    events = [event for event in yaml.parse(text) if isinstance(event, yaml.ScalarEvent)]
    return events[-1].style in ("|", ">") and not text.endswith(("\n", "\r"))


def is_inserted(old: str, new: str, is_flow: bool) -> bool:
    """The new text is the old one with something in between, and in brackets perhaps a comma before that."""
    prefix, suffix = shared(old, new), shared(old[::-1], new[::-1])
    if prefix + suffix >= len(old):
        return True
    return is_flow and new[prefix] == "," and is_inserted(old, new[:prefix] + new[prefix + 1 :], False)


def shared(one: str, other: str) -> int:
    """How many characters they begin with in common."""
    return next(
        (at for at, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its), min(len(one), len(other))
    )
