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
