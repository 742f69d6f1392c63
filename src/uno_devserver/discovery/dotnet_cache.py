"""The last answer of `dotnet --version`, kept on disk for a day.

A kept answer counts only for the same executable, place and content of global.json, and by the time written inside:
file times say nothing after a copy or a checkout. A cache that cannot be read or written is as good as none.
The first five fields are those that the .NET tool wrote; `question` is ours.
"""

from __future__ import annotations

import json
import os

from ..system import jsonc
from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.values import Value

FORMAT = 1
MAX_AGE_SECONDS = 24 * 60 * 60  # so long may a newly installed SDK go unnoticed
MAX_BYTES = 64 * 1024  # one entry has 300 bytes


class Question(Value):
    """Everything that the answer depends on, as far as it can be seen from outside."""

    executable: str
    place: str  # the global.json, else the folder: relative paths in it and version managers depend on it
    global_json: bytes | None  # all of it: a comma outside of the sdk section can decide, too

    def digest(self) -> str:
        import hashlib

        presence = b"none" if self.global_json is None else b"some"
        parts = (presence, os.fsencode(self.executable), os.fsencode(self.place), self.global_json or b"")
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read(path: str, question: Question) -> str | None:
    """The kept version, if it still answers this question."""
    try:
        entry = jsonc.parse(read_bytes(path, MAX_BYTES))
    except (FileNotFoundError, FileProblem, jsonc.JsonProblem):
        return None
    if not isinstance(entry, dict) or entry.get("version") != FORMAT or entry.get("question") != question.digest():
        return None
    version, tfm = entry.get("rawVersion"), entry.get("tfm")
    complete = isinstance(version, str) and isinstance(tfm, str) and version and tfm
    return version if complete and _is_fresh(entry.get("timestamp")) else None


def write(path: str, question: Question, version: str, tfm: str) -> None:
    from datetime import UTC, datetime

    entry = {
        "version": FORMAT,
        "rawVersion": version,
        "tfm": tfm,
        "sdkVersionKey": _sdk_version_key(question.global_json),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "question": question.digest(),
    }
    try:
        write_atomic(path, json.dumps(entry, indent=2).encode())
    except OSError:
        pass


def _is_fresh(timestamp: object) -> bool:
    from datetime import UTC, datetime

    try:
        age = datetime.now(UTC) - datetime.fromisoformat(str(timestamp))
    except (ValueError, TypeError, OverflowError):  # no time at all, or one without a zone
        return False
    return 0 <= age.total_seconds() < MAX_AGE_SECONDS


def _sdk_version_key(global_json: bytes | None) -> str:
    """`version|rollForward|allowPrerelease`, by which the .NET tool knew its entry again."""
    try:
        root = jsonc.parse(global_json or b"")
    except jsonc.JsonProblem:
        return ""
    sdk = root.get("sdk") if isinstance(root, dict) else None
    if not isinstance(sdk, dict) or not sdk.get("version"):
        return ""
    values = (sdk.get(name) for name in ("version", "rollForward", "allowPrerelease"))
    return "|".join("" if value is None else str(value) for value in values)
