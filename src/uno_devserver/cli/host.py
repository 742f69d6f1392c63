"""`host`: be the bundled Host, with the flags that every launcher of a Host writes."""

from __future__ import annotations

from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parse import Invocation


def run(invocation: Invocation) -> Result:
    from ..host.main import main
    from .controller import control

    # Standard output is the Host's own; there is nothing to add when it has ended.
    return Result(None, None, main(invocation.child, control))
