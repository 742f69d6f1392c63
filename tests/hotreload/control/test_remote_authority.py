"""The authority of another process: the same answers, no waiting for one that is not there, and restarts in step."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

import pytest

from support.waiting import until
from uno_devserver.hotreload.authority import AuthorityProblem, CheckResult, RestartResult
from uno_devserver.hotreload.control import server as channels
from uno_devserver.hotreload.control.remote_authority import RemoteAuthority, RemoteLimits, ask
from uno_devserver.system.pipes import pipe_path

from .channels import SECONDS, Opened, StandIn, channel_name, open_channel, open_inspector

ALL = CheckResult(True, False, "error TS1005: ';' expected", True, True, "warning", True)
IMPATIENT = RemoteLimits(silence_seconds=0.2)
AT_ONCE = 2.0  # seconds, for what takes a millisecond; a wait for the owner would be one of ten


class Adopter:
    """A proxy that uses another's Host: its calls, and what it hears of restarts."""

    def __init__(self, path: str, limits: RemoteLimits | None = None) -> None:
        self.idle = asyncio.Event()  # no call runs
        self.idle.set()
        self.announced = 0
        self.broken_off = 0
        self.restarted: list[RestartResult] = []
        self.told: list[str] = []
        self.authority = RemoteAuthority(path, self._announced, self.restarted.append, limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.authority.close()

    async def check(self) -> CheckResult:
        return await self.authority.check(self.told.append)

    async def no_answer(self, words: str) -> None:
        with pytest.raises(AuthorityProblem, match=words):
            await self.check()

    async def _announced(self) -> None:
        self.announced += 1
        try:
            await self.idle.wait()
        except asyncio.CancelledError:
            self.broken_off += 1
            raise


async def restart(opened: Opened, seconds: float = SECONDS) -> None:
    """As the owner does it."""
    await opened.channel.announce_restart(seconds)
    opened.authority.restarts += 1
    opened.channel.announce_restarted(RestartResult(True, lists="grown"))


# Answers.


async def test_the_answers_are_those_of_the_owners_authority() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        opened.authority.result = ALL
        opened.authority.outcome = RestartResult(False, "It died.", ("one", "two"), True, "changed")

        assert adopter.authority.news() is None
        assert await adopter.check() == ALL
        assert await adopter.authority.ready_to_restart() == opened.authority.outcome


async def test_the_whole_output_of_a_large_build_arrives() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        opened.authority.result = CheckResult(True, False, "é" * 5_000_000)

        assert await adopter.check() == opened.authority.result


async def test_checks_at_the_same_time_are_one_question_and_all_hear_how_it_goes() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        opened.authority.goes_on.clear()
        checks = [asyncio.create_task(adopter.check()) for _ in range(8)]
        await until(lambda: opened.authority.checks)

        opened.authority.tell("npm run build")
        await until(lambda: len(adopter.told) == 8)
        checks.pop().cancel()
        opened.authority.goes_on.set()

        assert len(await asyncio.gather(*checks)) == 7, "one that is cancelled takes nobody along"
        assert set(adopter.told) == {"npm run build"}
        assert opened.authority.checks == 2, "the first may have looked before the others saved"


async def test_whoever_joins_a_check_that_finds_something_shares_what_it_found() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        opened.authority.goes_on.clear()
        opened.authority.result = ALL
        checks = [asyncio.create_task(adopter.check()) for _ in range(8)]
        await until(lambda: opened.authority.checks)

        opened.authority.goes_on.set()

        assert await asyncio.gather(*checks) == [ALL] * 8
        assert opened.authority.checks == 1


async def test_a_build_that_takes_long_is_no_silence() -> None:
    async with (
        open_channel(limits=channels.ControlLimits(progress_seconds=0.05)) as opened,
        Adopter(opened.path, RemoteLimits(silence_seconds=0.8)) as adopter,
    ):
        opened.authority.goes_on.clear()
        check = asyncio.create_task(adopter.check())

        begun = time.monotonic()
        await until(lambda: time.monotonic() - begun > 2)

        assert not check.done()
        opened.authority.goes_on.set()
        assert not (await check).server_changed


# No answers.


@pytest.mark.parametrize("path", ["/nowhere/CoreFxPipe_x", "/tmp", "/tmp/" + "x" * 200, "/tmp/\0"])
async def test_where_nobody_listens_that_is_known_at_once(path: str) -> None:
    adopter = Adopter(path, RemoteLimits(opening_seconds=0))

    begun = time.monotonic()
    await adopter.no_answer("cannot be reached")

    assert time.monotonic() - begun < AT_ONCE
    await adopter.authority.close()


async def test_a_channel_that_its_owner_is_about_to_open_is_waited_for() -> None:
    """The registry names it from the launch of the Host on."""
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        path = f"{folder}/c"
        adopter = Adopter(path)
        check = asyncio.create_task(adopter.check())
        await asyncio.sleep(0.05)
        assert not check.done()

        authority = StandIn()
        channel = channels.ControlServer(path, authority, (), open_inspector)
        await channel.open()

        assert not (await check).server_changed
        assert authority.checks == 1
        await channel.close()
        await adopter.authority.close()


async def test_a_channel_that_is_never_opened_is_waited_for_once() -> None:
    adopter = Adopter("/nowhere/CoreFxPipe_x", RemoteLimits(opening_seconds=0.2))

    begun = time.monotonic()
    await adopter.no_answer("cannot be reached")
    assert time.monotonic() - begun >= 0.2

    begun = time.monotonic()
    for _ in range(20):
        await adopter.no_answer("cannot be reached")
    assert time.monotonic() - begun < AT_ONCE
    await adopter.authority.close()


async def test_a_restart_is_heard_of_also_by_one_that_has_never_asked() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        await until(lambda: opened.channel._peers)

        await restart(opened)

        await until(lambda: adopter.restarted)
        assert (adopter.announced, adopter.authority.restarts) == (1, 1)


async def test_what_the_owners_authority_cannot_answer_is_said_in_its_words() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        opened.authority.result = ValueError("the disk is on fire")

        await adopter.no_answer("the disk is on fire")


async def test_an_owner_that_comes_back_is_asked_again() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        await adopter.check()
        await opened.channel.close()
        await adopter.no_answer("has closed|cannot be reached")

        again = channels.ControlServer(opened.channel._name, opened.authority, (), open_inspector)
        await again.open()

        assert not (await adopter.check()).server_changed
        await again.close()


async def test_after_close_nothing_is_asked() -> None:
    async with open_channel() as opened:
        adopter = Adopter(opened.path)
        await adopter.authority.close()

        await adopter.no_answer("is ending")


OWNER = """
import asyncio, sys
from uno_devserver.hotreload.control.server import ControlServer, ControlLimits

class Hanging:
    async def check(self, tell, demand):
        tell("under way")
        await asyncio.Event().wait()

async def main():
    await ControlServer(sys.argv[1], Hanging(), (), None, ControlLimits(progress_seconds=0.05)).open()
    sys.stdout.buffer.write(b"open\\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


async def with_owner(use: Callable[[str, subprocess.Popen[bytes]], Awaitable[None]], program: str = OWNER) -> None:
    """Another process that owns the server, and whose checks take forever."""
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chmod(folder, 0o777)  # one of the programs becomes another user
        name = channel_name(folder)
        argv = [sys.executable, "-c", program, name]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
            try:
                assert owner.stdout
                assert owner.stdout.readline() == b"open\n"
                await use(pipe_path(name), owner)
            finally:
                owner.kill()


async def test_an_owner_that_is_killed_while_a_check_waits_is_noticed_at_once() -> None:
    async def kill(path: str, owner: subprocess.Popen[bytes]) -> None:
        adopter = Adopter(path)
        check = asyncio.create_task(adopter.check())
        await until(lambda: adopter.told)

        owner.kill()
        begun = time.monotonic()
        with pytest.raises(AuthorityProblem, match="has closed"):
            await check

        assert time.monotonic() - begun < AT_ONCE
        await adopter.authority.close()

    await with_owner(kill)


async def test_an_owner_that_is_busy_for_ever_is_given_up_although_it_is_not_silent() -> None:
    async def wait(path: str, _: subprocess.Popen[bytes]) -> None:
        adopter = Adopter(path, RemoteLimits(whole_seconds=0.5))

        await adopter.no_answer("has not finished within")

        assert adopter.told
        await adopter.authority.close()

    await with_owner(wait)


OTHER_USER = """
import os, socket, sys
os.setuid(65534)
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listening.listen()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both")
async def test_a_program_of_another_user_in_the_owners_place_is_not_asked() -> None:
    async def refused(path: str, _: subprocess.Popen[bytes]) -> None:
        with pytest.raises(AuthorityProblem, match="belongs to another user"):
            await Adopter(path).check()

    await with_owner(refused, OTHER_USER)


async def test_a_frozen_owner_costs_one_wait_and_then_none_until_it_stirs() -> None:
    async def freeze(path: str, owner: subprocess.Popen[bytes]) -> None:
        adopter = Adopter(path, IMPATIENT)
        check = asyncio.create_task(adopter.check())
        await until(lambda: adopter.told)
        os.kill(owner.pid, signal.SIGSTOP)

        with pytest.raises(AuthorityProblem, match=r"silent for 0\.2 s"):
            await check
        begun = time.monotonic()
        for _ in range(100):
            await adopter.no_answer("asked again later")
        assert time.monotonic() - begun < AT_ONCE

        os.kill(owner.pid, signal.SIGCONT)  # and it goes on telling that it is at it
        await until(lambda: not adopter.authority._is_doubted())
        check = asyncio.create_task(adopter.check())
        adopter.told.clear()
        await until(lambda: adopter.told)
        check.cancel()
        await adopter.authority.close()

    await with_owner(freeze)


# Restarts.


async def test_two_adopters_let_their_calls_finish_before_the_owner_restarts() -> None:
    async with open_channel() as opened:
        adopters = [Adopter(opened.path) for _ in range(2)]
        for adopter in adopters:
            await adopter.check()
            adopter.idle.clear()

        restarting = asyncio.create_task(restart(opened))
        await until(lambda: all(adopter.announced for adopter in adopters))
        adopters[0].idle.set()
        await asyncio.sleep(0)
        assert not restarting.done(), "a call of the second one still runs"
        adopters[1].idle.set()
        await restarting

        await until(lambda: all(adopter.restarted for adopter in adopters))
        for adopter in adopters:
            assert adopter.restarted == [RestartResult(True, lists="grown")]
            await adopter.authority.close()
        assert opened.authority.restarts == 1


async def test_a_restart_that_one_adopter_wants_is_one_for_all() -> None:
    async with open_channel() as opened:
        first, second = Adopter(opened.path), Adopter(opened.path)
        opened.authority.result = CheckResult(server_changed=True, server_rebuilt=True)
        await first.check()
        await second.check()
        wanted = opened.authority.ready_to_restart

        async def owner_restarts() -> RestartResult:
            await opened.channel.announce_restart(SECONDS)
            outcome = await wanted()
            opened.channel.announce_restarted(outcome)
            return outcome

        opened.authority.ready_to_restart = owner_restarts  # type: ignore[method-assign]

        assert await first.authority.ready_to_restart() == RestartResult(True)
        await until(lambda: second.restarted)

        assert (opened.authority.restarts, first.announced, second.announced) == (1, 0, 1)
        await first.authority.close()
        await second.authority.close()


async def test_a_restart_that_does_not_wait_any_longer_breaks_off_the_waiting_and_is_not_made_twice() -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        await adopter.check()
        adopter.idle.clear()

        await restart(opened, 0.05)

        await until(lambda: adopter.restarted and adopter.broken_off)
        assert (adopter.announced, adopter.broken_off) == (1, 1)
        adopter.idle.set()
        await adopter.check()
        assert (adopter.restarted, opened.authority.restarts) == ([RestartResult(True, lists="grown")], 1)


@pytest.mark.parametrize("calls_run", [False, True])
async def test_an_owner_that_goes_in_the_middle_of_a_restart_is_told_as_such(calls_run: bool) -> None:
    async with open_channel() as opened, Adopter(opened.path) as adopter:
        await adopter.check()
        if calls_run:
            adopter.idle.clear()
        announcing = asyncio.create_task(opened.channel.announce_restart(SECONDS))
        await until(lambda: adopter.announced if calls_run else announcing.done())

        await opened.channel.close()
        await announcing

        await until(lambda: adopter.restarted)
        assert [outcome.ok for outcome in adopter.restarted] == [False]


async def test_an_adopter_that_cannot_let_its_calls_finish_says_ready_all_the_same() -> None:
    async def fails() -> None:
        raise ValueError("no pipeline")

    async with open_channel() as opened:
        restarted: list[RestartResult] = []
        authority = RemoteAuthority(opened.path, fails, restarted.append)
        await authority.check(print)

        await asyncio.wait_for(restart(opened), SECONDS)

        await until(lambda: restarted)
        await authority.close()


# One request of a command.


@pytest.mark.parametrize(
    ("method", "params", "seconds", "words"),
    [("openInspector", {"port": 1}, 5, "Port 1 is taken"), ("checkForChanges", {}, 0.05, "does not answer")],
)
async def test_a_question_that_is_not_answered_says_why(
    method: str, params: dict[str, int], seconds: float, words: str
) -> None:
    async with open_channel() as opened:
        opened.authority.goes_on.clear()
        with pytest.raises(AuthorityProblem, match=words):
            await asyncio.to_thread(ask, opened.path, method, params, seconds)
        assert await asyncio.to_thread(ask, opened.path, "openInspector", {"port": 7000}, 5) == {
            "url": "http://localhost:7000/"
        }


@pytest.mark.parametrize("path", ["/there/is/nothing", "no path at all"])
def test_a_question_where_nobody_listens_says_so(path: str) -> None:
    with pytest.raises(AuthorityProblem, match="cannot be reached"):
        ask(path, "system.ping", {}, 5)


async def test_a_question_to_one_that_goes_without_an_answer_is_no_traceback(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    async with await asyncio.start_unix_server(lambda _, writer: writer.close(), path):
        with pytest.raises(AuthorityProblem, match="has closed"):
            await asyncio.to_thread(ask, path, "system.ping", {}, 5)
