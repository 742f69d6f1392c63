"""The methods of text."""

from __future__ import annotations

import time

import pytest

from uno_devserver.msbuild.expressions import EvaluationScope

from .conftest import Call


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("A.Contains('nan')", "True"),
        ("A.Contains('NAN')", "False"),
        ("A.Contains('NAN', StringComparison.OrdinalIgnoreCase)", "True"),
        ("A.StartsWith('ba')", "True"),
        ("A.StartsWith('BA', System.StringComparison.OrdinalIgnoreCase)", "True"),
        ("A.EndsWith('na', StringComparison.Ordinal)", "True"),
        ("A.IndexOf('n')", "2"),
        ("A.IndexOf('x')", "-1"),
        ("A.LastIndexOf('n')", "4"),
        ("A.IndexOfAny('xn')", "2"),
        ("A.LastIndexOfAny('xn')", "4"),
        ("A.LastIndexOfAny('x')", "-1"),
        ("A.Substring(2)", "nana"),
        ("A.Substring(2, 3)", "nan"),
        ("A.Replace('an', '')", "ba"),
        ("A.Insert(0, 'x')", "xbanana"),
        ("A.Remove(2)", "ba"),
        ("A.Remove(1, 4)", "ba"),
        ("A.Trim('ba')", "nan"),
        ("A.TrimStart('b')", "anana"),
        ("A.TrimEnd('an')", "b"),
        ("A.Trim()", "banana"),
        ("A.PadLeft(8)", "  banana"),
        ("A.PadRight(8, '.')", "banana.."),
        ("A.ToUpperInvariant()", "BANANA"),
        ("A.ToString()", "banana"),
        ("A.Length", "6"),
        ("A.get_Chars(1)", "a"),
        ("List.Split('.')", "x;y;z"),
        ("List.Split('.y')", "x;;;z"),
        ("List.Split('.').Length", "3"),
        ("List.Split('.').GetValue(2)", "z"),
        ("A.Equals('banana')", "True"),
        ("A.Equals('BANANA', StringComparison.OrdinalIgnoreCase)", "True"),
        ("N.Equals('10.0')", "True"),
        ("A.Length.ToString()", "6"),
        ("A.Length.Equals(6)", "True"),
    ],
)
def test_a_method_of_text_is_dotnets(expression: str, expected: str, call: Call) -> None:
    assert call(f"$({expression})") == expected


@pytest.mark.parametrize(
    "expression",
    [
        "A.Substring(7)",
        "A.Substring(-1)",
        "A.Substring(1, 9)",
        "A.Substring('x')",
        "A.Substring()",
        "A.Replace('', 'x')",
        "A.Replace('x')",
        "A.Insert(9, 'x')",
        "A.Remove(9)",
        "A.PadLeft(-1)",
        "A.PadLeft(9, 'xy')",
        "A.Contains()",
        "A.Contains(null)",
        "A[6]",
        "List.Split('.')[3]",
        "A.NoSuchMethod()",
    ],
)
def test_a_method_that_dotnet_would_refuse_is_msb4184(expression: str, call: Call) -> None:
    assert call(f"$({expression})") == "MSB4184"


@pytest.mark.parametrize("expression", ["A.CompareTo('x')", "A.IndexOf('n', 3)", "A.Split(';', 2)", "A.Length.Foo()"])
def test_a_method_that_is_not_implemented_says_so(expression: str, call: Call) -> None:
    assert call(f"$({expression})") == "Unsupported"


@pytest.mark.parametrize("expression", ["A.PadLeft(99999999)", "A.Replace('a', '$(Long)')", "A.Insert(0, '$(Long)')"])
def test_a_result_cannot_fill_the_memory(expression: str, call: Call, scope: EvaluationScope) -> None:
    scope.values["long"] = "x" * 4_194_300

    assert call(f"$({expression})") == "Limit"


def test_a_long_text_is_split_by_as_many_characters_in_a_moment(call: Call, scope: EvaluationScope) -> None:
    scope.values["long"] = "ab" * 1_500_000
    start = time.process_time()

    parts = call("$(Long.Split($(Long)).Length)")

    # One pass per separator would take minutes.
    assert time.process_time() - start < 5
    assert parts == "3000001"
