"""Finds the code that hot reload watches in a workspace: its packages, and the settings of the config for them.

If there is none, or hot reload is off, or the user does not trust the workspace, the result is the reason. Reads the
disk, so the event loop calls it in a thread. Cheap to import: a launch reads its code first.
"""

from __future__ import annotations

import os
import re

from ...system.log import log
from ...system.values import Value
from ...workspace.config_file import CONFIG, find_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...hotreload.watched_package import WatchedPackage
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ..options import ProxyOptions

NOT_TRUSTED = "the workspace is not trusted ('uno-devserver trust')"
NO_CONFIG = f"no {CONFIG} says where the code of the command is, and it was started without --watch"
BEHIND_URL = "the code of a server behind a URL is not known"
NOT_YET = "no server runs yet"
_WILDCARDS = re.compile(r"[*?{}\\]")  # patterns have no way to quote these


class WatchedCode(Value):
    folder: str  # of the workspace
    packages: tuple[WatchedPackage, ...]
    config: Config  # without its issues, which are reported elsewhere
    channel: str | None = None  # of the proxy that owns the Host and watches its code; None if this proxy watches it


def find_watched_code(
    options: ProxyOptions,
    workspace: Workspace | None,
    environ: Mapping[str, str],
    before: WatchedCode | None = None,
    *,
    untrusted: bool = False,
) -> WatchedCode | str:
    """The code to watch, or why there is none, as the end of a sentence.

    Where no agreed config names the code of a typed command, `--watch` is the user's word for that of its package.
    `workspace`: None if the upstream does not depend on one; then a config near the command names its code.
    `before`: the last result, which is kept while the config cannot be read because it is being written.
    `untrusted`: ignore whether the user trusts the workspace, for a caller that only reads the code.
    """
    found = _configured_code(options, workspace, environ, before, untrusted=untrusted and not options.watch)
    if not options.watch or found not in (NO_CONFIG, NOT_TRUSTED):
        return found
    from ...hotreload.watched_package import Role, WatchedPackage
    from ...workspace.command_package import OutsideRepository, package_of
    from ...workspace.config import Config
    from ...workspace.trust import ForeignCode

    try:
        root = package_of(options.command, options.directory)
    except ForeignCode as problem:
        return f"{problem.path} belongs to another user"
    except OutsideRepository as problem:
        return str(problem)
    return WatchedCode(root, (WatchedPackage(Role.SERVER, root),), Config())


def _configured_code(
    options: ProxyOptions,
    workspace: Workspace | None,
    environ: Mapping[str, str],
    before: WatchedCode | None,
    *,
    untrusted: bool,
) -> WatchedCode | str:
    if options.url is not None:
        return BEHIND_URL
    if workspace is not None:
        folder, path = workspace.working_directory, workspace.config
    else:
        path = find_config(options.directory)
        if path is None:
            return NO_CONFIG
        folder = os.path.dirname(os.path.dirname(path))
    from ...workspace.config import read_config
    from ...workspace.trust import is_trusted, was_trusted

    trusted = is_trusted(environ, folder)
    config = read_config(path)
    if trusted and not is_trusted(environ, folder):  # the config was saved while it was read
        trusted, config = False, read_config(path)
    if not config.readable and before is not None and before.config.path == path and was_trusted(environ, folder):
        return before
    packages = packages_of(folder, config, typed=bool(options.command))
    if not packages:
        return "there is no code to watch"
    if not config.hot_reload.enabled:
        return f"hotReload.enabled is false in {config.path}"
    if not trusted and not untrusted:
        return NOT_TRUSTED
    return WatchedCode(folder, packages, config.replace(issues=()))


def packages_of(folder: str, config: Config, *, typed: bool = False) -> tuple[WatchedPackage, ...]:
    """The packages of a workspace, even if hot reload is off. `typed`: whether the user typed the server's command."""
    from ...hotreload.watched_package import Role, WatchedPackage
    from ...workspace.addins import ADDINS_FOLDER as ADDINS
    from ...workspace.config import ServerCommand

    include, exclude = config.hot_reload.include, config.hot_reload.exclude
    packages = []
    root = config.server_folder or (folder if typed and config.path is not None else None)
    extension = config.extension_path
    server = config.server or ServerCommand()
    variables = None if typed else server.env_file  # they are read when the server starts
    if root is not None:
        packages.append(
            WatchedPackage(
                Role.SERVER,
                root,
                (*include, *_pattern_of(root, variables)),
                (*exclude, *_pattern_inside(root, extension)),
                workspace=folder,
                environment=_environment(root, config),
                watch=config.hot_reload.watch,
                build=server.build,
            )
        )
    elif not typed and os.path.isdir(os.path.join(folder, ADDINS)):
        packages.append(WatchedPackage(Role.SERVER, folder, include, exclude, addins=True, workspace=folder))
    if extension is not None:
        packages.append(
            # Each of two packages has its own build, so one that is inside the other is not a part of it.
            WatchedPackage(
                Role.EXTENSION, extension, include, (*exclude, *_pattern_inside(extension, root)), workspace=folder
            )
        )
    return tuple(packages)


def count_addin_sources(folder: str, config: Config) -> int | None:
    """How many source files of the workspace's add-ins are watched; None if they are not watched."""
    watched = next((package for package in packages_of(folder, config) if package.addins), None)
    if watched is None or not config.hot_reload.enabled:
        return None
    from ...hotreload.sources.finder import find_sources

    return len(find_sources(watched).files)


def _environment(root: str, config: Config) -> str:
    """The virtual environment of Python that has the server's program; empty if there is none."""
    server = config.server
    if server is None or not server.command or os.path.basename(server.command) == server.command:
        return ""
    program = os.path.normpath(os.path.join(server.cwd or root, server.command))
    environment = os.path.dirname(os.path.dirname(program))
    return environment if os.path.isfile(os.path.join(environment, "pyvenv.cfg")) else ""


def _pattern_inside(root: str, other: str | None) -> tuple[str, ...]:
    """The pattern of a path that is inside a package; none if it is not."""
    return _pattern_of(root, other) if other is not None and other.startswith(os.path.join(root, "")) else ()


def _pattern_of(root: str, path: str | None) -> tuple[str, ...]:
    """The pattern, from the root of a package, of a path in the same workspace; none if there is no path."""
    return () if path is None else (_WILDCARDS.sub("?", os.path.relpath(path, root).replace(os.sep, "/")),)


def unknown_code(options: ProxyOptions) -> str | None:
    """Why it is not known where the code of a typed command or a URL is; None if it may be known."""
    if options.url is not None:
        return BEHIND_URL
    return NO_CONFIG if find_config(options.directory) is None and not options.watch else None


def content_at_launch(options: ProxyOptions, workspace: Workspace | None, environ: Mapping[str, str]) -> str | None:
    """The digest of the code of a server before its start; None if it is not watched, or cannot be read."""
    # A typed command is started even without the user's trust in the config, which may follow while it runs.
    subject = find_watched_code(options, workspace, environ, untrusted=bool(options.command))
    if isinstance(subject, str):
        return None
    from ...hotreload.fingerprint import Fingerprint
    from ...hotreload.sources.finder import find_sources
    from ...hotreload.watched_package import Role

    server = next((package for package in subject.packages if package.role is Role.SERVER), None)
    if server is None:
        return None
    try:
        return Fingerprint(lambda: find_sources(server), watches=False).digest()
    except Exception as error:
        log.debug(f"the code of the server cannot be read while it starts: {error}")
        return None
