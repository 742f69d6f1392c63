"""The whole command line as data: commands, their options, what they are for, and who runs them.

Parsing, help, shell completion and the documentation all read this table. It is ours rather than argparse's because
options may stand before the command, `-fl` is one option, `start` forwards what it does not know, and building
argparse's parsers would cost a third of the time that `disco` has.
"""

from __future__ import annotations

from enum import Enum

from ..system.log import LEVELS
from ..system.values import Value


class Unknown(Enum):
    """What a command does with options it does not know."""

    REFUSE = "refuse"
    IGNORE = "ignore"  # Visual Studio calls `disco --solution <path> --json`
    FORWARD = "forward"  # they belong to the Host or to the Settings application
    LEAVE = "leave"  # nothing behind the command is ours: the Host reads its flags by .NET's rules


class Option(Value):
    names: tuple[str, ...]
    help: str
    value: str | None = None  # what the value is called in the help; None for a switch
    may_be_blank: bool = False  # an empty value means something
    optional: bool = False  # the value may be left out, and the option is a switch then
    choices: tuple[str, ...] = ()  # the values that there are, or the usual ones

    @property
    def name(self) -> str:
        """The name that code asks for: the first long one, without dashes."""
        return next(name for name in self.names if name.startswith("--")).lstrip("-")

    @property
    def needs_value(self) -> bool:
        return self.value is not None and not self.optional

    @property
    def usage(self) -> str:
        """All its names, and its value, as the help has them."""
        value = f"[{self.value}]" if self.optional else self.value
        return ", ".join(self.names) + (f" {value}" if value else "")


class Command(Value):
    words: tuple[str, ...]
    help: str
    runner: str  # module:function
    options: tuple[Option, ...] = ()
    arguments: tuple[str, ...] = ()
    unknown: Unknown = Unknown.REFUSE
    doing: str = ""  # what a terminal is told when it takes over a second; empty: the command speaks for itself
    examples: tuple[tuple[str, str], ...] = ()  # how it is used, each with what to type

    @property
    def name(self) -> str:
        return " ".join(self.words)


PATH, FOLDER = "<path>", "<folder>"  # values that a shell completes by itself

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
    Option(("--file-log", "-fl"), "Also write the log to a file; {Date} stands for today's date", value=PATH),
    Option(("--solution-dir",), "The folder of the workspace (default: the current folder)", value=FOLDER),
)

CHILD = "-- <command>"  # an argument that is a whole command line
CLIENT = "<client>"
SHELL = "<shell>"
SHELLS = ("bash", "zsh", "fish")

_SOLUTION = Option(("--solution",), "Which solution to take where several fit", value=PATH)
_FORCE_MSBUILD = Option(("--force-msbuild-discovery",), "Ask MSBuild for the add-ins (10-30 s), whatever is on disk")

_PROXY = (
    Option(("--port", "-p"), "Port for the Host that is started (default: a free one)", value="<port>"),
    Option(("--mcp-wait-tools-list",), "Answer tools/list only when the upstream has answered (30 s at most)"),
    Option(("--force-roots-fallback",), "Wait for uno_app_initialize instead of starting in the current folder"),
    Option(("--force-generate-tool-cache",), "Refresh the tool catalogue of the workspace, then exit"),
    Option(("--wait-calls",), "Hold calls until the upstream is ready, and not for two seconds only"),
    Option(("--upstream-url",), "Proxy this MCP server (Streamable HTTP) instead of a Host", value="<url>"),
    Option(("--http",), "Also serve MCP over HTTP on this port of the loopback (0: any)", value="<port>"),
    Option(
        ("--inspector",),
        "Also serve a page that shows what happens (default: port 6274, or the next that is free; 0: any)",
        value="<port>",
        optional=True,
    ),
)

_CLIENT = (
    Option(("--ide",), "The client, as an alternative to the argument", value=CLIENT),
    Option(("--workspace",), "The workspace whose files are looked at (default: the current folder)", value=FOLDER),
    Option(("--ide-definitions",), "Client profiles to use instead of the built-in ones", value=PATH),
    Option(("--server-definitions",), "Server definitions to use instead of the built-in ones", value=PATH),
)
_WANTED = (
    Option(("--release",), "Expect or write the newest stable version"),
    Option(("--prerelease",), "Expect or write the newest version, prereleases included"),
    Option(("--version", "--tool-version"), "Expect or write exactly this version", value="<version>"),
    Option(
        ("--channel",),
        "The same as --release (stable) or --prerelease (prerelease)",
        value="<channel>",
        choices=("stable", "prerelease"),
    ),
    Option(
        ("--runner",),
        "What starts the server: uvx, dnx (the .NET tool), or path (this program; no version to choose)",
        value="<runner>",
        choices=("uvx", "dnx", "path"),
    ),
)
_SERVERS = Option(("--servers",), "Only these servers, separated by commas", value="<names>")
_CHANGE = (
    Option(("--all-ides",), "All clients that are found on this machine, instead of a named one"),
    Option(("--dry-run",), "Change nothing, and show what would change"),
)
_SCOPE = Option(
    ("--scope",),
    "Only the files of the workspace, or of the user: workspace or user",
    value="<scope>",
    choices=("workspace", "user"),
)
_ALL_SCOPES = Option(("--all-scopes",), "Also the files that other clients share with this one")
_NO_BACKUP = Option(("--no-backup",), "Keep no copy of a file before its first change")
_VERIFY = Option(("--verify",), "Also ask the client itself, where it has a command for that")

