"""Opening a repository runs none of its code, connects nowhere, exposes no file and does not control the terminal."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.files import snapshot
from support.machine import Machine
from support.proxies import Proxies
from support.waiting import wait_for

from .audited import Audit
from .hostile import HostileWorkspace

# All that only look.
COMMANDS = (
    ("disco",),
    ("disco", "--json"),
    ("health",),
    ("list",),
    ("config",),
    ("trust", "--list"),
    ("mcp", "status"),
    ("mcp", "doctor"),
    ("completion", "bash"),
)
# What moves the cursor, sets titles, or turns text around: control characters but line ends, and marks of direction.
ACTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Opened:
    """A hostile repository in which everything was run that only looks, and a proxy."""

    def __init__(self, machine: Machine) -> None:
        self.audit = Audit(machine)
        machine.install_dotnet()
        self.hostile = HostileWorkspace(machine)
        before = snapshot(machine.workspace)
        self.printed = {argv: self.audit.run(*argv) for argv in COMMANDS}
        self.left_as_it_was = snapshot(machine.workspace) == before
        config = machine.workspace / ".devtools" / "host.config.jsonc"
        with Proxies(machine) as proxies:
            of_config = proxies.start()
            of_config.initialize()
            of_config.wait_state("Degraded")
            self.refused = [str(of_config.health()["issues"])]
            self.left_as_it_was &= snapshot(machine.workspace) == before
            config.unlink()  # now a Host is wanted, with the add-in and the packages that lie there
            of_host = proxies.start()
            of_host.initialize()
            of_host.wait_state("Degraded", "Connected")
            self.refused.append(str(of_host.health()["issues"]))
            self.tools = of_host.tools()
            self.proxies_said = of_config.stderr + of_host.stderr
        self.marks = self.hostile.marks


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return Opened(Machine(tmp_path_factory.mktemp("m")))


def test_opening_a_hostile_repository_runs_nothing_of_it(opened: Opened) -> None:
    assert opened.marks == set()
    assert all("WorkspaceNotTrusted" in issues for issues in opened.refused), opened.refused
    assert "uno_health" in opened.tools


def test_the_only_programs_that_are_started_are_the_users_git_and_dotnet_for_a_question_and_our_own_host(
    opened: Opened,
) -> None:
    tools = opened.audit.machine.tools
    dotnet = opened.audit.machine.root / "dotnet" / "dotnet"

    assert opened.audit.started(), "the hook sees what is started"
    for program, *arguments in opened.audit.started():
        asks_git = program == str(tools / "git") and "check-ignore" in arguments
        asks_dotnet = program == str(dotnet) and arguments in (["--list-sdks"], ["--list-runtimes"])
        is_our_host = program == sys.executable and arguments[:3] == ["-P", "-m", "uno_devserver.host"]
        assert asks_git or asks_dotnet or is_our_host, (program, arguments)


def test_nobody_is_reached_but_this_machine(opened: Opened) -> None:
    for address in opened.audit.reached():
        host = address[0] if isinstance(address, tuple) else address
        assert os.fsdecode(host) in ("127.0.0.1", "::1", "localhost") or str(host).startswith("/"), address


def test_the_hook_would_see_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    audit = Audit(machine)
    reaches = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"

    subprocess.run([sys.executable, "-c", reaches], env=machine.variables(), timeout=30, check=False)

    assert audit.reached() == [("192.0.2.1", 9)]


def test_nothing_is_written_into_it(opened: Opened) -> None:
    assert opened.left_as_it_was


def test_what_it_is_called_and_says_does_not_reach_the_terminal_as_it_is(opened: Opened) -> None:
    for argv, done in opened.printed.items():
        if argv[0] != "completion":
            for stream in (done.stdout, done.stderr):
                assert ACTIVE.search(stream.decode("utf-8")) is None, (argv, stream)
    assert ACTIVE.search(opened.proxies_said) is None
    assert any("pwned" in done.stdout.decode() for done in opened.printed.values()), "it was shown somewhere"


def test_the_state_is_the_users_alone_although_the_umask_is_not(opened: Opened) -> None:
    data = opened.audit.machine.data
    found = [Path(folder) / name for folder, folders, files in os.walk(data) for name in (*folders, *files)]

    assert found
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_same_command_runs_once_the_user_agrees_and_not_after_the_config_was_changed(tmp_path: Path) -> None:
    """Shows also that the tricks are none that could never work."""
    machine = Machine(tmp_path)
    hostile = HostileWorkspace(machine)
    audit = Audit(machine)
    config = machine.workspace / ".devtools" / "host.config.jsonc"

    agreed = audit.run("trust")
    with Proxies(machine) as proxies:
        client = proxies.start()
        client.initialize()
        wait_for(lambda: "server of the config" in hostile.marks, "the server of the config is started")
    (machine.root / "marks" / "server of the config").unlink()
    config.write_text(config.read_text().replace('"env"', '"args": ["--new"], "env"'))
    with Proxies(machine) as proxies:
        client = proxies.start()
        client.initialize()
        client.wait_state("Degraded")
        health = client.health()

    assert str(machine.workspace / "server") in agreed.stdout.decode()
    assert "server of the config" not in hostile.marks
    assert "its config was changed since the user agreed to it" in str(health["issues"])


@pytest.mark.skipif(sys.platform == "win32", reason="a module beside the program is looked for in the same way there")
def test_a_module_of_the_current_folder_is_not_imported_by_what_install_registers(tmp_path: Path) -> None:
    from uno_devserver.setup.entry_command import RUNS_MODULE

    machine = Machine(tmp_path)
    hostile = HostileWorkspace(machine)
    line = [sys.executable, *RUNS_MODULE, "--version"]

    done = subprocess.run(line, cwd=machine.workspace, env=machine.variables(), capture_output=True, timeout=30)

    assert done.returncode == 0
    assert hostile.marks == set()
