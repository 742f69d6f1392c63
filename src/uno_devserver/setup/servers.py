"""The MCP servers to register: how each is started, and how an entry for it is recognised.

These records are made from data (`server-definitions.json`, or a user's file).
"""

from __future__ import annotations

import re

from .. import __version__
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STABLE, PRERELEASE, PINNED = "stable", "prerelease", "pinned"
LEGACY_HTTP = "legacy-http"
_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


class EntrySpec(Value):
    """How a server is started or reached, independent of dialects: `command` and `args`, or `url`."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""


class Detection(Value):
    """Regular expressions, which ignore case, to recognise the entries of a server."""

    keys: tuple[str, ...]
    commands: tuple[str, ...] = ()  # for the command and its arguments, joined by blanks
    urls: tuple[str, ...] = ()
    weak_urls: tuple[str, ...] = ()  # addresses that other programs use, too: the entry is uncertain ...
    weak_keys: tuple[str, ...] = ()  # ... unless its name matches one of these


class ServerDefinition(Value):
    name: str
    transport: str
    variants: Mapping[str, EntrySpec]  # by stable, prerelease, pinned; with `{version}` (pinned), `{minor}`
    detection: Detection
    runner: str = ""  # the name of the program that starts `variants`; "" if there is no choice
    runners: Mapping[str, Mapping[str, EntrySpec]] = {}  # by name of another runner: its variants


class VariantChoice(Value):
    """The version and runner that an entry should have."""

    variant: str  # stable, prerelease or pinned:<version>
    runner: str | None = None  # None for the default in new entries; an existing entry keeps its runner
    asked: bool = True  # False if the variant is that of this program, and does not apply to other runners
    tool: str = __version__  # the version of this program

    @property
    def released(self) -> bool:
        """Whether a package index has this program: before that, anybody may upload something under its name."""
        return is_release(self.tool)


def is_release(version: str) -> bool:
    """Whether a version of Python's form is a release: neither a prerelease nor a build of one machine (`1.2+x`)."""
    return _RELEASE.fullmatch(version) is not None
