"""The table of commands and options; the parser, the help, shell completion and docs/commands.md are made from it.

argparse does not fit: options may stand before the command, `-fl` is one option, `start` forwards options that it does
not know, and building argparse's parsers would take a third of the time that `disco` has.
"""

from __future__ import annotations

from enum import Enum

from ..system.log import LEVELS
from ..system.values import Value


class Unknown(Enum):
    """How a command treats options that it does not know."""

    REFUSE = "refuse"
    IGNORE = "ignore"  # only `disco`, which Visual Studio calls
    FORWARD = "forward"  # they belong to the Host or to the Settings application
    LEAVE = "leave"  # everything behind the command: the Host reads its flags by .NET's rules


class Option(Value):
    names: tuple[str, ...]
    help: str
    value: str | None = None  # the name of the value in the help; None for a switch
    may_be_blank: bool = False  # an empty value has a meaning
    optional: bool = False  # without a value the option is a switch
    choices: tuple[str, ...] = ()  # all values, or the usual ones
    repeated: bool = False  # it may be given several times

    @property
    def name(self) -> str:
        """The first long name without its leading dashes, by which code looks the option up."""
        return next(name for name in self.names if name.startswith("--")).lstrip("-")

    @property
    def needs_value(self) -> bool:
        return self.value is not None and not self.optional

    @property
    def usage(self) -> str:
        """All names and the value, as the help shows them."""
        value = f"[{self.value}]" if self.optional else self.value
        return ", ".join(self.names) + (f" {value}" if value else "")


class Command(Value):
    words: tuple[str, ...]
    help: str
    runner: str  # module:function
    options: tuple[Option, ...] = ()
    arguments: tuple[str, ...] = ()
    unknown: Unknown = Unknown.REFUSE
    doing: str = ""  # shown on a terminal after a second; empty for commands that print while they run
    examples: tuple[tuple[str, str], ...] = ()  # descriptions and command lines

    @property
    def name(self) -> str:
        return " ".join(self.words)


PATH, FOLDER = "<path>", "<folder>"  # shells complete these values themselves
CHILD = "-- <command>"  # an argument that is a whole command line
CLIENT = "<client>"
URL = "<url>"
SHELL = "<shell>"
SHELLS = ("bash", "zsh", "fish")
GROUPS = {"mcp": "Serve AI clients, and register with them", "addin": "Check packages with .NET add-ins"}  # first words
MCP_APP = "--mcp-app"  # the form of `mcp start` that clients' configurations hold

GLOBAL_OPTIONS = (
    Option(("--help", "-h"), "Show this help, or the help of a command"),
    Option(("--version",), "Show the version"),
    Option(("--json",), "Print the result as JSON"),
    Option(
        ("--log-level", "-l"),
        "Trace, Debug, Information (default), Warning, Error, Critical or None",
        value="<level>",
        choices=LEVELS,
    ),
    Option(("--file-log", "-fl"), "Also write the log to a file; {Date} is replaced by today's date", value=PATH),
    Option(("--solution-dir",), "The folder of the workspace (default: the current folder)", value=FOLDER),
)

_SOLUTION = Option(("--solution",), "The solution to use if there are several", value=PATH)
_FORCE_MSBUILD = Option(
    ("--force-msbuild-discovery",),
    "Ask MSBuild for the add-ins, also where it is not trusted: a second, with SDKs before 8.0.100 up to 30",
)

_TRUST = Option(("--trust",), "Agree that code of the workspace may run, instead of being asked on a terminal")

