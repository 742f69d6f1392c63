"""How close is the proxy to the least that a relay in Python can do?

In each round the same calls of a lean server are made in three ways, in turn: directly, through a relay of fewer than
60 lines (the floor), and through the installed proxy; the server is on pipes, or over HTTP. Measured are the processor
time of the relay per call, the time that it adds to one call at a time in both eras, calls per second with 32 in
flight, the processor time that a watched inspector page adds, and the time from launch to the first answer. Every
answer is checked. Exit code 1 means a wrong or missing answer; a missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.conversations import LIMIT_SECONDS
from benchmarks.figures import clean_environment, machine, median, save
from benchmarks.lean_server import READ_BYTES
from benchmarks.relay_clients import HANDSHAKE, MODERN, Client, Era, HttpClient, PipesClient
from benchmarks.workspaces import WORK
from uno_devserver.proxy.health.status_file import inspector_page
from uno_devserver.system.folders import folders

HERE = Path(__file__).parent
PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
FOLDER = WORK / "relay"
LEAN = (sys.executable, str(HERE / "lean_server.py"))

PIPES, HTTP = "pipes", "HTTP"
DIRECT, FLOOR, OURS = "direct", "floor", "ours"
WAYS = (DIRECT, FLOOR, OURS)
UNWATCHED, BARE = "unwatched", "bare interpreter"  # with which ours is compared in single rows

ROUNDS, QUICK_ROUNDS = 15, 5
CPU_CALLS, QUICK_CPU_CALLS = 20_000, 4_000
MANY, SOME = 256, 32  # calls in flight
SINGLE_CALLS, BLOCKS = 100, 2  # of each way in each round, so that a busy moment hits all of them
WARM_UP_CALLS = 512  # before each measurement: connections that were idle for seconds are opened again
MOST_KEPT = 50  # samples of a row in results/: thousands of single calls say no more than their percentiles
SHOWN_CALLS = 200  # the page keeps no more, so more of one moment are not told
SETTLE_SECONDS = 0.1  # a page is told of calls every 50 ms: what is told of the last ones counts, too

Command = tuple[str, ...]
Samples = dict[str, dict[str, list[float]]]  # of each row and way: µs or ms of a call, calls per second, ms of a launch
Medians = Mapping[str, float]  # by way


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relay", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds, {QUICK_CPU_CALLS:,} calls in each"
    )
    parser.add_argument("--save", action="store_true", help="keep the figures, and put them into the documents")
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else max(1, options.rounds)
    calls = QUICK_CPU_CALLS if options.quick else CPU_CALLS
    samples: Samples = {}
    try:
        with opened_sessions() as sessions:
            for number in range(rounds + 1):  # the first one warms the caches and does not count
                for what, way, values in measured_round(sessions, calls, number):
                    if number:
                        samples.setdefault(what, {}).setdefault(way, []).extend(values)
    except ConnectionError as error:
        raise SystemExit(f"a relay or a server ended while it was measured: {error}") from error
    report = render(samples, rounds, calls)
    print(report)
    if options.save:
        save("relay", rounds, [row.kept(samples[row.what]) for row in ROWS], report)
    return 0


def render(samples: Samples, rounds: int, calls: int) -> str:
    lines = [
        f"{machine()}; medians of {rounds} interleaved rounds, {calls:,} pipelined calls in each.",
        "",
        "| what | direct | floor | ours | ours compared | bar | |",
        "|---|---:|---:|---:|---:|---:|---|",
        *(row.render(samples[row.what]) for row in ROWS),
    ]
    return "\n".join(lines) + "\n"


# The rows of the table: what is compared, and its bar.


class Row(NamedTuple):
    what: str
    sample: str  # how the median and the 95th percentile of the samples are written
    compare: Callable[[Medians, str], float]  # one way with the others
    unit: str
    limit: float | None  # None: no bar
    at_least: bool = False
    beside: Sequence[str] = ()  # ways that are compared in the same way, for comparison only

    def render(self, samples: Mapping[str, Sequence[float]]) -> str:
        medians = {way: median(values) for way, values in samples.items()}
        figure = self.compare(medians, OURS)
        cells = [
            self.sample.format(medians[way], percentile_95(samples[way])) if way in samples else "" for way in WAYS
        ]
        others = "".join(f"; {way} {short(self.compare(medians, way))}" for way in self.beside)
        start = f"| {self.what} | {' | '.join(cells)} | {short(figure)}{self.unit}{others}"
        if self.limit is None:
            return f"{start} | | |"
        sign, reached = ("≥", figure >= self.limit) if self.at_least else ("≤", figure <= self.limit)
        return f"{start} | {sign} {self.limit:g}{self.unit} | {'pass' if reached else 'MISS'} |"

    def kept(self, samples: Mapping[str, Sequence[float]]) -> dict[str, object]:
        medians = {way: median(values) for way, values in samples.items()}
        figure = round(self.compare(medians, OURS), 4)
        ways = {
            way: {
                "median": round(medians[way], 4),
                "p95": round(percentile_95(values), 4),
                "count": len(values),
                "samples": [round(value, 4) for value in values[:MOST_KEPT]],
            }
            for way, values in samples.items()
        }
        return {"what": self.what, "figure": figure, "bar": self.limit, **ways}


def percentile_95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def cpu_row(transport: str, at_once: int) -> Row:
    return Row(
        f"CPU of the relay per call, {at_once} in flight, {transport}",
        "{:.1f} µs",
        lambda medians, way: medians[way] / medians[FLOOR],
        " × the floor",
        limit=3 if at_once == MANY else None,
    )


def added_row(transport: str, era: Era) -> Row:
    return Row(
        f"one call at a time takes longer by, {transport}, {era.name}",
        "{:.3f} ms (p95 {:.3f})",
        lambda medians, way: medians[way] - medians[DIRECT],
        " ms",
        limit=0.12,
        beside=(FLOOR,),
    )


def rate_row(transport: str) -> Row:
    return Row(
        f"calls/s with {SOME} in flight, {transport}",
        "{:,.0f}",
        lambda medians, way: 100 * medians[way] / medians[FLOOR],
        " % of the floor",
        limit=55,
        at_least=True,
    )


WATCHED_ROW = Row(
    "CPU per call with the inspector watched, pipes",
    "{:.1f} µs",
    lambda medians, way: medians[way] / medians[UNWATCHED],
    " × unwatched",
    limit=2,
)
LAUNCH_ROW = Row(
    "launch → first call of the lean server, cold",
    "{:.0f} ms",
    lambda medians, way: medians[way] / medians[BARE],
    " bare starts",
    limit=5,
    beside=(DIRECT, FLOOR),
)
TRANSPORTS, ERAS = (PIPES, HTTP), (HANDSHAKE, MODERN)
ROWS = (
    *(cpu_row(transport, at_once) for transport in TRANSPORTS for at_once in (MANY, SOME)),
    *(added_row(transport, era) for transport in TRANSPORTS for era in ERAS),
    *(rate_row(transport) for transport in TRANSPORTS),
    WATCHED_ROW,
    LAUNCH_ROW,
)


# What is measured in one round.

Measured = Iterator[tuple[str, str, Sequence[float]]]  # the row, the way, and its samples


def measured_round(sessions: Sessions, calls: int, number: int) -> Measured:
    turn = number % len(WAYS)
    ways = WAYS[turn:] + WAYS[:turn]  # each begins once: the first may find the machine in another state
    for transport in TRANSPORTS:
        clients = sessions.clients[transport, HANDSHAKE]
        for at_once in (MANY, SOME):
            for way in ways:
                if way != DIRECT:
                    yield cpu_row(transport, at_once).what, way, [cpu_microseconds(clients[way], calls, at_once)]
        for way in ways:
            yield rate_row(transport).what, way, [rate(clients[way], calls)]
        for era in ERAS:
            clients = sessions.clients[transport, era]
            for way in BLOCKS * ways:
                milliseconds = [1000 * clients[way].call() for _ in range(SINGLE_CALLS)]
                yield added_row(transport, era).what, way, milliseconds
    yield WATCHED_ROW.what, UNWATCHED, [cpu_microseconds(sessions.clients[PIPES, HANDSHAKE][OURS], calls, MANY)]
    yield WATCHED_ROW.what, OURS, [sessions.watched_microseconds(calls)]
    yield LAUNCH_ROW.what, BARE, [bare_milliseconds()]
    for way in ways:
        yield LAUNCH_ROW.what, way, [launch_milliseconds(way)]


def cpu_microseconds(client: Client, calls: int, at_once: int) -> float:
    """What the process at the other end of the client's pipes takes for each call."""
    assert isinstance(client, PipesClient)
    client.burst(WARM_UP_CALLS, at_once)
    before = cpu_seconds(client.process.pid)
    client.burst(calls, at_once)
    time.sleep(SETTLE_SECONDS)
    return (cpu_seconds(client.process.pid) - before) / calls * 1e6


