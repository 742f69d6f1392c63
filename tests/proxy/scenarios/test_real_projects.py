"""Servers in the layouts of their ecosystems, made by the tools of these, edited behind the proxy.

The next call has the new code, also of the package that the server uses; code that cannot run leaves the old one, which
says so; and what a `git checkout` there and back leaves as it was is neither built nor started again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.files import write, write_all
from support.git import git
from support.npm import NODE, NPM, installed
from support.programs import needed
from support.proxies import Message, Proxies, ProxyClient
from support.reloading import CONFIG, state_of, text_of, was_run

from .real_projects import BROKEN, OWN, PROJECTS, SHARED, Project

TOOLS = Path(__file__).parent / "real_projects"
OURS = {
    "python": sys.executable,
    "programs": os.path.dirname(sys.executable),
    "packages": sysconfig.get_path("purelib"),
}
MAKE_SECONDS = 60  # a second or two on an idle machine
CALL_SECONDS = 60  # the compilers and SDKs take a second or two, on an idle machine


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_a_real_project_is_reloaded_at_the_next_call(proxies: Proxies, project: Project) -> None:
    made = MadeProject(proxies, project)
    client = made.connected()
    assert answer(client) == f"{OWN}, {SHARED}"

    made.edit(project.own, OWN, "own 2")
    assert answer(client) == f"own 2, {SHARED}"

    made.edit(project.shared, SHARED, "shared 2")
    assert answer(client) == "own 2, shared 2"

    for file in (project.own, project.shared):
        good = made.read(file)
        write(made.path(file), good + BROKEN)
        told, later = call(client), call(client)
        assert state_of(told) == project.broken, told
        assert os.path.basename(file) in text_of(told), "it says where"
        assert (state_of(later), was_run(later)) == (project.broken, True)
        assert later["content"][0]["text"] == "own 2, shared 2"
        write(made.path(file), good)
        assert answer(client) == "own 2, shared 2"

    made.edit(project.own, "own 2", "own 3")
    assert answer(client) == "own 3, shared 2"

    before = made.work_done(client)
    git(made.repository, "commit", "-q", "-a", "-m", "three")
    git(made.repository, "checkout", "-q", "HEAD~1")
    git(made.repository, "checkout", "-q", "-")
    assert call(client)["content"] == [{"type": "text", "text": "own 3, shared 2"}]
    assert made.work_done(client) == before


class MadeProject:
    """The project as its ecosystem makes it, committed, on a machine that has the programs for it."""

    def __init__(self, proxies: Proxies, project: Project) -> None:
        self._proxies, self._project = proxies, project
        machine = proxies.machine
        self.repository = machine.workspace
        machine.environment["FASTMCP_CHECK_FOR_UPDATES"] = "off"
        packages = installed(TOOLS) / "node_modules"
        (machine.root / "node_modules").symlink_to(packages)  # what Node and TypeScript find above the repository
        for program in ("sh", "dirname", "sed", "uname"):
            (machine.tools / program).symlink_to(f"/bin/{program}")
        (machine.tools / "node").symlink_to(NODE)
        (machine.tools / "uv").symlink_to(Path(sys.executable).with_name("uv"))
        write(machine.tools / "npm", f'#!/bin/sh\nexec "{NODE}" "{NPM}" "$@"\n').chmod(0o755)
        for name in ("pnpm", "yarn", "tsx", "tsc"):
            write(machine.tools / name, f'#!/bin/sh\nexec "{NODE}" "{packages / ".bin" / name}" "$@"\n').chmod(0o755)
        if project.needs:
            found = needed(project.needs)
            (machine.tools / found.name).symlink_to(found)
            machine.environment |= {"GOCACHE": str(Path(sys.prefix) / "go-cache"), "GOFLAGS": "-mod=mod"}
        write_all(self.repository, project.files)
        self._configure()
        for line in project.made_by:
            self._run(line)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            git(self.repository, *words)

    def _configure(self) -> None:
        command = [word.format(**OURS) for word in self._project.command]
        config = {
            "mcpServerRoot": f"../{self._project.root}",
            "hotReload": {"strategy": self._project.strategy},
            **({"mcpServer": {"command": command[0], "args": command[1:]}} if command else {}),
        }
        write(self.repository / CONFIG, json.dumps(config))

    def _run(self, line: str) -> None:
        ran = subprocess.run(
            ["/bin/sh", "-c", line.format(**OURS)],
            cwd=self.repository,
            env=self._proxies.machine.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MAKE_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, f"{line}: {ran.stdout}{ran.stderr}"

    def connected(self) -> ProxyClient:
        """Calls wait for a restart, as they always do for a swap."""
        client = self._proxies.start("--wait-calls")
        client.initialize()
        return client

    def path(self, file: str) -> Path:
        return self.repository / file

    def read(self, file: str) -> str:
        return self.path(file).read_text("utf-8")

    def edit(self, file: str, old: str, new: str) -> None:
        text = self.read(file)
        assert old in text
        write(self.path(file), text.replace(old, new))

    def work_done(self, client: ProxyClient) -> tuple[int, int]:
        """How often it was built and started."""
        proxy = client.health()["proxy"]
        return proxy["hotReload"]["builds"], proxy["generation"]


def call(client: ProxyClient) -> Message:
    result: Message = client.answer(client.begin("tools/call", {"name": "answer", "arguments": {}}), CALL_SECONDS)[
        "result"
    ]
    return result


def answer(client: ProxyClient) -> str:
    """What the server says; the first result of new code has a note besides."""
    result = call(client)
    assert not result.get("isError"), result
    return str(result["content"][0]["text"])
