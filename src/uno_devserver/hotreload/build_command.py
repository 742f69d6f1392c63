"""The command that builds a package: the one of the config, or the script of its `package.json`, with the package
manager of its lockfile.

Before it, the packages of the same repository are built of which it uses what their builds write.

A .NET project is built without a restore if nothing has changed that the last restore has read.

The files are read at each call, and nothing is run. If the build cannot run, `problem` says why.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..system.files import FileProblem, read_bytes
from ..system.folders import folders
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.programs import find_program, named_program_candidates
from ..system.state_files import name_for, read_state, write_state
from ..system.text import words_to_agree_to
from ..system.values import Value
from ..workspace.dotnet_answers import content_key, stored_answers
from ..workspace.dotnet_project import ASSETS, is_program, project_graph, project_in
from ..workspace.npm_packages import missing_outputs, packages_to_build
from ..workspace.repository import belongs_to_us
from .sources.finder import PackageKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .digest_store import DigestStore
    from .watched_package import Role, WatchedPackage

LOCKFILES = {
    "pnpm-lock.yaml": "pnpm",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
MANAGERS = frozenset(LOCKFILES.values())
DEFAULT_MANAGER = "npm"  # comes with Node
MAX_BYTES = 4 * 1024 * 1024  # a package.json has a few KB


class BuildCommand(Value):
    named: str  # for people: "npm run build"
    line: tuple[str, ...]  # the program by its full path; empty if only the packages that it uses are built
    folder: str
    problem: str = ""  # why it cannot run, and what to do
    hint: str = ""  # a probable cause, if it fails
    before: tuple[BuildCommand, ...] = ()  # the builds of the packages that it uses, in their order
    leaves_helpers: bool = False  # whether processes stay that make the next build faster: the compiler's server
    restore: Restore | None = None  # what it restores besides
    whole: BuildCommand | None = None  # the build to run if packages are missing, because this one restores none


class BuildStep(Value):
    """One build that has to run, and what to store about it."""

    build: BuildCommand
    key: str = ""  # of a package that the built one uses; empty for the built one itself
    digest: str = ""  # of the files of that package


class Restore(Value):
    """What a restore reads and writes, and the file that records it."""

    record: str
    read: str  # the digest of the files that it reads
    assets: tuple[str, ...]  # the files that it writes, one for each project

    def is_done(self) -> bool:
        """Whether the last recorded restore has read the same, and what it wrote is still there."""
        done = read_state(self.record, MAX_BYTES)
        return done.get("read") == self.read and done.get("wrote") == self._wrote()

    def note(self) -> None:
        """Record that it has been done."""
        try:
            write_state(self.record, {"read": self.read, "wrote": self._wrote()})
        except OSError as error:
            log.debug(f"the next build restores again: {error}")

    def _wrote(self) -> str:
        return content_key(self.assets) if all(map(os.path.isfile, self.assets)) else ""


def build_of(package: WatchedPackage, environ: Mapping[str, str], platform: str) -> BuildCommand | None:
    """The build of a package; None if there is nothing to build. Reads files, so it blocks."""
    if package.build is not None:
        return _given_build(package.build, package.root, environ, platform) if package.build else None
    kind = kind_of(package)
    if kind in (PackageKind.TYPESCRIPT, PackageKind.JAVASCRIPT):
        return _with_used(_script_build(package, environ, platform), package, environ, platform)
    if kind is PackageKind.DOTNET:
        return _dotnet_build(package, environ, platform)
    if kind is PackageKind.GO:
        return _go_build(package, environ, platform)
    return None  # Python packages need no build


def _given_build(line: tuple[str, ...], root: str, environ: Mapping[str, str], platform: str) -> BuildCommand:
    """The build that the config names; a program is a name on PATH, or a path, relative to the root."""
    import shlex

    named, found = shlex.join(words_to_agree_to(line)), named_program_candidates(line[0], root, environ, platform)
    program = next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), None)
    if program is None:
        problem = f"The program '{line[0]}' of mcpServer.build is not found. Install it, or correct the config."
        return BuildCommand(named, line, root, problem)
    return BuildCommand(named, (program, *line[1:]), root)


def steps_of(build: BuildCommand, root: str, files: Mapping[str, bytes], store: DigestStore) -> list[BuildStep]:
    """The builds that have to run: those of used packages from the first changed one on, then that of the package.

    `files` are the digests of all sources of the package in `root`, by their paths from there.
    """
    steps: list[BuildStep] = []
    for used in build.before:
        prefix = os.path.relpath(used.folder, os.path.realpath(root)).replace(os.sep, "/") + "/"
        digest = sha256()
        for name in sorted(name for name in files if name.startswith(prefix)):
            digest.update(os.fsencode(name) + b"\0" + files[name])
        step = BuildStep(used, f"{used.folder}#used", digest.hexdigest())
        stored = store.get(step.key)
        if steps or stored is None or stored.built != step.digest or missing_outputs(used.folder):
            steps.append(step)
    return [*steps, *([BuildStep(build)] if build.line else [])]


def _with_used(
    own: BuildCommand | None, package: WatchedPackage, environ: Mapping[str, str], platform: str
) -> BuildCommand | None:
    """The build of a package with those of the packages that it uses; the package itself may need none."""
    before = tuple(
        _build(_manager(folder, None), ("run", "build"), folder, environ, platform)
        for folder in packages_to_build(package.root, package.workspace)
    )
    if not before:
        return own
    whole = own or BuildCommand(before[-1].named, (), package.root)
    return whole.replace(problem=whole.problem or before[-1].problem, before=before)


def _script_build(package: WatchedPackage, environ: Mapping[str, str], platform: str) -> BuildCommand | None:
    try:
        document = parse(read_bytes(os.path.join(package.root, "package.json"), MAX_BYTES))
    except FileNotFoundError:
        return None
    except (FileProblem, JsonProblem):
        document = None  # the package manager will report what is wrong with the file
    described: dict[str, Any] = document if isinstance(document, dict) else {}
    script = package.role.script if document is None else _script(described.get("scripts"), package.role)
    if script is None:
        return None
    manager = _manager(package.root, described.get("packageManager"))
    hint = ""
    if _needs_packages(described) and not _has_packages(package.root):
        hint = f"There is no node_modules for {package.root}: run '{manager} install' there, then call a tool again."
    return _build(manager, ("run", script), package.root, environ, platform).replace(hint=hint)


def _script(scripts: object, role: Role) -> str | None:
    if not isinstance(scripts, dict):
        return None
    names = (role.script, "build")  # some extensions have only a script `build`
    return next((name for name in names if isinstance(scripts.get(name), str)), None)


def _manager(root: str, declared: object) -> str:
    for folder in up_to_repository(root):
        for name, manager in LOCKFILES.items():
            if os.path.isfile(os.path.join(folder, name)):
                return manager
    named = declared.partition("@")[0] if isinstance(declared, str) else ""
    return named if named in MANAGERS else DEFAULT_MANAGER


def up_to_repository(root: str) -> Iterator[str]:
    """The folder and its parents up to the root of its repository; lockfiles above that do not belong to it."""
    folders = [os.path.realpath(root)]
    while not belongs_to_us(os.path.join(folders[-1], ".git")):
        above = os.path.dirname(folders[-1])
        if above == folders[-1]:  # there is no repository
            return iter(folders[:1])
        folders.append(above)
    return iter(folders)


def _needs_packages(described: Mapping[str, Any]) -> bool:
    return bool(described.get("dependencies") or described.get("devDependencies"))


def _has_packages(root: str) -> bool:
    return any(
        os.path.exists(os.path.join(folder, name))
        for folder in up_to_repository(root)
        for name in ("node_modules", ".pnp.cjs")  # yarn can write the second instead of the first
    )


def _dotnet_build(package: WatchedPackage, environ: Mapping[str, str], platform: str) -> BuildCommand | None:
    project = project_in(package.root, os.listdir(package.root))
    if project is None:  # it was removed meanwhile
        return None
    path = os.path.join(package.root, project)
    projects = project_graph(path, environ, answer=stored_answers(environ))
    framework = ("-f", projects[0].framework) if projects[0].several else ()
    # Without the summary each error is printed once.
    arguments = ("build", project, "-nologo", "-v", "q", "-clp:NoSummary", *framework)
    whole = _build("dotnet", arguments, package.root, environ, platform).replace(leaves_helpers=True)
    if is_program(project):  # its intermediate files lie in a folder that only the SDK knows
        return whole
    restore = Restore(
        os.path.join(folders(environ).state, "dotnet", f"restore-{name_for(path)}.json"),
        content_key({file for each in projects for file in each.files}),
        tuple(os.path.join(each.intermediate, ASSETS) for each in projects),
    )
    whole = whole.replace(restore=restore)
    return whole.replace(line=(*whole.line, "--no-restore"), restore=None, whole=whole) if restore.is_done() else whole


def _go_build(package: WatchedPackage, environ: Mapping[str, str], platform: str) -> BuildCommand | None:
    """Compile without an output: errors are known before the old server ends, and `go run` finds all in Go's cache."""
    nowhere = "NUL" if platform == "win32" else "/dev/null"
    build = _build("go", ("build", "-o", nowhere, "./..."), package.root, environ, platform)
    # Without Go, the server is a program that was compiled elsewhere.
    return None if build.problem else build.replace(named="go build ./...")


def _build(
    name: str, arguments: tuple[str, ...], folder: str, environ: Mapping[str, str], platform: str
) -> BuildCommand:
    named = " ".join((name, *arguments[:2]))
    program = find_program(name, environ, platform)
    if program is None:
        problem = f"{name} is not in the folders of PATH. Install it, or start the proxy with a PATH that has it."
        return BuildCommand(named, (name, *arguments), folder, problem)
    return BuildCommand(named, (program, *arguments), folder)
