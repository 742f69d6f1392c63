"""The item pass."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild import items
from uno_devserver.msbuild.expressions import UNKNOWN, EvaluationScope, guessed
from uno_devserver.msbuild.items import Selection
from uno_devserver.msbuild.metadata import ItemEntry
from uno_devserver.msbuild.problems import EvaluationProblem

from .builder import Package


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('<X Include=" a ;; b;a" />', ["a", "b", "a"]),
        ('<X Include="a;b;c" Exclude="B;./c" />', ["a"]),
        ('<X Include="a%3Bb" />', ["a;b"]),
        ('<X Include="a;b" /><X Remove="A" /><X Include="a" />', ["b", "a"]),
        ('<X Include="x/a.dll;x/b.txt" /><X Remove="x/*.dll" />', ["x/b.txt"]),
        ('<X Include="a;b" /><X Remove="@(X)" />', []),
        ('<Y Include="b" /><X Include="a;b;c" Exclude="@(Y)" />', ["a", "c"]),
        ('<X Include="a" Condition="false" /><X Include="b" Condition="\'@(X)\' == \'\'" />', ["b"]),
        ('<X Include="a" Condition="false" /><X Remove="b" Condition="false" /><X Include="b" />', ["b"]),
    ],
)
def test_operations_follow_one_another(content: str, expected: list[str], package: Package) -> None:
    assert package.identities(content) == expected


def test_wildcards_look_in_the_project_folder(package: Package) -> None:
    package.write({"../proj/sub/b.dll": "", "../proj/sub/a.dll": "", "sub/c.dll": ""})

    assert package.identities('<X Include="sub/*.dll" Exclude="SUB/A*" />') == ["sub/b.dll"]


def test_metadata_comes_from_attributes_then_children_and_sees_what_was_set_before(package: Package) -> None:
    content = """<ItemGroup>
      <X Include="d/x.dll;y.dll" Kind="k" Path="..\\a">
        <kind>%(Kind)-%(Filename)</kind>
        <Only Condition="'%(Filename)' == 'x'">yes</Only>
        <List>@(Nope)[%(X.Kind)%(Y.Kind)]</List>
      </X>
    </ItemGroup>"""

    first, second = package.items(content, plain=True)

    assert first.metadata == {"kind": "k-x", "Path": "../a", "Only": "yes", "List": "[k-x]"}
    assert second.metadata == {"kind": "k-y", "Path": "../a", "List": "[k-y]"}


def test_metadata_with_backslashes_turns_round_for_folders_beside_the_file_too(package: Package) -> None:
    package.write({"beside/x": ""})

    (item,) = package.items('<ItemGroup><X Include="x" A="beside\\x" B="nowhere\\x" /></ItemGroup>')

    assert item.metadata == {"A": "beside/x", "B": "nowhere\\x"}


def test_an_update_changes_what_is_there_already(package: Package) -> None:
    content = '<ItemGroup><X Update="a" K="1" /><X Include="a;b" /><X Update="A;c" K="2" /></ItemGroup>'

    assert [item.metadata for item in package.items(content)] == [{"K": "2"}, {}]


def test_definitions_give_defaults_wherever_they_stand(package: Package) -> None:
    content = """<ItemGroup><X Include="a" /><X Include="b" K="own" /><Y Include="@(X)" /></ItemGroup>
      <ItemDefinitionGroup><X><K>dflt</K><L>%(K)+</L></X></ItemDefinitionGroup>
      <ItemDefinitionGroup Condition="false"><X><K>never</K></X></ItemDefinitionGroup>"""

    evaluation = package.evaluate(content)

    assert [item.metadata for item in evaluation.items("X")] == [
        {"K": "dflt", "L": "dflt+"},
        {"K": "own", "L": "dflt+"},
    ]
    assert evaluation.items("Y")[0].metadata == {"K": "dflt", "L": "dflt+"}


def test_a_remove_can_match_on_metadata(package: Package) -> None:
    content = """<Y Include="y" K="1" /><X Include="a" K="1" /><X Include="b" K="2" /><X Include="c" />
                 <X Remove="@(Y)" MatchOnMetadata="K" />"""

    assert package.identities(content) == ["b", "c"]


@pytest.mark.parametrize(
    "content",
    [
        '<ItemGroup Condition="false"><X Include="$([No.Such]::Thing())" /></ItemGroup>',
        '<ItemGroup><X Include="$([No.Such]::Thing())" Condition="false" /></ItemGroup>',
        '<ItemGroup Condition="false"><X Include="a"><K Condition="1">x</K></X></ItemGroup>',
    ],
)
def test_errors_behind_a_false_condition_are_errors(content: str, package: Package) -> None:
    assert package.code(content) in ("MSB4212", "MSB4113")


def test_wildcards_behind_a_false_condition_do_not_search(package: Package) -> None:
    assert package.code('<ItemGroup Condition="false"><X Include="/**/*" /></ItemGroup>') == ""


class TestInThreeValues:
    def test_an_item_behind_an_unknown_condition_counts_and_is_uncertain(self, package: Package) -> None:
        evaluation = package.evaluate(
            """<ItemGroup Condition="'$(Mode)' == 'x'"><X Include="a" /><X Include="b" Condition="false" /></ItemGroup>
               <ItemGroup><X Include="c" Condition="'$(Kind)' != ''" /><X Include="d" /></ItemGroup>"""
        )

        found = [(item.identity, item.certain) for item in evaluation.items("X")]
        assert found == [("a", False), ("c", False), ("d", True)]
        assert [expression for expression, _ in evaluation.notes] == ["'$(Mode)' == 'x'", "'$(Kind)' != ''"]

    def test_a_part_of_an_include_with_an_unknown_path_is_left_out_and_noted(self, package: Package) -> None:
        evaluation = package.evaluate('<ItemGroup><X Include="a;$(Nope)/x.dll;b" /></ItemGroup>')

        assert [(item.identity, item.certain) for item in evaluation.items("X")] == [("a", True), ("b", True)]
        assert evaluation.notes == [("a;$(Nope)/x.dll;b", package.path("a.targets"))]

    def test_a_path_with_an_unknown_part_counts_if_it_leads_to_a_file_without_it(self, package: Package) -> None:
        package.write({"tools/x.dll": "", "tools/y.dll": ""})
        here = "$(MSBuildThisFileDirectory)"

        content = f'<X Include="$(Prefix){here}tools$(Suffix)/x.dll;{here}no$(Nope)/y.dll;{here}tools$(Nope)/*.dll" />'

        assert package.identities(content) == [package.path("tools/x.dll") + "?"]

    def test_a_remove_that_may_not_happen_makes_items_uncertain(self, package: Package) -> None:
        content = """<X Include="a;b;c;d" /><X Remove="a" Condition="'$(Nope)' == ''" /><X Remove="b" />
                     <X Remove="$(Nope)" /><X Remove="c;$(Nope)" />"""

        assert package.identities(content) == ["a?", "d"]

    def test_what_is_removed_by_a_guess_may_still_be_there(self, package: Package) -> None:
        evaluation = package.evaluate(
            """<PropertyGroup><G Condition="'$(Nope)' == ''">b</G></PropertyGroup>
               <ItemGroup><X Include="a;b" /><X Remove="$(G)" /><X Include="b;c" Exclude="$(G)" /></ItemGroup>"""
        )

        found = [(item.identity, item.certain) for item in evaluation.items("X")]
        assert found == [("a", True), ("b", False), ("b", False), ("c", True)]

    def test_an_exclude_that_is_not_known_makes_items_uncertain(self, package: Package) -> None:
        assert package.identities('<X Include="a;b" Exclude="b;$(Nope)" />') == ["a?"]

    def test_unknown_metadata_is_left_out_and_an_uncertain_update_noted(self, package: Package) -> None:
        evaluation = package.evaluate(
            """<ItemGroup><X Include="a" K="$(Nope)"><L>%(K)</L><M Condition="'$(Nope)' == ''">m</M></X>
               <X Update="a" N="n" Condition="'$(Nope)' == ''" /></ItemGroup>"""
        )

        (item,) = evaluation.items("X")
        assert item.metadata == {"M": "m", "N": "n"}
        assert not item.certain

    def test_the_notes_about_one_type_leave_out_the_others(self, package: Package) -> None:
        evaluation = package.evaluate(
            """<ItemGroup><X Include="$(One)" /><Y Include="$(Two)" /></ItemGroup><Import Project="$(Three)" />"""
        )

        assert {expression for expression, _ in evaluation.notes} == {"$(One)", "$(Two)", "$(Three)"}
        assert {expression for expression, _ in evaluation.notes_about("x")} == {"$(One)", "$(Three)"}


def test_a_list_that_doubles_itself_ends(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "MAX_ITEMS", 1000)

    doublings = '<X Include="@(X)" />' * 60

    assert package.code(f'<ItemGroup><X Include="a" />{doublings}</ItemGroup>') == "Limit"


@pytest.mark.parametrize(
    ("part", "identity", "expected"),
    [
        ("b", "b", True),
        ("B", "b", True),
        ("./d/b.dll", "d/b.dll", True),
        ("d\\b.dll", "d/b.dll", True),
        ("/p/b", "b", True),
        ("*.dll", "x.DLL", True),
        ("%2a.dll", "*.dll", True),
        ("%2a.dll", "x.dll", False),
        ("**x", "**x", True),
        ("c", "b", False),
    ],
)
def test_spelling_and_case_do_not_matter(part: str, identity: str, expected: bool) -> None:
    selection = Selection(EvaluationScope("/p", {}, None))

    selection.add(part)

    assert selection.matches(ItemEntry(identity, "X", "", certain=True)) is expected
    assert selection.complete


def test_an_unknown_part_leaves_the_selection_incomplete() -> None:
    selection = Selection(EvaluationScope("/p", {}, None))

    selection.add(f"{UNKNOWN}/x")
    selection.add(guessed("b"))

    assert not selection.complete
    assert selection.matches(ItemEntry("b", "X", "", certain=True)) is None
    assert selection.matches(ItemEntry("c", "X", "", certain=True)) is False


def test_a_huge_path_uses_up_what_an_evaluation_may_do() -> None:
    selection = Selection(EvaluationScope("/p", {}, None))
    for number in range(500):
        selection.add(f"*.{number}")

    with pytest.raises(EvaluationProblem) as raised:
        selection.matches(ItemEntry("x" * 4_000_000, "X", "", certain=True))

    assert raised.value.code == "Limit"


def test_nothing_selected_matches_nothing() -> None:
    assert Selection(EvaluationScope("/p", {}, None)).matches(ItemEntry("", "X", "", certain=True)) is False
