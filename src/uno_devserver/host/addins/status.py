"""What became of the add-ins: the facts behind the health report and the IDE's status."""

from __future__ import annotations

from typing import Any

from ...system.values import Value


class AddInStatus(Value):
    name: str
    path: str
    version: str | None = None
    loaded: bool = False
    error: str | None = None  # why it is not loaded, or what of it does not work
    detail: str | None = None  # what the add-in says of itself
    failures: int = 0  # handlers of frames and IDE messages that failed so far

    @property
    def well(self) -> bool:
        return self.loaded and self.error is None


class AddInsStatus(Value):
    addins: tuple[AddInStatus, ...] = ()
    loading: bool = False  # more may come
    discovery_error: str | None = None
    running: tuple[dict[str, Any], ...] = ()  # the calls that run now, the longest first
    problems: tuple[str, ...] = ()  # what concerns all of an add-in's calls

    @property
    def well(self) -> bool:
        """Nothing went wrong so far; an add-in that is still to come does not count."""
        if self.discovery_error is not None or self.problems:
            return False
        return all(addin.error is None if self.loading else addin.well for addin in self.addins)
