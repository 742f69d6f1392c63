"""The messages between IDEs and Hosts, and the bodies of those that this Host sends."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

KEEP_ALIVE = "KeepAliveIdeMessage"
APP_LAUNCH = "AppLaunchRegisterIdeMessage"
STATUS = "DevelopmentEnvironmentStatusIdeMessage"
NOTIFICATION = "NotificationRequestIdeMessage"

# The body of each message repeats its scope.
SCOPES = {
    KEEP_ALIVE: "IdeChannel",
    APP_LAUNCH: "RemoteControlServer",
    "HotReloadEventIdeMessage": "HotReload",
    "HotReloadRequestedIdeMessage": "HotReload",
    "IdeResultMessage": "HotReload",
    "ForceHotReloadIdeMessage": "HotReload",
    "UpdateFileIdeMessage": "HotReload",
    "UpdateFileRequestIdeMessage": "HotReload",
    "HotReloadThruDebuggerIdeMessage": "HotReload",
    "CommandRequestIdeMessage": "IDE",
    "AddMenuItemRequestIdeMessage": "IDE",
    NOTIFICATION: "IDE",
    STATUS: "udei",
}

# Enums are numbers on the wire.
READY = 2
WARNING = 3
KIND_ERROR = 1

LEARN_MORE = {
    "Text": "Learn More",
    "Name": "ide.open_browser",
    "Parameter": "https://aka.platform.uno/dev-server",
}
TROUBLESHOOT = {
    "Text": "Troubleshoot",
    "Name": "ide.open_browser",
    "Parameter": "https://aka.platform.uno/dev-server-troubleshooting",
}
COMPONENT = {
    "Id": "uno.dev_server",
    "Priority": 200,
    "Name": "Dev Server",
    "Description": "Connects this workspace with the running application, the IDE and AI agents.",
}

_sequence = itertools.count(1)  # continues when an IDE reconnects, which shows that it is the same Host


def with_scope(type_name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with its scope at the end, where .NET writes it, unless it has one."""
    if type_name in SCOPES and "Scope" not in body:
        return {**body, "Scope": SCOPES[type_name]}
    return dict(body)


def keep_alive() -> dict[str, Any]:
    return {"Source": "dev-server", "SequenceId": next(_sequence)}


def environment_status(*, discovery_error: str | None = None, load_error: str | None = None) -> dict[str, Any]:
    """The body of the status that the IDE displays: ready, or without some or all add-ins."""
    if discovery_error is not None:
        return _status(WARNING, "Studio unavailable", discovery_error, [TROUBLESHOOT, LEARN_MORE])
    if load_error is not None:
        return _status(WARNING, "Unable to load Studio", load_error, [TROUBLESHOOT, LEARN_MORE])
    return _status(READY, "Ready", None, [LEARN_MORE])


def error_notification(title: str, message: str) -> dict[str, Any]:
    """The body of a message that the IDE shows to its user."""
    return {"Kind": KIND_ERROR, "Title": title, "Message": message, "Commands": None}


def _status(status: int, description: str, details: str | None, actions: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "Component": COMPONENT,
        "Status": status,
        "Description": description,
        "Details": details,
        "ErrorTrace": None,
        "Actions": actions,
    }
