"""`mcp start`: runs the proxy, to which an AI client talks over standard input and output.

Cheap to import: all of this runs before the client gets its first answer.
"""

from __future__ import annotations

import os
import time

from ...issues import UserError
from ...proxy.lists.catalogue import identity_of, load, path_of
from ...proxy.lists.merge import counted
from ...proxy.options import INSPECTOR_PORT, ProxyOptions
from ...proxy.own_tools import ALWAYS_OURS
from ...system.folders import folders
from ...system.log import log
from ..parse import MAX_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parse import Invocation
    from ..result import Result


def start(invocation: Invocation) -> Result:
    options = _options(invocation)
    if os.isatty(0):
        log.info("Serving MCP on standard input and output, for an AI client. End the input (Ctrl+D) to stop.")
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
    if invocation.on("watch") and not invocation.child:
        message = "--watch needs a command, whose package has the code to watch."
        next_step = "Write the command behind '--'; without one, the workspace's config says what is watched."
        raise UserError("MissingValue", message, next_step, exit_code=2)
    if url is not None:
        _check_url(url, invocation)
    for_host = (*invocation.forwarded, *(["--port"] if "port" in invocation.options else []))
    if (invocation.child or url is not None) and for_host:
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
    )


def _check_url(url: str, invocation: Invocation) -> None:
    if invocation.child:
        message = "Both --upstream-url and a command behind '--' are given, but a proxy has only one server."
        raise UserError("BadValue", message, "Leave one of them out.", exit_code=2)
    from ...system.text import has_credentials, shown_url

    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("http", "https") or not rest.strip("/"):
        message = f"The value '{shown_url(url)}' of --upstream-url is not an HTTP address."
        raise UserError("BadValue", message, "Write it as http://127.0.0.1:8000/mcp.", exit_code=2)
    if has_credentials(url):
        message = f"A user name or password before the host, as in the URL of {shown_url(url)}, is not supported."
        next_step = "Leave it out. If the server needs it, write a command behind '--' that reads it from a variable."
        raise UserError("BadValue", message, next_step, exit_code=2)
