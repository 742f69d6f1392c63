"""The options of a proxy. Cheap to import: the first answer waits for it."""

from __future__ import annotations

from ..system.values import Value

INSPECTOR_PORT = 6274  # the port that inspectors of MCP servers usually have
RUNNERS = frozenset({"python", "node", "npx", "uvx"})  # programs that are given the server as an argument


class ProxyOptions(Value):
    directory: str  # an absolute path: --solution-dir, or the current folder
    explicit: bool = False  # whether --solution-dir was given
    port: int = 0  # the port of the Host that is started; 0 for any
    command: tuple[str, ...] = ()  # the words after `--`: an MCP server to start instead of a Host
    url: str | None = None  # an MCP server to use instead of a Host
    wait_tools: bool = False  # --mcp-wait-tools-list
    force_fallback: bool = False  # --force-roots-fallback
    only_catalogue: bool = False  # --force-generate-tool-cache
    wait_calls: bool = False  # --wait-calls
    http_port: int | None = None  # --http: serve MCP over HTTP on this port, too; 0 for any
    inspector_port: int | None = None  # --inspector: serve the page on this port or the next free one; 0 for any
    forwarded: tuple[str, ...] = ()  # options of the Host
    watch: bool = False  # --watch: reload the command by its package, even if no config names its code

    @property
    def uses_host(self) -> bool:
        """Whether the workspace determines the upstream, because the user named none."""
        return not self.command and self.url is None

    @property
    def upstream_name(self) -> str:
        """The name of the upstream at the beginning of a sentence, until a better one is known."""
        if self.url is not None:
            from ..system.text import shown_url  # imported late: most proxies have no URL

            return f"The server at {shown_url(self.url)}"
        return f"The server '{command_name(self.command)}'" if self.command else "The Host"


def command_name(command: tuple[str, ...]) -> str:
    """Return the file name of the program or, if that is an interpreter, of what it runs. Secrets are no names."""
    from ..system.text import HIDDEN, shown_words  # imported late: most proxies have no command

    command = (command[0], *(word for word in shown_words(command)[1:] if HIDDEN not in word))
    program = _file_name(command[0])
    runner = program.lower().removesuffix(".exe").removesuffix(".cmd").rstrip("0123456789.")
    what = next((word for word in command[1:] if not word.startswith("-")), "")
    if runner not in RUNNERS or not what or len(what.split()) > 1:  # code with -c is not a name
        return program
    return _file_name(what) if what[0] in "\\/" or what[1:2] == ":" else what


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2] or path
