"""How long does discovery take, compared with a bare interpreter start?

Builds restored workspaces of 200, 500 and 2,000 packages as NuGet writes them, runs the installed
`uno-devserver disco --addins-only` on each as whole processes, checks every answer, and prints medians.
The ratio to `python -c pass` on the same machine is what counts: it travels between machines, milliseconds do not.
Exit code 1 means a wrong answer; a missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import clean_environment, conditions, median, save
from benchmarks.workspaces import ALL_FILES, ASSETS_ONLY, SIZES, WORK, Case, build_all

# How many bare interpreter starts a run may cost.
BARS = {(ASSETS_ONLY, 500): 3.3, (ASSETS_ONLY, 2000): 5.0, (ALL_FILES, 500): 2.6, (ALL_FILES, 2000): 2.9}

ROUNDS = 15
QUICK_ROUNDS = 5
QUICK_SIZES = (200, 500)


def main() -> int:
    options = _parse_arguments()
    build_all()
    sizes = QUICK_SIZES if options.quick else SIZES
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    rows = measure(sizes, rounds)
    if rows is None:
        return 1
    report = render(rows, rounds)
    print(report)
    if options.save:
        save("discovery", rounds, [as_data(row) for row in rows], report)
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery", description=__doc__)
    parser.add_argument("--rounds", type=_positive, help=f"runs of each kind ({ROUNDS}; with --quick {QUICK_ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="the two smaller sizes, few rounds")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


# --- measuring ---


@dataclass
class Row:
    size: int
    variant: str
    milliseconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    ratio: float = 0.0

    @property
    def median(self) -> float:
        return median(self.milliseconds)


def measure(sizes: Sequence[int], rounds: int) -> list[Row] | None:
    """The bare start first, then every size and variant; None as soon as an answer is wrong."""
    program = str(Path(sys.executable).with_name("uno-devserver"))
    bare = Row(0, "bare interpreter")
    rows = [Row(size, variant) for variant in (ASSETS_ONLY, ALL_FILES) for size in sizes]
    for round_number in range(rounds + 1):  # the first one warms the disk cache and does not count
        for row in (bare, *rows):
            case = Case(row.size, row.variant) if row.size else None
            argv = [program, "disco", "--addins-only"] if case else [sys.executable, "-c", "pass"]
            run = Run.of(argv, case)
            if case and not answer_is_right(case, run):
                return None
            if round_number:
                row.milliseconds.append(run.milliseconds)
            else:
                row.peak_bytes = peak_bytes(argv, case)
    for row in (bare, *rows):
        row.ratio = row.median / bare.median
    return [bare, *rows]


@dataclass(frozen=True)
class Run:
    exit_code: int
    stdout: str
    stderr: str
    milliseconds: float

    @classmethod
    def of(cls, argv: list[str], case: Case | None) -> Run:
        os.chdir(case.workspace if case else WORK)
        outputs = [WORK / "stdout.txt", WORK / "stderr.txt"]
        write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_OPEN, 1 + i, str(path), write, 0o600) for i, path in enumerate(outputs)]
        environ = _environment(case)
        start = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, environ, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        milliseconds = (time.perf_counter() - start) * 1000
        stdout, stderr = (path.read_text("utf-8") for path in outputs)
        return cls(os.waitstatus_to_exitcode(status), stdout, stderr, milliseconds)


# The kernel counts the memory of the starting process into the peak of the started one, so a small one does it.
SPAWN = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
print(os.wait4(pid, 0)[2].ru_maxrss, file=sys.stderr)
"""


def peak_bytes(argv: list[str], case: Case | None) -> int:
    run = Run.of([sys.executable, "-IS", "-c", SPAWN, *argv], case)
    unit = 1 if sys.platform == "darwin" else 1024
    return int(run.stderr.split()[-1]) * unit


def _environment(case: Case | None) -> dict[str, str]:
    return clean_environment(**({"NUGET_PACKAGES": str(case.nuget)} if case else {}))


def answer_is_right(case: Case, run: Run) -> bool:
    expected = sorted(case.expected_file.read_text("utf-8").splitlines())
    found = sorted(path for path in run.stdout.rstrip("\n").split(";") if path)
    if run.exit_code == 0 and found == expected:
        return True
    print(f"Wrong answer for {case.size} packages, {case.variant}: exit code {run.exit_code}", file=sys.stderr)
    for word, paths in (("missing", set(expected) - set(found)), ("too much", set(found) - set(expected))):
        for path in sorted(paths):
            print(f"  {word}: {path}", file=sys.stderr)
    print(run.stderr, file=sys.stderr)
    return False


# --- reporting ---


def render(rows: Sequence[Row], rounds: int) -> str:
    lines = [
        conditions(rounds),
        "",
        "| packages | restore folder | ms | bare starts | bar | | peak MB |",
        "|---:|---|---:|---:|---:|---|---:|",
    ]
    for row in rows:
        bar = BARS.get((row.variant, row.size))
        verdict = "" if bar is None else "pass" if row.ratio <= bar else "MISS"
        lines.append(
            f"| {row.size or ''} | {row.variant} | {row.median:.1f} | {row.ratio:.2f} | "
            f"{f'≤ {bar:g}' if bar else ''} | {verdict} | {row.peak_bytes / 1e6:.0f} |"
        )
    return "\n".join(lines) + "\n"


def as_data(row: Row) -> dict[str, object]:
    return {
        "packages": row.size,
        "variant": row.variant,
        "medianMilliseconds": round(row.median, 2),
        "ratioToBare": round(row.ratio, 3),
        "bar": BARS.get((row.variant, row.size)),
        "peakBytes": row.peak_bytes,
        "milliseconds": [round(value, 2) for value in row.milliseconds],
    }


if __name__ == "__main__":
    sys.exit(main())
