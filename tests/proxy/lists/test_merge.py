from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.proxy.lists.merge import MAX_TOOL_NAME, Offered, ServerOffer, combined, entries, merged
from uno_devserver.proxy.own_tools import OWN_TOOLS, OwnToolFacts

HOST = OwnToolFacts(by_workspace=True, selects_solution=True)
NAMED = OwnToolFacts(by_workspace=False, selects_solution=False)


def tool(name: str, **more: object) -> tuple[str, bytes]:
    return name, json.dumps({"name": name, **more}).encode()


def names(array: bytes) -> list[str]:
    return [entry["name"] for entry in json.loads(array)]


def test_our_tools_stand_around_those_of_the_upstream() -> None:
    offered = Offered(tools=entries([tool("build"), tool("run")]))

    lists, own = merged(offered, HOST)

    listed = names(lists.tools)
    assert listed == [
        "uno_health",
        "uno_app_select_solution",
        "build",
        "run",
        "uno_discover_tools",
        "uno_execute_tool",
    ]
    unlisted = {"uno_app_initialize", "uno_app_set_roots", "mcpStatus", "mcpRestart"}
    assert own == set(listed) - {"build", "run"} | unlisted, "a client may have listed these before"


def test_without_an_upstream_there_are_our_own() -> None:
    lists, own = merged(Offered(), NAMED)

    assert names(lists.tools) == ["uno_health", "uno_discover_tools", "uno_execute_tool"]
    assert own == {*names(lists.tools), "mcpStatus", "mcpRestart"}
    assert [json.loads(each) for each in (lists.templates, lists.prompts)] == [[], []]


def test_in_fallback_mode_the_workspace_can_be_told() -> None:
    lists, own = merged(Offered(), HOST.replace(fallback=True))

    assert names(lists.tools)[1:3] == ["uno_app_select_solution", "uno_app_initialize"]
    assert "uno_app_set_roots" not in names(lists.tools), "it would be the same tool again"
    assert "uno_app_set_roots" in own


def test_the_older_name_is_the_upstreams_where_that_has_such_a_tool() -> None:
    lists, own = merged(Offered(tools=entries([tool("uno_app_set_roots", theirs=True)])), HOST.replace(fallback=True))

    assert b"theirs" in lists.tools
    assert "uno_app_set_roots" not in own


def test_the_upstreams_tool_is_listed_in_place_of_ours_but_for_health() -> None:
    offered = Offered(tools=entries([tool("uno_execute_tool", theirs=True), tool("uno_health", theirs=True)]))

    lists, own = merged(offered, HOST)

    listed: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in json.loads(lists.tools)}
    assert len(listed) == len(json.loads(lists.tools)), "each name once"
    assert "theirs" in listed["uno_execute_tool"]
    assert "theirs" not in listed["uno_health"]
    assert "uno_execute_tool" not in own
    assert "uno_health" in own


def test_a_tool_of_the_upstream_called_mcp_status_is_listed_as_long_as_we_have_none() -> None:
    lists, own = merged(Offered(tools=entries([tool("mcpStatus")])), HOST)

    assert "mcpStatus" in names(lists.tools)
    assert "mcpStatus" not in own


def test_with_hot_reload_mcp_status_is_ours_even_if_the_upstream_has_one() -> None:
    offered = Offered(tools=entries([tool("mcpStatus", theirs=True), tool("build")]))

    lists, own = merged(offered, HOST.replace(hot_reload=True))

    assert names(lists.tools)[:4] == ["uno_health", "mcpStatus", "mcpRestart", "uno_app_select_solution"]
    assert names(lists.tools).count("mcpStatus") == 1
    assert b"theirs" not in lists.tools
    assert "mcpStatus" in own


def test_behind_a_server_of_the_workspaces_config_no_solution_is_selected_but_a_workspace_can_be_named() -> None:
    lists, own = merged(Offered(), HOST.replace(selects_solution=False))

    assert "uno_app_select_solution" not in names(lists.tools)
    assert "uno_app_select_solution" not in own
    assert "uno_app_initialize" in own


def test_entries_pass_byte_for_byte() -> None:
    odd = b'{"name":"odd" ,"x-unknown":{"n":1.50,"big":123456789012345678901234567890},"escaped":"\\u00e9"}'

    lists, _ = merged(Offered(tools=entries([("odd", odd)])), NAMED)

    assert odd in lists.tools


def test_an_entry_that_was_written_on_several_lines_is_on_one() -> None:
    [(_, text)] = entries([("odd", b'{\r\n  "name": "odd"\n}')])

    assert b"\n" not in text
    assert b"\r" not in text
    assert json.loads(text) == {"name": "odd"}


def test_of_two_entries_with_one_name_the_first_counts() -> None:
    assert entries([tool("a", first=True), tool("b"), tool("a", first=False)]) == (tool("a", first=True), tool("b"))


