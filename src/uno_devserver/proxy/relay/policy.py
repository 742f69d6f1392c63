"""How long and how often: every bound of the relay, with its reason. Tests replace single values."""

from __future__ import annotations

from ...system.values import Value


class RelayPolicy(Value):
    # A call of which nothing is heard for this long hangs: builds and restores take minutes, and the .NET proxy, whose
    # agents' instructions reckon with it, gives up after as many. Progress, log messages and questions are heard.
    silence_seconds: float = 300.0
    # A read-only call that ended the server three times will end it again.
    repetitions: int = 2
    # How long a call that has lost its server waits for the next: one is back within seconds, and clients wait for a
    # minute at most.
    again_seconds: float = 30.0
    # Between tries while the engine has not noticed: it sees a process end at once, an adopted Host's end later.
    first_pause_seconds: float = 0.02
    longest_pause_seconds: float = 1.0

    # After a crash, without --wait-calls: a server that is started again takes a second or two. Without this wait it
    # would be chance whether a call is made a moment before the crash is known, and waits, or a moment after it.
    grace_seconds: float = 2.0
    # --wait-calls: as long as a call itself may be silent. Slow clients see by the progress that it has not been lost.
    hold_seconds: float = 300.0
    progress_seconds: float = 1.0
    # --mcp-wait-tools-list: what clients allow for their start, and no more.
    tools_seconds: float = 30.0
    # uno_discover_tools: a first start restores nothing, but may have to find and launch a Host.
    discover_seconds: float = 60.0
    # Subscriptions, levels and notifications: answered at once by a server that works.
    aside_seconds: float = 30.0

    # Hot reload. Reading all sources takes a fraction of this; a build takes longer, but says that it is at work.
    check_seconds: float = 10.0
    # Replacing the server: three attempts of 30 s each, and its end before.
    restart_seconds: float = 120.0
    # mcpStatus: as long as clients wait for an answer, as a rule.
    status_seconds: float = 60.0

    # Connections kept for modern clients, which do not say goodbye; each is a session of the upstream.
    modern_clients: int = 16
    # Goodbyes when the proxy ends: it must be gone soon after its client.
    close_seconds: float = 0.2


DEFAULT_RELAY_POLICY = RelayPolicy()
