"""Servers that are commands: how they start, are spoken to, and end, whatever their manners."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.hosts import is_running
from support.mcp_peers import TestPeer
from support.odd_servers import Notes, odd_server
from support.waiting import until, wait_for
from uno_devserver.instances.child_process import TAIL_LINES
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.protocol.client.connection import Connection, ConnectionLost, UnusableServer
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.proxy.upstream.base import StartFailure
from uno_devserver.proxy.upstream.command_launch import CommandUpstream
from uno_devserver.proxy.upstream.command_process import CommandProcess
from uno_devserver.system import proc
from uno_devserver.system.log import DEBUG, log
from uno_devserver.system.programs import named_program_candidates

from .commands import Observer, call, decoded, started, text, upstream

BOUND = 10.0  # seconds; what is waited for here takes milliseconds


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@asynccontextmanager
async def connected(folder: Path, **manners: Any) -> AsyncIterator[tuple[CommandProcess, Connection]]:
    """An odd server with these manners, and a conversation of the older era with it."""
    async with started(upstream(odd_server(**manners), folder)) as running:
        yield running, await running.connect(TestPeer(), modern_first=False)


# speaking


@pytest.mark.parametrize(
    ("era", "modern_first", "version"),
    [
        ("both", False, "2025-11-25"),
        ("both", True, "2026-07-28"),
        ("handshake", False, "2025-11-25"),
        ("handshake", True, "2025-11-25"),
        ("modern", False, "2026-07-28"),
        ("modern", True, "2026-07-28"),
    ],
)
async def test_a_server_is_spoken_to_in_its_era(tmp_path: Path, era: str, modern_first: bool, version: str) -> None:
    async with started(upstream(odd_server(era=era), tmp_path)) as running:
        connection = await running.connect(TestPeer(), modern_first=modern_first)

        assert connection.server.version == version
        assert connection.server.instructions == "Be odd."
        assert await text(connection, "echo", text="hällo") == "hällo"
        answer = decoded(await connection.request("odd/thing", {"x": [1]}, TestPeer()))
        assert answer["fieldOfTheFuture"] == {"ä": 1}


async def test_it_runs_in_its_folder_and_is_known_by_its_process(tmp_path: Path) -> None:
    observer = Observer()
    async with started(upstream(odd_server(name="strange"), tmp_path), observer) as running:
        connection = await running.connect(TestPeer("ide", roots={}), modern_first=False)

        facts = json.loads(await text(connection, "facts"))
        assert (facts["pid"], facts["cwd"]) == (running.process_id, str(tmp_path))
        assert (facts["info"]["name"], facts["capabilities"]) == ("ide", {"roots": {}})
        assert connection.server.info == {"name": "strange", "version": "1.0"}
        assert (running.kind, running.endpoint, running.owned) == (HostKind.COMMAND, None, True)
        assert os.getsid(running.process_id) == running.process_id
        ((what, process_id),) = observer.launched
        assert "odd_servers.py" in what
        assert process_id == running.process_id


async def test_all_clients_share_the_conversation_that_the_first_one_began(tmp_path: Path, notes: Notes) -> None:
    async with started(upstream(odd_server(notes=notes), tmp_path)) as running:
        first, second = await asyncio.gather(
            running.connect(TestPeer("first"), modern_first=False),
            running.connect(TestPeer("second", modern=True), modern_first=True),
        )

        assert first is second
        assert notes.methods().count("initialize") == 1
        assert json.loads(await text(second, "facts"))["info"]["name"] == "first"


async def test_garbage_on_the_output_does_no_harm(tmp_path: Path) -> None:
    async with connected(tmp_path, garbage=True) as (_, connection):
        assert await text(connection, "garbage") == "garbage"
        assert await text(connection, "twice") == "first"
        assert await text(connection, "echo", text="x") == "x"


async def test_a_server_that_reads_no_more_holds_up_nobody_else(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with connected(tmp_path) as (_, connection):
        held = asyncio.ensure_future(text(connection, "hold", until=str(go)))
        await asyncio.sleep(0)  # it is sent first
        assert await text(connection, "deaf") == "deaf"

        waits = [asyncio.ensure_future(text(connection, "echo", text="x" * 10_000_000)) for _ in range(8)]
        done, _ = await asyncio.wait(waits, timeout=BOUND, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(RpcError, match="does not read"):
            await done.pop()
        go.touch()

        assert await held == "held"
        for one in waits:
            one.cancel()
        await asyncio.wait(waits)


def test_it_works_in_a_loop_that_is_not_in_the_main_thread(tmp_path: Path) -> None:
    outcomes: list[object] = []

    async def conversation() -> None:
        async with started(upstream(odd_server(), tmp_path)) as running:
            connection = await running.connect(TestPeer(), modern_first=False)
            outcomes.append(await text(connection, "echo", text="x"))
            with pytest.raises(ConnectionLost):
                await call(connection, "die", code=7)
            outcomes.append((await running.ended()).exit_code)

    thread = threading.Thread(target=lambda: asyncio.run(asyncio.wait_for(conversation(), BOUND)))
    thread.start()
    thread.join(2 * BOUND)

    assert outcomes == ["x", 7]


# starting


async def test_a_slow_server_is_waited_for_and_nothing_else_is_said_to_it(tmp_path: Path, notes: Notes) -> None:
    go = tmp_path / "go"
    async with started(upstream(odd_server(notes=notes, until=go), tmp_path)) as running:
        connecting = asyncio.ensure_future(running.connect(TestPeer(modern=True), modern_first=True))
        await until(lambda: bool(notes.starts))
        go.touch()

        connection = await connecting

        assert connection.server.modern
        assert notes.methods() == ["server/discover"]


async def test_a_server_that_never_answers_is_given_up_and_ended(tmp_path: Path) -> None:
    async with started(upstream(odd_server(never_reads=True), tmp_path, ready_seconds=0.3)) as running:
        with pytest.raises(ConnectionLost, match=r"did not answer within 0\.3 s") as lost:
            await running.connect(TestPeer(), modern_first=False)

        assert lost.value.sent is False
        assert (await running.ended()).reason == "it did not answer within 0.3 s"
        assert not is_running(running.process_id)


async def test_a_server_that_dies_before_it_answers_is_lost_with_its_last_words(tmp_path: Path) -> None:
    async with started(upstream(odd_server(dies=3), tmp_path)) as running:
        with pytest.raises(ConnectionLost, match="it ended with exit code 3"):
            await running.connect(TestPeer(), modern_first=False)

        ending = await running.ended()
        assert (ending.reason, ending.exit_code) == ("it ended with exit code 3", 3)
        assert ending.last_lines == ("Traceback: the server cannot begin",)
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(), modern_first=False)


async def test_a_server_that_refuses_to_talk_is_refused_each_time(tmp_path: Path) -> None:
    async with started(upstream(odd_server(refuses=-32000), tmp_path)) as running:
        for _ in range(2):
            with pytest.raises(UnusableServer, match="refuses everything"):
                await running.connect(TestPeer(), modern_first=True)


async def test_a_server_that_ends_over_the_modern_question_is_initialized_the_next_time(tmp_path: Path) -> None:
    source = upstream(odd_server(shy=True), tmp_path)
    async with started(source) as running:
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(modern=True), modern_first=True)

    async with started(source) as running:
        connection = await running.connect(TestPeer(modern=True), modern_first=True)

        assert connection.server.version == "2025-11-25"


async def test_the_end_of_a_server_says_that_the_next_start_begins_with_initialize(tmp_path: Path) -> None:
    source = upstream(odd_server(shy=True), tmp_path)
    async with started(source) as running:
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(modern=True), modern_first=True)

        assert (await running.ended()).other_era_next


async def test_a_server_that_was_initialized_after_it_ended_is_initialized_again_after_a_crash(
    tmp_path: Path, notes: Notes
) -> None:
    source = upstream(odd_server(notes=notes, shy=True), tmp_path)
    async with started(source) as running:
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(modern=True), modern_first=True)

    for _ in range(2):
        async with started(source) as running:
            connection = await running.connect(TestPeer(modern=True), modern_first=True)
            with pytest.raises(ConnectionLost):
                await call(connection, "die")

    assert notes.methods().count("server/discover") == 1
    assert notes.methods().count("initialize") == 2


async def test_when_the_start_with_initialize_fails_too_the_next_one_probes_again(tmp_path: Path, notes: Notes) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    source = breakable(broken, tmp_path, notes)
    for probed in (True, False):
        async with started(source) as running:
            with pytest.raises(ConnectionLost):
                await running.connect(TestPeer(modern=True), modern_first=True)
            assert (await running.ended()).other_era_next is probed

    broken.unlink()

    async with started(source) as running:
        connection = await running.connect(TestPeer(modern=True), modern_first=True)
        assert connection.server.version == "2026-07-28"
        assert notes.methods() == ["server/discover"]


async def test_a_repaired_server_is_probed_again_when_the_version_is_negotiated_anew(
    tmp_path: Path, notes: Notes
) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    source = breakable(broken, tmp_path, notes)
    async with started(source) as running:
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(modern=True), modern_first=True)
    broken.unlink()

    source.renegotiate()

    async with started(source) as running:
        connection = await running.connect(TestPeer(modern=True), modern_first=True)
        assert connection.server.version == "2026-07-28"


async def test_a_server_that_we_stop_while_it_is_probed_is_probed_the_next_time(tmp_path: Path, notes: Notes) -> None:
    go = tmp_path / "go"
    source = upstream(odd_server(notes=notes, until=go), tmp_path)
    async with started(source) as running:
        connecting = asyncio.ensure_future(running.connect(TestPeer(modern=True), modern_first=True))
        await until(lambda: bool(notes.starts))

        await running.stop()

        with pytest.raises(ConnectionLost):
            await connecting
        assert not (await running.ended()).other_era_next
    go.touch()
    async with started(source) as running:
        connection = await running.connect(TestPeer(modern=True), modern_first=True)
        assert connection.server.version == "2026-07-28"


def breakable(broken: Path, folder: Path, notes: Notes) -> CommandUpstream:
    """A server that ends at once while there is the file `broken`, whatever it is asked first."""
    code = "import os, sys; os.path.exists(sys.argv[1]) and sys.exit(3); os.execv(sys.argv[2], sys.argv[2:])"
    return upstream([sys.executable, "-ISc", code, str(broken), *odd_server(notes=notes)], folder)


async def test_a_server_that_dies_for_another_reason_is_asked_in_the_modern_way_again(
    tmp_path: Path, notes: Notes
) -> None:
    source = upstream(odd_server(notes=notes), tmp_path)
    for _ in range(2):
        async with started(source) as running:
            connection = await running.connect(TestPeer(modern=True), modern_first=True)
            with pytest.raises(ConnectionLost):
                await call(connection, "die")
    assert notes.methods().count("server/discover") == 2


# Windows tells by the ending of a name what can be executed, and asks no mode.
UNINTERPRETED = "is a file that cannot be executed" if sys.platform == "win32" else "cannot be started"


def _failure(source: CommandUpstream, observer: Observer | None = None) -> StartFailure:
    with pytest.raises(StartFailure) as caught:
        source.start(observer or Observer())
    return caught.value


@pytest.mark.parametrize(
    ("command", "mode", "folder", "message", "step"),
    [
        (["no-such-server", "x"], 0, "", "The command 'no-such-server' is not in the folders of PATH.", "full path"),
        (["bin/server"], 0, "", "{}bin/server does not exist", "Name one that exists"),
        (["./server.py"], 0o644, "", "{}./server.py is a file that cannot be executed", "-- python ./server.py"),
        (["./server.py"], 0o755, "", f"{{}}./server.py {UNINTERPRETED}", "-- python ./server.py"),  # without "#!"
        ([sys.executable], 0, "gone", "there is no folder {}gone", "Fix that"),
        ([sys.executable, "a\0b"], 0, "", "null byte", "Fix that"),
    ],
    ids=["not on PATH", "no such file", "not executable", "no interpreter", "no such folder", "a NUL character"],
)
def test_a_command_that_cannot_be_started_is_named_with_what_to_do(
    tmp_path: Path, command: list[str], mode: int, folder: str, message: str, step: str
) -> None:
    if mode:
        script = tmp_path / "server.py"
        script.write_text("print()")
        script.chmod(mode)

    failure = _failure(CommandUpstream(command, str(tmp_path / folder), os.environ, str(tmp_path / "state")))

    assert failure.final
    assert message.format(os.path.join(tmp_path, "")) in failure.issues[0].message
    assert step in failure.issues[0].remediation


def test_a_script_that_takes_the_servers_input_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "mine", "scripts": {"dev": "tsx watch src/index.ts"}}')

    failure = _failure(CommandUpstream(["npm", "run", "dev"], str(tmp_path), os.environ, str(tmp_path / "state")))

    assert failure.final
    assert failure.issues[0].message == "'npm run dev' runs 'tsx watch src/index.ts', which takes the server's input."
    assert "Write 'npx tsx src/index.ts' after '--'" in failure.issues[0].remediation


def test_a_start_that_nobody_wants_any_more_starts_nothing(tmp_path: Path, notes: Notes) -> None:
    observer = Observer()
    observer.wanted = False

    failure = _failure(upstream(odd_server(notes=notes), tmp_path), observer)

    assert not failure.final
    assert observer.launched == []


async def test_a_relative_path_is_one_from_the_folder_and_a_name_one_from_the_path(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "my-server"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in odd_server()) + "\n")
    script.chmod(stat.S_IRWXU)

    for name, path in (("bin/my-server", None), ("my-server", str(script.parent))):
        async with started(upstream([name], tmp_path, path)) as running:
            connection = await running.connect(TestPeer(), modern_first=False)
            assert connection.server.info["name"] == "odd"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("npx", ["C:\\node\\npx.exe", "C:\\node\\npx.cmd"]),
        ("npx.cmd", ["C:\\node\\npx.cmd"]),
        ("NPX.CMD", ["C:\\node\\NPX.cmd"]),
        ("server.v2", ["C:\\node\\server.v2.exe", "C:\\node\\server.v2.cmd"]),
        (".\\bin\\server.exe", ["C:\\work\\.\\bin\\server.exe"]),
        ("bin/server", ["C:\\work\\bin/server.exe", "C:\\work\\bin/server.cmd"]),
        ("D:\\x\\server.exe", ["D:\\x\\server.exe"]),
    ],
)
def test_on_windows_endings_are_added_as_its_shell_does(name: str, expected: list[str]) -> None:
    environ = {"PATH": "C:\\node;relative", "PATHEXT": ".EXE;.CMD"}

    assert named_program_candidates(name, "C:\\work", environ, "win32") == expected


def test_elsewhere_a_name_is_taken_as_it_is() -> None:
    environ = {"PATH": "/usr/bin:.:/opt/bin"}

    assert named_program_candidates("npx", "/work", environ, "linux") == ["/usr/bin/npx", "/opt/bin/npx"]
    assert named_program_candidates("./server.py", "/work", environ, "linux") == ["/work/./server.py"]
    assert named_program_candidates("/srv/server", "/work", environ, "darwin") == ["/srv/server"]


# what it prints


async def test_what_it_prints_is_in_a_file_and_one_start_adds_to_the_other(tmp_path: Path) -> None:
    source = upstream(odd_server(), tmp_path)
    for word in ("one", "two"):
        async with started(source) as running:
            connection = await running.connect(TestPeer(), modern_first=False)
            await text(connection, "print", lines=[f"{word} {number}" for number in range(30)])
            with pytest.raises(ConnectionLost):
                await call(connection, "die")
            ending = await running.ended()

            assert len(ending.last_lines) == TAIL_LINES
            assert ending.last_lines[-2:] == (f"{word} 29", "the server dies of a call")
            assert running.log_file.startswith(str(tmp_path / "state" / "logs" / "command-"))
    lines = Path(running.log_file).read_text().splitlines()
    assert (lines[0], lines[31]) == ("one 0", "two 0")
    assert stat.S_IMODE(os.stat(running.log_file).st_mode) == 0o600


async def test_a_server_that_floods_its_log_starts_all_the_same_and_does_not_fill_the_disk(tmp_path: Path) -> None:
    async with started(upstream(odd_server(flood=10_000), tmp_path)) as running:
        connection = await running.connect(TestPeer(), modern_first=False)
        await text(connection, "print", lines=["and on"])
        with pytest.raises(ConnectionLost):
            await call(connection, "die")

        assert (await running.ended()).last_lines[-2:] == ("and on", "the server dies of a call")
        assert os.path.getsize(running.log_file) < 10_000_000


async def test_a_server_that_floods_its_log_and_dies_leaves_its_last_line_and_a_small_file(tmp_path: Path) -> None:
    story = "import os\nfor _ in range(500): os.write(2, b'\\x1b' * 99_999 + b'\\n')\nraise SystemExit('the reason')"
    async with started(upstream((sys.executable, "-c", story), tmp_path)) as running:
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(), modern_first=False)

        assert (await running.ended()).last_lines[-1] == "the reason"
        assert os.path.getsize(running.log_file) < 20_000_000
        assert b"\x1b" not in Path(running.log_file).read_bytes()


async def test_what_it_prints_while_it_is_stopped_is_kept(tmp_path: Path) -> None:
    story = (
        "import signal, sys; signal.signal(15, lambda *_: sys.exit('all is saved'))\n"
        "print('here', file=sys.stderr, flush=True); signal.pause()"
    )
    async with started(upstream((sys.executable, "-c", story), tmp_path)) as running:
        await until(lambda: Path(running.log_file).read_bytes() == b"here\n")

        await running.stop(patient=True)

        assert Path(running.log_file).read_text() == "here\nall is saved\n"


async def test_what_it_prints_instead_of_answering_is_told_and_kept_beside_the_rest(tmp_path: Path) -> None:
    story = (
        "import sys, time; print('hello', flush=True); print('words', file=sys.stderr, flush=True)\n"
        "print('{\"level\": \"info\"}' + 5000 * ' ', flush=True); time.sleep(1000)"
    )
    observer = Observer()
    source = upstream((sys.executable, "-c", story), tmp_path, output_check_seconds=0.01, drain_seconds=10.0)
    async with started(source, observer) as running:
        connecting = asyncio.ensure_future(running.connect(TestPeer(), modern_first=False))
        await until(lambda: observer.strays[-1:] == ['{"level": "info"}'])

        await running.stop()
        with pytest.raises(ConnectionLost):
            await connecting

        lines = [line.rstrip() for line in (await running.ended()).last_lines]
        assert sorted(lines) == ["[stdout] hello", '[stdout] {"level": "info"}', "words"]
        assert os.path.getsize(running.log_file) < 2000, "long lines are cut"


async def test_what_it_prints_among_its_answers_is_told_and_kept_beside_the_rest(tmp_path: Path) -> None:
    observer = Observer()
    async with started(upstream(odd_server(), tmp_path, output_check_seconds=0.01), observer) as running:
        connection = await running.connect(TestPeer(), modern_first=False)

        await text(connection, "garbage")

        await until(lambda: b"[stdout] hello from a library\n" in Path(running.log_file).read_bytes())
        await until(lambda: observer.strays == ["null"])  # the last of its lines


async def test_what_it_prints_is_in_our_log_too_for_those_who_look_closely(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "level", DEBUG)
    said = ""
    async with started(upstream(odd_server(), tmp_path, output_check_seconds=0.01)) as running:
        connection = await running.connect(TestPeer(), modern_first=False)
        await text(connection, "print", lines=["look here"])

        while "look here" not in said:
            said += capsys.readouterr().err
            await asyncio.sleep(0.001)


async def test_a_home_that_cannot_be_written_keeps_no_server_from_starting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "state").write_text("a file where the folder should be")
    async with started(upstream(odd_server(), tmp_path)) as running:
        await running.connect(TestPeer(), modern_first=False)

        assert os.path.exists(running.log_file)
        assert running.log_file in capsys.readouterr().err


# ending


@pytest.mark.parametrize(
    ("how", "reason", "code"),
    [
        ({"code": 0}, "it ended with exit code 0", 0),
        ({"code": 5}, "it ended with exit code 5", 5),
        ({"signal": 9}, "it was ended by signal 9", -9),
        ({"signal": 11}, "it was ended by signal 11", -11),
    ],
)
async def test_a_server_that_dies_of_a_call_is_noticed_at_once(
    tmp_path: Path, how: dict[str, Any], reason: str, code: int
) -> None:
    async with connected(tmp_path) as (running, connection):
        held = [asyncio.ensure_future(text(connection, "hold")) for _ in range(16)]
        await text(connection, "echo")  # meanwhile they have been sent
        ended = asyncio.ensure_future(running.ended())

        with pytest.raises(ConnectionLost):
            await call(connection, "die", **how)
        outcomes = await asyncio.gather(*held, return_exceptions=True)
        ending = await ended

        assert [getattr(outcome, "sent", None) for outcome in outcomes] == [True] * 16
        assert (ending.reason, ending.exit_code) == (reason, code)
        with pytest.raises(ConnectionLost) as lost:
            await call(connection, "echo")
        assert lost.value.sent is False
        with pytest.raises(ConnectionLost):
            await running.connect(TestPeer(), modern_first=False)


async def test_a_server_that_closes_its_output_is_of_no_use_and_is_ended(tmp_path: Path) -> None:
    async with connected(tmp_path, stays=True, ignores_sigterm=True) as (running, connection):
        held = asyncio.ensure_future(text(connection, "hold"))

        with pytest.raises(ConnectionLost):
            await call(connection, "close")

        with pytest.raises(ConnectionLost):
            await held
        assert (await running.ended()).reason == "it closed its output"
        assert not is_running(running.process_id)


async def test_a_server_that_closes_its_output_before_it_says_anything_is_lost(tmp_path: Path) -> None:
    async with started(upstream(odd_server(closes=True), tmp_path)) as running:
        with pytest.raises(ConnectionLost, match="it closed its output"):
            await running.connect(TestPeer(), modern_first=False)


async def test_a_server_that_closes_its_input_is_of_no_use_and_is_ended(tmp_path: Path) -> None:
    async with connected(tmp_path) as (running, connection):
        assert await text(connection, "shut") == "shut"

        assert (await running.ended()).reason == "it closed its input"
        assert not is_running(running.process_id)


async def test_its_last_answers_count_although_it_has_ended(tmp_path: Path, notes: Notes) -> None:
    async with connected(tmp_path, notes=notes) as (running, connection):
        calls = [asyncio.ensure_future(text(connection, "echo", text=str(number))) for number in range(50)]
        last = asyncio.ensure_future(text(connection, "last"))
        await asyncio.sleep(0)  # all are on their way, and none is read before the server has gone
        os.waitid(os.P_PID, running.process_id, os.WEXITED | os.WNOWAIT)

        assert await last == "last"
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(one) for one in done} <= {str, ConnectionLost}


async def test_what_a_dead_server_started_goes_with_it_and_keeps_nobody_waiting(tmp_path: Path, notes: Notes) -> None:
    async with connected(tmp_path, notes=notes, grandchild=True, ignores_sigterm=True) as (_, connection):
        with pytest.raises(ConnectionLost):  # although the child holds the output open
            await call(connection, "die", signal=9)

        (child,) = notes.children
        wait_for(lambda: not is_running(child), "the end of the grandchild")


async def test_what_has_got_away_from_a_dead_server_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, connection):
        runaway = int(await text(connection, "spawn", apart=True))
        try:
            with pytest.raises(ConnectionLost):  # although its output stays open
                await call(connection, "die", signal=9)
        finally:
            os.kill(runaway, signal.SIGKILL)


@pytest.mark.parametrize("end", ["stopped", "dead", "stopped before anybody spoke", "dead before anybody spoke"])
async def test_nothing_of_ours_stays_open_either(tmp_path: Path, end: str) -> None:
    def ours() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())

    source = upstream(odd_server(dies=1) if "dead before" in end else odd_server(), tmp_path)
    before = (0, 0)
    for _ in range(2):  # the first one opens the log, which stays open
        before = ours()  # or more, if the last output of the first one is still being read
        async with started(source) as running:
            if "before" not in end:
                connection = await running.connect(TestPeer(), modern_first=False)
            if end == "dead":
                with pytest.raises(ConnectionLost):
                    await call(connection, "die")
            if "dead" in end:
                await running.ended()

    await until(lambda: all(now <= then for now, then in zip(ours(), before, strict=True)))


@pytest.mark.parametrize("manners", [{}, {"stays": True}, {"stays": True, "ignores_sigterm": True}])
async def test_stopping_is_quick_and_nothing_is_left(tmp_path: Path, notes: Notes, manners: dict[str, Any]) -> None:
    # A server that ends with its input is left the time for that; the others are not.
    limits: dict[str, Any] = {} if manners else {"input_seconds": BOUND, "cleanup_seconds": BOUND}
    source = upstream(odd_server(notes=notes, grandchild=True, **manners), tmp_path, **limits)
    async with started(source) as running:
        connection = await running.connect(TestPeer(), modern_first=False)
        held = asyncio.ensure_future(text(connection, "hold"))
        await until(lambda: "tools/call" in notes.methods())

        began = time.monotonic()
        await running.stop()
        took = time.monotonic() - began

        with pytest.raises(ConnectionLost):
            await held
        assert took < BOUND  # 0.25 s on an idle machine
        assert not is_running(running.process_id)
        (child,) = notes.children
        wait_for(lambda: not is_running(child), "the end of the grandchild")
        await running.stop()
        assert (await running.ended()).exit_code == (-9 if "ignores_sigterm" in manners else -15 if manners else 0)


# Its exit handler takes a while, and its interpreter much longer than any limit.
SLOW_TO_FREE = """
import atexit, pathlib, sys, time

