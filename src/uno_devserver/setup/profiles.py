"""How an AI client stores its MCP servers: its files, their format, and the form of an entry.

These records are made from data (`client-profiles.json`, or a user's file), with the paths of this machine.
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
    JSON = "json"  # strict: a comment or trailing comma makes the client ignore the file, or exit
    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"


class Scope(Enum):
    WORKSPACE = "workspace"
    USER = "user"


class Use(Enum):
    """How the client, and therefore this program, uses a place."""

    WRITE = "write"  # the client reads it, and entries may be added
    READ = "read"  # the client reads it; entries are found and removed, but never added
    SHARED = "shared"  # like READ, but the file belongs to other clients, so entries are removed only with --all-scopes
    LEGACY = "legacy"  # the client never reads it, or no longer; entries are found and removed


class Dialect(Value):
    """The names of an entry's keys, and further settings that it needs."""

    command_key: str = "command"
    args_key: str = "args"
    env_key: str = "env"
    url_key: str = "url"
    one_array: bool = False  # whether program and arguments are in one array, under `command_key`
    types: Mapping[str, str] = {}  # by transport: the value of `type`, if it is written
    extra: Mapping[str, Mapping[str, object]] = {}  # by transport: further settings of a new entry
    name_key: str | None = None  # if the servers are a list: the key of an entry that has its name


class Place(Value):
    """A file, and the path of keys to the servers in it."""

    path: str  # the absolute path
    scope: Scope
    use: Use
    format: Format
    root: tuple[str, ...]  # the path of keys to the servers
    dialect: Dialect
    new_text: str = ""  # the beginning of a file that we create, if the client needs one
    within: str | None = None  # the workspace, if its files decide about the path: no link may lead out of it
    opens: str | None = ""  # the folder in which the client starts a server; "" for any, None if it opens no folder


class Gate(Value):
    """An action that the client asks of the user before it uses an entry."""

    text: str
    scopes: tuple[Scope, ...]


class ClientCli(Value):
    """The client's own command, which can list the servers that it sees, and register some where no file is known."""

    executable: str
    list: tuple[str, ...]  # its arguments; none if the command only shows that the client is installed
    environ: Mapping[str, str] = {}
    add: Mapping[str, tuple[str, ...]] = {}  # by transport: its arguments, with {name}, {command}, {args...}, {url}
    remove: tuple[str, ...] = ()  # its arguments, with {name}


class Profile(Value):
    id: str
    name: str  # the name for people
    places: tuple[Place, ...]  # in the order in which the client uses them
    default_scope: Scope
    preferred: Place | None = None  # where an entry goes by default; None if no place can be written to
    aliases: tuple[str, ...] = ()  # other identifiers, e.g. those of the .NET tool
    transports: tuple[str, ...] = TRANSPORTS
    signs: tuple[str, ...] = ()  # further folders and files that show that the client is installed
    hidden: bool = False  # whether it is never detected, because it is not a client, but a way to write a file
    cli: ClientCli | None = None
    in_terminal: bool = False  # whether it has the PATH of the user's shell; others have a minimal one
    starts_in: Mapping[Scope, Scope] = {}  # by the entry's scope: the workspace (the default) or the home folder
    project: str = ""  # the folder whose files the client reads: the workspace, or one above it
    connect_seconds: float | None = None  # how long it waits for a server, if known
    gates: tuple[Gate, ...] = ()
    installable: bool = True  # whether it can be installed on this system
    no_client: str = ""  # a sentence: why nothing can be registered there
    strategy: str = "file"  # the word of the .NET tool for how an entry is registered

    def holder(self, place: Place) -> Scope:
        """The scope of the whole file: Claude Code stores entries of workspaces in the user's file, too."""
        users = any(one.path == place.path and one.scope is Scope.USER for one in self.places)
        return Scope.USER if users else place.scope

    def targets(self, scope: Scope) -> tuple[Place, ...]:
        """The places where an entry of that scope may be added, the preferred one first.

        A shared file is included only if the client has no file of its own.
        """
        places = [place for place in self.places if place.scope is scope]
        own = [place for place in places if place.use is Use.WRITE]
        found = own or [place for place in places if place.use is Use.SHARED]
        return tuple(sorted(found, key=lambda place: place is not self.preferred))
