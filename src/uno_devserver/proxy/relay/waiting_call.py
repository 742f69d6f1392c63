"""A call in the queue of the pipeline: it is granted its turn, answered without one, or cancelled; once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .progress import QUEUE_STEP, Progress

if TYPE_CHECKING:
    from ...protocol.service import Call, Result
    from .reload_messages import Note


class WaitingCall:
    def __init__(self, call: Call) -> None:
        self.call = call
        self.turn: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()  # None: to be run
        self.progress = Progress(call, QUEUE_STEP)
        self.checked = False  # the code was looked at since it came, or need not be
        self.granted = False
        self.notes: list[Note] = []  # for its own result

    @property
    def waits(self) -> bool:
        """Neither answered, nor granted, nor cancelled: the last is known here before its task hears of it."""
        return not self.turn.done()

    def grant(self, note: Note | None) -> None:
        self.granted = True
        if note is not None:
            self.notes.append(note)
        self.turn.set_result(None)
