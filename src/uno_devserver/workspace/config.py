"""Reads `.devtools/host.config.jsonc`, the settings of a workspace.

Reading never raises. An error becomes an issue with its position in the file, and the setting has its default. Cheap to
import: the start of the server waits for it.
"""

from __future__ import annotations

import os
import re
import sys
from enum import Enum

from ..issues import Issue, warning
from ..system.files import FileProblem, names_in, read_bytes
from ..system.jsonc import JsonPositions, JsonProblem, parse
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Document = Mapping[str, Any]
    Trail = tuple[str, ...]  # the path of keys to a value in the file
    _Found = tuple[
        tuple[int, int], str, str
    ]  # the position of a problem, the problem, and the next step if not the usual

MAX_BYTES = 1024 * 1024  # real files have a few hundred bytes
LONGEST_DELAY_MS = 600_000  # ten minutes; a larger number was probably meant in another unit
LONGEST_STATUS_MS = 3_600_000
LONGEST_STARTUP_MS = 3_600_000
LONGEST_SILENCE_MS = 86_400_000  # a day; no client waits longer
MOST_CALLS = 1024
HIGHEST_PORT = 65_535
MOST_SERVERS = 50  # each is a process or a connection; no model can use the tools of more
MOST_ISSUES = 20  # a file with more issues is probably not a config at all
LONGEST_NAME = 100  # how many characters of an unknown setting are quoted
SCHEMA = "$schema"  # a key for editors, which is ignored here

CORRECT_FILE = "Correct the file (comments and trailing commas are allowed)"
MAKE_READABLE = f"{CORRECT_FILE}; until then the defaults count."
AS_BEFORE = f"{CORRECT_FILE}; until then what was read before counts."


class Strategy(Enum):
    """How new code replaces the old code."""

    RESTART = "restart"  # callers are asked to call again; the old server is stopped, then the new one started
    SWAP = "swap"  # calls wait; the new server is started in addition to the old one, and replaces it when it answers


class ServerCommand(Value):
    """The parts of the server's command line that the config contains."""

    command: str | None = None  # None for the command of the package in the server's root
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # in addition to the proxy's variables
    cwd: str | None = None  # absolute; None for the server's root
    env_file: str | None = None  # absolute: a file of variables, which is read at each start; `env` has precedence
    url: str | None = None  # where the server listens: on this machine if it is started here; None if it uses pipes
    headers: tuple[tuple[str, str], ...] = ()  # of requests to `url`; may contain secrets, and `${NAME}` for variables
    build: tuple[str, ...] | None = None  # None for the build of the package; empty if nothing is built
    startup_timeout_ms: int = 30_000  # from the start of the process to its first answer
    silence_timeout_ms: int = 300_000  # a call of which nothing is heard for this long is cancelled
    standby: bool = False  # whether a second one is kept ready, which replaces one that crashes


class ClientCommand(Value):
    """A process that uses the extension, and is restarted after each build of the extension."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None  # absolute; None for clientWorkspace, or else the extension's folder
    ready_pattern: str | None = None  # a regular expression for a line that the client prints when it is ready


class HotReloadSettings(Value):
    enabled: bool = True
    server_name: str | None = None  # the name of the MCP server in messages
    restart_delay_ms: int = 0  # the delay between stopping and starting
    status_timeout_ms: int = 60_000  # the limit of mcpStatus
    strategy: Strategy = Strategy.RESTART
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()


class ToolFilter(Value):
    """Which tools of a server are offered: those that a pattern of `include` fits, if there is one, and none of
    `exclude`. Patterns are globs.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def allows(self, name: str) -> bool:
        if not self.include and not self.exclude:
            return True
        from fnmatch import fnmatchcase  # few configs have patterns

        included = not self.include or any(fnmatchcase(name, pattern) for pattern in self.include)
        return included and not any(fnmatchcase(name, pattern) for pattern in self.exclude)


class InspectorSettings(Value):
    enabled: bool = False  # whether proxies of the workspace open it, if the workspace is trusted
    port: int | None = None  # 0 for any free port; None for the default one


