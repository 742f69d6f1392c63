"""What all benchmarks share: medians, the clean environment of a run, and the pages that show the figures."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.workspaces import WORK

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGES = (HERE / "README.md", HERE.parent / "README.md")


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def clean_environment(**more: str) -> dict[str, str]:
    """Of its own home, and without PYTHON… variables: they may forbid the .pyc files that installed programs have."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UNO_DEVSERVER_"))}
    home = str(WORK / "home")
    return {**environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, **more}


def conditions(rounds: int) -> str:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{machine}, {time.strftime('%Y-%m-%d')}; medians of {rounds} interleaved runs of whole processes."


def save(name: str, rounds: int, rows: Sequence[Mapping[str, object]], report: str) -> None:
    """Keep all samples in `results/<name>.json` and put the report between its marks on the pages that have them."""
    RESULTS.mkdir(exist_ok=True)
    data = {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "rounds": rounds,
        "rows": rows,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    begin, end = f"<!-- {name} figures: written by make bench SAVE=--save -->", f"<!-- end of {name} figures -->"
    for page in PAGES:
        before, found, rest = page.read_text("utf-8").partition(begin)
        if found:
            page.write_text(f"{before}{begin}\n{report}{end}{rest.partition(end)[2]}", "utf-8")
