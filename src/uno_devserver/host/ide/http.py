"""`POST /devserver/idechannel/{channelId}`: another IDE takes over a running Host by naming its pipe."""

from __future__ import annotations

import json
from collections.abc import Callable

from ...protocol.http.messages import Request, Response
from ...system.log import log
from .channel import ChannelProblem, IdeChannel

_JSON = (("Content-Type", "application/json; charset=utf-8"),)
_PROBLEM = (("Content-Type", "application/problem+json"),)


async def rebind(request: Request, encoded_id: str, channel: IdeChannel, on_rebound: Callable[[str], None]) -> Response:
    """`encoded_id` is the end of the path, as it was sent; `on_rebound` records the id that is in force now."""
    if request.method != "POST":
        return Response(405, headers=(("Allow", "POST"),))
    channel_id = _decoded(encoded_id)
    if channel_id is None or not channel_id.strip():
        return Response(400, _body("channelId is required."), _JSON)
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
    return Response(200, _body({"ideChannelId": channel_id}), _JSON)


def _decoded(segment: str) -> str | None:
    """Percent-decoded to the end, slashes too: a pipe may be named by its full path. None when it is no text."""
    from urllib.parse import unquote_to_bytes  # costs some milliseconds, for a request that comes once a day

    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _body(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
