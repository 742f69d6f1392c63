"""Ports for tests that must name one before it is used."""

from __future__ import annotations

import random
import socket

from support.machine import WINDOWS
from uno_devserver.system.ports import is_free

# Below those from which the system gives ports away, so that no other test gets it meanwhile by chance.
FIRST, LAST = 20_000, 32_000


def stop_listening(listener: socket.socket) -> None:
    """Free the port at once, also where a thread waits for a client."""
    if WINDOWS:
        listener.close()
    else:
        listener.shutdown(socket.SHUT_RDWR)


def lasting_port() -> int:
    """A free port that the system gives to no other program."""
    return next(port for port in iter(lambda: random.randrange(FIRST, LAST), None) if is_free(port))
