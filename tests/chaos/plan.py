"""Which fault comes when, as a pure function of seed, duration and world: a run is repeated by its seed.

A plan is made of rounds. Behind each of them everything is mended, and the world has to recover.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from chaos.upstreams import over_http, over_stdio

ROUND_FAULTS = 20  # so many faults may meet before the world has to be whole again
GAP_SECONDS = (0.4, 2.4)  # between two faults of a world; the worlds run side by side
BURST_CHANCE, BURST_SECONDS = 0.2, (0.0, 0.15)  # some come at once, so that a fault hits what the one before began

ADDIN_ORDERS = ("flood of notifications", "flood of output", "huge answer", "delay", "hang", "death")
FILES = ("deleted", "cut in half", "random bytes", "empty", "another type", "a folder", "a link to itself")
PAST_AND_FUTURE = ("the past", "the future")


@dataclass(frozen=True)
class Kind:
    """A kind of fault: how often it comes, in which manners, and how long it lasts until it is mended."""

    weight: int
    manners: tuple[str, ...] = ("",)
    seconds: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Fault:
    after: float  # seconds since the fault before
    kind: str
    manner: str
    pick: float  # which of several: 0 ≤ pick < 1
    seconds: float  # until it is mended; of no interest where there is nothing to mend

    def __str__(self) -> str:
        manner = f" ({self.manner})" if self.manner else ""
        return f"{self.kind}{manner}" + (f", for {self.seconds:.2f} s" if self.seconds else "")


CLIENTS = {
    "kill the client": Kind(3, ("its ends close", "its ends stay open")),
    "kill the proxy": Kind(3),
    "stop the proxy": Kind(3, seconds=(0.5, 4.0)),
    "client reads slowly": Kind(3, seconds=(1.0, 4.0)),
    "client talks nonsense": Kind(4),
    "client takes a call back": Kind(5),
}
STATE = {
    "spoil the catalogue": Kind(3, FILES, (0.5, 3.0)),
    "spoil a state file": Kind(6, FILES, (0.5, 3.0)),
    "move the clock of the caches": Kind(2, PAST_AND_FUTURE),
    "fill the disk": Kind(3, seconds=(1.0, 4.0)),
}
PROCESSES = {
    "kill the server": Kind(10),
    "stop the server": Kind(5, ("goes on", "is killed"), (0.5, 5.0)),
}
EDITS = {
    "edit the source": Kind(8),
    "touch the source": Kind(2),
    "edit there and back": Kind(3),
    "break the build": Kind(4, seconds=(0.5, 5.0)),
    "break the start": Kind(3, seconds=(0.5, 5.0)),
    "spoil the config": Kind(3, FILES, (0.5, 3.0)),
}
SIBLINGS = {
    "edit a sibling": Kind(4),
    "break a sibling": Kind(2, seconds=(0.5, 5.0)),
}
PAGE = {"watch the page": Kind(5, ("reads", "stops reading", "calls"), (0.5, 6.0))}
WAY = {
    "delay the way": Kind(5, seconds=(0.5, 4.0)),
    "cut the way": Kind(6, seconds=(0.0, 2.0)),
    "garble the way": Kind(8, ("noise before", "half and a cut", "noise instead", "another status")),
}
STDIO = {
    **CLIENTS,
    **STATE,
    **PROCESSES,
    **EDITS,
    **SIBLINGS,
    "order the server": Kind(14, ("huge answer", *over_stdio.ORDERS)),
}
WORLDS: dict[str, dict[str, Kind]] = {
    "restart": STDIO,
    "swap": {**STDIO, **PAGE},
    "shared": {
        **PAGE,
        **CLIENTS,
        **STATE,
        **PROCESSES,
        **EDITS,
        "order the server": Kind(10, ADDIN_ORDERS),
        "kill the owner": Kind(6, ("and its Host", "alone")),
        "take the port": Kind(4, seconds=(0.5, 4.0)),
        "spoil the registry": Kind(6, FILES, (0.5, 3.0)),
    },
    "http": {
        **CLIENTS,
        **STATE,
        **PROCESSES,
        "order the server": Kind(12, ("huge answer", *over_http.ORDERS)),
        **WAY,
    },
    "several": {
        **STDIO,
        **PAGE,
        **WAY,
        "kill the standby": Kind(5, ("alone", "and the server")),
        "stop the standby": Kind(3, ("goes on", "is killed"), (0.5, 5.0)),
        "leave a server out": Kind(4, seconds=(0.5, 4.0)),
    },
    "signed-in": {
        **CLIENTS,
        **STATE,
        **PROCESSES,
        **PAGE,
        **WAY,
        "order the server": Kind(8, ("huge answer", *over_http.ORDERS)),
        "expire the tokens": Kind(12),
        "end the sign-in": Kind(2),
        "stop the sign-in server": Kind(8, ("is killed", "goes on", "refuses"), (0.5, 6.0)),
    },
}


def plan(seed: int, seconds: float, world: str) -> list[list[Fault]]:
    """The rounds of faults that fill these seconds."""
    chance = random.Random(f"{seed} {world}")
    kinds = WORLDS[world]
    names, weights = list(kinds), [kind.weight for kind in kinds.values()]
    rounds: list[list[Fault]] = []
    spent = 0.0
    while spent < seconds:
        faults: list[Fault] = []
        while len(faults) < ROUND_FAULTS and spent < seconds:
            name = chance.choices(names, weights)[0]
            kind = kinds[name]
            fault = Fault(
                after=chance.uniform(*(BURST_SECONDS if chance.random() < BURST_CHANCE else GAP_SECONDS)),
                kind=name,
                manner=chance.choice(kind.manners),
                pick=chance.random(),
                seconds=chance.uniform(*kind.seconds),
            )
            spent += fault.after
            faults.append(fault)
        rounds.append(faults)
    return rounds
