"""Code of a workspace that leaves a mark when it is run, and the agreements that a user's state holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.files import write
from support.machine import Machine
from support.proxies import Message, Proxies, ProxyClient

CONFIG = ".devtools/host.config.jsonc"
ADDINS = ".devtools/addins"


class Marks:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._folder = machine.root / "marks"
        self._folder.mkdir()

    @property
    def left(self) -> set[str]:
        """What was run."""
        return {path.name for path in self._folder.iterdir()}

    def addin(self, name: str, mark: str) -> Path:
        source = f"open({str(self._folder / mark)!r}, 'w').close()\n\ndef register(addin):\n    pass\n"
        return write(self.machine.workspace / ADDINS / name, source)

    def program(self, path: Path, mark: str) -> Path:
        write(path, f"#!/bin/sh\n: > '{self._folder / mark}'\n").chmod(0o755)
        return path

    def file(self, path: str, content: str) -> Path:
        return write(self.machine.workspace / path, content)


def agreements(machine: Machine) -> list[str]:
    """What is kept of agreements, in files and as `trust --list` tells it."""
    kept = [path.name for path in (machine.state / "trust").glob("*")]
    return kept + [str(one) for one in machine.run("trust", "--list", "--json").json["agreements"]]


@contextmanager
def opened(machine: Machine) -> Iterator[tuple[ProxyClient, Message]]:
    """A proxy as a client starts it, which has started whatever it may, and its health report."""
    with Proxies(machine) as proxies:
        client = proxies.start(command=("--mcp-app",))
        client.initialize()
        yield client, settled(client)


def settled(client: ProxyClient) -> Message:
    return client.wait_health(
        lambda report: (
            report["connectionState"] == "Degraded"
            or (report["connectionState"] == "Connected" and report["proxy"]["listsFresh"])
        ),
        "settled",
    )
