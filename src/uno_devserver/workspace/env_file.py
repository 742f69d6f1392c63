"""Reads a file of environment variables, as `mcpServer.envFile` names one: lines `NAME=value`, as in `.env` files.

Comments, a leading `export`, and values in quotes, even over several lines, are understood; `$NAME` is no reference.
Messages name the line and never quote it, because it may have a secret; names are shown, so a line of a secret over
several lines without quotes is an error and not a name.
"""

from __future__ import annotations

import re

from ..system.files import FileProblem, read_bytes
from .config import can_be_given

MAX_BYTES = 1024 * 1024  # real files have a few hundred bytes

_BLANK = re.compile(r"[ \t]*(?:#.*)?\r?(?:\n|\Z)")
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*")
_QUOTED = re.compile(r"'(?P<plain>[^']*)'|\"(?P<escaped>(?:[^\"\\]|\\.)*)\"", re.DOTALL)
_BARE = re.compile(r"(?P<value>(?:[^\s#]|[ \t]+(?=[^\s#])|(?<=\S)#)*)")
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]+-----")
# The last line of a text in Base64, which has letters of both cases and ends with its padding.
_BASE64 = re.compile(r"[ \t]*(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{32,}={1,2}[ \t]*\r?(?:\n|\Z)")
_IN_QUOTES = "a value of several lines must stand in quotes"
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(path: str) -> tuple[tuple[str, str], ...]:
    """The variables of the file, in its order; FileProblem, whose path has the line, if it cannot be read."""
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise FileProblem(path, "there is no such file") from None
    except UnicodeDecodeError:
        raise FileProblem(path, "it is not UTF-8") from None
    variables: dict[str, str] = {}
    at = 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
            continue
        name = _NAME.match(text, at)
        if _BASE64.match(text, at):
            raise _problem(path, text, at, _IN_QUOTES)
        if name is None:
            raise _problem(path, text, at, "it must be NAME=value, a comment or blank")
        at = name.end()
        quoted = text[at : at + 1] in ("'", '"')
        found = (_QUOTED if quoted else _BARE).match(text, at)
        if found is None:
            raise _problem(path, text, at, f"the value of {name['name']} has no closing quote")
        value = _value(found) if quoted else found["value"]
        if not quoted and _PEM.fullmatch(value):
            raise _problem(path, text, at, f"{_IN_QUOTES}, here that of {name['name']}")
        rest = _BLANK.match(text, found.end())
        if rest is None:
            raise _problem(path, text, found.end(), f"something follows the closing quote of {name['name']}")
        if not can_be_given(value):
            raise _problem(path, text, at, f"the value of {name['name']} has a character that no variable can have")
        variables[name["name"]] = value
        at = rest.end()
    return tuple(variables.items())


def _value(quoted: re.Match[str]) -> str:
    if quoted["plain"] is not None:
        return quoted["plain"]
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), quoted["escaped"])


def _problem(path: str, text: str, at: int, reason: str) -> FileProblem:
    return FileProblem(f"{path}:{1 + text.count(chr(10), 0, at)}", reason)
