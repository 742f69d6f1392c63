"""Handlers of add-ins for frames of apps on `/rc` and for messages of the IDE.

The failure of a handler is logged and counted; the connection continues.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from ...system.values import Value
from .failures import log_failure
from .invocation import CallTarget, invoke


class App(Protocol):
    """An app that is connected to `/rc`."""

    def send(self, name: str, content: object, scope: str | None = None) -> None:
        """Send a frame, by default in the scope of the processor. Safe from any thread."""


class Ide(Protocol):
    """The IDE on its channel."""

    def send(self, type_name: str, body: Mapping[str, Any]) -> object:
        """Send a message. Safe from any thread."""


class Processor(Value):
    """Answers the frames of one scope. The handler never raises."""

    scope: str
    handler: Callable[[str, object, App], Coroutine[Any, Any, None]]
    addin: str


class IdeHandler(Value):
    """Handles the IDE's messages of one type. The handler never raises."""

    type_name: str
    handler: Callable[[dict[str, Any], Ide], Coroutine[Any, Any, None]]
    addin: str


def guarded_handler(
    function: Callable[..., Any], target: CallTarget, count_failure: Callable[[], None]
) -> Callable[..., Coroutine[Any, Any, None]]:
    """A function of an add-in, async or not, as an async handler that logs and counts failures."""

    async def handler(*args: Any) -> None:
        try:
            await invoke(target, function, *args)
        except Exception as error:
            count_failure()
            log_failure(target.addin, f"{target.kind} '{target.name}'", error)

    return handler
