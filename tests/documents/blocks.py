"""The documents in pieces: their headings, and every block of code with its language and place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted((ROOT / "examples").glob("**/README.md")),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"\s+# .*")
_SAID_CODE = re.compile(r"\s+# .*\bexit code (\d+)$")


@dataclass(frozen=True)
class Block:
    page: str  # relative to the repository
    heading: str  # the nearest one above it
    number: int  # of the blocks of this language on the page
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.heading}:{self.number}"


@dataclass(frozen=True)
class Step:
    """A line that a reader types, and the lines that the document shows below it."""

    line: str
    shown: tuple[str, ...]

    @property
    def command(self) -> str:
        """Without what a shell would take for a comment."""
        return _COMMENT.sub("", self.line)

    @property
    def exit_code(self) -> int:
        """What its comment ends with (`exit code 1`), else 0."""
        said = _SAID_CODE.search(self.line)
        return int(said[1]) if said else 0


def blocks(*languages: str, pages: tuple[Path, ...] = PAGES) -> list[Block]:
    return [block for page in pages for block in _of_page(page) if block.language in languages]


def steps(block: Block) -> list[Step]:
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            assert found, f"{block.name}: '{line}' stands before any command"
            found[-1][1].append(line)
    assert found, f"{block.name} has no command"
    return [Step(line, tuple(shown)) for line, shown in found]


def _of_page(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    counted: dict[str, int] = {}
    for match in _FENCE.finditer(text):
        language = match[1]
        counted[language] = counted.get(language, 0) + 1
        headings = re.findall(r"^#+ (.*)", _FENCE.sub("", text[: match.start()]), re.MULTILINE)
        name = str(page.relative_to(ROOT))
        yield Block(name, headings[-1] if headings else "", counted[language], language, match[2])
