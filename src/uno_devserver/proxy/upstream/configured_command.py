"""The MCP server that the workspace's config names, as upstream: a command, started if the user trusts the config.

The config is read at each start; while it cannot be read, the last readable one is used. All servers that it names
write to the same log. Cheap to import: the launch waits for it.
"""

from __future__ import annotations

import os
import sys

from ...issues import Issue, fatal, warning
from ...system.folders import folders
from ...system.text import usable_name
from ...workspace.config import CORRECT_FILE, ServerCommand, read_config
from ...workspace.server_command import folder_name, given_name, server_command
from ...workspace.trust import is_trusted, not_run, refusal, was_trusted
from .base import StartFailure, Upstream
from .command_launch import CommandUpstream, log_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ...workspace.server_command import ServerLine
    from .base import RunningUpstream
    from .launcher import UpstreamObserver
    from .output_copies import OutputCopies

UNNAMED = "The server of the workspace"
STARTED_WHEN_SAVED = f"{CORRECT_FILE}: when it is saved, the server is started."


class ConfiguredUpstream(Upstream):
    def __init__(self, workspace: Workspace, environ: Mapping[str, str]) -> None:
        self._path = workspace.config
        self._folder = workspace.working_directory
        self._environ = environ
        self._state = folders(environ).state
        self._started: tuple[ServerLine, ServerCommand] | None = None
        self._command: CommandUpstream | None = None  # the upstream of these
        self._copies: OutputCopies | None = None  # of the output of a .NET build
        self._given_name: str | None = None  # the server's name in the config or the package
        self._own_name: str | None = None  # the name that the server itself last reported
        self.config: Config | None = None  # as the last start has read it
        self.named = UNNAMED  # at the beginning of a sentence
        self.trusted: bool | None = None  # at the last start
        self.refusal = ""  # why it was not trusted: the end of a sentence
        self.issues: tuple[Issue, ...] = ()  # always empty: the issues of the config are reported elsewhere

    def start(self, observer: UpstreamObserver) -> RunningUpstream:
        self.config = config = self._trusted_config()
        if not config.names_server:
            raise StartFailure(self._names_no_server(config), final=True)
        command = self._command_of(config)
        self._require_output(config)
        try:
            return self._start(command, observer)
        finally:
            self._given_name = given_name(config)  # reads files, so it comes after the launch
            self.named = f"The server '{self._given_name or self._own_name or folder_name(config)}'"

    def renegotiate(self) -> None:
        if self._command is not None:
            self._command.renegotiate()

    def introduced(self, name: object) -> None:
        """Record the name that the connected server has reported."""
        self._own_name = usable_name(name)
        if self._own_name and not self._given_name:
            self.named = f"The server '{self._own_name}'"

    def _trusted_config(self) -> Config:
        trusted, config = self._is_trusted(), read_config(self._path)
        if trusted and not self._is_trusted():  # the config was saved while it was read
            trusted, config = False, read_config(self._path)
        if not config.readable and self.config is not None:
            trusted, config = was_trusted(self._environ, self._folder), self.config
        elif not config.readable:
            raise StartFailure(self._names_no_server(config), final=True)
        self.trusted = trusted
        self.refusal = "" if trusted else refusal(self._state, self._folder)
        if not trusted:
            what = f"The server that {self._path} names"
            raise StartFailure(not_run(what, self.refusal, nothing_else=True), final=True)
        return config

    def _is_trusted(self) -> bool:
        return is_trusted(self._environ, self._folder)

    def _start(self, command: CommandUpstream, observer: UpstreamObserver) -> RunningUpstream:
        assert self._started is not None
        found, _ = self._started
        if not found.output:
            return command.start(observer)
        from .output_copies import OutputCopies  # only .NET servers need it

        self._copies = self._copies or OutputCopies()
        copied = self._copies.copied(found)
        command.command = copied.line
        process = command.start(observer)
        self._copies.used(copied.output, process.process_id)
        return process

    def _command_of(self, config: Config) -> CommandUpstream:
        found = server_command(config, self._environ, sys.platform)
        if isinstance(found, Issue):
            raise StartFailure(found, final=True)
        own = config.server or ServerCommand()
        self.startup_seconds = config.startup_seconds or Upstream.startup_seconds
        if self._command is None or (found, own) != self._started:
            self._started = found, own
            self._command = CommandUpstream(
                found.line,
                found.folder,
                found.environ(self._environ),
                self._state,
                url=own.url,
                startup_seconds=config.startup_seconds,
                named_where=f"as mcpServer.command in {config.path}",
                with_interpreter='"command": "python", "args": ["{}"]',
                log_file=log_path(self._state, self._folder, ("config",)),
            )
        return self._command

    def _require_output(self, config: Config) -> None:
        """Raise StartFailure if the file to run is the output of a build that is still to come."""
        assert self._started is not None
        found, root = self._started[0], config.server_folder
        program, *arguments = found.line
        script = next((word for word in arguments if not word.startswith("-")), "")
        words = found.built() or [word for word in (program, script) if os.path.dirname(word)]
        named = (os.path.normpath(os.path.join(found.folder, word)) for word in words)
        missing = next((path for path in named if not os.path.exists(path)), None)
        folder = found.output or root
        inside = missing is not None and folder is not None and missing.startswith(os.path.join(folder, ""))
        if not inside or not config.hot_reload.enabled:
            return
        from ...hotreload.build_command import build_of  # few starts need it
        from ..reload.watched_code import packages_of

        build = build_of(packages_of(self._folder, config)[0], self._environ, sys.platform)
        if build is not None:
            message = f"{missing} does not exist yet, so '{build.named}' runs first."
            raise StartFailure(warning("HostNotStarted", message, "It is started when it is built."), final=True)

    def _names_no_server(self, config: Config) -> Issue:
        """The issue of a config that does not name a server any more; the next save leads to another upstream."""
        if config.unclear is not None:
            return fatal(config.unclear.code, config.unclear.message, STARTED_WHEN_SAVED)
        message = f"{self._path} names no server any more."
        return fatal("ConfigInvalid", message, "Write mcpServerRoot or mcpServer into it.")
