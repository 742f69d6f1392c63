"""Where the elements of an XML text stand."""

from __future__ import annotations

import pytest

from uno_devserver.instances.csproj_user import ElementSpan, root_span, without_texts
from uno_devserver.msbuild.xml import XmlProblem

TEXT = """<?xml version="1.0"?><!-- <x> --><r xmlns='one' xmlns:p="two">
  <a x="/b>" y='>'>1<![CDATA[<a>]]></a><p:a/><a xmlns=""><a/></a>
</r>"""


def outer(place: ElementSpan) -> str:
    return TEXT[place.start : place.end]


def test_an_element_reaches_from_its_start_tag_to_its_end_tag() -> None:
    root = root_span(TEXT)

    assert outer(root).startswith("<r xmlns")
    assert outer(root).endswith("</r>")
    assert [outer(child) for child in root.children] == [
        "<a x=\"/b>\" y='>'>1<![CDATA[<a>]]></a>",
        "<p:a/>",
        '<a xmlns=""><a/></a>',
    ]


def test_the_content_stands_between_the_tags() -> None:
    first, short, _ = root_span(TEXT).children

    assert TEXT[first.inner_start : first.inner_end] == "1<![CDATA[<a>]]>"
    assert (first.short, short.short) == (False, True)
    assert short.inner_start == short.inner_end == short.end


def test_names_have_the_namespace_that_holds_where_they_stand() -> None:
    root = root_span(TEXT)

    assert [(child.prefix, child.name, child.namespace) for child in root.children] == [
        ("", "a", "one"),
        ("p", "a", "two"),
        ("", "a", ""),
    ]
    assert root.named("a") == root.children[:1]
    assert root.named("b") == []


def test_comments_and_instructions_are_kept_when_texts_go() -> None:
    assert without_texts("1<!-- <a> --><![CDATA[2]]><b>3</b><?x y?>\n") == "<!-- <a> --><?x y?>"


@pytest.mark.parametrize("text", ["", "<a>", "<a></b>", "<a/><b/>", "<a", "text"])
def test_what_is_not_well_formed_has_no_places(text: str) -> None:
    with pytest.raises(XmlProblem):
        root_span(text)


def test_a_space_that_xml_does_not_know_is_part_of_a_name() -> None:
    assert root_span("<\u00a0r/>").name == "\u00a0r"
