"""What the engine has last made known, and the front answers from. Cheap to import.

Written by the engine's thread, read by the front's: every field is replaced as a whole, never changed in place.
"""

from __future__ import annotations

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..protocol.parties import ServerInfo
    from .catalogue import Catalogue


# The methods that read them: what the items are called in the result, and which of the lists below it is.
LISTS = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resourceTemplates", "templates"),
    "prompts/list": ("prompts", "prompts"),
}


class Lists(Value):
    """What the proxy offers, each a JSON array that is ready to be written: our own and the upstream's, merged."""

    tools: bytes = b"[]"
    resources: bytes = b"[]"
    templates: bytes = b"[]"
    prompts: bytes = b"[]"


class Board:
    def __init__(
        self,
        server: ServerInfo,
        capabilities: dict[str, Any],
        lists: Lists,
        health: Callable[[], dict[str, object]],
        *,
        catalogue: Catalogue | None = None,
        holds_tools: bool = False,
    ) -> None:
        self.server = server  # name, version, instructions: ours with the upstream's
        self.capabilities = capabilities
        self.lists = lists
        self.catalogue = catalogue  # what the lists came from at the start
        self.fresh = False  # whether the lists come from the upstream that is connected, and not from the catalogue
        self.health = health  # makes the HealthReport at the moment it is asked for, without waiting for anything
        self.holds_tools = holds_tools  # tools/list is not answered from here, but by the engine when it can
        self.end_by_force: Callable[[], None] = lambda: None  # whatever the engine has started
        self.own_tools: frozenset[str] = frozenset()  # the names that are ours to answer; `uno_health` always is
