"""How one AI client stores its MCP servers: files, their format, and the shape of an entry.

Profiles are data (`client-profiles.json`, or a file that the user names); these are the records they are read into,
with every path already that of this machine and workspace.
"""

from __future__ import annotations

from enum import Enum

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STDIO, HTTP = "stdio", "http"
TRANSPORTS = (STDIO, HTTP)


class Format(Enum):
    JSON = "json"  # the client's reader is strict: a comment or trailing comma makes it ignore the file, or end
    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"


class Scope(Enum):
    WORKSPACE = "workspace"
    USER = "user"


class Use(Enum):
    """What a place is to the client, and so to us."""

    WRITE = "write"  # the client reads it, and we may put an entry there
    READ = "read"  # the client reads it; entries are found and taken out, never put there
    SHARED = "shared"  # the same, but it belongs to other clients first: taken out only when all scopes are asked for
    LEGACY = "legacy"  # the client does not read it (any more); what was put there is found and taken out


class Dialect(Value):
    """What an entry's keys are called, and what else it needs."""

    command_key: str = "command"
    args_key: str = "args"
    env_key: str = "env"
    url_key: str = "url"
    one_array: bool = False  # program and arguments together, under `command_key`
    types: Mapping[str, str] = {}  # by transport, the value of `type`; none: not written
    extra: Mapping[str, Mapping[str, object]] = {}  # by transport, what else a new entry gets
    name_key: str | None = None  # the servers are a list, and this key of an entry is its name


class Place(Value):
    """One file, and where the servers are in it."""

    path: str  # absolute
    scope: Scope
    use: Use
    format: Format
    root: tuple[str, ...]  # the keys that lead to the servers, from the top
    dialect: Dialect
    new_text: str = ""  # what the file begins with where we create it: the client would not take it without


class Gate(Value):
    """What the user still has to do in the client before an entry counts."""

    text: str
    scopes: tuple[Scope, ...] = (Scope.WORKSPACE, Scope.USER)


class ClientCli(Value):
    """The client's own command, which can say what servers it sees."""

    executable: str
    list: tuple[str, ...]  # its arguments; none: it is only looked for
    environ: Mapping[str, str] = {}


class Profile(Value):
    id: str
    name: str  # as people know it
    places: tuple[Place, ...]  # what the client takes first comes first
    default_scope: Scope
    preferred: Place | None = None  # where an entry goes by default; None: there is nothing to write to
    aliases: tuple[str, ...] = ()  # other identifiers, e.g. those of the .NET tool
    transports: tuple[str, ...] = TRANSPORTS
    signs: tuple[str, ...] = ()  # folders and files that show that the client is there, besides the places
    hidden: bool = False  # never detected: it is no client but a way to write a file
    program: ClientCli | None = None
    in_terminal: bool = False  # it has the PATH of the user's shell; others are started with a bare one
    starts_in: Mapping[Scope, Scope] = {}  # by the entry's scope: the workspace (the default) or the home folder
    connect_seconds: float | None = None  # how long it waits for a server, where that is known
    gates: tuple[Gate, ...] = ()
    no_client: str = ""  # why nothing can be registered there, as a sentence

    def holder(self, place: Place) -> Scope:
        """Whose the whole file is: Claude Code keeps what belongs to a workspace in the user's own."""
        users = any(one.path == place.path and one.scope is Scope.USER for one in self.places)
        return Scope.USER if users else place.scope

    def targets(self, scope: Scope) -> tuple[Place, ...]:
        """Where an entry of that scope may be put, the preferred place first.

        A file that belongs to other clients first is one only where the client has none of its own.
        """
        places = [place for place in self.places if place.scope is scope]
        own = [place for place in places if place.use is Use.WRITE]
        found = own or [place for place in places if place.use is Use.SHARED]
        return tuple(sorted(found, key=lambda place: place is not self.preferred))
