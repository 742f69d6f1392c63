"""Shared by programs that run for minutes: options that cannot be zero, and one line instead of a traceback when
they are interrupted."""

from __future__ import annotations

import argparse
import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


def positive(text: str) -> float:
    """A number for argparse, of minutes or seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def positive_count(text: str) -> int:
    """A count for argparse."""
    number = positive(text)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(number)


def need(parser: argparse.ArgumentParser, module: str) -> None:
    """End with a sentence where something of the extra `proof` is missing."""
    if find_spec(module) is None:
        parser.error(f"{module} is not installed here; run: {sys.executable} -m pip install --editable '.[proof]'")


class Interrupted(BaseException):
    """By Ctrl+C or SIGTERM. No SystemExit: the programs under test may raise that."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def interruptible(told: str = "") -> Iterator[None]:
    """Ctrl+C and SIGTERM end what is inside as an exception does, so that it clears up; then a line tells of it."""

    def end(number: int, _frame: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Interrupted as interrupted:
        print(f"Interrupted{told and f'; {told}'}", file=sys.stderr, flush=True)
        sys.exit(128 + interrupted.number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
