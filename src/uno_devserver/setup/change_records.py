"""What we did to somebody's file, so that it can be undone to the byte.

There is one record per configuration file, from our first change to the last. It tells how to get from the file's
content to the original one, without holding either. It knows the file before our last change and after it: it is
written first, and so it is true whenever we are killed. Where others have changed the file, it tells nothing.
"""

from __future__ import annotations

import json
import os
import time

from ..system.files import FileProblem, read_bytes, sweep, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.state_files import name_for, sha256
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "registration"
MAX_RECORD_BYTES = 64 * 1024 * 1024  # a record holds at most the region of a file that we replaced
MAX_NAMESAKES = 8  # paths with the same name for their record: those that differ in the case of letters


class FileState(Value):
    """A content of the file, and the one region in which the original differs from it."""

    sha256: str  # "": there is no file
    at: int = 0
    length: int = 0
    was: bytes = b""


class Original(Value):
    content: bytes | None  # None: there was no file


class ChangeRecord(Value):
    path: str  # behind all links
    existed: bool
    states: tuple[FileState, ...]
    folders: tuple[str, ...]  # that we made for it, the outermost first
    backup: str | None  # the original, as a file
    time: str  # of the first change

    def original(self, content: bytes | None) -> Original | None:
        """What the file was before our first change; None where others have changed it since."""
        digest = _digest(content)
        for state in self.states:
            if state.sha256 == digest:
                present = content or b""
                restored = present[: state.at] + state.was + present[state.at + state.length :]
                return Original(restored if self.existed else None)
        return None


def record_of(folder: str, path: str) -> ChangeRecord | None:
    """The record of a file, in the folder of our state; OSError and FileProblem are as if there was none."""
    return _find(folder, os.path.realpath(path))[1]


def continued_record(
    record: ChangeRecord | None, path: str, before: bytes | None, after: bytes | None, folders: tuple[str, ...]
) -> tuple[ChangeRecord, Original]:
    """The record for a change: that of the earlier ones where it still holds, else a new one."""
    original = record.original(before) if record is not None else None
    if record is None or original is None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record, original = ChangeRecord(os.path.realpath(path), before is not None, (), (), None, now), Original(before)
    states = (_state(before, original.content), _state(after, original.content))
    return record.replace(states=states, folders=(*record.folders, *folders)), original


def keep_record(folder: str, record: ChangeRecord) -> None:
    """OSError."""
    data = {
        "path": record.path,
        "existed": record.existed,
        # Bytes as characters of the same number: readable where they are ASCII, and exact where they are anything.
        "states": [
            {"sha256": one.sha256, "at": one.at, "length": one.length, "was": one.was.decode("latin-1")}
            for one in record.states
        ],
        "folders": list(record.folders),
        "backup": record.backup,
        "time": record.time,
    }
    path = f"{stem(folder, record.path)}.json"
    sweep(os.path.dirname(path))
    write_atomic(path, json.dumps(data, indent=2).encode("ascii"))


def forget_record(folder: str, record: ChangeRecord, *, keep_backup: bool = False) -> None:
    """The file is the original again, so neither the record nor, as a rule, its backup is worth anything."""
    for path in (f"{stem(folder, record.path)}.json", None if keep_backup else record.backup):
        try:
            if path is not None:
                os.unlink(path)
        except OSError:
            pass  # it holds for a content that the file does not have any more, or is used at the next change


def stem(folder: str, path: str) -> str:
    """What the names of all that is kept for a file begin with, with the folder."""
    return _find(folder, os.path.realpath(path))[0]


def _find(folder: str, path: str) -> tuple[str, ChangeRecord | None]:
    """All names are looked at, since an earlier one may be free by now; a new record takes the first that is."""
    first = os.path.join(folder, FOLDER, name_for(path))
    names = [f"{first}-{number}" if number else first for number in range(MAX_NAMESAKES)]
    records = [_read(f"{name}.json") for name in names]
    for name, record in zip(names, records, strict=True):
        if record is not None and record.path == path:
            return name, record
    return names[records.index(None)] if None in records else first, None


def _read(path: str) -> ChangeRecord | None:
    try:
        data = parse(read_bytes(path, MAX_RECORD_BYTES))
    except (OSError, FileProblem, JsonProblem):
        return None
    try:
        return _record(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None  # somebody else's writing


def _record(data: Any) -> ChangeRecord:
    states = tuple(
        FileState(str(one["sha256"]), int(one["at"]), int(one["length"]), one["was"].encode("latin-1"))
        for one in data["states"]
    )
    if any(min(state.at, state.length) < 0 for state in states):
        raise ValueError("a place before the beginning of the file")  # which Python would count from its end
    backup = data["backup"]
    return ChangeRecord(
        str(data["path"]),
        data["existed"] is True,
        states,
        tuple(str(each) for each in data["folders"]),
        None if backup is None else str(backup),
        str(data["time"]),
    )


def _state(content: bytes | None, original: bytes | None) -> FileState:
    if original is None:
        return FileState(_digest(content))
    if content is None:
        return FileState(_digest(None), was=original)
    at = _common(content, original, from_end=False)
    tail = _common(content[at:], original[at:], from_end=True)
    return FileState(_digest(content), at, len(content) - at - tail, original[at : len(original) - tail])


def _common(one: bytes, other: bytes, *, from_end: bool) -> int:
    """How many bytes are the same at that end; by halving, since a comparison of slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        same = one[-middle:] == other[-middle:] if from_end else one[:middle] == other[:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _digest(content: bytes | None) -> str:
    return "" if content is None else sha256(content)
