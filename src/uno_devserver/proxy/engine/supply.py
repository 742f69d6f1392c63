"""What is to be started behind a proxy, by its options and workspace. Cheap to import: the first start waits for it."""

from __future__ import annotations

import os

from ...system.folders import folders
from ...system.pipes import pipe_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...workspace.resolver import Workspace
    from ..options import Options
    from ..upstream.configured import ConfiguredUpstream
    from ..upstream.host import HostUpstream
    from ..upstream.upstream import Upstream


def workspace_upstream(options: Options, workspace: Workspace, channel_name: str) -> HostUpstream | ConfiguredUpstream:
    """The server that the workspace's config names, else a Host, of which others learn our control channel."""
    if names_server(workspace):
        from ..upstream.configured import ConfiguredUpstream

        return ConfiguredUpstream(workspace, folders(), os.environ, trusts=_trusts)
    from ..upstream.host import HostUpstream

    return HostUpstream(
        workspace,
        folders(),
        os.environ,
        trusts=_trusts,
        port=options.port,
        forwarded=options.forwarded,
        control_channel=pipe_path(channel_name),
    )


def named_upstream(options: Options) -> Upstream:
    """The server that the user has named."""
    if options.url is not None:
        from ..upstream.url import UrlUpstream

        return UrlUpstream(options.url)
    from ..upstream.command import CommandUpstream

    return CommandUpstream(options.command, options.directory, os.environ, folders().state)


def names_server(workspace: Workspace) -> bool:
    """Whether its config does; else a Host serves it."""
    if workspace.config is None:
        return False
    from ...workspace.config import read_config

    return read_config(workspace.config).names_server


def _trusts(workspace: Workspace) -> bool:
    from ...workspace.trust import is_trusted

    return is_trusted(os.environ, workspace.working_directory)
