"""421 recorded evaluations of the real MSBuild: the same items, properties and error codes."""

from __future__ import annotations

import base64
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.tables import every
from uno_devserver.msbuild.evaluation import Evaluation, Evaluator
from uno_devserver.msbuild.problems import EvaluationProblem

ITEM = "UnoRemoteControlAddIns"

# Recorded outcomes that hang on a property which nothing defines: in three values the item there is uncertain.
UNDECIDED = {
    "conditions/and-short-circuit",
    "conditions/and-three",
    "conditions/eq-undefined",
    "conditions/eq-undefined-true",
    "conditions/eq-undefined-unquoted",
    "conditions/exists-undefined",
    "conditions/function-undefined-property-method",
    "placement/choose-otherwise",
    "realistic/configuration-undefined",
    "realistic/flavor-new",
    "realistic/tfm-undefined",
}
# The same, where the path itself is unknown: the item is left out, and noted.
UNKNOWN_PATH = {"items/property-in-target"}
# Errors that MSBuild raises only because such a property is empty, or because an SDK is not there.
FORGIVEN = {
    "conditions/bool-property-undefined",
    "conditions/gt-undefined",
    "imports/empty-property",
    "imports/import-sdk-missing",
    "properties/version-function-empty",
}


@cache
def recorded() -> dict[str, dict[str, Any]]:
    path = Path(__file__).parent.parent / "golden" / "msbuild" / "cases.json"
    return {case["id"]: case for case in json.loads(path.read_text("utf-8"))}


EVALUATED = [name for name, case in recorded().items() if not case["error"]]
REFUSED = [name for name, case in recorded().items() if case["error"]]


class Replay:
    """A recorded case on disk again, with its placeholders filled in."""

    def __init__(self, case: dict[str, Any], root: Path) -> None:
        self.case = case
        package = root / case.get("package_dir", "pkg")
        self.project = root / "proj" / "probe.proj"
        for folder, files in ((package, case["files"]), (self.project.parent, case.get("project_files", {}))):
            for name, content in files.items():
                write(folder / name, base64.b64decode(content["base64"]) if isinstance(content, dict) else content)
        write(self.project, "<Project />")
        self.entry = package / case["entry"]
        places = {"DIR": self.entry.parent, "PKG": package, "PROJ": self.project.parent, "ROOT": root}
        self._places = {f"{{{name}}}": str(path) for name, path in places.items()}
        self._places |= {f"{{{name}-}}": str(path)[1:] for name, path in places.items()}

    def placed(self, text: str) -> str:
        for placeholder, path in self._places.items():
            text = text.replace(placeholder, path)
        return text

    def evaluate(self, *, undefined_is_unknown: bool) -> Evaluation:
        evaluator = Evaluator(
            str(self.project),
            global_properties=self.case["properties"],
            environment=self.case.get("environment", {}),
            undefined_is_unknown=undefined_is_unknown,
        )
        return evaluator.evaluate([str(self.entry)])

    def expected_items(self) -> list[tuple[str, dict[str, str], str]]:
        return [
            (
                self.placed(item["identity"]),
                {name: self.placed(value) for name, value in item["metadata"].items()},
                self.placed(item["full_path"]),
            )
            for item in self.case["items"]
        ]

    def expected_properties(self) -> dict[str, str]:
        return {name: self.placed(value) for name, value in self.case["properties_after"].items()}


def found_items(evaluation: Evaluation) -> list[tuple[str, dict[str, str], str]]:
    return [(item.identity, item.metadata, item.full_path) for item in evaluation.items(ITEM)]


def test_what_msbuild_evaluates_has_the_same_items_and_properties(tmp_path: Path) -> None:
    def check(name: str) -> None:
        replay = Replay(recorded()[name], tmp_path / name)

        evaluation = replay.evaluate(undefined_is_unknown=False)

        assert found_items(evaluation) == replay.expected_items()
        assert all(item.certain for item in evaluation.items(ITEM))
        assert [os.path.isfile(item.full_path) for item in evaluation.items(ITEM)] == [
            item["exists"] for item in replay.case["items"]
        ]
        expected = replay.expected_properties()
        assert {name: evaluation.property(name) for name in expected} == expected

    every(EVALUATED, check)


def test_what_msbuild_refuses_has_the_same_error_code(tmp_path: Path) -> None:
    def check(name: str) -> None:
        replay = Replay(recorded()[name], tmp_path / name)

        with pytest.raises(EvaluationProblem) as raised:
            replay.evaluate(undefined_is_unknown=False)

        assert raised.value.code == replay.case["error"]
        assert raised.value.entry == 0
        # MSBuild blames the importing file for one that is not XML; here it is the file itself.
        blamed = replay.case["error_file"] if raised.value.code != "MSB4024" else "{DIR}/Acme.targets"
        assert raised.value.path == replay.placed(blamed)

    every(REFUSED, check)


def test_three_values_differ_from_msbuild_only_where_nothing_defines_a_property(tmp_path: Path) -> None:
    def check(name: str) -> None:
        replay = Replay(recorded()[name], tmp_path / name)

        evaluation = replay.evaluate(undefined_is_unknown=True)

        found = evaluation.items(ITEM)
        if name in UNDECIDED:
            expected = [identity for identity, _, _ in replay.expected_items()]
            assert set(expected) <= {item.identity for item in found}
            assert {item.identity for item in found if item.certain} <= set(expected)
            assert any(not item.certain for item in found)
            assert evaluation.notes_about(ITEM)
        elif name in UNKNOWN_PATH:
            assert found == []
            assert evaluation.notes_about(ITEM)
        else:
            assert found_items(evaluation) == replay.expected_items()
            assert all(item.certain for item in found)

    every(EVALUATED, check)


def test_three_values_forgive_only_errors_that_an_unknown_value_may_not_cause(tmp_path: Path) -> None:
    def check(name: str) -> None:
        replay = Replay(recorded()[name], tmp_path / name)

        if name in FORGIVEN:
            evaluation = replay.evaluate(undefined_is_unknown=True)
            assert evaluation.notes or evaluation.property("A") is None
        else:
            with pytest.raises(EvaluationProblem) as raised:
                replay.evaluate(undefined_is_unknown=True)
            assert raised.value.code == replay.case["error"]

    every(REFUSED, check)
