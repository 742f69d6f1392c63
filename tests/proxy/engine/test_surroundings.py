"""The other servers of a machine, as a page shows them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.files import snapshot
from support.servers import Processes, Registry
from uno_devserver.proxy.inspection import page_events as module
from uno_devserver.proxy.inspection.page_events import machine_servers
from uno_devserver.system.folders import Folders, folders_on
from uno_devserver.system.processes import process_started
from uno_devserver.workspace.resolver import resolve


def folders(root: Path) -> Folders:
    return folders_on("linux", {"HOME": str(root), "XDG_DATA_HOME": str(root / "data")}, lambda: str(root))


def proxy_file(known: Folders, pid: int, **status: Any) -> None:
    folder = Path(known.state) / "proxies"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"processId": pid, "created": process_started(pid), **status}
    (folder / f"{pid}.json").write_text(json.dumps(document), "utf-8")


def test_on_an_empty_machine_there_are_none(tmp_path: Path) -> None:
    assert machine_servers(folders(tmp_path), None) == {"servers": [], "proxies": []}


def test_hosts_are_told_as_the_command_line_does_and_nothing_is_removed(tmp_path: Path, processes: Processes) -> None:
    known = folders(tmp_path)
    registry = Registry(Path(known.registry))
    workspace = tmp_path / "work"
    (workspace / ".devtools" / "addins").mkdir(parents=True)
    ours, other, dead = processes.start(), processes.start(), processes.start()
    registry.sign_in(ours.pid, port=5611, workspace=workspace)
    registry.sign_in(other.pid, port=5612, solution="/elsewhere/App.sln")
    registry.sign_in(dead.pid, port=5613)
    dead.kill()
    before = snapshot(registry.folder)

    servers: Any = machine_servers(known, resolve(str(workspace)))["servers"]

    by_port = {server.pop("port"): server for server in servers}
    assert set(by_port) == {5611, 5612}
    assert by_port[5611].pop("startTime")
    assert by_port[5611] == {
        "processId": ours.pid,
        "mcpEndpoint": "http://localhost:5611/mcp",
        "solutionPath": None,
        "workspaceDirectory": str(workspace),
        "isInWorkspace": True,
        "hostKind": None,
    }
    assert (by_port[5612]["isInWorkspace"], by_port[5612]["solutionPath"]) == (False, "/elsewhere/App.sln")
    assert snapshot(registry.folder) == before


def test_a_folder_full_of_them_is_not_told_whole(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = folders(tmp_path)
    for port in (5611, 5612):
        process = processes.start()
        Registry(Path(known.registry)).sign_in(process.pid, port=port)
        proxy_file(known, process.pid)
    monkeypatch.setattr(module, "MOST", 1)

    told: Any = machine_servers(known, None)

    assert {name: len(each) for name, each in told.items()} == {"servers": 1, "proxies": 1}


def test_proxies_are_told_with_the_address_of_their_pages_and_which_is_our_own(
    tmp_path: Path, processes: Processes
) -> None:
    known, other = folders(tmp_path), processes.start()
    url = "http://localhost:6275/?token=abc"
    proxy_file(known, other.pid, state="Connected", status="Healthy", clients=["c"], toolCount=3, inspector=url)
    proxy_file(known, os.getpid(), state="Degraded", upstream={"lastLines": ["not shown"]})

    proxies: Any = machine_servers(known, None)["proxies"]

    by_pid = {proxy["processId"]: proxy for proxy in proxies}
    assert by_pid[other.pid] == {
        "processId": other.pid,
        "state": "Connected",
        "status": "Healthy",
        "directory": None,
        "solution": None,
        "clients": ["c"],
        "toolCount": 3,
        "inspector": url,
        "own": False,
    }
    assert by_pid[os.getpid()]["own"] is True
    assert "upstream" not in by_pid[os.getpid()]
