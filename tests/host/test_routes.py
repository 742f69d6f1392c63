"""The endpoint by which an IDE names another pipe, against the recorded answers."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from support.golden import GOLDEN
from uno_devserver.host.ide.channel import IdeChannel
from uno_devserver.host.routes import rebind
from uno_devserver.protocol.http.messages import Request, Response

from .ide.client import Ide, of_this_process, open_channel

pytestmark = pytest.mark.usefixtures("temp")

PREFIX = "/devserver/idechannel/"
GUID = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
RECORDS = [
    record
    for record in json.loads((GOLDEN / "host/http/without-addin.json").read_text("utf-8"))
    if PREFIX in record.get("request", "") and "Origin" not in record["request"]
]
# Where our answer is another one: its status, and why.
DIFFERENCES = {
    "POST /devserver/idechannel/a%2Fb": (400, "%2F is a slash, which a pipe's name cannot have; .NET keeps the three"),
}


async def post(channel: IdeChannel, segment: str, recorded: list[str] | None = None, method: str = "POST") -> Response:
    async def record() -> None:
        if recorded is not None:
            recorded.append(channel.channel_id or "")

    return await rebind(Request(method, PREFIX + segment, "", {}, b""), channel, record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["name"]))
async def test_answers_are_as_recorded(record: dict[str, Any]) -> None:
    method, path = record["request"].split()[:2]
    _, status, *_ = record["responseHead"].split()

    async with open_channel(None) as (channel, _):
        recorded: list[str] = []
        segment = path.removeprefix(PREFIX)
        response = await post(channel, segment, recorded, method)

        if record["name"] in DIFFERENCES:
            assert response.status == DIFFERENCES[record["name"]][0] != int(status)
            assert not recorded
            return
        assert response.status == int(status)
        assert response.body.decode() == record["responseBody"]
        head = record["responseHead"].lower()
        assert all(f"{name}: {value}".lower() in head for name, value in response.headers)
        assert recorded == ([segment] if status == "200" else [])


@pytest.mark.parametrize(
    ("segment", "channel_id"),
    [
        ("abc", "abc"),
        ("%C3%A4", "ä"),
        (GUID, GUID),
        (f"%7B{GUID}%7D", f"{{{GUID}}}"),
        (f"({GUID})", f"({GUID})"),
        ("my_ide.2", "my_ide.2"),
    ],
)
async def test_the_id_is_percent_decoded_once(segment: str, channel_id: str) -> None:
    async with open_channel(None) as (channel, _):
        response = await post(channel, segment)

        assert json.loads(response.body) == {"ideChannelId": channel_id}
        await Ide.greeted(channel_id)


async def test_a_path_is_refused_and_nothing_is_made_or_removed_there(temp: Path) -> None:
    stale = temp / "stale.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(stale))
    before = stale.stat()

    async with open_channel() as (channel, _):
        for path in (temp / "new.sock", stale):
            response = await post(channel, str(path).replace("/", "%2F"))
            assert response.status == 400
            assert "must be a plain name" in json.loads(response.body)

        assert channel.channel_id == of_this_process("one")
        assert sorted(os.listdir(temp)) == ["CoreFxPipe_one", "stale.sock"]
        assert stale.stat() == before


@pytest.mark.parametrize(("segment", "status"), [("a/b", 404), ("a//b", 404), ("/", 404), ("", 404), ("abc/", 200)])
async def test_a_path_of_several_segments_or_none_leads_nowhere(segment: str, status: int) -> None:
    async with open_channel(None) as (channel, _):
        assert (await post(channel, segment)).status == status
        assert (await post(channel, segment, method="GET")).status == (404 if status == 404 else 405)


@pytest.mark.parametrize(
    "segment",
    ["a%2Fb", "..%2Fb", "a%5Cb", "a%20b", "a%0A", "a%1B%5B31m", "a%00", "100%25", "%2541"],  # the last: "%41"
)
async def test_an_id_that_is_no_plain_name_is_refused(segment: str) -> None:
    async with open_channel() as (channel, _):
        response = await post(channel, segment)

        assert response.status == 400
        assert "must be a plain name" in json.loads(response.body)
        assert channel.channel_id == of_this_process("one")


@pytest.mark.parametrize("segment", ["%20", "%09%0A", "%FF"])
async def test_an_id_that_is_no_text_is_refused(segment: str) -> None:
    async with open_channel() as (channel, _):
        response = await post(channel, segment)

        assert (response.status, json.loads(response.body)) == (400, "channelId is required.")
        assert channel.channel_id == of_this_process("one")


async def test_a_failure_says_why_and_the_old_channel_stays(temp: Path) -> None:
    (temp / "CoreFxPipe_plain").write_text("")

    async with open_channel() as (channel, _):
        recorded: list[str] = []
        response = await post(channel, "plain", recorded)

        assert response.status == 500
        assert dict(response.headers)["Content-Type"] == "application/problem+json"
        detail = json.loads(response.body)["detail"]
        assert detail.startswith("Failed to configure IDE channel 'plain'.")
        assert "is not a socket" in detail
        assert not recorded
        await Ide.greeted("one")


async def test_the_connected_ide_changes_when_another_one_names_its_pipe(temp: Path) -> None:
    async with open_channel() as (channel, _):
        first = await Ide.greeted("one")
        await post(channel, "two")

        assert await first.rest() == b""
        await Ide.greeted("two")
        assert os.listdir(temp) == ["CoreFxPipe_two"]
