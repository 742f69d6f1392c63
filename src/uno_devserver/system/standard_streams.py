"""What standard input, output and error are on Windows. Imported only there.

Python's default encoding for pipes and files is the code page of the system, in which most characters are missing, and
which few readers expect. A console takes any text. Elsewhere the locale decides, which is UTF-8 on any system of today.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO


def print_utf8(environ: Mapping[str, str] = os.environ) -> None:
    """Let standard output and error be UTF-8, unless the user named an encoding."""
    if environ.get("PYTHONIOENCODING"):
        return
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def is_console(stream: TextIO | None) -> bool:
    """Whether a person is at the stream; `isatty` says so of NUL, too."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return type(raw).__name__ == "_WindowsConsoleIO"