class Config(Value):
    """The settings of a workspace, or of one entry of its `servers`. All paths are absolute."""

    path: str | None = None  # None if there is no file
    name: str | None = None  # of the entry; None for the workspace
    readable: bool = True  # False if the file is broken, so that all values are defaults
    wait_calls: bool = False  # hold calls until the upstream is ready, instead of answering that it is not
    concurrency: int | None = None  # pipeline.concurrency: the number of concurrent calls; None if not given
    client_workspace: str | None = None
    extension_path: str | None = None
    server_root: str | None = None  # mcpServerRoot
    server: ServerCommand | None = None  # mcpServer
    client: ClientCommand | None = None
    hot_reload: HotReloadSettings = HotReloadSettings()
    tools: ToolFilter = ToolFilter()
    prefix: bool = False  # whether all tools and prompts of an entry get its name as a prefix, not only ambiguous ones
    enabled: bool = True  # whether an entry is served
    servers: tuple[Config, ...] = ()  # the entries of `servers`, in the order of the file
    inspector: InspectorSettings = InspectorSettings()
    unclear: Issue | None = None  # the reason why it is not known whether the config names a server
    given: frozenset[str] = frozenset()  # the settings that the file gives validly
    issues: tuple[Issue, ...] = ()

    @property
    def names_server(self) -> bool:
        """Whether the config declares an MCP server, which the proxy then runs instead of a Host."""
        return self.server is not None or self.server_root is not None

    @property
    def section(self) -> str:
        """The section of the file that says how the declared server is started."""
        return "mcpServer" if self.name is None else f"servers.{self.name}"

    def entry(self, name: str) -> Config:
        """The settings of that entry of `servers`; if there is none, those of an entry that declares no server."""
        found = next((entry for entry in self.servers if entry.name == name), None)
        return found or Config(self.path, name, readable=self.readable, unclear=self.unclear)

    @property
    def connects_only(self) -> bool:
        """Whether the declared server is only connected to, because its URL is all that the config says of it."""
        server = self.server
        if server is None or server.url is None or self.server_root is not None:
            return False
        return not (server.command or server.args or server.cwd or server.build is not None)

    @property
    def reloads(self) -> bool:
        """Whether code is reloaded once the user has agreed to it, if there is any."""
        return self.hot_reload.enabled and not self.connects_only

    @property
    def server_folder(self) -> str | None:
        """The folder with the code of the declared server; None if no server is declared."""
        if self.path is None or not self.names_server:
            return None
        return self.server_root or (self.server and self.server.cwd) or os.path.dirname(os.path.dirname(self.path))

    @property
    def startup_seconds(self) -> float | None:
        """The limit of a start of the declared server; None if the config does not give it."""
        if self.server is None or "mcpServer.startupTimeout" not in self.given:
            return None
        return self.server.startup_timeout_ms / 1000

    @property
    def silence_seconds(self) -> float | None:
        """The limit on silence of calls of the declared server; None if the config does not give it."""
        if self.server is None or "mcpServer.silenceTimeout" not in self.given:
            return None
        return self.server.silence_timeout_ms / 1000

    @property
    def client_folder(self) -> str | None:
        """The working directory of the client; None if no client is declared."""
        if self.path is None or self.client is None:
            return None
        own = self.client.cwd or self.client_workspace or self.extension_path
        return own or os.path.dirname(os.path.dirname(self.path))


class FieldKind(Enum):
    """The kinds of values; each is the end of a sentence "must be ..."."""

    SWITCH = "true or false"
    NUMBER = "a whole number"
    TEXT = "a text"
    TEXTS = "a list of texts"
    VARIABLES = "an object of texts"
    FOLDER = "a folder"
    FILE = "a file"
    URL = "a URL"
    HEADERS = "an object of texts, by the names of HTTP headers"
    BUILD = "a command line, a list of texts, or false"
    PROGRAM = "the name or path of a program"
    PATTERN = "a regular expression"
    STRATEGY = '"restart" or "swap"'


