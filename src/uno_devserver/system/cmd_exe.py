"""The command line of a batch file, such as `npm.cmd`, on Windows.

The system gives a batch file to `cmd.exe`, which reads the arguments anew: without quotes for `cmd.exe`, an argument
such as `x&y` would run the program `y`. Python quotes arguments for programs only, and its documentation leaves batch
files to the caller. What cannot be quoted is refused.
"""

from __future__ import annotations

import errno
import ntpath
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# No commands at the start of cmd.exe; `!` as it is; `%name:~,%` understood; only the outer quotes are removed.
OPTIONS = "/d /v:off /e:on /s /c"
_PLAIN = r"[A-Za-z0-9#$*+./:?@_-]+(?:\\+[A-Za-z0-9#$*+./:?@_-]+)*"  # all other characters are quoted
# Between quotes, cmd.exe still replaces `%name%`. This is the text "%" behind which a variable is cut to no characters,
# so that the names of variables in an argument are not found.
_PERCENT = "%%cd:~,%"


def is_batch_file(program: str) -> bool:
    """Whether the system runs the program by `cmd.exe`; it ignores blanks and dots at the end of a name."""
    return program.rstrip(" .").lower().endswith((".bat", ".cmd"))


def batch_command(line: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str]:
    """The path of `cmd.exe`, and the command line that passes each argument to the batch file as it is.

    Raises OSError if that is not possible.
    """
    script, *arguments = line
    if odd := next((word for word in line if re.search(r"[\0\r\n]", word)), None):
        raise OSError(errno.EINVAL, f"a batch file cannot get the argument {odd!r}, because it has a line end", script)
    if '"' in script:
        raise OSError(errno.EINVAL, "no file has such a name", script)
    words = " ".join((_quoted(script), *(word if re.fullmatch(_PLAIN, word) else _quoted(word) for word in arguments)))
    interpreter = _interpreter(environ)
    return interpreter, f'"{interpreter}" {OPTIONS} "{words}"'


def _quoted(word: str) -> str:
    """The word in quotes, as the C runtime and `cmd.exe` read it: backslashes count only before a quote."""
    inner = re.sub(r'(\\*)"', r'\1\1""', word)
    inner = re.sub(r"(\\+)\Z", r"\1\1", inner)
    return f'"{inner.replace("%", _PERCENT)}"'


def _interpreter(environ: Mapping[str, str]) -> str:
    """The path of `cmd.exe`, by the rule of Python's `subprocess` for `shell=True`."""
    named = {name.upper(): value for name, value in environ.items()}
    path = named.get("COMSPEC") or ntpath.join(named.get("SYSTEMROOT", ""), "System32", "cmd.exe")
    if not ntpath.isabs(path):
        raise OSError(errno.ENOENT, "cmd.exe is not found: neither ComSpec nor SystemRoot is set", path)
    return path
