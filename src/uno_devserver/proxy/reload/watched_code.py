"""Finds the code that hot reload watches in a workspace: its packages, and the settings of the config for them.

If there is none, or hot reload is off, or the user does not trust the workspace, the result is the reason. Reads the
disk, so the event loop calls it in a thread. Cheap to import: a launch reads its code first.
"""

from __future__ import annotations

import os
import re
import sys
import time

from ...system.log import log
from ...system.values import Value
from ...workspace.devtools_folder import CONFIG, find_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...hotreload.watched_package import WatchedPackage
    from ...issues import Issue
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ..options import ProxyOptions

NOT_TRUSTED = "the workspace is not trusted ('uno-devserver trust')"
NO_CONFIG = f"no {CONFIG} says where the code of the command is, and it was started without --watch"
BEHIND_URL = "the code of a server behind a URL is not known"
NOT_YET = "no server runs yet"
LAUNCH_SECONDS = 3.0  # that a launch waits until its code was read; 20,000 files take 0.3 s
NO_CODE = "there is no code to watch"
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

    Where no agreed config names the code of a typed command, `--watch` is the user's word for that of its package. A
    config of other servers or of another package does not name it; its other settings of hotReload count.
    `workspace`: None if the upstream does not depend on one; then a config near the command names its code.
    `before`: the last result, which is kept while the user has not agreed to what has changed since, and while the
    config cannot be read because it is being written.
    `untrusted`: ignore whether the user trusts the workspace, for a caller that only reads the code.
    """
    found = _configured_code(options, workspace, environ, before, untrusted=untrusted and not options.watch)
    if not options.watch or found not in (NO_CONFIG, NOT_TRUSTED):
        return found
    from ...workspace.config import Config

    package = _typed_package(options)
    return package if isinstance(package, str) else WatchedCode(package.root, (package,), Config())


def _typed_package(options: ProxyOptions) -> WatchedPackage | str:
    """The package that a typed command belongs to, or why it cannot be watched."""
    from ...hotreload.watched_package import Role, WatchedPackage
    from ...workspace.command_package import OutsideRepository, followed_manifests, package_of
    from ...workspace.config import Config
    from ...workspace.trust import ForeignCode

    try:
        root = package_of(options.command, options.directory)
    except ForeignCode as problem:
        return f"{problem.path} belongs to another user"
    except OutsideRepository as problem:
        return str(problem)
    started, node = _started_by(Config(), options.command, options.directory)
    project = _project(root, options.command, options.directory)
    scripts = _patterns_of(root, followed_manifests(options.command, options.directory), root)
    return WatchedPackage(Role.SERVER, root, scripts, project=project, started=started, node=node)


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
        path = find_config(options.directory) if options.server is None else None  # it cannot be that of several
        if path is None:
            return NO_CONFIG
        folder = os.path.dirname(os.path.dirname(path))
    from ...workspace.config import Config, read_config
    from ...workspace.trust import is_trusted

    trusted = is_trusted(environ, folder)
    config = read_config(path, options.server if workspace is not None else None)
    if trusted and not is_trusted(environ, folder):  # the config was saved while it was read
        trusted, config = False, read_config(path, config.name)
    if before is not None and before.folder == folder and not (config.readable and (trusted or options.watch)):
        return before
    if config.connects_only and not options.command:
        return BEHIND_URL
    packages = packages_of(folder, config, typed=options.command, directory=options.directory)
    if workspace is None and not _names_code_of_command(config, folder, options):
        package = _typed_package(options) if options.watch else NO_CONFIG
        if isinstance(package, str) or not any(title.startswith("hotReload.") for title in config.given):
            return NO_CONFIG
        settings = config.hot_reload.replace(server_name=None, include=(), exclude=(), watch=())
        packages, config = (package,), Config(config.path, hot_reload=settings)
    if not packages:
        return NO_CODE if config.name is None else f"{config.section} says by no root or cwd where its code is"
    if not config.hot_reload.enabled:
        return f"hotReload.enabled is false in {config.path}"
    if not trusted and not untrusted:
        return NOT_TRUSTED
    return WatchedCode(folder, packages, config.replace(issues=()))


def _names_code_of_command(config: Config, folder: str, options: ProxyOptions) -> bool:
    """Whether the config says what the code of the typed command is: not if it names only other servers."""
    from ...workspace.command_package import OutsideRepository, is_package, package_of
    from ...workspace.trust import ForeignCode

    if config.servers and not config.names_server:
        return False
    try:
        own = package_of(options.command, options.directory)
    except (ForeignCode, OutsideRepository):
        return True
    if not is_package(own) or own in map(os.path.realpath, (folder, config.server_folder or folder)):
        return True
    return not (config.names_server or options.watch)  # without --watch, the user has agreed to the whole workspace


def packages_of(
    folder: str, config: Config, *, typed: Sequence[str] = (), directory: str = ""
) -> tuple[WatchedPackage, ...]:
    """The packages of a workspace, even if hot reload is off.

    `typed`: the server's command, if the user typed it; `directory`: where it runs, if that is not the workspace.
    """
    from ...hotreload.watched_package import Role, WatchedPackage
    from ...workspace.command_package import followed_manifests
    from ...workspace.config import ServerCommand
    from ...workspace.devtools_folder import ADDINS_FOLDER as ADDINS

    include, exclude = config.hot_reload.include, config.hot_reload.exclude
    packages = []
    root = config.server_folder or (folder if typed and config.path is not None else None)
    if config.name is not None and config.server_root is None and (config.server is None or config.server.cwd is None):
        root = None  # of several servers, not each can be that of the whole workspace
    extension = config.extension_path
    server = config.server or ServerCommand()
    variables = None if typed else server.env_file  # they are read when the server starts
    if not typed and config.connects_only:
        root = None  # its code, if any, is not what answers
    elif root is not None:
        line, place = typed or (server.command or "", *server.args), folder if typed else server.cwd
        manifests = followed_manifests(line, directory or folder if typed else place or root)
        started, node = _started_by(config, typed, directory or folder)
        packages.append(
            WatchedPackage(
                Role.SERVER,
                root,
                (*include, *_pattern_of(root, variables), *_patterns_of(root, manifests, folder)),
                (*exclude, *_pattern_inside(root, extension)),
                workspace=folder,
                environment=_environment(root, config),
                project=_project(root, line, place),
                watch=config.hot_reload.watch,
                build=server.build,
                started=started,
                node=node,
            )
        )
    elif not typed and config.name is None and os.path.isdir(os.path.join(folder, ADDINS)):
        packages.append(WatchedPackage(Role.SERVER, folder, include, exclude, addins=True, workspace=folder))
    if extension is not None:
        packages.append(
            # Each of two packages has its own build, so one that is inside the other is not a part of it.
            WatchedPackage(
                Role.EXTENSION, extension, include, (*exclude, *_pattern_inside(extension, root)), workspace=folder
            )
        )
    return tuple(packages)


def _started_by(config: Config, typed: Sequence[str], directory: str) -> tuple[tuple[str, ...], str]:
    """The files that the command starts, without those that the .NET SDK finds and builds; and the Node that runs it.

    `typed`: the command, if the user typed it, and the `directory` where it runs; else it is that of the config.
    """
    from ...workspace.command_package import node_of, started_files
    from ...workspace.server_command import PACKAGE, ServerLine, server_command

    if typed:
        return started_files(typed, directory), node_of(typed, directory, os.environ)

    root, server = config.server_folder, config.server
    is_known = server is not None and (server.command is not None or server.build == ())
    if not is_known and not os.path.isfile(os.path.join(root or "", PACKAGE)):
        return (), ""
    line = server_command(config, os.environ, sys.platform)
    if not isinstance(line, ServerLine):
        return (), ""
    return line.started(), node_of(line.line, line.folder, line.environ(os.environ))


def missing_output(package: WatchedPackage, environ: Mapping[str, str], output: str = "") -> Issue | None:
    """Why a server cannot be started before a build has run, which writes a file that it starts or loads.

    `output`: the one that a .NET build writes to.
    """
    places = [os.path.join(os.path.realpath(place), "") for place in (package.root, output) if place]
    gone = [path for path in package.started if not os.path.exists(path)]
    missing = next((path for path in gone if os.path.realpath(path).startswith(tuple(places))), None)
    if missing is None and not _lack_output(package):
        return None
    from ...hotreload.build_command import build_of, unbuilt_package
    from ...hotreload.digest_store import DigestStore
    from ...issues import warning
    from ...system.folders import folders

    build = build_of(package, environ, sys.platform)
    if build is None:
        return None
    if missing is not None and build.writes:
        message = f"{missing} does not exist yet, so '{build.named}' runs first."
    elif used := unbuilt_package(build, DigestStore(folders(environ).state)):
        message = f"{used.folder} has not been built yet, so '{used.named}' runs there first."
    else:
        return None
    return warning("ServerNotBuilt", message)


def _lack_output(package: WatchedPackage) -> bool:
    """Whether packages that it uses lack files which their builds may write."""
    from ...workspace.npm_packages import missing_outputs, packages_to_build
    from ...workspace.repository import BudgetSpent

    try:
        return any(map(missing_outputs, packages_to_build(package.root, package.workspace)))
    except BudgetSpent:
        return False


def unbuilt_command(options: ProxyOptions, environ: Mapping[str, str]) -> Issue | None:
    """Why a typed command cannot be started before its package is built; None if it can."""
    code = find_watched_code(options, None, environ)
    return None if isinstance(code, str) else missing_output(code.packages[0], environ)


def count_addin_sources(folder: str, config: Config) -> int | None:
    """How many source files of the workspace's add-ins are watched; None if they are not watched."""
    watched = next((package for package in packages_of(folder, config) if package.addins), None)
    if watched is None or not config.hot_reload.enabled:
        return None
    from ...hotreload.sources.finder import find_sources

    return len(find_sources(watched).files)


