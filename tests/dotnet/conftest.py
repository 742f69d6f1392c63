"""Real .NET for the tests of this folder. They run in `make test-dotnet`, which installs it and says where it is."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dotnet.sdk import Client, Sdk
from support.hosts import end
from support.machine import Machine
from support.workspace import WorkspaceBuilder

INSTALLED = os.environ.get("UNO_TEST_DOTNET")
collect_ignore_glob = [] if INSTALLED else ["test_*.py"]


@pytest.fixture(scope="session")
def sdk() -> Sdk:
    assert INSTALLED
    return Sdk(Path(INSTALLED))


@pytest.fixture(scope="session")
def host_dll(sdk: Sdk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sdk.compile("host", "Small.Host", tmp_path_factory.mktemp("host") / "a folder; with ümlauts")


@pytest.fixture(scope="session")
def client_dll(sdk: Sdk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sdk.compile_client(tmp_path_factory.mktemp("client"))


@pytest.fixture
def net_machine(machine: Machine, sdk: Sdk) -> Iterator[Machine]:
    """A machine with real .NET."""
    # Pipes are sockets, whose paths are short.
    with tempfile.TemporaryDirectory(prefix="u") as temp:
        machine.environment |= {
            **sdk.environment(machine.home),
            "TMPDIR": temp,
            "HOST_LOG": str(machine.root / "hosts.jsonl"),
        }
        yield machine


@pytest.fixture
def client(net_machine: Machine, sdk: Sdk, client_dll: Path) -> Client:
    """.NET programs of the same user on that machine."""
    own = {"XDG_DATA_HOME": str(net_machine.data), "TMPDIR": net_machine.environment["TMPDIR"]}
    return Client(sdk, client_dll, own)


@pytest.fixture
def net_workspace(net_machine: Machine) -> WorkspaceBuilder:
    return WorkspaceBuilder(net_machine, "My; Größe")


class Launches:
    """The C# Hosts that were launched on a machine."""

    def __init__(self, machine: Machine, dll: Path) -> None:
        self.dll = str(dll)
        self._log = machine.root / "hosts.jsonl"

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()] if self._log.exists() else []

    def end(self) -> None:
        for launch in self.all():
            end(launch["pid"], self.dll)


@pytest.fixture
def launches(net_machine: Machine, host_dll: Path) -> Iterator[Launches]:
    launches = Launches(net_machine, host_dll)
    yield launches
    launches.end()
