"""What all benchmarks share: medians, the clean environment of a run, and the pages that show the figures."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.workspaces import WORK

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
PAGES = (HERE / "README.md", DOCS / "performance.md", DOCS / "inspector.md", DOCS / "proof.md")


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def clean_environment(**more: str) -> dict[str, str]:
    """Of its own home, and without PYTHON… variables: they may forbid the .pyc files that installed programs have."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UNO_DEVSERVER_"))}
    home = str(WORK / "home")
    return {**environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, **more}


def machine() -> str:
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {system}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"


def _commit() -> str:
    """Of this checkout; whether anything in it was changed since is not told."""
    try:
        asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return asked.stdout.strip() or "unknown"


COMMIT = _commit()  # when the run begins: at the end of an hour another one may be checked out


def machine_and_commit() -> str:
    return f"{machine()}, commit {COMMIT}"


def conditions(rounds: int) -> str:
    return f"{machine()}; medians of {rounds} interleaved runs of whole processes."


def start_table(samples: Mapping[str, Sequence[float]], bars: Mapping[str, float], bare: str, rounds: int) -> list[str]:
    """The lines of a table of starts, each in milliseconds and in bare interpreter starts, judged by its bar."""
    unit = median(samples[bare])
    lines = [conditions(rounds), "", "| what | ms | bare starts | bar | |", "|---|---:|---:|---:|---|"]
    for name, values in samples.items():
        ratio, bar = median(values) / unit, bars.get(name)
        verdict = "" if bar is None else "pass" if ratio <= bar else "MISS"
        lines.append(f"| {name} | {median(values):.1f} | {ratio:.2f} | {f'≤ {bar:g}' if bar else ''} | {verdict} |")
    return lines


def start_rows(samples: Mapping[str, Sequence[float]], bars: Mapping[str, float], bare: str) -> list[dict[str, object]]:
    """The same with all samples, to be kept."""
    unit = median(samples[bare])
    return [
        {
            "what": name,
            "medianMilliseconds": round(median(values), 2),
            "ratioToBare": round(median(values) / unit, 3),
            "bar": bars.get(name),
            "milliseconds": [round(value, 2) for value in values],
        }
        for name, values in samples.items()
    ]


def save(name: str, rounds: int, rows: Sequence[Mapping[str, object]], report: str) -> None:
    """Keep all samples in `results/<name>.json` and put the report between its marks on the pages that have them."""
    RESULTS.mkdir(exist_ok=True)
    data = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": COMMIT,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "rounds": rounds,
    }
    lines = ",\n".join(json.dumps(row) for row in rows)  # a row a line: hundreds of samples a row are for programs
    text = f'{json.dumps(data)[:-1]}, "rows": [\n{lines}\n]}}\n'
    (RESULTS / f"{name}.json").write_text(text, "utf-8")
    begin, end = f"<!-- {name} figures: written with --save -->", f"<!-- end of {name} figures -->"
    for page in PAGES:
        before, found, rest = page.read_text("utf-8").partition(begin)
        if found:
            page.write_text(f"{before}{begin}\n{report}{end}{rest.partition(end)[2]}", "utf-8")
