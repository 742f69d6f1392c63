"""`completion`: print the script that a shell reads."""

from __future__ import annotations

from ...issues import UserError
from ..results import Result
from ..surface import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..parse import Invocation

NEXT_STEP = "Write 'uno-devserver completion bash', zsh or fish; with --help it tells where that goes."


def run(invocation: Invocation) -> Result:
    shell = next(iter(invocation.arguments), None)
    if shell is None:
        raise UserError("MissingValue", f"Which shell: {', '.join(SHELLS)}?", NEXT_STEP, exit_code=2)
    if shell.lower() not in SHELLS:
        message = f"'{shell}' is no shell that this can complete for; there are {', '.join(SHELLS)}."
        raise UserError("BadValue", message, NEXT_STEP, exit_code=2)
    text = _script(shell.lower())
    return Result({"shell": shell.lower(), "script": text}, text)


def _script(shell: str) -> str:
    if shell == "bash":
        from .bash import script
    elif shell == "zsh":
        from .zsh import script
    else:
        from .fish import script
    return script()
