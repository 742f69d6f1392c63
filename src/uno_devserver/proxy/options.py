"""The options of a proxy. Cheap to import: the first answer waits for it."""

from __future__ import annotations

from ..system.values import Value

INSPECTOR_PORT = 6274  # the port that inspectors of MCP servers usually have
HOST = "The Host"  # the name of that upstream at the beginning of a sentence
RUNNERS = frozenset({"python", "node", "npx", "uvx"})  # programs that are given the server as an argument


class SecretHeaders(dict[str, str]):
    """HTTP headers by name, whose values do not appear where the options are shown."""

    def __repr__(self) -> str:
        return f"SecretHeaders({', '.join(self)})"


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
    headers: SecretHeaders | None = None  # --header: for the server at `url`
    servers: tuple[tuple[str, ...], ...] = ()  # --server <name>=…: further servers, each a name and its command or URL
    entries: tuple[str, ...] | None = None  # --server <name>: the only entries of the config's `servers` to serve
    server: str | None = None  # the name of the one of several servers for which these options are

    @property
    def uses_host(self) -> bool:
        """Whether the workspace determines what is served, because the user named none, or entries of its config."""
        return not self.command and self.url is None and (not self.servers or self.entries is not None)

    @property
    def has_main(self) -> bool:
        """Whether there may be a main server, because the user has named no servers, or one besides."""
        return bool(self.command) or self.url is not None or not (self.servers or self.entries is not None)

    @property
    def upstream_name(self) -> str:
        """The name of the upstream at the beginning of a sentence, until a better one is known."""
        if self.server is not None:
            return f"The server '{self.server}'"
        if self.url is not None:
            from ..system.text import shown_url  # imported late: most proxies have no URL

            return f"The server at {shown_url(self.url)}"
        return f"The server '{command_name(self.command)}'" if self.command else HOST


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
