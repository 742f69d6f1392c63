"""All clients at once, for an upstream that can have one conversation only: a command on pipes.

Such a server sees one client, and what it says beside all requests has no address. So everybody hears it, and whoever
is most likely meant is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.jsonrpc import INVALID_REQUEST, RpcError

if TYPE_CHECKING:
    from ...protocol.parties import ClientInfo
    from ...protocol.service import Params, Result
    from .connections import Connections


class Everybody:
    """Implements `protocol.client.connection.Peer`."""

    log_level = None  # each request says which log messages it wants

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._first: ClientInfo | None = None

    def met(self, client: ClientInfo) -> None:
        """The AI client that has started the proxy has said who it is; a modern one does so before it calls."""
        self._first = client

    @property
    def client(self) -> ClientInfo:
        """Whom the server sees, with the capabilities that count for all."""
        if self._first is not None:
            return self._first
        for conversation in self._connections.all():
            return conversation.client
        return self._connections.own_client

    def notify(self, method: str, params: Params) -> None:
        if not self._connections.noticed(method, params):
            for conversation in self._connections.all():
                conversation.pass_on(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        conversations = list(self._connections.all())
        for conversation in (*(one for one in conversations if not one.idle), *conversations):
            return await conversation.ask(method, params, name)
        raise RpcError(INVALID_REQUEST, f"There is nobody yet who could be asked for '{method}'.")
