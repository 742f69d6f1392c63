"""The error that stops an evaluation, with MSBuild's error code if there is one."""

from __future__ import annotations

# Our own codes, for projects that MSBuild may accept.
LIMIT = "Limit"  # a bound on memory, nesting or work was reached
UNSUPPORTED = "Unsupported"  # a function of MSBuild that this evaluator does not have

# How much of a value a message shows.
MAX_QUOTED = 200


class EvaluationProblem(Exception):
    """MSBuild would reject this project, or this evaluator cannot evaluate it.

    `path` is the invalid file, `entry` the index of the evaluated file that led to it. The evaluator sets both,
    because expressions do not know their file.
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
    """A value for a message: text in quotes, and shortened if it is long."""
    if not isinstance(value, str):
        return shortened(repr(value))
    return repr(value) if len(value) <= MAX_QUOTED else f"{value[:MAX_QUOTED]!r}..."


def shortened(text: str) -> str:
    """A value for a message, without quotes, shortened if it is long."""
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}..."
