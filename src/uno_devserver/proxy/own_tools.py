"""The tools and the resource that the proxy itself offers, and the answers about its health.

Names, schemas, titles and hints are those of the .NET tool, because instructions of agents mention them. Cheap to
import: the first answer waits for it.
"""

from __future__ import annotations

import json

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Tool = Mapping[str, Any]


HEALTH = "uno_health"
SELECT_SOLUTION = "uno_app_select_solution"
INITIALIZE = "uno_app_initialize"
SET_ROOTS = "uno_app_set_roots"  # the older name of uno_app_initialize
DISCOVER = "uno_discover_tools"
EXECUTE = "uno_execute_tool"
STATUS = "mcpStatus"  # has no prefix, because the instructions of agents use this name
RESTART = "mcpRestart"
MAIN = "main"  # the name of the server besides the config's `servers`, where one has to be named
RELOAD_TOOLS = frozenset({STATUS, RESTART})  # listed where code is reloaded

OWN_TOOLS = RELOAD_TOOLS | {HEALTH, SELECT_SOLUTION, INITIALIZE, SET_ROOTS, DISCOVER, EXECUTE}

# A tool of the upstream replaces ours of the same name, except for these, which only the proxy can answer.
ALWAYS_OURS = frozenset({HEALTH}) | RELOAD_TOOLS

STRUCTURED_SINCE = "2025-06-18"  # the version of MCP that added structured content; versions are dates
HEALTH_URI = "uno://health"
JSON_TYPE = "application/json"

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}

INSTRUCTIONS = (
    "This server stays while the server behind it starts, crashes or is replaced. "
    "Tools may appear or change some moments after the start: list them again when told so, or call "
    f"{DISCOVER}, which waits for them, and {EXECUTE}. "
    f"When a call fails or a tool is missing, call {HEALTH}: it says what is wrong and what to do about it."
)

_READ_ONLY = {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False, "readOnlyHint": True}
_NO_ARGUMENTS = {"type": "object", "properties": {}}
_SERVER_ARGUMENT = {
    "type": "object",
    "properties": {"server": {"type": "string", "description": "Which server, where there are several."}},
}
_HEALTH_TOOL = {
    "name": HEALTH,
    "description": "Tells how the dev server is: its connection, the number of its tools, and each problem with the "
    "next step. It answers at once, whatever else does not.",
    "inputSchema": _NO_ARGUMENTS,
    "annotations": {"title": "Uno Health Check", **_READ_ONLY},
}
_STATUS_TOOL = {
    "name": STATUS,
    "title": "MCP Status",
    "description": "Checks the code of the server behind this one, waits until the newest code answers, and says so. "
    "Call it when a tool says that the server is restarting, and call no other tool before it says ready; there is no "
    "need for it otherwise.",
    "inputSchema": _NO_ARGUMENTS,
    "annotations": {"title": "MCP Status", **_READ_ONLY},
}
_RESTART_TOOL = {
    "name": RESTART,
    "title": "MCP Restart",
    "description": "Restarts the server behind this one, after building it again if its last build failed, and says "
    "how it is then. New code needs no restart by you: the next call of a tool loads it.",
    "inputSchema": _NO_ARGUMENTS,
    "annotations": {"title": "MCP Restart", "idempotentHint": False, "openWorldHint": False, "readOnlyHint": False},
}
_SELECT_TOOL = {
    "name": SELECT_SOLUTION,
    "description": "Chooses the solution that is served, where a workspace has several, and restarts the dev server "
    f"for it. Call it when {HEALTH} reports WorkspaceAmbiguous, or to change to another solution. With forceRestart "
    "the dev server is restarted even if the solution stays.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "solutionPath": {"type": "string", "description": "The .sln or .slnx to serve, as an absolute path."},
            "forceRestart": {
                "type": "boolean",
                "description": "Restart even if this solution is served already, for instance after "
                "'dotnet restore' or a change of global.json.",
            },
        },
        "required": ["solutionPath"],
    },
    "annotations": {
        "title": "Select Solution",
        "idempotentHint": False,
        "openWorldHint": False,
        "readOnlyHint": False,
    },
}
_INITIALIZE_TOOL = {
    "name": INITIALIZE,
    "description": "Says which folder to work in, and starts the dev server for it; the other tools need that. Call "
    f"it once, first. There is no need for {SELECT_SOLUTION} afterwards, unless {HEALTH} reports WorkspaceAmbiguous.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "workspaceDirectory": {
                "type": "string",
                "description": "The folder of the workspace, as an absolute path.",
            },
            "solutionPath": {
                "type": "string",
                "description": "Which .sln or .slnx of it to serve, as an absolute path; "
                "only needed where several fit.",
            },
        },
        "required": ["workspaceDirectory"],
    },
    "annotations": {"title": "Initialize Workspace", **_READ_ONLY, "readOnlyHint": False},
}
_DISCOVER_TOOL = {
    "name": DISCOVER,
    "description": "Lists the tools of the dev server with their descriptions and schemas, for clients that have read "
    f"the list of tools too early. Waits until the dev server is ready. {EXECUTE} calls them.",
    "inputSchema": _NO_ARGUMENTS,
    "annotations": {"title": "Discover Tools", **_READ_ONLY},
}
_EXECUTE_TOOL = {
    "name": EXECUTE,
    "description": f"Calls a tool of the dev server by its name; {DISCOVER} tells the names and the arguments.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "toolName": {"type": "string", "description": "The name of the tool."},
            "arguments": {"type": "object", "description": "Its arguments, as its schema wants them."},
        },
        "required": ["toolName"],
    },
    "annotations": {"title": "Execute Tool", "openWorldHint": True},
}

