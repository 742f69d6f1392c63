"""Text from files and file names, made safe to show."""

from __future__ import annotations

LONGEST_NAME = 100  # of another program, in characters


def visible(text: str, *, keep_odd_bytes: bool = False) -> str:
    """Control characters by their number, so that no file can move the cursor or change colours; line ends stay.

    Bytes of file names that are no text (surrogates in Python) are shown by number too, unless they are to be kept.
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
    """A name that another program gave itself, if it can be part of a sentence."""
    return name[:LONGEST_NAME] if isinstance(name, str) and name.strip() and name.isprintable() else None


def _number(character: str) -> str:
    if ord(character) > 0x7F:
        return character.encode("ascii", "backslashreplace").decode()
    return f"\\x{ord(character):02x}"


PLAIN_PATHS = ("", "/", "/mcp", "/sse")  # of most servers; hosted ones also put a user's key into the path
_PARTS = r"(?P<scheme>[^/?#]*://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)"
_PLACE = r"(\[[^\]]*\]|[^:]*)(:\d*)?"


def shown_url(url: str) -> str:
    """Scheme, host and port, and a path that is everybody's; another one is `/…`."""
    import re

    found = re.match(_PARTS, url.strip())
    assert found is not None  # every part may be empty
    place = found["authority"].rpartition("@")[2]
    # With a password that has a slash in it, what looks like a host is the password's beginning.
    shown = place if re.fullmatch(_PLACE, place) else "…"
    return f"{found['scheme'] or ''}{shown}{found['path'] if found['path'] in PLAIN_PATHS else '/…'}"


def has_credentials(url: str) -> bool:
    """Whether a user name or a password stands before the host."""
    import re

    found = re.match(_PARTS, url.strip())
    return found is not None and "@" in found["authority"]
