"""`trust`: shows what code of the workspace would run, and stores or revokes the user's agreement to it.

`agree_to` does the same for the commands that imply an agreement: `start`, `inspect` and `mcp install`.
"""

from __future__ import annotations

import os

from ..issues import UserError
from ..system.files import FileProblem
from ..system.folders import folders
from ..system.log import log
from ..workspace.config import read_config
from ..workspace.trust import (
    TRUST_VARIABLE,
    agree,
    agreement_path,
    agreements,
    is_agreed,
    is_trusted,
    revoke,
    trust_question,
)
from .parse import workspace_of
from .result import Bullets, Report, Result, Row, Section
from .terminal import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..workspace.resolver import Workspace
    from ..workspace.trust import Agreement, TrustQuestion
    from .parse import Invocation

MAY_RUN = "Code of this workspace that may run from now on"
WOULD_RUN = "Code of this workspace that would be agreed to"
REVOKE = "'uno-devserver trust --revoke' revokes this."
RUNS_AFTER_TRUST = "Code of this workspace runs only after 'uno-devserver trust'."
STILL_TRUSTED = "Code of this workspace may still run; 'uno-devserver trust --revoke' revokes that."
NOTHING_AGREED = "Nothing was agreed to; 'uno-devserver trust' without --dry-run agrees."
REMARK = f"A changed config needs a new agreement; edited code does not. {REVOKE}"
NOTHING_YET = "Nothing yet: it has no add-ins, and its config names no commands."
STILL_RUNS = "A running Host keeps what it has loaded; 'uno-devserver stop' ends it."
STILL_SERVES = "A server of the config is no longer reloaded, and ends with the AI client that started its proxy."
BY_ENVIRONMENT = f"{TRUST_VARIABLE}=1 is set, which agrees for every workspace."
MAKE_WRITABLE = "Make the folder writable, then run it again."
NOT_SEEN = "What cannot be shown cannot be agreed to."


def run(invocation: Invocation) -> Result:
    one_at_most = [f"--{name}" for name in ("dry-run", "revoke", "list") if invocation.on(name)]
    if len(one_at_most) > 1:
        message = f"'trust' does one thing at a time, not {' and '.join(one_at_most)}."
        raise UserError("BadValue", message, f"Leave all but one of {', '.join(one_at_most)} out.", exit_code=2)
    if invocation.on("list"):
        return _list()
    workspace = workspace_of(invocation)
    try:
        return _revoke(workspace) if invocation.on("revoke") else _agree(workspace, dry_run=invocation.on("dry-run"))
    except OSError as error:
        message = f"The agreement could not be written to {error.filename or folders().state}: {error.strerror}."
        raise UserError("StateNotWritable", message, MAKE_WRITABLE) from error


def _agree(workspace: Workspace, *, dry_run: bool) -> Result:
    if not workspace.resolved:
        issue = workspace.issues[0]
        raise UserError(issue.code, f"There is nothing to agree to. {issue.message}", issue.remediation)
    try:
        asked = trust_question(workspace.working_directory)
        commands = _commands(asked)
        problems = tuple(issue.message for issue in read_config(asked.config).issues)
        seen = trust_question(workspace.working_directory)
    except FileProblem as problem:
        message = f"{problem.path} cannot be read: {problem.reason}. {NOT_SEEN}"
        raise UserError("ConfigInvalid", message, "Make it a readable file, or remove it.") from problem
    if seen.digest != asked.digest:
        message = f"{asked.config or seen.config} was saved while it was read, so what would be shown is not what runs."
        raise UserError("ConfigInvalid", message, "Run it again.")
    state = folders().state
    path = agreement_path(state, asked.directory)
    rows: tuple[Row, ...] = (Row("config", asked.config or "none"),)
    if not dry_run:
        agree(state, asked, "trust")
        rows += (Row("kept in", path),)
    data = {
        "workspaceDirectory": asked.directory,
        "trusted": not dry_run or is_trusted(os.environ, asked.directory),
        "addIns": list(asked.addins),
        "commands": list(commands),
        "config": asked.config,
        "problems": list(problems),
        **({"dryRun": True} if dry_run else {"agreement": path}),
    }
    title = f"Code of the workspace {asked.directory} {'would be allowed to' if dry_run else 'may'} run."
    runs = (*asked.addins, *commands) or (NOTHING_YET,)
    sections = (
        Section("", rows),
        Bullets("What would be allowed" if dry_run else "What may run", runs),
        Bullets("Problems of the config", problems, Style.BAD),
        Section(NOTHING_AGREED if dry_run else REMARK, ()),
    )
    return Result(data, Report(title, sections))


