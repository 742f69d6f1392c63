"""What messages say about values."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.problems import MAX_QUOTED, EvaluationProblem, quoted, shortened

from .builder import Package


def test_a_value_is_quoted_whole_unless_it_is_long() -> None:
    assert quoted("a'b") == '"a\'b"'
    assert quoted("x" * MAX_QUOTED) == f"'{'x' * MAX_QUOTED}'"
    assert quoted("x" * (MAX_QUOTED + 1)) == f"'{'x' * MAX_QUOTED}'..."
    assert shortened("x" * (MAX_QUOTED + 1)) == f"{'x' * MAX_QUOTED}..."
    assert len(quoted(["x"] * 1000)) == MAX_QUOTED + 3
    assert quoted(7) == "7"


@pytest.mark.parametrize(
    "content",
    [
        "<B>$(A.Substring(9999999))</B>",
        "<B>$(A.Substring($(A)))</B>",
        "<B>$(A.Substring($(A.Split('x'))))</B>",
        "<B>$(A.Insert(9999999, 'y'))</B>",
        "<B>$(A.Remove(9999999))</B>",
        "<B>$(A[$(A)])</B>",
        "<B Condition=\"'$(A)' &lt; 1\">1</B>",
        "<B Condition=\"'$(A)'\">1</B>",
        f"<B Condition=\"{'x' * 10_000}('')\">1</B>",
        f"<B {'x' * 10_000}=''>1</B>",
    ],
)
def test_a_huge_value_does_not_make_a_huge_message(content: str, package: Package) -> None:
    properties = f"<PropertyGroup><A>{'x' * 100_000}</A>{content}</PropertyGroup>"

    with pytest.raises(EvaluationProblem) as raised:
        package.evaluate(properties, plain=True)

    assert len(raised.value.message) < 1000
