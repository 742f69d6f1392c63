"""`.devtools/host.config.jsonc`: what a workspace says about its server.

Reading never raises. What is wrong is an issue that names the place in the file, and the default counts there. Cheap to
import: it stands before the start of the server.
"""

from __future__ import annotations

import os
import re
from enum import Enum

from ..issues import Issue, warning
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonPositions, JsonProblem, parse
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Document = Mapping[str, Any]
    Trail = tuple[str, ...]  # the names that lead to a place in the file

MAX_BYTES = 1024 * 1024  # a page in real life
LONGEST_DELAY_MS = 600_000  # somebody who wants to wait for ten minutes meant seconds
LONGEST_STATUS_MS = 3_600_000
MOST_CALLS = 1024
HIGHEST_PORT = 65_535
MOST_ISSUES = 20  # who has that many has given us another file
LONGEST_NAME = 100  # of an unknown setting, where it is quoted
SCHEMA = "$schema"  # for editors; nothing of it is read

# What helps a file that cannot be read: where nobody has read it before, and where a proxy has.
MAKE_READABLE = "Correct the file (comments and trailing commas are allowed); until then the defaults count."
AS_BEFORE = "Correct the file (comments and trailing commas are allowed); until then what was read before counts."


class Strategy(Enum):
    """How new code takes the place of old."""

    RESTART = "restart"  # calls are told to come again; the old server is stopped, then the new one started
    SWAP = "swap"  # calls wait; the new server is started beside the old one, and takes over when it answers


class ServerCommand(Value):
    """How the MCP server is started, as far as the config says so itself."""

    command: str | None = None  # None: what the package in its root names
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # in addition to ours
    cwd: str | None = None  # absolute; None: the server's root


