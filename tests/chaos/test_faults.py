"""That faults do what they say: one that breaks nothing would prove nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.disk import Disk
from chaos.faults import spoil
from chaos.plan import FILES, Fault
from chaos.relay import NOISE, Relay
from chaos.upstreams import tools
from support.ports import lasting_port

WRITER = """
import os, sys
for line in sys.stdin:
    try:
        with open(sys.argv[1], "w") as stream:
            stream.write("x" * 5000)
        print("written", flush=True)
    except OSError as error:
        print("refused", flush=True)
"""


@pytest.mark.parametrize("manner", FILES)
def test_a_file_that_was_spoiled_cannot_be_read_as_what_it_was(tmp_path: Path, manner: str) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"port": 1234}', "utf-8")

    spoil(path, Fault(0.0, "spoil a state file", manner, 0.5, 1.0))

    assert readable(path) != {"port": 1234}


def readable(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def test_a_full_disk_refuses_what_an_empty_one_takes(tmp_path: Path) -> None:
    disk = Disk(tmp_path, may_mount=False)
    line = [sys.executable, "-IS", "-c", WRITER, str(tmp_path / "file")]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def writes() -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert writes() == "written"
        disk.fill([process.pid])
        assert writes() == "refused"
        disk.empty([process.pid])
        assert writes() == "written"
        assert process.stdin
        process.stdin.close()


def test_an_order_is_carried_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tools.FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "half line.1").touch()

    assert [tools.take_order(), tools.take_order()] == ["half line", None]
    assert os.listdir(tmp_path) == ["orders"]


# --- the way


@pytest.fixture
def relay() -> Iterator[Relay]:
    """To a server that says everything again."""
    port = lasting_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        threading.Thread(target=_echo, args=(server,), daemon=True).start()
        relay = Relay(port)
        yield relay
        relay.close()
        server.shutdown(socket.SHUT_RDWR)


def test_what_the_way_carries_is_as_it_was(relay: Relay) -> None:
    assert echoed(relay, b"hello") == b"hello"


def test_a_way_that_was_cut_twice_is_there_again_when_it_was_restored_twice(relay: Relay) -> None:
    relay.cut()
    relay.cut()
    relay.restore()
    with pytest.raises(ConnectionError):
        echoed(relay, b"hello")

    relay.restore()

    assert echoed(relay, b"hello") == b"hello"


@pytest.mark.parametrize(
    ("manner", "heard"),
    [("noise before", NOISE + b"hello!"), ("half and a cut", b"hel"), ("noise instead", NOISE)],
)
def test_a_way_garbles_one_answer(relay: Relay, manner: str, heard: bytes) -> None:
    relay.garble = manner

    assert echoed(relay, b"hello!", len(heard)) == heard
    assert echoed(relay, b"hello!") == b"hello!"


def echoed(relay: Relay, data: bytes, length: int | None = None) -> bytes:
    with socket.create_connection(("127.0.0.1", relay.port), 20.0) as client:
        client.sendall(data)
        heard = b""
        while len(heard) < (len(data) if length is None else length) and (more := client.recv(1000)):
            heard += more
        return heard


def _echo(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            while data := connection.recv(1000):
                connection.sendall(data)
