"""The parts that `mcp install`, `uninstall` and `restore` share: choosing clients, changing files, and the output."""

from __future__ import annotations

from ...issues import UserError
from ...setup.change_writer import WriteOptions, apply_plan, exclusively
from ...setup.client_detection import detected
from ...setup.plan.changes import Action, FileChange, nothing_done
from ...system.folders import folders
from ...system.text import one_line, visible
from ..terminal import Style, bullets, columns, folded, styled, table_width, with_short_paths
from ..trust import MAY_RUN, REVOKE, WOULD_RUN
from .arguments import PROTOCOL, shown_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ...setup.client_cli import ClientAnswer
    from ...setup.paths import Here
    from ...setup.plan.changes import ChangePlan, Operation
    from ...setup.plan.request import PlannedFiles
    from ...setup.profiles import Profile
    from ..parse import Invocation
    from .arguments import McpArguments

CHANGED = (Action.CREATED, Action.UPDATED)
ONE_SCOPE = "Use one of them, or neither for all files of the client itself."  # about --scope and --all-scopes


def refuse_both(invocation: Invocation, one: str, other: str, next_step: str) -> None:
    if one in invocation.options and invocation.on(other):
        raise UserError("BadValue", f"--{one} and --{other} are mutually exclusive", next_step, exit_code=2)


def clients_of(invocation: Invocation, wanted: McpArguments, verb: str) -> tuple[Profile, ...]:
    """The named client, or all detected ones for --all-ides; raises UserError if there is none."""
    all_clients = invocation.on("all-ides")
    if wanted.client is not None:
        if all_clients:
            message = f"'{wanted.client.id}' and --all-ides are mutually exclusive"
            raise UserError("BadValue", message, "Name a client, or use --all-ides for all detected ones.", exit_code=2)
        return (wanted.client,)
    usage = f"Usage: mcp {verb} <client>, or use --all-ides to target all detected clients"
    if not all_clients:
        known = ", ".join(profile.id for profile in wanted.definitions.clients)
        raise UserError("MissingClient", f"Missing client argument. {usage}", f"Name one of: {known}.", exit_code=2)
    # Nothing can be registered with a program that is not an MCP client, but entries in its files can be removed.
    possible = [one for one in wanted.definitions.profiles if verb != "install" or not one.no_client]
    found = tuple(one for one in possible if detected(one, wanted.here))
    if not found:
        message = f"No clients detected. Specify a client explicitly: mcp {verb} <client>"
        raise UserError("NoClient", message, "Run 'uno-devserver mcp status' to see which are known.")
    return found


def write_options(invocation: Invocation) -> WriteOptions:
    return WriteOptions(folders().state, backup=not invocation.on("no-backup"), dry_run=invocation.on("dry-run"))


def change_all(
    clients: tuple[Profile, ...],
    plan: Callable[[Profile], ChangePlan],
    files: PlannedFiles,
    options: WriteOptions,
    order: tuple[str, ...],
) -> tuple[Operation, ...]:
    """Change the files client by client, because a client may read a file that was written for another."""

    def work() -> tuple[Operation, ...]:
        done: list[Operation] = []
        for client in clients:
            changed = _change(client, plan, files, options)
            done += sorted(changed, key=lambda one: order.index(one.server) if one.server in order else 0)
        return tuple(done)

    return work() if options.dry_run else exclusively(options.folder, work, required=options.backup)


def _change(
    client: Profile, plan: Callable[[Profile], ChangePlan], files: PlannedFiles, options: WriteOptions
) -> tuple[Operation, ...]:
    if not options.dry_run:
        return apply_plan(lambda: plan(client), options)
    planned = plan(client)
    done = apply_plan(lambda: planned, options)
    possible = {one.path for one in done if one.action is not Action.ERROR}
    for item in planned:
        if isinstance(item, FileChange) and item.path in possible:
            files.planned(item, options.folder)
    return done


def data_of(operations: tuple[Operation, ...], next_steps: tuple[str, ...], options: WriteOptions) -> dict[str, object]:
    data: dict[str, object] = {
        "version": PROTOCOL,
        "operations": [_operation(one) for one in operations],
        "nextSteps": list(next_steps),
    }
    return {**data, "dryRun": True} if options.dry_run else data


