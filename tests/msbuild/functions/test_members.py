"""Which function a name means."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.functions.calls import NoSuchFunction, NotImplementedHere, SystemVersion
from uno_devserver.msbuild.functions.expansion import find_member
from uno_devserver.msbuild.problems import EvaluationProblem


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
