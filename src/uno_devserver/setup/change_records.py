"""Records of our changes to a configuration file, from which its original content can be computed to the byte.

A file has one record from our first change until the file is the original again. The record stores the difference to
the original for two contents of the file: before and after our last change. It is written before the file, so that it
is valid whenever the process is killed. If others have changed the file, the original cannot be computed.
"""

from __future__ import annotations

import json
import os

from ..system.files import FileProblem, remove_file, sweep
from ..system.jsonc import JsonProblem, parse
from ..system.log import utc_now
from ..system.state_files import name_for, read_own, sha256, write_own
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "registration"
_KEY_CHARACTERS = 32  # of the SHA-256 of a path: no two paths with the same can be made
MAX_RECORD_BYTES = 64 * 1024 * 1024  # a record contains at most the region of a file that we replaced


class FileState(Value):
    """A content of the file, and the region in which the original differs from it."""

    sha256: str  # "" if there is no file
    at: int = 0
    length: int = 0
    was: bytes = b""


class Original(Value):
    content: bytes | None  # None if there was no file


class ChangeRecord(Value):
    path: str  # the path with links resolved
    existed: bool
    states: tuple[FileState, ...]
    folders: tuple[str, ...]  # the folders that we created for the file, the outermost first
    backup: str | None  # the path of a copy of the original
    time: str  # the time of the first change

    def original(self, content: bytes | None) -> Original | None:
        """The content before our first change; None if others have changed the file since."""
        digest = _digest(content)
        for state in self.states:
            if state.sha256 == digest:
                present = content or b""
                restored = present[: state.at] + state.was + present[state.at + state.length :]
                return Original(restored if self.existed else None)
        return None


def record_of(folder: str, path: str) -> ChangeRecord | None:
    """The record of a file in our state folder; None if there is none, or it cannot be read."""
    real = os.path.realpath(path)
    records = (_read(f"{name}.json") for name in (stem(folder, real), _earlier_stem(folder, real)))
    return next((one for one in records if one is not None and one.path == real), None)


def continued_record(
    record: ChangeRecord | None, path: str, before: bytes | None, after: bytes | None, folders: tuple[str, ...]
) -> tuple[ChangeRecord, Original]:
    """The record for a further change: the earlier one, if it is still valid, or a new one."""
    original = record.original(before) if record is not None else None
    if record is None or original is None:
        now = utc_now()
        record, original = ChangeRecord(os.path.realpath(path), before is not None, (), (), None, now), Original(before)
    states = (_state(before, original.content), _state(after, original.content))
    return record.replace(states=states, folders=(*record.folders, *folders)), original


def keep_record(folder: str, record: ChangeRecord) -> None:
    """Write a record; raises OSError."""
    data = {
        "path": record.path,
        "existed": record.existed,
        # Bytes are stored as characters with the same code, which is exact, and readable for ASCII.
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
    write_own(path, json.dumps(data, indent=2).encode("ascii"))


def forget_record(folder: str, record: ChangeRecord, *, keep_backup: bool = False) -> None:
    """Remove the record of a file, and its backup unless that is to be kept."""
    paths = [f"{stem(folder, record.path)}.json"]
    earlier = f"{_earlier_stem(folder, record.path)}.json"
    found = _read(earlier)
    if found is not None and found.path == record.path:
        paths.append(earlier)
    if record.backup is not None and not keep_backup:
        paths.append(record.backup)
    for path in paths:
        try:
            remove_file(path)
        except OSError:
            pass  # a remaining record does no harm: it does not fit the file any more, or the next change uses it


def stem(folder: str, path: str) -> str:
    """The path prefix of the record and the backups of a file.

    Two files never have the same: the backups contain the users' secrets, and `restore` writes them to the file.
    """
    real = os.path.realpath(path)
    key = sha256(os.fsencode(real))[:_KEY_CHARACTERS]
    return os.path.join(folder, FOLDER, f"{name_for(real).rpartition('-')[0]}-{key}")


def _earlier_stem(folder: str, path: str) -> str:
    """The prefix that earlier versions used. Other files may have the same, so only a record with the path counts."""
    return os.path.join(folder, FOLDER, name_for(path))


def _read(path: str) -> ChangeRecord | None:
    try:
        data = parse(read_own(path, MAX_RECORD_BYTES))
    except (OSError, FileProblem, JsonProblem):
        return None
    try:
        return _record(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None  # this program has not written the file


def _record(data: Any) -> ChangeRecord:
    states = tuple(
        FileState(str(one["sha256"]), int(one["at"]), int(one["length"]), one["was"].encode("latin-1"))
        for one in data["states"]
    )
    if any(min(state.at, state.length) < 0 for state in states):
        raise ValueError("a place before the beginning of the file")  # Python would count from the end
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
    """The number of equal bytes at the beginning or end, found by bisection, because comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        same = one[-middle:] == other[-middle:] if from_end else one[:middle] == other[:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _digest(content: bytes | None) -> str:
    return "" if content is None else sha256(content)
