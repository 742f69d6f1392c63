"""Publishes the lists that clients see: merges the upstream's with ours, announces changes, and saves the catalogue.

The published lists are kept while there is no upstream, and so is each list that cannot be read from the upstream.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ...system.log import log
from ..own_tools import capabilities, instructions
from ..state import LISTS
from . import catalogue
from .catalogue import Catalogue, CatalogueIdentity
from .merge import Offered, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...protocol.client.connection import ServerDescription
    from ...workspace.resolver import Workspace
    from ..options import ProxyOptions
    from ..state import ProxyState
    from .merge import Entries


class ListPublisher:
    def __init__(
        self,
        options: ProxyOptions,
        state: ProxyState,
        folder: str,
        *,
        broadcast: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        """`folder`: the folder of our own state; `changed` is called when the facts about our tools have changed."""
        self._options = options
        self._state = state
        self._folder = folder
        self._broadcast = broadcast
        self._changed = changed
        unnamed = options.uses_host and options.force_fallback
        self._identity = None if unnamed else catalogue.identity_of(options)  # the upstream of the lists
        self.offered = state.catalogue.offered if state.catalogue else Offered()  # the upstream's lists, as last read
        self._announced = state.lists  # the lists that clients were last notified of
        self._own = catalogue.own_tool_facts(options, state.catalogue)

    @property
    def tool_count(self) -> int:
        """The number of the upstream's tools that clients see; ours hide tools of the same name."""
        return sum(name not in self._state.own_tools for name, _ in self.offered.tools)

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the upstream's tool; None if there is none, or Python cannot read it (a number may be too long)."""
        text = next((text for known, text in self.offered.tools if known == name), b"null")
        try:
            tool: Mapping[str, Any] | None = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return tool

    # Changing the lists.

    def take(self, read: Mapping[str, Entries], server: ServerDescription) -> None:
        """Publish the upstream's lists; a list that is not in `read`, because it could not be read, is kept."""
        self._own = self._own.replace(fallback=False)  # the workspace is known, because it is served
        self._offer(self.offered.replace(**read), server, fresh=True)

    def load(self, workspace: Workspace) -> tuple[CatalogueIdentity, Catalogue | None]:
        """Load the catalogue of that workspace; None if there is none, or its lists are published. Reads the disk.

        The catalogue is stored under the folder in which the proxy was started, so that the next start finds it without
        resolving the workspace. That of a workspace that a client named is stored under the workspace's folder.
        """
        identity = catalogue.identity_in(workspace.requested_directory)
        if identity != catalogue.identity_of(self._options):
            identity = catalogue.identity_in(workspace.working_directory)
        found, problem = catalogue.load(self._folder, identity) if identity != self._identity else (None, "")
        if problem:
            log.warn(problem)
        return identity, found

    def switch(self, identity: CatalogueIdentity, found: Catalogue | None) -> None:
        """Replace the lists by those of another workspace, as `load` returned them."""
        if identity == self._identity:
            return
        self._identity = identity
        fallback = self._own.fallback
        self._own = catalogue.own_tool_facts(self._options, found).replace(fallback=fallback)
        self._offer(found.offered if found else Offered(), found, fresh=False)
        written, sdk = (found.saved_at, found.sdk_version) if found else (None, None)
        self._state.learn(catalogue_written=written, catalogue_sdk=sdk)

    def list_initialize(self, wanted: bool) -> None:
        """List uno_app_initialize, or not; once listed, it stays until an upstream is connected."""
        wanted = wanted or (self._own.fallback and not self._state.facts.lists_fresh)
        if wanted != self._own.fallback:
            self._own = self._own.replace(fallback=wanted)
            self._publish()

    def adapt(
        self,
        *,
        selects_solution: bool | None = None,
        hot_reload: bool | None = None,
        uno: bool | None = None,
        lists_follow: bool = False,
    ) -> None:
        """List our tools according to new facts; None leaves a fact unchanged.

        `lists_follow`: whether the upstream's lists will be published next, so that clients are notified of all changes
        at once. If these lists do not come, call `tell`.
        """
        changes = {"selects_solution": selects_solution, "hot_reload": hot_reload, "uno": uno}
        now = self._own.replace(**{name: value for name, value in changes.items() if value is not None})
        if now != self._own:
            self._own = now
            self._publish(tell=not lists_follow)
            self._changed()

    def tell(self) -> None:
        """Notify clients of each list that has changed since the last notification."""
        before, self._announced = self._announced, self._state.lists
        changed = [
            method.partition("/")[0]
            for method, (_, field) in LISTS.items()
            if _differ(getattr(before, field), getattr(self._announced, field))
        ]
        for kind in dict.fromkeys(changed):  # templates are announced as resources
            self._broadcast(f"notifications/{kind}/list_changed")

    def saver(self, server: ServerDescription) -> Callable[[str | None], float]:
        """Return a function for a thread: it saves the present lists with an SDK version, and returns the time."""
        identity, now = self._identity, time.time()
        found = Catalogue(
            self.offered,
            server.info,
            server.capabilities,
            server.instructions,
            now,
            selects_solution=self._own.selects_solution,
            hot_reload=self._own.hot_reload,
        )

        def write(sdk_version: str | None) -> float:
            if identity is not None:
                catalogue.save(self._folder, identity, found.replace(sdk_version=sdk_version))
            return now

        return write

    def _offer(self, offered: Offered, by: ServerDescription | Catalogue | None, *, fresh: bool) -> None:
        """Publish these lists; `fresh`: whether they come from the connected upstream."""
        state = self._state
        self.offered = offered
        state.server = state.server.replace(instructions=instructions(by.instructions if by else None))
        state.capabilities = capabilities(by.capabilities if by else {})
        self._publish()
        state.learn(tool_count=self.tool_count, lists_fresh=fresh)

    def _publish(self, *, tell: bool = True) -> None:
        self._state.lists, self._state.own_tools = merged(self.offered, self._own)
        self._state.uno_workspace = self._own.uno
        if tell:
            self.tell()


def _differ(before: bytes, after: bytes) -> bool:
    """Whether the lists differ in value: a server may write the members of an object in another order each time."""
    return before != after and _canonical(before) != _canonical(after)


def _canonical(text: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except (ValueError, RecursionError):  # JSON that clients may accept, but msgspec does not
        return text
