"""What is wrong with a config, and what may surprise: seen from the disk, without running anything."""

from __future__ import annotations

import os
import sys

from ..hotreload.package import Role
from ..hotreload.sources.find import find_sources
from ..hotreload.sources.globs import Globs
from ..issues import Issue
from ..system.programs import candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..hotreload.builds import Build
    from ..workspace.server_command import ServerLine
    from .config_report import Findings

# An argument that ends so is a file that the program runs; others may mean anything.
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".dll")


def problems(found: Findings) -> Iterator[tuple[str, str]]:
    """What keeps something from working; each with the next step, where there is one."""
    server = found.commands.server
    unknown = [server] if isinstance(server, Issue) and not _may_be_typed(found) else []
    for issue in (*found.config.issues, *unknown):
        yield issue.message, issue.remediation
    if server is not None and not isinstance(server, Issue):
        yield from _program(found, "server", "mcpServer", server.line[0], server.folder, server.environ(os.environ))
        missing = _missing_script(server)
        if missing is not None and _server_build(found) is None:
            yield f"The server cannot be started: there is no file {missing}.", "Correct its path, or build it."
    if found.commands.client is not None:
        line, folder = found.commands.client
        yield from _program(found, "client", "client", line[0], folder, os.environ)
    for package, build, files in found.sources:
        if not os.path.isdir(package.root):  # which was said above
            continue
        yield from ((problem, "") for problem in files.problems)
        if build is not None and build.problem:
            yield build.problem, ""


def remarks(found: Findings) -> Iterator[str]:
    """What may be meant so."""
    server, build = found.commands.server, _server_build(found)
    if isinstance(server, Issue) and _may_be_typed(found):
        typed = "That is no matter for 'uno-devserver mcp start -- <command>'; else:"
        yield f"{server.message} {typed} {server.remediation}"
    if build is not None and server is not None and not isinstance(server, Issue):
        missing = _missing_script(server)
        if missing is not None:
            yield f"{missing} does not exist yet; {build.named} is run when the server is first needed."
    for package, _, files in found.sources:
        if not files.files and os.path.isdir(package.root):
            where = f"No file in {package.root} counts as code of the {package.role.value}, so no edit is noticed"
            yield f"{where}; hotReload.include can name some."
    for setting, pattern in _idle_patterns(found):
        yield f'hotReload.{setting}: "{pattern}" fits no file; patterns begin at the root of the package.'


def _may_be_typed(found: Findings) -> bool:
    """Whether the config only tells where the code is: the command may be what the user types."""
    return found.config.server is None and any(
        files.files for package, _, files in found.sources if package.role is Role.SERVER
    )


def _program(
    found: Findings, who: str, section: str, name: str, folder: str, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if any(os.path.isfile(path) for path in candidates(name, folder, environ, sys.platform)):
        return
    message = f"The {who} cannot be started: the program '{name}' is not found."
    program, *arguments = name.split()
    if arguments:
        yield message, f"Write its arguments apart, as {section}.args: the program is '{program}' then."
    else:
        yield message, f"Install it, or name another as {section}.command in {found.config.path}."


def _missing_script(server: ServerLine) -> str | None:
    script = next((word for word in server.line[1:] if word.endswith(_SCRIPTS) and not word.startswith("-")), None)
    path = None if script is None else os.path.normpath(os.path.join(server.folder, script))
    return None if path is None or os.path.exists(path) else path


def _server_build(found: Findings) -> Build | None:
    return next((build for package, build, _ in found.sources if package.role is Role.SERVER), None)


def _idle_patterns(found: Findings) -> Iterator[tuple[str, str]]:
    hot_reload = found.config.hot_reload
    if not found.sources:
        return
    if hot_reload.include:
        yield from _idle("include", hot_reload.include, [path for _, _, files in found.sources for path in files.files])
    if hot_reload.exclude:
        whole = (find_sources(package.replace(exclude=())) for package, _, _ in found.sources)
        yield from _idle("exclude", hot_reload.exclude, [path for files in whole for path in files.files])


def _idle(setting: str, patterns: tuple[str, ...], paths: list[str]) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        globs = Globs((pattern,), setting)
        if not globs.problems and not any(globs.describe(path) for path in paths):
            yield setting, pattern
