"""Why the launch of a Host failed, in the words of a user, as its output and exit code tell it."""

from __future__ import annotations

import re
from enum import Enum

from ..system.processes import how_it_ended

# The last output of a bundled Host whose flags are wrong or that cannot listen; it has not loaded any add-in.
_REFUSAL = re.compile(r"^error: (.*?)\nnext: ([^\n]*)\s*\Z", re.DOTALL | re.MULTILINE)

# The output of `dotnet` where a framework of the program is missing, in the words of .NET 6 and of the versions before.
_MISSING_FRAMEWORK = re.compile(
    r"[Ff]ramework:? '([^']+)', version '([^']+)'(?: \(\w+\)\s*$| was not found)", re.MULTILINE
)
# Exit codes of `dotnet` itself: nothing of the program has run, because a file of it or of .NET is missing or damaged.
_DOTNET_FAILURES = frozenset((131, *range(140, 160)))
_WHOLE_STATUS = 0x80008000  # on Windows an exit code is the whole status, elsewhere its last byte
QUOTED_CHARACTERS = 300
_DOTNET_LOCATION = re.compile(r"^\.NET location: (.+)$|\bat \[(.+?)\]", re.MULTILINE)


class LaunchFailureReason(Enum):
    PORT_TAKEN = "port taken"  # by another program
    NOT_STARTED = "not started"  # the system refused to run the program
    DIED = "died"
    NOT_READY = "not ready"
    GIVEN_UP = "given up"  # by the observer


class LaunchFailure(Exception):
    def __init__(
        self,
        reason: LaunchFailureReason,
        port: int,
        *,
        exit_code: int | None = None,
        text: str = "",
        seconds: float = 0.0,
        log_file: str = "",
    ) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.port = port
        self.exit_code = exit_code
        self.text = text  # the end of the Host's output, or the system's reason
        self.seconds = seconds  # the time that the Host had to become ready
        self.log_file = log_file  # the file with all of its output

    @property
    def refusal(self) -> tuple[str, str] | None:
        """Why the Host did not get to its add-ins, and the next step; None if its output does not show that."""
        found = _REFUSAL.search(self.text)
        if found:
            return found[1], found[2]
        missing = _MISSING_FRAMEWORK.search(self.text)
        if missing is not None:
            place = _DOTNET_LOCATION.search(self.text)
            where = f" It was looked for in {(place[1] or place[2]).strip()}." if place else ""
            needed = f"{missing[1]} {missing[2]}"
            return f"it needs {needed}, which is not installed.{where}", f"Install {needed}, or use --host bundled."
        if (self.exit_code or 0) & ~_WHOLE_STATUS not in _DOTNET_FAILURES:
            return None
        printed = " ".join(self.text.removeprefix("Error:").split())[:QUOTED_CHARACTERS].rstrip(".")
        reason = f"dotnet could not run it (exit code {self.exit_code}){': ' if printed else ''}{printed}."
        return reason, "Run 'dotnet restore --force' in the workspace, or use --host bundled."

    @property
    def message(self) -> str:
        match self.reason:
            case LaunchFailureReason.GIVEN_UP:
                return "The start of the Host was given up."
            case LaunchFailureReason.NOT_READY:
                return f"The Host did not answer on port {self.port} within {self.seconds:g} s and was stopped."
            case LaunchFailureReason.PORT_TAKEN:
                return f"The Host cannot be started: port {self.port} is taken by another program."
            case LaunchFailureReason.NOT_STARTED:
                return f"The Host cannot be started: {self.text.rstrip('.')}."
        if self.refusal is not None:
            return f"The Host cannot be started: {self.refusal[0]}"
        return f"{how_it_ended(self.exit_code, 'The Host')} before it was ready."

    @property
    def printed(self) -> str:
        """A text about the Host's last output, to be added to a sentence."""
        if not self.text.strip():
            return " It printed nothing."
        return "\nThe end of its output:\n" + "\n".join(f"  | {line}" for line in self.text.splitlines())
