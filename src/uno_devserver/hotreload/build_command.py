"""The command that builds a package: the one of the config, or the script of its `package.json`, with the package
manager of its lockfile.

Packages of the same repository whose build output it uses are built first.

A .NET project is built without a restore if the inputs of the last restore are unchanged.

The files are read at each call, and nothing is run. If the build cannot run, `problem` says why. A build that failed is
repeated when what it reads besides the sources has changed, for example by `npm install`: `build_inputs`.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from ..system.files import FileProblem, names_in, read_bytes
from ..system.folders import folders
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.programs import find_program, first_executable, named_program_candidates
from ..system.state_files import name_for, read_state, sha256, write_state
from ..system.text import words_to_agree_to
from ..system.values import Value
from ..workspace.config import PROJECTS
from ..workspace.dotnet_project import ASSETS, is_program, project_graph, project_in
from ..workspace.dotnet_query import content_key, stored_answers
from ..workspace.npm_packages import LOCKFILES, MANAGERS, missing_outputs, packages_to_build, read_manifest
from ..workspace.repository import BudgetSpent, belongs_to_us
from .sources.finder import PackageKind, kind_of
from .sources.go import main_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .digest_store import DigestStore
    from .watched_package import Role, WatchedPackage

DEFAULT_MANAGER = "npm"  # comes with Node
MAX_BYTES = 4 * 1024 * 1024  # a package.json has a few KB


class BuildCommand(Value):
    named: str  # for people: "npm run build"
    line: tuple[str, ...]  # the program by its full path; empty if only the packages that it uses are built
    folder: str
    problem: str = ""  # why it cannot run, and what to do
    hint: str = ""  # a probable cause, if it fails
    prerequisites: tuple[BuildCommand, ...] = ()  # the builds of the packages that it uses, in their order
    writes: bool = True  # whether it writes what is started
    leaves_helpers: bool = False  # whether processes stay that make the next build faster: the compiler's server
    restore: Restore | None = None  # what it restores besides
    with_restore: BuildCommand | None = None  # the build to run if packages are missing; this one restores none

    def restored(self) -> str:
        """The digest of what a restore of the .NET project has written, by a build or by hand; empty for others."""
        restore = self.restore or (self.with_restore and self.with_restore.restore)
        return restore.written() if restore else ""


class BuildStep(Value):
    """One build that has to run, and what to store about it."""

    build: BuildCommand
    key: str = ""  # of a package that the built one uses; empty for the built one itself
    digest: str = ""  # of the files of that package

    def content(self) -> str:
        """What to store after the build: files that it has not written are not a reason to run it again."""
        return f"{self.digest}{_lacking(self.build.folder)}"


class Restore(Value):
    """What a restore reads and writes, and the file that records it."""

    record: str
    read: str  # the digest of the files that it reads
    assets: tuple[str, ...]  # the files that it writes, one for each project

    def is_done(self) -> bool:
        """Whether the last recorded restore has read the same, and what it wrote is still there."""
        done = read_state(self.record, MAX_BYTES)
        written = self.written()
        return bool(written) and done.get("read") == self.read and done.get("wrote") == written

    def note(self) -> None:
        """Record that it has been done."""
        try:
            write_state(self.record, {"read": self.read, "wrote": self.written()})
        except OSError as error:
            log.debug(f"the next build restores again: {error}")

    def written(self) -> str:
        """The digest of what the last restore has written; empty if some of it is missing."""
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
    from ..system.command_lines import quoted_line

    named, found = (
        quoted_line(words_to_agree_to(line), platform),
        named_program_candidates(line[0], root, environ, platform),
    )
    program = first_executable(found)
    if program is None:
        problem = f"'{line[0]}', named in mcpServer.build, was not found. Install it, or correct the config."
        return BuildCommand(named, line, root, problem)
    return BuildCommand(named, (program, *line[1:]), root)


def steps_of(build: BuildCommand, root: str, files: Mapping[str, bytes], store: DigestStore) -> list[BuildStep]:
    """The builds that have to run: those of used packages from the first changed one on, then that of the package.

    `files` are the digests of all sources of the package in `root`, by their paths from there.
    """
    steps: list[BuildStep] = []
    for used in build.prerequisites:
        prefix = os.path.relpath(used.folder, os.path.realpath(root)).replace(os.sep, "/") + "/"
        digest = hashlib.sha256()
        for name in sorted(name for name in files if name.startswith(prefix)):
            digest.update(os.fsencode(name.removeprefix(prefix)) + b"\0" + files[name])
        step = BuildStep(used, _used_key(used.folder), digest.hexdigest())
        stored = store.get(step.key)
        if steps or stored is None or stored.built != step.content():
            steps.append(step)
    return [*steps, *([BuildStep(build)] if build.line else [])]


def unbuilt_package(build: BuildCommand, store: DigestStore) -> BuildCommand | None:
    """The first build of a used package whose output is missing, unless its last build has left the same out."""
    for used in build.prerequisites:
        lacking = "" if used.problem else _lacking(used.folder)
        stored = store.get(_used_key(used.folder)) if lacking else None
        if lacking and (stored is None or not stored.built.endswith(lacking)):
            return used
    return None


def _used_key(folder: str) -> str:
    return f"{folder}#used"


def _lacking(folder: str) -> str:
    missing = missing_outputs(folder)
    return f" without {' '.join(missing)}" if missing else ""


def _with_used(
    own: BuildCommand | None, package: WatchedPackage, environ: Mapping[str, str], platform: str
) -> BuildCommand | None:
    """The build of a package with those of the packages that it uses; the package itself may need none."""
    try:
        folders = packages_to_build(package.root, package.workspace)
    except BudgetSpent as spent:
        problem = f"The packages that {package.root} uses cannot all be found, because {spent}."
        return (own or BuildCommand("the build", (), package.root)).replace(problem=problem)
    used = tuple(
        _build(_manager(folder, read_manifest(folder)), ("run", "build"), folder, environ, platform)
        for folder in folders
    )
    if not used:
        return own
    combined = own or BuildCommand(used[-1].named, (), package.root)
    problem = next((build.problem for build in (*used, combined) if build.problem), "")
    return combined.replace(problem=problem, prerequisites=used)


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
    manager = _manager(package.root, described)
    hint = ""
    if _needs_packages(described) and not _has_packages(package.root):
        hint = f"There is no node_modules for {package.root}: run '{manager} install' there, then call a tool again."
    return _build(manager, ("run", script), package.root, environ, platform).replace(hint=hint)


def _script(scripts: object, role: Role) -> str | None:
    if not isinstance(scripts, dict):
        return None
    names = (role.script, "build")  # some extensions have only a script `build`
    return next((name for name in names if isinstance(scripts.get(name), str)), None)


def _manager(root: str, described: Mapping[str, Any]) -> str:
    for folder in up_to_repository(root):
        for name, manager in LOCKFILES.items():
            if os.path.isfile(os.path.join(folder, name)):
                return manager
    declared = described.get("packageManager")
    named = declared.partition("@")[0] if isinstance(declared, str) else ""
    return named if named in MANAGERS else DEFAULT_MANAGER


def up_to_repository(root: str) -> list[str]:
    """The folder and its parents up to the root of its repository; lockfiles above that do not belong to it."""
    found = [os.path.realpath(root)]
    while not belongs_to_us(os.path.join(found[-1], ".git")):
        above = os.path.dirname(found[-1])
        if above == found[-1]:  # there is no repository
            return found[:1]
        found.append(above)
    return found


def _needs_packages(described: Mapping[str, Any]) -> bool:
    return bool(described.get("dependencies") or described.get("devDependencies"))


def _has_packages(root: str) -> bool:
    return any(
        os.path.exists(os.path.join(folder, name))
        for folder in up_to_repository(root)
        for name in ("node_modules", ".pnp.cjs")  # yarn can write the second instead of the first
    )


def _dotnet_build(package: WatchedPackage, environ: Mapping[str, str], platform: str) -> BuildCommand | None:
    project = project_in(package.root, os.listdir(package.root), package.project)
    if project is None:  # it was removed meanwhile
        return None
    path = os.path.join(package.root, project)
    if package.project and project != package.project:
        problem = f"There is no {os.path.join(package.root, package.project)}, which the command names. Correct that."
        line = ("dotnet", "build", package.project)
        return BuildCommand(" ".join(line), line, package.root, problem)
    projects = project_graph(path, environ, answer=stored_answers(environ))
    framework = ("-f", projects[0].framework) if projects[0].several else ()
    # Without the summary each error is printed once.
    arguments = ("build", project, "-nologo", "-v", "q", "-clp:NoSummary", *framework)
    build = _build("dotnet", arguments, package.root, environ, platform).replace(leaves_helpers=True)
    if is_program(project):  # its intermediate files lie in a folder that only the SDK knows
        return build
    restore = Restore(
        os.path.join(folders(environ).state, "dotnet", f"restore-{name_for(path)}.json"),
        content_key({file for each in projects for file in each.files}),
        tuple(os.path.join(each.intermediate, ASSETS) for each in projects),
    )
    with_restore = build.replace(restore=restore)
    if not restore.is_done():
        return with_restore
    return build.replace(line=(*build.line, "--no-restore"), with_restore=with_restore)


def _go_build(package: WatchedPackage, environ: Mapping[str, str], platform: str) -> BuildCommand | None:
    """Compile the program that is started, if it is certain from which package.

    Otherwise compile without an output, if possible only what `go run` compiles: errors are known before the old server
    ends, and `go run` finds all in Go's cache.
    """
    nowhere = "NUL" if platform == "win32" else "/dev/null"
    output, code = nowhere, package.project or "./..."
    named = f"go build {code}"
    program = package.started[-1] if package.started else None  # Go has no scripts
    if program is not None and (main := main_package(program, package.root)) is not None:
        output, code = program, main
        named = f"go build -o {os.path.relpath(program, package.root)} {main}"
    build = _build("go", ("build", "-o", output, code), package.root, environ, platform)
    # Without Go, the server is a program that was compiled elsewhere.
    return None if build.problem else build.replace(named=named, writes=output != nowhere)


def _build(
    name: str, arguments: tuple[str, ...], folder: str, environ: Mapping[str, str], platform: str
) -> BuildCommand:
    named = " ".join((name, *arguments[:2]))
    program = find_program(name, environ, platform)
    if program is None:
        problem = f"{name} was not found on PATH. Install it, or start the proxy with a PATH that has it."
        return BuildCommand(named, (name, *arguments), folder, problem)
    return BuildCommand(named, (program, *arguments), folder)


# What a build reads besides the sources: manifests, lockfiles and the packages that are installed. Only contents and
# names count.
MANIFESTS = (
    *(".json", ".jsonc", ".yaml", ".yml", ".toml", ".lock", ".lockb", ".npmrc", ".config"),
    *(*PROJECTS, ".props", ".targets", ".rsp", ".mod", ".sum", ".work"),
)
PACKAGES = "node_modules"
# What package managers record there: npm, pnpm, and two versions of yarn.
RECORDS = (".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml")


def build_inputs(roots: Iterable[str]) -> str:
    """The digest for the packages in these folders, in hexadecimal digits. Blocks, usually for a millisecond."""
    files: list[str] = []
    installed: list[str] = []
    for folder in dict.fromkeys(folder for root in roots for folder in up_to_repository(root)):
        packages = os.path.join(folder, PACKAGES)
        names = (name for name in names_in(folder) if name.endswith(MANIFESTS) or name == ".pnp.cjs")
        files += [os.path.join(folder, name) for name in names]
        files += [os.path.join(packages, name) for name in RECORDS]
        installed += [packages, *_installed(packages)]
    return sha256(repr((content_key(files), installed)).encode())


def _installed(packages: str) -> Iterator[str]:
    """The names of the installed packages; tools write hidden folders beside them."""
    for name in names_in(packages):
        if name.startswith("@"):
            yield from (f"{name}/{scoped}" for scoped in names_in(os.path.join(packages, name)))
        elif not name.startswith("."):
            yield name
