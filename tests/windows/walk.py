"""Every command, and what people do with this program in a day, on this system: `python tests/windows/walk.py`.

It is for Windows, by `make test-windows`, and runs on any system. Each step is a sentence, and says how long it took.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from release import smoke
from release.machine import ReleaseMachine
from support.inspectors import InspectorClient, inspector_of
from support.machine import SLOWNESS
from support.proxies import ProxyClient
from uno_devserver import __version__
from uno_devserver.cli.commands import COMMANDS

SECONDS = 20 * SLOWNESS


def every_command_has_help(machine: ReleaseMachine) -> None:
    for command in COMMANDS:
        assert "Usage" in machine.run(*command.words, "--help"), command.words


def settings_and_agreement_are_told(machine: ReleaseMachine) -> None:
    machine.run("trust")
    assert machine.json("config")["trusted"]
    machine.run("trust", "--revoke")
    assert not machine.json("config")["trusted"]
    machine.json("cleanup")


def a_client_is_registered_examined_and_forgotten(machine: ReleaseMachine) -> None:
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


def two_proxies_share_a_host(machine: ReleaseMachine) -> None:
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


def a_host_that_was_killed_comes_back(machine: ReleaseMachine) -> None:
    machine.run("trust")
    with client(machine, "--mcp-app", "--wait-calls") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        before = one.health()["hostProcessId"]
        psutil.Process(before).kill()
        assert _counts(one) == smoke.TODOS
        assert one.health()["hostProcessId"] != before


def an_edit_is_answered_by_the_new_code(machine: ReleaseMachine) -> None:
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


def the_page_is_found_and_speaks_mcp(machine: ReleaseMachine) -> None:
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


def a_proxy_that_is_killed_leaves_nothing(machine: ReleaseMachine) -> None:
    machine.run("trust")
    with client(machine, "--mcp-app") as one:
        one.initialize()
        one.wait_connected(seconds=SECONDS)
        told = one.health()
        psutil.Process(told["proxy"]["processId"]).kill()
        host = told["hostProcessId"]
        psutil.wait_procs([psutil.Process(host)] if psutil.pid_exists(host) else [], SECONDS)
        assert not psutil.pid_exists(host)


def the_demo_does_what_it_says(machine: ReleaseMachine) -> None:
    assert machine.json("demo")["ok"] is True


STEPS: tuple[Callable[[ReleaseMachine], None], ...] = (
    smoke.version,
    smoke.module_of_package,
    every_command_has_help,
    smoke.discovery,
    smoke.host,
    settings_and_agreement_are_told,
    smoke.registration,
    a_client_is_registered_examined_and_forgotten,
    smoke.completion,
    smoke.page,
    smoke.proxy,
    two_proxies_share_a_host,
    a_host_that_was_killed_comes_back,
    an_edit_is_answered_by_the_new_code,
    the_page_is_found_and_speaks_mcp,
    a_proxy_that_is_killed_leaves_nothing,
    the_demo_does_what_it_says,
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


def _problem(step: Callable[[ReleaseMachine], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="uno-walk-", ignore_cleanup_errors=True) as folder:
        machine = ReleaseMachine(Path(folder).resolve(), __version__)
        machine.program = [str(Path(sys.executable).with_name("uno-devserver"))]
        problem = ""
        try:
            step(machine)
        except Exception:
            problem = "\n" + traceback.format_exc()
        if left := machine.left_running():
            problem += f"\nleft running: {', '.join(left)}"
    return problem


@contextmanager
def client(machine: ReleaseMachine, *options: str) -> Iterator[ProxyClient]:
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