class Field(Value):
    section: str  # empty for the top level; of a server in `servers`, for the entry itself
    key: str
    name: str  # the attribute in the class of the section
    kind: FieldKind
    least: int = 0
    most: int = 0
    stays: bool = False  # whether a missing folder stays the value: nothing in another folder may run instead

    @property
    def trail(self) -> Trail:
        return (self.section, self.key) if self.section else (self.key,)

    @property
    def title(self) -> str:
        return ".".join(self.trail)


# All settings.
FIELDS = (
    Field("", "clientWorkspace", "client_workspace", FieldKind.FOLDER),
    Field("", "extensionPath", "extension_path", FieldKind.FOLDER),
    Field("", "mcpServerRoot", "server_root", FieldKind.FOLDER, stays=True),
    Field("mcpServer", "command", "command", FieldKind.PROGRAM),
    Field("mcpServer", "args", "args", FieldKind.TEXTS),
    Field("mcpServer", "env", "env", FieldKind.VARIABLES),
    Field("mcpServer", "cwd", "cwd", FieldKind.FOLDER, stays=True),
    Field("mcpServer", "envFile", "env_file", FieldKind.FILE),
    Field("mcpServer", "url", "url", FieldKind.URL),
    Field("mcpServer", "headers", "headers", FieldKind.HEADERS),
    Field("mcpServer", "build", "build", FieldKind.BUILD),
    Field("mcpServer", "startupTimeout", "startup_timeout_ms", FieldKind.NUMBER, 1, LONGEST_STARTUP_MS),
    Field("mcpServer", "silenceTimeout", "silence_timeout_ms", FieldKind.NUMBER, 1, LONGEST_SILENCE_MS),
    Field("mcpServer", "standby", "standby", FieldKind.SWITCH),
    Field("client", "command", "command", FieldKind.PROGRAM),
    Field("client", "args", "args", FieldKind.TEXTS),
    Field("client", "cwd", "cwd", FieldKind.FOLDER),
    Field("client", "readyPattern", "ready_pattern", FieldKind.PATTERN),
    Field("hotReload", "enabled", "enabled", FieldKind.SWITCH),
    Field("hotReload", "mcpServerName", "server_name", FieldKind.TEXT),
    Field("hotReload", "restartDelay", "restart_delay_ms", FieldKind.NUMBER, 0, LONGEST_DELAY_MS),
    Field("hotReload", "mcpStatusTimeout", "status_timeout_ms", FieldKind.NUMBER, 1, LONGEST_STATUS_MS),
    Field("hotReload", "strategy", "strategy", FieldKind.STRATEGY),
    Field("hotReload", "include", "include", FieldKind.TEXTS),
    Field("hotReload", "exclude", "exclude", FieldKind.TEXTS),
    Field("hotReload", "watch", "watch", FieldKind.TEXTS),
    Field("tools", "include", "include", FieldKind.TEXTS),
    Field("tools", "exclude", "exclude", FieldKind.TEXTS),
    Field("pipeline", "concurrency", "concurrency", FieldKind.NUMBER, 1, MOST_CALLS),
    Field("proxy", "waitCalls", "wait_calls", FieldKind.SWITCH),
    Field("inspector", "enabled", "enabled", FieldKind.SWITCH),
    Field("inspector", "port", "port", FieldKind.NUMBER, 0, HIGHEST_PORT),
)
SERVERS = "servers"
# The settings of an entry of `servers`: those of mcpServer, and the sections that a server has of its own.
SERVER_FIELDS = (
    Field("", "root", "server_root", FieldKind.FOLDER, stays=True),
    *(field.replace(section="") for field in FIELDS if field.section == "mcpServer"),
    Field("", "prefix", "prefix", FieldKind.SWITCH),
    Field("", "enabled", "enabled", FieldKind.SWITCH),
    *(field for field in FIELDS if field.section in ("hotReload", "tools", "pipeline") and field.name != "server_name"),
)
SERVER_NAME = re.compile("[A-Za-z0-9_-]{1,32}")  # a part of tools' names, which have 64 of these characters at most

