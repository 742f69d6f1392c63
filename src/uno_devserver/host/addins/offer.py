"""What one add-in offers: filled while it registers, read by the Host as long as it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .completions import Completion
    from .peers import IdeHandler, Processor
    from .prompts import Prompt
    from .resources import Resource
    from .sdk import SdkServer
    from .tools import Tool


class Offer:
    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}  # by address or template
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[tuple[str, str], Completion] = {}
        self.processors: list[Processor] = []
        self.ide_handlers: list[IdeHandler] = []
        self.servers: list[SdkServer] = []
        self.on_start: list[Callable[[], Any]] = []
        self.on_stop: list[Callable[[], Any]] = []
        self.background: list[Callable[[], Any]] = []
        self.health: Callable[[], Any] | None = None
