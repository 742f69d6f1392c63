"""Commands in entries: their names and paths, whether they exist; and the command of this program itself.

Names and paths follow the rules of all systems, because files are copied between systems.
"""

from __future__ import annotations

import os
import re
import sys

from ..system.folders import folders
from ..system.programs import first_executable, named_program_candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ENDINGS = (".exe", ".cmd", ".bat")

_OWN_NAME = re.compile(r"uno[-_.]devserver(\.dll)?", re.IGNORECASE)
_OWN_PACKAGE = re.compile(r"uno[-_.]+devserver(\[.*?\])?([@=~<>!].*)?", re.IGNORECASE | re.DOTALL)
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "cmd", "powershell", "pwsh")
_SHELL_TEXT = re.compile(r"-[a-z]*c(ommand)?|/[ck]", re.IGNORECASE)  # the option before the text that a shell runs
_UV_OPTIONS = frozenset(
    (
        *("--from", "--with", "--with-editable", "--with-requirements", "--python", "-p", "--index"),
        *("--default-index", "--index-url", "-i", "--extra-index-url", "--find-links", "-f"),
        *("--upgrade-package", "-P", "--index-strategy", "--keyring-provider", "--resolution", "--prerelease"),
        *("--fork-strategy", "--exclude-newer", "--link-mode", "--config-setting", "-C", "--reinstall-package"),
        *("--refresh-package", "--no-build-package", "--no-binary-package", "--cache-dir"),
        *("--python-preference", "--color", "--directory", "--project", "--config-file"),
        *("--allow-insecure-host", "--env-file", "--constraints", "-c", "--overrides", "--build-constraints"),
        *("-b", "--torch-backend", "--python-platform", "--extra", "--no-extra", "--group", "--no-group"),
        *("--only-group", "--package", "-w"),
    )
)
_DOTNET_OPTIONS = frozenset(
    (
        *("--version", "--source", "--add-source", "--configfile", "--verbosity", "-v", "--framework", "-f"),
        *("--arch", "-a", "--tool-path", "--project", "--configuration", "-c", "--depsfile", "--runtimeconfig"),
        *("--fx-version", "--roll-forward", "--additionalprobingpath"),
    )
)
# Programs that start another one: the words with which they do, and their options that have a value.
_STARTERS: Mapping[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "uvx": ((), _UV_OPTIONS),
    "uv": (("tool", "run"), _UV_OPTIONS),
    "pipx": (("run",), frozenset(("--spec", "--python", "--index-url", "-i", "--pip-args", "--backend", "--with"))),
    "dnx": ((), _DOTNET_OPTIONS),
    "dotnet": (("dnx", "tool", "run", "exec"), _DOTNET_OPTIONS),
    "python": ((), frozenset(("-W", "-X"))),
    "env": ((), frozenset(("-u", "--unset", "-C", "--chdir"))),
    "wsl": ((), frozenset(("-d", "--distribution", "-u", "--user", "--cd"))),
    "exec": ((), frozenset()),
    "nohup": ((), frozenset()),
}


def base_name(command: str) -> str:
    """The name of a program, without folder and Windows extension: `C:\\tools\\uvx.exe` is `uvx`."""
    name = command.replace("\\", "/").rpartition("/")[2]
    ending = name[-4:].lower()
    return name[:-4] if ending in _ENDINGS else name


def is_absolute(command: str) -> bool:
    return command.startswith(("/", "\\\\")) or command[1:3] in (":\\", ":/")


def find_command(name: str, folder: str, environ: Mapping[str, str], platform: str) -> str | None:
    """The executable file for a command on PATH, or relative to a folder; None if there is none."""
    return first_executable(named_program_candidates(name, folder, environ, platform))


