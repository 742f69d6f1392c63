"""Hearing of changes: what is asked for, what is heard, and what to assume when nothing could be heard for a while."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..versions import SUBSCRIPTION_KEY
from .questions import notify_peer

if TYPE_CHECKING:
    from .connection import Peer, ServerDescription

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LISTS = ("tools", "prompts", "resources")
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 5.0  # a server that ends sooner what it has just granted would be asked without end


class Backoff:
    """Pauses between attempts: longer and longer, and short again after one that was good for some seconds."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE_SECONDS
        self._attempted = 0.0  # when the last pause was over

    def next(self) -> float:
        now = asyncio.get_running_loop().time()
        if now - self._attempted >= STEADY_SECONDS:
            self._next = FIRST_PAUSE_SECONDS
        pause, self._next = self._next, min(2 * self._next, LONGEST_PAUSE_SECONDS)
        self._attempted = now + pause
        return pause


def listen_params(uris: frozenset[str]) -> dict[str, Any]:
    """The params of `subscriptions/listen` (modern era): changes of all lists, and of these resources."""
    return {"notifications": {**{f"{kind}ListChanged": True for kind in LISTS}, "resourceSubscriptions": sorted(uris)}}


def tells_changes(server: ServerDescription) -> bool:
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


def announce_all_lists(peer: Peer, server: ServerDescription) -> None:
    """Some time passed in which nothing was heard: anything may have changed."""
    for kind in LISTS:
        if kind in server.capabilities:
            notify_peer(peer, f"notifications/{kind}/list_changed", {})
