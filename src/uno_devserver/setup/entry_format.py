"""Converts between the settings of an entry, in its client's dialect, and an `EntrySpec`.

Reading is lenient: a command may be a string or a list, an address may have any of the names that clients use, and a
value of an unexpected type is ignored. Reading never raises.
"""

from __future__ import annotations

from .profiles import HTTP, STDIO
from .server_definition import EntrySpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .edits.document import ServerEntry
    from .entry_match import Match
    from .profiles import Dialect
    from .server_definition import ServerDefinition

UNKNOWN = "unknown"  # the transport of an entry that has neither a command nor an address

_NAME = "{name}"  # a value in the extra settings of a dialect that stands for the server's name

# Names that clients use for the same setting; the dialect's own name comes first.
_COMMAND_KEYS = ("command", "cmd")
_ARGS_KEYS = ("args",)
ENV_KEYS = ("env", "environment", "envs")
_URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")
# Further settings of one transport that would confuse a client in an entry of the other transport.
_ENV_FILE_KEYS = ("envFile", "env_file")
_FOLDER_KEYS = ("cwd", "working_directory", "workingDirectory")
_DEBUG_KEYS = ("dev",)  # VS Code: a debugger that starts the server
_ONLY_STDIO = (*_ENV_FILE_KEYS, *_FOLDER_KEYS, *_DEBUG_KEYS)
# Programs that a client runs for an entry, and questions that it then leaves out; lower case, as some ignore the case.
_DECIDING_KEYS = frozenset(
    (*(key.lower() for key in _ONLY_STDIO), "headershelper", "headers_helper", "runtimeexecutable", "shell", "trust")
)
# Tools that run without a question. Clients write these when the user says so, so they stay, and are told.
APPROVAL_KEYS = ("alwaysAllow", "autoApprove")
_ONLY_HTTP = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var", "transport")


