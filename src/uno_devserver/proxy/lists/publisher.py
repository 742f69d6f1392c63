"""What clients are offered: the upstream's lists with ours, published, kept on disk, and told when they change.

What was offered last stays offered while there is no upstream, and where a list cannot be read.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ... import __version__
from ...protocol.parties import ServerInfo
from ...system.log import log
from ...system.values import Value
from ..own_tools import capabilities, instructions
from . import catalogue
from .catalogue import Catalogue, Identity
from .merge import Offered, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...protocol.client.connection import Server
    from ...workspace.resolver import Workspace
    from ..options import Options
    from ..state import Lists, ProxyState
    from .merge import Entries


# Which change of the state is told how. A list that is not named here changes together with another.
CHANGES = {
    "tools": "notifications/tools/list_changed",
    "resources": "notifications/resources/list_changed",
    "templates": "notifications/resources/list_changed",
    "prompts": "notifications/prompts/list_changed",
}


class Recollection(Value):
    """What a workspace had, and whose it is."""

    identity: Identity
    found: Catalogue | None


class ListPublisher:
    def __init__(
        self,
        options: Options,
        state: ProxyState,
        folder: str,
        *,
        broadcast: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        """`folder` is that of our own state. `changed`: other tools of ours are offered, which is worth keeping."""
        self._options = options
        self._state = state
        self._folder = folder
        self._broadcast = broadcast
        untold = options.uses_host and options.force_fallback
        self._identity = None if untold else catalogue.identity_of(options)  # whose lists these are
        self._offered = state.catalogue.offered if state.catalogue else Offered()
        self._tools = dict(self._offered.tools)
        self._told = state.lists  # what clients know, if they have listened
        self._now = catalogue.circumstances(options, state.catalogue)
        self._changed = changed

    @property
    def tool_count(self) -> int:
        """What clients see of the upstream's: some of its tools may stand behind ours."""
        return len(self._tools.keys() - self._state.own_tools)

    @property
    def tools(self) -> Entries:
        """The upstream's, as last seen."""
        return self._offered.tools

    def tool(self, name: str) -> Mapping[str, Any] | None:
        text = self._tools.get(name)
        return None if text is None else json.loads(text)

    def take(self, read: Mapping[str, Entries], server: Server) -> None:
        """The upstream's lists, as far as they could be read."""
        self._now = self._now.replace(fallback=False)  # something is served, so the workspace has been told
        self._state.fresh = True
        self._offer(self._offered.replace(**read), server.instructions, server.capabilities)

    def recall(self, workspace: Workspace) -> Recollection:
        """What that workspace had when it was last seen, if that is not offered already; reads the disk.

        What the folder that we were started in leads to is kept under that folder, where the next start finds it
        without looking for the workspace; what somebody has named is kept under its own.
        """
        identity = catalogue.identity_in(workspace.requested_directory)
        if identity != catalogue.identity_of(self._options):
            identity = catalogue.identity_in(workspace.working_directory)
        found, problem = catalogue.load(self._folder, identity) if identity != self._identity else (None, "")
        if problem:
            log.warn(problem)
        return Recollection(identity, found)

    def change(self, to: Recollection) -> bool:
        """That workspace is served from now on: what another one has offered is no longer; whether there was one."""
        if to.identity == self._identity:
            return False
        self._identity, found = to.identity, to.found
        self._state.fresh = False
        self._now = catalogue.circumstances(self._options, found).replace(fallback=self._now.fallback)
        if found is None:
            self._offer(Offered(), None, {})
        else:
            self._offer(found.offered, found.instructions, found.capabilities)
        return True

    def fall_back(self, wanted: bool) -> None:
        """Whether the tools are listed that tell us the workspace; they stay until something is served."""
        wanted = wanted or (self._now.fallback and not self._state.fresh)
        if wanted != self._now.fallback:
            self._now = self._now.replace(fallback=wanted)
            self._publish()

    def adapt(
        self, *, selects_solution: bool | None = None, hot_reload: bool | None = None, lists_follow: bool = False
    ) -> None:
        """The workspace has solutions to select or has none, or its code is reloaded or is not; None: as before.

        `lists_follow`: those of the upstream are about to be taken, and clients are told of all at once; if they do
        not come, by `tell`.
        """
        now = self._now
        if selects_solution is not None:
            now = now.replace(selects_solution=selects_solution)
        if hot_reload is not None:
            now = now.replace(hot_reload=hot_reload)
        if now != self._now:
            self._now = now
            self._publish(tell=not lists_follow)
            self._changed()

    def outdated(self) -> None:
        """There is no upstream any more; what it offered is offered on."""
        self._state.fresh = False

    def saver(self, server: Server) -> Callable[[str | None], float]:
        """Writes the catalogue as it is now, for this version of the SDK, and says when; waits for the disk."""
        identity, now = self._identity, time.time()
        found = Catalogue(
            self._offered,
            server.info,
            server.capabilities,
            server.instructions,
            now,
            selects_solution=self._now.selects_solution,
            hot_reload=self._now.hot_reload,
        )

        def write(sdk_version: str | None) -> float:
            if identity is not None:
                catalogue.save(self._folder, identity, found.replace(sdk_version=sdk_version))
            return now

        return write

    def _offer(self, offered: Offered, told: str | None, able: Mapping[str, Any]) -> None:
        state, server = self._state, self._state.server
        self._offered, self._tools = offered, dict(offered.tools)
        state.server = ServerInfo(server.name, __version__, server.title, instructions(told))
        state.capabilities = capabilities(able)
        self._publish()

    def tell(self) -> None:
        """Clients, of what has changed since they were last told."""
        before, self._told = self._told, self._state.lists
        for method in _changes(before, self._told):
            self._broadcast(method)

    def _publish(self, *, tell: bool = True) -> None:
        self._state.lists, self._state.own_tools = merged(self._offered, self._now)
        if tell:
            self.tell()


def _changes(before: Lists, after: Lists) -> list[str]:
    """What to tell, each once."""
    told = [method for field, method in CHANGES.items() if _differ(getattr(before, field), getattr(after, field))]
    return list(dict.fromkeys(told))


def _differ(before: bytes, after: bytes) -> bool:
    """By value: a server may write the members of an object in another order each time."""
    return before != after and _canonical(before) != _canonical(after)


def _canonical(text: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except (ValueError, RecursionError):  # valid for others, but not for this reader
        return text
