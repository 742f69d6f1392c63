"""One client of `client-profiles.json`, which was checked before, as the profile that holds on this machine.

Pure. Three keys are enough: the paths, which of them is written to, and the key of the servers.
"""

from __future__ import annotations

from .places import expand, filled_in, system
from .profiles import TRANSPORTS, ClientProgram, Dialect, Format, Gate, Place, Profile, Scope, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .places import Here

# What a profile says for all its places, and a place for itself.
DIALECT_KEYS = frozenset(
    ("commandKey", "argsKey", "envKey", "urlKey", "mergeCommandArgs", "includeType", "typeMap", "extra", "nameKey")
)
_STARTS_IN = {"workspace": Scope.WORKSPACE, "home": Scope.USER}
_WORKSPACE = "{workspace}"
_NONE: Mapping[str, Any] = {}


def profile_from(id_: str, data: Mapping[str, Any], here: Here) -> Profile:
    variables = data.get("variables", _NONE)
    places, preferred = _places(data, variables, here)
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
        program=_program(data["cli"]) if "cli" in data else None,
        in_terminal=data.get("terminal", False),
        starts_in={Scope(scope): _STARTS_IN[folder] for scope, folder in data.get("startsIn", _NONE).items()},
        connect_seconds=data.get("connectSeconds"),
        gates=tuple(_gate(gate) for gate in data.get("gates", ())),
        no_client=data.get("noClient", ""),
    )


def _places(
    data: Mapping[str, Any], variables: Mapping[str, str], here: Here
) -> tuple[tuple[Place, ...], Place | None]:
    """Those of this system, and the one that is written to by default."""
    usual, target = _dialect(data), data.get("writeTarget")
    places: dict[tuple[str, tuple[str, ...]], Place] = {}
    writable: dict[str, tuple[str, tuple[str, ...]]] = {}
    for element in data["configPaths"]:
        own: Mapping[str, Any] = {"path": element} if isinstance(element, str) else element
        if "systems" in own and system(here) not in own["systems"]:
            continue
        dialect = usual if DIALECT_KEYS.isdisjoint(own) else _dialect({**data, **own})
        place = _place({**data, **own}, dialect, variables, here)
        # One file can be two places of a client, e.g. where the workspace is the home folder: the first counts, and it
        # is the user's, since other workspaces have it, too.
        at = place.path, place.root
        if at in places:
            place = places[at].replace(scope=place.scope if place.scope is Scope.USER else places[at].scope)
        places[at] = place
        if place.use is Use.WRITE:
            writable.setdefault(own["path"], at)
    preferred = writable.get(target or "") or next(iter(writable.values()), None)
    return tuple(places.values()), places[preferred] if preferred is not None else None


def _place(data: Mapping[str, Any], dialect: Dialect, variables: Mapping[str, str], here: Here) -> Place:
    template = data["path"]
    scope = data.get("scope") or ("workspace" if template.startswith(_WORKSPACE) else "user")
    return Place(
        expand(template, here, variables),
        Scope(scope),
        Use(data.get("use", "write")),
        Format(data.get("format", "jsonc")),
        _root(data.get("rootKey", data["jsonRootKey"]), variables, here),
        dialect,
        data.get("newFile", ""),
    )


def _root(keys: str | list[str], variables: Mapping[str, str], here: Here) -> tuple[str, ...]:
    if isinstance(keys, str):
        return (keys,)
    found = tuple(filled_in(key, here, variables) for key in keys)
    # Claude Code, whose keys can be folders, writes them with slashes on Windows, too.
    return tuple(key.replace("\\", "/") for key in found) if here.platform == "win32" else found


def _dialect(data: Mapping[str, Any]) -> Dialect:
    # Where servers are called `servers`, that is VS Code's form, which has types.
    typed, names = data.get("includeType", data["jsonRootKey"] == "servers"), data.get("typeMap", _NONE)
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


def _program(data: Mapping[str, Any]) -> ClientProgram:
    return ClientProgram(data["executable"], tuple(data.get("list", ())), data.get("environment", _NONE))


def _gate(data: Mapping[str, Any]) -> Gate:
    if "scopes" not in data:
        return Gate(data["text"])
    return Gate(data["text"], tuple(Scope(scope) for scope in data["scopes"]))
