"""Entries in JSON files: what is found, what an edit changes, and that it changes nothing else."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.json_texts import NAMES, SETTINGS, JsonText, json_texts
from uno_devserver.setup.edits.document import NO_ROOT_OBJECT, UNSAFE, EditProblem, Remark, ServerEntry, open_document
from uno_devserver.setup.edits.json_document import JsonDocument
from uno_devserver.setup.profiles import Format
from uno_devserver.system.jsonc import parse

ROOT = ("mcpServers",)
UNO = {"command": "uvx", "args": ["uno-devserver", "--mcp-app"]}


def added(text: str, root: tuple[str, ...] = ROOT, settings: Mapping[str, object] = UNO) -> str:
    return JsonDocument(text, root).put(None, "UnoApp", settings)


def removed(text: str, *indexes: int) -> str:
    return JsonDocument(text, ROOT).remove(indexes)


# --- what is found ------------------------------------------------------------------------------------------------


def test_the_entries_come_in_the_order_of_the_file_with_twins_and_with_what_is_no_object() -> None:
    text = '{"mcpServers": {"b": {"command": "x",}, "a": [1], "b": {"url": "y"}, /* "c": {} */ "\\u0064": null}}'

    entries = JsonDocument(text, ROOT).entries

    assert entries == (
        ServerEntry("b", {"command": "x"}),
        ServerEntry("a", None),
        ServerEntry("b", {"url": "y"}),
        ServerEntry("d", None),
    )


def test_of_two_objects_for_the_servers_the_last_one_counts_and_is_changed() -> None:
    text = '{"mcpServers": {"old": {}}, "mcpServers": {"new": {"url": "x"}}}'

    assert [entry.name for entry in JsonDocument(text, ROOT).entries] == ["new"]
    assert added(text, settings={}) == '{"mcpServers": {"old": {}}, "mcpServers": {"new": {"url": "x"}, "UnoApp": {}}}'


def test_an_object_deep_in_the_file_is_found_by_names_that_need_escapes() -> None:
    text = '{"projects": {"C:\\\\a \\"b\\" \\/c": {"mcpServers": {"x": {}}}}}'

    document = JsonDocument(text, ("projects", 'C:\\a "b" /c', "mcpServers"))

    assert document.entries == (ServerEntry("x", {}),)


def test_servers_may_be_the_members_of_the_document_itself() -> None:
    assert JsonDocument('{"x": {}}', ()).entries == (ServerEntry("x", {}),)
    assert JsonDocument("", ()).put(None, "x", {"url": "y"}) == '{\n  "x": {\n    "url": "y"\n  }\n}\n'


@pytest.mark.parametrize(
    "text", ["", " \n\t", "// nothing yet", "/* nothing\n yet */\r\n// at all\r\n", "{}", '{"a": 1}']
)
def test_where_nothing_is_there_are_no_entries(text: str) -> None:
    assert JsonDocument(text, ROOT).entries == ()


def test_json_documents_are_opened_for_both_kinds_of_json() -> None:
    assert isinstance(open_document("{}", Format.JSON, ROOT), JsonDocument)
    assert isinstance(open_document("{}", Format.JSONC, ROOT), JsonDocument)


@pytest.mark.parametrize(
    ("text", "remarks"),
    [
        ('{"a": "// no comment", "b": ",}"}', ()),
        ('{\n"a": 1, // one\n/* two */ "b": 2\n}', (Remark("a comment", 2),)),
        ('{\n"a": [1,\n2,\n],\n}', (Remark("a trailing comma", 3),)),
        ('{"a": 1, // x\r\n}\r\n', (Remark("a comment", 1), Remark("a trailing comma", 1))),
        ("\n// only this", (Remark("a comment", 2),)),
    ],
)
def test_what_a_strict_reader_would_not_take_is_remarked_with_its_line(text: str, remarks: tuple[Remark, ...]) -> None:
    assert JsonDocument(text, ROOT).remarks == remarks


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[]", "null", '"text"', "12", "true", "// c\n[{}]"])
def test_a_document_that_is_no_object_says_so_without_a_place(text: str) -> None:
    with pytest.raises(EditProblem) as problem:
        JsonDocument(text, ROOT)

    assert str(problem.value) == NO_ROOT_OBJECT


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("[]", "an array"),
        ("null", "null"),
        ('"{}"', "a string"),
        ("-1", "a number"),
        ("5", "a number"),
        ("true", "a boolean"),
    ],
)
def test_a_value_of_another_kind_on_the_way_is_named_with_its_place(value: str, kind: str) -> None:
    with pytest.raises(EditProblem) as problem:
        JsonDocument('{\n  "a": {"mcpServers": ' + value + "}}", ("a", "mcpServers"))

    assert problem.value.reason == f'"mcpServers" is {kind}, not an object'
    assert str(problem.value).endswith("(line 2, column 23)")


def test_broken_text_says_where_it_is_broken() -> None:
    with pytest.raises(EditProblem) as problem:
        JsonDocument('{\n  // fine\n  "a": 1 "b"}', ROOT)

    assert str(problem.value).endswith("(line 3, column 10)")


@pytest.mark.parametrize(
    "text", ["{", '{"mcpServers": {,}}', "{} {}", "{} /* open", "# no", '{"a": ' * 100_000, "\u00a0"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(EditProblem):
        JsonDocument(text, ROOT)


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ('"y"', '"z"'),
        ('"x"', '"w"'),
        ('"a": 2', '"a": 3'),
        ('"k": 3', '"k": 4'),
        (', "k": 3', ""),
        ('"k": 3', '"k": 3, "k": 3'),
        ("1.0", "1.00"),
        ('"b"', '"b": 1, "b"'),
        ("{}}", "{},}"),
        ("}", ""),
        ("{", "["),
    ],
)
def test_a_text_that_would_come_to_mean_something_else_is_not_given_out(
    part: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an edit that goes wrong
    right = '{"mcpServers": {"x": {"a": 2, "k": 3}, "y": {}}, "b": 1.0}'
    document = JsonDocument(right.replace("2", "1"), ROOT)
    assert document.put(0, "x", {"a": 2}) == right
    monkeypatch.setattr(JsonDocument, "_with_object", lambda *_: right.replace(part, fault))

    # Then what came of it is refused
    with pytest.raises(EditProblem, match=UNSAFE):
        document.put(0, "x", {"a": 2})
    with pytest.raises(EditProblem, match=UNSAFE):
        document.remove([0])


# --- new entries --------------------------------------------------------------------------------------------------


def test_a_new_file_has_two_blanks_arrays_on_one_line_and_a_line_end() -> None:
    assert added("", settings={**UNO, "env": {"A": "é"}}) == (
        "{\n"
        '  "mcpServers": {\n'
        '    "UnoApp": {\n'
        '      "command": "uvx",\n'
        '      "args": ["uno-devserver", "--mcp-app"],\n'
        '      "env": {\n'
        '        "A": "é"\n'
        "      }\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("// mine", "// mine\n{new}\n"),
        ("// mine  \r\n\r\n", "// mine  \r\n{new}\r\n\r\n"),
        ("/* mine */", "/* mine */\n{new}\n"),
        ("\n", "{new}\n"),
        ("  ", "{new}  "),
    ],
)
def test_in_a_file_of_comments_the_object_comes_behind_them(before: str, after: str) -> None:
    new = added("").rstrip("\n").replace("\n", "\r\n" if "\r" in before else "\n")

    assert added(before) == after.replace("{new}", new)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # all on one line, in the same spacing
        ('{"mcpServers":{"x":{"url":"y"}}}', '{"mcpServers":{"x":{"url":"y"},"UnoApp":{"a":1,"b":["c","d"]}}}'),
        ('{"mcpServers": {"x": {}}}', '{"mcpServers": {"x": {}, "UnoApp": {"a": 1, "b": ["c", "d"]}}}'),
        (
            '{ "mcpServers" : { "x" : {} } }',
            '{ "mcpServers" : { "x" : {}, "UnoApp" : { "a" : 1, "b" : ["c", "d"] } } }',
        ),
        ('{"mcpServers":{"x":{}, "y":{}}}', '{"mcpServers":{"x":{}, "y":{}, "UnoApp":{"a":1, "b":["c", "d"]}}}'),
        ('{"mcpServers": {"x":{}}}', '{"mcpServers": {"x":{},"UnoApp":{"a":1,"b":["c","d"]}}}'),
        ('{"mcpServers":{}}', '{"mcpServers":{"UnoApp":{"a":1,"b":["c","d"]}}}'),
        ('{"z": 1}', '{"z": 1, "mcpServers": {"UnoApp": {"a": 1, "b": ["c", "d"]}}}'),
        # in lines, with the file's indentation and line ends
        (
            '{\r\n\t"mcpServers": {\r\n\t\t"x": {\r\n\t\t\t"url": "y"\r\n\t\t}\r\n\t}\r\n}',
            (
                '{\r\n\t"mcpServers": {\r\n\t\t"x": {\r\n\t\t\t"url": "y"\r\n\t\t},\r\n\t\t"UnoApp": '
                '{\r\n\t\t\t"a": 1,\r\n\t\t\t"b": ["c", "d"]\r\n\t\t}\r\n\t}\r\n}'
            ),
        ),
        (
            '{\n    "mcpServers": {}\n}',
            (
                '{\n    "mcpServers": {\n        "UnoApp": {\n            "a": 1,\n'
                '            "b": ["c", "d"]\n        }\n    }\n}'
            ),
        ),
        (
            '{\n "z": {"y": 1}\n}\n',
            '{\n "z": {"y": 1},\n "mcpServers": {\n  "UnoApp": {\n   "a": 1,\n   "b": ["c", "d"]\n  }\n }\n}\n',
        ),
        (
            "{}",
            '{\n  "mcpServers": {\n    "UnoApp": {\n      "a": 1,\n      "b": ["c", "d"]\n    }\n  }\n}',
        ),
        # a comment on one line keeps what joins it there
        (
            '{\n  "mcpServers": { /* none */ }\n}',
            '{\n  "mcpServers": { /* none */ "UnoApp": {"a": 1, "b": ["c", "d"]} }\n}',
        ),
        # one line for each entry
        (
            '{\n  "mcpServers": {\n    "x": { "url": "y" }\n  }\n}',
            '{\n  "mcpServers": {\n    "x": { "url": "y" },\n    "UnoApp": { "a": 1, "b": ["c", "d"] }\n  }\n}',
        ),
    ],
)
def test_a_new_entry_is_written_as_the_file_is(before: str, after: str) -> None:
    assert added(before, settings={"a": 1, "b": ["c", "d"]}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('\n  "x": 1 // one\n  // two\n', '\n  "x": 1, // one\n  "UnoApp": {}\n  // two\n'),
        ('\n  "x": 1, // one\n', '\n  "x": 1, // one\n  "UnoApp": {},\n'),
        ('\n  "x": 1 /* one */ /* two\n  */\n', '\n  "x": 1, /* one */ /* two\n  */\n  "UnoApp": {}\n'),
        ('"x": 1 /* one */ ', '"x": 1, /* one */ "UnoApp": {} '),
        ('"x": 1 // one\n', '"x": 1, // one\n  "UnoApp": {}\n'),
        ('"x": 1 // one\n , ', '"x": 1 // one\n , "UnoApp": {}, '),
        ("\n  // nothing yet\n", '\n  // nothing yet\n  "UnoApp": {}\n'),
        (" /* nothing */ ", ' /* nothing */ "UnoApp": {} '),
        ("\n\n", '\n  "UnoApp": {}\n\n'),
    ],
)
def test_comments_stay_with_what_they_are_about_and_a_trailing_comma_is_followed_by_one(
    before: str, after: str
) -> None:
    text = added('{"mcpServers": {' + before + "}}", settings={})

    assert text == '{"mcpServers": {' + after + "}}"


def test_keys_that_are_missing_on_the_way_are_made() -> None:
    root = ("projects", "/a", "mcpServers")

    text = added('{\n  "projects": {\n    "/b": {}\n  }\n}', root, {})

    made = '    "/a": {\n      "mcpServers": {\n        "UnoApp": {}\n      }\n    }'
    assert text == '{\n  "projects": {\n    "/b": {},\n' + made + "\n  }\n}"


def test_half_a_surrogate_pair_is_written_by_its_number_so_that_the_text_can_be_encoded() -> None:
    text = added("", settings={"command": "/caf\udce9/é"})

    assert '"/caf\\udce9/\\u00e9"' in text
    assert JsonDocument(text, ROOT).entries[0].settings == {"command": "/caf\udce9/é"}


# --- changed entries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # the same meaning, whatever the spacing: not a byte changes
        ('{ "a" :1,"b": [ "c" , "\\u0064" , ] }', '{ "a" :1,"b": [ "c" , "\\u0064" , ] }'),
        ('{"b": ["c", "d"], "keep": {"x": 1.0}, "a": 1}', '{"b": ["c", "d"], "keep": {"x": 1.0}, "a": 1}'),
        # a value that differs
        ('{"a": /* one */ 2, "b": ["c", "d"]}', '{"a": /* one */ 1, "b": ["c", "d"]}'),
        ('{"a": true, "b": []}', '{"a": 1, "b": ["c", "d"]}'),
        ('{\n  "a": 1,\n  "b": [\n    "x"\n  ]\n}', '{\n  "a": 1,\n  "b": [\n    "c",\n    "d"\n  ]\n}'),
        ('{"a": 2, "a": 3, "b": ["c", "d"]}', '{"a": 2, "a": 1, "b": ["c", "d"]}'),
        # keys that are missing
        ('{"b": ["c", "d"]}', '{"b": ["c", "d"], "a": 1}'),
        ('{\n  "b": ["c", "d"], // two\n}', '{\n  "b": ["c", "d"], // two\n  "a": 1,\n}'),
        ("{}", '{"a": 1, "b": ["c", "d"]}'),
        # keys to be dropped
        ('{"url": "x", "a": 1, "b": ["c", "d"]}', '{"a": 1, "b": ["c", "d"]}'),
        ('{"a": 1, "url": "x", "b": ["c", "d"]}', '{"a": 1, "b": ["c", "d"]}'),
        ('{"a": 1, "b": ["c", "d"], "url": "x"}', '{"a": 1, "b": ["c", "d"]}'),
        ('{"url": "x"}', '{"a": 1, "b": ["c", "d"]}'),
        ('{"url": 1, "a": 1, "url": 2, "b": ["c", "d"]}', '{"a": 1, "b": ["c", "d"]}'),
        (
            '{\n  // where\n  "url": "x", // here\n  "a": 1,\n  "b": ["c", "d"] // two\n}',
            '{\n  // where\n  "a": 1,\n  "b": ["c", "d"] // two\n}',
        ),
        # what is no object at all
        ("null", '{"a": 1, "b": ["c", "d"]}'),
        ("[1, 2]", '{"a": 1, "b": ["c", "d"]}'),
    ],
)
def test_in_an_entry_only_what_differs_is_changed(before: str, after: str) -> None:
    document = JsonDocument('{"mcpServers": {"first": {}, "x": ' + before + ', "last": {}}}', ROOT)

    text = document.put(1, "ignored", {"a": 1, "b": ["c", "d"]}, drop=["url", "none"])

    assert text == '{"mcpServers": {"first": {}, "x": ' + after + ', "last": {}}}'


def test_an_object_in_an_entry_is_changed_member_by_member() -> None:
    document = JsonDocument('{"mcpServers":{"x":{"env":{"A":"1",/* b */"B":"2","C":"3"}}}}', ROOT)

    text = document.put(0, "x", {"env": {"B": "2", "C": "4", "D": "5"}})

    assert text == '{"mcpServers":{"x":{"env":{/* b */"B":"2","C":"4","D":"5"}}}}'


def test_a_list_in_lines_keeps_the_indentation_of_the_line_that_it_begins_in() -> None:
    before = '{\n  "mcpServers": {\n    "x": {"args": [\n      "a"\n    ]}\n  }\n}'

    text = JsonDocument(before, ROOT).put(0, "x", {"args": ["b", "c"]})

    assert text == before.replace('"a"', '"b",\n      "c"')


def test_a_setting_that_is_put_is_not_dropped() -> None:
    assert JsonDocument('{"mcpServers": {"x": {"url": 1}}}', ROOT).put(0, "x", {"url": 2}, drop=["url"]) == (
        '{"mcpServers": {"x": {"url": 2}}}'
    )


# --- entries taken out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"x": 1, "y": 2, "z": 3', '"y": 2'),
        ('"x":1,"y":2,"z":3', '"y":2'),
        ('\n  "x": 1,\n  "y": 2,\n  "z": 3\n', '\n  "y": 2\n'),
        ('\n  "x": 1,\n  "y": 2,\n  "z": 3,\n', '\n  "y": 2,\n'),
        ('\r\n\r\n  "x": 1,\r\n\r\n  "y": 2,\r\n\r\n  "z": 3\r\n', '\r\n\r\n  "y": 2\r\n'),
        # a comment behind an entry goes with it, one before it on lines of its own stays
        ('\n  "x": 1, // x\n  // y\n  "y": 2, // y\n  /* z */\n  "z": 3 // z\n  // end\n',
         '\n  // y\n  "y": 2 // y\n  /* z */\n  // end\n'),
        # what shares its line with others stays
        (' /* x */ "x": 1, /* y */ "y": 2, /* z */ "z": 3 /* end */ ', ' /* x */ /* y */ "y": 2 /* z */ /* end */ '),
        ('"x": 1, // x\n "y": 2, "z": 3 // z\n', ' // x\n "y": 2 // z\n'),
        ('\n "x": 1, "y": 2, // y\n "z": 3', '\n "y": 2 // y\n'),
        ('\n "x": 1, "y": 2, // y\r\n "z": 3 /* z */ ', '\n "y": 2 // y\r\n /* z */ '),
        # commas before the entries
        ('\n  "x": 1\n, "y": 2\n, "z": 3\n', '\n  "y": 2\n'),
        # a comment before its comma belongs to the entry that stays
        ('"x": 1, "y": 2 /* y */, "z": 3', '"y": 2 /* y */'),
    ],
)  # fmt: skip
def test_an_entry_goes_with_its_comma_and_its_line(before: str, after: str) -> None:
    assert removed('{"mcpServers": {' + before + "}}", 2, 0) == '{"mcpServers": {' + after + "}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"x": 1, "y": 2', ""),
        ('\n  "x": 1,\n  "y": 2,\n', ""),
        ('\n  // x\n  "x": 1,\n  "y": 2\n', "\n  // x\n"),
        (' // x\n  "x": 1, "y": 2 ', " // x\n "),
        ('"x": 1,\n // y\n "y": 2', "\n // y\n"),
    ],
)
def test_the_object_of_the_servers_stays_when_all_are_gone(before: str, after: str) -> None:
    assert removed('{"mcpServers": {' + before + "}}", 0, 1) == '{"mcpServers": {' + after + "}}"


def test_nothing_to_take_out_changes_nothing() -> None:
    assert removed("// no servers") == "// no servers"


# --- any text -----------------------------------------------------------------------------------------------------

MANY = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is
FEW = settings(MANY, max_examples=40)


@MANY
@given(json_texts(with_servers=True), NAMES, SETTINGS)
def test_an_entry_that_is_put_and_taken_out_again_leaves_the_very_same_text(
    given: JsonText, name: str, wanted: dict[str, object]
) -> None:
    # When an entry is put
    document = JsonDocument(given.text, ROOT)
    text = document.put(None, name, wanted)

    # Then it is the last one, the rest means what it meant, and every byte of the rest is in its place
    now = JsonDocument(text, ROOT)
    assert now.entries == (*document.entries, ServerEntry(name, wanted))
    assert parse(text) == with_servers(parse(given.text), servers_of(given, (name, wanted)))
    if not given.only_blanks:
        assert_only_inserted(given.text, text)
    if given.strict:
        json.loads(text)

    # And a second time changes nothing, and without it the text is what it was
    assert now.put(len(now.entries) - 1, name, wanted) == text
    back = now.remove([len(now.entries) - 1])
    assert back == given.text or (given.only_blanks and without_blanks(back) == without_blanks(given.text))


@FEW
@given(json_texts(("a", "b"), with_servers=False), NAMES, SETTINGS)
def test_where_there_was_no_object_one_is_made_and_every_other_byte_is_in_its_place(
    given: JsonText, name: str, wanted: dict[str, object]
) -> None:
    text = JsonDocument(given.text, ("a", "b")).put(None, name, wanted)

    assert JsonDocument(text, ("a", "b")).entries == (ServerEntry(name, wanted),)
    after: Any = parse(text)
    del after["a"]["b"]
    assert after == parse(given.text)
    if after["a"]:  # else blanks that stood alone between the braces may be gone
        assert_only_inserted(given.text, text)
    if given.strict:
        json.loads(text)


@FEW
@given(json_texts(with_servers=True), st.data())
def test_a_change_touches_nothing_outside_of_its_entry(given: JsonText, data: st.DataObject) -> None:
    # Given an entry, and settings of which some are there already
    assert given.servers is not None
    if not given.servers:
        return
    at = data.draw(st.integers(0, len(given.servers) - 1))
    place = given.servers[at]
    old = place.value if isinstance(place.value, dict) else {}
    names = st.sampled_from(sorted(old)) | NAMES if old else NAMES
    wanted = {
        **data.draw(SETTINGS),
        **{name: old[name] for name in data.draw(st.lists(names, max_size=2)) if name in old},
    }
    drop = data.draw(st.lists(names, max_size=2))

    # When they are put
    document = JsonDocument(given.text, ROOT)
    text = document.put(at, place.name, wanted, drop)

    # Then the entry has them, and its others, and everything around it is as it was
    entries = list(document.entries)
    kept = {name: value for name, value in old.items() if name not in drop}
    entries[at] = ServerEntry(place.name, {**kept, **wanted})
    assert JsonDocument(text, ROOT).entries == tuple(entries)
    assert text.startswith(given.text[: place.begin])
    assert text.endswith(given.text[place.end :])
    assert JsonDocument(text, ROOT).put(at, place.name, wanted, drop) == text
    if given.strict:
        json.loads(text)


@FEW
@given(json_texts(with_servers=True), st.sets(st.integers(0, 2)))
def test_entries_are_taken_out_and_all_others_stay_as_they_are_written(given: JsonText, chosen: set[int]) -> None:
    assert given.servers is not None
    indexes = {at for at in chosen if at < len(given.servers)}

    text = JsonDocument(given.text, ROOT).remove(indexes)

    stay = [place for at, place in enumerate(given.servers) if at not in indexes]
    assert [entry.name for entry in JsonDocument(text, ROOT).entries] == [place.name for place in stay]
    assert parse(text) == with_servers(parse(given.text), {place.name: place.value for place in stay})
    behind = 0
    for place in stay:
        behind = text.index(given.text[place.key : place.end], behind) + 1
    if given.servers:
        assert text.startswith(given.text[: given.servers[0].key].rstrip())
    if given.strict:
        json.loads(text)


def servers_of(given: JsonText, new: tuple[str, object]) -> dict[str, object]:
    assert given.servers is not None
    return {**{place.name: place.value for place in given.servers}, new[0]: new[1]}


def with_servers(document: Any, servers: dict[str, object]) -> Any:
    return {**document, "mcpServers": servers}


def without_blanks(text: str) -> str:
    return "".join(text.split())


def assert_only_inserted(before: str, after: str) -> None:
    """One piece was inserted; or two, a comma being the first, with the comments behind the last entry in between."""
    begin = common(before, after)
    end = common(before[begin:][::-1], after[begin:][::-1])
    between = before[begin : len(before) - end]
    assert after[begin:].startswith("," + between if between else "")
    if between:
        assert between.lstrip().startswith(("//", "/*"))


def common(one: str, other: str) -> int:
    """How many characters are the same at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (this, that) in pairs if this != that), min(len(one), len(other)))


def test_depth_at_the_limit_of_the_reader_is_refused_and_never_a_crash() -> None:
    for depth in range(900, 1000):
        deep = '{"a":' * depth + "1" + "}" * depth
        with contextlib.suppress(EditProblem):
            JsonDocument('{"deep": ' + deep + ', "mcpServers": {"x": {"env": ' + deep + "}}}", ROOT).put(
                0, "x", {"env": {}}
            )


# --- large files --------------------------------------------------------------------------------------------------


def test_a_megabyte_is_changed_in_less_time_than_anybody_would_notice() -> None:
    # Given what a client keeps of its conversations, before and behind the servers
    history = [{"display": f'say {number} "quoted" // and more', "pasted": {}} for number in range(6_000)]
    document = {"before": history, "mcpServers": {"x": {"command": "y"}}, "projects": {"/a": {"history": history}}}
    text = "// settings\n" + json.dumps(document, indent=2)
    assert len(text) > 1_000_000

    # When an entry is put and taken out again
    begin = time.process_time()
    changed = added(text)
    assert removed(changed, 1) == text
    took = time.process_time() - begin

    # Then that took a moment, although a comment was in the way
    assert took < 3  # as a rule 0.4 s; Python looking at every character would take 12
