"""What is tried with each proxy, once per round. An experiment gives a figure for each of its rows, or ends with the
reason why this proxy cannot do it. Every answer is checked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks.conversations import Direct, NoAnswer, request
from benchmarks.figures import median
from benchmarks.peers import servers
from benchmarks.peers.installed import ALONE, HOME, OURS, Command, Peer
from benchmarks.peers.sessions import (
    Message,
    OnHttp,
    OnPipes,
    Session,
    end,
    free_port,
    memory,
    started_server,
)
from benchmarks.proxy import CALL as DOUBLE

REVISION = {"name": "revision", "arguments": {}}
BLOCK_CALLS, BLOCK_SECONDS = 100, 0.4  # of one round; some take 40 ms for a call
AT_ONCE = 32
RATE_SECONDS = 0.4
LIST_SECONDS = 20.0
ASK_AGAIN_SECONDS = 0.01  # a proxy may answer before it has met the server, as ours does at its first start ever
HEAL_SECONDS = 15.0
EDIT_SECONDS = 10.0
STEADY_SECONDS = 0.02  # between the calls of one who does not stop for an edit
LATE_SECONDS = 3.0  # for those of them that are still not answered when the new code answers others

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
    Row("memory", "memory after the first call", "MB"),
    Row("worked", "memory after all calls", "MB"),
    Row("healed", "`kill -9` of its server → good call", "ms"),
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
        self._kept: dict[str, Session] = {}
        self._edited: dict[str, servers.Edited] = {}

    def begin_round(self) -> None:
        """How long a call takes without a proxy, now."""
        direct = Direct(self._port)
        self.direct_call = median(_block(direct.ask))
        direct.close()

    def kept(self, name: str, start: Callable[[], Session]) -> Session:
        if name not in self._kept:
            self._kept[name] = start()
            self._kept[name].shake_hands()
        return self._kept[name]

    def drop(self, peer: Peer) -> None:
        """After a failure: what it still has to do, it does in a new session."""
        for name in [name for name in self._kept if name.startswith(f"{peer.name} ")]:
            end(self._kept.pop(name))

    def edited(self, peer: Peer, strategy: str) -> tuple[Session, servers.Edited]:
        name = f"{peer.name} {strategy}"
        if name not in self._edited:
            self._edited[name] = servers.Edited(peer.name, strategy)
        file = self._edited[name]
        if peer.reloading:
            command = peer.reloading(file.file)
            return self.kept(name, lambda: OnPipes(command, file.folder)), file
        return self.kept(name, lambda: _before_command(peer, file.command, file)), file

    def close(self) -> None:
        for session in self._kept.values():
            end(session)


# The experiments, in the order of the rows.


def launch(peer: Peer, arena: Arena) -> Figures:
    """In front of a server that runs: greet, list, call, as clients do."""
    session = OnPipes(peer.to_url(arena.url), HOME)
    try:
        session.shake_hands()
        greeted = _since(session)
        while not _lists(session.ask("tools/list", {}), "double"):
            if _since(session) > LIST_SECONDS * 1000:
                raise NoAnswer("the server's tool is not listed")
            time.sleep(ASK_AGAIN_SECONDS)
        listed = _since(session)
        _check(session.ask("tools/call", DOUBLE), "42")
        return {"initialize": greeted, "list": listed, "first": _since(session), "memory": memory(session) / 1e6}
    finally:
        end(session)


def cold(peer: Peer, _: Arena) -> Figures:
    return {"cold": _cold(peer, servers.lean())}


def cold_sdk(peer: Peer, _: Arena) -> Figures:
    return {"coldSdk": _cold(peer, servers.sdk())}


def _cold(peer: Peer, server: Command) -> float:
    """It starts the server itself."""
    session = _before_command(peer, server)
    try:
        session.shake_hands()
        session.ask("tools/list", {})
        _check(session.ask("tools/call", REVISION), "0")
        return _since(session)
    finally:
        end(session)


def calls(peer: Peer, arena: Arena) -> Figures:
    """One after the other, then 32 in flight, through a session that stays over all rounds."""
    session = arena.kept(f"{peer.name} calls", lambda: OnPipes(peer.to_url(arena.url), HOME))
    assert isinstance(session, OnPipes)
    milliseconds = median(_block(session.ask))
    rate = session.in_flight("tools/call", DOUBLE, AT_ONCE, RATE_SECONDS)
    figures = {"call": milliseconds, "rate": rate, "worked": memory(session) / 1e6}
    return figures if peer.name == ALONE else figures | {"added": milliseconds - arena.direct_call}


def healed(peer: Peer, arena: Arena) -> Figures:
    """The server that it started is killed; the time until a call is answered well."""
    server = servers.lean()
    session = arena.kept(f"{peer.name} healed", lambda: _before_command(peer, server))
    _check(session.ask("tools/call", REVISION), "0")
    victim = started_server(session, server[-1])
    begun = time.perf_counter()
    victim.kill()
    session.until(lambda answer: _text(answer) == "0", REVISION, HEAL_SECONDS)
    return {"healed": (time.perf_counter() - begun) * 1000}


def edit(peer: Peer, arena: Arena) -> Figures:
    session, server = arena.edited(peer, "restart")
    session.until(lambda answer: _text(answer) == str(server.revision), REVISION, EDIT_SECONDS)
    expected = server.edit()
    begun = time.perf_counter()
    session.until(lambda answer: _text(answer) == expected, REVISION, EDIT_SECONDS)
    return {"edit": (time.perf_counter() - begun) * 1000}


def unbroken(peer: Peer, arena: Arena) -> Figures:
    """Somebody calls all the time, and every one of these calls must be answered well, by the old code or the new."""
    session, server = arena.edited(peer, "swap" if peer.name == OURS else "restart")
    if not isinstance(session, OnPipes):
        raise Cannot("it does not notice an edit")
    session.until(lambda answer: _text(answer) == str(server.revision), REVISION, EDIT_SECONDS)
    expected = server.edit()
    begun = time.perf_counter()
    waiting: set[int] = set()
    failed, answered_after = 0, 0.0
    while not answered_after or waiting:
        if time.perf_counter() - begun > EDIT_SECONDS:
            raise NoAnswer(f"{len(waiting) + failed} calls around an edit were lost or failed")
        if not answered_after:
            request_id = session.next_id()
            session.send(request(request_id, "tools/call", REVISION))
            waiting.add(request_id)
        try:
            message = json.loads(session.line(LATE_SECONDS if answered_after else STEADY_SECONDS))
        except NoAnswer:
            if answered_after:
                raise NoAnswer(f"{len(waiting) + failed} calls around an edit were lost or failed") from None
            continue
        if message.get("id") in waiting and "method" not in message:
            waiting.discard(message["id"])
            failed += _text(message) not in (expected, str(server.revision - 1))
            if _text(message) == expected and not answered_after:
                answered_after = (time.perf_counter() - begun) * 1000
        if not answered_after:
            time.sleep(STEADY_SECONDS)
    if failed:
        raise NoAnswer(f"{failed} calls around an edit failed")
    return {"unbroken": answered_after}


class Experiment(NamedTuple):
    run: Callable[[Peer, Arena], Figures]
    rows: tuple[str, ...]
    needs: str = ""  # a row; who cannot do that is not asked for this


EXPERIMENTS = (
    Experiment(launch, ("initialize", "list", "first", "memory")),
    Experiment(cold, ("cold",)),
    Experiment(cold_sdk, ("coldSdk",)),
    Experiment(calls, ("call", "added", "rate", "worked")),
    Experiment(healed, ("healed",)),
    Experiment(edit, ("edit",)),
    Experiment(unbroken, ("unbroken",), needs="edit"),
)


# What they have in common.


def _before_command(peer: Peer, server: Command, edited: servers.Edited | None = None) -> Session:
    if peer.to_command is None:
        raise Cannot("it starts no server")
    folder = edited.folder if edited else HOME
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
    if _text(answer) != expected:
        raise NoAnswer(f"wrong answer to a call: {answer}")


def _text(answer: Message) -> object:
    result = answer.get("result", {})
    content = result.get("content") or [{}]
    return None if result.get("isError") else content[0].get("text")
