"""Where a program is that somebody named, as a shell would find it; rules of all systems, pure.

A bare name is looked for in the folders of PATH and nowhere else: the current one may be a hostile workspace. On
Windows `npx` is found as `npx.cmd`, which is how the programs of Node lie there.
"""

from __future__ import annotations

import ntpath
import posixpath

from .run import program_candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL_ENDINGS = ".COM;.EXE;.BAT;.CMD"


def candidates(name: str, directory: str, environ: Mapping[str, str], platform: str) -> list[str]:
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