class ClientCommand(Value):
    """A process that uses the extension, and is started again when that was rebuilt."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None  # absolute; None: clientWorkspace, else the extension's folder
    ready_pattern: str | None = None  # a regular expression: a line that it prints when it is ready


class HotReloadSettings(Value):
    enabled: bool = True
    server_name: str | None = None  # what the MCP server is called in sentences
    restart_delay_ms: int = 0  # between stopping and starting
    status_timeout_ms: int = 60_000  # how long mcpStatus waits
    strategy: Strategy = Strategy.RESTART
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class InspectorSettings(Value):
    enabled: bool = False  # whether proxies of the workspace open it, if the user trusts that
    port: int | None = None  # 0: any; None: the usual one


class Config(Value):
    """All paths are absolute."""

    path: str | None = None  # None: there is none
    readable: bool = True  # False: what it says is not known, and all of this are defaults
    wait_calls: bool = False  # hold calls until the upstream is ready, instead of answering that it is not
    concurrency: int | None = None  # pipeline.concurrency: how many calls may run at once; None: not said
    client_workspace: str | None = None
    extension_path: str | None = None
    server_root: str | None = None  # mcpServerRoot
    server: ServerCommand | None = None  # mcpServer
    client: ClientCommand | None = None
    hot_reload: HotReloadSettings = HotReloadSettings()
    inspector: InspectorSettings = InspectorSettings()
    unclear: Issue | None = None  # why it is not known whether it names a server
    given: frozenset[str] = frozenset()  # the fields that the file gives, and that count
    issues: tuple[Issue, ...] = ()

    @property
    def names_server(self) -> bool:
        """Whether the config declares an MCP server, so that this is behind the proxy and not a Host."""
        return self.server is not None or self.server_root is not None

    @property
    def server_folder(self) -> str | None:
        """Where the code of that server lies; None where none is declared."""
        if self.path is None or not self.names_server:
            return None
        return self.server_root or (self.server and self.server.cwd) or os.path.dirname(os.path.dirname(self.path))

    @property
    def client_folder(self) -> str | None:
        """Where the client runs; None where none is declared."""
        if self.path is None or self.client is None:
            return None
        own = self.client.cwd or self.client_workspace or self.extension_path
        return own or os.path.dirname(os.path.dirname(self.path))


class FieldKind(Enum):
    """What a field may hold; the sentence goes on behind "must be"."""

    SWITCH = "true or false"
    NUMBER = "a whole number"
    TEXT = "a text"
    TEXTS = "a list of texts"
    VARIABLES = "an object of texts"
    FOLDER = "a folder"
    PROGRAM = "the name or path of a program"
    PATTERN = "a regular expression"
    STRATEGY = '"restart" or "swap"'


class Field(Value):
    section: str  # empty: it stands at the top
    key: str
    name: str  # in the class of the section
    kind: FieldKind
    least: int = 0
    most: int = 0
    stays: bool = False  # a folder that is missing is not replaced by the default: nothing else may run instead

    @property
    def trail(self) -> Trail:
        return (self.section, self.key) if self.section else (self.key,)

    @property
    def title(self) -> str:
        return ".".join(self.trail)


# All that is read of the file.
FIELDS = (
    Field("", "clientWorkspace", "client_workspace", FieldKind.FOLDER),
    Field("", "extensionPath", "extension_path", FieldKind.FOLDER),
    Field("", "mcpServerRoot", "server_root", FieldKind.FOLDER, stays=True),
    Field("mcpServer", "command", "command", FieldKind.PROGRAM),
    Field("mcpServer", "args", "args", FieldKind.TEXTS),
    Field("mcpServer", "env", "env", FieldKind.VARIABLES),
    Field("mcpServer", "cwd", "cwd", FieldKind.FOLDER, stays=True),
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
    Field("pipeline", "concurrency", "concurrency", FieldKind.NUMBER, 1, MOST_CALLS),
    Field("proxy", "waitCalls", "wait_calls", FieldKind.SWITCH),
    Field("inspector", "enabled", "enabled", FieldKind.SWITCH),
    Field("inspector", "port", "port", FieldKind.NUMBER, 0, HIGHEST_PORT),
)
SECTIONS = tuple(dict.fromkeys(field.section for field in FIELDS if field.section))

_NAMING = ("mcpServer", "mcpServerRoot")  # what makes a server the one behind the proxy
# What makes a folder that of a server; without one of these there is neither a command to find nor code to watch.
_PACKAGES = ("package.json", "pyproject.toml")
_CODE = (".csproj", ".fsproj", ".py")
_NEEDED = "package.json, pyproject.toml, .csproj or Python file"


def read_config(path: str | None) -> Config:
    """The config in this file; the defaults where there is none."""
    if path is None:
        return Config()
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
    """One file, field by field."""

    def __init__(self, path: str, text: bytes, document: Document) -> None:
        self._path = path
        self._text = text
        self._places: JsonPositions | None = None  # most files have nothing to complain about
        self._document = document
        self._folder = os.path.dirname(os.path.abspath(path))
        self._given: set[str] = set()
        self._issues: list[tuple[tuple[int, int], str]] = []  # where, and what
        self._unclear: tuple[tuple[int, int], str] | None = None  # the first of them that is about naming a server

    def config(self) -> Config:
        self._look_for_strangers()
        found: dict[str, dict[str, Any]] = {"": {}, **{section: {} for section in SECTIONS}}
        for field in FIELDS:
            if (value := self._value(field)) is not None:
                found[field.section][field.name] = value
                self._given.add(field.title)
        client = self._client(found["client"])
        config = Config(
            path=self._path,
            **found[""],
            **found["pipeline"],
            **found["proxy"],
            server=ServerCommand(**found["mcpServer"]) if self._section("mcpServer") is not None else None,
            client=client,
            hot_reload=HotReloadSettings(**found["hotReload"]),
            inspector=InspectorSettings(**found["inspector"]),
        )
        self._look_at_root(config)
        unclear = None if self._unclear is None or config.names_server else self._told(self._unclear)
        issues = tuple(self._told(issue) for issue in sorted(self._issues))  # in the order of the file
        return config.replace(given=frozenset(self._given), issues=issues, unclear=unclear)

    def _section(self, name: str) -> Document | None:
        """None where the file has none, or something else in its place."""
        section = self._document if not name else self._document.get(name)
        return section if isinstance(section, dict) else None

    def _value(self, field: Field) -> Any | None:
        section = self._section(field.section)
        if section is None or field.key not in section:
            return None
        try:
            value = _checked(field, section[field.key])
        except ValueError as problem:
            self._complain(field.trail, str(problem))
            return None
        if field.kind is FieldKind.FOLDER:
            value = os.path.normpath(os.path.join(self._folder, value))
            if not os.path.isdir(value):
                self._complain(field.trail, f"there is no folder {value}; paths are relative to {self._folder}")
                return value if field.stays else None
        return value

    def _client(self, found: Mapping[str, Any]) -> ClientCommand | None:
        section = self._section("client")
        if section is None:
            return None
        if "command" not in section:
            self._complain(("client",), "it needs a command, and is left out until it has one")
        return ClientCommand(**found) if "command" in found else None

    def _look_for_strangers(self) -> None:
        known = {SCHEMA, *SECTIONS, *(field.key for field in FIELDS if not field.section)}
        self._unknown((), known, self._document)
        for name in SECTIONS:
            if name in self._document and self._section(name) is None:
                self._complain((name,), "it must be an object")
            else:
                keys = {field.key for field in FIELDS if field.section == name}
                self._unknown((name,), keys, self._section(name) or {})

    def _unknown(self, trail: Trail, known: set[str], section: Document) -> None:
        for key in section:
            if len(self._issues) >= MOST_ISSUES:
                return  # what may be meant by each of a hundred thousand would take a minute
            if key not in known:
                meant = _meant(key, known)
                hint = f"; did you mean '{meant}'?" if meant else ""
                self._complain((*trail, key), f"there is no such setting{hint}", at_key=True, about=meant)

    def _look_at_root(self, config: Config) -> None:
        """A root that is not the server's is the usual mistake: the config does not lie beside what it tells of."""
        root = config.server_root
        if root is None or not os.path.isdir(root) or config.hot_reload.include or _is_package(root):
            return
        above = os.path.dirname(self._folder)
        hint = "" if root == above else f", so '..' is {above}"
        problem = f"the folder {root} has no {_NEEDED}; paths are relative to the folder of this file{hint}"
        self._complain(("mcpServerRoot",), problem)

    def _complain(self, trail: Trail, problem: str, *, at_key: bool = False, about: str | None = None) -> None:
        """`about`: the setting that is meant; None: the one that the trail leads to."""
        if len(self._issues) < MOST_ISSUES:
            self._places = self._places or JsonPositions(self._text)
            issue = self._places.position(trail, at_key=at_key), f"{'.'.join(trail)[:LONGEST_NAME]}: {problem}"
            self._issues.append(issue)
            if (about or trail[0]) in _NAMING:
                self._unclear = self._unclear or issue

    def _told(self, issue: tuple[tuple[int, int], str]) -> Issue:
        (line, column), problem = issue
        return warning("ConfigInvalid", f"{self._path}:{line}:{column}: {problem}{'' if problem[-1] == '?' else '.'}")


