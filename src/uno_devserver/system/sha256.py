"""SHA-256 without the 3 ms that importing hashlib takes."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def sha256(data: bytes) -> str:
    """As 64 hexadecimal digits."""
    return str(_hasher()(data).hexdigest())


def _hasher() -> Any:
    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # another Python than CPython
        import hashlib

        return hashlib.sha256
