"""Servers at URLs that want credentials, or that only a company's proxy reaches, as an AI client meets them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.certificates import private_certificates
from support.files import write
from support.guarded_server import TOKEN, GuardedServer
from support.http_proxy import LoopbackProxy
from support.machine import Machine
from support.ports import lasting_port
from support.proxies import Proxies, ProxyClient
from uno_devserver.proxy.own_tools import OWN_TOOLS

CONFIG = ".devtools/host.config.jsonc"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Callable[..., GuardedServer]]:
    servers: list[GuardedServer] = []

    def start(*arguments: str) -> GuardedServer:
        servers.append(GuardedServer(tmp_path, *arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def with_token(server: GuardedServer) -> list[str]:
    return ["--upstream-url", server.url, "--header", "Authorization: Bearer ${TOKEN}", "--header", "X-Other: a:b"]


def failure(client: ProxyClient) -> str:
    """What a call is told that fails."""
    result = client.call_result("steps")
    assert result["isError"], result
    return str(result["content"][0]["text"])


# --- headers


@pytest.mark.parametrize(("arguments", "transport"), [((), "Streamable HTTP"), (("sse",), "HTTP+SSE")])
def test_headers_open_a_server_over_both_transports_which_health_names(
    proxies: Proxies, guarded: Callable[..., GuardedServer], arguments: tuple[str, ...], transport: str
) -> None:
    client = proxies.connected(*with_token(guarded(*arguments)), env={"TOKEN": TOKEN})

    assert client.call("steps") == "done"
    assert client.health()["proxy"]["upstream"]["transport"] == transport


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--header", "A: ${UNSET}"], "The value of --header (number 1) cannot be used: the variable UNSET is not set"),
        (["--header", "A: b", "--header", "secret"], "The value of --header (number 2) is not a header."),
        (["--header", "Host: secret"], "(number 1) cannot be used: the header Host is set by the transport itself."),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(
    machine: Machine, options: list[str], problem: str
) -> None:
    done = machine.run("mcp", "start", "--upstream-url", "http://127.0.0.1:1/mcp", *options)

    assert done.exit_code == 2
    assert problem in done.stderr
    assert "secret" not in done.stderr


def test_headers_without_a_url_are_refused(machine: Machine) -> None:
    done = machine.run("mcp", "start", "--header", "A: b")

    assert (done.exit_code, "--header needs --upstream-url" in done.stderr) == (2, True)


# --- refusals


@pytest.mark.parametrize("arguments", [(), ("sse",)])
@pytest.mark.parametrize(
    ("status", "code", "step"),
    [(401, "UpstreamUnauthorized", "Correct the Authorization header"), (403, "UpstreamForbidden", "allowed to")],
)
def test_a_refusal_is_named_with_the_next_step_and_another_call_tries_again(
    proxies: Proxies,
    guarded: Callable[..., GuardedServer],
    arguments: tuple[str, ...],
    status: int,
    code: str,
    step: str,
) -> None:
    server = guarded(*arguments)
    server.allow(otherwise=status)
    client = proxies.start(*with_token(server), env={"TOKEN": TOKEN})
    client.initialize()
    client.wait_state("Degraded")

    [issue] = [issue for issue in client.health()["issues"] if issue["severity"] == "Fatal"]
    assert (issue["code"], f"HTTP {status}" in issue["message"], step in issue["remediation"]) == (code, True, True)
    told = failure(client)
    assert f"(HTTP {status})" in told
    assert step in told
    server.allow(TOKEN)
    client.wait_health(lambda _: not client.call_result("steps").get("isError"), "connected by a call")


@pytest.mark.parametrize("arguments", [(), ("sse",)])
def test_a_token_that_is_not_accepted_any_more_ends_the_connection_and_the_call_was_not_run(
    proxies: Proxies, guarded: Callable[..., GuardedServer], arguments: tuple[str, ...]
) -> None:
    server = guarded(*arguments)
    client = proxies.connected(*with_token(server), env={"TOKEN": TOKEN})
    assert client.call("steps") == "done"

    server.allow()

    told = failure(client)
    assert "does not accept the Authorization header that it was given (HTTP 401)" in told
    assert "has not been run" in told
    client.wait_state("Degraded")
    assert client.issue_codes() == ["UpstreamUnauthorized"]
    server.allow(TOKEN)
    client.wait_health(lambda _: not client.call_result("steps").get("isError"), "connected by a call")


def test_a_call_that_is_forbidden_fails_alone(proxies: Proxies, guarded: Callable[..., GuardedServer]) -> None:
    server = guarded()
    client = proxies.connected(*with_token(server), env={"TOKEN": TOKEN})

    server.allow(otherwise=403)

    told = failure(client)
    assert "not allowed to do this (HTTP 403); it asks for the scope 'admin'" in told
    server.allow(TOKEN)
    assert client.call("steps") == "done"
    assert client.health()["proxy"]["generation"] == 1


@pytest.mark.parametrize("arguments", [(), ("sse",)])
def test_a_server_that_was_started_again_is_found_and_called(
    proxies: Proxies, guarded: Callable[..., GuardedServer], arguments: tuple[str, ...]
) -> None:
    port = lasting_port()
    first = guarded(*arguments, f"port={port}")
    client = proxies.connected(*with_token(first), env={"TOKEN": TOKEN})
    assert client.call("steps") == "done"

    first.stop()
    guarded(*arguments, f"port={port}")

    client.wait_health(lambda _: not client.call_result("steps").get("isError"), "connected again")


# --- the config


def configure(machine: Machine, **server: Any) -> None:
    write(machine.workspace / CONFIG, json.dumps({"mcpServer": server}))


def test_a_server_that_the_config_only_names_is_connected_to_after_agreement(
    machine: Machine, guarded: Callable[..., GuardedServer]
) -> None:
    server = guarded()
    write(machine.workspace / "keys.env", f"KEY={TOKEN}\n")
    configure(machine, url=server.url, headers={"Authorization": "Bearer ${KEY}"}, envFile="../keys.env")
    with Proxies(machine) as proxies:
        client = proxies.start()
        client.initialize()
        client.wait_state("Degraded")
        assert "WorkspaceNotTrusted" in client.issue_codes()
        assert server.asked() == 0, "nothing is sent before the user has agreed"

        agreed = machine.run("trust")

        assert f"A connection to the MCP server at {server.url}, with Authorization: Bearer ${{KEY}}" in agreed.stdout
        client.wait_connected()
        assert client.call("steps") == "done"
        assert client.health()["proxy"]["upstream"]["owned"] is False
        configure(machine, url=server.url, headers={"Authorization": "Bearer ${MISSING}"})
        machine.run("trust")
        client.wait_health(
            lambda report: any(
                issue["code"] == "ConfigInvalid" and "the variable MISSING is not set" in issue["message"]
                for issue in report["issues"]
            ),
            "without its variable",
        )


# --- lists


def test_our_own_tools_do_not_come_and_go_with_the_connection(
    proxies: Proxies, machine: Machine, guarded: Callable[..., GuardedServer]
) -> None:
    server = guarded()
    configure(machine, url=server.url, headers={"Authorization": "Bearer ${TOKEN}"})
    client = proxies.start(env={"TOKEN": TOKEN, "UNO_DEVSERVER_TRUST": "1"})
    client.initialize()

    listed = [client.tools()]
    client.wait_connected()
    listed.append(client.tools())
    server.stop()
    client.wait_health(lambda health: health["status"] != "Healthy", "the end of the server to be noticed")
    listed.append(client.tools())

    assert [set(tools) & OWN_TOOLS for tools in listed] == [set(listed[0])] * 3


# --- proxies and certificates


@pytest.mark.parametrize("by_config", [False, True], ids=["typed", "config"])
def test_a_server_with_a_private_certificate_is_reached_through_the_proxy_of_the_environment(
    proxies: Proxies, machine: Machine, guarded: Callable[..., GuardedServer], tmp_path: Path, by_config: bool
) -> None:
    certificates = private_certificates(tmp_path, "weather.test")
    server = guarded(f"tls={certificates.server}")
    url = "https://weather.test/mcp"
    options = ["--upstream-url", url, "--header", "Authorization: Bearer ${TOKEN}"]
    if by_config:
        configure(machine, url=url, headers={"Authorization": "Bearer ${TOKEN}"})
        options = []
    with LoopbackProxy({"weather.test": server.port}) as proxy:
        env = {"TOKEN": TOKEN, "HTTPS_PROXY": proxy.address, "NODE_EXTRA_CA_CERTS": str(certificates.authority)}
        client = proxies.connected(*options, env=env)

        assert client.call("steps") == "done"
        asked = set(proxy.asked)
        client.close_stdin()
        assert client.ends()

    assert asked == {"CONNECT weather.test:443 HTTP/1.1"}
