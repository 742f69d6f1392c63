"""What the clients themselves said about the servers, for `--verify`: as data, and as lines for people."""

from __future__ import annotations

from ..terminal import Style, folded, one_line, styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...setup.client_cli import ClientAnswer


def verified_data(answers: Sequence[ClientAnswer]) -> list[dict[str, object]]:
    return [_data(answer) for answer in answers]


def verified_lines(answers: Sequence[ClientAnswer]) -> Iterator[str]:
    yield styled("What the clients themselves see", Style.HEADING)
    if not answers:
        yield "  no client is here that has a command for it"
    for answer in answers:
        yield from folded(one_line(_summary(answer)), f"  {styled(one_line(answer.client), Style.NAME)}: ", "    ")
        for said in answer.said:
            yield from folded(one_line(said), "    | ", "    | ")


def _data(answer: ClientAnswer) -> dict[str, object]:
    told: dict[str, object] = {"client": answer.client, "command": answer.command}
    told |= {"problem": answer.problem} if answer.problem else {"sees": dict(answer.sees)}
    return {**told, "said": list(answer.said)}


def _summary(answer: ClientAnswer) -> str:
    if answer.problem:
        return f"⚠ {answer.problem}"
    seen = [name for name, sees in answer.sees.items() if sees]
    unseen = [name for name, sees in answer.sees.items() if not sees]
    parts = [f"sees {', '.join(seen)}"] if seen else []
    parts += [f"does not see {', '.join(unseen)}"] if unseen else []
    return f"{', '.join(parts)} ({answer.command})"
