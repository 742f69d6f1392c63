"""What the system allows: asked in processes that are allowed more, or less."""

from __future__ import annotations

import subprocess
import sys

import pytest

from uno_devserver.protocol.http.server import USUAL_OPEN_FILES, open_files

if sys.platform != "win32":
    import resource

ASK = "from uno_devserver.protocol.http.server import open_files; print(open_files())"


@pytest.mark.parametrize(
    ("allowed", "told"), [(256, 256), (USUAL_OPEN_FILES, USUAL_OPEN_FILES), (4096, USUAL_OPEN_FILES)]
)
def test_the_limit_of_open_files_is_told_up_to_what_is_usual(allowed: int, told: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))

    asked = subprocess.run([sys.executable, "-c", ASK], preexec_fn=limit, capture_output=True, text=True, timeout=20)

    assert asked.stdout.strip() == str(told), asked.stderr


def test_where_there_is_no_such_limit_what_is_usual_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)

    assert open_files() == USUAL_OPEN_FILES