_URL = re.compile(
    r"https?://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::(?P<port>[0-9]{1,5}))?(?:[/?][^\s#]*)?", re.IGNORECASE
)
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
# Loopback only: a URL elsewhere cannot be that of a server which is started here.
_LOCAL_URL = re.compile(
    r"http://(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::(?P<port>[0-9]{1,5}))?(?:/[^\s#]*)?", re.IGNORECASE
)
_OF_SERVER = {field.key: field.name for field in FIELDS if field.section == "mcpServer"}
_ENTRY_NEEDS = ("command", "root", "url")  # one of these
_NAMING = ("mcpServer", "mcpServerRoot")  # each of these settings declares a server
# The folder of a server has one of these files; otherwise there is neither a command line nor code to watch.
_PACKAGES = ("package.json", "pyproject.toml", "go.mod", "Cargo.toml")
PROJECTS = (".csproj", ".fsproj", ".vbproj")  # of .NET
_CODE = (*PROJECTS, ".cs", ".py")
_NEEDED = "package.json, pyproject.toml, go.mod, .csproj or Python file"


def read_config(path: str | None, server: str | None = None) -> Config:
    """The config in this file, or one entry of its `servers`; the defaults if there is no file."""
    return _read(path) if server is None else _read(path).entry(server)


def _read(path: str | None) -> Config:
    if path is None:
        return Config()
    real, folder = os.path.realpath(path), os.path.realpath(os.path.dirname(os.path.dirname(path)))
    if not real.startswith(os.path.join(folder, "")):  # what it contains is quoted in messages, also to agents
        return _unreadable(path, f"{path} is a link that leads out of the workspace, to {real}.")
    try:
        text = read_bytes(path, MAX_BYTES)
        document = parse(text)
    except FileNotFoundError:
        return Config()
    except FileProblem as problem:
        return _unreadable(path, f"{path} cannot be read: {problem.reason}.")
    except JsonProblem as problem:
        return _unreadable(path, f"{path}:{problem.line}:{problem.column}: this is not valid JSON: {problem.reason}.")
    if not isinstance(document, dict):
        return _unreadable(path, f"{path}: it must be an object.")
    return _ConfigReader(path, text, document).config()


def _unreadable(path: str, message: str) -> Config:
    issue = warning("ConfigInvalid", message, MAKE_READABLE)
    return Config(path=path, readable=False, unclear=issue, issues=(issue,))


