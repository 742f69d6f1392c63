"""The client that the conformance suite tests: the proxy, and before it an AI client that does what a scenario asks.

The suite calls it with the URL of its server, and names the scenario in a variable. The AI client lists what there is,
calls every tool, and answers questions with the defaults of their schemas; all of it goes through the proxy. Where a
server asks for a sign-in, its user runs `login`, again with the scope that a refused call names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.machine import Machine
from support.proxies import MODERN, NEWEST_HANDSHAKE, Message, Proxies, ProxyClient
from support.sign_ins import login

SIGN_INS = 3  # a user who is refused so often gives up
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"  # the document that the suite expects
REFUSALS = ("UpstreamUnauthorized", "UpstreamForbidden")
ECHO = "json_schema_echo"
CAPABILITIES = {"elicitation": {"form": {"applyDefaults": True}}, "sampling": {}, "roots": {}}


def main() -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") or NEWEST_HANDSHAKE
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        if scenario.startswith("auth/"):
            use_signed_in(machine, scenario, context, modern=version == MODERN)
            return
        with Proxies(machine) as proxies:
            client = proxies.start("--upstream-url", sys.argv[-1], "--wait-calls")
            client.replies["elicitation/create"] = with_defaults
            client.initialize(capabilities=CAPABILITIES, modern=version == MODERN)
            client.wait_connected()
            run(client, scenario, context)


def run(client: ProxyClient, scenario: str, context: dict[str, Any]) -> None:
    if scenario == "initialize":
        return
    tools = [tool for tool in client.result("tools/list")["tools"] if not tool["name"].startswith("uno_")]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    calls = context.get("toolCalls") or [
        {"name": name, "arguments": arguments_of(schema)} for name, schema in schemas.items()
    ]
    if ECHO in schemas:  # wants the schema of the other tool as it came
        calls = [{"name": ECHO, "arguments": {"schema": schema}} for name, schema in schemas.items() if name != ECHO]
    for call in calls:
        answered(client, {"name": call["name"], "arguments": call.get("arguments", {})})
    for method, member, key in (("resources/list", "resources", "uri"), ("prompts/list", "prompts", "name")):
        for entry in client.result(method)[member]:
            client.request("resources/read" if key == "uri" else "prompts/get", {key: entry[key]})


def answered(client: ProxyClient, params: Message) -> None:
    """Call a tool, again with answers as long as a modern server asks for input."""
    result = client.request("tools/call", params).get("result", {})
    if result.get("resultType") == "input_required":
        questions = result.get("inputRequests", {})
        answers = {name: with_defaults(question["params"]) for name, question in questions.items()}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        answered(client, {**params, "inputResponses": answers, **state})


def arguments_of(schema: Message) -> Message:
    """Arguments that the schema allows, all of them."""
    values = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}, "null": None}
    properties = schema.get("properties", {})
    return {name: values.get(each.get("type", ""), "text") for name, each in properties.items()}


def with_defaults(params: Message) -> Message:
    properties = params.get("requestedSchema", {}).get("properties", {})
    content = {name: each["default"] for name, each in properties.items() if "default" in each}
    return {"action": "accept", "content": content}


# --- signing in


def use_signed_in(machine: Machine, scenario: str, context: dict[str, Any], *, modern: bool) -> None:
    url, options = sys.argv[-1], list[str]()
    if "client_id" in context:
        options += ["--client-id", context["client_id"]]
        machine.environment["UNO_DEVSERVER_CLIENT_SECRET"] = context.get("client_secret", "")
    elif scenario == "auth/basic-cimd":
        options += ["--client-id", CLIENT_METADATA]
    sign_in(machine, url, *options)
    for _ in range(SIGN_INS):
        with Proxies(machine) as proxies:
            client = proxies.start("--upstream-url", url, "--wait-calls")
            client.initialize(modern=modern)
            refusal = refused(client)
        if refusal is None:
            return
        scope = re.search(r"the scope '([^']+)'", refusal)
        sign_in(machine, url, *options, *(["--scope", scope[1]] if scope else []))
    raise SystemExit(f"refused {SIGN_INS} times: {refusal}")


def sign_in(machine: Machine, url: str, *options: str) -> None:
    result = login(machine, url, *options)
    if "error" in result:
        raise SystemExit(result["error"]["message"])


def refused(client: ProxyClient) -> str | None:
    """List the tools and call each of them; how the server refuses that, or None."""
    health = client.wait_health(
        lambda health: health["connectionState"] == "Connected" or any(code in str(health) for code in REFUSALS),
        "a connection or a refusal",
    )
    if health["connectionState"] != "Connected":
        return str(health)
    for tool in client.result("tools/list")["tools"]:
        if not tool["name"].startswith("uno_"):
            answer = str(client.request("tools/call", {"name": tool["name"], "arguments": {}}))
            if "HTTP 401" in answer or "HTTP 403" in answer:
                return answer
    return None


if __name__ == "__main__":
    main()
