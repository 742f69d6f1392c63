"""All targets."""

from __future__ import annotations

from .target import Target
from .targets import answers, build, edits, host, oauth, remote, restore, sources, state, wire, workspace

TARGETS: tuple[Target, ...] = (
    *wire.TARGETS,
    *answers.TARGETS,
    *remote.TARGETS,
    *oauth.TARGETS,
    *build.TARGETS,
    *workspace.TARGETS,
    *sources.TARGETS,
    *restore.TARGETS,
    *edits.TARGETS,
    *state.TARGETS,
    *host.TARGETS,
)


def named(name: str) -> Target:
    return next(target for target in TARGETS if target.name == name)
