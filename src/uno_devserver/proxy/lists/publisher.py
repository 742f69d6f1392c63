"""Publishes the lists that clients see: merges the servers' with ours, announces changes, and saves the catalogue.

The published lists are kept while there is no upstream, and so is each list that cannot be read from the upstream.
`ListPublisher` has the lists of the main server, and a `ServerLists` for each further one.
"""

from __future__ import annotations

import json
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ...issues import warning
from ...system.log import log
from ...system.text import LONGEST_NAME
from ...workspace.config import ToolFilter
from ..own_tools import capabilities, instructions
from ..state import GIVEN_UP, LISTS
from . import catalogue
from .catalogue import Catalogue, CatalogueIdentity
from .merge import Offered, ServerOffer, combined, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...protocol.client.connection import ServerDescription
    from ...workspace.resolver import Workspace
    from ..options import ProxyOptions
    from ..own_tools import OwnToolFacts
    from ..state import ProxyState, Routes
    from .merge import Entries, GivenNames

SHOWN_NAMES = 20  # of tools, in one line of the log
MOST_RENAMED = 200  # tools of one server, in its health
SHOWN_URIS = 5
NAMES_SECONDS = 10.0  # how long the names of a first session wait for a server: longer than most take to start
SAME_URIS = "Let one of them offer others, or leave one of the servers out of the config."


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
        self.offered = (
            state.catalogue.offered if state.catalogue else Offered()
        )  # the main server's lists, as last read
        self._described: ServerDescription | Catalogue | None = state.catalogue  # how that server introduced itself
        # What each further server offered the last time, until it is served or known to be gone, then its lists.
        self._servers: dict[str, ServerOffer | ServerLists] = {
            each.name: each for each in (state.catalogue.servers if state.catalogue else ())
        }
        self.filter = ToolFilter()  # of the main server's tools
        self._given: GivenNames = {}  # in this session
        self._named: set[str] = set()  # the further servers whose lists have been published
        self._holds = False  # whether lists are held back, because an earlier server may have the same names
        self._listed = self.offered != Offered()
        self._due = time.monotonic() + NAMES_SECONDS
        if self._servers:
            self._combined()  # the names that clients may have read
        self.all_offered = self.offered  # by all servers, under the names that clients see
        self._hidden: tuple[str, ...] = ()  # URIs of resources that an earlier server offers, too
        self._announced = state.lists  # the lists that clients were last notified of
        self._own = catalogue.own_tool_facts(options, state.catalogue)

    @property
    def tool_count(self) -> int:
        """The number of the main server's tools that clients see; ours hide tools of the same name."""
        return sum(name not in self._state.own_tools for name, _ in self.offered.tools)

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return _tool_in(self.offered, self._state.own_names.get("tools/call", {}).get(name, name))

    # The further servers.

    def serve(self, names: Iterable[str]) -> None:
        """Set which further servers there are, in their order; the lists of others are not published any more."""
        servers = {name: self._servers.get(name) or ServerOffer(name) for name in names}
        if servers or self._servers:
            self._servers = servers
            self._describe()
            self._publish()
            self._changed()

    def lists_of(self, name: str, state: ProxyState) -> ServerLists:
        """The lists of that further server, which begin with those of the last time."""
        known = self._servers.get(name)
        offer = ServerOffer(name) if known is None else known if isinstance(known, ServerOffer) else known.offer
        self._servers[name] = lists = ServerLists(self, offer, state)
        return lists

    def name_servers(self) -> None:
        """Publish the lists that were held back, if no earlier server is waited for any more."""
        if self._holds:
            self._publish()
            self._state.learn()

    def restrict(self, tools: ToolFilter) -> None:
        """Offer only those tools of the main server that the filter allows."""
        if tools != self.filter:
            self.filter = tools
            self._publish()
            self._changed()

    def server_changed(self, *, tell: bool = True) -> None:
        """Publish new lists, or another setting, of a further server."""
        self._describe()
        self._publish(tell=tell)
        self._changed()

    # Changing the lists.

    def take(self, read: Mapping[str, Entries], server: ServerDescription) -> None:
        """Publish the upstream's lists; a list that is not in `read`, because it could not be read, is kept."""
        self._own = self._own.replace(fallback=False)  # the workspace is known, because it is served
        self._listed = True
        self._offer(self.offered.replace(**read), server, fresh=True)

    def load(self, workspace: Workspace) -> tuple[CatalogueIdentity, Catalogue | None]:
        """Load the catalogue of that workspace; None if there is none, or its lists are published. Reads the disk.

        The catalogue is stored under the folder in which the proxy was started, so that the next start finds it without
        resolving the workspace. That of a workspace that a client named is stored under the workspace's folder.
        """
        own = catalogue.identity_of(self._options)
        identity = catalogue.identity_in(workspace.requested_directory).replace(command=own.command)
        if identity != own:
            identity = catalogue.identity_in(workspace.working_directory).replace(command=own.command)
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
        self._servers = {each.name: each for each in (found.servers if found else ())}
        self._given, self._named, self._listed = {}, set(), found is not None and found.offered != Offered()
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

    def saver(self) -> Callable[[str | None], float]:
        """Return a function for a thread: it saves the present lists with an SDK version, and returns the time."""
        identity, now, described = self._identity, time.time(), self._described
        info = described.server if isinstance(described, Catalogue) else described.info if described else {}
        found = Catalogue(
            self._filtered(),
            info,
            described.capabilities if described else {},
            described.instructions if described else None,
            now,
            selects_solution=self._own.selects_solution,
            hot_reload=self._own_facts().hot_reload,
            servers=tuple(self._offers()),
        )

        def write(sdk_version: str | None) -> float:
            if identity is not None:
                catalogue.save(self._folder, identity, found.replace(sdk_version=sdk_version))
            return now

        return write

    def _offer(self, offered: Offered, by: ServerDescription | Catalogue | None, *, fresh: bool) -> None:
        """Publish these lists; `fresh`: whether they come from the connected upstream."""
        self.offered, self._described = offered, by
        self._describe()
        self._publish()
        self._state.learn(tool_count=self.tool_count, lists_fresh=fresh)

    def _describe(self) -> None:
        """Publish the instructions and capabilities of all servers."""
        state, by = self._state, self._described
        others = (f"{each.name}: {each.instructions}" for each in self._offers() if each.instructions)
        state.server = state.server.replace(instructions=instructions(by.instructions if by else None, *others))
        state.capabilities = capabilities(by.capabilities if by else {})

    def _offers(self) -> Iterator[ServerOffer]:
        return (each if isinstance(each, ServerOffer) else each.offer for each in self._servers.values())

    def _filtered(self) -> Offered:
        """The lists of the main server without the tools that its filter keeps out."""
        if not self._state.facts.serves:
            return Offered()
        allowed = tuple(entry for entry in self.offered.tools if self.filter.allows(entry[0]))
        return self.offered if len(allowed) == len(self.offered.tools) else self.offered.replace(tools=allowed)

    def _own_facts(self) -> OwnToolFacts:
        reloads = any(isinstance(each, ServerLists) and each.hot_reload for each in self._servers.values())
        return self._own.replace(hot_reload=reloads or self._own.hot_reload, several=bool(self._servers))

    def _combined(self) -> tuple[Offered, Routes, tuple[str, ...]]:
        """Combine the lists of all servers.

        The names must not depend on who is connected first. So the lists of a further server are held back while an
        earlier one, whose lists are not known from an earlier session either, starts.
        """
        facts = self._state.facts
        self._holds = facts.serves and not facts.fallback and not _is_named(self._listed, self._due, self._state)
        offers = []
        for offer, each in zip(self._offers(), self._servers.values(), strict=True):
            if not self._holds or offer.name in self._named:
                offers.append(offer)
                self._named.add(offer.name)
            self._holds = self._holds or not (
                each.is_named if isinstance(each, ServerLists) else each.offered != Offered()
            )
        return combined(self._filtered(), offers, self._given)

    def _publish(self, *, tell: bool = True) -> None:
        state = self._state
        self.all_offered, routes, hidden = self._combined()
        state.lists, own = merged(self.all_offered, self._own_facts())
        excluded = {name for name, _ in self.offered.tools if not self.filter.allows(name)}
        excluded.update(*(each.excluded for each in self._servers.values() if isinstance(each, ServerLists)))
        excluded -= {name for name, _ in self.all_offered.tools} | own
        only_listed = self.filter != ToolFilter() or not state.facts.serves
        state.routes = routes.replace(excluded=frozenset(excluded), only_listed=only_listed)
        state.own_names = _own_names("", routes)
        state.own_tools = own | excluded  # which are answered here, too
        for each in self._servers.values():
            if isinstance(each, ServerLists):
                each.published(self.all_offered, routes)
        if hidden != self._hidden:
            self._hidden = hidden
            shown = ", ".join(hidden[:SHOWN_URIS]) + (", …" if len(hidden) > SHOWN_URIS else "")
            message = f"Several servers offer the same resources; only what the first one had is used: {shown}."
            state.blame("uris", (warning("UpstreamError", message, SAME_URIS),) if hidden else ())
        state.uno_workspace = self._own.uno
        if tell:
            self.tell()


