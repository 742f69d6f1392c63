"""Requests for a Host of a folder, without looking for solutions in it."""

from __future__ import annotations

import os
from typing import Any

from uno_devserver.instances.launch import StartRequest
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace


def start_request(folder: str | os.PathLike[str], solution: str | None = None, **wanted: Any) -> StartRequest:
    folder = os.fspath(folder)
    kind, source = ResolutionKind.CurrentDirectory, SelectionSource.Automatic
    return StartRequest(Workspace(folder, folder, folder, solution, None, kind, source, (), None, ()), **wanted)
