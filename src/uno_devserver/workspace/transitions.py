"""What becomes of a running server when the workspace changes. Pure: facts in, one of five transitions out."""

from __future__ import annotations

from enum import Enum

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .globaljson import UnoSdk


class Trigger(Enum):
    """Why the workspace was looked at again."""

    FILE_SYSTEM = "file system"
    ROOTS = "roots"
    USER = "user selection"


class Transition(Enum):
    REFRESH = "Refresh"  # the same workspace; what is known of it may be out of date
    START = "Start"
    STOP = "Stop"  # there is nothing to serve any more
    RESTART = "Restart"
    DIAGNOSE = "Diagnose"  # keep what runs, and say what is wrong


class Identity(Value):
    """What makes two workspaces the same to a server: another SDK in the same place is another workspace."""

    directory: str
    solution: str | None
    global_json: str | None
    sdk: UnoSdk | None


def transition(
    previous: Identity | None,
    new: Identity | None,
    trigger: Trigger,
    *,
    started: bool,
    force_restart: bool = False,
) -> Transition:
    """From one workspace to the next; None stands for a directory that is no workspace (yet)."""
    if new is None:
        return _to_nothing(previous, trigger)
    if previous is None:
        return Transition.START
    if previous == new:
        return _to_the_same(trigger, started=started, force_restart=force_restart)
    return _to_another(trigger, started=started)


def _to_nothing(previous: Identity | None, trigger: Trigger) -> Transition:
    if trigger is not Trigger.FILE_SYSTEM:
        return Transition.DIAGNOSE  # somebody named a directory that is of no use: that is theirs to hear
    return Transition.STOP if previous else Transition.REFRESH


def _to_the_same(trigger: Trigger, *, started: bool, force_restart: bool) -> Transition:
    if trigger is not Trigger.FILE_SYSTEM and not started:
        return Transition.START
    return Transition.RESTART if force_restart and started else Transition.REFRESH


def _to_another(trigger: Trigger, *, started: bool) -> Transition:
    if trigger is Trigger.ROOTS:
        return Transition.DIAGNOSE  # a client's folders must not pull a server away from those who use it
    if trigger is Trigger.USER and not started:
        return Transition.START
    return Transition.RESTART
