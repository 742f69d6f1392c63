"""Hearing of changes: what is asked for, what is heard, and what to assume when nothing could be heard for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eras import SUBSCRIPTION_KEY
from .questions import tell

if TYPE_CHECKING:
    from .connection import Peer, Server

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LISTS = ("tools", "prompts", "resources")
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0


class Backoff:
    """Pauses between attempts to listen: short after a word of the server, then longer and longer."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE_SECONDS

    def next(self) -> float:
        pause, self._next = self._next, min(2 * self._next, LONGEST_PAUSE_SECONDS)
        return pause

    def reset(self) -> None:
        self._next = FIRST_PAUSE_SECONDS


def wish(uris: frozenset[str]) -> dict[str, Any]:
    """The params of `subscriptions/listen` (modern era): changes of all lists, and of these resources."""
    return {"notifications": {**{f"{kind}ListChanged": True for kind in LISTS}, "resourceSubscriptions": sorted(uris)}}


def tells_changes(server: Server) -> bool:
    kinds = [server.capabilities.get(kind) for kind in LISTS]
    return any(isinstance(kind, dict) and kind.get("listChanged") for kind in kinds)


def without_subscription(params: dict[str, Any]) -> dict[str, Any]:
    """A notification without the id of the subscription, which is ours and means nothing to anybody else."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or SUBSCRIPTION_KEY not in meta:
        return params
    kept = {key: value for key, value in meta.items() if key != SUBSCRIPTION_KEY}
    bare = {key: value for key, value in params.items() if key != "_meta"}
    return {**bare, "_meta": kept} if kept else bare


def tell_of_all_lists(peer: Peer, server: Server) -> None:
    """Some time passed in which nothing was heard: anything may have changed."""
    for kind in LISTS:
        if kind in server.capabilities:
            tell(peer, f"notifications/{kind}/list_changed", {})
