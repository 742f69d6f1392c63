"""The table of all rows, the proxies side by side. A pure function of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures import conditions, median
from benchmarks.peers.experiments import ROWS, Row
from benchmarks.peers.installed import ALONE, OURS

NO, NOTHING = "no", "–"


class Measured(NamedTuple):
    """Everything of one run. Samples of a row that a proxy cannot do are not there, but the reason is."""

    rounds: int
    versions: Mapping[str, str]  # of each proxy, in the order of the columns
    bare: Sequence[float]  # milliseconds
    direct: Sequence[float]  # milliseconds of a call without a proxy
    samples: Mapping[tuple[str, str], Sequence[float]]  # by row and proxy
    reasons: Mapping[tuple[str, str], str]


def render(measured: Measured) -> str:
    names = list(measured.versions)
    versions = ", ".join(f"{name} {version}" for name, version in measured.versions.items() if name != ALONE)
    unit = median(measured.bare)
    lines = [
        conditions(measured.rounds),
        f"{versions}; no proxy: a server of the official SDK {measured.versions[ALONE]}, on pipes.",
        f"A bare interpreter start took {unit:.1f} ms: in brackets, how many of them. A call of the running server",
        f"took {median(measured.direct):.2f} ms without a proxy.",
        "",
        f"| | {' | '.join(f'**{name}**' if name == OURS else name for name in names)} |",
        f"|---|{'---:|' * len(names)}",
    ]
    lines += [f"| {row.title} | {' | '.join(_cell(measured, row, name, unit) for name in names)} |" for row in ROWS]
    return "\n".join(lines) + "\n"


def rows(measured: Measured) -> list[dict[str, object]]:
    """What is kept: every sample, and why there is none."""
    unit = median(measured.bare)
    kept: list[dict[str, object]] = [
        {"what": "bare interpreter", "unit": "ms", "samples": _rounded(measured.bare)},
        {"what": "a call without a proxy", "unit": "ms", "samples": _rounded(measured.direct)},
    ]
    for row in ROWS:
        peers: dict[str, object] = {}
        for name, version in measured.versions.items():
            samples = measured.samples.get((row.key, name))
            figures: dict[str, object] = {"version": version}
            if samples:
                figures["median"] = round(median(samples), 3)
                if row.unit == "ms":
                    figures["ratioToBare"] = round(median(samples) / unit, 3)
                figures["samples"] = _rounded(samples)
            if reason := measured.reasons.get((row.key, name)):
                figures["no"] = reason
            peers[name] = figures
        kept.append({"what": row.title, "key": row.key, "unit": row.unit, "peers": peers})
    return kept


def behind(measured: Measured) -> list[str]:
    """Where another proxy is ahead of ours, as sentences; to be empty."""
    found = []
    for row in ROWS:
        ours = measured.samples.get((row.key, OURS))
        for name in measured.versions:
            theirs = measured.samples.get((row.key, name))
            if name in (OURS, ALONE) or not theirs:
                continue
            mine, other = (median(ours) if ours else None), median(theirs)
            if mine is None or (mine < other if row.unit == "/s" else mine > other):
                told = "nothing" if mine is None else figure(mine, row.unit)
                found.append(f"{row.title}: {name} has {figure(other, row.unit)}, ours {told}")
    return found


def figure(value: float, unit: str) -> str:
    if unit == "/s":
        return f"{value:,.0f}/s"
    if unit == "MB":
        return f"{value:.0f} MB"
    return f"{value:.2f} ms" if abs(value) < 10 else f"{value:,.0f} ms"


def _cell(measured: Measured, row: Row, name: str, unit: float) -> str:
    samples = measured.samples.get((row.key, name))
    if not samples:
        return NO if (row.key, name) in measured.reasons else NOTHING
    value = median(samples)
    ratio = f" ({_ratio(value / unit)})" if row.unit == "ms" else ""
    failed_later = len(samples) < measured.rounds
    some = f", in {len(samples)} of {measured.rounds} rounds" if failed_later else ""
    told = f"{figure(value, row.unit)}{ratio}{some}"
    return f"**{told}**" if name == OURS and _is_best(measured, row) else told


def _is_best(measured: Measured, row: Row) -> bool:
    """Ours, of all columns that have a figure: also of the one without a proxy."""
    medians = {name: median(samples) for (key, name), samples in measured.samples.items() if key == row.key and samples}
    return medians[OURS] == (max if row.unit == "/s" else min)(medians.values())


def _ratio(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2g}"


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in values]
