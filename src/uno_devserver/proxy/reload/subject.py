"""What hot reload is about in a workspace: the packages whose code counts, and what the config says about them.

A reason instead where there is nothing to watch, where it is switched off, or where the user has not agreed that code
of the workspace may run. Looks at the disk, so it belongs into a thread. Cheap to import: it is asked while a server
starts.
"""

from __future__ import annotations

import os
import re

from ...hotreload.package import Package, Role
from ...system.log import log
from ...system.values import Value
from ...workspace.addins import FOLDER as ADDINS
from ...workspace.config import Config, read_config
from ...workspace.resolver import CONFIG, find_config
from ...workspace.trust import is_trusted, was_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...workspace.resolver import Workspace
    from ..options import Options


NOT_TRUSTED = "the workspace is not trusted ('uno-devserver trust')"
NO_CONFIG = f"no {CONFIG} says where the code of the command is"
BEHIND_URL = "the code of a server behind a URL is not known"
_SPECIAL = re.compile(r"[*?{}\\]")  # in patterns; there is no way to quote them


class Subject(Value):
    folder: str  # of the workspace
    packages: tuple[Package, ...]
    config: Config  # without its problems, which others report


def subject_of(
    options: Options,
    workspace: Workspace | None,
    environ: Mapping[str, str],
    before: Subject | None = None,
    *,
    unagreed: bool = False,
) -> Subject | str:
    """`workspace`: None where the upstream does not depend on one; its code is where a config near it says.

    `before`: what it was until now, and stays while the config cannot be read: it is just being written.
    `unagreed`: what it would be if the user agreed, for those who only read.
    A text, the end of a sentence: why code is not reloaded.
    """
    if options.url is not None:
        return BEHIND_URL
    if workspace is not None:
        folder, path = workspace.working_directory, workspace.config
    else:
        path = find_config(options.directory)
        if path is None:
            return NO_CONFIG
        folder = os.path.dirname(os.path.dirname(path))
    trusted = is_trusted(environ, folder)
    config = read_config(path)
    if trusted and not is_trusted(environ, folder):  # saved while it was read, and another question now
        trusted, config = False, read_config(path)
    if not config.readable and before is not None and before.config.path == path and was_trusted(environ, folder):
        return before
    packages = packages_of(folder, config, typed=bool(options.command))
    if not packages:
        return "there is no code to watch"
    if not config.hot_reload.enabled:
        return f"hotReload.enabled is false in {config.path}"
    if not trusted and not unagreed:
        return NOT_TRUSTED
    return Subject(folder, packages, config.replace(issues=()))


def unknown_code(options: Options) -> str | None:
    """Why nobody can tell where the code of a server is that depends on no workspace; None where somebody may."""
    if options.url is not None:
        return BEHIND_URL
    return NO_CONFIG if find_config(options.directory) is None else None


def content_at_launch(options: Options, workspace: Workspace | None, environ: Mapping[str, str]) -> str | None:
    """The digest of the code of the server that is about to be started; None: it is not watched, or cannot be read.

    A typed command starts without the user's agreement to the config, which may come while it runs.
    """
    subject = subject_of(options, workspace, environ, unagreed=bool(options.command))
    packages = () if isinstance(subject, str) else subject.packages
    server = next((package for package in packages if package.role is Role.SERVER), None)
    if server is None:
        return None
    from ...hotreload.fingerprint import Fingerprint
    from ...hotreload.sources.find import find_sources

    try:
        return Fingerprint(lambda: find_sources(server), watches=False).digest()
    except Exception as error:
        log.debug(f"the code of the server cannot be read while it starts: {error}")
        return None


def not_reloaded(why: str) -> str:
    """To clients, where the user has not agreed to the config as it is now."""
    stays = "What runs stays, and is not reloaded until the user agrees by 'uno-devserver trust'."
    return f"New code is not loaded, because {why}. {stays}"


def packages_of(folder: str, config: Config, *, typed: bool = False) -> tuple[Package, ...]:
    """Also where nothing is reloaded, for those who want to know what would be."""
    include, exclude = config.hot_reload.include, config.hot_reload.exclude
    packages = []
    root = config.server_folder or (folder if typed and config.path is not None else None)
    extension = config.extension_path
    if root is not None:
        packages.append(Package(Role.SERVER, root, include, (*exclude, *_inside(root, extension))))
    elif not typed and os.path.isdir(os.path.join(folder, ADDINS)):
        packages.append(Package(Role.SERVER, folder, include, exclude, addins=True))
    if extension is not None:
        packages.append(Package(Role.EXTENSION, extension, include, (*exclude, *_inside(extension, root))))
    return tuple(packages)


def _inside(root: str, other: str | None) -> tuple[str, ...]:
    """The pattern of the other package's folder, if that lies within this one: its code has a build of its own."""
    above = os.path.join(root, "")
    if other is None or not other.startswith(above):
        return ()
    return (_SPECIAL.sub("?", other[len(above) :].replace(os.sep, "/")),)
