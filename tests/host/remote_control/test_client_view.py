"""What Uno's client shows its user of a bundled Host, worked out from the messages by the client's rules."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from host.remote_control.apps import SERVER_SCOPE, app_at
from support.bundled import BundledHost
from support.golden import GOLDEN
from uno_devserver.host.remote_control.server_scope import NEEDS_DOTNET

VERSION = "6.8.0-dev.17+5e1f"  # of the client, and of the packages that the app was built with
REQUIRED = ("Sample.Generic", "Sample.Plain", "Sample.Other")


class View(NamedTuple):
    version_mismatch: bool  # "restart Visual Studio"
    fatal: str | None
    opens_edits: bool
    missing: Mapping[str, str]  # the required processors that are not loaded, and why


async def view(port: int, processors: Path, *, metadata_updates: bool) -> View:
    """The conversation with which a client begins."""
    async with app_at(port) as app:
        await app.send(SERVER_SCOPE, "KeepAliveMessage", {"AssemblyVersion": VERSION, "SequenceId": 1})
        alive = json.loads((await app.receive()).content)
        request = {"BasePath": str(processors), "AppInstanceId": "app-1"}
        _, discovered = await app.ask(SERVER_SCOPE, "ProcessorsDiscovery", request)
        configuration = {"ProjectPath": "/src/App.csproj", "EnableMetadataUpdates": metadata_updates}
        await app.send("HotReload", "ConfigureServer", configuration)
        received = [await app.receive(), await app.receive()]
    [status] = [json.loads(frame.content) for frame in received if frame.name == "HotReloadStatusMessage"]
    listed = {processor["Type"]: processor for processor in discovered["Processors"]}
    missing = {
        name: listed[name]["LoadError"] if name in listed else "Processor not found by dev-server"
        for name in REQUIRED
        if name not in listed or not listed[name]["IsLoaded"]
    }
    return View(alive["AssemblyVersion"] != VERSION, status["ServerError"], "State" in status, missing)


@pytest.mark.parametrize("metadata_updates", [True, False])
async def test_it_shows_that_it_is_connected_and_which_processors_are_missing_with_what_to_do(
    tmp_path: Path, metadata_updates: bool
) -> None:
    folder = tmp_path / "processors" / "net10.0"
    folder.mkdir(parents=True)
    sample = GOLDEN / "dotnet-cli" / "processors" / "Sample.Processors.dll"
    shutil.copy(sample, folder / "Uno.UI.RemoteControl.Server.Processors.dll")

    with BundledHost(tmp_path, "--addins", ";") as host:
        shown = await view(host.port, folder.parent, metadata_updates=metadata_updates)

    assert not shown.version_mismatch
    assert shown.opens_edits
    assert (shown.fatal is None) is not metadata_updates, "a fatal error is only for apps that asked for updates"
    assert shown.missing == {
        "Sample.Generic": NEEDS_DOTNET,
        "Sample.Plain": NEEDS_DOTNET,
        "Sample.Other": "Processor not found by dev-server",
    }
    assert "--host dotnet" in NEEDS_DOTNET
    assert shown.fatal is None or "--host dotnet" in shown.fatal