# What a model reads of our tools where there is no Uno workspace: few words, because it reads them in every session.
_BRIEF = {
    HEALTH: "The server's state, its problems with next steps, and its last reload. With details: everything known.",
    STATUS: "Waits until the server's newest code answers. Call it when a tool says that the server restarts.",
    RESTART: "Restarts the server; builds it first if its last build failed.",
    DISCOVER: "Lists the server's tools, if you may have an old list.",
    EXECUTE: "Calls one of them.",
}
_BRIEF_SCHEMAS = {
    HEALTH: {"type": "object", "properties": {"details": {"type": "boolean"}}},
    EXECUTE: {
        "type": "object",
        "properties": {"toolName": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["toolName"],
    },
}

HEALTH_RESOURCE = {
    "uri": HEALTH_URI,
    "name": "Uno DevServer Health",
    "description": f"How the dev server is, at the moment of reading: what {HEALTH} tells.",
    "mimeType": JSON_TYPE,
}


class OwnToolFacts(Value):
    """The facts that decide which of our tools are offered."""

    by_workspace: bool  # whether the workspace determines the upstream
    selects_solution: bool  # whether a Host serves one of its solutions; also True if that is not known yet
    fallback: bool = False  # whether the workspace is not known, so that the client has to name it
    hot_reload: bool = False
    uno: bool = True  # whether it is an Uno workspace; also True if no workspace is known yet
    several: bool = False  # whether there may be several servers, so that one has to be named


def first_tools(now: OwnToolFacts) -> list[Tool]:
    """Our tools that are listed before the upstream's."""
    restart = {**_RESTART_TOOL, "inputSchema": _SERVER_ARGUMENT} if now.several else _RESTART_TOOL
    return [
        *_worded(_HEALTH_TOOL, *((_STATUS_TOOL, restart) if now.hot_reload else ()), uno=now.uno),
        *((_SELECT_TOOL,) if now.selects_solution and now.uno else ()),
        *((_INITIALIZE_TOOL,) if now.by_workspace and now.fallback else ()),
    ]


def unlisted_tools(now: OwnToolFacts) -> frozenset[str]:
    """The older names of our tools, which can be called but are not listed."""
    return frozenset({SET_ROOTS}) if now.by_workspace else frozenset()


def last_tools(now: OwnToolFacts) -> list[Tool]:
    """Our tools that are listed after the upstream's."""
    return _worded(_DISCOVER_TOOL, _EXECUTE_TOOL, uno=now.uno)


def _worded(*tools: Tool, uno: bool) -> list[Tool]:
    if uno:
        return list(tools)
    return [
        {
            **tool,
            "description": _BRIEF[tool["name"]],
            "inputSchema": _BRIEF_SCHEMAS.get(tool["name"], tool["inputSchema"]),
        }
        for tool in tools
    ]


def asks_details(arguments: object) -> bool:
    """Whether a call of uno_health with these arguments asks for the whole report."""
    return isinstance(arguments, dict) and arguments.get("details") is True


def health_result(report: Mapping[str, object], version: str | None) -> dict[str, Any]:
    """Make the result of uno_health for a client of this version of MCP; None if it is not known."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": _one_line(report)}], "isError": False}
    if version is not None and version >= STRUCTURED_SINCE:
        result["structuredContent"] = report
    return result


def health_contents(report: Mapping[str, object]) -> dict[str, Any]:
    """Make the result of reading uno://health."""
    return {"contents": [{"uri": HEALTH_URI, "mimeType": JSON_TYPE, "text": _one_line(report)}]}


def is_health_uri(uri: object) -> bool:
    return isinstance(uri, str) and uri.lower() == HEALTH_URI


def instructions(*upstreams: str | None) -> str:
    """Our instructions, followed by the upstreams'."""
    return "\n\n".join((INSTRUCTIONS, *(upstream for upstream in upstreams if upstream)))


def capabilities(upstream: Mapping[str, Any]) -> dict[str, Any]:
    """Our capabilities, and those of the upstream that the proxy only passes on."""
    return {**upstream, **CAPABILITIES}


def _one_line(report: Mapping[str, object]) -> str:
    return json.dumps(report, ensure_ascii=False, separators=(",", ":"))
