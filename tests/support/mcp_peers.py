"""The client at the other end of a connection: it records notifications, and answers questions as the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.service import Params, Result

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"


class TestPeer:
    __test__ = False  # pytest takes it for a test by its name

    def __init__(
        self,
        name: str = "tester",
        *,
        modern: bool = False,
        log_level: str | None = None,
        answer: Callable[[str, Params], Result] | None = None,
        **capabilities: Any,
    ) -> None:
        self.client = ClientInfo(name, "1.0", capabilities, MODERN if modern else HANDSHAKE)
        self.log_level = log_level
        self.heard: list[tuple[str, Params]] = []
        self.asked: list[tuple[str, Params, str | None]] = []
        self._answer = answer

    def notify(self, method: str, params: Params) -> None:
        self.heard.append((method, params))

    def methods(self) -> list[str]:
        return [method for method, _ in self.heard]

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        self.asked.append((method, params, name))
        if self._answer is None:
            raise RpcError(METHOD_NOT_FOUND, f"The test does not answer '{method}'.")
        return self._answer(method, params)
