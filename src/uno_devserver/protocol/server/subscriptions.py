"""Subscriptions of modern clients to changes, and the resources that clients of both eras watch."""

from __future__ import annotations

import asyncio
from typing import Any

from ...system.event_loop import Tasks
from ...system.log import log
from ..jsonrpc import BUSY, INVALID_PARAMS, Id, RpcError, RpcRequest, notification_message, result_message, shown
from ..peer_info import ServerInfo
from ..service import Params, Service
from ..versions import (
    LISTEN,
    LISTS,
    RESOURCE_UPDATED,
    SUBSCRIPTION_ACKNOWLEDGED,
    SUBSCRIPTION_KEY,
    meta_of,
    modern_error,
    modern_result,
)
from .call_runner import attempt
from .limits import DEFAULT_ENDPOINT_LIMITS, EndpointLimits
from .message_stream import Channel, MessageKind

RESOURCES = "resourceSubscriptions"


class Subscription:
    def __init__(self, request_id: Id, methods: frozenset[str], uris: frozenset[str], channel: Channel) -> None:
        self.id = request_id
        self.methods = methods
        self.uris = uris
        self._channel = channel

    def notify(self, method: str, params: Params) -> None:
        meta = {**meta_of(params), SUBSCRIPTION_KEY: self.id}
        self._channel.send_once(notification_message(method, {**params, "_meta": meta}))

    def end(self, info: ServerInfo) -> None:
        """Answer the request, because without a result the client would believe that the connection was lost."""
        result = modern_result(LISTEN, {"_meta": {SUBSCRIPTION_KEY: self.id}}, info)
        self._channel.send(result_message(self.id, result), MessageKind.ANSWER)
        self._channel.end()


