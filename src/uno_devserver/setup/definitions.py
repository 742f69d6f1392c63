"""The clients and servers that registration knows: from the data of this package, or from files that the user names.

A user's file is checked whole before anything of it is used, and replaces ours whole. What is wrong with it is a
UserError (exit code 2) that names the file and the place in it.
"""

from __future__ import annotations

import json
import os

from ..system.values import Value
from .client_data import profile_from
from .server_data import server_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .places import Here
    from .profiles import Profile
    from .servers import Server

CLIENTS, SERVERS = "client-profiles", "server-definitions"


class Definitions(Value):
    profiles: tuple[Profile, ...]  # in the order in which they are reported
    servers: tuple[Server, ...]

    def profile(self, name: str) -> Profile | None:
        """The one with this identifier, or with this other name; in any case of letters."""
        wanted = name.lower()
        by_id = (one for one in self.profiles if one.id.lower() == wanted)
        by_alias = (one for one in self.profiles if wanted in (alias.lower() for alias in one.aliases))
        return next(by_id, None) or next(by_alias, None)


def load(here: Here, clients: str | None = None, servers: str | None = None) -> Definitions:
    """With a path, that file's definitions instead of ours; raises UserError."""
    client_data, server_data = _data(CLIENTS, clients), _data(SERVERS, servers)
    return Definitions(
        tuple(profile_from(id_, data, here) for id_, data in client_data.items()),
        tuple(server_from(name, data) for name, data in server_data.items()),
    )


def _data(kind: str, path: str | None) -> dict[str, Any]:
    if path is not None:
        from .external import read_external

        return read_external(kind, path)
    data = packaged(f"{kind}.json")
    del data["$schema"]  # for editors
    return data


def packaged(name: str) -> dict[str, Any]:
    """A JSON file of this package."""
    with open(packaged_path(name), encoding="utf-8") as stream:
        content: dict[str, Any] = json.load(stream)
        return content


def packaged_path(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
