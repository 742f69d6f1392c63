"""Standard input and output belong to the protocol, and to nobody else in this process or below it."""

from __future__ import annotations

import os
import sys

from ...issues import UserError


def own_streams() -> tuple[int, int]:
    """Both under other numbers, which no child inherits.

    From now on reading 0 gives nothing, and writing to 1 is writing to stderr, be it by a print, a child or C code.
    """
    if sys.stdin is None or sys.stdout is None:  # the numbers 0 and 1 belong to something else then
        message = "Standard input or output is closed, and MCP is spoken over them."
        raise UserError("NoClient", message, "Start 'mcp start' from an AI client, or with both connected.")
    nothing = os.open(os.devnull, os.O_RDWR)  # where there is no stderr, it gets the number 2 and keeps it
    source, sink = os.dup(0), os.dup(1)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if nothing != 2:
        os.close(nothing)
    sys.stdout = sys.stderr
    return source, sink


def give_back(sink: int) -> None:
    """Standard output is as it was: nobody speaks MCP there any more."""
    os.dup2(sink, 1)
    sys.stdout = sys.__stdout__
