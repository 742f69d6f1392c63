"""The public names for authors of add-ins: `from uno_devserver.host.addins import AddIn, Context`. See docs/addins.md.

Each name is imported when it is first used, because a Host without add-ins does not need them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...protocol.jsonrpc import RpcError as RpcError
    from .addin import AddIn as AddIn
    from .content import Content as Content
    from .content import Message as Message
    from .content import ToolResult as ToolResult
    from .content import assistant as assistant
    from .content import audio as audio
    from .content import embedded as embedded
    from .content import image as image
    from .content import resource_link as resource_link
    from .content import text as text
    from .content import user as user
    from .context import Context as Context
    from .context import Elicited as Elicited
    from .handlers import App as App
    from .handlers import Ide as Ide
    from .tools import ToolError as ToolError

_HOMES = {
    "addin": ("AddIn",),
    "content": (
        "Content",
        "Message",
        "ToolResult",
        "assistant",
        "audio",
        "embedded",
        "image",
        "resource_link",
        "text",
        "user",
    ),
    "context": ("Context", "Elicited"),
    "handlers": ("App", "Ide"),
    "tools": ("RpcError", "ToolError"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = list(_HOME_OF)


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