class ServerLists:
    """The lists of one further server: as it names its tools and prompts, and as clients see them."""

    def __init__(self, publisher: ListPublisher, offer: ServerOffer, state: ProxyState) -> None:
        self.offer = offer
        self.offered = Offered()  # as clients see them
        self.hot_reload = False
        self._publisher = publisher
        self._state = state  # of the server
        self._read = offer.offered  # unfiltered
        self._listed = offer.offered != Offered()  # now, or in an earlier session
        self._due = time.monotonic() + NAMES_SECONDS
        self._filter = ToolFilter()

    @property
    def tool_count(self) -> int:
        return len(self.offer.offered.tools)

    @property
    def is_named(self) -> bool:
        """Whether later servers need not wait for its names."""
        return _is_named(self._listed, self._due, self._state)

    @property
    def excluded(self) -> set[str]:
        """The names of its tools that the filter does not allow."""
        return {name for name, _ in self._read.tools if not self._filter.allows(name)}

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return _tool_in(self.offered, name)

    def set(self, *, prefix: bool, tools: ToolFilter) -> None:
        """Set which of its tools are offered, and whether all names get a prefix."""
        if (prefix, tools) != (self.offer.prefix, self._filter):
            self._filter = tools
            self._offer(self.offer.replace(prefix=prefix), self._read)

    def take(self, read: Mapping[str, Entries], server: ServerDescription) -> None:
        """Publish the server's lists; a list that is not in `read`, because it could not be read, is kept."""
        self._listed = True
        self._offer(self.offer.replace(instructions=server.instructions), self._read.replace(**read))
        self._state.learn(lists_fresh=True)

    def adapt(self, *, hot_reload: bool, lists_follow: bool) -> None:
        """Record whether its code is reloaded; `lists_follow`: whether its lists will be published next."""
        if hot_reload != self.hot_reload:
            self.hot_reload = hot_reload
            self._publisher.server_changed(tell=not lists_follow)

    def tell(self) -> None:
        self._publisher.tell()

    def published(self, offered: Offered, routes: Routes) -> None:
        """Learn how clients see its lists, from those of all servers."""
        name = self.offer.name
        tools = (entry for entry in offered.tools if routes.tools[entry[0]][0] == name)
        self.offered = Offered(tools=tuple(tools))
        self._state.own_names = _own_names(name, routes)
        names = islice(self._state.own_names["tools/call"].items(), MOST_RENAMED)
        renamed = {public[:LONGEST_NAME]: own[:LONGEST_NAME] for public, own in names}
        if renamed != self._state.facts.renamed:
            named = ", ".join(f"'{own}' is '{public}'" for public, own in islice(renamed.items(), SHOWN_NAMES))
            if named:
                named += ", …" if len(renamed) > SHOWN_NAMES else ""
                log.info(f"Tools of the server '{name}' have its name as a prefix: {named}.")
            self._state.learn(renamed=renamed)

    def _offer(self, offer: ServerOffer, read: Offered) -> None:
        self._read = read
        tools = tuple(entry for entry in read.tools if self._filter.allows(entry[0]))
        self.offer = offer.replace(offered=read.replace(tools=tools))
        self._publisher.server_changed()
        self._state.learn(tool_count=self.tool_count)


def _is_named(listed: bool, due: float, state: ProxyState) -> bool:
    """Whether the names of a server are known, or are not waited for: it does not start, or not by `due`."""
    return listed or state.facts.state in GIVEN_UP or time.monotonic() >= due


def _own_names(server: str, routes: Routes) -> dict[str, dict[str, str]]:
    """The server's own names of what clients see under another one, by request."""
    requests = {"tools/call": routes.tools, "prompts/get": routes.prompts}
    return {
        method: {public: own for public, (to, own) in known.items() if to == server and public != own}
        for method, known in requests.items()
    }


def _tool_in(offered: Offered, name: str) -> Mapping[str, Any] | None:
    """Return the server's tool; None if there is none, or Python cannot read it (a number may be too long)."""
    text = next((text for known, text in offered.tools if known == name), b"null")
    try:
        tool: Mapping[str, Any] | None = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tool


def _differ(before: bytes, after: bytes) -> bool:
    """Whether the lists differ in value: a server may write the members of an object in another order each time."""
    return before != after and _canonical(before) != _canonical(after)


def _canonical(text: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except (ValueError, RecursionError):  # JSON that clients may accept, but msgspec does not
        return text
