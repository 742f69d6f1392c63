"""Whether colours are wanted, and what each of them means. The only place that knows.

They are for people: a stream that is no terminal never gets any, so that a pipe has the text alone. FORCE_COLOR and its
kin do not change that: build machines and editors set them for everything that they start, and read our text.
"""

from __future__ import annotations

import os
import sys
from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

RESET = "\x1b[0m"


class Style(Enum):
    """What a text is; its value is how a terminal shows that. Only the basic colours, which every theme adapts."""

    HEADING = "1"
    GOOD = "32"
    WARN = "33"
    BAD = "31"
    DIM = "2"
    NAME = "36"


def styled(text: str, style: Style | None, stream: TextIO | None = None) -> str:
    """The text as this stream (usually stdout) shows it; in lines, since some pagers forget colours at a line's end."""
    if style is None or not has_colours(stream or sys.stdout):
        return text
    return "\n".join(f"\x1b[{style.value}m{line}{RESET}" if line else "" for line in text.split("\n"))


def log_prefixes(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the levels of the log, as stderr shows them."""
    styles = (Style.DIM, Style.DIM, None, Style.WARN, Style.BAD, Style.BAD)
    return tuple(
        prefix and styled(prefix.rstrip(), style, sys.stderr) + " "
        for prefix, style in zip(prefixes, styles, strict=True)
    )


def has_colours(stream: TextIO | None) -> bool:
    return stream is not None and wanted(os.environ, is_terminal=stream.isatty()) and _shows(stream)


def wanted(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """As no-color.org has it: any value of NO_COLOR but an empty one."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _shows(stream: TextIO) -> bool:
    if os.name != "nt":
        return True
    from ..system.console import shows_escapes

    return shows_escapes(stream.fileno())