def test_health_is_our_resource_however_the_upstream_spells_it() -> None:
    theirs = ("UNO://health", b'{"uri":"UNO://health","name":"theirs"}')
    note = ("a://note", b'{"uri":"a://note","name":"note"}')

    lists, _ = merged(Offered(resources=entries([theirs, note])), NAMED)

    assert names(lists.resources) == ["Uno DevServer Health", "note"]


@pytest.mark.parametrize("count", [0, 1000])
def test_any_number_of_tools_is_listed(count: int) -> None:
    offered = Offered(tools=entries(tool(f"tool_{number}") for number in range(count)))

    lists, _ = merged(offered, NAMED)

    assert len(json.loads(lists.tools)) == count + 3


# Several servers.


def offer(name: str, *tools: str, prefix: bool = False) -> ServerOffer:
    return ServerOffer(name, Offered(tools=tuple(tool(each) for each in tools)), prefix)


def test_only_a_name_that_an_earlier_server_has_or_we_have_gets_a_prefix() -> None:
    main = Offered(tools=(tool("search"), tool("run")))

    found, routes, hidden = combined(main, [offer("docs", "search", "read"), offer("x", "read", "uno_health", "walk")])

    listed = ["search", "run", "docs_search", "read", "x_read", "x_uno_health", "walk"]
    assert [name for name, _ in found.tools] == listed
    assert [json.loads(text)["name"] for _, text in found.tools] == listed
    assert routes.tools["docs_search"] == ("docs", "search")
    assert routes.tools["walk"] == ("x", "walk")
    assert routes.tools["search"] == ("", "search"), "it is the main server's"
    assert hidden == ()


def test_of_resources_with_one_uri_the_first_counts() -> None:
    main = Offered(resources=(("a://1", b"{}"),))
    other = Offered(resources=(("a://1", b'{"x":1}'), ("a://2", b"{}")), templates=(("a://{x}", b"{}"),))

    found, routes, hidden = combined(main, [ServerOffer("docs", other)])

    assert found.resources == (("a://1", b"{}"), ("a://2", b"{}"))
    assert (routes.resources, routes.templates) == ({"a://1": "", "a://2": "docs"}, {"a://{x}": "docs"})
    assert hidden == ("a://1",)


def test_prompts_are_named_like_tools() -> None:
    main, other = Offered(prompts=(tool("greet"),)), Offered(prompts=(tool("greet"), tool("part")))

    found, routes, _ = combined(main, [ServerOffer("docs", other, prefix=True)])

    assert [name for name, _ in found.prompts] == ["greet", "docs_greet", "docs_part"]
    docs = {"docs_greet": ("docs", "greet"), "docs_part": ("docs", "part")}
    assert routes.prompts == {"greet": ("", "greet"), **docs}


NAMES = st.lists(st.sampled_from(["a", "b", "a_b", "b_a", "a_a_b", "uno_health", "x" * 60, "x" * 64]), unique=True)


@given(NAMES, st.lists(st.tuples(st.sampled_from(["a", "b", "a_b", "a_a"]), NAMES, st.booleans()), max_size=4))
def test_each_tool_of_each_server_has_one_name_that_clients_accept(
    main: list[str], others: list[tuple[str, list[str], bool]]
) -> None:
    servers = list({name: offer(name, *tools, prefix=prefix) for name, tools, prefix in others}.values())

    found, routes, _ = combined(Offered(tools=tuple(tool(name) for name in main)), servers)

    listed = [name for name, _ in found.tools]
    assert len(listed) == len(set(listed)) == len(main) + sum(len(each.offered.tools) for each in servers)
    assert all(len(name) <= MAX_TOOL_NAME for name in listed)
    assert OWN_TOOLS.isdisjoint({name for name, (server, _) in routes.tools.items() if server})
    offers = [
        *(("", name) for name in main),
        *((each.name, name) for each in servers for name, _ in each.offered.tools),
    ]
    assert sorted(routes.tools.values()) == sorted(offers)
    assert combined(Offered(tools=tuple(tool(name) for name in main)), servers)[1] == routes


TOOLS = st.lists(st.sampled_from(["a", "b", "a_b", "main_a", "x" * 64]), unique=True)
SESSION = st.lists(
    st.tuples(TOOLS, st.permutations(["a", "b", "c"]), st.dictionaries(st.sampled_from("abc"), TOOLS)), max_size=5
)


@given(SESSION)
def test_a_name_never_means_another_server_or_tool_in_the_same_session(
    session: list[tuple[list[str], list[str], dict[str, list[str]]]],
) -> None:
    given: dict[tuple[str, str], tuple[str, str]] = {}
    meant: dict[str, tuple[str, str]] = {}

    for main, order, tools in session:  # servers come and go, and change their order and their tools
        servers = [offer(name, *tools[name]) for name in order if name in tools]
        _, routes, _ = combined(Offered(tools=tuple(tool(name) for name in main)), servers, given)

        for name, server in routes.tools.items():
            assert meant.setdefault(name, server) == server
