"""The Host's flags, from the environment and the command line, which takes precedence. Keys ignore case.

The forms are those of .NET's configuration (`--key value`, `--key=value`, `/key value`, `key=value`, `-c verb`),
because launchers use them. Unlike in .NET, a wrong value is an error that names it, and a flag without its value
does not take the next flag as the value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from ..issues import UserError
from ..system.log import LEVELS, level_named, log
from ..system.values import Value

ENVIRONMENT_PREFIX = "UNO_DEVSERVER_"
MAX_PORT = 65_535
MAX_DIGITS = 20  # int() raises for thousands of digits
USAGE_WIDTH = 80
VERBS = ("start", "stop", "list", "cleanup")


class Flag(Value):
    """A flag of the Host itself; other flags are kept for add-ins."""

    name: str
    value: str | None  # the placeholder in the help; None for a switch, which takes an optional true or false
    help: str


FLAGS = (
    Flag("httpPort", "<port>", "Port to listen on; 0 picks a free one (required for a server)"),
    Flag("bind", "<address>", "Address to listen on (default: loopback, IPv4 and IPv6)"),
    Flag("solution", "<path>", "The solution that is served"),
    Flag("workingDir", "<path>", "The folder of the workspace (default: the solution's)"),
    Flag("addins", "<paths>", "Add-ins to load, separated by ';'; empty: none; absent: MSBuild is asked"),
    Flag("force-msbuild-discovery", None, "Ask MSBuild for the add-ins, whatever --addins says"),
    Flag("ppid", "<pid>", "End when this process ends"),
    Flag("ideChannel", "<id>", "Named pipe on which an IDE will talk to this Host"),
    Flag("metadata-updates", None, "Kept for processors: whether an app wants metadata updates"),
    Flag("command", "<verb>", "start, stop, list or cleanup, instead of being a server (also: -c)"),
    Flag("timeoutMs", "<ms>", "How long --command start waits (default: 30000)"),
    Flag("log-level", "<level>", "Trace, Debug, Information (default), Warning, Error, Critical or None"),
)
_TEXT = frozenset(flag.name.lower() for flag in FLAGS if flag.value)
_SWITCHES = frozenset(flag.name.lower() for flag in FLAGS if not flag.value)
_SHORT = {"c": "command"}


class HostFlags(Value):
    """The checked flags."""

    port: int | None  # 0 means any free port; None if not given
    parent: int  # the process id of the parent; 0 if there is none
    verb: str | None  # the controller command; None for a server
    solution: str | None
    working_directory: str | None
    addins: str | None  # None if not given, so that MSBuild is asked; empty for no add-ins
    ide_channel: str | None
    bind: str | None
    force_msbuild: bool
    log_level: int | None
    settings: Mapping[str, str]  # all flags, by lower-case key
    given: Mapping[str, str]  # the flags of the command line alone

    @property
    def workspace(self) -> str | None:
        """The folder whose files this Host may edit; None if no flag names one."""
        if self.working_directory:
            return self.working_directory
        return os.path.dirname(self.solution) if self.solution else None


def read_flags(arguments: Sequence[str], environ: Mapping[str, str]) -> HostFlags:
    """Read and check the flags; raises UserError, which names the wrong flag."""
    given = _from_arguments(arguments)
    settings = {**_from_environment(environ), **given}
    verb = _text(settings, "command")
    if verb is not None and verb.lower() not in VERBS:
        raise _wrong("command", verb, f"use one of {', '.join(VERBS)}")
    return HostFlags(
        _number(settings, "httpPort", 0, MAX_PORT),
        _number(settings, "ppid", 0, 2**31 - 1) or 0,
        verb.lower() if verb else None,
        _existing(settings, "solution", os.path.isfile),
        _existing(settings, "workingDir", os.path.isdir),
        settings.get("addins"),
        _text(settings, "ideChannel"),
        _text(settings, "bind"),
        _switch(settings, "force-msbuild-discovery"),
        _level(settings, "log-level"),
        settings,
        given,
    )


def usage() -> str:
    from textwrap import wrap

    left = [f"--{flag.name} {flag.value or ''}".rstrip() for flag in FLAGS]
    column = max(len(text) for text in left) + 4
    lines = []
    for text, flag in zip(left, FLAGS, strict=True):
        first, *more = wrap(flag.help, USAGE_WIDTH - column)
        lines += [f"  {text}".ljust(column) + first, *(" " * column + line for line in more)]
    about = f"Flags may also come from the environment, as {ENVIRONMENT_PREFIX}<flag>. Others are kept for add-ins."
    return "\n".join(("Usage: uno-devserver host --httpPort <port> [flags]", "", *wrap(about, USAGE_WIDTH), "", *lines))


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    cut = len(ENVIRONMENT_PREFIX)
    return {name[cut:].lower(): value for name, value in environ.items() if name[:cut].upper() == ENVIRONMENT_PREFIX}


def _from_arguments(arguments: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        token = rest.pop(0)
        key, equals, value = _key(token)
        if not key:
            log.warn(f"Ignoring '{token}': flags of the Host start with '--'.")
            continue
        found[key] = value if equals else _following(key, rest)
    return found


def _key(token: str) -> tuple[str, bool, str]:
    name, equals, value = token.partition("=")
    if name.startswith("--"):
        key = name[2:]
    elif name.startswith("-"):
        key = _SHORT.get(name[1:].lower(), "")
    elif "/" in name[1:]:  # a path, not a flag
        key = ""
    elif name.startswith("/"):
        key = name[1:]
    else:
        key = name if equals else ""
    return key.lower(), bool(equals), value


def _following(key: str, rest: list[str]) -> str:
    """The value of a flag, removed from `rest`; if none follows, a default, or UserError if the flag needs one."""
    following = rest[0] if rest else None
    missing = following is None or (following.startswith("--") and len(following) > 2)
    if key in _SWITCHES:
        return rest.pop(0) if following is not None and following.lower() in ("true", "false") else "true"
    if not missing:
        return rest.pop(0)
    if key == "addins":
        return ""  # an empty value is lost when a launcher joins its arguments
    if key in _TEXT:
        flag = next(flag for flag in FLAGS if flag.name.lower() == key)
        raise UserError("MissingValue", f"The value of --{flag.name} is missing.", f"Write --{flag.name} {flag.value}.")
    return "true"


def _text(settings: Mapping[str, str], key: str) -> str | None:
    return settings.get(key.lower(), "").strip() or None


def _number(settings: Mapping[str, str], key: str, least: int, most: int) -> int | None:
    text = _text(settings, key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and least <= int(text) <= most):
        raise _wrong(key, text, f"use a whole number from {least} to {most}")
    return int(text)


def _existing(settings: Mapping[str, str], key: str, exists: Callable[[str], bool]) -> str | None:
    text = _text(settings, key)
    if text is None:
        return None
    if not exists(text):
        raise _wrong(key, text, "it does not exist; use a path that does")
    return os.path.abspath(text)


def _switch(settings: Mapping[str, str], key: str) -> bool:
    text = (_text(settings, key) or "false").lower()
    if text not in ("true", "false"):
        raise _wrong(key, text, "use true or false")
    return text == "true"


def _level(settings: Mapping[str, str], key: str) -> int | None:
    text = _text(settings, key)
    level = level_named(text) if text else None
    if text and level is None:
        raise _wrong(key, text, f"use one of {', '.join(LEVELS)}")
    return level


def _wrong(key: str, value: str, advice: str) -> UserError:
    return UserError(
        "BadValue", f"The value '{value}' of --{key} cannot be used.", advice[0].upper() + advice[1:] + "."
    )
