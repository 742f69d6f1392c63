"""Who offers what: the first add-in to take a name keeps it. Safe from any thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

# What the Host itself offers: no add-in can take it.
RESERVED = (
    ("tool", "uno_health"),
    ("resource", "uno://health"),
    ("processor", "RemoteControlServer"),
    ("processor", "HotReload"),
)


class Names:
    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = dict.fromkeys(RESERVED, "the Host")
        self._lock = threading.Lock()

    def take(self, kind: str, name: str, owner: str) -> str | None:
        """None when it is this owner's now; else who has it."""
        with self._lock:
            first = self._owners.setdefault((kind, name), owner)
        return None if first == owner else first

    def release(self, kind: str, name: str, owner: str) -> None:
        """Give up a name; nothing happens when it is another owner's."""
        with self._lock:
            if self._owners.get((kind, name)) == owner:
                del self._owners[kind, name]

    def counts(self, owner: str) -> Mapping[str, int]:
        """How many names of each kind an owner has."""
        with self._lock:
            return Counter(kind for (kind, _), other in self._owners.items() if other == owner)

    def release_all(self, owner: str) -> None:
        with self._lock:
            self._owners = {key: other for key, other in self._owners.items() if other != owner}
