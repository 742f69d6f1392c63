"""The credentials of a server at a URL: headers that its requests carry, which may be renewed after a refusal.

They are sent to the origin of that URL only, and appear in no message, log or file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from ..http.headers import check_headers

# Headers of the transport itself; another value would break it.
OWN_HEADERS = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "last-event-id", "mcp-method", "mcp-name"}
    | {"mcp-protocol-version", "mcp-session-id", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"user-agent"}
)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Credentials(Protocol):
    def headers(self) -> Mapping[str, str]:
        """The headers that a request carries now. Read before each request, in the event loop: fast, no network.

        The same object is returned while nothing has changed. Raises nothing.
        """

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Get others after the server has answered 401 to a request with `refused`; return whether `headers` differ.

        May be called by several requests at once. The request is then sent once more. Raises nothing.
        """


class FixedHeaders:
    """Headers that the user gave. Implements `Credentials`."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = dict(headers)

    def headers(self) -> Mapping[str, str]:
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False


def expanded_headers(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of the variables that they name as `${NAME}`.

    ValueError for a variable that is not set, and for what cannot be sent; its text has no value.
    """
    unset = sorted({name for value in headers.values() for name in _VARIABLE.findall(value) if not environ.get(name)})
    if unset:
        raise ValueError(f"the variable {unset[0]} is not set, or empty")
    expanded = {name: _VARIABLE.sub(lambda found: environ[found[1]], value) for name, value in headers.items()}
    for name in expanded:
        if name.lower() in OWN_HEADERS:
            raise ValueError(f"the header {name} is set by the transport itself")
    check_headers(tuple(expanded.items()))
    return expanded
