"""The MCP server that the workspace's config names: a command, started only if the user has agreed to that config.

The config is read at each start, so an edited one counts at the next; where it cannot be read, what it said before
does. All that it leads to is printed into one log. What is imported here stands before the start of the server, so it
is little.
"""

from __future__ import annotations

import sys

from ...issues import Issue, fatal
from ...workspace.config import read_config
from ...workspace.server_command import folder_name, given_name, server_command, usable_name
from ...workspace.trust import refusal, was_trusted
from .base import StartFailure
from .command import CommandUpstream, Named, log_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...system.folders import Folders
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ...workspace.server_command import ServerLine
    from .base import StartObserver
    from .command_process import CommandProcess, CommandLimits

UNNAMED = "The server of the workspace"
MENDED_BY_SAVE = "Correct the file (comments and trailing commas are allowed): when it is saved, the server is started."


class ConfiguredUpstream:
    def __init__(
        self,
        workspace: Workspace,
        folders: Folders,
        environ: Mapping[str, str],
        *,
        trusts: Callable[[Workspace], bool],
        limits: CommandLimits | None = None,
    ) -> None:
        self._workspace = workspace
        self._state = folders.state
        self._environ = environ
        self._trusts = trusts
        self._limits = limits
        self._log_file = log_path(folders.state, workspace.working_directory, ("config",))
        self._line: ServerLine | None = None
        self._command: CommandUpstream | None = None  # that of the line
        self.config: Config | None = None  # what the last start has read
        self.named = UNNAMED  # at the beginning of a sentence
        self._given_name: str | None = None  # by the config, or the package
        self._own_name: str | None = None  # by itself, when it was connected last
        self.trusted: bool | None = None  # at the last start
        self.refusal = ""  # why not: the end of a sentence
        self.issues: tuple[Issue, ...] = ()  # what is wrong with the config, its readers say

    def start(self, observer: StartObserver) -> CommandProcess:
        self.config = config = self._read()
        if not config.names_server:
            raise StartFailure(_nothing_named(config, self._workspace), final=True)
        try:
            return self._command_of(config).start(observer)
        finally:
            self._given_name = given_name(config)  # it has the time now, while the server starts
            self.named = f"The server '{self._given_name or self._own_name or folder_name(config)}'"

    def introduced(self, name: object) -> None:
        """It is connected, and calls itself so."""
        self._own_name = usable_name(name)
        if self._own_name and not self._given_name:
            self.named = f"The server '{self._own_name}'"

    def _read(self) -> Config:
        """What the user has agreed to."""
        trusted = self._trusts(self._workspace)
        config = read_config(self._workspace.config)
        if trusted and not self._trusts(self._workspace):  # saved while it was read, and another question now
            trusted, config = False, read_config(self._workspace.config)
        if config.readable:
            self._insist(trusted)
            return config
        if self.config is None:
            raise StartFailure(_nothing_named(config, self._workspace), final=True)
        self._insist(was_trusted(self._environ, self._workspace.working_directory))
        return self.config

    def _insist(self, trusted: bool) -> None:
        self.trusted = trusted
        self.refusal = ""
        if trusted:
            return
        folder = self._workspace.working_directory
        self.refusal = refusal(self._state, folder)
        message = f"The server that {self._workspace.config} names is a command of the workspace, and {self.refusal}."
        raise StartFailure(fatal("WorkspaceNotTrusted", message), final=True)

    def _command_of(self, config: Config) -> CommandUpstream:
        found = server_command(config, self._environ, sys.platform)
        if isinstance(found, Issue):
            raise StartFailure(found, final=True)
        if self._command is None or found != self._line:
            self._line = found
            self._command = CommandUpstream(
                found.line,
                found.folder,
                found.environ(self._environ),
                self._state,
                self._limits,
                named=Named(f"as mcpServer.command in {config.path}", '"command": "python", "args": ["{}"]'),
                log_file=self._log_file,
            )
        return self._command


def _nothing_named(config: Config, workspace: Workspace) -> Issue:
    """It did when this was chosen; whoever watches the file chooses anew when it is saved."""
    if config.unclear is not None:
        return fatal(config.unclear.code, config.unclear.message, MENDED_BY_SAVE)
    message = f"{workspace.config} names no server any more."
    return fatal("ConfigInvalid", message, "Write mcpServerRoot or mcpServer into it.")
