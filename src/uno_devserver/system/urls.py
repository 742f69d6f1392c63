"""What of a URL others may see: where it leads, and nothing that may be a key."""

from __future__ import annotations

import re

PLAIN_PATHS = ("", "/", "/mcp", "/sse")  # of most servers; hosted ones also put a user's key into the path
_PARTS = re.compile(r"(?P<scheme>[^/?#]*://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)")
_PLACE = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")


def shown_url(url: str) -> str:
    """Scheme, host and port, and a path that is everybody's; another one is `/…`."""
    found = _PARTS.match(url.strip())
    assert found is not None  # every part may be empty
    place = found["authority"].rpartition("@")[2]
    # With a password that has a slash in it, what looks like a host is the password's beginning.
    shown = place if _PLACE.fullmatch(place) else "…"
    return f"{found['scheme'] or ''}{shown}{found['path'] if found['path'] in PLAIN_PATHS else '/…'}"


def has_credentials(url: str) -> bool:
    """Whether a user name or a password stands before the host."""
    found = _PARTS.match(url.strip())
    return found is not None and "@" in found["authority"]
