"""Begins the measurement in each Python process of a measured run: `coverage_run` puts this where Python starts.

Whatever environment a test gives to a process, and however that ends but by SIGKILL, its branches are counted.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import coverage


def begin(settings: str, source: str, data: str) -> None:
    """Count the branches below `source` from now on; each process writes a file of its own, beside `data`."""
    _begin_in_plain_threads()
    measuring = coverage.Coverage(
        config_file=settings, source=[source], data_file=data, data_suffix=True, auto_data=True, messages=False
    )
    setattr(measuring, "save", partial(_save_in_silence, measuring.save))  # noqa: B010  # mypy: a method
    measuring.start()


def _save_in_silence(save: Callable[[], None]) -> None:
    """What a process did is lost where it may not write any more, as another user or without room; tests try that."""
    with suppress(Exception):
        save()


def _begin_in_plain_threads() -> None:
    """Coverage hears of the threads of `threading` only, and we start some without it: its import takes time."""
    start = _thread.start_new_thread

    def start_traced(
        function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> int:
        def traced() -> None:
            sys.settrace(threading.gettrace())
            function(*args, **(kwargs or {}))

        return start(traced, ())

    _thread.start_new_thread = start_traced
