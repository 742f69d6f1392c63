"""Which part of the Host answers which path. Paths ignore case, as in the .NET Host."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from ..protocol.http.messages import Answer, Handler, Request, Response, Upgrade
from ..protocol.server.streamable_http import StreamableHttp
from ..system.log import log
from .addins.invocation import invoke_apart
from .app_launches import LaunchMonitor, guid
from .assemblies import Assembly, NotAnAssembly, read_assembly
from .ide.channel import ChannelProblem, IdeChannel
from .remote_control.endpoint import RemoteControl
from .remote_control.frames import write_content

IDE_CHANNEL = "/devserver/idechannel/"
JSON = (("Content-Type", "application/json"),)


class Routes:
    def __init__(
        self,
        mcp: StreamableHttp,
        remote_control: RemoteControl,
        launches: LaunchMonitor,
        ide: IdeChannel,
        rebound: Callable[[str], None],
        health: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        self._mcp = mcp
        self._remote_control = remote_control
        self._applaunch = applaunch(launches)
        self._ide = ide
        self._rebound = rebound
        self._health = health

    async def handle(self, request: Request) -> Answer:
        path = request.path.lower()
        place = path.rstrip("/")
        if place == "/mcp":
            return await self._mcp.handle(request)
        if place == "/rc":
            return Upgrade(self._remote_control.serve)
        if place == "/health":
            return await self._answer_health(request)
        if path.startswith(APPLAUNCH):
            return await self._applaunch(request)
        if path.startswith(IDE_CHANNEL):
            return await rebind(request, request.path[len(IDE_CHANNEL) :], self._ide, self._rebound)
        return Response(404, b'{"error": "there is nothing here; MCP is at /mcp"}', JSON)

    async def _answer_health(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, headers=(("Allow", "GET"),))
        return Response(200, json.dumps(await self._health()).encode(), JSON)


APPLAUNCH = "/applaunch/"
MAX_QUERY_FIELDS = 100  # four have a meaning
_ASSEMBLY = "asm"

_LAUNCH_JSON = (("Content-Type", "application/json"),)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


class BadRequest(Exception):
    """Answered with 400 and this sentence."""


def applaunch(launches: LaunchMonitor) -> Handler:
    """Answers every path that begins with `APPLAUNCH`, in any case."""

    async def handle(request: Request) -> Response:
        if request.method != "GET":
            return Response(405, headers=(("Allow", "GET"),))
        first, slash, rest = request.path[len(APPLAUNCH) :].partition("/")
        try:
            if first.lower() == _ASSEMBLY and slash:
                return await _by_assembly(request, rest, launches)
            mvid = guid(first) if not rest else None
            return Response(404) if mvid is None else _by_mvid(request, mvid, launches)
        except BadRequest as bad:
            return Response(400, str(bad).encode("utf-8", "backslashreplace"), _TEXT)

    return handle


def _by_mvid(request: Request, mvid: str, launches: LaunchMonitor) -> Response:
    query = _query(request)
    platform = query.get("platform")
    launches.register(mvid, platform, _is_debug(query), query.get("ide"), query.get("plugin"))
    return Response(200, write_content({"mvid": mvid, "targetPlatform": platform}).encode(), _LAUNCH_JSON)


async def _by_assembly(request: Request, encoded_path: str, launches: LaunchMonitor) -> Response:
    query = _query(request)
    debug = _is_debug(query)
    assembly = await invoke_apart(lambda: _assembly_at(encoded_path))
    launches.register(assembly.mvid, assembly.platform, debug, query.get("ide"), query.get("plugin"))
    answer = {"mvid": assembly.mvid, "targetFramework": assembly.platform or "unknown"}
    return Response(200, write_content(answer).encode(), _LAUNCH_JSON)


def _assembly_at(encoded_path: str) -> Assembly:
    for path in _spellings(encoded_path):
        if os.path.isabs(path) and os.path.isfile(path):
            try:
                return read_assembly(path)
            except NotAnAssembly as problem:
                log.debug(f"{path} is no .NET assembly: {problem}")
                raise BadRequest("The specified file is not a valid .NET assembly.") from problem
            except FileNotFoundError:  # gone this moment
                continue
    raise BadRequest("Assembly path must be an existing absolute path.")


def _spellings(encoded_path: str) -> list[str]:
    """What the path may mean, the likeliest first."""
    from urllib.parse import unquote  # costs some milliseconds, for a request that comes with a build

    path = unquote(encoded_path, errors="surrogateescape")
    spaced = unquote(encoded_path.replace("+", " "), errors="surrogateescape")  # as .NET's WebUtility writes a space
    return [path, spaced, "/" + path, "/" + spaced]


def _query(request: Request) -> dict[str, str]:
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:
        raise BadRequest("The query has too many values.") from error
    return {name.lower(): value for name, value in pairs}


def _is_debug(query: dict[str, str]) -> bool:
    value = query.get("isdebug", "").strip().lower()
    if value not in ("", "true", "false"):
        raise BadRequest("isDebug must be true or false.")
    return value == "true"


_JSON_UTF8 = (("Content-Type", "application/json; charset=utf-8"),)
_PROBLEM = (("Content-Type", "application/problem+json"),)


async def rebind(request: Request, encoded_id: str, channel: IdeChannel, on_rebound: Callable[[str], None]) -> Response:
    """`encoded_id` is the end of the path, as it was sent; `on_rebound` records the id that is in force now."""
    if request.method != "POST":
        return Response(405, headers=(("Allow", "POST"),))
    channel_id = _decoded(encoded_id)
    if channel_id is None or not channel_id.strip():
        return Response(400, _body("channelId is required."), _JSON_UTF8)
    try:
        await channel.bind(channel_id)
    except ChannelProblem as problem:
        log.warn(str(problem))
        detail = f"Failed to configure IDE channel '{channel_id}'. {problem}"
        return Response(500, _body({"title": "Internal Server Error", "status": 500, "detail": detail}), _PROBLEM)
    try:
        on_rebound(channel_id)
    except OSError as error:  # the IDE can connect all the same
        log.warn(f"The IDE channel is {channel_id} now, but that could not be recorded: {error}")
    return Response(200, _body({"ideChannelId": channel_id}), _JSON_UTF8)


def _decoded(segment: str) -> str | None:
    """Percent-decoded to the end, slashes too: a pipe may be named by its full path. None when it is no text."""
    from urllib.parse import unquote_to_bytes  # costs some milliseconds, for a request that comes once a day

    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _body(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
