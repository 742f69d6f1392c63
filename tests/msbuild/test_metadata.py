"""Built-in metadata and references to metadata."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.expressions import UNKNOWN, EvaluationScope
from uno_devserver.msbuild.metadata import ItemEntry, built_in, is_built_in, replace_references
from uno_devserver.msbuild.problems import EvaluationProblem


@pytest.mark.parametrize(
    ("identity", "name", "expected"),
    [
        ("d/x.y.dll", "Identity", "d/x.y.dll"),
        ("d/x.y.dll", "Filename", "x.y"),
        ("d/x.y.dll", "Extension", ".dll"),
        ("d/x.y.dll", "RelativeDir", "d/"),
        ("d/x.y.dll", "FULLPATH", "/p/d/x.y.dll"),
        ("d/x.y.dll", "Directory", "p/d/"),
        ("d/x.y.dll", "RootDir", "/"),
        ("a\\b.dll", "Filename", "b"),
        ("a\\b.dll", "RelativeDir", "a/"),
        ("/x", "Directory", ""),
        ("dir/", "Filename", ""),
        ("a%3bb", "FullPath", "/p/a%3bb"),
        ("x", "RecursiveDir", "s/t/"),
        ("x", "DefiningProjectFullPath", "/pkg/Acme.targets"),
        ("x", "DefiningProjectDirectory", "/pkg/"),
        ("x", "DefiningProjectName", "Acme"),
        ("x", "DefiningProjectExtension", ".targets"),
    ],
)
def test_every_item_has_metadata_by_itself(identity: str, name: str, expected: str) -> None:
    entry = ItemEntry(identity, "X", "/pkg/Acme.targets", certain=True, recursive="s/t/")

    assert is_built_in(name)
    assert built_in(entry, name, EvaluationScope("/p", {}, None)) == expected


def test_the_times_of_a_file_are_not_told() -> None:
    entry = ItemEntry("x", "X", "/pkg/a", certain=True)

    assert built_in(entry, "ModifiedTime", EvaluationScope("/p", {}, set())) == UNKNOWN
    with pytest.raises(EvaluationProblem) as raised:
        built_in(entry, "ModifiedTime", EvaluationScope("/p", {}, None))
    assert raised.value.code == "Unsupported"


def test_references_are_replaced_with_and_without_a_type_and_blanks() -> None:
    text = replace_references("%(A) %( B . C ) %(D %x %(e.f.g)", lambda type_name, name: f"<{type_name}:{name}>")

    assert text == "<None:A> <B:C> %(D %x %(e.f.g)"
