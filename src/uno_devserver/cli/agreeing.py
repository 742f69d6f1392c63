"""Commands by which the user agrees that the workspace's code may run: whoever asks for the server asks for that."""

from __future__ import annotations

import os

from ..issues import UserError
from ..system.files import FileProblem
from ..system.folders import folders
from ..system.log import log

# What is above the list of it, and below.
MAY_RUN = "Code of this workspace that may run from now on"
WOULD_RUN = "Code of this workspace that would be agreed to"
REVOKE = "'uno-devserver trust --revoke' takes it back."
NOT_YET = "Code of this workspace runs only after 'uno-devserver trust'."
NOT_KEPT = "That code of this workspace may run could not be kept"
MAKE_WRITABLE = "Make the folder writable, then run it again."
STILL_TRUSTED = "Code of this workspace may run still: 'uno-devserver trust --revoke' takes that back."


def agree_to(directory: str, command: str, *, dry_run: bool = False) -> tuple[str, ...]:
    """Keep that the user agreed to this workspace, by this command; what may run now, if that is new."""
    from ..workspace.trust import agree, is_agreed, question

    state = folders().state
    try:
        asked = question(directory)
        if asked.empty or is_agreed(state, asked.directory):
            return ()
        from .trust import may_run

        runs = (*asked.addins, *may_run(asked))
        if runs and not dry_run:  # where nothing was shown, nothing was agreed to: neither now nor what comes later
            try:
                agree(state, asked, command)
            except OSError as error:
                log.warn(f"{NOT_KEPT} in {state}: {error.strerror or error}. {MAKE_WRITABLE}")
                return ()
    except (FileProblem, OSError, UserError) as error:
        log.debug(f"what of the workspace would run cannot be seen: {error}")
        return ()
    return runs


def is_waiting(directory: str) -> bool:
    """Whether the workspace has code that does not run, since nobody has agreed to it."""
    from ..workspace.trust import is_trusted

    return not is_trusted(os.environ, directory) and bool(agree_to(directory, "", dry_run=True))
