"""Makes text that comes from files, file names and URLs safe to show."""

from __future__ import annotations

LONGEST_NAME = 100  # of another program, in characters


def visible(text: str, *, keep_odd_bytes: bool = False) -> str:
    """The text with control characters, except line ends, as numbers: they could move the cursor or change colours.

    Bytes of file names that are not valid text (surrogates in Python) become numbers, too, unless they are kept.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character == "\n" or (keep_odd_bytes and "\ud800" <= character <= "\udfff")
        else _number(character)
        for character in text
    )


def usable_name(name: object) -> str | None:
    """The name that another program has given itself, shortened; None if it is not a printable string."""
    return name[:LONGEST_NAME] if isinstance(name, str) and name.strip() and name.isprintable() else None


def _number(character: str) -> str:
    if ord(character) > 0x7F:
        return character.encode("ascii", "backslashreplace").decode()
    return f"\\x{ord(character):02x}"


PLAIN_PATHS = ("", "/", "/mcp", "/sse")  # of most servers; others may contain a user's key
_PARTS = r"(?P<scheme>[^/?#]*://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)"
_PLACE = r"(\[[^\]]*\]|[^:]*)(:\d*)?"


def shown_url(url: str) -> str:
    """The URL without credentials, query and fragment; a path that may contain a key becomes `/…`."""
    import re

    found = re.match(_PARTS, url.strip())
    assert found is not None  # every part may be empty
    place = found["authority"].rpartition("@")[2]
    # In `user:12/34@host` what looks like host and port is a user name and the beginning of a password.
    password_cut = ":" in place and "@" in found["path"]
    shown = place if re.fullmatch(_PLACE, place) and not password_cut else "…"
    return f"{found['scheme'] or ''}{shown}{found['path'] if found['path'] in PLAIN_PATHS else '/…'}"


def has_credentials(url: str) -> bool:
    """Whether a user name or a password stands before the host."""
    import re

    found = re.match(_PARTS, url.strip())
    return found is not None and "@" in found["authority"]
