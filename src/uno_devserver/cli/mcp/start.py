"""`mcp start`: runs the proxy, to which an AI client talks over standard input and output.

Cheap to import: all of this runs before the client gets its first answer.
"""

from __future__ import annotations

import os
import sys
import time

from ...issues import UserError
from ...proxy.lists.catalogue import identity_of, load, path_of
from ...proxy.lists.merge import counted
from ...proxy.options import INSPECTOR_PORT, ProxyOptions, SecretHeaders
from ...proxy.own_tools import ALWAYS_OURS
from ...system.folders import folders
from ...system.log import log
from ..parse import MAX_PORT, check_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parse import Invocation
    from ..result import Result


def _is_typed() -> bool:
    """Whether a person has started the proxy, and types its input."""
    if sys.platform == "win32":
        from ...system.standard_streams import is_console

        return is_console(sys.stdin)
    return os.isatty(0)


def end_keys(platform: str = sys.platform) -> str:
    """What a person presses in a terminal to end the input."""
    return "Ctrl+Z, Enter" if platform == "win32" else "Ctrl+D"


def start(invocation: Invocation) -> Result:
    options = _options(invocation)
    if _is_typed():
        log.info(f"Serving MCP on standard input and output, for an AI client. End the input ({end_keys()}) to stop.")
    from ...proxy.main import serve

    began = time.time()
    failure = serve(options)
    if failure is not None:
        raise failure
    return _generated(options, began)


def _generated(options: ProxyOptions, began: float) -> Result:
    """The result of --force-generate-tool-cache, the only option with which `serve` returns."""
    from ..result import Result

    state, identity = folders().state, identity_of(options)
    path = path_of(state, identity)
    catalogue, _ = load(state, identity)
    if catalogue is None or catalogue.saved_at < began:
        message = f"The server was asked, but its tools were not saved in {path}."
        raise UserError("NoCatalogue", message, "Run this again with --log-level Debug to see the reason.")
    tools = sum(name not in ALWAYS_OURS for name, _ in catalogue.offered.tools)
    return Result({"tools": tools, "file": path}, f"Saved {counted(tools)} in {path}.")


def _options(invocation: Invocation) -> ProxyOptions:
    url = invocation.value("upstream-url")
    if invocation.arguments:
        message = f"'{invocation.arguments[0]}' is not an option of 'mcp start'."
        raise UserError("UnexpectedArgument", message, "Write a command to proxy behind '--'.", exit_code=2)
    servers, entries = _servers(invocation)
    if invocation.on("watch") and not invocation.child and not servers:
        message = "--watch needs a command, whose package has the code to watch."
        next_step = "Write the command behind '--'; without one, the workspace's config says what is watched."
        raise UserError("MissingValue", message, next_step, exit_code=2)
    if url is not None and invocation.child:
        message = "Both --upstream-url and a command behind '--' are given, but a proxy has only one server."
        raise UserError("BadValue", message, "Leave one of them out.", exit_code=2)
    if url is not None:
        check_url(url)
    named = bool(invocation.child or url is not None or servers or entries)
    for_host = (*invocation.forwarded, *(["--port"] if "port" in invocation.options else []))
    if named and for_host:
        message = f"'{for_host[0]}' is an option of a Host, but no Host is started here."
        next_step = "Write the options of a command behind '--', after the command."
        raise UserError("UnknownOption", message, next_step, exit_code=2)
    return ProxyOptions(
        invocation.folder(),
        invocation.names_folder,
        invocation.number("port", 1, MAX_PORT) or 0,
        invocation.child,
        url,
        invocation.on("mcp-wait-tools-list"),
        invocation.on("force-roots-fallback"),
        invocation.on("force-generate-tool-cache"),
        invocation.on("wait-calls"),
        invocation.number("http", 0, MAX_PORT),
        INSPECTOR_PORT if invocation.on("inspector") else invocation.number("inspector", 0, MAX_PORT),
        invocation.forwarded,
        invocation.on("watch"),
        _headers(invocation, url, servers),
        servers,
        entries,
    )


