"""An hour of calls, edits and restarts: `python tests/soak/run.py [--minutes 60] [--seed N] [--save]`.

Nothing that lives as long as the run may grow: neither the memory, the open files, the threads and the children of the
proxies and of a Host that stays, nor what they leave on disk. Every answer is looked at. Exit code 1: something grew,
or an answer was wrong. `--save` keeps the figures with those of the benchmarks, and on docs/proof.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":  # with everything of this checkout, whichever one is installed
    sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.path.insert(0, str(Path(__file__).parents[1]))

from soak import report
from soak.samples import Sampler, Series
from soak.tally import Loops, Tally
from soak.worlds import LONG, WORLDS, World
from support.long_runs import interruptible, positive

MINUTES = 60.0
SAMPLE_SECONDS = 10.0
SAMPLES = 60  # at least, however short the run is
NICE = 5  # the machine may have other things to do


def main() -> int:
    options = _options()
    os.nice(NICE)
    seed = int(time.time()) if options.seed is None else options.seed
    tally = Tally()
    print(f"soak: {options.minutes:g} minutes, seed {seed}", flush=True)
    with interruptible(f"seed {seed}"):
        series = soak(60 * options.minutes, seed, tally)
    judged = report.judge(series)
    text = report.text(judged, tally, options.minutes, seed)
    print(text)
    for problem in tally.problems:
        print(f"WRONG {problem}")
    if options.save:
        report.save(judged, tally, options.minutes, seed)
    return 1 if tally.problems or any(row.grows for row in judged) else 0


def soak(seconds: float, seed: int, tally: Tally) -> list[Series]:
    """All worlds at once; the samples of everything that lived as long as they did."""
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        worlds: list[World] = []
        calls, changes = Loops(tally), Loops(tally)
        sampler = Sampler(min(SAMPLE_SECONDS, seconds / SAMPLES), tally.wrong)
        try:
            for number, kind in enumerate(WORLDS):
                worlds.append(kind(Path(folder) / str(number), tally, seed))
                worlds[-1].begin()
            for world in worlds:
                _watch(sampler, world)
                world.live(calls, changes)
            sampler.start()
            changes.over.wait(seconds)
        finally:
            changes.stop(LONG)
            calls.stop(LONG)
            sampler.stop()
            for world in worlds:
                _end(world, tally)
        return sampler.series


def _watch(sampler: Sampler, world: World) -> None:
    sampler.process(f"proxy: {world.name}", world.client.process.pid)
    host = world.host()
    if host is not None:
        sampler.process(f"Host: {world.name}", host)
    sampler.folder(f"state: {world.name}", world.machine.data)
    sampler.folder(f"temporary files: {world.name}", Path(world.machine.environment["TMPDIR"]))


def _end(world: World, tally: Tally) -> None:
    """The proxies end with their clients, with everything that they started, and have kept to the protocol."""
    try:
        world.proxies.__exit__(None, None, None)
    except AssertionError as error:
        tally.wrong(f"{world.name}: {error}")
    finally:
        world.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tests/soak/run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes",
        type=positive,
        default=MINUTES,
        help=f"for which it lives ({MINUTES:g}); under {report.LEAST_MINUTES:g} nothing can be said of memory",
    )
    parser.add_argument(
        "--seed", type=int, help="decides which edits break the build, and when what happens (by the clock)"
    )
    parser.add_argument("--save", action="store_true", help="record it in benchmarks/results and docs/proof.md (no)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
