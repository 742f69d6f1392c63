"""Commands by which the user agrees that the workspace's code may run: whoever asks for the server asks for that."""

from __future__ import annotations

from ..issues import UserError
from ..system.files import FileProblem
from ..system.folders import folders
from ..system.log import log


def agree_to(directory: str, command: str) -> tuple[str, ...]:
    """Keep that the user agreed to this workspace, by this command; what may run now, if that is new."""
    from ..workspace.trust import agree, is_agreed, question

    state = folders().state
    try:
        asked = question(directory)
        if asked.empty or is_agreed(state, asked.directory):  # what comes later into an empty one was not agreed to
            return ()
        from .trust import may_run

        runs = (*asked.addins, *may_run(asked))
        agree(state, asked, command)
    except (FileProblem, OSError, UserError) as error:
        log.debug(f"that the workspace is trusted is not kept: {error}")
        return ()
    return runs


def agreement(runs: tuple[str, ...]) -> str | None:
    """The same, as the user reads it."""
    if not runs:
        return None
    return (
        f"Proxies of AI clients may run from now on: {'; '.join(runs)}. 'uno-devserver trust --revoke' takes it back."
    )
