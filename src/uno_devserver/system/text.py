"""Makes text that comes from files, file names, URLs and command lines safe to show."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

FIRST_SYSTEM_LETTER = (
    0xC0  # À in the code pages 1250, 1252 and so on; the letters of 437 and 850 end with 0xA7, but for ß
)
LONGEST_NAME = 100  # of another program, in characters
COLOURS = r"\x1b\[[0-?]*[ -/]*[@-~]"  # and movements of the cursor
# Characters that count as printable, but are shown as nothing or as a blank; the ranges are variation selectors.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U0001d159"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


def visible(text: str, *, keep_odd_bytes: bool = False) -> str:
    """The text with unprintable characters, except line ends, as numbers: they could move the cursor or change colours.

    Bytes of file names that are not valid text (surrogates in Python) become numbers, too, unless they are kept.
    """
    if text.isprintable() and (text.isascii() or _INVISIBLE.isdisjoint(text)):
        return text
    return "".join(
        character
        if (character.isprintable() and character not in _INVISIBLE)
        or character == "\n"
        or (keep_odd_bytes and "\ud800" <= character <= "\udfff")
        else _number(character)
        for character in text
    )


def one_line(text: str) -> str:
    """The text on one line, with line ends and non-printable characters made visible: no name can imitate a line."""
    return visible(text.replace("\n", "\\n"), keep_odd_bytes=True)


def decode_output(printed: bytes) -> str:
    """What a program has printed, as text: UTF-8, or on Windows also the code pages of the system."""
    return printed.decode("utf-8", output_errors())


def output_errors(platform: str = sys.platform, console: str = "oem", system: str = "mbcs") -> str:
    """The name of an error handler for bytes that are not UTF-8.

    On Windows, `cmd.exe`, .NET and others print in the code page of the console (`oem`), Python in that of the system
    (`mbcs`), also into pipes and files. In those of Europe nearly all letters of the first come before those of the
    second, which tells them apart.
    """
    if platform != "win32":
        return "replace"
    import codecs

    def in_code_page(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        wrong = error.object[error.start : error.end]
        return wrong.decode(console if wrong[0] < FIRST_SYSTEM_LETTER else system, "replace"), error.end

    name = f"uno-devserver-{console}-{system}"
    codecs.register_error(name, in_code_page)
    return name


# Of what programs print when they fail: the line of the error, and the frames of stack traces, which Python prints
# before that line, others after it.
_ERROR = r"(?m)^(?:Unhandled exception\. |panic: )?[\w.$]*(?:(?:Error|Exception)\b|(?<=panic: )).*"
_PYTHON_FRAME = r"""[ \t|]*File ".*\n(?:[ \t|]* {4}[^\s|].*\n)*"""
_FRAMES = rf"(?m)^(?P<python>(?:{_PYTHON_FRAME}){{3,}})|^(?:[ \t]+at .*\n){{4,}}"
LEFT_OUT = "    …\n"


def shortened_output(text: str, characters: int) -> str:
    """The beginning and the end of a text, and the line of the last error; first, stack traces lose frames."""
    import re

    if len(text) <= characters:
        return text
    text = _with_fewer_frames(text)
    half = characters // 2
    if len(text) <= characters:
        return text
    for error in list(re.finditer(_ERROR, text))[-1:]:
        if half < error.end() and error.start() < len(text) - half:
            third = characters // 3
            return f"{text[:third]} … {error[0][:third]} … {text[len(text) - third :]}"
    return f"{text[:half]} … {text[len(text) - half :]}"


def last_lines(text: str, most: int) -> list[str]:
    """The last lines of a text, and the line of the last error with those that follow it."""
    import re

    lines = text.splitlines()
    if len(lines) <= most:
        return lines
    lines = _with_fewer_frames(text).splitlines()
    error = max((at for at, line in enumerate(lines) if re.match(_ERROR, line)), default=len(lines))
    half = most // 2
    if error < len(lines) - most:
        return [*lines[error : error + most - half - 1], LEFT_OUT.rstrip(), *lines[-half:]]
    return lines[-most:]


