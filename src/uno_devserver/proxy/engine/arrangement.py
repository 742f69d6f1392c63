"""Who is to be asked whether the code of the server has changed, and about what."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...instances.probe import HostKind
from ...system.values import Value
from ..upstream.host import HostUpstream
from ..upstream.host_running import HostRunning
from .reload_subject import Subject, subject_of

if TYPE_CHECKING:
    from ..options import Options
    from .keeper import Keeper

NOT_YET = "no server runs yet"


class Arrangement(Value):
    subject: Subject
    channel: str | None = None  # of the proxy that owns the Host; None: we ask ourselves


def wanted_of(options: Options, keeper: Keeper, before: Arrangement | None) -> Arrangement | str:
    """Looks at the disk. A text: why there is none, the end of a sentence. `before`: what there was until now."""
    workspace = keeper.placement.workspace if keeper.placement else None
    subject = subject_of(options, workspace, os.environ, before.subject if before else None)
    running, upstream = keeper.running, keeper.upstream
    if isinstance(subject, str):
        return subject
    if upstream is None:
        return NOT_YET
    if not isinstance(upstream, HostUpstream):
        return Arrangement(subject)
    if not isinstance(running, HostRunning):  # who will own the next one is not known yet
        return before if before is not None and before.subject == subject else NOT_YET
    if running.kind is not HostKind.BUNDLED:
        return "only the bundled Host is reloaded"
    return Arrangement(subject, None if running.owned else running.control_channel)
