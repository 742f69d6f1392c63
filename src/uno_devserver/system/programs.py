"""Where a program is that somebody named, as a shell would find it; rules of all systems, pure.

A bare name is looked for in the folders of PATH and nowhere else: the current one may be a hostile workspace. On
Windows `npx` is found as `npx.cmd`, which is how the programs of Node lie there.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL_ENDINGS = ".COM;.EXE;.BAT;.CMD"


def named_program_candidates(name: str, directory: str, environ: Mapping[str, str], platform: str) -> list[str]:
    """The files that it may be, the best first. A relative path is one from `directory`."""
    if platform != "win32":
        return [posixpath.join(directory, name)] if "/" in name else program_candidates(name, environ, platform)
    endings = [ending for ending in (environ.get("PATHEXT") or USUAL_ENDINGS).lower().split(";") if ending]
    stem, ending = ntpath.splitext(name)
    named = ending.lower() if ending.lower() in endings else ""
    if ntpath.dirname(name):
        path = ntpath.join(directory, name)
        return [path] if named else [f"{path}{ending}" for ending in endings]
    found = program_candidates(stem if named else name, environ, platform)
    return [path for path in found if path.endswith(named)]


def find_program(name: str, environ: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """The full path of a program on PATH; relative entries do not count, they could be a file of the workspace."""
    for path in program_candidates(name, environ, platform):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def program_candidates(name: str, environ: Mapping[str, str], platform: str) -> list[str]:
    path = environ.get("PATH", "")
    if platform != "win32":
        return [f"{folder.rstrip('/')}/{name}" for folder in path.split(":") if folder.startswith("/")]
    folders = [folder.strip('" ').rstrip("\\/") + "\\" for folder in path.split(";")]
    endings = (environ.get("PATHEXT") or ".COM;.EXE;.BAT;.CMD").lower().split(";")
    absolute = [folder for folder in folders if folder.startswith("\\\\") or folder[1:3] in (":\\", ":/")]
    return [f"{folder}{name}{ending}" for folder in absolute for ending in endings if ending]