class _ConfigReader:
    """Reads one file, field by field."""

    def __init__(self, path: str, text: bytes, document: Document) -> None:
        self._path = path
        self._text = text
        self._places: JsonPositions | None = None  # created for the first issue
        self._document = document
        self._folder = os.path.dirname(os.path.abspath(path))
        self._given: set[str] = set()
        self._issues: list[_Found] = []
        self._unclear: _Found | None = None  # the first issue about the declaration of a server

    def config(self) -> Config:
        self._report_unknown((), FIELDS, self._document, SCHEMA, SERVERS)
        found = self._values((), FIELDS, self._document)
        client = self._client(found["client"])
        config = Config(
            path=self._path,
            **found[""],
            **found["pipeline"],
            **found["proxy"],
            server=ServerCommand(**found["mcpServer"]) if self._section("mcpServer") is not None else None,
            client=client,
            hot_reload=HotReloadSettings(**found["hotReload"]),
            tools=ToolFilter(**found["tools"]),
            inspector=InspectorSettings(**found["inspector"]),
        )
        config = self._checked_url(config)
        self._check_root(config)
        servers = tuple(self._entries(config))
        unclear = None if self._unclear is None or config.names_server else self._issue(self._unclear)
        issues = tuple(self._issue(issue) for issue in sorted(self._issues))  # in the order of the file
        given = frozenset(self._given)
        return config.replace(given=given, issues=issues, unclear=unclear, servers=servers)

    def _entries(self, config: Config) -> Iterator[Config]:
        """The entries of `servers` that declare a server; the others are reported."""
        entries = self._document.get(SERVERS, {})
        if not isinstance(entries, dict):
            self._report((SERVERS,), "it must be an object of servers, by their names")
            return
        for number, (name, entry) in enumerate(entries.items()):
            trail = (SERVERS, name)
            if SERVER_NAME.fullmatch(name) is None:
                self._report(trail, "the name of a server has 1 to 32 letters, digits, '_' and '-'", at_key=True)
            elif name == "main":
                self._report(trail, "'main' is the name of the workspace's own server", at_key=True)
            elif number >= MOST_SERVERS:
                self._report(trail, f"there are more than {MOST_SERVERS} servers", at_key=True)
            elif not isinstance(entry, dict):
                self._report(trail, "it must be an object")
            elif (read := self._entry(trail, entry, config)) is not None:
                yield read

    def _entry(self, trail: Trail, entry: Document, config: Config) -> Config | None:
        self._report_unknown(trail, SERVER_FIELDS, entry)
        before, self._given = self._given, set()
        found = self._values(trail, SERVER_FIELDS, entry)
        given, self._given = self._given, before
        own = set(_OF_SERVER.values())
        server = {name: value for name, value in found[""].items() if name in own}
        rest = {name: value for name, value in found[""].items() if name not in own}
        read = Config(
            path=self._path,
            name=trail[1],
            wait_calls=config.wait_calls,
            **rest,
            **found["pipeline"],
            server=ServerCommand(**server),
            hot_reload=HotReloadSettings(**found["hotReload"], server_name=trail[1]),
            tools=ToolFilter(**found["tools"]),
            given=frozenset(f"mcpServer.{title}" if title in _OF_SERVER else title for title in given),
        )
        if not any(key in entry for key in _ENTRY_NEEDS):
            self._report(trail, "it needs a command, a root or a url, and is left out until it has one")
            return None
        read = self._checked_url(read)
        self._check_root(read)
        # A command or URL that is not valid was reported, and nothing else may be started or asked instead.
        return read if all(key in given for key in _ENTRY_NEEDS if key in entry) else None

    def _values(self, base: Trail, fields: tuple[Field, ...], document: Document) -> dict[str, dict[str, Any]]:
        """The values of these fields by section, in the document at this place of the file."""
        found: dict[str, dict[str, Any]] = {"": {}, **{field.section: {} for field in fields}}
        for field in fields:
            section = document.get(field.section) if field.section else document
            if not isinstance(section, dict) or field.key not in section:
                continue
            if (value := self._value((*base, *field.trail), field, section[field.key])) is not None:
                found[field.section][field.name] = value
                self._given.add(field.title)
        return found

    def _section(self, name: str) -> Document | None:
        """The section of that name; None if the file has no such object."""
        section = self._document.get(name)
        return section if isinstance(section, dict) else None

    def _value(self, trail: Trail, field: Field, given: object) -> Any | None:
        try:
            value = _checked(field, given)
        except ValueError as problem:
            self._report(trail, str(problem))
            return None
        if field.kind is FieldKind.FOLDER:
            value = os.path.normpath(os.path.join(self._folder, value))
            if os.path.isfile(value):
                value, named = os.path.dirname(value), os.path.dirname(str(given)) or "."
                self._report(trail, f'{given} is a file, and its folder is used; write "{named}"')
            elif not os.path.isdir(value):
                self._report(trail, f"there is no folder {value}; paths are relative to {self._folder}")
                return value if field.stays else None
        if field.kind is FieldKind.FILE:
            return self._file_inside(trail, value)
        return value

    def _file_inside(self, trail: Trail, value: str) -> str:
        """The path of a file; one outside of the workspace is reported, and refused where it would be read."""
        from ..system.safe_paths import PathEscape, path_inside  # few configs name a file

        path, workspace = os.path.normpath(os.path.join(self._folder, value)), os.path.dirname(self._folder)
        try:
            path_inside(workspace, path)
        except PathEscape:
            problem = f"{path} is not inside the workspace {workspace}; paths are relative to {self._folder}"
            self._report(trail, problem, remedy="Correct the path; until then the server is not started.")
        return path

    def _client(self, found: Mapping[str, Any]) -> ClientCommand | None:
        section = self._section("client")
        if section is None:
            return None
        if "command" not in section:
            self._report(("client",), "it needs a command, and is left out until it has one")
        return ClientCommand(**found) if "command" in found else None

    def _report_unknown(self, base: Trail, fields: tuple[Field, ...], document: Document, *others: str) -> None:
        sections = tuple(dict.fromkeys(field.section for field in fields if field.section))
        known = {*others, *sections, *(field.key for field in fields if not field.section)}
        self._report_keys(base, known, document)
        for name in sections:
            section = document.get(name, {})
            if not isinstance(section, dict):
                self._report((*base, name), "it must be an object")
            else:
                keys = {field.key for field in fields if field.section == name}
                self._report_keys((*base, name), keys, section)

    def _report_keys(self, trail: Trail, known: set[str], section: Document) -> None:
        for key in section:
            if len(self._issues) >= MOST_ISSUES:
                return  # finding similar names for a hundred thousand unknown keys would take a minute
            if key not in known:
                meant = _meant(key, known)
                elsewhere = [meant] if meant else _settings_like(key) if len(trail) < 2 else []
                hint = f"; did you mean {' or '.join(map(repr, elsewhere))}?" if elsewhere else ""
                self._report((*trail, key), f"there is no such setting{hint}", at_key=True, about=meant)

    def _checked_url(self, config: Config) -> Config:
        """The config without a URL elsewhere, if it also says how the server is started."""
        server, section = config.server, tuple(config.section.split("."))
        if server is None:
            return config
        if server.url is not None and not config.connects_only and not _LOCAL_URL.fullmatch(server.url):
            why = 'it must be a URL of this machine, such as "http://localhost:8000/mcp": the server is started here'
            self._report((*section, "url"), why)
            self._given.discard("mcpServer.url")
            return config.replace(server=server.replace(url=None))
        if server.standby and server.url is not None:
            self._report((*section, "standby"), "a server that listens at a URL cannot run twice")
        if server.headers and server.url is None:
            self._report((*section, "headers"), f"they are sent to {config.section}.url, which is not given")
        return config

    def _check_root(self, config: Config) -> None:
        """Report a root without a server: users often forget that paths are relative to the folder of the config."""
        root = config.server_root
        reload = config.hot_reload
        told = reload.include or reload.watch or (config.server is not None and config.server.command)
        if root is None or not os.path.isdir(root) or told or _is_package(root):
            return
        if config.server is not None and config.server.command is not None:
            return  # a server in any language: how it is started is known
        above = os.path.dirname(self._folder)
        hint = "" if root == above else f", so '..' is {above}"
        problem = f"the folder {root} has no {_NEEDED}; paths are relative to the folder of this file{hint}"
        self._report(("mcpServerRoot",) if config.name is None else (SERVERS, config.name, "root"), problem)

    def _report(
        self, trail: Trail, problem: str, *, at_key: bool = False, about: str | None = None, remedy: str = ""
    ) -> None:
        """Add an issue, up to MOST_ISSUES; `about` is the setting that was probably meant instead of an unknown one."""
        if len(self._issues) < MOST_ISSUES:
            self._places = self._places or JsonPositions(self._text)
            text = f"{'.'.join(trail)[:LONGEST_NAME]}: {problem}"
            issue = self._places.position(trail, at_key=at_key), text, remedy
            self._issues.append(issue)
            if (about or trail[0]) in _NAMING:
                self._unclear = self._unclear or issue

    def _issue(self, issue: _Found) -> Issue:
        (line, column), problem, remedy = issue
        end = "" if problem[-1] == "?" else "."
        return warning("ConfigInvalid", f"{self._path}:{line}:{column}: {problem}{end}", remedy)


