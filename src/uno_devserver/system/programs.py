"""Find a program by its name, as a shell does. The rules of each system are pure functions.

A bare name is searched for in the absolute folders of PATH only: the current folder may be a hostile workspace. On
Windows `npx` is found as `npx.cmd`.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LAUNCHD_FOLDERS = frozenset({"/usr/bin", "/bin", "/usr/sbin", "/sbin"})  # the PATH of macOS's launchd
USUAL_ENDINGS = ".COM;.EXE;.BAT;.CMD"  # the endings of programs on Windows if PATHEXT is not set


def find_program(name: str, environ: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """The full path of a program on PATH; None if it is not found."""
    return first_executable(program_candidates(name, environ, platform))


def first_executable(paths: Iterable[str]) -> str | None:
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def program_candidates(name: str, environ: Mapping[str, str], platform: str) -> list[str]:
    """The files on PATH that a bare name may mean, the best first."""
    path = environ.get("PATH", "")
    if platform != "win32":
        return [f"{folder.rstrip('/')}/{name}" for folder in path.split(":") if folder.startswith("/")]
    folders = [folder.strip('" ').rstrip("\\/") + "\\" for folder in path.split(";")]
    absolute = [folder for folder in folders if folder.startswith("\\\\") or folder[1:3] in (":\\", ":/")]
    return [f"{folder}{name}{ending}" for folder in absolute for ending in _endings(environ)]


def about_path(environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """A sentence, with a space before it, about a PATH that is probably too short; else nothing.

    macOS starts applications from the Dock and the Finder by launchd, with its own PATH instead of that of the shell.
    """
    folders = {folder.rstrip("/") for folder in environ.get("PATH", "").split(":") if folder}
    if platform != "darwin" or not folders <= LAUNCHD_FOLDERS:
        return ""
    return " The client was not started from a terminal, so its PATH lacks the folders that your shell adds."


def named_program_candidates(name: str, directory: str, environ: Mapping[str, str], platform: str) -> list[str]:
    """The files that a name or a path may mean, the best first. A relative path is relative to `directory`."""
    if platform != "win32":
        return [typed_path(name, directory, platform)] if "/" in name else program_candidates(name, environ, platform)
    endings = _endings(environ)
    stem, ending = ntpath.splitext(name)
    named = ending.lower() if ending.lower() in endings else ""
    if ntpath.dirname(name):
        path = typed_path(name, directory, platform)
        return [path] if named else [f"{path}{ending}" for ending in endings]
    found = program_candidates(stem if named else name, environ, platform)
    return [path for path in found if path.endswith(named)]


def typed_path(name: str, directory: str, platform: str = sys.platform) -> str:
    """The full path of a program that is named with a folder, without the ending that Windows would add."""
    return ntpath.join(directory, name) if platform == "win32" else posixpath.join(directory, name)


def _endings(environ: Mapping[str, str]) -> list[str]:
    return [ending for ending in (environ.get("PATHEXT") or USUAL_ENDINGS).lower().split(";") if ending]
