"""File names that stand for paths: one can see which, and another path gets another."""

from __future__ import annotations

import os
from binascii import crc32

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
