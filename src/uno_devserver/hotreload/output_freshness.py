"""The output of a build that the server's command starts, which may be older than the sources.

Not outputs: sources, launchers outside output folders, installed programs, shell scripts. Compiled files are outputs
even if they are watched. If it is not known from which version an output was built, it is built once, if possible.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..system.folders import relative_path
from ..workspace.npm_packages import OUTPUT_FOLDERS
from ..workspace.repository import MANIFESTS, repository_of
from .digest_store import UNKNOWN
from .disk_digest import DiskDigest
from .fingerprint import Fingerprint
from .sources.source_tree import FOREIGN, Sources, hidden_and_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .watched_package import WatchedPackage

JAVASCRIPT = (".js", ".mjs", ".cjs")
JAVASCRIPT_FOLDERS = OUTPUT_FOLDERS | {"lib"}
# The first bytes of programs: ELF, Mach-O in both orders and for several processors, and Windows.
PROGRAMS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf", b"\xca\xfe\xba\xbe", b"MZ")
BUILD_SETTING = "mcpServer.build in .devtools/host.config.jsonc"


class StartedOutput:
    def __init__(self, package: WatchedPackage, sources: Fingerprint, disk: DiskDigest, seconds: float) -> None:
        """`sources` and `disk`: those of the package. `seconds`: the most that reading the output may take."""
        self.stale_reason = ""  # sentences, if it was not built from the version that was started or built last
        self.origin: tuple[str, str] | None = None  # its digest, and the version it was built from, UNKNOWN if unknown
        self.wants_build = False  # whether the version is a guess, which a build would make certain
        self._package = package
        self._sources = sources
        self._sources_disk = disk
        self._output = Fingerprint(self._find)
        self._disk = DiskDigest(package.root, self._output, seconds)
        self._running: str | None = None  # its digest when it was started
        self._before = ""  # its digest before the build
        self._rebuilt_by_others = False  # before the build, from the sources as they were then
        self._writing_build = ""  # a build that has been seen to write it

    def close(self) -> None:
        self._disk.close()
        self._output.close()

    @property
    def known_origin(self) -> tuple[str, ...]:
        """Its origin, to be stored; empty if it is not known for certain."""
        return self.origin if self.origin and all(self.origin) and not self.wants_build else ()

    def news(self) -> bool | None:
        return self._output.news() if self._package.started else False

    def missing(self) -> str:
        """The first file of the package that the command starts and that does not exist; empty if there is none."""
        for path in self._package.started:
            parts = relative_path(path, self._package.root).split(os.sep)
            if not hidden_and_foreign(parts) and not os.path.exists(path):
                return path
        return ""

    async def note_start(self, version: str | None, stored: tuple[str, ...], *, can_build: bool) -> None:
        """Note that it is about to be started, with this version of the sources; `stored`: its origin in the store."""
        output = self._running = await self._read()
        if self.origin is None and len(stored) == 2:
            self.origin = stored[0], stored[1]
        if version and output and (self.origin is None or self.origin[0] != output):
            # Without a build, what was never seen before is believed to be current.
            self.wants_build = can_build
            self.origin = output, version if can_build or self.origin is None else UNKNOWN
        self._compare(version)

    async def believe(self, stored: tuple[str, ...]) -> None:
        """Take over the origin that the process which built it has stored, if it is the one on disk."""
        if len(stored) == 2 and stored[0] == await self._read():
            self.origin, self.wants_build = (stored[0], stored[1]), False

    async def is_other(self, *, can_build: bool) -> bool:
        """Whether it has to be built, is another one than the started one, or was stale and has been rebuilt."""
        output = await self._read()
        is_new = bool(output) and output not in (self._running, self.origin[0] if self.origin else None)
        self.wants_build = self.wants_build or (is_new and can_build)
        self._rebuilt_by_others = self._rebuilt_by_others or (
            bool(self._package.started) and self._sources.take_output_is_newest()
        )
        is_mended = bool(self.stale_reason) and self._rebuilt_by_others
        return self.wants_build or is_mended or (bool(output) and self._running not in (None, output))

    async def begin_build(self) -> None:
        self._before = await self._read()

    async def end_build(self, version: str, build: str) -> bool:
        """Note that this version was built; return whether the output is another one than the one that was started.

        `build` identifies the build that ran; empty if none ran that may write the output. The output counts as current
        if it changed, if it was rewritten, or if this build is known to write it.
        """
        output = await self._read()
        is_other = self.origin is None or self.origin[0] != output
        written = self._before != output or (bool(self._package.started) and self._sources.take_output_is_newest())
        if build and written:
            self._writing_build = build
        if written or self._rebuilt_by_others or (build and build == self._writing_build):
            self.origin = output, version
        elif is_other:
            self.origin = output, UNKNOWN
        self.wants_build = self._rebuilt_by_others = False
        self._compare(version)
        return bool(output) and output != self._running

    async def _read(self) -> str:
        """The digest of the files; empty if there are none. Raises AuthorityProblem."""
        if not self._package.started:
            return ""
        if self._sources.sources is None:
            await self._sources_disk.digest()
        digest = await self._disk.digest()
        return digest if self._output.files else ""

    def _find(self) -> Sources:
        assert self._sources.sources is not None
        return started_output(self._package, self._sources.sources)

    def _compare(self, version: str | None) -> None:
        output, built_from = self.origin or ("", "")
        is_stale = bool(output and version) and built_from != version
        self.stale_reason = stale_output_text(self._package, sorted(self._output.files)) if is_stale else ""


def with_outputs(package: WatchedPackage, sources: Sources) -> Sources:
    """The sources of a package with the output that is started, so that the order of their changes is known."""
    return sources.replace(outputs=frozenset(started_output(package, sources).files.values()))


def stale_output_text(package: WatchedPackage, output: list[str]) -> str:
    """Sentences that say why results may come from older code, and what to do; `output`: paths from the root."""
    runner = next((MANIFESTS[name] for name in MANIFESTS if os.path.isfile(os.path.join(package.root, name))), "")
    started = (relative_path(os.path.realpath(path), os.path.realpath(package.root)) for path in package.started)
    path = next((path for path in started if path.replace(os.sep, "/") in output), output[0] if output else "it")
    return (
        f"{path} has not been rebuilt since its code changed. Build it; the next call then restarts the server. "
        f"To build it automatically, set {BUILD_SETTING}{f', or start the server by {runner!r}' if runner else ''}."
    )


def started_output(package: WatchedPackage, sources: Sources) -> Sources:
    """The files of the output that the server's command starts; none if it starts sources, or nothing that is known."""
    root = os.path.realpath(package.root)
    paths = {path for start in package.started for path in _files(start, package, sources)}
    files = {relative_path(path, root).replace(os.sep, "/"): path for path in paths}
    return Sources(root, files, frozenset(map(os.path.dirname, paths)))


