"""What a command returns: data for `--json`, a report for people, an exit code. Rendered elsewhere."""

from __future__ import annotations

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .colours import Style


class Row(Value):
    """One fact. A missing value says what it is missing, if the command knows."""

    key: str
    value: str | None
    missing: str = ""
    style: Style | None = None  # where the value is good or bad news


class Section(Value):
    title: str
    rows: tuple[Row, ...]


class Bullets(Value):
    """A list of sentences under a heading; left out of the output when there are none."""

    title: str
    items: tuple[str, ...]
    style: Style | None = None  # of the heading, where that is bad news


class Report(Value):
    title: str
    sections: tuple[Section | Bullets, ...]


class Result(Value):
    data: object
    text: Report | str | None  # None: nothing to say on stdout
    exit_code: int = 0
    afterwards: Callable[[], int] | None = None  # what is left to do once this is shown; gives the exit code
