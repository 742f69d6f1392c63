"""How do other MCP proxies compare, on this machine, in one run?

Each is put between the same lean client and the same servers. One round has every one of them do everything once, in
turn, beginning with another one each time; medians over the rounds are shown. A row that a proxy cannot do is told as
"no": it was tried, within a bound, in a first round that does not count otherwise, or there is no option for it at all;
the reason is kept with the figures. In the last column nothing stands between the client and a server of the official
SDK (or the server that the row names): what clients are used to.

Exit code 1: ours failed at something.
"""

from __future__ import annotations

import argparse
import ctypes
import signal
import subprocess
import sys
import time
from collections import defaultdict

import psutil

from benchmarks import plot
from benchmarks.figures import clean_environment, save
from benchmarks.peers.experiments import EXPERIMENTS, Arena, Experiment
from benchmarks.peers.installed import OURS, Peer, installed
from benchmarks.peers.report import Measured, behind, render, rows
from benchmarks.peers.servers import running_host
from benchmarks.peers.sessions import why

ROUNDS = 15
QUICK_ROUNDS = 2
PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=_positive, default=ROUNDS, help=f"of which medians are shown ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds, to try it (no)")
    parser.add_argument("--save", action="store_true", help="keep the samples, with figures in the documents (no)")
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else options.rounds
    if options.save and rounds < ROUNDS:
        parser.error(f"figures of {rounds} rounds say too little to be kept; --save needs --rounds {ROUNDS} or more")
    _adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as by Ctrl+C, and the Host with it
    try:
        measured = measure(installed(), rounds)
    except KeyboardInterrupt:
        print("Interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    finally:
        left = _end_what_is_left()
    print(render(measured))
    for sentence in behind(measured):
        print(f"NOT AHEAD: {sentence}")
    if left:
        print(f"These had to be ended after the run: {', '.join(left)}", file=sys.stderr)
    if options.save:
        save("peers", measured.rounds, rows(measured), render(measured))
        plot.main()
    return 1 if any(name == OURS for _, name in measured.reasons) else 0


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def measure(peers: list[Peer], rounds: int) -> Measured:
    bare: list[float] = []
    direct: list[float] = []
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    reasons: dict[tuple[str, str], str] = {}
    with running_host() as url:
        arena = Arena(url)
        try:
            for number in range(rounds + 1):  # the first one warms caches, ours too, and finds out who can do what
                unit = _bare_start()
                arena.begin_round(unit / 1000)
                if number:
                    bare.append(unit)
                    direct.append(arena.direct_call)
                for experiment in EXPERIMENTS:
                    for peer in _turned(peers, number):
                        if _excused(experiment, peer, reasons):
                            continue
                        try:
                            figures = experiment.run(peer, arena)
                        except (Exception, SystemExit) as error:  # whatever it is, the others are measured
                            reason = why(error) + arena.drop(peer, experiment.rows[0])
                            reasons.update({(row, peer.name): reason for row in experiment.rows})
                            print(f"{peer.name}, {experiment.rows[0]}: no: {reason}", file=sys.stderr)
                            continue
                        for row, value in figures.items() if number else ():
                            samples[row, peer.name].append(value)
                print(f"round {number} of {rounds}", file=sys.stderr)
        finally:
            arena.close()
    return Measured(rounds, {peer.name: peer.version for peer in peers}, bare, direct, samples, reasons)


def _bare_start() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
    return (time.perf_counter() - begun) * 1000


def _turned(peers: list[Peer], number: int) -> list[Peer]:
    """So that none always comes after the same one."""
    first = number % len(peers)
    return peers[first:] + peers[:first]


def _excused(experiment: Experiment, peer: Peer, reasons: dict[tuple[str, str], str]) -> bool:
    """Who could not do it once is not asked again: some take 15 seconds to show it."""
    if (experiment.needs, peer.name) in reasons:
        reasons[experiment.rows[0], peer.name] = reasons[experiment.needs, peer.name]
    return (experiment.rows[0], peer.name) in reasons


# Nothing stays behind.


def _adopt_orphans() -> None:
    """What a proxy leaves behind becomes a child of this process, and is found at the end (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_what_is_left() -> list[str]:
    left = [child for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    names = [" ".join(child.cmdline())[:100] for child in left]
    for child in left:
        child.kill()
    psutil.wait_procs(left, timeout=5)
    return names


if __name__ == "__main__":
    sys.exit(main())