def spec_of(entry: ServerEntry, dialect: Dialect) -> EntrySpec:
    """Read an entry, even if it is not written in the client's dialect."""
    settings = entry.settings
    if settings is None:
        return EntrySpec()
    nested = settings.get("transport")  # Cline: {"transport": {"type": ..., "command": ...}}
    if isinstance(nested, dict):
        settings = {**settings, **nested}
    command = _first(settings, (dialect.command_key, *_COMMAND_KEYS), (str, list, dict))
    args = _strings(_first(settings, (dialect.args_key, *_ARGS_KEYS), (list,)))
    env = _first(settings, (dialect.env_key, *ENV_KEYS), (dict,))
    if isinstance(command, dict):  # Zed, earlier: {"command": {"path": ..., "args": [...]}}
        args = _strings(command.get("args"))
        command = command.get("path")
    words = [*_strings(command), *args] if isinstance(command, list) else [command, *args]
    program = words[0] if words and isinstance(words[0], str) else ""
    url = _first(settings, (dialect.url_key, *_URL_KEYS), (str,))
    return EntrySpec(
        program,
        tuple(_strings(words[1:])) if program else (),
        {key: value for key, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {},
        url if isinstance(url, str) else "",
    )


def transport_of(definition: EntrySpec) -> str:
    if definition.command:
        return STDIO
    return HTTP if definition.url else UNKNOWN


def launch_settings(entry: ServerEntry, dialect: Dialect) -> dict[str, object]:
    """The settings, besides command and arguments, that decide what an entry runs or whether its client asks."""
    settings = entry.settings or {}
    nested = settings.get("transport")
    every = {**settings, **nested} if isinstance(nested, dict) else settings
    keys = (dialect.env_key, *ENV_KEYS, dialect.url_key, *_URL_KEYS)
    return {key: value for key, value in every.items() if value and (key in keys or is_deciding(key))}


def is_deciding(key: str) -> bool:
    """Whether a setting, by itself, makes a client run a program for the entry, or leave out a question."""
    return key.lower() in _DECIDING_KEYS


# Variables, by their beginnings, that agree in the user's name, say where the user's agreements are, decide from where
# programs and their code are loaded, or make a program that we run write a file. Others stay, such as DOTNET_ROOT,
# which teams share.
_DECIDING_VARIABLES = (
    *("UNO_DEVSERVER_", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_"),
    *("PATH", "LD_", "DYLD_", "PYTHON", "UV_", "PIP_", "PIPX_", "NODE_", "NPM_CONFIG_", "NUGET_"),
    *("BASH_", "BROWSER", "COMSPEC", "GIT_", "OPENSSL_", "SSL_"),
    *("DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE", "CORECLR_", "COR_", "MSBUILD"),
)


def decides(variable: str) -> bool:
    """Whether a variable of an entry decides what runs, so that a file of a workspace must not set it."""
    return variable.upper().startswith(_DECIDING_VARIABLES)  # Windows ignores the case


def environments(entry: ServerEntry, dialect: Dialect) -> dict[str, object]:
    """The variables that an entry sets under any name that clients use for them, with values of any type."""
    its = launch_settings(entry, dialect)
    found = [value for key in (*ENV_KEYS, dialect.env_key) if isinstance(value := its.get(key), dict)]
    return {str(name): value for one in found for name, value in one.items()}


def is_disabled(entry: ServerEntry) -> bool:
    """Whether the entry is switched off, in one of the two ways that clients use."""
    settings = entry.settings or {}
    return settings.get("disabled") is True or settings.get("enabled") is False


def settings_for(
    definition: EntrySpec, server: ServerDefinition, dialect: Dialect, was: Match | None = None, *, keeps: bool = True
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The settings for a new entry, or for the entry that `was` there, and the names of those to remove from it.

    Settings of the user stay, except those that belong to the old transport, and, unless the entry `keeps` them, those
    that decide what runs.
    """
    transport = server.transport
    settings: dict[str, object] = {"type": dialect.types[transport]} if transport in dialect.types else {}
    if transport == HTTP:
        settings[dialect.url_key] = definition.url
        drop = [*_URL_KEYS, dialect.command_key, *_COMMAND_KEYS, dialect.args_key, *_ARGS_KEYS]
        drop += [dialect.env_key, *ENV_KEYS, *_ONLY_STDIO] if _changes_transport(was, server) else []
    else:
        settings |= _stdio_settings(definition, dialect, was, keeps)
        drop = [dialect.url_key, *_URL_KEYS, *((dialect.args_key, *_ARGS_KEYS) if dialect.one_array else ())]
        drop += _ONLY_HTTP if _changes_transport(was, server) else []
        drop += [] if keeps or was is None else _deciding_environments(was.entry, dialect)
    drop += [] if keeps or was is None else filter(is_deciding, was.entry.settings or {})
    if was is None:
        extra = dialect.extra.get(transport, {})
        settings |= {key: server.name if value == _NAME else value for key, value in extra.items()}
    elif _changes_transport(was, server):
        drop.append("type")
    if was is not None and isinstance((was.entry.settings or {}).get("transport"), dict):
        drop.append("transport")  # Cline's nested form would contradict ours
    return settings, tuple(dict.fromkeys(key for key in drop if key not in settings))


def _first(settings: Mapping[str, object], keys: Iterable[str], kinds: tuple[type, ...]) -> object:
    """The first of these settings that has one of the types and is not empty."""
    return next((value for key in keys if isinstance(value := settings.get(key), kinds) and value), None)


def _strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _deciding_environments(entry: ServerEntry, dialect: Dialect) -> list[str]:
    """The names of settings with variables that decide what runs, or in a form that is not known."""
    settings = entry.settings or {}
    found = {key: settings[key] for key in (dialect.env_key, *ENV_KEYS) if settings.get(key)}
    return [key for key, value in found.items() if not isinstance(value, dict) or any(map(decides, value))]


def _stdio_settings(definition: EntrySpec, dialect: Dialect, was: Match | None, keeps: bool) -> dict[str, object]:
    settings: dict[str, object] = {}
    if dialect.one_array:
        settings[dialect.command_key] = [definition.command, *definition.args]
    else:
        settings[dialect.command_key] = definition.command
        settings[dialect.args_key] = list(definition.args)
    mine = ((was.entry.settings or {}) if was is not None else {}).get(dialect.env_key)
    mine = mine if isinstance(mine, dict) else {}
    kept = {name: value for name, value in mine.items() if keeps or not decides(name)}
    if definition.env or (kept and kept != mine):
        settings[dialect.env_key] = {**kept, **definition.env}
    return settings


def _changes_transport(was: Match | None, server: ServerDefinition) -> bool:
    return was is not None and was.transport != server.transport
