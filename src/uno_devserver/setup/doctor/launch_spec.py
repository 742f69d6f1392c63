"""How a client would start or reach a server: command, folder, environment.

A graphical client is started by the desktop instead of a shell, so it has neither the shell's PATH nor its variables.
Its servers have even fewer variables, because the official SDKs pass on only a few of them.
"""

from __future__ import annotations

import os
import re

from ...system.values import Value
from ..entry_format import spec_of
from ..profiles import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..edits.document import ServerEntry
    from ..paths import Here
    from ..profiles import Place, Profile

# The PATH that a desktop gives to its programs. Windows has the same PATH for all programs.
BARE_PATHS = {
    "linux": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "darwin": "/usr/bin:/bin:/usr/sbin:/sbin",
}
PASSED_ON = ("HOME", "LOGNAME", "SHELL", "TERM", "USER", "LANG", "TMPDIR")
PASSED_ON_WINDOWS = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
)
# A limit above this is in milliseconds, because no client waits for a quarter of an hour.
MOST_SECONDS = 900

_HEADER_KEYS = ("headers", "http_headers")
_VARIABLE = re.compile(r"\$\{(?:(?P<kind>env|input|config|command):)?(?P<name>[\w.]+)(?::-(?P<otherwise>[^}]*))?\}")


class LaunchSpec(Value):
    """How to start or reach a server. `command` is empty for a server with an address, `url` for one with a command."""

    command: tuple[str, ...]
    folder: str
    environ: Mapping[str, str]
    url: str
    headers: Mapping[str, str]
    limit_seconds: float | None  # how long the client waits; None if unknown
    unset: tuple[str, ...]  # the variables that the entry uses, but that are not set


def launch_spec_of(entry: ServerEntry, place: Place, profile: Profile, here: Here) -> LaunchSpec:
    says = spec_of(entry, place.dialect)
    settings = entry.settings or {}
    words = _Words(here)
    command = tuple(words.expanded(word) for word in (says.command, *says.args)) if says.command else ()
    added = {name: words.expanded(value) for name, value in says.env.items()}
    return LaunchSpec(
        command,
        _folder(settings, place.scope, profile, here, words),
        {**_environ(profile, here), **added},
        "" if says.command else words.expanded(says.url),
        {} if says.command else _headers(settings, words),
        limit_of(settings, profile),
        tuple(dict.fromkeys(words.unset)),
    )


def limit_of(settings: Mapping[str, object], profile: Profile) -> float | None:
    """The entry's own limit, or else the client's limit, in seconds; None if it is unknown."""
    for key in ("startup_timeout_sec", "startupTimeoutMs", "timeout"):
        value = settings.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return value / 1000 if key.endswith("Ms") or value > MOST_SECONDS else float(value)
    return profile.connect_seconds


def bare_environment(environ: Mapping[str, str], platform: str) -> dict[str, str]:
    """The part of an environment that the server of a graphical client gets."""
    if platform == "win32":
        return {name: value for name, value in environ.items() if name.upper() in PASSED_ON_WINDOWS}
    kept = {name: environ[name] for name in PASSED_ON if name in environ}
    return {**kept, "PATH": BARE_PATHS.get(platform, BARE_PATHS["linux"])}


def _environ(profile: Profile, here: Here) -> dict[str, str]:
    return dict(here.environ) if profile.in_terminal else bare_environment(here.environ, here.platform)


def _folder(settings: Mapping[str, object], scope: Scope, profile: Profile, here: Here, words: _Words) -> str:
    usual = here.home if profile.starts_in.get(scope, Scope.WORKSPACE) is Scope.USER else here.workspace
    named = settings.get("cwd") or settings.get("working_directory")  # the latter is Warp's
    if not isinstance(named, str) or not named:
        return usual
    rules = here.path_rules
    return str(rules.normpath(rules.join(usual, words.expanded(named))))


def _headers(settings: Mapping[str, object], words: _Words) -> dict[str, str]:
    found = next((value for key in _HEADER_KEYS if isinstance(value := settings.get(key), dict)), {})
    headers = {name: words.expanded(value) for name, value in found.items() if isinstance(value, str)}
    token = settings.get("bearer_token_env_var") or settings.get("bearerTokenEnvVar")  # Codex, and Kimi Code
    if isinstance(token, str):
        headers["Authorization"] = words.expanded(f"Bearer ${{{token}}}")
    return headers


class _Words:
    """Expands variables as clients do: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, and names of editors."""

    def __init__(self, here: Here) -> None:
        self._environ = here.environ
        self._known = {
            "workspaceFolder": here.workspace,
            "workspaceFolderBasename": os.path.basename(here.workspace),
            "workspaceRoot": here.workspace,
            "userHome": here.home,
        }
        self.unset: list[str] = []

    def expanded(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        kind, name, otherwise = found["kind"], found["name"], found["otherwise"]
        if kind is None and name in self._known:
            return self._known[name]
        value = self._environ.get(name) if kind in (None, "env") else None
        if value is not None:
            return value
        if otherwise is not None:
            return otherwise
        self.unset.append(found[0])
        return found[0]
