"""The tests that are not run on Windows, or not under Wine, each with the reason.

A name is that of a file, of a folder, or of a test in a file (`file::test`, which stands for all its parameters).
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]

LEFT_OUT: dict[str, str] = {}


def reason_of(node: str) -> str | None:
    """Why a test is left out, by its id in pytest."""
    name = node.partition("[")[0].removeprefix("tests/")
    file, *rest = name.split("::")
    folders = [str(parent) for parent in Path(file).parents]
    return next((LEFT_OUT[one] for one in ("::".join((file, *rest)), file, *folders) if one in LEFT_OUT), None)
