"""One run at a time changes configuration files: what was read stays true until it is written.

Editors do not know this lock; against them the content is compared once more at the moment of writing.
"""

from __future__ import annotations

import os

from ..issues import UserError
from ..system.locks import FileLock
from ..system.log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

LOCK = "registration.lock"
WAIT_SECONDS = 10.0  # a run takes a tenth of one; whoever has it for longer hangs at a dead network drive


def exclusively(folder: str, work: Callable[[], T], *, required: bool) -> T:
    """Do it while no other run does, with the lock in the folder of our state; raises UserError.

    Where there can be no lock, and none is required, it is done without.
    """
    lock = FileLock(os.path.join(folder, LOCK))
    try:
        if not lock.acquire(WAIT_SECONDS, lambda holder: log.debug(f"waiting for {_named(holder)}")):
            message = f"{_named(lock.holder())} has been changing configuration files for {WAIT_SECONDS:g} s."
            raise UserError("Busy", message, "Wait until it has ended, or end it; then run this again.")
    except OSError as error:
        if required:
            raise unusable(folder, error) from error
        log.warn(f"other runs cannot be kept out: {error}")
        return work()
    try:
        return work()
    finally:
        lock.release()


def unusable(folder: str, error: OSError) -> UserError:
    message = f"The folder '{folder}', for backups and what undoes a change, cannot be used: {error.strerror}."
    next_step = "Make it writable; install and uninstall can do without: --no-backup."
    return UserError("StateNotWritable", message, next_step)


def _named(holder: int | None) -> str:
    return "Another run" if holder is None else f"Another run (process {holder})"