def _checked(field: Field, value: object) -> Any:
    """The value in the type of its attribute; raises ValueError, whose message names the expected kind."""
    kind = field.kind
    if kind is FieldKind.SWITCH and isinstance(value, bool):
        return value
    if kind is FieldKind.NUMBER and type(value) is int and field.least <= value <= field.most:
        return value
    if kind is FieldKind.TEXTS and isinstance(value, list) and all(can_be_given(item) for item in value):
        return tuple(value)
    if kind is FieldKind.VARIABLES and isinstance(value, dict) and all(_is_variable(*item) for item in value.items()):
        return tuple(value.items())
    if kind is FieldKind.HEADERS and isinstance(value, dict) and all(_is_header(*item) for item in value.items()):
        return tuple(value.items())
    if kind is FieldKind.BUILD and value is False:
        return ()
    if kind is FieldKind.BUILD and isinstance(value, list) and all(can_be_given(item) for item in value):
        return _command(tuple(value))
    if isinstance(value, str) and can_be_given(value) and value.strip():
        if kind in (FieldKind.TEXT, FieldKind.FOLDER, FieldKind.FILE, FieldKind.PROGRAM):
            return value
        if kind is FieldKind.BUILD:
            return _command(split_command(value, sys.platform))
        if kind is FieldKind.URL:
            return _server_url(value)
        if kind is FieldKind.STRATEGY and value in Strategy._value2member_map_:
            return Strategy(value)
        if kind is FieldKind.PATTERN:
            try:
                re.compile(value)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"it must be {kind.value}: {error}") from error
            return value
    unit = " of milliseconds" if field.name.endswith("_ms") else ""
    bounds = f"{unit} from {field.least} to {field.most}" if kind is FieldKind.NUMBER else ""
    raise ValueError(f"it must be {kind.value}{bounds}")


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0].strip():
        raise ValueError(f"it must be {FieldKind.BUILD.value}, and name a program first")
    return words


