"""Which MCP servers are registered, how each is started, and how an entry for it is recognised.

Definitions are data (`server-definitions.json`, or a file that the user names); these are the records.
"""

from __future__ import annotations

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STABLE, PRERELEASE, PINNED = "stable", "prerelease", "pinned"
LEGACY_HTTP = "legacy-http"


class EntrySpec(Value):
    """How a server is reached, before a client's dialect: `command` and `args`, or `url`."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""


class Detection(Value):
    """Regular expressions, ignoring case."""

    keys: tuple[str, ...]
    commands: tuple[str, ...] = ()  # over the command and its arguments, joined by blanks
    urls: tuple[str, ...] = ()
    weak_urls: tuple[str, ...] = ()  # others have such addresses, too: nothing is changed for them alone ...
    weak_keys: tuple[str, ...] = ()  # ... unless the entry's name fits one of these


class ServerDefinition(Value):
    name: str
    transport: str
    variants: Mapping[str, EntrySpec]  # by stable, prerelease, pinned; `{version}` stands for the pinned one
    detection: Detection
    runner: str = ""  # what `variants` are started by; "": that is not for us to choose
    runners: Mapping[str, Mapping[str, EntrySpec]] = {}  # other ways to start it, with the same variants


class VariantChoice(Value):
    """What a registration should say: which version, and started by what."""

    variant: str  # stable, prerelease or pinned:<version>
    runner: str | None = None  # None: the default for new entries; an entry keeps the runner that it has
    asked: bool = True  # False: the variant follows from this program's own version, which says nothing about others
