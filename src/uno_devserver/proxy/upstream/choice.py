"""Chooses the upstream of a proxy by its options and workspace.

Cheap to import: the launch waits for it, and each kind of upstream is imported only where it is chosen.
"""

from __future__ import annotations

import os

from ...system.folders import folders
from ...system.pipes import pipe_path
from ...workspace.addins import FOLDER as ADDINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...workspace.resolver import Workspace
    from ..options import Options
    from .base import Upstream
    from .configured import ConfiguredUpstream
    from .host_launch import HostUpstream


def named_upstream(options: Options) -> Upstream:
    """The server that the user named on the command line of the proxy."""
    if options.url is not None:
        from .url import UrlUpstream

        return UrlUpstream(options.url)
    from .command_launch import CommandUpstream

    return CommandUpstream(options.command, options.directory, os.environ, folders().state)


def workspace_upstream(options: Options, workspace: Workspace, channel_name: str) -> HostUpstream | ConfiguredUpstream:
    """The server that the workspace's config names, else a Host, which registers our control channel."""
    if uses_config(workspace):
        from .configured import ConfiguredUpstream

        return ConfiguredUpstream(workspace, os.environ)
    from .host_launch import HostUpstream

    channel = pipe_path(channel_name)
    return HostUpstream(workspace, os.environ, port=options.port, forwarded=options.forwarded, control_channel=channel)


def uses_config(workspace: Workspace) -> bool:
    """Whether the workspace's config names the server; else a Host serves the workspace.

    A config that cannot be read counts as naming one where a Host would have nothing to offer.
    """
    if workspace.config is None:
        return False
    from ...workspace.config import read_config

    config, addins = read_config(workspace.config), os.path.join(workspace.working_directory, ADDINS)
    has_work_for_host = workspace.global_json is not None or os.path.isdir(addins)
    return config.names_server or (config.unclear is not None and not has_work_for_host)
