"""What is wrong with a config, as it counts for its workspace, so that all commands and the proxy tell the same.

Where nobody can tell whether it names a server, and a Host has nothing to do, proxies start nothing.
"""

from __future__ import annotations

from ..issues import fatal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..issues import Issue
    from ..workspace.config import Config
    from ..workspace.resolver import Workspace

NOTHING_STARTED = "Correct the file (comments and trailing commas are allowed); until then proxies start no server."


def config_issues(config: Config, workspace: Workspace) -> tuple[Issue, ...]:
    """In the order of the file; fatal is the one for which nothing is started."""
    if not keeps_from_starting(config, workspace):
        return config.issues
    return tuple(
        fatal(issue.code, issue.message, NOTHING_STARTED) if issue == config.unclear else issue
        for issue in config.issues
    )


def keeps_from_starting(config: Config, workspace: Workspace) -> bool:
    if config.unclear is None:
        return False
    from ..proxy.upstream.base import uses_config

    return uses_config(workspace)
