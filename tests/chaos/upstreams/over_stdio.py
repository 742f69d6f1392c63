"""An MCP server on stdin and stdout. ORDERS are all that it can do wrong around one answer."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from chaos.upstreams.tools import (
    FLOOD_MESSAGES,
    HUGE_CHARACTERS,
    hello,
    in_its_era,
    notification,
    run,
    said,
    take_order,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GARBAGE = b'hello from a library\n\n[1, 2]\n"text"\n{"jsonrpc": "2.0", "id"\n{"id": 1}\nnull\n{}\n'
BINARY = bytes(range(256)) * 40 + b"\n"
DELAY_SECONDS = 3.0
HALF_SECONDS = 0.5

_writing = threading.Lock()


def serve(revision: str = "") -> None:
    """`revision`: of the code, which its answers name."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=_reply, args=(message, revision), daemon=True).start()
    os._exit(0)  # whatever its threads wait for


def _reply(message: dict[str, Any], revision: str) -> None:
    params = message.get("params") or {}
    if message["method"] == "tools/call":
        text = run(params["name"], params.get("arguments") or {}, revision)
        order = take_order()
        if order == "huge answer":
            text += " " + "x" * HUGE_CHARACTERS
        result: dict[str, Any] | None = said(text)
    else:
        order, result = None, hello(message["method"], params)
    if result is None:
        answer = {"id": message["id"], "error": {"code": -32601, "message": "no such method"}}
    else:
        answer = {"id": message["id"], "result": in_its_era(params, result)}
    line = json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n"
    if order in ORDERS:
        ORDERS[order](line, answer)
    else:
        _write(line)


def _write(data: bytes) -> None:
    with _writing:
        while data:
            data = data[os.write(1, data) :]


def _flood(line: bytes, answer: dict[str, Any]) -> None:
    for number in range(FLOOD_MESSAGES):
        _write(json.dumps(notification(number)).encode() + b"\n")
    _write(line)


def _half_line_and_death(line: bytes, answer: dict[str, Any]) -> None:
    _write(line[: len(line) // 2])
    os._exit(3)


def _two_halves(line: bytes, answer: dict[str, Any]) -> None:
    with _writing:
        os.write(1, line[: len(line) // 2])
        time.sleep(HALF_SECONDS)
        os.write(1, line[len(line) // 2 :])


def _delay(line: bytes, answer: dict[str, Any]) -> None:
    time.sleep(DELAY_SECONDS)
    _write(line)


def _unknown_ids(line: bytes, answer: dict[str, Any]) -> None:
    for nobody in (987654321, "nobody", None, -1):
        _write(json.dumps({"jsonrpc": "2.0", **answer, "id": nobody}).encode() + b"\n")
    _write(line)


def _wrong_version(line: bytes, answer: dict[str, Any]) -> None:
    _write(json.dumps({"jsonrpc": "1.0", **answer}).encode() + b"\n" + line)


ORDERS = {
    "flood of notifications": _flood,
    "huge line": lambda line, _: _write(b"y" * HUGE_CHARACTERS + b"\n" + line),
    "bad json": lambda line, _: _write(GARBAGE + line),
    "binary": lambda line, _: _write(BINARY + line),
    "half line": lambda line, _: _write(line[: len(line) // 2] + b"\n" + line),
    "half line and death": _half_line_and_death,
    "two halves": _two_halves,
    "delay": _delay,
    "unknown ids": _unknown_ids,
    "duplicate answer": lambda line, _: _write(line + line),
    "wrong version": _wrong_version,
}
