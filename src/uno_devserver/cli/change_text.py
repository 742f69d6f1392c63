"""What was done to clients' files, for people: a line per server and file, within 80 columns where a path allows it."""

from __future__ import annotations

from ..setup.operations import Action
from ..system.text import visible
from .agreeing import MAY_RUN, REVOKE, WOULD_RUN
from .colours import Style, styled
from .folding import bullets, columns, folded, nearer, one_line, table_width
from .status_text import shown_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..setup.applying import Ways
    from ..setup.asking import Answer
    from ..setup.operations import Operation
    from ..setup.places import Here

DRY_RUN = "DRY RUN — no files will be modified"
WHOLE_FILE = "(file)"  # where no server is meant but all of it
_DEEPER = 6  # how far a reason stands in that has a line of its own
_STYLES = dict.fromkeys((Action.CREATED, Action.UPDATED, Action.REMOVED, Action.RESTORED), Style.GOOD)
_STYLES |= {Action.ERROR: Style.BAD, Action.SKIPPED: Style.DIM, Action.NOT_FOUND: Style.DIM}
_OF_DIFF = {"+": Style.GOOD, "-": Style.BAD, "@": Style.NAME}


def change_text(
    title: str,
    operations: Sequence[Operation],
    next_steps: Sequence[str],
    here: Here,
    ways: Ways,
    answers: Sequence[Answer] | None = None,
    agreed: Sequence[str] = (),
) -> str:
    lines = [*((styled(DRY_RUN, Style.WARN), "") if ways.dry_run else ())]
    lines += [styled(title, Style.HEADING), styled("=" * len(title), Style.HEADING)]
    by_client: dict[str, list[Operation]] = {}
    for one in operations:
        by_client.setdefault(one.ide, []).append(one)
    for client, its in by_client.items():
        name = styled(one_line(client), Style.NAME)
        lines += ["", *((name,) if len(by_client) > 1 else ()), *_table(its, here)]
    lines += bullets("Notes", dict.fromkeys(note for one in operations for note in one.notes))
    backups = dict.fromkeys(one.backup for one in operations if one.backup)
    if backups:  # not folded: nobody could copy such a path, and there is a blank in each
        lines += _paths("Backups (for 'uno-devserver mcp restore')", backups)
    if agreed:  # the same
        lines += _paths(WOULD_RUN if ways.dry_run else MAY_RUN, agreed)
        lines += [] if ways.dry_run else [REVOKE]
    lines += bullets("Next steps", next_steps)
    if answers is not None:
        from .verified import verified_lines

        lines += ["", *verified_lines(answers)]
    for one in operations:
        lines += ["", *_patch(one.diff)] if one.diff else []
    return "\n".join(lines)


def _paths(title: str, paths: Iterable[str]) -> Iterator[str]:
    yield from ("", styled(f"{title}:", Style.HEADING))
    yield from (f"- {nearer(one_line(path))}" for path in paths)


def _table(operations: Sequence[Operation], here: Here) -> Iterator[str]:
    rows = [
        (one_line(one.server or WHOLE_FILE), one.action, one_line(_where(one, here)), one_line(one.reason))
        for one in _with_errors_once(operations)
    ]
    server, path = max(len(row[0]) for row in rows), max(len(row[2]) for row in rows)
    action = max(len(row[1].value) for row in rows)
    for name, done, where, reason in rows:
        begin = f"  {name:<{server}}  {styled(f'{done.value:<{action}}', _STYLES.get(done))}"
        whole = f"{begin}  {where:<{path}}   {reason}" if path else f"{begin}  {reason}"
        short = f"{begin}  {where}   {reason}" if where else f"{begin}  {reason}"
        if columns(whole) <= table_width():
            yield whole
        elif columns(short) <= table_width():
            yield short
        else:
            yield f"{begin}  {where}".rstrip()
            yield from folded(reason, " " * _DEEPER, " " * _DEEPER)


def _where(one: Operation, here: Here) -> str:
    """The file, and the entries in it that have another name than the server."""
    names = f" (as {', '.join(one.keys)})" if one.keys not in ((), (one.server,)) else ""
    return shown_path(one.path, here) + names if one.path else ""


def _with_errors_once(operations: Sequence[Operation]) -> Iterator[Operation]:
    """What is wrong with a file is the same for all servers."""
    told: dict[tuple[object, ...], list[str]] = {}
    for one in operations:
        if one.action is Action.ERROR and one.server:
            told.setdefault((one.path, one.reason), []).append(one.server)
    for one in operations:
        if one.action is not Action.ERROR or not one.server:
            yield one
        elif servers := told.pop((one.path, one.reason), None):
            yield one.replace(server=", ".join(servers))


def _patch(diff: str) -> Iterator[str]:
    """The difference such that it can be applied: only what moves the cursor elsewhere is shown by its number."""
    for line in diff.removesuffix("\n").split("\n"):
        content = line.removesuffix("\r")
        safe = "\t".join(visible(piece, keep_odd_bytes=True) for piece in content.split("\t"))
        yield styled(safe, _OF_DIFF.get(safe[:1])) + line[len(content) :]
