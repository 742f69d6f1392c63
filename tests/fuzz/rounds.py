"""Who tries how much, and for how long, as pure functions: slow targets stop at their time, fast ones take the rest."""

from __future__ import annotations

from collections.abc import Sequence

from uno_devserver.system.values import Value

LEAST_SECONDS = 1  # what libFuzzer can be told; 0 is without end


class Outcome(Value):
    """Of one target, in one round or in all."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    edges: int = 0
    features: int = 0
    memory: int = 0  # MB, at most
    failure: str = ""  # why a process ended that should not have


def seconds_each(left: float, targets: int, at_a_time: int) -> int:
    """For each target of a round. A round takes half of what is left, for the faster half of them comes again; those
    that run all at once are the last, and take everything."""
    rows = -(-targets // at_a_time)  # one after the other
    return max(LEAST_SECONDS, int(left if rows == 1 else left / 2 / rows))


def fastest(results: Sequence[Outcome]) -> list[Outcome]:
    """The faster half of those that have not failed: they have tried the most in the same time, or took the least."""
    sound = sorted((one for one in results if not one.failure), key=lambda one: one.seconds / max(one.inputs, 1))
    return sound[: max(len(sound) // 2, 1)]


def added(one: Outcome, other: Outcome) -> Outcome:
    return Outcome(
        one.target,
        one.inputs + other.inputs,
        one.seconds + other.seconds,
        max(one.edges, other.edges),
        max(one.features, other.features),
        max(one.memory, other.memory),
        one.failure or other.failure,
    )
