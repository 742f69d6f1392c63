"""Everything that MCP has, through the proxy: both eras in front, a Host over HTTP or a command on pipes behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.odd_servers import odd_server
from support.proxies import ERAS, Message, Proxies, ProxyClient

from .conftest import Workbench

# A command of one era: with the two eras of clients, these are the four pairings.
COMMANDS = pytest.mark.parametrize("era", ["handshake", "modern"], ids=["handshake command", "modern command"])
QUESTIONS: dict[str, tuple[Message, Message, Message]] = {
    "sampling/createMessage": (
        {"sampling": {}},
        {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 10},
        {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m", "stopReason": "endTurn"},
    ),
    "elicitation/create": (
        {"elicitation": {"form": {}}},
        {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}},
        {"action": "accept", "content": {"name": "Ada"}},
    ),
    "roots/list": ({"roots": {}}, {}, {"roots": [{"uri": "file:///a", "name": "a"}]}),
}


def answered(client: ProxyClient, tool: str, arguments: Message, answers: dict[str, Callable[[Message], Any]]) -> str:
    """The text of a call, whose questions the client answers: at once, or in the modern era by calling again."""
    client.replies.update(answers)
    params: Message = {"name": tool, "arguments": arguments}
    result = client.result("tools/call", params)
    while result.get("resultType") == "input_required":
        responses = {
            name: answers[question["method"]](question.get("params", {}))
            for name, question in result["inputRequests"].items()
        }
        again = {**params, "inputResponses": responses}
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        result = client.result("tools/call", again)
    assert not result.get("isError"), result
    return str(result["content"][0]["text"])


def start_bench(proxies: Proxies, modern: bool, capabilities: Message | None = None) -> ProxyClient:
    client = proxies.start()
    client.initialize(modern=modern, capabilities=capabilities)
    client.wait_connected()
    return client


def start_command(
    proxies: Proxies, era: str, modern: bool, capabilities: Message | None = None, **manners: object
) -> ProxyClient:
    client = proxies.start("--", *odd_server(era=era, **manners))
    client.initialize(modern=modern, capabilities=capabilities)
    client.wait_connected()
    return client


# --- the Host ---------------------------------------------------------------------------------------------------------


@ERAS
def test_resources_prompts_and_completions_of_the_host(proxies: Proxies, bench: Workbench, modern: bool) -> None:
    client = start_bench(proxies, modern)
    who = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "A"}}

    resources = [each["uri"] for each in client.result("resources/list")["resources"]]
    templates = [each["uriTemplate"] for each in client.result("resources/templates/list")["resourceTemplates"]]
    [content] = client.result("resources/read", {"uri": "bench://page/7"})["contents"]
    [prompt] = client.result("prompts/list")["prompts"]
    [message] = client.result("prompts/get", {"name": "greet", "arguments": {"who": "Ada"}})["messages"]

    assert {"uno://health", "bench://note"} <= set(resources)
    assert (templates, content["text"]) == (["bench://page/{number}"], "page 7")
    assert "no-such" in client.error("resources/read", {"uri": "bench://no-such"})["message"]
    assert (prompt["arguments"][0]["name"], message["content"]["text"]) == ("who", "Hello, Ada!")
    assert client.result("completion/complete", who)["completion"]["values"] == ["Ada", "Alan"]


def test_a_level_that_there_is_not_is_none(proxies: Proxies) -> None:
    client = proxies.connected("--", *odd_server(era="modern"), modern=True)
    client.call("echo", text="first")
    said = {"method": "notifications/message", "params": {"level": "error", "data": "heard"}}
    meta = {"io.modelcontextprotocol/logLevel": "loud"}

    answer = client.result("tools/call", {"name": "say", "arguments": said, "_meta": meta})

    assert answer["content"][0]["text"] == "said"
    assert not [each for each in client.heard("notifications/message") if each["data"] == "heard"]


@ERAS
@pytest.mark.parametrize("method", QUESTIONS)
def test_questions_of_the_host_reach_the_client_and_its_answers_go_back(
    proxies: Proxies, bench: Workbench, method: str, modern: bool
) -> None:
    capabilities, params, answer = QUESTIONS[method]
    client = proxies.start()
    client.replies["roots/list"] = lambda _: {"roots": []}
    client.initialize(modern=modern, capabilities=capabilities)
    client.wait_connected()
    asked: list[Message] = []

    def reply(question: Message) -> Message:
        asked.append(question)
        return answer

    told = answered(client, "ask", {"method": method, "params": params}, {method: reply})

    assert json.loads(told) == answer
    assert params.items() <= asked[-1].items()


def test_a_subscription_tells_of_each_change(proxies: Proxies, bench: Workbench) -> None:
    client = start_bench(proxies, False)
    client.result("resources/subscribe", {"uri": "bench://note"})

    for number in range(3):
        client.call("write_note", text=str(number))
        client.hear("notifications/resources/updated", after=number)

    assert client.heard("notifications/resources/updated")[0]["uri"] == "bench://note"
    client.result("resources/unsubscribe", {"uri": "bench://note"})
    heard = len(client.heard("notifications/resources/updated"))
    client.call("write_note", text="unheard")
    assert client.call("echo", text="on") == "on"
    assert len(client.heard("notifications/resources/updated")) == heard


def test_a_modern_subscription_tells_of_each_change(proxies: Proxies, bench: Workbench) -> None:
    client = start_bench(proxies, True)
    client.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["bench://note"]}}, "stream")
    client.hear("notifications/subscriptions/acknowledged")

    client.call("write_note", text="new")

    updated = client.hear("notifications/resources/updated")
    assert updated["uri"] == "bench://note"
    assert updated["_meta"]["io.modelcontextprotocol/subscriptionId"] == "stream"


# --- a command, in the four pairings of eras --------------------------------------------------------------------------


@COMMANDS
@ERAS
def test_what_a_command_offers_is_offered(proxies: Proxies, era: str, modern: bool) -> None:
    client = start_command(proxies, era, modern)

    assert {"echo", "uno_health", "uno_execute_tool"} <= set(client.tools())
    assert "uno_app_select_solution" not in client.tools(), "there is no solution behind a command"
    assert {"odd://note", "uno://health"} <= {each["uri"] for each in client.result("resources/list")["resources"]}
    assert client.result("prompts/list")["prompts"][0]["name"] == "greet"
    [template] = client.result("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "odd://note/{name}"
    assert client.result("resources/read", {"uri": "odd://note"})["contents"][0]["text"] == "noted"
    assert client.result("prompts/get", {"name": "greet"})["messages"][0]["content"]["text"] == "Hello!"
    completion = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": ""}}
    assert client.result("completion/complete", completion)["completion"]["values"] == ["Ada", "Alan"]
    assert client.call("echo", text="ü") == "ü"


@COMMANDS
@ERAS
def test_errors_progress_and_what_nobody_knows_pass_as_they_are(proxies: Proxies, era: str, modern: bool) -> None:
    client = start_command(proxies, era, modern)
    own = {"code": -31999, "message": "own", "data": {"why": ["x"]}}

    error = client.error("tools/call", {"name": "error", "arguments": own})
    unknown = client.result("odd/future", {"new": {"deep": [1, None, "ü"]}})
    client.result("tools/call", {"name": "progress", "arguments": {"steps": 2}, "_meta": {"progressToken": "mine"}})

    assert error == own
    assert client.call_result("fail")["isError"] is True
    assert (unknown["method"], unknown["params"]["new"]) == ("odd/future", {"deep": [1, None, "ü"]})
    assert unknown["fieldOfTheFuture"] == {"ä": 1}
    progress = [(each["progressToken"], each["progress"]) for each in client.heard("notifications/progress")]
    assert progress == [("mine", 1), ("mine", 2)]


@COMMANDS
def test_tools_that_a_command_removes_are_gone(proxies: Proxies, era: str) -> None:
    client = start_command(proxies, era, False)

    heard = len(client.heard("notifications/tools/list_changed"))

    client.call("remove", names=["echo", "count"])

    client.hear("notifications/tools/list_changed", after=heard)
    assert not {"echo", "count"} & set(client.tools())
    assert client.error("tools/call", {"name": "echo", "arguments": {}})["code"] == -32602


@COMMANDS
def test_what_a_command_says_of_itself_is_passed_on(proxies: Proxies, era: str) -> None:
    client = start_command(proxies, era, False)
    client.wait_health(lambda report: report["proxy"]["catalogueAgeSeconds"] is not None, "with a catalogue on disk")
    client.close_stdin()
    client.exit_code()

    second = proxies.start("--", *odd_server(era=era))
    said = second.initialize()

    assert "Be odd." in said["instructions"], "known from the catalogue"
    assert said["capabilities"]["completions"] == {}
    upstream = second.wait_connected()["proxy"]["upstream"]
    assert (upstream["name"], upstream["version"], upstream["kind"]) == ("odd", "1.0", "command")


@COMMANDS
def test_a_command_knows_who_its_client_is(proxies: Proxies, era: str) -> None:
    client = start_command(proxies, era, False, {"sampling": {}, "elicitation": {"form": {}, "url": {}}})

    facts = json.loads(client.call("facts"))

    assert facts["era"] == era
    assert facts["cwd"] == str(proxies.machine.workspace)
    assert {"sampling", "elicitation"} <= facts["capabilities"].keys()