def cpu_seconds(process: int) -> float:
    """The processor time of a process so far, in user mode and in the kernel."""
    if sys.platform != "linux":
        times = psutil.Process(process).cpu_times()
        return times.user + times.system
    # The clock of clock_getcpuclockid(3). /proc/<pid>/stat tells the same in ticks of 10 ms: too coarse for the floor.
    return time.clock_gettime((~process << 3) | 2)


def rate(client: Client, calls: int) -> float:
    client.burst(WARM_UP_CALLS, SOME)
    return calls / client.burst(calls, SOME)


def bare_milliseconds() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
    return (time.perf_counter() - started) * 1000


def launch_milliseconds(way: str) -> float:
    client = on_pipes(COMMANDS[PIPES, way] + LEAN, HANDSHAKE)
    try:
        client.open()
        return (time.perf_counter() - client.started) * 1000
    finally:
        client.quit()


# The servers, the relays, and the clients that stay over all rounds.

COMMANDS: Mapping[tuple[str, str], Command] = {  # what stands before the server's command or its URL
    (PIPES, DIRECT): (),
    (PIPES, FLOOR): (sys.executable, str(HERE / "floor_relay.py")),
    (PIPES, OURS): (PROGRAM, "mcp", "start", "--wait-calls", "--"),
    (HTTP, FLOOR): (sys.executable, str(HERE / "floor_http_relay.py")),
    (HTTP, OURS): (PROGRAM, "mcp", "start", "--wait-calls", "--upstream-url"),
}
WATCHED_COMMAND = (PROGRAM, "mcp", "start", "--wait-calls", "--inspector", "0", "--")


