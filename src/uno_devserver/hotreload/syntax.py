"""What Python would say to the changed files of add-ins, before a Host that works is given up for them.

They are compiled in memory, and nothing of them is run. Only for add-ins: their Host has our own interpreter, while
another server may have another version of Python, with another syntax.
"""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

from ..system.files import FileProblem, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_BYTES = 4 * 1024 * 1024  # of a file that is looked into; code has some KB


def syntax_errors(root: str, names: Iterable[str]) -> str | None:
    """Of these files, which are named from the root: what Python prints; None: there are none."""
    found = [error for name in sorted(names) if name.endswith(".py") and (error := _error(os.path.join(root, name)))]
    return "\n".join(found) or None


def _error(path: str) -> str:
    try:
        compile(read_bytes(path, MAX_BYTES), path, "exec", dont_inherit=True)
    except (FileNotFoundError, FileProblem):  # whoever loads it says what is the matter
        return ""
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        told = "".join(traceback.format_exception_only(error))
        return told if path in told else f'  File "{path}"\n{told}'
    return ""
