"""Numbers on the command line."""

from __future__ import annotations

from ..issues import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parse import Invocation

MAX_PORT = 65_535
MAX_DIGITS = 20  # Python refuses to read numbers of thousands of digits


def number(invocation: Invocation, option: str, least: int, most: int) -> int | None:
    """The value of an option, None where it was not given; UserError when it is none of the numbers allowed."""
    text = invocation.value(option)
    if text is None:
        return None
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and least <= int(text) <= most):
        message = f"The value '{text}' of --{option} cannot be used."
        raise UserError("BadValue", message, f"Use a whole number from {least} to {most}.", exit_code=2)
    return int(text)
