"""Has the user agreed that code of this workspace may run?"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "UNO_DEVSERVER_TRUST"


def is_trusted(environ: Mapping[str, str]) -> bool:
    """Automation agrees by the environment; nothing that lies in a workspace can."""
    return environ.get(VARIABLE, "").strip() == "1"
