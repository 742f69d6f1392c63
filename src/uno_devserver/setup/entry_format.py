"""Converts between the settings of an entry, in its client's dialect, and an `EntrySpec`.

Reading is lenient: a command may be a string or a list, an address may have any of the names that clients use, and a
value of an unexpected type is ignored. Reading never raises.
"""

from __future__ import annotations

from .profiles import HTTP, STDIO
from .servers import EntrySpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .edits.document import ServerEntry
    from .entry_match import Match
    from .profiles import Dialect
    from .servers import ServerDefinition

UNKNOWN = "unknown"  # the transport of an entry that has neither a command nor an address

_NAME = "{name}"  # a value in the extra settings of a dialect that stands for the server's name

# Names that clients use for the same setting; the dialect's own name comes first.
_COMMAND_KEYS = ("command", "cmd")
_ARGS_KEYS = ("args",)
_ENV_KEYS = ("env", "environment", "envs")
_URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")
# Further settings of one transport that would confuse a client in an entry of the other transport.
_ONLY_STDIO = ("envFile", "env_file", "cwd", "working_directory")
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
    env = _first(settings, (dialect.env_key, *_ENV_KEYS), (dict,))
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


def is_disabled(entry: ServerEntry) -> bool:
    """Whether the entry is switched off, in one of the two ways that clients use."""
    settings = entry.settings or {}
    return settings.get("disabled") is True or settings.get("enabled") is False


def settings_for(
    definition: EntrySpec, server: ServerDefinition, dialect: Dialect, was: Match | None = None
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The settings for a new entry, or for the entry that `was` there, and the names of those to remove from it.

    Settings of the user stay, except those that belong to the old transport.
    """
    transport = server.transport
    settings: dict[str, object] = {"type": dialect.types[transport]} if transport in dialect.types else {}
    if transport == HTTP:
        settings[dialect.url_key] = definition.url
        drop = [*_URL_KEYS, dialect.command_key, *_COMMAND_KEYS, dialect.args_key, *_ARGS_KEYS]
        drop += [dialect.env_key, *_ENV_KEYS, *_ONLY_STDIO] if _changes_transport(was, server) else []
    else:
        settings |= _stdio_settings(definition, dialect, was)
        drop = [dialect.url_key, *_URL_KEYS, *((dialect.args_key, *_ARGS_KEYS) if dialect.one_array else ())]
        drop += _ONLY_HTTP if _changes_transport(was, server) else []
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


def _stdio_settings(definition: EntrySpec, dialect: Dialect, was: Match | None) -> dict[str, object]:
    settings: dict[str, object] = {}
    if dialect.one_array:
        settings[dialect.command_key] = [definition.command, *definition.args]
    else:
        settings[dialect.command_key] = definition.command
        settings[dialect.args_key] = list(definition.args)
    if definition.env:
        mine = ((was.entry.settings or {}) if was is not None else {}).get(dialect.env_key)
        settings[dialect.env_key] = {**(mine if isinstance(mine, dict) else {}), **definition.env}
    return settings


def _changes_transport(was: Match | None, server: ServerDefinition) -> bool:
    return was is not None and was.transport != server.transport