def _commands(asked: TrustQuestion) -> tuple[str, ...]:
    """Sentences about the commands that the config makes this program run; raises UserError if it is unreadable."""
    config = read_config(asked.config)
    if not config.readable:
        message = f"{config.issues[0].message} {NOT_SEEN}"
        raise UserError("ConfigInvalid", message, "Correct the file (comments and trailing commas are allowed).")
    if asked.config is None:
        return ()
    from .config import commands_of  # takes a few ms, and every `start` imports this module

    return tuple(commands_of(asked.directory, config).in_words())


def _list() -> Result:
    found = agreements(folders().state)
    by_environment = os.environ.get(TRUST_VARIABLE, "").strip() == "1"
    data = {
        "agreements": [
            {
                "workspaceDirectory": one.directory,
                "trusted": not one.outdated,
                "outdated": one.outdated or None,
                "agreedBy": one.command,
                "agreedAt": one.time,
            }
            for one in found
        ],
        "trustsEverything": by_environment,
    }
    rows = tuple(Row(one.directory, _agreed(one), style=Style.WARN if one.outdated else None) for one in found)
    count = "1 workspace was" if len(found) == 1 else f"{len(found) or 'No'} workspaces were"
    note = Bullets("Note", (BY_ENVIRONMENT,) if by_environment else ())
    return Result(data, Report(f"{count} agreed to.", (*((Section("", rows),) if rows else ()), note)))


def _agreed(one: Agreement) -> str:
    agreed = f"agreed by '{one.command}' at {one.time}"
    return f"{agreed}; it does not count any more, because {one.outdated}" if one.outdated else agreed


def _revoke(workspace: Workspace) -> Result:
    directory = os.path.realpath(workspace.working_directory)
    known = revoke(folders().state, directory)
    trusted = is_trusted(os.environ, directory)
    still = (STILL_RUNS, STILL_SERVES) if read_config(workspace.config).names_server else (STILL_RUNS,)
    remarks = (still if known else ()) + ((BY_ENVIRONMENT,) if trusted else ())
    data = {"workspaceDirectory": directory, "trusted": trusted, "revoked": known}
    done = f"The agreement to run code of the workspace {directory} is revoked."
    title = done if known else f"There was no agreement to run code of the workspace {directory}."
    return Result(data, Report(title, (Bullets("Note", remarks),)))


def agree_to(directory: str, command: str, *, dry_run: bool = False) -> tuple[str, ...]:
    """Store the user's agreement to this workspace, given by this command; returns the code that may newly run."""
    state = folders().state
    try:
        asked = trust_question(directory)
        if asked.empty or is_agreed(state, asked.directory):
            return ()
        runs = (*asked.addins, *_commands(asked))
    except (FileProblem, OSError, UserError) as error:
        log.debug(f"what of the workspace would run cannot be shown: {error}")
        return ()
    if runs and not dry_run:  # an agreement to nothing would cover code that comes later
        try:
            agree(state, asked, command)
        except OSError as error:
            reason = error.strerror or error
            log.warn(
                f"The agreement to run code of this workspace could not be kept in {state}: {reason}. {MAKE_WRITABLE}"
            )
            return ()
    return runs


def needs_agreement(directory: str) -> bool:
    """Whether the workspace has code that does not run because the user has not agreed to it."""
    return not is_trusted(os.environ, directory) and bool(agree_to(directory, "", dry_run=True))
