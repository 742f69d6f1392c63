"""Which commands a workspace's config leads to, in words: what there is to agree to."""

from __future__ import annotations

import os
import sys

from ..hotreload.builds import build_of
from ..hotreload.package import Role
from ..issues import Issue
from ..proxy.reload.subject import packages_of
from ..system.values import Value
from ..workspace.server_command import server_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..hotreload.builds import Build
    from ..hotreload.package import Package
    from ..workspace.config import Config
    from ..workspace.server_command import ServerLine


class Commands(Value):
    server: ServerLine | Issue | None  # None: the config names none
    packages: tuple[tuple[Package, Build | None], ...]  # whose code is watched, and how each is built
    typed: Build | None  # of the code of a server that is typed behind `mcp start --`
    client: tuple[tuple[str, ...], str] | None  # its line, and where it runs

    def in_words(self) -> list[str]:
        words = []
        if isinstance(self.server, Issue):
            words.append(f"An MCP server. {self.server.message}")
        elif self.server is not None:
            variables = "".join(f" {shown((f'{name}={value}',))}" for name, value in self.server.environment)
            environment = f", with{variables}" if variables else ""
            words.append(f"The MCP server: {shown(self.server.line)}, in {self.server.folder}{environment}")
        for package, build in self.packages:
            if build is not None:
                whose = "the server" if package.role is Role.SERVER else "the extension"
                words.append(f"When code of {whose} has changed: {build.named}, in {build.folder}")
        if self.typed is not None:
            whose = "a server that you start by 'mcp start -- <command>'"
            words.append(f"When code of {whose} has changed: {self.typed.named}, in {self.typed.folder}")
        if self.client is not None:
            words.append(f"The client: {shown(self.client[0])}, in {self.client[1]}")
        return words


def commands_of(folder: str, config: Config) -> Commands:
    """`folder` is the workspace's."""
    reloads = config.hot_reload.enabled
    packages = _built(packages_of(folder, config)) if reloads else ()
    typed = _built(packages_of(folder, config, typed=True)) if reloads and not config.names_server else ()
    client = config.client if reloads else None  # it is there for the extension's new code
    return Commands(
        server_command(config, os.environ, sys.platform) if config.names_server else None,
        packages,
        next((build for package, build in typed if package.role is Role.SERVER), None),
        ((client.command, *client.args), config.client_folder or folder) if client else None,
    )


def _built(packages: Sequence[Package]) -> tuple[tuple[Package, Build | None], ...]:
    return tuple((package, build_of(package, os.environ, sys.platform)) for package in packages)


def shown(line: Sequence[str]) -> str:
    """As one would type it, but in one line: an argument could pass for other lines."""
    import shlex

    return shlex.join(line).replace("\n", "\\n")
