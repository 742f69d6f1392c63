"""File names that stand for paths: one can see which, and another path gets another."""

from __future__ import annotations

import os
import sys
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


SHOWN_CHARACTERS = 40  # of a folder's name, enough to recognise it


def name_for(path: str, shown: str = "") -> str:
    """`<name>-<key>`, the same for every spelling of the path; `shown` may be recognised better than its last part."""
    # Behind a link is the same place, and in other letters too: launchers of Hosts ignore case.
    place = os.path.realpath(path).lower()
    name = shown or os.path.basename(place)
    readable = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[:SHOWN_CHARACTERS]
    # The key is no safeguard: whoever must not mix up two paths keeps the path in the file. hashlib would cost 3 ms.
    key = crc32(place.encode("utf-8", "surrogatepass"))
    return f"{readable or 'root'}-{key:08x}"


def sha256(data: bytes) -> str:
    """As 64 hexadecimal digits."""
    return str(_hasher()(data).hexdigest())


def _hasher() -> Any:
    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # another Python than CPython
        import hashlib

        return hashlib.sha256
