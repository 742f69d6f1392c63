"""The shape of a project file."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.problems import EvaluationProblem
from uno_devserver.msbuild.validation import is_valid_name, metadata_attributes, validate
from uno_devserver.msbuild.xml import parse_xml


def code(text: str) -> str:
    try:
        validate(parse_xml(text.encode()))
    except EvaluationProblem as problem:
        return problem.code
    return ""


def test_a_file_of_the_right_shape_tells_what_it_could_define() -> None:
    names = validate(
        parse_xml(
            b"""<Project Sdk="Some.Sdk" Anything="goes" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
              <!-- comment -->
              <Sdk Name="Other.Sdk" />
              <PropertyGroup Condition="false" Label="l"><One Condition="false" /></PropertyGroup>
              <ItemGroup><Thing Include="a" /></ItemGroup>
              <Choose><When Condition="true"><PropertyGroup><Two /></PropertyGroup></When></Choose>
              <Target Name="T"><PropertyGroup><Three /></PropertyGroup><Anything>goes</Anything></Target>
              <ProjectExtensions>text</ProjectExtensions>
              <UsingTask TaskName="t" />
            </Project>"""
        )
    )

    assert names.properties == {"one", "two"}
    assert names.items == {"thing"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("text", "MSB4067"),
        ("<![CDATA[x]]>", "MSB4067"),
        ("<?pi x?>", "MSB4067"),
        ("<propertygroup />", "MSB4067"),
        ("<PropertyGroup><A.B /></PropertyGroup>", "MSB5016"),
        ("<PropertyGroup><MSBuildThisFile /></PropertyGroup>", "MSB4004"),
        ("<PropertyGroup><When /></PropertyGroup>", "MSB4004"),
        ("<PropertyGroup Foo='1' />", "MSB4066"),
        ("<ItemGroup><A Include='x' _m='1' /></ItemGroup>", "MSB4066"),
        ("<ItemGroup><A Include='x' FullPath='1' /></ItemGroup>", "MSB4066"),
        ("<ItemGroup><A Include='x' exclude='1' /></ItemGroup>", "MSB4066"),
        ("<ItemGroup><A Include='' /></ItemGroup>", "MSB4035"),
        ("<ItemGroup><A Remove='' /></ItemGroup>", "MSB4035"),
        ("<ItemGroup><A Update='x' Exclude='y' /></ItemGroup>", "MSB4066"),
        ("<ItemGroup><A Update='x' Remove='y' /></ItemGroup>", "MSB4111"),
        ("<ItemGroup><Choose Include='x' /></ItemGroup>", "MSB4117"),
        ("<ItemGroup><A Include='x'><Identity /></A></ItemGroup>", "MSB4033"),
        ("<ItemGroup><A Include='x'><Target /></A></ItemGroup>", "MSB4118"),
        ("<ItemGroup><A Remove='x'><M /></A></ItemGroup>", "MSB4162"),
        ("<ItemDefinitionGroup><A Include='x' /></ItemDefinitionGroup>", "MSB4066"),
        ("<ItemDefinitionGroup><A><Filename /></A></ItemDefinitionGroup>", "MSB4033"),
        ("<Import />", "MSB4035"),
        ("<Import Project='x' Foo='1' />", "MSB4066"),
        ("<Import Project='x'><A /></Import>", "MSB4067"),
        ("<ImportGroup><ItemGroup /></ImportGroup>", "MSB4067"),
        ("<Choose />", "MSB4085"),
        ("<Choose><When Condition='true' /><Otherwise /><Otherwise /></Choose>", "MSB4082"),
        ("<Choose><Otherwise /><When Condition='true' /></Choose>", "MSB4084"),
        ("<Choose><When /></Choose>", "MSB4035"),
        ("<Choose Label='l'><When Condition='true' /></Choose>", "MSB4066"),
        ("<Choose><Else /></Choose>", "MSB4067"),
        ("<Choose><When Condition='true'><Target Name='t' /></When></Choose>", "MSB4067"),
    ],
)
def test_a_wrong_shape_has_msbuilds_code(body: str, expected: str) -> None:
    assert code(f"<Project>{body}</Project>") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<project />", "MSB4068"),
        ("<Package />", "MSB4068"),
        ("<Project xmlns='urn:other' />", "MSB4041"),
        ("<m:Project xmlns:m='http://schemas.microsoft.com/developer/msbuild/2003' />", "MSB4041"),
        ("<Project xmlns='' />", ""),
    ],
)
def test_the_root_is_a_project_in_msbuilds_namespace_or_none(text: str, expected: str) -> None:
    assert code(text) == expected


def test_choose_nests_fifty_deep_and_no_deeper() -> None:
    def nested(depth: int) -> str:
        return "<Choose><When Condition='true'>" * depth + "</When></Choose>" * depth

    assert code(f"<Project>{nested(50)}</Project>") == ""
    assert code(f"<Project>{nested(51)}</Project>") == "MSB4114"


def test_a_name_has_letters_digits_dashes_and_underscores() -> None:
    assert all(map(is_valid_name, ["A", "_a", "A-b_9"]))
    assert not any(map(is_valid_name, ["", "9a", "-a", "a.b", "a b", "é", " a"]))


def test_the_attributes_of_an_item_that_msbuild_does_not_know_are_metadata() -> None:
    item = parse_xml(b"<A Include='x' Exclude='y' Condition='c' Kind='k' KeepMetadata='z' Two='2' />")

    assert metadata_attributes(item) == [("Kind", "k"), ("Two", "2")]
