"""The relay that the proxy is compared with is real and small, and wrong answers are noticed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import relay
from benchmarks.figures import clean_environment
from benchmarks.relay import DIRECT, FLOOR, HTTP, LEAN, OURS, PIPES
from benchmarks.relay_clients import HANDSHAKE, MODERN, Era, HttpClient, PipesClient, check

from support.waiting import wait_for

CALLS = 300  # more than the relay over HTTP has connections
ALL_AT_ONCE = 100


@pytest.fixture
def port() -> Iterator[int]:
    with relay.http_server() as port:
        yield port


def floor(transport: str, port: int, era: Era, folder: Path) -> PipesClient:
    behind = LEAN if transport == PIPES else (f"http://127.0.0.1:{port}/mcp",)
    return PipesClient(relay.COMMANDS[transport, FLOOR] + behind, clean_environment(), folder, era)


@pytest.mark.parametrize("era", [HANDSHAKE, MODERN], ids=lambda era: era.name)
@pytest.mark.parametrize("transport", [PIPES, HTTP])
def test_the_floor_passes_every_answer_to_its_own_call(transport: str, era: Era, port: int, tmp_path: Path) -> None:
    client = floor(transport, port, era, tmp_path)
    try:
        client.open()

        client.burst(CALLS, ALL_AT_ONCE)  # checks each of them
        client.call()
    finally:
        client.quit()


@pytest.mark.parametrize("transport", [PIPES, HTTP])
def test_the_floor_gives_back_ids_that_are_text_and_errors(transport: str, port: int, tmp_path: Path) -> None:
    client = floor(transport, port, HANDSHAKE, tmp_path)
    try:
        client.open()
        client.send(b'{"jsonrpc":"2.0","id":"a","method":"ping"}\n{"jsonrpc":"2.0","id":7,"method":"absent"}\n')

        answers = {answer["id"]: answer for answer in (json.loads(client.line()) for _ in range(2))}
    finally:
        client.quit()

    assert answers["a"]["result"] == {}
    assert answers[7]["error"]["code"] == -32601


@pytest.mark.parametrize("file", ["floor_relay.py", "floor_http_relay.py"])
def test_the_floor_has_fewer_than_60_lines(file: str) -> None:
    assert len((relay.HERE / file).read_text("utf-8").splitlines()) < 60


@pytest.mark.parametrize("era", [HANDSHAKE, MODERN], ids=lambda era: era.name)
def test_the_lean_server_answers_over_http(era: Era, port: int) -> None:
    client = HttpClient(port, era)
    try:
        client.open()

        client.burst(CALLS, 8)
    finally:
        client.quit()


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"4"}]}}',  # of another call
        b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"4"}]}}',  # no request waits for it
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}',
        b"no JSON",
    ],
)
def test_a_wrong_answer_ends_the_benchmark(line: bytes) -> None:
    with pytest.raises(SystemExit, match="wrong answer to a call"):
        check([line], {1})


def test_a_relay_that_ends_is_named(tmp_path: Path) -> None:
    client = PipesClient((sys.executable, "-c", "input()"), clean_environment(), tmp_path, HANDSHAKE)
    try:
        with pytest.raises(SystemExit, match=r"input\(\)': it ended"):
            client.open()
    finally:
        client.quit()


def test_a_missed_bar_is_shown_and_a_row_without_one_is_not_judged() -> None:
    samples = {FLOOR: [2.0, 1.0, 3.0], OURS: [8.0, 7.0, 9.0]}

    assert relay.cpu_row(PIPES, relay.MANY).render(samples).endswith("| 4 × the floor | ≤ 3 × the floor | MISS |")
    assert relay.cpu_row(PIPES, relay.SOME).render(samples).endswith("| 4 × the floor | | |")


def test_what_one_call_takes_longer_is_shown_with_that_of_the_floor() -> None:
    row = relay.added_row(PIPES, HANDSHAKE)
    samples = {DIRECT: [0.01] * 20, FLOOR: [0.06] * 20, OURS: [0.11] * 18 + [0.9] * 2}

    shown = row.render(samples)

    assert "| 0.110 ms (p95 0.900) | 0.1 ms; floor 0.05 | ≤ 0.12 ms | pass |" in shown
    assert row.kept(samples)["figure"] == 0.1


def test_a_watched_page_is_told_of_the_calls(tmp_path: Path) -> None:
    client = PipesClient(relay.WATCHED_COMMAND + LEAN, clean_environment(), tmp_path, HANDSHAKE)
    try:
        client.open()
        page = relay.opened_page(client)
        client.call()

        wait_for(lambda: page.told, "the call on the page")
    finally:
        client.quit()
