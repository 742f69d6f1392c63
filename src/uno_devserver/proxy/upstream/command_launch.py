"""An MCP server that is a command, as upstream: it is started without a shell. It uses its standard input and output,
or listens at a URL.

A start that fails says why and what to do; a shortage that may pass does not make the failure final. Cheap to import:
the launch waits for it, and `command_process`, which is needed afterwards, is imported while the server starts.
"""

from __future__ import annotations

import errno
import os
import sys
from binascii import crc32

from ...instances.bounded_output import BoundedOutput
from ...instances.child_process import spawn
from ...issues import Issue, fatal, warning
from ...system.log import log
from ...system.programs import about_path, first_executable, named_program_candidates, typed_path
from ...system.state_files import name_for
from ...system.text import shown_command, shown_url
from .base import StartFailure, Upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...instances.child_process import Child
    from .command_process import CommandLimits, CommandProcess
    from .launcher import UpstreamObserver
    from .url_upstream import UrlProcess

# Shortages that may be over a moment later. Every other error lasts until the user changes something.
PASSING_ERRORS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})
PACKAGE_MANAGERS = ("npm", "pnpm", "yarn", "bun")


class CommandUpstream(Upstream):
    def __init__(
        self,
        command: Sequence[str],
        directory: str,
        environ: Mapping[str, str],
        state: str,
        limits: CommandLimits | None = None,
        *,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        startup_seconds: float | None = None,
        named_where: str = "after '--'",
        with_interpreter: str = "'-- python {}'",
        log_file: str | None = None,
        obstacle: Callable[[], Issue | None] = lambda: None,
    ) -> None:
        """`state`: the folder of our own files. `log_file`: by default one for this command in this directory.

        `url`: where it listens, None if it uses pipes; `headers` are sent there. `startup_seconds`: the limit of a
        start, if not the usual one.
        `named_where`: where issues ask the user to correct the command. `with_interpreter`: how to name a script there.
        `obstacle`: why it cannot be started at present; None if it can. Asked before each start, in its thread.
        """
        self.startup_seconds = startup_seconds or Upstream.startup_seconds
        self._given_seconds = startup_seconds
        self._limits = limits
        self._url = url
        self._headers = headers or {}
        self.initialize_first = False  # `server/discover` was not answered, but any server knows `initialize`
        self.command = tuple(command)  # may be replaced between two starts
        self._directory = directory
        self._environ = environ
        self._named_where = named_where
        self._with_interpreter = with_interpreter
        self._log_path = log_file or log_path(state, directory, command)
        self._obstacle = obstacle
        self._outputs: dict[BoundedOutput, Child | None] = {}  # output files, and the last process of each

    def start(self, observer: UpstreamObserver) -> CommandProcess | UrlProcess:
        if not observer.go_on():
            raise StartFailure(warning("HostNotStarted", "The start was given up.", "It is started again when needed."))
        if (issue := self._obstacle()) is not None:
            raise StartFailure(issue, final=True)
        self._check_script()
        may_probe = not self.initialize_first
        self.initialize_first = False  # if this start fails as well, the probe was not the reason, and the next probes
        line = (self._program(), *self.command[1:])
        if self._url is not None:
            self._check_unused(self._url)
        output = self._free_output()
        try:
            child = spawn(
                line, folder=self._directory, environ=self._environ, output=output, spoken_to=self._url is None
            )
        except (OSError, ValueError) as error:
            raise self._not_started(line[0], error) from error
        self._outputs[output] = child
        observer.launching(f"'{shown_command(self.command)}'", child.pid)
        if self._url is not None:
            from .url_upstream import UrlProcess, credentials_of

            return UrlProcess(self._url, child, output, self.process_limits(), credentials_of(self._url, self._headers))
        from .command_process import CommandProcess  # takes some ms, during which the server starts

        return CommandProcess(self, child, output, observer, may_probe=may_probe)

    def renegotiate(self) -> None:
        self.initialize_first = False

    def process_limits(self) -> CommandLimits:
        from .command_process import CommandLimits

        limits = self._limits or CommandLimits()
        return limits if self._given_seconds is None else limits.replace(ready_seconds=self._given_seconds)

    def _check_script(self) -> None:
        """Raise StartFailure if a script of package.json runs `tsx watch`, which reads the server's input itself."""
        if self._url is not None or os.path.basename(self.command[0]).removesuffix(".cmd") not in PACKAGE_MANAGERS:
            return
        from ...workspace.command_package import script_watcher  # only needed for scripts

        watcher, alone = script_watcher(self.command, self._directory) or ((), ())
        if "tsx" in watcher and "watch" in watcher:
            given, runs, instead = (shown_command(line) for line in (self.command, watcher, alone))
            message = f"'{given}' runs '{runs}', which takes the server's input."
            step = f"Write '{instead}' {self._named_where}; hot reload restarts it."
            raise StartFailure(fatal("HostNotStarted", message, step), final=True)

    def _check_unused(self, url: str) -> None:
        """Raise StartFailure if something listens at the URL: the calls would reach that, not the server."""
        from .url_upstream import UrlUpstream

        if UrlUpstream(url).out_of_reach() is None:
            message = f"Something else listens at {shown_url(url)} already, so the server cannot be started there."
            step = "End it, for example another proxy's server, or give this one another port; then call a tool."
            raise StartFailure(fatal("HostNotStarted", message, step))

    def _program(self) -> str:
        name = self.command[0]
        found = named_program_candidates(name, self._directory, self._environ, sys.platform)
        if (program := first_executable(found)) is None:
            raise StartFailure(self._not_found(name, found), final=True)
        return program

    def _free_output(self) -> BoundedOutput:
        """The output file of the next process: the same for all, but another while a process still uses it."""
        for output, child in self._outputs.items():
            if child is None or child.exit_code() is not None:
                return output
        stem, ending = os.path.splitext(self._log_path)
        output = _open_output(f"{stem}-{1 + len(self._outputs)}{ending}" if self._outputs else self._log_path)
        self._outputs[output] = None
        return output

    def _not_found(self, name: str, found: Sequence[str]) -> Issue:
        typed = typed_path(name, self._directory) if os.path.dirname(name) else ""
        file = next((path for path in (*found, typed) if os.path.isfile(path)), None)
        if file is not None:
            message = f"The server {file} is a file that cannot be executed."
            step = f"Make it executable, or name the program that runs it, too, as in {self._interpreted()}."
            if sys.platform == "win32":
                step = f"Name the program that runs it, too, as in {self._interpreted()}."
        elif typed:
            message = f"The server {typed} does not exist."
            step = f"Name one that exists {self._named_where}."
        else:
            message = f"The command '{name}' is not in the folders of PATH.{about_path(self._environ)}"
            step = f"Install it, or name it by its full path {self._named_where}."
        return fatal("HostBinaryNotFound", message, step)

    def _not_started(self, program: str, error: OSError | ValueError) -> StartFailure:
        number = error.errno if isinstance(error, OSError) else None
        why = error.strerror if isinstance(error, OSError) else None
        step = f"Fix that, or name another command {self._named_where}."
        if not os.path.isdir(self._directory):
            why = f"there is no folder {self._directory}"
        elif number == errno.ENOEXEC:
            step = f"Name the program that runs it, too, as in {self._interpreted()}."
        issue = fatal("HostNotStarted", f"The server {program} cannot be started: {why or error}.", step)
        return StartFailure(issue, final=number not in PASSING_ERRORS)

    def _interpreted(self) -> str:
        return self._with_interpreter.replace("{}", self.command[0])


def log_path(state: str, directory: str, command: Sequence[str]) -> str:
    """The file for the output of this command in this folder."""
    key = crc32("\0".join(command).encode("utf-8", "surrogatepass"))
    return os.path.join(state, "logs", f"command-{name_for(directory)}-{key:08x}.log")


def _open_output(path: str) -> BoundedOutput:
    try:
        return BoundedOutput(path)
    except OSError as error:
        import tempfile

        # The server can be used without its log in a home that is read-only.
        other = os.path.join(tempfile.mkdtemp(prefix="uno-devserver-"), os.path.basename(path))
        log.warn(f"What the server prints goes to {other}: {path} cannot be written ({error.strerror}).")
        return BoundedOutput(other)
