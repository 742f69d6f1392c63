"""The inspector page of a proxy, open for some seconds while faults come.

Its events are read, or left in the pipe; or a person there calls tools, whose answers are held against the ledger like
all others. The page goes with its proxy, at any moment.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from http.client import HTTPException

from chaos.clients import Client, said_by
from chaos.invariants import PAGE_EVENTS, Broken, Request, outcome_of
from chaos.upstreams.tools import EFFECTIVE
from support.inspectors import InspectorClient

WAIT_SECONDS = 0.2
READ_BYTES = 65536
SHOWN_BYTES = 300
OPEN_SECONDS = 10.0  # for the first event; it comes at once


class PageWatch(threading.Thread):
    def __init__(self, page: InspectorClient, client: Client, manner: str, seconds: float) -> None:
        super().__init__(daemon=True, name=f"page of {client.name}")
        self._page = page
        self._client = client
        self._manner = manner
        self._until = time.monotonic() + seconds

    def run(self) -> None:
        try:
            with self._page.listen("/events") as events:
                events.wait("snapshot")
                received, events.received = events.received, b""
                while time.monotonic() < self._until:
                    if self._manner == "calls":
                        self._call()
                    if self._manner == "stops reading":
                        time.sleep(WAIT_SECONDS)
                    elif not (data := self._read(events._socket)):
                        break
                    else:
                        received = self._checked(received + data)
        except (OSError, AssertionError, HTTPException, ValueError):
            pass  # its proxy has gone, or is stopped

    def _read(self, stream: socket.socket) -> bytes:
        stream.settimeout(max(WAIT_SECONDS, self._until - time.monotonic()))
        return stream.recv(READ_BYTES)

    def _checked(self, received: bytes) -> bytes:
        """Check the events that are whole; what is left."""
        *events, rest = received.split(b"\n\n")
        for event in events:
            data = b"".join(line[5:] for line in event.splitlines() if line.startswith(b"data:"))
            try:
                json.loads(data or b"null")
            except ValueError:
                broken = Broken(PAGE_EVENTS, f"{self._client.name}: {event[:SHOWN_BYTES]!r}")
                self._client.tally.broken.append(broken)
        return rest

    def _call(self) -> None:
        tally, key = self._client.tally, f"page-{self._client.name}-{time.monotonic_ns()}"
        tally.calls += 1
        params = {"name": EFFECTIVE, "arguments": {"key": key, "pause": WAIT_SECONDS}}
        message = self._page.post("tools/call", params).json
        request = Request(1, "tools/call", 0.0, key, EFFECTIVE)
        outcome, broken = outcome_of(request, message)
        tally.outcomes.append(outcome)
        tally.broken.extend(broken)
        tally.answers[said_by(outcome, message)] += 1


def opens(page: InspectorClient) -> bool:
    """Whether the page tells what its proxy does."""
    try:
        with page.listen("/events") as events:
            events._socket.settimeout(OPEN_SECONDS)
            events.wait("snapshot")
    except (OSError, AssertionError):
        return False
    return True
