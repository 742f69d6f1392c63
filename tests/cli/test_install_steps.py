"""What `mcp install` says is left to do; what the clients ask for has its own table."""

from __future__ import annotations

from support.machine import Machine
from support.registration import Clients


def test_only_a_command_that_was_written_just_now_is_looked_for(machine: Machine) -> None:
    clients = Clients(machine)
    clients.write(".cursor/mcp.json", {"mcpServers": {"other": {"url": "http://localhost:5000/mcp"}}})

    both = clients.install("cursor", "--release").json["nextSteps"]
    clients.uninstall("cursor")
    address = clients.install("cursor", "--servers", "UnoDocs").json["nextSteps"]

    assert [step for step in both if "PATH" in step] == [
        "'uvx' is not on PATH: install it, or register this program by its path: --runner path."
    ]
    assert not [step for step in address if "PATH" in step]
