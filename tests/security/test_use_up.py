"""No client of a listener takes the memory of its process, or the connections of everybody else."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import threading
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from support.assemblies import MVID, assembly
from support.bundled import Reply, ask
from support.files import write
from support.waiting import wait_for

from .victim import CALL, CALL_HEADERS, Victim, program, tool_call

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's account of memory")
LARGE = 200 * 1024 * 1024
REQUESTS = 3  # more prove nothing more, and this machine may have others to serve
ALLOWED_GROWTH = 64 * 1024 * 1024
# A size that a section, or the metadata in it, may claim: the file is long enough for it.
CLAIMED = LARGE - 0x1000
UPLOADS = 20  # 280 MiB, of which the server keeps 64 MiB
UPLOAD_GROWTH = 160 * 1024 * 1024  # buffers grow by copying
CALLS_GROWTH = 360 * 1024 * 1024  # four calls, with their bodies and decoded params
GIVEN_UP_SECONDS = 25.0  # for those who hold all connections with bodies that do not end
PIECES, PACE_SECONDS = 12, 0.1  # of an honest client on a busy machine
# Takes all connections, and those that become free, and sends one byte of a body on each, again and again.
DRIP = r"""
import resource, select
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
heads = ["Content-Length: 1000", "Transfer-Encoding: chunked", "Content-Length: 1000\r\nExpect: 100-continue"]
post = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
ports, held = [int(port) for port in sys.argv[1:]], []

def take(count):
    for port in ports:
        for number in range(count):
            peer, head = socket.create_connection(("127.0.0.1", port)), heads[number % len(heads)]
            peer.sendall(f"{post}{head}\r\n\r\n".encode())
            held.append((peer, b"1\r\n \r\n" if "chunked" in head else b" "))

take(530)
print("full", flush=True)
while not select.select([sys.stdin], [], [], 1.0)[0]:
    for peer, drop in held:
        try:
            peer.sendall(drop)
        except OSError:
            pass
    take(10)
"""


def _claiming(section: int | None = None, metadata: int | None = None) -> bytes:
    """An assembly that says that its section, or its metadata, has that size."""
    data = bytearray(assembly())
    sizes = data.index(b".text\0\0\0") + 8  # of the section in memory, and, after its address, in the file
    for at, size in ((sizes, section), (sizes + 8, section), (0x400 + 12, metadata)):
        if size is not None:
            struct.pack_into("<I", data, at, size)
    return bytes(data)


HEADS = {"zeros": b"", "large section": _claiming(CLAIMED), "large metadata": _claiming(CLAIMED, CLAIMED)}


@pytest.mark.parametrize("head", HEADS)
def test_looking_up_a_large_file_takes_no_memory(victim: Victim, head: str) -> None:
    path = write(victim.machine.root / "large.dll", HEADS[head])
    os.truncate(path, LARGE)
    honest = write(victim.machine.root / "App.dll", assembly())
    assert _launched(victim, honest).json["mvid"] == MVID  # whatever is imported for this is there now
    before = _memory(victim.host_pid)
    Path(f"/proc/{victim.host_pid}/clear_refs").write_text("5")  # the peak is counted from here

    asking = [threading.Thread(target=_launched, args=(victim, path)) for _ in range(REQUESTS)]
    for each in asking:
        each.start()
    answered = _launched(victim, honest)
    for each in asking:
        each.join()

    assert answered.json["mvid"] == MVID
    assert _memory(victim.host_pid) - before < ALLOWED_GROWTH, "kept afterwards"
    assert _peak(victim.host_pid) - before < ALLOWED_GROWTH, "needed meanwhile"


def test_a_body_that_comes_slowly_is_read_to_its_end(victim: Victim) -> None:
    head, _, body = tool_call("slow").partition(b"\r\n\r\n")
    size = len(body) // PIECES + 1
    for port in (victim.host, victim.http):
        with socket.create_connection(("127.0.0.1", port), 30) as client:
            client.sendall(head + b"\r\n\r\n")
            for start in range(0, len(body), size):
                threading.Event().wait(PACE_SECONDS)  # that it is slow is what this is about
                client.sendall(body[start : start + size])
            assert client.recv(12) == b"HTTP/1.1 200"


def test_bodies_that_do_not_end_lock_nobody_out(victim: Victim) -> None:
    ports = {"Host": victim.host, "--http": victim.http, "inspector": victim.inspector}
    with program(DRIP, *map(str, ports.values())) as attacker:
        assert attacker.stdout
        assert attacker.stdout.readline() == "full\n"

        locked_out = dict(ports)
        try:
            wait_for(lambda: not _still_locked_out(locked_out), "an answer to others", GIVEN_UP_SECONDS)
        except AssertionError:
            pass

    assert locked_out == {}


def test_unfinished_bodies_of_many_connections_take_the_memory_of_a_few(victim: Victim) -> None:
    head = (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\n\r\n"
    )
    before = _memory(victim.host_pid)
    Path(f"/proc/{victim.host_pid}/clear_refs").write_text("5")  # the peak is counted from here

    with ExitStack() as opened:
        for _ in range(UPLOADS):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", victim.host), 30))
            client.sendall(head + bytes(14 * 1024 * 1024))
        answered = ask(victim.host, "GET", "/health")

    assert answered.status == 200
    assert _peak(victim.host_pid) - before < UPLOAD_GROWTH


def test_large_calls_that_run_at_once_take_the_memory_of_a_few(victim: Victim) -> None:
    port, process_id = victim.host, victim.host_pid
    rest = {"name": "rest", "arguments": {"seconds": 5, "pad": "x" * 14 * 1024 * 1024}}
    request = {**CALL, "params": {**CALL["params"], **rest}}
    body = json.dumps(request).encode()
    headers = {**CALL_HEADERS, "Mcp-Name": "rest", "Host": "localhost", "Content-Length": str(len(body))}
    head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    before = _memory(process_id)

    with ExitStack() as opened:
        for _ in range(UPLOADS):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            try:
                client.sendall(f"{head}\r\n".encode() + body)
            except OSError:
                pass  # it was refused before it had sent everything
        answered = victim.ask(port, tool_call("a small one"))
        taken = _memory(process_id) - before

    assert answered.status == 200
    assert taken < CALLS_GROWTH


def _still_locked_out(ports: dict[str, int]) -> dict[str, int]:
    for name, port in list(ports.items()):
        try:
            if ask(port, "GET", "/health").status != 503:
                del ports[name]
        except (OSError, IndexError):  # closed without an answer
            pass
    return ports


def _launched(victim: Victim, path: Path) -> Reply:
    return ask(victim.host, "GET", f"/applaunch/asm/{quote(str(path), safe='')}")


def _memory(process_id: int) -> int:
    return _kilobytes(process_id, "smaps_rollup", "Pss")


def _peak(process_id: int) -> int:
    return _kilobytes(process_id, "status", "VmHWM")


def _kilobytes(process_id: int, file: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{process_id}/{file}").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024
