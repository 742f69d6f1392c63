"""What clients are offered, what they are told of it, and what is kept for the next start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from uno_devserver.protocol.client.connection import ServerDescription
from uno_devserver.proxy.lists import publisher
from uno_devserver.proxy.lists.catalogue import Catalogue, identity_in, identity_of, load, own_tool_facts
from uno_devserver.proxy.lists.merge import Offered, combined, merged
from uno_devserver.proxy.lists.publisher import ListPublisher
from uno_devserver.proxy.lists.tool_changes import compare_tools
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.own_tools import instructions
from uno_devserver.proxy.state import ConnectionState, ProxyState
from uno_devserver.workspace.config import ToolFilter
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace

Entries = tuple[tuple[str, bytes], ...]
SERVER = ServerDescription({"name": "upstream", "version": "3"}, {"completions": {}}, "Handle with care.", "2025-11-25")


def entries(*names: str) -> Entries:
    return tuple((name, json.dumps({"name": name}).encode()) for name in names)


def named(requested: Path, effective: Path | None = None) -> Workspace:
    kind, source = ResolutionKind.CurrentDirectory, SelectionSource.Automatic
    place = str(effective or requested)
    return Workspace(str(requested), place, place, None, None, kind, source, (), None, ())


class Published:
    """A publisher, and what clients have been told. The folder seems to be a workspace with solutions."""

    def __init__(self, folder: Path, known: Offered | None = None, **options: Any) -> None:
        write(folder / "App.sln", "")
        self.options = ProxyOptions(str(folder), **options)
        self.told: list[str] = []
        self.adapted: list[frozenset[str]] = []  # our tools, each time that others of them are offered
        self.folder = str(folder / "state")
        catalogue = Catalogue(known, {}, {}, None, 1.0) if known else None
        lists, own = merged(known or Offered(), own_tool_facts(self.options, catalogue))
        self.state = ProxyState(self.options, lists=lists, own_tools=own, catalogue=catalogue)
        self.publisher = ListPublisher(
            self.options,
            self.state,
            self.folder,
            broadcast=self.told.append,
            changed=lambda: self.adapted.append(frozenset(self.tools)),
        )

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in json.loads(self.state.lists.tools)]

    def switch(self, workspace: Workspace) -> None:
        self.publisher.switch(*self.publisher.load(workspace))

    def keep(self, *tools: str, sdk: str | None = None) -> float:
        """The upstream offers these, and that is saved."""
        self.publisher.take({"tools": entries(*tools)}, SERVER)
        return self.publisher.saver()(sdk)

    def kept(self) -> Catalogue:
        """As the next start in this folder finds it."""
        found, problem = load(self.folder, identity_of(self.options))
        assert found is not None, problem
        return found


def test_what_the_upstream_offers_stands_between_our_own(tmp_path: Path) -> None:
    made = Published(tmp_path)

    made.publisher.take({"tools": entries("a", "b")}, SERVER)

    assert made.tools[1:5] == ["uno_app_select_solution", "a", "b", "uno_discover_tools"]
    assert made.state.own_tools.isdisjoint({"a", "b"})
    assert made.state.facts.lists_fresh
    assert made.state.capabilities["completions"] == {}
    assert "tools" in made.state.capabilities


def test_each_kind_that_differs_is_told_once_and_what_stays_is_not_told(tmp_path: Path) -> None:
    made = Published(tmp_path)
    everything = {
        "tools": entries("a"),
        "resources": entries("x://1"),
        "templates": entries("x://{n}"),
        "prompts": entries("p"),
    }
    made.publisher.take(everything, SERVER)
    assert made.told == [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]
    made.told.clear()

    made.publisher.take(everything, SERVER)
    assert made.told == []
    made.publisher.take({**everything, "templates": ()}, SERVER)

    assert made.told == ["notifications/resources/list_changed"]


def test_members_in_another_order_are_no_change(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.take({"tools": (("a", b'{"name":"a","inputSchema":{"type":"object","x":1}}'),)}, SERVER)
    made.told.clear()

    made.publisher.take({"tools": (("a", b'{"inputSchema":{"x":1,"type":"object"},"name":"a"}'),)}, SERVER)
    assert made.told == []
    made.publisher.take({"tools": (("a", b'{"inputSchema":{"x":true,"type":"object"},"name":"a"}'),)}, SERVER)

    assert made.told == ["notifications/tools/list_changed"]


def test_what_cannot_be_compared_by_value_is_compared_by_its_bytes(tmp_path: Path) -> None:
    made = Published(tmp_path)

    def take(depth: int) -> None:
        made.told.clear()
        made.publisher.take({"tools": (("a", b'{"name":"a","x":' + b"[" * depth + b"]" * depth + b"}"),)}, SERVER)

    take(50_000)
    assert made.told == ["notifications/tools/list_changed"]
    take(50_000)
    assert made.told == []


def test_tools_that_stand_behind_ours_do_not_count(tmp_path: Path) -> None:
    made = Published(tmp_path)

    made.publisher.take({"tools": entries("uno_health", "a", "uno_execute_tool")}, SERVER)

    assert made.publisher.tool_count == 2


def test_what_the_catalogue_had_is_not_told_again(tmp_path: Path) -> None:
    made = Published(tmp_path, Offered(tools=entries("a")))

    made.publisher.take({"tools": entries("a"), "resources": (), "templates": (), "prompts": ()}, SERVER)

    assert made.told == []


def test_a_list_that_could_not_be_read_stays_as_the_catalogue_had_it(tmp_path: Path) -> None:
    made = Published(tmp_path, Offered(tools=entries("a"), prompts=entries("p")))

    made.publisher.take({"prompts": ()}, SERVER)

    assert "a" in made.tools
    assert made.state.lists.prompts == b"[]"


def test_the_tools_that_tell_the_workspace_stay_until_something_is_served(tmp_path: Path) -> None:
    made = Published(tmp_path, Offered(tools=entries("a")))

    made.publisher.list_initialize(True)
    assert {"uno_app_initialize", "a"} <= set(made.tools)
    made.publisher.list_initialize(True)
    made.publisher.list_initialize(False)
    assert "uno_app_initialize" in made.tools
    made.publisher.take({"tools": entries("a")}, SERVER)

    assert "uno_app_initialize" not in made.tools
    assert made.told == ["notifications/tools/list_changed"] * 2


def test_what_is_kept_is_what_the_next_start_finds(tmp_path: Path) -> None:
    made = Published(tmp_path)

    written = made.keep("a", sdk="6.4.2")

    kept = made.kept()
    assert (kept.offered.tools, kept.saved_at, kept.sdk_version) == (entries("a"), written, "6.4.2")
    assert (kept.server, kept.instructions) == (SERVER.info, "Handle with care.")


def test_what_another_workspace_offered_is_replaced_by_what_this_one_had(tmp_path: Path) -> None:
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    made = Published(tmp_path, Offered(tools=entries("a")))
    made.switch(named(there))
    assert made.told == ["notifications/tools/list_changed"]
    assert made.publisher.tool_count == 0
    made.keep("b")

    made.switch(named(elsewhere))
    assert "b" not in made.tools
    assert not made.state.facts.lists_fresh
    assert (made.state.facts.tool_count, made.state.facts.catalogue_written) == (0, None)
    made.switch(named(there))

    assert "b" in made.tools
    assert (made.publisher.tool_count, made.state.server.instructions) == (1, instructions("Handle with care."))
    assert made.state.facts.tool_count == 1
    assert made.state.facts.catalogue_written
    made.told.clear()
    made.switch(named(there))
    assert ("b" in made.tools, made.told) == (True, []), "it is the same"


def test_what_was_named_is_kept_under_its_own_folder_and_what_lies_here_under_this(tmp_path: Path) -> None:
    there = tmp_path / "there"
    made = Published(tmp_path)
    made.switch(named(there / "src", there))
    made.keep("a")
    assert load(made.folder, identity_of(made.options)) == (None, "")
    assert load(made.folder, identity_in(str(there)))[0]

    made.switch(named(tmp_path, tmp_path.parent))
    made.keep("b")

    assert made.kept().offered.tools == entries("b")
    assert load(made.folder, identity_in(str(tmp_path.parent))) == (None, "")


def test_where_the_workspace_is_still_to_be_told_it_brings_what_it_had(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.keep("a")
    waiting = Published(tmp_path, force_fallback=True)
    assert "a" not in waiting.tools

    waiting.switch(named(tmp_path))

    assert "a" in waiting.tools


def test_what_is_being_kept_is_what_was_offered_when_that_began(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.take({"tools": entries("a")}, SERVER)
    write = made.publisher.saver()

    made.switch(named(tmp_path / "there"))
    write(None)

    assert made.kept().offered.tools == entries("a")


def test_a_tool_is_known_by_its_name_also_before_there_is_an_upstream(tmp_path: Path) -> None:
    made = Published(tmp_path, Offered(tools=entries("a")))

    assert made.publisher.tool("a") == {"name": "a"}
    assert made.publisher.tool("b") is None
    assert made.publisher.tool_count == 1


def test_mcp_status_comes_and_goes_with_hot_reload_and_is_told_once(tmp_path: Path) -> None:
    made = Published(tmp_path, Offered(tools=entries("a")))

    made.publisher.adapt(hot_reload=True)
    made.publisher.adapt(hot_reload=True)
    assert "mcpStatus" in made.state.own_tools
    made.publisher.adapt(hot_reload=False)

    assert "mcpStatus" not in made.tools
    assert ["mcpStatus" in tools for tools in made.adapted] == [True, False]
    assert made.told == ["notifications/tools/list_changed"] * 2


def test_what_is_offered_before_the_upstreams_lists_is_told_together_with_them(tmp_path: Path) -> None:
    made = Published(tmp_path)

    made.publisher.adapt(hot_reload=True, lists_follow=True)
    assert ("mcpStatus" in made.tools, made.told) == (True, [])
    made.publisher.take({"tools": entries("a")}, SERVER)

    assert made.told == ["notifications/tools/list_changed"]


def test_what_is_offered_is_told_also_where_the_upstreams_lists_do_not_come(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.adapt(hot_reload=True, lists_follow=True)

    made.publisher.tell()
    made.publisher.tell()

    assert made.told == ["notifications/tools/list_changed"]


def test_the_next_start_offers_mcp_status_before_it_has_looked_at_anything(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.adapt(selects_solution=False, hot_reload=True)
    made.keep("a")

    _, own = merged(Offered(), own_tool_facts(made.options, made.kept()))
    assert "mcpStatus" in own
    assert "uno_app_select_solution" not in own


def test_another_workspace_brings_its_own_circumstances(tmp_path: Path) -> None:
    made = Published(tmp_path, Offered(tools=entries("a")))
    made.publisher.adapt(selects_solution=False, hot_reload=True)

    made.switch(named(tmp_path / "there"))

    assert "mcpStatus" not in made.tools
    assert "uno_app_select_solution" in made.tools


# Further servers.


def test_lists_of_further_servers_are_kept_and_found_by_the_next_start(tmp_path: Path) -> None:
    made = Published(tmp_path)
    state = ProxyState(made.options.replace(server="docs"))
    made.publisher.serve(["docs"])
    lists = made.publisher.lists_of("docs", state)
    made.publisher.take({"tools": entries("a")}, SERVER)

    lists.take({"tools": entries("a", "b"), "prompts": entries("p")}, SERVER.replace(instructions="Read."))
    made.publisher.saver()(None)

    assert [name for name, _ in lists.offered.tools] == ["docs_a", "b"]
    assert state.own_names["tools/call"] == {"docs_a": "a"}
    assert made.state.server.instructions is not None
    assert made.state.server.instructions.endswith("docs: Read.")
    (kept,) = made.kept().servers
    assert (kept.name, [name for name, _ in kept.offered.tools], kept.instructions) == ("docs", ["a", "b"], "Read.")
    assert combined(made.kept().offered, made.kept().servers)[0].tools == made.publisher.all_offered.tools


def test_long_and_many_names_of_tools_are_cut_where_they_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Published(tmp_path)
    state = ProxyState(made.options.replace(server="docs"))
    made.publisher.take({}, SERVER)
    made.publisher.serve(["docs"])
    lists = made.publisher.lists_of("docs", state)
    lists.set(prefix=True, tools=ToolFilter())

    lists.take({"tools": entries(*(f"{number:04}{'x' * 100_000}" for number in range(1000)))}, SERVER)

    renamed = state.facts.renamed
    assert len(renamed) == publisher.MOST_RENAMED
    assert max(map(len, (*renamed, *renamed.values()))) <= 100
    assert len(capsys.readouterr().err) < 10_000
    changes = str(compare_tools((), entries("y" * 100_000)))
    assert len(changes) < 200


def test_a_server_that_is_not_served_any_more_takes_its_tools_along(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.take({}, SERVER)
    made.publisher.serve(["docs"])
    lists = made.publisher.lists_of("docs", ProxyState(made.options.replace(server="docs")))
    lists.take({"tools": entries("b")}, SERVER)
    told = len(made.told)

    made.publisher.serve([])

    assert "b" not in made.tools
    assert made.state.routes.tools == {}
    assert made.told[told:] == ["notifications/tools/list_changed"]


def test_a_filter_of_one_server_keeps_its_tools_out(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.serve(["docs"])
    lists = made.publisher.lists_of("docs", ProxyState(made.options.replace(server="docs")))
    made.publisher.take({"tools": entries("a", "x1")}, SERVER)
    lists.take({"tools": entries("b", "x2")}, SERVER)

    made.publisher.restrict(ToolFilter(exclude=("x*",)))
    lists.set(prefix=False, tools=ToolFilter(include=("b",)))

    assert {"a", "b"} <= set(made.tools)
    assert not {"x1", "x2"} & set(made.tools)
    assert made.state.routes.excluded == {"x1", "x2"}
    assert made.state.routes.only_listed, "what the main server does not list is not called either"


def test_names_wait_for_an_earlier_server_until_it_has_listed_or_does_not_start(tmp_path: Path) -> None:
    made = Published(tmp_path)
    made.publisher.take({}, SERVER)
    made.publisher.serve(["one", "two", "three"])
    states = {name: ProxyState(made.options.replace(server=name)) for name in ("one", "two", "three")}
    one, two, three = (made.publisher.lists_of(name, state) for name, state in states.items())

    three.take({"tools": entries("a")}, SERVER)
    one.take({"tools": entries("a")}, SERVER)
    assert (made.state.routes.tools, three.offered.tools) == ({"a": ("one", "a")}, ())
    states["two"].learn(state=ConnectionState.DEGRADED)
    made.publisher.name_servers()
    assert made.state.routes.tools == {"a": ("one", "a"), "three_a": ("three", "a")}
    two.take({"tools": entries("a", "b")}, SERVER)

    meant = {"a": ("one", "a"), "two_a": ("two", "a"), "b": ("two", "b"), "three_a": ("three", "a")}
    assert made.state.routes.tools == meant


def test_names_do_not_wait_longer_than_most_servers_take_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "NAMES_SECONDS", 0.0)
    made = Published(tmp_path)
    made.publisher.serve(["docs"])

    docs = made.publisher.lists_of("docs", ProxyState(made.options.replace(server="docs")))
    docs.take({"tools": entries("a")}, SERVER)
    made.publisher.take({"tools": entries("a")}, SERVER)

    assert made.state.routes.tools == {"main_a": ("", "a"), "a": ("docs", "a")}
    assert made.state.own_names["tools/call"] == {"main_a": "a"}
    assert made.publisher.tool("main_a") == {"name": "a"}
