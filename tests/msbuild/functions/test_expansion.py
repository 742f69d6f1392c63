"""How a function call is taken apart."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.expressions import GUESS, UNKNOWN, EvaluationScope, guessed
from uno_devserver.msbuild.functions.calls import NoSuchFunction, NotImplementedHere, SystemVersion
from uno_devserver.msbuild.functions.expansion import MAX_NESTING, find_member
from uno_devserver.msbuild.problems import EvaluationProblem

from .conftest import Call


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$(A.Replace('a', 'o'))", "bonono"),
        ("[$(A.ToUpper().Substring(1).Replace('A', ''))]", "[NN]"),
        ("$( A.Length )", "6"),
        ("$(A . Length)", "6"),
        ("$(Tfm.Substring(0, $(Tfm.IndexOf('-'))))", "net10.0"),
        ("$(List.Split('.')[1])", "y"),
        ("$(List.Split('.'))", "x;y;z"),
        ("$(A[0])$(A[1])", "ba"),
        ("$(Nope.Length)", "0"),
        ("$([System.Version]::Parse('1.2.3').ToString(2))", "1.2"),
        ("$([System.String]::Copy('$(A.Replace('a','b'))'))", "bbnbnb"),
        ('$(A.Replace("a", `(`))', "b(n(n("),
        ("$(A.Replace('a', null))", "bnn"),
        ("$(A.Replace(a, ','))", "b,n,n,"),
        ("$(Semi.Length)", "3"),
        ("$(A.Replace('b', '%3B'))", ";anana"),
        ("$(A.Length", "$(A.Length"),
        ("$(A.Replace('a)", "$(A.Replace('a)"),
        ("x$([System.Environment]::GetEnvironmentVariable('NOPE'))y", "xy"),
    ],
)
def test_a_call_is_replaced_by_its_result(expression: str, expected: str, call: Call) -> None:
    assert call(expression) == expected


def test_what_a_function_gives_is_never_taken_for_something_unknown(scope: EvaluationScope) -> None:
    assert scope.expand("$(A.Replace('b', '%00%01'))") == "%00%01anana"


def test_what_a_function_gives_is_escaped_so_that_it_means_nothing_more(scope: EvaluationScope) -> None:
    assert scope.expand("$(A.Replace('b', '*;$(A)'))") == "%2a%3bbanana" + "anana"
    assert scope.expand("$([MSBuild]::Unescape('%2a'))") == "*"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("$($(A))", "MSB4184"),
        ("$(A.B)", "MSB4184"),
        ("$(A.)", "MSB4184"),
        ("$(A B.Length)", "MSB4184"),
        ("$(A.Length x)", "MSB4184"),
        ("$(A.Trim() x)", "MSB4184"),
        ("$(A.Trim().)", "MSB4184"),
        ("$(A[0)", "MSB4184"),
        ("$(A[0].Length)", "MSB4184"),
        ("$([0])", "MSB4186"),
        ("$([MSBuild]:Add(1, 2))", "MSB4186"),
        ("$([MSBuild]::)", "MSB4186"),
        ("$([MSBuild]::Add(1))", "MSB4186"),
        ("$([MSBuild]::NoSuch())", "MSB4186"),
        ("$([No.Such]::Thing())", "MSB4212"),
        ("$([System.Environment]::Exit(1))", "MSB4185"),
        ("$(A.GetType())", "MSB4185"),
        ("$([System.Environment]::GetEnvironmentVariable('NOPE').Length)", "MSB4184"),
        ("$(A.Substring(99))", "MSB4184"),
        ("$([System.DateTime]::Now)", "Unsupported"),
    ],
)
def test_a_call_that_fails_has_msbuilds_code(expression: str, code: str, call: Call) -> None:
    assert call(expression) == code


def test_calls_nest_to_a_limit(call: Call) -> None:
    def nested(depth: int) -> str:
        return "$(A.Replace('x', " * depth + "y" + "))" * depth

    assert call(nested(MAX_NESTING)) == "banana"
    assert call(nested(MAX_NESTING + 1)) == "Limit"


def test_a_chain_may_be_as_long_as_it_likes(call: Call) -> None:
    assert call("$(A" + ".Trim()" * 3000 + ")") == "banana"


class TestInThreeValues:
    @pytest.fixture
    def unsure(self) -> EvaluationScope:
        scope = EvaluationScope("/p", {}, {"known"})
        scope.values.update(known="abc", guess=guessed("5"))
        scope.file_values = {"msbuildthisfilefullpath": "/p/a.targets"}
        return scope

    @pytest.mark.parametrize(
        "expression",
        [
            "$(Nope.Length)",
            "$(Known.Replace('a', $(Nope)))",
            "$(Known.Replace('$(Nope)', 'x').Length)",
            "$([MSBuild]::VersionGreaterThan('$(Nope)', '1'))",
            "$([System.String]::IsNullOrEmpty('$(Nope)'))",
        ],
    )
    def test_something_unknown_in_a_call_makes_it_unknown(self, expression: str, unsure: EvaluationScope) -> None:
        assert unsure.expand(expression) == UNKNOWN

    def test_a_guess_in_a_call_makes_it_a_guess(self, unsure: EvaluationScope) -> None:
        assert unsure.expand("[$([MSBuild]::Add($(Guess), 1))]") == f"[{GUESS}6]"
        assert unsure.expand("$(Known.Replace('a', '$(Guess)').Substring(1))") == f"{GUESS}bc"

    def test_a_function_that_is_not_there_is_unknown_and_noted(self, unsure: EvaluationScope) -> None:
        assert unsure.expand("x$([System.DateTime]::Now.ToString('d'))") == f"x{UNKNOWN}"
        assert unsure.expand("$(Known.CompareTo('x'))") == UNKNOWN
        assert unsure.unsupported == [
            ("$([System.DateTime]::Now.ToString('d'))", "/p/a.targets"),
            ("$(Known.CompareTo('x'))", "/p/a.targets"),
        ]


def test_names_ignore_case() -> None:
    assert find_member("", "text", "TOLOWER") is find_member("", "text", "ToLower")
    assert find_member("msbuild", None, "add") is find_member("MSBuild", None, "ADD")


@pytest.mark.parametrize(
    ("type_name", "receiver", "method"),
    [
        ("System.Text.RegularExpressions.Regex", None, "IsMatch"),
        ("System.Guid", None, "NewGuid"),
        ("System.IO.File", None, "ReadAllText"),
        ("MSBuild", None, "StableStringHash"),
        ("", "text", "Normalize"),
        ("", ["a"], "Reverse"),
        ("", SystemVersion((1, 2)), "CompareTo"),
        ("", True, "CompareTo"),
    ],
)
def test_what_dotnet_has_and_this_evaluator_has_not_is_not_an_error(
    type_name: str, receiver: str | list[str] | SystemVersion | bool | None, method: str
) -> None:
    with pytest.raises(NotImplementedHere):
        find_member(type_name, receiver, method)


def test_what_dotnet_does_not_have_is_an_error() -> None:
    for type_name, receiver in (("MSBuild", None), ("", "text")):
        with pytest.raises(NoSuchFunction):
            find_member(type_name, receiver, "NoSuch")


def test_what_msbuild_forbids_is_an_error() -> None:
    for type_name, method, code in (
        ("System.Environment", "Exit", "MSB4185"),
        ("System.IO.File", "Delete", "MSB4185"),
        ("System.Diagnostics.Process", "Start", "MSB4212"),
    ):
        with pytest.raises(EvaluationProblem) as raised:
            find_member(type_name, None, method)
        assert raised.value.code == code
