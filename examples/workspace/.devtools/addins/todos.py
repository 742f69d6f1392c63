"""Finds the comments in which somebody promised to come back: TODO, FIXME and HACK."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from uno_devserver.host.addins import AddIn, Context, Message, ToolError, assistant, user

__version__ = "1.0"

Kind = Literal["TODO", "FIXME", "HACK"]
COMMENT = re.compile(r"(?:#|//|/\*|<!--)\s*(TODO|FIXME|HACK)\b:?\s*(?:\((\w+)\))?:?\s*(.*?)\s*(?:\*/|-->)?$")
SOURCES = {".css", ".html", ".js", ".md", ".py"}
LARGEST_FILE = 1_000_000  # bytes; larger ones are data, not sources


class Todo(Struct):
    file: str
    line: int
    kind: str
    text: str
    who: str | None = None


class Found(Struct):
    todos: list[Todo]
    files_searched: int


def register(addin: AddIn) -> None:
    root = Path(addin.workspace).resolve()

    @addin.tool(title="Find TODOs", read_only=True, open_world=False)
    def find_todos(
        ctx: Context,
        kind: Annotated[Kind | None, Meta(description="only comments of this kind")] = None,
        folder: Annotated[str, Meta(description="only below this folder of the workspace")] = "",
        limit: Annotated[int, Meta(description="how many at most", ge=1, le=1000)] = 100,
    ) -> Found:
        """Find TODO, FIXME and HACK comments in the sources of the workspace, with file, line and author."""
        files = list(sources(inside(root, folder)))
        todos: list[Todo] = []
        for number, file in enumerate(files, 1):
            if ctx.cancelled or len(todos) >= limit:
                break
            todos += [todo for todo in todos_of(file, root) if kind in (None, todo.kind)]
            ctx.progress(number, len(files), file.name)
        return Found(todos[:limit], len(files))

    @addin.tool(title="Count TODOs", read_only=True, open_world=False)
    def count_todos(by: Literal["kind", "file", "who"] = "kind") -> dict[str, int]:
        """Count the TODO, FIXME and HACK comments by kind, by file or by author."""
        todos = (todo for file in sources(root) for todo in todos_of(file, root))
        return dict(Counter(str(getattr(todo, by)) for todo in todos).most_common())

    @addin.resource("workspace://tree", name="Tree", mime_type="text/plain")
    def tree() -> str:
        """The source files of the workspace, one per line."""
        return "\n".join(relative(file, root) for file in sources(root))

    @addin.resource("workspace://file/{+path}", name="Source file", mime_type="text/plain")
    def source_file(path: str) -> str | None:
        """A file of the workspace."""
        file = inside(root, path)
        return file.read_text(errors="replace") if file.is_file() else None

    @addin.completion("workspace://file/{+path}", "path")
    def paths(value: str) -> list[str]:
        return [path for path in (relative(file, root) for file in sources(root)) if path.startswith(value)]

    @addin.prompt(title="Plan the TODOs")
    def plan_todos(days: Annotated[int, Meta(description="how many days there are")] = 5) -> list[Message]:
        """Make a plan for the open TODOs of this workspace."""
        todos = [todo for file in sources(root) for todo in todos_of(file, root)]
        lines = "\n".join(f"- {todo.file}:{todo.line} {todo.kind}: {todo.text}" for todo in todos)
        return [
            user(f"These comments are open in our sources:\n\n{lines}\n\nWe have {days} days. What should come first?"),
            assistant("I will group them by risk and put FIXMEs first."),
        ]

    @addin.health
    def health() -> str:
        return f"{sum(1 for _ in sources(root))} source files"


def sources(folder: Path) -> Iterator[Path]:
    """The source files below a folder, in a steady order, without what is hidden or generated."""
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._" and name != "node_modules")
        for name in sorted(files):
            if Path(name).suffix in SOURCES:
                yield Path(directory, name)


def todos_of(file: Path, root: Path) -> Iterator[Todo]:
    if file.stat().st_size > LARGEST_FILE:
        return
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        if found := COMMENT.search(line):
            yield Todo(relative(file, root), number, kind=found[1], text=found[3], who=found[2])


def inside(root: Path, path: str) -> Path:
    """A path of the workspace; whoever asks for another one is told so."""
    target = (root / path).resolve()
    if not target.is_relative_to(root):
        raise ToolError(f"'{path}' is outside the workspace.")
    return target


def relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()
