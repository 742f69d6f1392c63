"""What `config` says: the settings, what follows from them, and the problems."""

from __future__ import annotations

import json
import os
from enum import Enum

from ..hotreload.sources.find import kind_of
from ..issues import REMEDIES, Issue
from ..system.values import Value
from ..workspace.config import FIELDS, ClientCommand, Config, ServerCommand
from .colours import Style
from .config_commands import Commands, shown
from .results import Bullets, Report, Row, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..hotreload.builds import Build
    from ..hotreload.package import Package
    from ..hotreload.sources.sources import Sources
    from ..workspace.config import Field

# What counts where a setting has no value of its own.
_OTHERWISE = {
    "clientWorkspace": "extensionPath",
    "extensionPath": "none",
    "mcpServerRoot": "none",
    "mcpServer.command": "what the package names",
    "mcpServer.cwd": "mcpServerRoot, else the workspace",
    "client.command": "none",
    "client.cwd": "clientWorkspace, else extensionPath",
    "client.readyPattern": "ready when it runs",
    "hotReload.mcpServerName": "the package's name, else what it calls itself, else its folder's",
    "pipeline.concurrency": "one at a time where there is a config, else unlimited",
    "inspector.port": "6274, or the next that is free",
}
_A_HOST = "a Host, with the workspace's add-ins; mcpServerRoot or mcpServer would name another server"


class Findings(Value):
    folder: str  # of the workspace
    config: Config
    refusal: str  # why its code may not run: the end of a sentence; empty where it may
    commands: Commands
    sources: tuple[tuple[Package, Build | None, Sources], ...]  # of the packages that are watched
    problems: tuple[tuple[str, str], ...] = ()  # each with its next step, or none
    remarks: tuple[str, ...] = ()

    @property
    def reloads(self) -> bool:
        return self.config.hot_reload.enabled and bool(self.sources)

    @property
    def strategy(self) -> str:
        if self.reloads:
            return f"on, by {self.config.hot_reload.strategy.value}"
        return "off: there is no code to watch" if self.config.hot_reload.enabled else "off, by hotReload.enabled"


def report(found: Findings) -> Report:
    counts = found.config.path or "none, so the defaults count"
    return Report(
        f"The config of the workspace {found.folder}: {counts}",
        (
            Section("Settings", tuple(Row(field.title, _setting(found.config, field)) for field in FIELDS)),
            Section("What follows", tuple(_follows(found))),
            Bullets("Remarks", found.remarks),
            Bullets("Problems", tuple(_problem(*problem) for problem in found.problems), Style.BAD),
        ),
    )


def _setting(config: Config, field: Field) -> str:
    value = _value(config, field)
    text = _OTHERWISE[field.title] if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if field.title in config.given else f"{text} (default)"


def _follows(found: Findings) -> Iterator[Row]:
    server, client = found.commands.server, found.commands.client
    if found.refusal:
        yield Row("trusted", f"no: {found.refusal}; 'uno-devserver trust' agrees", style=Style.WARN)
    else:
        yield Row("trusted", "yes", style=Style.GOOD)
    if server is None or isinstance(server, Issue):
        unknown = server is not None or any(issue.fatal for issue in found.config.issues)
        yield Row("server", "not known" if unknown else _A_HOST)
    else:
        yield Row("server", shown(server.line))
        yield Row("runs in", server.folder)
        yield Row("as said by", server.origin)
    yield Row("hot reload", found.strategy)
    for package, build, files in found.sources:
        role, count = package.role.value, len(files.files)
        if not os.path.isdir(package.root):
            yield Row(f"sources of the {role}", f"none: there is no folder {package.root}")
            continue
        counted = f"{count} file{'' if count == 1 else 's'} in {files.root}"
        yield Row(f"sources of the {role}", f"{kind_of(package).value}, {counted}")
        yield Row(f"build of the {role}", f"{build.named}, in {build.folder}" if build else "none needed")
    if client is not None:
        yield Row("client", f"{shown(client[0])}, in {client[1]}")


def _problem(message: str, step: str) -> str:
    """The usual next step is what everybody would do, and need not stand behind each."""
    return message if step in ("", REMEDIES["ConfigInvalid"]) else f"{message} {step}"


def data(found: Findings) -> dict[str, object]:
    config, server, client = found.config, found.commands.server, found.commands.client
    return {
        "workspaceDirectory": found.folder,
        "config": config.path,
        "trusted": not found.refusal,
        "refusal": found.refusal or None,
        "settings": {
            field.title: {"value": _value(config, field), "given": field.title in config.given} for field in FIELDS
        },
        "namesServer": config.names_server,
        "server": None
        if server is None or isinstance(server, Issue)
        else {
            "command": list(server.line),
            "cwd": server.folder,
            "env": dict(server.environment),
            "origin": server.origin,
        },
        "hotReload": found.reloads,
        "packages": [
            {
                "role": package.role.value,
                "root": files.root,
                "kind": kind_of(package).value,
                "files": sorted(files.files),
                "build": build.named if build else None,
            }
            for package, build, files in found.sources
        ],
        "client": {"command": list(client[0]), "cwd": client[1]} if client else None,
        "remarks": list(found.remarks),
        "problems": [{"message": message, "nextStep": step or None} for message, step in found.problems],
    }


def _value(config: Config, field: Field) -> object:
    """As the file would have it; None where it is not given, and the default is no value."""
    holders = {
        "mcpServer": config.server or ServerCommand(),
        "hotReload": config.hot_reload,
        "inspector": config.inspector,
    }
    if field.section == "client":
        holders["client"] = config.client or ClientCommand("")
    value = getattr(holders.get(field.section, config), field.name)
    if isinstance(value, Enum):
        return value.value
    if field.name == "env":
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    return None if value == "" else value