def _with_fewer_frames(text: str) -> str:
    """The text with the frames of each stack trace that are next to the error, of Python the outermost one besides."""
    import re

    def few(found: re.Match[str]) -> str:
        if found["python"] is None:
            return "".join(found[0].splitlines(keepends=True)[:3]) + LEFT_OUT
        frames = re.findall(_PYTHON_FRAME, found[0])
        return f"{frames[0]}{LEFT_OUT}{frames[-1]}"

    return re.sub(_FRAMES, few, text)


class VisibleOutput:
    """Decodes what a program prints, in pieces: without colours, and with other unprintable characters as numbers."""

    def __init__(self) -> None:
        import codecs
        import io

        decoder = codecs.getincrementaldecoder("utf-8")(output_errors())
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._controls = {code: _number(chr(code)) for code in (*range(32), 127) if chr(code) not in "\n\t"}

    def decode(self, printed: bytes) -> str:
        import re

        text = re.sub(COLOURS, "", self._decoder.decode(printed))
        # Much faster than `visible` for all of it: a server may print megabytes of control characters.
        return re.sub(r"[^\0-\x7f]+", lambda found: visible(found[0]), text.translate(self._controls))


def usable_name(name: object) -> str | None:
    """The name that another program has given itself, shortened; None if it is not a printable string."""
    return name[:LONGEST_NAME] if isinstance(name, str) and name.strip() and name.isprintable() else None


def _number(character: str) -> str:
    if ord(character) > 0x7F:
        return character.encode("ascii", "backslashreplace").decode()
    return f"\\x{ord(character):02x}"


# A part of a path that is made of words, as `team`, `api-v2` or `sse`; others may be a user's key.
_PLAIN_PART = r"(?:[a-z]{1,12}(?:[-_.][a-z]{1,12}){0,2}|v\d{1,2}(?:\.\d{1,2})?)"
_PLAIN_PATH = rf"(?:/{_PLAIN_PART}){{0,6}}/?"
_PARTS = r"(?P<scheme>[A-Za-z0-9+.-]*://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)"
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
    return f"{found['scheme'] or ''}{shown}{found['path'] if re.fullmatch(_PLAIN_PATH, found['path']) else '/…'}"


def has_credentials(url: str) -> bool:
    """Whether a user name or a password stands before the host."""
    import re

    found = re.match(_PARTS, url.strip())
    return found is not None and "@" in found["authority"]


# --- secrets in commands and variables

HIDDEN = "…"
# Words of a name that say that its value is a secret, and endings of words that do.
_SECRET_WORDS = frozenset(
    ("auth", "authorization", "bearer", "cookie", "dsn", "jwt", "license", "pass", "pat", "pin", "pw")
)
_SECRET_ENDINGS = ("credential", "key", "passphrase", "password", "passwd", "pwd", "secret", "signature", "token")
_SECRET_PLURALS = ("credentials", "keys", "passwords", "secrets")  # but TOKENS are counted as a rule
# The last word of a name whose value decides which code runs, or names a place: it is shown.
_SHOWN_WORDS = frozenset(
    ("args", "cmd", "command", "dir", "env", "file", "folder", "host", "port", "root", "sock", "uri", "url")
)
_SHOWN_ENDINGS = ("flags", "home", "opt", "options", "opts", "path", "preload")
_WORKING_FOLDER = ("PWD", "OLDPWD")

