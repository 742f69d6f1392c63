"""Commands in entries: their names and paths, whether they exist; and the command of this program itself.

Names and paths follow the rules of all systems, because files are copied between systems.
"""

from __future__ import annotations

import os
import sys

from ..system.folders import folders
from ..system.programs import named_program_candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ENDINGS = (".exe", ".cmd", ".bat")


def base_name(command: str) -> str:
    """The name of a program, without folder and Windows extension: `C:\\tools\\uvx.exe` is `uvx`."""
    name = command.replace("\\", "/").rpartition("/")[2]
    ending = name[-4:].lower()
    return name[:-4] if ending in _ENDINGS else name


def is_absolute(command: str) -> bool:
    return command.startswith(("/", "\\\\")) or command[1:3] in (":\\", ":/")


def find_command(name: str, folder: str, environ: Mapping[str, str], platform: str) -> str | None:
    """The executable file for a command on PATH, or relative to a folder; None if there is none."""
    found = named_program_candidates(name, folder, environ, platform)
    return next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def on_path(name: str, environ: Mapping[str, str], platform: str) -> bool:
    return find_command(name, "", environ, platform) is not None


def command_problem(command: str, environ: Mapping[str, str], platform: str) -> str:
    """The end of a sentence: why a command cannot be started; "" if it can, or if only the client knows."""
    if is_absolute(command):
        return "" if os.path.exists(command) else f"'{command}' does not exist"
    if any(sign in command for sign in "/\\$~%"):
        return ""  # only the client knows the folder or the variable
    return "" if on_path(command, environ, platform) else f"'{command}' is not on PATH"


PROGRAM_NAMES = ("uno-devserver", "uno.devserver")
MODULE = "uno_devserver"
# Clients start servers in the folder that they show; without -P Python would import files from there.
RUNS_MODULE = ("-P", "-m", MODULE)
_SCRIPT_ENDINGS = ("", ".exe")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # only compared
# Runners such as uvx and pipx install programs for a single run into their caches, which are cleared at times.
_CLEARED = ("UV_CACHE_DIR", "TMPDIR", "TEMP", "TMP")


def own_command(executable: str = sys.executable, called: str | None = None) -> tuple[str, ...]:
    """The absolute path of the console script, or else the interpreter and the module."""
    called = sys.argv[0] if called is None else called
    for script in _scripts(executable, called):
        if os.path.isfile(script):
            return (script,)
    return (os.path.abspath(executable), *RUNS_MODULE)


def is_temporary(path: str, environ: Mapping[str, str]) -> bool:
    """Whether a file is in a folder that is cleared at times, so that an entry with this command would break."""
    if not os.path.isabs(path):
        return False  # a name is searched for at each start
    cleared = [environ[name] for name in _CLEARED if environ.get(name)]
    cleared += [*_TEMPORARY, *_caches(environ)]
    places = (os.path.realpath(path), os.path.abspath(path))
    return any(_is_below(place, os.path.realpath(folder)) for place in places for folder in cleared)


def _scripts(executable: str, called: str) -> list[str]:
    """Candidates for the console script, first the one that was called: a link on PATH outlives its environment."""
    name = os.path.basename(called).lower()
    scripts = (
        [os.path.abspath(called)] if name.removesuffix(".exe") in PROGRAM_NAMES and os.path.dirname(called) else []
    )
    beside = os.path.dirname(os.path.abspath(executable))
    return scripts + [os.path.join(beside, name + ending) for name in PROGRAM_NAMES for ending in _SCRIPT_ENDINGS]


def _caches(environ: Mapping[str, str]) -> Sequence[str]:
    known = folders(environ)
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(known.home, ".cache")
    pipx = environ.get("PIPX_HOME") or os.path.join(known.home, ".local", "pipx")
    return (
        os.path.join(cache, "uv"),
        os.path.join(cache, "pipx"),
        os.path.join(pipx, ".cache"),
        os.path.join(known.home, ".local", "share", "pipx", ".cache"),
        os.path.join(known.local_application_data, "pipx", "pipx", "Cache"),
        os.path.join(known.home, "Library", "Caches"),
        os.path.join(known.local_application_data, "uv", "cache"),
    )


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/\\") + os.sep)
