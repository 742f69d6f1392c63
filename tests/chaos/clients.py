"""A client as AI clients are: it starts a proxy on pipes, calls tools without a pause for long, and checks each answer.

It may read slowly, write nonsense, and take calls back. Its end is one of three: it says goodbye by closing its end, it
is killed (its ends are closed in the middle of whatever was under way), or the proxy itself is killed.
"""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos.client_process import ClientProcess, ends, send
from chaos.invariants import (
    NO_TRACEBACK,
    PROXY_GOES,
    PROXY_STAYS,
    VALID_LINES,
    Broken,
    Conversation,
    Outcome,
    Request,
    outcome_of,
)
from chaos.upstreams.tools import EFFECTIVE, META, MODERN, READING, REPEATABLE
from support.inspectors import InspectorClient

NEWEST_HANDSHAKE = "2025-11-25"
MOST_WAITING = 6  # calls under way; a client with more than these waits for an answer
LONGEST_PAUSE = 0.2  # of a tool between its effect and its answer
END_SECONDS = 15.0  # for a proxy to be gone with its client; the promise is one second, on a machine that is not busy
KEPT_ANSWERS = 12  # for the report of a failure
READ_BYTES = 65536
SLOW_BYTES, SLOW_SECONDS = 2000, 0.05  # 40 KB a second
WAKE_SECONDS = 0.2  # between two looks whether it has died
HEALTH = "uno_health"
OWN_TOOLS = (HEALTH, "mcpStatus")
# What a client asks for, and how often.
REQUESTS = {
    READING: 20,
    REPEATABLE: 20,
    EFFECTIVE: 40,
    **dict.fromkeys(OWN_TOOLS, 5),
    "tools/list": 4,
    "ping": 4,
    "no/such/method": 2,
}
NONSENSE = (b"{", b"[]", b"nonsense", bytes(range(128, 256)), b'{"jsonrpc": "2.0", "id": ', b"null", b"[" * 2000)