_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
# Keys that are known by their beginning, of services that many servers are for.
_KNOWN = r"sk-|[spr]k_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|A[KS]IA|AIza|npm_|pypi-|hf_|dop_|shp[a-z]{2}_|SG\.|eyJ"
_TOKEN = rf"\b({_KNOWN})(?=[A-Za-z_.-]{{0,100}}\d)[\w.-]{{12,}}"
_BEARER = r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"
_AUTHORIZATION = (
    r"(?i)\b(authorization\s*[:=]\s*)(?!(?:bearer|basic)\s)[^\s,;'\"][^,;'\"]*"  # any other scheme, and its key
)
# The beginnings of patterns are bounded, so that the time is linear in the length.
_NAMED = r"""(?<!\w)([A-Za-z][\w.-]{0,100})(["']? ?[=:] ?)((?!(?:[Bb]earer|[Bb]asic)\b)[^\s;&,'"]+|"[^"]*"|'[^']*')"""
_URL = r"""(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9+.-]{0,20}://)(?:[^\s/?#'"]*@)?([^\s?#'"]*)(\?[^\s#'"]*)?(#[^\s'"]*)?"""
_RANDOM = r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+.~=-]{24,}|[0-9a-fA-F-]{32,}"
_OPTION = r"--?([A-Za-z][\w.-]*)"
_OPTION_WITH_VALUE = r"(-{0,2}([A-Za-z][\w.-]*)=)(\S+)"
# What may follow an option that has no value: another option, a path, a script.
_SCRIPT = r"-.*|[./~\\].*|.*\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|ps1|bat|cmd|exe|dll|jar)"
_RUN_BY_A_SHELL = ("$(", "`")
_CODE = r"""['"$`()|<>\n]|; """  # in a word of a command line: it may be code, of which nothing is hidden
# The beginnings of names of variables by which interpreters and package managers are told what to run.
_SHOWN_BEGINNINGS = (
    *("BASH", "COMPLUS_", "CORECLR_", "DOTNET_", "DYLD_", "GIT_", "JAVA", "JDK_", "LD_", "NODE", "NPM_", "NUGET_"),
    *("PERL", "PIP_", "PYTEST", "PYTHON", "RUBY", "UV_"),
)

_CODE_BEGINNINGS = ("BASH_FUNC_", "GIT_CONFIG_")  # of names whose values are code, or say which program runs


def shown_variable(name: str, value: str) -> str:
    """The value of an environment variable; `…` if its name, or what it looks like, says that it is a secret.

    A value that decides which code runs, such as that of NODE_OPTIONS, is shown, but for secrets in it.
    """
    import re

    if name.upper().startswith(_CODE_BEGINNINGS):
        return value
    is_shown = _is_shown(name) or name.upper().startswith(_SHOWN_BEGINNINGS)
    hidden = names_secret(name) or (not is_shown and re.fullmatch(_RANDOM, value))
    return HIDDEN if hidden and value else shown_text(value)


