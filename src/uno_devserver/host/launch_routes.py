"""`GET /applaunch/{mvid}` and `GET /applaunch/asm/{path}`: how builds and IDEs tell that an app is being launched.

The path of an assembly may be encoded as one segment, follow after a double slash, or stand there plainly.
"""

from __future__ import annotations

import os

from ..protocol.http.messages import Handler, Request, Response
from ..system.log import log
from .addins.workers import invoke_apart
from .assemblies import Assembly, NotAnAssembly, read_assembly
from .launches import LaunchMonitor, guid
from .rc.messages import write

PREFIX = "/applaunch/"
MAX_QUERY_FIELDS = 100  # four have a meaning
_ASSEMBLY = "asm"

_JSON = (("Content-Type", "application/json"),)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


class BadRequest(Exception):
    """Answered with 400 and this sentence."""


def applaunch(launches: LaunchMonitor) -> Handler:
    """Answers every path that begins with `PREFIX`, in any case."""

    async def handle(request: Request) -> Response:
        if request.method != "GET":
            return Response(405, headers=(("Allow", "GET"),))
        first, slash, rest = request.path[len(PREFIX) :].partition("/")
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
    return Response(200, write({"mvid": mvid, "targetPlatform": platform}).encode(), _JSON)


async def _by_assembly(request: Request, encoded_path: str, launches: LaunchMonitor) -> Response:
    query = _query(request)
    debug = _is_debug(query)
    assembly = await invoke_apart(lambda: _assembly_at(encoded_path))
    launches.register(assembly.mvid, assembly.platform, debug, query.get("ide"), query.get("plugin"))
    answer = {"mvid": assembly.mvid, "targetFramework": assembly.platform or "unknown"}
    return Response(200, write(answer).encode(), _JSON)


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
