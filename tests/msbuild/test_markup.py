"""The content of an element, with and without its markup."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.xml import inner_text, inner_xml, parse_xml


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
