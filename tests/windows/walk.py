"""Every command, and what people do with this program in a day, on this system: `python tests/windows/walk.py`.

It is for Windows, by `make test-windows`, and runs on any system. Each step is a sentence, and says how long it took.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from release import smoke
from release.machine import ReleaseMachine
from support.bundled import ask
from support.inspectors import InspectorClient, inspector_of
from support.machine import COMMAND, DATA_HOME, SLOWNESS
from support.packages import app_mcp
from support.ports import lasting_port
from support.proxies import ProxyClient
from support.waiting import wait_for
from uno_devserver import __version__
from uno_devserver.cli.commands import COMMANDS

SECONDS = 20 * SLOWNESS

LEAN = Path(__file__).parents[2] / "benchmarks" / "lean_server.py"  # a server of the user's own


class WalkMachine(ReleaseMachine):
    """It notes the commands that were run, so that none is left out of the walk."""

    ran: ClassVar[set[tuple[str, ...]]] = set()

    def run(self, *argv: str, program: Sequence[str] = ()) -> str:
        self.note(*argv)
        return super().run(*argv, program=program)

    def client(self, *argv: str) -> ProxyClient:
        self.note(*argv)
        return super().client(*argv)

    def note(self, *argv: str) -> None:
        if "--help" not in argv:
            self.ran.update(one.words for one in COMMANDS if one.words == argv[: len(one.words)])

    def records(self) -> list[str]:
        """What the registry of Hosts holds: a record that stays misleads other programs."""
        folder = Path(self.environment[DATA_HOME]) / "Uno Platform" / "DevServers"
        return sorted(path.name for path in folder.glob("devserver-*"))


def every_command_has_help(machine: WalkMachine) -> None:
    for command in COMMANDS:
        assert "Usage" in machine.run(*command.words, "--help"), command.words


def settings_and_agreement_are_told(machine: WalkMachine) -> None:
    machine.run("trust")
    assert machine.json("config")["trusted"]
    machine.run("trust", "--revoke")
    assert not machine.json("config")["trusted"]
    machine.json("cleanup")


def a_host_leaves_no_record(machine: WalkMachine) -> None:
    machine.run("trust")
    process = machine.json("start")["processId"]
    assert machine.json("start")["outcome"] == "reused"
    assert machine.records() == [f"devserver-{process}.aux.json", f"devserver-{process}.json"]
    machine.run("stop")
    assert machine.records() == []


def the_host_runs_in_a_process_of_ones_own(machine: WalkMachine) -> None:
    port = lasting_port()
    words = ("host", "--httpPort", str(port), "--addins", "")
    machine.note(*words)
    with (machine.folder / "host.log").open("wb") as log:
        started = subprocess.Popen(
            [*machine.program, *words],
            cwd=machine.cwd,
            env=machine.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        (listed,) = wait_for(lambda: machine.json("list")["servers"], "a Host in the list", SECONDS)
        assert listed["port"] == port, listed
        assert ask(port, "GET", "/mcp").status in (400, 405, 406)
        machine.run("stop")
    finally:
        started.wait(SECONDS)
    assert machine.records() == []


def a_package_of_addins_is_checked(machine: WalkMachine) -> None:
    told = machine.json("addin", "check", str(app_mcp().pack(machine.folder)))
    assert [one["entryPoint"] for one in told["addIns"]] == ["tools/devserver/Uno.UI.App.Mcp.Server.dll"], told


def without_a_sign_in_none_is_listed_or_removed(machine: WalkMachine) -> None:
    assert machine.json("login", "--list")["signIns"] == []
    assert machine.json("logout", "https://mcp.example.com/mcp")["removed"] is False


def a_client_is_registered_examined_and_forgotten(machine: WalkMachine) -> None:
    machine.run("trust")
    machine.run("start")  # so that no limit of a client decides
    for client, scope in (("cursor", "workspace"), ("cursor", "user"), ("claude-code", "workspace"), ("codex", "user")):
        installed = machine.json("mcp", "install", client, "--scope", scope)
        (path,) = {Path(one["path"]) for one in installed["operations"]}
        assert path.is_relative_to(machine.folder), path
        examined = machine.json("mcp", "doctor", "--servers", "UnoApp")
        assert [one["ok"] for one in examined["entries"]] == [True], examined
        machine.json("mcp", "status")
        machine.run("mcp", "uninstall", client, "--scope", scope)
        assert not path.exists() or "UnoApp" not in path.read_text("utf-8"), path
    machine.run("stop")


def a_clients_files_are_put_back(machine: WalkMachine) -> None:
    path = machine.workspace / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(b'{ "mcpServers": {} } // mine\r\n')
    before = path.read_bytes()
    machine.run("mcp", "install", "cursor")
    assert path.read_bytes() != before
    machine.run("mcp", "restore", "cursor")
    assert path.read_bytes() == before


def two_proxies_share_a_host(machine: WalkMachine) -> None:
    machine.run("trust")
    with client(machine, "--mcp-app") as first, client(machine, "--mcp-app") as second:
        for one in (first, second):
            one.initialize()
            one.wait_connected(seconds=SECONDS)
        hosts = {one.health()["hostProcessId"] for one in (first, second)}
        assert len(hosts) == 1, hosts
        for one in (first, second):
            assert _counts(one) == smoke.TODOS
        first.close_stdin()
        assert first.ends()
        assert _counts(second) == smoke.TODOS


def a_host_that_was_killed_comes_back(machine: WalkMachine) -> None:
    machine.run("trust")
    with client(machine, "--mcp-app", "--wait-calls") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        before = one.health()["hostProcessId"]
        psutil.Process(before).kill()
        assert _counts(one) == smoke.TODOS
        assert one.health()["hostProcessId"] != before


def an_edit_is_answered_by_the_new_code(machine: WalkMachine) -> None:
    machine.run("trust")
    (source,) = (Path(path) for path in machine.json("disco")["workspaceAddIns"])
    with client(machine, "--mcp-app", "--wait-calls") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        assert _counts(one) == smoke.TODOS
        text = source.read_text("utf-8")
        assert "HACK" in text
        source.write_text(text.replace("|HACK", ""), "utf-8")
        assert _counts(one) == {name: count for name, count in smoke.TODOS.items() if name != "HACK"}
        source.write_text(text, "utf-8")
        assert _counts(one) == smoke.TODOS


def a_server_of_ones_own_is_renewed_by_an_edit_and_after_its_death(machine: WalkMachine) -> None:
    source = Path(shutil.copy(LEAN, machine.workspace / "server.py"))
    with client(machine, "mcp", "serve", "--watch", "--wait-calls", "--", sys.executable, str(source)) as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        assert one.call("double", number=3) == "6"
        text = source.read_text("utf-8")
        assert "2 * params" in text
        source.write_text(text.replace("2 * params", "20 * params"), "utf-8")
        assert one.call("double", number=3) == "60"
        before = one.health()["proxy"]["upstream"]["processId"]
        psutil.Process(before).kill()
        assert one.call("double", number=4) == "80"
        assert one.health()["proxy"]["upstream"]["processId"] != before


def a_config_is_written_and_served(machine: WalkMachine) -> None:
    (machine.workspace / ".devtools" / "host.config.jsonc").unlink()
    shutil.copy(LEAN, machine.workspace / "server.py")
    assert json.loads(machine.run("init", "--json", "--", sys.executable, "server.py"))["problems"] == []
    machine.run("trust")
    with client(machine, "--mcp-app") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        assert one.call("double", number=3) == "6"


def the_page_is_found_and_speaks_mcp(machine: WalkMachine) -> None:
    machine.run("trust")
    with client(machine, "--mcp-app", "--inspector", "0") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        page = inspector_of(one)
        assert page.ask("GET", "/").status == 200
        told = machine.json("inspect")
        assert (told["port"], told["token"]) == (page.port, page.token)
        opened = InspectorClient.opened(page.new_url())
        with opened.listen("/events") as events:
            events.wait("snapshot")
        assert InspectorClient(page.port, "not the token").ask("GET", "/health").status == 401


def a_proxy_that_is_killed_leaves_nothing(machine: WalkMachine) -> None:
    machine.run("trust")
    with client(machine, "--mcp-app") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        told = one.health()
        psutil.Process(told["proxy"]["processId"]).kill()
        host = told["hostProcessId"]
        psutil.wait_procs([psutil.Process(host)] if psutil.pid_exists(host) else [], SECONDS)
        assert not psutil.pid_exists(host)


def the_demo_does_what_it_says(machine: WalkMachine) -> None:
    assert machine.json("demo")["ok"] is True


def no_command_was_left_out(_: WalkMachine) -> None:
    left_out = {one.words for one in COMMANDS} - WalkMachine.ran
    assert not left_out, left_out


STEPS: tuple[Callable[[WalkMachine], None], ...] = (
    smoke.version,
    smoke.module_of_package,
    every_command_has_help,
    smoke.discovery,
    smoke.host,
    settings_and_agreement_are_told,
    a_host_leaves_no_record,
    the_host_runs_in_a_process_of_ones_own,
    a_package_of_addins_is_checked,
    without_a_sign_in_none_is_listed_or_removed,
    smoke.registration,
    a_client_is_registered_examined_and_forgotten,
    a_clients_files_are_put_back,
    smoke.completion,
    smoke.page,
    smoke.proxy,
    two_proxies_share_a_host,
    a_host_that_was_killed_comes_back,
    an_edit_is_answered_by_the_new_code,
    a_server_of_ones_own_is_renewed_by_an_edit_and_after_its_death,
    a_config_is_written_and_served,
    the_page_is_found_and_speaks_mcp,
    a_proxy_that_is_killed_leaves_nothing,
    the_demo_does_what_it_says,
    no_command_was_left_out,
)


def main(wanted: list[str]) -> int:
    failed = 0
    for step in STEPS:
        name = step.__name__.replace("_", " ")
        if wanted and not any(word in step.__name__ for word in wanted):
            continue
        started = time.perf_counter()
        problem = _problem(step)
        failed += bool(problem)
        print(f"{'FAILED' if problem else 'ok'}  {name} ({time.perf_counter() - started:.1f} s){problem}", flush=True)
    print(f"{failed} of {len(STEPS)} steps failed" if failed else f"all {len(STEPS)} steps do what they say")
    return 1 if failed else 0


def _problem(step: Callable[[WalkMachine], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="uno-walk-", ignore_cleanup_errors=True) as folder:
        machine = WalkMachine(Path(folder).resolve(), __version__)
        machine.program = [COMMAND]
        problem = ""
        try:
            step(machine)
        except Exception:
            problem = "\n" + traceback.format_exc()
        if left := machine.left_running():
            problem += f"\nleft running: {', '.join(left)}"
    return problem


@contextmanager
def client(machine: WalkMachine, *options: str) -> Iterator[ProxyClient]:
    one = machine.client(*options)
    try:
        yield one
    finally:
        one.close_stdin()
        ended = one.ends()
    assert ended, "the proxy did not end with its input"
    one.check()


def _counts(one: ProxyClient) -> dict[str, int]:
    result = one.call_result("count_todos")
    assert not result.get("isError"), json.dumps(result)
    counts: dict[str, int] = result["structuredContent"]
    return counts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
