"""Parses the command line, runs the command and prints its result."""

from __future__ import annotations

import sys

from .. import __version__
from ..issues import UserError
from ..system.log import LEVELS, level_named, log
from .commands import Unknown
from .parse import close_option, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .commands import Command
    from .parse import Invocation
    from .result import Result

MISTYPED = 0.8  # how similar a forwarded option must be to one of ours to be reported as a possible mistake
INTERRUPTED = 130  # the exit code of a program that was ended by Ctrl+C


def main(argv: Sequence[str]) -> int:
    """Run one command line; returns the exit code: 0 done, 1 failed, 2 called wrongly, 130 interrupted."""
    as_json = any(_means_json(word) for word in argv)  # known before parsing, so that a parse error can be JSON too
    try:
        invocation = parse(argv)
        as_json = invocation.on("json")
        _configure_log(invocation)
        _report_unknown(invocation)
        result = _run(invocation)
        from .result import render  # imported late: `mcp start` never gets here, and its client waits for every import

        render(result, as_json=as_json)
        as_json = False  # the one JSON document has been written
        return result.afterwards() if result.afterwards else result.exit_code
    except UserError as error:
        _show(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        if as_json:  # a program that reads the output gets a JSON document; people know that they pressed Ctrl+C
            _show(UserError("Interrupted", "The command was interrupted.", "Run it again."), as_json=True)
        return INTERRUPTED
    except Exception as error:
        _show(_unexpected(error), as_json=as_json)
        return 1


def _means_json(word: str) -> bool:
    """Whether the word is --json, or --json=<value>, which is an error that is then reported as JSON."""
    name, _, value = word.lower().partition("=")
    return name == "--json" and value != "false"


def _configure_log(invocation: Invocation) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        from .terminal import log_prefixes

        log.prefixes = log_prefixes(log.prefixes)
    path, name = invocation.value("file-log"), invocation.value("log-level")
    if path is not None:
        log.open_file(path)
    if name is not None:
        level = level_named(name)
        if level is None:
            log.warn(f"'{name}' is not a log level; using Information. Levels: {', '.join(LEVELS)}.")
        else:
            log.level = level


def _report_unknown(invocation: Invocation) -> None:
    """Warn of options that are ignored, and of forwarded ones that look mistyped."""
    command = invocation.command
    ignored = command is not None and command.unknown is Unknown.IGNORE
    for option in invocation.forwarded:
        close = close_option(option, command, alike=0.6 if ignored else MISTYPED) if option.startswith("-") else None
        hint = f" Did you mean '{close}'?" if close else ""
        if ignored:
            log.warn(f"Ignoring '{option}'.{hint}")
        elif close:
            log.warn(f"'{option}' is passed on.{hint}")


def _run(invocation: Invocation) -> Result:
    command = invocation.command
    if command is None or invocation.on("help") or invocation.on("version"):
        return _about(invocation)
    runner = _runner(command)
    if command.doing and not invocation.on("json") and sys.stderr is not None and sys.stderr.isatty():
        from .progress import can_be_shown, shown_while

        if can_be_shown():
            return shown_while(command.doing, lambda: runner(invocation))
    return runner(invocation)


def _about(invocation: Invocation) -> Result:
    """The help or the version, whichever is asked for."""
    from .result import Result

    command = invocation.command
    if invocation.on("version") and not invocation.on("help"):
        return Result({"version": __version__}, __version__)
    from .help import command_help, main_help

    text = command_help(command) if command else main_help(invocation.words)
    return Result({"help": text}, text)


def _runner(command: Command) -> Callable[[Invocation], Result]:
    module, _, function = command.runner.partition(":")
    # As importlib.import_module does; importing importlib would take half a millisecond.
    found = __import__(f"{__package__}.{module}", fromlist=[function])
    runner: Callable[[Invocation], Result] = getattr(found, function)
    return runner


def _show(error: UserError, *, as_json: bool) -> None:
    from .result import OUTPUT_FAILED, render_error

    render_error(error, as_json=as_json and error.code != OUTPUT_FAILED)


def _unexpected(error: Exception) -> UserError:
    """An error for a defect in this program; the traceback goes to the log."""
    import traceback

    log.debug(traceback.format_exc())
    return UserError(
        "Unexpected",
        f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}",
        "Run the command again with --log-level Debug and report what it prints.",
    )
