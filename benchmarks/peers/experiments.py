"""What is tried with each proxy, once per round. An experiment gives a figure for each of its rows, or ends with the
reason why this proxy cannot do it. Every answer is checked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.conversations import Direct, NoAnswer, request
from benchmarks.figures import median
from benchmarks.peers import servers
from benchmarks.peers.installed import ALONE, HOME, Command, Peer
from benchmarks.peers.sessions import (
    Message,
    OnHttp,
    OnPipes,
    Session,
    end,
    free_port,
    last_words,
    memory,
    opened,
    processor_time,
    started_server,
)
from benchmarks.proxy import CALL as DOUBLE

REVISION = {"name": "revision", "arguments": {}}
HEALTH = {"name": "uno_health", "arguments": {}}
BLOCK_CALLS, BLOCK_SECONDS = 100, 0.3  # of one round; some take 40 ms for a call
AT_ONCE = 32
RATE_SECONDS = 0.3
LIST_SECONDS = 20.0
ASK_AGAIN_SECONDS = 0.01  # a proxy may answer before it has met the server, as ours does at its first start ever
# On a machine where a bare interpreter starts within QUIET_SECONDS; on a busier one they are longer (see `bound`).
HEAL_SECONDS = 15.0  # until it works again; then the answer is no
EDIT_SECONDS = 8.0  # several times what those need that notice an edit
QUIET_SECONDS = 0.025
STEADY_SECONDS = 0.05  # between the calls of one who does not stop for an edit
LATE_SECONDS = 10.0  # for those of them that are not answered yet when the new code answers others

Figures = dict[str, float]


class Row(NamedTuple):
    key: str
    title: str
    unit: str  # "ms", "MB", or "/s", of which more is better


ROWS = (
    Row("initialize", "launch → `initialize`", "ms"),
    Row("list", "launch → `tools/list`", "ms"),
    Row("first", "launch → first call, server running", "ms"),
    Row("cold", "launch → first call, lean server cold", "ms"),
    Row("coldSdk", "launch → first call, SDK's server cold", "ms"),
    Row("call", "a call", "ms"),
    Row("added", "added to a call", "ms"),
    Row("rate", "calls with 32 in flight", "/s"),
    Row("processor", "processor time of each of them", "ms"),
    Row("memory", "memory after the first call", "MB"),
    Row("worked", "memory after all calls", "MB"),
    Row("healed", "`kill -9` of its server → good call", "ms"),
    Row("stoodBy", "the same, with a second server that stands by", "ms"),
    Row("edit", "edit → new code answers", "ms"),
    Row("unbroken", "edit → new code answers, no call lost", "ms"),
)


class Cannot(SystemExit):
    """The proxy has no way to do it at all."""


class Arena:
    """What lasts over the rounds: the running server, and the sessions that are not about a launch."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._port = int(url.rpartition(":")[2].partition("/")[0])
        self.direct_call = 0.0
        self._bare = 0.0  # seconds of a bare start in this round
        self._kept: dict[tuple[str, str], Session] = {}  # by proxy and row
        self._edited: dict[tuple[str, str], servers.Edited] = {}

    def begin_round(self, bare: float) -> None:
        """How long a call takes without a proxy, and a bare start, now."""
        self._bare = bare
        direct = Direct(self._port)
        self.direct_call = median(_block(direct.ask))
        direct.close()

    def kept(self, peer: Peer, row: str, start: Callable[[], Session]) -> Session:
        if (peer.name, row) not in self._kept:
            session = self._kept[peer.name, row] = start()
            session.shake_hands()
        return self._kept[peer.name, row]

    def bound(self, seconds: float) -> float:
        """So that a busy machine makes nobody's answer a no."""
        return bound(seconds, self._bare)

    def drop(self, peer: Peer, row: str) -> str:
        """End the session that was kept, if there is one; what its proxy said last."""
        session = self._kept.pop((peer.name, row), None)
        if session is None:
            return ""
        said = last_words(session)
        end(session)
        return said

    def edited(self, peer: Peer, row: str, strategy: str) -> tuple[Session, servers.Edited]:
        if (peer.name, row) not in self._edited:
            self._edited[peer.name, row] = servers.Edited(peer.name, strategy)
        file = self._edited[peer.name, row]
        if peer.reloading:
            command = peer.reloading(file.file)
            return self.kept(peer, row, lambda: OnPipes(command, file.folder)), file
        return self.kept(peer, row, lambda: _before_command(peer, file.command, file.folder)), file

    def close(self) -> None:
        for session in self._kept.values():
            end(session)


