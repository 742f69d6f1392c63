"""The same user on three systems, as far as paths depend on it."""

from __future__ import annotations

from collections.abc import Mapping

from uno_devserver.setup.paths import Here
from uno_devserver.system.folders import folders_on

LINUX, MACOS, WINDOWS = "linux", "darwin", "win32"
WORKSPACES = {LINUX: "/home/me/app", MACOS: "/Users/me/app", WINDOWS: "D:\\app"}
_ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    LINUX: {"HOME": "/home/me"},
    MACOS: {"HOME": "/Users/me"},
    WINDOWS: {"USERPROFILE": "C:\\Users\\me"},
}


def machine(platform: str, workspace: str | None = None, **variables: str) -> Here:
    environ = {**_ENVIRONMENTS[platform], **variables}
    known = folders_on(platform, environ, lambda: "/")
    return Here(
        WORKSPACES[platform] if workspace is None else workspace,
        known.home,
        known.application_data,
        known.local_application_data,
        environ,
        platform,
    )