COMMANDS = (
    Command(
        ("disco",),
        "Show what the workspace runs: SDK, Host, add-ins, running servers",
        "disco:run",
        (
            Option(("--addins-only",), "Print only the add-in paths, separated by ';' (with --json: an array)"),
            _SOLUTION,
            Option(("--force",), "Ask 'dotnet --version' again instead of using the cached answer"),
            _FORCE_MSBUILD,
        ),
        unknown=Unknown.IGNORE,
        doing="Looking at the workspace",
    ),
    Command(
        ("start",),
        "Start the workspace's Host, or find the one that runs",
        "start:run",
        (
            Option(
                ("--httpPort",), "Port of the Host (default: the workspace's last one, or a free one)", value="<port>"
            ),
            Option(("--restart",), "Stop the Host that runs, if no other program owns it, and start a new one"),
            Option(("--ppid",), "End the Host when this process ends", value="<pid>"),
            Option(("--solution",), "The solution to serve (default: the workspace's)", value=PATH),
            Option(
                ("--ideChannel",),
                "Named pipe of the IDE to talk to; without --ppid the command stays until the Host ends",
                value="<id>",
            ),
            Option(
                ("--host",),
                "bundled, dotnet, or the path of a Host (default: what the workspace has)",
                value="<kind>",
                choices=("bundled", "dotnet"),
            ),
            Option(
                ("--addins",),
                "Load these, separated by ';', instead of what is found; '' loads none",
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
        doing="Looking for what was left",
    ),
    Command(
        ("health",),
        "Tell what works, what does not, and what to do about it",
        "health:run",
        (_SOLUTION,),
        doing="Looking at the workspace",
    ),
    Command(
        ("inspect",),
        "Show what the workspace's proxy does, on a page in the browser",
        "inspect:run",
        (
            Option(("--no-open",), "Print where the page is, and open no browser"),
            Option(
                ("--port",),
                "Where it is opened, if it is not yet (default: that of the config, or 6274; 0: any)",
                value="<port>",
            ),
        ),
    ),
    Command(
        ("config",),
        "Show what the workspace's config says, and what is wrong with it",
        "config:run",
        (Option(("--schema",), "Print the JSON schema of the file, for editors"), _SOLUTION),
        doing="Looking at the workspace",
    ),
    Command(
        ("trust",),
        "Agree that code of the workspace may run, or take that back",
        "trust:run",
        (
            Option(("--dry-run",), "Show what would be allowed, and agree to nothing"),
            Option(("--revoke",), "Take it back"),
            Option(("--list",), "Show all workspaces that were agreed to"),
            _SOLUTION,
        ),
        doing="Looking at the workspace",
    ),
    Command(
        ("host",),
        "Be the Host, in this process; its flags are those of the .NET Host",
        "host:run",
        unknown=Unknown.LEAVE,
    ),
    Command(
        ("demo",),
        "Show what this program does, in some seconds and a temporary folder",
        "demo.command:run",
    ),
    Command(
        ("login",),
        "Open the Uno Settings application to sign in",
        "login:run",
        (Option(("--headless",), "Sign in without a window"),),
        unknown=Unknown.FORWARD,
    ),
    Command(
        ("completion",),
        "Print what lets bash, zsh or fish complete commands, options and values",
        "shell_completion:run",
        arguments=(SHELL,),
        examples=(
            ("bash, in ~/.bashrc", 'eval "$(uno-devserver completion bash)"'),
            ("zsh, in ~/.zshrc behind compinit", 'eval "$(uno-devserver completion zsh)"'),
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
        "Show which AI clients know the servers",
        "mcp.status:run",
        (*_CLIENT, *_WANTED, _VERIFY),
        (CLIENT,),
        doing="Reading the clients' files",
    ),
    Command(
        ("mcp", "install"),
        "Register the servers with an AI client",
        "mcp.install:install",
        (*_CLIENT, *_WANTED, _SERVERS, _SCOPE, *_CHANGE, _NO_BACKUP, _VERIFY),
        (CLIENT,),
        doing="Changing the clients' files",
    ),
    Command(
        ("mcp", "uninstall"),
        "Take the servers out of an AI client",
        "mcp.install:uninstall",
        (
            *_CLIENT,
            _SERVERS,
            _SCOPE,
            _ALL_SCOPES,
            *_CHANGE,
            _NO_BACKUP,
        ),
        (CLIENT,),
        doing="Changing the clients' files",
    ),
    Command(
        ("mcp", "restore"),
        "Put a client's files back as they were before the changes of this program",
        "mcp.restore:run",
        (
            *_CLIENT,
            _SCOPE,
            _ALL_SCOPES,
            *_CHANGE,
            Option(("--force",), "Also undo what others changed; what is there now is kept"),
        ),
        (CLIENT,),
        doing="Changing the clients' files",
    ),
    Command(
        ("mcp", "doctor"),
        "Start what a client would start, as it would, and tell whether that works",
        "mcp.doctor:run",
        (
            *_CLIENT,
            _SERVERS,
            Option(("--force",), "Also what may have come with the workspace; look at it first"),
        ),
        (CLIENT,),
        doing="Reading the clients' files",
    ),
)

# The wire form that every client's configuration holds.
MCP_APP = "--mcp-app"


def command_named(words: tuple[str, ...]) -> Command | None:
    return next((command for command in COMMANDS if command.words == words), None)
