"""Add-ins and the other ends of the Host: apps on `/rc`, and the IDE.

A handler of an add-in may fail; the failure is logged and counted, and the connection it belongs to goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from ...system.values import Value
from .failures import log_failure
from .invocation import CallTarget, invoke


class App(Protocol):
    """An app that is connected to `/rc`."""

    def send(self, name: str, content: object, scope: str | None = None) -> None:
        """Send a frame, in the scope of the processor unless told otherwise. Safe from any thread."""


class Ide(Protocol):
    """The IDE on its channel."""

    def send(self, type_name: str, body: Mapping[str, Any]) -> None:
        """Send a message. Safe from any thread."""


class Processor(Value):
    """Answers the frames of one scope. The handler never raises."""

    scope: str
    handler: Callable[[str, object, App], Awaitable[None]]
    addin: str


class IdeHandler(Value):
    """Takes the IDE's messages of one type. The handler never raises."""

    type_name: str
    handler: Callable[[dict[str, Any], Ide], Awaitable[None]]
    addin: str


def guarded_handler(
    function: Callable[..., Any], work: CallTarget, failed: Callable[[], None]
) -> Callable[..., Awaitable[None]]:
    """The function of an add-in as a handler: awaited whether it is async or not, its failure logged and counted."""

    async def handler(*args: Any) -> None:
        try:
            await invoke(work, function, *args)
        except Exception as error:
            failed()
            log_failure(work.addin, f"{work.kind} '{work.name}'", error)

    return handler
