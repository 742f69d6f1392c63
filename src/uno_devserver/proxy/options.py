"""What a proxy is told when it is started. Cheap to import: it is on the way to the first answer."""

from __future__ import annotations

import re

from ..system.values import Value

INSPECTOR_PORT = 6274  # where people look for the inspectors of MCP servers

# What they run is named behind them.
RUNNERS = re.compile(r"(python[\d.]*|node|npx|uvx)(\.exe|\.cmd)?", re.IGNORECASE)


class Options(Value):
    directory: str  # absolute: --solution-dir, or the current folder
    explicit: bool = False  # --solution-dir was given
    port: int = 0  # of the Host that is started; 0: any
    command: tuple[str, ...] = ()  # behind `--`: an MCP server to start instead of a Host
    url: str | None = None  # an MCP server to use instead of a Host
    wait_tools: bool = False  # --mcp-wait-tools-list
    force_fallback: bool = False  # --force-roots-fallback
    only_catalogue: bool = False  # --force-generate-tool-cache
    wait_calls: bool = False  # --wait-calls
    http_port: int | None = None  # --http: also serve MCP over HTTP there; 0: any
    inspector_port: int | None = None  # --inspector: also serve its page there, or on the next port; 0: any
    forwarded: tuple[str, ...] = ()  # for the Host

    @property
    def uses_host(self) -> bool:
        """Whether a Host of the workspace is behind it, and not a server that the user named."""
        return not self.command and self.url is None

    @property
    def upstream_name(self) -> str:
        """What is behind the proxy, at the beginning of a sentence."""
        if self.url is not None:
            from ..system.urls import shown_url  # most proxies need none of it, and are quicker without

            return f"The server at {shown_url(self.url)}"
        return f"The server '{command_name(self.command)}'" if self.command else "The Host"


def command_name(command: tuple[str, ...]) -> str:
    """What people would call it: the file of its program or, behind an interpreter, what that runs."""
    program = _file_name(command[0])
    what = next((word for word in command[1:] if not word.startswith("-")), "")
    if not RUNNERS.fullmatch(program) or not what or re.search(r"\s", what):  # a line of code is no name
        return program
    return _file_name(what) if re.match(r"[\\/]|\w:", what) else what


def _file_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1] or path
