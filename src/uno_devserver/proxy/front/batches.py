"""Batches, which one version of the protocol has: what is asked in one line is answered in one line.

Whoever answers knows nothing of it: answers are written one by one, in any order and from any thread, and those that
belong to a batch are kept until it is complete. Cheap to import.
"""

from __future__ import annotations

import _thread
import json

from ...protocol.lines import readable_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Batches:
    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lock = _thread.allocate_lock()
        self._open: list[_Batch] = []

    def write(self, line: bytes) -> None:
        """One message for the client, by itself or as part of the batch that waits for it."""
        if not (self._open and self._kept(line)):
            self._write(line)

    def open(self, ids: Iterable[object], answers: list[bytes]) -> None:
        """A batch has come with requests of these ids, and other messages whose `answers` are there already."""
        batch = _Batch(ids, answers)
        with self._lock:
            self._open.append(batch)
            self._close_if_complete(batch)

    def cancelled(self, request_id: object) -> None:
        """The client does not want that answer any more, so the others must not wait for it."""
        with self._lock:
            batch = self._waiting_for(request_id)
            if batch is not None:
                self._close_if_complete(batch)

    def _kept(self, line: bytes) -> bool:
        try:
            message = json.loads(line)
        except (RecursionError, ValueError):
            # A result may be as deep, and a number as long, as the upstream likes; of the rest enough can be read.
            message = readable_members(line)
        if "method" in message:
            return False
        with self._lock:
            batch = self._waiting_for(message.get("id"))
            if batch is None:
                return False
            batch.answers.append(line)
            self._close_if_complete(batch)
        return True

    def _waiting_for(self, request_id: object) -> _Batch | None:
        """The batch that waits for this answer, and from now on does not."""
        key = (type(request_id), request_id)
        for batch in self._open:
            if key in batch.awaited:
                batch.awaited.remove(key)
                return batch
        return None

    def _close_if_complete(self, batch: _Batch) -> None:
        if not batch.awaited:
            self._open.remove(batch)
            if batch.answers:
                self._write(b"[" + b",".join(batch.answers) + b"]")


class _Batch:
    def __init__(self, ids: Iterable[object], answers: list[bytes]) -> None:
        self.awaited = [(type(one), one) for one in ids]  # 1 and "1" are two ids, and nobody keeps a client from two 1
        self.answers = answers
