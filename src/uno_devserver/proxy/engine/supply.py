"""What is to be started behind a proxy, by its options. Cheap to import: the first start waits for it."""

from __future__ import annotations

import os

from ...system.folders import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...workspace.resolver import Workspace
    from ..options import Options
    from ..upstream.host import HostUpstream
    from ..upstream.upstream import Upstream


def host_upstream(options: Options, workspace: Workspace) -> HostUpstream:
    """A Host of this workspace."""
    from ...workspace.trust import is_trusted
    from ..upstream.host import HostUpstream

    return HostUpstream(
        workspace,
        folders(),
        os.environ,
        trusts=lambda place: is_trusted(os.environ, place.working_directory),
        port=options.port,
        forwarded=options.forwarded,
    )


def named_upstream(options: Options) -> Upstream:
    """The server that the user has named."""
    if options.url is not None:
        from ..upstream.url import UrlUpstream

        return UrlUpstream(options.url)
    from ..upstream.command import CommandUpstream

    return CommandUpstream(options.command, options.directory, os.environ, folders().state)
