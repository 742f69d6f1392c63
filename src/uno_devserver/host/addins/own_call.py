"""A request of the Host itself to its add-ins: it hears nothing meanwhile, and answers no questions."""

from __future__ import annotations

from ...protocol.eras import NEWEST_HANDSHAKE
from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ...protocol.parties import ClientInfo
from ...protocol.service import Params, Result


class OwnSession:
    client = ClientInfo("uno-devserver", None, {}, NEWEST_HANDSHAKE)

    def notify(self, method: str, params: Params | None = None) -> None:
        pass

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise _no_answer(method)


class OwnCall:
    """Implements `protocol.service.Call`."""

    id = 0
    session = OwnSession()
    log_level = None

    def __init__(self, method: str) -> None:
        self.method = method
        self.params: Params = {}

    def notify(self, method: str, params: Params | None = None) -> None:
        pass

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        raise _no_answer(method)

    def close_stream(self) -> None:
        pass


def _no_answer(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"The Host has no answer to '{method}'.")
