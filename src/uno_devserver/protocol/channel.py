"""The way to a client, as calls and sessions see it: whoever speaks never waits."""

from __future__ import annotations

import enum
from typing import Protocol


class Kind(enum.Enum):
    NOTIFICATION = 0  # the first to go when a client does not keep up
    REQUEST = 1
    ANSWER = 2


class Channel(Protocol):
    """Messages to one client, in order. Used in the event loop."""

    @property
    def ended(self) -> bool: ...

    def send(self, data: bytes, kind: Kind = Kind.NOTIFICATION) -> None:
        """Say something; dropped after the end."""

    def send_once(self, data: bytes) -> None:
        """Send, unless the same message still waits: for 'something changed', twice says no more than once."""

    def end(self) -> None:
        """Nothing follows."""

    def hang_up(self) -> None:
        """End the connection, where there is one that the client can replace, but not the channel."""
