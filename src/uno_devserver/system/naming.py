"""File names that stand for paths: one can see which, and another path gets another."""

from __future__ import annotations

import os
from binascii import crc32

SHOWN_CHARACTERS = 40  # of a folder's name, enough to recognise it


def name_for(path: str, shown: str = "") -> str:
    """`<name>-<key>`; `shown` is recognised better than the path's own last part."""
    name = shown or os.path.basename(path)
    readable = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[:SHOWN_CHARACTERS]
    # Launchers of Hosts ignore case, so one folder in two spellings is one place. The key is no safeguard: whoever
    # must not mix up two paths keeps the path in the file. hashlib would cost 3 ms of import.
    key = crc32(os.path.realpath(path).lower().encode("utf-8", "surrogatepass"))
    return f"{readable or 'root'}-{key:08x}"
