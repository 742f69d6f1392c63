"""What the system allows this process."""

from __future__ import annotations

# Linux's default. More may be allowed, but whoever needs them all has lost some.
USUAL_OPEN_FILES = 1024


def open_files() -> int:
    """How many files, pipes and sockets may be open at once; never more than is usual."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return USUAL_OPEN_FILES
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return USUAL_OPEN_FILES if allowed == resource.RLIM_INFINITY else min(allowed, USUAL_OPEN_FILES)
