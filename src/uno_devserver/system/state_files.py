"""Files that keep what is known about a path: their names, and small JSON documents in them."""

from __future__ import annotations

import os
import sys
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SHOWN_CHARACTERS = 40  # of a folder's name, enough to recognise it


def name_for(path: str, shown: str = "") -> str:
    """`<name>-<key>`, equal for all spellings of the path; `shown` replaces its last part as the name."""
    # Links are followed and case is ignored, as launchers of Hosts do.
    place = os.path.realpath(path).lower()
    name = shown or os.path.basename(place)
    readable = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[:SHOWN_CHARACTERS]
    # Two paths may have the same key, so a file that must not be mixed up contains its path. hashlib would take 3 ms.
    key = crc32(place.encode("utf-8", "surrogatepass"))
    return f"{readable or 'root'}-{key:08x}"


def read_state(path: str, limit: int = 64 * 1024) -> dict[str, object]:
    """The members of a JSON document of at most `limit` bytes; none where it is missing, unreadable or no object."""
    from .files import FileProblem, read_bytes
    from .jsonc import JsonProblem, parse

    try:
        kept = parse(read_bytes(path, limit))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return {}
    return kept if isinstance(kept, dict) else {}


def write_state(path: str, members: Mapping[str, object]) -> None:
    """Replace the document at once; raises OSError."""
    import json

    from .files import write_atomic

    write_atomic(path, json.dumps(members).encode("ascii"))


def sha256(data: bytes) -> str:
    """The digest as 64 hexadecimal digits, without the 3 ms that importing hashlib takes."""
    return str(_hasher()(data).hexdigest())


def _hasher() -> Any:
    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # another Python than CPython
        import hashlib

        return hashlib.sha256