def _project(root: str, line: Sequence[str], directory: str | None) -> str:
    """The .NET project or program in the root, or the Go package, that the command names; empty if it names none."""
    program = os.path.basename(line[0]).removesuffix(".exe")
    if program == "go":
        from ...hotreload.sources.go import run_package

        return run_package(line, directory or root, root)
    if program != "dotnet" and not program.endswith(".cs"):
        return ""
    from ...workspace.dotnet_project import named_in

    return named_in(line, directory or root, root)


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


def _patterns_of(root: str, paths: Sequence[str], workspace: str) -> tuple[str, ...]:
    """The patterns, from the root of a package, of those paths that are inside the workspace."""
    from ...workspace.repository import is_inside

    inside = (path for path in paths if is_inside(os.path.realpath(path), os.path.realpath(workspace)))
    return tuple(pattern for path in inside for pattern in _pattern_of(root, path))


def unknown_code(options: ProxyOptions) -> str | None:
    """Why it is not known where the code of a typed command or a URL is; None if it may be known."""
    if options.url is not None:
        return BEHIND_URL
    near = find_config(options.directory) if options.server is None else None
    return NO_CONFIG if near is None and not options.watch else None


def content_at_launch(options: ProxyOptions, workspace: Workspace | None, environ: Mapping[str, str]) -> str | None:
    """The digest of the code of a server before its start; None if it is not watched, or cannot be read.

    UNKNOWN if that takes too long for a launch: the first check starts the server again.
    """
    # A typed command is started even without the user's trust in the config, which may follow while it runs.
    subject = find_watched_code(options, workspace, environ, untrusted=bool(options.command))
    if isinstance(subject, str):
        return None
    from ...hotreload.digest_store import UNKNOWN
    from ...hotreload.fingerprint import Fingerprint
    from ...hotreload.sources.finder import find_sources
    from ...hotreload.watched_package import Role
    from ...workspace.repository import BudgetSpent, ReadBudget

    server = next((package for package in subject.packages if package.role is Role.SERVER), None)
    if server is None:
        return None
    budget = ReadBudget(LAUNCH_SECONDS, time.monotonic)
    try:
        digest = Fingerprint(lambda: find_sources(server, budget=budget), watches=False, budget=budget).digest()
        return UNKNOWN if budget.is_late else digest
    except BudgetSpent as spent:
        log.debug(f"the code of the server is not known at its start: {spent}")
        return UNKNOWN
    except Exception as error:
        log.debug(f"the code of the server cannot be read while it starts: {error}")
        return None