def own_arguments(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """The arguments that a command line gives to this program; None if it starts another one.

    Only the word that names the program counts, so that text in the arguments of other programs does not.
    """
    if len(words) == 1 and " " in words[0]:
        words = next(iter(_shell_commands(words[0])), ())
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if not words:
        return None
    name = base_name(words[0]).lower()
    if _OWN_NAME.fullmatch(name):
        return words[1:]
    if name in _SHELLS:
        at = next((number for number, word in enumerate(words, 1) if _SHELL_TEXT.fullmatch(word)), None)
        commands = (
            [words[1:]] if at is None else [words[at:]] if name == "cmd" else _shell_commands(*words[at : at + 1])
        )
        return next((found for one in commands if (found := own_arguments(one)) is not None), None)
    starter = _STARTERS.get("python" if re.fullmatch(r"py|python[w\d.]*", name) else name)
    return _started(words[1:], *starter) if starter is not None else None


def _started(words: tuple[str, ...], verbs: tuple[str, ...], with_value: frozenset[str]) -> tuple[str, ...] | None:
    """The same for the words after a program that starts another one."""
    at = 0
    while at < len(words) and words[at] != "--" and (words[at].startswith("-") or words[at] in verbs):
        at += 2 if words[at] in with_value else 1
    its = words[at + 1 :] if words[at : at + 1] == ("--",) else words[at:]
    return its[1:] if its and _OWN_PACKAGE.fullmatch(its[0]) else own_arguments(its)


def _shell_commands(text: str = "") -> list[tuple[str, ...]]:
    """The words of each command in a text for a shell; none if its quotes are not closed."""
    from shlex import shlex

    lexer = shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word.strip("();&|"):
                commands[-1].append(word)
            else:
                commands.append([])
    except ValueError:
        return []
    return [tuple(one) for one in commands if one]


def proxied_url(words: tuple[str, ...]) -> str | None:
    """The URL of the server before which a command line starts this program, "" for the server of a folder.

    None if it starts anything else, or this program before another command.
    """
    its = own_arguments(words)
    if its is None or "--" in its or not ("--mcp-app" in its or its[:2] in (("mcp", "start"), ("mcp", "serve"))):
        return None
    return option_value(its, "--upstream-url")


def option_value(words: tuple[str, ...], wanted: str) -> str:
    """The value of an option among the words; "" if it is not there."""
    for word, then in zip(words, (*words[1:], ""), strict=False):
        option, is_one, value = word.partition("=")
        if option == wanted:
            return value if is_one else then
    return ""


def on_path(name: str, environ: Mapping[str, str], platform: str) -> bool:
    return find_command(name, "", environ, platform) is not None


def command_problem(command: str, environ: Mapping[str, str], platform: str) -> str:
    """The end of a sentence: why a command cannot be started; "" if it can, or if only the client knows."""
    if is_absolute(command):
        return "" if os.path.exists(command) else f"'{command}' does not exist"
    if any(sign in command for sign in "/\\$~%"):
        return ""  # only the client knows the folder or the variable
    return "" if on_path(command, environ, platform) else f"'{command}' is not on PATH"


PROGRAM_NAMES = ("uno-devserver", "uno.devserver")
MODULE = "uno_devserver"
# Clients start servers in the folder that they show; without -P Python would import files from there.
RUNS_MODULE = ("-P", "-m", MODULE)
_SCRIPT_ENDINGS = ("", ".exe")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # only compared
# Runners such as uvx and pipx install programs for a single run into their caches, which are cleared at times.
_CLEARED = ("UV_CACHE_DIR", "TMPDIR", "TEMP", "TMP")


def own_command(executable: str = sys.executable, called: str | None = None) -> tuple[str, ...]:
    """The absolute path of the console script, or else the interpreter and the module."""
    called = sys.argv[0] if called is None else called
    for script in _scripts(executable, called):
        if os.path.isfile(script):
            return (script,)
    return (os.path.abspath(executable), *RUNS_MODULE)


def is_temporary(path: str, environ: Mapping[str, str]) -> bool:
    """Whether a file is in a folder that is cleared at times, so that an entry with this command would break."""
    if not os.path.isabs(path):
        return False  # a name is searched for at each start
    cleared = [environ[name] for name in _CLEARED if environ.get(name)]
    cleared += [*_TEMPORARY, *_caches(environ)]
    places = (os.path.realpath(path), os.path.abspath(path))
    return any(_is_below(place, os.path.realpath(folder)) for place in places for folder in cleared)


def _scripts(executable: str, called: str) -> list[str]:
    """Candidates for the console script, first the one that was called: a link on PATH outlives its environment."""
    name = os.path.basename(called).lower()
    scripts = (
        [os.path.abspath(called)] if name.removesuffix(".exe") in PROGRAM_NAMES and os.path.dirname(called) else []
    )
    beside = os.path.dirname(os.path.abspath(executable))
    return scripts + [os.path.join(beside, name + ending) for name in PROGRAM_NAMES for ending in _SCRIPT_ENDINGS]


def _caches(environ: Mapping[str, str]) -> Sequence[str]:
    known = folders(environ)
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(known.home, ".cache")
    pipx = environ.get("PIPX_HOME") or os.path.join(known.home, ".local", "pipx")
    return (
        os.path.join(cache, "uv"),
        os.path.join(cache, "pipx"),
        os.path.join(pipx, ".cache"),
        os.path.join(known.home, ".local", "share", "pipx", ".cache"),
        os.path.join(known.local_application_data, "pipx", "pipx", "Cache"),
        os.path.join(known.home, "Library", "Caches"),
        os.path.join(known.local_application_data, "uv", "cache"),
    )


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/\\") + os.sep)
