"""The property pass."""

from __future__ import annotations

import os

import pytest

from uno_devserver.msbuild.problems import EvaluationProblem
from uno_devserver.msbuild.properties import MAX_IMPORT_DEPTH

from .builder import Package


def group(*properties: str) -> str:
    return f"<PropertyGroup>{''.join(properties)}</PropertyGroup>"


def test_a_property_sees_what_stands_before_it_and_ignores_case(package: Package) -> None:
    evaluation = package.evaluate(group("<A>1</A>", "<B>$(a)$(Late)</B>", "<Late>2</Late>", "<a>$(A)3</a>"))

    assert [evaluation.property(name) for name in ("A", "B", "late")] == ["13", "1", "2"]


def test_given_properties_can_be_overridden_and_global_ones_cannot(package: Package) -> None:
    evaluation = package.evaluate(
        group(
            "<Given>file</Given>", "<Global Condition='bad ('>file</Global>", "<Empty>file</Empty>", "<Env>file</Env>"
        ),
        properties={"given": "caller"},
        global_properties={"GLOBAL": "caller", "Empty": ""},
        environment={"Env": "environment", "Other": "o%3Bp", "not a name": "x"},
    )

    assert evaluation.property("Given") == "file"
    assert evaluation.property("Global") == "caller"
    assert evaluation.property("Empty") == ""
    assert evaluation.property("Env") == "file"
    assert evaluation.property("OTHER") == "o;p"


def test_a_file_can_claim_a_global_property_as_its_own(package: Package) -> None:
    package.write(
        {"local.props": "<Project TreatAsLocalProperty='A;B'><PropertyGroup><A>file</A></PropertyGroup></Project>"}
    )

    evaluation = package.evaluate("<Import Project='local.props' />", global_properties={"A": "global"})

    assert evaluation.property("A") == "file"


def test_the_project_and_the_file_have_reserved_properties(package: Package) -> None:
    evaluation = package.evaluate(
        group(
            "<A>$(MSBuildThisFileFullPath)</A>",
            "<B>$(MSBuildProjectName)$(MSBuildProjectExtension)</B>",
            "<C>$(OS)</C>",
        )
    )

    assert evaluation.property("A") == package.path("a.targets")
    assert evaluation.property("B") == "App.csproj"
    assert evaluation.property("C") == ("Windows_NT" if os.name == "nt" else "Unix")


def test_exists_looks_beside_the_file_for_groups_and_imports_and_in_the_project_folder_for_the_rest(
    package: Package,
) -> None:
    package.write({"here.txt": "", "../proj/there.txt": "", "i.props": "<Project />"})
    here, there = "Condition=\"Exists('here.txt')\"", "Condition=\"Exists('there.txt')\""

    evaluation = package.evaluate(
        f"<PropertyGroup {here}><A>1</A></PropertyGroup><PropertyGroup {there}><B>1</B></PropertyGroup>"
        + group(f"<C {here}>1</C>", f"<D {there}>1</D>")
        + f"<Choose><When {there}><PropertyGroup><E>1</E></PropertyGroup></When></Choose>"
        + f"<ImportGroup {here}><Import Project='i.props' {here} /></ImportGroup>",
    )

    assert [evaluation.property(name) for name in "ABCDE"] == ["1", "", "", "1", "1"]
    assert evaluation.imported == (package.path("a.targets"), package.path("i.props"))


def test_the_first_true_branch_of_choose_wins_and_the_rest_is_not_looked_at(package: Package) -> None:
    evaluation = package.evaluate(
        """<Choose>
          <When Condition="false"><PropertyGroup><A>1</A></PropertyGroup></When>
          <When Condition="true"><PropertyGroup><A>2</A></PropertyGroup><Choose>
            <When Condition="false" /><Otherwise><PropertyGroup><B>3</B></PropertyGroup></Otherwise></Choose></When>
          <When Condition="bad ("><PropertyGroup><A>4</A></PropertyGroup></When>
        </Choose>"""
    )

    assert (evaluation.property("A"), evaluation.property("B")) == ("2", "3")


class TestImports:
    def test_paths_start_from_the_importing_file_and_take_lists_and_wildcards(self, package: Package) -> None:
        for name in ("b", "a", "C"):
            package.write({f"parts/{name}.props": f"<Project>{group(f'<A>$(A){name}</A>')}</Project>"})
        package.write({"x.props": f"<Project>{group('<A>$(A)x</A>')}</Project>"})

        evaluation = package.evaluate("<Import Project='x.props; parts\\*.props;none/*.props' />")

        assert evaluation.property("A") == "xabC"

    def test_a_file_counts_once_however_it_is_spelled_and_cycles_end(self, package: Package) -> None:
        package.write({"b.props": f"<Project><Import Project='a.targets' />{group('<A>$(A)x</A>')}</Project>"})

        evaluation = package.evaluate("<Import Project='b.props' /><Import Project='../pkg/./b.props' />")

        assert evaluation.property("A") == "x"
        assert len(evaluation.imported) == 2

    @pytest.mark.parametrize(
        ("element", "code"),
        [
            ("<Import Project='none.props' />", "MSB4019"),
            ("<Import Project='.' />", "MSB4019"),
            ("<Import Project='$(Empty)' />", "MSB4020"),
            ("<Import Project='Sdk.props' Sdk='Some.Sdk' />", "MSB4236"),
            ("<Import Project='none.props' Condition='false' />", ""),
        ],
    )
    def test_what_cannot_be_imported_has_msbuilds_code(self, element: str, code: str, package: Package) -> None:
        assert package.code(element) == code

    def test_a_problem_names_the_imported_file_and_the_entry_that_led_to_it(self, package: Package) -> None:
        package.write({"bad.props": "<Project><PropertyGroup Condition='bad ('><A /></PropertyGroup></Project>"})

        with pytest.raises(EvaluationProblem) as raised:
            package.evaluate("", "<Import Project='bad.props' />")

        assert raised.value.path == package.path("bad.props")
        assert raised.value.entry == 1

    def test_a_chain_of_imports_ends_at_a_limit(self, package: Package) -> None:
        for number in range(MAX_IMPORT_DEPTH + 1):
            package.write({f"{number}.props": f"<Project><Import Project='{number + 1}.props' /></Project>"})

        assert package.code("<Import Project='0.props' />") == "Limit"


