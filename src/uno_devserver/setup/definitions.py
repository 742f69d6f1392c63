"""Loads the client profiles and server definitions, from this package or from files that the user names.

A user's file replaces ours completely, and is validated completely before it is used. An error in it is a UserError
(exit code 2) that names the file and the position.
"""

from __future__ import annotations

import json
import os
from itertools import takewhile

from ..system.values import Value
from ..workspace.paths import upwards
from .client_detection import workspace_signs
from .config_file import way_out
from .paths import expand, filled_in, system_name
from .profiles import HTTP, STDIO, TRANSPORTS, ClientCli, Dialect, Format, Gate, Place, Profile, Scope, Use
from .server_definition import Detection, EntrySpec, ServerDefinition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .paths import Here

CLIENTS, SERVERS = "client-profiles", "server-definitions"


class Definitions(Value):
    profiles: tuple[Profile, ...]  # in the order in which they are reported
    servers: tuple[ServerDefinition, ...]

    @property
    def clients(self) -> tuple[Profile, ...]:
        """The profiles of clients with which servers can be registered, without those that only write a file."""
        return tuple(one for one in self.profiles if not (one.hidden or one.no_client))

    def profile(self, name: str) -> Profile | None:
        """The profile with this identifier or alias, ignoring case; None if there is none."""
        wanted = name.lower()
        by_id = (one for one in self.profiles if one.id.lower() == wanted)
        by_alias = (one for one in self.profiles if wanted in (alias.lower() for alias in one.aliases))
        return next(by_id, None) or next(by_alias, None)


def load(here: Here, clients: str | None = None, servers: str | None = None) -> Definitions:
    """Load our definitions, or those of the files `clients` and `servers`; raises UserError."""
    client_data, server_data = _data(CLIENTS, clients), _data(SERVERS, servers)
    return Definitions(
        tuple(_in_project(id_, data, here) for id_, data in client_data.items()),
        tuple(server_from(name, data, here.workspace) for name, data in server_data.items()),
    )


def _in_project(id_: str, data: Mapping[str, Any], here: Here) -> Profile:
    """The profile for the project that the workspace belongs to, as the client sees it.

    That is the nearest folder with files of this client; without any, the workspace, or the repository for a client
    that reads its files from there.
    """
    if not here.repository or here.repository == here.workspace:
        return profile_from(id_, data, here)
    profile = profile_from(id_, data, here)
    for folder in takewhile(lambda one: one != os.path.dirname(here.repository), upwards(here.workspace)):
        there = here.replace(workspace=folder)
        profile = profile_from(id_, data, there)
        if any(map(os.path.exists, workspace_signs(profile, there))):
            return profile
    return profile if data.get("searchesUp") else profile_from(id_, data, here)


def _data(kind: str, path: str | None) -> dict[str, Any]:
    if path is not None:
        from .definitions_file import read_external

        return read_external(kind, path)
    data = packaged(f"{kind}.json")
    del data["$schema"]  # only editors use it
    return data


def packaged(name: str) -> dict[str, Any]:
    """Load a JSON file of this package."""
    with open(packaged_path(name), encoding="utf-8") as stream:
        content: dict[str, Any] = json.load(stream)
        return content


