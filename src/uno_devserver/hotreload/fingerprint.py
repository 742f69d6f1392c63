"""One digest of the contents of all source files of a package.

SHA-256 over the files in the order of their paths; each contributes its path from the root with forward slashes, a zero
byte, and the SHA-256 of its bytes. Dates, owners and modes do not matter.

The digest of each file is kept. If the system reports which files were written to, only these are read again, else all
of them. The reports are taken before the files are read, so the next digest sees a change made during the reading.
"""

from __future__ import annotations

import os
import sys
import threading
from hashlib import sha256

from ..system.files import FileProblem, read_bytes
from ..system.log import log
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..workspace.repository import ReadBudget
    from .source_watch import SeenChanges, SourceWatch
    from .sources.source_tree import Sources

MAX_FILE_BYTES = 256 * 1024 * 1024  # read as one piece
HAS_INOTIFY = sys.platform == "linux"
MAX_TRIES = 5  # listings in a row while files appear and vanish
UNREADABLE = b"unreadable".ljust(32, b"\0")  # in place of a digest, of which it has the length
# Windows has names that are not valid UTF-16, Linux has names that are not valid UTF-8.
_ENCODING_ERRORS = "surrogatepass" if os.name == "nt" else "surrogateescape"


class Fingerprint:
    """The digest of one package. `news` is for the event loop, `digest` blocks."""

    def __init__(self, find: Callable[[], Sources], *, watches: bool = True, budget: ReadBudget | None = None) -> None:
        """`budget`: of a single digest, which raises BudgetSpent."""
        self._find = find
        self._read_file = read_bytes if budget is None else budget.read
        self._may_watch = watches and HAS_INOTIFY
        self._watch: SourceWatch | None = None
        self._state: _State | None = None  # None if all files must be read
        self._lock = threading.Lock()  # protects the attributes above; held during a digest
        self.changed_paths: tuple[str, ...] = ()  # relative to the root: the files by which the last two digests differ
        self.problems: tuple[str, ...] = ()  # sentences about the files that could not be read
        self.sources: Sources | None = None  # at the last `digest`
        self.files: dict[str, bytes] = {}  # the digest of each file at the last `digest`, by its path from the root

    def news(self) -> bool | None:
        """Whether a file may have changed since the last digest; None if only a digest can tell. Never waits."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return None if self._watch is None or self._state is None else self._watch.news()
        finally:
            self._lock.release()

    def take_output_is_newest(self) -> bool:
        """Whether an output of the sources was written since the last call, and no source has changed after that."""
        with self._lock:
            if self._watch is None:
                return False
            self._watch.news()
            newest, self._watch.output_is_newest = self._watch.output_is_newest, False
            return newest

    def digest(self) -> str:
        """The digest of the files as they are now, in hexadecimal digits."""
        try:
            with self._lock:
                # Reset first, so that after a failure the next digest reads all files.
                before, self._state = self._state, None
                state = self._look(before)
                if before is not None and before.digest != state.digest:
                    self.changed_paths = _differing(before.digests, state.digests)
                self.problems = (*state.sources.problems, *state.problems)
                self.sources, self.files = state.sources, state.digests
                self._state = state
        finally:
            if not self._may_watch:
                self.close()  # `close` may have been called during the digest
        return state.digest

    @property
    def watching(self) -> bool:
        """Whether the system reports changes; if not, each digest reads all files."""
        return self._watch is not None

    def close(self) -> None:
        """Stop watching; `digest` still works."""
        self._may_watch = False
        if self._lock.acquire(blocking=False):  # otherwise the current digest stops it
            try:
                self._stop_watching()
            finally:
                self._lock.release()

    def _look(self, before: _State | None) -> _State:
        """The current state. If files vanish meanwhile, they are listed again; the last try leaves out missing ones."""
        seen = None if before is None or self._watch is None else self._watch.take()
        sources = before.sources if before is not None and seen is not None and not seen.listing else None
        for tries_left in reversed(range(MAX_TRIES)):
            if sources is None:
                sources, same_folders = self._list()
                seen = seen if same_folders else None  # files with the same names may be other files
            if before is not None and _is_current(before, sources, sources.files if seen is None else seen.files):
                return before if sources is before.sources else before.replace(sources=sources)
            try:
                if before is not None and sources is before.sources:
                    sources, same_folders = self._list()  # a changed file may import others
                    seen = seen if same_folders else None
                known = {} if before is None or seen is None else _unchanged(before, sources, seen)
                return _read(sources, known, self._read_file, leave_out_missing=not tries_left)
            except FileNotFoundError as error:
                log.debug(f"{error.filename} vanished while the sources were read; they are listed again.")
                sources = None
        raise AssertionError("the last try leaves out what is missing")

    def _list(self) -> tuple[Sources, bool]:
        """The current sources, watched since before they were listed; whether all were already watched before."""
        sources = self._find()
        if not self._may_watch:
            return sources, False
        from .source_watch import SourceWatch, Unwatchable

        try:
            self._watch = self._watch or SourceWatch()
            for tries in range(MAX_TRIES):
                if self._watch.cover(sources):
                    return sources, not tries
                sources = self._find()
            self._watch.distrust()  # folders appear and vanish all the time; the next digest reads everything
        except Unwatchable as reason:
            log.info(f"The sources in {sources.root} are read at each check, because {reason}.")
            self._may_watch = False
            self._stop_watching()
        return sources, False

    def _stop_watching(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()


class _State(Value):
    sources: Sources
    digests: dict[str, bytes]  # the digest of each file, by its path from the root
    digest: str
    problems: tuple[str, ...]


def _is_current(state: _State, sources: Sources, names: Iterable[str]) -> bool:
    """Whether the sources have the same files as that state, and the named ones the same content."""
    if sources is not state.sources and sources.files.keys() != state.sources.files.keys():
        return False
    try:
        return all(_content_digest(sources.files[name]) == state.digests.get(name) for name in names)
    except FileNotFoundError:
        return False


def _content_digest(path: str) -> bytes:
    try:
        return sha256(read_bytes(path, MAX_FILE_BYTES)).digest()
    except FileProblem:
        return UNREADABLE


def _unchanged(before: _State, sources: Sources, seen: SeenChanges) -> dict[str, bytes]:
    """The digests of the files that the system would have reported if they had changed."""
    return {
        name: before.digests[name]
        for name in (sources.files.keys() & before.digests.keys()) - seen.files
        if sources.files[name] == before.sources.files[name] and before.digests[name] != UNREADABLE
    }


def _read(
    sources: Sources, known: dict[str, bytes], read: Callable[[str, int], bytes], *, leave_out_missing: bool
) -> _State:
    """Of files whose digest is `known` nothing is read.

    Raises FileNotFoundError if the list is out of date, unless missing files are left out.
    """
    whole = sha256()
    digests: dict[str, bytes] = {}
    problems: list[str] = []
    for encoded, name in sorted((name.encode("utf-8", _ENCODING_ERRORS), name) for name in sources.files):
        digest = known.get(name)
        if digest is None:
            try:
                digest = sha256(read(sources.files[name], MAX_FILE_BYTES)).digest()
            except FileNotFoundError:
                if leave_out_missing:
                    continue
                raise
            except FileProblem as problem:
                problems.append(f"{problem.path} cannot be read: {problem.reason}. Its changes are not noticed.")
                digest = UNREADABLE
        whole.update(b"%s\0%s" % (encoded, digest))
        digests[name] = digest
    return _State(sources, digests, whole.hexdigest(), tuple(problems))


def _differing(before: dict[str, bytes], after: dict[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
