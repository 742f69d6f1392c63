"""The wheel has all files that the program needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"


def test_the_wheel_holds_every_file_of_the_package_and_serves_the_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")

    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        content.extractall(tmp_path / "installed")

    files = {
        path.relative_to(SOURCES).as_posix()
        for path in (SOURCES / "uno_devserver").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == files
    code = "from uno_devserver.inspector.server import page, asset; print(page().status, asset('app.js').status)"
    served = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert served.stdout.strip() == "200 200", served.stderr