def packaged_path(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


# Keys that a profile may have for all its places, and a place for itself.
DIALECT_KEYS = frozenset(
    ("commandKey", "argsKey", "envKey", "urlKey", "mergeCommandArgs", "includeType", "typeMap", "extra", "nameKey")
)
_STARTS_IN = {"workspace": Scope.WORKSPACE, "home": Scope.USER}
_WORKSPACE = "{workspace}"
_NONE: Mapping[str, Any] = {}


def profile_from(id_: str, data: Mapping[str, Any], here: Here) -> Profile:
    variables = data.get("variables", _NONE)
    places, preferred = _places(data, variables, here)
    strategy = data.get("strategy", "none" if "noClient" in data else "file")
    manual = data.get("manualRegistrationMessage") or f"{data.get('name', id_)} is registered in its own way."
    usual = preferred or (places[0] if places else None)
    return Profile(
        id=id_,
        name=data.get("name", id_),
        places=places,
        default_scope=usual.scope if usual else Scope.WORKSPACE,
        preferred=preferred,
        aliases=tuple(data.get("aliases", ())),
        transports=tuple(data.get("supportedTransports", TRANSPORTS)),
        signs=tuple(expand(sign, here, variables) for sign in data.get("signs", ())),
        hidden=data.get("excludeFromDetection", False),
        cli=_cli(data["cli"]) if "cli" in data else None,
        in_terminal=data.get("terminal", False),
        starts_in={Scope(scope): _STARTS_IN[folder] for scope, folder in data.get("startsIn", _NONE).items()},
        connect_seconds=data.get("connectSeconds"),
        gates=tuple(_gate(gate) for gate in data.get("gates", ())),
        installable="systems" not in data or system_name(here) in data["systems"],
        no_client=data.get("noClient") or ("" if strategy == "file" else manual),
        strategy=strategy,
        project=here.workspace,
    )


def _places(
    data: Mapping[str, Any], variables: Mapping[str, str], here: Here
) -> tuple[tuple[Place, ...], Place | None]:
    """The places on this system, and the one that is written to by default."""
    usual, target = _dialect(data), data.get("writeTarget")
    places: dict[tuple[str, tuple[str, ...]], Place] = {}
    writable: dict[str, tuple[str, tuple[str, ...]]] = {}
    for element in data["configPaths"]:
        own: Mapping[str, Any] = {"path": element} if isinstance(element, str) else element
        if "systems" in own and system_name(here) not in own["systems"]:
            continue
        dialect = usual if DIALECT_KEYS.isdisjoint(own) else _dialect({**data, **own})
        place = _place({**data, **own}, dialect, variables, here)
        # One file can be two places of a client, through links or if the workspace is the home folder. They are one
        # place, unless the workspace has a link to a file outside of it, which is never followed.
        real = os.path.realpath(place.path)
        leads_out = real != place.path and way_out(place.path, place.within)
        at = place.path if leads_out else real, place.root
        places[at] = place = _joined(places[at], place) if at in places else place
        if place.use is Use.WRITE:
            writable.setdefault(own["path"], at)
    preferred = writable.get(target or "") or next(iter(writable.values()), None)
    return tuple(places.values()), places[preferred] if preferred is not None else None


def _joined(one: Place, other: Place) -> Place:
    """Two places of the same file as one. It is the user's if one of them is: other workspaces use the file, too."""
    used = min(one, other, key=lambda place: tuple(Use).index(place.use))
    users = next((place for place in (one, other) if place.scope is Scope.USER), used)
    return used.replace(path=users.path, scope=users.scope, within=users.within, opens=users.opens)


def _place(data: Mapping[str, Any], dialect: Dialect, variables: Mapping[str, str], here: Here) -> Place:
    template = data["path"]
    scope = data.get("scope") or ("workspace" if template.startswith(_WORKSPACE) else "user")
    path = expand(template, here, variables)
    elsewhere = expand(template, here.replace(workspace=f"{here.workspace}/another"), variables)
    opens = here.workspace if scope == Scope.WORKSPACE.value else ""
    return Place(
        path,
        Scope(scope),
        Use(data.get("use", "write")),
        Format(data.get("format", "jsonc")),
        _root(data.get("rootKey", data["jsonRootKey"]), variables, here),
        dialect,
        data.get("newFile", ""),
        None if path == elsewhere else here.workspace,
        opens if data.get("opensFolders", True) else None,
    )


def _root(keys: str | list[str], variables: Mapping[str, str], here: Here) -> tuple[str, ...]:
    if isinstance(keys, str):
        return (keys,)
    found = tuple(filled_in(key, here, variables) for key in keys)
    # Claude Code uses folders as keys, and writes them with slashes on Windows, too.
    return tuple(key.replace("\\", "/") for key in found) if here.platform == "win32" else found


def _dialect(data: Mapping[str, Any]) -> Dialect:
    # The root key `servers` is VS Code's form, which has types.
    typed, names = data.get("includeType", data.get("jsonRootKey") == "servers"), data.get("typeMap", _NONE)
    transports = TRANSPORTS if typed is True else typed or ()
    return Dialect(
        data.get("commandKey", "command"),
        data.get("argsKey", "args"),
        data.get("envKey", "env"),
        data.get("urlKey", "url"),
        data.get("mergeCommandArgs", False),
        {transport: names.get(transport, transport) for transport in transports},
        data.get("extra", _NONE),
        data.get("nameKey"),
    )


def _cli(data: Mapping[str, Any]) -> ClientCli:
    add = {transport: data.get(key) for transport, key in ((STDIO, "addStdio"), (HTTP, "addHttp"))}
    return ClientCli(
        data["executable"],
        tuple(data.get("list") or ()),
        data.get("environment", _NONE),
        {transport: tuple(words) for transport, words in add.items() if words},
        tuple(data.get("remove") or ()),
    )


def _gate(data: Mapping[str, Any]) -> Gate:
    return Gate(data["text"], tuple(Scope(scope) for scope in data["scopes"]) if "scopes" in data else tuple(Scope))


def server_from(name: str, data: Mapping[str, Any], workspace: str) -> ServerDefinition:
    detection = data["detection"]
    return ServerDefinition(
        name,
        data["transport"],
        _variants(data["variants"], workspace),
        Detection(
            keys=tuple(detection["keyPatterns"]),
            commands=tuple(detection.get("commandPatterns") or ()),
            urls=tuple(detection.get("urlPatterns") or ()),
            weak_urls=tuple(detection.get("weakUrlPatterns") or ()),
            weak_keys=tuple(detection.get("weakKeyPatterns") or ()),
        ),
        data.get("runner", ""),
        {runner: _variants(variants, workspace) for runner, variants in data.get("runners", {}).items()},
    )


def _variants(data: Mapping[str, Any], workspace: str) -> dict[str, EntrySpec]:
    def filled(text: str) -> str:
        return text.replace(_WORKSPACE, workspace)

    return {
        variant: EntrySpec(
            filled(one.get("command", "")),
            tuple(map(filled, one.get("args", ()))),
            {name: filled(value) for name, value in one.get("env", {}).items()},
            filled(one.get("url", "")),
        )
        for variant, one in data.items()
    }
