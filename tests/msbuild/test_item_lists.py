"""Item lists in text."""

from __future__ import annotations

import time

import pytest

from uno_devserver.msbuild.item_lists import find_expressions, split_outside_lists

from .builder import Package

OTHERS = """<Other Include="d/a.txt" K="1" /><Other Include="b.txt" K="2" /><Other Include="B.txt" K="2;3" />"""


def selected(package: Package, expression: str) -> list[str]:
    return package.identities(f'{OTHERS}<X Include="{expression}" />', plain=True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("@(Other)", ["d/a.txt", "b.txt", "B.txt"]),
        ("@( Other )", ["d/a.txt", "b.txt", "B.txt"]),
        ("@(OTHER);z", ["d/a.txt", "b.txt", "B.txt", "z"]),
        ("@(Nope)", []),
        ("@(Other, '+')", ["d/a.txt+b.txt+B.txt"]),
        ("@(Other->'%(Filename)')", ["a", "b", "B"]),
        ("@(Other -> '%(Filename);%(K)', '+')", ["a;1+b;2+B;2;3"]),
        ("@(Other->'%(Nope)')", []),
        ("@(Other->'[%(K)]'->Distinct())", ["[1]", "[2]", "[2;3]"]),
        ("@(Other->Distinct())", ["d/a.txt", "b.txt"]),
        ("@(Other->DistinctWithCase())", ["d/a.txt", "b.txt", "B.txt"]),
        ("@(Other->Reverse())", ["B.txt", "b.txt", "d/a.txt"]),
        ("@(Other->Count())", ["3"]),
        ("@(Nope->Count())", ["0"]),
        ("@(Other->WithMetadataValue('K', '2'))", ["b.txt"]),
        ("@(Other->WithoutMetadataValue('K', '2'))", ["d/a.txt", "B.txt"]),
        ("@(Other->AnyHaveMetadataValue('K', '1'))", ["true"]),
        ("@(Other->AnyHaveMetadataValue('K', '9'))", ["false"]),
        ("@(Other->HasMetadata('Nope'))", []),
        ("@(Other->Metadata('K'))", ["1", "2", "2", "3"]),
        ("@(Other->Filename())", ["a", "b", "B"]),
        ("@(Other->Replace('.txt', ''))", ["d/a", "b", "B"]),
        ("@(Other->Exists())", []),
    ],
)
def test_a_list_stands_for_its_items_or_what_is_made_of_them(
    expression: str, expected: list[str], package: Package
) -> None:
    assert selected(package, expression) == expected


def test_items_keep_their_metadata_unless_it_is_cleared(package: Package) -> None:
    content = OTHERS + """<X Include="@(Other->'%(Filename)')" /><X Include="@(Other->ClearMetadata())" />"""

    items = package.items(f"<ItemGroup>{content}</ItemGroup>")

    assert [item.metadata.get("K") for item in items] == ["1", "2", "2;3", None, None, None]


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("a@(Other)", "MSB4012"),
        ("@(Other)@(Other)", "MSB4012"),
        ("@(Other->'%(Other.K)')", "MSB4043"),
        ("@(Other->NoSuchFunction())", "MSB4200"),
        ("@(Other->WithMetadataValue('K'))", "MSB4199"),
        ("@(Other->HasMetadata())", "MSB4199"),
        ("@(Other->Substring(99))", "MSB4198"),
        ("@(Other->Combine('x'))", "Unsupported"),
    ],
)
def test_a_bad_list_has_msbuilds_code(expression: str, code: str, package: Package) -> None:
    assert package.code(f'<ItemGroup>{OTHERS}<X Include="{expression}" /></ItemGroup>') == code


def test_in_three_values_a_list_that_nothing_defines_is_unknown(package: Package) -> None:
    evaluation = package.evaluate(
        """<ItemGroup>
          <X Include="a;@(Compile)" />
          <X Include="b" Condition="'@(Compile)' == ''" />
        </ItemGroup>"""
    )

    assert [(item.identity, item.certain) for item in evaluation.items("X")] == [("a", True), ("b", False)]
    assert [expression for expression, _ in evaluation.notes] == ["@(Compile)", "'@(Compile)' == ''"]


def test_in_three_values_doubt_passes_from_item_to_item(package: Package) -> None:
    content = """<Other Include="a" Condition="'$(Nope)' == ''" /><Other Include="b" M="$(Nope)" />
                 <X Include="@(Other)" /><X Include="@(Other->WithMetadataValue('M', 'm'))" />
                 <X Include="@(Other->'%(M)')" /><X Include="c" Condition="'@(Other)' == 'a;b'" />
                 <X Include="@(Other, '+')" /><X Include="@(Other->'%(M)', '+')" />"""

    assert package.identities(content) == ["a?", "b", "b?", "c?", "a+b?"]


def test_what_is_not_a_list_is_text() -> None:
    for text in ("@(", "@()", "@(a", "@(a->)", "@(a->'b)", "@(a->F(", "@(a b)", "x@y"):
        assert find_expressions(text) == []


def test_semicolons_inside_a_list_do_not_separate() -> None:
    assert split_outside_lists("a;@(B->'x;y', ';');;c ; ") == ["a", "@(B->'x;y', ';')", "c"]


@pytest.mark.parametrize("part", ["@(", "@(a)", "@(a);", "@(a->'", "@(a->F(", "@(a->F(,", "@(a,'"])
def test_a_very_long_text_is_searched_in_linear_time(part: str) -> None:
    start = time.process_time()

    split_outside_lists(part * 20_000)

    assert time.process_time() - start < 2
