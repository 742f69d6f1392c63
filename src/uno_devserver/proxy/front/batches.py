"""Collects the answers to a JSON-RPC batch into one line; only one version of MCP has batches.

Answers come one by one, in any order and from any thread; those that belong to a batch are held until it is complete.
"""

from __future__ import annotations

import _thread
import json

from ...protocol.lines import readable_members
from ...protocol.versions import BATCH_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_BATCH = 100
NO_BATCH = f"Send each message on a line of its own: only {BATCH_VERSION} has batches, of 1 to {MAX_BATCH} messages."


class Batches:
    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lock = _thread.allocate_lock()
        self._open: list[_Batch] = []

    def write(self, line: bytes) -> None:
        """Write one message to the client, alone or with the batch that waits for it."""
        if not (self._open and self._add(line)):
            self._write(line)

    def open(self, ids: Iterable[object], answers: list[bytes]) -> None:
        """Begin a batch that waits for the answers to these requests; `answers` holds those to its other messages."""
        batch = _Batch(ids, answers)
        with self._lock:
            self._open.append(batch)
            self._write_if_complete(batch)

    def cancelled(self, request_id: object) -> None:
        """Do not wait for the answer to this request: the client has cancelled it."""
        with self._lock:
            batch = self._take_awaited(request_id)
            if batch is not None:
                self._write_if_complete(batch)

    def _add(self, line: bytes) -> bool:
        """Add the message to the batch that waits for it; return whether there is one."""
        try:
            message = json.loads(line)
        except (RecursionError, ValueError):
            # A result may be nested deeper, or contain longer numbers, than Python reads: read the outermost level.
            message = readable_members(line)
        if "method" in message:
            return False
        with self._lock:
            batch = self._take_awaited(message.get("id"))
            if batch is None:
                return False
            batch.answers.append(line)
            self._write_if_complete(batch)
        return True

    def _take_awaited(self, request_id: object) -> _Batch | None:
        """Return the batch that waits for this answer, after marking the answer as received."""
        key = (type(request_id), request_id)
        for batch in self._open:
            if key in batch.awaited:
                batch.awaited.remove(key)
                return batch
        return None

    def _write_if_complete(self, batch: _Batch) -> None:
        if not batch.awaited:
            self._open.remove(batch)
            if batch.answers:
                self._write(b"[" + b",".join(batch.answers) + b"]")


class _Batch:
    def __init__(self, ids: Iterable[object], answers: list[bytes]) -> None:
        # 1 and "1" are different ids; a client may send the same id twice.
        self.awaited = [(type(one), one) for one in ids]
        self.answers = answers
