"""What the disk says of a workspace, and what of that counts. It blocks, and is called beside the engine's loop."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...system.folders import folders
from ...system.values import Value
from ...workspace.addins import sources_key
from ...workspace.config import AS_BEFORE, read_config
from ...workspace.trust import is_trusted, refusal
from ..upstream.host import HostUpstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...discovery.discover import Discovery
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ..place.workspaces import Decision
    from ..upstream.configured import ConfiguredUpstream
    from .offering import Offering, Recollection


class Seen(Value):
    decision: Decision
    config: Config
    trusted: bool
    refusal: str  # why not: the end of a sentence
    sources: int
    recalled: Recollection | None


def see(operation: Callable[[], Decision], offering: Offering) -> Seen:
    """What `operation` decides, and what lies there for it."""
    decision = operation()
    workspace = decision.workspace
    folder = workspace.working_directory
    trusted = has_agreed(workspace)
    return Seen(
        decision,
        read_config(workspace.config),
        trusted,
        "" if trusted else refusal(folders().state, folder),
        sources_key(folder),
        offering.recall(workspace) if workspace.resolved else None,
    )


def is_outdated(upstream: HostUpstream | ConfiguredUpstream, config: Config) -> bool:
    """Whether the workspace wants another server than the one that was last started, or can have more of it."""
    if upstream.trusted is False:
        return True
    if not config.readable:  # it is just being written; who knows what it will say
        return False
    if isinstance(upstream, HostUpstream):
        return config.names_server
    before = upstream.config
    if before is None:  # the first start is about to read what is there now
        return not config.names_server
    return (before.server, before.server_root) != (config.server, config.server_root)


def counting(before: Config, now: Config) -> Config:
    """The settings that count: a config that cannot be read is just being written, and changes none."""
    if now.readable or before.path != now.path:
        return now
    return before.replace(issues=tuple(issue.replace(remediation=AS_BEFORE) for issue in now.issues))


def has_agreed(workspace: Workspace) -> bool:
    return is_trusted(os.environ, workspace.working_directory)


def discovered(workspace: Workspace) -> Discovery:
    from ...discovery.discover import Request, discover

    return discover(Request(workspace.requested_directory, workspace=workspace), os.environ)
