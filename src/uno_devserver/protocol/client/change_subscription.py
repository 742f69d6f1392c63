"""Notifications of changes: asking for them, and what to assume when some may have been missed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..jsonrpc import RpcError
from ..versions import LISTS
from .server_requests import notify_peer

if TYPE_CHECKING:
    from ..service import Params
    from .connection import Peer, ServerDescription


def listen_params(uris: frozenset[str]) -> dict[str, Any]:
    """The params of `subscriptions/listen` (modern era) for changes of all lists and of these resources."""
    return {"notifications": {**{key: True for key, _, _ in LISTS}, "resourceSubscriptions": sorted(uris)}}


class WatchedUris:
    """The resources that a server of the handshake era watches for us, subscribed one by one."""

    def __init__(self, request: Callable[[str, Params], Awaitable[object]]) -> None:
        self._request = request
        self._uris: frozenset[str] = frozenset()

    async def change(self, wanted: frozenset[str]) -> dict[str, RpcError]:
        """Subscribe and unsubscribe as needed. Returns the resources that the server refuses, with its errors."""
        refusals = {}
        for uri in sorted(self._uris ^ wanted):
            begin = uri in wanted
            self._uris -= {uri}
            try:
                await self._request(f"resources/{'' if begin else 'un'}subscribe", {"uri": uri})
            except RpcError as refusal:
                if begin:
                    refusals[uri] = refusal
            else:
                self._uris |= {uri} & wanted
        return refusals

    def forget(self) -> None:
        self._uris = frozenset()


def notifies_changes(server: ServerDescription) -> bool:
    lists = [server.capabilities.get(capability) for _, _, capability in LISTS]
    return any(isinstance(each, dict) and each.get("listChanged") for each in lists)


def announce_all_lists(peer: Peer, server: ServerDescription) -> None:
    """Notify `peer` of a change of every list that the server has, because notifications may have been missed."""
    for _, notification, capability in LISTS:
        if capability in server.capabilities:
            notify_peer(peer, notification, {})