class Tally:
    """Counts and broken invariants of all clients of a world."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.calls = 0
        self.answers: Counter[str] = Counter()  # by what they say
        self.generations: dict[str, int] = {}  # of servers that each client has seen
        self.longest_silence = 0.0  # of a request
        self.broken: list[Broken] = []


class Client:
    """One client and its proxy."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        tally: Tally,
        *,
        modern: bool,
        seed: int,
        prefixes: Sequence[str] = ("",),
    ) -> None:
        self.name = name
        self.tally = tally
        self.conversation = Conversation(name, tally.broken)
        self.last: deque[str] = deque(maxlen=KEPT_ANSWERS)
        self.stderr: deque[str] = deque(maxlen=60)
        self.health: dict[str, Any] = {}
        self.slow_until = 0.0
        self.page: InspectorClient | None = None
        self._modern = modern
        self._prefixes = prefixes
        self._random = random.Random(seed)
        self._ids = 0
        self._lock = threading.RLock()  # of the conversation
        self._deaf = threading.Event()  # it has died, and reads nothing any more
        self._heard = threading.Event()  # its proxy has said something, so it runs
        self._ending = threading.Event()  # its end is the client's, or the driver's, doing
        self.calling = threading.Event()
        self.process = ClientProcess(argv, cwd, env)
        self._threads = [
            threading.Thread(target=target, daemon=True, name=f"{name} {target.__name__}")
            for target in (self._read, self._read_stderr, self._call_on)
        ]
        for thread in self._threads:
            thread.start()
        if not modern:
            info = {"name": name, "version": "1"}
            self.ask("initialize", {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": info})
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.calling.set()

    # --- what it asks

    def ask(self, method: str, params: dict[str, Any] | None = None, *, key: str = "", tool: str = "") -> Request:
        with self._lock:
            self._ids += 1
            request = Request(self._ids, method, time.monotonic(), key, tool)
            self.conversation.asks(request)
        if self._modern:
            envelope = {
                f"{META}protocolVersion": MODERN,
                f"{META}clientInfo": {"name": self.name, "version": "1"},
                f"{META}clientCapabilities": {},
            }
            params = {**(params or {}), "_meta": envelope}
        self._send({"jsonrpc": "2.0", "id": request.id, "method": method, "params": params or {}})
        return request

    def call(self, tool: str, pause: float = 0.0, prefix: str = "") -> Request:
        with self._lock:
            self.tally.calls += 1
            key = f"{self.name}-{self._ids + 1}"
        arguments = {"key": key, "pause": round(pause, 3)}
        return self.ask("tools/call", {"name": prefix + tool, "arguments": arguments}, key=key, tool=tool)

    def ask_health(self) -> Request:
        return self.ask("tools/call", {"name": HEALTH, "arguments": {"details": True}}, tool=HEALTH)

    def take_back(self) -> None:
        """Cancel the call that was made last, if it is under way."""
        with self._lock:
            calls = [each for each in self.conversation.waiting.values() if each.key]
            if not calls:
                return
            self.conversation.cancels(calls[-1].id)
        self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": calls[-1].id}})

    def talk_nonsense(self, pick: float) -> None:
        with self._lock:
            self.conversation.errs()
        self.process.write(NONSENSE[int(pick * len(NONSENSE))] + b"\n")

    def read_slowly(self, seconds: float) -> None:
        self.slow_until = time.monotonic() + seconds

    # --- its end

    def says_goodbye(self) -> None:
        proxy = self._begin_end()
        self.process.close_stdin()
        self._end(proxy)

    def dies(self, *, pipes_stay: bool) -> None:
        """As by kill -9, in the middle of everything; `pipes_stay`: some other process has inherited its ends."""
        if pipes_stay and self.process.awake_proxy() is not None:
            self._heard.wait(END_SECONDS)  # until Python has started, the proxy does not watch its parent
        proxy = self._begin_end()
        self.process.kill()
        if not pipes_stay:
            self._deaf.set()
            self.process.close_stdin()
        self._end(proxy)

    def proxy_dies(self) -> None:
        proxy = self._begin_end()
        if proxy is not None:
            send(proxy, signal.SIGKILL)
        self._end(proxy)

    def _begin_end(self) -> int | None:
        proxy = self.process.awake_proxy()
        self.calling.clear()
        self._ending.set()
        return proxy

    def _end(self, proxy: int | None) -> None:
        if not ends(proxy, END_SECONDS):
            self._break(PROXY_GOES, f"its process {proxy} runs {END_SECONDS:g} s after its client's end")
        self.process.exit_code()
        for thread in self._threads:
            thread.join(END_SECONDS)
        self.process.close_stdin()

    # --- inside

    def _call_on(self) -> None:
        chance = self._random
        while not self._ending.is_set():
            if self._ending.wait(chance.uniform(0.1, 0.5)):
                return
            if not self.calling.is_set() or self.conversation.under_way >= MOST_WAITING:
                continue
            what = chance.choices(list(REQUESTS), list(REQUESTS.values()))[0]
            if what in (READING, REPEATABLE, EFFECTIVE):
                self.call(what, chance.uniform(0.0, LONGEST_PAUSE), chance.choice(self._prefixes))
            elif what in OWN_TOOLS:
                self.ask("tools/call", {"name": what, "arguments": {}}, tool=what)
            else:
                self.ask(what)

    def _send(self, message: dict[str, Any]) -> None:
        self.process.write(json.dumps(message).encode() + b"\n")

    def _read(self) -> None:
        rest = b""
        while not self._deaf.is_set():
            slow = time.monotonic() < self.slow_until
            if slow:
                self._deaf.wait(SLOW_SECONDS)
            data = self.process.read(SLOW_BYTES if slow else READ_BYTES, WAKE_SECONDS)
            if data is None:
                continue
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line)
        self.process.close_stdout()
        code = self.process.exit_code()
        if not self._ending.is_set():
            self._ending.set()
            if rest:
                self._break(VALID_LINES, f"half a line at the end: {rest[:300]!r}")
            self._break(PROXY_STAYS, f"it ended with exit code {code}; stderr: {' / '.join(list(self.stderr)[-20:])}")

    def _take(self, line: bytes) -> None:
        self._heard.set()
        with self._lock:
            request, message = self.conversation.hears(line)
            if request is not None:
                self._answered(request, message, line)
        if "method" in message and "id" in message:
            refusal = {"code": -32601, "message": "no such method"}
            self._send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})

    def _answered(self, request: Request, message: dict[str, Any], line: bytes) -> None:
        tally = self.tally
        request.answer = message
        tally.longest_silence = max(tally.longest_silence, time.monotonic() - request.at)
        if request.tool == HEALTH:
            self.health = health_of(message) or self.health
            tally.generations[self.name] = self.health.get("proxy", {}).get("generation", 0)
        if not request.key:
            return
        outcome, broken = outcome_of(request, message)
        tally.outcomes.append(outcome)
        tally.broken.extend(broken)
        tally.answers[said_by(outcome, message)] += 1
        self.last.append(f"{request.key} {request.tool}: {line[:300].decode('utf-8', 'replace')}")

    def _read_stderr(self) -> None:
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            self.stderr.append(text)
            if text.startswith("Traceback"):
                self._break(NO_TRACEBACK, "see its stderr")
        self.process.stderr.close()

    def _break(self, invariant: str, text: str) -> None:
        self.tally.broken.append(Broken(invariant, f"{self.name}: {text}"))


def health_of(message: dict[str, Any]) -> dict[str, Any] | None:
    try:
        report = json.loads(message["result"]["content"][0]["text"])
    except (KeyError, IndexError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def said_by(outcome: Outcome, message: dict[str, Any]) -> str:
    """Under which word an answer is counted."""
    if "error" in message:
        return f"error {message['error'].get('code')}"
    return outcome.verdict.value