_PROXY = (
    Option(("--port", "-p"), "Port of the Host that the proxy starts (default: a free one)", value="<port>"),
    Option(("--mcp-wait-tools-list",), "Answer tools/list only after the upstream has answered (30 s at most)"),
    Option(
        ("--force-roots-fallback",),
        "Wait until an agent names the workspace or its solution, instead of starting in the current folder",
    ),
    Option(("--force-generate-tool-cache",), "Refresh the tool catalogue of the workspace, then exit"),
    Option(("--wait-calls",), "Hold calls until the upstream is ready, instead of for two seconds at most"),
    Option(("--upstream-url",), "Proxy the MCP server at this URL instead of a Host", value="<url>"),
    Option(
        ("--header",),
        "With --upstream-url, or one --server at a URL: a header for that server, as in 'Authorization: Bearer "
        "${TOKEN}'; the value of variable TOKEN is used, which others cannot see, unlike what is typed here. May be "
        "given several times",
        value="<header>",
        repeated=True,
    ),
    Option(
        ("--server",),
        "Serve this server, too: <name>=<command line or URL>; or only this entry of the config's 'servers': <name>. "
        "May be given several times",
        value="<server>",
        repeated=True,
    ),
    Option(("--watch",), "Reload the command behind '--' when code of its package has changed; needs no config"),
    Option(("--http",), "Also serve MCP over HTTP on this loopback port (0: any free one)", value="<port>"),
    Option(
        ("--inspector",),
        "Also serve the inspector page (default: port 6274 or the next free one; 0: any free one)",
        value="<port>",
        optional=True,
    ),
)

_CLIENT = (
    Option(("--ide",), "The client, as an alternative to the argument", value=CLIENT),
    Option(("--workspace",), "The folder of the workspace (default: the current folder)", value=FOLDER),
    Option(("--ide-definitions",), "Client profiles to use instead of the built-in ones", value=PATH),
    Option(("--server-definitions",), "Server definitions to use instead of the built-in ones", value=PATH),
)
_VARIANT = (
    Option(
        ("--release",), "Write ('install') or expect ('status') the newest release; with uvx, of this minor version"
    ),
    Option(("--prerelease",), "The same, including prereleases"),
    Option(("--version", "--tool-version"), "Write or expect exactly this version", value="<version>"),
    Option(
        ("--channel",),
        "The same as --release (stable) or --prerelease (prerelease)",
        value="<channel>",
        choices=("stable", "prerelease"),
    ),
    Option(
        ("--runner",),
        "What starts the server: uvx, dnx (the .NET tool), or path (this program; no version to choose). By default "
        "uvx, and path until this program is released",
        value="<runner>",
        choices=("uvx", "dnx", "path"),
    ),
)
_URL = Option(("--upstream-url",), "Register the server at this URL, behind the proxy; needs --name", value=URL)
_SERVERS = Option(
    ("--servers",), "Only these servers, separated by commas; also entries of the config's 'servers'", value="<names>"
)
_NAME = Option(
    ("--name",),
    "The name of the entry (default: that of the folder's server, or UnoApp). The name of an entry of the config's "
    "'servers' means only that one",
    value="<name>",
)
_CHANGE = (
    Option(("--all-ides", "--all"), "All clients found on this machine, instead of a named one"),
    Option(("--dry-run",), "Show what would change, without changing it"),
)
_SCOPE = Option(
    ("--scope",), "Only files of this scope: workspace or user", value="<scope>", choices=("workspace", "user")
)
_ALL_SCOPES = Option(("--all-scopes",), "Also change files that this client shares with other clients")
_NO_BACKUP = Option(("--no-backup",), "Do not back up files before their first change")
_VERIFY = Option(("--verify",), "Also ask the client itself, if it has a command for that")

