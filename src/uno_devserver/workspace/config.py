"""`.devtools/host.config.jsonc`: what a workspace says about its server.

Reading never raises. What is wrong is an issue that names the place inside the file, and the default counts there.
"""

from __future__ import annotations

from enum import Enum

from ..issues import Issue, warning
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.values import Value

MAX_BYTES = 1024 * 1024  # a page in real life


class Strategy(Enum):
    """How new code takes the place of old."""

    RESTART = "restart"  # calls are told to come again; the old server is stopped, then the new one started
    SWAP = "swap"  # calls wait; the new server is started beside the old one, and takes over when it answers


class ServerCommand(Value):
    """How the MCP server is started, where the config says so itself."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # in addition to ours
    cwd: str | None = None  # absolute; None: the server's root


class ClientCommand(Value):
    """A process that uses the extension, and is started again when that was rebuilt."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None  # absolute; None: clientWorkspace, else the extension's folder
    ready_pattern: str | None = None  # a regular expression: a line that it prints when it is ready


class HotReload(Value):
    enabled: bool = True
    server_name: str | None = None  # what the MCP server is called in sentences
    restart_delay_ms: int = 0  # between stopping and starting
    status_timeout_ms: int = 60_000  # how long mcpStatus waits
    strategy: Strategy = Strategy.RESTART
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Config(Value):
    """All paths are absolute."""

    path: str | None = None  # None: there is none
    wait_calls: bool = False  # hold calls until the upstream is ready, instead of answering that it is not
    concurrency: int | None = None  # pipeline.concurrency: how many calls may run at once; None: not said
    client_workspace: str | None = None
    extension_path: str | None = None
    server_root: str | None = None  # mcpServerRoot
    server: ServerCommand | None = None  # mcpServer
    client: ClientCommand | None = None
    hot_reload: HotReload = HotReload()
    issues: tuple[Issue, ...] = ()

    @property
    def names_server(self) -> bool:
        """Whether the config declares an MCP server, so that this is behind the proxy and not a Host."""
        return self.server is not None or self.server_root is not None


class _Field(Value):
    path: tuple[str, ...]
    name: str  # in Config
    kind: type
    expected: str  # "must be …"


# All that is read of the file; what is not here belongs to somebody else.
_FIELDS = (_Field(("proxy", "waitCalls"), "wait_calls", bool, "true or false"),)


def read_config(path: str | None) -> Config:
    """The config in this file; the defaults where there is none."""
    if path is None:
        return Config()
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return Config()
    except FileProblem as problem:
        return _invalid(f"{path} cannot be read: {problem.reason}.")
    except JsonProblem as problem:
        where = f"line {problem.line}, column {problem.column}"
        return _invalid(f"{path} is not valid JSON: {where}: {problem.reason}.")
    values: dict[str, object] = {}
    issues: dict[Issue, None] = {}  # fields share the objects around them
    for field in _FIELDS:
        try:
            value = _value(document, field)
        except ValueError as error:
            issues[warning("ConfigInvalid", f"{path}: {error}.")] = None
            continue
        if value is not None:
            values[field.name] = value
    return Config(**values, issues=tuple(issues))  # type: ignore[arg-type]  # the kinds were checked


def _invalid(message: str) -> Config:
    return Config(issues=(warning("ConfigInvalid", message),))


def _value(document: object, field: _Field) -> object | None:
    """The value of a field; None where it is not given. ValueError says which part of the way is wrong, and how."""
    value = document
    for depth, name in enumerate(field.path):
        if not isinstance(value, dict):
            raise ValueError(f"{'.'.join(field.path[:depth]) or 'it'} must be an object")
        if name not in value:
            return None
        value = value[name]
    if type(value) is not field.kind:
        raise ValueError(f"{'.'.join(field.path)} must be {field.expected}")
    return value
