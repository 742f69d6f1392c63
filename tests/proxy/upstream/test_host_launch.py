"""Hosts as upstreams: real ones, launched and found, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.hosts import is_running
from support.machine import DATA_HOME
from support.mcp_peers import TestPeer
from support.stand_in_host import StandInHost, answer, bundled_host
from support.waiting import until
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.launch import (
    RunningHost,
    StartObserver,
    StartOutcome,
    StartRequest,
)
from uno_devserver.instances.launch_failure import LaunchFailure, LaunchFailureReason
from uno_devserver.instances.start import start
from uno_devserver.issues import UserError
from uno_devserver.proxy.upstream.base import Ending, StartFailure
from uno_devserver.proxy.upstream.host_launch import HostUpstream, launch_failed, user_error
from uno_devserver.proxy.upstream.host_process import HostLimits, HostProcess, last_lines_of
from uno_devserver.system.event_loop import run_in_thread
from uno_devserver.system.folders import Folders, folders
from uno_devserver.system.locks import FileLock
from uno_devserver.system.processes import how_it_ended
from uno_devserver.system.run import stop_all
from uno_devserver.system.state_files import name_for
from uno_devserver.workspace.resolver import resolve
from uno_devserver.workspace.trust import TRUST_VARIABLE

from .commands import Observer

BOUND = 10.0  # seconds, for what takes some hundred milliseconds
ADDIN = "def register(addin):\n    addin.tool(name='greet')(lambda: 'hello')\n"


class Place:
    """A workspace with one add-in on a machine of its own, and all Hosts that were launched for it."""

    def __init__(self, root: Path, temp: str) -> None:
        self.root = root
        self.workspace = root / "ws"
        addins = self.workspace / ".devtools" / "addins"
        addins.mkdir(parents=True)
        (addins / "greeter.py").write_text(ADDIN, "utf-8")
        self.environ = {**os.environ, "HOME": str(root), DATA_HOME: str(root / "data"), "TMPDIR": temp}
        self.trust(True)
        self.observer = Watched()

    @property
    def folders(self) -> Folders:
        return folders(self.environ)

    @property
    def registered(self) -> list[str]:
        registry = Path(self.folders.registry)
        return sorted(file.name for file in registry.iterdir()) if registry.exists() else []

    def trust(self, trusted: bool) -> None:
        self.environ[TRUST_VARIABLE] = "1" if trusted else ""

    def upstream(
        self, *, port: int = 0, forwarded: tuple[str, ...] = (), control_channel: str | None = None
    ) -> HostUpstream:
        return HostUpstream(
            resolve(str(self.workspace)),
            self.environ,
            port=port,
            forwarded=forwarded,
            control_channel=control_channel,
        )

    def start(self, upstream: HostUpstream | None = None) -> HostProcess:
        return (upstream or self.upstream()).start(self.observer)

    def end(self) -> None:
        for _, pid in self.observer.launched:
            if pid is not None and is_running(pid):
                os.kill(pid, signal.SIGKILL)


class Watched(Observer):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def said(self, message: str, *, warning: bool = False) -> None:
        self.heard.append(message)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="u") as temp:
        place = Place(tmp_path, temp)
        yield place
        place.end()


async def tools(running: HostProcess) -> list[str]:
    connection = await running.connect(TestPeer(), modern_first=True)
    listed = json.loads(bytes(await connection.request("tools/list", {}, TestPeer())))
    await connection.close()
    return [tool["name"] for tool in listed["tools"]]


# --- one that we launch


async def test_a_host_that_we_launch_is_ours_with_its_add_ins(place: Place) -> None:
    upstream = place.upstream()

    running = place.start(upstream)

    assert (running.owned, running.kind, upstream.trusted) == (True, HostKind.BUNDLED, True)
    assert place.observer.launched == [(f"a Host on port {running.endpoint[17:-4]}", running.process_id)]
    assert await tools(running) == ["uno_health", "greet"]
    assert running.probe().tool_count == 1, "without uno_health"
    await running.stop()


async def test_whoever_finds_a_host_learns_where_its_launcher_is_asked_for_new_code(place: Place) -> None:
    launched = place.start(place.upstream(control_channel="/tmp/CoreFxPipe_uno-1"))

    found = place.start(place.upstream(control_channel="/tmp/CoreFxPipe_uno-2"))

    assert (found.owned, found.process_id) == (False, launched.process_id)
    assert found.control_channel == launched.control_channel == "/tmp/CoreFxPipe_uno-1"
    await launched.stop()
    assert found.control_channel == "/tmp/CoreFxPipe_uno-1", "also while its launcher replaces it"


async def test_a_host_that_nobody_stays_with_has_no_control_channel(place: Place) -> None:
    running = place.start()

    assert running.control_channel is None
    await running.stop()


async def test_when_stop_returns_the_host_is_gone_and_signed_out(place: Place) -> None:
    running = place.start()
    begun = time.monotonic()

    await running.stop()

    assert time.monotonic() - begun < 3.0, "it takes 50 ms on an idle machine"
    assert not is_running(running.process_id)
    assert place.registered == []


async def test_a_host_that_does_not_heed_a_signal_is_ended_by_force_and_signed_out(place: Place) -> None:
    running = place.start()
    os.kill(running.process_id, signal.SIGSTOP)

    await running.stop()

    assert not is_running(running.process_id)
    assert place.registered == []


async def test_the_end_of_our_host_is_noticed_at_once_with_how_and_its_last_words(place: Place) -> None:
    running = place.start()
    ending = asyncio.ensure_future(running.ended())
    await asyncio.sleep(0)

    os.kill(running.process_id, signal.SIGKILL)

    ended = await asyncio.wait_for(ending, BOUND)
    assert (ended.exit_code, ended.reason) == (-9, "it was ended by signal 9")
    assert any("Now listening on" in line for line in ended.last_lines)
    await running.stop()
    assert place.registered == [], "it could not sign itself out"


async def test_after_its_end_the_next_start_launches_another_on_the_same_port(place: Place) -> None:
    upstream = place.upstream()
    first = place.start(upstream)
    os.kill(first.process_id, signal.SIGKILL)
    await asyncio.wait_for(first.ended(), BOUND)
    await first.stop()

    second = place.start(upstream)

    assert second.owned
    assert second.process_id != first.process_id
    assert second.endpoint == first.endpoint
    await second.stop()


async def test_our_own_host_is_still_ours_when_we_find_it(place: Place) -> None:
    upstream = place.upstream()
    running = place.start(upstream)

    assert place.start(upstream) is running

    await running.stop()


# --- one that we find


async def test_a_second_one_finds_the_host_of_the_first_and_never_ends_it(place: Place) -> None:
    owner = place.start()

    found = place.start()

    assert (found.owned, found.process_id, found.kind) == (False, owner.process_id, HostKind.BUNDLED)
    assert place.observer.launched[-1] == (f"the Host that runs already (process {owner.process_id})", None)
    assert await tools(found) == ["uno_health", "greet"]
    await found.stop()
    assert is_running(owner.process_id)
    await owner.stop()


async def test_when_a_host_that_we_found_is_stopped_by_its_owner_we_know_and_launch_our_own(place: Place) -> None:
    owner, upstream = place.start(), place.upstream()
    found = place.start(upstream)
    ending = asyncio.ensure_future(found.ended())
    await asyncio.sleep(0)

    await owner.stop()
    await asyncio.wait_for(ending, BOUND)
    ours = place.start(upstream)

    assert ours.owned
    assert await tools(ours) == ["uno_health", "greet"]
    await ours.stop()


async def test_a_host_that_is_nobodys_is_replaced_by_one_that_is_nobodys_on_the_same_port(place: Place) -> None:
    upstream = place.upstream(control_channel="/tmp/CoreFxPipe_uno-1")
    request = StartRequest(resolve(str(place.workspace)))
    users = start(request, place.folders, place.environ, StartObserver())
    found = place.start(upstream)
    assert (found.owned, found.process_id) == (False, users.process_id)
    (place.workspace / ".devtools" / "addins" / "greeter.py").write_text(ADDIN.replace("greet", "wave"), "utf-8")

    assert upstream.replace(found) == ""
    renewed = place.start(upstream)

    assert (renewed.owned, renewed.endpoint, renewed.control_channel) == (False, found.endpoint, None)
    assert not is_running(users.process_id)
    assert await tools(renewed) == ["uno_health", "wave"]
    await renewed.stop()
    stop_all()
    assert is_running(renewed.process_id), "it does not end with us"
    again = place.start(upstream)
    assert (again.owned, again.process_id) == (False, renewed.process_id)


async def test_of_two_that_replace_a_host_at_the_same_moment_one_does_it_and_the_other_uses_the_new_one(
    place: Place,
) -> None:
    request = StartRequest(resolve(str(place.workspace)))
    users = start(request, place.folders, place.environ, StartObserver())
    watched = [Watched(), Watched()]
    upstreams = [place.upstream() for _ in watched]
    for upstream in upstreams:
        assert upstream.replace(place.start(upstream)) == ""

    [lock] = (Path(place.folders.state) / "locks").iterdir()
    holder = FileLock(str(lock))
    assert holder.acquire(BOUND, lambda _: None)
    starts = [partial(each.start, observer) for each, observer in zip(upstreams, watched, strict=True)]
    both = asyncio.gather(*map(run_in_thread, starts))
    await until(lambda: all("Waiting for another" in str(each.heard) for each in watched))
    holder.release()
    new = await asyncio.wait_for(both, BOUND)

    assert new[0].process_id == new[1].process_id != users.process_id
    assert str([each.heard for each in watched]).count("Stopping the DevServer") == 1
    os.kill(new[0].process_id, signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_host_that_is_nobodys_crashes_unless_another_program_ends_it(place: Place, how: signal.Signals) -> None:
    request = StartRequest(resolve(str(place.workspace)))
    users = start(request, place.folders, place.environ, StartObserver())
    ending = asyncio.ensure_future(place.start().ended())
    await asyncio.sleep(0)

    os.kill(users.process_id, how)

    assert (await asyncio.wait_for(ending, BOUND)).shut_down is (how is signal.SIGTERM)


async def test_a_host_that_a_living_program_has_started_is_not_replaced_and_the_program_is_named(place: Place) -> None:
    owner, upstream = place.start(), place.upstream()
    found = place.start(upstream)

    obstacle = upstream.replace(found)

    assert f"was started by process {os.getpid()}, which is running and relies on it" in obstacle
    assert "Restart it from that program" in obstacle
    assert place.start(upstream).process_id == owner.process_id
    await owner.stop()


async def test_a_host_that_somebody_has_replaced_already_is_not_replaced_again(place: Place) -> None:
    owner, upstream = place.start(), place.upstream()
    found = place.start(upstream)
    await owner.stop()
    other = place.start()

    assert upstream.replace(found) == ""

    assert place.start(upstream).process_id == other.process_id
    await other.stop()


def found_stand_in(host: StandInHost, **limits: float) -> HostProcess:
    found = RunningHost(StartOutcome.REUSED, host.pid, host.port, None, None, None)
    return HostProcess(found, "", HostLimits(**limits))  # type: ignore[arg-type]


async def test_a_host_that_lives_but_never_answers_is_of_no_use(tmp_path: Path) -> None:
    with StandInHost(tmp_path, [answer("GET /health", 404)]) as host:
        running = found_stand_in(host, check_seconds=0.01, check_answer_seconds=0.05)
        assert running.kind is HostKind.DOTNET, "as long as nothing says that it is another"

        ended = await asyncio.wait_for(running.ended(), BOUND)

    assert ended.reason == "it does not answer any more"
    assert len([request for request in host.requests() if request.startswith("GET /mcp")]) >= 3


async def test_a_host_that_answers_is_asked_now_and_then_and_at_once_when_somebody_doubts_it(tmp_path: Path) -> None:
    with StandInHost(tmp_path, bundled_host()) as host:
        running = found_stand_in(host, check_seconds=3600.0)
        watching = asyncio.ensure_future(running.ended())
        await asyncio.sleep(0)

        running.check_now()

        async with asyncio.timeout(BOUND):
            while not any(request.startswith("GET /mcp") for request in host.requests()):
                await asyncio.sleep(0.005)
        assert not watching.done()
        watching.cancel()


# --- trust


def test_without_trust_a_host_that_could_serve_nothing_else_is_not_started(place: Place) -> None:
    upstream = place.upstream()
    place.trust(False)

    with pytest.raises(StartFailure) as failure:
        place.start(upstream)

    assert failure.value.final
    assert [issue.code for issue in failure.value.issues] == ["WorkspaceNotTrusted"]
    assert upstream.trusted is False
    assert place.observer.launched == []


async def test_trust_is_asked_for_at_every_start(place: Place) -> None:
    upstream = place.upstream()
    place.trust(False)
    with pytest.raises(StartFailure):
        place.start(upstream)
    place.trust(True)

    running = place.start(upstream)

    assert upstream.trusted is True
    await running.stop()


async def test_a_host_that_the_user_has_started_needs_no_trust(place: Place) -> None:
    users = place.start()
    upstream = place.upstream()
    place.trust(False)

    found = place.start(upstream)

    assert (found.process_id, upstream.trusted) == (users.process_id, None)
    await users.stop()


# --- starts that fail


def test_a_flag_that_the_host_refuses_is_told_in_its_own_words_and_not_tried_again(place: Place) -> None:
    with pytest.raises(StartFailure) as failure:
        place.start(place.upstream(forwarded=("--ideChannel", "a/b")))

    [issue] = failure.value.issues
    assert failure.value.final
    assert issue.code == "HostNotStarted"
    assert "a/b" in issue.message
    assert issue.remediation


def test_a_port_that_another_program_has_may_be_free_the_next_time(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(StartFailure) as failure:
        place.start(place.upstream(port=taken.getsockname()[1]))

    assert not failure.value.final
    assert "is taken by another program" in failure.value.issues[0].message


def test_a_start_that_nobody_wants_any_more_ends_soon_and_leaves_nothing(place: Place) -> None:
    class Leaving(Watched):
        def launching(self, what: str, process_id: int | None) -> None:
            super().launching(what, process_id)
            self.wanted = False

    place.observer = Leaving()

    with pytest.raises(StartFailure):
        place.start()

    [(_, pid)] = place.observer.launched
    assert pid is not None
    assert not is_running(pid)
    assert place.registered == []


def test_a_start_that_waits_for_another_is_given_up_at_once(place: Place) -> None:
    class Leaving(Watched):
        def said(self, message: str, *, warning: bool = False) -> None:
            super().said(message, warning=warning)
            self.wanted = False

    place.observer = Leaving()
    lock = FileLock(os.path.join(place.folders.state, "locks", name_for(str(place.workspace)) + ".lock"))
    assert lock.acquire(0, lambda _: None)
    begun = time.monotonic()

    with pytest.raises(StartFailure) as failure:
        place.start()

    lock.release()
    assert time.monotonic() - begun < BOUND
    assert "given up" in failure.value.issues[0].message
    assert place.observer.launched == []


# --- what it printed


def test_of_what_it_printed_the_end_is_told_whatever_is_in_it(tmp_path: Path) -> None:
    log = tmp_path / "host.log"
    log.write_bytes(b"first\n" * 100_000 + b"\xff\xfe last \x00\n")

    lines = last_lines_of(str(log))

    assert "last" in lines[-1]
    assert len(lines) == 30
    assert last_lines_of(str(tmp_path / "gone.log")) == ()
    assert last_lines_of(None) == ()


async def test_the_last_words_of_a_host_are_its_own_although_the_next_prints_already(place: Place) -> None:
    owner = place.start()
    found = place.start()
    assert found.log_file is not None
    with open(found.log_file, "a", encoding="utf-8") as printed:
        printed.write("the last words of the first\n")

    await owner.stop()
    following = place.start()
    ending = await asyncio.wait_for(found.ended(), BOUND)
    await following.stop()

    assert "the last words of the first" in ending.last_lines


# --- how failures are explained


@pytest.mark.parametrize(
    ("reason", "final", "code"),
    [
        (LaunchFailureReason.PORT_TAKEN, False, "HostNotStarted"),
        (LaunchFailureReason.NOT_STARTED, True, "HostNotStarted"),
        (LaunchFailureReason.NOT_READY, True, "HostUnreachable"),
        (LaunchFailureReason.DIED, False, "HostCrashed"),
        (LaunchFailureReason.GIVEN_UP, False, "HostNotStarted"),
    ],
)
def test_a_failed_launch_says_what_happened_and_whether_it_may_go_better_the_next_time(
    reason: LaunchFailureReason, final: bool, code: str
) -> None:
    failed = launch_failed(LaunchFailure(reason, 5000, exit_code=3, text="boom", seconds=30, log_file="/logs/host.log"))

    [issue] = failed.issues
    assert (failed.final, issue.code) == (final, code)
    assert issue.message.endswith(".")
    assert issue.remediation.endswith(".")


def test_of_one_that_died_the_end_is_told() -> None:
    failed = launch_failed(
        LaunchFailure(LaunchFailureReason.DIED, 5000, exit_code=3, text="a\nb", log_file="/logs/host.log")
    )

    assert failed.ending == Ending("it ended with exit code 3", 3, ("a", "b"))
    assert "/logs/host.log" in failed.issues[0].remediation


def test_what_the_host_itself_refuses_stays_refused() -> None:
    text = "error: The value 'x' of --bind cannot be used.\nnext: Use an address.\n"

    failed = launch_failed(LaunchFailure(LaunchFailureReason.DIED, 5000, exit_code=1, text=text))

    assert failed.final
    assert "The value 'x' of --bind cannot be used." in failed.issues[0].message
    assert failed.issues[0].remediation == "Use an address."


@pytest.mark.parametrize(
    ("code", "final"), [("WorkspaceBusy", False), ("HostUnreachable", False), ("StateNotWritable", True)]
)
def test_what_is_in_the_way_may_pass_or_not(code: str, final: bool) -> None:
    failed = user_error(UserError(code, "It is so.", "Do that."))

    assert (failed.final, failed.issues[0].message) == (final, "It is so.")


@pytest.mark.parametrize("code", ["PortTaken", "WorkspaceBusy", "StateNotWritable"])
def test_a_step_that_needs_the_command_line_becomes_one_for_the_user_of_a_proxy(code: str) -> None:
    remediation = user_error(UserError(code, "It is so.", "Run start with another --httpPort.")).issues[0].remediation

    assert "proxy" in remediation
    assert "--httpPort" not in remediation


def test_any_other_step_stays_as_it_is() -> None:
    assert user_error(UserError("HostUnreachable", "It is so.", "Do that.")).issues[0].remediation == "Do that."


@pytest.mark.parametrize(
    ("code", "words"),
    [(None, "it ended"), (0, "it ended with exit code 0"), (-11, "it was ended by signal 11")],
)
def test_a_signal_is_told_from_an_exit_code(code: int | None, words: str) -> None:
    assert how_it_ended(code) == words
