"""Finds syntax errors in Python files before a server is started with them.

Our own Python judges first, because that takes no process. What it refuses may be valid for the Python of the server,
which may be newer: that one has the last word, if there is one beside the code or on PATH.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from ..system.files import FileProblem, read_bytes
from ..system.log import log
from ..system.programs import find_program
from ..system.run import run
from .build_command import up_to_repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_BYTES = 4 * 1024 * 1024  # the largest file whose syntax is checked; code has a few KB
JUDGE_SECONDS = 10.0  # a Python starts in 20 ms
KEPT_BYTES = 64 * 1024  # of the errors
ENVIRONMENTS = (".venv", "venv")

# Prints the errors of the files in its arguments, in the form of a traceback.
_JUDGE = """
import sys, traceback
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except OSError:
        pass
    except Exception as error:
        print("".join(traceback.format_exception_only(type(error), error)))
"""


def syntax_errors(root: str, names: Iterable[str], environ: Mapping[str, str] | None = None) -> str | None:
    """The errors that Python prints for these files below the root; None if there are none.

    `environ`: the environment of a server that may run in another Python; None if it runs in ours.
    """
    paths = [os.path.join(root, name) for name in sorted(names) if name.endswith(".py")]
    wrong = {path: error for path in paths if (error := _error(path))}
    errors = "\n".join(wrong.values())
    if wrong and environ is not None:
        errors = _second_opinion(root, list(wrong), environ, errors)
    return errors or None


def _error(path: str) -> str:
    try:
        compile(read_bytes(path, MAX_BYTES), path, "exec", dont_inherit=True)
    except (FileNotFoundError, FileProblem):  # the server reports this when it loads the file
        return ""
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        message = "".join(traceback.format_exception_only(error))
        return message if path in message else f'  File "{path}"\n{message}'
    return ""


def _second_opinion(root: str, paths: list[str], environ: Mapping[str, str], errors: str) -> str:
    """The errors that the Python of the server finds; those that ours found if it cannot be asked."""
    python = _python_of(root, environ)
    if python is None:
        return errors
    line = (python, "-I", "-S", "-c", _JUDGE, *paths)  # -I and -S: nothing of the workspace is imported
    judged = run(line, cwd=root, environ=environ, seconds=JUDGE_SECONDS, keep_bytes=KEPT_BYTES, with_errors=False)
    if not judged.succeeded:
        log.debug(f"{python} cannot check the syntax: it {judged.problem or 'failed'}")
        return errors
    return judged.output.decode("utf-8", "replace").strip()


def _python_of(root: str, environ: Mapping[str, str]) -> str | None:
    inside = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    folders = [os.path.join(folder, name) for folder in up_to_repository(root) for name in ENVIRONMENTS]
    folders += [active] if (active := environ.get("VIRTUAL_ENV")) else []
    for folder in folders:
        if os.path.isfile(python := os.path.join(folder, *inside)):
            return python
    return find_program("python3", environ, sys.platform) or find_program("python", environ, sys.platform)