def _checked(field: Field, value: object) -> Any:
    """The value as the classes above have it; ValueError says what it must be."""
    kind = field.kind
    if kind is FieldKind.SWITCH and isinstance(value, bool):
        return value
    if kind is FieldKind.NUMBER and type(value) is int and field.least <= value <= field.most:
        return value
    if kind is FieldKind.TEXTS and isinstance(value, list) and all(can_be_given(item) for item in value):
        return tuple(value)
    if kind is FieldKind.VARIABLES and isinstance(value, dict) and all(_is_variable(*item) for item in value.items()):
        return tuple(value.items())
    if isinstance(value, str) and can_be_given(value) and value.strip():
        if kind in (FieldKind.TEXT, FieldKind.FOLDER, FieldKind.PROGRAM):
            return value
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


def can_be_given(value: object) -> bool:
    """Whether a program can be given it; the system knows no text with a null in it, or with half a surrogate pair."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _is_variable(name: str, value: object) -> bool:
    return bool(name) and "=" not in name and can_be_given(name) and can_be_given(value)


def _meant(key: str, known: set[str]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(key.lower(), {name.lower(): name for name in known}, 1)
    return next(name for name in known if name.lower() == close[0]) if close else None


def _is_package(folder: str) -> bool:
    return any(name in _PACKAGES or name.endswith(_CODE) for name in _names(folder))


def _names(folder: str) -> Iterator[str]:
    try:
        yield from os.listdir(folder)
    except OSError:
        return
