"""What `mcp status` finds, for people: a line per client and entry, within 80 columns where a path allows it."""

from __future__ import annotations

from ..setup.matching import PATH_RUNNER
from ..setup.profiles import HTTP
from ..setup.status import Status, in_words
from .colours import Style, styled
from .folding import bullets, columns, folded, one_line, table_width
from .verified import verified_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..setup.asking import Answer
    from ..setup.matching import Match
    from ..setup.places import Here
    from ..setup.servers import Server
    from ..setup.status import ClientStatus, Location, Registration
    from .registration import Asked

TITLE = "MCP Server Status"
_HEAD = 15  # where the values behind the title begin
_STATUS = max(len(status.value) for status in Status) + 1
_VARIANT = 15  # at least
_DEEPER = 6  # how far a path stands in that has a line of its own
_STYLES = {Status.REGISTERED: Style.GOOD, Status.MISSING: Style.DIM, Status.OUTDATED: Style.WARN}


def status_text(
    wanted: Asked, clients: Sequence[ClientStatus], steps: Sequence[str], answers: Sequence[Answer] | None = None
) -> str:
    return "\n".join(_lines(wanted, clients, steps, answers))


def shown_path(path: str, here: Here) -> str:
    """As people call it: from the workspace, or from their home folder."""
    for folder, instead in ((here.workspace, ""), (here.home, "~/")):
        inside = path.removeprefix(folder.rstrip("/\\"))
        if inside != path and inside.startswith(("/", "\\")):
            return instead + inside[1:]
    return path


def _lines(
    wanted: Asked, clients: Sequence[ClientStatus], steps: Sequence[str], answers: Sequence[Answer] | None
) -> Iterator[str]:
    listed = [one for one in clients if one.detected or one.profile is wanted.client]
    others = [one.profile.id for one in clients if not (one.detected or one.profile.hidden or one.profile.no_client)]
    yield from (styled(TITLE, Style.HEADING), styled("=" * len(TITLE), Style.HEADING), "")
    yield from _head("IDEs detected:", ", ".join(one.profile.id for one in clients if one.detected) or "none")
    if wanted.client is not None:
        yield from _head("Caller IDE:", wanted.client.id)
    runner = f", started by {wanted.wish.runner}" if wanted.wish.runner is not None else ""
    yield from _head("Expected:", f"{wanted.wish.variant} ({wanted.wish_from}){runner}")
    for server in wanted.servers:
        yield from _server(server, listed, wanted.here)
    if answers is not None:
        yield ""
        yield from verified_lines(answers)
    yield from bullets("Next steps", [_with_shown_paths(step, wanted.here) for step in steps])
    if others and wanted.client is None:
        yield ""
        call = " ".join(("uno-devserver mcp install <client>", *wanted.options))
        yield from folded(one_line(f"'{call}' also knows: {', '.join(others)}"), "", "  ")


def _head(title: str, value: str) -> Iterator[str]:
    return folded(one_line(value), styled(f"{title:<{_HEAD}}", Style.NAME), " " * _HEAD)


def _server(server: Server, listed: Sequence[ClientStatus], here: Here) -> Iterator[str]:
    yield from ("", styled(one_line(f"{server.name} ({server.transport})"), Style.HEADING))
    if not listed:
        yield "  no client is here that could know it"
    width = max((len(client.profile.id) for client in listed), default=0) + 2
    rows = [(client, found) for client in listed for found in client.registrations if found.server is server]
    variant = max((len(_how(one.match)) + 1 for _, found in rows for one in found.locations), default=0)
    for client, found in rows:
        cannot = "" if server.transport in client.profile.transports else f"(takes no {server.transport} servers)"
        name = one_line(f"  {client.profile.id:<{width}}")
        yield from _client(name, found, cannot, max(variant, _VARIANT), here)


def _client(first: str, found: Registration, cannot: str, variant: int, here: Here) -> Iterator[str]:
    status = styled(f"{found.status.value:<{_STATUS}}", _STYLES[found.status])
    if not found.locations:
        yield f"{first}{status}{cannot}".rstrip()
    for number, location in enumerate(found.locations):
        before = f"{first}{status}" if number == 0 else " " * (len(first) + _STATUS)
        how, path = one_line(_how(location.match)), one_line(_where(location, found.server, here))
        line = f"{before}{how:<{variant}}"
        if columns(line) + columns(path) <= table_width():
            yield line + path
        else:
            yield from (line.rstrip(), " " * _DEEPER + path)
    for warning in found.warnings:
        indent = " " * len(first)
        sentence = one_line(_with_shown_paths(warning, here))
        yield from folded(sentence, f"{indent}{styled('⚠', Style.WARN)} ", f"{indent}  ")


def _how(match: Match) -> str:
    """The version, and what starts it where that is not the usual."""
    if match.own_way:
        return "own"
    if match.server.runner and match.runner is None and match.transport != HTTP:
        return "other"
    if match.runner == PATH_RUNNER:
        return PATH_RUNNER  # the version that is there
    return match.variant if match.runner in (None, match.server.runner) else f"{match.runner} {match.variant}"


def _where(location: Location, server: Server, here: Here) -> str:
    remarks = [f"as {location.match.entry.name}"] if location.match.entry.name != server.name else []
    remarks += ["not read any more"] if location.legacy else []
    where = _with_shown_paths(in_words(location.reading.place, here), here).replace("'", "", 2)
    return where + (f" ({', '.join(remarks)})" if remarks else "")


def _with_shown_paths(sentence: str, here: Here) -> str:
    """The paths in it stand in quotes."""
    pieces = sentence.split("'")
    return "'".join(shown_path(piece, here) if number % 2 else piece for number, piece in enumerate(pieces))