def after_errors(operations: tuple[Operation, ...]) -> tuple[str, ...]:
    """The next steps for files that could not be changed."""
    return tuple(dict.fromkeys(one.next_step for one in operations if one.next_step))


def exit_code(operations: tuple[Operation, ...]) -> int:
    return 1 if nothing_done(operations) else 0


def _operation(one: Operation) -> dict[str, object]:
    told: dict[str, object] = {
        "server": one.server,
        "ide": one.ide,
        "action": one.action.value,
        "path": one.path,
        "reason": one.reason,
    }
    optional = {"keys": list(one.keys), "note": " ".join(one.notes), "backup": one.backup, "diff": one.diff}
    return told | {key: value for key, value in optional.items() if value}


DRY_RUN = "DRY RUN — no files will be modified"
WHOLE_FILE = "(file)"  # shown instead of a server for an operation on a whole file
_INDENT = 6  # the indentation of a reason on a line of its own
_STYLES = dict.fromkeys((Action.CREATED, Action.UPDATED, Action.REMOVED, Action.RESTORED), Style.GOOD)
_STYLES |= {Action.ERROR: Style.BAD, Action.SKIPPED: Style.DIM, Action.NOT_FOUND: Style.DIM}
_OF_DIFF = {"+": Style.GOOD, "-": Style.BAD, "@": Style.NAME}


def change_text(
    title: str,
    operations: Sequence[Operation],
    next_steps: Sequence[str],
    here: Here,
    options: WriteOptions,
    answers: Sequence[ClientAnswer] | None = None,
    agreed: Sequence[str] = (),
) -> str:
    lines = [*((styled(DRY_RUN, Style.WARN), "") if options.dry_run else ())]
    lines += [styled(title, Style.HEADING), styled("=" * len(title), Style.HEADING)]
    by_client: dict[str, list[Operation]] = {}
    for one in operations:
        by_client.setdefault(one.ide, []).append(one)
    for client, its in by_client.items():
        name = styled(one_line(client), Style.NAME)
        lines += ["", *((name,) if len(by_client) > 1 else ()), *_table(its, here)]
    lines += bullets("Notes", dict.fromkeys(note for one in operations for note in one.notes))
    backups = dict.fromkeys(one.backup for one in operations if one.backup)
    if backups:  # paths are not folded, so that they can be copied
        lines += _paths("Backups (for 'uno-devserver mcp restore')", backups)
    if agreed:
        lines += _paths(WOULD_RUN if options.dry_run else MAY_RUN, agreed)
        lines += [] if options.dry_run else [REVOKE]
    lines += bullets("Next steps", next_steps)
    if answers is not None:
        from .verification import verified_lines

        lines += ["", *verified_lines(answers)]
    for one in operations:
        lines += ["", *_patch(one.diff)] if one.diff else []
    return "\n".join(lines)


def _paths(title: str, paths: Iterable[str]) -> Iterator[str]:
    yield from ("", styled(f"{title}:", Style.HEADING))
    yield from (f"- {with_short_paths(one_line(path))}" for path in paths)


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
            yield from folded(reason, " " * _INDENT, " " * _INDENT)


def _where(one: Operation, here: Here) -> str:
    """The file, and the names of its entries if they differ from the server's."""
    names = f" (as {', '.join(one.keys)})" if one.keys not in ((), (one.server,)) else ""
    return shown_path(one.path, here) + names if one.path else ""


def _with_errors_once(operations: Sequence[Operation]) -> Iterator[Operation]:
    """The operations; those that report the same error of one file for several servers are joined."""
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
    """The diff, a patch unless something is hidden in it; only control characters that move the cursor are escaped."""
    for line in diff.removesuffix("\n").split("\n"):
        content = line.removesuffix("\r")
        safe = "\t".join(visible(piece, keep_odd_bytes=True) for piece in content.split("\t"))
        yield styled(safe, _OF_DIFF.get(safe[:1])) + line[len(content) :]
