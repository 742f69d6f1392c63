"""One number for the content of all source files of a package, and nothing but their content.

SHA-256 over the files in the order of their paths; each contributes its path from the root with forward slashes, a zero
byte, its length in decimal digits, a zero byte, and its bytes. What dates, owners and modes say does not count.

The digest of each file is kept. So where the system tells which files were written to, only these are read again; where
it cannot, all are, which is always right. A file that changes while it is read is seen by the next question: what is to
be read is asked first, and what happens after that stays in the queue.
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

    from .source_watch import SourceWatch
    from .sources.source_tree import Sources

MAX_FILE_BYTES = 256 * 1024 * 1024  # read as one piece; no code is that long
MAX_TRIES = 5  # listings in a row, while files come and go
UNREADABLE = b"unreadable"  # in the place of the length, which has only digits
# Windows has names that are not valid UTF-16, Linux such as are not valid UTF-8: neither is an error here.
_ENCODING_ERRORS = "surrogatepass" if os.name == "nt" else "surrogateescape"


class Fingerprint:
    """Of one package. `news` is for the event loop, `digest` for a thread beside it."""

    def __init__(self, find: Callable[[], Sources], *, watches: bool = True) -> None:
        self._find = find
        self._may_watch = watches
        self._watch: SourceWatch | None = None
        self._state: _State | None = None  # None: everything has to be read
        self._lock = threading.Lock()  # of all above; held while a digest is under way
        self.changed_paths: tuple[str, ...] = ()  # from the root: what made the last digest another than the one before
        self.problems: tuple[str, ...] = ()  # sentences: what could not be read
        self.files: dict[str, bytes] = {}  # by their paths from the root: the digest of each, at the last one of all

    def news(self) -> bool | None:
        """At once: whether a file may be another than at the last digest. None: only a digest can tell."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return None if self._watch is None or self._state is None else self._watch.news()
        finally:
            self._lock.release()

    def digest(self) -> str:
        """Of the files as they are now, in hexadecimal digits."""
        try:
            with self._lock:
                # Whatever goes wrong from here on, the next time everything is read.
                before, self._state = self._state, None
                state = self._look(before)
                if before is not None and before.digest != state.digest:
                    self.changed_paths = _differing(before.digests, state.digests)
                self.problems = (*state.sources.problems, *state.problems)
                self.files = state.digests
                self._state = state
        finally:
            if not self._may_watch:
                self.close()  # it was closed meanwhile
        return state.digest

    @property
    def file_count(self) -> int:
        return len(self.files)

    @property
    def watching(self) -> bool:
        """Whether the system tells about changes, so that not everything has to be read at each question."""
        return self._watch is not None

    def close(self) -> None:
        """End watching. A digest can still be asked for."""
        self._may_watch = False
        if self._lock.acquire(blocking=False):  # else the digest that is under way comes here
            try:
                self._stop_watching()
            finally:
                self._lock.release()

    def _look(self, before: _State | None) -> _State:
        """The state now. Listed and read again as often as files vanish in between, at last without those that do."""
        seen = None if before is None or self._watch is None else self._watch.take()
        sources = before.sources if before is not None and seen is not None and not seen.listing else None
        for tries_left in reversed(range(MAX_TRIES)):
            if sources is None:
                sources, same_folders = self._list()
                seen = seen if same_folders else None  # the same names in other folders: all files may be others
            if before is not None and _holds(before, sources, sources.files if seen is None else seen.files):
                return before if sources is before.sources else before.replace(sources=sources)
            try:
                if before is not None and sources is before.sources:
                    sources, _ = self._list()  # a file that imports another one may count it in
                return _read(sources, leave_out_missing=not tries_left)
            except FileNotFoundError as error:
                log.debug(f"{error.filename} vanished while the sources were read; they are listed again.")
                sources = None
        raise AssertionError("the last try leaves out what is missing")

    def _list(self) -> tuple[Sources, bool]:
        """The sources as they are now, watched from before they were listed; whether in the same folders as before."""
        sources = self._find()
        if not self._may_watch:
            return sources, False
        from ..system import inotify

        if not inotify.available(sys.platform):
            self._may_watch = False
            return sources, False
        from .source_watch import SourceWatch, Unwatchable

        try:
            self._watch = self._watch or SourceWatch()
            for tries in range(MAX_TRIES):
                if self._watch.cover(sources):
                    return sources, not tries
                sources = self._find()
            self._watch.doubt()  # folders come and go all the time; the next question looks again
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
    digests: dict[str, bytes]  # of each file, by its path from the root
    digest: str
    problems: tuple[str, ...]


def _holds(state: _State, sources: Sources, names: Iterable[str]) -> bool:
    """Whether there are the same files as in that state, and these of them have the content that they had."""
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


def _read(sources: Sources, *, leave_out_missing: bool) -> _State:
    """FileNotFoundError: the list is out of date."""
    whole = sha256()
    digests: dict[str, bytes] = {}
    problems: list[str] = []
    for encoded, name in sorted((name.encode("utf-8", _ENCODING_ERRORS), name) for name in sources.files):
        try:
            content = read_bytes(sources.files[name], MAX_FILE_BYTES)
        except FileNotFoundError:
            if leave_out_missing:
                continue
            raise
        except FileProblem as problem:
            problems.append(f"{problem.path} cannot be read: {problem.reason}. Whether it changes is not noticed.")
            whole.update(b"%s\0%s\0" % (encoded, UNREADABLE))
            digests[name] = UNREADABLE
            continue
        whole.update(b"%s\0%d\0" % (encoded, len(content)))
        whole.update(content)
        digests[name] = sha256(content).digest()
    return _State(sources, digests, whole.hexdigest(), tuple(problems))


def _differing(before: dict[str, bytes], after: dict[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
