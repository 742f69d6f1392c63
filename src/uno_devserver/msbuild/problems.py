"""What stops an evaluation, with MSBuild's own error code where MSBuild has one."""

from __future__ import annotations

# Our own codes, for what MSBuild would do but this evaluator will not.
LIMIT = "Limit"  # a bound on memory, nesting or work was reached
UNSUPPORTED = "Unsupported"  # a function that MSBuild has and this evaluator has not

# Enough to recognise a value by; a hostile one has megabytes.
MAX_QUOTED = 200


class EvaluationProblem(Exception):
    """MSBuild would refuse this project too, or a limit was reached.

    `path` is the file at fault and `entry` the place of the evaluated file that led to it; both are filled in by the
    evaluator, since an expression does not know where it stands.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.entry = -1

    def __str__(self) -> str:
        return f"{self.path}: {self.code}: {self.message}" if self.path else f"{self.code}: {self.message}"


def quoted(value: object) -> str:
    """A value for a message: in quotes if it is text, and cut if it is long."""
    if not isinstance(value, str):
        return shortened(repr(value))
    return repr(value) if len(value) <= MAX_QUOTED else f"{value[:MAX_QUOTED]!r}..."


def shortened(text: str) -> str:
    """The same without quotes."""
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}..."
