"""Whole evaluations, good and hostile."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.files import write
from uno_devserver.msbuild import expressions
from uno_devserver.msbuild.evaluation import Evaluator
from uno_devserver.msbuild.problems import EvaluationProblem
from uno_devserver.msbuild.project_files import ProjectFileCache

from .builder import Package


def test_files_are_evaluated_in_order_as_one_project(package: Package) -> None:
    evaluation = package.evaluate(
        "<PropertyGroup><A>1</A></PropertyGroup><ItemGroup><X Include='$(A)' /></ItemGroup>",
        "<PropertyGroup><A>$(A)2</A></PropertyGroup><ItemGroup><X Include='b' /><X Remove='12' /></ItemGroup>",
        "<ItemGroup><X Include='c' /></ItemGroup>",
    )

    assert [(item.identity, item.defined_in) for item in evaluation.items("x")] == [
        ("b", package.path("b.targets")),
        ("c", package.path("c.targets")),
    ]
    assert evaluation.property("A") == "12"
    assert evaluation.imported == tuple(package.path(f"{letter}.targets") for letter in "abc")


def test_properties_are_found_by_the_start_of_their_names(package: Package) -> None:
    evaluation = package.evaluate(
        "<PropertyGroup><PkgAcme_One>/n/one</PkgAcme_One><PKGTwo>$(Nope)</PKGTwo><Other>x</Other></PropertyGroup>",
        properties={"PkgThree": "3"},
        environment={"PkgFour": "4"},
    )

    assert evaluation.properties("pkg") == {"PkgThree": "3", "PkgAcme_One": "/n/one", "PKGTwo": None}


def test_an_item_has_a_full_path_seen_from_the_project(package: Package) -> None:
    (item,) = package.items("<ItemGroup><X Include='$(MSBuildThisFileDirectory)..\\tools\\x.dll' /></ItemGroup>")

    assert item.identity == f"{package.folder}/../tools/x.dll"
    assert item.full_path == str(package.folder.parent / "tools" / "x.dll")


def test_a_problem_in_the_item_pass_names_its_file_and_entry(package: Package) -> None:
    with pytest.raises(EvaluationProblem) as raised:
        package.evaluate("", "<ItemGroup><X Include='a' Condition='bad (' /></ItemGroup>")

    assert (raised.value.code, raised.value.path, raised.value.entry) == ("MSB4092", package.path("b.targets"), 1)
    assert package.path("b.targets") in str(raised.value)


def test_evaluators_can_share_parsed_files(package: Package) -> None:
    path = write(package.folder / "a.targets", "<Project><ItemGroup><X Include='$(V)' /></ItemGroup></Project>")
    load = ProjectFileCache()

    found = []
    for value in ("1", "2"):
        evaluator = Evaluator(str(package.project), properties={"V": value}, load=load)
        found += [item.identity for item in evaluator.evaluate([str(path)]).items("X")]
        path.unlink(missing_ok=True)

    assert found == ["1", "2"]


def test_a_function_that_is_not_implemented_is_noted_and_never_guessed(package: Package) -> None:
    call = "$([System.Text.RegularExpressions.Regex]::Replace('a', 'b', 'c'))"
    evaluation = package.evaluate(
        f"<PropertyGroup><A>{call}</A></PropertyGroup><ItemGroup><X Include='$(A)' /></ItemGroup>"
    )

    assert evaluation.property("A") is None
    assert evaluation.items("X") == []
    assert (call, package.path("a.targets")) in evaluation.notes
    assert package.code(f"<PropertyGroup><A>{call}</A></PropertyGroup>") == "Unsupported"


@pytest.mark.parametrize(
    "content",
    [
        "<PropertyGroup><A>xxxxxxxxxxxxxxxx</A>" + "<A>$(A)$(A)</A>" * 60 + "</PropertyGroup>",
        "<PropertyGroup><A>x</A>" + "<A>$(A.Replace('x', 'xxxxxxxxxxxxxxxx'))</A>" * 60 + "</PropertyGroup>",
        "<PropertyGroup><A>$(A.PadLeft(2000000000))</A></PropertyGroup>",
        "<ItemGroup><X Include='a' />" + "<X Include='@(X);@(X)' />" * 60 + "</ItemGroup>",
        "<ItemGroup><X Include='a' M='x' />" + "<X Update='a' M='%(M)%(M)' />" * 60 + "</ItemGroup>",
        "<PropertyGroup><A>" + "$(A.Trim(" * 5000 + "x" + "))" * 5000 + "</A></PropertyGroup>",
        '<PropertyGroup Condition="' + "(" * 50_000 + '" />',
        "<ItemGroup><X Include='" + "a;" * 50_000 + "' />" + "<X Remove='b' />" * 1000 + "</ItemGroup>",
        "<ItemGroup><X Include='" + "a;" * 50_000 + "' Exclude='" + "b*;" * 1000 + "' /></ItemGroup>",
        "<ItemGroup><X Include='" + "a;" * 50_000 + "' />" + "<Y Include='@(X->Count())' />" * 1000 + "</ItemGroup>",
        "<PropertyGroup><A>$(B.PadLeft(4000000))</A>" + "<C>$(A.Contains('x'))</C>" * 1000 + "</PropertyGroup>",
    ],
    ids=[
        "property",
        "replace",
        "pad",
        "items",
        "metadata",
        "nested calls",
        "parentheses",
        "removes",
        "excludes",
        "counts",
        "calls",
    ],
)
def test_a_bomb_ends_in_a_problem_before_time_or_memory_do(
    content: str, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expressions, "MAX_STEPS", 100_000)  # a tenth of the time
    start = time.process_time()

    assert package.code(content) == "Limit"

    assert time.process_time() - start < 3


def test_evaluations_that_share_their_files_are_limited_together(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expressions, "MAX_ENTRIES", 100)
    for number in range(60):
        write(package.project.parent / "many" / f"{number}.dll", "")
    write(package.project.parent / "few" / "0.dll", "")
    many, few = (
        str(
            write(
                package.project.parent / f"{name}.targets",
                f"<Project><ItemGroup><X Include='{name}/*'/></ItemGroup></Project>",
            )
        )
        for name in ("many", "few")
    )
    shared = ProjectFileCache()

    def evaluated(file: str) -> str:
        try:
            return str(len(Evaluator(str(package.project), load=shared).evaluate([file]).items("X")))
        except EvaluationProblem as problem:
            return problem.code

    answers = [evaluated(many) for _ in range(10)]

    assert answers == ["60"] * 6 + ["Limit"] * 4  # four times the limit of one, without the free first part of each
    assert evaluated(few) == "1"


def test_the_functions_are_imported_only_when_a_file_calls_one(package: Package) -> None:
    package.evaluate("<PropertyGroup><A>$(B)</A></PropertyGroup><ItemGroup><X Include='a;$(A)' /></ItemGroup>")
    program = (
        "import sys; from uno_devserver.msbuild.evaluation import Evaluator; "
        f"Evaluator({str(package.project)!r}).evaluate([{package.path('a.targets')!r}]); "
        "print(*sorted(name for name in sys.modules if name.startswith('uno_devserver.msbuild')))"
    )

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "uno_devserver.msbuild.properties" in loaded
    assert ".functions" not in loaded
    assert ".globs" not in loaded


VALUES = st.sampled_from(
    [
        "a",
        "a;b",
        "$(A)",
        "$(B)x",
        "$(Nope)",
        "..\\x\\*.dll",
        "**/*",
        "@(X)",
        "@(Y->'%(K)')",
        "%(K)",
        "%2a%00%01",
        "$(A.Replace('a', 'b'))",
        "$(A.Substring(1))",
        "$([MSBuild]::Add(1, $(A)))",
        "$([System.IO.Path]::GetFullPath('$(B)'))",
        "$(",
        "$(A.",
        "$([",
        "''",
        "",
    ]
)
CONDITIONS = st.one_of(
    st.just(""),
    st.sampled_from(["true", "false", "'$(A)' == ''", "'$(Nope)' != 'x'", "Exists('$(B)')", "$(A)", "'$(B)' > 1", "("]),
    st.builds("'{}' == '{}'".format, VALUES, VALUES),
)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def element(name: str, attributes: dict[str, str], content: str = "") -> str:
    written = "".join(f' {key}="{escaped(value)}"' for key, value in attributes.items() if value)
    return f"<{name}{written}>{content}</{name}>"


PROPERTIES = st.builds(
    lambda name, value, condition: element(name, {"Condition": condition}, escaped(value)),
    st.sampled_from(["A", "B", "a"]),
    VALUES,
    CONDITIONS,
)
ITEMS = st.builds(
    lambda name, operation, value, exclude, metadata, condition: element(
        name,
        {operation: value, "Exclude": exclude if operation == "Include" else "", "Condition": condition, "K": metadata},
    ),
    st.sampled_from(["X", "Y"]),
    st.sampled_from(["Include", "Remove", "Update"]),
    VALUES,
    VALUES,
    VALUES,
    CONDITIONS,
)
GROUPS = st.one_of(
    st.builds(
        lambda inside, condition: element("PropertyGroup", {"Condition": condition}, "".join(inside)),
        st.lists(PROPERTIES, max_size=3),
        CONDITIONS,
    ),
    st.builds(
        lambda inside, condition: element("ItemGroup", {"Condition": condition}, "".join(inside)),
        st.lists(ITEMS, max_size=3),
        CONDITIONS,
    ),
    st.builds(lambda path, condition: element("Import", {"Project": path, "Condition": condition}), VALUES, CONDITIONS),
)
PROJECTS = st.lists(GROUPS, max_size=4).map(lambda groups: f"<Project>{''.join(groups)}</Project>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hypothesis")


@given(text=PROJECTS, undefined_is_unknown=st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_project_has_a_result_or_a_problem(folder: Path, text: str, undefined_is_unknown: bool) -> None:
    # One name for all examples: a wildcard import must not meet the files of the others.
    path = write(folder / "any.targets", text)
    evaluator = Evaluator(str(folder / "App.csproj"), undefined_is_unknown=undefined_is_unknown)

    problem = evaluation = None
    try:
        evaluation = evaluator.evaluate([str(path)])
    except EvaluationProblem as raised:
        problem = raised

    if problem:
        assert problem.code
        assert (problem.path, problem.entry) == (str(path), 0)
    elif evaluation and not undefined_is_unknown:
        assert all(item.certain for item in evaluation.items("X"))
        assert None not in evaluation.properties().values()
