"""The health report of a running Host: `uno_health`, `uno://health` and `GET /health` show the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .addins.status import AddInsStatus, AddInStatus


def report(
    status: AddInsStatus, *, version: str, ide_connected: bool, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of the .NET Host's report, then what only ours has. `Degraded` as soon as anything failed."""
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
