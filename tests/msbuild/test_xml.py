"""XML character for character."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.msbuild.xml import CData, Comment, Element, Instruction, XmlProblem, inner_text, inner_xml, parse_xml


def problem(data: str | bytes) -> XmlProblem:
    with pytest.raises(XmlProblem) as raised:
        parse_xml(data.encode() if isinstance(data, str) else data)
    return raised.value


def test_an_element_has_a_name_attributes_children_and_a_line() -> None:
    root = parse_xml(b"<a>\n  <b x='1' y=\"2\"/>text<c></c>\n</a>")

    inner, text, last = root.children
    assert isinstance(inner, Element)
    assert isinstance(last, Element)
    assert (root.name, inner.name, last.name) == ("a", "b", "c")
    assert inner.attributes == {"x": "1", "y": "2"}
    assert text == "text"
    assert (root.line, inner.line) == (1, 2)
    assert (inner.short, last.short) == (True, False)
    assert root.elements == [inner, last]


def test_blanks_and_line_ends_inside_values_stay_as_they_are() -> None:
    root = parse_xml(b'<a x="1\t2\n3\r\n4">\r\n  y\r\n</a>')

    assert root.attributes["x"] == "1\t2\n3\r\n4"
    assert root.children == ["\r\n  y\r\n"]


def test_blanks_between_elements_are_dropped() -> None:
    root = parse_xml(b"<a> <b/>\n<!-- c --> </a>")

    assert [str(child) for child in root.children] == ["<b line 1>", " c "]


def test_blanks_between_elements_stay_where_the_document_asks_for_them() -> None:
    root = parse_xml(b'<a xml:space="preserve"> <b/><c xml:space="default"> <d/></c></a>')

    assert root.children[0] == " "
    assert len(root.elements[1].children) == 1


def test_references_are_decoded_in_text_and_attributes() -> None:
    root = parse_xml(b"<a x='&lt;&#65;&quot;'>&amp;&apos;&gt;&#x41;&#x1F600;&#10;</a>")

    assert root.attributes["x"] == '<A"'
    assert root.children == ["&'>A\U0001f600\n"]


def test_comments_cdata_and_instructions_are_told_apart_from_text() -> None:
    root = parse_xml(b"<a><!-- c --><![CDATA[<&]]><?do it?>t</a>")

    assert root.children == [" c ", "<&", "do it", "t"]
    assert [type(child) for child in root.children] == [Comment, CData, Instruction, str]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf<a>\xc3\xa4</a>",
        "\ufeff<a>ä</a>".encode("utf-16-le"),
        "\ufeff<a>ä</a>".encode("utf-16-be"),
        b'<?xml version="1.0" encoding="utf-16"?><a>\xc3\xa4</a>',
        b"<?xml version='1.0' encoding='latin-1' standalone='yes' ?>\n<!-- c --><a>\xc3\xa4</a>\n<!-- d -->",
    ],
    ids=["utf-8 mark", "utf-16-le", "utf-16-be", "declared utf-16", "declared latin-1"],
)
def test_only_the_byte_order_mark_decides_the_encoding(data: bytes) -> None:
    assert parse_xml(data).children == ["ä"]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert parse_xml(b"<a>\xe4</a>").children == ["\ufffd"]


def test_a_doctype_is_skipped_whatever_it_declares() -> None:
    text = '<!DOCTYPE a [<!ENTITY e "]>"><!-- ]> --><!ELEMENT a ANY><?x ]> ?>] ><a>t</a>'

    assert parse_xml(text.encode()).children == ["t"]


def test_the_entities_of_a_doctype_are_refused() -> None:
    assert "'e' is not declared" in problem('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>').reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no root"),
        (" \n", "no root"),
        ("text", "outside"),
        ("<a></a>b", "outside"),
        ("<a/><b/>", "more than one root"),
        ("<a>", "not closed"),
        ("<a></b>", "</a> is expected"),
        ("</a>", "expected"),
        ("<a></a", "</a> is expected"),
        ("<a x='1' x='2'/>", "twice"),
        ("<a x=1/>", "malformed"),
        ("<a x='<'/>", "malformed"),
        ("<a x='1'y='2'/>", "malformed"),
        ("<1/>", "malformed"),
        ("<a b", "malformed"),
        ("<a>& </a>", "'&'"),
        ("<a>&nope;</a>", "'nope'"),
        ("<a>&#0;</a>", "not a character"),
        ("<a>&#xD800;</a>", "not a character"),
        ("<a>&#x110000;</a>", "not a character"),
        ("<a>&#" + "9" * 6000 + ";</a>", "not a character"),
        ("<a>]]></a>", "']]>'"),
        ("<a>\x01</a>", "U+0001"),
        ("<a>\uffff</a>", "U+FFFF"),
        ("<a><!-- -- --></a>", "comment"),
        ("<a><!-- ", "comment"),
        ("<a><![CDATA[ ]]", "CDATA"),
        ("<![CDATA[x]]><a/>", "malformed"),
        ("<a><?x", "instruction"),
        ("<a><?xml version='1.0'?></a>", "instruction"),
        (" <?xml version='1.0'?><a/>", "instruction"),
        ("<?xml encoding='x'?><a/>", "declaration"),
        ("<?xml version='1.1'?><a/>", "version"),
        ("<!DOCTYPE a [", "DOCTYPE"),
        ("<!DOCTYPE a><!DOCTYPE a><a/>", "more than one DOCTYPE"),
        ("<!DOCTYPE a <!-- ><a/>", "<!-- is not closed"),
        ("<!DOCTYPE a <?x ><a/>", "<? is not closed"),
        ("<!DOCTYPE a 'x><a/>", "' is not closed"),
        ("<a/><!DOCTYPE a>", "malformed"),
        ("<p:a/>", "prefix"),
        ("<a p:x='1'/>", "prefix"),
    ],
)
def test_what_is_not_well_formed_is_a_problem_that_says_why(text: str, reason: str) -> None:
    assert reason in problem(text).reason


def test_a_declared_prefix_is_fine_and_stays_part_of_the_name() -> None:
    assert parse_xml(b"<p:a xmlns:p='u'><p:b p:x='1' xml:lang='en'/></p:a>").name == "p:a"


def test_a_problem_says_where() -> None:
    found = problem("<a>\n <b>\n  <c x='1' x='2'/>\n</b></a>")

    assert (found.line, found.column) == (3, 3)


def test_a_million_nested_elements_are_a_problem_not_a_crash() -> None:
    assert "nested" in problem(b"<a>" * 10**6).reason


@pytest.mark.parametrize(
    "data",
    [
        b"<a " + b"x" * 10**6,
        b"<a" + b" x='1'" * 10**5,
        b"<!DOCTYPE a [" + b'"' * 10**6,
        b"<!DOCTYPE " + b"<!--" * 250_000,
        b"<!DOCTYPE " + b"<?" * 500_000,
        b"<!DOCTYPE a>" * 80_000,
        b"<a>" + b"&" * 10**6,
    ],
    ids=["a name", "attributes", "quotes", "comments", "instructions", "doctypes", "references"],
)
def test_a_megabyte_of_nonsense_is_refused_in_a_moment(data: bytes) -> None:
    start = time.process_time()

    problem(data)

    assert time.process_time() - start < 2


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff", min_codepoint=32))
NAMES = st.sampled_from(["a", "B-1", "_c.d", "é"])


def escaped(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&#62;"), ('"', "&quot;"), ("'", "&#x27;")):
        text = text.replace(character, entity)
    return text


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> tuple[str, Element]:
    """A document, and the element that it must become."""
    attributes = draw(st.dictionaries(NAMES, TEXT, max_size=3))
    element = Element(draw(NAMES), attributes)
    written = [f"<{element.name}"]
    written += [f' {name}="{escaped(value)}"' for name, value in attributes.items()]
    written.append(">")
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["element", "text", "cdata", "comment"]))
        if kind == "element" and depth:
            text, child = draw(trees(depth - 1))
            element.children.append(child)
            written.append(text)
        elif kind == "cdata":
            value = draw(TEXT).replace("]]>", "")
            element.children.append(CData(value))
            written.append(f"<![CDATA[{value}]]>")
        else:
            value = draw(TEXT).replace("-", "")
            if kind == "text" and value.strip(" "):
                element.children.append(value)
                written.append(escaped(value))
            # Comments keep two texts from becoming one.
            element.children.append(Comment(value))
            written.append(f"<!--{value}-->")
    written.append(f"</{element.name} >")
    return "".join(written), element


def shape(element: Element) -> object:
    children = [shape(child) if isinstance(child, Element) else (type(child), str(child)) for child in element.children]
    return element.name, element.attributes, children


@given(trees())
@settings(max_examples=100, deadline=None)
def test_any_tree_is_read_back_as_it_was_written(document: tuple[str, Element]) -> None:
    text, expected = document

    assert shape(parse_xml(text.encode("utf-8"))) == shape(expected)


@given(st.one_of(st.binary(max_size=60), st.text("<>/a =\"'&;#x1![]-?CDAT\n", max_size=40).map(str.encode)))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_document_or_a_problem(data: bytes) -> None:
    outcome: Element | XmlProblem
    try:
        outcome = parse_xml(data)
    except XmlProblem as found:
        outcome = found

    assert outcome.line >= 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a<!-- c -->b", "a<!-- c -->b"),
        ('<x  y = "1"> t </x><z/><w></w>', '<x y="1"> t </x><z /><w></w>'),
        ("x<![CDATA[<y>]]>z", "x<![CDATA[<y>]]>z"),
        ("&lt;&amp;&gt;&quot;<b/>", '&lt;&amp;&gt;"<b />'),
        ("<x y='&quot;&lt;&#9;&#10;&#13;'/>", '<x y="&quot;&lt;&#x9;&#xA;&#xD;" />'),
        ("<?do it?>", "<?do it?>"),
    ],
)
def test_markup_is_written_as_dotnet_writes_it(content: str, expected: str) -> None:
    assert inner_xml(parse_xml(f"<a>{content}</a>".encode())) == expected


def test_text_is_gathered_from_all_depths_without_comments() -> None:
    assert inner_text(parse_xml(b"<a>1<!-- c --><b>2<c>3</c></b><![CDATA[4]]><?p i?>5</a>")) == "12345"


def test_nesting_as_deep_as_the_parser_allows_is_written_without_recursion() -> None:
    depth = 990
    text = "<b>" * depth + "x" + "</b>" * depth

    assert inner_xml(parse_xml(f"<a>{text}</a>".encode())) == text
    assert inner_text(parse_xml(f"<a>{text}</a>".encode())) == "x"
