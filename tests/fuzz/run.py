"""Fuzz every parser: `python tests/fuzz/run.py [--inputs N] [--seconds N] [--target NAME …] [--seed N] [--save]`.

Each target runs in a process of its own, two at a time, until it has tried its share of the inputs or its time is
over; what is missing then is tried by the faster half of them. What counts is the number that libFuzzer says it has
executed. A finding is told with its input and the command that repeats it, and makes the exit code 1. `--list` tells
what is promised of which parser; `--repeat FILE` tries one input.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
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
from fuzz.table import TARGETS, named
from fuzz.target import Target, attempt
from uno_devserver.system.values import Value

ROOT = Path(__file__).parents[2]
WORK = ROOT / "benchmarks" / "work" / "fuzz"  # corpora and findings
CHILD = Path(__file__).with_name("child.py")
AT_A_TIME = 2
NICENESS = 10  # a long run is nobody's only work
INPUTS = 1_500_000
SECONDS = 60  # for a target and round
MAX_ROUNDS = 8  # of handing on what slow targets have left; more will not help
# By the clock, for what never comes back: far above what an input may cost (see target.MAX_SECONDS), since on a busy
# machine two seconds of the processor may be a minute.
HANG_SECONDS = 300
MEMORY_MB = 1024
GRACE_SECONDS = 120  # for imports and the end, on a busy machine

_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_MEMORY = re.compile(r"stat::peak_rss_mb:\s*(\d+)")
_COVERED = re.compile(r"cov: (\d+) ft: (\d+)")


class Outcome(Value):
    """Of one target, in all rounds so far."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    edges: int = 0
    features: int = 0
    memory: int = 0  # MB, at most
    failure: str = ""  # why a process ended that should not have


def main() -> int:
    options = _options()
    targets = [named(name) for name in options.target] if options.target else list(TARGETS)
    if options.list:
        for target in targets:
            print(f"{target.name}: {target.promise}")
        return 0
    if options.repeat:
        attempt(targets[0], Path(options.repeat).read_bytes())
        print("The promise holds for this input.")
        return 0
    begin = time.monotonic()
    seed = options.seed or random.randrange(1, 2**31)
    print(f"{len(targets)} targets, {options.inputs:,} inputs, seed {seed}")
    for target in targets:
        _prepare(target)
    with tempfile.TemporaryDirectory(prefix="uno-fuzz-", dir=scratch.base()) as folder:
        os.environ[scratch.VARIABLE] = folder  # for the children, which leave all their files
        outcomes = _fuzz(targets, options.inputs, options.seconds, seed)
    crashes = {target.name: _findings(target) for target in targets}
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
    return 1 if found or failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=INPUTS, help="in all")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="per target and round")
    parser.add_argument("--target", action="append", choices=[target.name for target in TARGETS], metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="record it in benchmarks/results and docs/proof.md")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--repeat", metavar="FILE", help="try this input of the one --target")
    return parser.parse_args()


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


def _fuzz(targets: Sequence[Target], inputs: int, seconds: int, seed: int) -> dict[str, Outcome]:
    outcomes = {target.name: Outcome(target.name) for target in targets}
    able = list(targets)
    for round_number in range(MAX_ROUNDS):
        left = inputs - sum(outcome.inputs for outcome in outcomes.values())
        if left <= 0 or not able:
            break
        share = -(-left // len(able))
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            results = pool.map(lambda target: _run(target, share, seconds, seed + round_number), able)  # noqa: B023
        done = dict(zip((target.name for target in able), results, strict=True))
        for name, result in done.items():
            outcomes[name] = _sum(outcomes[name], result)
        able = _fastest([done[target.name] for target in able])
    return outcomes


def _fastest(results: Sequence[Outcome]) -> list[Target]:
    """The faster half of those that have not failed: they have tried the most in the same time, or took the least."""
    sound = sorted((one for one in results if not one.failure), key=lambda one: one.seconds / max(one.inputs, 1))
    return [named(one.target) for one in sound[: max(len(sound) // 2, 1)]]


def _sum(one: Outcome, other: Outcome) -> Outcome:
    return Outcome(
        one.target,
        one.inputs + other.inputs,
        one.seconds + other.seconds,
        max(one.edges, other.edges),
        max(one.features, other.features),
        max(one.memory, other.memory),
        one.failure or other.failure,
    )


def _run(target: Target, share: int, seconds: int, seed: int) -> Outcome:
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
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_environment(), start_new_session=True
        )
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
        try:
            code = child.wait(seconds + HANG_SECONDS + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            child.kill()
            child.wait()
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
