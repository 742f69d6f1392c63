"""Fuzz every parser: `python tests/fuzz/run.py [--inputs N] [--seconds N] [--target NAME …] [--seed N] [--save]`.

Each target runs in a process of its own, two at a time, until it has tried its share of the inputs or its time is
over; what is missing then is tried by the faster half of them, round by round, until all inputs are tried or the
seconds are over. What counts is the number that libFuzzer says it has executed. A finding is told with its input and
the command that repeats it. Exit code 1: there is one, or a process failed, or there were too few inputs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from benchmarks import figures

from fuzz import scratch
from fuzz.children import Children
from fuzz.rounds import LEAST_SECONDS, Outcome, added, fastest, seconds_each
from fuzz.table import TARGETS, named
from fuzz.target import Target, attempt
from support.long_runs import interruptible, need, positive, positive_count

ROOT = Path(__file__).parents[2]
WORK = ROOT / "benchmarks" / "work" / "fuzz"  # corpora and findings
CHILD = Path(__file__).with_name("child.py")
AT_A_TIME = 2
INPUTS = 2_000_000
MOST_INPUTS = 2**31 - 1  # what libFuzzer can count
SECONDS = 3600.0  # three times what all of them take on two cores that are not busy
# By the clock, for what never comes back: far above what an input may cost (see target.MAX_SECONDS), since on a busy
# machine two seconds of the processor may be a minute.
HANG_SECONDS = 300
MEMORY_MB = 1024
GRACE_SECONDS = 120  # for imports and the end, on a busy machine

_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_MEMORY = re.compile(r"stat::peak_rss_mb:\s*(\d+)")
_COVERED = re.compile(r"cov: (\d+) ft: (\d+)")


def main() -> int:
    options = _options()
    targets = [named(name) for name in dict.fromkeys(options.target)] if options.target else list(TARGETS)
    if options.list:
        for target in targets:
            print(f"{target.name}: {target.promise}")
        return 0
    if options.repeat:
        attempt(targets[0], options.repeat.read_bytes())
        print("The promise holds for this input.")
        return 0
    seed = options.seed or random.randrange(1, 2**31)
    with interruptible(f"seed {seed}"):
        return _whole_run(targets, options, seed)


def _whole_run(targets: Sequence[Target], options: argparse.Namespace, seed: int) -> int:
    begin = time.monotonic()
    wanted = f"{options.inputs:,} inputs" if options.inputs else "as many inputs as they can"
    print(f"{len(targets)} targets, {wanted} within {options.seconds:g} s, seed {seed}", flush=True)
    for target in targets:
        _prepare(target)
    with tempfile.TemporaryDirectory(prefix="uno-fuzz-", dir=scratch.base()) as folder:
        os.environ[scratch.VARIABLE] = folder  # for the children, which leave all their files
        outcomes = _fuzz(targets, options.inputs or MOST_INPUTS, options.seconds, seed)
    crashes = {target.name: _findings(target) for target in targets}
    print("in all rounds:")
    for outcome in outcomes.values():
        print(_line(outcome, len(crashes[outcome.target])))
    total = sum(outcome.inputs for outcome in outcomes.values())
    found = sum(map(len, crashes.values()))
    print(f"{total:,} inputs in {time.monotonic() - begin:.0f} s, {found} findings, seed {seed}")
    for target in targets:
        for path in crashes[target.name]:
            _tell(target, path)
    failures = [outcome for outcome in outcomes.values() if outcome.failure]
    for outcome in failures:
        print(f"\n{outcome.target}: {outcome.failure}")
    if options.save:
        _save(list(outcomes.values()), crashes, seed, time.monotonic() - begin)
    missing = max(0, (options.inputs or 1) - total)
    if missing:
        print(f"Too few inputs: {missing:,} are missing, and the time is over; --seconds gives it more")
    return 1 if found or failures or missing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tests/fuzz/run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--inputs",
        type=positive_count,
        help=f"how many in all ({INPUTS:,}; with --seconds alone: as many as there is time for)",
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        help=f"for the whole run, shared by its targets, each of which has at least one ({SECONDS:g})",
    )
    parser.add_argument(
        "--target",
        action="append",
        choices=[target.name for target in TARGETS],
        metavar="NAME",
        help="this one, and others where it is given again (all of --list)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (another one each time)")
    parser.add_argument("--save", action="store_true", help="record it in benchmarks/results and docs/proof.md (no)")
    parser.add_argument("--list", action="store_true", help="tell what is promised of which parser, and do nothing")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="try this input of the one --target, and no other")
    options = parser.parse_args()
    if options.repeat and len(options.target or ()) != 1:
        parser.error("--repeat needs one --target, the parser that the input is for; --list names them")
    if options.repeat and not options.repeat.is_file():
        parser.error(f"no such file: {options.repeat}; findings are kept in {WORK.relative_to(ROOT)}/findings")
    if not (options.repeat or options.list):
        need(parser, "atheris")
    if options.seconds is None:
        options.seconds, options.inputs = SECONDS, options.inputs or INPUTS
    return options


def _prepare(target: Target) -> None:
    """Its seeds and words, and no findings of an earlier run; what earlier runs have reached stays in the corpus."""
    corpus, findings = _corpus(target), _findings_folder(target)
    shutil.rmtree(findings, ignore_errors=True)
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    words = "".join(f'"{_escaped(word)}"\n' for word in target.words if word)
    (WORK / f"{target.name}.words").write_text(words, "ascii")


def _escaped(word: str | bytes) -> str:
    data = word.encode("utf-8", "surrogatepass") if isinstance(word, str) else word
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}" for byte in data[:60])


def _corpus(target: Target) -> Path:
    return WORK / "corpus" / target.name


def _findings_folder(target: Target) -> Path:
    return WORK / "findings" / target.name


def _findings(target: Target) -> list[Path]:
    return sorted(path for path in _findings_folder(target).iterdir() if path.suffix != ".json")


def _fuzz(targets: Sequence[Target], inputs: int, seconds: float, seed: int) -> dict[str, Outcome]:
    outcomes = {target.name: Outcome(target.name) for target in targets}
    able, ends = list(targets), time.monotonic() + seconds
    for number in itertools.count(1):
        missing = inputs - sum(outcome.inputs for outcome in outcomes.values())
        left = ends - time.monotonic()
        if missing <= 0 or left < LEAST_SECONDS or not able:
            break
        print(f"round {number}:", flush=True)
        results = _round(able, -(-missing // len(able)), seconds_each(left, len(able), AT_A_TIME), seed + number - 1)
        for result in results:
            outcomes[result.target] = added(outcomes[result.target], result)
        able = [named(one.target) for one in fastest(results)]
    return outcomes


def _round(targets: Sequence[Target], share: int, seconds: int, seed: int) -> list[Outcome]:
    children = Children()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        try:
            return list(pool.map(lambda target: _run(target, share, seconds, seed, children), targets))
        finally:  # also when interrupted: the pool waits for its processes
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()


def _run(target: Target, share: int, seconds: int, seed: int, children: Children) -> Outcome:
    findings = _findings_folder(target)
    arguments = [
        f"-runs={share}",
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-max_len={target.max_bytes}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={findings}/",
        *([f"-dict={WORK / (target.name + '.words')}"] if target.words else []),  # an empty one is an error
        "-print_final_stats=1",
        "-close_fd_mask=1",  # what a parser prints is not the question
        str(_corpus(target)),
    ]
    command = [sys.executable, str(CHILD), target.check.__module__, target.name, str(findings), *arguments]
    begin = time.monotonic()
    log = WORK / f"{target.name}.log"
    with log.open("wb") as output:
        code = children.run(command, _environment(), output, seconds + HANG_SECONDS + GRACE_SECONDS)
    said = log.read_text("utf-8", "replace")
    covered = _COVERED.findall(said)
    executed, memory = _EXECUTED.search(said), _MEMORY.search(said)
    outcome = Outcome(
        target.name,
        int(executed[1]) if executed else 0,
        time.monotonic() - begin,
        int(covered[-1][0]) if covered else 0,
        int(covered[-1][1]) if covered else 0,
        int(memory[1]) if memory else 0,
        "" if code == 0 and executed else f"its process ended with {code}:\n" + "\n".join(said.splitlines()[-15:]),
    )
    print(_line(outcome, len(_findings(target))), flush=True)
    return outcome


def _environment() -> dict[str, str]:
    """The program beside these tests, wherever they are; and no file of the user's: a fuzzer may touch none."""
    home = WORK / "home"
    home.mkdir(parents=True, exist_ok=True)
    names = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    ours = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
    return {**os.environ, **dict.fromkeys(names, str(home)), "PYTHONPATH": ours}