class Subscriptions:
    def __init__(self, limits: EndpointLimits, watched: WatchedResources) -> None:
        self._limits = limits
        self._watched = watched
        self._open: set[Subscription] = set()
        self._opening = 0

    async def open(self, request: RpcRequest, capabilities: dict[str, Any], channel: Channel) -> Subscription:
        """Open a subscription; the acknowledgement says which of the requested notifications the server can send."""
        wish = request.params.get("notifications")
        if not isinstance(wish, dict):
            raise RpcError(INVALID_PARAMS, f"'{LISTEN}' needs notifications: an object that says which.")
        if len(self._open) + self._opening >= self._limits.subscriptions:
            raise RpcError(BUSY, f"{self._limits.subscriptions} subscriptions are open already; close some.")
        granted = _granted(wish, capabilities, self._limits)
        self._opening += 1
        try:
            uris = await self._watch(granted)
        finally:
            self._opening -= 1
        methods = frozenset(method for key, method, _ in LISTS if key in granted)
        subscription = Subscription(request.id, methods, uris, channel)
        subscription.notify(SUBSCRIPTION_ACKNOWLEDGED, {"notifications": granted})
        self._open.add(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        if subscription in self._open:
            self._open.remove(subscription)
            for uri in subscription.uris:
                self._watched.end(uri)

    def broadcast(self, method: str, params: Params | None) -> None:
        for subscription in self._open:
            if method in subscription.methods:
                subscription.notify(method, params or {})

    def resource_updated(self, uri: str) -> None:
        for subscription in self._open:
            if uri in subscription.uris:
                subscription.notify(RESOURCE_UPDATED, {"uri": uri})

    def close(self, info: ServerInfo) -> None:
        for subscription in list(self._open):
            subscription.end(info)
            self.remove(subscription)

    async def _watch(self, granted: dict[str, Any]) -> frozenset[str]:
        """Watch the resources in `granted`; remove those that the service refuses. RpcError if nothing remains."""
        wanted = list(dict.fromkeys(granted.pop(RESOURCES, ())))
        begun: set[str] = set()

        async def begin(uri: str) -> None:
            await self._watched.begin(uri)
            begun.add(uri)

        try:
            outcomes = await asyncio.gather(*map(begin, wanted), return_exceptions=True)
        except asyncio.CancelledError:
            for uri in begun:
                self._watched.end(uri)
            raise
        if begun:
            granted[RESOURCES] = [uri for uri in wanted if uri in begun]
        refusal = next((error for error in outcomes if isinstance(error, RpcError)), None)
        if refusal is not None and not granted:
            raise modern_error(refusal)
        return frozenset(begun)


def _granted(wish: dict[str, Any], capabilities: dict[str, Any], limits: EndpointLimits) -> dict[str, Any]:
    granted: dict[str, Any] = {
        key: True
        for key, _, capability in LISTS
        if wish.get(key) is True and capabilities.get(capability, {}).get("listChanged")
    }
    uris = wish.get(RESOURCES)
    if uris is not None and not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
        raise RpcError(INVALID_PARAMS, "resourceSubscriptions must be a list of URIs.")
    if uris and len(uris) > limits.watched:
        raise RpcError(INVALID_PARAMS, f"A subscription can watch {limits.watched} resources.")
    for uri in uris or ():
        check_uri(uri, limits)
    if uris and capabilities.get("resources", {}).get("subscribe"):
        granted[RESOURCES] = uris
    return granted


def check_uri(uri: str, limits: EndpointLimits) -> None:
    """Raise RpcError for a URI that is too long to be kept."""
    if len(uri) > limits.uri_length:
        raise RpcError(INVALID_PARAMS, f"The uri must not be longer than {limits.uri_length} characters.")


METHODS = {True: "resources/subscribe", False: "resources/unsubscribe"}


class WatchedResources:
    """Counts the watchers of each resource, and tells the service when the first one begins or the last one ends."""

    def __init__(self, service: Service, limits: EndpointLimits = DEFAULT_ENDPOINT_LIMITS) -> None:
        self._service = service
        self._limits = limits
        self._watchers = 0
        self._resources: dict[str, _Resource] = {}
        self._tasks = Tasks()

    async def begin(self, uri: str) -> None:
        """Add a watcher; RpcError if the service refuses, or there are too many."""
        if self._watchers >= self._limits.all_watched:
            raise RpcError(BUSY, f"Clients watch {self._limits.all_watched} resources already; unsubscribe from some.")
        self._watchers += 1
        resource = self._resources.setdefault(uri, _Resource())
        resource.watchers += 1
        try:
            await self._tell(uri, resource, True)
        except BaseException:
            self.end(uri)
            raise

    def end(self, uri: str) -> None:
        """Remove a watcher."""
        resource = self._resources[uri]
        resource.watchers -= 1
        self._watchers -= 1
        if not resource.watchers:
            self._tasks.start(self._tell_the_end(uri, resource))

    async def close(self, seconds: float) -> None:
        """Wait, for a bounded time, until the service has been told which resources are not watched any more."""
        await self._tasks.wait(seconds)

    async def _tell(self, uri: str, resource: _Resource, wanted: bool) -> None:
        async with resource.telling:
            if resource.told == wanted or (resource.watchers > 0) != wanted:
                return
            resource.told = wanted  # before the call: if it is cancelled, the service may have seen it
            refused = await attempt(self._service.watched(uri, wanted), METHODS[wanted])
            if isinstance(refused, RpcError):
                resource.told = False
                raise refused

    async def _tell_the_end(self, uri: str, resource: _Resource) -> None:
        try:
            await self._tell(uri, resource, False)
        except RpcError as error:
            log.warn(f"The server refused to stop watching '{shown(uri)}': {error.message}")
        if not resource.watchers and not resource.told and self._resources.get(uri) is resource:
            del self._resources[uri]


class _Resource:
    def __init__(self) -> None:
        self.watchers = 0
        self.told = False  # whether the service was last told that the resource is watched
        self.telling = asyncio.Lock()
