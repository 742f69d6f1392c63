"""What an add-in imports: `from uno_devserver.host.addins import AddIn, Context`. See docs/addins.md."""

from .addin import AddIn
from .content import (
    Content,
    Message,
    ToolResult,
    assistant,
    audio,
    embedded,
    image,
    resource_link,
    text,
    user,
)
from .context import Context, Elicited
from .peers import App, Ide
from .tools import ToolError

__all__ = [
    "AddIn",
    "App",
    "Content",
    "Context",
    "Elicited",
    "Ide",
    "Message",
    "ToolError",
    "ToolResult",
    "assistant",
    "audio",
    "embedded",
    "image",
    "resource_link",
    "text",
    "user",
]
