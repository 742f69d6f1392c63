"""What people and agents are told of hot reload: what fails, as long as it lasts, and how it stands now."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from support.proxies import Proxies, ProxyClient
from support.reloading import BuiltServer, Extension, PythonServer, changed_proxy, hot, renew, state_of, text_of
from support.waiting import wait_for


def told(proxies: Proxies) -> Any:
    """What `uno-devserver health` tells of it."""
    return proxies.machine.run("health", "--json")


def failures(client: ProxyClient) -> list[str]:
    found = [issue for issue in client.health()["issues"] if issue["code"] == "ReloadFailed"]
    return [f"{issue['message']} {issue['remediation']}" for issue in found]


def test_a_build_that_fails_is_an_issue_until_it_is_mended(proxies: Proxies) -> None:
    # given a server whose code does not compile
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    assert client.call("answer") == "one"
    assert failures(client) == []
    server.say("two", "build fails")

    # when a call has it built
    assert state_of(client.call_result("answer")) == "buildFailed"

    # then all who ask are told, with the build and its log
    [message] = failures(client)
    assert "npm run build of its new code failed" in message
    log = message.rpartition(" is in ")[2].rstrip(".")
    assert "TS2322" in open(log, encoding="utf-8").read()  # noqa: SIM115
    wait_for(lambda: "ReloadFailed" in told(proxies).issue_codes, "told by the command, too")
    assert told(proxies).exit_code == 1
    lines = proxies.machine.run("health").stdout.splitlines()
    assert any(line.startswith("  Last Build: npm run build, ") and f"failed; see {log}" in line for line in lines)
    assert "  Last Reload: none since the proxy started" in lines

    # and not any more when it is mended
    server.say("three")
    renew(client, "three")
    assert failures(client) == []
    wait_for(lambda: told(proxies).exit_code == 0, "healthy by the command, too")


@pytest.mark.parametrize("kind", [BuiltServer, PythonServer])
def test_a_swap_that_failed_is_forgotten_when_its_code_was_taken_back(
    proxies: Proxies, kind: type[BuiltServer | PythonServer]
) -> None:
    # given new code that does not start beside the old one
    server = kind(proxies.machine, hotReload={"strategy": "swap"})
    client = hot(proxies)
    server.say("two", "dies")
    assert state_of(client.call_result("answer")) == "swapFailed"
    wait_for(lambda: "ReloadFailed" in told(proxies).issue_codes, "told by the command, too")

    # when it is taken back, and somebody asks
    server.say("one")
    assert client.call("answer") == "one"

    # then nobody is told of it any more, and a crash starts the old code
    assert failures(client) == []
    wait_for(lambda: told(proxies).exit_code == 0, "healthy by the command, too")
    os.kill(server.journal.events("start")[0]["pid"], signal.SIGKILL)
    client.wait_connected(generation=2)
    assert client.call("answer") == "one"
    assert server.journal.builds == (2 if kind is BuiltServer else 0)


def test_new_code_that_does_not_start_is_told_once_also_by_the_next_call(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "dies")
    client.call_result("answer")

    status = client.call_result("mcpStatus")
    [issue] = [issue for issue in client.health()["issues"] if issue["severity"] == "Fatal"]
    result = client.call_result("answer")

    assert "did not start with its new code" in issue["message"]
    for text in (text_of(status), text_of(result)):
        assert text.count("two cannot begin") == text.count("did not start") == 1, text
        assert "again and again" not in text
    assert state_of(result) == "failed"


def test_the_number_of_files_is_told_as_soon_as_it_is_known(proxies: Proxies) -> None:
    PythonServer(proxies.machine)
    client = hot(proxies)
    client.call("answer")

    assert client.health()["proxy"]["hotReload"]["packages"][0]["files"] == 2
    wait_for(
        lambda: told(proxies).json["proxies"][0].get("hotReload", {}).get("packages", [{}])[0].get("files") == 2,
        "known to the command, too",
    )
    assert client.health()["proxy"]["hotReload"]["state"] == "idle"


def client_of(client: ProxyClient) -> dict[str, Any]:
    about: dict[str, Any] = client.health()["proxy"]["hotReload"]["client"]
    return about


def test_a_client_process_that_died_is_not_told_as_running(proxies: Proxies) -> None:
    Extension(PythonServer(proxies.machine))
    client = hot(proxies)
    pid = wait_for(lambda: client_of(client)["ready"] and client_of(client)["processId"], "ready")

    os.kill(pid, signal.SIGKILL)

    wait_for(lambda: not client_of(client)["running"], "told as ended")
    wait_for(lambda: "ClientNotReady" in told(proxies).issue_codes, "told by the command, too")


def test_a_client_process_that_does_not_get_ready_is_told_with_the_result(proxies: Proxies) -> None:
    # given a client that never says what the config waits for
    server = PythonServer(proxies.machine)
    extension = Extension(server)
    server.write_config(client=server.config["client"] | {"readyPattern": "^it never says this$"})
    client = hot(proxies, prefix=changed_proxy("hotreload.client_app", "ClientLimits", ready_seconds=0.3))
    wait_for(lambda: client_of(client)["problem"], "given up")

    # when the extension is rebuilt
    extension.say("second")
    result = client.call_result("answer")

    # then the call is run, and says why the client is not there
    assert state_of(result) == "extensionReloaded"
    assert "its client is not ready: The client" in text_of(result)
    assert "client.readyPattern within 0.3 s" in text_of(result)
    assert "ClientNotReady" in [issue["code"] for issue in client.health()["issues"]]


def test_a_host_without_add_ins_has_no_tools_whoever_is_asked(proxies: Proxies) -> None:
    (proxies.machine.workspace / ".devtools" / "addins").mkdir(parents=True)
    client = proxies.connected()

    def connected() -> Any:
        report = told(proxies).json
        return report if [proxy["state"] for proxy in report["proxies"]] == ["Connected"] else None

    report = wait_for(connected, "a status of the proxy that is connected")

    assert (report["hostKind"], report["toolCount"], report["proxies"][0]["toolCount"]) == ("bundled", 0, 0)
    assert client.health()["toolCount"] == 0
