"""The HTTP paths of the Host, and their answers. Paths ignore case, as in the .NET Host.

`/applaunch/...` announces an app that an IDE launched; `/devserver/idechannel/<id>` binds the IDE channel to another
pipe. Bodies and content types are those of the .NET Host.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable
from typing import Any

from ..protocol.http.messages import Answer, Request, Response, Upgrade
from ..protocol.server.streamable_http import StreamableHttp
from ..system.event_loop import QueueFull, WorkQueue
from ..system.log import log
from .app_launches import LaunchKey, LaunchMonitor, guid
from .assemblies import Assembly, NotAnAssembly, read_assembly
from .ide.channel import ChannelProblem, IdeChannel
from .remote_control.endpoint import RemoteControl
from .remote_control.frames import write_content

APPLAUNCH = "/applaunch/"
IDE_CHANNEL = "/devserver/idechannel/"
MAX_QUERY_FIELDS = 100  # four are used
# IDEs send a GUID, which .NET may write in braces or parentheses. A path would let every program that reaches the port
# have a socket made, or a stale one removed, in any folder; only the Host's own command line may name one.
PLAIN_NAME = re.compile(r"[\w.(){}-]+")
_ASSEMBLY = "asm"
_JSON = (("Content-Type", "application/json"),)
_JSON_UTF8 = (("Content-Type", "application/json; charset=utf-8"),)
_PROBLEM = (("Content-Type", "application/problem+json"),)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)

RecordChannel = Callable[[], Awaitable[None]]


class Routes:
    def __init__(
        self,
        mcp: StreamableHttp,
        remote_control: RemoteControl,
        launches: LaunchMonitor,
        ide: IdeChannel,
        record_channel: RecordChannel,
        health: Callable[[], Awaitable[dict[str, Any]]],
        assembly_reads: WorkQueue,
    ) -> None:
        self._mcp = mcp
        self._remote_control = remote_control
        self._launches = launches
        self._ide = ide
        self._record_channel = record_channel
        self._health = health
        self._assembly_reads = assembly_reads

    async def handle(self, request: Request) -> Answer:
        path = request.path.lower()
        place = path.rstrip("/")
        if place == "/mcp":
            return await self._mcp.handle(request)
        if place == "/rc":
            if request.method != "GET":
                return _only("GET")
            return Upgrade(self._remote_control.serve)
        if place == "/health":
            return await self._answer_health(request)
        if path.startswith(APPLAUNCH):
            return await announce_launch(request, self._launches, self._assembly_reads)
        if path.startswith(IDE_CHANNEL):
            return await rebind(request, self._ide, self._record_channel)
        return Response(404, b'{"error": "there is nothing here; MCP is at /mcp"}', _JSON)

    async def _answer_health(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _only("GET")
        return Response(200, json.dumps(await self._health()).encode(), _JSON)


def _only(method: str) -> Response:
    return Response(405, headers=(("Allow", method),))


class BadRequest(Exception):
    """The request is answered with 400 and this sentence."""


class Busy(Exception):
    """The request is answered with 503 and this sentence."""


async def announce_launch(request: Request, launches: LaunchMonitor, reads: WorkQueue) -> Response:
    """Register a launch, by the module id of the app or by the path of its assembly."""
    first, _, rest = request.path[len(APPLAUNCH) :].partition("/")
    mvid = guid(_decoded(first) or "") if not rest else None
    if mvid is None and first.lower() != _ASSEMBLY:
        return Response(404)
    if request.method != "GET":
        return _only("GET")
    try:
        if mvid is None:
            return await _by_assembly(request, rest, launches, reads)
        return _by_mvid(request, mvid, launches)
    except BadRequest as bad:
        return Response(400, str(bad).encode("utf-8", "backslashreplace"), _TEXT)
    except Busy as busy:
        return Response(503, str(busy).encode(), (*_TEXT, ("Retry-After", "1")))


def _by_mvid(request: Request, mvid: str, launches: LaunchMonitor) -> Response:
    query = _query(request)
    platform = query.get("platform")
    launches.register(LaunchKey.of(mvid, platform, _is_debug(query)), query.get("ide"), query.get("plugin"))
    return Response(200, write_content({"mvid": mvid, "targetPlatform": platform}).encode(), _JSON)


async def _by_assembly(request: Request, encoded_path: str, launches: LaunchMonitor, reads: WorkQueue) -> Response:
    query = _query(request)
    is_debug = _is_debug(query)
    try:
        assembly = await reads.run(lambda: _assembly_at(encoded_path))
    except QueueFull:
        raise Busy("Too many assemblies are being read already; try again in a moment.") from None
    except TimeoutError:
        raise Busy("The disk of the assembly does not answer; try again later.") from None
    key = LaunchKey.of(assembly.mvid, assembly.platform, is_debug)
    launches.register(key, query.get("ide"), query.get("plugin"))
    answer = {"mvid": assembly.mvid, "targetFramework": assembly.platform or "unknown"}
    return Response(200, write_content(answer).encode(), _JSON)


def _assembly_at(encoded_path: str) -> Assembly:
    for path in _spellings(encoded_path):
        if os.path.isabs(path) and os.path.isfile(path):
            try:
                return read_assembly(path)
            except NotAnAssembly as problem:
                log.debug(f"{path} is not a .NET assembly: {problem}")
                raise BadRequest("The specified file is not a valid .NET assembly.") from problem
            except FileNotFoundError:  # removed meanwhile
                continue
    raise BadRequest("Assembly path must be an existing absolute path.")


def _spellings(encoded_path: str) -> list[str]:
    """The paths that an encoded path may mean, the likeliest first."""
    from urllib.parse import unquote  # takes milliseconds to import, and is rarely needed

    path = unquote(encoded_path, errors="surrogateescape")
    spaced = unquote(encoded_path.replace("+", " "), errors="surrogateescape")  # .NET's WebUtility encodes a space as +
    return [path, spaced, "/" + path, "/" + spaced]


def _query(request: Request) -> dict[str, str]:
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:
        raise BadRequest("The query has too many values.") from error
    query: dict[str, str] = {}
    for name, value in pairs:  # a repeated one has all its values, as in .NET
        query[name.lower()] = f"{query[name.lower()]},{value}" if name.lower() in query else value
    return query


def _is_debug(query: dict[str, str]) -> bool:
    value = query.get("isdebug", "").strip().lower()
    if value not in ("", "true", "false"):
        raise BadRequest("isDebug must be true or false.")
    return value == "true"


async def rebind(request: Request, channel: IdeChannel, record_channel: RecordChannel) -> Response:
    """Bind the channel to the pipe that the path names; `record_channel` writes the present id into the registry."""
    segment = request.path[len(IDE_CHANNEL) :].removesuffix("/")
    if not segment or "/" in segment:
        return Response(404)
    if request.method != "POST":
        return _only("POST")
    channel_id = _decoded(segment)
    if channel_id is None or not channel_id.strip():
        return Response(400, _body("channelId is required."), _JSON_UTF8)
    if not PLAIN_NAME.fullmatch(channel_id):
        reason = "channelId must be a plain name of letters, digits and . _ - ( ) { }, such as a GUID."
        return Response(400, _body(reason), _JSON_UTF8)
    try:
        await channel.bind(channel_id)
    except ChannelProblem as problem:
        log.warn(str(problem))
        detail = f"Failed to configure IDE channel '{channel_id}'. {problem}"
        return Response(500, _body({"title": "Internal Server Error", "status": 500, "detail": detail}), _PROBLEM)
    await record_channel()
    return Response(200, _body({"ideChannelId": channel_id}), _JSON_UTF8)


def _decoded(segment: str) -> str | None:
    """The segment percent-decoded, slashes too; None if not UTF-8."""
    from urllib.parse import unquote_to_bytes

    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _body(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
