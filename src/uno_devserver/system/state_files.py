"""Files with facts about a path: their names, and reading and writing them as small JSON documents."""

from __future__ import annotations

import os
import sys
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SHOWN_CHARACTERS = 40  # how many characters of the name are used; enough to recognise it


def name_for(path: str, shown: str = "") -> str:
    """A file name `<name>-<key>`, equal for all spellings of the path; the name is `shown` or the path's last part."""
    # Links are followed and case is ignored, as by all launchers of Hosts.
    place = os.path.realpath(path).lower()
    name = shown or os.path.basename(place)
    readable = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[:SHOWN_CHARACTERS]
    # Two paths may have the same key, so a file that must not be confused with another contains its path. Importing
    # hashlib for a better key would take 3 ms.
    key = crc32(place.encode("utf-8", "surrogatepass"))
    return f"{readable or 'root'}-{key:08x}"


def read_state(path: str, limit: int = 64 * 1024) -> dict[str, object]:
    """The members of a JSON document of at most `limit` bytes; none if it is missing, unreadable or not an object."""
    from .files import FileProblem, read_bytes
    from .jsonc import JsonProblem, parse

    try:
        kept = parse(read_bytes(path, limit))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return {}
    return kept if isinstance(kept, dict) else {}


def write_state(path: str, members: Mapping[str, object]) -> None:
    """Replace the document atomically; raises OSError."""
    import json

    from .files import write_atomic

    write_atomic(path, json.dumps(members).encode("ascii"))


def sha256(data: bytes) -> str:
    """The digest as 64 hexadecimal digits, without the 3 ms that importing hashlib takes."""
    return str(_hasher()(data).hexdigest())


def _hasher() -> Any:
    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # this Python is not CPython
        import hashlib

        return hashlib.sha256
