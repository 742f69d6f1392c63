"""How long does it take to find out that no source file has changed?

Builds a package of 10,000 files with 100 MB, and asks for its fingerprint: for the first time, with nothing changed,
and with one byte changed; watching, and reading everything. `sha256sum` over the same files, in the same rounds, is the
unit.
Exit code 1 means a wrong fingerprint; a missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.figures import median, save
from benchmarks.workspaces import WORK
from uno_devserver.hotreload.fingerprint import Fingerprint
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

PACKAGE = WORK / "hotreload"
FOLDERS, FILES_PER_FOLDER, FILE_BYTES = 200, 50, 10_000
QUESTIONS = 1000  # of microseconds each; their mean is one sample

SHA256SUM = "`sha256sum` of all files (the unit)"
NEWS = "nothing changed, watching: `news()`"
WATCHED = "nothing changed, watching: `digest()`"
READ = "nothing changed, all files read again"
FIRST = "first digest: list, watch, read"
EDITED = "one byte changed, watching"
MILLISECONDS = {NEWS: 2.0, WATCHED: 2.0}  # bars
RATIOS = {READ: 1.3}  # bars, of the unit

ROUNDS = 15
QUICK_ROUNDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hotreload", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"runs of each kind ({ROUNDS}; with --quick {QUICK_ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    rounds = max(1, options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS))
    build_package()
    samples = measure_hashing(rounds)
    if samples is None:
        return 1
    report = render(samples, rounds)
    print(report)
    if options.save:
        save("hotreload", rounds, as_data(samples), report)
    return 0


def build_package() -> None:
    """Once; later runs use it again."""
    chance = random.Random(7)
    for folder in range(FOLDERS):
        path = PACKAGE / "src" / f"area{folder % 20}" / f"module{folder}"
        path.mkdir(parents=True, exist_ok=True)
        for number in range(FILES_PER_FOLDER):
            content, file = chance.randbytes(FILE_BYTES), path / f"file{number}.py"
            if not file.exists() or file.stat().st_size != FILE_BYTES:
                file.write_bytes(content)


# --- measuring ---


def measure_hashing(rounds: int) -> dict[str, list[float]] | None:
    """Milliseconds of each kind; None as soon as a fingerprint is wrong."""
    files = sorted(PACKAGE.rglob("*.py"), key=lambda path: path.relative_to(PACKAGE).as_posix())
    expected = expected_digest(files)
    names = b"\0".join(os.fsencode(path) for path in files)
    reading, watching = fingerprint(watches=False), fingerprint()
    samples: dict[str, list[float]] = {name: [] for name in (SHA256SUM, NEWS, WATCHED, READ, FIRST, EDITED)}
    for prepared in (reading, watching):
        if prepared.digest() != expected:
            print("The first fingerprint is wrong.", file=sys.stderr)
            return None
    for round_number in range(rounds + 1):  # the first one warms the disk cache and does not count
        values = {
            SHA256SUM: timed(lambda: sha256sum(names)),
            READ: timed(reading.digest),
            NEWS: timed(watching.news, QUESTIONS),
            WATCHED: timed(watching.digest, QUESTIONS),
            FIRST: timed_first(),
            EDITED: timed_edit(watching, files[round_number], expected),
        }
        if watching.digest() != expected or reading.digest() != expected or not watching.watching:
            print("A fingerprint is wrong, or nothing is watched.", file=sys.stderr)
            return None
        if round_number:
            for name, value in values.items():
                samples[name].append(value)
    watching.close()
    return samples


def expected_digest(files: Sequence[Path]) -> str:
    whole = hashlib.sha256()
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).digest()
        whole.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + digest)
    return whole.hexdigest()


def fingerprint(watches: bool = True) -> Fingerprint:
    package = WatchedPackage(Role.SERVER, str(PACKAGE))
    return Fingerprint(lambda: find_sources(package), watches=watches)


def sha256sum(names: bytes) -> None:
    subprocess.run(["xargs", "-0", "sha256sum"], input=names, stdout=subprocess.DEVNULL, check=True)


def timed(action: Callable[[], object], times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        action()
    return (time.perf_counter() - start) * 1000 / times


def timed_first() -> float:
    one = fingerprint()
    milliseconds = timed(one.digest)
    one.close()
    return milliseconds


def timed_edit(watching: Fingerprint, path: Path, unchanged: str) -> float:
    """Until the changed content has its fingerprint; the old content comes back, which is not measured."""
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    milliseconds = timed(watching.digest)
    seen = watching.digest() != unchanged
    path.write_bytes(content)
    watching.digest()
    if not seen:
        raise AssertionError("the changed byte was not seen")
    return milliseconds


# --- reporting ---


def render(samples: Mapping[str, Sequence[float]], rounds: int) -> str:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    unit, files = median(samples[SHA256SUM]), FOLDERS * FILES_PER_FOLDER
    size = f"{files:,} files, {files * FILE_BYTES / 1e6:.0f} MB"
    lines = [
        f"{machine}, {time.strftime('%Y-%m-%d')}; medians of {rounds} interleaved runs; {size}.",
        "",
        "| what | ms | of `sha256sum` | bar | |",
        "|---|---:|---:|---:|---|",
    ]
    for name, values in samples.items():
        value = median(values)
        bar, passed = "", ""
        if name in MILLISECONDS:
            bar, passed = f"≤ {MILLISECONDS[name]:g} ms", "pass" if value <= MILLISECONDS[name] else "MISS"
        elif name in RATIOS:
            bar, passed = f"≤ {RATIOS[name]:g}", "pass" if value / unit <= RATIOS[name] else "MISS"
        digits = 1 if value >= 1 else 4
        ratio = f"{value / unit:.2f}" if value >= 1 else ""
        lines.append(f"| {name} | {value:.{digits}f} | {ratio} | {bar} | {passed} |")
    return "\n".join(lines) + "\n"


def as_data(samples: Mapping[str, Sequence[float]]) -> list[dict[str, object]]:
    unit = median(samples[SHA256SUM])
    return [
        {
            "what": name,
            "medianMilliseconds": round(median(values), 5),
            "ratioToSha256sum": round(median(values) / unit, 5),
            "bar": MILLISECONDS.get(name) or RATIOS.get(name),
            "milliseconds": [round(value, 5) for value in values],
        }
        for name, values in samples.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