class TestInThreeValues:
    def test_a_default_for_an_unknown_value_is_a_guess_that_the_first_alternative_wins(self, package: Package) -> None:
        evaluation = package.evaluate(
            group(
                "<T Condition=\"'$(Tfm)' == ''\">net9.0</T>",
                "<T Condition=\"'$(Tfm)' != ''\">$(Tfm)</T>",
                "<Copy>tools/$(T)</Copy>",
            )
            + '<ItemGroup><X Include="$(Copy)/x.dll;certain" /></ItemGroup>'
        )

        assert evaluation.property("T") == "net9.0"
        found = [(item.identity, item.certain) for item in evaluation.items("X")]
        assert found == [("tools/net9.0/x.dll", False), ("certain", True)]

    def test_a_known_value_stays_where_a_change_may_not_happen_but_is_no_longer_certain(self, package: Package) -> None:
        evaluation = package.evaluate(
            group("<A>1</A>", "<B>1</B>", "<A Condition=\"'$(N)'\">2</A>", "<B Condition=\"'$(N)'\">1</B>")
            + """<ItemGroup>
              <X Include="$(A)" /><X Include="$(B)" /><X Include="c" Condition="'$(A)' == '2'" />
            </ItemGroup>"""
        )

        assert [(item.identity, item.certain) for item in evaluation.items("X")] == [
            ("1", False),
            ("1", True),
            ("c", False),
        ]

    def test_a_value_made_of_something_unknown_is_unknown(self, package: Package) -> None:
        evaluation = package.evaluate(group("<A>x$(Nope)</A>", "<B>$(A.Length)</B>", "<C>$(D)</C>", "<D>d</D>"))

        assert [evaluation.property(name) for name in ("A", "B", "C", "D", "Nope")] == [None, None, "", "d", None]

    def test_an_empty_given_property_is_known(self, package: Package) -> None:
        evaluation = package.evaluate(
            "<ItemGroup Condition=\"'$(Switch)' != 'true'\"><X Include=\"a\" /></ItemGroup>", properties={"Switch": ""}
        )

        assert [item.certain for item in evaluation.items("X")] == [True]

    def test_after_an_undecided_branch_the_next_ones_may_be_meant_too(self, package: Package) -> None:
        content = """<Choose>
          <When Condition="'$(N)' == '1'"><ItemGroup><X Include="a" /></ItemGroup></When>
          <When Condition="false"><ItemGroup><X Include="b" /></ItemGroup></When>
          <When Condition="true"><ItemGroup><X Include="c" /></ItemGroup></When>
          <Otherwise><ItemGroup><X Include="d" /></ItemGroup></Otherwise>
        </Choose>"""

        assert [(item.identity, item.certain) for item in package.items(content)] == [("a", False), ("c", False)]

    def test_an_undecided_import_is_followed_if_the_file_is_there(self, package: Package) -> None:
        package.write({"there.props": '<Project><ItemGroup><X Include="x" /></ItemGroup></Project>'})

        evaluation = package.evaluate(
            """<Import Project="there.props" Condition="'$(N)' == '1'" />
               <Import Project="none.props" Condition="'$(N)' == '2'" />
               <Import Project="$(N)/x.props" />
               <Import Project="Sdk.props" Sdk="Some.Sdk" />"""
        )

        assert [(item.identity, item.certain) for item in evaluation.items("X")] == [("x", False)]
        expressions = [expression for expression, _ in evaluation.notes]
        assert expressions == ["'$(N)' == '2'", "$(N)/x.props", "Some.Sdk: Sdk.props", "'$(N)' == '1'"]

    def test_what_an_imported_file_defines_later_is_empty_and_not_unknown_before(self, package: Package) -> None:
        package.write({"a.props": f"<Project>{group('<Seen>true</Seen>')}</Project>"})

        evaluation = package.evaluate(
            """<ItemGroup><X Include="x" Condition="'$(Seen)' == 'true'" /></ItemGroup>
               <Import Project="a.props" Condition="'$(Seen)' != 'true'" />"""
        )

        assert [(item.identity, item.certain) for item in evaluation.items("X")] == [("x", True)]
        assert evaluation.notes == []

    def test_an_error_that_a_second_look_removes_is_no_error(self, package: Package) -> None:
        # Before a.props is known, $(Seen) is unknown and bad.props is followed; then $(Seen) turns out to be empty.
        package.write({"a.props": f"<Project>{group('<Seen>true</Seen>')}</Project>", "bad.props": "not XML"})

        evaluation = package.evaluate(
            """<Import Project="a.props" Condition="'$(Seen)' == ''" />
               <Import Project="bad.props" Condition="'$(Seen)' == 'false'" />"""
        )

        assert evaluation.property("Seen") == "true"
