"""Which commands a workspace's config leads to, in words: what there is to agree to."""

from __future__ import annotations

import os
import sys

from ..hotreload.builds import build_of
from ..hotreload.package import Role
from ..issues import Issue
from ..proxy.engine.reload_subject import packages_of
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
    client: tuple[tuple[str, ...], str] | None  # its line, and where it runs

    def in_words(self) -> list[str]:
        words = []
        if self.server is not None and not isinstance(self.server, Issue):
            words.append(f"The MCP server: {shown(self.server.line)}, in {self.server.folder}")
        for package, build in self.packages:
            if build is not None:
                whose = "the server" if package.role is Role.SERVER else "the extension"
                words.append(f"When code of {whose} has changed: {build.named}, in {build.folder}")
        if self.client is not None:
            words.append(f"The client: {shown(self.client[0])}, in {self.client[1]}")
        return words


def commands_of(folder: str, config: Config) -> Commands:
    """`folder` is the workspace's."""
    packages = packages_of(folder, config) if config.hot_reload.enabled else ()
    client = config.client
    runs_in = config.client_workspace or config.extension_path or folder
    return Commands(
        server_command(config, os.environ, sys.platform) if config.names_server else None,
        tuple((package, build_of(package, os.environ, sys.platform)) for package in packages),
        ((client.command, *client.args), client.cwd or runs_in) if client else None,
    )


def shown(line: Sequence[str]) -> str:
    """As one would type it."""
    import shlex

    return shlex.join(line)
