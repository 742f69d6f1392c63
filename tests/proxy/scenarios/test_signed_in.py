"""A proxy in front of a server that needs a sign-in: with tokens, without, and when they expire or are revoked."""

from __future__ import annotations

import json
from pathlib import Path

from support.machine import Machine
from support.proxies import ERAS, Proxies, ProxyClient
from support.sign_ins import AuthorizationServer, login, stored

UNAUTHORIZED = "UpstreamUnauthorized"


def refused(client: ProxyClient) -> str:
    """What a call is told once the server has refused it."""
    client.wait_health(lambda health: UNAUTHORIZED in str(health), "the refusal")
    return str(client.request("tools/call", {"name": "greet", "arguments": {"name": "you"}}))


@ERAS
def test_a_proxy_uses_the_sign_in(proxies: Proxies, machine: Machine, url: str, modern: bool) -> None:
    login(machine, url)

    client = proxies.connected("--upstream-url", url, modern=modern)

    assert client.call("greet", name="you") == "Hello, you!"


def test_a_proxy_that_is_refused_names_the_sign_in_and_continues_after_it(
    proxies: Proxies, machine: Machine, url: str
) -> None:
    client = proxies.start("--upstream-url", url, "--wait-calls")
    client.initialize()
    told = refused(client)

    login(machine, url)

    assert "uno-devserver login" in told
    assert client.call("greet", name="you") == "Hello, you!"


def test_a_proxy_that_starts_with_an_expired_token_renews_it(
    proxies: Proxies, machine: Machine, authorization: AuthorizationServer, url: str
) -> None:
    result = login(machine, url)
    record = stored(result)
    gone = {**record, "tokens": {**record["tokens"], "access_token": "expired"}, "expires_at": 1.0}
    Path(result["file"]).write_text(json.dumps(gone), "utf-8")

    client = proxies.connected("--upstream-url", url)

    assert client.call("greet", name="you") == "Hello, you!"
    assert stored(result)["tokens"]["access_token"] not in ("expired", record["tokens"]["access_token"])


def test_a_revoked_sign_in_is_told_and_a_new_one_heals_the_session(
    proxies: Proxies, machine: Machine, authorization: AuthorizationServer, url: str
) -> None:
    result = login(machine, url)
    client = proxies.connected("--upstream-url", url)
    authorization.revoke(stored(result))

    told = str(client.request("tools/call", {"name": "greet", "arguments": {"name": "you"}}))
    login(machine, url)
    client.wait_connected(generation=2)

    assert "uno-devserver login" in told
    assert client.call("greet", name="you") == "Hello, you!"


def test_a_token_for_one_server_opens_no_other_one(
    proxies: Proxies, machine: Machine, authorization: AuthorizationServer, url: str
) -> None:
    login(machine, url)
    other = authorization.protected_server(audience=url)  # it would take the token, if it were sent

    client = proxies.start("--upstream-url", other)
    client.initialize()

    assert "asks for credentials" in refused(client)


def test_a_header_that_the_user_gives_wins_over_the_sign_in(proxies: Proxies, machine: Machine, url: str) -> None:
    login(machine, url)

    client = proxies.start("--upstream-url", url, "--header", "Authorization: Bearer ${TOKEN}", env={"TOKEN": "mine"})
    client.initialize()

    assert "does not accept the Authorization header that it was given" in refused(client)


def test_a_server_of_the_config_uses_the_sign_in(proxies: Proxies, machine: Machine, url: str) -> None:
    login(machine, url)
    config = machine.workspace / ".devtools" / "host.config.jsonc"
    config.parent.mkdir()
    config.write_text(json.dumps({"mcpServer": {"url": url}}), "utf-8")

    client = proxies.connected(env={"UNO_DEVSERVER_TRUST": "1"})

    assert client.call("greet", name="you") == "Hello, you!"


def test_tokens_are_in_their_file_and_nowhere_else(
    proxies: Proxies, machine: Machine, authorization: AuthorizationServer, url: str
) -> None:
    """Not in a log, a status file, a catalogue, an answer, an environment or a command line."""
    result = login(machine, url)
    record = stored(result)
    client = proxies.connected("--upstream-url", url, "--inspector", "0", "--log-level", "trace")
    client.call("greet", name="you")
    authorization.revoke(record)
    answer = client.request("tools/call", {"name": "greet", "arguments": {"name": "you"}})
    secrets = [
        *(record["tokens"][name] for name in ("access_token", "refresh_token")),
        record["client"]["client_secret"],
    ]

    files = [path for path in machine.root.rglob("*") if path.is_file() and path != Path(result["file"])]
    texts = {str(path): path.read_bytes() for path in files}
    for pid in proxies.processes():
        texts |= {f"{pid} {name}": Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")}
    texts["answer"] = (json.dumps(answer) + json.dumps(client.health())).encode()

    assert any(name.endswith(".stderr") for name in texts)
    assert [name for name, text in texts.items() for secret in secrets if secret.encode() in text] == []
