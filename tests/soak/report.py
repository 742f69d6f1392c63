"""The figures of a soak, judged: a table for people, and all samples for the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import figures

from soak.samples import MEMORY, OF_FOLDER, OF_PROCESS, Series
from soak.tally import Tally
from soak.trend import MIB, TOLERATED_BYTES, WARM_UP_SECONDS, Trend, count_grows, memory_grows, trend

KIB = 1024
WHAT_HAPPENS = (
    *("requests", "calls", "edits", "broken builds", "kills", "sessions", "streams dropped", "pages"),
    *("cuts", "expired tokens"),
)
LEAST_MINUTES = WARM_UP_SECONDS / 60 + 10  # in less, a leak of the tolerated size is smaller than a breath


@dataclass(frozen=True)
class Row:
    """One process or folder."""

    series: Series
    trends: dict[str, Trend]
    grows: tuple[str, ...]  # of what it has more and more


def judge(series: Sequence[Series]) -> list[Row]:
    rows = []
    for each in series:
        found = {what: trend(each.times, values) for what, values in each.values.items()}
        trends = {what: seen for what, seen in found.items() if seen is not None}
        grows = [what for what, seen in trends.items() if (memory_grows if what in MEMORY else count_grows)(seen)]
        rows.append(Row(each, trends, tuple(grows)))
    return rows


def text(rows: Sequence[Row], tally: Tally, minutes: float, seed: int) -> str:
    return "\n".join(
        [*_processes(rows, minutes), "", *_folders(rows, minutes), "", _summary(rows, tally, minutes, seed), ""]
    )


def save(rows: Sequence[Row], tally: Tally, minutes: float, seed: int) -> None:
    run = {"what": "the run", "minutes": minutes, "seed": seed}
    record: list[dict[str, object]] = [{**run, "counts": dict(tally.counts), "wrong": tally.problems}]
    for row in rows:
        trends = {
            what: {"afterWarmUp": seen.first, "atTheEnd": seen.last, "perHour": round(seen.per_hour, 2)}
            for what, seen in row.trends.items()
        }
        series: dict[str, Sequence[float]] = {"seconds": row.series.times, **row.series.values}
        samples = {what: " ".join(map(str, values)) for what, values in series.items()}  # a line, and not one for each
        record.append({"what": row.series.name, "grows": row.grows, "trends": trends, "samples": samples})
    told = f"{figures.machine_and_commit()}.\n\n{text(rows, tally, minutes, seed)}"
    figures.save("soak", 1, record, told)


def _processes(rows: Sequence[Row], minutes: float) -> list[str]:
    lines = [
        "| process | resident memory | a trend of | open files | threads | children | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        if all(what in row.trends for what in OF_PROCESS):
            memory = row.trends["rss"]
            cells = [
                row.series.name,
                f"{memory.first / MIB:.1f} → {memory.last / MIB:.1f} MiB",
                f"{memory.per_hour / MIB:+.2f} MiB/h",
                *(_change(row.trends[what]) for what in ("fds", "threads", "children")),
                _verdict(row, "memory", minutes),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _folders(rows: Sequence[Row], minutes: float) -> list[str]:
    lines = ["| folder | files | KiB | |", "|---|---:|---:|---|"]
    for row in rows:
        if all(what in row.trends for what in OF_FOLDER):
            size = row.trends["bytes"]
            cells = [
                row.series.name,
                _change(row.trends["files"]),
                f"{size.first / KIB:.0f} → {size.last / KIB:.0f}",
                _verdict(row, "size", minutes),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _summary(rows: Sequence[Row], tally: Tally, minutes: float, seed: int) -> str:
    counts = tally.counts
    happened = ", ".join(f"{counts[what]:,} {what}" for what in WHAT_HAPPENS)
    growing = sum(bool(row.grows) for row in rows)
    return (
        f"{minutes:g} minutes, seed {seed}: {happened}; {counts['wrong']} wrong answers, {growing} of {len(rows)} grow "
        f"(medians of the first and the last third after the warm-up; tolerated: {TOLERATED_BYTES // MIB} MiB an hour)."
    )


def _change(seen: Trend) -> str:
    return f"{seen.first:g} → {seen.last:g}"


def _verdict(row: Row, what: str, minutes: float) -> str:
    if row.grows:
        return f"GROWS: {', '.join(row.grows)}"
    return "pass" if minutes >= LEAST_MINUTES else f"too short to judge {what}"
