"""What clients are offered, what they are told of it, and what is kept for the next start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from uno_devserver.protocol.client.connection import Server
from uno_devserver.protocol.parties import ServerInfo
from uno_devserver.proxy.lists.catalogue import Catalogue, circumstances, identity_in, identity_of, load
from uno_devserver.proxy.lists.merge import Offered, merged
from uno_devserver.proxy.lists.publisher import ListPublisher
from uno_devserver.proxy.options import Options
from uno_devserver.proxy.own_tools import instructions
from uno_devserver.proxy.state import ProxyState
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace

Entries = tuple[tuple[str, bytes], ...]
SERVER = Server({"name": "upstream", "version": "3"}, {"completions": {}}, "Handle with care.", "2025-11-25")


def entries(*names: str) -> Entries:
    return tuple((name, json.dumps({"name": name}).encode()) for name in names)


def named(requested: Path, effective: Path | None = None) -> Workspace:
    kind, source = ResolutionKind.CurrentDirectory, SelectionSource.Automatic
    place = str(effective or requested)
    return Workspace(str(requested), place, place, None, None, kind, source, (), None, ())


class Shop:
    def __init__(self, folder: Path, known: Offered | None = None, **options: Any) -> None:
        self.options = Options(str(folder), **options)
        self.told: list[str] = []
        catalogue = Catalogue(known, {}, {}, None, 1.0) if known else None
        lists, own = merged(known or Offered(), circumstances(self.options, catalogue))
        self.state = ProxyState(ServerInfo("proxy", "1", instructions="Ours."), {}, lists, dict, catalogue=catalogue)
        self.state.own_tools = own
        self.state = str(folder / "state")
        self.offering = ListPublisher(self.options, self.state, self.state, self.told.append)

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in json.loads(self.state.lists.tools)]


def test_what_the_upstream_offers_stands_between_our_own(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    shop.offering.take({"tools": entries("a", "b")}, SERVER)

    assert shop.tools == [
        "uno_health",
        "uno_app_select_solution",
        "a",
        "b",
        "uno_discover_tools",
        "uno_execute_tool",
    ]
    assert shop.state.fresh
    assert shop.state.capabilities["completions"] == {}
    assert "tools" in shop.state.capabilities


def test_a_tool_of_the_upstream_takes_the_place_of_ours_but_for_health(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    shop.offering.take({"tools": entries("uno_health", "uno_execute_tool")}, SERVER)

    unlisted = {"uno_app_initialize", "uno_app_set_roots", "mcpStatus"}
    assert shop.state.own_tools == {"uno_health", "uno_app_select_solution", "uno_discover_tools"} | unlisted
    assert shop.tools.count("uno_execute_tool") == 1


def test_each_kind_that_differs_is_told_once_and_what_stays_is_not_told(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    everything = {
        "tools": entries("a"),
        "resources": entries("x://1"),
        "templates": entries("x://{n}"),
        "prompts": entries("p"),
    }
    shop.offering.take(everything, SERVER)
    assert shop.told == [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]
    shop.told.clear()

    shop.offering.take(everything, SERVER)
    assert shop.told == []
    shop.offering.take({**everything, "templates": ()}, SERVER)

    assert shop.told == ["notifications/resources/list_changed"]


def test_members_in_another_order_are_no_change(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.offering.take({"tools": (("a", b'{"name":"a","inputSchema":{"type":"object","x":1}}'),)}, SERVER)
    shop.told.clear()

    shop.offering.take({"tools": (("a", b'{"inputSchema":{"x":1,"type":"object"},"name":"a"}'),)}, SERVER)
    assert shop.told == []
    shop.offering.take({"tools": (("a", b'{"inputSchema":{"x":true,"type":"object"},"name":"a"}'),)}, SERVER)

    assert shop.told == ["notifications/tools/list_changed"]


def test_what_cannot_be_compared_by_value_is_compared_by_its_bytes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    def take(depth: int) -> None:
        shop.told.clear()
        shop.offering.take({"tools": (("a", b'{"name":"a","x":' + b"[" * depth + b"]" * depth + b"}"),)}, SERVER)

    take(50_000)
    assert shop.told == ["notifications/tools/list_changed"]
    take(50_000)
    assert shop.told == []


def test_tools_that_stand_behind_ours_do_not_count(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    shop.offering.take({"tools": entries("uno_health", "a", "uno_execute_tool")}, SERVER)

    assert shop.offering.tool_count == 2


def test_what_the_catalogue_had_is_not_told_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Offered(tools=entries("a")))

    shop.offering.take({"tools": entries("a"), "resources": (), "templates": (), "prompts": ()}, SERVER)

    assert shop.told == []


def test_a_list_that_could_not_be_read_stays_as_the_catalogue_had_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Offered(tools=entries("a"), prompts=entries("p")))

    shop.offering.take({"prompts": ()}, SERVER)

    assert "a" in shop.tools
    assert shop.state.lists.prompts == b"[]"


def test_the_tools_that_tell_the_workspace_stay_until_something_is_served(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Offered(tools=entries("a")))

    shop.offering.fall_back(True)
    assert {"uno_app_initialize", "uno_app_set_roots", "a"} <= set(shop.tools)
    shop.offering.fall_back(True)
    shop.offering.fall_back(False)
    assert "uno_app_initialize" in shop.tools
    shop.offering.take({"tools": entries("a")}, SERVER)

    assert "uno_app_initialize" not in shop.tools
    assert shop.told == ["notifications/tools/list_changed"] * 2


def test_what_is_kept_is_what_the_next_start_finds(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.offering.take({"tools": entries("a")}, SERVER)

    written = shop.offering.keep(SERVER)("6.4.2")

    kept, problem = load(shop.state, identity_of(shop.options))
    assert kept is not None, problem
    assert (kept.offered.tools, kept.saved_at, kept.sdk_version) == (entries("a"), written, "6.4.2")
    assert (kept.server, kept.instructions) == (SERVER.info, "Handle with care.")


def test_what_another_workspace_offered_is_replaced_by_what_this_one_had(tmp_path: Path) -> None:
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    shop = Shop(tmp_path, Offered(tools=entries("a")))
    shop.offering.change(shop.offering.recall(named(there)))
    assert shop.told == ["notifications/tools/list_changed"]
    assert shop.offering.tool_count == 0
    shop.offering.take({"tools": entries("b")}, SERVER)
    shop.offering.keep(SERVER)(None)

    assert shop.offering.change(shop.offering.recall(named(elsewhere)))
    assert "b" not in shop.tools
    assert not shop.state.fresh
    assert shop.offering.change(shop.offering.recall(named(there)))

    assert "b" in shop.tools
    assert (shop.offering.tool_count, shop.state.server.instructions) == (1, instructions("Handle with care."))
    assert not shop.offering.change(shop.offering.recall(named(there))), "it is the same"


def test_what_was_named_is_kept_under_its_own_folder_and_what_lies_here_under_this(tmp_path: Path) -> None:
    there = tmp_path / "there"
    shop = Shop(tmp_path)
    shop.offering.change(shop.offering.recall(named(there / "src", there)))
    shop.offering.take({"tools": entries("a")}, SERVER)
    shop.offering.keep(SERVER)(None)
    assert load(shop.state, identity_of(shop.options)) == (None, "")
    assert load(shop.state, identity_in(str(there)))[0]

    shop.offering.change(shop.offering.recall(named(tmp_path, tmp_path.parent)))
    shop.offering.take({"tools": entries("b")}, SERVER)
    shop.offering.keep(SERVER)(None)

    kept, _ = load(shop.state, identity_of(shop.options))
    assert kept is not None
    assert kept.offered.tools == entries("b")
    assert load(shop.state, identity_in(str(tmp_path.parent))) == (None, "")


def test_where_the_workspace_is_still_to_be_told_it_brings_what_it_had(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.offering.take({"tools": entries("a")}, SERVER)
    shop.offering.keep(SERVER)(None)
    waiting = Shop(tmp_path, force_fallback=True)
    assert "a" not in waiting.tools

    waiting.offering.change(waiting.offering.recall(named(tmp_path)))

    assert "a" in waiting.tools


def test_what_is_being_kept_is_what_was_offered_when_that_began(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.offering.take({"tools": entries("a")}, SERVER)
    write = shop.offering.keep(SERVER)

    shop.offering.change(shop.offering.recall(named(tmp_path / "there")))
    write(None)

    kept, _ = load(shop.state, identity_of(shop.options))
    assert kept is not None
    assert kept.offered.tools == entries("a")


def test_a_tool_is_known_by_its_name_also_before_there_is_an_upstream(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Offered(tools=entries("a")))

    assert shop.offering.tool("a") == {"name": "a"}
    assert shop.offering.tool("b") is None
    assert shop.offering.tool_count == 1


def test_mcp_status_comes_and_goes_with_hot_reload_and_is_told_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Offered(tools=entries("a")))
    adapted: list[bool] = []
    shop.offering.adapted = lambda: adapted.append("mcpStatus" in shop.tools)

    shop.offering.adapt(hot_reload=True)
    shop.offering.adapt(hot_reload=True)
    assert "mcpStatus" in shop.state.own_tools
    shop.offering.adapt(hot_reload=False)

    assert "mcpStatus" not in shop.tools
    assert adapted == [True, False]
    assert shop.told == ["notifications/tools/list_changed"] * 2


def test_what_is_offered_before_the_upstreams_lists_is_told_together_with_them(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    shop.offering.adapt(hot_reload=True, lists_follow=True)
    assert ("mcpStatus" in shop.tools, shop.told) == (True, [])
    shop.offering.take({"tools": entries("a")}, SERVER)

    assert shop.told == ["notifications/tools/list_changed"]


def test_what_is_offered_is_told_also_where_the_upstreams_lists_do_not_come(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.offering.adapt(hot_reload=True, lists_follow=True)

    shop.offering.tell()
    shop.offering.tell()

    assert shop.told == ["notifications/tools/list_changed"]


def test_the_next_start_offers_mcp_status_before_it_has_looked_at_anything(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.offering.adapt(uses_host=False, hot_reload=True)
    shop.offering.take({"tools": entries("a")}, SERVER)
    shop.offering.keep(SERVER)(None)

    kept, _ = load(shop.state, identity_of(shop.options))
    _, own = merged(Offered(), circumstances(shop.options, kept))
    assert "mcpStatus" in own
    assert "uno_app_select_solution" not in own


def test_another_workspace_brings_its_own_circumstances(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Offered(tools=entries("a")))
    shop.offering.adapt(uses_host=False, hot_reload=True)

    shop.offering.change(shop.offering.recall(named(tmp_path / "there")))

    assert "mcpStatus" not in shop.tools
    assert "uno_app_select_solution" in shop.tools