def _servers(invocation: Invocation) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...] | None]:
    """The values of --server: names with their commands or URLs, and the names of the config's entries to serve."""
    given = invocation.values("server")
    if not given:
        return (), None
    from ...workspace.config import SERVER_NAME, split_command

    servers: list[tuple[str, ...]] = []
    entries: list[str] = []
    for text in given:
        name, equals, line = text.partition("=")
        problem = ""
        if SERVER_NAME.fullmatch(name) is None:
            problem = "the name before '=' has 1 to 32 letters, digits, '_' and '-'"
        elif name in entries or any(name == each[0] for each in servers):
            problem = f"there is another server '{name}'"
        elif not equals:
            entries.append(name)
        elif line.strip().lower().startswith(("http://", "https://")):
            check_url(line.strip(), "--server")
            servers.append((name, line.strip()))
        else:
            try:
                words = split_command(line, sys.platform)
            except ValueError as error:
                problem = str(error)
            else:
                servers.append((name, *words))
                problem = "" if words and words[0].strip() else "there is no command behind '='"
        if problem:
            message = f"The value of --server '{name}' cannot be used: {problem}."
            next_step = "Write it as weather='node dist/index.js', or as docs=https://example.com/mcp."
            raise UserError("BadValue", message, next_step, exit_code=2)
    if entries and (invocation.child or invocation.value("upstream-url") is not None):
        message = (
            f"--server {entries[0]} is an entry of the workspace's config, which does not count beside another server."
        )
        raise UserError("BadValue", message, f"Write --server {entries[0]}=<command line or URL>.", exit_code=2)
    if entries:
        _check_entries(entries, invocation.folder())
    return tuple(servers), tuple(entries) if entries else None


def _check_entries(entries: list[str], folder: str) -> None:
    """Raise UserError if the config has no such servers; one that is not readable may be being written."""
    from ...workspace.config import read_config
    from ...workspace.devtools_folder import find_config

    config = read_config(find_config(folder))
    names = [str(each.name) for each in config.servers]
    missing = [name for name in entries if name not in names]
    if missing and config.readable:
        where = f"'servers' of {config.path}" if config.path else f"the workspace: {folder} has no config"
        known = f" It has: {', '.join(names)}." if names else ""
        message = f"There is no server '{missing[0]}' in {where}.{known}"
        next_step = f"Correct the name, or write --server {missing[0]}=<command line or URL>."
        raise UserError("BadValue", message, next_step, exit_code=2)


def _headers(invocation: Invocation, url: str | None, servers: tuple[tuple[str, ...], ...]) -> SecretHeaders | None:
    """The values of --header, with variables expanded. No error quotes a value."""
    given = invocation.values("header")
    if not given:
        return None
    from ...proxy.upstream.base import is_url

    at_urls = (url is not None) + sum(is_url(words) for _, *words in servers)
    if at_urls == 0:
        message = "--header needs --upstream-url, or --server with a URL: only a server at a URL is sent headers."
        raise UserError("MissingValue", message, "Give the URL, or leave --header out.", exit_code=2)
    if at_urls > 1:
        message = "--header cannot say to which of several URLs its secret is sent."
        next_step = "Write these servers, with their headers, into 'servers' of .devtools/host.config.jsonc."
        raise UserError("BadValue", message, next_step, exit_code=2)
    from ...protocol.client.credentials import expanded_headers

    headers = SecretHeaders()
    for number, text in enumerate(given, start=1):
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            message = f"The value of --header (number {number}) is not a header."
            raise UserError("BadValue", message, "Write it as 'Name: value'.", exit_code=2)
        try:
            headers.update(expanded_headers({name.strip(): value.strip()}, os.environ))
        except ValueError as error:
            message = f"The value of --header (number {number}) cannot be used: {error}."
            raise UserError("BadValue", message, "Set the variable, or correct the header.", exit_code=2) from None
    return headers
