"""Python sources before a server is started with them: finds syntax errors, and removes old compiled copies.

Our own Python judges the syntax, and nothing is run. What it refuses may be valid for a newer Python: where the server
may have one, by the file of its environment or the name of the program on PATH, nothing is an error.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import TYPE_CHECKING

from ..system.files import FileProblem, names_in, read_bytes, read_head, remove_file
from ..system.log import log
from ..system.programs import find_program
from .build_command import up_to_repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_BYTES = 4 * 1024 * 1024  # the largest file whose syntax is checked; code has a few KB
ENVIRONMENTS = (".venv", "venv")
ENVIRONMENT_BYTES = 4096  # of the file that describes an environment
PYCACHE = "__pycache__"


def syntax_errors(root: str, names: Iterable[str], environ: Mapping[str, str] | None = None) -> str | None:
    """The errors that Python prints for these files below the root; None if there are none.

    `environ`: the environment of a server that may run in another Python; None if it runs in ours.
    """
    # The names have slashes; what is printed is spelled as the system does.
    paths = [os.path.normpath(os.path.join(root, name)) for name in sorted(names) if name.endswith(".py")]
    errors = "\n".join(error for path in paths if (error := _error(path)))
    if errors and environ is not None and _version_of(root, environ) > sys.version_info[:2]:
        return None
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


def _version_of(root: str, environ: Mapping[str, str]) -> tuple[int, ...]:
    """The version of the server's Python, as far as files tell; else ours."""
    folders = [os.path.join(folder, name) for folder in up_to_repository(root) for name in ENVIRONMENTS]
    folders += [active] if (active := environ.get("VIRTUAL_ENV")) else []
    for folder in folders:
        try:
            told = read_head(os.path.join(folder, "pyvenv.cfg"), ENVIRONMENT_BYTES).decode("utf-8", "replace")
        except (FileNotFoundError, FileProblem):
            continue
        found = re.search(r"(?m)^version(?:_info)?\s*=\s*(\d+)\.(\d+)", told)
        return (int(found[1]), int(found[2])) if found else sys.version_info[:2]
    program = find_program("python3", environ, sys.platform) or find_program("python", environ, sys.platform)
    named = re.search(r"python(\d)\.(\d+)", os.path.basename(os.path.realpath(program))) if program else None
    return (int(named[1]), int(named[2])) if named else sys.version_info[:2]


def remove_bytecode(root: str, changed: Iterable[str]) -> None:
    """Remove the compiled copies of these files below the root.

    Python uses a copy if the length and the modification time (in seconds) of its source are unchanged, which can be
    so after a quick edit.
    """
    for path in changed:
        if path.endswith(".py"):
            folder, name = os.path.split(os.path.join(root, path))
            _remove_compiled(os.path.join(folder, PYCACHE), name[:-2])


def _remove_compiled(folder: str, stem: str) -> None:
    """Remove the copies made by any version of Python: `module.cpython-311.pyc`, `module.cpython-311.opt-1.pyc`."""
    for name in names_in(folder):
        if name.startswith(stem) and name.endswith(".pyc"):
            try:
                remove_file(os.path.join(folder, name))
            except OSError as error:
                log.debug(f"the compiled copy {name} in {folder} stays: {error}")
