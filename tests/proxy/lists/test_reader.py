"""Reading lists from servers with all kinds of manners."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from support.mcp_peers import TestPeer
from support.upstreams import Lists, ScriptedRunning
from support.virtual_time import turns, virtual
from uno_devserver.protocol.client.connection import ConnectionLost, Peer, PendingCall, ServerDescription
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.service import Params
from uno_devserver.proxy.lists.reader import DEFAULT_LIMITS, ListReader, ReaderLimits

CLIENT = ClientInfo("client", "1", {"sampling": {}}, "2025-11-25")
ALL: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}


class Pages:
    """A connection whose server has these pages; an exception is raised, anything else is sent as it is."""

    def __init__(self, capabilities: dict[str, Any] | None = None, **pages: Any) -> None:
        self.server = ServerDescription({}, ALL if capabilities is None else capabilities, None, "2025-11-25")
        self.asked: list[tuple[str, Params]] = []
        self._pages = {"tools_list": [{"tools": []}], **pages}

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        self.asked.append((method, params))
        pages = self._pages.get(method.replace("/", "_"), [RpcError(METHOD_NOT_FOUND, "no")])
        number = int(params.get("cursor", "0")) if pages is not None else 0
        page = pages[min(number, len(pages) - 1)]
        if isinstance(page, Exception):
            raise page
        return msgspec.Raw(page if isinstance(page, bytes) else json.dumps(page).encode())

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        return False

    def flush(self) -> None: ...
    def cancel(self, call: PendingCall) -> None: ...
    async def notify(self, method: str, params: Params) -> None: ...
    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        return {}

    async def set_level(self, level: str) -> None: ...
    async def close(self) -> None: ...


def read(pages: Pages, limits: ReaderLimits = DEFAULT_LIMITS, cut: dict[str, int] | None = None) -> dict[str, Any]:
    """The lists that are read; `cut` gets those that are longer."""

    async def story() -> dict[str, Any]:
        taken: list[dict[str, Any]] = []
        reader = ListReader(
            ScriptedRunning(Lists()), TestPeer(), CLIENT, take=lambda lists, _: taken.append(lists), limits=limits
        )
        await reader._read(pages)
        if cut is not None:
            cut.update(reader.cut)
        return taken[0]

    return asyncio.run(story())


def names(found: dict[str, Any], kind: str) -> list[str]:
    return [name for name, _ in found[kind]]


def test_all_lists_are_read_with_what_their_entries_are_called_by() -> None:
    pages = Pages(
        tools_list=[{"tools": [{"name": "a"}]}],
        resources_list=[{"resources": [{"uri": "x://1", "name": "one"}]}],
        resources_templates_list=[{"resourceTemplates": [{"uriTemplate": "x://{n}", "name": "any"}]}],
        prompts_list=[{"prompts": [{"name": "p"}]}],
    )

    found = read(pages)

    assert {kind: names(found, kind) for kind in found} == {
        "tools": ["a"],
        "resources": ["x://1"],
        "templates": ["x://{n}"],
        "prompts": ["p"],
    }


def test_an_entry_is_kept_as_the_bytes_that_came() -> None:
    entry = b'{"name": "a",  "x-unknown":1.50, "big": 12345678901234567890}'

    found = read(Pages(tools_list=[b'{"tools":[' + entry + b"]}"]))

    assert found["tools"] == (("a", entry),)


def test_pages_are_followed_to_the_last() -> None:
    pages = [{"tools": [{"name": f"t{n}"}], "nextCursor": str(n + 1)} for n in range(40)]

    found = read(Pages(tools_list=[*pages, {"tools": [{"name": "last"}], "nextCursor": None}]))

    assert names(found, "tools") == [f"t{n}" for n in range(40)] + ["last"]


def test_a_server_that_names_the_same_page_again_does_not_keep_us() -> None:
    pages = Pages(tools_list=[{"tools": [{"name": "a"}], "nextCursor": "0"}])

    assert names(read(pages), "tools") == ["a"]


def test_a_list_without_an_end_is_cut() -> None:
    pages = [{"tools": [{"name": f"t{n}"}], "nextCursor": str(n + 1)} for n in range(50)]

    assert len(names(read(Pages(tools_list=pages), ReaderLimits(pages=10)), "tools")) == 10


def test_only_what_is_declared_is_asked_for_but_tools_always() -> None:
    pages = Pages({}, tools_list=[{"tools": [{"name": "forgotten"}]}])

    found = read(pages)

    assert [method for method, _ in pages.asked] == ["tools/list"]
    assert names(found, "tools") == ["forgotten"]
    assert found["prompts"] == ()


def test_a_method_that_is_not_there_means_an_empty_list() -> None:
    assert read(Pages())["prompts"] == ()


@pytest.mark.parametrize(
    "page",
    [
        RpcError(INTERNAL_ERROR, "not now"),
        b"[]",
        b'{"tools":{}}',
        b'{"tools":[{"name":"\xff"}]}',
        b'{"tools":[],"nextCursor":7}',
    ],
    ids=repr,
)
def test_of_a_list_that_cannot_be_read_nothing_is_said(page: Any) -> None:
    found = read(Pages(tools_list=[page], prompts_list=[{"prompts": [{"name": "p"}]}]))

    assert "tools" not in found
    assert names(found, "prompts") == ["p"]


def test_a_list_that_does_not_come_is_not_waited_for_for_ever() -> None:
    class Slow(Pages):
        async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
            if method == "tools/list":
                await asyncio.Event().wait()
            return await super().request(method, params, peer)

    found = read(Slow(), ReaderLimits(list_seconds=0.01))

    assert "tools" not in found
    assert found["prompts"] == ()


@pytest.mark.parametrize("entry", [b"7", b"null", b"{}", b'{"name":7}', b'{"title":"a"}'])
def test_an_entry_without_a_name_is_left_out_and_the_others_count(entry: bytes) -> None:
    found = read(Pages(tools_list=[b'{"tools":[' + entry + b',{"name":"good"}]}']))

    assert names(found, "tools") == ["good"]


def test_a_server_that_goes_meanwhile_is_lost() -> None:
    with pytest.raises(ConnectionLost):
        read(Pages(tools_list=[ConnectionLost("gone", sent=True)]))


# --- the conversation in which they are read


@virtual
async def test_a_client_that_lists_has_the_lists_read_again_but_not_each_time() -> None:
    lists = Lists()
    reader = ListReader(ScriptedRunning(lists), None, CLIENT, take=lambda *_: None)
    running = asyncio.ensure_future(reader.run(lambda _: None))
    await turns()
    assert lists.reads == 1

    reader.listed()
    await asyncio.sleep(1.0)
    assert lists.reads == 1, "they were read a moment ago"
    await asyncio.sleep(60.0)
    for _ in range(3):
        reader.listed()
    await asyncio.sleep(1.0)

    assert lists.reads == 2
    running.cancel()


@virtual
async def test_a_server_that_says_several_times_that_its_lists_changed_is_asked_once() -> None:
    running, taken = ScriptedRunning(Lists()), list[list[str]]()
    reader = ListReader(
        running,
        None,
        CLIENT,
        take=lambda lists, _: taken.append([name for name, _ in lists["tools"]]),
    )
    task = asyncio.ensure_future(reader.run(lambda _: None))
    await turns()
    running.lists.names["tools"] = ["one", "two"]

    for name in ("tools", "tools", "prompts"):
        running.connections[0].peer.notify(f"notifications/{name}/list_changed", {})
    await asyncio.sleep(1.0)

    assert taken == [["one"], ["one", "two"]]
    task.cancel()


@virtual
async def test_the_upstream_may_ask_the_reader_nothing_but_whether_it_is_there() -> None:
    running = ScriptedRunning(Lists())
    task = asyncio.ensure_future(ListReader(running, None, CLIENT, take=lambda *_: None).run(lambda _: None))
    await turns()
    peer = running.connections[0].peer

    assert await peer.ask("ping", {}) == {}
    with pytest.raises(RpcError):
        await peer.ask("sampling/createMessage", {})
    assert (peer.client.name, peer.client.capabilities) == (CLIENT.name, {})
    task.cancel()


def flood(count: int) -> bytes:
    return b'{"tools":[' + b",".join(b'{"name":"t%d"}' % number for number in range(count)) + b"]}"


@pytest.mark.parametrize("count", [10_001, 1_000_000])
def test_of_more_tools_than_anybody_can_use_the_first_are_read_in_little_memory(count: int) -> None:
    pages = Pages(tools_list=[flood(count)])
    cut: dict[str, int] = {}

    tracemalloc.start()
    try:
        found = read(pages, cut=cut)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert names(found, "tools") == [f"t{number}" for number in range(10_000)]
    assert cut == {"tools/list": 10_000}
    assert peak < 80_000_000


def test_a_list_is_whole_up_to_the_limit_however_it_is_split() -> None:
    long = [{"name": "a", "x": list(range(300_000))}, {"name": "é", "y": "}],["}, {"name": "b"}]
    cut: dict[str, int] = {}

    found = read(Pages(tools_list=[{"tools": long}]), cut=cut)

    assert [json.loads(text) for _, text in found["tools"]] == long
    assert cut == {}


@pytest.mark.parametrize("commas", [10, 300_000])
def test_entries_over_the_limit_of_bytes_are_left_out(commas: int) -> None:
    tools = [{"name": f"t{number}", "x": [0] * commas} for number in range(3)]
    size = len(json.dumps(tools[0]))
    cut: dict[str, int] = {}

    found = read(Pages(tools_list=[{"tools": tools}]), ReaderLimits(entry_bytes=2 * size + 20), cut)

    assert names(found, "tools") == ["t0", "t1"]
    assert cut == {"tools/list": 2}


def test_other_members_of_a_page_and_an_entry_take_no_memory() -> None:
    odd = b",".join(b'"%d":0' % number for number in range(500_000))
    page = b'{%b,"tools":[{"name":"t",%b}]}' % (odd, odd)

    tracemalloc.start()
    try:
        found = read(Pages(tools_list=[page]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert names(found, "tools") == ["t"]
    assert peak < 12 * len(page)
