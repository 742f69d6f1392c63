"""The health report of a running Host, as shown by `uno_health`, `uno://health` and `GET /health`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..system.values import Value


def health_report(
    status: AddInSummary, *, version: str, ide_connected: bool, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of the .NET Host's report, then those of this Host. The status is `Degraded` if anything failed."""
    return {
        "status": "Healthy" if status.well else "Degraded",
        "hostVersion": version,
        "addIns": [_addin(addin) for addin in status.addins],
        "ideChannelConnected": ide_connected,
        "discoveryError": status.discovery_error,
        "loading": status.loading,
        "problems": list(status.problems),
        "running": list(status.running),
        **(more or {}),
    }


def _addin(status: AddInStatus) -> dict[str, Any]:
    return {
        "name": status.name,
        "version": status.version,
        "assemblyPath": status.path,
        "loaded": status.loaded,
        "error": status.error,
        "detail": status.detail,
        "failures": status.failures,
    }


class AddInStatus(Value):
    name: str
    path: str
    version: str | None = None
    loaded: bool = False
    error: str | None = None  # why the add-in is not loaded, or which part of it does not work
    detail: str | None = None  # the text that its health function returned
    failures: int = 0  # how often its handlers of frames and IDE messages failed

    @property
    def well(self) -> bool:
        return self.loaded and self.error is None


class AddInSummary(Value):
    addins: tuple[AddInStatus, ...] = ()
    loading: bool = False  # whether some add-ins are not loaded or started yet
    discovery_error: str | None = None
    running: tuple[dict[str, Any], ...] = ()  # the calls that are running, the longest first
    problems: tuple[str, ...] = ()  # sentences about problems that affect all calls of an add-in

    @property
    def well(self) -> bool:
        """Whether nothing has failed; add-ins that are still loading are not failures."""
        if self.discovery_error is not None or self.problems:
            return False
        return all(addin.error is None if self.loading else addin.well for addin in self.addins)
