"""What the property pass leaves for the item pass, and what both could not decide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .projects import ProjectFile
    from .xml import Element


class Group:
    """An ItemGroup or ItemDefinitionGroup that the property pass came by, with the conditions it could not decide."""

    __slots__ = ("doubts", "element", "entry", "file")

    def __init__(self, element: Element, file: ProjectFile, entry: int, doubts: tuple[str, ...]) -> None:
        self.element = element
        self.file = file
        self.entry = entry
        self.doubts = doubts


class Note:
    """An expression that could not be decided, and the item type (in lower case) that it matters to, if any."""

    __slots__ = ("expression", "item", "path")

    def __init__(self, expression: str, path: str, item: str = "") -> None:
        self.expression = expression
        self.path = path
        self.item = item