def shown_words(line: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line, with `…` for secrets; the program, and what may be code, are shown as they are."""
    import re

    shown = list(line[:1])
    secret_follows = False
    for word in line[1:]:
        given = re.fullmatch(_OPTION_WITH_VALUE, word)
        if secret_follows and not re.fullmatch(_SCRIPT, word, re.DOTALL) and not re.search(_CODE, word):
            shown.append(HIDDEN)
        elif given and names_secret(given[2]) and not any(mark in word for mark in _RUN_BY_A_SHELL):
            shown.append(given[1] + HIDDEN)
        elif re.search(_CODE, word):
            shown.append(word)
        else:
            shown.append(shown_text(word))
        option = re.fullmatch(_OPTION, word)
        secret_follows = option is not None and names_secret(option[1])
    return tuple(shown)


_NAMED_OPTION = r"(--([A-Za-z][\w.-]*)=)(.+)"
_HEADER = r"[A-Za-z][\w-]*: .+"
_MAY_BE_CODE = r"""[][(){}<>;|&$`'"\\\s]|^[.~!/]|^[A-Za-z]:"""  # code, or the path of a program


def words_to_agree_to(line: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line for the question whether it may run: `…` stands only for what cannot be code.

    Hidden are credentials and values of the query in a URL, values of headers, and those of options such as
    `--token=…`. All else is shown, unlike by `shown_words`: code could have the name or the form of a secret.
    """
    import re
    from itertools import pairwise

    shown = list(line[:1])
    for before, word in pairwise(line):
        option = re.fullmatch(_NAMED_OPTION, word, re.DOTALL)
        if option and _ends_secret(option[2]) and not re.search(_MAY_BE_CODE, option[3]):
            shown.append(option[1] + HIDDEN)
        elif before in ("-H", "--header") and re.fullmatch(_HEADER, word):
            shown.append(shown_text(word))
        elif word.startswith("--header=") and re.fullmatch(_HEADER, word[9:]):
            shown.append(word[:9] + shown_text(word[9:]))
        else:
            shown.append(_without_credentials(word))
    return tuple(shown)


def variable_to_agree_to(name: str, value: str, line: Sequence[str]) -> str:
    """The value of a variable for the question whether the command line may run.

    It is shown if a word of the line names it, or if it may be a command: some programs run what a variable names.
    """
    import re

    is_command = any(re.match(r"[.~!/\\]|[A-Za-z]:\\", word) for word in value.split())
    return (
        _without_credentials(value) if is_command or any(name in word for word in line) else shown_variable(name, value)
    )


def _ends_secret(name: str) -> bool:
    """Whether the last word of the name says that its value is a secret."""
    import re

    return names_secret("".join(re.findall(_WORD, name)[-1:]))


def _without_credentials(text: str) -> str:
    import re

    text = re.sub(r"""(://)[^\s/?#'"@]*@""", r"\1", text)
    if "?" in text and re.match(r"[\w+.-]+://", text) and not re.search(_MAY_BE_CODE, text.replace("&", "")):
        address, mark, query = text.partition("?")
        return address + mark + re.sub(r"(^|(?<=[&=]))[^&=]+(?=&|$)", HIDDEN, query)
    return text


def shown_command(line: Sequence[str]) -> str:
    return " ".join(shown_words(line))


def shown_text(text: str) -> str:
    """The text with `…` for credentials and queries of URLs, values of secret names, and keys of known kinds."""
    import re

    text = re.sub(_AUTHORIZATION, rf"\1{HIDDEN}", re.sub(_URL, _shown_address, text))
    text = re.sub(_BEARER, rf"\1 {HIDDEN}", text)
    text = re.sub(_NAMED, _shown_member, text)
    return re.sub(_TOKEN, rf"\1{HIDDEN}", text)


def names_secret(name: str) -> bool:
    """Whether the name of a variable, an option or a header says that its value is a secret."""
    import re

    words = [word.lower() for word in re.findall(_WORD, name)]
    endings = (*_SECRET_ENDINGS, *_SECRET_PLURALS)
    return not _is_shown(name) and any(word in _SECRET_WORDS or word.endswith(endings) for word in words)


def _is_shown(name: str) -> bool:
    import re

    last = [word.lower() for word in re.findall(_WORD, name)][-1:]
    return name in _WORKING_FOLDER or any(word in _SHOWN_WORDS or word.endswith(_SHOWN_ENDINGS) for word in last)


def _shown_member(found: re.Match[str]) -> str:
    # What has a bracket may be code, which a shell or an interpreter runs.
    is_code = "(" in found[3] or "`" in found[3]
    return f"{found[1]}{found[2]}{HIDDEN}" if names_secret(found[1]) and not is_code else found[0]


def _shown_address(found: re.Match[str]) -> str:
    import re

    host, *parts = found[2].split("/")
    if ":" in host and "@" in found[2]:  # a password with a slash in it
        return f"{found[1]}{HIDDEN}@{found[2].rpartition('@')[2]}"
    if found[1].startswith("git"):  # its path and revision say which code is fetched
        return "".join(part or "" for part in found.groups())
    path = [HIDDEN if re.fullmatch(_RANDOM, part) else part for part in parts]
    query = re.sub(r"(?<=[?&=])[^&=]+(?=&|$)", HIDDEN, found[3]) if found[3] else ""
    return found[1] + "/".join((host, *path)) + query + (f"#{HIDDEN}" if found[4] else "")
