"""Syntax errors in JavaScript that Node itself loads, found by `node --check` before a server is started with it.

Nothing of the server is run. A file counts if the started script leads to it by relative imports; others, like code for
a browser with JSX, may be none that Node understands.
"""

from __future__ import annotations

import os
import re
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING

from ..system.files import FileProblem, read_bytes
from ..system.programs import first_executable, named_program_candidates
from ..system.run import run
from ..system.text import decode_output, shortened_output
from ..workspace.npm_packages import PACKAGE_JSON, offered_files, read_manifest
from ..workspace.paths import upwards
from .sources.typescript.imports import scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .watched_package import WatchedPackage

MAX_BYTES = 4 * 1024 * 1024  # the largest file whose imports are read; code has a few KB
MAX_SECONDS = 5.0  # for all files of a change; Node needs 0.05 s for each, and what it was not asked of is no error
KEPT_BYTES = 64 * 1024  # of what Node prints of one file: the line with the error may be long
SHOWN_ERRORS, SHOWN_CHARACTERS = 5, 2000
CHECKED = (".js", ".mjs", ".cjs")
FOLLOWED = (*CHECKED, ".ts", ".mts", ".cts")  # newer versions run TypeScript too
COMPLETIONS = ("", ".js", "/index.js")  # what Node tries for the name in `require`
_IMPORTS = re.compile(rb"(?m)^(?:import|export)[\s{*\"']")
_STACK = re.compile(r"(?m)^    at .*\n|^\s*Node\.js v.*\n?")


def javascript_errors(
    package: WatchedPackage, names: Iterable[str], used: Iterable[str], environ: Mapping[str, str]
) -> str | None:
    """What Node prints of the errors in these files of a package; None if there are none, or no Node.

    `used`: the folders of the packages of the same repository that this one uses.
    """
    program = first_executable(named_program_candidates(package.node, package.root, environ, sys.platform))
    paths = {os.path.realpath(os.path.join(package.root, name)) for name in names if name.endswith(CHECKED)}
    if program is None or not paths:
        return None
    deadline = time.monotonic() + MAX_SECONDS
    folders = [os.path.realpath(folder) for folder in (package.root, *used)]
    loaded = _loaded([package.started[0], *(path for folder in used for path in offered_files(folder))], deadline)
    paths = {path for path in paths & loaded if any(path.startswith(os.path.join(folder, "")) for folder in folders)}
    errors = (_error(program, path, environ, deadline) for path in sorted(paths))
    return "\n".join(islice(filter(None, errors), SHOWN_ERRORS)) or None


def _loaded(entries: Iterable[str], deadline: float) -> set[str]:
    """The real paths of these files, and of those that their relative imports lead to, as far as there is time."""
    found: set[str] = set()
    waiting = list(entries)
    while waiting and time.monotonic() < deadline:
        path = os.path.realpath(waiting.pop())
        if path in found or not path.endswith(FOLLOWED):
            continue
        try:
            imports = scan(read_bytes(path, MAX_BYTES), javascript=True)
        except (FileNotFoundError, FileProblem):
            continue
        found.add(path)
        for name in (*imports.static, *imports.dynamic, *imports.required):
            if name.startswith("."):
                base = os.path.join(os.path.dirname(path), name)
                waiting += [base + ending for ending in COMPLETIONS if os.path.isfile(base + ending)]
    return found


def _error(program: str, path: str, environ: Mapping[str, str], deadline: float) -> str:
    """What Node prints of the error in a file; empty if there is none, or if that is not known in time."""
    if time.monotonic() >= deadline:
        return ""
    ways: list[tuple[tuple[str, ...], bytes]] = [(("--check", path), b"")]
    try:
        content = read_bytes(path, MAX_BYTES)
    except (FileNotFoundError, FileProblem):  # the server reports this when it loads the file
        return ""
    if path.endswith(".js") and _IMPORTS.search(content) and _has_no_type(path):
        ways.append((("--check", "--input-type=module", "-"), content))  # --check believes that it is a module
    for arguments, given in ways:
        ran = run(
            (program, "--no-warnings", *arguments),
            cwd=os.path.dirname(path),
            environ=environ,
            seconds=max(0.0, deadline - time.monotonic()),
            keep_bytes=KEPT_BYTES,
            input_bytes=given,
        )
        printed = decode_output(ran.output)
        if ran.exit_code and "SyntaxError: " in printed:
            return shortened_output(_STACK.sub("", printed.replace("[stdin]", path)).strip(), SHOWN_CHARACTERS)
    return ""


def _has_no_type(path: str) -> bool:
    """Whether no package.json says if this is a module; then Node finds that out from the content."""
    above = upwards(os.path.dirname(path))
    nearest = next((folder for folder in above if os.path.isfile(os.path.join(folder, PACKAGE_JSON))), "")
    return "type" not in read_manifest(nearest)