COMMANDS = (
    Command(
        ("disco",),
        "Show the SDK, Host, add-ins and running servers of the workspace",
        "disco:run",
        (
            Option(("--addins-only",), "Print only the .NET add-ins' paths, separated by ';' (with --json: an array)"),
            _SOLUTION,
            Option(("--force",), "Ask 'dotnet --version' again instead of using the cached answer"),
            Option(("--verify",), "Also ask MSBuild for the add-ins, and show where it differs; needs 'trust'"),
            _FORCE_MSBUILD,
            Option(("--verbose",), "Print every field, by its name in --json"),
        ),
        unknown=Unknown.IGNORE,
        doing="Looking at the workspace",
    ),
    Command(
        ("start",),
        "Start the workspace's Host, or reuse the running one",
        "start:run",
        (
            Option(("--httpPort",), "Port of the Host (default: the last one, or a free one)", value="<port>"),
            Option(("--restart",), "Stop the running Host, unless another program owns it, and start a new one"),
            Option(("--ppid",), "End the Host when this process ends", value="<pid>"),
            Option(("--solution",), "The solution to serve (default: the workspace's)", value=PATH),
            Option(
                ("--ideChannel",),
                "Named pipe of the IDE to talk to; without --ppid the command runs until the Host ends",
                value="<id>",
            ),
            Option(
                ("--host",),
                "bundled, dotnet, or the path of a Host (default: depends on the workspace)",
                value="<kind>",
                choices=("bundled", "dotnet"),
            ),
            Option(
                ("--addins",),
                "Load these add-ins, separated by ';', instead of the discovered ones; '' loads none",
                value="<paths>",
                may_be_blank=True,
            ),
            Option(
                ("--bind",),
                "Address to listen on (default: loopback); any other opens the tools to the network, unprotected",
                value="<address>",
            ),
            Option(("--timeoutMs",), "How long the Host may take to start (default: 30000)", value="<ms>"),
            _FORCE_MSBUILD,
            _TRUST,
        ),
        unknown=Unknown.FORWARD,
        doing="Starting the Host",
    ),
    Command(
        ("stop",),
        "Stop the workspace's Host",
        "stop:run",
        (
            Option(("--all",), "Stop the Hosts of all workspaces of this user"),
            Option(("--pid",), "Stop the Host with this process id", value="<pid>"),
            Option(("--solution",), "Stop the Host of this solution", value=PATH),
        ),
        doing="Stopping",
    ),
    Command(("list",), "List the running Hosts and proxies", "list:run", doing="Looking for servers"),
    Command(
        ("cleanup",),
        "Remove registrations and sockets of Hosts and proxies that no longer run",
        "cleanup:run",
        doing="Looking for leftovers",
    ),
    Command(
        ("health",),
        "Show what works, what does not, and what to do about it",
        "health:run",
        (_SOLUTION,),
        doing="Looking at the workspace",
    ),
    Command(
        ("inspect",),
        "Open the inspector page of the workspace's proxy, or of a command",
        "inspect:run",
        (
            Option(
                ("--no-open",), "Print a URL that opens the page once, within five minutes, without opening a browser"
            ),
            Option(
                ("--port",),
                "Port of the page if it is not open yet (default: the config's, or 6274; 0: any free one)",
                value="<port>",
            ),
            _TRUST,
        ),
        (CHILD,),
        examples=(("a server, with hot reload", "uno-devserver inspect -- node dist/index.js"),),
    ),
    Command(
        ("init",),
        "Write the config of an MCP server: of a package, a command or a URL",
        "init:run",
        arguments=(URL, CHILD),
        examples=(
            ("the package in the folder", "uno-devserver init"),
            ("a server without a package", "uno-devserver init -- node server.js"),
            ("a server at a URL", "uno-devserver init https://mcp.example.com/mcp"),
        ),
    ),
    Command(
        ("config",),
        "Show the workspace's config, or what hot reload of a command watches",
        "config:run",
        (
            Option(("--files",), "List all files that count as code"),
            Option(("--schema",), "Print the JSON schema of the file, for editors"),
            _SOLUTION,
        ),
        (CHILD,),
        examples=(("the code of a server that --watch watches", "uno-devserver config -- node dist/index.js"),),
        doing="Looking at the workspace",
    ),
    Command(
        ("trust",),
        "Allow code of the workspace to run, or revoke that",
        "trust:run",
        (
            Option(("--dry-run",), "Show what would be allowed, without allowing it"),
            Option(("--revoke",), "Revoke the permission"),
            Option(("--list",), "Show all trusted workspaces"),
            _SOLUTION,
        ),
        doing="Looking at the workspace",
    ),
    Command(
        ("host",),
        "Run the bundled Host in this process; its flags are those of the .NET Host",
        "host:run",
        unknown=Unknown.LEAVE,
    ),
    Command(
        ("addin", "check"),
        "Show which .NET add-ins would be found in a package, before it is published",
        "addin:run",
        arguments=(PATH,),
        examples=(("a package", "uno-devserver addin check bin/Release/Acme.Tool.1.0.0.nupkg"),),
    ),
    Command(("demo",), "Demonstrate this program in a few seconds, in a temporary folder", "demo.command:run"),
    Command(
        ("login",),
        "Sign in to an MCP server, or in the Uno Settings application",
        "uno_login:run",
        (
            Option(("--headless",), "Without a URL: sign in without a window"),
            Option(("--no-open",), "Print the address of the page to sign in on, without opening a browser"),
            Option(
                ("--scope",),
                "Ask for these scopes, separated by spaces (default: as the server says)",
                value="<scopes>",
            ),
            Option(
                ("--client-id",),
                "The client that you registered, if the server registers none itself; its secret, if it has one, is "
                "read from UNO_DEVSERVER_CLIENT_SECRET",
                value="<id>",
            ),
            Option(
                ("--port",),
                "Port of http://127.0.0.1:<port>/callback, to which the browser returns (default: any free one)",
                value="<port>",
            ),
            Option(("--keyring",), "Keep the tokens in the system's keyring, instead of a file that only you can read"),
            Option(("--list",), "Show the servers that you are signed in to"),
        ),
        (URL,),
        unknown=Unknown.FORWARD,
        examples=(("an MCP server that needs a sign-in", "uno-devserver login https://mcp.example.com/mcp"),),
    ),
    Command(
        ("logout",),
        "Sign out of a remote MCP server",
        "server_login:logout",
        arguments=(URL,),
    ),
    Command(
        ("completion",),
        "Print the completion script for bash, zsh or fish",
        "shell_completion:run",
        arguments=(SHELL,),
        examples=(
            ("bash, in ~/.bashrc", 'eval "$(uno-devserver completion bash)"'),
            ("zsh, in ~/.zshrc after compinit", 'eval "$(uno-devserver completion zsh)"'),
            ("zsh, in a folder of $fpath", "uno-devserver completion zsh > ~/.zfunc/_uno-devserver"),
            ("fish, in ~/.config/fish/config.fish", "uno-devserver completion fish | source"),
        ),
    ),
    Command(
        ("mcp", "start"),
        "Serve MCP over stdio for an AI agent (also: mcp serve, --mcp-app)",
        "mcp.start:start",
        _PROXY,
        (CHILD,),
        Unknown.FORWARD,
    ),
    Command(("mcp", "serve"), "The same as mcp start", "mcp.start:start", _PROXY, (CHILD,), Unknown.FORWARD),
    Command(
        ("mcp", "status"),
        "Show in which AI clients the servers are registered",
        "mcp.status:run",
        (*_CLIENT, _NAME, *_VARIANT, _SERVERS, _VERIFY),
        (CLIENT,),
        doing="Reading the clients' files",
    ),
    Command(
        ("mcp", "install"),
        "Register the servers with an AI client",
        "mcp.install:install",
        (*_CLIENT, _NAME, _URL, *_VARIANT, _SERVERS, _SCOPE, *_CHANGE, _NO_BACKUP, _VERIFY, _TRUST),
        (CLIENT,),
        doing="Working on the clients' files",
    ),
    Command(
        ("mcp", "uninstall"),
        "Remove the servers from an AI client",
        "mcp.install:uninstall",
        (
            *_CLIENT,
            _NAME,
            _SERVERS,
            _SCOPE,
            _ALL_SCOPES,
            *_CHANGE,
            _NO_BACKUP,
            Option(("--strict",), "Fail if none of the servers was registered"),
        ),
        (CLIENT,),
        doing="Working on the clients' files",
    ),
    Command(
        ("mcp", "restore"),
        "Restore a client's files to what they were before this program changed them",
        "mcp.restore:run",
        (
            *_CLIENT,
            _SCOPE,
            _ALL_SCOPES,
            *_CHANGE,
            Option(("--force",), "Also undo changes made by others; the present content is backed up"),
        ),
        (CLIENT,),
        doing="Working on the clients' files",
    ),
    Command(
        ("mcp", "doctor"),
        "Start the registered servers as the client would, and show whether they work",
        "mcp.doctor:run",
        (
            *_CLIENT,
            _NAME,
            _SERVERS,
            Option(("--force",), "Also start entries that may have come with the workspace; check them first"),
        ),
        (CLIENT,),
        doing="Reading the clients' files",
    ),
)


def command_named(words: tuple[str, ...]) -> Command | None:
    return next((command for command in COMMANDS if command.words == words), None)
