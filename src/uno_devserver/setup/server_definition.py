"""The MCP servers to register: how each is started, and how an entry for it is recognised.

These records are made from data (`server-definitions.json`, or a user's file).
"""

from __future__ import annotations

import re

from .. import __version__
from ..system.values import Value
from ..workspace.paths import same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .profiles import Place

STABLE, PRERELEASE, PINNED = "stable", "prerelease", "pinned"
LEGACY_HTTP = "legacy-http"
SOLUTION_DIR, SERVER, UPSTREAM_URL = "--solution-dir", "--server", "--upstream-url"
# What all clients accept. The APIs of models limit the name of a tool, of which this is a part, to 64 characters.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
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


class Served(Value):
    """The folder whose server the proxy serves under an entry, and by which entries are told apart."""

    folder: str  # the absolute path
    own: bool = False  # whether the folder has a server of its own, which is of use under its name only
    named: bool = False  # whether the user chose the name, so that entries with other names do not count
    found_from: tuple[
        str, ...
    ] = ()  # the folders in which a proxy finds this one by itself; not known of other folders
    entry: str = ""  # the only entry of the config's `servers` that is served; "" for all
    apart: tuple[str, ...] = ()  # entries of `servers` that have a definition of their own
    url: str = ""  # the server that is served instead of the folder's; "" for the folder's

    @property
    def options(self) -> str:
        """The end of a command that is about the server of another folder, or at a URL."""
        from ..system.command_lines import quoted_word

        if self.url:
            from ..system.text import shown_text

            is_shown = shown_text(self.url) == self.url  # a command with a part of it would be of use to nobody
            return f" {UPSTREAM_URL} {quoted_word(self.url if is_shown else '<its URL>')}"
        return f" {SOLUTION_DIR} {quoted_word(self.folder)}" if not self.found_from else ""


class ServerDefinition(Value):
    name: str
    transport: str
    variants: Mapping[str, EntrySpec]  # by stable, prerelease, pinned; with `{version}` (pinned), `{minor}`
    detection: Detection
    runner: str = ""  # the name of the program that starts `variants`; "" if there is no choice
    runners: Mapping[str, Mapping[str, EntrySpec]] = {}  # by name of another runner: its variants
    served: Served | None = None  # None if it is not this program, or in the folder in which it is started
    opens: str | None = ""  # the `opens` of the place whose entries it is compared with

    def of_folder(self, name: str, served: Served) -> ServerDefinition:
        """The definition for a folder; one with a server of its own is known by what starts it, not by its name."""
        detection = Detection((), self.detection.commands) if served.own else self.detection
        return self.replace(name=name, served=served, detection=detection)

    def of_entry(self, entry: str) -> ServerDefinition:
        """The definition for one entry of the config's `servers` in the same folder, known by its `--server`."""
        assert self.served is not None
        served = self.served.replace(own=True, entry=entry)
        return self._with_words((SERVER, entry)).of_folder(entry, served)

    def of_url(self, name: str, url: str) -> ServerDefinition:
        """The definition for a server at a URL, which is served wherever the client starts the proxy."""
        assert self.served is not None
        served = self.served.replace(own=True, named=True, found_from=(), entry="", url=url)
        return self._with_words((UPSTREAM_URL, url)).of_folder(name, served)

    def _with_words(self, words: tuple[str, ...]) -> ServerDefinition:
        runners = {runner: _with_words(words, variants) for runner, variants in self.runners.items()}
        return self.replace(variants=_with_words(words, self.variants), runners=runners)

    def beside(self, entries: Iterable[str]) -> ServerDefinition:
        """The definition where each of these entries of `servers` has one of its own, too."""
        assert self.served is not None
        return self.replace(served=self.served.replace(apart=tuple(entries)))

    def at(self, place: Place) -> ServerDefinition:
        """The definition for the entries at a place."""
        return self.replace(opens=place.opens) if self.served is not None else self

    def is_same(self, other: ServerDefinition) -> bool:
        """Whether both are one server: those of two folders may have the same name."""
        return (self.name, self.served) == (other.name, other.served)

    @property
    def folder_words(self) -> tuple[str, ...]:
        """The last arguments of an entry: the folder, if a proxy does not find it where the client starts it."""
        if self.served is None or self.served.url or (self.opens == "" and not self.served.own):
            return ()
        found = self.opens and any(same_place(self.opens, one) for one in self.served.found_from)
        return () if found else (SOLUTION_DIR, self.served.folder)


def _with_words(words: tuple[str, ...], variants: Mapping[str, EntrySpec]) -> dict[str, EntrySpec]:
    return {name: one.replace(args=(*one.args, *words)) for name, one in variants.items()}


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
