"""Definitions from a file that the user names: read, checked whole, and refused with the place of the error."""

from __future__ import annotations

from ..issues import UserError
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BYTES = 4 * 1024 * 1024  # ours has 25 KB


def read_external(kind: str, path: str) -> dict[str, Any]:
    """What is under the root of a definitions file, with comments allowed; raises UserError."""
    try:
        data = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        raise _invalid(f"The definitions file does not exist: {path}", "Correct the path.") from None
    except FileProblem as problem:
        raise _invalid(f"The definitions file cannot be read: {path}: {problem.reason}", "Correct the path.") from None
    except JsonProblem as problem:
        raise _invalid(f"The definitions file is not JSON: {path}: {problem}", "Correct the file there.") from None
    if not isinstance(data, dict):
        raise _invalid(f"{path}: must be an object, with a name for each definition", "See the JSON schema.")
    return {name: value for name, value in data.items() if name != "$schema"}


def _invalid(message: str, next_step: str) -> UserError:
    return UserError("DefinitionsInvalid", message, next_step, exit_code=2)
