"""An IDE in C# on the channel of the bundled Host: .NET's pipe client, type names and Newtonsoft.Json."""

from __future__ import annotations

import json
from typing import Any

from dotnet.sdk import Client, Conversation
from support.bundled import BundledHost
from support.machine import Machine

CHANNEL = "a chan; ü"
PLAIN_CHANNEL = "{chan-ü}"  # the only kind that the Host takes by HTTP
MVID = "0b0a9a3c-5f4b-4a5d-8f1e-0123456789ab"
LAUNCH = {"Mvid": MVID, "Platform": "desktop ü", "IsDebug": True, "Ide": "vs", "Plugin": "1.0"}


def _host(machine: Machine, *arguments: str) -> BundledHost:
    return BundledHost(machine.root, "--addins", ";", *arguments, environ={"TMPDIR": machine.environment["TMPDIR"]})


def _is_greeted(ide: Conversation) -> Any:
    """The status, after the first sign of life."""
    alive, status = ide.receive(), ide.receive()
    assert (alive["method"], alive["type"]) == ("MessageFromDevServer", "KeepAliveIdeMessage")
    assert status["type"] == "DevelopmentEnvironmentStatusIdeMessage"
    assert alive["same"]
    assert status["same"]
    return json.loads(status["body"])


def test_an_ide_finds_the_channel_by_name_and_reads_every_message(net_machine: Machine, client: Client) -> None:
    with _host(net_machine, "--ideChannel", CHANNEL), client.talk("ide", CHANNEL) as ide:
        status = _is_greeted(ide)

    assert status["Status"] == 2
    assert status["Component"]["Id"] == "uno.dev_server"


def test_what_an_ide_sends_is_understood_and_answered(net_machine: Machine, client: Client) -> None:
    with _host(net_machine, "--ideChannel", CHANNEL) as host, client.talk("ide", CHANNEL) as ide:
        _is_greeted(ide)

        ide.send("AppLaunchRegisterIdeMessage", json.dumps(LAUNCH))
        ide.send("KeepAliveIdeMessage", json.dumps({"Source": "IDE", "SequenceId": 1}))

        assert [ide.receive(), ide.receive()] == [{"id": 1, "error": None}, {"id": 2, "error": None}]
        assert host.health()["ideChannelConnected"]


def test_messages_that_follow_call_the_assembly_as_the_ide_does(net_machine: Machine, client: Client) -> None:
    """The type of each message is resolved by .NET, which refuses a version that it has not loaded."""
    with _host(net_machine, "--ideChannel", CHANNEL), client.talk("ide", CHANNEL) as ide:
        _is_greeted(ide)
        ide.send("KeepAliveIdeMessage", json.dumps({"Source": "IDE", "SequenceId": 1}))
        assert ide.receive() == {"id": 1, "error": None}

        alive = ide.receive()  # ten seconds later

    assert (alive["type"], alive["same"]) == ("KeepAliveIdeMessage", True)


def test_dotnet_binds_the_host_to_another_channel_and_connects_there(net_machine: Machine, client: Client) -> None:
    with _host(net_machine) as host:
        reply = client.ask("rebind", str(host.port), PLAIN_CHANNEL)
        assert (reply["status"], json.loads(reply["body"])) == (200, {"ideChannelId": PLAIN_CHANNEL})
        with client.talk("ide", PLAIN_CHANNEL) as ide:
            _is_greeted(ide)
        [server] = client.ask("servers")

    assert server["Channel"] == PLAIN_CHANNEL


def test_the_channel_listens_again_for_the_next_ide(net_machine: Machine, client: Client) -> None:
    with _host(net_machine, "--ideChannel", CHANNEL):
        for _ in range(3):
            with client.talk("ide", CHANNEL) as ide:
                _is_greeted(ide)
