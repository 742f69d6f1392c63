"""All limits of the server's end of MCP, with their reasons. Tests replace single values."""

from __future__ import annotations

from ...system.values import Value

MIB = 1024 * 1024


class EndpointLimits(Value):
    # A call that takes longer gets a stream, whose connection is kept open by comments. If the connection is lost, the
    # client can resume the stream (handshake era), or the call is cancelled (modern era).
    plain_answer_seconds: float = 1.0
    # Some proxies and clients close connections that are silent for 30 s.
    keep_alive_seconds: float = 15.0
    # How long a client waits before it resumes: short enough to feel live, long enough not to flood the server.
    retry_ms: int = 1000

    # How long an answer is kept for a client that has lost its connection, for example a laptop that slept.
    keep_answer_seconds: float = 300.0
    # Per stream, and per session for the answers that are kept; older notifications are dropped first.
    stream_events: int = 1000
    stream_bytes: int = 8 * MIB
    kept_answers: int = 100
    # For the answers that are kept, of all sessions; those of the session that has kept its own longest go first.
    kept_bytes: int = 64 * MIB

    # A session takes a few hundred bytes; a client that has been silent for a day does not come back.
    sessions: int = 500
    session_idle_seconds: float = 24 * 3600.0
    sweep_seconds: float = 600.0
    # Per session, and for all modern clients together. A client that runs more at once is out of control.
    calls: int = 500
    batch: int = 100
    # Resources that one session or subscription watches.
    watched: int = 1000
    # Of all clients together, each counted as often as it is watched. A URI of a browser has up to 2,000 characters.
    all_watched: int = 10_000
    uri_length: int = 4096

    # A person may have to answer.
    question_seconds: float = 600.0
    questions: int = 100
    waiting_seconds: float = 600.0
    waiting_calls: int = 100

    subscriptions: int = 500

    # How long calls have to clean up when the server stops.
    close_seconds: float = 2.0


DEFAULT_ENDPOINT_LIMITS = EndpointLimits()
