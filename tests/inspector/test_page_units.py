"""The parts of the page that need no browser, tested in JavaScript with Node's own runner."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.npm import NODE

PAGE_TESTS = Path(__file__).parent / "page"
BOUND_SECONDS = 60  # they take two


def test_the_page_makes_forms_from_schemas_and_speaks_mcp() -> None:
    # given
    files = sorted(str(path) for path in PAGE_TESTS.glob("*.test.mjs"))
    assert files

    # when
    ran = subprocess.run(
        [str(NODE), "--test", "--test-reporter=spec", *files],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        check=False,
    )

    # then
    assert ran.returncode == 0, ran.stdout + ran.stderr