def _line(outcome: Outcome, found: int) -> str:
    return (
        f"{outcome.target:20} {outcome.inputs:>9,} inputs {outcome.seconds:6.1f} s {outcome.edges:>6} edges "
        f"{outcome.features:>6} features {outcome.memory:>4} MB {found:>3} findings"
    )


def _tell(target: Target, path: Path) -> None:
    data = path.read_bytes()
    about = path.with_suffix(".json")
    known = json.loads(about.read_text("utf-8")) if about.exists() else {"place": path.name.partition("-")[0]}
    print(f"\n{target.name}: {known['place']}\n  {known.get('error', '')}\n  {data!r:.2000}")
    print(f"  {sys.executable} tests/fuzz/run.py --target {target.name} --repeat {path.relative_to(ROOT)}")


def _save(outcomes: Sequence[Outcome], crashes: dict[str, list[Path]], seed: int, seconds: float) -> None:
    rows = [
        {
            "target": outcome.target,
            "promise": named(outcome.target).promise,
            "inputs": outcome.inputs,
            "seconds": round(outcome.seconds, 1),
            "edges": outcome.edges,
            "features": outcome.features,
            "peakMegabytes": outcome.memory,
            "findings": len(crashes[outcome.target]),
            "seed": seed,
        }
        for outcome in outcomes
    ]
    total = sum(outcome.inputs for outcome in outcomes)
    found = sum(map(len, crashes.values()))
    report = [
        f"{figures.machine_and_commit()}, seed {seed}.",
        f"{total:,} inputs to {len(outcomes)} targets in {seconds / 60:.0f} minutes, {found} findings.",
        "",
        "| target | what holds for every input | inputs | edges | features | findings |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {row['target']} | {row['promise']} | {row['inputs']:,} | {row['edges']} | {row['features']} "
            f"| {row['findings']} |"
            for row in rows
        ),
    ]
    figures.save("fuzz", 1, rows, "\n".join(report) + "\n")


if __name__ == "__main__":
    sys.exit(main())
