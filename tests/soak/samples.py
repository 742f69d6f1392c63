"""Samples of the processes and folders of a run, every few seconds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# What is read of a process, and of a folder; `rss` and `uss` and `bytes` are judged as memory, the rest as counts.
OF_PROCESS = ("rss", "uss", "fds", "threads", "children")
OF_FOLDER = ("files", "bytes")
MEMORY = ("rss", "uss", "bytes")


@dataclass
class Series:
    """One process or folder, over the run."""

    name: str
    times: list[float] = field(default_factory=list)  # seconds since the run began
    values: dict[str, list[int]] = field(default_factory=dict)

    def add(self, at: float, seen: Mapping[str, int]) -> None:
        self.times.append(round(at, 1))
        for what, value in seen.items():
            self.values.setdefault(what, []).append(value)


class Sampler:
    """Looks at everything that it was given, until it is stopped."""

    def __init__(self, seconds: float, missing: Callable[[str], None]) -> None:
        self.series: list[Series] = []
        self._seconds = seconds
        self._missing = missing  # told of a process that has ended: all of them live as long as the run
        self._looks: list[Callable[[], Mapping[str, int]]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def process(self, name: str, pid: int) -> None:
        process = psutil.Process(pid)
        self._add(name, lambda: of_process(process))

    def folder(self, name: str, path: Path) -> None:
        self._add(name, lambda: of_folder(path))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _add(self, name: str, look: Callable[[], Mapping[str, int]]) -> None:
        self.series.append(Series(name))
        self._looks.append(look)

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._over.wait(self._seconds):
            for series, look in zip(self.series, self._looks, strict=True):
                try:
                    series.add(time.monotonic() - begun, look())
                except psutil.NoSuchProcess:
                    self._missing(f"{series.name} has ended")
                    return


def of_process(process: psutil.Process) -> Mapping[str, int]:
    memory = process.memory_full_info()
    return {
        "rss": memory.rss,
        "uss": memory.uss,
        "fds": process.num_fds(),
        "threads": process.num_threads(),
        "children": len(process.children()),
    }


def of_folder(path: Path) -> Mapping[str, int]:
    """Of everything below it; what comes and goes meanwhile may be counted or not."""
    files = size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
                files += 1
            except FileNotFoundError:
                pass
    return {"files": files, "bytes": size}
