"""Real shells that complete a line: what each of them would offer where the cursor is, at the end of that line."""

from __future__ import annotations

import codecs
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from support.files import write
from support.programs import needed

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

PROMPT = "ready> "
SECONDS = 30.0  # a shell takes some hundred milliseconds; the rest is for busy machines

# Bash makes words of a line as readline does: '=' is one of its own, and so is ':'.
_BASH = """
source {script}
COMP_LINE={line}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMPREPLY=()
compopt() {{ echo "$2"; }}  # what bash is asked to complete by itself
{function}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

# Everything that is offered goes through compadd; the key's own widget tells when that is over.
_ZSH = """
PS1='{prompt}'
LISTMAX=10000
autoload -Uz compinit && compinit -u {quick} -d {dump}
{sourced}
compadd() {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
    local -a hits
    builtin compadd -A hits "$@"
    print -rl -- $hits >> {temp}/offered
    builtin compadd "$@"
}}
complete-and-tell() {{ zle expand-or-complete; touch {temp}/ended }}
zle -N complete-and-tell
bindkey '^I' complete-and-tell
"""


class Shell:
    def __init__(self, name: str, script: str, temp: Path, programs: Path) -> None:
        self.name = name
        self.temp = temp
        self.sourced = True  # as a line of the shell's own file; False: it finds the script by itself
        self.before = ""  # what its file says first
        self.dump = temp / "dump"  # what zsh knows of its functions: it takes a second to find out
        self.script = write(temp / f"completion.{name}", script)
        self.environ = {
            "HOME": str(temp),
            "ZDOTDIR": str(temp),
            "XDG_CONFIG_HOME": str(temp),
            "XDG_DATA_HOME": str(temp),
            "PATH": f"{programs}:/usr/bin:/bin",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
        }

    def offers(self, line: str) -> list[str]:
        return sorted(set(getattr(self, f"_{self.name}")(line)))

    def _bash(self, line: str) -> list[str]:
        function = next(
            text.split()[2] for text in self.script.read_text().splitlines() if text.startswith("complete ")
        )
        words = re.sub(r"(=|:+)", r" \1 ", line).split() + ([""] if line.endswith(" ") else [])
        script = _BASH.format(script=self.script, line=shlex.quote(line), words=shlex.join(words), function=function)
        return self._run("bash", "--norc", "--noprofile", "-c", script)

    def _fish(self, line: str) -> list[str]:
        script = f"source {self.script}; complete -C {shlex.quote(line)}"
        return [offer.partition("\t")[0] for offer in self._run("fish", "--no-config", "-c", script)]

    def _zsh(self, line: str) -> list[str]:
        offered, ended = self.temp / "offered", self.temp / "ended"
        for path in (offered, ended):
            path.unlink(missing_ok=True)
        sourced = f"source {self.script}" if self.sourced else ""
        write(
            self.temp / ".zshrc",
            self.before
            + _ZSH.format(
                prompt=PROMPT, temp=self.temp, sourced=sourced, dump=self.dump, quick="-C" if self.dump.exists() else ""
            ),
        )
        with Typing(self) as typing:
            typing.press(f"{line}\t")
            typing.until(ended.exists)
        return [one for one in offered.read_text().split("\n") if one] if offered.exists() else []

    def _run(self, *command: str) -> list[str]:
        result = subprocess.run(
            command, env=self.environ, cwd=self.temp, capture_output=True, text=True, timeout=SECONDS
        )
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        return [line for line in result.stdout.split("\n") if line]


class Typing:
    """Somebody who types into an interactive shell, on a terminal so large that nothing is wrapped."""

    def __init__(self, shell: Shell) -> None:
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.chdir(shell.temp)
            os.execve(str(shutil.which(shell.name)), [shell.name, "-i"], shell.environ)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 400, 400, 0, 0))

    def __enter__(self) -> Self:
        self.until(lambda: PROMPT in self.shown)
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not done():
            assert time.monotonic() < deadline, self.shown
            if select.select([self._terminal], [], [], 0.02)[0]:
                self.shown += self._decoder.decode(os.read(self._terminal, 65536))


def shell_or_leave_out(name: str) -> str:
    """Bash is everywhere where these tests run."""
    if name == "bash":
        if shutil.which("bash") is None:
            pytest.skip("there is no bash")
        return name
    needed(name)
    return name
