from __future__ import annotations

import json

from support.golden import GOLDEN
from uno_devserver.proxy import own_tools as tools

HOST = tools.OwnToolFacts(by_workspace=True, selects_solution=True)
NAMED = tools.OwnToolFacts(by_workspace=False, selects_solution=False, uno=False)
BRIEF_CHARACTERS = 700  # of what a model reads of our tools where there is no Uno workspace


def names(offered: list[tools.Tool]) -> list[str]:
    return [tool["name"] for tool in offered]


def recorded(name: str) -> dict[str, tools.Tool]:
    """The tools that the .NET proxy listed first in a recorded session."""
    log = json.loads((GOLDEN / "host" / "mcp-app" / f"{name}.json").read_text("utf-8"))["log"]
    lines = [json.loads(entry["line"]) for entry in log if entry.get("dir") == "<" and "line" in entry]
    listed = next(line["result"]["tools"] for line in lines if "tools" in line.get("result", {}))
    return {tool["name"]: tool for tool in listed}


def test_tools_and_hints_are_those_of_the_net_proxy() -> None:
    theirs = recorded("force-roots-fallback")
    ours = [*tools.first_tools(HOST.replace(fallback=True)), *tools.last_tools(HOST)]

    assert names(ours) == list(theirs)
    for tool in ours:
        record = theirs[tool["name"]]
        assert tool["inputSchema"].get("required") == record["inputSchema"].get("required")
        assert tool["inputSchema"]["properties"].keys() == record["inputSchema"]["properties"].keys()
        assert tool["annotations"].items() >= record["annotations"].items()


def test_the_older_name_can_be_called_but_is_not_listed() -> None:
    for now in (HOST, HOST.replace(fallback=True)):
        assert tools.SET_ROOTS not in names(tools.first_tools(now))
        assert tools.unlisted_tools(now) == {tools.SET_ROOTS}
    assert tools.unlisted_tools(NAMED) == frozenset()


def test_a_workspace_is_named_only_where_it_matters_and_is_not_known() -> None:
    assert names(tools.first_tools(HOST)) == [tools.HEALTH, tools.SELECT_SOLUTION]
    assert names(tools.first_tools(HOST.replace(fallback=True)))[2:] == [tools.INITIALIZE]
    assert names(tools.first_tools(NAMED.replace(fallback=True))) == [tools.HEALTH]


def test_a_solution_is_selected_only_where_there_may_be_some() -> None:
    assert names(tools.first_tools(HOST.replace(selects_solution=False))) == [tools.HEALTH]


def test_without_an_uno_workspace_what_a_model_reads_of_our_tools_is_brief() -> None:
    """Names, descriptions and schemas are what clients give to a model; all five tools are listed."""
    for now in (NAMED.replace(hot_reload=True), HOST.replace(uno=False, hot_reload=True)):
        ours = [*tools.first_tools(now), *tools.last_tools(now)]

        assert names(ours) == [tools.HEALTH, tools.STATUS, tools.RESTART, tools.DISCOVER, tools.EXECUTE]
        read = [
            text
            for tool in ours
            for text in (tool["name"], tool["description"], json.dumps(tool["inputSchema"], separators=(",", ":")))
        ]
        assert sum(map(len, read)) <= BRIEF_CHARACTERS
        assert all(read)


def test_a_brief_tool_takes_what_the_other_takes() -> None:
    for brief, whole in zip(tools.last_tools(NAMED), tools.last_tools(HOST), strict=True):
        assert brief["annotations"] == whole["annotations"]
        assert brief["inputSchema"].get("required") == whole["inputSchema"].get("required")
        assert brief["inputSchema"]["properties"].keys() == whole["inputSchema"]["properties"].keys()


def test_only_true_asks_for_details() -> None:
    assert tools.asks_details({"details": True})
    assert not any(map(tools.asks_details, ({}, {"details": "yes"}, {"details": 1}, None, [1], "details")))


def test_mcp_status_is_offered_only_with_hot_reload_and_takes_nothing() -> None:
    [status] = [tool for tool in tools.first_tools(NAMED.replace(hot_reload=True)) if tool["name"] == "mcpStatus"]

    assert status["inputSchema"] == {"type": "object", "properties": {}}
    assert status["annotations"]["readOnlyHint"] is True
    assert "mcpStatus" not in names(tools.first_tools(HOST))


def test_the_text_of_a_health_report_is_one_line_of_json() -> None:
    report = {"status": "Healthy", "path": "/tmp/a\nb", "words": "grün"}

    result = tools.health_result(report, "2025-06-18")
    plain = tools.health_result(report, "2025-03-26")

    [content] = result["content"]
    assert "\n" not in content["text"]
    assert json.loads(content["text"]) == result["structuredContent"] == report
    assert plain == tools.health_result(report, None) == {"content": [content], "isError": False}
    assert [tools.health_result(report, later) == result for later in ("2025-11-25", "2026-07-28")] == [True, True]


def test_instructions_and_capabilities_of_the_upstream_stand_beside_ours() -> None:
    joined = tools.instructions("Say please.")
    both = tools.capabilities({"tools": {}, "experimental": {"fast": {}}})

    assert tools.HEALTH in joined
    assert joined.endswith("\n\nSay please.")
    assert tools.instructions(None) in joined
    assert both == {**tools.CAPABILITIES, "experimental": {"fast": {}}}
