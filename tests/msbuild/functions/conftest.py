"""Calling functions as a file does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from uno_devserver.msbuild.expressions import EvaluationScope, unescape
from uno_devserver.msbuild.problems import EvaluationProblem

Call = Callable[[str], str]


@pytest.fixture
def scope(tmp_path: Path) -> EvaluationScope:
    """Plain MSBuild, with a few properties."""
    created = EvaluationScope(str(tmp_path), {"ACME": "from-env"}, None)
    created.values.update(a="banana", tfm="net10.0-android36.0", list="x.y.z", n="10", semi="a%3Bb", empty="")
    created.file_values = {
        "msbuildthisfiledirectory": f"{tmp_path}/",
        "msbuildthisfilefullpath": f"{tmp_path}/a.targets",
    }
    return created


@pytest.fixture
def call(scope: EvaluationScope) -> Call:
    """The final value of an expression, or the code of its problem."""

    def called(expression: str) -> str:
        try:
            return unescape(scope.expand(expression))
        except EvaluationProblem as problem:
            return problem.code

    return called
