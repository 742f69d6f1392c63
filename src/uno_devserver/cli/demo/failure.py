"""A step that did not do what it says."""

from __future__ import annotations


class Failed(Exception):
    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"Expected {expected}, but {seen}.")


def expect(truth: bool, expected: str, seen: str) -> None:
    if not truth:
        raise Failed(expected, seen)
