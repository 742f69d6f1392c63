"""The report of a chaos run: figures if it passed, all details if it failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks import figures

from chaos.driver import Driver
from chaos.invariants import INVARIANTS, Broken
from chaos.plan import WORLDS

SHOWN_LOG_LINES = 25


class Run:
    """The figures are taken at once: the worlds are gone afterwards."""

    def __init__(self, seed: int, planned: float, seconds: float, drivers: Sequence[Driver]) -> None:
        self.seed = seed
        self.planned = planned
        self.seconds = seconds
        self.worlds = [driver.world.name for driver in drivers]
        self.faults: dict[str, Counter[str]] = {driver.world.name: driver.injected for driver in drivers}
        self.broken: list[Broken] = [each for driver in drivers for each in driver.broken]
        self.calls = sum(driver.world.tally.calls for driver in drivers)
        self.answers: Counter[str] = sum((driver.world.tally.answers for driver in drivers), Counter())
        self.ran = sum(len(driver.world.ledger()) for driver in drivers)
        self.clients = sum(driver.world.started for driver in drivers)
        self.recoveries = [taken for driver in drivers for taken in driver.recoveries]
        self.connections = sum(sum(driver.world.tally.generations.values()) for driver in drivers)
        self.longest_silence = max(driver.world.tally.longest_silence for driver in drivers)
        self.disk = ", ".join(sorted({driver.world.disk.how for driver in drivers}))
        self.scenes = [_scene(driver) for driver in drivers if driver.broken]

    @property
    def injected(self) -> int:
        return sum(sum(kinds.values()) for kinds in self.faults.values())


def report(run: Run) -> str:
    answers = ", ".join(f"{count:,} {what}" for what, count in run.answers.most_common())
    unanswered = run.calls - run.answers.total()
    head = (
        f"{figures.machine_and_commit()}. Seed {run.seed}, {run.seconds / 60:.1f} minutes, "
        f"{len(run.worlds)} worlds ({', '.join(run.worlds)}), "
        f"{run.clients} clients: **{run.injected:,} faults, {len(run.broken)} broken invariants**."
    )
    counts_told = (
        f"{run.calls:,} calls were made: {answers}; {unanswered:,} had no answer, since their client or proxy was "
        f"killed or left, or they were taken back. {run.ran:,} runs are in the ledgers. Proxies connected to "
        f"{run.connections:,} servers, one after another. After {len(run.recoveries)} rounds everything had to "
        f"work again, and did within {max(run.recoveries, default=0.0):.1f} s. "
        f"No request waited for its answer for longer than {run.longest_silence:.1f} s. A full disk was {run.disk}."
    )
    lines = [
        head,
        "",
        counts_told,
        "",
        "| fault | " + " | ".join(run.worlds) + " |",
        "|---|" + "---:|" * len(run.worlds),
    ]
    for kind in dict.fromkeys(kind for kinds in WORLDS.values() for kind in kinds):
        counts = [
            sum(n for name, n in run.faults[world].items() if name.partition(":")[0] == kind) for world in run.worlds
        ]
        lines.append(f"| {kind} | " + " | ".join(str(count or "") for count in counts) + " |")
    lines += ["", "| invariant | |", "|---|---|"]
    found = Counter(each.invariant for each in run.broken)
    lines += [f"| {name} | {f'BROKEN {found[name]} times' if found[name] else 'held'} |" for name in INVARIANTS]
    return "\n".join(lines) + "\n"


def failure(run: Run) -> str:
    """Everything that helps to find out, and how to see it again."""
    lines = ["", *(f"BROKEN: {each.invariant}: {each.text}" for each in run.broken), *run.scenes]
    worlds = " ".join(run.worlds)
    replay = f"python tests/chaos/run.py --seed {run.seed} --minutes {run.planned / 60:g} --worlds {worlds}"
    return "\n".join([*lines, "", f"seed {run.seed}; the same faults again: {replay}"])


def save(run: Run) -> None:
    row = {
        "seed": run.seed,
        "minutes": round(run.seconds / 60, 1),
        "faults": run.injected,
        "faultsByWorld": run.faults,
        "calls": run.calls,
        "answers": run.answers,
        "ran": run.ran,
        "clients": run.clients,
        "connections": run.connections,
        "recoverySeconds": [round(taken, 2) for taken in run.recoveries],
        "longestSilenceSeconds": round(run.longest_silence, 2),
        "fullDisk": run.disk,
        "invariants": dict.fromkeys(INVARIANTS, "held"),
    }
    figures.save("chaos", 1, [row], report(run))


def _scene(driver: Driver) -> str:
    world = driver.world
    lines = ["", f"=== {world.name}", "The last faults:", *driver.last]
    for client in world.clients:
        lines += ["", f"--- {client.name}: the last answers", *client.last]
        waiting = [f"{each.id} {each.method} {each.tool} {each.key}" for each in client.conversation.waiting.values()]
        lines += ["waiting: " + "; ".join(waiting), "health: " + str(client.health)[:3000], "stderr:", *client.stderr]
    for log in sorted(world.root.glob("proxy-*.log"), key=lambda path: path.stat().st_mtime)[-4:]:
        tail = log.read_text("utf-8", "replace").splitlines()[-SHOWN_LOG_LINES:]
        lines += ["", f"--- {log.name}", *tail]
    return "\n".join(lines)
