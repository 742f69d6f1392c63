"""`--verify`: asks the clients themselves which servers they see, and shows their answers."""

from __future__ import annotations

from ...system.text import one_line
from ..terminal import Style, folded, styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...setup.client_cli import ClientAnswer
    from ...setup.profiles import Profile
    from .arguments import McpArguments


def ask_clients(wanted: McpArguments, profiles: Sequence[Profile]) -> tuple[ClientAnswer, ...]:
    """The answer of the named client, or else of those given clients that have a command to list servers."""
    from ...setup.client_cli import ask, ask_all
    from ..progress import say

    say(f"Asking {wanted.client.name if wanted.client else 'the clients'}")
    if wanted.client is not None:
        return (ask(wanted.client, wanted.servers),)
    return ask_all(profiles, wanted.servers)


def verified_data(answers: Sequence[ClientAnswer]) -> list[dict[str, object]]:
    return [_data(answer) for answer in answers]


def _data(answer: ClientAnswer) -> dict[str, object]:
    told: dict[str, object] = {"client": answer.client, "command": answer.command}
    told |= {"problem": answer.problem} if answer.problem else {"sees": dict(answer.sees)}
    return {**told, "said": list(answer.said)}


def verified_lines(answers: Sequence[ClientAnswer]) -> Iterator[str]:
    yield styled("What the clients themselves see", Style.HEADING)
    if not answers:
        yield "  no detected client has a command for this"
    for answer in answers:
        yield from folded(one_line(_summary(answer)), f"  {styled(one_line(answer.client), Style.NAME)}: ", "    ")
        for line in answer.said:
            yield from folded(one_line(line), "    | ", "    | ")


def _summary(answer: ClientAnswer) -> str:
    if answer.problem:
        return f"⚠ {answer.problem}"
    seen = [name for name, sees in answer.sees.items() if sees]
    unseen = [name for name, sees in answer.sees.items() if not sees]
    parts = [f"sees {', '.join(seen)}"] if seen else []
    parts += [f"does not see {', '.join(unseen)}"] if unseen else []
    return f"{', '.join(parts)} ({answer.command})"
