"""What the IDE says reaches the launch monitor and the add-ins, whatever these do with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.addins import AddInFolder, until
from uno_devserver.host import server
from uno_devserver.host.app_launches import LaunchMonitor
from uno_devserver.host.ide.channel import IdeChannel
from uno_devserver.host.ide.message_types import environment_status
from uno_devserver.host.server import APP_LAUNCH, IdeMessages

MVID = "9f8f6a1e-4a2b-4f0e-8a65-0b7a3c9d1e2f"

BODY = """
import pathlib, threading
heard, go = pathlib.Path(addin.workspace, "heard"), pathlib.Path(addin.workspace, "go")

def note(word):
    with heard.open("a") as file:
        file.write(word + "\\n")

@addin.ide_message("Acme.Note")
def take(body: dict[str, Any], ide: Ide) -> None:
    if body["Word"] == "bad":
        raise ValueError("bad")
    note(body["Word"])

@addin.ide_message("Acme.Hang")
async def hang(body: dict[str, Any], ide: Ide) -> None:
    import asyncio
    while not go.exists():
        await asyncio.sleep(0.005)
    note("hung")
"""


async def deliver(addins: AddInFolder, launches: LaunchMonitor, *messages: tuple[str, dict[str, Any]]) -> None:
    async with addins.serve_register(BODY) as client:
        inbox = IdeMessages(launches, client.addins)
        inbox.ide = IdeChannel(on_message=inbox.handle, status=environment_status)
        for type_name, body in messages:
            await inbox.handle(type_name, body)
        (addins.folder / "go").touch()
        await until(lambda: not inbox._work)
        assert inbox.send("Acme.Note", {}) is False  # no IDE is connected


def heard(addins: AddInFolder) -> list[str]:
    return (addins.folder / "heard").read_text().split()


async def test_an_app_that_the_ide_launches_is_expected(addins: AddInFolder) -> None:
    launches = LaunchMonitor()

    await deliver(addins, launches, (APP_LAUNCH, {"Mvid": MVID, "Platform": "Desktop", "Ide": "vs", "Plugin": "1"}))

    (launch,) = launches.snapshot()
    assert (launch["mvid"], launch["ide"]) == (MVID, "vs")
    launches.close()


async def test_a_launch_without_an_app_is_told(addins: AddInFolder, capsys: pytest.CaptureFixture[str]) -> None:
    launches = LaunchMonitor()

    await deliver(addins, launches, (APP_LAUNCH, {"Ide": "vs", "Plugin": "1"}))

    assert launches.snapshot() == []
    assert "needs Mvid, Ide and Plugin" in capsys.readouterr().err


async def test_add_ins_get_their_messages_in_order_and_a_failure_costs_one(addins: AddInFolder) -> None:
    words = ["one", "bad", "two", "three"]

    await deliver(addins, LaunchMonitor(), *(("Acme.Note", {"Word": word}) for word in words), ("Acme.Other", {}))

    assert heard(addins) == ["one", "two", "three"]


async def test_an_add_in_that_hangs_does_not_hold_up_the_next_message(
    addins: AddInFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "HANDLER_SECONDS", 0.05)

    async with asyncio.timeout(20):
        await deliver(addins, LaunchMonitor(), ("Acme.Hang", {}), ("Acme.Note", {"Word": "next"}))

    assert heard(addins) == ["next", "hung"]
    assert "[sample] Acme.Hang of the IDE is in work for 0.05 s and more" in capsys.readouterr().err
