"""The code knows no dates of files: content decides."""

from __future__ import annotations

import re
from pathlib import Path

import uno_devserver

SOURCES = sorted(Path(uno_devserver.__file__).parent.rglob("*.py"))


def test_no_module_looks_at_the_date_of_a_file() -> None:
    found = [str(path) for path in SOURCES if re.search(r"(?<!g)mtime", path.read_text("utf-8"))]

    assert len(SOURCES) > 100
    assert found == []
