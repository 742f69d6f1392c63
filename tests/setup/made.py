"""Servers, places and clients made by hand, for tests of what is done with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.files import write
from support.machine import WINDOWS
from uno_devserver.setup.edits.document import ServerEntry
from uno_devserver.setup.entry_match import Match, matches
from uno_devserver.setup.paths import Here
from uno_devserver.setup.profiles import Dialect, Format, Place, Profile, Scope, Use
from uno_devserver.setup.server_definition import Detection, EntrySpec, ServerDefinition, VariantChoice

URL = "https://mcp.platform.uno/v1"
APP = ("--mcp-app",)
TOOL = "1.2.3"  # a release of this program
STABLE = EntrySpec("uvx", ("--from", "uno-devserver==1.2.*", "uno-devserver", *APP))
UNPINNED = EntrySpec("uvx", ("uno-devserver", *APP))  # what was written before versions were named
DNX = EntrySpec("dnx", ("-y", "uno.devserver", *APP))
UNO_APP = ServerDefinition(
    "UnoApp",
    "stdio",
    {
        "stable": EntrySpec("uvx", ("--from", "uno-devserver=={minor}.*", "uno-devserver", *APP)),
        "prerelease": EntrySpec(
            "uvx", ("--prerelease", "allow", "--from", "uno-devserver=={minor}.*", "uno-devserver", *APP)
        ),
        "pinned": EntrySpec("uvx", ("uno-devserver@{version}", *APP)),
    },
    Detection(
        keys=("^UnoApp$",),
        urls=(r"localhost.*uno[._-]?devserver.*/mcp",),
        weak_urls=(r"localhost:\d+/mcp",),
        weak_keys=("uno",),
    ),
    "uvx",
    {
        "dnx": {
            "stable": DNX,
            "prerelease": EntrySpec("dnx", ("-y", "--prerelease", "uno.devserver", *APP)),
            "pinned": EntrySpec("dnx", ("-y", "--version", "{version}", "uno.devserver", *APP)),
        },
        "path": {name: EntrySpec("{program}", APP) for name in ("stable", "prerelease", "pinned")},
    },
)
UNO_DOCS = ServerDefinition(
    "UnoDocs",
    "http",
    {"stable": EntrySpec(url=URL)},
    Detection(keys=("^UnoDocs$",), urls=(r"^https://mcp\.platform\.uno(:443)?(/|$)",)),
)
SERVERS = (UNO_APP, UNO_DOCS)
HERE = Here("/ws", "/home/me", "/home/me/.config", "/home/me/.local", {"PATH": "/home/me/bin:/usr/bin"}, "linux")
PLAIN = Dialect()
MERGED = Dialect(env_key="environment", one_array=True, types={"stdio": "local", "http": "remote"})


def chosen(variant: str, runner: str | None = None, *, asked: bool = True, tool: str = TOOL) -> VariantChoice:
    """What somebody wants who runs this version of the program."""
    return VariantChoice(variant, runner, asked, tool)


CHOICE = chosen("stable")


def match_of(settings: Any, name: str = "UnoApp", dialect: Dialect = PLAIN) -> Match:
    """What an entry with these settings is; it must be ours."""
    found = matches((ServerEntry(name, settings),), SERVERS, dialect)
    assert len(found) == 1, found
    return found[0]


def command(*words: str) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


def stdio(definition: EntrySpec) -> dict[str, Any]:
    return {"command": definition.command, "args": list(definition.args)}


def saved(path: Path, **servers: Any) -> Path:
    """A file with these servers."""
    return write(path, json.dumps({"mcpServers": servers}))


def place(path: Path, scope: Scope = Scope.WORKSPACE, use: Use = Use.WRITE, **other: Any) -> Place:
    settings: dict[str, Any] = {"format": Format.JSONC, "root": ("mcpServers",), "dialect": PLAIN, **other}
    return Place(str(path), scope, use, **settings)


def client(*places: Place, **other: Any) -> Profile:
    preferred = next((one for one in places if one.use is Use.WRITE), None)
    return Profile("cursor", "Cursor", places, Scope.WORKSPACE, **{"preferred": preferred, **other})


def here_at(root: Path, environ: Mapping[str, str] | None = None) -> Here:
    """A machine below a folder, with nothing on PATH."""
    for folder in ("ws", "home/.config"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    home = root / "home"
    platform = "win32" if WINDOWS else "linux"
    return Here(str(root / "ws"), str(home), str(home / ".config"), str(home / ".local"), environ or {}, platform)
