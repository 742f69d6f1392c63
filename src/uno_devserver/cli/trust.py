"""`trust`: shows what code of the workspace would run, and stores or revokes the user's agreement to it.

On a terminal it asks before it stores the agreement; elsewhere, running the command is the agreement. `consent_to` is
for the commands that run such code: `start`, `inspect` and `mcp install`. They ask on a terminal, or take `--trust` for
a yes, and their agreement stays stored only if the command succeeds.
"""

from __future__ import annotations

import os
import sys

from ..issues import UserError
from ..system.files import FileProblem
from ..system.folders import folders
from ..system.log import log
from ..system.text import HIDDEN, one_line
from ..system.values import Value
from ..workspace.config import read_config
from ..workspace.trust import (
    BUILD,
    TRUST_VARIABLE,
    ForeignCode,
    agree,
    agreement_path,
    agreements,
    is_trusted,
    refusal,
    revoke,
    trust_question,
    trusts_all,
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
STILL_TRUSTED = "Code of this workspace may still run; 'uno-devserver trust --revoke' revokes that."
NOTHING_AGREED = "Nothing was agreed to."
REMARK = f"A changed config and new kinds of code need a new agreement; edited code does not. {REVOKE}"
NOTHING_YET = "The workspace {} has no code that could run: no add-ins, no commands in a config, no global.json."
BUILDS = "MSBuild with its projects and the packages inside it, if its add-ins cannot be found otherwise"
QUESTION = "Code of this workspace does not run: {}. From now on, and after later edits of it, this would run:"
HIDDEN_VALUES = f"{HIDDEN} stands for a value that may be a secret; the config has it"
MAY_IT_RUN = "May it run? [y/N] "
LOADED_LATER = "The Host that runs loads new add-ins when it is started again: 'uno-devserver start --restart'."
STILL_RUNS = "A running Host keeps what it has loaded; 'uno-devserver stop' ends it."
STILL_SERVES = "A server of the config is no longer reloaded, and ends with the AI client that started its proxy."
BY_ENVIRONMENT = f"{TRUST_VARIABLE}=1 is set, which agrees for every workspace."
HOW_TO_AGREE = "To agree, use --trust, or run 'uno-devserver trust'."
MAKE_WRITABLE = "Make the folder writable, then run it again."
OF_OTHERS = "Code of other users is not agreed to: they could replace it at any time."
MAKE_YOURS = (
    f"Copy the workspace, or make it yours with chown. {TRUST_VARIABLE}=1 runs code of every workspace, of others too."
)
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
        return _revoke(workspace) if invocation.on("revoke") else _agree(workspace, invocation)
    except OSError as error:
        message = (
            f"The agreement in {error.filename or folders().state} could not be changed: {error.strerror or error}."
        )
        raise UserError("StateNotWritable", message, MAKE_WRITABLE) from error


def _agree(workspace: Workspace, invocation: Invocation) -> Result:
    dry_run = invocation.on("dry-run")
    if not workspace.resolved:
        issue = workspace.issues[0]
        raise UserError(issue.code, f"There is nothing to agree to. {issue.message}", issue.remediation)
    try:
        asked = trust_question(workspace.working_directory)
        commands = _commands(asked)
        problems = _problems(asked)
    except FileProblem as problem:
        raise _cannot_agree(problem) from problem
    state = folders().state
    path = agreement_path(state, asked.directory)
    runs = _shown(asked, commands)
    trusted = is_trusted(os.environ, asked.directory)
    asks = not (dry_run or trusted) and can_ask(invocation)
    if runs and asks and not _is_confirmed(asked.directory, runs):
        raise UserError("WorkspaceNotTrusted", NOTHING_AGREED, "Run 'uno-devserver trust' again, and answer y.")
    _check_unchanged(asked)
    keeps = bool(runs) and not dry_run  # an agreement to nothing has no meaning
    rows: tuple[Row, ...] = (Row("config", asked.config or "none"),)
    if keeps:
        agree(state, asked, "trust")
        rows += (Row("kept in", path),)
    late = keeps and not trusted and bool(asked.addins) and _host_keeps_code(workspace)
    data = {
        "workspaceDirectory": asked.directory,
        "trusted": is_trusted(os.environ, asked.directory),
        "addIns": list(asked.addins),
        "commands": list(commands),
        "msBuild": BUILD in asked.kinds,
        "config": asked.config,
        "problems": list(problems),
        **({"dryRun": True} if dry_run else {"agreement": path if keeps else None}),
    }
    may = "may" if not dry_run else "may already" if trusted else "would be allowed to"
    title = f"Code of the workspace {asked.directory} {may} run."
    sections = (
        Section("", rows),
        Bullets("What would be allowed" if dry_run else "What may run", () if asks else runs),
        Bullets("Problems of the config", problems, Style.BAD),
        Bullets("Note", (LOADED_LATER,) if late else ()),
        Section(REMARK if keeps else NOTHING_AGREED, ()),
    )
    return Result(data, Report(title if runs else NOTHING_YET.format(asked.directory), sections))


def _host_keeps_code(workspace: Workspace) -> bool:
    """Whether a Host of the workspace runs that no proxy restarts to load the code."""
    from ..instances.registry import running_servers
    from ..instances.workspace_servers import of_workspace
    from .proxies import owners_of_host

    return not all(map(owners_of_host, of_workspace(running_servers(folders().registry), workspace)))


def _shown(asked: TrustQuestion, commands: tuple[str, ...]) -> tuple[str, ...]:
    """What the user sees of the code that would run, or of the config if it names no commands; empty if neither is."""
    settings = (f"The settings of {asked.config}, which name no command",) if asked.config and not commands else ()
    shown = (*map(_with_target, asked.addins), *commands, *settings, *((BUILDS,) if BUILD in asked.kinds else ()))
    hidden = (HIDDEN_VALUES,) if any(HIDDEN in each for each in commands) else ()
    return (*map(one_line, shown), *hidden)


def _with_target(path: str) -> str:
    """The path of an add-in, with the place to which it leads if a link is on the way from the workspace."""
    target = os.path.realpath(path)
    return path if target == path else f"{path} -> {target}"


def _cannot_agree(problem: FileProblem) -> UserError:
    if isinstance(problem, ForeignCode):
        message = f"{problem.path} belongs to another user (id {problem.owner}; yours is {os.geteuid()}). {OF_OTHERS}"
        return UserError("WorkspaceNotTrusted", message, MAKE_YOURS)
    message = f"{problem.path} cannot be read: {problem.reason}. {NOT_SEEN}"
    return UserError("ConfigInvalid", message, "Make it a readable file, or remove it.")


def _problems(asked: TrustQuestion) -> tuple[str, ...]:
    if asked.config is None:
        return ()
    from .config import commands_of  # as below

    config = read_config(asked.config)
    unknown = (f"{issue.message} {issue.remediation}" for issue in commands_of(asked.directory, config).unknown())
    return (*(issue.message for issue in config.issues), *unknown)


def _commands(asked: TrustQuestion) -> tuple[str, ...]:
    """Sentences about the commands that the config makes this program run; raises UserError if it is unreadable."""
    config = read_config(asked.config)
    if not config.readable:
        message = f"{config.issues[0].message} {NOT_SEEN}"
        raise UserError("ConfigInvalid", message, "Correct the file (comments and trailing commas are allowed).")
    if asked.config is None:
        return ()
    from .config import commands_of  # takes a few ms, and every `start` imports this module

    page = config.inspector
    served = (f"The inspector page, served on this machine{f' at port {page.port}' if page.port else ''}",)
    return (*commands_of(asked.directory, config).in_words(), *(served if page.enabled else ()))


def _list() -> Result:
    found = agreements(folders().state)
    by_environment = trusts_all(os.environ)
    data = {
        "agreements": [
            {
                "workspaceDirectory": one.directory,
                "trusted": not one.outdated,
                "outdated": one.outdated or None,
                "agreedTo": list(one.kinds),
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
    what = f" to {', '.join(one.kinds)}" if one.kinds else ""
    agreed = f"agreed by '{one.command}' at {one.time}{what}"
    return f"{agreed}; it does not count any more, because {one.outdated}" if one.outdated else agreed


def _revoke(workspace: Workspace) -> Result:
    directory = os.path.realpath(workspace.working_directory)
    known = revoke(folders().state, directory)
    trusted = is_trusted(os.environ, directory)
    config = read_config(workspace.config)
    still = (STILL_RUNS, STILL_SERVES) if config.names_server or config.servers else (STILL_RUNS,)
    remarks = (still if known else ()) + ((BY_ENVIRONMENT,) if trusted else ())
    data = {"workspaceDirectory": directory, "trusted": trusted, "revoked": known}
    done = f"The agreement to run code of the workspace {directory} is revoked."
    title = done if known else f"There was no agreement to run code of the workspace {directory}."
    return Result(data, Report(title, (Bullets("Note", remarks),)))


class Consent(Value):
    """The user's answer to the question whether code of a workspace may run."""

    given: bool
    asked: TrustQuestion | None = None  # None if there was no question
    code: tuple[str, ...] = ()  # the code in question, as it was shown
    answered: bool = False  # whether the user has seen the code, in a question on a terminal

    @property
    def untold(self) -> tuple[str, ...]:
        """The code that may run by this answer, if the user has not just been shown it."""
        return () if self.answered else self.agreed

    @property
    def agreed(self) -> tuple[str, ...]:
        """The code that may run by this answer."""
        return self.code if self.given else ()

    @property
    def refused(self) -> str:
        """Sentences: which code is not run, and how to agree to it; empty if it may run, or if there is none."""
        if self.given or not self.code:
            return ""
        return f"Not run until you agree: {'; '.join(self.code)}. {HOW_TO_AGREE}"

    def keep(self, command: str) -> None:
        """Store the agreement; for commands that have succeeded, or that withdraw it if they fail."""
        if not self.given or self.asked is None:
            return
        state = folders().state
        try:
            agree(state, self.asked, command)
        except OSError as error:
            why = error.strerror or error
            log.warn(
                f"The agreement to run code of this workspace could not be kept in {state}: {why}. {MAKE_WRITABLE}"
            )

    def withdraw(self) -> None:
        """Remove the agreement that `keep` has stored, because the command has failed."""
        if self.given and self.asked is not None:
            try:
                revoke(folders().state, self.asked.directory)
            except OSError as error:
                log.warn(f"The agreement to run code of this workspace could not be removed: {error}. {REVOKE}")


NO_QUESTION = Consent(given=False)


def consent_to(directory: str, invocation: Invocation, *, asks: bool = True, runs_commands: bool = True) -> Consent:
    """Whether this command may run code of the workspace: by an earlier agreement, `--trust`, or an answer.

    `asks`: whether the user may be asked, if standard input and standard error are a terminal. `runs_commands`: whether
    commands of the config run, too, or add-ins only; an agreement is always to both.
    """
    if is_trusted(os.environ, directory):
        return Consent(given=True)
    wanted = invocation.on("trust")
    try:
        asked = trust_question(directory)
        commands = _commands(asked)
    except (FileProblem, UserError) as error:
        if wanted:
            raise (_cannot_agree(error) if isinstance(error, FileProblem) else error) from None
        log.debug(f"what of the workspace would run cannot be shown: {error}")
        return NO_QUESTION
    # A build alone is seldom needed, and settings alone run nothing: neither is worth a question.
    runs = bool(asked.addins) or (runs_commands and bool(commands))
    code = _shown(asked, commands) if runs or wanted else ()
    if not code:
        return NO_QUESTION
    answered = not wanted and asks and can_ask(invocation) and _is_confirmed(directory, code)
    if wanted or answered:
        _check_unchanged(asked)
    return Consent(wanted or answered, asked, code, answered)


def _check_unchanged(asked: TrustQuestion) -> None:
    """Raise UserError if the workspace has other code now than when it was shown."""
    try:
        changed = trust_question(asked.directory) != asked
    except FileProblem:
        changed = True
    if changed:
        message = f"{asked.directory} was changed meanwhile, so what was shown may not be what would run."
        raise UserError("WorkspaceNotTrusted", message, "Run it again.")


def can_ask(invocation: Invocation) -> bool:
    streams = (sys.stdin, sys.stderr)
    if sys.platform == "win32":
        from ..system.standard_streams import is_console

        return not invocation.on("json") and all(map(is_console, streams))
    return not invocation.on("json") and all(stream is not None and stream.isatty() for stream in streams)


def _is_confirmed(directory: str, code: tuple[str, ...]) -> bool:
    """Show the code and why it does not run yet, and ask; only `y` and `yes` agree."""
    question = one_line(QUESTION.format(refusal(folders().state, directory)))
    return confirmed("\n".join((question, *(f"- {each}" for each in code), REVOKE, MAY_IT_RUN)))


def confirmed(question: str) -> bool:
    """Ask on the terminal; only `y` and `yes` agree."""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    if not answer.endswith("\n"):  # the end of the input, which leaves the cursor behind the question
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")
