"""Command lines as people type them: with the quotes of the system's shells.

The rules are pure functions of the platform, so those of each system are tested on every system.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = r"[\w./:\\+=~?*-]+"  # read alike by cmd.exe and PowerShell


def quoted_line(words: Iterable[str], platform: str = sys.platform) -> str:
    """The words as a line that can be copied into a shell."""
    return " ".join(quoted_word(word, platform) for word in words)


def quoted_word(word: str, platform: str = sys.platform) -> str:
    """The word, quoted if a shell would read it otherwise.

    On Windows by double quotes, which cmd.exe, PowerShell and programs read alike, but for quotes and `$` between them.
    """
    if platform != "win32":
        from shlex import quote

        return quote(word)
    import re

    if re.fullmatch(_PLAIN, word):
        return word
    inner = re.sub(r'(\\*)"', r'\1\1\\"', word)
    return '"' + re.sub(r"(\\+)\Z", r"\1\1", inner) + '"'
