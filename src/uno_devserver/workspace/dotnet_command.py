"""The command line of a .NET server: what `dotnet run` would start, without `dotnet run` itself.

That needs 1.0 s where the program needs 0.3 s, and prints a line on standard output, which is for messages. As it does,
the first profile of `launchSettings.json` that starts the project sets variables and arguments.
"""

from __future__ import annotations

import os
import re

from ..system.files import FileProblem, read_bytes
from ..system.folders import folders
from ..system.jsonc import JsonProblem, parse
from ..system.state_files import name_for
from ..system.values import Value
from .dotnet_project import ASSETS, dotnet_root, is_program, read_project
from .dotnet_query import stored_answer
from .repository import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_BYTES = 1024 * 1024  # a launchSettings.json has a page
COPIES = "uno-devserver"  # the folder for copies of the output, among the intermediate files
ROOT_VARIABLE = "DOTNET_ROOT"  # by which a program finds an installation that is not in the usual place
_WORD = re.compile(r'((?:"[^"]*"|[^\s"])+)')
_VARIABLE = re.compile(r"%([^%]+)%")


class DotNetCommand(Value):
    line: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    output: str = ""  # the folder with the program; empty if it is started by `dotnet run`
    copies: str = ""  # the folder for copies of it


def dotnet_command(
    path: str, arguments: tuple[str, ...], environ: Mapping[str, str], *, is_built: bool
) -> DotNetCommand:
    """The command line of a project or file-based program; `is_built` if hot reload builds it. Runs nothing."""
    project = read_project(path, environ)
    project = stored_answer(project, environ) or project
    output = os.path.dirname(project.target)
    line = (project.command, *_words(project.arguments))
    if not is_built or not project.command or not output or not any(is_inside(word, output) for word in line):
        return DotNetCommand(_by_dotnet_run(path, arguments, is_built))
    profile = _profile(path)
    given = profile.get("commandLineArgs")
    more = arguments or (_words(given) if isinstance(given, str) else ())
    restored = os.path.isfile(os.path.join(project.intermediate, ASSETS))
    copies = project.intermediate if restored else os.path.join(folders(environ).state, "dotnet", name_for(path))
    return DotNetCommand(
        (*line, *more), tuple(_environment(profile, environ).items()), output, os.path.join(copies, COPIES)
    )


def _by_dotnet_run(path: str, arguments: tuple[str, ...], is_built: bool) -> tuple[str, ...]:
    options = ("--no-build",) if is_built else ()
    named = (path,) if is_program(path) else ("--project", path)
    return ("dotnet", "run", *options, *named, *(("--", *arguments) if arguments else ()))


def _words(text: str) -> tuple[str, ...]:
    """The words of a command line; quotes keep blanks together."""
    return tuple(word.replace('"', "") for word in _WORD.findall(text))


def _profile(path: str) -> dict[str, Any]:
    """The launch profile that `dotnet run` uses by default; empty if there is none."""
    stem, ending = os.path.splitext(path)
    folder = os.path.join(os.path.dirname(path), "My Project" if ending.lower() == ".vbproj" else "Properties")
    for settings in (os.path.join(folder, "launchSettings.json"), f"{stem}.run.json"):
        try:
            document = parse(read_bytes(settings, MAX_BYTES))
        except (FileNotFoundError, FileProblem, JsonProblem):  # `dotnet run` goes on without it, too
            continue
        profiles = document.get("profiles") if isinstance(document, dict) else None
        for profile in profiles.values() if isinstance(profiles, dict) else ():
            if isinstance(profile, dict) and profile.get("commandName") == "Project":
                return profile
    return {}


def _environment(profile: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that `dotnet run` would set: those of the profile, and the place of .NET."""
    root = dotnet_root(environ)
    variables = {ROOT_VARIABLE: root} if root and ROOT_VARIABLE not in environ else {}
    if isinstance(url := profile.get("applicationUrl"), str):
        variables["ASPNETCORE_URLS"] = url
    own = profile.get("environmentVariables")
    for name, value in own.items() if isinstance(own, dict) else ():
        if isinstance(value, str):
            variables[name] = _VARIABLE.sub(lambda found: environ.get(found[1], found[0]), value)
    return variables