class Sessions(NamedTuple):
    clients: Mapping[tuple[str, Era], Mapping[str, Client]]
    watched: PipesClient
    page: Page

    def watched_microseconds(self, calls: int) -> float:
        told = self.page.told
        microseconds = cpu_microseconds(self.watched, calls, MANY)
        if self.page.told - told < min(calls, SHOWN_CALLS):
            raise SystemExit(f"the page was told of {self.page.told - told} calls of {calls}")
        return microseconds


@contextmanager
def opened_sessions() -> Iterator[Sessions]:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with ExitStack() as stack:
        port = stack.enter_context(http_server())
        clients: dict[tuple[str, Era], dict[str, Client]] = {}
        for transport in TRANSPORTS:
            for era in ERAS:
                clients[transport, era] = {way: started(way, transport, era, port, stack) for way in WAYS}
        watched = on_pipes(WATCHED_COMMAND + LEAN, HANDSHAKE)
        stack.callback(watched.quit)
        watched.open()
        yield Sessions(clients, watched, opened_page(watched))


@contextmanager
def http_server() -> Iterator[int]:
    """The port of a lean server over HTTP, which ends when its standard input is closed."""
    with subprocess.Popen([*LEAN, "--http"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())


def started(way: str, transport: str, era: Era, port: int, stack: ExitStack) -> Client:
    """A client that has made its first call; it is quit with the stack."""
    behind = LEAN if transport == PIPES else (f"http://127.0.0.1:{port}/mcp",)
    client: PipesClient | HttpClient
    if (transport, way) == (HTTP, DIRECT):
        client = HttpClient(port, era)
    else:
        client = on_pipes(COMMANDS[transport, way] + behind, era)
    stack.callback(client.quit)
    client.open()
    return client


def on_pipes(command: Command, era: Era) -> PipesClient:
    return PipesClient(command, clean_environment(), FOLDER, era)


def opened_page(proxy: PipesClient) -> Page:
    """Its inspector page, which is served soon after the first start."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        page = inspector_page(folders(clean_environment()).state, proxy.process.pid)
        if page is not None:
            return Page(*page)
        time.sleep(0.01)
    raise SystemExit(f"the proxy serves no inspector page within {LIMIT_SECONDS:g} s")


class Page:
    """An open inspector page: it reads all events, in a thread, until the proxy ends."""

    def __init__(self, port: int, token: str) -> None:
        self.told = 0  # events of calls
        self._events = socket.create_connection(("localhost", port), LIMIT_SECONDS)
        self._events.sendall(
            f"GET /events HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()
        )
        head = self._events.recv(READ_BYTES)
        if not head.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"the inspector page does not open: {head!r}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with self._events:
            while got := self._events.recv(READ_BYTES):
                self.told += got.count(b"event: call\n")


if __name__ == "__main__":
    sys.exit(main())