def split_command(text: str, platform: str) -> tuple[str, ...]:
    """The words of a command line, with the quotes of a shell; ValueError if it needs a shell.

    On Windows a backslash is a part of a path, elsewhere it quotes the next character.
    """
    import shlex  # few configs have a command line

    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    if platform == "win32":
        lexer.escape = ""
    try:
        words = tuple(lexer)
    except ValueError as error:
        raise ValueError(f"it must be {FieldKind.BUILD.value}: {str(error).lower()}") from error
    operator = next((word for word in words if word and not word.strip("();<>|&")), None)
    if operator is not None:
        raise ValueError(
            f"it has '{operator}', but no shell is involved: put the commands into a script, and name that"
        )
    return words


def _server_url(url: str) -> str:
    found = _URL.fullmatch(url)
    if found is None or not 0 < int(found["port"] or 80) <= HIGHEST_PORT:
        raise ValueError(f'it must be {FieldKind.URL.value}, such as "http://localhost:8000/mcp"')
    return url


def can_be_given(value: object) -> bool:
    """Whether this can be an argument of a program: a text without NUL characters and lone surrogates."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _is_variable(name: str, value: object) -> bool:
    return bool(name) and "=" not in name and can_be_given(name) and can_be_given(value)


def _is_header(name: str, value: object) -> bool:
    return _HEADER.fullmatch(name) is not None and can_be_given(value)


def _meant(key: str, known: set[str]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(key.lower(), {name.lower(): name for name in known}, 1)
    return next(name for name in known if name.lower() == close[0]) if close else None


def _settings_like(key: str) -> list[str]:
    """The settings of all sections that have this name, else those whose names contain it."""
    names = {field.title: field.key.lower() for field in FIELDS if field.section}
    same = [title for title, name in names.items() if name == key.lower()]
    return same or [title for title, name in names.items() if len(key) > 3 and key.lower() in name]


def _is_package(folder: str) -> bool:
    return any(name in _PACKAGES or name.endswith(_CODE) for name in names_in(folder))
