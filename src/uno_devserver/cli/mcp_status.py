"""`mcp status`: which AI clients know the servers, where, and whether what they know is current. Changes nothing."""

from __future__ import annotations

from .. import __version__
from ..setup.expectation import expected
from ..setup.profiles import HTTP
from ..setup.status import status_of
from .registration import PROTOCOL, asked
from .results import Result
from .status_steps import status_steps
from .status_text import status_text
from .verified import verified_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..setup.asking import Answer
    from ..setup.servers import Definition, Server
    from ..setup.status import ClientStatus, Location, Registration
    from .parse import Invocation
    from .registration import Asked


def run(invocation: Invocation) -> Result:
    wanted = asked(invocation)
    around = wanted.here
    clients = [status_of(profile, wanted.servers, wanted.wish, around) for profile in wanted.definitions.profiles]
    answers = _answers(wanted, clients) if invocation.on("verify") else None
    steps = status_steps(wanted, clients)
    return Result(_data(wanted, clients, steps, answers), status_text(wanted, clients, steps, answers))


def _answers(wanted: Asked, clients: list[ClientStatus]) -> tuple[Answer, ...]:
    """What the clients themselves say: the named one, or all that are there."""
    from ..setup.asking import ask, ask_all
    from .progress import say

    say(f"Asking {wanted.client.name if wanted.client else 'the clients'}")
    if wanted.client is not None:
        return (ask(wanted.client, wanted.servers, wanted.here.workspace),)
    return ask_all([one.profile for one in clients if one.detected], wanted.servers, wanted.here.workspace)


def _data(
    wanted: Asked, clients: list[ClientStatus], steps: tuple[str, ...], answers: tuple[Answer, ...] | None
) -> dict[str, object]:
    told: dict[str, object] = {
        "version": PROTOCOL,
        "callerIde": wanted.client.id if wanted.client is not None else None,
        "toolVersion": __version__,
        "expectedVariant": wanted.wish.variant,
        "detectedIdes": [one.profile.id for one in clients if one.detected],
        "supportedIdes": [_supported(one) for one in clients],
        "ides": [_client(one) for one in clients],
        "servers": [_server(server, wanted, clients) for server in wanted.servers],
        "nextSteps": list(steps),
    }
    if answers is not None:
        told["verified"] = verified_data(answers)
    return told


def _supported(client: ClientStatus) -> dict[str, object]:
    """As the .NET tool has it."""
    strategy = "none" if client.profile.no_client else "file"
    return {"ide": client.profile.id, "strategy": strategy, "detected": client.detected}


def _client(client: ClientStatus) -> dict[str, object]:
    target = client.profile.preferred
    return {
        "id": client.profile.id,
        "detected": client.detected,
        "configPaths": list(dict.fromkeys(place.path for place in client.profile.places)),
        "writeTarget": target.path if target is not None else None,
    }


def _server(server: Server, wanted: Asked, clients: list[ClientStatus]) -> dict[str, object]:
    listed = [one for one in clients if one.detected or one.profile is wanted.client]
    return {
        "name": server.name,
        "transport": server.transport,
        "definition": _definition(expected(server, wanted.wish), server),
        "ides": [
            _registration(client.profile.id, registration)
            for client in listed
            for registration in client.registrations
            if registration.server is server
        ],
    }


def _definition(definition: Definition, server: Server) -> dict[str, object]:
    if server.transport == HTTP:
        return {"url": definition.url}
    told: dict[str, object] = {"command": definition.command, "args": list(definition.args)}
    return {**told, "env": dict(definition.env)} if definition.env else told


def _registration(client: str, found: Registration) -> dict[str, object]:
    told: dict[str, object] = {"ide": client, "status": found.status.value}
    if found.locations:
        told["locations"] = [_location(one) for one in found.locations]
    if found.warnings:
        told["warnings"] = list(found.warnings)
    return told


def _location(location: Location) -> dict[str, object]:
    match = location.match
    told: dict[str, object] = {
        "path": location.path,
        "variant": match.variant,
        "transport": match.transport,
        "scope": location.reading.place.scope.value,
        "key": match.entry.name,
    }
    if match.runner is not None and not match.own_way:
        told["runner"] = match.runner
    if location.legacy:
        told["legacy"] = True
    return told
