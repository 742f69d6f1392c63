"""Who makes one request, as the upstream's connection sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...protocol.parties import ClientInfo
    from ...protocol.service import Call, Params, Result


class Caller:
    """Implements `protocol.client.connection.Peer`. Whatever the upstream says shows that it is still at work."""

    __slots__ = ("_call", "_questions", "_seconds", "_silence", "client")

    def __init__(self, call: Call, silence_seconds: float) -> None:
        self.client: ClientInfo = call.session.client
        self._call = call
        self._seconds = silence_seconds
        self._silence: asyncio.Timeout | None = None
        self._questions = 0

    @property
    def log_level(self) -> str | None:
        return self._call.log_level

    def patience(self) -> asyncio.Timeout:
        """To be entered for each try: ends it when nothing has been heard for too long."""
        self._silence = asyncio.timeout(self._seconds)
        return self._silence

    def notify(self, method: str, params: Params) -> None:
        self._heard()
        self._call.notify(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        self._questions += 1
        self._heard()
        try:
            return await self._call.ask(method, params, name)
        finally:
            self._questions -= 1
            self._heard()

    def _heard(self) -> None:
        if self._silence is None:
            return
        # Whoever is asked may take their time: a person may have to decide.
        until = None if self._questions else asyncio.get_running_loop().time() + self._seconds
        try:
            self._silence.reschedule(until)
        except RuntimeError:
            pass  # the try is over; what was said late changes nothing
