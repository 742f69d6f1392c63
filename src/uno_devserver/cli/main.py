"""Parse, run, render: what happens when somebody types `uno-devserver`."""

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

MISTYPED = 0.8  # how much an option that is passed on must look like one of ours to be worth a word
INTERRUPTED = 130  # what a shell says of a program that Ctrl+C ended


def main(argv: Sequence[str]) -> int:
    """Run one command line; returns the exit code: 0 done, 1 failed, 2 called wrongly, 130 interrupted."""
    as_json = any(_means_json(word) for word in argv)  # known before parsing, so that a parse error can be JSON too
    try:
        invocation = parse(argv)
        as_json = invocation.on("json")
        _configure_log(invocation)
        _mention_unknown(invocation)
        result = _run(invocation)
        from .result import render  # a proxy never comes here, and its client waits for every import

        render(result, as_json=as_json)
        as_json = False  # there is one document, and it has been written
        return result.afterwards() if result.afterwards else result.exit_code
    except UserError as error:
        _show(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        if as_json:  # people know what they did; a program that reads the output gets its document
            _show(UserError("Interrupted", "It was interrupted.", "Run it again."), as_json=True)
        return INTERRUPTED
    except Exception as error:
        _show(_unexpected(error), as_json=as_json)
        return 1


def _show(error: UserError, *, as_json: bool) -> None:
    from .result import OUTPUT_FAILED, render_error

    render_error(error, as_json=as_json and error.code != OUTPUT_FAILED)


def _means_json(word: str) -> bool:
    """Also where a value was given that it does not take."""
    name, _, value = word.lower().partition("=")
    return name == "--json" and value != "false"


def _mention_unknown(invocation: Invocation) -> None:
    """IDEs pass options that are not ours; people mistype."""
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
    if not command.doing or invocation.on("json"):
        return runner(invocation)
    return _with_progress(command.doing, lambda: runner(invocation))


def _about(invocation: Invocation) -> Result:
    from .result import Result

    command = invocation.command
    if invocation.on("version") and not invocation.on("help"):
        return Result({"version": __version__}, __version__)
    from .help import command_help, main_help

    text = command_help(command) if command else main_help(("mcp",) if invocation.words == ("mcp",) else ())
    return Result({"help": text}, text)


def _with_progress(doing: str, work: Callable[[], Result]) -> Result:
    if sys.stderr is None or not sys.stderr.isatty():
        return work()
    from .progress import can_be_shown, shown_while

    return shown_while(doing, work) if can_be_shown() else work()


def _runner(command: Command) -> Callable[[Invocation], Result]:
    module, _, function = command.runner.partition(":")
    # What importlib.import_module does; importing importlib would cost half a millisecond.
    found = __import__(f"{__package__}.{module}", fromlist=[function])
    runner: Callable[[Invocation], Result] = getattr(found, function)
    return runner


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
            log.warn(f"'{name}' is no log level; using Information. Levels: {', '.join(LEVELS)}.")
        else:
            log.level = level


def _unexpected(error: Exception) -> UserError:
    """A defect of ours: the traceback goes to the log, a sentence to the user."""
    import traceback

    log.debug(traceback.format_exc())
    return UserError(
        "Unexpected",
        f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}",
        "Run the command again with --log-level Debug and report what it prints.",
    )
