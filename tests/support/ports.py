"""Ports for tests that have to name one before it is used."""

from __future__ import annotations

import random

from uno_devserver.system.ports import is_free

# Below those from which the system gives ports away, so that no other test gets it meanwhile by chance.
FIRST, LAST = 20_000, 32_000


def lasting_port() -> int:
    """One that is free, and stays so until somebody asks for it by number."""
    return next(port for port in iter(lambda: random.randrange(FIRST, LAST), None) if is_free(port))
