"""What all servers of the worlds offer: three tools, a ledger of the calls that ran, and orders to misbehave.

A call is written to the ledger before it is answered, in one write, so that it is there even if the process is killed
at once. An order is a file; the process that renames it first carries it out, once. The module imports little of the
standard library and nothing else, because servers are started again and again.
"""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER_VARIABLE = "CHAOS_FOLDER"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
HUGE_CHARACTERS = 2_000_000
FLOOD_MESSAGES = 3000

READING, REPEATABLE, EFFECTIVE = "look", "put", "add"
TOOLS: list[dict[str, Any]] = [
    {"name": READING, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": REPEATABLE, "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
    {"name": EFFECTIVE, "inputSchema": {"type": "object"}},
]


def folder() -> str:
    return os.environ[FOLDER_VARIABLE]


def write_down(key: str, tool: str) -> None:
    """Write to the ledger that this call runs, in this process."""
    line = json.dumps({"key": key, "tool": tool, "pid": os.getpid()}).encode() + b"\n"
    ledger = os.open(os.path.join(folder(), "ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line)
    finally:
        os.close(ledger)


def run(name: str, arguments: dict[str, Any], revision: str = "") -> str:
    """A call as it should be; the text of its answer. Where the disk is full for us, too, it is not run."""
    try:
        write_down(arguments["key"], name)
    except OSError as error:
        return f"no room in the ledger: {error}"
    time.sleep(arguments.get("pause", 0.0))  # the moment in which a fault hits a call that has had its effect
    return f"done {arguments['key']} {revision}".rstrip()


def take_order() -> str | None:
    """Take an order to misbehave, if there is one that no other process has taken."""
    orders = os.path.join(folder(), "orders")
    for name in os.listdir(orders):
        taken = os.path.join(folder(), f"taken-{os.getpid()}-{name}")
        try:
            os.rename(os.path.join(orders, name), taken)
        except FileNotFoundError:
            continue  # another process was quicker
        os.unlink(taken)
        return name.partition(".")[0]
    return None


def hello(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The answers of every server but to calls; None: there is no such method."""
    info = {"name": "chaos", "version": "1"}
    capabilities = {"tools": {"listChanged": True}, "logging": {}}
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    if method == "server/discover":
        return {"supportedVersions": [MODERN], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        return {"tools": TOOLS}
    return {} if method in ("ping", "logging/setLevel") else None


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def in_its_era(params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    if f"{META}protocolVersion" not in (params.get("_meta") or {}):
        return result
    return {"resultType": "complete", **result, "_meta": {f"{META}serverInfo": {"name": "chaos", "version": "1"}}}


def notification(number: int) -> dict[str, Any]:
    params = {"level": "error", "logger": "flood", "data": f"message {number}"}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


# --- sign-ins, which the authorization server writes and the server that trusts it reads

SIGN_INS = "sign-ins.json"


def read_sign_ins(place: str = "") -> dict[str, Any]:
    """`access`: tokens and when they end; `refresh`: by sign-in, the token that renews it; `used`: those of before."""
    try:
        with open(os.path.join(place or folder(), SIGN_INS), encoding="utf-8") as stream:
            found: dict[str, Any] = json.load(stream)
    except FileNotFoundError:
        found = {"access": {}, "refresh": {}, "used": {}}
    return found


def write_sign_ins(state: dict[str, Any]) -> None:
    path = os.path.join(folder(), SIGN_INS)
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(state, stream)
    os.replace(f"{path}.new", path)


def valid_tokens() -> set[str]:
    now = time.time()
    return {token for token, until in read_sign_ins()["access"].items() if until > now}