def _files(start: str, package: WatchedPackage, sources: Sources) -> Iterator[str]:
    path, repository = os.path.realpath(start), repository_of(package.root, package.workspace)
    installed = not FOREIGN.isdisjoint(path.split(os.sep))
    if installed or not repository.has(path) or not os.path.isfile(path):
        return
    folder = os.path.dirname(path)
    if path.endswith(JAVASCRIPT):
        is_source = path in map(os.path.realpath, sources.files.values())
        # Some builds write beside the package: dist/apps/server/main.js.
        parts = os.path.relpath(folder, os.path.commonpath((folder, repository.root))).split(os.sep)
        if not is_source and (parts[0] in JAVASCRIPT_FOLDERS or not OUTPUT_FOLDERS.isdisjoint(parts)):
            # Builds of the packages that it uses write, too; its own output may stay the same then.
            used = (os.path.join(each.root, name) for each in sources.packages[1:] for name in JAVASCRIPT_FOLDERS)
            for place in (folder, *used):
                yield from _below(place, JAVASCRIPT)
    elif path.endswith((".dll", ".jar")) or _is_program(path):
        yield path
        # The program of a .NET server stays the same; its code is in the assemblies beside it.
        yield from (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".dll"))


def _below(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in FOREIGN]
        yield from (os.path.join(place, name) for name in names if name.endswith(endings))


def _is_program(path: str) -> bool:
    """Whether the file is a compiled program; programs in a Python environment are not, because they run sources."""
    if os.path.isfile(os.path.join(os.path.dirname(path), "..", "pyvenv.cfg")):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(4).startswith(PROGRAMS)
    except OSError:
        return False