def bound(seconds: float, bare: float) -> float:
    return seconds * max(1.0, bare / QUIET_SECONDS)


# The experiments, in the order of the rows.


def launch(peer: Peer, arena: Arena) -> Figures:
    """In front of a server that runs: greet, list, call, as clients do."""
    with opened(OnPipes(peer.to_url(arena.url), HOME)) as session:
        session.shake_hands()
        greeted = _since(session)
        while not _lists(session.ask("tools/list", {}), "double"):
            if _since(session) > LIST_SECONDS * 1000:
                raise NoAnswer("the server's tool is not listed")
            time.sleep(ASK_AGAIN_SECONDS)
        listed = _since(session)
        _check(session.ask("tools/call", DOUBLE), "42")
        return {"initialize": greeted, "list": listed, "first": _since(session), "memory": memory(session) / 1e6}


def cold(peer: Peer, _: Arena) -> Figures:
    return {"cold": _cold(peer, servers.lean())}


def cold_sdk(peer: Peer, _: Arena) -> Figures:
    return {"coldSdk": _cold(peer, servers.sdk())}


def _cold(peer: Peer, server: Command) -> float:
    """It starts the server itself."""
    with opened(_before_command(peer, server)) as session:
        session.shake_hands()
        session.ask("tools/list", {})
        _check(session.ask("tools/call", REVISION), "0")
        return _since(session)


def calls(peer: Peer, arena: Arena) -> Figures:
    """One after the other, then 32 in flight, through a session that stays over all rounds."""
    session = arena.kept(peer, "call", lambda: OnPipes(peer.to_url(arena.url), HOME))
    assert isinstance(session, OnPipes)
    milliseconds = median(_block(session.ask))
    begun, used = time.perf_counter(), processor_time(session)
    rate = session.in_flight("tools/call", DOUBLE, AT_ONCE, RATE_SECONDS)
    answered = rate * (time.perf_counter() - begun)
    used = processor_time(session) - used
    figures = {"call": milliseconds, "rate": rate, "worked": memory(session) / 1e6}
    if peer.name == ALONE:  # there it would be the server's own
        return figures
    return figures | {"added": milliseconds - arena.direct_call, "processor": used * 1000 / answered}


def healed(peer: Peer, arena: Arena) -> Figures:
    """The server that it started is killed; the time until a call is answered well."""
    server = servers.lean()
    session = arena.kept(peer, "healed", lambda: _before_command(peer, server))
    _check(session.ask("tools/call", REVISION), "0")
    return {"healed": _kill(session, server, arena)}


def stood_by(peer: Peer, arena: Arena) -> Figures:
    """The same, when a second server is ready to take over."""
    if peer.to_config is None:
        raise Cannot("it keeps no second server ready")
    command, server = peer.to_config, servers.lean()
    session = arena.kept(peer, "stoodBy", lambda: OnPipes(command, servers.with_standby(server)))
    session.until(lambda answer: '"standby"' in str(text_of(answer)), HEALTH, arena.bound(HEAL_SECONDS))
    _check(session.ask("tools/call", REVISION), "0")
    return {"stoodBy": _kill(session, server, arena)}


def _kill(session: Session, server: Command, arena: Arena) -> float:
    victim = started_server(session, server)
    begun = time.perf_counter()
    victim.kill()
    session.until(lambda answer: text_of(answer) == "0", REVISION, arena.bound(HEAL_SECONDS))
    return (time.perf_counter() - begun) * 1000


