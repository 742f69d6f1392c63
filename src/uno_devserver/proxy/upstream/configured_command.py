"""The MCP server that the workspace's config names, as upstream: a command or a URL, if the user trusts the config.

The config is read at each start; while it cannot be read, the last readable one is used. All servers that it names
write to the same log. Cheap to import: the launch waits for it.
"""

from __future__ import annotations

import os
import sys

from ...issues import Issue, fatal
from ...system.folders import folders
from ...system.text import shown_url, usable_name
from ...workspace.config import CORRECT_FILE, ServerCommand, read_config
from ...workspace.server_command import (
    PACKAGE,
    file_variables,
    folder_name,
    given_name,
    server_command,
    server_headers,
)
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
    from .url_upstream import UrlUpstream

UNNAMED = "The server of the workspace"
STARTED_WHEN_SAVED = f"{CORRECT_FILE}: when it is saved, the server is started."


class ConfiguredUpstream(Upstream):
    def __init__(self, workspace: Workspace, environ: Mapping[str, str], entry: str | None = None) -> None:
        """`entry`: the name of the server in `servers` of the config; None for the server that it names besides."""
        self._path = workspace.config
        self._entry = entry
        self._folder = workspace.working_directory
        self._environ = environ
        self._state = folders(environ).state
        self._started: tuple[ServerLine, ServerCommand] | None = None
        self._command: CommandUpstream | None = None  # the upstream of these
        self._address: UrlUpstream | None = None  # of a server that is only connected to
        self._variables: tuple[tuple[str, str], ...] | Issue = ()  # of its file, as the last start has read them
        self._copies: OutputCopies | None = None  # of the output of a .NET build
        self._given_name: str | None = None  # the server's name in the config or the package
        self._own_name: str | None = None  # the name that the server itself last reported
        self.config: Config | None = None  # as the last start has read it
        self.named = UNNAMED if entry is None else f"The server '{entry}'"  # at the beginning of a sentence
        self.trusted: bool | None = None  # at the last start
        self.refusal = ""  # why it was not trusted: the end of a sentence
        self.issues: tuple[Issue, ...] = ()  # always empty: the issues of the config are reported elsewhere

    def start(self, observer: UpstreamObserver) -> RunningUpstream:
        self.config = config = self._trusted_config()
        if not config.names_server:
            raise StartFailure(self._names_no_server(config), final=True)
        self._variables = file_variables(config)
        if config.connects_only:
            return self._connected_only(config).start(observer)
        self.remote = False
        command = self._command_of(config)
        self._require_output(config)
        try:
            return self._start(command, observer)
        finally:
            self._given_name = given_name(config)  # reads files, so it comes after the launch
            self.named = f"The server '{self._given_name or self._own_name or folder_name(config)}'"

    def has_new_variables(self) -> bool:
        """Whether its file of variables has other ones than at the last start. Reads the disk."""
        return self.config is not None and file_variables(self.config) != self._variables

    def has_other_credentials(self) -> bool:
        return self._address is not None and self._address.has_other_credentials()

    def renegotiate(self) -> None:
        if self._command is not None:
            self._command.renegotiate()

    def introduced(self, name: object) -> None:
        """Record the name that the connected server has reported."""
        self._own_name = usable_name(name)
        if self._own_name and not self._given_name:
            self.named = f"The server '{self._own_name}'"

    def _trusted_config(self) -> Config:
        trusted, config = self._is_trusted(), read_config(self._path, self._entry)
        if trusted and not self._is_trusted():  # the config was saved while it was read
            trusted, config = False, read_config(self._path, self._entry)
        if not config.readable and self.config is not None:
            trusted, config = was_trusted(self._environ, self._folder), self.config
        elif not config.readable:
            raise StartFailure(self._names_no_server(config), final=True)
        self.trusted = trusted
        self.refusal = "" if trusted else refusal(self._state, self._folder)
        if not trusted:
            what = f"The server that {self._path} names" if self._entry is None else self.named
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

    def _connected_only(self, config: Config) -> UrlUpstream:
        from .url_upstream import UrlUpstream, credentials_of

        assert config.server is not None
        assert config.server.url is not None
        url = config.server.url
        self._address = UrlUpstream(url, credentials_of(url, self._headers_of(config)))
        self.remote, self.far = True, self._address.far
        self._given_name = config.hot_reload.server_name
        name = self._given_name or self._own_name
        self.named = f"The server '{name}'" if name else f"The server at {shown_url(url)}"
        return self._address

    def _headers_of(self, config: Config) -> dict[str, str]:
        """The headers for the server's URL; StartFailure if a variable is not set."""
        found = server_headers(config, self._environ)
        if isinstance(found, Issue):
            raise StartFailure(found, final=True)
        return found

    def _command_of(self, config: Config) -> CommandUpstream:
        found = server_command(config, self._environ, sys.platform)
        if isinstance(found, Issue):
            raise StartFailure(found, final=True)
        own = config.server or ServerCommand()
        self.startup_seconds = config.startup_seconds or Upstream.startup_seconds
        self.standby = own.standby and own.url is None
        if not isinstance(self._command, CommandUpstream) or (found, own) != self._started:
            self._started = found, own
            self._command = CommandUpstream(
                found.line,
                found.folder,
                found.environ(self._environ),
                self._state,
                url=own.url,
                headers=self._headers_of(config),
                startup_seconds=config.startup_seconds,
                named_where=f"as {config.section}.command in {config.path}",
                with_interpreter='"command": "python", "args": ["{}"]',
                log_file=log_path(self._state, self._folder, ("config", *((config.name,) if config.name else ()))),
            )
        return self._command

    def _require_output(self, config: Config) -> None:
        """Raise StartFailure if a file to run or load is the output of a build that is still to come."""
        assert self._started is not None
        found = self._started[0]
        started = found.started()
        uses_others = os.path.isfile(os.path.join(config.server_folder or "", PACKAGE))
        if not config.hot_reload.enabled or (all(map(os.path.exists, started)) and not uses_others):
            return
        from ..reload.watched_code import missing_output, packages_of  # few starts need it

        for package in packages_of(self._folder, config)[:1]:
            watched = package.replace(started=started)
            if issue := missing_output(watched, self._environ, found.output):
                raise StartFailure(issue, final=True)

    def _names_no_server(self, config: Config) -> Issue:
        """The issue of a config that does not name a server any more; the next save leads to another upstream."""
        if config.unclear is not None:
            return fatal(config.unclear.code, config.unclear.message, STARTED_WHEN_SAVED)
        if self._entry is not None:
            message = f"{self._path} has no valid entry '{self._entry}' in servers any more."
            return fatal("ConfigInvalid", message, "Correct the entry, or take it out.")
        message = f"{self._path} names no server any more."
        return fatal("ConfigInvalid", message, "Write mcpServerRoot or mcpServer into it.")
