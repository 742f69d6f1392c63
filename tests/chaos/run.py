"""Break everything on purpose: `python tests/chaos/run.py [--seed N] [--minutes 30] [--worlds …] [--save] [--list]`.

In six worlds side by side, clients call tools through real proxies while servers are killed, stopped, flooded and
garbled, code is edited and builds broken, files spoiled, disks filled, and owners killed. What is promised is checked
all the time (invariants.py). The seed decides which fault comes when (plan.py); a run that fails says how to repeat it.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from chaos.driver import Driver
from chaos.plan import plan
from chaos.record import Run, failure, report, save
from chaos.worlds import WORLDS
from support.long_runs import interruptible, positive

MINUTES = 30.0
SEED = 9
TELL_SECONDS = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python tests/chaos/run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"decides which fault comes when ({SEED})")
    parser.add_argument("--minutes", type=positive, default=MINUTES, help=f"for which faults come ({MINUTES:g})")
    parser.add_argument("--worlds", nargs="+", choices=tuple(WORLDS), default=list(WORLDS), help="which of them (all)")
    parser.add_argument("--list", action="store_true", help="show the plan, and do nothing")
    parser.add_argument("--save", action="store_true", help="record it in benchmarks/results and docs/proof.md (no)")
    options = parser.parse_args()
    if options.list:
        print(f"seed {options.seed}, {options.minutes:g} minutes")
        for world in options.worlds:
            show(world, options.seed, 60 * options.minutes)
        return 0
    with interruptible(f"seed {options.seed}"):
        run = chaos(options.seed, 60 * options.minutes, options.worlds)
    print(report(run))
    if run.broken:
        print(failure(run))
        return 1
    if options.save:
        save(run)
    return 0


def chaos(seed: int, seconds: float, worlds: list[str], *, may_mount: bool = True) -> Run:
    """All these worlds, side by side, until their plans are over or something is broken."""
    began = time.monotonic()
    stop = threading.Event()
    with ExitStack() as stack:
        drivers = []
        for name in worlds:
            world = stack.enter_context(WORLDS[name](name, seed, may_mount=may_mount))
            drivers.append(Driver(world, plan(seed, seconds, name), stop))
        threads = [threading.Thread(target=driver.run, name=driver.world.name) for driver in drivers]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(TELL_SECONDS)
                    _tell(time.monotonic() - began, drivers)
        finally:  # also when interrupted: the worlds are removed when no process uses them any more
            stop.set()
            for thread in threads:
                thread.join()
        return Run(seed, seconds, time.monotonic() - began, drivers)


def _tell(seconds: float, drivers: list[Driver]) -> None:
    """A sign of life: half an hour is long."""
    faults = sum(driver.injected.total() for driver in drivers)
    print(f"{seconds / 60:5.1f} min: {faults:,} faults", file=sys.stderr, flush=True)


def show(world: str, seed: int, seconds: float) -> None:
    for number, faults in enumerate(plan(seed, seconds, world), 1):
        print(f"{world}, round {number}")
        for fault in faults:
            print(f"  +{fault.after:.2f} s  {fault}")


if __name__ == "__main__":
    sys.exit(main())