def edit(peer: Peer, arena: Arena) -> Figures:
    session, server = arena.edited(peer, "edit", "restart")
    session.until(lambda answer: text_of(answer) == str(server.revision), REVISION, arena.bound(EDIT_SECONDS))
    expected = server.edit()
    begun = time.perf_counter()
    session.until(lambda answer: text_of(answer) == expected, REVISION, arena.bound(EDIT_SECONDS))
    return {"edit": (time.perf_counter() - begun) * 1000}


def unbroken(peer: Peer, arena: Arena) -> Figures:
    """Somebody calls all the time, and every one of these calls must be answered well, by the old code or the new."""
    session, server = arena.edited(peer, "unbroken", "swap")
    if not isinstance(session, OnPipes):
        raise Cannot("only a client on pipes can have several calls under way here")
    old = str(server.revision)
    session.until(lambda answer: text_of(answer) == old, REVISION, arena.bound(EDIT_SECONDS))
    new = server.edit()
    begun = time.perf_counter()
    told: dict[int, object] = {}  # by each of the calls; None as long as it is not answered
    while new not in told.values():
        if time.perf_counter() - begun > arena.bound(EDIT_SECONDS):
            raise NoAnswer("the new code does not answer")
        request_id = session.next_id()
        told[request_id] = None
        session.send(request(request_id, "tools/call", REVISION))
        _hear(session, told, STEADY_SECONDS, until=new)
    took = (time.perf_counter() - begun) * 1000
    _hear(session, told, LATE_SECONDS)
    failed = [text for text in told.values() if text not in (old, new)]
    if failed:
        raise NoAnswer(f"{len(failed)} of {len(told)} calls around an edit were lost or failed")
    return {"unbroken": took}


def _hear(session: OnPipes, told: dict[int, object], seconds: float, until: str | None = None) -> None:
    """What the calls are told in this time; it ends early when the code that is waited for answers, or all have."""
    ends = time.perf_counter() + seconds
    while until or None in told.values():
        try:
            message = json.loads(session.line(ends - time.perf_counter()))
        except NoAnswer:
            return
        if message.get("id") in told and "method" not in message:
            told[message["id"]] = text_of(message)
            if until and told[message["id"]] == until:
                return


class Experiment(NamedTuple):
    run: Callable[[Peer, Arena], Figures]
    rows: tuple[str, ...]
    needs: str = ""  # a row; who cannot do that is not asked for this


EXPERIMENTS = (
    Experiment(launch, ("initialize", "list", "first", "memory")),
    Experiment(cold, ("cold",)),
    Experiment(cold_sdk, ("coldSdk",)),
    Experiment(calls, ("call", "added", "rate", "processor", "worked")),
    Experiment(healed, ("healed",)),
    Experiment(stood_by, ("stoodBy",)),
    Experiment(edit, ("edit",)),
    Experiment(unbroken, ("unbroken",), needs="edit"),
)


# What they have in common.


def _before_command(peer: Peer, server: Command, folder: Path = HOME) -> Session:
    if peer.to_command is None:
        raise Cannot("it starts no server")
    port = free_port() if peer.on_http else 0
    command = peer.to_command(server, port)
    return OnHttp(command, folder, port) if peer.on_http else OnPipes(command, folder)


def _since(session: Session) -> float:
    return (time.perf_counter() - session.started) * 1000


def _block(ask: Callable[[str, Mapping[str, Any]], Message]) -> list[float]:
    """Milliseconds of each of some calls."""
    times: list[float] = []
    ends = time.perf_counter() + BLOCK_SECONDS
    while len(times) < BLOCK_CALLS and (time.perf_counter() < ends or not times):
        begun = time.perf_counter()
        answer = ask("tools/call", DOUBLE)
        times.append((time.perf_counter() - begun) * 1000)
        _check(answer, "42")
    return times


def _lists(answer: Message, name: str) -> bool:
    return any(tool["name"] == name for tool in answer.get("result", {}).get("tools", []))


def _check(answer: Message, expected: str) -> None:
    if text_of(answer) != expected:
        raise NoAnswer(f"wrong answer to a call: {answer}")


def text_of(answer: Message) -> object:
    result = answer.get("result", {})
    content = result.get("content") or [{}]
    return None if result.get("isError") else content[0].get("text")