class Module:
    def __del__(self, sleep=time.sleep):
        sleep(600)

module = Module()
atexit.register(lambda: (time.sleep(0.2), pathlib.Path("saved").touch()))
pathlib.Path("here").touch()
sys.stdin.read()
"""


@pytest.mark.skipif(not proc.AVAILABLE, reason="only Linux tells which signals a process handles")
async def test_an_interpreter_that_frees_its_modules_is_ended_but_no_exit_handler_is(tmp_path: Path) -> None:
    source = upstream([sys.executable, "-ISc", SLOW_TO_FREE], tmp_path, input_seconds=BOUND)
    async with started(source) as running:
        connecting = asyncio.ensure_future(running.connect(TestPeer(), modern_first=False))
        await until((tmp_path / "here").exists)

        began = time.monotonic()
        await running.stop(patient=True)

        assert time.monotonic() - began < BOUND  # which it would take without a signal
        assert (tmp_path / "saved").exists()
        assert (await running.ended()).exit_code == -signal.SIGTERM
        with pytest.raises(ConnectionLost):
            await connecting


async def test_a_patient_stop_is_shortened_by_an_impatient_one_and_the_reason_is_how_it_ended(tmp_path: Path) -> None:
    deaf = "import pathlib, signal, time; signal.signal(15, signal.SIG_IGN); pathlib.Path('here').touch()"
    source = upstream([sys.executable, "-c", f"{deaf}; time.sleep(1000)"], tmp_path, patient_seconds=1000.0)
    async with started(source) as running:
        ended = asyncio.ensure_future(running.ended())
        await until((tmp_path / "here").exists)
        patient = asyncio.ensure_future(running.stop(patient=True))
        await asyncio.sleep(0)  # it has begun

        async with asyncio.timeout(BOUND):
            await running.stop()
            await patient

        assert (await ended).exit_code == -signal.SIGKILL
        assert "closed" not in (await ended).reason


# A script that ends when it is asked to; what it started has something to close first.
SCRIPT = """
import signal, subprocess, sys
tidy = "lambda *_: (time.sleep(0.05), sys.exit(pathlib.Path('left in order').touch()))"
code = f"import signal, sys, time, pathlib; signal.signal(15, {tidy}); pathlib.Path('here').touch(); signal.pause()"
subprocess.Popen([sys.executable, "-c", code])
signal.pause()
"""


async def test_what_a_script_started_has_the_time_to_end_in_order(tmp_path: Path) -> None:
    async with started(upstream([sys.executable, "-ISc", SCRIPT], tmp_path, stop_seconds=BOUND)) as running:
        ended = asyncio.ensure_future(running.ended())
        await until((tmp_path / "here").exists)

        await running.stop()

        assert (tmp_path / "left in order").exists()
        assert (await ended).exit_code == -15


async def test_a_server_that_has_ended_before_anybody_spoke_to_it_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(upstream(odd_server(dies=2), tmp_path)) as running:
        assert (await running.ended()).exit_code == 2
        monkeypatch.delattr(os, "killpg")  # whoever stops it later meets somebody else by that number

        with pytest.raises(ConnectionLost) as lost:
            await running.connect(TestPeer(), modern_first=False)

        assert lost.value.sent is False


async def test_a_server_can_be_stopped_before_anybody_spoke_to_it(tmp_path: Path, notes: Notes) -> None:
    async with started(upstream(odd_server(notes=notes), tmp_path)) as running:
        await running.stop()

        assert not is_running(running.process_id)
        assert (await running.ended()).exit_code is not None


async def test_a_server_can_be_stopped_while_it_is_waited_for(tmp_path: Path, notes: Notes) -> None:
    async with started(upstream(odd_server(notes=notes, until=tmp_path / "never"), tmp_path)) as running:
        connecting = asyncio.ensure_future(running.connect(TestPeer(), modern_first=False))
        await until(lambda: bool(notes.starts))

        await running.stop()

        with pytest.raises(ConnectionLost):
            await connecting
